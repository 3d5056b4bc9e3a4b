"""Cycles: what is known of instruction timing, and what the planner assumes where nothing is known.

Four groups. *Timed rows*: facts that exchange rows depend on. *Supervisor and calls*: single instructions
were never measured, only sums; the values for them are ours and must reproduce the sums, which stand beside
them. *Planning*: prices and budgets of decisions that are made before anything is scheduled. *Peak rates*:
what a tile multiplies at most, for rooflines. Cycle formulas of kernels are in their families.
"""

from typing import Annotated

from compiler.target.standing import (
    ASSUMED_FIGURE,
    ESTIMATED,
    MEASURED,
    POLICY,
    PUBLISHED,
    VENDOR,
    VERIFIED,
)
from compiler.target.units import Bytes, Cycles, Events, Words

# Timed rows

SETZI_EVENTS: Annotated[Events, VERIFIED] = Events(1)
"""Events that ``setzi`` takes in a row. Fact, measured on hardware."""

EXCHANGE_PUT_EVENTS: Annotated[Events, VERIFIED] = Events(13)
"""Events that ``put`` to an exchange register takes in a row (OUTGOING_BASE was measured; the others are
taken to be alike). Fact, measured on hardware."""

# Supervisor and calls

WORKER_ISSUE: Annotated[Cycles, VENDOR] = Cycles(6)
"""Cycles from one instruction of a worker to its next. Fact, vendor tools."""

DIVIDE_TURNS: Annotated[int, ESTIMATED] = 3
"""Issue turns of a worker's ``f32div``, the most of the one to three that vendor kernels allow for. Figure,
inferred."""

SUPERVISOR_SIMPLE: Annotated[Cycles, ASSUMED_FIGURE] = Cycles(1)
"""Cycles of an arithmetic instruction or ``setzi``. Figure, assumed."""

SUPERVISOR_WEIGHT_LOAD: Annotated[Cycles, ESTIMATED] = Cycles(1)
"""Cycles of ``ld64putcs`` and ``ld128putcs``; measured matrix kernels leave no room for more. Figure,
inferred."""

SUPERVISOR_LOAD: Annotated[Cycles, ASSUMED_FIGURE] = Cycles(6)
"""Cycles of a load. Figure, assumed."""

SUPERVISOR_TAKEN_BRANCH: Annotated[Cycles, ASSUMED_FIGURE] = Cycles(6)
"""Cycles of a branch that is taken, calls and returns included. Figure, assumed."""

SUPERVISOR_EXCHANGE_PUT: Annotated[Cycles, VERIFIED] = Cycles(EXCHANGE_PUT_EVENTS)
"""Cycles of ``put`` to an exchange register. Fact, measured on hardware."""

SUPERVISOR_REGISTER_ACCESS: Annotated[Cycles, ASSUMED_FIGURE] = Cycles(6)
"""Cycles of any other ``put`` or ``get``. Figure, assumed."""

SUPERVISOR_LAUNCH: Annotated[Cycles, ASSUMED_FIGURE] = Cycles(6)
"""Cycles of ``run`` and ``runall``; workers issue from their next slot. Figure, assumed."""

SUPERVISOR_LOCAL_SYNC: Annotated[Cycles, ASSUMED_FIGURE] = Cycles(6)
"""Cycles from the exit of the last worker to the instruction behind ``sync`` in zone LOCAL. Figure,
assumed."""

KERNEL_LAUNCH: Annotated[Cycles, PUBLISHED] = Cycles(11)
"""Cycles that calling a kernel adds to its formula. Figure, published by the vendor."""

COPY_CALL: Annotated[Cycles, MEASURED] = Cycles(288)
"""Cycles of a local copy by all workers without its data: call, launch, workers, rendezvous. Figure,
measured."""

COPY_BYTES_PER_CYCLE: Annotated[Bytes, PUBLISHED] = Bytes(8)
"""Bytes that a local copy moves in a cycle. Figure, published by the vendor."""

PATCH_SAMPLE_WORDS: Annotated[Words, MEASURED] = Words(87)
"""Words that the reference patch loop rewrote when it was measured. Figure, measured."""

PATCH_SAMPLE: Annotated[Cycles, MEASURED] = Cycles(2491)
"""Cycles that it took: 28.6 for each word. Figure, measured."""

PHASE_RESIDUAL: Annotated[Cycles, MEASURED] = Cycles(250)
"""Cycles of an exchange phase beyond its longest row: register set-up, barrier, sync. Figure: the middle of
ten measured phases."""

PHASE_RESIDUAL_RANGE: Annotated[tuple[Cycles, Cycles], MEASURED] = (Cycles(229), Cycles(294))
"""Least and greatest of the ten. Figure, measured."""

INTERNAL_SYNC: Annotated[Cycles, ESTIMATED] = Cycles(167)
"""Cycles from the arrival of the last tile at ``sync`` in zone INTERNAL to the instruction behind it: what
``PHASE_RESIDUAL`` leaves beside the other instructions of an exchange step. Figure, inferred."""

# Planning

PHASE_OVERHEAD: Annotated[Cycles, PUBLISHED] = Cycles(600)
"""Cycles of an exchange phase beyond its rows while nothing is scheduled. Figure, published by the vendor."""

SYNC_SKEW: Annotated[Cycles, ESTIMATED] = Cycles(126)
"""Most cycles by which the barrier can release one tile after another. Figure, inferred."""

SEND_FRAGMENT: Annotated[Cycles, POLICY] = Cycles(2)
"""Price of each separately sent span, beside its words. Policy."""

RECEIVE_FRAGMENT: Annotated[Cycles, POLICY] = Cycles(2)
"""Price of each separately received span, beside its words. Policy."""

POINTER_RESET: Annotated[Cycles, POLICY] = Cycles(1)
"""Price of each span that does not continue the previous one in memory. Policy."""

SEND_ROW_WORDS: Annotated[Words, ESTIMATED] = Words(2)
"""Most row words of a sent fragment, its controls not counted. Figure, inferred from the encoding."""

RECEIVE_ROW_WORDS: Annotated[Words, ESTIMATED] = Words(3)
"""Most row words of a received fragment. Figure, inferred from the encoding."""

ROW_BUDGET: Annotated[Bytes, POLICY] = Bytes(80 * 1024)
"""Most bytes of one exchange row: what planning sets aside for the rows of a tile. Policy."""

SUPPORT_ELEMENTS: Annotated[int, POLICY] = 3
"""Standard elements that planning keeps free for code, rows and descriptors. Policy."""

# Peak rates

PEAK_F16: Annotated[int, PUBLISHED] = 128
"""Operations of a tile in a cycle with elements of 16 bits: 64 products, each with its addition. Figure,
published; with all tiles and the card's clock it gives the published rate of the card."""

PEAK_F8: Annotated[int, PUBLISHED] = 2 * PEAK_F16
"""The same with both operands of 8 bits. Figure, published."""


def patch_cycles(words: Words) -> Cycles:
    """Cycles of rewriting so many row words one after the other, rounded up."""
    return Cycles(-(-words * PATCH_SAMPLE // PATCH_SAMPLE_WORDS))


def copy_cycles(size: Bytes) -> Cycles:
    """Cycles of a local copy by all workers, rounded up."""
    return Cycles(COPY_CALL - (-size // COPY_BYTES_PER_CYCLE))
