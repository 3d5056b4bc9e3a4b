"""Loops of tile programs: which pointers a tile keeps while it runs a Repeat.

A tile walks along a sequence when a copy or call of it in the body names one. For each it keeps a pointer to
the current member in its frame, behind the count of iterations left; an operand is that pointer plus a
constant. Rows of exchange steps do not use pointers: their words are patched.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.errors import Measure, NumberKind, Unsupported
from compiler.low.ids import NO_ROW
from compiler.low.ir import LowProgram, RepeatStep
from compiler.low.project import TileWork, WorkKind
from compiler.low.steps import in_order
from compiler.package.assembly import spread
from compiler.package.templates import FIRST_POINTER_WORD
from compiler.target.runtime_layout import FRAME_ALIGNMENT
from compiler.target.units import WORD_BYTES, Bytes, Int64Array

STAGE: Final = "tile programs"

FRAME_LIMIT: Final = Bytes(128)
"""Bytes that loops may take of the supervisor's stack. Policy: half of it; kernels and patches have the rest,
and the lowest words belong to the worker whose stack starts there."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Loop:
    """A Repeat: which sequences each tile walks along in it.

    Args:
        count: iterations.
        tiles, sequences: [pointers] by tile, then sequence.
        ranks: [pointers] number among the tile's.
    """

    count: int
    tiles: Int64Array
    sequences: Int64Array
    ranks: Int64Array

    @property
    def frame(self) -> int:
        """Bytes of the frame, the same on every tile."""
        words = FIRST_POINTER_WORD + (int(self.ranks.max()) + 1 if len(self.ranks) else 0)
        return -(-words * WORD_BYTES // FRAME_ALIGNMENT) * FRAME_ALIGNMENT

    def by_rank(self) -> list[tuple[Int64Array, Int64Array]]:
        """For each rank the tiles that have so many pointers, and the sequences of these."""
        chosen = [self.ranks == rank for rank in range(int(self.ranks.max()) + 1 if len(self.ranks) else 0)]
        return [(self.tiles[rows], self.sequences[rows]) for rows in chosen]

    def rank(self, tiles: Int64Array, sequences: Int64Array) -> Int64Array:
        """The ranks of pointers."""
        width = int(self.sequences.max()) + 1
        return self.ranks[np.searchsorted(self.tiles * width + self.sequences, tiles * width + sequences)]


def loop_of(program: LowProgram, work: TileWork, step: RepeatStep) -> Loop:
    """The sequences that copies and calls of a body walk along, on each tile."""
    body = np.array([inner.step for inner, _ in in_order(step.body)], dtype=np.int64)
    inside = np.flatnonzero(np.isin(work.step, body) & np.isin(work.kind, (WorkKind.COPY, WorkKind.CALL)))
    tile = np.searchsorted(work.first, inside, side="right") - 1
    calls = work.kind[inside] == WorkKind.CALL
    copy_rows, call_rows = work.row[inside[~calls]], work.row[inside[calls]]
    accesses = np.array([len(binding.accesses) for binding in program.bindings], dtype=np.int64)
    counts = accesses[program.calls.binding[call_rows]]
    views = program.calls.operand_views[spread(program.calls.first_view[call_rows], counts)]
    tiles = np.concatenate([tile[~calls], tile[~calls], np.repeat(tile[calls], counts)])
    sequences = np.concatenate(
        [
            program.copies.destination_sequence[copy_rows],
            program.copies.source_sequence[copy_rows],
            program.views.sequence[views],
        ]
    )
    moving = sequences != NO_ROW
    pairs = np.unique(np.stack([tiles[moving], sequences[moving]], axis=1), axis=0)
    return Loop(
        count=step.count,
        tiles=pairs[:, 0],
        sequences=pairs[:, 1],
        ranks=np.arange(len(pairs)) - np.searchsorted(pairs[:, 0], pairs[:, 0]),
    )


def check_frames(loop: Loop, runs: int | None) -> None:
    """The frames of loops leave the stack to kernels."""
    counting = FRAME_ALIGNMENT if runs is not None and runs > 1 else 0
    if loop.frame + counting > FRAME_LIMIT:
        tile = int(loop.tiles[loop.ranks.argmax()])
        raise Unsupported(
            "the body of a Repeat walks along too many sequences on one tile",
            stage=STAGE,
            subject=f"tile {tile}",
            numbers=[
                Measure(
                    name="frames of loops",
                    value=loop.frame + counting,
                    limit=FRAME_LIMIT,
                    unit="bytes",
                    kind=NumberKind.MEASURED,
                )
            ],
            next_step="put the parameters of an iteration into fewer tensors, or spread them over more tiles",
        )
