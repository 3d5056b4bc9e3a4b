"""Whole applications: barriers and their time, exchange rows, meanings of kernels, determinism, watching.

Packages are made by hand, from texts and literal rows.
"""

import json
import random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from compiler.errors import NumberKind, TilewrightError
from compiler.package.format import read_package, write_package
from compiler.package.records import Application, DebugSymbol, TileImage
from compiler.simulator.application import SimulationOptions, Simulator
from compiler.simulator.functional import KernelMemory, Meaning
from compiler.simulator.recording import Breakpoint
from compiler.simulator.state import SUPERVISOR
from compiler.simulator.timeline import MeetingKind
from compiler.target.costs import PHASE_RESIDUAL, PHASE_RESIDUAL_RANGE
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Address, Cycles, PhysicalTile
from tests.fixtures.exchange.examples import load
from tests.simulator.packages import (
    ATTACH,
    AWAY,
    BARRIER,
    DATA,
    END,
    ROW,
    STEP,
    application,
    echo,
    finished,
    image,
    linked,
)

EXAMPLE = load("phases")["phases"][0]
"""Ten words from tile 0 and twenty from tile 128 to tile 64, one behind the other."""

SEND = {0: (0x60000, 10), 128: (0x61000, 20)}


def hexadecimal(words: list[str]) -> list[int]:
    return [int(word, 16) for word in words]


def rows() -> dict[int, list[int]]:
    return {tile["physical"]: hexadecimal(tile["row"]["words"]) for tile in EXAMPLE["tiles"]}


def words_at(simulator: Simulator, tile: int, address: int, count: int) -> list[int]:
    return np.frombuffer(simulator.tile(PhysicalTile(tile)).read(address, 4 * count), "<u4").tolist()


def exchanging(before: str = "", after: str = "", step: str = STEP) -> Application:
    """The tiles of the example, and one that stays away."""
    data = {tile: {address: range(tile, tile + count)} for tile, (address, count) in SEND.items()}
    images = [
        image(tile, ATTACH + before + step + after + END + BARRIER, {ROW: words} | data.get(tile, {}))
        for tile, words in rows().items()
    ]
    return application([*images, image(700, ATTACH + AWAY + END)])


# Exchanges.


def test_words_arrive_where_rows_put_them() -> None:
    simulator = Simulator(exchanging())
    finished(simulator)
    assert words_at(simulator, 64, 0x70000, 30) == [*range(10), *range(128, 148)]


def test_the_timeline_names_the_phase_its_row_and_the_last_tile() -> None:
    simulator = Simulator(exchanging())
    first = simulator.initialize()
    result = finished(simulator)
    assert [meeting.kind for meeting in first.timeline] == [MeetingKind.ATTACH]
    (phase,) = result.timeline
    assert phase.kind is MeetingKind.EXCHANGE
    assert phase.taking_part == 3
    assert phase.horizon == max(tile["horizon"] for tile in EXAMPLE["tiles"]) == 90
    assert phase.delivered == 30
    assert phase.end == phase.release + 6 + 90 + 6
    # The tile that stays away says so at once; the others prepare first, equally long.
    assert phase.first_entry == first.timeline[0].release
    assert phase.limiting_tile == 0


def test_the_last_tile_sets_the_time_of_a_barrier() -> None:
    images = [
        image(0, ATTACH + "delay 99\nsync 3\n" + END),
        image(64, ATTACH + "delay 499\nsync 3\n" + END),
        image(128, ATTACH + "delay 299\n" + AWAY + END),
    ]
    (meeting,) = finished(Simulator(application(images))).timeline
    assert meeting.kind is MeetingKind.BARRIER
    assert (meeting.last_entry - meeting.first_entry, meeting.limiting_tile) == (400, 64)
    # A tile that stays away must have said so: it can be the last one.
    images[2] = image(128, ATTACH + "delay 999\n" + AWAY + END)
    (meeting,) = finished(Simulator(application(images))).timeline
    assert (meeting.last_entry - meeting.first_entry, meeting.limiting_tile) == (900, 128)
    assert meeting.taking_part == 2


CLOCK = "get $m0, $SCOUNT_L\nsetzi $m1, 0xA0000\nst32 $m0, $m1, $m15, 0\n"


def test_each_tile_goes_on_when_its_own_row_has_ended() -> None:
    """And a tile that stayed away with the barrier, not before."""
    images = [
        image(tile, ATTACH + STEP + CLOCK + END + BARRIER, {ROW: words} | data)
        for (tile, words), data in zip(
            rows().items(), ({0x60000: range(10)}, {}, {0x61000: range(20)}), strict=True
        )
    ]
    simulator = Simulator(application([*images, image(700, ATTACH + AWAY + CLOCK + END)]))
    (phase,) = finished(simulator).timeline
    clocks = {tile: words_at(simulator, tile, 0xA0000, 1)[0] for tile in (0, 64, 128, 700)}
    horizons = {tile["physical"]: tile["horizon"] for tile in EXAMPLE["tiles"]}
    assert len(set(horizons.values())) == 3
    for tile, horizon in horizons.items():
        assert clocks[tile] == phase.release + 6 + horizon + 6
    assert clocks[700] == phase.release


@pytest.mark.parametrize("shift", range(7))
def test_a_reference_exchange_step_leaves_what_was_measured_beyond_its_row(shift: int) -> None:
    """From the entry of the last tile to completion, less the horizon: 250 of 229 to 294."""
    clock = "get $m0, $SCOUNT_L\nsetzi $m1, 0xA0000\nst32 $m0, $m1, $m15, {}\n"
    text = exchanging(f"delay {shift + 1}\n" + clock.format(0), clock.format(1))
    simulator = Simulator(text)
    finished(simulator)
    start, end = words_at(simulator, 64, 0xA0000, 2)
    # Between the samples lie the rest of the first, after its `get` began, and the second's `get` not.
    own = 6 + 1 + 1
    residual = end - start - own - 90
    low, high = PHASE_RESIDUAL_RANGE
    assert residual == PHASE_RESIDUAL
    assert low <= residual <= high


def test_rows_are_read_when_they_are_called() -> None:
    """A row that is rewritten between two phases does what it says then, on tiles that share its words."""
    source = rows()[0]
    moved = (source[1] & ~(0x3FFFF << 3)) | ((0x62000 >> 2) << 3)
    patch = f"setzi $m0, {moved >> 12:#x}\nshl $m0, $m0, 12\nor $m0, $m0, {moved & 0xFFF:#x}\n"
    patch += f"setzi $m1, {ROW:#x}\nst32 $m0, $m1, $m15, 1\n"
    images = [
        image(
            0,
            ATTACH + STEP + patch + STEP + END + BARRIER,
            {ROW: source, 0x60000: range(10), 0x62000: range(1000, 1010)},
        ),
        image(64, ATTACH + STEP + STEP + END + BARRIER, {ROW: rows()[64]}),
        image(128, ATTACH + STEP + STEP + END + BARRIER, {ROW: rows()[128], 0x61000: range(20)}),
    ]
    simulator = Simulator(application(images))
    finished(simulator)
    assert words_at(simulator, 64, 0x70000, 10) == list(range(1000, 1010))


def test_code_that_an_exchange_overwrites_is_decoded_again() -> None:
    """Words received at 0x70000 are executed before and after."""
    program = "setzi $m5, 7\nbr $m10\n"
    first = np.frombuffer(linked(program)[0], "<u4").tolist()
    other = np.frombuffer(linked("setzi $m5, 9\nbr $m10\n")[0], "<u4").tolist()
    keep = "setzi $m1, 0xA0000\nst32 $m5, $m1, $m15, {}\n"
    calling = ATTACH + "call $m10, 0x1c000\n" + keep.format(0) + STEP
    calling += "call $m10, 0x1c000\n" + keep.format(1) + END + BARRIER
    images = [
        image(0, ATTACH + STEP + END + BARRIER, {ROW: rows()[0], 0x60000: [*other, *range(8)]}),
        image(64, calling, {ROW: rows()[64], 0x70000: first}),
        image(128, ATTACH + STEP + END + BARRIER, {ROW: rows()[128], 0x61000: range(20)}),
    ]
    simulator = Simulator(application(images))
    finished(simulator)
    assert words_at(simulator, 64, 0xA0000, 2) == [7, 9]


def test_a_moving_base_is_the_register_at_the_barrier() -> None:
    """`put OUTGOING_BASE, $m6` in front of the row moves every send (hardware facts, 4.5)."""
    moving = STEP.replace("put $OUTGOING_BASE, $m15", "setzi $m6, 0x400\nput $OUTGOING_BASE, $m6")
    images = [
        image(0, ATTACH + moving + END + BARRIER, {ROW: rows()[0], 0x60400: range(50, 60)}),
        image(64, ATTACH + STEP + END + BARRIER, {ROW: rows()[64]}),
        image(128, ATTACH + STEP + END + BARRIER, {ROW: rows()[128], 0x61000: range(20)}),
    ]
    simulator = Simulator(application(images))
    finished(simulator)
    assert words_at(simulator, 64, 0x70000, 10) == list(range(50, 60))


def test_registers_that_a_row_sets_stay_set() -> None:
    """A row with `setzi $m6` and a base written inside it leaves both behind."""
    row = [0x19660000, 0x436080A7, 0x43A00000]
    keep = "setzi $m1, 0xA0000\nget $m0, $OUTGOING_BASE\nst32 $m6, $m1, $m15, 0\nst32 $m0, $m1, $m15, 1\n"
    simulator = Simulator(application([image(0, ATTACH + STEP + keep + END + BARRIER, {ROW: row})]))
    result = finished(simulator)
    assert words_at(simulator, 0, 0xA0000, 2) == [0x60000, 0x60000]
    assert result.timeline[0].horizon == 14


# Cycles.


def test_the_cycles_of_a_run_lie_between_input_and_output() -> None:
    """500 cycles more between the batches are 500 cycles more, and the host's part counts nothing."""
    short = finished(Simulator(echo()), {"x": bytes(64)}).cycles
    long = finished(Simulator(echo(middle="delay 499\n")), {"x": bytes(64)}).cycles
    assert short is not None
    assert long is not None
    assert long.value - short.value == 500
    assert short.kind is NumberKind.SIMULATED
    # 64 bytes are copied: three setzi, and 16 times 2 loads or branches of 6 and 4 of 1 less the last branch.
    assert short.value == pytest.approx(3 + 16 * 16 + 5 + 22, abs=30)


def test_without_host_batches_a_run_lasts_until_the_last_tile() -> None:
    simulator = Simulator(application([image(0, ATTACH + "delay 99\n" + END), image(1, ATTACH + END)]))
    cycles = finished(simulator).cycles
    assert cycles is not None
    assert 100 < cycles.value < 120


# Determinism.


def busy(count: int) -> Application:
    """Tiles that count for different times, meet, and say when they did."""
    text = ATTACH + "get $m5, $TILE_ID\nand $m5, $m5, 63\nadd $m5, $m5, 1\n"
    text += "again:\nadd $m5, $m5, -1\nbrnz $m5, again\nsync 3\n"
    text += "get $m0, $SCOUNT_L\nsetzi $m1, 0xA0000\nst32 $m0, $m1, $m15, 0\n" + END
    return application([image(tile, text) for tile in range(count)])


def facts(simulator: Simulator, tiles: int) -> tuple[Any, ...]:
    result = finished(simulator)
    clocks = [words_at(simulator, tile, 0xA0000, 1) for tile in range(tiles)]
    return result.timeline, result.cycles, clocks


def test_results_do_not_depend_on_threads_and_repeat() -> None:
    package = busy(90)
    found = [facts(Simulator(package, SimulationOptions(threads=threads)), 90) for threads in (1, 1, 2, 5)]
    assert all(other == found[0] for other in found)
    assert len({str(clock) for clock in found[0][2]}) == 1, "all are released in one cycle"


def test_watching_changes_nothing() -> None:
    package = busy(20)
    options = SimulationOptions(trace_tiles=(PhysicalTile(3), PhysicalTile(19)))
    assert facts(Simulator(package), 20) == facts(Simulator(package, options), 20)


# Meanings.

KERNEL = """
double:
    setzi $m0, worker
    add $m11, $m11, -8
    st32 $m2, $m11, $m15, 0
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 8
    br $m10
.worker
worker:
    get $m0, 1
    and $m0, $m0, 7
    brnz $m0, out
    ld32 $m1, $m13, $m15, 0
    ld32 $m2, $m1, $m15, 0
    add $m2, $m2, $m2
    st32 $m2, $m1, $m15, 0
out:
    exitz $m15
"""


def doubling() -> tuple[Application, list[DebugSymbol]]:
    text = ATTACH + f"setzi $m11, 0x586e0\nsetzi $m2, {DATA:#x}\ncall $m10, double\n" + END
    text += KERNEL.replace(
        "st32 $m2, $m11, $m15, -2\n    add $m11, $m11, -8", "add $m11, $m11, -8\n    st32 $m2, $m11, $m15, 0"
    )
    symbols = list(linked(text)[1])
    return application([image(5, text, {DATA: [21]})], symbols=symbols), symbols


def test_a_meaning_replaces_the_instructions_of_a_kernel() -> None:
    package, symbols = doubling()
    stepped, applied = (
        Simulator(package),
        Simulator(
            package,
            SimulationOptions(meanings={"double": Meaning(apply=apply_double, cycles=lambda _: Cycles(500))}),
        ),
    )
    exact, estimate = finished(stepped), finished(applied)
    assert words_at(stepped, 5, DATA, 1) == words_at(applied, 5, DATA, 1) == [42]
    assert stepped.tile(PhysicalTile(5)).instructions > 0
    assert applied.tile(PhysicalTile(5)).instructions == 0
    assert exact.cycles is not None
    assert estimate.cycles is not None
    assert (exact.cycles.kind, estimate.cycles.kind) == (NumberKind.SIMULATED, NumberKind.ESTIMATED)
    assert estimate.cycles.value > 500
    assert "functional: cycles are estimated" in estimate.notes
    unpriced = "kernels whose cycles are not known count as their launch alone: the sum is too small"
    assert unpriced not in estimate.notes
    bare = Simulator(package, SimulationOptions(meanings={"double": Meaning(apply=apply_double)}))
    assert unpriced in finished(bare).notes
    assert not any("estimated" in note for note in exact.notes)
    assert {symbol.name for symbol in symbols} >= {"double"}


def apply_double(arguments: tuple[int, ...], memory: KernelMemory) -> None:
    word: npt.NDArray[np.uint32] = memory.read(arguments[0], 4).view("<u4")
    memory.write(arguments[0], (2 * word).view(np.uint8))


def test_symbols_that_the_package_does_not_have_are_ignored() -> None:
    package, _ = doubling()
    simulator = Simulator(package, SimulationOptions(meanings={"other": Meaning(apply=apply_double)}))
    finished(simulator)
    assert words_at(simulator, 5, DATA, 1) == [42]


def add_one(arguments: tuple[int, ...], memory: KernelMemory) -> None:
    """Two words become themselves, one beside the other, and their successors."""
    words = memory.read(arguments[0], 8).view("<u4")
    memory.write(arguments[0] + 16, words.view(np.uint8))
    memory.write(arguments[0] + 24, (words.astype(np.uint32) + 1).view(np.uint8))
    memory.write(arguments[0] + 32, memory.read(arguments[0] + 24, 8)[:4])


def test_what_a_meaning_makes_of_unwritten_bytes_stays_unwritten() -> None:
    """And nothing else does: the other word of the same write, in-place work, what lay there before."""
    package, _ = doubling()
    simulator = Simulator(package, SimulationOptions(meanings={"double": Meaning(apply=add_one)}))
    finished(simulator)
    tile = simulator.tile(PhysicalTile(5))
    assert words_at(simulator, 5, DATA + 16, 1) == [21]
    assert words_at(simulator, 5, DATA + 24, 1) == [22]
    assert words_at(simulator, 5, DATA + 32, 1) == [22]
    known = [4 * (DATA + 4 * n in (DATA, DATA + 16, DATA + 24, DATA + 32),) for n in range(10)]
    assert tile.written(DATA, 40).tolist() == [mark for word in known for mark in word]


def add_in_place(arguments: tuple[int, ...], memory: KernelMemory) -> None:
    words = memory.read(arguments[0], 8).view("<u4")
    memory.write(arguments[0], (words.astype(np.uint32) + 1).view(np.uint8))


def test_work_in_place_on_partly_unwritten_bytes_is_done_once() -> None:
    package, _ = doubling()
    simulator = Simulator(package, SimulationOptions(meanings={"double": Meaning(apply=add_in_place)}))
    finished(simulator)
    assert words_at(simulator, 5, DATA, 1) == [22]
    assert simulator.tile(PhysicalTile(5)).written(DATA, 8).tolist() == 4 * [True] + 4 * [False]


# Watching.


def test_a_breakpoint_stops_the_first_tile_that_gets_there() -> None:
    package, symbols = doubling()
    address = next(symbol.address for symbol in symbols if symbol.name == "double")
    for tile in (None, PhysicalTile(5)):
        simulator = Simulator(package, SimulationOptions(stop_at=Breakpoint(address=address, tile=tile)))
        result = simulator.run()
        assert not result.is_complete
        assert (result.stopped_at, result.faults) == (5, ())
        stopped = simulator.tile(PhysicalTile(5))
        assert stopped.program_counter(SUPERVISOR) == address
        assert stopped.main_register(SUPERVISOR, 2) == DATA
        assert words_at(simulator, 5, DATA, 1) == [21]


def test_a_breakpoint_in_a_worker_stops_before_its_instruction() -> None:
    package, symbols = doubling()
    address = next(symbol.address for symbol in symbols if symbol.name == "worker")
    simulator = Simulator(package, SimulationOptions(stop_at=Breakpoint(address=address)))
    assert simulator.run().stopped_at == 5
    assert simulator.tile(PhysicalTile(5)).instructions == 0
    assert simulator.tile(PhysicalTile(5)).is_active(0)


def test_a_breakpoint_can_be_an_exchange_row() -> None:
    simulator = Simulator(
        exchanging(), SimulationOptions(stop_at=Breakpoint(address=Address(ROW), tile=PhysicalTile(64)))
    )
    assert simulator.run().stopped_at == 64
    assert not simulator.tile(PhysicalTile(64)).written(0x70000, 4).any()


def test_a_breakpoint_that_is_never_reached_changes_nothing() -> None:
    options = SimulationOptions(stop_at=Breakpoint(address=Address(0x7FF00)))
    assert facts(Simulator(busy(8), options), 8) == facts(Simulator(busy(8)), 8)


def test_a_trace_shows_kernels_workers_rows_and_waits() -> None:
    package, _ = doubling()
    simulator = Simulator(package, SimulationOptions(trace_tiles=(PhysicalTile(5),)))
    finished(simulator)
    events = spans(simulator.trace())
    assert {(event["tid"], event["name"]) for event in events} >= {
        (SUPERVISOR, "double"),
        (SUPERVISOR, "waits for workers"),
        (0, "worker"),
    }
    assert all(event["pid"] == 5 for event in events)
    assert all(event["dur"] == pytest.approx(event["args"]["cycles"] / 1500) for event in events)

    twice = ATTACH + f"setzi $m11, 0x586e0\nsetzi $m2, {DATA:#x}\ncall $m10, double\nsync 3\n"
    twice += f"setzi $m2, {DATA:#x}\ncall $m10, double\n" + END + KERNEL
    again = application([image(5, twice, {DATA: [21]})], symbols=linked(twice)[1])
    simulator = Simulator(again, SimulationOptions(trace_tiles=(PhysicalTile(5),)))
    finished(simulator)
    workers = [event for event in spans(simulator.trace()) if event["name"] == "worker" and event["tid"] == 0]
    assert len(workers) == 2, "what happened before a barrier is kept"

    exchange = Simulator(exchanging(), SimulationOptions(trace_tiles=(PhysicalTile(64), PhysicalTile(700))))
    finished(exchange)
    found = {event["name"]: event for event in spans(exchange.trace()) if event["pid"] == 64}
    assert found["exchange 0"]["args"]["cycles"] == 90
    assert "waits: exchange" in found
    assert simulator.trace() == simulator.trace()


def spans(text: str) -> list[dict[str, Any]]:
    trace = json.loads(text)
    assert trace["displayTimeUnit"] == "ns"
    return [event for event in trace["traceEvents"] if event["ph"] == "X"]


# Damage.


@pytest.mark.parametrize("package", [echo(), exchanging()], ids=["host", "exchange"])
def test_damaged_packages_end_in_a_result_or_a_refusal(package: Application) -> None:
    """Bits of programs, rows, packets and protocol are changed; only faults and errors follow."""
    whole, rng = write_package(package), random.Random(5)
    kinds: set[str] = set()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        try:
            damaged = read_package(bytes(data), name="damaged")
            simulator = Simulator(damaged, SimulationOptions(cycle_limit=20_000))
            files = {tensor.name: bytes(64) for tensor in damaged.inputs}
            result = simulator.run(files)
        except TilewrightError as refusal:
            kinds.add(type(refusal).__name__)
        else:
            kinds.add("complete" if result.is_complete else result.faults[0].kind.value)
            assert result.is_complete == (not result.faults)
    assert {"complete", "PackageInvalid", "instruction"} < kinds


# All tiles.


def test_all_tiles_take_part_in_a_barrier() -> None:
    """1,472 tiles; every one is released in the same cycle, the slowest sets it."""
    text = ATTACH + "get $m5, $TILE_ID\nadd $m5, $m5, 1\nagain:\nadd $m5, $m5, -1\nbrnz $m5, again\n"
    text += "sync 3\n" + END
    code = image(0, text)
    images = [
        TileImage(
            physical_tile=PhysicalTile(tile),
            entry_point=code.entry_point,
            segments=code.segments,
            command_address=code.command_address,
            diagnostic_address=code.diagnostic_address,
        )
        for tile in range(TILE_COUNT)
    ]
    simulator = Simulator(application(images), SimulationOptions(threads=2))
    result = finished(simulator)
    (meeting,) = result.timeline
    assert (meeting.taking_part, meeting.limiting_tile) == (TILE_COUNT, TILE_COUNT - 1)
    assert meeting.last_entry - meeting.first_entry == 7 * (TILE_COUNT - 1)
    assert not any("not in the package" in note for note in result.notes)
