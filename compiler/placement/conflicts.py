"""Learning from contradictions: what a contradiction needs, and the clause that forbids it from now on.

A contradiction is traced back, rise by rise, until one rise of the latest decision is left on which all of
it depends. On the way each rule asks for no more than it needs (``_need_less``).
"""

import numpy as np

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.halves import (
    ABSENT,
    ASKED,
    CLAUSES,
    CROSSED,
    CROSSED_AT,
    CULPRIT,
    DECISION,
    GIVEN,
    LEARNED,
    LEVELS,
    LISTED,
    MISSING,
    NOTED,
    NOW,
    OF_NOW,
    RISES,
    TESTED,
    WORK,
    State,
    bound_at,
    holds,
)
from compiler.placement.lowest import element_end, element_start
from compiler.placement.rules import ALWAYS, Rules


@compiled
def learn(rules: Rules, state: State, gain: float) -> int:
    """Makes a clause of a conflict; the level at which it says something, or ABSENT if nothing can hold."""
    count = state.counts
    count[LISTED] = count[OF_NOW] = 0
    count[NOW] = len(state.half)
    crossed, end = int(count[CROSSED]), int(count[RISES])
    _need_reason(rules, state, crossed, int(count[CROSSED_AT]), int(count[CULPRIT]), end)
    if crossed != ABSENT:
        _need(state, crossed ^ 1, int(state.bound[crossed ^ 1]))
    last = ABSENT
    for place in range(count[LISTED]):
        last = max(last, state.rise[state.listed[place]])
    if last == ABSENT:
        return ABSENT
    count[NOW] = state.first[state.level[last]]
    for place in range(count[LISTED]):
        count[OF_NOW] += state.rise[state.listed[place]] >= count[NOW]
    rise = last
    while True:
        half = int(state.half[rise])
        if state.rise[half] == rise:
            if rules.grain[half >> 1] == 1:
                state.activity[half >> 1] += gain
            if count[OF_NOW] == 1:
                break
            count[OF_NOW] -= 1
            state.rise[half] = ABSENT
            _need_reason(rules, state, half, int(state.needed[half]), int(state.reason[rise]), int(rise))
        rise -= 1
    unique = int(state.half[rise])
    for place in range(count[LISTED]):
        # What follows from the others is left out.
        half = int(state.listed[place])
        entry = int(state.rise[half])
        state.is_spare[half] = False
        if half != unique and entry != ABSENT and state.reason[entry] != DECISION:
            count[TESTED], count[MISSING] = entry, 0
            _need_reason(rules, state, half, int(state.needed[half]), int(state.reason[entry]), entry)
            state.is_spare[half] = count[MISSING] == 0
    count[TESTED] = ABSENT
    clause = count[CLAUSES]
    count[CLAUSES] = clause + 1
    count[LEARNED] += 1
    start = state.start[clause]
    state.literal[start] = unique ^ 1
    state.at_least[start] = rules.grain[unique >> 1] - state.needed[unique]
    stop, back, joined = start + 1, 0, 1
    for place in range(count[LISTED]):
        half = int(state.listed[place])
        state.is_listed[half] = False
        entry = state.rise[half]
        state.rise[half] = ABSENT
        if half == unique or entry == ABSENT:
            continue
        if rules.grain[half >> 1] == 1:
            state.activity[half >> 1] += gain
        if state.is_spare[half]:
            continue
        state.literal[stop] = half ^ 1
        state.at_least[stop] = rules.grain[half >> 1] - state.needed[half]
        level = state.level[entry]
        if level > back:
            back = level
            state.literal[stop], state.literal[start + 1] = state.literal[start + 1], state.literal[stop]
            state.at_least[stop], state.at_least[start + 1] = state.at_least[start + 1], state.at_least[stop]
        joined += state.stamp[level] != count[LEARNED]
        state.stamp[level] = count[LEARNED]
        stop += 1
    state.start[clause + 1] = stop
    state.joined[clause] = joined
    count[WORK] += 4 * count[LISTED]
    return int(back)


@compiled
def _need(state: State, half: int, bound: int) -> None:
    """Adds a literal that holds to a conflict."""
    if bound <= state.fact[half]:
        return
    entry = state.latest[half]
    while state.old[entry] >= bound:
        leap = state.leap[entry]
        entry = leap if leap != ABSENT and state.old[leap] >= bound else state.before[entry]
    if state.level[entry] == 0:
        return
    count = state.counts
    if count[TESTED] != ABSENT:
        # Only what rose before the tested one: else two could stand for each other.
        if not (state.rise[half] != ABSENT and bound <= state.needed[half]) or (
            state.rise[half] >= count[TESTED]
        ):
            count[MISSING] = 1
        return
    if state.rise[half] == ABSENT:
        if not state.is_listed[half]:
            state.is_listed[half] = True
            state.listed[count[LISTED]] = half
            count[LISTED] += 1
        count[OF_NOW] += entry >= count[NOW]
    elif bound <= state.needed[half]:
        return
    else:
        count[OF_NOW] += state.rise[half] < count[NOW] <= entry
    state.rise[half], state.needed[half] = entry, bound


@compiled
def _need_less(rules: Rules, state: State, half: int, bound: int, factor: int, slack: int) -> int:
    """Adds a literal that may be weaker by a slack; what is left of the slack."""
    grain = rules.grain[half >> 1]
    weaker = -(-(bound - slack // factor) // grain) * grain
    if weaker < state.fact[half]:
        weaker = state.fact[half]
    if weaker > bound:
        weaker = bound
    _need(state, half, weaker)
    return slack - factor * (bound - weaker)


@compiled
def _need_reason(rules: Rules, state: State, half: int, needed: int, reason: int, rise: int) -> None:
    """Adds why a half rose to what is needed, just before a rise."""
    if reason >= len(rules.rule):
        noted = reason - len(rules.rule)
        for place in range(state.note_first[noted], state.note_first[noted + 1]):
            _need(state, int(state.note[place, 0]), int(state.note[place, 1]))
        return
    if reason >= 0:
        _need_rule(rules, state, reason, half, needed, rise)
        return
    clause = DECISION - 1 - reason
    for place in range(state.start[clause], state.start[clause + 1]):
        literal = state.literal[place]
        if literal != half:
            opposite = int(literal ^ 1)
            _need(state, opposite, int(rules.grain[opposite >> 1] - state.at_least[place]))


@compiled
def _need_rule(rules: Rules, state: State, number: int, half: int, needed: int, rise: int) -> None:
    """Adds why a rule raised a half to what is needed, just before a rise; ABSENT as half if it broke."""
    i, j, length, apart, own = rules.rule[number]
    base_i, stride_i, member_i, offset_i = rules.place[i]
    base_j, stride_j, member_j, offset_j = rules.place[j]
    low_base, low_stride = bound_at(state, 2 * base_i, rise), bound_at(state, 2 * stride_i, rise)
    high_base, high_stride = bound_at(state, 2 * base_j + 1, rise), bound_at(state, 2 * stride_j + 1, rise)
    end = low_base + member_i * low_stride + offset_i + length
    begin = offset_j - high_base - member_j * high_stride
    opposite = half ^ 1
    is_of_rule = half == ABSENT or (own != ALWAYS and opposite == own)
    if apart:
        # Any end in the same element, and any begin, says the same.
        slack = end - element_start(rules.memory, end - 1) - 1
        slack_j = element_end(rules.memory, begin + 1) - 1 - begin
    else:
        grain = rules.grain[half >> 1] if half != ABSENT else 1
        if is_of_rule:
            slack = end - begin - 1
        elif half == 2 * base_j:
            slack = end - offset_j + member_j * high_stride - (needed - grain + 1)
        elif half == 2 * stride_j:
            slack = end - offset_j + high_base - member_j * (needed - grain) - 1
        elif half == 2 * base_i + 1:
            slack = member_i * low_stride - (begin - length - offset_i) - (needed - grain + 1)
        else:
            slack = low_base - (begin - length - offset_i) - member_i * (needed - grain) - 1
        slack_j = slack
    if own != ALWAYS and opposite != own:
        _need(state, int(own), holds(int(own)))
    if base_i and 2 * base_i != opposite:
        slack = _need_less(rules, state, int(2 * base_i), int(low_base), 1, int(slack))
    if member_i and 2 * stride_i != opposite:
        slack = _need_less(rules, state, int(2 * stride_i), int(low_stride), int(member_i), int(slack))
    if not apart:
        slack_j = slack
    if base_j and 2 * base_j + 1 != opposite:
        slack_j = _need_less(rules, state, int(2 * base_j + 1), int(high_base), 1, int(slack_j))
    if member_j and 2 * stride_j + 1 != opposite:
        _need_less(rules, state, int(2 * stride_j + 1), int(high_stride), int(member_j), int(slack_j))


@compiled
def go_back(state: State, level: int) -> None:
    """Takes back all decisions after so many."""
    count = state.counts
    if count[LEVELS] <= level:
        return
    end = state.first[level + 1]
    for rise in range(count[RISES] - 1, end - 1, -1):
        half = state.half[rise]
        state.bound[half] = state.old[rise]
        state.latest[half] = state.before[rise]
        state.side[half >> 1] = half & 1
    count[NOTED] = state.noted[level + 1]
    count[RISES], count[LEVELS] = end, level
    count[ASKED] = end


@compiled
def watch(grain: Column, state: State, clause: int) -> None:
    """Puts a clause into the lists of its first two literals."""
    start = state.start[clause]
    if state.start[clause + 1] - start < 2:
        return  # a fact, sooner than it is looked for
    for which in range(2):
        half = state.literal[start + which] ^ 1
        state.following[2 * clause + which, 0] = state.head[half]
        state.following[2 * clause + which, 1] = grain[half >> 1] - state.at_least[start + which]
        state.head[half] = 2 * clause + which


@compiled
def forget(grain: Column, state: State) -> None:
    """Keeps half of what was learned, clauses that join the fewest decisions and of these the newest."""
    clauses = state.counts[CLAUSES]
    score = np.empty(clauses, dtype=np.int64)
    for clause in range(clauses):
        score[clause] = state.joined[clause] * 2 * clauses - clause
    given = int((state.joined[:clauses] == GIVEN).sum())
    kept = np.zeros(clauses, dtype=np.bool_)
    kept[np.argsort(score)[: given + (clauses - given) // 2]] = True  # GIVEN is below all others
    end, number = 0, 0
    state.head[:] = ABSENT
    for clause in range(clauses):
        start, stop = state.start[clause], state.start[clause + 1]
        if not kept[clause]:
            continue
        for place in range(start, stop):
            state.literal[end + place - start] = state.literal[place]
            state.at_least[end + place - start] = state.at_least[place]
        state.joined[number] = state.joined[clause]
        state.start[number] = end
        end += stop - start
        number += 1
        state.start[number] = end
        watch(grain, state, number - 1)
    state.counts[CLAUSES] = number
