"""Relays: where they pay, where not, and that everybody gets the same words whoever sends them."""

from dataclasses import dataclass
from typing import final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.errors import NumberKind
from compiler.estimate.low import phase_estimates, timeline
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F32
from compiler.geometry.tiling import GridTiling
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.expand.program import expand
from compiler.low.ids import BufferId
from compiler.low.ir import HostValue, LowProgram, Role
from compiler.low.rewrites.hazards import touches_of
from compiler.low.rewrites.memory import most_held
from compiler.low.rewrites.phases import with_merged_phases
from compiler.low.rewrites.relays import with_relays
from compiler.low.verify import verify
from compiler.models.registry import model_named
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from tests.low.planned import assert_same_bits, executed


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Scatter:
    """Words of a few homes to all other tiles in turn.

    Args:
        tile_count: tiles.
        homes: the first so many hold an input.
        span: words of a span.
        spans: of each home.
        copies: tiles that take each span.
        gap: words between spans that nobody takes.
        repeats: iterations of the Repeat around; 0 without one.
        forwards: whether the phase delivers, first, what the homes send.
    """

    tile_count: int = 16
    homes: int = 1
    span: int = 1
    spans: int = 2048
    copies: int = 1
    gap: int = 0
    repeats: int = 0
    forwards: bool = False

    @property
    def stride(self) -> int:
        """Words from span to span."""
        return self.span + self.gap

    def takers(self, home: int, span: int) -> list[int]:
        """Tiles that take a span, ascending: not the home alone."""
        first = home + 1 + span % (self.tile_count - 1)
        return sorted({(first + copy) % self.tile_count for copy in range(self.copies)})


@final
class _Program:
    """A scatter as a program, and what every tile has in the end."""

    def __init__(self, scatter: _Scatter) -> None:
        self._scatter = scatter
        self._build = LowBuilder(scatter.tile_count)
        self._node = self._build.node("scatter")
        words = scatter.stride * scatter.spans
        self.inputs = {
            f"x{home}": np.arange(words, dtype=np.float32) + 100_000 * home for home in range(scatter.homes)
        }
        places: dict[int, list[tuple[int, int]]] = {}
        for home in range(scatter.homes):
            for span in range(scatter.spans):
                for tile in scatter.takers(home, span):
                    places.setdefault(tile, []).append((home, span))
        self.outputs = {
            f"y{tile}": np.concatenate(
                [self.inputs[f"x{home}"][span * scatter.stride :][: scatter.span] for home, span in taken]
            )
            for tile, taken in places.items()
        }
        self._results = {
            tile: self._tensor(f"y{tile}", tile, scatter.span * len(taken), Role.OUTPUT)
            for tile, taken in places.items()
        }
        self._sources = [
            self._tensor(f"x{home}", home + int(scatter.forwards), words, Role.INPUT)
            for home in range(scatter.homes)
        ]
        if scatter.repeats:
            with self._build.repeat(scatter.repeats):
                self._phase()
        else:
            self._phase()
        self.program: LowProgram = self._build.finish()

    def _tensor(self, name: str, tile: int, words: int, role: Role) -> BufferId:
        count = self._scatter.tile_count
        layout = TensorLayout(order=RowMajor(), tiling=GridTiling())
        tiles = tuple(TileId((tile + n) % count) for n in range(count))
        value = self._build.value(
            HostValue(
                name=name,
                role=role,
                shape=(words,),
                format=TensorFormat(precision=F32(), layout=layout),
                owners=OwnerMap(tile_count=count, embedding=tiles),
            )
        )
        return self._build.buffer(
            tile=tile, byte_count=4 * words, alignment=32, node=self._node, role=role, value=value
        )

    def _phase(self) -> None:
        scatter, step = self._scatter, self._build.exchange_step()
        sent = self._sources
        if scatter.forwards:
            words = scatter.stride * scatter.spans
            sent = [
                self._build.buffer(tile=home, byte_count=4 * words, alignment=32, node=self._node)
                for home in range(scatter.homes)
            ]
            for source, destination in zip(self._sources, sent, strict=True):
                self._build.transfer(
                    step,
                    source=AddressOperand(buffer=source),
                    byte_count=4 * words,
                    recipients=[AddressOperand(buffer=destination)],
                    node=self._node,
                )
        filled = dict.fromkeys(self._results, 0)
        for home in range(scatter.homes):
            for span in range(scatter.spans):
                takers = scatter.takers(home, span)
                self._build.transfer(
                    step,
                    source=AddressOperand(buffer=sent[home], displacement=4 * span * scatter.stride),
                    byte_count=4 * scatter.span,
                    recipients=[
                        AddressOperand(buffer=self._results[tile], displacement=filled[tile])
                        for tile in takers
                    ],
                    node=self._node,
                )
                for tile in takers:
                    filled[tile] += 4 * scatter.span


def _cycles(program: LowProgram) -> int:
    return timeline(program, phase_estimates(program), NumberKind.ESTIMATED).cycles


@pytest.mark.parametrize(
    ("scatter", "pays"),
    [
        (_Scatter(), True),
        (_Scatter(tile_count=64, homes=3, spans=1500), True),
        (_Scatter(repeats=3), True),
        (_Scatter(gap=2, spans=3000), False),
        (_Scatter(spans=500), False),
        (_Scatter(span=2), False),
        (_Scatter(span=64, spans=128), False),
        (_Scatter(tile_count=2), False),
        (_Scatter(copies=15), False),
        (_Scatter(forwards=True, tile_count=32), False),
    ],
)
def test_relays_pay_for_short_spans_of_few_homes(scatter: _Scatter, pays: bool) -> None:  # a test's parameter
    """LC-08: a home sends long spans once; not for few spans, long ones, holes, or what all take."""
    scattered = _Program(scatter)
    relayed = with_relays(scattered.program)
    assert (relayed is not scattered.program) == pays
    assert (_cycles(relayed) < _cycles(scattered.program)) == pays
    assert verify(relayed) == ()
    assert_same_bits(executed(relayed, scattered.inputs), scattered.outputs)


@settings(max_examples=25)
@given(
    scatter=st.builds(
        _Scatter,
        tile_count=st.integers(4, 24),
        homes=st.integers(1, 3),
        span=st.integers(1, 2),
        spans=st.integers(500, 1200),
        copies=st.integers(1, 3),
        gap=st.integers(0, 2),
        repeats=st.integers(0, 2),
    )
)
def test_everybody_gets_the_same_words(scatter: _Scatter) -> None:
    """LC-08, MG-08: results, cycles and memory, alone and with phases merged afterwards."""
    scattered = _Program(scatter)
    program = scattered.program
    relayed = with_relays(program)
    assert verify(relayed) == ()
    assert _cycles(relayed) <= _cycles(program)
    assert most_held(relayed, touches_of(relayed)) <= most_held(program, touches_of(program))
    assert with_relays(relayed) is relayed
    merged = with_merged_phases(relayed)
    assert verify(merged) == ()
    assert _cycles(merged) <= _cycles(relayed)
    assert_same_bits(executed(merged, scattered.inputs), scattered.outputs)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["siglip-mlp", "siglip-mlp-f8", "siglip-mlp-x3", "mlp-block"])
def test_representative_products_need_no_relays(name: str) -> None:
    """In none of their phases does any tile send more than the busiest receives, in words or in spans."""
    program = build_candidate(model_named(name).build(), Setting(tile_count=1472), Recipe()).program
    low = expand(program)
    assert with_relays(low) is low
    tile, transfers, recipients = low.buffers.tile, low.transfers, low.recipients
    for step in np.unique(transfers.step).tolist():
        rows = transfers.step == step
        taken = rows[recipients.transfer]
        for weigh in (transfers.byte_count, 4 * np.ones_like(transfers.byte_count)):
            sent = np.bincount(tile[transfers.source[rows]], weights=weigh[rows])
            received = np.bincount(
                tile[recipients.destination[taken]], weights=weigh[recipients.transfer[taken]]
            )
            assert sent.max() <= received.max()
