"""Random sequences of view operations, each as the interpreter's operation and as the compiler's mapping."""

import math
from collections.abc import Sequence
from typing import assert_never

from hypothesis import strategies as st

from compiler.geometry import views
from compiler.geometry.compose import compose
from compiler.geometry.mapping import Composition, CoordinateMapping, identity
from compiler.geometry.region import Region
from tests.geometry.coordinates import (
    Array,
    Broadcast,
    DigitForm,
    Merge,
    Operation,
    Split,
    Transpose,
    Window,
    interpret,
    source,
)

ELEMENTS = 600
"""Most elements of a tensor: the oracle visits each."""


def mapping_of_operation(shape: tuple[int, ...], operation: Operation) -> CoordinateMapping:
    """The compiler's mapping for one operation on an operand of a shape."""
    match operation:
        case Split(axis, extents):
            return views.split(shape, axis, extents)
        case Merge(axis, count):
            return views.merge(shape, axis, count)
        case Transpose(order):
            return views.transpose(shape, order)
        case Window(bounds):
            return views.window(shape, Region(bounds=bounds))
        case Broadcast(destination):
            return views.broadcast(shape, destination)
        case _:
            assert_never(operation)


def form_of(mapping: CoordinateMapping) -> DigitForm:
    """The digits of a mapping as the oracle writes them."""
    return tuple(tuple((digit.extent, digit.axis, digit.stride) for digit in axis) for axis in mapping.digits)


@st.composite
def shapes(draw: st.DrawFn, min_rank: int = 2, max_rank: int = 5) -> tuple[int, ...]:
    """Small shapes with many divisors."""
    rank = draw(st.integers(min_rank, max_rank))
    extents = st.sampled_from([1, 2, 3, 4, 5, 6, 8, 9, 12] if rank < 3 else [1, 2, 3, 4, 6])
    shape = tuple(draw(st.lists(extents, min_size=rank, max_size=rank)))
    while math.prod(shape) > ELEMENTS:
        longest = shape.index(max(shape))
        shape = (*shape[:longest], 2, *shape[longest + 1 :])
    return shape


@st.composite
def regions(draw: st.DrawFn, shape: Sequence[int]) -> Region:
    """A region of at least one coordinate inside a shape."""
    bounds: list[tuple[int, int]] = []
    for extent in shape:
        start = draw(st.integers(0, extent - 1))
        bounds.append((start, draw(st.integers(start + 1, extent))))
    return Region(bounds=tuple(bounds))


@st.composite
def operations(draw: st.DrawFn, shape: tuple[int, ...]) -> Operation:
    """One operation that a tensor of this shape allows."""
    kinds = ["transpose", "window"]
    divisible = [axis for axis, extent in enumerate(shape) if _factors(extent)]
    if len(shape) > 1:
        kinds += ["merge", "merge"]
    if divisible and len(shape) < 6:
        kinds += ["split", "split"]
    if math.prod(shape) * 3 <= ELEMENTS and len(shape) < 6:
        kinds += ["broadcast"]
    match draw(st.sampled_from(kinds)):
        case "merge":
            count = draw(st.integers(2, len(shape)))
            return Merge(draw(st.integers(0, len(shape) - count)), count)
        case "split":
            axis = draw(st.sampled_from(divisible))
            outer = draw(st.sampled_from(_factors(shape[axis])))
            return Split(axis, (outer, shape[axis] // outer))
        case "broadcast":
            repeated = list(shape)
            singles = [axis for axis, extent in enumerate(shape) if extent == 1]
            if singles and draw(st.booleans()):
                repeated[draw(st.sampled_from(singles))] = draw(st.integers(2, 3))
                return Broadcast(tuple(repeated))
            return Broadcast((draw(st.integers(1, 3)), *shape))
        case "window":
            region = draw(regions(shape))
            whole = draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))
            return Window(
                tuple(
                    (0, extent) if keep else bounds
                    for keep, extent, bounds in zip(whole, shape, region.bounds, strict=True)
                )
            )
        case _:
            return Transpose(tuple(draw(st.permutations(range(len(shape))))))


@st.composite
def view_sequences(draw: st.DrawFn, max_length: int = 5) -> tuple[tuple[int, ...], tuple[Operation, ...]]:
    """A source shape and 1 to ``max_length`` operations, each on the result of the one before."""
    source_shape = draw(shapes())
    view = source(source_shape)
    chosen: list[Operation] = []
    for _ in range(draw(st.integers(1, max_length))):
        operation = draw(operations(view.shape))
        chosen.append(operation)
        view = interpret(view, operation)
    return source_shape, tuple(chosen)


def compose_sequence(source_shape: tuple[int, ...], chosen: Sequence[Operation]) -> tuple[Composition, Array]:
    """The composed mapping of a whole sequence, and what the interpreter says of it."""
    view = source(source_shape)
    mapping: Composition = identity(source_shape)
    for operation in chosen:
        mapping = compose(mapping_of_operation(view.shape, operation), mapping)
        view = interpret(view, operation)
    return mapping, view


@st.composite
def mappings(draw: st.DrawFn) -> tuple[CoordinateMapping, Array]:
    """A representable mapping of a random sequence of views, and what the interpreter says of it.

    An operation whose composition is refused is left out.
    """
    source_shape = draw(shapes())
    view, mapping = source(source_shape), identity(source_shape)
    for _ in range(draw(st.integers(0, 5))):
        operation = draw(operations(view.shape))
        composed = compose(mapping_of_operation(view.shape, operation), mapping)
        if isinstance(composed, CoordinateMapping):
            view, mapping = interpret(view, operation), composed
    return mapping, view


def _factors(extent: int) -> list[int]:
    return [factor for factor in range(2, extent) if extent % factor == 0]
