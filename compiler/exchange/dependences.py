"""Which transfers of a phase touch the same bytes, and so keep the order of the table.

Input: placed transfers and the number of iterations. Output: ``Dependences`` from which this follows of every
two accesses to bytes of a tile of which one writes, in any iteration: the one of the earlier transfer has
ended when the other begins (reads after writes, writes after reads, writes after writes). That the table's
order is meant is the low program's decision; that a transfer may read what an earlier one brought in the same
phase follows from it.

Each access is an interval of a line on which the tiles' memories lie end to end. A sweep over the line keeps
the accesses that the present byte belongs to, writes and reads each as a set in the table's order. Whoever
comes in needs its neighbours only: a write waits for the reads since the write before it, or if there are
none for that write, and what is behind it waits likewise; a read waits for the write before it. All others
follow, for a window that ends before another begins also ends before all that come behind that one. Nothing
follows from going out. The work is n log n and a step for each pair found; of n writes to one byte there are
n - 1 pairs and not n * n / 2.

Most phases have no two such accesses, which a walk over the sorted intervals tells; only stretches of memory
with some are swept.
"""

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.columns import ascending
from compiler.exchange.ir import SOURCE_SIDE, Dependences, PlacedTransfers
from compiler.target.memory import SRAM_END
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array


def dependences_of(transfers: PlacedTransfers, iterations: int) -> Dependences:
    """Pairs that must keep their order, from which all such pairs follow.

    Args:
        transfers: the phase; the order of its rows is the order meant. None receives over what it sends.
        iterations: iterations whose addresses are looked at.
    """
    # Accesses are numbered in the table's order: of each transfer its read, then its writes.
    owner = transfers.transfer_of_recipient
    count = len(transfers.source) + len(owner)
    read = np.arange(len(transfers.source)) + transfers.first_recipient[:-1]
    write = np.arange(len(owner)) + owner + 1
    is_write = np.zeros(count, dtype=np.bool_)
    is_write[write] = True
    transfer, side, begin, size = np.empty((4, count), dtype=np.int64)
    transfer[read], transfer[write] = np.arange(len(transfers.source)), owner
    side[read], side[write] = SOURCE_SIDE, np.arange(len(owner))
    size[read], size[write] = WORD_BYTES * transfers.words, WORD_BYTES * transfers.words[owner]
    found: list[Int64Array] = []
    for iteration in range(iterations):
        begin[read] = transfers.source * SRAM_END + transfers.address + iteration * transfers.stride
        begin[write] = (
            transfers.receiver * SRAM_END + transfers.receiver_address + iteration * transfers.receiver_stride
        )
        end = begin + size
        chosen = np.flatnonzero(_in_conflict(begin, end, is_write, ascending(begin)))
        if chosen.size:
            # Whoever goes out does so before others come in at the same byte.
            events = ascending(np.concatenate([2 * begin[chosen] + 1, 2 * end[chosen]]))
            first, second = _neighbours(events, is_write[chosen])
            found.append(chosen[first] * count + chosen[second])
    pairs = np.unique(np.concatenate([np.empty(0, dtype=np.int64), *found]))
    before, after = pairs // max(count, 1), pairs % max(count, 1)
    apart = transfer[before] != transfer[after]
    before, after = before[apart], after[apart]
    order = np.lexsort((side[after], side[before], transfer[before], transfer[after]))
    before, after = before[order], after[order]
    return Dependences(
        before=transfer[before],
        after=transfer[after],
        before_recipient=side[before],
        after_recipient=side[after],
    )


@compiled
def _in_conflict(begin: Int64Array, end: Int64Array, is_write: BoolArray, order: Int64Array) -> BoolArray:
    """[accesses] whether an access lies in a stretch in which a write meets another access.

    A stretch is a set of intervals without a gap between them; ``order`` is that of begins.
    """
    result = np.zeros(begin.size, dtype=np.bool_)
    first = 0
    reach = -1
    written = -1
    meets = False
    for place in range(order.size + 1):
        access = order[place] if place < order.size else -1
        if access < 0 or begin[access] >= reach:
            if meets:
                for member in range(first, place):
                    result[order[member]] = True
            first = place
            meets = False
        if access < 0:
            break
        if begin[access] < written or (is_write[access] and begin[access] < reach):
            meets = True
        reach = max(reach, end[access])
        if is_write[access]:
            written = max(written, end[access])
    return result


@compiled
def _neighbours(events: Int64Array, is_write: BoolArray) -> tuple[Int64Array, Int64Array]:
    """Pairs of accesses, first and second in the table's order, that follow each other at some byte.

    Args:
        events: in order of bytes; ``access`` comes in, ``access + len(is_write)`` goes out.
        is_write: [accesses] in the table's order.
    """
    count = is_write.size
    leaves = 1
    while leaves < count + 1:
        leaves *= 2
    writes = np.zeros(2 * leaves, dtype=np.bool_)
    reads = np.zeros(2 * leaves, dtype=np.bool_)
    pairs = np.empty((2, 16), dtype=np.int64)
    found = 0
    for event in events:
        access = event if event < count else event - count
        members = writes if is_write[access] else reads
        if event >= count:
            _leave(members, leaves + access)
            continue
        _enter(members, leaves + access)
        low = _member_before(writes, leaves, access)
        high = _member_behind(writes, leaves, access)
        if not is_write[access]:
            if low >= 0:
                pairs, found = _append(pairs, found, low, access)
            if high >= 0:
                pairs, found = _append(pairs, found, access, high)
            continue
        read = _member_before(reads, leaves, access)
        if read <= low and low >= 0:
            pairs, found = _append(pairs, found, low, access)
        while read > low:
            pairs, found = _append(pairs, found, read, access)
            read = _member_before(reads, leaves, read)
        read = _member_behind(reads, leaves, access)
        if high >= 0 and (read < 0 or read > high):
            pairs, found = _append(pairs, found, access, high)
        while read >= 0 and (high < 0 or read < high):
            pairs, found = _append(pairs, found, access, read)
            read = _member_behind(reads, leaves, read)
    return pairs[0, :found], pairs[1, :found]


@compiled
def _append(pairs: Int64Array, found: int, first: int, second: int) -> tuple[Int64Array, int]:
    """Write a pair into room that grows; the room, and the number of pairs."""
    if found == pairs.shape[1]:
        larger = np.empty((2, 2 * found), dtype=np.int64)
        larger[:, :found] = pairs
        pairs = larger
    pairs[0, found] = first
    pairs[1, found] = second
    return pairs, found + 1


# A set of numbers below a power of two is a complete binary tree: the children of node n are 2n and 2n + 1,
# the leaves come last, and a node holds whether any leaf below it is a member.


@compiled
def _enter(tree: BoolArray, node: int) -> None:
    while node > 0 and not tree[node]:
        tree[node] = True
        node >>= 1


@compiled
def _leave(tree: BoolArray, node: int) -> None:
    tree[node] = False
    node >>= 1
    while node > 0 and not tree[2 * node] and not tree[2 * node + 1]:
        tree[node] = False
        node >>= 1


@compiled
def _member_before(tree: BoolArray, leaves: int, number: int) -> int:
    """The greatest member below a number, or -1."""
    node = leaves + number
    while node > 1 and not (node & 1 and tree[node - 1]):
        node >>= 1
    if node <= 1:
        return -1
    node -= 1
    while node < leaves:
        node = 2 * node + 1 if tree[2 * node + 1] else 2 * node
    return node - leaves


@compiled
def _member_behind(tree: BoolArray, leaves: int, number: int) -> int:
    """The least member above a number, or -1."""
    node = leaves + number
    while node > 1 and (node & 1 or not tree[node + 1]):
        node >>= 1
    if node <= 1:
        return -1
    node += 1
    while node < leaves:
        node = 2 * node if tree[2 * node] else 2 * node + 1
    return node - leaves
