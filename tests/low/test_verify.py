"""The verifier accepts every skeleton, and finds a corruption of each rule at the row where it is."""

import dataclasses
import itertools
from collections.abc import Callable

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F32
from compiler.low.execute import Execution
from compiler.low.faults import Rule
from compiler.low.ir import LowProgram, RepeatStep
from compiler.low.verify import verify
from compiler.low.verify_flow import UNDEFINED, ByteStates
from compiler.models.skeleton import BUFFERS, SkeletonOptions, skeleton
from tests.low.skeletons import random_input, random_parameters, skeleton_options
from tests.low.tables import changed, without_rows

_PROGRAM = skeleton(SkeletonOptions())
_BUFFER = {name: row for row, name in enumerate(BUFFERS)}
# Calls 0, 1: GEMM; 2, 3: sum; 4, 5: add. Copies 0, 1. Transfers 0: bias; 1, 2: halves; 3, 4: gather.
_GEMM, _SUM, _ADD = 0, 2, 4


def _view(call: int, position: int) -> int:
    calls = _PROGRAM.calls
    return int(calls.operand_views[calls.first_view[call] + position])


def _set(table: str, column: str, row: int, value: int) -> Callable[[LowProgram], LowProgram]:
    return lambda program: changed(program, table, column, row, value)


def _without(table: str, *rows: int) -> Callable[[LowProgram], LowProgram]:
    return lambda program: without_rows(program, table, list(rows))


def _repeat(program: LowProgram, **fields: object) -> LowProgram:
    """The program with its Repeat changed."""
    steps = tuple(
        dataclasses.replace(step, **fields) if isinstance(step, RepeatStep) else step
        for step in program.steps
    )
    return dataclasses.replace(program, steps=steps)


def _nested(program: LowProgram) -> LowProgram:
    inner = next(step for step in program.steps if isinstance(step, RepeatStep))
    body = tuple(dataclasses.replace(step, step=step.step + 1) for step in inner.body)
    nested = RepeatStep(step=inner.step, count=2, body=(RepeatStep(step=body[0].step, count=2, body=body),))
    later = tuple(dataclasses.replace(step, step=step.step + 1) for step in program.steps[2:])
    return dataclasses.replace(program, steps=(*program.steps[:1], nested, *later))


def _other_owner(program: LowProgram) -> LowProgram:
    x = dataclasses.replace(program.values[0], owners=OwnerMap(tile_count=5))
    return dataclasses.replace(program, values=(x, *program.values[1:]))


def _in_f32(program: LowProgram) -> LowProgram:
    """The program with an x of as many bytes in half as many elements."""
    x = program.values[0]
    wide = dataclasses.replace(
        x, shape=(x.shape[0], x.shape[1] // 2), format=dataclasses.replace(x.format, precision=F32())
    )
    return dataclasses.replace(program, values=(wide, *program.values[1:]))


def _nearby(program: LowProgram) -> LowProgram:
    """The program with a product that wants nothing apart."""
    number = int(program.calls.binding[_GEMM])
    binding = dataclasses.replace(program.bindings[number], separate=())
    return dataclasses.replace(
        program, bindings=(*program.bindings[:number], binding, *program.bindings[number + 1 :])
    )


def _two_of_a_name(program: LowProgram) -> LowProgram:
    """The program with two parameters of one name."""
    x, first, second, *others = program.values
    return dataclasses.replace(
        program, values=(x, first, dataclasses.replace(second, name=first.name), *others)
    )


def _with_shared_pair(program: LowProgram) -> LowProgram:
    """The program with a buffer that is to be apart from the one whose storage it shares."""
    shared = changed(program, "buffers", "root", _RECEIVED0, _H0)
    pair = changed(shared, "separations", "first", 0, _H0)
    return changed(pair, "separations", "second", 0, _RECEIVED0)


def _over_reading(program: LowProgram) -> LowProgram:
    """The program with a sum that reads 16 bytes behind the partials it received."""
    number = int(program.calls.binding[_SUM])
    binding = program.bindings[number]
    own, received = binding.operands
    tailed = dataclasses.replace(binding, operands=(own, dataclasses.replace(received, tail=16)))
    return dataclasses.replace(
        program, bindings=(*program.bindings[:number], tailed, *program.bindings[number + 1 :])
    )


_H0, _PARTIAL0, _RECEIVED0, _RECEIVED1 = (_BUFFER[n] for n in ("h0", "partial0", "received0", "received1"))
_WEIGHTS0, _WEIGHTS1 = _BUFFER["w0_shard0"], _BUFFER["w1_shard0"]

_CORRUPTIONS: list[tuple[Rule, str, int, Callable[[LowProgram], LowProgram]]] = [
    (Rule.REFERENCE, "views", 3, _set("views", "buffer", 3, 99)),
    (Rule.REFERENCE, "buffers", 1, _set("buffers", "tile", 1, 4)),
    (Rule.REFERENCE, "buffers", 1, _set("buffers", "node", 1, -1)),
    (Rule.REFERENCE, "buffers", 1, _set("buffers", "sequence", 1, -2)),
    (Rule.REFERENCE, "calls", 5, _set("calls", "first_view", 5, 17)),
    (Rule.REFERENCE, "calls", 0, _set("calls", "operand_views", 0, 18)),
    (Rule.REFERENCE, "transfers", 1, _set("transfers", "first_recipient", 1, 1)),
    (Rule.REFERENCE, "transfers", 0, _set("recipients", "transfer", 1, 4)),
    (
        Rule.REFERENCE,
        "copies",
        0,
        lambda program: dataclasses.replace(
            program, copies=dataclasses.replace(program.copies, rows=np.ones(3, dtype=np.int64))
        ),
    ),
    (
        Rule.STEP_NUMBER,
        "steps",
        0,
        lambda program: dataclasses.replace(program, steps=program.steps[1:]),
    ),
    (Rule.REPEAT, "steps", 1, lambda program: _repeat(program, count=0)),
    (Rule.REPEAT, "steps", 2, _nested),
    (Rule.REFERENCE, "calls", 5, _set("calls", "first_view", 5, 2**63 - 1)),
    (
        Rule.REFERENCE,
        "copies",
        0,
        lambda program: dataclasses.replace(
            program,
            copies=dataclasses.replace(program.copies, rows=program.copies.rows.astype(np.float64)),
        ),
    ),
    (Rule.RANGE, "transfers", 2, _set("transfers", "source_displacement", 2, 2**63 - 8)),
    (Rule.RANGE, "buffers", _H0, _set("buffers", "byte_count", _H0, 1 << 40)),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "byte_count", _H0, 0)),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "alignment", _H0, 0)),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "cleared", _H0, 2)),
    (Rule.SHARING, "buffers", _WEIGHTS0, _set("buffers", "cleared", _WEIGHTS0, 1)),
    (
        Rule.SHARING,
        "buffers",
        _RECEIVED0,
        lambda program: changed(
            changed(program, "buffers", "root", _RECEIVED0, _H0), "buffers", "cleared", _H0, 1
        ),
    ),
    (Rule.SEQUENCE, "buffers", _H0, _set("buffers", "member", _H0, 1)),
    (Rule.HOST_VALUE, "buffers", _H0, _set("buffers", "shard", _H0, 1)),
    (Rule.HOST_VALUE, "values", 2, _two_of_a_name),
    (Rule.SEPARATION, "separations", 0, _with_shared_pair),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "alignment", _H0, 24)),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "tail", _H0, -8)),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "interleaved", _H0, 2)),
    (Rule.BUFFER, "buffers", _H0, _set("buffers", "role", _H0, 7)),
    (Rule.SHARING, "buffers", _H0, _set("buffers", "displacement", _H0, 32)),
    (Rule.SHARING, "buffers", _H0, _set("buffers", "root", _H0, _BUFFER["h1"])),
    (Rule.SHARING, "buffers", _PARTIAL0, _set("buffers", "root", _PARTIAL0, _H0)),
    (
        Rule.SHARING,
        "buffers",
        _RECEIVED0,
        lambda program: changed(
            changed(program, "buffers", "root", _RECEIVED0, _H0), "buffers", "displacement", _RECEIVED0, 384
        ),
    ),
    (
        Rule.SHARING,
        "buffers",
        _RECEIVED0,
        lambda program: changed(
            changed(program, "buffers", "root", _RECEIVED0, _H0), "buffers", "displacement", _RECEIVED0, 8
        ),
    ),
    (Rule.SHARING, "buffers", _RECEIVED0, _set("buffers", "root", _BUFFER["received0"], _BUFFER["h1"])),
    (Rule.SEQUENCE, "sequences", 0, _set("buffers", "member", _WEIGHTS1, 2)),
    (Rule.SEQUENCE, "sequences", 0, _set("buffers", "byte_count", _WEIGHTS1, 4095)),
    (Rule.SEQUENCE, "sequences", 0, _set("sequences", "first", 0, _WEIGHTS1)),
    (Rule.SEQUENCE, "sequences", 0, _set("sequences", "count", 0, 3)),
    (Rule.SEQUENCE, "sequences", 0, _set("buffers", "root", _WEIGHTS1, _WEIGHTS0)),
    (Rule.SEPARATION, "calls", _GEMM, _without("separations", 0)),
    (Rule.SEPARATION, "separations", 0, _set("separations", "first", 0, _BUFFER["h1"])),
    (Rule.HOST_VALUE, "values", 0, _set("buffers", "shard", _BUFFER["x_shard0"], 1)),
    (Rule.HOST_VALUE, "values", 0, _other_owner),
    (Rule.HOST_VALUE, "buffers", _H0, _set("buffers", "value", _H0, 0)),
    (
        Rule.HOST_VALUE,
        "buffers",
        _BUFFER["x_shard1"],
        _set("buffers", "byte_count", _BUFFER["x_shard1"], 388),
    ),
    (Rule.HOST_VALUE, "buffers", _BUFFER["x_shard1"], _set("buffers", "role", _BUFFER["x_shard1"], 1)),
    (Rule.STEP_KIND, "calls", _ADD, _set("calls", "step", _ADD, 6)),
    (Rule.STEP_KIND, "transfers", 0, _set("transfers", "step", 0, 0)),
    (Rule.TILE, "calls", _GEMM, _set("calls", "tile", _GEMM, 1)),
    (Rule.TILE, "copies", 0, _set("copies", "source", 0, _BUFFER["x_shard1"])),
    (Rule.ITERATION, "calls", _GEMM, _set("calls", "step", _GEMM, 0)),
    (Rule.ITERATION, "calls", _GEMM, lambda program: _repeat(program, count=3)),
    (Rule.ITERATION, "calls", _GEMM, _set("views", "buffer", _view(_GEMM, 2), _WEIGHTS1)),
    (Rule.ITERATION, "copies", 1, _set("copies", "source_sequence", 1, 1)),
    (Rule.ITERATION, "recipients", 4, _set("recipients", "destination_sequence", 4, 1)),
    (Rule.BINDING, "bindings", int(_PROGRAM.calls.binding[_SUM]), _over_reading),
    (Rule.BINDING, "bindings", int(_PROGRAM.calls.binding[_GEMM]), _nearby),
    (Rule.FORM, "calls", _GEMM, _set("views", "form", _view(_GEMM, 1), 3)),
    (Rule.FORM, "calls", _SUM, _set("views", "form", _view(_SUM, 1), -1)),
    (Rule.FORM, "calls", _GEMM, _set("views", "origin", _view(_GEMM, 1), 8)),
    (Rule.RANGE, "calls", _SUM, _set("views", "origin", _view(_SUM, 2), 32)),
    (Rule.RANGE, "calls", _SUM, _set("views", "origin", _view(_SUM, 2), -32)),
    (Rule.RANGE, "calls", _SUM, _over_reading),
    (Rule.RANGE, "copies", 1, _set("copies", "destination_displacement", 1, 64)),
    (Rule.RANGE, "transfers", 2, _set("transfers", "source_displacement", 2, 512)),
    (Rule.RANGE, "recipients", 5, _set("recipients", "destination_displacement", 5, 388)),
    (Rule.ALIGNMENT, "calls", _SUM, _set("buffers", "alignment", _RECEIVED0, 4)),
    (Rule.ALIGNMENT, "calls", _SUM, _set("views", "origin", _view(_SUM, 2), 4)),
    (Rule.ALIGNMENT, "recipients", 2, _set("buffers", "alignment", _RECEIVED1, 2)),
    (Rule.ALIGNMENT, "transfers", 2, _set("transfers", "source_displacement", 2, 2)),
    (Rule.MEMORY_CLASS, "calls", _GEMM, _set("buffers", "interleaved", _PARTIAL0, 0)),
    (Rule.OVERLAP, "calls", _SUM, _set("views", "buffer", _view(_SUM, 0), _RECEIVED0)),
    (Rule.OVERLAP, "calls", _ADD, _set("views", "buffer", _view(_ADD, 0), _RECEIVED0)),
    (Rule.OVERLAP, "copies", 0, _set("copies", "source", 0, _H0)),
    (Rule.COPY, "copies", 0, _set("copies", "row_bytes", 0, 200)),
    (Rule.COPY, "copies", 0, _set("copies", "rows", 0, 2)),
    (Rule.COPY, "copies", 0, _set("copies", "binding", 0, int(_PROGRAM.calls.binding[_GEMM]))),
    (Rule.WORDS, "transfers", 0, _set("transfers", "byte_count", 0, 126)),
    (Rule.RECIPIENTS, "recipients", 1, _set("recipients", "destination", 1, _BUFFER["addend0"])),
    (
        Rule.RECIPIENTS,
        "transfers",
        4,
        lambda program: without_rows(program, "recipients", [len(program.recipients.transfer) - 1]),
    ),
    (Rule.RESIDENT, "recipients", 2, _set("recipients", "destination", 2, _WEIGHTS1)),
    (Rule.RESIDENT, "copies", 0, _set("copies", "destination", 0, _WEIGHTS0)),
    (Rule.RESIDENT, "calls", _SUM, _set("views", "buffer", _view(_SUM, 0), _WEIGHTS0)),
    (Rule.DELIVERY, "recipients", 5, _set("recipients", "destination_displacement", 5, 0)),
    (Rule.SEPARATION, "recipients", 3, _set("recipients", "destination", 3, _BUFFER["partial1"])),
    (Rule.RECIPIENTS, "transfers", 2, _set("recipients", "destination", 3, _BUFFER["partial1"])),
    (Rule.PRECISION, "calls", _GEMM, _in_f32),
    (Rule.UNDEFINED, "calls", _GEMM, _without("copies", 0)),
    (Rule.UNDEFINED, "calls", _SUM, _set("transfers", "byte_count", 2, 380)),
    (Rule.UNDEFINED, "buffers", _BUFFER["y_shard0"], _set("transfers", "byte_count", 4, 4)),
]


def test_there_is_a_corruption_of_each_rule() -> None:
    """The program has no padding; that of programs which do is corrupted in ``test_corruptions``."""
    assert {rule for rule, _, _, _ in _CORRUPTIONS} == set(Rule) - {Rule.PADDING}


@pytest.mark.parametrize(("rule", "table", "row", "corrupt"), _CORRUPTIONS)
def test_a_corruption_is_found_where_it_is(
    rule: Rule, table: str, row: int, corrupt: Callable[[LowProgram], LowProgram]
) -> None:
    found = verify(corrupt(_PROGRAM))
    assert (rule, table, row) in [(fault.rule, fault.table, fault.row) for fault in found]


@hypothesis.settings(max_examples=25)
@hypothesis.given(skeleton_options())
def test_a_well_formed_program_has_no_faults(options: SkeletonOptions) -> None:
    assert verify(skeleton(options)) == ()


def test_all_faults_are_reported_in_words() -> None:
    program = changed(_PROGRAM, "transfers", "byte_count", 0, 126)
    program = changed(program, "copies", "row_bytes", 1, 200)
    symbol = program.bindings[int(program.copies.binding[1])].symbol
    assert [str(fault) for fault in verify(program)] == [
        "transfers 0: words: 126 bytes are not whole words",
        f"copies 1: copy: {symbol} does not move 1 runs of 200 bytes, 384 and 384 apart",
    ]


def test_bytes_behind_the_end_may_be_read_where_the_buffer_has_a_tail() -> None:
    program = _over_reading(_PROGRAM)
    for received in (_RECEIVED0, _RECEIVED1):
        program = changed(program, "buffers", "tail", received, 16)
    assert {fault.rule for fault in verify(program)} == {Rule.BINDING}


_SAME_SIZE = [_BUFFER[name] for name in ("x_shard0", "h0", "received0", "x_shard1", "h1", "received1")]
_CHANGES = {
    ("views", "buffer"): _SAME_SIZE,
    ("calls", "step"): [0, 2, 4, 5],
    ("copies", "step"): [0, 5],
    ("copies", "source"): _SAME_SIZE,
    ("copies", "destination"): _SAME_SIZE,
    ("transfers", "step"): [3, 6],
    ("transfers", "source"): [*_SAME_SIZE, _PARTIAL0],
    ("transfers", "source_displacement"): [0, 4, 128, 384],
    ("transfers", "byte_count"): [4, 64, 128, 380, 384],
    ("recipients", "destination"): _SAME_SIZE,
    ("recipients", "destination_displacement"): [0, 4, 128, 384],
}


@st.composite
def _mutants(draw: st.DrawFn) -> LowProgram:
    program = _PROGRAM
    for _ in range(draw(st.integers(1, 2))):
        table, column = draw(st.sampled_from(sorted(_CHANGES)))
        row = draw(st.integers(0, len(getattr(getattr(program, table), column)) - 1))
        program = changed(program, table, column, row, draw(st.sampled_from(_CHANGES[table, column])))
    return program


@hypothesis.settings(max_examples=150)
@hypothesis.given(_mutants())
def test_what_the_verifier_accepts_the_executor_can_run(program: LowProgram) -> None:
    """And what it refuses as undefined, and only that, the executor refuses too."""
    faults = verify(program)
    if any(fault.rule is not Rule.UNDEFINED for fault in faults):
        return
    options = SkeletonOptions()
    execution = Execution(program)
    execution.upload(random_parameters(options, 0))
    inputs = {"x": random_input(options, 1)}
    if faults:
        with pytest.raises(ValueError, match="was never written"):
            execution.run(inputs)
    else:
        execution.run(inputs)


def test_a_sequence_visits_a_member_in_each_iteration() -> None:
    """Definedness is followed through every iteration: a member that nobody wrote is missed in the second."""
    program = changed(_PROGRAM, "buffers", "role", _WEIGHTS1, 0)
    program = changed(program, "buffers", "value", _WEIGHTS1, -1)
    program = dataclasses.replace(program, values=program.values)
    w1 = [row for row in np.flatnonzero(_PROGRAM.buffers.value == 2).tolist() if row != _WEIGHTS1]
    for row in w1:
        program = changed(changed(program, "buffers", "role", row, 0), "buffers", "value", row, -1)
    program = dataclasses.replace(
        program,
        values=(*program.values[:2], *program.values[3:]),
        buffers=dataclasses.replace(
            program.buffers,
            value=np.where(program.buffers.value > 2, program.buffers.value - 1, program.buffers.value),
            shard=np.where(program.buffers.value == -1, 0, program.buffers.shard),
        ),
    )
    found = verify(program)
    assert [(fault.rule, fault.table, fault.row) for fault in found] == [
        (Rule.UNDEFINED, "calls", 0),
        (Rule.UNDEFINED, "calls", 1),
    ]
    assert "operand 1 needs byte 0" in found[0].message


@hypothesis.given(
    st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 30), st.integers(0, 30)), max_size=12),
    st.integers(0, 30),
    st.integers(0, 30),
)
def test_states_are_those_that_were_put_last(
    changes: list[tuple[int, int, int]], one: int, other: int
) -> None:
    held, model = ByteStates(), [UNDEFINED] * 31
    for state, a, b in changes:
        low, high = min(a, b), max(a, b)
        held.put(low, high, state)
        model[low:high] = [state] * (high - low)
    low, high = min(one, other), max(one, other)
    within = held.within(low, high)
    assert [state for start, stop, state in within for _ in range(start, stop)] == model[low:high]
    assert all(
        first[1] == second[0] and first[2] != second[2] for first, second in itertools.pairwise(within)
    )
