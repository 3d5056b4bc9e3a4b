"""What low work costs before it is scheduled: the formulas that movement, rewrites and estimates share.

A call or a local copy takes what its binding says and what calling costs. A phase takes as long as its
busiest end, by words or by fragments, and the phase itself.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.low.ir import Column, LowProgram
from compiler.target.costs import KERNEL_LAUNCH, PHASE_OVERHEAD, RECEIVE_FRAGMENT, SEND_FRAGMENT
from compiler.target.units import WORD_BYTES, Cycles

PerTile = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseLoads:
    """What the tiles do in an exchange phase.

    Args:
        sent: [tiles] words.
        sends: [tiles] fragments.
        received: [tiles] words.
        receives: [tiles] fragments.
    """

    sent: PerTile
    sends: PerTile
    received: PerTile
    receives: PerTile

    @property
    def cycles(self) -> Cycles:
        """The phase, estimated."""
        loads = (self.sent, SEND_FRAGMENT * self.sends, self.received, RECEIVE_FRAGMENT * self.receives)
        return Cycles(PHASE_OVERHEAD + int(max(load.max(initial=0) for load in loads)))

    def together(self, other: "PhaseLoads") -> "PhaseLoads":
        """Both in one phase."""
        return PhaseLoads(
            sent=self.sent + other.sent,
            sends=self.sends + other.sends,
            received=self.received + other.received,
            receives=self.receives + other.receives,
        )


def loads_of(program: LowProgram, transfers: Column, recipients: Column) -> PhaseLoads:
    """The loads of some transfers, and of their recipients."""
    tile = program.buffers.tile
    words = program.transfers.byte_count // WORD_BYTES
    senders = tile[program.transfers.source[transfers]]
    receivers = tile[program.recipients.destination[recipients]]
    taken = words[program.recipients.transfer[recipients]]
    return PhaseLoads(
        sent=per_tile(senders, words[transfers], program.tile_count),
        sends=per_tile(senders, None, program.tile_count),
        received=per_tile(receivers, taken, program.tile_count),
        receives=per_tile(receivers, None, program.tile_count),
    )


def work_of_steps(program: LowProgram, step_count: int) -> PerTile:
    """[steps, tiles] cycles of calls and copies, one run of each step."""
    cycles = cycles_of_bindings(program)
    work = np.zeros((step_count, program.tile_count), dtype=np.int64)
    for table in (program.calls, program.copies):
        np.add.at(work, (table.step, table.tile), cycles[table.binding])
    return work


def cycles_of_bindings(program: LowProgram) -> PerTile:
    """[bindings] cycles of a call, calling included."""
    return np.array([binding.cycles + KERNEL_LAUNCH for binding in program.bindings], dtype=np.int64)


def per_tile(tiles: Column, weights: Column | None, tile_count: int) -> PerTile:
    """Sums by tile; numbers of rows without weights. Sums are exact up to 2^53."""
    return np.bincount(tiles, weights=weights, minlength=tile_count).astype(np.int64)
