"""What tiles have to hold at a time: what a rewrite that moves work must not make worse."""

import numpy as np

from compiler.geometry.tiling import round_up_all
from compiler.low.ir import LowProgram, Role
from compiler.low.rewrites.hazards import Touches
from compiler.low.steps import table_of
from compiler.target.units import Bytes


def most_held(program: LowProgram, touches: Touches) -> Bytes:
    """The most bytes that live at a time on any tile: no placement needs less.

    Sequences are not counted. They belong to a Repeat, and no rewrite changes how long it takes.

    Args:
        program: the program.
        touches: what it does to memory.
    """
    buffers, steps = program.buffers, table_of(program.steps)
    count, step_count = len(buffers.root), len(steps.kind)
    low, high = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.minimum.at(low, buffers.root, buffers.displacement)
    np.maximum.at(high, buffers.root, buffers.displacement + buffers.byte_count)
    first, last = np.full(count, step_count, dtype=np.int64), np.full(count, -1, dtype=np.int64)
    used = touches.take(touches.storage < count)
    np.minimum.at(first, used.storage, steps.first[used.step])
    np.maximum.at(last, used.storage, steps.last[used.step])
    resident = buffers.root[(buffers.role != Role.TEMPORARY) | (buffers.cleared == 1)]
    first[resident], last[resident] = 0, step_count - 1
    lives = np.flatnonzero(first <= last)
    size = round_up_all(high - low, 8)[lives]
    change = np.zeros((step_count + 1, program.tile_count), dtype=np.int64)
    np.add.at(change, (first[lives], buffers.tile[lives]), size)
    np.add.at(change, (last[lives] + 1, buffers.tile[lives]), -size)
    return Bytes(int(np.cumsum(change, axis=0).max(initial=0)))
