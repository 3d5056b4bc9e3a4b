"""Symbolic byte traversals: which bytes of its storage a region of a local tensor occupies.

A traversal is a few affine pieces, each a run of contiguous bytes repeated over loops with byte strides. A
region that cuts panels or blocks falls into pieces at those cuts; one that does not is a single piece. Pieces
are disjoint and cover the region's bytes exactly, because element orders are bijections. No loop of a piece
continues its runs; runs of different pieces, or of different rounds of a loop, may touch, and
:meth:`Traversal.spans` joins those.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import gcd, prod
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.geometry.iteration import unit_forms
from compiler.geometry.nests import Nest, Side, address_nests, fuse
from compiler.geometry.order import IndexMap
from compiler.geometry.region import Region


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """A run of bytes repeated over loops, for one or more addresses that move together.

    Args:
        run_bytes: contiguous bytes at every address.
        bases: first byte at each address, of the first run.
        counts: iterations of each loop, more than one, slowest first.
        strides: per loop, the bytes by which each address moves.
    """

    run_bytes: int
    bases: tuple[int, ...]
    counts: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]

    @property
    def run_count(self) -> int:
        """Number of runs."""
        return prod(self.counts)

    @property
    def alignment(self) -> int:
        """Largest number of bytes that divides every address and the run length."""
        return gcd(self.run_bytes, *self.bases, *(step for steps in self.strides for step in steps))

    def moved(self, *distances: int) -> "Loops":
        """The same runs with bytes added to each address."""
        return Loops(
            run_bytes=self.run_bytes,
            bases=tuple(base + distance for base, distance in zip(self.bases, distances, strict=True)),
            counts=self.counts,
            strides=self.strides,
        )

    def offsets(self, address: int) -> npt.NDArray[np.int64]:
        """First byte of each run [run_count] at one of the addresses, slowest loop first."""
        offsets = np.full(1, self.bases[address], dtype=np.int64)
        for count, steps in zip(self.counts, self.strides, strict=True):
            loop = np.arange(count, dtype=np.int64) * steps[address]
            offsets = (offsets[:, None] + loop).reshape(-1)
        return offsets


def loops_of(nest: Nest, element_bytes: int) -> Loops:
    """The byte loops of a nest of element indices, with the longest runs contiguous at every address."""
    loops = [
        (count, tuple(form[loop + 1] * element_bytes for form in nest.forms))
        for loop, count in enumerate(nest.counts)
    ]
    run_bytes = element_bytes
    while True:
        next_loop = next((loop for loop in loops if all(step == run_bytes for step in loop[1])), None)
        if next_loop is None:
            break
        loops.remove(next_loop)
        run_bytes *= next_loop[0]
    ordered = sorted(fuse(loops), key=lambda loop: loop[1], reverse=True)
    return Loops(
        run_bytes=run_bytes,
        bases=tuple(form[0] * element_bytes for form in nest.forms),
        counts=tuple(count for count, _ in ordered),
        strides=tuple(steps for _, steps in ordered),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Traversal:
    """The bytes of a region, as disjoint pieces with one address each, relative to the storage."""

    pieces: tuple[Loops, ...]

    @property
    def byte_count(self) -> int:
        """Bytes covered; exact."""
        return sum(piece.run_bytes * piece.run_count for piece in self.pieces)

    @property
    def run_count(self) -> int:
        """Contiguous runs over all pieces."""
        return sum(piece.run_count for piece in self.pieces)

    @property
    def alignment(self) -> int:
        """Largest number of bytes that divides every run's offset and length; 0 when there is none."""
        return gcd(*(piece.alignment for piece in self.pieces))

    @property
    def extent(self) -> tuple[int, int]:
        """First byte and one past the last; (0, 0) when there is none."""
        if not self.pieces:
            return (0, 0)
        return (
            min(piece.bases[0] for piece in self.pieces),
            max(
                piece.bases[0]
                + sum(
                    (count - 1) * steps[0] for count, steps in zip(piece.counts, piece.strides, strict=True)
                )
                + piece.run_bytes
                for piece in self.pieces
            ),
        )

    @property
    def is_contiguous(self) -> bool:
        """Whether the bytes are one gapless span."""
        start, stop = self.extent
        return stop - start == self.byte_count

    def runs(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(offset, bytes) of every run, piece after piece."""
        return (
            _concatenated(piece.offsets(0) for piece in self.pieces),
            _concatenated(np.full(piece.run_count, piece.run_bytes, dtype=np.int64) for piece in self.pieces),
        )

    def spans(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(start, stop) of the maximal contiguous spans, ascending."""
        starts, lengths = self.runs()
        ascending = np.argsort(starts, kind="stable")
        starts, stops = starts[ascending], starts[ascending] + lengths[ascending]
        first = np.ones(len(starts), dtype=np.bool_)
        first[1:] = starts[1:] != stops[:-1]
        return starts[first], stops[np.roll(first, -1)]

    def gaps(self, byte_count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(start, stop) of what the traversal leaves out of a storage of ``byte_count`` bytes, ascending."""
        starts, stops = self.spans()
        before = np.concatenate([np.zeros(1, dtype=np.int64), stops])
        after = np.concatenate([starts, np.full(1, byte_count, dtype=np.int64)])
        return before[before < after], after[before < after]


def traverse(storage: IndexMap, region: Region, element_bytes: int) -> Traversal:
    """The bytes of ``region``, given in coordinates of ``storage``.

    Raises:
        ValueError: the region leaves the storage.
    """
    if not Region.of_extents(storage.extents).contains(region):
        raise ValueError(f"region {region.bounds} leaves storage of extents {storage.extents}")
    side = Side(storage=storage, coordinates=unit_forms(region.starts))
    return Traversal(
        pieces=tuple(loops_of(nest, element_bytes) for nest in address_nests(region.extents, (side,)))
    )


def traverse_outside(storage: IndexMap, logical: Region, element_bytes: int) -> Traversal:
    """The padding holes: the bytes of ``storage`` that hold no coordinate of ``logical``."""
    return Traversal(
        pieces=tuple(
            piece
            for hole in Region.of_extents(storage.extents).subtract(logical)
            for piece in traverse(storage, hole, element_bytes).pieces
        )
    )


def _concatenated(parts: Iterable[npt.NDArray[np.int64]]) -> npt.NDArray[np.int64]:
    arrays = list(parts)
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
