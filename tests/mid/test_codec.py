"""Whole-device programs through the store's bytes, and what their digest depends on."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.mid.codec import MID_PROGRAM, program_digest, program_of_columns
from compiler.mid.ir import Block, Copy, MidProgram, MidValueId, MovementPolicy, Repeat
from compiler.mid.order import in_definition_order
from compiler.store.container import Columns
from tests.mid.strategies import programs


@given(programs())
def test_a_program_comes_back_as_it_was(made: MidProgram) -> None:
    data = MID_PROGRAM.encode(made)
    assert MID_PROGRAM.decode(data) == made
    assert MID_PROGRAM.encode(MID_PROGRAM.decode(data)) == data


def _renamed(block: Block) -> Block:
    return dataclasses.replace(
        block,
        values=tuple(
            dataclasses.replace(value, name=f"v{number}", node="elsewhere")
            for number, value in enumerate(block.values)
        ),
        operations=tuple(
            dataclasses.replace(operation, node="other", body=_renamed(operation.body))
            if isinstance(operation, Repeat)
            else dataclasses.replace(operation, node="other")
            for operation in block.operations
        ),
    )


@given(programs())
def test_names_and_numbers_of_values_are_not_in_the_digest(made: MidProgram) -> None:
    renamed = dataclasses.replace(
        made,
        name="another",
        outputs=tuple(f"o{number}" for number in range(len(made.outputs))),
        block=_renamed(made.block),
    )
    reordered = dataclasses.replace(made, block=in_definition_order(made.block))
    assert program_digest(renamed) == program_digest(made) == program_digest(reordered)


@given(programs(), st.data())
def test_everything_else_is(made: MidProgram, data: st.DataObject) -> None:
    block = made.block
    changed = [
        dataclasses.replace(made, input_count=made.input_count + 1),
        dataclasses.replace(made, block=dataclasses.replace(block, results=block.results[:-1])),
    ]
    value = data.draw(st.integers(0, len(block.values) - 1))
    other = dataclasses.replace(block.values[value], shape=(*block.values[value].shape, 1))
    values = (*block.values[:value], other, *block.values[value + 1 :])
    changed.append(dataclasses.replace(made, block=dataclasses.replace(block, values=values)))
    for number, operation in enumerate(block.operations):
        if isinstance(operation, Copy):
            policy = next(each for each in MovementPolicy if each is not operation.policy)
            operations = (
                *block.operations[:number],
                dataclasses.replace(operation, policy=policy),
                *block.operations[number + 1 :],
            )
            changed.append(dataclasses.replace(made, block=dataclasses.replace(block, operations=operations)))
    digests = [program_digest(each) for each in (made, *changed)]
    assert len(set(digests)) == len(digests)


def test_other_columns_are_no_program() -> None:
    with pytest.raises(ValueError, match="holds no whole-device program"):
        program_of_columns(Columns(arrays={}))
    text = np.frombuffer(b'"something else"', dtype=np.uint8)
    with pytest.raises(ValueError, match="is no whole-device program of version"):
        program_of_columns(Columns(arrays={"program": text}))


def test_a_row_that_a_table_does_not_have_is_refused() -> None:
    block = Block(values=(), arguments=(MidValueId(0),), operations=(), results=())
    made = MidProgram(name="p", tile_count=1, block=block, input_count=1, outputs=())
    assert MID_PROGRAM.decode(MID_PROGRAM.encode(made)) == made
