"""The exchange fabric: when a word that one tile sends passes the multiplexer of another.

The fabric is statically timed and stateless. A word carries no destination: it runs along the rows of tiles
in one or both directions, and a tile takes it by having its multiplexer select the source in the right
cycle. All that a program must know is, for each ordered pair of tiles, the direction and the *time to mux*
T: a word sent in slot S of the sender's row passes the receiver's multiplexer in slot S + T of the
receiver's row. Rows start where the chip's barrier releases each tile, so T is a delay plus a difference of
clock origins and can be negative.

The formulas act on physical numbers. They reproduce every row of the vendor's tools that is known and ran on
hardware over all tiles; the names east and west are inferred. Positions count along a folded line of columns:
columns 0 .. 7 run out, columns 8 .. 15 run back, so ``fold`` maps column 15 beside column 0.

T depends on the rows only through twice their difference, and otherwise on column and lane, as does the
displacement. The plural functions therefore look up 64 x 64 tables that the singular ones fill once: they
broadcast like NumPy operators and cover all ordered pairs of the chip in a fraction of a second.
"""

import functools
from enum import IntEnum, IntFlag
from typing import Annotated

import numpy as np

from compiler.target import tiles
from compiler.target.standing import INFERRED, POLICY, VENDOR, stands
from compiler.target.tiles import COLUMNS, TILES_PER_ROW, check_tiles
from compiler.target.units import Bytes, Events, Int64Array, IntegerArray, Items, PhysicalTile

_HALF_COLUMNS = COLUMNS // 2


@stands(INFERRED)
class Direction(IntEnum):
    """The two ways along the fabric; the values are the bits of the send control (the names are inferred)."""

    EAST = 1
    WEST = 2


@stands(VENDOR)
class SendControl(IntFlag):
    """The three control bits of a send. Without a direction its slots pass and nothing reaches the fabric."""

    EAST = Direction.EAST
    WEST = Direction.WEST
    PAIRED = 4
    """64-bit items, with the transmit lane of the partner."""


MULTICAST: Annotated[SendControl, VENDOR] = SendControl.EAST | SendControl.WEST
"""Send control of a word for receivers in any direction. Fact, vendor tools."""

ITEM_BYTES: Annotated[Bytes, VENDOR] = Bytes(4)
"""Bytes of an ordinary item. Fact, vendor tools."""

PAIRED_ITEM_BYTES: Annotated[Bytes, VENDOR] = Bytes(8)
"""Bytes of a paired item. Fact, vendor tools."""

SELECT_AFTER_PASSING: Annotated[Events, VENDOR] = Events(1)
"""The event that selects a source is so many events after the slot in which its first word passes the
multiplexer: events count completed slots. Fact, vendor tools."""

WRITE_AFTER_SELECT: Annotated[Events, VENDOR] = Events(52)
"""From selecting a source to the write of its first word, in row 0. Fact, vendor tools."""

EVENTS_PER_ROW: Annotated[Events, VENDOR] = Events(2)
"""What each further row of the receiver adds to that, and each row between two tiles to their time to mux.
Fact, vendor tools."""

FORMAT_BEFORE_WRITE: Annotated[Events, VENDOR] = Events(2)
"""A paired receiver sets its incoming format so long before the first write. Fact, vendor tools."""

ROW_AFTER_LAST_WRITE: Annotated[Events, VENDOR] = Events(5)
"""A row lasts at least so many events beyond the end of each payload. Fact, vendor tools."""

LONGEST_TRANSFER: Annotated[Items, POLICY] = Items(4148)
"""Most items of one transfer; longer spans are split, so that every wait of a row fits one instruction.
Policy."""

_WIDTH = 6
"""Multiplexer units from one column to the next."""
_OFFSETS_LOW_LANE = (1, 5)
"""Units from a column's origin to its lanes 0 and 1: the one on the side of the column's half, the other."""
_OFFSETS_HIGH_LANE = (2, 4)
"""The same for lanes 2 and 3."""
_ORIGIN = 31
"""Offset that remains between the clock origins of two tiles at one place."""


def displacement(source: PhysicalTile, destination: PhysicalTile) -> int:
    """Signed distance along the fabric in multiplexer units: -47 .. 47 without 0, east positive."""
    sender_position = _fold(source) + (_half(source) ^ (source & 1))
    base = _WIDTH * (_fold(destination) - sender_position)
    receiver_lane = tiles.lane(destination)
    offsets = _OFFSETS_LOW_LANE if receiver_lane < tiles.PARTNER_LANE else _OFFSETS_HIGH_LANE
    return base + offsets[_half(destination) != (receiver_lane & 1)]


def direction(source: PhysicalTile, destination: PhysicalTile) -> Direction:
    """The way a word takes from source to destination."""
    return Direction.EAST if displacement(source, destination) > 0 else Direction.WEST


def time_to_mux(source: PhysicalTile, destination: PhysicalTile) -> Events:
    """Slots from sending a word to its passing the destination's multiplexer, -78 .. 112."""
    step = tiles.column(source) % _HALF_COLUMNS
    turn = step + 1 if _half(source) == _half(destination) else COLUMNS - step
    return Events(
        turn
        + _HALF_COLUMNS * _half(source)
        - tiles.column(destination)
        + 4 * (_fold(source) - _fold(destination))
        + EVENTS_PER_ROW * (tiles.row(source) - tiles.row(destination))
        + abs(displacement(source, destination))
        - _ORIGIN
    )


def paired_time_to_mux(source: PhysicalTile, destination: PhysicalTile) -> Events:
    """Time to mux of a paired transfer: the later member of the destination's pair counts."""
    return Events(max(time_to_mux(source, destination), time_to_mux(source, tiles.partner(destination))))


def select_to_write(destination: PhysicalTile) -> Events:
    """Events from selecting a source to the write of the first word it then sends."""
    return Events(WRITE_AFTER_SELECT + EVENTS_PER_ROW * tiles.row(destination))


def send_to_write(source: PhysicalTile, destination: PhysicalTile) -> Events:
    """From the slot that sends a word to the event that writes it, 19 .. 165."""
    return Events(
        time_to_mux(source, destination) + SELECT_AFTER_PASSING + select_to_write(destination),
    )


def displacements(sources: IntegerArray, destinations: IntegerArray) -> Int64Array:
    """``displacement`` of each pair, broadcast."""
    return _in_row(_displacements_in_row(), sources, destinations)


def directions(sources: IntegerArray, destinations: IntegerArray) -> Int64Array:
    """``direction`` of each pair, broadcast; values of ``Direction``."""
    return np.where(displacements(sources, destinations) > 0, np.int64(Direction.EAST), Direction.WEST)


def times_to_mux(sources: IntegerArray, destinations: IntegerArray) -> Int64Array:
    """``time_to_mux`` of each pair, broadcast."""
    in_row = _in_row(_times_in_row(), sources, destinations)
    return in_row + EVENTS_PER_ROW * (tiles.rows(sources) - tiles.rows(destinations))


def paired_times_to_mux(sources: IntegerArray, destinations: IntegerArray) -> Int64Array:
    """``paired_time_to_mux`` of each pair, broadcast."""
    partners = destinations ^ tiles.PARTNER_LANE
    return np.maximum(times_to_mux(sources, destinations), times_to_mux(sources, partners))


def select_to_writes(destinations: IntegerArray) -> Int64Array:
    """``select_to_write`` of each tile."""
    return WRITE_AFTER_SELECT + EVENTS_PER_ROW * tiles.rows(destinations)


def send_to_writes(sources: IntegerArray, destinations: IntegerArray) -> Int64Array:
    """``send_to_write`` of each pair, broadcast."""
    return times_to_mux(sources, destinations) + SELECT_AFTER_PASSING + select_to_writes(destinations)


def _half(tile: PhysicalTile) -> int:
    """0 in the columns that run out, 1 in those that run back."""
    return tiles.column(tile) // _HALF_COLUMNS


def _fold(tile: PhysicalTile) -> int:
    """Position of a tile's column along the folded line, 0 .. 7."""
    column = tiles.column(tile)
    return column if column < _HALF_COLUMNS else COLUMNS - 1 - column


def _in_row(table: Int64Array, sources: IntegerArray, destinations: IntegerArray) -> Int64Array:
    """Entries of a table of one row's tiles at the columns and lanes of pairs, broadcast."""
    here, there = (check_tiles(numbers) % TILES_PER_ROW for numbers in (sources, destinations))
    return table.reshape(-1)[here * TILES_PER_ROW + there]


@functools.cache
def _displacements_in_row() -> Int64Array:
    table = np.empty((TILES_PER_ROW, TILES_PER_ROW), dtype=np.int64)
    for source, destination in np.ndindex(table.shape):
        table[source, destination] = displacement(PhysicalTile(source), PhysicalTile(destination))
    table.flags.writeable = False
    return table


@functools.cache
def _times_in_row() -> Int64Array:
    table = np.empty((TILES_PER_ROW, TILES_PER_ROW), dtype=np.int64)
    for source, destination in np.ndindex(table.shape):
        table[source, destination] = time_to_mux(PhysicalTile(source), PhysicalTile(destination))
    table.flags.writeable = False
    return table
