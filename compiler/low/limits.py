"""How many transfers a tile may take part in: refused from geometry, before anything is placed or scheduled.

Ordering, timing and encoding take time and row bytes for each transfer. A layout that cuts across that of its
reader makes hundreds of thousands of small ones, which take hours to schedule before they fail. So a movement
is refused by its runs before their rows are made, and a program by its rows before it is placed. The body of
a Repeat counts once: its rows are shared by all iterations.
"""

from typing import Final

import numpy as np

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.geometry.boxes import distinct_rows
from compiler.low.address import destinations_of
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram
from compiler.low.prices import PerTile, PhaseLoads, loads_of, per_tile
from compiler.target.costs import ROW_BUDGET
from compiler.target.units import WORD_BYTES

STAGE: Final = "expansion"
MOST_FRAGMENTS: Final = 16384
"""Transfers that a tile sends or receives in a program. Policy."""


def refuse_phase(loads: PhaseLoads, node: str) -> None:
    """Refuse a phase that takes more transfers than a tile may have in a whole program.

    Args:
        loads: of the phase.
        node: graph node that it works for.

    Raises:
        DoesNotFit: a tile has more.
    """
    _refuse(loads.sends + loads.receives, f"for {node}", (node,))


def refuse_program(program: LowProgram) -> None:
    """Refuse a program whose transfers are too many for a tile, or for the row of a tile.

    Raises:
        DoesNotFit: they are.
    """
    transfers, recipients = program.transfers, program.recipients
    every = loads_of(program, np.arange(len(transfers.step)), np.arange(len(recipients.transfer)))
    total = every.sends + every.receives
    tile = int(np.argmax(total))
    if total[tile] > MOST_FRAGMENTS:
        _refuse(total, "in all", _nodes_of(program, tile, step=None))
    step_of_recipient = transfers.step[recipients.transfer]
    for step in np.unique(transfers.step).tolist():
        sent = np.flatnonzero(transfers.step == step)
        words = row_words_of(program, sent, np.flatnonzero(step_of_recipient == step))
        tile = int(np.argmax(words))
        if WORD_BYTES * words[tile] > ROW_BUDGET:
            raise DoesNotFit(
                f"logical tile {tile} has more spans to send and receive in one exchange step than its row "
                "may control",
                stage=STAGE,
                subject=f"step {step}",
                next_step="move fewer and longer spans: layouts whose tiles cut less across each other",
                numbers=[
                    Measure(
                        name="bytes of the row at least",
                        value=WORD_BYTES * int(words[tile]),
                        unit="bytes",
                        kind=NumberKind.BOUND,
                        limit=int(ROW_BUDGET),
                    )
                ],
                nodes=_nodes_of(program, tile, step),
            )


def _refuse(fragments: PerTile, what: str, nodes: tuple[str, ...]) -> None:
    tile = int(np.argmax(fragments))
    if fragments[tile] <= MOST_FRAGMENTS:
        return
    raise DoesNotFit(
        f"logical tile {tile} would send and receive too many spans {what}",
        stage=STAGE,
        subject=nodes[0],
        next_step="move fewer and longer spans: layouts whose tiles cut less across each other",
        numbers=[
            Measure(
                name="spans of the tile",
                value=int(fragments[tile]),
                unit="spans",
                kind=NumberKind.BOUND,
                limit=MOST_FRAGMENTS,
            )
        ],
        nodes=nodes,
    )


def row_words_of(program: LowProgram, sent: Column, received: Column) -> PerTile:
    """[tiles] words of the rows of a phase at least, wherever buffers are placed.

    Each send has an instruction that starts it, each reception a selection, and each that does not continue
    another one in memory a pointer. The first of a buffer may continue what lies before the buffer.
    """
    loads = loads_of(program, sent, received)
    to, size = destinations_of(program.recipients).take(received), program.transfers.byte_count
    storage = np.where(to.sequence == NO_ROW, to.buffer, len(program.buffers.tile) + to.sequence)
    start = np.stack([storage, to.displacement], axis=1)
    end = np.stack([storage, to.displacement + size[program.recipients.transfer[received]]], axis=1)
    _, place = distinct_rows(np.concatenate([start, end]))
    is_apart = ~np.isin(place[: len(start)], place[len(start) :])
    first, _ = distinct_rows(storage[:, None])
    tile = program.buffers.tile[to.buffer]
    pointers = per_tile(tile[is_apart], None, program.tile_count) - per_tile(
        tile[first], None, program.tile_count
    )
    return loads.sends + loads.receives + np.maximum(pointers, 0) + 1


def _nodes_of(program: LowProgram, tile: int, step: int | None) -> tuple[str, ...]:
    """Graph nodes for which a tile sends or receives, those with most transfers first."""
    transfers, recipients, tiles = program.transfers, program.recipients, program.buffers.tile
    rows = np.concatenate(
        [
            np.flatnonzero(tiles[transfers.source] == tile),
            recipients.transfer[tiles[recipients.destination] == tile],
        ]
    )
    if step is not None:
        rows = rows[transfers.step[rows] == step]
    counts = np.bincount(transfers.node[rows], minlength=len(program.nodes))
    order: list[int] = np.argsort(-counts, kind="stable").tolist()
    return tuple(program.nodes[node] for node in order if counts[node])
