"""Matching two storages over one iteration space: the runs that a copy moves, both sides together.

Facts only. Whether a run is sent, copied by a core or packed first is decided elsewhere.
"""

from dataclasses import dataclass
from math import gcd
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.geometry.iteration import IterationSpace
from compiler.geometry.nests import Side, address_nests
from compiler.geometry.order import IndexMap
from compiler.geometry.traversal import Loops, loops_of

DESTINATION = 0
"""Position of the destination among the two addresses of a matched piece."""
SOURCE = 1
"""Position of the source."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Disjoint pieces with two addresses (DESTINATION, SOURCE) that cover a space exactly once.

    A run is contiguous on both sides and no loop of its piece continues it; every destination byte lies in
    one run. The last run of a loop may still touch the first of the next round, as where the drain sequence
    of an AMP output wraps into the following group of columns.
    """

    pieces: tuple[Loops, ...]

    @property
    def run_count(self) -> int:
        """Runs, without enumerating them."""
        return sum(piece.run_count for piece in self.pieces)

    @property
    def byte_count(self) -> int:
        """Bytes written at the destination."""
        return sum(piece.run_bytes * piece.run_count for piece in self.pieces)

    @property
    def alignment(self) -> int:
        """Largest number of bytes that divides every offset and run length on both sides; 0 without runs."""
        return gcd(*(piece.alignment for piece in self.pieces))

    def rebased(self, *, destination: int, source: int) -> "Match":
        """The match with ``destination`` and ``source`` bytes added to its addresses."""
        return Match(pieces=tuple(piece.moved(destination, source) for piece in self.pieces))

    def runs(self) -> "Runs":
        """Every run, piece after piece."""
        empty = np.empty(0, dtype=np.int64)
        return Runs(
            destination=np.concatenate([empty, *(piece.offsets(DESTINATION) for piece in self.pieces)]),
            source=np.concatenate([empty, *(piece.offsets(SOURCE) for piece in self.pieces)]),
            byte_counts=np.concatenate(
                [empty, *(np.full(piece.run_count, piece.run_bytes, dtype=np.int64) for piece in self.pieces)]
            ),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Runs:
    """Runs as columns of bytes: offset at the destination, offset at the source, length."""

    destination: npt.NDArray[np.int64]
    source: npt.NDArray[np.int64]
    byte_counts: npt.NDArray[np.int64]


def match(*, space: IterationSpace, destination: IndexMap, source: IndexMap, element_bytes: int) -> Match:
    """The runs that copy every point of ``space`` from ``source`` to ``destination`` storage.

    Raises:
        ValueError: a coordinate leaves its storage.
    """
    sides = (
        Side(storage=destination, coordinates=space.destination),
        Side(storage=source, coordinates=space.source),
    )
    if all(space.extents):
        for name, side in zip(("destination", "source"), sides, strict=True):
            last = [extent - 1 for extent in space.extents]
            for form, extent in zip(side.coordinates, side.storage.extents, strict=True):
                if form.base < 0 or form.at(last) >= extent:
                    raise ValueError(
                        f"{name} coordinates {form.base} .. {form.at(last)} leave extents "
                        f"{side.storage.extents}"
                    )
    return Match(pieces=tuple(loops_of(nest, element_bytes) for nest in address_nests(space.extents, sides)))
