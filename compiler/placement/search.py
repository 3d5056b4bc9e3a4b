"""Complete search for bases: every request placed, proof that none can be, or neither within the node budget.

**Problem.** A ``Model``: a base for each request out of its intervals, no two neighbours at a forbidden
distance. NP-hard already for plain rectangles of time by bytes.

**Normal form.** Of all solutions look at one whose bases have the least sum. In it no request can move down
alone, so each base is either the lowest of its domain, or the lowest admissible one above the end of an
interval that some neighbour forbids. Every rule below holds for such solutions, hence for at least one if
there is any. Nothing is assumed about shapes: spans of several lives, separations and holes are covered.

**Branching.** Each request without a place has a lower bound, its lowest base from there on beside those that
are placed. A request is chosen; either it lies at its bound, or it does not. If not, its base is above the
next end of a forbidden interval: one of a placed neighbour, or, for one without a place, at its lower bound
or above. That is the new bound (the *raise*), and the request stays *rejected* at the old base, which
somebody must cover in the end: when no neighbour can any more, the branch is dead.

**Bound.** In each section the requests without a place, from the highest lower bound down: the bytes counted
so far must fit above the last bound. One sort for each section that changed, nearly sorted already.

**Jumps.** Each lower bound carries the set of decisions that it follows from, and so does each dead end. The
search goes back to the latest decision of that set, drops what came after it, and takes it back: its raise
then follows from the rest of the set. Independent moments of time do not multiply each other. An empty set
is the proof that there is no solution.

**Choice.** Only the order of the tree depends on it, and it decides whether hard problems are found at all.
No single rule is good at all of them, and a bad early decision is never repaired. So the search is started
again and again, a few thousand nodes each by Luby's series, with other preferences: lowest bound first, or
the section with the fewest ways to go on first, with weights for sections in which dead ends were found; and
within one of those, the request that is first in a mixture of life, bytes and crowding, some chance, and how
often it was in a dead end of late. The chances come from a fixed seed, and no clock is read.

**Rejected:** one order searched to the end (lost on half of the hard public instances), a table of
states that failed (one in twenty visits hit), and placing in order of address only, which cannot leave holes
and therefore proves nothing about spans that interlock.

Cost of a node: the neighbours of what is placed, and the entries of sections that change.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.lowest import (
    Bits,
    admissible,
    lowest,
    may_block,
    may_end_below,
    next_domain,
    next_end,
)
from compiler.placement.model import NOWHERE, Model

_UNIT: Final = 2000
"""Nodes of the shortest try."""

LOWEST: Final = 0
"""Kind of tries: lowest bound first."""

FEWEST_WAYS: Final = 1
"""Kind of tries: the section with the fewest ways to go on first."""

WEIGHTED_WAYS: Final = 2
"""Kind of tries: the same, with weights for sections in which dead ends were found."""

_KINDS: Final = 3

_OF_A_KIND: Final = 12
"""Tries before those of the next kind: each mixture of chance (3) and of dead ends of late (4) once."""

_TRAIL: Final = 1 << 16
"""Most changes of bounds, and most rejections, that a branch can hold; a try that needs more is given up."""


class Verdict(Enum):
    """What a search found out."""

    FOUND = "found"
    NONE = "none"
    """There is no solution: proven."""
    GIVEN_UP = "given up"
    """The nodes are used up."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Found:
    """The outcome of a search.

    Args:
        verdict: what is known.
        bases: [requests] a solution with FOUND, else nothing of use.
        nodes: decisions made.
    """

    verdict: Verdict
    bases: Column
    nodes: int


def search(model: Model, nodes: int, kind: int = LOWEST) -> Found:
    """Looks for bases with at most so many decisions; deterministic.

    Args:
        model: what is searched.
        nodes: decisions that it may make.
        kind: the kind of the first tries; those of the others follow, round and round.
    """
    count, sections = len(model.alignment), len(model.section_first) - 1
    features = _features(model)
    chance = np.random.default_rng(count)
    weight, activity = np.ones(sections), np.zeros(count)
    bases = np.zeros(count, dtype=np.int64)
    used = attempt = 0
    while used < nodes:
        preference = chance.random(3) ** 2 @ features + 0.25 * (attempt % 3) * chance.random(count)
        preference += 0.5 * (attempt % 4) * _positions(activity)
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(-preference, kind="stable")] = np.arange(count)
        limit = min(nodes - used, _UNIT * luby(attempt + 1))
        by_section = (kind + attempt // _OF_A_KIND) % _KINDS
        verdict, spent = _try(model, rank, by_section, limit, weight, activity, bases)
        if verdict != _GAVE_UP:
            return Found(
                verdict=Verdict.FOUND if verdict == _FOUND else Verdict.NONE, bases=bases, nodes=used + spent
            )
        used += max(spent, 1)
        attempt += 1
        activity *= 0.5
        weight = 1 + (weight - 1) * 0.7
        weight = 1 + (weight - 1) / max(1.0, float(weight.max(initial=1.0)) / 20)
    return Found(verdict=Verdict.GIVEN_UP, bases=bases, nodes=used)


def _features(model: Model) -> npt.NDArray[np.float64]:
    """[3, requests] how long it lives, how large it is, how crowded its fullest section is, each 0 to 1."""
    count = len(model.alignment)
    bytes_, crowd = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    entries = np.diff(model.section_first)
    total = np.zeros(len(entries), dtype=np.int64)
    section = np.repeat(np.arange(len(entries)), entries)
    np.add.at(total, section, model.live)
    np.maximum.at(bytes_, model.member, model.live)
    np.maximum.at(crowd, model.member, total[section])
    life = np.diff(model.place_first)
    return np.stack([_positions(life), _positions(bytes_), _positions(crowd)])


def _positions(values: npt.NDArray[np.int64] | npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The place of each value among the distinct ones, 0 to 1."""
    distinct, position = np.unique(values, return_inverse=True)
    return position / max(1, len(distinct) - 1)


def luby(number: int) -> int:
    """1, 1, 2, 1, 1, 2, 4, ...: the series of lengths that is never far from the best one."""
    while True:
        size = number.bit_length()
        if number == (1 << size) - 1:
            return 1 << (size - 1)
        number -= (1 << (size - 1)) - 1


_FOUND: Final = 1
_NONE: Final = 0
_GAVE_UP: Final = 2


@compiled
def _free_above(blocked: Column, end: int, address: int) -> int:
    """Bytes from an address to the end of memory that nothing reserves."""
    free = end - address
    for row in range(len(blocked)):
        start = max(blocked[row, 0], address)
        stop = min(blocked[row, 1], end)
        if stop > start:
            free -= stop - start
    return free


@compiled
def _choice(
    model: Model,
    rank: Column,
    by_section: int,
    weight: npt.NDArray[np.float64],
    bound: Column,
    is_placed: npt.NDArray[np.bool_],
    state: npt.NDArray[np.int64],
    first_bytes: Column,
    witness: Column,
) -> int:
    """The request to decide on next; ``witness`` [requests] keeps the pair for which it was not ready.

    If possible, it is one that is *ready*: its bound is below the ends of all that its neighbours without a
    place can forbid, so that a raise says something. Requests of several spans can wait for each other in a
    circle; then the one with the lowest bound is taken.
    """
    neighbour_first, neighbours, is_simple = model.neighbour_first, model.neighbour, model.is_simple
    interval_first, high = model.interval_first, model.interval_high
    place_first, places = model.place_first, model.place
    chosen, best, is_best_ready = -1, np.inf, False
    for request in range(len(rank)):
        if is_placed[request]:
            continue
        is_ready = True
        first, last = neighbour_first[request], neighbour_first[request + 1]
        pair = max(first, witness[request])
        for _ in range(first, last):
            neighbour = neighbours[pair]
            if not is_placed[neighbour]:
                if is_simple[pair]:
                    is_ready = bound[neighbour] + high[interval_first[pair]] > bound[request]
                else:
                    is_ready = not may_end_below(model, pair, int(bound[request]), int(bound[neighbour]))
                if not is_ready:
                    witness[request] = pair
                    break
            pair = pair + 1 if pair + 1 < last else first
        if is_best_ready and not is_ready:
            continue
        score = float(bound[request])
        if by_section and is_ready:
            score = 1e6  # lives never, or begins nowhere lowest: any time will do
            for place in range(place_first[request], place_first[request + 1]):
                section = places[place]
                if state[section, 3] != bound[request] + first_bytes[place]:
                    continue
                ways, spare, rise = state[section, 1], state[section, 0], state[section, 2]
                here = float(ways)
                if rise <= spare:
                    here += min(20.0, 1.0 + spare / rise)
                elif ways == 1:
                    here = 0.0
                if by_section == WEIGHTED_WAYS:
                    here /= weight[section]
                score = min(score, here)
        if (
            chosen < 0
            or (is_ready and not is_best_ready)
            or score < best
            or (score == best and rank[request] < rank[chosen])
        ):
            chosen, best, is_best_ready = request, score, is_ready
    return chosen


@compiled
def _first_bytes(model: Model) -> Column:
    """[places] the request's lowest byte that lives in that section, from its base."""
    result = np.zeros(len(model.place), dtype=np.int64)
    filled = model.place_first.copy()
    for entry in range(len(model.member)):
        member = model.member[entry]
        result[filled[member]] = model.lowest[entry]
        filled[member] += 1
    return result


@compiled
def _touch(model: Model, request: int, touched: Column, stamp: int) -> None:
    for place in range(model.place_first[request], model.place_first[request + 1]):
        touched[model.place[place]] = stamp


@compiled
def _crowded(
    model: Model,
    order: Column,
    bound: Column,
    is_placed: npt.NDArray[np.bool_],
    state: npt.NDArray[np.int64],
    touched: Column,
    stamp: int,
    reason: npt.NDArray[np.uint64],
    weight: npt.NDArray[np.float64],
    activity: npt.NDArray[np.float64],
    conflict: Bits,
) -> bool:
    """Looks at all touched sections; of the first that cannot hold its requests, notes why.

    Sorts ``order``, the entries of each section, by falling lower ends, and notes in ``state``: bytes to
    spare at the lowest end, how many entries have it, distance to the next higher end, the lowest end.
    """
    section_first, members, lowest_byte, live = model.section_first, model.member, model.lowest, model.live
    blocked, end_of_memory = model.blocked, model.memory[0]
    failed = False
    for section in range(len(touched)):
        if touched[section] != stamp:
            continue
        first, last = section_first[section], section_first[section + 1]
        for place in range(first + 1, last):
            entry = order[place]
            end = bound[members[entry]] + lowest_byte[entry]
            before = place - 1
            while before >= first and bound[members[order[before]]] + lowest_byte[order[before]] < end:
                order[before + 1] = order[before]
                before -= 1
            order[before + 1] = entry
        held, level, count, previous = 0, -1, 0, -1
        free = 0
        for place in range(first, last):
            entry = order[place]
            member = members[entry]
            if is_placed[member]:
                continue
            held += live[entry]
            end = int(bound[member] + lowest_byte[entry])
            if end == level:
                count += 1
            else:
                previous, level, count = level, end, 1
                free = _free_above(blocked, end_of_memory, level)
            if held > free and not failed:
                failed = True
                weight[section] += 1.0
                for above in range(first, place + 1):
                    member = members[order[above]]
                    if not is_placed[member]:
                        activity[member] += 1.0
                        for word in range(len(conflict)):
                            conflict[word] |= reason[member, word]
        state[section, 0] = free - held
        state[section, 1] = count
        state[section, 2] = previous - level if previous >= 0 else NOWHERE
        state[section, 3] = level
    return failed


@compiled
def _uncovered(
    model: Model,
    count: int,
    rejected: npt.NDArray[np.int64],
    rejected_reason: npt.NDArray[np.uint64],
    bound: Column,
    is_placed: npt.NDArray[np.bool_],
    level: Column,
    reason: npt.NDArray[np.uint64],
    conflict: Bits,
) -> bool:
    """Whether some request was rejected at a base that nobody can cover any more; notes why."""
    neighbour_first, neighbours, is_simple = model.neighbour_first, model.neighbour, model.is_simple
    interval_first, low, high = model.interval_first, model.interval_low, model.interval_high
    for row in range(count):
        request, base = rejected[row, 0], rejected[row, 1]
        first, last = neighbour_first[request], neighbour_first[request + 1]
        covered = False
        pair = max(first, rejected[row, 2])  # who covered it when last asked
        for _ in range(first, last):
            neighbour = neighbours[pair]
            other = bound[neighbour]
            if is_simple[pair]:
                interval = interval_first[pair]
                covered = other < base - low[interval] and (
                    not is_placed[neighbour] or base - other < high[interval]
                )
            else:
                covered = may_block(model, int(pair), base, int(other), bool(is_placed[neighbour]))
            if covered:
                rejected[row, 2] = pair
                break
            pair = pair + 1 if pair + 1 < last else first
        if covered:
            continue
        for word in range(len(conflict)):
            conflict[word] = rejected_reason[row, word] | reason[request, word]
        if is_placed[request]:
            conflict[level[request] >> 6] |= np.uint64(1) << np.uint64(level[request] & 63)
        for pair in range(first, last):
            neighbour = neighbours[pair]
            if is_placed[neighbour]:
                conflict[level[neighbour] >> 6] |= np.uint64(1) << np.uint64(level[neighbour] & 63)
            else:
                for word in range(len(conflict)):
                    conflict[word] |= reason[neighbour, word]
        return True
    return False


@compiled
def _try(  # one loop over one state; its parts are the functions above
    model: Model,
    rank: Column,
    by_section: int,
    limit: int,
    weight: npt.NDArray[np.float64],
    activity: npt.NDArray[np.float64],
    bound: Column,
) -> tuple[int, int]:
    """One try of the search; ``bound`` ends as the solution, if there is one."""
    count, sections = len(model.alignment), len(model.section_first) - 1
    neighbour_first, neighbours, is_simple = model.neighbour_first, model.neighbour, model.is_simple
    interval_first, low, high = model.interval_first, model.interval_low, model.interval_high
    words = count // 64 + 1
    one = np.uint64(1)
    is_placed = np.zeros(count, dtype=np.bool_)
    level = np.full(count, -1, dtype=np.int64)
    reason = np.zeros((count, words), dtype=np.uint64)
    conflict = np.zeros(words, dtype=np.uint64)
    # Decisions, and how long the two lists below were when they were made.
    decided = np.empty((count + 1, 4), dtype=np.int64)
    depth = 0
    # Changes of bounds: request, old bound, old reason.
    trail = np.empty((_TRAIL, 2), dtype=np.int64)
    trail_reason = np.empty((_TRAIL, words), dtype=np.uint64)
    changes = 0
    rejected = np.empty((_TRAIL, 3), dtype=np.int64)
    rejected_reason = np.empty((_TRAIL, words), dtype=np.uint64)
    rejections = 0
    order = np.arange(len(model.member))
    state = np.zeros((sections, 4), dtype=np.int64)
    touched = np.zeros(sections, dtype=np.int64)
    stamp, nodes = 1, 0
    first_bytes = _first_bytes(model)
    witness = np.full(count, -1, dtype=np.int64)
    for request in range(count):
        bound[request] = admissible(model, request, 0)
        if bound[request] >= NOWHERE:
            return _NONE, nodes
    touched[:] = stamp
    if _crowded(model, order, bound, is_placed, state, touched, stamp, reason, weight, activity, conflict):
        return _NONE, nodes
    while depth < count:
        nodes += 1
        if nodes > limit or changes + 2 * count >= _TRAIL or rejections + 2 >= _TRAIL:
            return _GAVE_UP, nodes
        chosen = _choice(model, rank, by_section, weight, bound, is_placed, state, first_bytes, witness)
        decided[depth, 0], decided[depth, 1] = chosen, bound[chosen]
        decided[depth, 2], decided[depth, 3] = changes, rejections
        is_placed[chosen] = True
        level[chosen] = depth
        depth += 1
        stamp += 1
        _touch(model, chosen, touched, stamp)
        dead = False
        for pair in range(neighbour_first[chosen], neighbour_first[chosen + 1]):
            neighbour = neighbours[pair]
            if is_placed[neighbour]:
                continue
            if is_simple[pair]:
                # Distances here are from the chosen request to the neighbour.
                distance = bound[chosen] - bound[neighbour]
                if distance <= low[interval_first[pair]] or distance >= high[interval_first[pair]]:
                    continue
            trail[changes, 0], trail[changes, 1] = neighbour, bound[neighbour]
            for word in range(words):
                trail_reason[changes, word] = reason[neighbour, word]
            higher = lowest(
                model, neighbour, int(bound[neighbour]), bound, is_placed, level, reason[neighbour]
            )
            if higher == bound[neighbour]:
                continue
            changes += 1
            bound[neighbour] = higher
            _touch(model, neighbour, touched, stamp)
            if higher >= NOWHERE:
                dead = True
                activity[neighbour] += 1.0
                for word in range(words):
                    conflict[word] = reason[neighbour, word]
                break
        if not dead:
            conflict[:] = 0
            dead = _crowded(
                model, order, bound, is_placed, state, touched, stamp, reason, weight, activity, conflict
            )
        while dead or _uncovered(
            model, rejections, rejected, rejected_reason, bound, is_placed, level, reason, conflict
        ):
            latest = -1
            for word in range(words - 1, -1, -1):
                if conflict[word] != 0:
                    bit = 63
                    while (conflict[word] >> np.uint64(bit)) & one == 0:
                        bit -= 1
                    latest = word * 64 + bit
                    break
            if latest < 0:
                return _NONE, nodes
            conflict[latest >> 6] &= ~(one << np.uint64(latest & 63))
            stamp += 1
            while depth > latest:
                depth -= 1
                is_placed[decided[depth, 0]] = False
                level[decided[depth, 0]] = -1
                _touch(model, decided[depth, 0], touched, stamp)
            while changes > decided[latest, 2]:
                changes -= 1
                request = trail[changes, 0]
                bound[request] = trail[changes, 1]
                for word in range(words):
                    reason[request, word] = trail_reason[changes, word]
                _touch(model, request, touched, stamp)
            rejections = decided[latest, 3]
            # The decision is taken back: what remains of the conflict implies that it is wrong.
            request, base = decided[latest, 0], decided[latest, 1]
            trail[changes, 0], trail[changes, 1] = request, base
            rejected[rejections, 0], rejected[rejections, 1], rejected[rejections, 2] = request, base, -1
            for word in range(words):
                trail_reason[changes, word] = reason[request, word]
                rejected_reason[rejections, word] = conflict[word]
                reason[request, word] |= conflict[word]
            changes += 1
            rejections += 1
            higher = next_domain(model, request, base)
            for pair in range(neighbour_first[request], neighbour_first[request + 1]):
                neighbour = neighbours[pair]
                if is_simple[pair]:
                    end = bound[neighbour] + high[interval_first[pair]]
                    if not is_placed[neighbour]:
                        end = max(end, base + 1)
                else:
                    end = next_end(model, pair, base, int(bound[neighbour]), bool(is_placed[neighbour]))
                if base < end < higher:
                    higher = int(end)
                if is_placed[neighbour]:
                    reason[request, level[neighbour] >> 6] |= one << np.uint64(level[neighbour] & 63)
                else:
                    for word in range(words):
                        reason[request, word] |= reason[neighbour, word]
            if higher < NOWHERE:
                higher = lowest(model, request, higher, bound, is_placed, level, reason[request])
            bound[request] = higher
            _touch(model, request, touched, stamp)
            conflict[:] = 0
            dead = _crowded(
                model, order, bound, is_placed, state, touched, stamp, reason, weight, activity, conflict
            )
            if higher >= NOWHERE:
                dead = True
                for word in range(words):
                    conflict[word] = reason[request, word]
            if changes + 2 >= _TRAIL or rejections + 2 >= _TRAIL:
                return _GAVE_UP, nodes
    return _FOUND, nodes
