"""Builder, address operands, projection and text."""

import dataclasses
from collections import Counter

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import AmpLeft, AmpRight, ElementOrder, RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding, TensorTiling
from compiler.low.address import AddressOperand, AddressOperands, Members, resolve, resolve_all
from compiler.low.build import LowBuilder
from compiler.low.execute import PrivateAddresses
from compiler.low.ids import NO_SEQUENCE, BufferId, SequenceId
from compiler.low.ir import ComputeStep, ExchangeStep, RepeatStep
from compiler.low.project import WorkKind, project
from compiler.low.steps import StepKind, executions, in_order, table_of
from compiler.low.text import text_of_program, text_of_tile
from compiler.low.values import pack, unpack
from compiler.models.skeleton import BUFFERS, SkeletonOptions, skeleton
from tests.low.skeletons import skeleton_options


@hypothesis.given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99), st.integers(-1, 1)), max_size=9),
    st.integers(0, 5),
)
def test_addresses_of_many_operands_are_those_of_each(
    rows: list[tuple[int, int, int]], iteration: int
) -> None:
    placement = PrivateAddresses(
        address=np.array([1000, 2000, 3000, 4000]), stride=np.array([64, 96], dtype=np.int64)
    )
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    operands = AddressOperands(buffer=columns[0], displacement=columns[1], sequence=columns[2])
    assert resolve_all(placement, operands, iteration).tolist() == [
        1000 * (buffer + 1) + displacement + (0 if sequence < 0 else iteration * (64, 96)[sequence])
        for buffer, displacement, sequence in rows
    ]
    assert resolve_all(placement, operands, np.full(len(rows), iteration)).tolist() == [
        resolve(placement, operands.row(row), iteration) for row in range(len(rows))
    ]


def test_members_are_found_whatever_the_order_of_buffers() -> None:
    builder = LowBuilder(1)
    node = builder.node("a")
    buffers = [builder.buffer(tile=0, byte_count=8, alignment=8, node=node) for _ in range(6)]
    one = builder.sequence([buffers[5], buffers[0], buffers[3]])
    other = builder.sequence([buffers[1], buffers[4]])
    program = builder.finish()
    members = Members(program)
    assert members.of(one).tolist() == [5, 0, 3]
    assert members.of(other).tolist() == [1, 4]
    assert members.at(AddressOperand(buffer=BufferId(5), sequence=one), 2) == 3
    assert members.at(AddressOperand(buffer=BufferId(2)), 7) == 2


def test_the_builder_refuses_rows_without_meaning() -> None:
    builder = LowBuilder(1)
    node = builder.node("a")
    root = builder.buffer(tile=0, byte_count=64, alignment=8, node=node)
    alias = builder.alias(root, displacement=8, byte_count=8, alignment=8, node=node)
    with pytest.raises(ValueError, match="is no root"):
        builder.alias(alias, displacement=0, byte_count=8, alignment=8, node=node)
    with pytest.raises(ValueError, match="at least one member"):
        builder.sequence([])
    builder.sequence([root])
    with pytest.raises(ValueError, match="is in sequence 0 already"):
        builder.sequence([root])
    binding = skeleton(SkeletonOptions()).bindings[0]
    with pytest.raises(ValueError, match=r"has \d accesses, not 0"):
        builder.call(builder.compute_step(), binding, [], node)


def test_equal_geometry_and_equal_bindings_are_kept_once() -> None:
    """Two tiles with the same work have the same bindings and forms; rows are never merged (LC-01, AL-05)."""
    program = skeleton(SkeletonOptions())
    assert len(program.bindings) == len(set(program.bindings))
    assert len(program.forms) == len(set(program.forms))
    assert program.calls.binding[0] == program.calls.binding[1]
    assert len(program.calls.step) == 6


def test_what_a_builder_has_finished_does_not_change() -> None:
    builder = LowBuilder(1)
    node = builder.node("a")
    builder.buffer(tile=0, byte_count=8, alignment=8, node=node)
    program = builder.finish()
    builder.buffer(tile=0, byte_count=8, alignment=8, node=node)
    builder.compute_step()
    assert len(program.buffers.tile) == 1
    assert program.steps == ()
    assert not program.buffers.tile.flags.writeable


def test_separations_of_a_sequence_are_of_each_iteration() -> None:
    """RP-01: what a binding wants apart is apart in every iteration."""
    program = skeleton(SkeletonOptions())
    names = dict(enumerate(BUFFERS))
    pairs = {
        frozenset((names[a], names[b]))
        for a, b in zip(program.separations.first.tolist(), program.separations.second.tolist(), strict=True)
    }
    assert {frozenset(("h0", "partial0")), frozenset(("h1", "partial1"))} == pairs


def test_steps_are_numbered_and_run_in_order() -> None:
    steps = skeleton(SkeletonOptions()).steps
    table = table_of(steps)
    assert [step.step for step, _ in in_order(steps)] == list(range(7))
    assert table.kind.tolist() == [0, 2, 0, 1, 0, 0, 1]
    assert table.repeat.tolist() == [-1, -1, 1, 1, 1, 1, -1]
    assert table.iterations.tolist() == [1, 1, 2, 2, 2, 2, 1]
    assert table.first.tolist() == [0, 1, 1, 1, 1, 1, 6]
    assert table.last.tolist() == [0, 5, 5, 5, 5, 5, 6]
    run = [(step.step, iteration) for step, iteration in executions(steps)]
    body = [2, 3, 4, 5]
    assert run == [(0, 0), *((step, 0) for step in body), *((step, 1) for step in body), (6, 0)]
    assert isinstance(steps[0], ComputeStep)
    assert isinstance(steps[1], RepeatStep)
    assert isinstance(steps[2], ExchangeStep)
    assert StepKind(int(table.kind[1])) is StepKind.REPEAT


@hypothesis.settings(max_examples=20)
@hypothesis.given(skeleton_options())
def test_a_projection_leaves_nothing_out(options: SkeletonOptions) -> None:
    """AL-03, AL-04, EC-04: each row once, on its tile, in order of execution; so all sums agree (AL-10)."""
    program = skeleton(options)
    work = project(program)
    buffers, recipients = program.buffers, program.recipients
    expected = Counter[tuple[int, int, int, int]]()
    for row, (tile, step) in enumerate(
        zip(program.calls.tile.tolist(), program.calls.step.tolist(), strict=True)
    ):
        expected[(tile, step, WorkKind.CALL, row)] += 1
    for row, (tile, step) in enumerate(
        zip(program.copies.tile.tolist(), program.copies.step.tolist(), strict=True)
    ):
        expected[(tile, step, WorkKind.COPY, row)] += 1
    for row, step in enumerate(program.transfers.step.tolist()):
        expected[(int(buffers.tile[program.transfers.source[row]]), step, WorkKind.SEND, row)] += 1
    for row, transfer in enumerate(recipients.transfer.tolist()):
        tile = int(buffers.tile[recipients.destination[row]])
        expected[(tile, int(program.transfers.step[transfer]), WorkKind.RECEIVE, row)] += 1
    found = Counter[tuple[int, int, int, int]]()
    cycles = 0
    for tile in range(program.tile_count):
        rows = list(zip(*(column.tolist() for column in work.rows_of(tile)), strict=True))
        found.update((tile, step, WorkKind(kind), row) for step, kind, row in rows)
        assert rows == sorted(rows, key=lambda row: row[0])
        cycles += sum(
            program.bindings[int(program.calls.binding[row])].cycles
            for _, kind, row in rows
            if kind == WorkKind.CALL
        )
    assert found == expected
    assert cycles == sum(program.bindings[int(binding)].cycles for binding in program.calls.binding)
    assert not work.row.flags.writeable


def test_text_of_a_program() -> None:
    program = skeleton(SkeletonOptions(displacements=(("h0", 64),)))
    copy, gemm, sum_, add = (
        str(program.bindings[int(row)].symbol)
        for row in (program.copies.binding[0], *program.calls.binding[[0, 2, 4]])
    )
    assert text_of_program(program) == (
        "low program of 4 tiles: 17 buffers, 21,568 bytes, 3 sequences, "
        f"{len(program.bindings)} bindings\n"
        "input x [6, 64] F16\n"
        "parameter w0 [64, 64] F16\n"
        "parameter w1 [64, 64] F16\n"
        "parameter bias0 [64] F16\n"
        "parameter bias1 [64] F16\n"
        "output y [6, 64] F16\n"
        f"step 0 compute: 2 tiles: {copy} x 2\n"
        "step 1 repeat 2\n"
        f"  step 2 compute: 2 tiles: {gemm} x 2\n"
        "  step 3 exchange: 3 transfers to 4 recipients, 896 bytes sent, 1,024 received\n"
        f"  step 4 compute: 2 tiles: {sum_} x 2\n"
        f"  step 5 compute: 2 tiles: {add} x 2\n"
        "step 6 exchange: 2 transfers to 2 recipients, 768 bytes sent, 768 received\n"
    )
    assert text_of_tile(program, project(program), 0) == (
        "tile 0\n"
        "  b0 384 bytes, aligned 32, input x shard 0, for skeleton\n"
        "  b1 4,096 bytes, aligned 32, interleaved, s0[0], parameter w0 shard 0, for skeleton\n"
        "  b2 4,096 bytes, aligned 32, interleaved, s0[1], parameter w1 shard 0, for skeleton\n"
        "  b9 448 bytes, aligned 32, for skeleton\n"
        "  b10 768 bytes, aligned 32, interleaved, for skeleton\n"
        "  b11 384 bytes, aligned 32, for skeleton\n"
        "  b12 128 bytes, aligned 32, for skeleton\n"
        "  step 0\n"
        "    copy b0 -> b9+64, 1 x 384 bytes\n"
        "  step 2, 2 times in step 1\n"
        f"    {gemm} b9+64, b1@s0 -> b10\n"
        "  step 3, 2 times in step 1\n"
        "    receive t0 b12\n"
        "    send t1 b10+384, 384 bytes\n"
        "    receive t2 b11\n"
        "  step 4, 2 times in step 1\n"
        f"    {sum_} b10, b11 -> b9+64\n"
        "  step 5, 2 times in step 1\n"
        f"    {add} b9+64, b12 -> b9+64\n"
        "  step 6\n"
        "    send t3 b9+64, 384 bytes\n"
    )


@pytest.mark.parametrize("precision", [F8(scale_exponent=-3), F16(), F32()])
@pytest.mark.parametrize(
    ("shape", "order", "tiling"),
    [
        ((5, 7), RowMajor(), GridTiling()),
        ((5, 96), RowMajor(), GridTiling(replicas=2, axes=(AxisTiling(axis=1, partitions=3),))),
        ((3, 70), AmpLeft(), GridTiling(axes=(AxisTiling(axis=0, partitions=2),))),
        ((64, 48), AmpRight(), GridTiling(axes=(AxisTiling(axis=1, partitions=3, block_size=16),))),
        ((7, 33), RowMajor(), LinearTiling(partitions=4, grain=8)),
    ],
)
def test_a_tensor_comes_back_from_its_shards(
    precision: Precision, shape: tuple[int, ...], order: ElementOrder, tiling: TensorTiling
) -> None:
    """In every precision, with padding where panels need it; padding is zero."""
    if isinstance(order, AmpLeft) and isinstance(tiling, GridTiling):
        columns = AxisTiling(axis=1, partitions=1, padding_multiple=precision.micro, padding=Padding.ZERO)
        tiling = dataclasses.replace(tiling, axes=(*tiling.axes, columns))
    distribution = distribute(
        shape, TensorFormat(precision=precision, layout=TensorLayout(order=order, tiling=tiling))
    )
    raw = np.random.default_rng(0).integers(1, 120, size=int(np.prod(shape)))
    array = raw.astype(precision.dtype).reshape(shape)
    shards = pack(distribution, array)
    assert [len(shard) for shard in shards] == distribution.storage_bytes.tolist()
    np.testing.assert_array_equal(unpack(distribution, shards), array, strict=True)
    held = sum(np.count_nonzero(shard.view(precision.dtype)) for shard in shards)
    assert held == array.size
    with pytest.raises(ValueError, match="shards of"):
        unpack(distribution, shards[:-1])


def test_an_operand_without_a_sequence_has_none() -> None:
    assert AddressOperand(buffer=BufferId(3)).sequence == NO_SEQUENCE == SequenceId(-1)
