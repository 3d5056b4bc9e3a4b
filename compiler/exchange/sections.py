"""Rows of a Repeat whose addresses count from bases, so that moving bases replaces patching words.

Input: a demand and its schedule. Output: ``BaseSections`` for ``rows.encode_rows``. An operand whose address
advances by a stride in each iteration is a constant when it counts from a base that advances by the same.
The program of a tile keeps one main register for each stride and side of a tile, adds the stride in each
iteration, and the words of the row stay as they are.

* **Receives** of a tile count from one base for the whole row, or are absolute: if all advance by one stride
  that is not 0, INCOMING_BASE is written before the row.
* **Sends** of a tile are cut, in order of time, where the stride changes. The first stretch is set before the
  row. The others need a ``put`` in the row, 13 events in which nothing is sent and no control is issued
  (measured on hardware), so a gap between the two sends; what does not move counts from register 15, which
  holds 0. Where a gap is missing, or there are more strides than registers, all sends of the tile are
  absolute and are patched.

A base is the lowest address of all that count from it, so that no field is negative, and a multiple of 8
where any of them is paired.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Final

import numpy as np

from compiler.exchange.columns import bounds_of
from compiler.exchange.ir import ABSOLUTE, BEFORE_ROW, BaseSections, Demand, Schedule
from compiler.exchange.rows import by_tile, controlled_events
from compiler.target.costs import EXCHANGE_PUT_EVENTS
from compiler.target.fabric import PAIRED_ITEM_BYTES
from compiler.target.registers import MainRegister
from compiler.target.standing import POLICY
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Events, Int64Array

BASE_REGISTERS: Annotated[tuple[MainRegister, ...], POLICY] = (
    MainRegister.M6,
    MainRegister.M7,
    MainRegister.M8,
    MainRegister.M9,
)
"""Main registers of bases while a row runs: scratch registers that nothing else uses there. Policy."""

_PUT_ROOM: Final = Events(EXCHANGE_PUT_EVENTS + 1)
"""A write of a base and an event behind it, in which a row can align what follows."""


def base_sections(
    demand: Demand, schedule: Schedule, registers: Sequence[MainRegister] = BASE_REGISTERS
) -> BaseSections | None:
    """The sections of a phase; None if no base would help.

    Args:
        demand: what moves.
        schedule: when.
        registers: main registers that may hold bases.
    """
    moves = demand.transfers
    plan = _Plan(len(moves.source), len(moves.receiver))
    receives = by_tile(moves.receiver, schedule.write)
    first_receive = bounds_of(np.bincount(moves.receiver, minlength=TILE_COUNT))
    has_base = np.zeros(TILE_COUNT, dtype=np.bool_)
    for tile in np.unique(moves.receiver[moves.receiver_stride != 0]).tolist():
        mine = receives[first_receive[tile] : first_receive[tile + 1]]
        if registers and (moves.receiver_stride[mine] == moves.receiver_stride[mine[0]]).all():
            plan.of_recipient[mine] = plan.add(tile, 1, registers[0], BEFORE_ROW)
            has_base[tile] = True
    sends = by_tile(moves.source, schedule.slot)
    first_send = bounds_of(np.bincount(moves.source, minlength=TILE_COUNT))
    senders = np.unique(moves.source[moves.stride != 0])
    for tile, events in zip(senders.tolist(), controlled_events(demand, schedule, senders), strict=True):
        mine = sends[first_send[tile] : first_send[tile + 1]]
        _cut_sends(demand, schedule, tile, mine, events - 1, registers[int(has_base[tile]) :], plan)
    if not plan.tile:
        return None
    return based(plan.sections(), demand, schedule)


def based(sections: BaseSections, demand: Demand, schedule: Schedule) -> BaseSections | None:
    """Sections with the bases that operands at their addresses need; None if those of one differ in stride.

    Args:
        sections: which operands count from which, and when; addresses and strides are of no account.
        demand: what moves, where.
        schedule: which transfers are paired.
    """
    moves = demand.transfers
    address, stride = np.zeros((2, len(sections.tile)), dtype=np.int64)
    member = np.concatenate([sections.of_transfer, sections.of_recipient])
    addresses = np.concatenate([moves.address, moves.receiver_address])
    strides = np.concatenate([moves.stride, moves.receiver_stride])
    is_wide = np.concatenate([schedule.is_paired, np.zeros(len(moves.receiver), dtype=np.bool_)])
    # Sections of a tile and side that use one register share a base.
    names = np.stack([sections.tile, sections.is_incoming, sections.register])
    _, group = np.unique(names, axis=1, return_inverse=True)
    group = group.reshape(-1)
    counted = np.flatnonzero(member != ABSOLUTE)
    of_group = group[member[counted]]
    for number in range(int(group.max(initial=-1)) + 1):
        operands = counted[of_group == number]
        rows = np.flatnonzero(group == number)
        is_zero = sections.register[rows[0]] == MainRegister.M15
        found = np.unique(strides[operands])
        if len(found) > 1 or (is_zero and found.any()):
            return None
        if is_zero or not len(operands):
            continue
        lowest = int(addresses[operands].min())
        if is_wide[operands].any():
            lowest -= lowest % PAIRED_ITEM_BYTES
            if found[0] % PAIRED_ITEM_BYTES != 0:
                return None
        address[rows], stride[rows] = lowest, found[0]
    return replace(sections, address=address, stride=stride)


class _Plan:
    """Sections under construction."""

    def __init__(self, transfers: int, recipients: int) -> None:
        self.tile: list[int] = []
        self.rows: list[tuple[int, int, int]] = []
        self.of_transfer = np.full(transfers, ABSOLUTE, dtype=np.int64)
        self.of_recipient = np.full(recipients, ABSOLUTE, dtype=np.int64)

    def add(self, tile: int, is_incoming: int, register: MainRegister, start: int) -> int:
        """A section; its number."""
        self.tile.append(tile)
        self.rows.append((is_incoming, register, start))
        return len(self.tile) - 1

    def sections(self) -> BaseSections:
        """All of them, in order of tile and start, without bases."""
        tile = np.array(self.tile, dtype=np.int64)
        is_incoming, register, start = np.array(self.rows, dtype=np.int64).T
        order = np.lexsort((is_incoming, start, tile))
        place = np.empty(len(order) + 1, dtype=np.int64)
        place[order] = np.arange(len(order))
        place[ABSOLUTE] = ABSOLUTE
        nothing = np.zeros(len(order), dtype=np.int64)
        return BaseSections(
            tile=tile[order],
            is_incoming=is_incoming[order],
            register=register[order],
            start=start[order],
            address=nothing,
            stride=nothing,
            of_transfer=place[self.of_transfer],
            of_recipient=place[self.of_recipient],
        )


def _cut_sends(
    demand: Demand,
    schedule: Schedule,
    tile: int,
    mine: Int64Array,
    issue: Int64Array,
    registers: Sequence[MainRegister],
    plan: _Plan,
) -> None:
    """Sections for the sends of a tile, in order of slots; none if they cannot be had.

    ``issue`` are the slots in which its controls are issued.
    """
    moves = demand.transfers
    stride = moves.stride[mine]
    first = np.flatnonzero(np.append(True, stride[1:] != stride[:-1]))
    strides = sorted({int(value) for value in stride} - {0})
    if len(strides) > len(registers):
        return
    register = dict(zip(strides, registers, strict=False)) | {0: MainRegister.M15}
    items = moves.words[mine] >> schedule.is_paired[mine]
    start = schedule.slot[mine]
    begins: list[int] = [BEFORE_ROW]
    for place in first[1:].tolist():
        after = int(start[place - 1] + items[place - 1])
        gap = _gap(issue, after, int(start[place]))
        if gap is None:
            return
        begins.append(gap)
    for place, end, begin in zip(first.tolist(), [*first[1:].tolist(), len(mine)], begins, strict=True):
        if begin == BEFORE_ROW and stride[place] == 0:
            continue  # the base is 0 anyway
        number = plan.add(tile, 0, register[int(stride[place])], begin)
        plan.of_transfer[mine[place:end]] = number


def _gap(issue: Int64Array, after: int, before: int) -> int | None:
    """The first event from which a base can be written between two sends; None if there is none.

    ``issue`` are the slots in which controls are issued.
    """
    inside = issue[(issue >= after) & (issue < before)]
    begins = [after, *(int(slot) + 1 for slot in inside)]
    ends = [*inside.tolist(), before]
    return next((begin for begin, end in zip(begins, ends, strict=True) if begin + _PUT_ROOM <= end), None)
