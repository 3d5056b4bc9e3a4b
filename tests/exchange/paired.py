"""Phases with paired transfers for the tests, and starts for them by trying every slot. Slow and obvious."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from compiler.target.fabric import direction, select_to_write, time_to_mux
from compiler.target.tiles import TILE_COUNT, partner
from compiler.target.units import PhysicalTile
from tests.exchange.phases import MIDDLE, Transfer


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedPhase:
    """Transfers, which of them are paired, and legal starts."""

    transfers: tuple[Transfer, ...]
    is_paired: tuple[bool, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """What a transfer does on one tile."""

    tile: int
    write: int
    items: int
    incoming: int
    """0 for an ordinary payload, else the direction."""
    selects: tuple[int, int] | None
    """Events at which this tile selects and releases."""


def items_of(transfer: Transfer, *, is_paired: bool) -> int:
    """Slots that it takes."""
    return transfer.words // 2 if is_paired else transfer.words


def receptions(transfer: Transfer, slot: int, *, is_paired: bool) -> list[Busy]:
    """What a transfer from a slot on does on each receiver."""
    items = items_of(transfer, is_paired=is_paired)
    result: list[Busy] = []
    source = PhysicalTile(transfer.source)
    for number, _, _ in transfer.recipients:
        tile = PhysicalTile(number)
        time = time_to_mux(source, tile)
        if is_paired:
            late = max(time, time_to_mux(source, partner(tile)))
            select = slot + late
            write = select + 1 + select_to_write(tile)
            is_early = time < late
            incoming = int(direction(source, tile))
        else:
            select = slot + time + 1
            write = select + select_to_write(tile)
            is_early = True
            incoming = 0
        result.append(
            Busy(
                tile=tile,
                write=write,
                items=items,
                incoming=incoming,
                selects=(select, select + items) if is_early else None,
            )
        )
    return result


def is_legal(placed: Sequence[tuple[Transfer, bool, int]]) -> bool:
    """Whether transfers that start in these slots keep every rule but those of memory elements and data."""
    sends: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
    receives: dict[int, list[Busy]] = defaultdict(list)
    for transfer, is_paired, slot in placed:
        items = items_of(transfer, is_paired=is_paired)
        sends[transfer.source].append((slot, slot + items, is_paired))
        for busy in receptions(transfer, slot, is_paired=is_paired):
            receives[busy.tile].append(busy)
    return (
        all(_sends_are_apart(sends, tile) for tile in list(sends))
        and all(_payloads_are_apart(busy) for busy in receives.values())
        and all(_pair_is_apart(receives, tile) for tile in list(receives))
        and all(_controls_fit(receives[tile], sends[tile]) for tile in list(receives))
    )


def _sends_are_apart(sends: dict[int, list[tuple[int, int, bool]]], tile: int) -> bool:
    mine = sorted(sends[tile])
    borrowed = [send for send in sends.get(partner(PhysicalTile(tile)), []) if send[2]]
    return all(left[1] <= right[0] for left, right in pairwise(mine)) and all(
        one[1] <= other[0] or other[1] <= one[0] for one in mine for other in borrowed
    )


def _payloads_are_apart(every: list[Busy]) -> bool:
    ordered = sorted(every, key=lambda busy: busy.write)
    for left, right in pairwise(ordered):
        begin = right.write - 2 if right.incoming and not left.incoming else right.write
        if left.write + left.items > begin:
            return False
    return all(busy.selects is None or busy.selects[0] >= 1 for busy in every)


def _pair_is_apart(receives: dict[int, list[Busy]], tile: int) -> bool:
    """No event at which both members write their multiplexer, and never both select."""
    other = partner(PhysicalTile(tile))
    mine, theirs = (
        [busy.selects for busy in receives.get(member, []) if busy.incoming and busy.selects is not None]
        for member in (tile, other)
    )
    return all(one[1] < two[0] or two[1] < one[0] for one in mine for two in theirs)


def _controls_fit(every: list[Busy], sends: list[tuple[int, int, bool]]) -> bool:
    """Events of controls, when those that go on are left out, and starts of sends."""
    alone: list[int] = []
    own: set[int] = set()
    for busy in every:
        if busy.incoming == 0:
            assert busy.selects is not None
            own.update(busy.selects)
            continue
        if busy.selects is not None:
            goes_on = {
                other.selects[0]
                for other in every
                if other.incoming and other.selects is not None and other is not busy
            }
            alone.append(busy.selects[0])
            if busy.selects[1] not in goes_on:
                alone.append(busy.selects[1])
        same = [other for other in every if other.incoming == busy.incoming and other is not busy]
        if busy.write - 2 not in {other.write - 2 + other.items for other in same}:
            alone.append(busy.write - 2)
        if busy.write - 2 + busy.items not in {other.write - 2 for other in same}:
            alone.append(busy.write - 2 + busy.items)
    pointers = {busy.write for busy in every}
    pairs = own & pointers
    controls = own | pointers | set(alone)
    return (
        len(alone) == len(set(alone))
        and not (set(alone) & (own | pointers))
        and all(start + 1 not in controls and start + 2 not in pairs for start, _, _ in sends)
        and all(event + 1 not in pairs for event in alone)
    )


@st.composite
def mixed_phases(draw: st.DrawFn, *, largest: int = 7) -> MixedPhase:
    """A few ordinary and paired transfers among a few pairs; what is read and written lies far apart."""
    count = draw(st.integers(1, largest))
    lengths = draw(st.sampled_from(((1, 2, 4, 6), (2, 8, 30, 52), (4, 50, 54, 104, 106, 128), (2, 130, 300))))
    share = draw(st.sampled_from((0.3, 0.7, 1.0)))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    low = [int(tile) & ~2 for tile in random.choice(TILE_COUNT, 4)]
    pairs = sorted({(tile, tile | 2) for tile in low})
    tiles = [tile for pair in pairs for tile in pair]
    written: dict[int, int] = defaultdict(lambda: MIDDLE)
    placed: list[tuple[Transfer, bool, int]] = []
    for _ in range(count):
        source = int(random.choice(tiles))
        words = int(random.choice(lengths))
        is_paired = bool(random.random() < share) and words % 2 == 0 and len(pairs) > 1
        if is_paired:
            chosen: list[int] = random.permutation(len(pairs)).tolist()
            receivers = [tile for index in chosen[: int(random.integers(1, 3))] for tile in pairs[index]]
            if all(tile | 2 == source | 2 for tile in receivers):
                continue
        else:
            others: list[int] = random.permutation([tile for tile in tiles if tile != source]).tolist()
            receivers = others[: int(random.integers(1, 3))]
        recipients: list[tuple[int, int, int]] = []
        for tile in receivers:
            written[tile] += 0 if random.random() < 0.5 else 24
            written[tile] += -written[tile] % (8 if is_paired else 4)
            recipients.append((tile, written[tile], 0))
            written[tile] += 4 * words
        address = 0x50000 + 8 * int(random.integers(0, 1000))
        transfer = Transfer(source=source, address=address, words=words, recipients=tuple(recipients))
        earliest = max(0, *(-time_to_mux(PhysicalTile(source), PhysicalTile(tile)) for tile in receivers))
        slots = range(earliest, earliest + 1200)
        slot = next((slot for slot in slots if is_legal([*placed, (transfer, is_paired, slot)])), None)
        if slot is None and is_paired:  # such a length cannot be paired: its own events meet
            is_paired = False
            slot = next((slot for slot in slots if is_legal([*placed, (transfer, is_paired, slot)])), None)
        if slot is not None:
            placed.append((transfer, is_paired, slot))
    return MixedPhase(
        transfers=tuple(transfer for transfer, _, _ in placed),
        is_paired=tuple(is_paired for _, is_paired, _ in placed),
        slots=tuple(slot for _, _, slot in placed),
    )
