"""What follows from the bytes of a crowd: spans that live at one moment, of which no two may meet.

Pairs of spans say little where memory is tight: each of ten spans may lie below an eleventh, and only their
bytes together tell how far up that one must be. Two rules count them.

**Overfull.** Spans that must all be between two addresses have no more bytes than nothing reserves there.

**Below.** All that lies below a span and begins at an address or above has room between there and the span,
which so begins that many bytes higher. The same holds from above.

Why a bound rose is noted at once, in bounds that are no higher than needed, and forgotten when it is taken
back.
"""

from compiler.compiled import compiled
from compiler.low.ir import Column
from compiler.placement.halves import (
    ABSENT,
    CROSSED,
    CULPRIT,
    NOTED,
    WORK,
    State,
    holds,
    raise_bound,
)
from compiler.placement.rules import ALWAYS, UNKNOWN, Rules


@compiled
def follow_crowds(rules: Rules, state: State) -> bool:
    """Raises what crowds imply of which a span rose; whether there is a contradiction."""
    for crowd in range(len(rules.crowd_first) - 1):
        state.is_due[crowd] = False
        for entry in range(rules.crowd_first[crowd], rules.crowd_first[crowd + 1]):
            span = rules.crowd[entry]
            state.is_due[crowd] |= (
                state.is_risen[rules.place[span, 0]] or state.is_risen[rules.place[span, 1]]
            )
    state.is_risen[:] = False
    for crowd in range(len(rules.crowd_first) - 1):
        if not state.is_due[crowd]:
            continue
        first, stop = rules.crowd_first[crowd], rules.crowd_first[crowd + 1]
        members = stop - first
        state.counts[WORK] += members * members // 2 + members
        _order(rules, state, int(first), int(stop))
        if _is_overfull(rules, state, int(members)) or _follow_below(rules, state, int(members)):
            return True
    return False


@compiled
def _order(rules: Rules, state: State, first: int, stop: int) -> None:
    """The ends of a crowd's spans, and the spans by rising ends and by falling beginnings."""
    bound, low, end, order, falling = state.bound, state.low, state.end, state.order, state.falling
    for entry in range(stop - first):
        span = rules.crowd[first + entry]
        base, stride, member, offset = rules.place[span]
        low[span] = bound[2 * base] + member * bound[2 * stride] + offset
        end[span] = offset - bound[2 * base + 1] - member * bound[2 * stride + 1] + rules.size[span]
        state.until[span] = free_below(rules.blocked, int(end[span]))
        before = entry - 1
        while before >= 0 and end[order[before]] > end[span]:
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = span
        before = entry - 1
        while before >= 0 and low[falling[before]] < low[span]:
            falling[before + 1] = falling[before]
            before -= 1
        falling[before + 1] = span


@compiled
def free_below(blocked: Column, address: int) -> int:
    """Bytes below an address that nothing reserves, from an end that does not matter."""
    free = address
    for row in range(len(blocked)):
        if blocked[row, 0] < address:
            free -= min(blocked[row, 1], address) - blocked[row, 0]
    return free


@compiled
def _is_overfull(rules: Rules, state: State, members: int) -> bool:
    """Whether spans must all lie between two addresses that have too few bytes between them.

    Notes the spans, those left out without which there are too many anyway.
    """
    low, end, order, size, until = state.low, state.end, state.order, rules.size, state.until
    if state.note_first[state.counts[NOTED]] + 16 * members > len(state.note):
        return False
    for entry in range(members):
        start = low[order[entry]]
        below, held = free_below(rules.blocked, int(start)), 0
        for last in range(members):
            span = order[last]
            if low[span] < start:
                continue
            held += size[span]
            spare = until[span] - below - held
            if spare >= 0:
                continue
            to = end[span]
            reason = _begin_reason(rules, state)
            for which in range(last + 1):
                span = order[which]
                if low[span] < start:
                    continue
                if size[span] < -spare:
                    spare += size[span]
                    continue
                _note_begin(rules, state, int(span), int(start))
                _note_end(rules, state, int(span), int(to))
            state.counts[CROSSED], state.counts[CULPRIT] = ABSENT, reason
            return True
    return False


@compiled
def _follow_below(rules: Rules, state: State, members: int) -> bool:
    """Raises spans above the bytes of all that is below them, and the same from above."""
    low, end, order, falling, size = state.low, state.end, state.order, state.falling, rules.size
    bound, below, blocked = state.bound, rules.below, rules.blocked
    for entry in range(members):
        span = order[entry]
        if state.note_first[state.counts[NOTED]] + 16 * members > len(state.note):
            return False  # what is left out here is found out later
        held, best, since = 0, low[span], ABSENT
        for other in falling[:members]:
            half = below[other, span]
            if half == UNKNOWN or (half != ALWAYS and bound[half] < 1 - (half & 1)):
                continue
            held += size[other]
            at = _after(blocked, int(low[other]), int(held))
            if at > best:
                best, since = at, low[other]
        if since != ABSENT and _raise_begin(rules, state, int(span), int(best), int(since), members):
            return True
        held, best, since = 0, end[span], ABSENT
        for other in order[:members]:
            half = below[span, other]
            if half == UNKNOWN or (half != ALWAYS and bound[half] < 1 - (half & 1)):
                continue
            held += size[other]
            at = _before(blocked, int(end[other]), int(held))
            if at < best:
                best, since = at, end[other]
        if since != ABSENT and _lower_end(rules, state, int(span), int(best), int(since), members):
            return True
    return False


@compiled
def _after(blocked: Column, start: int, size: int) -> int:
    """The lowest address with so many bytes from a start on that nothing reserves."""
    at = start + size
    for row in range(len(blocked)):
        if blocked[row, 1] > start and blocked[row, 0] < at:
            at += blocked[row, 1] - max(blocked[row, 0], start)
    return at


@compiled
def _before(blocked: Column, stop: int, size: int) -> int:
    """The highest address with so many bytes up to a stop that nothing reserves."""
    at = stop - size
    for row in range(len(blocked) - 1, -1, -1):
        if blocked[row, 0] < stop and blocked[row, 1] > at:
            at -= min(blocked[row, 1], stop) - blocked[row, 0]
    return at


@compiled
def _raise_begin(rules: Rules, state: State, span: int, best: int, since: int, members: int) -> bool:
    """Raises the base or the stride of a span that begins at an address or above; whether they cross."""
    base, stride, member, offset = rules.place[span]
    bound, grain = state.bound, rules.grain
    needed = best - offset + member * bound[2 * stride + 1]
    if -(-needed // grain[base]) * grain[base] > bound[2 * base]:
        reason = _note_below(rules, state, span, since, members)
        if member:
            _note(state, int(2 * stride + 1), int(bound[2 * stride + 1]))
        if raise_bound(rules, state, int(2 * base), int(needed), reason):
            return True
    if member:
        needed = -(-(best - offset + bound[2 * base + 1]) // member)
        if -(-needed // grain[stride]) * grain[stride] > bound[2 * stride]:
            reason = _note_below(rules, state, span, since, members)
            _note(state, int(2 * base + 1), int(bound[2 * base + 1]))
            if raise_bound(rules, state, int(2 * stride), int(needed), reason):
                return True
    return False


@compiled
def _lower_end(rules: Rules, state: State, span: int, best: int, since: int, members: int) -> bool:
    """Lowers the base or the stride of a span that ends at an address or below; whether they cross."""
    base, stride, member, offset = rules.place[span]
    bound, grain = state.bound, rules.grain
    offset += rules.size[span]
    needed = offset - best + member * bound[2 * stride]
    if -(-needed // grain[base]) * grain[base] > bound[2 * base + 1]:
        reason = _note_above(rules, state, span, since, members)
        if member:
            _note(state, int(2 * stride), int(bound[2 * stride]))
        if raise_bound(rules, state, int(2 * base + 1), int(needed), reason):
            return True
    if member:
        needed = -(-(offset - best + bound[2 * base]) // member)
        if -(-needed // grain[stride]) * grain[stride] > bound[2 * stride + 1]:
            reason = _note_above(rules, state, span, since, members)
            _note(state, int(2 * base), int(bound[2 * base]))
            if raise_bound(rules, state, int(2 * stride + 1), int(needed), reason):
                return True
    return False


@compiled
def _note_below(rules: Rules, state: State, span: int, since: int, members: int) -> int:
    """Notes what is below a span from an address on; the reason's number."""
    reason = _begin_reason(rules, state)
    for other in state.falling[:members]:
        if state.low[other] < since:
            break
        half = rules.below[other, span]
        if half == UNKNOWN or (half != ALWAYS and state.bound[half] < holds(half)):
            continue
        if half != ALWAYS:
            _note(state, int(half), holds(half))
        _note_begin(rules, state, int(other), since)
    return reason


@compiled
def _note_above(rules: Rules, state: State, span: int, since: int, members: int) -> int:
    """Notes what is above a span up to an address; the reason's number."""
    reason = _begin_reason(rules, state)
    for other in state.order[:members]:
        if state.end[other] > since:
            break
        half = rules.below[span, other]
        if half == UNKNOWN or (half != ALWAYS and state.bound[half] < holds(half)):
            continue
        if half != ALWAYS:
            _note(state, int(half), holds(half))
        _note_end(rules, state, int(other), since)
    return reason


@compiled
def _begin_reason(rules: Rules, state: State) -> int:
    """The number of a reason without literals, the last one."""
    reason = state.counts[NOTED]
    state.counts[NOTED] = reason + 1
    state.note_first[reason + 1] = state.note_first[reason]
    return int(len(rules.rule) + reason)


@compiled
def _note(state: State, half: int, bound: int) -> None:
    """Adds a literal to the last reason."""
    if bound <= state.fact[half]:
        return
    place = state.note_first[state.counts[NOTED]]
    state.note[place, 0], state.note[place, 1] = half, bound
    state.note_first[state.counts[NOTED]] = place + 1


@compiled
def _note_less(rules: Rules, state: State, half: int, factor: int, slack: int) -> int:
    """Adds the present bound of a half, weaker by a slack; what is left of the slack."""
    grain, bound = rules.grain[half >> 1], state.bound[half]
    weaker = max(-(-(bound - slack // factor) // grain) * grain, state.fact[half])
    _note(state, half, int(weaker))
    return int(slack - factor * (bound - weaker))


@compiled
def _note_begin(rules: Rules, state: State, span: int, start: int) -> None:
    """Adds why a span begins at an address or above."""
    base, stride, member, offset = rules.place[span]
    slack = state.bound[2 * base] + member * state.bound[2 * stride] + offset - start
    slack = _note_less(rules, state, int(2 * base), 1, int(slack))
    if member:
        _note_less(rules, state, int(2 * stride), int(member), slack)


@compiled
def _note_end(rules: Rules, state: State, span: int, stop: int) -> None:
    """Adds why a span ends at an address or below."""
    base, stride, member, offset = rules.place[span]
    slack = state.bound[2 * base + 1] + member * state.bound[2 * stride + 1]
    slack += stop - offset - rules.size[span]
    slack = _note_less(rules, state, int(2 * base + 1), 1, int(slack))
    if member:
        _note_less(rules, state, int(2 * stride + 1), int(member), slack)
