"""Blocks that are put into others: everything that they do, and nothing else."""

import dataclasses

import pytest

from compiler.geometry.owners import OwnerMap
from compiler.mid.build import BlockBuilder
from compiler.mid.ir import Block, Value, operands_of, results_of
from compiler.planner.gemm_choice import Algorithm, GemmChoice
from tests.planner.products import build, problem_of


def fragment() -> Block:
    """A product whose partials are summed: copies, a product, a sum."""
    choice = GemmChoice(
        algorithm=Algorithm.PARALLEL_REDUCTION, row_parts=2, column_parts=2, inner_parts=3, scatter_rows=3
    )
    return build(problem_of(9, 130, 40, tile_count=12), choice).program.block


def nameless(value: Value) -> Value:
    """A value without its name, which has to be another one when it is there twice."""
    return dataclasses.replace(value, name="")


def test_a_fragment_is_put_in_as_it_is() -> None:
    """ML-13, PR-29: twice; the same operations on the same owners, no copy in between, no layout adapted."""
    block = fragment()
    builder = BlockBuilder()
    arguments = [builder.argument(block.value(argument)) for argument in block.arguments]
    results = [result for _ in range(2) for result in builder.insert(block, arguments)]
    made = builder.finish(results)
    count = len(block.operations)
    assert count > 3
    assert len(made.operations) == 2 * count
    for start in (0, count):
        numbers = dict(zip(block.arguments, arguments, strict=True))
        for old, new in zip(block.operations, made.operations[start : start + count], strict=True):
            assert type(old) is type(new)
            assert [numbers[value] for value in operands_of(old)] == list(operands_of(new))
            for before, after in zip(results_of(old), results_of(new), strict=True):
                numbers[before] = after
                assert nameless(block.value(before)) == nameless(made.value(after))
    assert len({value.name for value in made.values}) == len(made.values)


def test_a_fragment_takes_what_it_declares() -> None:
    """PR-29: a value on other tiles is refused, not brought."""
    block = fragment()
    builder = BlockBuilder()
    declared = [block.value(argument) for argument in block.arguments]
    assert declared[0].owners == OwnerMap(tile_count=12)
    elsewhere = dataclasses.replace(declared[0], owners=OwnerMap(tile_count=12, rotation=1))
    arguments = [builder.argument(value) for value in (elsewhere, *declared[1:])]
    with pytest.raises(ValueError, match="is not what argument"):
        builder.insert(block, arguments)
    assert not builder.finish([]).operations
