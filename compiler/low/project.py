"""What each tile does: the program's rows, sorted by tile. Read-only, and nothing is left out (AL-03).

A projection decides nothing. It is an index over the tables, made anew after they change (AL-06), so that
costs, lifetimes, profiles and emission count the same work (AL-04). Every call, copy, transfer and recipient
occurs in exactly one tile's list; what a tile does in a step is in the order in which the program means it.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import final

import numpy as np

from compiler.low.ir import Column, LowProgram


class WorkKind(IntEnum):
    """Which table a row of work is in."""

    COPY = 0
    """``Copies``."""
    CALL = 1
    """``Calls``."""
    SEND = 2
    """``Transfers``, on the tile of the source."""
    RECEIVE = 3
    """``Recipients``, on the tile of the destination."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TileWork:
    """Rows of work of all tiles. Tile t's are ``first[t]`` to ``first[t + 1]``, in the order of execution.

    Args:
        first: [tiles + 1].
        step: step of each row.
        kind: ``WorkKind``.
        row: row of the table that the kind names.
    """

    first: Column
    step: Column
    kind: Column
    row: Column

    def rows_of(self, tile: int) -> tuple[Column, Column, Column]:
        """(step, kind, row) of one tile."""
        rows = slice(int(self.first[tile]), int(self.first[tile + 1]))
        return self.step[rows], self.kind[rows], self.row[rows]


def project(program: LowProgram) -> TileWork:
    """The work of every tile."""
    buffers, transfers, recipients = program.buffers, program.transfers, program.recipients
    copies, calls = program.copies, program.calls
    copy_rows, call_rows = np.arange(len(copies.step)), np.arange(len(calls.step))
    transfer_rows, recipient_rows = np.arange(len(transfers.step)), np.arange(len(recipients.transfer))
    # In a step: copies, then calls; sends and receives by transfer, since that order has a meaning.
    parts = (
        (WorkKind.COPY, copies.step, copies.tile, copy_rows, copy_rows),
        (WorkKind.CALL, calls.step, calls.tile, call_rows, len(copy_rows) + call_rows),
        (WorkKind.SEND, transfers.step, buffers.tile[transfers.source], transfer_rows, 2 * transfer_rows),
        (
            WorkKind.RECEIVE,
            transfers.step[recipients.transfer],
            buffers.tile[recipients.destination],
            recipient_rows,
            2 * recipients.transfer + 1,
        ),
    )
    kind = np.concatenate([np.full(len(rows), part, dtype=np.int64) for part, _, _, rows, _ in parts])
    step = np.concatenate([steps for _, steps, _, _, _ in parts])
    tile = np.concatenate([tiles for _, _, tiles, _, _ in parts])
    row = np.concatenate([rows for _, _, _, rows, _ in parts]).astype(np.int64)
    rank = np.concatenate([ranks for _, _, _, _, ranks in parts])
    order = np.lexsort((rank, step, tile))
    work = TileWork(
        first=np.searchsorted(tile[order], np.arange(program.tile_count + 1)).astype(np.int64),
        step=step[order],
        kind=kind[order],
        row=row[order],
    )
    for column in (work.first, work.step, work.kind, work.row):
        column.flags.writeable = False
    return work
