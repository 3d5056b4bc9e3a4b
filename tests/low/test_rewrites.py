"""Rewrites keep results, cost nothing, and leave one program that everybody sees alike (AL-01 to AL-10)."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.errors import NumberKind
from compiler.estimate.low import phase_estimates, timeline
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F16, F32
from compiler.geometry.tiling import GridTiling
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph
from compiler.kernels.contract import Binding
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.registry import bind
from compiler.low.address import AddressOperand
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.execute import Execution
from compiler.low.expand.program import construct
from compiler.low.faults import Rule
from compiler.low.ids import BufferId, NodeId, StepId
from compiler.low.ir import ExchangeStep, HostValue, LowProgram, Role
from compiler.low.limits import row_words_of
from compiler.low.project import WorkKind, project
from compiler.low.rewrites.cleared import with_cleared_scratch
from compiler.low.rewrites.clears import without_idle_clears
from compiler.low.rewrites.computes import with_joined_computes
from compiler.low.rewrites.hazards import touches_of
from compiler.low.rewrites.memory import most_held
from compiler.low.rewrites.phases import with_merged_phases
from compiler.low.rewrites.relays import with_relays
from compiler.low.steps import in_order
from compiler.low.verify import verify
from compiler.mid.interpret import interpret
from compiler.mid.ir import MidProgram
from compiler.placement.problem import lifetimes
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from compiler.target.costs import KERNEL_LAUNCH, ROW_BUDGET
from tests.low.planned import FILL, assert_same_bits, executed, perceptron, programs, tensors
from tests.low.tables import changed

REWRITES: tuple[Callable[[LowProgram], LowProgram], ...] = (
    without_idle_clears,
    with_cleared_scratch,
    with_relays,
    with_merged_phases,
    with_joined_computes,
)


@settings(max_examples=15)
@given(program=programs(), seed=st.integers(0, 1000))
def test_rewrites_keep_results_and_never_cost_more(program: MidProgram, seed: int) -> None:
    """LC-06, AL-08: verified, executed and priced after each; a second time changes nothing."""
    values = tensors(program, seed)
    expected = interpret(program, values)
    low = construct(program)
    for rewrite in REWRITES:
        before = _cycles(low)
        low = rewrite(low)
        assert verify(low) == ()
        assert_same_bits(executed(low, values), expected)
        assert _cycles(low) <= before
        _assert_one_program(low)
        again = rewrite(low)
        assert again.steps == low.steps
        assert len(again.calls.step) == len(low.calls.step)


def _cycles(program: LowProgram) -> int:
    return timeline(program, phase_estimates(program), NumberKind.ESTIMATED).cycles


def _assert_one_program(program: LowProgram) -> None:
    """AL-03, AL-04, AL-05, AL-10: projection, estimate and inventory see each row of the tables once."""
    work = project(program)
    tables = {
        WorkKind.COPY: (program.copies.step, program.copies.tile),
        WorkKind.CALL: (program.calls.step, program.calls.tile),
        WorkKind.SEND: (program.transfers.step, program.buffers.tile[program.transfers.source]),
        WorkKind.RECEIVE: (
            program.transfers.step[program.recipients.transfer],
            program.buffers.tile[program.recipients.destination],
        ),
    }
    listed: Counter[tuple[int, int, int, int]] = Counter()
    for tile in range(program.tile_count):
        step, kind, row = work.rows_of(tile)
        listed.update((tile, *each) for each in zip(step.tolist(), kind.tolist(), row.tolist(), strict=True))
    assert listed == Counter(
        (tile, step, int(kind), row)
        for kind, (steps, tiles) in tables.items()
        for row, (step, tile) in enumerate(zip(steps.tolist(), tiles.tolist(), strict=True))
    )
    named = np.concatenate([program.calls.binding, program.copies.binding])
    assert sorted(set(named.tolist())) == list(range(len(program.bindings)))
    assert sorted(set(program.views.form.tolist()) - {-1}) == list(range(len(program.forms)))
    cycles = np.array([binding.cycles + KERNEL_LAUNCH for binding in program.bindings], dtype=np.int64)
    counted = np.zeros(program.tile_count, dtype=np.int64)
    iterations = {step.step: around.count if around else 1 for step, around in in_order(program.steps)}
    for table in (program.calls, program.copies):
        for row in range(len(table.step)):
            counted[table.tile[row]] += iterations[StepId(int(table.step[row]))] * cycles[table.binding[row]]
    timed = timeline(program, phase_estimates(program), NumberKind.ESTIMATED)
    assert np.array_equal(timed.busy, counted)
    assert timed.phases == sum(
        iterations[step.step] for step, _ in in_order(program.steps) if isinstance(step, ExchangeStep)
    )


# Programs by hand: inputs and outputs of words on tiles


class _Board:
    """Words on tiles, moved and filled by hand."""

    def __init__(self, tile_count: int) -> None:
        self.build = LowBuilder(tile_count)
        self.tile_count = tile_count
        self.node = self.build.node("work")

    def value(self, name: str, tile: int, words: int, role: Role) -> BufferId:
        number = self.build.value(
            HostValue(
                name=name,
                role=role,
                shape=(words,),
                format=TensorFormat(
                    precision=F32(), layout=TensorLayout(order=RowMajor(), tiling=GridTiling())
                ),
                owners=OwnerMap(
                    tile_count=self.tile_count,
                    embedding=tuple(TileId((tile + n) % self.tile_count) for n in range(self.tile_count)),
                ),
            )
        )
        return self.build.buffer(
            tile=tile, byte_count=4 * words, alignment=32, node=self.node, role=role, value=number
        )

    def scratch(self, tile: int, words: int) -> BufferId:
        return self.build.buffer(tile=tile, byte_count=4 * words, alignment=32, node=self.node)

    def send(self, step: StepId, source: BufferId, destination: BufferId, words: int, at: int = 0) -> None:
        self.build.transfer(
            step,
            source=AddressOperand(buffer=source),
            byte_count=4 * words,
            recipients=[AddressOperand(buffer=destination, displacement=4 * at)],
            node=self.node,
        )

    def copy(self, step: StepId, source: BufferId, destination: BufferId, words: int, at: int = 0) -> None:
        self.build.copy(
            step,
            _bound(Kind.MOVE, 4 * words),
            source=AddressOperand(buffer=source),
            destination=AddressOperand(buffer=destination, displacement=4 * at),
            rows=1,
            row_bytes=4 * words,
            source_stride=4 * words,
            destination_stride=4 * words,
            node=self.node,
        )

    def fill(self, step: StepId, buffer: BufferId, words: int) -> None:
        binding = _bound(Kind.FILL, 4 * words)
        self.build.call(step, binding, [self.build.view(buffer, None)], NodeId(self.node))


def _bound(kind: Kind, byte_count: int) -> Binding:
    bound = bind(
        "copy",
        CopyParameters(
            kind=kind,
            rows=1,
            row_bytes=byte_count,
            destination_stride=byte_count,
            source_stride=byte_count if kind is Kind.MOVE else 0,
        ),
    )
    assert isinstance(bound, Binding)
    return bound


def _exchanges(program: LowProgram) -> int:
    return sum(isinstance(step, ExchangeStep) for step, _ in in_order(program.steps))


def test_two_calls_of_which_one_is_idle() -> None:
    """AL-10: estimate and projection lose the call together, as one table does."""
    board = _Board(2)
    x, y = board.value("x", 0, 8, Role.INPUT), board.value("y", 1, 8, Role.OUTPUT)
    scratch, needed = board.scratch(0, 4), board.scratch(0, 8)
    step = board.build.compute_step()
    board.fill(step, scratch, 4)
    board.fill(step, needed, 8)
    board.copy(board.build.compute_step(), x, needed, 4)
    board.send(board.build.exchange_step(), needed, y, 8)
    program = board.build.finish()
    left = without_idle_clears(program)
    assert (len(program.calls.step), len(left.calls.step)) == (2, 1)
    saved = _bound(Kind.FILL, 16).cycles + KERNEL_LAUNCH
    assert _cycles(program) - _cycles(left) == saved
    assert int((project(left).kind == WorkKind.CALL).sum()) == 1
    assert len(left.bindings) == 2
    _assert_one_program(left)
    x_array = np.arange(8, dtype=np.float32)
    assert_same_bits(executed(left, {"x": x_array}), executed(program, {"x": x_array}))


@pytest.mark.parametrize("is_read", [False, True])
def test_a_clear_in_a_repeat_is_followed_into_the_next_iteration(*, is_read: bool) -> None:
    """What is cleared at the end of a body is read at its start, one iteration later, or by nobody."""
    board = _Board(2)
    x, y = board.value("x", 0, 4, Role.INPUT), board.value("y", 1, 4, Role.OUTPUT)
    carried = board.scratch(0, 4)
    board.copy(board.build.compute_step(), x, carried, 4)
    with board.build.repeat(2):
        if is_read:
            board.send(board.build.exchange_step(), carried, y, 4)
        else:
            board.send(board.build.exchange_step(), x, y, 4)
        board.fill(board.build.compute_step(), carried, 4)
    left = without_idle_clears(board.build.finish())
    assert len(left.calls.step) == int(is_read)
    assert executed(left, {"x": np.ones(4, dtype=np.float32)})["y"].tolist() == [float(not is_read)] * 4


@pytest.mark.parametrize("overwritten", [False, True])
def test_zeros_that_nothing_overwrites_are_there_from_the_start(*, overwritten: bool) -> None:
    """AL-02: what every iteration fills is cleared at load, unless one leaves it otherwise."""
    board = _Board(2)
    x, y = board.value("x", 0, 4, Role.INPUT), board.value("y", 1, 8, Role.OUTPUT)
    padded = board.scratch(0, 8)
    with board.build.repeat(2):
        board.fill(board.build.compute_step(), padded, 8)
        board.copy(board.build.compute_step(), x, padded, 4)
        board.send(board.build.exchange_step(), padded, y, 8)
        if overwritten:
            board.copy(board.build.compute_step(), x, padded, 4, at=4)
    program = board.build.finish()
    assert without_idle_clears(program).calls.step.tolist() == program.calls.step.tolist()
    left = with_cleared_scratch(program)
    assert verify(left) == ()
    assert left.buffers.cleared[padded] == (not overwritten)
    assert len(left.calls.step) == int(overwritten)
    execution = Execution(left)
    for run in range(1, 4):
        found = execution.run({"x": np.full(4, run, dtype=np.float32)})
        assert found["y"].tolist() == [run] * 4 + [0] * 4
    lives = [column[padded] for column in lifetimes(left)]
    assert overwritten or lives == [0, sum(1 for _ in in_order(left.steps)) - 1]


def test_scratch_is_not_cleared_where_its_memory_is_needed() -> None:
    """AL-02: a cleared buffer lends nothing; the most that a tile holds stays as it was."""
    board = _Board(2)
    x, y = board.value("x", 0, 4, Role.INPUT), board.value("y", 1, 8, Role.OUTPUT)
    padded, other = board.scratch(0, 8), board.scratch(0, 64)
    board.fill(board.build.compute_step(), padded, 8)
    board.copy(board.build.compute_step(), x, padded, 4)
    board.send(board.build.exchange_step(), padded, y, 8)
    board.fill(board.build.compute_step(), other, 64)
    board.send(board.build.exchange_step(), other, y, 8)
    program = board.build.finish()
    assert not with_cleared_scratch(program).buffers.cleared.any()


def _products() -> Graph:
    """Three products in a batch, whose K fills no panel."""
    build = GraphBuilder("products")
    left, right = build.input("x", (3, 47, 12), fill=FILL), build.parameter("w", (3, 12, 160), fill=FILL)
    build.output(build.gemm(left, right))
    return build.finish()


@pytest.mark.parametrize("graph", [_products(), perceptron(7, 44, 36, F16(), 3)])
def test_padding_of_products_is_cleared_at_load(graph: Graph) -> None:
    """AL-02: K is no multiple of a panel; every run has less to do, and the same results."""
    program = build_candidate(graph, Setting(tile_count=5), Recipe()).program
    filled = without_idle_clears(construct(program))
    low = with_cleared_scratch(filled)
    assert verify(low) == ()
    assert low.buffers.cleared.any()
    assert len(low.calls.step) < len(filled.calls.step)
    assert _cycles(low) < _cycles(filled)
    assert most_held(low, touches_of(low)) <= most_held(filled, touches_of(filled))
    values = tensors(program, seed=5)
    expected = interpret(program, values)
    execution = Execution(low)
    roles = {value.name: value.role for value in low.values}
    execution.upload({name: array for name, array in values.items() if roles[name] is Role.PARAMETER})
    for _ in range(2):
        found = execution.run({name: array for name, array in values.items() if roles[name] is Role.INPUT})
        assert_same_bits(found, expected)
    # Who takes the zeros away, or lends their memory, is found out.
    undefined = changed(low, "buffers", "cleared", int(np.argmax(low.buffers.cleared)), 0)
    assert Rule.UNDEFINED in {fault.rule for fault in verify(undefined)}


def test_merged_phases_have_rows_that_fit() -> None:
    """MG-07: each of two phases fits the row of a tile; one phase of both would not."""
    board, spans = _Board(3), 5_500
    x, y = board.value("x", 0, spans, Role.INPUT), board.value("y", 1, 4 * spans, Role.OUTPUT)
    board.fill(board.build.compute_step(), y, 4 * spans)
    for half in range(2):
        board.build.transfers(
            board.build.exchange_step(),
            source=AddressColumns(buffer=np.full(spans, x), displacement=4 * np.arange(spans)),
            byte_count=np.full(spans, 4),
            recipient_count=np.ones(spans, dtype=np.int64),
            recipients=AddressColumns(
                buffer=np.full(spans, y), displacement=8 * np.arange(spans) + half * 8 * spans
            ),
            node=board.node,
        )
    program = board.build.finish()
    # Each transfer has one recipient, so that both have the same rows.
    rows = [np.flatnonzero(np.isin(program.transfers.step, steps)) for steps in ([1], [2], [1, 2])]
    words = [int(row_words_of(program, chosen, chosen).max()) for chosen in rows]
    assert [4 * count <= ROW_BUDGET for count in words] == [True, True, False]
    assert _exchanges(with_merged_phases(program)) == 2


def _two_phases(*, hop: str) -> LowProgram:
    """Two phases from x; ``hop`` says what stands between them."""
    board = _Board(3)
    x, y, z = (
        board.value("x", 0, 64, Role.INPUT),
        board.value("y", 1, 64, Role.OUTPUT),
        board.value("z", 2, 64, Role.OUTPUT),
    )
    packed = board.scratch(0, 64)
    board.send(board.build.exchange_step(), x, y, 64)
    match hop:
        case "packing":
            board.copy(board.build.compute_step(), x, packed, 64)
            board.send(board.build.exchange_step(), packed, z, 64)
        case "relay":
            board.send(board.build.exchange_step(), y, z, 64)
        case "chain":
            middle = board.scratch(1, 64)
            board.copy(board.build.compute_step(), y, middle, 64)
            board.send(board.build.exchange_step(), middle, z, 64)
        case "overwritten":
            board.fill(board.build.compute_step(), x, 64)
            board.send(board.build.exchange_step(), packed, z, 64)
        case _:
            board.send(board.build.exchange_step(), x, z, 64)
    return board.build.finish()


@pytest.mark.parametrize(
    ("hop", "phases"), [("nothing", 1), ("packing", 1), ("relay", 2), ("chain", 2), ("overwritten", 1)]
)
def test_phases_merge_when_nothing_depends(hop: str, phases: int) -> None:
    """LC-06: packing moves to the front, what reads or overwrites what is sent stays behind; chains stay."""
    program = _two_phases(hop=hop)
    merged = with_merged_phases(program)
    assert _exchanges(merged) == phases
    if hop != "overwritten":
        values = {"x": np.arange(64, dtype=np.float32)}
        assert_same_bits(executed(merged, values), executed(program, values))
        assert executed(merged, values)["z"].tolist() == values["x"].tolist()


def test_the_second_phase_may_not_overwrite_what_the_first_sends() -> None:
    """LC-06, write after read: the later delivery lands on bytes that the earlier phase sends."""
    board = _Board(3)
    x, w = board.value("x", 0, 8, Role.INPUT), board.value("w", 2, 8, Role.INPUT)
    y = board.value("y", 1, 8, Role.OUTPUT)
    board.send(board.build.exchange_step(), x, y, 8)
    board.send(board.build.exchange_step(), w, x, 8)
    assert _exchanges(with_merged_phases(board.build.finish())) == 2


def test_phases_on_both_sides_of_a_repeat_stay_apart() -> None:
    """LC-06: nothing moves over the border of a Repeat."""
    board = _Board(3)
    x, y, z = (
        board.value("x", 0, 8, Role.INPUT),
        board.value("y", 1, 8, Role.OUTPUT),
        board.value("z", 2, 8, Role.OUTPUT),
    )
    board.send(board.build.exchange_step(), x, y, 8)
    with board.build.repeat(2):
        board.send(board.build.exchange_step(), x, z, 8)
    assert _exchanges(with_merged_phases(board.build.finish())) == 2


@pytest.mark.parametrize(("packing_tile", "phases"), [(1, 2), (3, 1)])
def test_a_merge_that_makes_tiles_wait_is_declined(packing_tile: int, phases: int) -> None:
    """MG-07: packing moves in front of the barrier, beside work of the same tile or of another."""
    board, words = _Board(4), 20_000
    x, y = board.value("x", 0, 8, Role.INPUT), board.value("y", 2, 8, Role.OUTPUT)
    packed, z = board.scratch(packing_tile, words), board.value("z", 0, 8, Role.OUTPUT)
    board.fill(board.build.compute_step(), board.scratch(1, words), words)
    board.send(board.build.exchange_step(), x, y, 8)
    step = board.build.compute_step()
    board.fill(step, packed, words)
    board.fill(step, board.scratch(2, words), words)
    board.send(board.build.exchange_step(), packed, z, 8)
    program = board.build.finish()
    merged = with_merged_phases(program)
    assert _exchanges(merged) == phases
    assert _cycles(merged) <= _cycles(program)


def test_merging_may_not_raise_what_a_tile_holds() -> None:
    """Two large values that came after each other would live together."""
    board = _Board(2)
    x, y = board.value("x", 0, 60_000, Role.INPUT), board.value("y", 1, 4, Role.OUTPUT)
    first, second = board.scratch(1, 60_000), board.scratch(1, 60_000)
    board.send(board.build.exchange_step(), x, first, 60_000)
    board.copy(board.build.compute_step(), first, y, 2)
    board.send(board.build.exchange_step(), x, second, 60_000)
    board.build.copy(
        board.build.compute_step(),
        _bound(Kind.MOVE, 8),
        source=AddressOperand(buffer=second),
        destination=AddressOperand(buffer=y, displacement=8),
        rows=1,
        row_bytes=8,
        source_stride=8,
        destination_stride=8,
        node=board.node,
    )
    assert _exchanges(with_merged_phases(board.build.finish())) == 2
