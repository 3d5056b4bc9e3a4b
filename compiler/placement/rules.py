"""A tile's problem as rules about which spans lie below which others: what ``precedence`` searches.

Variables are the bases of requests, the strides of sequences, and a precedence for each two spans that must
not meet. A span begins at ``base + member * stride + offset``, and a rule says that one ends where another
begins, or below. What is reserved is a span of the variable that is always 0.

A sequence of two members has two bases and no stride: any distance is one. Of longer ones, what rules about
bounds cannot see is given as clauses: what lies between two members makes the stride at least as long, and
what is below a member is below those that follow it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from compiler.low.ir import Column
from compiler.placement.model import fullest_moments
from compiler.placement.problem import NEVER, TileProblem
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, STANDARD

ALWAYS: Final = -1
"""Instead of a literal: the rule holds always."""

UNKNOWN: Final = 0
"""Instead of a half: nothing says it."""

_FAR: Final = 4
"""Members that are farther apart get no clauses: what they would say follows after some decisions."""


class Rules(NamedTuple):
    """Variables, spans and rules, as columns.

    Args:
        grain: [variables] values are multiples of it. Variable 0 is 0; bases of requests follow, those of the
            second members of sequences of two, strides of longer ones, then precedences.
        least, most: [variables] bounds, both included.
        base: [variables] of strides, the base of their sequence; of others, themselves.
        place: [spans, 4] base, stride (0 without one), member, offset in bytes.
        rule: [rules, 5] span i, span j, bytes of i, whether a border of elements must be between them, and
            the half that says so, or ALWAYS. If it holds, i ends where j begins, or below; of a precedence
            the even half and the odd one are the two sides.
        watch_first: [halves + 1] where the rules of a half begin in the column below.
        watch: rules from which more follows when that half rises.
        clause_first: [clauses + 1] where the literals of each clause begin in the column below.
        clause: [literals, 2] half and bound; in each clause one of its halves has at least its bound. They
            follow from the rules, which cannot see it.
        crowd_first: [crowds + 1] where the spans of each crowd begin in the column below.
        crowd: spans of which no two may meet, with no byte in common if they are of one request.
        below: [spans, spans] the half that says that one lies below another, ALWAYS, or UNKNOWN.
        size: [spans] bytes.
        blocked: [ranges, 2] addresses that nothing may have at any time, ascending, disjoint.
        memory: [5] as in a ``Model``.
    """

    grain: Column
    least: Column
    most: Column
    base: Column
    place: Column
    rule: Column
    watch_first: Column
    watch: Column
    clause_first: Column
    clause: Column
    crowd_first: Column
    crowd: Column
    below: Column
    size: Column
    blocked: Column
    memory: Column


def rules_of(problem: TileProblem, members: Column) -> Rules:
    """The rules of a tile's problem; [requests] members of each sequence, 1 for what is none.

    The problem's strides are the least that they can be.
    """
    count = len(problem.alignment)
    pairs, sequences = np.flatnonzero(members == 2), np.flatnonzero(members > 2)
    second = np.arange(count)
    second[pairs] = count + np.arange(len(pairs))
    stride_of = np.zeros(count, dtype=np.int64)
    stride_of[sequences] = 1 + count + len(pairs) + np.arange(len(sequences))
    member = np.where(members[problem.request] > 1, problem.member, 0)
    offset = problem.offset - member * problem.stride[problem.request]
    base = np.where(member > 0, second[problem.request], problem.request)
    member = np.where(members[problem.request] > 2, member, 0)
    spans = np.stack([1 + base, stride_of[problem.request] * (member > 0), member, offset], axis=1)
    grain = problem.alignment[np.concatenate([np.arange(count), pairs])]
    least, most = _bounds(problem, base, offset, member, grain)
    room = np.full(len(sequences), int(SRAM_END - SRAM_BASE), dtype=np.int64)
    grain = np.concatenate([[1], grain, problem.alignment[sequences]])
    least = np.concatenate([[0], least, problem.stride[sequences]])
    most = np.concatenate([[0], most, room // problem.alignment[sequences] * problem.alignment[sequences]])
    reserved = np.concatenate([problem.blocked, problem.between])
    fixed = np.zeros((len(reserved) + 1, 4), dtype=np.int64)
    fixed[:-1, 3], fixed[-1, 3] = reserved[:, 0], SRAM_END
    rules = _Builder(variables=len(least))
    _memory_rules(rules, problem, member, reserved)
    _pair_rules(rules, problem, members)
    clauses = list(_clauses(rules, problem, members, stride_of, reserved))
    crowds = _crowds(problem)
    rule = np.array(rules.rows, dtype=np.int64).reshape(-1, 5)
    place = np.concatenate([spans, fixed])
    precedences = rules.variables - len(least)
    watch_first, watch = _watches(rule, place, 2 * rules.variables)
    return Rules(
        grain=np.concatenate([grain, np.ones(precedences, dtype=np.int64)]),
        least=np.concatenate([least, np.zeros(precedences, dtype=np.int64)]),
        most=np.concatenate([most, np.ones(precedences, dtype=np.int64)]),
        base=np.where(
            np.isin(np.arange(rules.variables), stride_of[sequences]),
            np.concatenate(
                [
                    np.zeros(1 + count + len(pairs), dtype=np.int64),
                    1 + sequences,
                    np.zeros(precedences, dtype=np.int64),
                ]
            ),
            np.arange(rules.variables),
        ),
        place=place,
        rule=rule,
        watch_first=watch_first,
        watch=watch,
        clause_first=np.concatenate([[0], np.cumsum([len(clause) for clause in clauses])]).astype(np.int64),
        clause=np.array([literal for clause in clauses for literal in clause], dtype=np.int64).reshape(-1, 2),
        crowd_first=np.concatenate([[0], np.cumsum([len(crowd) for crowd in crowds])]).astype(np.int64),
        crowd=np.array([span for crowd in crowds for span in crowd], dtype=np.int64),
        below=_below(problem, members, rule),
        size=problem.size,
        blocked=problem.blocked,
        memory=np.array(
            [SRAM_END, SRAM_BASE, STANDARD.end, STANDARD.element_size, INTERLEAVED.element_size],
            dtype=np.int64,
        ),
    )


class _Builder:
    """Collects rules."""

    def __init__(self, variables: int) -> None:
        self.variables = variables
        self.rows: list[tuple[int, int, int, int, int]] = []

    def always(self, below: int, above: int, length: int, *, apart: bool = False) -> None:
        """One span is below another."""
        self.rows.append((below, above, length, int(apart), ALWAYS))

    def either(self, one: tuple[int, int], other: tuple[int, int], *, apart: bool = False) -> None:
        """One of two spans (number, bytes) is below the other."""
        half = 2 * self.variables
        self.variables += 1
        self.rows.append((one[0], other[0], one[1], int(apart), half))
        self.rows.append((other[0], one[0], other[1], int(apart), half + 1))


def _bounds(
    problem: TileProblem, base: Column, offset: Column, member: Column, grain: Column
) -> tuple[Column, Column]:
    """Least and most of the bases, as multiples of their grains."""
    least = np.full(len(grain), -SRAM_END, dtype=np.int64)
    most = np.full(len(grain), 2 * SRAM_END, dtype=np.int64)
    lowest = np.where(problem.interleaved == 1, INTERLEAVED.base, SRAM_BASE)
    first = member == 0
    np.maximum.at(least, base[first], (lowest - offset)[first])
    np.minimum.at(most, base, SRAM_END - offset - problem.size - problem.tail)
    return -(-least // grain) * grain, most // grain * grain


def _memory_rules(rules: _Builder, problem: TileProblem, member: Column, reserved: Column) -> None:
    """Spans lie beside what is reserved; members of sequences end in memory, others by their bounds."""
    count = len(problem.size)
    end = count + len(reserved)
    for span in range(count):
        size, tail = int(problem.size[span]), int(problem.tail[span])
        if member[span]:
            rules.always(span, end, size + tail)
        concerned = reserved if problem.resident[span] else problem.blocked
        for number, (start, stop) in enumerate(concerned.tolist()):
            rules.either((span, size), (count + number, stop - start))


def _pair_rules(rules: _Builder, problem: TileProblem, members: Column) -> None:
    """Spans that live at once lie beside each other, and in different elements where they must be apart."""
    request, size, tail = problem.request, problem.size, problem.tail
    alive = problem.last != NEVER[1]
    meets = (problem.first[:, None] <= problem.last) & (problem.first <= problem.last[:, None])
    meets &= alive[:, None] & alive
    apart = np.zeros_like(meets)
    apart[problem.apart[:, 0], problem.apart[:, 1]] = True
    apart = (apart | apart.T) & meets
    chains = _equal(problem, members, apart)
    for one, other in np.argwhere(np.triu(meets, 1)).tolist():
        reach = [int(size[span] + tail[span]) for span in (one, other)]
        if request[one] == request[other]:
            if members[request[one]] == 2 and not apart[one, other]:
                rules.always(one, other, int(size[one]))
            if apart[one, other]:
                below, above = (one, other) if problem.offset[one] <= problem.offset[other] else (other, one)
                rules.always(below, above, int(size[below] + tail[below]), apart=True)
        elif apart[one, other]:
            rules.either((one, reach[0]), (other, reach[1]), apart=True)
        elif (one, other) in chains:
            rules.always(one, other, int(size[one]))
        else:
            rules.either((one, int(size[one])), (other, int(size[other])))


def _equal(problem: TileProblem, members: Column, apart: npt.NDArray[np.bool_]) -> set[tuple[int, int]]:
    """Consecutive spans of each set of equal requests of one span: the later may as well be the upper one."""
    single = np.bincount(problem.request, minlength=len(members)) == 1
    latest: dict[tuple[int, ...], int] = {}
    found: set[tuple[int, int]] = set()
    for span, request in enumerate(problem.request.tolist()):
        if not single[request] or apart[span].any():
            continue
        key = (
            int(problem.alignment[request]),
            *(int(column[span]) for column in (problem.offset, problem.size, problem.tail)),
            *(int(column[span]) for column in (problem.interleaved, problem.first, problem.last)),
            int(problem.resident[span]),
        )
        if key in latest:
            found.add((latest[key], span))
        latest[key] = span
    return found


def _clauses(
    rules: _Builder, problem: TileProblem, members: Column, stride_of: Column, reserved: Column
) -> Iterator[list[tuple[int, int]]]:
    """What sequences and orders imply."""
    below = {(i, j): half for i, j, _, _, half in rules.rows if half != ALWAYS}
    size = [*problem.size.tolist(), *(reserved[:, 1] - reserved[:, 0]).tolist()]

    def unless(half: int) -> tuple[int, int]:
        return half ^ 1, half & 1

    for request in np.flatnonzero(members > 1).tolist():
        stride = 2 * int(stride_of[request])
        spans = problem.spans_of(request)
        rows = list(range(spans.start, spans.stop))
        grain = int(problem.alignment[request])
        for earlier in range(len(rows)):
            for later in range(earlier + 1, min(len(rows), earlier + 1 + _FAR)):
                low, high, steps = rows[earlier], rows[later], later - earlier
                for other in range(len(size)):
                    if (low, other) not in below or (other, high) not in below:
                        continue
                    least = -(-(size[low] + size[other]) // (steps * grain)) * grain
                    if stride:
                        yield [unless(below[low, other]), unless(below[other, high]), (stride, least)]
                    if steps == 1:
                        yield [unless(below[other, low]), (below[other, high], 1 - (below[other, high] & 1))]


def _crowds(problem: TileProblem) -> list[list[int]]:
    """Spans that live at a moment, for each at which no other moment has all of them; overlaps left out."""
    moments = np.arange(len(problem.steps))
    lives = (problem.first[:, None] <= moments) & (moments <= problem.last[:, None])
    crowds: list[list[int]] = []
    for moment in fullest_moments(lives):
        crowd: list[int] = []
        taken: dict[int, list[tuple[int, int]]] = {}
        rows = np.flatnonzero(lives[:, moment])
        for span in rows[np.argsort(-problem.size[rows], kind="stable")].tolist():
            start, stop = int(problem.offset[span]), int(problem.offset[span] + problem.size[span])
            others = taken.setdefault(int(problem.request[span]), [])
            if all(stop <= low or high <= start for low, high in others):
                others.append((start, stop))
                crowd.append(span)
        crowds.append(crowd)
    return crowds


def _below(problem: TileProblem, members: Column, rule: Column) -> Column:
    """What says that one span lies below another."""
    below = np.full((len(problem.size), len(problem.size)), UNKNOWN, dtype=np.int64)
    is_pair = (rule[:, :2] < len(problem.size)).all(axis=1)
    below[rule[is_pair, 0], rule[is_pair, 1]] = rule[is_pair, 4]
    is_same = problem.request[:, None] == problem.request
    is_sequence = is_same & (members[problem.request] > 1)
    below[is_sequence & (problem.member[:, None] < problem.member)] = ALWAYS
    end = (problem.offset + problem.size)[:, None]
    below[is_same & ~is_sequence & (end <= problem.offset)] = ALWAYS
    return below


def _watches(rule: Column, place: Column, halves: int) -> tuple[Column, Column]:
    """For each half the rules that say more when it rises: lower ends of i, upper ones of j, their own."""
    below, above = place[rule[:, 0]], place[rule[:, 1]]
    half = np.concatenate(
        [2 * below[:, 0], 2 * below[:, 1], 2 * above[:, 0] + 1, 2 * above[:, 1] + 1, rule[:, 4]]
    )
    number = np.tile(np.arange(len(rule)), 5)
    kept = half > 1  # neither ALWAYS nor of the variable that is 0
    order = np.argsort(half[kept], kind="stable")
    return (
        np.searchsorted(half[kept][order], np.arange(halves + 1)).astype(np.int64),
        number[kept][order].astype(np.int64),
    )
