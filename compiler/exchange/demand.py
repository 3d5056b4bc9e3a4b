"""What a phase must move: from rows of the low program to spans at addresses.

Input: a low program, its placement, an exchange step, and which physical tile each logical tile is. Output: a
``Demand``. In order:

1. every address operand is resolved (``compiler.low.address``) at its first iteration, with its stride;
2. transfers that nobody but their sender receives are refused: the fabric does not deliver them (hardware);
   a local copy does that. So are those that their sender receives over what it sends: parts of them would
   read what others wrote;
3. spans that follow each other in memory at the sender and at the same receivers become one, unless data
   order one of them: a transfer with a dependence stays as it is, so that joining never closes a cycle. What
   the sender receives too is joined only within a memory element, on either side: across one, what is read
   of the whole could meet what is written of it, though each span is legal;
4. multicasts are sent in parts where that lets recipients wait less (``split``);
5. spans above ``LONGEST_TRANSFER`` are cut into equal parts;
6. a span that its sender receives too is cut in two if its length would need a control in the slot in which
   the send starts (the control that ends the reception falls there whatever the start);
7. dependences are taken from the result.

Rows stay in the low table's order, which is what dependences mean by before and after.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from compiler.errors import ScheduleInfeasible
from compiler.exchange.columns import bounds_of, expanded
from compiler.exchange.dependences import dependences_of
from compiler.exchange.ir import Demand, PlacedTransfers
from compiler.exchange.split import split_multicasts
from compiler.low.address import Addresses, AddressOperands, destinations_of, resolve_all, sources_of
from compiler.low.ids import StepId
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step
from compiler.target.fabric import LONGEST_TRANSFER, times_to_mux
from compiler.target.memory import element_keys
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array

STAGE = "exchange"
"""Stage of errors of this package."""

SEVERAL_ELEMENTS: Final = -1
"""In place of a memory element: the span is in several, or in one after another."""


def exchange_steps(program: LowProgram) -> tuple[StepId, ...]:
    """The exchange steps of a program, in order."""
    steps: list[StepId] = []
    for step in program.steps:
        match step:
            case RepeatStep():
                steps += [inner.step for inner in step.body if isinstance(inner, ExchangeStep)]
            case ExchangeStep():
                steps.append(step.step)
            case ComputeStep():
                pass
    return tuple(steps)


def demand_of_step(program: LowProgram, placement: Addresses, step: StepId, physical: Int64Array) -> Demand:
    """The demand of one exchange step.

    Args:
        program: a verified low program.
        placement: addresses of its buffers.
        step: an exchange step of it.
        physical: [tiles of the build] physical number of each logical tile.

    Raises:
        ScheduleInfeasible: a transfer reaches nobody but its sender, or its sender where it reads.
        ValueError: there is no such exchange step, or a row is not made of words.
    """
    transfers, iterations = placed_transfers(program, placement, step, physical)
    return demand_of(transfers, step=step, iterations=iterations, nodes=program.nodes)


def placed_transfers(
    program: LowProgram, placement: Addresses, step: StepId, physical: Int64Array
) -> tuple[PlacedTransfers, int]:
    """The transfers of one exchange step as the low program has them, and how often the step runs.

    Args:
        program: a verified low program.
        placement: addresses of its buffers.
        step: an exchange step of it.
        physical: [tiles of the build] physical number of each logical tile.

    Raises:
        ValueError: there is no such exchange step, or a row is not made of words.
    """
    iterations = _iterations(program.steps, step)
    table, recipients = program.transfers, program.recipients
    rows = np.flatnonzero(table.step == step)
    if (table.byte_count[rows] % WORD_BYTES != 0).any():
        raise ValueError("a transfer is a whole number of words")
    bounds = np.append(table.first_recipient, len(recipients.transfer))
    counts = bounds[rows + 1] - bounds[rows]
    recipient = expanded(bounds[rows], counts)
    source, source_address, source_stride = _placed(
        program, placement, physical, sources_of(table).take(rows)
    )
    receiver, receiver_address, receiver_stride = _placed(
        program, placement, physical, destinations_of(recipients).take(recipient)
    )
    transfers = PlacedTransfers(
        row=rows,
        node=table.node[rows],
        source=source,
        address=source_address,
        stride=source_stride,
        words=table.byte_count[rows] // WORD_BYTES,
        first_recipient=bounds_of(counts),
        receiver=receiver,
        receiver_address=receiver_address,
        receiver_stride=receiver_stride,
    )
    return transfers, iterations


def demand_of(transfers: PlacedTransfers, *, step: StepId, iterations: int, nodes: Sequence[str]) -> Demand:
    """The demand of placed transfers in the order meant: joined, cut, with their dependences.

    Args:
        transfers: of any length.
        step: exchange step.
        iterations: how often the phase runs in a go through its Repeat.
        nodes: names of graph nodes.

    Raises:
        ScheduleInfeasible: a transfer reaches nobody but its sender, or its sender where it reads.
    """
    _refuse_isolated_loopbacks(transfers, step, nodes)
    moving = bool(transfers.stride.any() or transfers.receiver_stride.any())
    looked_at = iterations if moving else 1
    _refuse_overlapping_loopbacks(transfers, looked_at, step, nodes)
    data = dependences_of(transfers, looked_at)
    is_bound = np.zeros(len(transfers.source), dtype=np.bool_)
    is_bound[data.before] = True
    is_bound[data.after] = True
    parts = _cut_for_controls(_cut_to_length(split_multicasts(_joined(transfers, is_bound))))
    return Demand(
        step=step,
        iterations=iterations,
        transfers=parts,
        dependences=dependences_of(parts, looked_at),
        nodes=tuple(nodes),
    )


def _iterations(steps: Sequence[Step], step: StepId) -> int:
    """How often an exchange step runs in one go through the Repeat around it."""
    for outer in steps:
        match outer:
            case RepeatStep():
                if any(isinstance(inner, ExchangeStep) and inner.step == step for inner in outer.body):
                    return outer.count
            case ExchangeStep():
                if outer.step == step:
                    return 1
            case ComputeStep():
                pass
    raise ValueError(f"step {step} is no exchange step of the program")


def _placed(
    program: LowProgram, placement: Addresses, physical: Int64Array, operands: AddressOperands
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Physical tile, address in iteration 0 and stride of address operands."""
    address = resolve_all(placement, operands, 0)
    stride = resolve_all(placement, operands, 1) - address
    return physical[program.buffers.tile[operands.buffer]], address, stride


def _refuse_isolated_loopbacks(transfers: PlacedTransfers, step: StepId, nodes: Sequence[str]) -> None:
    counts = transfers.first_recipient[1:] - transfers.first_recipient[:-1]
    at_home = transfers.receiver[transfers.first_recipient[:-1]] == transfers.source
    isolated = np.flatnonzero((counts == 1) & at_home)
    if isolated.size:
        transfer = int(isolated[0])
        raise ScheduleInfeasible(
            f"{int(transfers.words[transfer])} words of physical tile {int(transfers.source[transfer])} are"
            " sent to nobody but that tile, which the fabric does not deliver",
            stage=STAGE,
            subject=f"exchange step {step}, transfer {int(transfers.row[transfer])}",
            next_step="move them with a local copy",
            nodes=[nodes[int(transfers.node[transfer])]],
        )


def _refuse_overlapping_loopbacks(
    transfers: PlacedTransfers, iterations: int, step: StepId, nodes: Sequence[str]
) -> None:
    home = np.flatnonzero(transfers.is_loopback)
    sender = transfers.transfer_of_recipient[home]
    for iteration in range(iterations if home.size else 0):
        read = transfers.address[sender] + iteration * transfers.stride[sender]
        written = transfers.receiver_address[home] + iteration * transfers.receiver_stride[home]
        meets = np.flatnonzero(np.abs(read - written) < WORD_BYTES * transfers.words[sender])
        if meets.size:
            transfer, place = int(sender[meets[0]]), int(meets[0])
            raise ScheduleInfeasible(
                f"physical tile {int(transfers.source[transfer])} receives {int(transfers.words[transfer])}"
                f" of its own words at {int(written[place]):#x}, over those that it sends from"
                f" {int(read[place]):#x} (iteration {iteration})",
                stage=STAGE,
                subject=f"exchange step {step}, transfer {int(transfers.row[transfer])}",
                next_step="keep the two buffers in different memory elements",
                nodes=[nodes[int(transfers.node[transfer])]],
            )


def _with_spans(transfers: PlacedTransfers, offset: Int64Array, words: Int64Array) -> PlacedTransfers:
    """The same transfers of other lengths, beginning ``offset`` words later."""
    owner = transfers.transfer_of_recipient
    return PlacedTransfers(
        row=transfers.row,
        node=transfers.node,
        source=transfers.source,
        address=transfers.address + WORD_BYTES * offset,
        stride=transfers.stride,
        words=words,
        first_recipient=transfers.first_recipient,
        receiver=transfers.receiver,
        receiver_address=transfers.receiver_address + WORD_BYTES * offset[owner],
        receiver_stride=transfers.receiver_stride,
    )


def _joined(transfers: PlacedTransfers, is_bound: BoolArray) -> PlacedTransfers:
    """Spans that follow each other everywhere become one, except those that ``is_bound`` keeps apart."""
    count = len(transfers.source)
    if count == 0:
        return transfers
    transfers = _by_receiver(transfers)
    # Spans that can follow each other agree in everything but the address: bring them together, in its order.
    order = np.lexsort((transfers.address, _signatures(transfers), transfers.source))
    left, right = order[:-1], order[1:]
    follows = (
        (transfers.source[left] == transfers.source[right])
        & (transfers.stride[left] == transfers.stride[right])
        & (transfers.address[left] + WORD_BYTES * transfers.words[left] == transfers.address[right])
        & ~is_bound[left]
        & ~is_bound[right]
    )
    follows &= _same_receivers(transfers, left, right)
    within = _element_of_loopback(transfers)
    follows &= (within[left] == within[right]).all(axis=1) & (within[left] != SEVERAL_ELEMENTS).all(axis=1)
    group = np.append(0, np.cumsum(~follows))
    leaders = order[np.append(True, ~follows)]
    words = np.bincount(group, weights=transfers.words[order]).astype(np.int64)
    earliest = np.minimum.reduceat(order, np.flatnonzero(np.append(True, ~follows)))
    in_order = np.argsort(earliest, kind="stable")
    result = transfers.taken(leaders[in_order])
    return _with_spans(result, np.zeros(len(in_order), dtype=np.int64), words[in_order])


def _element_of_loopback(transfers: PlacedTransfers) -> Int64Array:
    """[transfers, 2] of what its sender receives too, the element that is read, and the one that is written.

    ``SEVERAL_ELEMENTS`` where a span is in more than one or moves; 0 for all other transfers.
    """
    result = np.zeros((len(transfers.source), 2), dtype=np.int64)
    home = np.flatnonzero(transfers.is_loopback)
    sender = transfers.transfer_of_recipient[home]
    sides = (
        (transfers.address[sender], transfers.stride[sender]),
        (transfers.receiver_address[home], transfers.receiver_stride[home]),
    )
    for side, (begin, stride) in enumerate(sides):
        element = element_keys(begin)
        is_one = element == element_keys(begin + WORD_BYTES * transfers.words[sender] - 1)
        result[sender, side] = np.where(is_one & (stride == 0), element, SEVERAL_ELEMENTS)
    return result


def _by_receiver(transfers: PlacedTransfers) -> PlacedTransfers:
    """The recipients of each transfer in order of their tiles."""
    ascends = transfers.receiver[1:] > transfers.receiver[:-1]
    ascends[transfers.first_recipient[1:-1] - 1] = True
    if ascends.all():
        return transfers
    order = np.lexsort((transfers.receiver, transfers.transfer_of_recipient))
    return PlacedTransfers(
        row=transfers.row,
        node=transfers.node,
        source=transfers.source,
        address=transfers.address,
        stride=transfers.stride,
        words=transfers.words,
        first_recipient=transfers.first_recipient,
        receiver=transfers.receiver[order],
        receiver_address=transfers.receiver_address[order],
        receiver_stride=transfers.receiver_stride[order],
    )


def _signatures(transfers: PlacedTransfers) -> Int64Array:
    """[transfers] equal for transfers that send over equal distances to equal receivers."""
    distance = transfers.receiver_address - transfers.address[transfers.transfer_of_recipient]
    signature = np.zeros(len(transfers.receiver), dtype=np.uint64)
    for column in (transfers.receiver, distance, transfers.receiver_stride):
        # A finalizing step of a multiplicative hash; a collision costs a missed joint, never a wrong one.
        signature = (signature ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        signature ^= signature >> np.uint64(29)
    return np.add.reduceat(signature, transfers.first_recipient[:-1]).view(np.int64)


def _same_receivers(transfers: PlacedTransfers, left: Int64Array, right: Int64Array) -> BoolArray:
    """Of pairs of transfers, whether the right one continues the left one at the same receivers."""
    first = transfers.first_recipient
    counts = first[1:] - first[:-1]
    same = counts[left] == counts[right]
    pairs = np.flatnonzero(same)
    if pairs.size == 0:
        return same
    number = counts[left[pairs]]
    mine, theirs = (expanded(first[side[pairs]], number) for side in (left, right))
    agrees = (
        (transfers.receiver[mine] == transfers.receiver[theirs])
        & (transfers.receiver_stride[mine] == transfers.receiver_stride[theirs])
        & (
            transfers.receiver_address[mine] + WORD_BYTES * transfers.recipient_words[mine]
            == transfers.receiver_address[theirs]
        )
    )
    same[pairs] = np.logical_and.reduceat(agrees, bounds_of(number)[:-1])
    return same


def _cut(transfers: PlacedTransfers, parts: Int64Array) -> PlacedTransfers:
    """Each transfer as so many parts of equal length, to a word."""
    if (parts == 1).all():
        return transfers
    chosen = np.repeat(np.arange(len(parts)), parts)
    number = expanded(np.zeros_like(parts), parts)
    words, pieces = transfers.words[chosen], parts[chosen]
    begin, end = words * number // pieces, words * (number + 1) // pieces
    return _with_spans(transfers.taken(chosen), begin, end - begin)


def _cut_to_length(transfers: PlacedTransfers) -> PlacedTransfers:
    return _cut(transfers, -(-transfers.words // LONGEST_TRANSFER))


def _cut_for_controls(transfers: PlacedTransfers) -> PlacedTransfers:
    """Halve loopbacks whose neutral event would be one after the start of the send.

    With self time T the event is S + T + 1 + words, so that words = -T is the bad length.
    """
    owner = transfers.transfer_of_recipient[transfers.is_loopback]
    parts = np.ones(len(transfers.source), dtype=np.int64)
    sender = transfers.source[owner]
    parts[owner[transfers.words[owner] == -times_to_mux(sender, sender)]] = 2
    return _cut(transfers, parts)
