"""Rectangular regions of coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A rectangular set of coordinates, possibly empty.

    Args:
        bounds: per axis (start, stop), the stop excluded.

    Raises:
        ValueError: a stop lies before its start.
    """

    bounds: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        for axis, (start, stop) in enumerate(self.bounds):
            if stop < start:
                raise ValueError(f"axis {axis}: a region from {start} cannot stop before it, at {stop}")

    @staticmethod
    def of_extents(extents: Sequence[int]) -> "Region":
        """The region of a whole tensor."""
        return Region(bounds=tuple((0, extent) for extent in extents))

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.bounds)

    @property
    def starts(self) -> tuple[int, ...]:
        """The least coordinate."""
        return tuple(start for start, _ in self.bounds)

    @property
    def stops(self) -> tuple[int, ...]:
        """One past the last coordinate of each axis."""
        return tuple(stop for _, stop in self.bounds)

    @property
    def extents(self) -> tuple[int, ...]:
        """Coordinates along each axis."""
        return tuple(stop - start for start, stop in self.bounds)

    @property
    def volume(self) -> int:
        """Number of coordinates; one for rank 0."""
        return prod(self.extents)

    @property
    def is_empty(self) -> bool:
        """Whether no coordinate lies inside."""
        return self.volume == 0

    def contains(self, other: "Region") -> bool:
        """Whether every coordinate of ``other`` lies inside."""
        return other.is_empty or self.intersect(other) == other

    def intersect(self, other: "Region") -> "Region":
        """The common coordinates; an empty region where there are none."""
        bounds: list[tuple[int, int]] = []
        for (start, stop), (other_start, other_stop) in zip(self.bounds, other.bounds, strict=True):
            common = max(start, other_start)
            bounds.append((common, max(common, min(stop, other_stop))))
        return Region(bounds=tuple(bounds))

    def shift(self, offsets: Sequence[int]) -> "Region":
        """The region moved by ``offsets``."""
        return Region(
            bounds=tuple(
                (start + offset, stop + offset)
                for (start, stop), offset in zip(self.bounds, offsets, strict=True)
            )
        )

    def subtract(self, other: "Region") -> tuple["Region", ...]:
        """Disjoint regions that hold the coordinates of this one outside ``other``: at most two per axis."""
        common = self.intersect(other)
        if common.is_empty:
            return () if self.is_empty else (self,)
        pieces: list[Region] = []
        left = list(self.bounds)
        for axis, (start, stop) in enumerate(common.bounds):
            pieces.extend(
                Region(bounds=(*left[:axis], side, *left[axis + 1 :]))
                for side in ((left[axis][0], start), (stop, left[axis][1]))
                if side[0] < side[1]
            )
            left[axis] = (start, stop)
        return tuple(pieces)
