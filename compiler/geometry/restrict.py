"""What a coordinate mapping does on a part of its destination.

Inputs are a mapping and a region of its destination. :func:`restrict` returns the mapping on that region as
pieces, each a mapping over a sub-region; together they cover the region exactly and never overlap. One piece
is not always enough: a region that starts or ends inside a block of a coarse digit leaves a part of a block
on either side of the whole ones, and each is a piece of its own, at most ``2 * digits - 1`` per axis.
:func:`images` says which source coordinates a region reads, exactly and without listing them.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from compiler.geometry.mapping import CoordinateMapping, Digit, Shape, text_of_shape
from compiler.geometry.region import Region


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A mapping that defines a rectangular part of a destination.

    Args:
        destination: the part.
        mapping: from coordinates inside the part, counted from its starts, to source coordinates.

    Raises:
        ValueError: the part has other extents than the mapping's destination.
    """

    destination: Region
    mapping: CoordinateMapping

    def __post_init__(self) -> None:
        if self.destination.extents != self.mapping.destination_shape:
            raise ValueError(
                f"a part of extents {text_of_shape(self.destination.extents)} defined by a mapping of "
                f"{text_of_shape(self.mapping.destination_shape)}"
            )

    def source_of(self, coordinate: Sequence[int]) -> tuple[int, ...]:
        """The source coordinate that a coordinate of the whole destination reads.

        Raises:
            ValueError: the coordinate is outside the part.
        """
        return self.mapping.source_of(
            [c - start for c, start in zip(coordinate, self.destination.starts, strict=True)]
        )

    def restrict(self, region: Region) -> tuple["Piece", ...]:
        """The part of this piece inside a region of the whole destination; none when they do not meet."""
        common = self.destination.intersect(region)
        if common.is_empty:
            return ()
        starts = self.destination.starts
        return tuple(
            Piece(destination=piece.destination.shift(starts), mapping=piece.mapping)
            for piece in restrict(self.mapping, common.shift([-start for start in starts]))
        )

    def __str__(self) -> str:
        """``[0:4,8:16] <- [4,8]->[4,8] (d0, d1)``."""
        return f"[{','.join(f'{start}:{stop}' for start, stop in self.destination.bounds)}] <- {self.mapping}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Progression:
    """Coordinates ``start + sum of stride * value`` on one axis, ``value`` from 0 to ``count - 1`` per term.

    Args:
        start: the lowest coordinate.
        terms: (count, stride), coarsest first, each count at least 2. A stride exceeds the reach of all finer
            terms and does not merely continue the next finer one, so equal sets compare equal.

    Raises:
        ValueError: a negative start, or terms that break these rules.
    """

    start: int
    terms: tuple[tuple[int, int], ...]

    def __post_init__(self) -> None:
        if self.start < 0:
            raise ValueError(f"a coordinate cannot be negative: {self.start}")
        reach, continuing = 0, 0
        for count, stride in reversed(self.terms):
            if count < 2 or stride <= reach or stride == continuing:
                raise ValueError(f"terms {self.terms}: {count} steps of {stride} after a reach of {reach}")
            reach, continuing = reach + stride * (count - 1), stride * count

    @property
    def stop(self) -> int:
        """One past the highest coordinate."""
        return self.start + sum(stride * (count - 1) for count, stride in self.terms) + 1

    @property
    def count(self) -> int:
        """Number of coordinates."""
        return math.prod(count for count, _ in self.terms)

    @property
    def is_interval(self) -> bool:
        """Whether no coordinate is left out between the lowest and the highest."""
        return self.count == self.stop - self.start

    def coordinates(self) -> list[int]:
        """Every coordinate, ascending."""
        values = itertools.product(*(range(0, stride * count, stride) for count, stride in self.terms))
        return [self.start + sum(value) for value in values]

    def __str__(self) -> str:
        """``3``, ``3:9`` for an interval, ``3+2x8+4x1`` for two groups of four, 8 apart."""
        if self.count == 1:
            return str(self.start)
        if self.is_interval:
            return f"{self.start}:{self.stop}"
        return "+".join([str(self.start), *(f"{count}x{stride}" for count, stride in self.terms)])


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Image:
    """Source coordinates: every combination of one coordinate from each axis.

    Args:
        axes: the coordinates per source axis.
    """

    axes: tuple[Progression, ...]

    @property
    def hull(self) -> Region:
        """The smallest region that holds the image."""
        return Region(bounds=tuple((axis.start, axis.stop) for axis in self.axes))

    @property
    def is_box(self) -> bool:
        """Whether the image is its hull."""
        return all(axis.is_interval for axis in self.axes)

    @property
    def count(self) -> int:
        """Number of source coordinates."""
        return math.prod(axis.count for axis in self.axes)

    def __str__(self) -> str:
        """``[3:9,0+2x8]``."""
        return f"[{','.join(map(str, self.axes))}]"


def restrict(mapping: CoordinateMapping, region: Region) -> tuple[Piece, ...]:
    """The mapping on a region of its destination.

    Args:
        mapping: the whole mapping.
        region: of at least one coordinate.

    Returns:
        Pieces in row-major sequence of their starts. They cover the region exactly, without overlap.

    Raises:
        ValueError: the region is empty or leaves the destination.
    """
    check_region(region, mapping.destination_shape)
    axes = [
        _cut(digits, start, stop) for digits, (start, stop) in zip(mapping.digits, region.bounds, strict=True)
    ]
    pieces: list[Piece] = []
    for runs in itertools.product(*axes):
        offsets = list(mapping.offsets)
        for run in runs:
            for axis, offset in run.offsets:
                offsets[axis] += offset
        part = Region(bounds=tuple((run.start, run.stop) for run in runs))
        restricted = CoordinateMapping(
            source_shape=mapping.source_shape,
            offsets=tuple(offsets),
            digits=tuple(run.digits for run in runs),
        )
        pieces.append(Piece(destination=part, mapping=restricted))
    return tuple(pieces)


def images(mapping: CoordinateMapping, region: Region) -> tuple[Image, ...]:
    """The source coordinates that a region of the destination reads.

    Returns:
        One image per piece of the restriction, without repetitions, in the pieces' sequence. Their union is
        exact. They are disjoint unless the mapping repeats source coordinates.

    Raises:
        ValueError: the region is empty or leaves the destination.
    """
    return tuple(dict.fromkeys(_image(piece.mapping) for piece in restrict(mapping, region)))


def check_region(region: Region, shape: Shape) -> None:
    """Require a region of at least one coordinate inside a shape.

    Raises:
        ValueError: another rank, an empty axis, or bounds that leave the shape.
    """
    if region.rank != len(shape):
        raise ValueError(f"a region of rank {region.rank} in a shape of rank {len(shape)}")
    for axis, ((start, stop), extent) in enumerate(zip(region.bounds, shape, strict=True)):
        if not (start >= 0 and start < stop <= extent):
            raise ValueError(f"axis {axis}: {start}:{stop} is empty or leaves its extent of {extent}")


@final
@dataclass(frozen=True, slots=True)
class _Run:
    """A part [start, stop) of a destination axis with whole digits; offsets are (source axis, offset)."""

    start: int
    stop: int
    offsets: tuple[tuple[int, int], ...]
    digits: tuple[Digit, ...]

    def after(self, digit: Digit, value: int, block: int) -> "_Run":
        """The same run inside block number ``value`` of a coarser digit."""
        offsets = self.offsets if digit.axis is None else ((digit.axis, digit.stride * value), *self.offsets)
        return _Run(self.start + value * block, self.stop + value * block, offsets, self.digits)


def _cut(digits: tuple[Digit, ...], start: int, stop: int) -> list[_Run]:
    """The fewest runs of whole digits, ascending, that make up [start, stop) of an axis."""
    if not digits:
        return [_Run(0, 1, (), ())]
    digit, finer = digits[0], digits[1:]
    block = math.prod(other.extent for other in finer)
    first, last = start // block, (stop - 1) // block
    if first == last:
        inside = _cut(finer, start - first * block, stop - first * block)
        return [run.after(digit, first, block) for run in inside]
    runs: list[_Run] = []
    if start % block:
        runs.extend(run.after(digit, first, block) for run in _cut(finer, start % block, block))
        first += 1
    whole = stop // block - first
    if whole:
        blocks = _Run(
            0, whole * block, (), (Digit(extent=whole, axis=digit.axis, stride=digit.stride), *finer)
        )
        runs.append(blocks.after(digit, first, block))
    if stop % block:
        runs.extend(run.after(digit, last, block) for run in _cut(finer, 0, stop % block))
    return runs


def _image(mapping: CoordinateMapping) -> Image:
    """Every source coordinate that a mapping reads; digits that repeat add nothing."""
    axes: list[Progression] = []
    for axis, offset in enumerate(mapping.offsets):
        terms: list[
            tuple[int, int]
        ] = []  # finest first; a term that continues the finer one is merged into it
        stepping = (digit for digits in mapping.digits for digit in digits if digit.axis == axis)
        for digit in sorted(stepping, key=lambda digit: digit.stride):
            if terms and digit.stride == terms[-1][0] * terms[-1][1]:
                terms[-1] = (terms[-1][0] * digit.extent, terms[-1][1])
            else:
                terms.append((digit.extent, digit.stride))
        axes.append(Progression(start=offset, terms=tuple(reversed(terms))))
    return Image(axes=tuple(axes))
