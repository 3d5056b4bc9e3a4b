"""Mistakes that construction could make in planned programs with padding and two precisions: each is found.

The programs have rows that fill no panel, sums of partials, biases, casts. Mistakes are seeded at every row
where they can be made, as far as there are not too many. A mistake that the verifier lets pass must be none:
the program computes what it did. Calls that work in place are left alone: without one, nothing is undefined.
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.geometry.precision import F8, F16
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.low.expand.program import expand
from compiler.low.faults import Rule
from compiler.low.ir import ExchangeStep, LowProgram, Role
from compiler.low.rewrites.tables import with_steps, without_calls
from compiler.low.values import Elements
from compiler.low.verify import verify
from compiler.models.blocks import mlp_block
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from tests.low.planned import EIGHT_BIT, FILL, assert_same_bits, executed, perceptron
from tests.low.tables import changed, without_rows

MOST_SEEDS = 12


def _two_biases() -> Graph:
    """The first bias leaves padding rows that the second addition wants to be zero."""
    build = GraphBuilder("two-biases")
    x = build.input("x", (34, 160), fill=FILL)
    y = build.gemm(x, build.parameter("weight", (160, 16), fill=FILL))
    for name in ("first", "second"):
        y = build.add(y, build.parameter(name, (16,), fill=FILL))
    build.output(y)
    return build.finish()


@cache
def _programs() -> tuple[LowProgram, ...]:
    graphs = (
        mlp_block(21, 64, 96),
        _two_biases(),
        perceptron(rows=37, width=160, hidden=96, precision=EIGHT_BIT, blocks=1),
        perceptron(rows=10, width=256, hidden=32, precision=F16(), blocks=1),
    )
    return tuple(
        expand(build_candidate(graph, Setting(tile_count=tiles), Recipe()).program)
        for graph, tiles in zip(graphs, (12, 12, 16, 23), strict=True)
    )


def _some(rows: np.ndarray) -> list[int]:
    """Rows spread over all that there are."""
    chosen = np.unique(np.linspace(0, len(rows) - 1, MOST_SEEDS).astype(np.int64)) if len(rows) else rows
    return [int(rows[row]) for row in chosen]


def _fills(program: LowProgram) -> np.ndarray:
    is_fill = np.array(
        [
            isinstance(binding.parameters, CopyParameters) and binding.parameters.kind is Kind.FILL
            for binding in program.bindings
        ]
    )
    return np.flatnonzero(is_fill[program.calls.binding])


def _shifted_sources(program: LowProgram) -> Iterator[LowProgram]:
    """Wrong displacement: a tile sends from 4 bytes beyond the end of the shard that it holds."""
    transfers, buffers = program.transfers, program.buffers
    for row in _some(np.arange(len(transfers.step))):
        end = int(buffers.byte_count[transfers.source[row]] - transfers.byte_count[row]) + 4
        yield changed(program, "transfers", "source_displacement", row, end)


def _shifted_views(program: LowProgram) -> Iterator[LowProgram]:
    """Wrong displacement: a call works 8 bytes from where its operand is."""
    for row in _some(program.calls.operand_views):
        yield changed(program, "views", "origin", row, int(program.views.origin[row]) + 8)


def _overlapping_deliveries(program: LowProgram) -> Iterator[LowProgram]:
    """Overlapping write: what a tile receives lands on what it receives from another in the same step."""
    recipients, transfers = program.recipients, program.transfers
    step = transfers.step[recipients.transfer]
    order = np.lexsort((recipients.destination, step))
    key = np.stack([step, recipients.destination], axis=1)[order]
    for place in _some(np.flatnonzero((key[1:] == key[:-1]).all(axis=1))):
        other, row = order[place], int(order[place + 1])
        onto = int(recipients.destination_displacement[other])
        yield changed(program, "recipients", "destination_displacement", row, onto)


def _uncleared(program: LowProgram) -> Iterator[LowProgram]:
    """Missing clear: a fill is left out."""
    for row in _some(_fills(program)):
        dropped = np.zeros(len(program.calls.step), dtype=np.bool_)
        dropped[row] = True
        yield without_calls(program, dropped)


def _removed_calls(program: LowProgram) -> Iterator[LowProgram]:
    """Removed call: a kernel that makes a value in storage of its own is not called on a tile."""
    is_in_place = np.array([bool(binding.aliases) for binding in program.bindings])
    rows = np.flatnonzero(~is_in_place[program.calls.binding])
    for row in _some(np.setdiff1d(rows, _fills(program))):
        dropped = np.zeros(len(program.calls.step), dtype=np.bool_)
        dropped[row] = True
        yield without_calls(program, dropped)


def _removed_copies(program: LowProgram) -> Iterator[LowProgram]:
    """Removed call: a local copy is not made."""
    for row in _some(np.arange(len(program.copies.step))):
        yield without_rows(program, "copies", [row])


def _lost_dependencies(program: LowProgram) -> Iterator[LowProgram]:
    """Lost dependency: an exchange step has changed places with one that makes values in their own storage.

    Not with one that fills: zeros that come late are as defined as zeros that come early.
    """
    calls = program.calls
    is_in_place = np.array([bool(binding.aliases) for binding in program.bindings])
    left_alone = {*calls.step[is_in_place[calls.binding]].tolist(), *calls.step[_fills(program)].tolist()}
    for place, (first, second) in enumerate(itertools.pairwise(program.steps)):
        is_exchanged = ExchangeStep in {type(first), type(second)}
        if is_exchanged and not left_alone & {first.step, second.step}:
            steps = (*program.steps[:place], second, first, *program.steps[place + 2 :])
            yield with_steps(program, steps)


def _other_precisions(program: LowProgram) -> Iterator[LowProgram]:
    """Byte read under two types: F8 operands are fetched from the F16 value that they were cast from."""
    calls, transfers = program.calls, program.transfers
    cast = [number for number, binding in enumerate(program.bindings) if binding.family == "cast"]
    for row in _some(np.flatnonzero(np.isin(calls.binding, cast))):
        first = int(calls.first_view[row])
        result, operand = (int(program.views.buffer[calls.operand_views[first + n]]) for n in range(2))
        for sent in np.flatnonzero(transfers.source == result).tolist():
            yield changed(program, "transfers", "source", sent, operand)


_STALE = {Rule.UNDEFINED, Rule.PADDING, Rule.PRECISION, Rule.SEPARATION}
"""What is said of bytes that are not those that were meant: by the rules about bytes over time, and where a
tile receives what it sends, that the other buffer is not apart."""


@pytest.mark.parametrize(
    ("corruptions", "rules"),
    [
        (_shifted_sources, {Rule.RANGE}),
        (_shifted_views, {Rule.FORM, Rule.RANGE}),
        (_overlapping_deliveries, {Rule.DELIVERY}),
        (_uncleared, {Rule.UNDEFINED, Rule.PADDING}),
        (_removed_calls, {Rule.UNDEFINED}),
        (_removed_copies, {Rule.UNDEFINED}),
        (_lost_dependencies, {Rule.UNDEFINED}),
        (_other_precisions, {Rule.PRECISION}),
    ],
)
def test_corruptions_are_found(
    corruptions: Callable[[LowProgram], Iterator[LowProgram]], rules: set[Rule]
) -> None:
    """Each seeded mistake, by a rule that is about it."""
    found: set[Rule] = set()
    for program in _programs():
        values = _values(program)
        for corrupted in corruptions(program):
            faults = {fault.rule for fault in verify(corrupted)}
            assert not faults or (rules | _STALE) & faults
            if not faults:
                assert_same_bits(executed(corrupted, values), executed(program, values))
            found |= faults
    assert rules <= found


def _values(program: LowProgram) -> dict[str, Elements]:
    """Twos, but for parameters in F8, whose code of an even number is as good."""
    return {
        value.name: np.full(value.shape, 2, dtype=value.format.precision.dtype)
        for value in program.values
        if value.role is not Role.OUTPUT
    }


def test_the_programs_themselves_have_no_faults() -> None:
    for program in _programs():
        assert verify(program) == ()
    precisions = {type(form.precision) for program in _programs() for form in program.forms}
    assert precisions == {F16, F8}


@st.composite
def _changes(draw: st.DrawFn) -> tuple[int, LowProgram]:
    """Any number of any table, replaced by one that a mistake might put there."""
    number = draw(st.integers(0, len(_programs()) - 1))
    program = _programs()[number]
    columns = [
        (table, field.name)
        for table in ("buffers", "separations", "views", "calls", "copies", "transfers", "recipients")
        for field in dataclasses.fields(getattr(program, table))
        if len(getattr(getattr(program, table), field.name))
    ]
    table, column = draw(st.sampled_from(columns))
    values = getattr(getattr(program, table), column)
    row = draw(st.integers(0, len(values) - 1))
    old, other = int(values[row]), int(values[draw(st.integers(0, len(values) - 1))])
    near = [old + distance for distance in (-32, -8, -4, -1, 1, 4, 8, 32)]
    new = draw(st.sampled_from([*near, 2 * old, old // 2, other, 0, 1, -1, 1 << 24, 2**63 - 1, -(2**63)]))
    return number, changed(program, table, column, row, new)


@settings(max_examples=150)
@given(change=_changes())
def test_what_is_accepted_can_be_run(change: tuple[int, LowProgram]) -> None:
    """Whatever number is wrong, the verifier has an answer; and what it accepts needs nothing undefined."""
    number, program = change
    if not verify(program):
        executed(program, _values(_programs()[number]))


def test_a_tile_that_receives_what_it_sends_needs_other_elements() -> None:
    """What is sent and received at once is to be apart, like operands of which a binding says so."""
    found = 0
    for program in _programs():
        tile, of = program.buffers.tile, program.recipients.transfer
        sources = program.transfers.source[of]
        home = tile[sources] == tile[program.recipients.destination]
        wanted = {
            frozenset(pair)
            for pair in zip(
                sources[home].tolist(), program.recipients.destination[home].tolist(), strict=True
            )
        }
        pairs = zip(program.separations.first.tolist(), program.separations.second.tolist(), strict=True)
        for row in [row for row, pair in enumerate(pairs) if frozenset(pair) in wanted][:MOST_SEEDS]:
            faults = verify(without_rows(program, "separations", [row]))
            assert Rule.SEPARATION in {fault.rule for fault in faults}
            found += 1
    assert found


def test_nobody_sends_to_itself_alone() -> None:
    """The fabric delivers nothing to a tile that is the only recipient of what it sends."""
    found = 0
    for program in _programs():
        tile, of = program.buffers.tile, program.recipients.transfer
        home = tile[program.transfers.source[of]] == tile[program.recipients.destination]
        for transfer in np.unique(of[home]).tolist()[:MOST_SEEDS]:
            others = np.flatnonzero((of == transfer) & ~home)
            left = without_rows(program, "recipients", others.tolist())
            first = np.searchsorted(left.recipients.transfer, np.arange(len(left.transfers.step)))
            left = dataclasses.replace(
                left, transfers=dataclasses.replace(left.transfers, first_recipient=first)
            )
            assert Rule.RECIPIENTS in {fault.rule for fault in verify(left)}
            found += 1
    assert found
