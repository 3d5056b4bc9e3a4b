"""Tile programs word by word: against a slow emitter of one tile, and constructs on a simulated tile.

The reference below writes a tile's program from the low program, in the order that sequences of known
programs have, one word after the other. Requirements: RP-02, RP-05, XR-03.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import Unsupported
from compiler.exchange.sections import base_sections
from compiler.isa.template import Column
from compiler.kernels.contract import Pointer, arguments_at
from compiler.low.address import (
    AddressOperand,
    AddressOperands,
    destinations_of,
    resolve,
    sources_of,
    views_of,
)
from compiler.low.build import LowBuilder
from compiler.low.ids import BufferId, SequenceId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Role, Step
from compiler.low.project import WorkKind, project
from compiler.package import runtime, templates
from compiler.package.assembly import Area, Assembly, Bases
from compiler.package.programs import TilePrograms, emit_programs, is_progression
from compiler.package.templates import ArgumentForm, constant, halves
from compiler.placement.ir import Placement
from compiler.simulator import harness
from compiler.simulator.state import SUPERVISOR
from compiler.simulator.tile import Stop, Tile, default_options
from compiler.target import words as isa
from compiler.target.control_registers import SupervisorRegister
from compiler.target.registers import Absence, MainRegister, SyncZone
from compiler.target.tiles import TILE_COUNT, logical_to_physical
from compiler.target.units import Address, Int64Array, LogicalTile, Word, Words
from tests.package.emitted import Emitted, emitted
from tests.package.toy import Toy, copying

M = MainRegister
ZERO = M.M15
STACK = M.M11
BASE_STATE = 0x58000


# The reference: one tile, one word after the other.


class Reference:
    """The words of the steps of one tile, from sample to sample."""

    def __init__(self, package: Emitted, programs: TilePrograms, tile: int) -> None:
        self.package = package
        self.programs = programs
        self.tile = tile
        self.program: LowProgram = package.inputs.program
        self.symbols = {name: Address(at) for name, at in package.inputs.symbols.items()}
        self.words: list[Word] = []
        self.start = 0
        self.pointers: list[int] = []
        self.patches: list[tuple[str, int, int]] = []

    def emit(self, *words: Word) -> None:
        """Append words."""
        self.words += words

    def helper(self, name: str, link: MainRegister) -> None:
        """Call a routine or kernel."""
        self.emit(isa.call(link, self.symbols[name]))

    def whole(self) -> list[Word]:
        """Everything between host batches."""
        self.emit(isa.setzi(M.M2, BASE_STATE + 4))
        self.helper(runtime.SAMPLE_CYCLE, M.M10)
        self.steps(self.program.steps, None)
        self.emit(isa.setzi(M.M2, BASE_STATE + 8))
        self.helper(runtime.SAMPLE_CYCLE, M.M10)
        return self.words

    def steps(self, steps: Sequence[Step], around: RepeatStep | None) -> None:
        """Some steps."""
        for step in steps:
            if isinstance(step, ComputeStep):
                self.compute(step)
            elif isinstance(step, ExchangeStep):
                self.exchange(step, around)
            else:
                self.repeat(step)

    def rows(self, steps: Sequence[int]) -> list[tuple[int, int]]:
        """(kind, row) of this tile's copies and calls in some steps, in order."""
        if self.tile >= self.program.tile_count:
            return []
        step, kind, row = self.package.inputs.work.rows_of(self.tile)
        return [
            (k, r)
            for s, k, r in zip(step.tolist(), kind.tolist(), row.tolist(), strict=True)
            if s in steps and k <= WorkKind.CALL
        ]

    def operands(self, kind: int, row: int) -> list[AddressOperand]:
        """What a copy or call names, results first."""
        if kind == WorkKind.COPY:
            return [destinations_of(self.program.copies).row(row), sources_of(self.program.copies).row(row)]
        binding = self.program.bindings[int(self.program.calls.binding[row])]
        first = int(self.program.calls.first_view[row])
        views: AddressOperands = views_of(self.program.views)
        return [
            views.row(int(self.program.calls.operand_views[first + position]))
            for position in range(len(binding.accesses))
        ]

    def compute(self, step: ComputeStep) -> None:
        """Copies and calls of this tile."""
        for kind, row in self.rows([step.step]):
            table = self.program.copies if kind == WorkKind.COPY else self.program.calls
            binding = self.program.bindings[int(table.binding[row])]
            operands = self.operands(kind, row)
            values = arguments_at(binding, [resolve(self.package.placement, operand) for operand in operands])
            for number, (argument, value) in enumerate(zip(binding.arguments, values, strict=True)):
                register = M(2 + number)
                operand = (
                    operands[binding.position(argument.reference)] if isinstance(argument, Pointer) else None
                )
                if operand is None or operand.sequence < 0:
                    self.emit(*isa.load_constant(register, value))
                    continue
                slot = self.pointers.index(operand.sequence)
                self.emit(isa.ld32(register, STACK, ZERO, Words(1 + slot)))
                if operand.displacement < 1 << 15:
                    self.emit(isa.add(register, register, operand.displacement))
                else:
                    self.emit(isa.setzi(M.M0, operand.displacement >> 12), isa.shl(M.M0, M.M0, 12))
                    self.emit(isa.add(M.M0, M.M0, operand.displacement & 0xFFF))
                    self.emit(added(register, register, M.M0))
            self.helper(str(binding.symbol), M.M10)

    def exchange(self, step: ExchangeStep, around: RepeatStep | None) -> None:
        """A row, or staying away."""
        place = self.programs.rows[step.step]
        if self.tile not in place.tiles:
            self.emit(isa.sans(Absence.INTERNAL), isa.sync(SyncZone.ABSENCE))
            return
        index = place.tiles.tolist().index(self.tile)
        phase = self.package.inputs.exchange.phases[step.step]
        row = phase_row(phase.rows.tiles, self.tile)
        low, high = int(phase.rows.first_word[row]), int(phase.rows.first_word[row + 1])
        chosen = (phase.patches.word >= low) & (phase.patches.word < high)
        if chosen.any():
            assert around is not None
            self.emit(isa.ld32(M.M4, STACK, ZERO, Words(0)), isa.setzi(M.M5, around.count))
            values = phase.patches.values[chosen].astype(np.int64)
            steps = np.diff(values, axis=1) % (1 << 32)
            regular = (steps == steps[:, :1]).all(axis=1) & (values.shape[1] >= 3)
            for routine, count in (
                (runtime.PATCH_TABLES, int((~regular).sum())),
                (runtime.PATCH_ARITHMETIC, int(regular.sum())),
            ):
                if count:
                    # Where the table is, nobody but the emitter decides: it is looked at below.
                    self.patches.append((routine, len(self.words), count))
                    self.emit(Word(0), isa.setzi(M.M3, count))
                    self.helper(routine, M.M9)
        self.emit(isa.setzi(M.M8, 0), isa.put(SupervisorRegister.INCOMING_BASE, M.M8))
        self.emit(isa.put(SupervisorRegister.OUTGOING_BASE, ZERO))
        self.helper(runtime.WORKER_BARRIER, M.M7)
        self.emit(isa.setzi(M.M8, 1), isa.put(SupervisorRegister.INCOMING_DCOUNT, M.M8))
        self.emit(isa.sync(SyncZone.INTERNAL), isa.call(M.M10, Address(int(place.address[index]))))

    def repeat(self, step: RepeatStep) -> None:
        """Frame, pointers, body, pointers onward, count."""
        body = [inner.step for inner in step.body]
        sequences = {
            operand.sequence
            for kind, row in self.rows(body)
            for operand in self.operands(kind, row)
            if operand.sequence >= 0
        }
        self.pointers = sorted(sequences)
        most = max_pointers(self.package, body)
        frame = -(-4 * (1 + most) // 8) * 8
        self.emit(isa.add(STACK, STACK, -frame), isa.setzi(M.M0, step.count))
        self.emit(isa.st32(M.M0, STACK, ZERO, Words(0)))
        for slot, sequence in enumerate(self.pointers):
            first = self.program.sequences.first[sequence]
            self.emit(isa.setzi(M.M0, int(self.package.placement.address[first])))
            self.emit(isa.st32(M.M0, STACK, ZERO, Words(1 + slot)))
        again = self.start + 4 * len(self.words)
        self.steps(step.body, step)
        for slot, sequence in enumerate(self.pointers):
            stride = int(self.package.placement.stride[sequence])
            self.emit(
                isa.setzi(M.M1, stride >> 12), isa.shl(M.M1, M.M1, 12), isa.add(M.M1, M.M1, stride & 0xFFF)
            )
            self.emit(
                isa.ld32(M.M0, STACK, ZERO, Words(1 + slot)),
                added(M.M0, M.M0, M.M1),
                isa.st32(M.M0, STACK, ZERO, Words(1 + slot)),
            )
        self.emit(isa.ld32(M.M0, STACK, ZERO, Words(0)), isa.add(M.M0, M.M0, -1))
        self.emit(isa.st32(M.M0, STACK, ZERO, Words(0)))
        self.emit(Word(isa.brz(M.M0, Address(again)) ^ WHEN_ZERO), isa.add(STACK, STACK, frame))


def added(destination: MainRegister, first: MainRegister, second: MainRegister) -> Word:
    """``add`` of registers (vendor tables)."""
    return Word(0x44000001 | first << 20 | second << 12 | destination << 4)


WHEN_ZERO = 1 << 25
"""``brz`` has this bit, ``brnz`` has not (vendor tables)."""


def phase_row(tiles: Int64Array, tile: int) -> int:
    return tiles.tolist().index(logical_to_physical(LogicalTile(tile)))


def max_pointers(package: Emitted, body: Sequence[int]) -> int:
    """The frame has one size on all tiles."""
    counts: list[int] = []
    for tile in package.toy.tiles:
        reference = Reference(package, emit_programs(package.inputs, package.support.bases), tile)
        counts.append(
            len(
                {
                    operand.sequence
                    for kind, row in reference.rows(body)
                    for operand in reference.operands(kind, row)
                    if operand.sequence >= 0
                }
            )
        )
    return max(counts)


@pytest.mark.parametrize(
    "toy", [Toy(iterations=2), Toy(iterations=4), Toy(iterations=2, padding=8300)], ids=str
)
def test_steps_are_the_known_sequences(toy: Toy) -> None:
    package = emitted(toy)
    programs = emit_programs(package.inputs, package.support.bases)
    words, tables = (programs.assembly.stream(area) for area in (Area.PROGRAM, Area.TABLES))
    marker = isa.setzi(M.M2, BASE_STATE + 4)
    for tile in (*toy.tiles, 9):
        found = words.of(tile).tolist()
        start = found.index(marker)
        reference = Reference(package, programs, tile)
        reference.start = int(package.support.start[Area.PROGRAM, tile]) + 4 * start
        wanted = reference.whole()
        own = found[start : start + len(wanted)]
        for routine, position, count in reference.patches:
            address = own[position] & 0xFFFFF
            wanted[position] = isa.setzi(M.M2, address)
            table = tables.of(tile)[(address - int(package.support.start[Area.TABLES, tile])) // 4 :]
            assert len(table) >= count * (2 if routine == runtime.PATCH_TABLES else 3)
        assert [f"{word:08x}" for word in own] == [f"{word:08x}" for word in wanted], tile


def test_host_batches_and_the_end_are_the_known_sequences() -> None:
    """A tile that takes part and one that stays away, for one parameter, input and output batch each."""
    toy = Toy(iterations=1)
    package = emitted(toy)
    stream = emit_programs(package.inputs, package.support.bases).assembly.stream(Area.PROGRAM)
    symbols = package.inputs.symbols
    host = package.inputs.host
    call = isa.call(M.M9, Address(symbols[runtime.HOST_RUN]))
    found = stream.of(toy.tiles[0]).tolist()
    assert found[0] == isa.setzi(M.M2, 1)
    assert found[3] == call
    assert {word >> 20 for word in found[1:3]} == {0x193, 0x194}
    follow = stream.of(9).tolist()
    assert host.parameters.batches == 1
    assert follow[:3] == [
        isa.setzi(M.M2, 1),
        isa.setzi(M.M3, symbols[runtime.FOLLOWER]),
        isa.call(M.M9, Address(symbols[runtime.REPEAT_CALL])),
    ]
    assert follow[-4] == isa.setzi(M.M2, host.outputs.batches)
    assert found[-1] == follow[-1] == isa.bri(Address(symbols[runtime.COMPLETE]))


def test_patch_tables_hold_the_words_of_every_iteration() -> None:
    """Every descriptor names a word of the tile's row; its table is what the row holds in each iteration."""
    for iterations in (2, 4):
        package = emitted(Toy(iterations=iterations))
        programs = emit_programs(package.inputs, package.support.bases)
        assembly = programs.assembly
        checked = 0
        for step, place in programs.rows.items():
            phase = package.inputs.exchange.phases[step]
            for word, values in zip(phase.patches.word.tolist(), phase.patches.values, strict=True):
                bounds: list[int] = phase.rows.first_word.tolist()
                row = bisect_right(bounds, word) - 1
                tile = int(place.tiles[row])
                address = int(place.address[row]) + 4 * (word - int(phase.rows.first_word[row]))
                base = int(package.support.start[Area.TABLES, tile])
                table = assembly.stream(Area.TABLES).of(tile).astype(np.int64)
                (position,) = np.flatnonzero(table == address)
                if iterations == 2:
                    at = (int(table[position + 1]) - base) // 4
                    assert table[at : at + 2].tolist() == values.tolist()
                else:
                    first, each = table[position + 1 : position + 3].tolist()
                    assert [(first + each * n) % 2**32 for n in range(4)] == values.tolist()
                checked += 1
        assert checked > 0


# Constructs on a simulated tile.

FORMS = st.lists(
    st.tuples(st.sampled_from(ArgumentForm), st.integers(0, 2**32 - 1), st.integers(0, 5)),
    min_size=1,
    max_size=7,
)


@given(FORMS, st.lists(st.integers(0x80000, 0xE0000), min_size=6, max_size=6))
def test_a_call_passes_its_arguments_whatever_their_form(
    arguments: list[tuple[ArgumentForm, int, int]], pointers: list[int]
) -> None:
    """Constants, and pointers of the frame plus near and far distances, forward and back."""
    columns: dict[str, Column] = {"kernel": 0x5D000}
    wanted: list[int] = []
    for number, (form, value, slot) in enumerate(arguments):
        name = f"argument{number}"
        match form:
            case ArgumentForm.SHORT:
                columns[name] = value % (1 << 20)
                wanted.append(value % (1 << 20))
            case ArgumentForm.LONG:
                columns |= halves(name, np.array(value))
                wanted.append(value)
            case ArgumentForm.MOVING:
                distance = value % (1 << 16) - (1 << 15)
                columns |= {name: distance, f"{name}_word": 1 + slot}
                wanted.append((pointers[slot] + distance) % 2**32)
            case ArgumentForm.MOVING_FAR:
                columns |= halves(name, np.array(-value)) | {f"{name}_word": 1 + slot}
                wanted.append((pointers[slot] - value) % 2**32)
    template = templates.call(tuple(form for form, _, _ in arguments))
    code = template.fill(columns, 1)[0]
    assert len(code) == 1 + sum(form.value for form, _, _ in arguments)
    tile = Tile(default_options())
    tile.place(0x5C000, code.astype("<u4").tobytes())
    # The kernel ends the program: registers stay as it found them.
    tile.place(0x5D000, np.array([isa.setzi(M.M0, 0), isa.br(M.M0)], "<u4").tobytes())
    tile.place(0x57000, np.array([3, *pointers], "<u4").tobytes())
    run = harness.call(tile, 0x5C000, {}, stack=0x57000)
    assert run.stop is Stop.RETURNED
    assert [tile.main_register(SUPERVISOR, 2 + number) for number in range(len(wanted))] == wanted
    assert tile.main_register(SUPERVISOR, 10) == 0x5C000 + 4 * len(code)


@given(st.integers(0, 2**32 - 1))
def test_numbers_take_the_short_form_when_they_can(value: int) -> None:
    form = ArgumentForm.of_constant(value)
    assert (form is ArgumentForm.SHORT) == (value < 1 << 20)
    slots = {name: int(np.asarray(column)) for name, column in constant("x", value).items()}
    if form is ArgumentForm.LONG:
        assert (slots["x_high"] << 12) + slots["x_low"] == value
    else:
        assert slots == {"x": value}


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=6), st.integers(0, 2**32 - 1), st.booleans())
def test_progressions_are_three_values_at_one_distance(values: list[int], step: int, regular: bool) -> None:
    if regular:
        values = [(values[0] + number * step) % 2**32 for number in range(len(values))]
    naive = len(values) >= 3 and len({(b - a) % 2**32 for a, b in pairwise(values)}) == 1
    assert is_progression(np.array([values], dtype=np.uint32)).tolist() == [naive]


# Many tiles side by side.


@given(
    st.lists(
        st.tuples(
            st.sampled_from(Area),
            st.dictionaries(st.integers(0, 5), st.lists(st.integers(0, 99), max_size=4)),
        ),
        max_size=6,
    )
)
def test_pieces_follow_each_other_on_every_tile(pieces: list[tuple[Area, dict[int, list[int]]]]) -> None:
    bases = 0x5C000 + 0x100 * np.arange(len(Area))[:, None] + 8 * np.arange(TILE_COUNT)[None, :]
    assembly = Assembly(Bases(address=bases))
    wanted: dict[Area, dict[int, list[int]]] = {area: {} for area in Area}
    for area, words in pieces:
        tiles = np.array(list(words), dtype=np.int64)
        expected = [int(bases[area, tile]) + 4 * len(wanted[area].get(tile, [])) for tile in words]
        assert assembly.here(area, tiles).tolist() == expected
        addresses = assembly.append(
            area,
            tiles,
            np.array([len(part) for part in words.values()], dtype=np.int64),
            np.array([word for part in words.values() for word in part], dtype=np.uint32),
        )
        assert addresses.tolist() == expected
        for tile, part in words.items():
            wanted[area].setdefault(tile, []).extend(part)
    for area in Area:
        stream = assembly.stream(area)
        for tile in range(6):
            assert stream.of(tile).tolist() == wanted[area].get(tile, [])
        assert stream.sizes.sum() == 4 * sum(map(len, wanted[area].values()))


# Refusals.


def walking(sequences: int) -> tuple[LowProgram, Placement]:
    """A Repeat in which one tile copies from so many sequences."""
    low = LowBuilder(1472)
    node = low.node("stack")

    def buffer() -> BufferId:
        return low.buffer(tile=5, byte_count=32, alignment=8, node=node, role=Role.TEMPORARY)

    target = buffer()
    rows: list[SequenceId] = []
    first: list[BufferId] = []
    for _ in range(sequences):
        members = [buffer(), buffer()]
        rows.append(low.sequence(members))
        first.append(members[0])
    with low.repeat(2):
        step = low.compute_step()
        for sequence, member in zip(rows, first, strict=True):
            low.copy(
                step,
                copying(8),
                source=AddressOperand(buffer=member, sequence=sequence),
                destination=AddressOperand(buffer=target),
                rows=1,
                row_bytes=32,
                source_stride=32,
                destination_stride=32,
                node=node,
            )
    program = low.finish()
    return program, Placement(
        address=0x90000 + 32 * np.arange(len(program.buffers.tile)),
        stride=np.full(sequences, 32, dtype=np.int64),
    )


def test_frames_leave_the_stack_to_kernels() -> None:
    base = emitted(Toy(iterations=1))
    anywhere = Bases(address=np.full((len(Area), TILE_COUNT), 0x5C000))
    for sequences, fits in ((29, True), (31, True), (32, False)):
        program, placement = walking(sequences)
        inputs = replace(
            base.inputs,
            program=program,
            work=project(program),
            placement=placement,
            exchange=replace(base.inputs.exchange, phases={}),
        )
        if fits:
            emit_programs(inputs, anywhere)
            continue
        with pytest.raises(Unsupported) as refusal:
            emit_programs(inputs, anywhere)
        assert str(refusal.value) == (
            "unsupported (tile programs): tile 5: the body of a Repeat walks along too many sequences on one"
            " tile.\n"
            "  frames of loops: 136 bytes (measured), limit 128, 8 too many\n"
            "  next: put the parameters of an iteration into fewer tensors, or spread them over more tiles"
        )


def test_bugs_of_callers_are_refused() -> None:
    package = emitted(Toy(iterations=2))
    bases = package.support.bases
    symbols = {name: at for name, at in package.inputs.symbols.items() if name != "toy.add"}
    with pytest.raises(ValueError, match=r"the linked code has no toy\.add"):
        emit_programs(replace(package.inputs, symbols=symbols), bases)
    with pytest.raises(ValueError, match="runs 0 times does nothing"):
        replace(package.inputs, runs=0)
    (loop,) = (step for step in package.inputs.program.steps if isinstance(step, RepeatStep))
    outside = replace(package.inputs.program, steps=loop.body)
    with pytest.raises(ValueError, match="moves outside of a Repeat"):
        emit_programs(replace(package.inputs, program=outside), bases)
    (moving,) = (phase for phase in package.inputs.exchange.phases.values() if len(phase.patches.word))
    sections = base_sections(moving.demand, moving.schedule)
    assert sections is not None
    phases = dict(package.inputs.exchange.phases) | {
        moving.demand.step: replace(moving, sections=sections),
    }
    with pytest.raises(ValueError, match="count from bases that no program sets"):
        emit_programs(
            replace(package.inputs, exchange=replace(package.inputs.exchange, phases=phases)), bases
        )
    nested = replace(package.inputs.program, steps=(replace(loop, body=(loop,)),))
    with pytest.raises(ValueError, match="is a Repeat inside of a Repeat"):
        emit_programs(replace(package.inputs, program=nested), bases)
    with pytest.raises(ValueError, match="does not start at a multiple of 8"):
        Bases(address=np.full((len(Area), TILE_COUNT), 0x5C004))
