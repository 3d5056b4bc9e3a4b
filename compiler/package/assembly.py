"""Words of many tiles, written side by side.

A tile has its own code, but tiles differ in operands far more than in instructions. An :class:`Assembly`
therefore takes one construct for many tiles at once: a prepared template with a column of values for each
slot, or words of different lengths in CSR form. Each tile has a cursor in each *area* (its program, its host
programs, its tables, its rows), so that the order of calls is the order of the words of every tile.

The start of each area on each tile is given from the beginning, and a reference never points forward within
an area. Thus one pass with any bases says how long everything is, and the same pass with the real ones emits
it: sizing and emission are one code (EC-17).

Tiles are logical here. Cost: a few array operations for each construct; nothing is done tile by tile.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.isa.template import Column, Template
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import WORD_BYTES, Int64Array

WordArray: TypeAlias = npt.NDArray[np.uint32]

_ROW_ALIGNMENT_WORDS: Final = 2


class Area(IntEnum):
    """Parts of a tile's support memory that are filled word by word."""

    PROGRAM = 0
    """The tile program."""
    HOST = 1
    """Programs of host batches, each ending with a return."""
    TABLES = 2
    """What routines read: descriptors, packets, patches."""
    ROWS = 3
    """Exchange rows, each on an 8-byte boundary."""
    SAMPLES = 4
    """Where a profiled program leaves its clock at every step; zero before."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bases:
    """Where each area of each tile begins.

    Args:
        address: [areas, tiles] byte addresses, multiples of 8 where there is code, else of 4.
    """

    address: Int64Array

    def __post_init__(self) -> None:
        """One address for every area and tile, aligned."""
        if self.address.shape != (len(Area), TILE_COUNT):
            raise ValueError(f"bases of shape {self.address.shape}, not {(len(Area), TILE_COUNT)}")
        for area in Area:
            is_data = area in (Area.TABLES, Area.SAMPLES)
            boundary = WORD_BYTES if is_data else _ROW_ALIGNMENT_WORDS * WORD_BYTES
            if (self.address[area] % boundary).any():
                raise ValueError(f"area {area.name} does not start at a multiple of {boundary}")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stream:
    """The words of one area.

    Args:
        first: [tiles + 1] where each tile's words begin in ``words``.
        words: the words of tile after tile.
    """

    first: Int64Array
    words: WordArray

    def of(self, tile: int) -> WordArray:
        """The words of one tile."""
        return self.words[int(self.first[tile]) : int(self.first[tile + 1])]

    @property
    def sizes(self) -> Int64Array:
        """Bytes of each tile [tiles]."""
        return np.diff(self.first) * WORD_BYTES


@final
class Assembly:
    """Collects the words of all tiles. See the module."""

    def __init__(self, bases: Bases) -> None:
        self._bases: Final = bases.address
        self._cursors: Final = np.zeros((len(Area), TILE_COUNT), dtype=np.int64)
        # (tiles, their cursors in words, word counts, words) of each construct.
        self._pieces: Final[dict[Area, list[tuple[Int64Array, Int64Array, Int64Array, WordArray]]]] = {
            area: [] for area in Area
        }

    def here(self, area: Area, tiles: Int64Array) -> Int64Array:
        """Byte address [tiles] of the next word of each tile."""
        return self._bases[area, tiles] + WORD_BYTES * self._cursors[area, tiles]

    def fill(self, area: Area, template: Template, tiles: Int64Array, columns: Mapping[str, Column]) -> None:
        """Append a template on some tiles.

        Args:
            area: where.
            template: the words.
            tiles: distinct tiles.
            columns: for each slot one value for all tiles, or one for each.

        Raises:
            ValueError: a value does not fit its slot.
        """
        words = template.fill(columns, len(tiles))
        counts = np.full(len(tiles), words.shape[1], dtype=np.int64)
        self.append(area, tiles, counts, words.reshape(-1))

    def append(self, area: Area, tiles: Int64Array, counts: Int64Array, words: WordArray) -> Int64Array:
        """Append words on some tiles.

        Args:
            area: where.
            tiles: distinct tiles.
            counts: words of each.
            words: the words of tile after tile.

        Returns:
            Byte address [tiles] of the first word of each.
        """
        start = self._cursors[area, tiles]
        self._pieces[area].append((tiles, start, counts, words))
        self._cursors[area, tiles] = start + counts
        return self._bases[area, tiles] + WORD_BYTES * start

    def stream(self, area: Area) -> Stream:
        """All words of an area."""
        first = np.zeros(TILE_COUNT + 1, dtype=np.int64)
        np.cumsum(self._cursors[area], out=first[1:])
        words = np.zeros(int(first[-1]), dtype=np.uint32)
        for tiles, start, counts, piece in self._pieces[area]:
            words[spread(first[tiles] + start, counts)] = piece
        words.flags.writeable = False
        return Stream(first=first, words=words)


def spread(starts: Int64Array, counts: Int64Array) -> Int64Array:
    """``starts[i], starts[i] + 1, ...`` of ``counts[i]`` numbers, one run after the other."""
    ends = np.cumsum(counts)
    within = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64) - np.repeat(ends - counts, counts)
    return np.repeat(starts, counts) + within
