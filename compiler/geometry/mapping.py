"""Coordinate mappings: which source coordinate each destination coordinate reads.

A mapping covers identity, broadcast, transpose, axis split and merge, windows, and those compositions of them
that can be represented. It speaks of coordinates only: element orders, bytes and owners are laid over it by
others.

**Representation.** Each destination axis is a mixed-radix number: a list of *digits*, most significant first.
A digit either steps along one source axis with a fixed stride or repeats the same source coordinate, and a
source coordinate is::

    source[j] = offset[j] + sum of stride * value over the digits that step along source axis j

so the digits' extents are an iteration space in which every source coordinate moves by constants, which is
what a byte traversal needs. Digits of one source axis never overlap: ordered by stride, each stride exceeds
the reach of all smaller ones together. Mappings of the supported kinds obey that by nature; what is given up
is overlapping windows (convolution) and reversal, which no supported operation has. It makes "reads every
coordinate at most once" the same as "repeats nothing" and images products of strided sets.

**Canonical form.** Digits of extent 1 are dropped and a digit that continues its less significant neighbour
is merged into it. What remains depends on the coordinate function alone, so equal functions compare and hash
equal. Reason: walk one axis and let D(n) be the change of the source from position n - 1 to n. A place value
r separates digits that cannot be merged exactly when D(r) differs from D at the previous place value. So the
smallest place value is the smallest n with D(n) != D(1), the next one is the smallest multiple of it that
differs again, and so on: the places can be read off the function, and the strides with them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

Shape: TypeAlias = tuple[int, ...]
"""Elements per axis, outermost first; each at least 1."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NotRepresentable:
    """The function exists but is not a :class:`CoordinateMapping`.

    Args:
        reason: which axis, with the extents that do not fit.
    """

    reason: str

    def __str__(self) -> str:
        """The reason, marked as a refusal."""
        return f"not representable: {self.reason}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Digit:
    """One digit of a destination axis.

    Args:
        extent: number of values, 0 to ``extent - 1``.
        axis: source axis that it steps along, or None when every value reads the same source coordinate.
        stride: source coordinates per step; at least 1 with an axis, 0 without.

    Raises:
        ValueError: an extent, axis or stride that cannot exist.
    """

    extent: int
    axis: int | None
    stride: int

    def __post_init__(self) -> None:
        if self.extent < 1:
            raise ValueError(f"a digit needs an extent of at least 1, not {self.extent}")
        if self.axis is None:
            if self.stride != 0:
                raise ValueError(f"a digit without a source axis has stride 0, not {self.stride}")
        elif self.axis < 0:
            raise ValueError(f"a source axis is numbered from 0, not {self.axis}")
        elif self.stride < 1:
            raise ValueError(
                f"a digit along source axis {self.axis} needs a stride of at least 1, not {self.stride}"
            )

    @property
    def reach(self) -> int:
        """Source coordinates between its first and its last value."""
        return self.stride * (self.extent - 1)


def check_shape(shape: Sequence[int], name: str) -> None:
    """Require at least one element on every axis.

    Args:
        shape: elements per axis.
        name: what the shape belongs to, for the message.

    Raises:
        ValueError: an extent below 1.
    """
    for axis, extent in enumerate(shape):
        if extent < 1:
            raise ValueError(
                f"{name} shape {text_of_shape(shape)}: axis {axis} has extent {extent}, not at least 1"
            )


def text_of_shape(shape: Iterable[int]) -> str:
    """``[2,3]``."""
    return f"[{','.join(map(str, shape))}]"


def place_values(digits: Sequence[Digit]) -> tuple[int, ...]:
    """Positions of the destination axis per step of each digit, in the order of ``digits``."""
    values: list[int] = []
    place = 1
    for digit in reversed(digits):
        values.append(place)
        place *= digit.extent
    return tuple(reversed(values))


def overlap(digits: Iterable[Digit]) -> str | None:
    """The first pair of overlapping digits in words, or None.

    Args:
        digits: digits of all destination axes of one mapping.
    """
    reach: dict[int, int] = {}
    for digit in sorted(digits, key=lambda digit: digit.stride):
        if digit.axis is None or digit.extent == 1:
            continue
        below = reach.get(digit.axis, 0)
        if digit.stride <= below:
            return (
                f"source axis {digit.axis}: {digit.extent} steps of {digit.stride} overlap finer steps, "
                f"which together reach {below}"
            )
        reach[digit.axis] = below + digit.reach
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateMapping:
    """A function from every coordinate of a destination shape to a coordinate of a source shape.

    The constructor brings ``digits`` to canonical form; two mappings are equal exactly when source shape,
    destination shape and coordinate function are equal.

    Args:
        source_shape: extents of the source.
        offsets: per source axis, the coordinate read by destination coordinate (0, ..., 0).
        digits: per destination axis, its digits, most significant first. The extent of the axis is the
            product of the digits' extents; an axis of extent 1 has none.

    Raises:
        ValueError: a coordinate would fall outside the source, digits overlap, or ranks do not agree.
    """

    source_shape: Shape
    offsets: tuple[int, ...]
    digits: tuple[tuple[Digit, ...], ...]

    def __post_init__(self) -> None:
        check_shape(self.source_shape, "source")
        rank = len(self.source_shape)
        if len(self.offsets) != rank:
            raise ValueError(f"{len(self.offsets)} offsets for a source of rank {rank}")
        for digit in (digit for axis in self.digits for digit in axis):
            if digit.axis is not None and digit.axis >= rank:
                raise ValueError(f"a digit steps along source axis {digit.axis} of a source of rank {rank}")
        object.__setattr__(self, "digits", tuple(_canonical(axis) for axis in self.digits))
        every = [digit for axis in self.digits for digit in axis]
        fault = overlap(every)
        if fault is not None:
            raise ValueError(fault)
        for axis, (offset, extent) in enumerate(zip(self.offsets, self.source_shape, strict=True)):
            last = offset + sum(digit.reach for digit in every if digit.axis == axis)
            if offset < 0 or last >= extent:
                raise ValueError(
                    f"source axis {axis}: coordinates {offset} to {last} leave its extent of {extent}"
                )

    @property
    def destination_shape(self) -> Shape:
        """Extents of the destination."""
        return tuple(math.prod(digit.extent for digit in axis) for axis in self.digits)

    @property
    def is_injective(self) -> bool:
        """Whether no source coordinate is read twice."""
        return all(digit.axis is not None for axis in self.digits for digit in axis)

    @property
    def is_bijective(self) -> bool:
        """Whether every source coordinate is read exactly once."""
        return self.is_injective and math.prod(self.destination_shape) == math.prod(self.source_shape)

    @property
    def is_identity(self) -> bool:
        """Whether every coordinate reads itself."""
        return self == identity(self.source_shape)

    @property
    def broadcast_axes(self) -> tuple[int, ...]:
        """Destination axes with more than one coordinate, all of which read the same source coordinate."""
        return tuple(
            axis
            for axis, digits in enumerate(self.digits)
            if digits and all(digit.axis is None for digit in digits)
        )

    def source_of(self, coordinate: Sequence[int]) -> tuple[int, ...]:
        """The source coordinate that one destination coordinate reads.

        Raises:
            ValueError: the coordinate is not one of the destination.
        """
        shape = self.destination_shape
        if len(coordinate) != len(shape) or not all(
            0 <= c < e for c, e in zip(coordinate, shape, strict=True)
        ):
            raise ValueError(
                f"coordinate {tuple(coordinate)} is outside the destination {text_of_shape(shape)}"
            )
        source = list(self.offsets)
        for value, digits in zip(coordinate, self.digits, strict=True):
            for digit, place in zip(digits, place_values(digits), strict=True):
                if digit.axis is not None:
                    source[digit.axis] += digit.stride * (value // place % digit.extent)
        return tuple(source)

    def sources_of(self, coordinates: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The source coordinates of many destination coordinates.

        Args:
            coordinates: shape (..., destination rank).

        Returns:
            Shape (..., source rank).

        Raises:
            ValueError: a coordinate is not one of the destination.
        """
        shape = self.destination_shape
        if coordinates.ndim < 1 or coordinates.shape[-1] != len(shape):
            raise ValueError(
                f"coordinates of shape {coordinates.shape} for a destination of rank {len(shape)}"
            )
        if bool(np.any((coordinates < 0) | (coordinates >= np.asarray(shape, dtype=np.int64)))):
            raise ValueError(f"a coordinate is outside the destination {text_of_shape(shape)}")
        sources = np.empty((*coordinates.shape[:-1], len(self.offsets)), dtype=np.int64)
        sources[...] = np.asarray(self.offsets, dtype=np.int64)
        for axis, digits in enumerate(self.digits):
            for digit, place in zip(digits, place_values(digits), strict=True):
                if digit.axis is not None:
                    sources[..., digit.axis] += digit.stride * (
                        coordinates[..., axis] // place % digit.extent
                    )
        return sources

    def inverse(self) -> "CoordinateMapping | NotRepresentable":
        """The mapping from source to destination, where this one is a bijection.

        On a bijection the digits of a source axis, ordered by stride, are exactly its mixed-radix digits, so
        the inverse of a bijection is always representable.
        """
        if not self.is_injective:
            axis = next(
                axis for axis, digits in enumerate(self.digits) if any(d.axis is None for d in digits)
            )
            extent = self.destination_shape[axis]
            return NotRepresentable(
                reason=f"destination axis {axis} (extent {extent}) repeats source coordinates"
            )
        if not self.is_bijective:
            read = math.prod(self.destination_shape)
            whole = math.prod(self.source_shape)
            shape = text_of_shape(self.source_shape)
            return NotRepresentable(
                reason=f"only {read} of the {whole} coordinates of the source {shape} are read"
            )
        reading: list[list[tuple[int, Digit]]] = [[] for _ in self.source_shape]
        for axis, digits in enumerate(self.digits):
            for digit, place in zip(digits, place_values(digits), strict=True):
                if digit.axis is not None:
                    reading[digit.axis].append(
                        (digit.stride, Digit(extent=digit.extent, axis=axis, stride=place))
                    )
        return CoordinateMapping(
            source_shape=self.destination_shape,
            offsets=(0,) * len(self.digits),
            digits=tuple(
                tuple(digit for _, digit in sorted(axis, key=lambda entry: -entry[0])) for axis in reading
            ),
        )

    def __str__(self) -> str:
        """``[4,2*3]->[6,8] (3*d1.0+d1.1, 1+d0)``.

        The destination with the digits of each axis, then the source, then each source coordinate in terms of
        the destination's: ``d1.0`` is the most significant digit of destination axis 1, ``d0`` the only digit
        of axis 0. A digit that appears nowhere repeats.
        """
        terms: list[list[str]] = [[str(offset)] if offset else [] for offset in self.offsets]
        for axis, digits in enumerate(self.digits):
            for position, digit in enumerate(digits):
                if digit.axis is not None:
                    name = f"d{axis}" if len(digits) == 1 else f"d{axis}.{position}"
                    terms[digit.axis].append(name if digit.stride == 1 else f"{digit.stride}*{name}")
        factors = ("*".join(str(digit.extent) for digit in digits) or "1" for digits in self.digits)
        sources = ", ".join("+".join(axis) or "0" for axis in terms)
        return f"[{','.join(factors)}]->{text_of_shape(self.source_shape)} ({sources})"


Composition: TypeAlias = CoordinateMapping | NotRepresentable
"""What a partial construction of a mapping returns: the mapping, or why there is none."""


def identity(shape: Sequence[int]) -> CoordinateMapping:
    """The mapping in which every coordinate of ``shape`` reads itself.

    Raises:
        ValueError: an extent below 1.
    """
    check_shape(shape, "source")
    return CoordinateMapping(
        source_shape=tuple(shape),
        offsets=(0,) * len(shape),
        digits=tuple((Digit(extent=extent, axis=axis, stride=1),) for axis, extent in enumerate(shape)),
    )


def _canonical(digits: Sequence[Digit]) -> tuple[Digit, ...]:
    """Digits of one axis without extents of 1, each merged into the finer neighbour that it continues."""
    finest_first: list[Digit] = []
    for digit in reversed(digits):
        if digit.extent == 1:
            continue
        if finest_first:
            finer = finest_first[-1]
            if digit.axis == finer.axis and digit.stride == finer.stride * finer.extent:
                extent = finer.extent * digit.extent
                finest_first[-1] = Digit(extent=extent, axis=finer.axis, stride=finer.stride)
                continue
        finest_first.append(digit)
    return tuple(reversed(finest_first))
