"""The state of the search by precedence: bounds of halves, why each rose, and the clauses.

Everything is taken back by going through the rises from the last one to the first. A half's rises are a list
of their own, with leaps as in a skip list, since conflicts ask for the bound that a half had at some time.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.rules import Rules

DECISION: Final = -1
"""Reason of a rise that has none; rules are their numbers, clauses the numbers below this one, noted reasons
numbers beyond those of rules."""

ABSENT: Final = -1

_TRAIL: Final = 1 << 18
"""Rises of bounds that a branch can hold; a search that needs more is given up."""

MOST_LEARNED: Final = 1 << 15
"""Clauses beside the given ones. Beyond half of them, those that join many decisions are forgotten."""

MOST_LITERALS: Final = 1 << 21
"""Literals of those."""

MOST_NOTED: Final = 1 << 20
"""Literals of reasons that crowds gave, on a branch. Crowds say no more when there are so many."""

GIVEN: Final = 0
"""Instead of the decisions that a clause joins: it was there from the beginning, and stays."""

RISES: Final = 0
"""Rises that were not taken back."""

LEVELS: Final = 1
"""Decisions that were not."""

ASKED: Final = 2
"""Of the rises, those whose consequences are known."""

CLAUSES: Final = 3
"""Clauses that there are."""

LISTED: Final = 4
"""Halves of the present conflict, at the beginning of ``listed``."""

CROSSED: Final = 5
"""The half whose bound crossed the other's, or ABSENT if a rule that always holds was broken."""

CROSSED_AT: Final = 6
"""Its least bound that does."""

CULPRIT: Final = 7
"""Why it would rise."""

NOW: Final = 8
"""First rise of the decision that a conflict is traced back to."""

OF_NOW: Final = 9
"""Halves that the conflict needs from there on."""

NOTED: Final = 10
"""Reasons that were noted."""

WORK: Final = 11
"""Rules that were asked, and as much for what takes as long."""

TESTED: Final = 12
"""The rise of a literal that may follow from the others, while that is found out; else ABSENT."""

MISSING: Final = 13
"""Whether it follows from others only in part."""

LEARNED: Final = 14
"""Clauses that were ever learned."""


class State(NamedTuple):
    """All that changes, as columns.

    Args:
        fact: [halves] bounds that follow from no decision.
        bound: [halves] present bounds.
        latest: [halves] the half's latest rise, or ABSENT.
        half, old, new, before, reason, level: [rises] which half rose, from where and to where, its rise
            before that, why, and after how many decisions.
        depth, leap: [rises] how many rises the half has up to here, and one of the earlier ones, chosen so
            that any of them is found in a number of leaps that only grows as the logarithm.
        first: [levels] the first rise of each decision.
        start: [clauses + 1] where the literals of a clause begin in the two below.
        literal, at_least: half and bound of each literal.
        joined: [clauses] decisions that it joins.
        following: [2 clauses, 2] next entry of the list that the entry is in, and the bound at which its
            literal no longer holds; clause c watches with its first two literals, whose entries are 2c and
            2c + 1.
        head: [halves] first entry of the clauses that may say more when the half rises.
        needed: [halves] bound that a conflict needs.
        rise: [halves] the rise that it comes from, or ABSENT if it does not need the half.
        is_listed: [halves] it is in the column below.
        listed: [halves] halves of a conflict, present or past.
        is_spare: [halves] it follows from the others of them.
        stamp: [levels] a number of the clause that last joined the level.
        activity: [variables] how often a precedence was in conflicts of late.
        side: [variables] the value that it had last, or ABSENT.
        note_first: [reasons + 1] where the literals of a noted reason begin in the column below.
        note: [literals, 2] half and bound.
        noted: [levels] how many reasons were noted before each decision.
        low, end, until, order, falling: [spans] of the crowd that is looked at: least begin, most end, bytes
            that nothing reserves below that, spans by rising ends and by falling beginnings.
        is_due: [crowds] it is to be looked at.
        is_risen: [variables] it has risen since crowds were last looked at.
        counts: by the names below.
    """

    fact: Column
    bound: Column
    latest: Column
    half: Column
    old: Column
    new: Column
    before: Column
    reason: Column
    level: Column
    depth: Column
    leap: Column
    first: Column
    start: Column
    literal: Column
    at_least: Column
    joined: Column
    following: Column
    head: Column
    needed: Column
    rise: Column
    is_listed: npt.NDArray[np.bool_]
    listed: Column
    is_spare: npt.NDArray[np.bool_]
    stamp: Column
    activity: npt.NDArray[np.float64]
    side: Column
    note_first: Column
    note: Column
    noted: Column
    low: Column
    end: Column
    until: Column
    order: Column
    falling: Column
    is_due: npt.NDArray[np.bool_]
    is_risen: npt.NDArray[np.bool_]
    counts: Column


def fresh(rules: Rules) -> State:
    """The state before any decision."""
    variables = len(rules.grain)
    halves = 2 * variables
    bound = np.stack([rules.least, -rules.most], axis=1).reshape(-1).astype(np.int64)
    clauses = len(rules.clause_first) - 1 + MOST_LEARNED
    literals = len(rules.clause) + max(MOST_LITERALS, 4 * halves)
    rises = _TRAIL + clauses + 8 * len(rules.rule)

    def nowhere(length: int) -> Column:
        return np.full(length, ABSENT, dtype=np.int64)

    def empty(length: int) -> Column:
        return np.empty(length, dtype=np.int64)

    return State(
        fact=bound.copy(),
        bound=bound,
        latest=nowhere(halves),
        half=empty(rises),
        old=empty(rises),
        new=empty(rises),
        before=empty(rises),
        reason=empty(rises),
        level=empty(rises),
        depth=empty(rises),
        leap=empty(rises),
        first=np.zeros(variables + 2, dtype=np.int64),
        start=np.zeros(clauses + 1, dtype=np.int64),
        literal=empty(literals),
        at_least=empty(literals),
        joined=np.zeros(clauses, dtype=np.int64),
        following=np.full((2 * clauses, 2), ABSENT, dtype=np.int64),
        head=nowhere(halves),
        needed=np.zeros(halves, dtype=np.int64),
        rise=nowhere(halves),
        is_listed=np.zeros(halves, dtype=np.bool_),
        listed=empty(halves),
        is_spare=np.zeros(halves, dtype=np.bool_),
        stamp=np.zeros(variables + 2, dtype=np.int64),
        activity=np.zeros(variables),
        side=nowhere(variables),
        note_first=np.zeros(MOST_NOTED + 2, dtype=np.int64),
        note=np.empty((MOST_NOTED, 2), dtype=np.int64),
        noted=np.zeros(variables + 2, dtype=np.int64),
        low=np.zeros(len(rules.size), dtype=np.int64),
        end=np.zeros(len(rules.size), dtype=np.int64),
        until=np.zeros(len(rules.size), dtype=np.int64),
        order=np.zeros(len(rules.size), dtype=np.int64),
        falling=np.zeros(len(rules.size), dtype=np.int64),
        is_due=np.zeros(len(rules.crowd_first), dtype=np.bool_),
        is_risen=np.ones(variables, dtype=np.bool_),
        counts=np.array([0] * 12 + [ABSENT, 0, 0], dtype=np.int64),
    )


@compiled
def holds(half: int) -> int:
    """The bound at which a half of a precedence says that its side holds."""
    return 1 - (half & 1)


@compiled
def raise_bound(rules: Rules, state: State, half: int, bound: int, reason: int) -> bool:
    """Raises a bound; whether that contradicts the other half's."""
    grain = rules.grain[half >> 1]
    bound = -(-bound // grain) * grain
    if bound <= state.bound[half]:
        return False
    count = state.counts
    if bound + state.bound[half ^ 1] > 0:
        count[CROSSED], count[CROSSED_AT] = half, grain - state.bound[half ^ 1]
        count[CULPRIT] = reason
        return True
    rise = count[RISES]
    state.half[rise], state.old[rise], state.new[rise] = half, state.bound[half], bound
    before = state.latest[half]
    state.before[rise], state.reason[rise] = before, reason
    state.depth[rise], state.leap[rise] = 1, ABSENT
    if before != ABSENT:
        state.depth[rise] = state.depth[before] + 1
        state.leap[rise] = before
        leap = state.leap[before]
        if leap != ABSENT:
            further = state.leap[leap]
            beyond = state.depth[further] if further != ABSENT else 0
            if state.depth[before] - state.depth[leap] == state.depth[leap] - beyond:
                state.leap[rise] = further
    state.level[rise] = count[LEVELS]
    state.latest[half] = rise
    state.bound[half] = bound
    state.is_risen[half >> 1] = True
    count[RISES] = rise + 1
    return False


@compiled
def bound_at(state: State, half: int, rise: int) -> int:
    """The bound of a half just before a rise."""
    entry = state.latest[half]
    while entry >= rise:
        leap = state.leap[entry]
        entry = leap if leap >= rise else state.before[entry]
    return int(state.fact[half] if entry == ABSENT else state.new[entry])
