"""Phases for the tests: from examples, from lists, and random ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from compiler.exchange.columns import bounds_of
from compiler.exchange.demand import demand_of
from compiler.exchange.ir import Demand, PlacedTransfers
from compiler.low.ids import StepId
from compiler.target.fabric import LONGEST_TRANSFER
from compiler.target.memory import SRAM_BASE, SRAM_END, ByteRange, share_an_element
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Address, Bytes, Int64Array

STEP = StepId(3)
NODES = ("first", "second")
MIDDLE = 0x98000
"""An address where memory elements meet: what lies on either side shares none."""

LENGTHS = (1, 2, 3, 5, 14, 27, 28, 29, 30, 51, 52, 53, 54, 55, 56, 64, 65, 128, 300)
"""Lengths at which instructions and events change their arrangement."""

LONG_LENGTHS = (4096, 4097, LONGEST_TRANSFER, LONGEST_TRANSFER + 1, 9000)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transfer:
    """A transfer as the tests write it; recipients are (tile, address, stride)."""

    source: int
    address: int
    words: int
    recipients: tuple[tuple[int, int, int], ...]
    stride: int = 0


def placed(transfers: Sequence[Transfer]) -> PlacedTransfers:
    """The transfers as columns."""

    def column(values: list[int]) -> Int64Array:
        return np.array(values, dtype=np.int64)

    recipients = [recipient for transfer in transfers for recipient in transfer.recipients]
    return PlacedTransfers(
        row=column([10 + number for number in range(len(transfers))]),
        node=column([number % len(NODES) for number in range(len(transfers))]),
        source=column([transfer.source for transfer in transfers]),
        address=column([transfer.address for transfer in transfers]),
        stride=column([transfer.stride for transfer in transfers]),
        words=column([transfer.words for transfer in transfers]),
        first_recipient=bounds_of(column([len(transfer.recipients) for transfer in transfers])),
        receiver=column([recipient[0] for recipient in recipients]),
        receiver_address=column([recipient[1] for recipient in recipients]),
        receiver_stride=column([recipient[2] for recipient in recipients]),
    )


def demand(transfers: Sequence[Transfer], iterations: int = 1) -> Demand:
    """The demand of transfers."""
    return demand_of(placed(transfers), step=STEP, iterations=iterations, nodes=NODES)


def of_example(phase: dict[str, Any]) -> list[Transfer]:
    """The transfers of an example of the fixtures."""
    return [
        Transfer(
            source=transfer["physical_source"],
            address=transfer["address"],
            words=transfer["items"],
            recipients=tuple(
                (receiver["physical"], receiver["address"], 0) for receiver in transfer["receivers"]
            ),
        )
        for transfer in phase["transfers"]
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomPhase:
    """Transfers and how often they run."""

    transfers: tuple[Transfer, ...]
    iterations: int


@st.composite
def random_phases(draw: st.DrawFn, *, largest: int = 40, moving: bool = False) -> RandomPhase:
    """Phases on few tiles, so that much happens at once.

    There are multicasts, some to the sender too, full duplex, and spans that continue each other at the
    receiver; where ``anywhere``, bytes that are read and written, many where all lie within a small ``span``.
    """
    tile_count = draw(st.integers(2, 9))
    count = draw(st.integers(1, largest))
    lengths = draw(
        st.sampled_from((LENGTHS, LENGTHS[:5], (1, 1, 1, 2), (52, 53, 54, 55, 56), (*LENGTHS, *LONG_LENGTHS)))
    )
    fanout = draw(st.sampled_from((1, 1, 2, 5)))
    continuing = draw(st.sampled_from((0.0, 0.5, 0.9)))
    anywhere = draw(st.booleans())
    span = draw(st.sampled_from((None, 0x400, 0x10000)))
    iterations = draw(st.integers(2, 4)) if moving else 1
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tiles = random.choice(TILE_COUNT, tile_count, replace=False).tolist()
    if random.random() < 0.5:  # close together, partners among them
        first = int(random.integers(0, TILE_COUNT - 64))
        tiles = list(range(first, first + tile_count))

    def address(words: int, low: int, high: int) -> int:
        last = high - 4 * words - 3 * 4 * 4096
        return int(random.integers(low // 4, (last if span is None else min(low + span, last)) // 4)) * 4

    def stride() -> int:
        return int(random.integers(0, 4096)) * 4 if moving and random.random() < 0.5 else 0

    transfers: list[Transfer] = []
    ends: dict[int, tuple[int, int]] = {}
    for _ in range(count):
        words = int(random.choice(lengths))
        source = int(random.choice(tiles))
        read = address(words, SRAM_BASE, SRAM_END if anywhere else MIDDLE)
        read_stride = stride()
        recipients: list[tuple[int, int, int]] = []
        for tile in random.permutation(tiles)[: int(random.integers(1, fanout + 1))].tolist():
            written, written_stride = address(words, SRAM_BASE if anywhere else MIDDLE, SRAM_END), stride()
            if tile in ends and random.random() < continuing and ends[tile][0] + 4 * words < MIDDLE + 0x40000:
                written, written_stride = ends[tile]
            if tile == source and _meet(read, read_stride, written, written_stride, words, iterations):
                continue
            recipients.append((tile, written, written_stride))
            ends[tile] = (written + 4 * words, written_stride)
        if all(tile == source for tile, _, _ in recipients):
            continue
        transfers.append(
            Transfer(
                source=source,
                address=read,
                words=words,
                recipients=tuple(recipients),
                stride=read_stride,
            )
        )
    return RandomPhase(transfers=tuple(transfers), iterations=iterations)


def _meet(
    read: int, read_stride: int, written: int, written_stride: int, words: int, iterations: int
) -> bool:
    """Whether a sender would read and write one element."""
    return any(
        share_an_element(
            ByteRange(start=Address(read + i * read_stride), size=Bytes(4 * words)),
            ByteRange(start=Address(written + i * written_stride), size=Bytes(4 * words)),
        )
        for i in range(iterations)
    )
