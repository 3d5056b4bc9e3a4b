"""What searches see of a problem: columns of requests, of pairs in each other's way, of sections.

A **request** has a base, to be chosen from a few closed intervals of multiples of its alignment. Everything
that a base must respect without looking at other requests (regions, reserved ranges, the tail's end of
memory) is in those intervals.

Two requests are **neighbours** when they may collide. For each ordered pair there are open intervals of
forbidden distances between their bases; requests of several spans can have more than one such interval, and
then one may lie inside of the other. Spans that must be in different memory elements are listed beside: what
they forbid depends on where they are, not on the distance alone. For any base of one, both kinds forbid
intervals of bases of the other, each with an end at which the other is free again. The searches know no more
than this.

A **section** is a moment at which no other moment has all that lives and more. Of each request that lives in
it are known: its bytes there and how far above the base the lowest of them is.

Equal requests can be exchanged in any solution, so the later one is only looked for above the earlier one:
its forbidden distances reach down without end. This is the whole of symmetry breaking.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from compiler.low.ir import Column
from compiler.placement.problem import NEVER, TileProblem
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, STANDARD

NOWHERE: Final = 1 << 60
"""An address above all others; the base of what has no place left."""

_BORDERS: Final = (
    *range(STANDARD.base, STANDARD.end, STANDARD.element_size),
    *range(INTERLEAVED.base, INTERLEAVED.end, INTERLEAVED.element_size),
)
"""Addresses at which elements begin."""

_Bools = npt.NDArray[np.bool_]


class Model(NamedTuple):
    """Columns; a list of lists is one column with the place of each list's first entry in another.

    Args:
        alignment: [requests] bases are multiples of it.
        domain_first: [requests + 1] where a request's intervals of bases begin in the two below.
        domain_low, domain_high: ends of the intervals, both included; ascending.
        neighbour_first: [requests + 1] where a request's pairs begin in ``neighbour``.
        neighbour: [pairs] the other request.
        is_simple: [pairs] it has one interval and no separation.
        interval_first: [pairs + 1] where a pair's intervals begin in the two below.
        interval_low, interval_high: the base of the request less that of the neighbour is in none of these
            open intervals; ascending, disjoint.
        apart_first: [pairs + 1] where a pair's separations begin in the column below.
        apart: [separations, 4] start and stop of a span of the request, then of one of the neighbour, from
            their bases, tails included.
        section_first: [sections + 1] where a section's entries begin in the three below.
        member: the request.
        lowest: its lowest byte that lives here, from its base.
        live: its bytes that live here.
        place_first: [requests + 1] where a request's sections begin in ``place``.
        place: sections in which it lives.
        blocked: [ranges, 2] addresses that nothing may have at any time, ascending, disjoint.
        memory: [5] end of memory, base, border of the regions, element sizes below and above the border.
    """

    alignment: Column
    domain_first: Column
    domain_low: Column
    domain_high: Column
    neighbour_first: Column
    neighbour: Column
    is_simple: _Bools
    interval_first: Column
    interval_low: Column
    interval_high: Column
    apart_first: Column
    apart: Column
    section_first: Column
    member: Column
    lowest: Column
    live: Column
    place_first: Column
    place: Column
    blocked: Column
    memory: Column


def model_of(problem: TileProblem) -> Model:
    """The model of a tile's problem, with the strides that it has."""
    count = len(problem.alignment)
    memory = np.array(
        [SRAM_END, SRAM_BASE, STANDARD.end, STANDARD.element_size, INTERLEAVED.element_size], dtype=np.int64
    )
    lives = np.zeros((len(problem.size), len(problem.steps)), dtype=np.bool_)
    for span in range(len(problem.size)):
        if problem.last[span] != NEVER[1]:
            lives[span, problem.first[span] : problem.last[span] + 1] = True
    apart: dict[tuple[int, int], list[tuple[int, int]]] = {}
    domains = [_domains(problem, request) for request in range(count)]
    for one, other in problem.apart.tolist():
        if not (lives[one] & lives[other]).any():
            continue
        if problem.request[one] == problem.request[other]:
            request = int(problem.request[one])
            domains[request] = _separated(problem, request, domains[request], one, other)
        else:
            for a, b in ((one, other), (other, one)):
                apart.setdefault((int(problem.request[a]), int(problem.request[b])), []).append((a, b))
    return _assembled(
        spans=(problem.request, problem.offset, problem.size, problem.tail),
        alignment=problem.alignment,
        domains=domains,
        lives=lives,
        apart=apart,
        blocked=problem.blocked,
        memory=memory,
    )


def windows_of(problem: TileProblem) -> Column:
    """[requests, 3, 2] lowest and highest base in standard, in interleaved and in any memory."""
    windows = np.zeros((len(problem.alignment), 3, 2), dtype=np.int64)
    for request in range(len(problem.alignment)):
        spans = problem.spans_of(request)
        low = int(problem.offset[spans].min())
        high = int((problem.offset[spans] + problem.size[spans]).max())
        for number, (start, stop) in enumerate(
            ((STANDARD.base, STANDARD.end), (INTERLEAVED.base, SRAM_END), (SRAM_BASE, SRAM_END))
        ):
            windows[request, number] = start - low, stop - high
    # Beside a span that must be interleaved others of its request may begin below: any memory, then.
    return windows


def plain_model(lower: Column, upper: Column, size: Column, capacity: int) -> Model:
    """Buffers [lower, upper) of a size in one memory from 0 to a capacity, and nothing else."""
    moments = np.unique(np.concatenate([lower, upper]))
    lives = (lower[:, None] <= moments) & (moments < upper[:, None])
    count = len(size)
    return _assembled(
        spans=(np.arange(count), np.zeros(count, dtype=np.int64), size, np.zeros(count, dtype=np.int64)),
        alignment=np.ones(count, dtype=np.int64),
        domains=[[(0, capacity - s)] if s <= capacity else [] for s in size.tolist()],
        lives=lives,
        apart={},
        blocked=np.zeros((0, 2), dtype=np.int64),
        memory=np.array([capacity, 0, capacity, capacity, capacity], dtype=np.int64),
    )


def _domains(problem: TileProblem, request: int) -> list[tuple[int, int]]:
    """Closed intervals of bases that a request may have on its own."""
    spans = problem.spans_of(request)
    alignment = int(problem.alignment[request])
    offset, size, resident = problem.offset[spans], problem.size[spans], problem.resident[spans]
    must = problem.interleaved[spans] == 1
    low = max(int((SRAM_BASE - offset).max()), int((INTERLEAVED.base - offset[must]).max(initial=0)))
    high = int((SRAM_END - offset - size - problem.tail[spans]).min())
    forbidden = sorted(
        (int(start - o - s), int(stop - o))
        for ranges, concerned in ((problem.blocked, resident >= 0), (problem.between, resident == 1))
        for start, stop in ranges.tolist()
        for o, s in zip(offset[concerned].tolist(), size[concerned].tolist(), strict=True)
    )
    domains: list[tuple[int, int]] = []
    position = low
    for start, stop in [*forbidden, (high, NOWHERE)]:
        top = min(start, high) // alignment * alignment
        bottom = -(-position // alignment) * alignment
        if bottom <= top:
            domains.append((bottom, top))
        position = max(position, stop)
    return domains


def _separated(
    problem: TileProblem, request: int, domains: list[tuple[int, int]], one: int, other: int
) -> list[tuple[int, int]]:
    """The intervals without bases at which two spans of the request share an element."""
    below, above = sorted((one, other), key=lambda span: int(problem.offset[span]))
    end = int(problem.offset[below] + problem.size[below] + problem.tail[below])
    alignment = int(problem.alignment[request])
    kept: list[tuple[int, int]] = []
    for border in _BORDERS:
        # Between the two, then: the one ends there or before, and the other begins there or behind.
        least, most = border - int(problem.offset[above]), border - end
        for low, high in domains:
            bottom = -(-max(least, low) // alignment) * alignment
            top = min(most, high) // alignment * alignment
            if bottom <= top:
                bottom = max(bottom, kept[-1][1] + alignment) if kept else bottom
                if bottom <= top:
                    kept.append((bottom, top))
    return kept


def _assembled(
    *,
    spans: tuple[Column, Column, Column, Column],
    alignment: Column,
    domains: Sequence[list[tuple[int, int]]],
    lives: _Bools,
    apart: dict[tuple[int, int], list[tuple[int, int]]],
    blocked: Column,
    memory: Column,
) -> Model:
    request, offset, size, tail = spans
    count = len(alignment)
    meets = (lives.astype(np.float32) @ lives.T.astype(np.float32)) > 0
    pairs: dict[tuple[int, int], list[tuple[int, int]]] = {key: [] for key in apart}
    meets &= request[:, None] != request
    for rows in apart.values():
        for row in rows:
            meets[row] = False  # to be in different elements is more than not to collide
    one, other = np.nonzero(meets)
    low, high = offset[other] - offset[one] - size[one], offset[other] + size[other] - offset[one]
    for r, j, a, b in zip(
        request[one].tolist(), request[other].tolist(), low.tolist(), high.tolist(), strict=True
    ):
        pairs.setdefault((r, j), []).append((a, b))
    for earlier, later in _equal_neighbours(spans, alignment, domains, lives, apart):
        ((_, reach),) = pairs[later, earlier]
        pairs[later, earlier] = [(-NOWHERE, reach)]
        pairs[earlier, later] = [(-reach, NOWHERE)]
    keys = sorted(pairs)
    intervals = [_merged(pairs[key]) for key in keys]
    separations = [
        [
            (
                int(offset[a]),
                int(offset[a] + size[a] + tail[a]),
                int(offset[b]),
                int(offset[b] + size[b] + tail[b]),
            )
            for a, b in apart.get(key, ())
        ]
        for key in keys
    ]
    sections = fullest_moments(lives)
    entries = [_entries(request, offset, size, lives[:, section]) for section in sections]
    places: list[list[int]] = [[] for _ in range(count)]
    for number, section in enumerate(entries):
        for member, _, _ in section:
            places[member].append(number)
    return Model(
        alignment=np.ascontiguousarray(alignment, dtype=np.int64),
        domain_first=_firsts([len(domain) for domain in domains]),
        domain_low=_column([low for domain in domains for low, _ in domain]),
        domain_high=_column([high for domain in domains for _, high in domain]),
        neighbour_first=np.searchsorted(_column([r for r, _ in keys]), np.arange(count + 1)).astype(np.int64),
        neighbour=_column([j for _, j in keys]),
        is_simple=np.array(
            [
                len(interval) == 1 and not separation
                for interval, separation in zip(intervals, separations, strict=True)
            ],
            dtype=np.bool_,
        ),
        interval_first=_firsts([len(interval) for interval in intervals]),
        interval_low=_column([low for interval in intervals for low, _ in interval]),
        interval_high=_column([high for interval in intervals for _, high in interval]),
        apart_first=_firsts([len(separation) for separation in separations]),
        apart=np.array([row for rows in separations for row in rows], dtype=np.int64).reshape(-1, 4),
        section_first=_firsts([len(section) for section in entries]),
        member=_column([member for section in entries for member, _, _ in section]),
        lowest=_column([lowest for section in entries for _, lowest, _ in section]),
        live=_column([live for section in entries for _, _, live in section]),
        place_first=_firsts([len(place) for place in places]),
        place=_column([section for place in places for section in place]),
        blocked=np.ascontiguousarray(blocked, dtype=np.int64).reshape(-1, 2),
        memory=memory,
    )


def _equal_neighbours(
    spans: tuple[Column, Column, Column, Column],
    alignment: Column,
    domains: Sequence[list[tuple[int, int]]],
    lives: _Bools,
    apart: dict[tuple[int, int], list[tuple[int, int]]],
) -> list[tuple[int, int]]:
    """Consecutive requests of each set of equal ones: one span, one life, and no separation."""
    request, offset, size, tail = spans
    bound = {r for r, _ in apart}
    single = np.bincount(request, minlength=len(alignment)) == 1
    latest: dict[object, int] = {}
    found: list[tuple[int, int]] = []
    for span, r in enumerate(request.tolist()):
        if not single[r] or r in bound or not lives[span].any():
            continue
        shape = (int(alignment[r]), int(offset[span]), int(size[span]), int(tail[span]))
        life = np.flatnonzero(lives[span])
        key = (shape, tuple(domains[int(r)]), int(life[0]), int(life[-1]))
        if key in latest:
            found.append((latest[key], r))
        latest[key] = r
    return found


def _merged(intervals: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Open intervals as disjoint ones; those that only touch leave the point between them free."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(intervals):
        if merged and low < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def fullest_moments(lives: _Bools) -> list[int]:
    """Moments of which no neighbour has all that lives and more."""
    kept: list[int] = []
    for moment in range(lives.shape[1]):
        here = lives[:, moment]
        follows = moment + 1 < lives.shape[1] and not (here & ~lives[:, moment + 1]).any()
        precedes = bool(kept) and not (here & ~lives[:, kept[-1]]).any()
        if here.any() and not follows and not precedes:
            kept.append(moment)
    return kept


def _entries(request: Column, offset: Column, size: Column, live: _Bools) -> list[tuple[int, int, int]]:
    """(request, lowest byte, bytes) of what lives at a moment; bytes that spans share count once."""
    entries: list[tuple[int, int, int]] = []
    rows = np.flatnonzero(live)
    rows = rows[np.lexsort((offset[rows], request[rows]))]
    reach = 0
    for r, start, stop in zip(
        request[rows].tolist(), offset[rows].tolist(), (offset + size)[rows].tolist(), strict=True
    ):
        if not entries or entries[-1][0] != r:
            entries.append((r, start, stop - start))
            reach = stop
            continue
        member, lowest, held = entries[-1]
        entries[-1] = (member, lowest, held + max(0, stop - max(start, reach)))
        reach = max(reach, stop)
    return entries


def _firsts(counts: list[int]) -> Column:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(np.array(counts, dtype=np.int64))])


def _column(values: list[int]) -> Column:
    return np.array(values, dtype=np.int64)
