"""Round trips of programs and placements through the store's bytes, and what is not read back."""

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeAlias

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest

from compiler.geometry.order import AmpLeft
from compiler.low.codec import LOW_PROGRAM, columns_of_program, program_of_columns
from compiler.low.ir import (
    Buffers,
    Calls,
    Copies,
    LowProgram,
    Recipients,
    Separations,
    Sequences,
    Transfers,
    Views,
)
from compiler.low.text import text_of_program
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.placement.codec import PLACEMENT
from compiler.placement.place import place
from compiler.store.container import Columns
from tests.low.skeletons import skeleton_options

Array: TypeAlias = npt.NDArray[Any]
TABLES = (Buffers, Sequences, Separations, Views, Calls, Copies, Transfers, Recipients)


def same(one: LowProgram, other: LowProgram) -> bool:
    """Equality of programs, whose tables compare by identity."""
    for field in dataclasses.fields(LowProgram):
        left, right = getattr(one, field.name), getattr(other, field.name)
        if type(left) in TABLES:
            for column in dataclasses.fields(left):
                numbers: Array = getattr(left, column.name)
                others: Array = getattr(right, column.name)
                if numbers.dtype != others.dtype or not np.array_equal(numbers, others):
                    return False
        elif left != right:
            return False
    return True


@hypothesis.settings(max_examples=20)
@hypothesis.given(skeleton_options())
def test_a_program_comes_back_as_it_was(options: SkeletonOptions) -> None:
    program = skeleton(options)
    data = LOW_PROGRAM.encode(program)
    again = LOW_PROGRAM.decode(data)
    assert same(program, again)
    assert LOW_PROGRAM.encode(again) == data
    assert text_of_program(again) == text_of_program(program)


def test_equal_programs_have_equal_bytes_and_different_ones_do_not() -> None:
    options = SkeletonOptions()
    assert LOW_PROGRAM.encode(skeleton(options)) == LOW_PROGRAM.encode(skeleton(options))
    other = SkeletonOptions(displacements=(("h0", 8),))
    assert LOW_PROGRAM.encode(skeleton(options)) != LOW_PROGRAM.encode(skeleton(other))


def test_a_program_that_is_read_cannot_be_written() -> None:
    again = LOW_PROGRAM.decode(LOW_PROGRAM.encode(skeleton(SkeletonOptions())))
    assert not again.buffers.tile.flags.writeable
    assert not again.calls.operand_views.flags.writeable


def _columns(program: LowProgram, changes: Mapping[str, Array | None]) -> Columns:
    arrays = dict(columns_of_program(program).arrays) | dict(changes)
    return Columns(arrays={name: array for name, array in arrays.items() if array is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"trees": None}, "no column of text"),
        ({"buffers.tile": None}, "buffers.tile is not a column"),
        ({"buffers.tile": np.zeros(3, dtype=np.int32)}, "buffers.tile is not a column"),
        ({"buffers.tile": np.zeros((3, 1), dtype=np.int64)}, "buffers.tile is not a column"),
        ({"more": np.zeros(3, dtype=np.int64)}, "more is no column"),
        ({"trees": np.frombuffer(b'{"steps":[]}', dtype=np.uint8)}, "a low program has"),
        (
            {"trees": np.frombuffer(b'{"$type":"builtins:int","fields":{}}', dtype=np.uint8)},
            "builtins:int is no class that a low program holds",
        ),
    ],
)
def test_other_columns_are_refused(changes: dict[str, Array | None], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        program_of_columns(_columns(skeleton(SkeletonOptions()), changes))


def test_classes_of_other_packages_are_not_constructed() -> None:
    text = LOW_PROGRAM.encode(skeleton(SkeletonOptions()))
    other = f"{AmpLeft.__module__}:AmpWrong".encode()
    with pytest.raises(ValueError, match="AmpWrong"):
        LOW_PROGRAM.decode(text.replace(f"{AmpLeft.__module__}:AmpRight".encode(), other))


def test_a_placement_comes_back_as_it_was() -> None:
    placement = place(skeleton(SkeletonOptions()), ())
    again = PLACEMENT.decode(PLACEMENT.encode(placement))
    assert again.address.tolist() == placement.address.tolist()
    assert again.stride.tolist() == placement.stride.tolist()
    assert not again.address.flags.writeable


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"address": np.zeros(2, dtype=np.int64)}, "a placement has the columns"),
        ({"address": np.zeros(2, dtype=np.int64), "stride": np.zeros(1, dtype=np.float64)}, "stride is not"),
    ],
)
def test_other_columns_are_no_placement(arrays: dict[str, Array], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PLACEMENT.value(Columns(arrays=arrays))
