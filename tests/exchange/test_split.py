"""Multicasts in parts: the same bytes go to the same places, and no bound rises."""

import numpy as np
from hypothesis import given

from compiler.exchange.bound import latency_bounds
from compiler.exchange.ir import PlacedTransfers
from compiler.exchange.split import regions, split_multicasts
from tests.exchange.phases import RandomPhase, Transfer, placed, random_phases

NEAR, FAR, BACK = 64, 64 + 4 * 5, 64 + 4 * 9
"""Tiles of three regions."""


def deliveries(moves: PlacedTransfers) -> list[tuple[int, ...]]:
    """Who gets what, sorted."""
    owner = moves.transfer_of_recipient
    columns = (
        moves.source[owner],
        moves.address[owner],
        moves.stride[owner],
        moves.words[owner],
        moves.receiver,
        moves.receiver_address,
        moves.receiver_stride,
    )
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def wide(source: int, address: int, *, own: bool = False) -> Transfer:
    """Ten words to one tile in each of three regions, and perhaps to the sender."""
    tiles = [NEAR, FAR, BACK, source] if own else [NEAR, FAR, BACK]
    return Transfer(
        source=source,
        address=0x60000,
        words=10,
        recipients=tuple((tile, address, 0) for tile in tiles),
    )


@given(random_phases(largest=25) | random_phases(largest=12, moving=True))
def test_parts_deliver_the_same_and_raise_no_bound(phase: RandomPhase) -> None:
    asked = placed(phase.transfers)
    parts = split_multicasts(asked)
    assert deliveries(parts) == deliveries(asked)
    assert latency_bounds(parts).max(initial=0) == latency_bounds(asked).max(initial=0)
    counts = parts.first_recipient[1:] - parts.first_recipient[:-1]
    assert not (parts.is_loopback & (counts[parts.transfer_of_recipient] == 1)).any()


def test_a_multicast_that_shares_recipients_is_cut_by_region() -> None:
    """Six senders to the same three tiles: each can send three times what it has, and still be idle."""
    asked = placed([wide(4 * number, 0xA0000 + 0x100 * number, own=number == 3) for number in range(6)])
    parts = split_multicasts(asked)
    region = regions(parts.receiver, 2)
    owner = parts.transfer_of_recipient
    away = ~parts.is_loopback
    for part in range(len(parts.source)):
        assert len(set(region[(owner == part) & away].tolist())) == 1
    assert len(parts.source) == 18


def test_a_multicast_stays_whole_where_nobody_waits_or_the_sender_has_no_time() -> None:
    alone = placed([wide(0, 0xA0000)])
    assert len(split_multicasts(alone).source) == 1
    two = placed([wide(0, 0xA0000), wide(4, 0xA0100)])
    assert len(split_multicasts(two).source) == 2


def to_tiles(receivers: list[list[int]]) -> PlacedTransfers:
    """A multicast of ten words from a tile of its own to each list of tiles."""
    return placed(
        [
            Transfer(
                source=1001 + 2 * number,
                address=0x60000,
                words=10,
                recipients=tuple((tile, 0xA0000 + 0x100 * number, 0) for tile in tiles),
            )
            for number, tiles in enumerate(receivers)
        ]
    )


def number_of_parts(asked: PlacedTransfers, parts_of_half: int) -> int:
    """How many parts there are with one for each region of each transfer."""
    region = regions(asked.receiver, parts_of_half)
    return len(set(zip(asked.transfer_of_recipient.tolist(), region.tolist(), strict=True)))


def test_multicasts_to_tiles_of_their_own_are_cut_finer() -> None:
    """In eight regions; where each set of tiles is that of three multicasts, in four."""
    random = np.random.default_rng(5)
    lists: list[list[int]] = [random.choice(320, 24, replace=False).tolist() for _ in range(201)]
    alone, shared = to_tiles(lists), to_tiles(lists[:67] * 3)
    assert len(split_multicasts(alone).source) == number_of_parts(alone, 4)
    assert len(split_multicasts(shared).source) == number_of_parts(shared, 2)
