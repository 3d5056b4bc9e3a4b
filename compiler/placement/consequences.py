"""What follows from bounds: by rules, by clauses, and by the bytes of crowds.

Rules and clauses are followed until nothing rises any more; crowds are counted then. Each can end in a
contradiction, of which is noted in ``State.counts`` which half crossed the other and why.
"""

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.crowds import follow_crowds
from compiler.placement.halves import (
    ABSENT,
    ASKED,
    CROSSED,
    CULPRIT,
    DECISION,
    RISES,
    WORK,
    State,
    raise_bound,
)
from compiler.placement.lowest import element_end, element_start
from compiler.placement.rules import ALWAYS, Rules


@compiled
def follow(rules: Rules, state: State) -> bool:
    """Raises all that follows from rises; whether there is a contradiction."""
    count = state.counts
    while True:
        if count[ASKED] == count[RISES]:
            if follow_crowds(rules, state):
                return True
            if count[ASKED] == count[RISES]:
                return False
        half = int(state.half[count[ASKED]])
        count[ASKED] += 1
        _mark(rules, state, half)
        if _follow_clauses(rules, state, half):
            return True
        count[WORK] += rules.watch_first[half + 1] - rules.watch_first[half] + 8
        if follow_rules(
            rules, state, rules.watch, int(rules.watch_first[half]), int(rules.watch_first[half + 1])
        ):
            return True
        if count[RISES] + len(state.joined) + 4 * len(rules.rule) > len(state.half):
            return False


@compiled
def _mark(rules: Rules, state: State, half: int) -> None:
    """Marks what a precedence concerns, for the crowds."""
    if rules.watch_first[half] < rules.watch_first[half + 1]:
        number = rules.watch[rules.watch_first[half]]
        if rules.rule[number, 4] == half:
            state.is_risen[rules.place[rules.rule[number, 0], 0]] = True
            state.is_risen[rules.place[rules.rule[number, 1], 0]] = True


@compiled
def follow_rules(rules: Rules, state: State, numbers: Column, first: int, stop: int) -> bool:
    """Raises what rules imply, those at some places of a column; whether there is a contradiction.

    One loop, and no call where nothing rises: a call takes longer than a rule.
    """
    rule, place, grain, memory, bound = rules.rule, rules.place, rules.grain, rules.memory, state.bound
    for at in range(first, stop):
        number = numbers[at]
        half = rule[number, 4]
        if half != ALWAYS and bound[half ^ 1] >= half & 1:
            continue  # the other side holds
        i, j, length = rule[number, 0], rule[number, 1], rule[number, 2]
        base_i, stride_i, member_i, offset_i = place[i, 0], place[i, 1], place[i, 2], place[i, 3]
        base_j, stride_j, member_j, offset_j = place[j, 0], place[j, 1], place[j, 2], place[j, 3]
        end = bound[2 * base_i] + offset_i + length
        begin = offset_j - bound[2 * base_j + 1]
        if member_i:
            end += member_i * bound[2 * stride_i]
        if member_j:
            begin -= member_j * bound[2 * stride_j + 1]
        if rule[number, 3]:
            end, begin = element_end(memory, end), element_start(memory, begin)
        if end > begin:
            if half == ALWAYS:
                state.counts[CROSSED], state.counts[CULPRIT] = ABSENT, number
                return True
            if raise_bound(rules, state, int(half ^ 1), int(half & 1), int(number)):
                return True
            continue
        if half != ALWAYS and bound[half] < 1 - (half & 1):
            continue
        # From where j begins at least, and i at most.
        least, most = end - offset_j, begin - length - offset_i
        needed = least + member_j * bound[2 * stride_j + 1]
        rises = base_j and -(-needed // grain[base_j]) * grain[base_j] > bound[2 * base_j]
        if rises and raise_bound(rules, state, int(2 * base_j), int(needed), int(number)):
            return True
        if member_j:
            needed = -(-(least + bound[2 * base_j + 1]) // member_j)
            if needed > bound[2 * stride_j] and raise_bound(
                rules, state, int(2 * stride_j), int(needed), int(number)
            ):
                return True
        needed = member_i * bound[2 * stride_i] - most
        rises = base_i and -(-needed // grain[base_i]) * grain[base_i] > bound[2 * base_i + 1]
        if rises and raise_bound(rules, state, int(2 * base_i + 1), int(needed), int(number)):
            return True
        if member_i:
            needed = -(-(bound[2 * base_i] - most) // member_i)
            if needed > bound[2 * stride_i + 1] and raise_bound(
                rules, state, int(2 * stride_i + 1), int(needed), int(number)
            ):
                return True
    return False


@compiled
def _follow_clauses(rules: Rules, state: State, half: int) -> bool:
    """Raises what clauses imply now that a half rose; whether there is a contradiction."""
    bound, literal, at_least, following = state.bound, state.literal, state.at_least, state.following
    previous, entry, visits = ABSENT, state.head[half], 0
    while entry != ABSENT:
        after, visits = following[entry, 0], visits + 1
        if bound[half] < following[entry, 1]:
            previous, entry = entry, after
            continue
        clause = entry >> 1
        start, stop = state.start[clause], state.start[clause + 1]
        mine, other = start + (entry & 1), start + 1 - (entry & 1)
        is_moved = False
        if bound[literal[other]] < at_least[other]:
            for place in range(start + 2, stop):
                opposite = literal[place] ^ 1
                if bound[opposite] < rules.grain[opposite >> 1] - at_least[place]:
                    literal[mine], literal[place] = literal[place], literal[mine]
                    at_least[mine], at_least[place] = at_least[place], at_least[mine]
                    following[entry, 0] = state.head[opposite]
                    following[entry, 1] = rules.grain[opposite >> 1] - at_least[mine]
                    state.head[opposite] = entry
                    is_moved = True
                    break
            if not is_moved and raise_bound(
                rules, state, int(literal[other]), int(at_least[other]), int(DECISION - 1 - clause)
            ):
                return True
        if is_moved and previous == ABSENT:
            state.head[half] = after
        elif is_moved:
            following[previous, 0] = after
        else:
            previous = entry
        entry = after
    state.counts[WORK] += visits // 4
    return False
