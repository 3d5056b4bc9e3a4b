"""Watching chosen tiles while they run: breakpoints, and what each context does when.

A watched tile runs cycle by cycle in compiled code; afterwards it is where it would be if nobody had watched.
Events say that a context began something: code of a symbol, code without one, waiting, or nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.simulator.core import run_tile
from compiler.simulator.faults import NamedRange
from compiler.simulator.machine import Machine
from compiler.simulator.state import (
    ACTIVE,
    ACTIVE_WORKERS,
    BASE,
    CODE_WORDS,
    CONTEXT_STRIDE,
    CONTEXTS,
    CYCLE,
    LAST_EXIT,
    PC,
    READY,
    STATUS,
    STOP_LIMIT,
    SUPERVISOR,
    WAITING,
    WORKERS,
    Accumulators,
    Decoded,
    Memory,
    Shadow,
    State,
    Table,
    Weights,
)
from compiler.simulator.timeline import MeetingKind
from compiler.target.costs import SUPERVISOR_LOCAL_SYNC
from compiler.target.units import WORD_BYTES, Address, Int64Array, PhysicalTile

NOTHING: Final = -1
"""What an inactive context does."""
WAITS: Final = -2
"""What a supervisor does that waits for workers."""
UNNAMED: Final = -3
"""Code outside of every symbol: programs of tiles."""

_STOP_BREAK: Final = 100
_STOP_FULL: Final = 101
_EVENTS: Final = 1 << 14
_RENDEZVOUS: Final = int(SUPERVISOR_LOCAL_SYNC)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Breakpoint:
    """Where to stop.

    Args:
        address: of an instruction, or of an exchange row that is called.
        tile: on which tile; None for the first that gets there.
    """

    address: Address
    tile: PhysicalTile | None = None


class BreakReached(Exception):  # not an error: what the caller asked for
    """A tile is about to run an instruction at the breakpoint; never seen outside of the simulator."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowSpan:
    """An exchange row of a watched tile: number of its phase, cycle of slot 0, events."""

    phase: int
    start: int
    events: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSpan:
    """A wait of a watched tile for others, in cycles."""

    kind: MeetingKind
    start: int
    end: int


@final
@dataclass(slots=True, kw_only=True)
class Track:
    """What was seen of a tile.

    Args:
        changes: (cycle, context, what it began: number of a symbol, or a negative constant of this module).
        rows: its exchange rows.
        waits: its waits for others.
    """

    changes: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    rows: list[RowSpan] = field(default_factory=list[RowSpan])
    waits: list[WaitSpan] = field(default_factory=list[WaitSpan])


@final
class Recorder:
    """Watches tiles.

    Args:
        machine: the tiles.
        traced: places of those whose events are kept.
        breakpoint_: where to stop, or None.
        code: named code, by address.
    """

    def __init__(
        self,
        machine: Machine,
        traced: Sequence[int],
        breakpoint_: Breakpoint | None,
        code: Sequence[NamedRange],
    ) -> None:
        self.tracks: Final = {place: Track() for place in sorted(traced)}
        self._address: Final = 0 if breakpoint_ is None else int(breakpoint_.address)
        if breakpoint_ is None:
            stopping: Int64Array = np.zeros(0, np.int64)
        elif breakpoint_.tile is None:
            stopping = np.arange(machine.count)
        else:
            place = machine.place_of(breakpoint_.tile)
            stopping = np.array([] if place is None else [place], dtype=np.int64)
        self._stopping: Final = stopping
        self._watched: Final = np.union1d(np.array(list(self.tracks), dtype=np.int64), stopping)
        self._symbol_of: Final = np.full(CODE_WORDS, UNNAMED, np.int64)
        for number, named in enumerate(code):
            first = (named.start - BASE) // WORD_BYTES
            self._symbol_of[first : first + -(-named.size // WORD_BYTES)] = number
        self._doing: Final = {int(place): np.full(CONTEXTS, NOTHING, np.int64) for place in self._watched}
        self._events: Final = np.zeros((_EVENTS, 3), np.int64)

    def advance(self, machine: Machine, places: Int64Array) -> Int64Array:
        """Run tiles until each needs somebody else, watched ones last; gives a value of ``Stop`` for each.

        Raises:
            BreakReached: a tile is at the breakpoint.
            Unsupported: an instruction is not simulated.
        """
        if not len(self._watched):
            return machine.advance(places)
        watched = np.isin(places, self._watched)
        stops = np.zeros(len(places), np.int64)
        stops[~watched] = machine.advance(places[~watched])
        for index in np.flatnonzero(watched).tolist():
            stops[index] = self._run(machine, int(places[index]))
        machine.check_supported(places, stops)
        return stops

    def check_rows(self, places: Int64Array, addresses: Int64Array) -> None:
        """Tiles are about to call exchange rows.

        Raises:
            BreakReached: one of them at the breakpoint.
        """
        hit = places[(addresses == self._address) & np.isin(places, self._stopping)]
        if len(hit):
            raise BreakReached(int(hit[0]))

    def note_rows(self, places: Int64Array, phase: int, start: int, horizons: Int64Array) -> None:
        """Rows have run."""
        for place, track in self.tracks.items():
            for index in np.flatnonzero(places == place).tolist():
                track.rows.append(RowSpan(phase=phase, start=start, events=int(horizons[index])))

    def note_waits(self, reached: Int64Array, release: int, kind: MeetingKind) -> None:
        """All tiles have waited."""
        for place, track in self.tracks.items():
            if reached[place] < release:
                track.waits.append(WaitSpan(kind=kind, start=int(reached[place]), end=release))

    def _run(self, machine: Machine, place: int) -> int:
        arrays = machine.arrays(place)
        limit = machine.cycle(place) + machine.cycle_limit
        address = self._address if place in self._stopping else 0
        filled = np.zeros(1, np.int64)
        while True:
            stop = _run_watched(
                *arrays, limit, address, self._symbol_of, self._doing[place], self._events, filled
            )
            if place in self.tracks:
                self.tracks[place].changes += [
                    (cycle, context, what) for cycle, context, what in self._events[: int(filled[0])].tolist()
                ]
            filled[0] = 0
            if stop == _STOP_BREAK:
                raise BreakReached(place)
            if stop != _STOP_FULL:
                return stop


@compiled(nogil=True)
def _about_to_issue(state: State, cycle: int) -> int:
    """The context that issues in this cycle, or -1."""
    slot = cycle % WORKERS
    if state[slot * CONTEXT_STRIDE + STATUS] == ACTIVE:
        return slot if state[slot * CONTEXT_STRIDE + READY] <= cycle else -1
    base = SUPERVISOR * CONTEXT_STRIDE
    ready = state[base + READY]
    if state[base + STATUS] == WAITING:
        if state[ACTIVE_WORKERS] > 0:
            return -1
        ready = state[LAST_EXIT] + _RENDEZVOUS
    return SUPERVISOR if ready <= cycle else -1


@compiled(nogil=True)
def _run_watched(
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
    accumulators: Accumulators,
    weights: Weights,
    forms: Table,
    lookup: Table,
    limit: int,
    break_address: int,
    symbol_of: Int64Array,
    doing: Int64Array,
    events: npt.NDArray[np.int64],
    filled: Int64Array,
) -> int:
    """Run a tile cycle by cycle and note what contexts begin; a reason to stop of ``run_tile`` or ours."""
    while True:
        cycle = state[CYCLE]
        if break_address != 0:
            context = _about_to_issue(state, cycle)
            if context >= 0 and state[context * CONTEXT_STRIDE + PC] == break_address:
                return _STOP_BREAK
        stop = STOP_LIMIT
        if cycle >= limit:
            return stop
        if filled[0] + CONTEXTS > events.shape[0]:
            return _STOP_FULL
        stop = run_tile(
            state,
            memory,
            shadow,
            touched,
            decoded,
            accumulators,
            weights,
            forms,
            lookup,
            cycle + 1,
        )
        for context in range(CONTEXTS):
            base = context * CONTEXT_STRIDE
            what = NOTHING
            if state[base + STATUS] == WAITING:
                what = WAITS
            elif state[base + STATUS] == ACTIVE:
                index = (state[base + PC] - BASE) >> 2
                what = symbol_of[index] if 0 <= index < CODE_WORDS else UNNAMED
            if what != doing[context]:
                doing[context] = what
                events[filled[0], 0] = cycle
                events[filled[0], 1] = context
                events[filled[0], 2] = what
                filled[0] += 1
        if stop != STOP_LIMIT:
            return stop
