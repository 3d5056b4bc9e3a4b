"""Where a request can go beside those that have a place: the geometry that all searches share, compiled.

Bases only ever move up here. Every function is a question about one request or one pair of a ``Model``.

Most pairs forbid one interval of distances and nothing else (``Model.is_simple``). Loops over pairs answer
for those in place, since a call costs more than the answer, and call for the others.
"""

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.model import NOWHERE, Model

Bits = npt.NDArray[np.uint64]
"""A set of small numbers: bit n of the words, 64 in each."""


@compiled
def admissible(model: Model, request: int, start: int) -> int:
    """The lowest base from ``start`` on that the request may have on its own, or NOWHERE."""
    alignment = model.alignment[request]
    base = -(-start // alignment) * alignment
    for domain in range(model.domain_first[request], model.domain_first[request + 1]):
        if base <= model.domain_high[domain]:
            return max(base, model.domain_low[domain])
    return NOWHERE


@compiled
def element_start(memory: Column, address: int) -> int:
    """The lowest address of an address's element."""
    border = memory[2]
    if address < border:
        return address - (address - memory[1]) % memory[3]
    return address - (address - border) % memory[4]


@compiled
def element_end(memory: Column, stop: int) -> int:
    """The end of the element of the last byte before an address."""
    size = memory[3] if stop - 1 < memory[2] else memory[4]
    return element_start(memory, stop - 1) + size


@compiled
def beyond(model: Model, pair: int, start: int, other: int) -> int:
    """The lowest base from ``start`` on that does not collide with the neighbour at the base ``other``."""
    base = start
    moved = True
    while moved and base < NOWHERE:
        moved = False
        for interval in range(model.interval_first[pair], model.interval_first[pair + 1]):
            if model.interval_low[interval] < base - other < model.interval_high[interval]:
                base = other + model.interval_high[interval]
                moved = True
        for row in range(model.apart_first[pair], model.apart_first[pair + 1]):
            end = element_end(model.memory, other + model.apart[row, 3])
            if element_start(model.memory, base + model.apart[row, 0]) < end and element_start(
                model.memory, other + model.apart[row, 2]
            ) < element_end(model.memory, base + model.apart[row, 1]):
                base = end - model.apart[row, 0]
                moved = True
    return base


@compiled
def lowest(
    model: Model,
    request: int,
    start: int,
    bases: Column,
    is_placed: npt.NDArray[np.bool_],
    level: Column,
    reason: Bits,
) -> int:
    """The lowest base from ``start`` on beside all neighbours that have a place, or NOWHERE.

    Args:
        model: the problem.
        request: who wants a place.
        start: least base.
        bases: [requests] bases of those with a place.
        is_placed: [requests] who has one.
        level: [requests] a number of each of them.
        reason: the numbers of those that were in the way are added to this set.
    """
    base = admissible(model, request, start)
    neighbours, is_simple, interval_first = model.neighbour, model.is_simple, model.interval_first
    interval_low, interval_high = model.interval_low, model.interval_high
    first, last = model.neighbour_first[request], model.neighbour_first[request + 1]
    pair, quiet = first, 0
    while quiet < last - first and base < NOWHERE:
        neighbour = neighbours[pair]
        quiet += 1
        if is_placed[neighbour]:
            other = bases[neighbour]
            higher = base
            if is_simple[pair]:
                interval = interval_first[pair]
                if interval_low[interval] < base - other < interval_high[interval]:
                    higher = other + interval_high[interval]
            else:
                higher = beyond(model, pair, base, other)
            if higher > base:
                number = level[neighbour]
                reason[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
                base = admissible(model, request, higher)
                quiet = 0
        pair += 1
        if pair == last:
            pair = first
    return base


@compiled
def next_end(
    model: Model, pair: int, base: int, other: int, is_placed: bool
) -> int:  # compiled functions take no keywords
    """The lowest end above ``base`` of what a neighbour forbids at ``other``; unplaced, there or above."""
    least = NOWHERE
    for interval in range(model.interval_first[pair], model.interval_first[pair + 1]):
        end = other + model.interval_high[interval]
        if not is_placed:
            end = max(end, base + 1)
        if base < end < least:
            least = end
    for row in range(model.apart_first[pair], model.apart_first[pair + 1]):
        end = element_end(model.memory, other + model.apart[row, 3]) - model.apart[row, 0]
        if not is_placed:
            end = max(end, base + 1)
        if base < end < least:
            least = end
    return least


@compiled
def may_end_below(model: Model, pair: int, base: int, other: int) -> bool:
    """Whether something that the neighbour forbids at ``other`` ends at ``base`` or below it."""
    for interval in range(model.interval_first[pair], model.interval_first[pair + 1]):
        if other + model.interval_high[interval] <= base:
            return True
    for row in range(model.apart_first[pair], model.apart_first[pair + 1]):
        if element_end(model.memory, other + model.apart[row, 3]) - model.apart[row, 0] <= base:
            return True
    return False


@compiled
def next_domain(model: Model, request: int, base: int) -> int:
    """Where the request's next interval of bases above ``base`` begins, or NOWHERE."""
    for domain in range(model.domain_first[request], model.domain_first[request + 1]):
        if model.domain_low[domain] > base:
            return model.domain_low[domain]
    return NOWHERE


@compiled
def may_block(
    model: Model, pair: int, base: int, other: int, is_placed: bool
) -> bool:  # compiled functions take no keywords
    """Whether a neighbour at ``other``, unplaced there or above, can keep the request from ``base``."""
    if is_placed:
        return beyond(model, pair, base, other) > base
    for interval in range(model.interval_first[pair], model.interval_first[pair + 1]):
        if other < base - model.interval_low[interval]:
            return True
    for row in range(model.apart_first[pair], model.apart_first[pair + 1]):
        if element_start(model.memory, other + model.apart[row, 2]) < element_end(
            model.memory, base + model.apart[row, 1]
        ):
            return True
    return False
