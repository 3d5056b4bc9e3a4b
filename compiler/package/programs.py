"""The program of every tile: host batches, kernel calls, exchange steps, loops, samples, the end.

Input: a low program, its projection, placement and exchange schedule, the host plan, and the addresses of the
linked code. Output: the words of all tiles, by area (``assembly``). All tiles run the same sequence of steps:

    parameters from the host
    again: inputs from the host, sample, the steps in order, sample, outputs to the host
    the end, or again

=================  ========================================================================================
compute step       each copy, then each call: arguments into $m2 and up, ``call $m10``
exchange step      on tiles with a row: patches, bases, worker barrier, ``sync 3``, ``call $m10`` to the row;
                   on all others ``sans 0``, ``sync 1``
Repeat             a frame on the stack: the iterations left, then a pointer for each sequence that the tile
                   walks along in the body; an operand that moves is pointer plus constant
host batches       groups of equal programs, by ``runtime.host_run``; ``runtime.follower`` where a tile
                   stays away
=================  ========================================================================================

Slot 0 of a row follows the same two instructions on every tile that has one, which keeps the clocks of rows
together; everything a tile does for its row (patches, bases) is before the barrier of the chip.

The number of words depends on work, sequences and exchange alone, never on addresses, so that programs sized
with provisional addresses have their final length. Every phase has rows of its own, whose words are patched
in a Repeat; rows that count from bases are refused.

A profiled program samples its clock before each compute and exchange step and behind the last one
(``profile`` says what the samples are). In a Repeat only the first iteration is sampled, at its end too;
from there to the end of the Repeat is one step more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.exchange.ir import ScheduledExchange, ScheduledPhase
from compiler.isa.template import Column, Template
from compiler.kernels.contract import Binding, Pointer, Scalar
from compiler.low.address import (
    Addresses,
    AddressOperands,
    destinations_of,
    resolve_all,
    sources_of,
    views_of,
)
from compiler.low.ids import NO_ROW, StepId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step
from compiler.low.project import TileWork, WorkKind
from compiler.low.steps import in_order, rows_by_step
from compiler.package import runtime, templates
from compiler.package.assembly import Area, Assembly, Bases, spread
from compiler.package.hostplan import HostPlan, Slices
from compiler.package.hostprograms import HostGroup, batches_by_tile, grouped
from compiler.package.loops import Loop, check_frames, loop_of
from compiler.package.profile import sample_count
from compiler.package.templates import FIRST_POINTER_WORD, ITERATIONS_WORD, ArgumentForm, constant, halves
from compiler.target.host import HostDirection
from compiler.target.runtime_layout import DEFAULT_LAYOUT, FRAME_ALIGNMENT
from compiler.target.tiles import TILE_COUNT, logical_tiles, physical_to_logical
from compiler.target.units import WORD_BYTES, Address, Int64Array

LEAST_PROGRESSION: Final = 3
"""Values that must follow each other at one distance to be computed instead of looked up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProgramInputs:
    """What programs are made of.

    Args:
        program: the low program.
        work: its projection.
        placement: addresses of its buffers.
        exchange: schedules of its exchange steps.
        host: its host plan.
        symbols: address of each kernel and runtime routine.
        runs: how often the program serves call ``run`` before it ends; None for as long as it is powered,
            with the completion word set after each.
        profile: whether tiles sample their clocks at every step.
    """

    program: LowProgram
    work: TileWork
    placement: Addresses
    exchange: ScheduledExchange
    host: HostPlan
    symbols: Mapping[str, int]
    runs: int | None = 1
    profile: bool = False

    def __post_init__(self) -> None:
        """Some run."""
        if self.runs is not None and self.runs < 1:
            raise ValueError(f"a program that runs {self.runs} times does nothing")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowPlace:
    """Where the rows of a step begin.

    Args:
        tiles: [rows] logical tiles that have one.
        address: [rows] byte addresses.
    """

    tiles: Int64Array
    address: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TilePrograms:
    """Emitted programs.

    Args:
        assembly: the words.
        rows: by exchange step.
    """

    assembly: Assembly
    rows: Mapping[StepId, RowPlace]


def emit_programs(inputs: ProgramInputs, bases: Bases) -> TilePrograms:
    """The words of all tiles.

    Args:
        inputs: what is emitted.
        bases: where each area of each tile begins; for sizing any addresses that code can have.

    Raises:
        Unsupported: the frames of loops take more of the stack than they may.
        ValueError: a value does not fit its instruction, or a symbol is missing.
    """
    return _Emitter(inputs, bases).run()


@final
class _Emitter:
    """One emission."""

    def __init__(self, inputs: ProgramInputs, bases: Bases) -> None:
        self.inputs: Final = inputs
        self.code: Final = Assembly(bases)
        self.everyone: Final = np.arange(TILE_COUNT, dtype=np.int64)
        self.rows: Final[dict[StepId, RowPlace]] = {}
        self.host_programs: Final[dict[tuple[int, tuple[int, ...]], int]] = {}
        steps = sum(1 for _ in in_order(inputs.program.steps))
        self.sampled = self._place_samples() if inputs.profile else None
        self.work_order, self.work_bounds = rows_by_step(inputs.work.step, steps)

    def run(self) -> TilePrograms:
        """The whole program."""
        for step in sorted(self.inputs.exchange.phases):
            self.rows[step] = self._place_rows(self.inputs.exchange.phases[step])
        host = self.inputs.host
        self._host(host.parameters, HostDirection.HOST_TO_TILE)
        again = self._begin_runs()
        self._host(host.inputs, HostDirection.HOST_TO_TILE)
        self._sample(DEFAULT_LAYOUT.profile_start)
        self._steps(self.inputs.program.steps, None)
        self._sample_step(None)
        self._sample(DEFAULT_LAYOUT.profile_end)
        self._host(host.outputs, HostDirection.TILE_TO_HOST)
        self._end_runs(again)
        return TilePrograms(assembly=self.code, rows=self.rows)

    def _place_samples(self) -> Int64Array:
        """Room for all samples; where each tile's first one goes."""
        count = sample_count(self.inputs.program)
        return self.code.append(
            Area.SAMPLES,
            self.everyone,
            np.full(TILE_COUNT, count, dtype=np.int64),
            np.zeros(TILE_COUNT * count, dtype=np.uint32),
        )

    # Small parts.

    def _symbol(self, name: str) -> int:
        address = self.inputs.symbols.get(name)
        if address is None:
            raise ValueError(f"the linked code has no {name}")
        return address

    def _write(self, template: Template, tiles: Int64Array, **columns: Column) -> None:
        if len(tiles):
            self.code.fill(Area.PROGRAM, template, tiles, columns)

    def _sample(self, address: Address) -> None:
        self._write(
            templates.sample(),
            self.everyone,
            address=int(address),
            routine=self._symbol(runtime.SAMPLE_CYCLE),
        )

    def _sample_step(self, around: Loop | None) -> None:
        """The next sample of a profiled program; in a Repeat, of its first iteration."""
        if self.sampled is None:
            return
        address, self.sampled = self.sampled, self.sampled + WORD_BYTES
        routine = self._symbol(runtime.SAMPLE_CYCLE)
        if around is None:
            self._write(templates.sample(), self.everyone, address=address, routine=routine)
            return
        template = templates.sample_first()
        over = self.code.here(Area.PROGRAM, self.everyone) + WORD_BYTES * len(template.words)
        self._write(
            template,
            self.everyone,
            word=ITERATIONS_WORD,
            total=around.count,
            over=over,
            address=address,
            routine=routine,
        )

    # Runs of the whole program.

    def _begin_runs(self) -> Int64Array:
        """Count the runs, if there are several; returns where each tile's program begins again."""
        if self.inputs.runs is not None and self.inputs.runs > 1:
            self._write(templates.open_frame(), self.everyone, frame=-FRAME_ALIGNMENT, count=self.inputs.runs)
        return self.code.here(Area.PROGRAM, self.everyone)

    def _end_runs(self, again: Int64Array) -> None:
        match self.inputs.runs:
            case None:
                self._write(templates.serve_again(), self.everyone, again=again)
                return
            case 1:
                pass
            case _:
                self._write(templates.close_frame(), self.everyone, again=again, frame=int(FRAME_ALIGNMENT))
        self._write(templates.complete(), self.everyone, routine=self._symbol(runtime.COMPLETE))

    # Host batches.

    def _host(self, slices: Slices, direction: HostDirection) -> None:
        """All batches of one part of a call, on every tile."""
        if slices.batches == 0:
            return
        absent = [HostGroup(parts=(None,) * slices.batches)]
        groups = dict.fromkeys(range(TILE_COUNT), absent)
        for physical, parts in batches_by_tile(self.inputs.host, slices, direction).items():
            groups[int(physical_to_logical(physical))] = grouped(parts)
        for turn in range(max(len(own) for own in groups.values())):
            now = [(tile, own[turn]) for tile, own in groups.items() if turn < len(own)]
            self._host_run([(tile, group) for tile, group in now if group.present])
            away = [(tile, group) for tile, group in now if not group.present]
            self._write(
                templates.follow(),
                np.array([tile for tile, _ in away], dtype=np.int64),
                count=np.array([len(group.parts) for _, group in away], dtype=np.int64),
                follower=self._symbol(runtime.FOLLOWER),
                routine=self._symbol(runtime.REPEAT_CALL),
            )

    def _host_run(self, groups: Sequence[tuple[int, HostGroup]]) -> None:
        """A group of batches in which each of some tiles runs one host program."""
        if not groups:
            return
        tiles = np.array([tile for tile, _ in groups], dtype=np.int64)
        tables = [
            group.table(int(here))
            for (_, group), here in zip(groups, self.code.here(Area.TABLES, tiles), strict=True)
        ]
        descriptors = self.code.append(
            Area.TABLES,
            tiles,
            np.array([len(words) for words in tables], dtype=np.int64),
            np.array([word for words in tables for word in words], dtype=np.uint32),
        )
        self._write(
            templates.host_run(),
            tiles,
            count=np.array([len(group.parts) for _, group in groups], dtype=np.int64),
            descriptors=descriptors,
            program=np.array(
                [self._host_program(tile, group.program) for tile, group in groups], dtype=np.int64
            ),
            routine=self._symbol(runtime.HOST_RUN),
        )

    def _host_program(self, tile: int, words: tuple[int, ...]) -> int:
        """Where a host program of a tile is; each tile has every program once."""
        key = (tile, words)
        if key not in self.host_programs:
            place = self.code.append(
                Area.HOST,
                np.array([tile], dtype=np.int64),
                np.array([len(words)], dtype=np.int64),
                np.array(words, dtype=np.uint32),
            )
            self.host_programs[key] = int(place[0])
        return self.host_programs[key]

    # Steps.

    def _steps(self, steps: Sequence[Step], around: Loop | None) -> None:
        for step in steps:
            match step:
                case ComputeStep():
                    self._sample_step(around)
                    self._compute(step.step, around)
                case ExchangeStep():
                    self._sample_step(around)
                    self._exchange(step.step, around)
                case RepeatStep():
                    if around is not None:
                        raise ValueError(f"step {step.step} is a Repeat inside of a Repeat")
                    self._repeat(step)
                case _:
                    assert_never(step)

    def _repeat(self, step: RepeatStep) -> None:
        program = self.inputs.program
        loop = loop_of(program, self.inputs.work, step)
        check_frames(loop, self.inputs.runs)
        everyone = self.everyone
        self._write(templates.open_frame(), everyone, frame=-loop.frame, count=step.count)
        pointers = loop.by_rank()
        first = program.sequences.first
        for rank, (tiles, sequences) in enumerate(pointers):
            start = self.inputs.placement.address[first[sequences]]
            self._write(templates.set_pointer(), tiles, start=start, word=FIRST_POINTER_WORD + rank)
        again = self.code.here(Area.PROGRAM, everyone)
        self._steps(step.body, loop)
        self._sample_step(loop)
        for rank, (tiles, sequences) in enumerate(pointers):
            stride = self.inputs.placement.stride[sequences]
            self._write(
                templates.advance(), tiles, word=FIRST_POINTER_WORD + rank, **halves("stride", stride)
            )
        self._write(templates.close_frame(), everyone, again=again, frame=loop.frame)

    def _compute(self, step: StepId, around: Loop | None) -> None:
        """Copies and calls of a step: on every tile its first one, then its second one, and so on."""
        program, work = self.inputs.program, self.inputs.work
        rows = self.work_order[self.work_bounds[step] : self.work_bounds[step + 1]]
        tiles = np.searchsorted(work.first, rows, side="right") - 1
        turn = np.arange(len(rows)) - np.searchsorted(tiles, tiles)
        is_call = work.kind[rows] == WorkKind.CALL
        row = work.row[rows]
        binding = np.zeros(len(rows), dtype=np.int64)
        binding[is_call] = program.calls.binding[row[is_call]]
        binding[~is_call] = program.copies.binding[row[~is_call]]
        key = np.stack([turn, is_call, binding], axis=1)
        for chosen in _equal_rows(key):
            called = program.bindings[int(binding[chosen[0]])]
            operands = self._operands(row[chosen], calls=bool(is_call[chosen[0]]), binding=called)
            self._call(called, tiles[chosen], operands, around)

    def _operands(self, rows: Int64Array, *, calls: bool, binding: Binding) -> list[AddressOperands]:
        """For each result, then operand, of a binding: what it is for each row of ``Calls`` or ``Copies``."""
        program = self.inputs.program
        if not calls:
            return [destinations_of(program.copies).take(rows), sources_of(program.copies).take(rows)]
        views = views_of(program.views)
        first = program.calls.first_view[rows]
        return [
            views.take(program.calls.operand_views[first + position])
            for position in range(len(binding.accesses))
        ]

    def _call(
        self,
        binding: Binding,
        tiles: Int64Array,
        operands: Sequence[AddressOperands],
        around: Loop | None,
    ) -> None:
        """One binding on some tiles. Tiles differ in addresses and in which operands move."""
        kernel = self._symbol(str(binding.symbol))
        moving = np.stack([operand.sequence != NO_ROW for operand in operands], axis=1)
        for chosen in _equal_rows(moving):
            pattern = moving[chosen[0]]
            forms: list[ArgumentForm] = []
            columns: dict[str, Column] = {"kernel": kernel}
            for index, argument in enumerate(binding.arguments):
                name = f"argument{index}"
                match argument:
                    case Scalar(word=word):
                        forms.append(ArgumentForm.of_constant(word))
                        columns |= constant(name, word)
                    case Pointer(reference=reference):
                        position = binding.position(reference)
                        start = binding.accesses[position].start
                        operand = operands[position].take(chosen)
                        if not pattern[position]:
                            forms.append(ArgumentForm.SHORT)
                            columns[name] = resolve_all(self.inputs.placement, operand) + start
                            continue
                        if around is None:
                            raise ValueError(f"an operand of {binding.symbol} moves outside of a Repeat")
                        offset = operand.displacement + start
                        far = bool((np.abs(offset) > templates.LARGEST_OFFSET).any())
                        forms.append(ArgumentForm.MOVING_FAR if far else ArgumentForm.MOVING)
                        columns[f"{name}_word"] = FIRST_POINTER_WORD + around.rank(
                            tiles[chosen], operand.sequence
                        )
                        columns |= halves(name, offset) if far else {name: offset}
                    case _:
                        assert_never(argument)
            self._write(templates.call(tuple(forms)), tiles[chosen], **columns)

    # Exchange.

    def _place_rows(self, phase: ScheduledPhase) -> RowPlace:
        """Put the rows of a phase into memory."""
        tiles = logical_tiles(phase.rows.tiles)
        counts = np.diff(phase.rows.first_word)
        padded = counts + counts % templates.BUNDLE_WORDS
        words = np.full(int(padded.sum()), templates.nop_word(), dtype=np.uint32)
        words[spread(np.cumsum(padded) - padded, counts)] = phase.rows.words
        address = self.code.append(Area.ROWS, tiles, padded, words)
        return RowPlace(tiles=tiles, address=address)

    def _exchange(self, step: StepId, around: Loop | None) -> None:
        phase = self.inputs.exchange.phases[step]
        place = self.rows[step]
        if not len(place.tiles):
            return
        if phase.sections is not None:
            raise ValueError(f"rows of exchange step {step} count from bases that no program sets")
        if len(phase.patches.word):
            if around is None or phase.demand.iterations != around.count:
                raise ValueError(f"exchange step {step} is scheduled for another Repeat")
            self._patches(phase, place, around.count)
        self._write(
            templates.exchange(),
            place.tiles,
            barrier=self._symbol(runtime.WORKER_BARRIER),
            row=place.address,
        )
        idle = np.setdiff1d(self.everyone, place.tiles)
        self._write(templates.absence(), idle)

    def _patches(self, phase: ScheduledPhase, place: RowPlace, iterations: int) -> None:
        """Rewrite what changes from one iteration to the next, on the tiles whose rows change."""
        patches, rows = phase.patches, phase.rows
        index = np.searchsorted(rows.first_word, patches.word, side="right") - 1
        word_address = place.address[index] + WORD_BYTES * (patches.word - rows.first_word[index])
        progression = is_progression(patches.values)
        self._write(
            templates.iteration(),
            place.tiles[np.unique(index)],
            total=iterations,
            word=ITERATIONS_WORD,
        )
        looked_up = np.flatnonzero(~progression)
        if len(looked_up):
            tiles, counts = _counted(place.tiles[index[looked_up]])
            values = patches.values[looked_up]
            uses = values.shape[1]
            tables = self.code.append(Area.TABLES, tiles, counts * uses, values.reshape(-1))
            within = np.arange(len(looked_up)) - np.repeat(np.cumsum(counts) - counts, counts)
            table = np.repeat(tables, counts) + WORD_BYTES * uses * within
            descriptors = np.stack([word_address[looked_up], table], axis=1)
            self._patch(runtime.PATCH_TABLES, tiles, counts, descriptors)
        computed = np.flatnonzero(progression)
        if len(computed):
            tiles, counts = _counted(place.tiles[index[computed]])
            values = patches.values[computed].astype(np.int64)
            step = (values[:, 1] - values[:, 0]) % (1 << 32)
            descriptors = np.stack([word_address[computed], values[:, 0], step], axis=1)
            self._patch(runtime.PATCH_ARITHMETIC, tiles, counts, descriptors)

    def _patch(self, routine: str, tiles: Int64Array, counts: Int64Array, descriptors: Int64Array) -> None:
        where = self.code.append(
            Area.TABLES,
            tiles,
            counts * descriptors.shape[1],
            descriptors.reshape(-1).astype(np.uint32),
        )
        self._write(templates.patch(), tiles, descriptors=where, count=counts, routine=self._symbol(routine))


def _counted(tiles: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Distinct tiles of a column in which equal ones are neighbours, in order, and how often each occurs."""
    starts = np.flatnonzero(np.append(True, tiles[1:] != tiles[:-1]))
    return tiles[starts], np.diff(np.append(starts, len(tiles)))


def _equal_rows(key: npt.NDArray[Any]) -> list[Int64Array]:
    """The numbers of equal rows of a table, ascending in each group; groups by ascending rows."""
    order = np.lexsort(key.T[::-1])
    ordered = key[order]
    starts = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
    return [group.astype(np.int64) for group in np.split(order, starts) if len(group)]


def is_progression(values: npt.NDArray[np.uint32]) -> npt.NDArray[np.bool_]:
    """Which rows of values [rows, uses] are at least three and differ by one step each, modulo 2^32."""
    if values.shape[1] < LEAST_PROGRESSION:
        return np.zeros(len(values), dtype=np.bool_)
    steps = values[:, 1:] - values[:, :-1]
    return (steps == steps[:, :1]).all(axis=1)
