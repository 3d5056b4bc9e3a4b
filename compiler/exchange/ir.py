"""The tables of an exchange phase: what must move, when it moves, and the rows that do it.

======================  =================================================================================
``PlacedTransfers``     spans at addresses, with recipients in CSR form
``Demand``              the transfers of one step, ready to be timed, and the order that data impose
``Schedule``            the slot of every send and the events of every receive
``Rows``, ``Sites``     words of every tile, and which of their fields hold addresses
``BaseSections``        stretches of rows in which addresses count from a base that moves
``Patches``             the words of a phase that change from one use to the next, with their values
``ScheduledPhase``      all of it for one step; ``ScheduledExchange``, for a program
======================  =================================================================================

Tiles are physical here, addresses are bytes, lengths are words, times are events of a row's clock
(``compiler.target.fabric``). An address operand that a Repeat moves has a *stride*: in iteration i it is
``address + i * stride``; all others have stride 0. Columns are read-only by convention and have one integer
per row of their table.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.exchange.columns import bounds_of, expanded
from compiler.low.ids import StepId
from compiler.target.fabric import ITEM_BYTES, LONGEST_TRANSFER, PAIRED_ITEM_BYTES, SendControl
from compiler.target.memory import SRAM_BASE, SRAM_END
from compiler.target.tiles import TILE_COUNT, check_tiles
from compiler.target.units import WORD_BYTES, BoolArray, Bytes, Int64Array, PhysicalTile

WordArray: TypeAlias = npt.NDArray[np.uint32]

SOURCE_SIDE: Final = -1
"""In a ``Dependences`` column of recipients: the transfer reads there, as its sender."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacedTransfers:
    """Spans that leave tiles, and who takes them.

    Args:
        row: row of the low program's transfers that it comes from, the first of those that it joins.
        node: graph node, row of the names in ``Demand``.
        source: physical tile that sends.
        address: byte address of the span in iteration 0.
        stride: bytes that it moves with each iteration.
        words: its length.
        first_recipient: [transfers + 1] where its recipients begin; the last entry is their number.
        receiver: [recipients] physical tile.
        receiver_address: [recipients] where the span goes in iteration 0.
        receiver_stride: [recipients] bytes that this moves with each iteration.
    """

    row: Int64Array
    node: Int64Array
    source: Int64Array
    address: Int64Array
    stride: Int64Array
    words: Int64Array
    first_recipient: Int64Array
    receiver: Int64Array
    receiver_address: Int64Array
    receiver_stride: Int64Array

    def __post_init__(self) -> None:
        """Columns agree, every transfer has words and distinct recipients."""
        count, recipients = len(self.source), len(self.receiver)
        columns = (self.row, self.node, self.address, self.stride, self.words)
        if any(column.shape != (count,) for column in columns):
            raise ValueError("columns of transfers have different lengths")
        if any(column.shape != (recipients,) for column in (self.receiver_address, self.receiver_stride)):
            raise ValueError("columns of recipients have different lengths")
        first = self.first_recipient
        if first.shape != (count + 1,) or first[0] != 0 or first[-1] != recipients:
            raise ValueError(
                f"recipients of {count} transfers need {count + 1} bounds from 0 to {recipients}"
            )
        if (first[1:] <= first[:-1]).any():
            raise ValueError("every transfer needs a recipient")
        if (self.words < 1).any():
            raise ValueError("every transfer needs a word")
        check_tiles(self.source)
        check_tiles(self.receiver)
        ascends = self.receiver[1:] > self.receiver[:-1]
        ascends[first[1:-1] - 1] = True
        if ascends.all():
            return
        owner = self.transfer_of_recipient
        order = np.lexsort((self.receiver, owner))
        same = (owner[order][1:] == owner[order][:-1]) & (
            self.receiver[order][1:] == self.receiver[order][:-1]
        )
        if same.any():
            transfer = int(owner[order][1:][same][0])
            raise ValueError(f"transfer {transfer} reaches one tile twice")

    def taken(self, chosen: Int64Array) -> "PlacedTransfers":
        """Some of the transfers, in the order given; a transfer may occur more than once."""
        first = self.first_recipient
        counts = first[chosen + 1] - first[chosen]
        recipient = expanded(first[chosen], counts)
        return PlacedTransfers(
            row=self.row[chosen],
            node=self.node[chosen],
            source=self.source[chosen],
            address=self.address[chosen],
            stride=self.stride[chosen],
            words=self.words[chosen],
            first_recipient=bounds_of(counts),
            receiver=self.receiver[recipient],
            receiver_address=self.receiver_address[recipient],
            receiver_stride=self.receiver_stride[recipient],
        )

    @property
    def transfer_of_recipient(self) -> Int64Array:
        """[recipients] the transfer that each belongs to."""
        counts = self.first_recipient[1:] - self.first_recipient[:-1]
        return np.repeat(np.arange(len(self.source)), counts)

    @property
    def recipient_words(self) -> Int64Array:
        """[recipients] words that each takes."""
        return self.words[self.transfer_of_recipient]

    @property
    def is_loopback(self) -> BoolArray:
        """[recipients] whether the sender itself receives."""
        return self.receiver == self.source[self.transfer_of_recipient]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dependences:
    """Pairs of transfers that touch the same bytes of a tile, at least one writing: the table's order holds.

    Those pairs that follow from others of the same accesses may be left out.

    The later one starts there when the earlier one has ended there: its slots as a sender, its writes as a
    recipient.

    Args:
        before: transfer that goes first; rows ascend by ``after``, then ``before``.
        after: transfer that waits; a larger number than ``before``.
        before_recipient: recipient row through which the first writes, or ``SOURCE_SIDE`` where it reads.
        after_recipient: the same of the second.
    """

    before: Int64Array
    after: Int64Array
    before_recipient: Int64Array
    after_recipient: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Demand:
    """What one exchange phase has to move.

    Args:
        step: exchange step of the low program.
        iterations: how often the phase runs in one go through its Repeat, 1 outside of any.
        transfers: in the low table's order, each at most ``LONGEST_TRANSFER`` words.
        dependences: the order that data impose.
        nodes: names of graph nodes.
    """

    step: StepId
    iterations: int
    transfers: PlacedTransfers
    dependences: Dependences
    nodes: tuple[str, ...]

    def __post_init__(self) -> None:
        """Every address of every iteration is a word of SRAM, and every transfer can be encoded."""
        moves = self.transfers
        if self.iterations < 1:
            raise ValueError(f"a phase runs at least once, not {self.iterations} times")
        if (moves.words > LONGEST_TRANSFER).any():
            raise ValueError(f"a transfer has at most {LONGEST_TRANSFER} words")
        _check_spans(moves.address, moves.stride, moves.words, self.iterations)
        _check_spans(moves.receiver_address, moves.receiver_stride, moves.recipient_words, self.iterations)
        if (self.dependences.before >= self.dependences.after).any():
            raise ValueError("a transfer can only wait for an earlier one")

    @property
    def tiles(self) -> Int64Array:
        """Physical tiles that take part, ascending."""
        takes_part = np.zeros(TILE_COUNT, dtype=np.bool_)
        takes_part[self.transfers.source] = True
        takes_part[self.transfers.receiver] = True
        return np.flatnonzero(takes_part)

    @property
    def distinct_iterations(self) -> int:
        """Iterations whose addresses can differ: all, or 1 when nothing moves."""
        moving = self.transfers.stride.any() or self.transfers.receiver_stride.any()
        return self.iterations if moving else 1


def _check_spans(address: Int64Array, stride: Int64Array, words: Int64Array, iterations: int) -> None:
    last = address + (iterations - 1) * stride
    lowest, highest = np.minimum(address, last), np.maximum(address, last) + WORD_BYTES * words
    wrong = (lowest < SRAM_BASE) | (highest > SRAM_END) | ((address | stride) % WORD_BYTES != 0)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{int(words[row])} words at {int(address[row]):#x}, moving by {int(stride[row])} bytes, "
            "are not words of SRAM in every iteration"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Schedule:
    """When everything happens (``events``).

    Args:
        slot: [transfers] slot of the first item sent (S).
        control: [transfers] bits of ``fabric.SendControl``; those of paired transfers say so.
        select: [recipients] event at which the source is selected (R), of a pair by its early member (X).
        write: [recipients] event of the first write (P), at which the pointer is set.
        release: [recipients] event at which the source is no longer selected (N).
        tiles: [tiles] physical tiles that take part, ascending.
        horizon: [tiles] events of each row.
    """

    slot: Int64Array
    control: Int64Array
    select: Int64Array
    write: Int64Array
    release: Int64Array
    tiles: Int64Array
    horizon: Int64Array

    @property
    def is_paired(self) -> BoolArray:
        """[transfers] which send items of 64 bits."""
        return self.control & SendControl.PAIRED != 0


class SiteKind(IntEnum):
    """Which field of which instruction holds an address."""

    SEND_ITEM = 0
    """First item of ``send``, the start of a stream."""
    PAIR_ITEM = 1
    """First item of a transmitting ``sendpicp``, which states again where the stream is."""
    DELAY_POINTER = 2
    """Pointer of ``delaypic``."""
    SEND_POINTER = 3
    """Pointer of ``sendpic``."""
    PAIR_POINTER = 4
    """Pointer in the second word of ``sendpicp``, transmitting or not."""
    WIDE_SEND_ITEM = 5
    """``SEND_ITEM`` of a paired transfer, whose items have 64 bits."""
    WIDE_PAIR_ITEM = 6
    """``PAIR_ITEM`` of a paired transfer."""

    @property
    def is_send(self) -> bool:
        """Whether the address is that of a transfer's source, else that of a recipient."""
        return self in (
            SiteKind.SEND_ITEM,
            SiteKind.PAIR_ITEM,
            SiteKind.WIDE_SEND_ITEM,
            SiteKind.WIDE_PAIR_ITEM,
        )

    @property
    def unit(self) -> Bytes:
        """What the field counts in."""
        is_wide = self in (SiteKind.WIDE_SEND_ITEM, SiteKind.WIDE_PAIR_ITEM)
        return PAIRED_ITEM_BYTES if is_wide else ITEM_BYTES


ABSOLUTE: Final = -1
"""In a column of sections: the base register holds 0."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BaseSections:
    """Stretches of rows in which a base register holds something, so that addresses count from there.

    In iteration i the base of a section is ``address + i * stride``: an operand that moves by the same stride
    is a constant in its section, and needs no patch.

    Args:
        tile: physical; rows ascend by tile, then start.
        is_incoming: 1 for INCOMING_BASE, from which pointers count; 0 for OUTGOING_BASE, of sends.
        register: main register that holds the base when the row starts.
        start: event at which the row begins to write the base register, or ``BEFORE_ROW``.
        address: byte address of the base in iteration 0.
        stride: bytes that it moves with each iteration.
        of_transfer: [transfers] section that each is sent in, or ``ABSOLUTE``.
        of_recipient: [recipients] section that each is received in, or ``ABSOLUTE``.
    """

    tile: Int64Array
    is_incoming: Int64Array
    register: Int64Array
    start: Int64Array
    address: Int64Array
    stride: Int64Array
    of_transfer: Int64Array
    of_recipient: Int64Array


BEFORE_ROW: Final = -1
"""In ``BaseSections.start``: the program of the tile writes the base register."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows of the tiles that take part.

    Args:
        tiles: [tiles] physical, ascending.
        first_word: [tiles + 1] where each row begins in ``words``; the last entry is their number.
        words: all rows, one after the other, with the addresses of iteration 0.
    """

    tiles: Int64Array
    first_word: Int64Array
    words: WordArray

    def row(self, tile: PhysicalTile) -> WordArray | None:
        """The words of a tile's row; None for a tile that takes no part (``rows.idle_row`` is its row)."""
        index = int(np.searchsorted(self.tiles, tile))
        if index == len(self.tiles) or self.tiles[index] != tile:
            return None
        return self.words[self.first_word[index] : self.first_word[index + 1]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sites:
    """Fields of words that hold addresses, in order of ``word``. At most one for a word.

    Args:
        word: index in ``Rows.words``.
        kind: ``SiteKind``.
        owner: transfer for the kinds of sends, recipient for pointers.
        offset: words from the owner's address to the one in the field.
        section: row of ``BaseSections`` from whose base the field counts, or ``ABSOLUTE``.
    """

    word: Int64Array
    kind: Int64Array
    owner: Int64Array
    offset: Int64Array
    section: Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Patches:
    """Words that change from one use of a row to another. Every use writes all of them.

    Args:
        word: [patches] index in ``Rows.words``, ascending.
        values: [patches, uses] the whole word in each use.
    """

    word: Int64Array
    values: WordArray


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowReservations:
    """Where rows will lie: the element of a row must hold no data that its phase moves.

    Args:
        tile: physical, ascending.
        address: byte address of the reserved range; a multiple of 8.
        byte_count: its size, without the look-ahead of the fetcher behind it.
    """

    tile: Int64Array
    address: Int64Array
    byte_count: Int64Array

    def __post_init__(self) -> None:
        """One range for a tile."""
        if self.tile.shape != self.address.shape or self.tile.shape != self.byte_count.shape:
            raise ValueError("columns of reservations have different lengths")
        if (self.tile[1:] <= self.tile[:-1]).any():
            raise ValueError("the tiles of reservations must ascend")
        if (self.address % 8 != 0).any() or (self.byte_count < 1).any():
            raise ValueError("a reservation starts at a multiple of 8 and holds at least one byte")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduledPhase:
    """A phase, finished.

    Args:
        demand: what it moves.
        schedule: when.
        rows: the instructions.
        sites: their address fields.
        patches: words that change between iterations; one use for each iteration.
        sections: bases that addresses count from; None where all are absolute.
    """

    demand: Demand
    schedule: Schedule
    rows: Rows
    sites: Sites
    patches: Patches
    sections: BaseSections | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ScheduledExchange:
    """All phases of a program.

    Args:
        phases: by exchange step, in program order.
    """

    phases: Mapping[StepId, ScheduledPhase]
