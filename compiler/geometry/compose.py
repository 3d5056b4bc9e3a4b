"""Composition of coordinate mappings: partial, never wrong.

**Problem.** ``outer`` maps a destination to a middle, ``inner`` maps the middle to a source. Position x of a
middle axis arrives as an affine form of outer digits, x = offset + sum of stride * digit, and ``inner`` takes
x apart again into its own digits, floor(x / place) mod extent. The composition is a mapping when every such
value is affine in outer digits again, after cutting outer digits into smaller ones where needed.

**Method.** Two exact steps for each middle axis, over the place values of ``inner`` on it:

1. *Cuts.* Along one outer digit, with the others at 0, floor((offset + stride * d) / place) grows by the same
   amount until it first deviates at some step n, which has a closed form. Nothing but a cut of the digit at n
   can make it affine (n is the smallest place value of the canonical form, see ``mapping``), so n must divide
   the extent; then the rest of the digit, in steps of n, is treated in the same way.
2. *Joint check.* Over the cut digits a floor is affine exactly when the remainder x - place * (affine form)
   stays within [0, place), and an affine remainder has its extremes at corners, so two sums decide.

The source coordinates are then sums of digit values, each an affine form. Last, a digit must step along one
source axis, forwards, without overlap; a window across the edge of a merged axis fails here.

**Limits.** A mapping that is returned is exact. A refusal is exact but for two coincidences, refused although
a form exists: floors at two place values whose deviations cancel, and, where ``inner`` repeats, digits
without common refinement that look affine through one floor. Callers keep the uncomposed work after a
refusal, which is always valid. A misaligned reshape ([6,6] merged and split to [4,9]) is no coincidence: its
function has no form over digits.

**Cost.** Digits times places, each with a number of steps logarithmic in the extent. Enumerating coordinates
was rejected: it is linear in tensor size; it remains as the oracle of the tests.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

from compiler.geometry.mapping import (
    Composition,
    CoordinateMapping,
    Digit,
    NotRepresentable,
    overlap,
    place_values,
    text_of_shape,
)

_Digits: TypeAlias = tuple[tuple[Digit, ...], ...]
"""Digits per destination axis, most significant first."""


def compose(outer: Composition, inner: Composition) -> Composition:
    """The mapping that reads ``inner`` at the coordinate that ``outer`` reads.

    Args:
        outer: from the destination to the middle.
        inner: from the middle to the source.

    Returns:
        The mapping from destination to source, or why it cannot be represented. A refusal passed in is
        returned as it is, the outer one first, so that chains need no checks between.

    Raises:
        ValueError: the source of ``outer`` is not the destination of ``inner``.
    """
    if isinstance(outer, NotRepresentable):
        return outer
    if isinstance(inner, NotRepresentable):
        return inner
    if outer.source_shape != inner.destination_shape:
        middle, expected = text_of_shape(outer.source_shape), text_of_shape(inner.destination_shape)
        raise ValueError(
            f"the outer mapping reads a value of shape {middle}, the inner one provides {expected}"
        )
    cut = _cut_digits(outer, inner)
    if isinstance(cut, NotRepresentable):
        return cut
    return _substitute(outer, inner, cut)


@final
@dataclass(frozen=True, slots=True)
class _Deviation:
    """A digit leaves its line after ``step`` of ``extent`` steps, and the one does not divide the other."""

    step: int
    extent: int


def _cut_digits(outer: CoordinateMapping, inner: CoordinateMapping) -> _Digits | NotRepresentable:
    """The digits of ``outer``, cut wherever ``inner`` carries from one of its digits into the next."""
    axes: list[tuple[Digit, ...]] = []
    for axis, digits in enumerate(outer.digits):
        cut_digits: list[Digit] = []
        for digit in digits:
            if digit.axis is None:
                cut_digits.append(digit)
                continue
            cuts: set[int] = set()
            for place in place_values(inner.digits[digit.axis])[:-1]:
                found = _cuts(outer.offsets[digit.axis], digit, place)
                if isinstance(found, _Deviation):
                    return _refusal(
                        outer,
                        axis,
                        digit,
                        f"leave its blocks of {place} after {found.step} of {found.extent} steps, "
                        f"and {found.step} does not divide {found.extent}",
                    )
                cuts.update(found)
            places = [1, *sorted(cuts), digit.extent]
            parts: list[Digit] = []
            for lower, upper in itertools.pairwise(places):
                if upper % lower:
                    return _refusal(
                        outer,
                        axis,
                        digit,
                        f"must be cut after {lower} and after {upper}, and {lower} does not divide {upper}",
                    )
                parts.append(Digit(extent=upper // lower, axis=digit.axis, stride=digit.stride * lower))
            cut_digits.extend(reversed(parts))
        axes.append(tuple(cut_digits))
    return tuple(axes)


def _cuts(offset: int, digit: Digit, place: int) -> list[int] | _Deviation:
    """Steps after which floor((offset + stride * d) / place) changes its slope along one digit, ascending."""
    cuts: list[int] = []
    remainder = offset % place
    done, stride, extent = 1, digit.stride, digit.extent
    while True:
        # The remainder drifts by a constant per step until it leaves [0, place).
        drift = stride - (remainder + stride) // place * place
        if drift > 0:
            step = -(-(place - remainder) // drift)
        elif drift < 0:
            step = remainder // -drift + 1
        else:
            return cuts
        if step >= extent:
            return cuts
        if extent % step:
            return _Deviation(step, extent)
        done, stride, extent = done * step, stride * step, extent // step
        cuts.append(done)


def _substitute(outer: CoordinateMapping, inner: CoordinateMapping, cut: _Digits) -> Composition:
    """Put the cut outer digits into the source coordinates of ``inner``."""
    offsets = list(inner.offsets)
    # Per destination axis and digit: source coordinates per step along each source axis.
    strides = [[[0] * len(offsets) for _ in digits] for digits in cut]
    for middle, inner_digits in enumerate(inner.digits):
        feeding = [
            (axis, position, digit)
            for axis, digits in enumerate(cut)
            for position, digit in enumerate(digits)
            if digit.axis == middle
        ]
        # An inner digit is floor(x / place) - extent * floor(x / (extent * place)); above the last it is 0.
        above_offset, above_slopes = 0, [0] * len(feeding)
        for inner_digit, place in zip(inner_digits, place_values(inner_digits), strict=True):
            quotient = _quotient(outer.offsets[middle], [digit for _, _, digit in feeding], place)
            if quotient is None:
                axes = " and ".join(str(axis) for axis in sorted({axis for axis, _, _ in feeding}))
                steps = ", ".join(f"{digit.extent} steps of {digit.stride}" for _, _, digit in feeding)
                extent = outer.source_shape[middle]
                return NotRepresentable(
                    reason=f"destination axis {axes}: {steps} from {outer.offsets[middle]} along axis "
                    f"{middle} (extent {extent}) of the value between together leave its blocks of {place}"
                )
            offset, slopes = quotient
            if inner_digit.axis is not None:
                offsets[inner_digit.axis] += inner_digit.stride * (offset - inner_digit.extent * above_offset)
                for (axis, position, _), slope, above in zip(feeding, slopes, above_slopes, strict=True):
                    value = slope - inner_digit.extent * above
                    strides[axis][position][inner_digit.axis] += inner_digit.stride * value
            above_offset, above_slopes = offset, slopes
    composed: list[tuple[Digit, ...]] = []
    for axis, digits in enumerate(cut):
        stepping: list[Digit] = []
        for digit, along in zip(digits, strides[axis], strict=True):
            moving = [source for source, stride in enumerate(along) if stride]
            match moving:
                case []:
                    stepping.append(Digit(extent=digit.extent, axis=None, stride=0))
                case [source] if along[source] > 0:
                    stepping.append(Digit(extent=digit.extent, axis=source, stride=along[source]))
                case _:
                    moves = " and ".join(
                        f"{along[source]:+d} along source axis {source}" for source in moving
                    )
                    return _refusal(outer, axis, digit, f"would move {moves}")
        composed.append(tuple(stepping))
    fault = overlap(digit for digits in composed for digit in digits)
    if fault is not None:
        return NotRepresentable(reason=fault)
    return CoordinateMapping(source_shape=inner.source_shape, offsets=tuple(offsets), digits=tuple(composed))


def _quotient(offset: int, digits: Sequence[Digit], place: int) -> tuple[int, list[int]] | None:
    """Offset and slopes of floor((offset + sum of stride * digit) / place); None where it is not affine."""
    remainder = offset % place
    slopes = [(remainder + digit.stride) // place for digit in digits]
    lowest = highest = remainder
    for digit, slope in zip(digits, slopes, strict=True):
        drift = (digit.stride - slope * place) * (digit.extent - 1)
        lowest += min(0, drift)
        highest += max(0, drift)
    return (offset // place, slopes) if lowest >= 0 and highest < place else None


def _refusal(outer: CoordinateMapping, axis: int, digit: Digit, fault: str) -> NotRepresentable:
    """A refusal that names a stepping digit of a destination axis and what it steps along."""
    assert digit.axis is not None, "a repeated digit moves nothing and can always be represented"
    extent, middle_extent = outer.destination_shape[axis], outer.source_shape[digit.axis]
    return NotRepresentable(
        reason=f"destination axis {axis} (extent {extent}): {digit.extent} steps of {digit.stride} along "
        f"axis {digit.axis} (extent {middle_extent}) of the value between {fault}"
    )
