"""A schedule at other addresses: its rows by relocation, if they are legal there.

Input: a scheduled phase, and the demand of the same transfers at other addresses. Output: the phase with
these addresses, or a ``Rebuild`` that says why its times cannot stay. Nothing is scheduled or encoded: the
words are those of the phase, with other addresses at their sites.

Times do not depend on addresses, but whether they are legal does. In order, cheapest first:

1. the transfers are the same: who sends how much to whom (columns are compared; it proves nothing more);
2. addresses of paired transfers are multiples of 8;
3. where the rows set no pointer, the payload still follows the one before it in memory;
4. operands that count from one base still move together;
5. the order that data impose at the new addresses is that of the times;
6. reads and writes of a tile that overlap in time do not share a memory element, in any iteration.

That data share an element with the row, or a loopback reads and writes one, is no reason to rebuild: no
schedule could help, and ``timing.check_addresses`` says so.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.columns import bounds_of
from compiler.exchange.events import distances_of
from compiler.exchange.ir import (
    SOURCE_SIDE,
    Demand,
    PlacedTransfers,
    RowReservations,
    Rows,
    Schedule,
    ScheduledPhase,
    SiteKind,
)
from compiler.exchange.phase import schedule_phase
from compiler.exchange.relocation import iterations_of, patches_between, with_addresses
from compiler.exchange.rows import by_tile
from compiler.exchange.sections import based
from compiler.exchange.timing import check_addresses
from compiler.target import fabric
from compiler.target.fabric import PAIRED_ITEM_BYTES
from compiler.target.memory import element_keys
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import WORD_BYTES, Int64Array


@final
class RebuildReason(Enum):
    """Why times cannot stay; the value is the sentence."""

    OTHER_TRANSFERS = "the transfers are others"
    MISALIGNED = "a paired transfer is at an address that is no multiple of 8"
    NO_POINTER = "a payload no longer follows the one before it in memory, and its row sets no pointer"
    OTHER_STRIDES = "operands that count from one base no longer move together"
    DATA_ORDER = "a transfer would start before another has ended whose bytes it needs or replaces"
    SHARED_ELEMENT = "a read and a write at the same time would share a memory element"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuild:
    """The phase needs another schedule.

    Args:
        reason: why.
        transfer: a transfer that shows it, or ``NO_TRANSFER``.
    """

    reason: RebuildReason
    transfer: int

    def __str__(self) -> str:
        """One sentence without a full stop."""
        where = "" if self.transfer == NO_TRANSFER else f"transfer {self.transfer}: "
        return f"{where}{self.reason.value}"


NO_TRANSFER: Final = -1
"""In ``Rebuild``: the phase as a whole."""


def replay(
    phase: ScheduledPhase, demand: Demand, reservations: RowReservations | None = None
) -> ScheduledPhase | Rebuild:
    """The phase at the addresses of a demand.

    Args:
        phase: a phase.
        demand: the same transfers elsewhere.
        reservations: where rows will lie; None while nobody knows.

    Raises:
        ScheduleInfeasible: addresses are such that no schedule is legal.
    """
    if not _are_alike(phase.demand.transfers, demand.transfers):
        return Rebuild(reason=RebuildReason.OTHER_TRANSFERS, transfer=NO_TRANSFER)
    check_addresses(demand, reservations)
    sections = phase.sections
    if sections is not None:
        sections = based(sections, demand, phase.schedule)
        if sections is None:
            return Rebuild(reason=RebuildReason.OTHER_STRIDES, transfer=NO_TRANSFER)
    for reason, transfer in (
        (RebuildReason.MISALIGNED, _misaligned(demand, phase.schedule)),
        (RebuildReason.NO_POINTER, _without_pointer(phase, demand)),
        (RebuildReason.DATA_ORDER, _out_of_order(demand, phase.schedule)),
        (RebuildReason.SHARED_ELEMENT, _hazard(demand, phase.schedule)),
    ):
        if transfer != NO_TRANSFER:
            return Rebuild(reason=reason, transfer=transfer)
    uses = iterations_of(demand, sections)
    words = with_addresses(phase.rows.words, phase.sites, uses)
    return replace(
        phase,
        demand=demand,
        rows=Rows(tiles=phase.rows.tiles, first_word=phase.rows.first_word, words=words),
        patches=patches_between(words, phase.sites, uses),
        sections=sections,
    )


def moved_phase(
    phase: ScheduledPhase, demand: Demand, reservations: RowReservations | None = None
) -> ScheduledPhase:
    """The phase at the addresses of a demand: replayed if it can be, else scheduled anew.

    Args:
        phase: a phase.
        demand: the same transfers elsewhere, or others.
        reservations: where rows will lie; None while nobody knows.

    Raises:
        ScheduleInfeasible: addresses are such that no schedule is legal.
    """
    result = replay(phase, demand, reservations)
    return schedule_phase(demand, reservations) if isinstance(result, Rebuild) else result


def _are_alike(old: PlacedTransfers, new: PlacedTransfers) -> bool:
    """Whether transfers differ in nothing but addresses, strides and where they come from."""
    return all(
        np.array_equal(left, right)
        for left, right in (
            (old.source, new.source),
            (old.words, new.words),
            (old.first_recipient, new.first_recipient),
            (old.receiver, new.receiver),
        )
    )


def _misaligned(demand: Demand, times: Schedule) -> int:
    """A paired transfer at an address that is no multiple of its items, or ``NO_TRANSFER``."""
    moves = demand.transfers
    owner = moves.transfer_of_recipient
    wrong = (moves.address | moves.stride) % PAIRED_ITEM_BYTES != 0
    wrong[owner[(moves.receiver_address | moves.receiver_stride) % PAIRED_ITEM_BYTES != 0]] = True
    return _first(np.flatnonzero(wrong & times.is_paired))


def _without_pointer(phase: ScheduledPhase, demand: Demand) -> int:
    """A transfer with a payload that needs a pointer of its own and has none, or ``NO_TRANSFER``."""
    moves, sites = demand.transfers, phase.sites
    has_pointer = np.zeros(len(moves.receiver), dtype=np.bool_)
    is_pointer = sites.kind >= SiteKind.DELAY_POINTER
    is_pointer &= sites.kind <= SiteKind.PAIR_POINTER
    has_pointer[sites.owner[is_pointer & (sites.offset == 0)]] = True
    order = by_tile(moves.receiver, phase.schedule.write)
    left, right = order[:-1], order[1:]
    behind = moves.receiver_address + WORD_BYTES * moves.recipient_words
    follows = (
        (moves.receiver[left] == moves.receiver[right])
        & (behind[left] == moves.receiver_address[right])
        & (moves.receiver_stride[left] == moves.receiver_stride[right])
    )
    has_pointer[right[follows]] = True
    return _first(moves.transfer_of_recipient[np.flatnonzero(~has_pointer)])


def _out_of_order(demand: Demand, times: Schedule) -> int:
    """A transfer that starts somewhere before one has ended that it waits for, or ``NO_TRANSFER``."""
    data, items = demand.dependences, distances_of(demand.transfers, times.is_paired).items
    start = np.where(
        data.after_recipient == SOURCE_SIDE, times.slot[data.after], _at(times.write, data.after_recipient)
    )
    ended = items[data.before] + np.where(
        data.before_recipient == SOURCE_SIDE, times.slot[data.before], _at(times.write, data.before_recipient)
    )
    return _first(data.after[np.flatnonzero(start < ended)])


def _at(column: Int64Array, recipient: Int64Array) -> Int64Array:
    """A column of recipients at some of them; anything for ``SOURCE_SIDE``."""
    return column[recipient] if len(column) else recipient


def _hazard(demand: Demand, times: Schedule) -> int:
    """A transfer whose read meets a write in one element, or ``NO_TRANSFER``."""
    moves = demand.transfers
    owner = moves.transfer_of_recipient
    iteration = np.arange(demand.distinct_iterations)[:, None]

    def elements(address: Int64Array, stride: Int64Array, words: Int64Array) -> tuple[Int64Array, Int64Array]:
        begin = address + iteration * stride
        return element_keys(begin), element_keys(begin + WORD_BYTES * words - 1)

    items = distances_of(moves, times.is_paired).items
    return _first_shared(
        by_tile(moves.source, times.slot),
        bounds_of(np.bincount(moves.source, minlength=TILE_COUNT)),
        times.slot,
        times.slot + items,
        *elements(moves.address, moves.stride, moves.words),
        by_tile(moves.receiver, times.write),
        bounds_of(np.bincount(moves.receiver, minlength=TILE_COUNT)),
        times.write,
        times.write + items[owner] + fabric.ROW_AFTER_LAST_WRITE,
        *elements(moves.receiver_address, moves.receiver_stride, moves.recipient_words),
    )


@compiled
def _first_shared(
    sends: Int64Array,
    first_send: Int64Array,
    read_begin: Int64Array,
    read_end: Int64Array,
    read_low: Int64Array,
    read_high: Int64Array,
    receives: Int64Array,
    first_receive: Int64Array,
    write_begin: Int64Array,
    write_end: Int64Array,
    write_low: Int64Array,
    write_high: Int64Array,
) -> int:
    """The first send whose read overlaps a write in time and shares an element with it, or -1.

    Sends and receives are in order of tile and time; columns of elements are [iterations, spans].
    """
    for tile in range(first_send.size - 1):
        writing = first_receive[tile]
        for position in range(first_send[tile], first_send[tile + 1]):
            send = sends[position]
            while writing < first_receive[tile + 1] and write_end[receives[writing]] <= read_begin[send]:
                writing += 1
            other = writing
            while other < first_receive[tile + 1] and write_begin[receives[other]] < read_end[send]:
                receive = receives[other]
                for iteration in range(read_low.shape[0]):
                    if (
                        read_low[iteration, send] <= write_high[iteration, receive]
                        and write_low[iteration, receive] <= read_high[iteration, send]
                    ):
                        return int(send)
                other += 1
    return -1


def _first(found: Int64Array) -> int:
    """The first of some transfers, or ``NO_TRANSFER``."""
    return int(found[0]) if len(found) else NO_TRANSFER
