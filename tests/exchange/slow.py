"""Order and starts by trying everything: the references of ``order`` and ``timing``. Slow and obvious."""

from dataclasses import dataclass, field

from compiler.exchange.ir import SOURCE_SIDE, Demand
from compiler.target.fabric import ROW_AFTER_LAST_WRITE, select_to_write, time_to_mux
from compiler.target.memory import ByteRange, share_an_element
from compiler.target.units import Address, Bytes, PhysicalTile


@dataclass(slots=True, kw_only=True)
class Placed:
    """A transfer with its start: windows are (first, behind the last)."""

    number: int
    source: int
    send: tuple[int, int]
    receives: list[tuple[int, int, tuple[int, int], tuple[int, int]]] = field(default_factory=list)
    """(recipient, tile, window of selection, window of writing)"""


def slow_starts(demand: Demand, order: list[int]) -> dict[int, int]:
    """The least legal start of each transfer, in order, trying one slot after the other."""
    done: list[Placed] = []
    for number in order:
        slot = 0
        while not _is_legal(demand, done, candidate := _placed(demand, number, slot)):
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


def _placed(demand: Demand, number: int, slot: int) -> Placed:
    source, words = int(demand.transfers.source[number]), int(demand.transfers.words[number])
    result = Placed(number=number, source=source, send=(slot, slot + words))
    for recipient, tile in _recipients(demand, number):
        select = slot + time_to_mux(PhysicalTile(source), PhysicalTile(tile)) + 1
        write = select + select_to_write(PhysicalTile(tile))
        result.receives.append((recipient, tile, (select, select + words), (write, write + words)))
    return result


def _is_legal(demand: Demand, done: list[Placed], candidate: Placed) -> bool:
    every = [*done, candidate]
    return (
        all(select[0] >= 1 for _, _, select, _ in candidate.receives)
        and _windows_are_disjoint(done, candidate)
        and _first_slots_are_free(every)
        and _elements_are_disjoint(demand, every)
        and _data_are_in_order(demand, every)
    )


def _windows_are_disjoint(done: list[Placed], candidate: Placed) -> bool:
    for other in done:
        if other.source == candidate.source and _overlap(other.send, candidate.send):
            return False
        for _, tile, select, write in candidate.receives:
            for _, other_tile, other_select, other_write in other.receives:
                if tile == other_tile and (_overlap(select, other_select) or _overlap(write, other_write)):
                    return False
    return True


def _first_slots_are_free(every: list[Placed]) -> bool:
    """No control in the first slot of a send, no two in the second."""
    for sender in every:
        selections: set[int] = set()
        pointers: set[int] = set()
        for placed in every:
            for _, tile, select, write in placed.receives:
                if tile == sender.source:
                    selections.update(select)
                    pointers.add(write[0])
        start = sender.send[0]
        if start + 1 in selections | pointers or start + 2 in selections & pointers:
            return False
    return True


def _elements_are_disjoint(demand: Demand, every: list[Placed]) -> bool:
    moves = demand.transfers
    for sender in every:
        for receiver in every:
            for recipient, tile, _, write in receiver.receives:
                busy = (write[0], write[1] + ROW_AFTER_LAST_WRITE)
                if tile != sender.source or not _overlap(sender.send, busy):
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
    (window,) = (write for recipient, _, _, write in placed.receives if recipient == side)
    return window


def _overlap(first: tuple[int, int], second: tuple[int, int]) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def _range(start: int, words: int) -> ByteRange:
    return ByteRange(start=Address(start), size=Bytes(4 * words))
