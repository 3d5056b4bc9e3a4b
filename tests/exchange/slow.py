"""Order and starts by trying everything: the references of ``pressure`` and ``timing``. Slow and obvious."""

from dataclasses import dataclass, field
from itertools import pairwise

from compiler.exchange.ir import SOURCE_SIDE, Demand
from compiler.target.fabric import ROW_AFTER_LAST_WRITE, time_to_mux
from compiler.target.memory import ByteRange, share_an_element
from compiler.target.units import Address, Bytes, PhysicalTile


@dataclass(slots=True, kw_only=True)
class Reception:
    """A recipient with its events; windows are (first, behind the last)."""

    recipient: int
    tile: int
    select: int
    write: tuple[int, int]
    controls: list[tuple[int, str]]
    """(event, register), of the registers own, pair, pointer and format."""


@dataclass(slots=True, kw_only=True)
class Placed:
    """A transfer with its start."""

    number: int
    source: int
    is_paired: bool
    send: tuple[int, int]
    receives: list[Reception] = field(default_factory=list)


def slow_starts(demand: Demand, order: list[int], is_paired: list[bool] | None = None) -> dict[int, int]:
    """The least legal start of each transfer, in order, trying one slot after the other."""
    done: list[Placed] = []
    for number in order:
        slot = 0
        pairs = is_paired is not None and is_paired[number]
        while not _is_legal(demand, done, candidate := _placed(demand, number, slot, is_paired=pairs)):
            slot += 1
        done.append(candidate)
    return {placed.number: placed.send[0] for placed in done}


def slow_pressure_order(demand: Demand) -> list[int]:
    """Of transfers with one recipient each: the busiest end takes the transfer with the busiest other end."""
    moves = demand.transfers
    left = set(range(len(moves.source)))
    result: list[int] = []

    def ends(number: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The sender, and the receiver, as (direction, tile)."""
        return (0, int(moves.source[number])), (1, int(moves.receiver[number]))

    while left:
        pressure: dict[tuple[int, int], int] = {}
        for number in left:
            for end in ends(number):
                pressure[end] = pressure.get(end, 0) + int(moves.words[number])
        busiest = min(pressure, key=lambda end: (-pressure[end], end))

        def urgency(
            number: int, pressure: dict[tuple[int, int], int] = pressure, busiest: tuple[int, int] = busiest
        ) -> tuple[int, int, int]:
            other = ends(number)[1 - busiest[0]]
            return -pressure[other], other[1], number

        chosen = min((number for number in left if busiest in ends(number)), key=urgency)
        left.remove(chosen)
        result.append(chosen)
    return result


def _recipients(demand: Demand, number: int) -> list[tuple[int, int]]:
    moves = demand.transfers
    first, last = int(moves.first_recipient[number]), int(moves.first_recipient[number + 1])
    return [(recipient, int(moves.receiver[recipient])) for recipient in range(first, last)]


def _placed(demand: Demand, number: int, slot: int, *, is_paired: bool) -> Placed:
    source, words = int(demand.transfers.source[number]), int(demand.transfers.words[number])
    items = words // 2 if is_paired else words
    result = Placed(number=number, source=source, is_paired=is_paired, send=(slot, slot + items))
    for recipient, tile in _recipients(demand, number):
        own = time_to_mux(PhysicalTile(source), PhysicalTile(tile))
        if is_paired:
            late = max(own, time_to_mux(PhysicalTile(source), PhysicalTile(tile ^ 2)))
            select = slot + late
            write = slot + late + 53 + 2 * (tile // 64)
            controls = [(write, "pointer"), (write - 2, "format"), (write - 2 + items, "format")]
            if own < late:
                controls += [(select, "pair"), (select + items, "pair")]
        else:
            select = slot + own + 1
            write = select + 52 + 2 * (tile // 64)
            controls = [(write, "pointer"), (select, "own"), (select + items, "own")]
        result.receives.append(
            Reception(
                recipient=recipient, tile=tile, select=select, write=(write, write + items), controls=controls
            )
        )
    return result


def _is_legal(demand: Demand, done: list[Placed], candidate: Placed) -> bool:
    every = [*done, candidate]
    return (
        all(reception.select >= 1 for reception in candidate.receives)
        and _transmit_lanes_are_disjoint(every)
        and _payloads_are_disjoint(every)
        and _controls_agree(every)
        and _elements_are_disjoint(demand, every)
        and _data_are_in_order(demand, every)
    )


def _transmit_lanes_are_disjoint(every: list[Placed]) -> bool:
    lanes: dict[int, list[tuple[int, int]]] = {}
    for placed in every:
        for tile in (placed.source, placed.source ^ 2) if placed.is_paired else (placed.source,):
            if any(_overlap(placed.send, other) for other in lanes.setdefault(tile, [])):
                return False
            lanes[tile].append(placed.send)
    return True


def _payloads_are_disjoint(every: list[Placed]) -> bool:
    """And two events lie between an ordinary payload and a paired one behind it."""
    lanes: dict[int, list[tuple[int, int, bool]]] = {}
    for placed in every:
        for reception in placed.receives:
            lanes.setdefault(reception.tile, []).append((*reception.write, placed.is_paired))
    for lane in lanes.values():
        lane.sort()
        for (_, end, is_paired), (begin, _, next_is_paired) in pairwise(lane):
            if begin < end + (2 if next_is_paired and not is_paired else 0):
                return False
    return True


def _controls_agree(every: list[Placed]) -> bool:
    controls: dict[tuple[int, int], set[str]] = {}
    for placed in every:
        for reception in placed.receives:
            for event, register in reception.controls:
                controls.setdefault((reception.tile, event), set()).add(register)

    def at(tile: int, event: int) -> set[str]:
        return controls.get((tile, event), set())

    for (tile, event), registers in controls.items():
        is_lone = bool(registers & {"pair", "format"})
        if is_lone and (len(registers) > 1 or at(tile, event + 1) == {"own", "pointer"}):
            return False
        if "pair" in registers and "pair" in at(tile ^ 2, event):
            return False
    return all(
        not at(placed.source, placed.send[0] + 1) and len(at(placed.source, placed.send[0] + 2)) < 2
        for placed in every
    )


def _elements_are_disjoint(demand: Demand, every: list[Placed]) -> bool:
    moves = demand.transfers
    for sender in every:
        for receiver in every:
            for reception in receiver.receives:
                recipient = reception.recipient
                busy = (reception.write[0], reception.write[1] + ROW_AFTER_LAST_WRITE)
                if reception.tile != sender.source or not _overlap(sender.send, busy):
                    continue
                for iteration in range(demand.iterations):
                    read = int(moves.address[sender.number] + iteration * moves.stride[sender.number])
                    written = int(
                        moves.receiver_address[recipient] + iteration * moves.receiver_stride[recipient]
                    )
                    if share_an_element(
                        _range(read, int(moves.words[sender.number])),
                        _range(written, int(moves.words[receiver.number])),
                    ):
                        return False
    return True


def _data_are_in_order(demand: Demand, every: list[Placed]) -> bool:
    data = demand.dependences
    placed = {entry.number: entry for entry in every}
    for before, after, first_side, second_side in zip(
        data.before.tolist(),
        data.after.tolist(),
        data.before_recipient.tolist(),
        data.after_recipient.tolist(),
        strict=True,
    ):
        if (
            after in placed
            and _window(placed[after], second_side)[0] < _window(placed[before], first_side)[1]
        ):
            return False
    return True


def _window(placed: Placed, side: int) -> tuple[int, int]:
    if side == SOURCE_SIDE:
        return placed.send
    (window,) = (reception.write for reception in placed.receives if reception.recipient == side)
    return window


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _range(start: int, words: int) -> ByteRange:
    return ByteRange(start=Address(start), size=Bytes(4 * words))
