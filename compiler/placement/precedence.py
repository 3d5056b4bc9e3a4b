"""Complete search by precedence: which of two spans is below the other, with clauses learned from dead ends.

**Problem.** The same as that of ``search``, told without coordinates. Two spans that may not meet: one ends
where the other begins, or below, or the other way round. Where they must be in different memory elements,
one ends below some border of elements and the other begins above. Strides are variables like bases, so a
sequence is no special case: byte addresses of spans are ``base + member * stride + offset``.

**Why a second search.** Placing at lowest ends (``search``) is strong where memory is crowded, since it
counts bytes. It is weak where far decisions meet: reserved ranges in the middle, strides, spans that
interlock. There precedences say more than addresses, and what is learned of one dead end cuts off others.

**Variables** have bounds, and only bounds are reasoned with: a base or a stride between two multiples of its
alignment, a precedence between 0 and 1. Of each variable x there are two *halves*, x and -x; a half only has
a lower bound, which only rises. A *literal* is (half, bound): the half is at least that. Its negation is one
of the other half. So lower and upper bounds, and precedences, are all one thing.

**Rules.** A rule says ``below``: if its precedence holds, span i ends where span j begins, or below. From the
bounds of i and j follow others, or that the precedence does not hold. *Clauses*, of which one literal must
hold, are what was learned.

**Conflict.** When two bounds of a variable cross, the literals they follow from are traced back to the last
one of the latest decision that all of the contradiction passes through. Its negation, or that of one of the
earlier literals, is the clause. A rule often says more than was needed; then a weaker bound of what it
followed from is enough (the *slack*), which makes clauses more general. A contradiction that follows from no
decision is the proof that there is no solution.

**Crowds** (``crowds``). Spans that live at one moment and must all be between two addresses need that many
bytes there. When a crowd is overfull, that is a conflict, of those spans whose bytes make it so. And a span
is above the bytes of all that are known to be below it, whatever their order. Without the second, problems
of forty lives and hardly a spare byte took five times as many decisions, or were given up; others are found
sooner without it, so three tries of nine leave it out.

**Order.** Tries of three kinds have turns, and share their clauses. One kind decides precedences: those with
many recent conflicts first, in the beginning those of reserved ranges and of large spans, each to the side
that it had last, or else that with more room. When all are decided, bases are, each at its lower bound, which
the search takes back like any decision. The other two kinds decide bases only, lowest first: a stride when
the base of its sequence is decided, or else, to be tight, all strides before bases. Tries follow Luby's
series; clauses that join few decisions are kept. No chance and no clock.

**Complete and sound:** each learned clause follows from the rules; domains are finite.

**Rejected:** the precedences of each two spans as a table searched without learning (does not end on twelve
requests), and intervals of strides with free members (loose problems refute nothing).

Cost of a decision: the rules of the halves that rise.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.conflicts import forget, go_back, learn, watch
from compiler.placement.consequences import follow, follow_rules
from compiler.placement.halves import (
    ABSENT,
    ASKED,
    CLAUSES,
    DECISION,
    GIVEN,
    LEVELS,
    MOST_LEARNED,
    MOST_LITERALS,
    NOTED,
    RISES,
    WORK,
    State,
    fresh,
    holds,
    raise_bound,
)
from compiler.placement.model import NOWHERE
from compiler.placement.problem import TileProblem, members_of
from compiler.placement.rules import ALWAYS, UNKNOWN, Rules, rules_of
from compiler.placement.search import Verdict, luby

_TRY: Final = 128
"""Conflicts of the shortest try."""

_CONFLICTS: Final = 1
"""Preference for precedences with many recent conflicts."""

_TIGHT: Final = 2
"""Preference for the least strides, then the lowest base."""

_NONE: Final = 0

_FOUND: Final = 1

_GAVE_UP: Final = 2


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ordered:
    """The outcome of a search.

    Args:
        verdict: what is known.
        base, stride: [requests] a solution with FOUND, else nothing of use.
        nodes: decisions and conflicts.
    """

    verdict: Verdict
    base: Column
    stride: Column
    nodes: int


def search_precedences(problem: TileProblem, work: int) -> Ordered:
    """Looks for bases and strides; deterministic.

    Args:
        problem: a tile's problem, at its tightest strides.
        work: rules that may be asked before it gives up.
    """
    members = members_of(problem)
    rules = rules_of(problem, members)
    pairs, sequences = np.flatnonzero(members == 2), np.flatnonzero(members > 2)
    count = len(members)
    variables = 1 + count + len(pairs) + len(sequences)
    state = fresh(rules)
    first_rule = np.full(2 * len(rules.grain), ABSENT, dtype=np.int64)
    told = rules.rule[:, 4] != ALWAYS
    first_rule[rules.rule[told, 4]] = np.flatnonzero(told)
    size = np.zeros(len(rules.grain))
    np.add.at(size, rules.rule[told, 4] >> 1, rules.rule[told, 2])
    state.activity[:] = size / max(1.0, float(size.max(initial=0)))
    fixed = told & ((rules.rule[:, 0] >= len(rules.size)) | (rules.rule[:, 1] >= len(rules.size)))
    state.activity[rules.rule[fixed, 4] >> 1] += 1
    uncounted = rules._replace(below=np.full_like(rules.below, UNKNOWN))
    used = number = 0
    gain = 1.0
    outcome = _NONE if (rules.least > rules.most).any() or _begin(rules, state) else _GAVE_UP
    while outcome == _GAVE_UP and state.counts[WORK] <= work:
        number += 1
        state.counts[WORK] += len(rules.rule)  # to begin takes as long, about
        outcome, spent, gain = _try(
            uncounted if (number - 1) // 3 % 3 == 1 else rules,
            state,
            variables,
            first_rule,
            _TRY * luby(number // 3 + 1),
            work,
            gain,
            number % 3,
        )
        used += spent
    value = state.bound[2 : 2 * variables : 2]
    base, stride = value[:count].copy(), problem.stride.copy()
    stride[pairs] = value[count : count + len(pairs)] - base[pairs]
    stride[sequences] = value[count + len(pairs) :]
    verdict = {_FOUND: Verdict.FOUND, _NONE: Verdict.NONE, _GAVE_UP: Verdict.GIVEN_UP}[outcome]
    return Ordered(verdict=verdict, base=base, stride=stride, nodes=used)


@compiled
def _begin(rules: Rules, state: State) -> bool:
    """Takes over the given clauses and asks every rule once; whether there is a contradiction."""
    given = len(rules.clause_first) - 1
    state.start[: given + 1] = rules.clause_first
    state.literal[: len(rules.clause)] = rules.clause[:, 0]
    state.at_least[: len(rules.clause)] = rules.clause[:, 1]
    state.counts[CLAUSES] = given
    for clause in range(given):
        state.joined[clause] = GIVEN
        watch(rules.grain, state, clause)
    numbers = np.arange(len(rules.rule))
    return follow_rules(rules, state, numbers, 0, len(numbers))


@compiled
def _try(
    rules: Rules,
    state: State,
    variables: int,
    first_rule: Column,
    conflicts: int,
    work: int,
    gain: float,
    preference: int,
) -> tuple[int, int, float]:
    """One try: its outcome, its decisions and conflicts, and what a conflict counts by now."""
    count = state.counts
    go_back(state, 0)
    room = len(state.literal) - state.start[count[CLAUSES]]
    if len(state.joined) - count[CLAUSES] < MOST_LEARNED // 2 or room < MOST_LITERALS // 2:
        forget(rules.grain, state)
    nodes = 0
    while True:
        if follow(rules, state):
            nodes += 1
            conflicts -= 1
            back = learn(rules, state, gain)
            if back == ABSENT:
                return _NONE, nodes, gain
            gain *= 1.05
            if gain > 1e100:
                state.activity[:] *= 1e-100
                gain *= 1e-100
            go_back(state, back)
            clause = count[CLAUSES] - 1
            watch(rules.grain, state, clause)
            start = state.start[clause]
            raise_bound(
                rules, state, int(state.literal[start]), int(state.at_least[start]), DECISION - 1 - clause
            )
            continue
        if count[LEVELS] == 0 and count[ASKED] == count[RISES]:
            # What follows from no decision needs no reason.
            state.fact[:] = state.bound
            state.latest[:] = ABSENT
            count[RISES] = count[ASKED] = count[NOTED] = 0
        if (
            conflicts <= 0
            or count[WORK] > work
            or count[ASKED] < count[RISES]
            or count[CLAUSES] + 1 >= len(state.joined)
            or state.start[count[CLAUSES]] + len(state.bound) >= len(state.literal)
        ):
            return _GAVE_UP, nodes, gain
        nodes += 1
        if not _decide(rules, state, variables, first_rule, preference):
            return _FOUND, nodes, gain


@compiled
def _side(rules: Rules, state: State, variable: int, first_rule: Column) -> int:
    """The half of a precedence to try: the side that it had last, else the one with more room."""
    if state.side[variable] != ABSENT:
        return int(2 * variable + state.side[variable])
    bound = state.bound
    room = np.zeros(2, dtype=np.int64)
    for side in range(2):
        i, j, length, _, _ = rules.rule[first_rule[2 * variable + side]]
        base_i, stride_i, member_i, offset_i = rules.place[i]
        base_j, stride_j, member_j, offset_j = rules.place[j]
        room[side] = (
            offset_j
            - bound[2 * base_j + 1]
            - member_j * bound[2 * stride_j + 1]
            - (bound[2 * base_i] + member_i * bound[2 * stride_i] + offset_i + length)
        )
    return int(2 * variable + (room[1] > room[0]))


@compiled
def _decide(rules: Rules, state: State, variables: int, first_rule: Column, preference: int) -> bool:
    """Makes the next decision; whether there was one to make."""
    bound, best = state.bound, ABSENT
    half = value = 0
    if preference == _CONFLICTS:
        for variable in range(variables, len(rules.grain)):
            if bound[2 * variable] + bound[2 * variable + 1] < 0 and (
                best == ABSENT or state.activity[variable] > state.activity[best]
            ):
                best = variable
        if best != ABSENT:
            half = _side(rules, state, best, first_rule)
            value = holds(half)
    if best == ABSENT:
        # The lowest base, and then the stride of its sequence.
        lowest = 0
        for variable in range(1, variables):
            if bound[2 * variable] + bound[2 * variable + 1] < 0:
                base = rules.base[variable]
                here = bound[2 * variable]
                if base != variable and preference != _TIGHT:
                    here = -1 if bound[2 * base] + bound[2 * base + 1] == 0 else NOWHERE
                if best == ABSENT or here < lowest:
                    best, lowest = variable, here
        if best == ABSENT:
            return False
        half, value = 2 * best + 1, -bound[2 * best]
    count = state.counts
    count[LEVELS] += 1
    state.first[count[LEVELS]], state.noted[count[LEVELS]] = count[RISES], count[NOTED]
    raise_bound(rules, state, int(half), int(value), DECISION)
    return True
