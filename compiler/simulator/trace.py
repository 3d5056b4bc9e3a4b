"""Traces of chosen tiles in the JSON format that Chrome and Perfetto show.

One process for each tile; threads for the supervisor, the six workers and the exchange. Times are
microseconds at the nominal clock; every event also carries its cycles. Equal runs give equal text.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

from compiler.simulator.recording import NOTHING, UNNAMED, WAITS, Track
from compiler.simulator.state import CONTEXTS, SUPERVISOR
from compiler.target.tiles import CLOCK_HERTZ
from compiler.target.units import PhysicalTile

_Event: TypeAlias = dict[str, Any]

_EXCHANGE_THREAD: Final = CONTEXTS
_CYCLES_PER_MICROSECOND: Final = CLOCK_HERTZ / 1_000_000
_SPECIAL: Final = {WAITS: "waits for workers", UNNAMED: "tile program"}


def trace_json(tracks: Mapping[PhysicalTile, Track], symbols: Sequence[str]) -> str:
    """The trace.

    Args:
        tracks: what was seen of each tile.
        symbols: names by the numbers that tracks use.
    """
    events: list[_Event] = []
    for tile, track in sorted(tracks.items()):
        events += _names(tile)
        for context in (SUPERVISOR, *range(SUPERVISOR)):
            events += _context(tile, track, context, symbols)
        events += _meetings(tile, track)
    return json.dumps({"displayTimeUnit": "ns", "traceEvents": events}, separators=(",", ":")) + "\n"


def _names(tile: PhysicalTile) -> Iterator[_Event]:
    yield {"name": "process_name", "ph": "M", "pid": tile, "tid": 0, "args": {"name": f"tile {tile}"}}
    threads = {SUPERVISOR: "supervisor", _EXCHANGE_THREAD: "exchange"}
    threads |= {worker: f"worker {worker}" for worker in range(SUPERVISOR)}
    for thread, name in threads.items():
        yield {"name": "thread_name", "ph": "M", "pid": tile, "tid": thread, "args": {"name": name}}


def _context(tile: PhysicalTile, track: Track, context: int, symbols: Sequence[str]) -> Iterator[_Event]:
    """Spans between changes of what a context does; the last change has no end and no span."""
    changes = [(cycle, what) for cycle, of, what in track.changes if of == context]
    for (cycle, what), (end, _) in itertools.pairwise(changes):
        if what != NOTHING and end > cycle:
            name = symbols[what] if what >= 0 else _SPECIAL[what]
            yield _span(tile, context, name, cycle, end)


def _meetings(tile: PhysicalTile, track: Track) -> Iterator[_Event]:
    spans = [(row.start, row.start + row.events, f"exchange {row.phase}") for row in track.rows if row.events]
    spans += [(wait.start, wait.end, f"waits: {wait.kind.value}") for wait in track.waits]
    for start, end, name in sorted(spans):
        yield _span(tile, _EXCHANGE_THREAD, name, start, end)


def _span(tile: PhysicalTile, thread: int, name: str, start: int, end: int) -> _Event:
    return {
        "name": name,
        "ph": "X",
        "pid": tile,
        "tid": thread,
        "ts": start / _CYCLES_PER_MICROSECOND,
        "dur": (end - start) / _CYCLES_PER_MICROSECOND,
        "args": {"cycle": start, "cycles": end - start},
    }
