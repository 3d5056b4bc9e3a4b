"""The runtime's routines, run on a simulated tile; start-up up to each place where it waits for others.

Requirements: TA-06 (addresses of the runtime are its layout), EC-07 (linked code has a size).
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.isa.assembler import assemble
from compiler.isa.builder import Builder
from compiler.isa.disassembler import disassemble
from compiler.isa.linker import Image
from compiler.isa.objects import write_object
from compiler.isa.program import Bundle, Instruction, SectionKind
from compiler.isa.registers import ZERO, m
from compiler.isa.select import Argument
from compiler.package import runtime
from compiler.simulator import harness
from compiler.simulator.harness import Run
from compiler.simulator.state import CONTEXT_STRIDE, PRNG_0, PRNG_1, SUPERVISOR, SYNC_ENDPOINT, WORKERS
from compiler.simulator.tile import Stop, Tile, default_options
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import PATCH_SAMPLE, PATCH_SAMPLE_WORDS, WORKER_ISSUE
from compiler.target.instructions import Mode
from compiler.target.registers import Absence, SyncZone
from compiler.target.runtime_layout import DEFAULT_LAYOUT, sync_endpoint
from compiler.target.units import Address, LogicalTile
from compiler.target.words import sans, sync

DATA = 0x90000
LISTS = 0xA0000
TILE_PROGRAM = Address(0x5C100)
TILE = LogicalTile(735)

Line: TypeAlias = tuple[str, tuple[Argument, ...]]

IMAGE = runtime.link_tile_code((), ())


def words(*values: int) -> bytes:
    return np.array(values, dtype="<u4").tobytes()


def read_words(tile: Tile, address: int, count: int) -> list[int]:
    return np.frombuffer(tile.read(address, 4 * count), dtype="<u4").tolist()


def loaded(image: Image = IMAGE) -> Tile:
    """A tile with the runtime."""
    tile = Tile(default_options())
    for address, content in image.runs():
        tile.place(address, content)
    for site in runtime.tile_sites(image, TILE, TILE_PROGRAM):
        tile.place(site.address, words(site.word))
    return tile


def call(tile: Tile, name: str, registers: Mapping[int, int], image: Image = IMAGE) -> Run:
    """Call a routine, whichever register it returns by."""
    return harness.call(tile, image.address_of(name), {7: 0, 9: 0} | dict(registers))


def stopped_at(tile: Tile, limit: int = 100_000) -> int:
    """Run to the next instruction that waits for others, and take it."""
    assert tile.advance(tile.cycle + limit) is Stop.EXCHANGE
    place = tile.program_counter(SUPERVISOR)
    tile.start_supervisor(place + 4)
    return read_words(tile, place, 1)[0]


# Start-up.


def test_a_tile_starts_meets_all_tiles_then_the_host_then_its_program() -> None:
    tile = loaded()
    tile.place(TILE_PROGRAM, words(sync(SyncZone.EXTERNAL_1)))
    tile.start_supervisor(DEFAULT_LAYOUT.entry)
    assert stopped_at(tile) == sync(SyncZone.INTERNAL)
    tile.set_control_register(SupervisorRegister.OUTGOING_BASE, 0xABCD0)

    assert stopped_at(tile) == sync(SyncZone.EXTERNAL_2_HOST)
    assert tile.control_register(SupervisorRegister.INCOMING_MUX) == 0x600
    assert tile.control_register(SupervisorRegister.OUTGOING_BASE) == 0
    assert tile.control_register(SupervisorRegister.FP_ICTL) == 1 << 2
    assert tile.main_register(SUPERVISOR, 11) == 0x586E0
    bases = [
        tile.control_register(SupervisorRegister(SupervisorRegister.WORKER0_BASE + worker))
        for worker in range(WORKERS)
    ]
    assert bases == [0x580E0 + 0x100 * worker for worker in range(WORKERS)]

    assert stopped_at(tile) == sync(SyncZone.EXTERNAL_1), "the tile program runs next"
    assert tile.control_register(SupervisorRegister.INCOMING_MUX) == 0x640


def test_workers_know_who_they_are_and_draw_different_random_numbers() -> None:
    tile = loaded()
    tile.start_supervisor(DEFAULT_LAYOUT.entry)
    stopped_at(tile)
    stopped_at(tile)
    states = [tile.state[worker * CONTEXT_STRIDE :] for worker in range(WORKERS)]
    assert [int(state[SYNC_ENDPOINT]) for state in states] == [
        sync_endpoint(TILE, worker) for worker in range(WORKERS)
    ]
    assert len({(int(state[PRNG_0]), int(state[PRNG_1])) for state in states}) == WORKERS
    assert not any(tile.is_active(worker) for worker in range(WORKERS))


def test_an_image_without_its_own_words_does_not_end_as_if_it_had_worked() -> None:
    tile = Tile(default_options())
    for address, content in IMAGE.runs():
        tile.place(address, content)
    tile.start_supervisor(DEFAULT_LAYOUT.entry)
    stopped_at(tile)
    stopped_at(tile)
    assert tile.advance(100_000) is Stop.RETURNED
    assert not tile.written(DEFAULT_LAYOUT.completion, 4).any()


# Helpers.


def test_the_barrier_returns_with_all_workers_idle_and_touches_no_register_but_one() -> None:
    tile = loaded()
    registers = {number: 0x1000 + number for number in range(1, 7)} | {8: 8, 9: 9}
    run = call(tile, runtime.WORKER_BARRIER, registers)
    assert run.stop is Stop.RETURNED
    assert run.instructions == WORKERS
    for number, value in registers.items():
        assert tile.main_register(SUPERVISOR, number) == value


def test_a_sample_is_the_cycle_counter_of_worker_0() -> None:
    tile = loaded()
    first = call(tile, runtime.SAMPLE_CYCLE, {2: DATA})
    second = call(tile, runtime.SAMPLE_CYCLE, {2: DATA + 4})
    assert (first.stop, second.stop) == (Stop.RETURNED, Stop.RETURNED)
    start, end = read_words(tile, DATA, 2)
    assert end - start == pytest.approx(first.cycles, abs=WORKER_ISSUE)


def test_the_end_is_the_completion_word_and_address_0() -> None:
    tile = loaded()
    run = harness.call(tile, IMAGE.address_of(runtime.COMPLETE), {10: 0x4C000})
    assert run.stop is Stop.RETURNED
    assert tile.program_counter(SUPERVISOR) == 0
    assert read_words(tile, DEFAULT_LAYOUT.completion, 1) == [1]


def test_repeat_call_calls_as_often_as_it_is_told() -> None:
    count: list[Line] = [
        ("ld32", (m(0), m(4), ZERO, 0)),
        ("add", (m(0), m(0), 1)),
        ("st32", (m(0), m(4), ZERO, 0)),
    ]
    image = with_routine("counter", count)
    for times in (1, 2, 7):
        tile = loaded(image)
        tile.place(DATA, words(40))
        run = call(tile, runtime.REPEAT_CALL, {2: times, 3: image.address_of("counter"), 4: DATA}, image)
        assert run.stop is Stop.RETURNED
        assert read_words(tile, DATA, 1) == [40 + times]


def test_a_follower_stays_away_from_the_host_once() -> None:
    tile = loaded()
    tile.set_main_register(SUPERVISOR, 10, 0)
    tile.start_supervisor(IMAGE.address_of(runtime.FOLLOWER))
    assert stopped_at(tile) == sans(Absence.EXTERNAL)
    assert stopped_at(tile) == sync(SyncZone.ABSENCE)
    assert tile.advance(100_000) is Stop.RETURNED


# Host batches.


def test_host_run_copies_packets_calls_and_copies_what_arrived() -> None:
    """Two batches, of which the second keeps the request in front of the packets; the host is a routine."""
    window, staging = int(DEFAULT_LAYOUT.window.start), int(DEFAULT_LAYOUT.staging)
    # What "arrives" is the sum of the first four words of the window, then the third.
    host: list[Line] = [("setzi", (m(1), window)), ("ld32", (m(0), m(1), ZERO, 0))]
    for word in (1, 2, 3):
        host += [("ld32", (m(8), m(1), ZERO, word)), ("add", (m(0), m(0), m(8)))]
    host += [
        ("ld32", (m(8), m(1), ZERO, 2)),
        ("setzi", (m(1), staging)),
        ("st32", (m(0), m(1), ZERO, 0)),
        ("st32", (m(8), m(1), ZERO, 1)),
    ]
    image = with_routine("host", host)
    tile = loaded(image)
    packets = LISTS + 0x100
    tile.place(packets, words(1, 20, 300, 4000, 50000, 600000))
    tile.place(
        LISTS,
        words(
            *(DATA, 4 << 24 | 2, packets),
            *(DATA + 0x100, 2 << 24 | 1 << 23 | 1, packets + 16),
            *(DATA + 0x200, 0, packets),
        ),
    )
    tile.place(DATA + 8, words(0xABCD))
    tile.set_control_register(SupervisorRegister.OUTGOING_BASE, 0x81230)
    run = call(tile, runtime.HOST_RUN, {2: 3, 3: LISTS, 4: image.address_of("host")}, image)
    assert run.stop is Stop.RETURNED
    assert read_words(tile, DATA, 3) == [4321, 300, 0xABCD]
    assert read_words(tile, DATA + 0x100, 1) == [650021]
    assert not tile.written(DATA + 0x104, 4).any()
    assert not tile.written(DATA + 0x200, 4).any(), "nothing to copy in the third batch"
    assert tile.control_register(SupervisorRegister.OUTGOING_BASE) == 0


# Patches.


@given(
    st.lists(st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)), min_size=1, max_size=5),
    st.integers(1, 9),
    st.data(),
)
def test_arithmetic_patches_wrap_around(
    patches: list[tuple[int, int]], total: int, data: st.DataObject
) -> None:
    iteration = data.draw(st.integers(0, total - 1))
    tile = loaded()
    rows = [word for n, (value, step) in enumerate(patches) for word in (DATA + 8 * n, value, step)]
    tile.place(LISTS, words(*rows))
    run = call(tile, runtime.PATCH_ARITHMETIC, {2: LISTS, 3: len(patches), 4: total - iteration, 5: total})
    assert run.stop is Stop.RETURNED
    for number, (value, step) in enumerate(patches):
        assert read_words(tile, DATA + 8 * number, 1) == [(value + step * iteration) % 2**32]
        assert not tile.written(DATA + 8 * number + 4, 4).any()
    assert tile.main_register(SUPERVISOR, 4) == total - iteration
    assert tile.main_register(SUPERVISOR, 5) == total


def test_table_patches_look_up_the_iteration() -> None:
    tables = np.arange(15, dtype=np.uint32).reshape(3, 5) * 0x10101 + 7
    for iteration in range(5):
        tile = loaded()
        tile.place(
            LISTS, words(*(v for row in range(3) for v in (DATA + 16 * row, LISTS + 0x100 + 20 * row)))
        )
        tile.place(LISTS + 0x100, tables.astype("<u4").tobytes())
        run = call(tile, runtime.PATCH_TABLES, {2: LISTS, 3: 3, 4: 5 - iteration, 5: 5})
        assert run.stop is Stop.RETURNED
        assert [read_words(tile, DATA + 16 * row, 1)[0] for row in range(3)] == tables[:, iteration].tolist()
        assert (tile.main_register(SUPERVISOR, 4), tile.main_register(SUPERVISOR, 5)) == (5 - iteration, 5)


def test_the_patch_loop_takes_the_measured_cycles() -> None:
    """87 arithmetic words took 2,491 cycles on hardware, 28.6 each: within 2 %."""

    def cycles(count: int) -> int:
        tile = loaded()
        tile.place(LISTS, words(*(v for n in range(count) for v in (DATA + 4 * n, n, 3))))
        return call(tile, runtime.PATCH_ARITHMETIC, {2: LISTS, 3: count, 4: 1, 5: 4}).cycles

    many = int(PATCH_SAMPLE_WORDS)
    each = (cycles(many + 1) - cycles(1)) / many
    assert each == pytest.approx(PATCH_SAMPLE / PATCH_SAMPLE_WORDS, rel=0.02)
    assert cycles(many) == pytest.approx(PATCH_SAMPLE, rel=0.03)


@pytest.mark.parametrize("count", [0, 1, 5, 23, 24, 25, 29, 30, 31, 100])
def test_row_patches_write_exactly_their_words(count: int) -> None:
    """One after the other or shared by the workers: every offset gets its value, nothing else changes."""
    rng = np.random.default_rng(count)
    offsets = 4 * rng.permutation(200)[:count]
    values = rng.integers(0, 2**32, count)
    before = np.full(200, 0x5A5A5A5A, dtype="<u4")
    tile = loaded()
    tile.place(DATA, before.tobytes())
    tile.place(LISTS, words(*offsets.tolist(), 0))
    tile.place(LISTS + 0x400, words(*values.tolist(), 0))
    run = call(tile, runtime.PATCH_ROW, {2: DATA, 3: LISTS, 4: LISTS + 0x400, 5: count})
    assert run.stop is Stop.RETURNED
    before[offsets // 4] = values
    assert read_words(tile, DATA, 200) == before.tolist()
    assert tile.main_register(SUPERVISOR, 11) == harness.STACK
    assert (run.instructions > 0) == (count >= 24)


# Linked code.


def test_the_runtime_is_one_object_with_the_same_bytes_every_time() -> None:
    assert write_object(runtime.runtime_object()) == write_object(runtime.runtime_object())


def test_every_linked_word_is_an_instruction() -> None:
    for section in IMAGE.sections:
        for mode in (Mode.SUPERVISOR, Mode.WORKER):
            decoded = list(disassemble(section.content, mode, section.address))
            if all(isinstance(entry.item, Instruction | Bundle) for entry in decoded):
                break
        else:
            # Routines with code of both kinds: each word must be read by one of them.
            mixed = disassemble(section.content, None, section.address)
            assert all(isinstance(entry.item, Instruction | Bundle) for entry in mixed), section.name


def test_own_words_of_a_tile_are_its_program_and_its_number() -> None:
    sites = runtime.tile_sites(IMAGE, TILE, TILE_PROGRAM)
    assert [site.word & 0xFFFFF for site in sites] == [TILE_PROGRAM, 8 * TILE]
    other = runtime.tile_sites(IMAGE, LogicalTile(TILE + 1), TILE_PROGRAM)
    assert other[0] == sites[0]
    assert other[1].word == sites[1].word + 8


def with_routine(name: str, lines: Sequence[Line]) -> Image:
    """The runtime and a routine that returns by $m10."""
    code = Builder(name)
    code.section(f".text.{name}", SectionKind.CODE, Mode.SUPERVISOR)
    code.label(name, is_global=True, is_function=True)
    for mnemonic, operands in (*lines, ("br", (m(10),))):
        code.emit(mnemonic, *operands)
    return runtime.link_tile_code((assemble(code.finish(), name),), (name,))
