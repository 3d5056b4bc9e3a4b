"""Sends through relays what one tile would send in too many spans (relay routing; LC-08, MG-08).

A phase takes as long as its busiest end, and a sender pays for each span that it sends, however short. A tile
that holds a value alone and sends it to many others in single words pays twice what its words take. Here it
sends the same bytes in a few long spans to other tiles first, in a phase before, and these send the spans on:

    home --- short spans ---> everybody        home === long spans ===> relays --- short spans ---> everybody

**What a relay cannot do.** Every word that a tile alone has must leave it once, so a phase before takes at
least the distinct words that the busiest sender sends, and both phases at least those and two overheads. A
sender whose spans are long, or whose words multicast sends once, is as fast without relays. So it is in all
phases of the representative products: no tile sends more than the busiest receives (of the MLP of SigLIP on
1,472 tiles 296 words against 13,248 for activations, 7,728 against 7,728 for partials), and words outweigh
spans. What is left is movement from few homes in short spans, where no kernel packs them.

**What is done.** In each phase, for the tiles whose sends outlast all else in it by more than the overhead of
a phase: what each sends of the buffer that it sends most of is cut into as many pieces as it has relays,
equal in spans. Relays are the tiles with least to do in the phase. A span that its relay would receive itself
stays with its home. The number of relays is tried in powers of two; the fastest is kept if both phases
together are faster than the one was, by the estimate of ``low.prices``, with the most that any tile has to
hold at a time no more than before, and within the limits of ``low.limits``.

Not where something is delivered, in the phase, to the bytes that are sent: the order of rows would have to
change. Not for what walks along a sequence. Cost: linear in the program for each trial.
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar, final

import numpy as np

from compiler.low.accesses import merged
from compiler.low.ids import NO_ROW, StepId
from compiler.low.ir import Buffers, Column, ExchangeStep, LowProgram, Recipients, Role, Transfers
from compiler.low.limits import MOST_FRAGMENTS, row_words_of
from compiler.low.prices import PhaseLoads, loads_of
from compiler.low.project import WorkKind
from compiler.low.rewrites.hazards import conflicts, touches_of
from compiler.low.rewrites.memory import most_held
from compiler.low.rewrites.tables import with_before, with_steps
from compiler.low.steps import in_order
from compiler.target.costs import PHASE_OVERHEAD, RECEIVE_FRAGMENT, ROW_BUDGET, SEND_FRAGMENT
from compiler.target.units import WORD_BYTES

T = TypeVar("T", Buffers, Transfers, Recipients)

_ALIGNMENT: Final = 32
"""Bytes: of what a relay holds."""
_RELAYS: Final = tuple(1 << power for power in range(9))
"""How many relays of a home are tried."""


def with_relays(program: LowProgram) -> LowProgram:
    """The program with relays in the phases that they make faster."""
    place = 0
    while True:
        phases = [step.step for step, _ in in_order(program.steps) if isinstance(step, ExchangeStep)]
        if place >= len(phases):
            return program
        relayed = _relayed(program, phases[place])
        if relayed is not None:
            program = relayed
        # The phase that was made lies before this one, which is looked at again.
        place += 1


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Piece:
    """What one relay passes on.

    Args:
        relay: the tile.
        source: buffer of the home.
        runs: disjoint spans of it, in bytes, ascending: what is sent to the relay.
        transfers: rows that the relay sends instead of the home.
    """

    relay: int
    source: int
    runs: tuple[tuple[int, int], ...]
    transfers: Column

    @property
    def start(self) -> int:
        """First byte of the home's buffer that the relay holds."""
        return self.runs[0][0]

    @property
    def byte_count(self) -> int:
        """Bytes that the relay needs for them."""
        return self.runs[-1][1] - self.start


def _relayed(program: LowProgram, phase: StepId) -> LowProgram | None:
    """The program with relays in one phase; None where they are no use."""
    loads = _loads(program, phase)
    homes = _homes(program, phase, loads)
    if not homes:
        return None
    work = loads.sent + loads.received + SEND_FRAGMENT * loads.sends + RECEIVE_FRAGMENT * loads.receives
    idle = [tile for tile in np.argsort(work, kind="stable").tolist() if tile not in homes]
    best, fastest = None, int(loads.cycles)
    for count in _RELAYS:
        if count * len(homes) > len(idle):
            break
        pieces = [
            piece
            for number, rows in enumerate(homes.values())
            for piece in _pieces(program, rows, idle[number :: len(homes)][:count])
        ]
        if not pieces:
            continue
        trial = _through(program, phase, pieces)
        # The phases are numbered one after the other.
        cycles = sum(int(_loads(trial, StepId(phase + number)).cycles) for number in range(2))
        if cycles < fastest and _fits(trial, phase):
            best, fastest = trial, cycles
    if best is None or most_held(best, touches_of(best)) > most_held(program, touches_of(program)):
        return None
    return best


def _homes(program: LowProgram, phase: StepId, loads: PhaseLoads) -> dict[int, Column]:
    """Tiles whose sends outlast all else, and the transfers that each can leave to relays, by source byte."""
    others = max(
        int(loads.sent.max()), int(loads.received.max()), int(RECEIVE_FRAGMENT * loads.receives.max())
    )
    late = np.flatnonzero(SEND_FRAGMENT * loads.sends > others + PHASE_OVERHEAD).tolist()
    if not late:
        return {}
    transfers, touches = program.transfers, touches_of(program)
    touches = touches.take(touches.step == phase)
    is_sent = touches.kind == WorkKind.SEND
    sent = touches.take(is_sent)
    overwritten = sent.row[conflicts(sent, touches.take(~is_sent))]
    rows = np.flatnonzero((transfers.step == phase) & (transfers.source_sequence == NO_ROW))
    rows = np.setdiff1d(rows, overwritten)
    homes: dict[int, Column] = {}
    for tile in late:
        own = rows[program.buffers.tile[transfers.source[rows]] == tile]
        if not len(own):
            return {}
        sources, counts = np.unique(transfers.source[own], return_counts=True)
        own = own[transfers.source[own] == sources[np.argmax(counts)]]
        homes[tile] = own[np.argsort(transfers.source_displacement[own], kind="stable")].astype(np.int64)
    return homes


def _pieces(program: LowProgram, rows: Column, relays: Sequence[int]) -> list[_Piece]:
    """What each relay takes of the transfers of a home."""
    transfers, recipients = program.transfers, program.recipients
    pieces: list[_Piece] = []
    for relay, share in zip(relays, np.array_split(rows, len(relays)), strict=True):
        own = recipients.transfer[program.buffers.tile[recipients.destination] == relay]
        passed = np.setdiff1d(share, own)
        if len(passed):
            start = transfers.source_displacement[passed]
            runs = merged(zip(start.tolist(), (start + transfers.byte_count[passed]).tolist(), strict=True))
            source = int(transfers.source[passed[0]])
            pieces.append(_Piece(relay=relay, source=source, runs=runs, transfers=passed))
    return pieces


def _through(program: LowProgram, phase: StepId, pieces: Sequence[_Piece]) -> LowProgram:
    """The program with a phase before, by which relays get what they pass on."""
    buffers, transfers, recipients = program.buffers, program.transfers, program.recipients
    first, before = len(buffers.tile), sum(1 for _ in in_order(program.steps))
    held = first + np.arange(len(pieces), dtype=np.int64)
    source, displacement = transfers.source.copy(), transfers.source_displacement.copy()
    for buffer, piece in zip(held.tolist(), pieces, strict=True):
        source[piece.transfers] = buffer
        displacement[piece.transfers] -= piece.start
    node = [int(transfers.node[piece.transfers[0]]) for piece in pieces]
    sent = [(place, start, stop) for place, piece in enumerate(pieces) for start, stop in piece.runs]
    place, start, stop = np.array(sent, dtype=np.int64).T
    numbers = len(transfers.step) + np.arange(len(sent), dtype=np.int64)
    added = dataclasses.replace(
        program,
        buffers=_extended(
            buffers,
            tile=[piece.relay for piece in pieces],
            byte_count=[piece.byte_count for piece in pieces],
            alignment=_ALIGNMENT,
            root=held,
            sequence=NO_ROW,
            role=Role.TEMPORARY,
            value=NO_ROW,
            node=node,
        ),
        transfers=_extended(
            dataclasses.replace(transfers, source=source, source_displacement=displacement),
            step=before,
            source=np.array([piece.source for piece in pieces])[place],
            source_displacement=start,
            source_sequence=NO_ROW,
            byte_count=stop - start,
            first_recipient=len(recipients.transfer) + np.arange(len(sent)),
            node=np.array(node)[place],
        ),
        recipients=_extended(
            recipients,
            transfer=numbers,
            destination=held[place],
            destination_displacement=start - np.array([piece.start for piece in pieces])[place],
            destination_sequence=NO_ROW,
        ),
    )
    return with_steps(added, with_before(program.steps, phase, (ExchangeStep(step=StepId(before)),)))


def _extended(table: T, **columns: Column | Sequence[int] | int) -> T:
    """A table with more rows: of columns that are not named, zeros."""
    rows = max(np.size(column) for column in columns.values())
    longer: dict[str, Column] = {}
    for field in dataclasses.fields(table):
        added = np.broadcast_to(np.asarray(columns.get(field.name, 0), dtype=np.int64), rows)
        longer[field.name] = np.concatenate([getattr(table, field.name), added])
        longer[field.name].flags.writeable = False
    return dataclasses.replace(table, **longer)


def _loads(program: LowProgram, phase: StepId) -> PhaseLoads:
    return loads_of(program, *_rows(program, phase))


def _rows(program: LowProgram, phase: StepId) -> tuple[Column, Column]:
    """Transfers and recipients of a phase."""
    step = program.transfers.step
    received = step[program.recipients.transfer] == phase
    return np.flatnonzero(step == phase).astype(np.int64), np.flatnonzero(received).astype(np.int64)


def _fits(program: LowProgram, before: StepId) -> bool:
    """Whether rows of the two phases, and transfers of the program, are within what a tile may have."""
    rows = max(
        int(row_words_of(program, *_rows(program, StepId(before + number))).max()) for number in range(2)
    )
    every = loads_of(
        program, np.arange(len(program.transfers.step)), np.arange(len(program.recipients.transfer))
    )
    most = int((every.sends + every.receives).max())
    return WORD_BYTES * rows <= ROW_BUDGET and most <= MOST_FRAGMENTS
