"""Leaves out fills whose zeros nobody needs (lesson of padding: one tile that clears holds up all others).

Construction clears padding wherever a value has any, because each operation knows only itself. Here the uses
of the bytes are known (``uses``): a fill is left out when none of its bytes is needed by anybody before it is
written again. Fills of members of sequences are kept.

What is needed has to come from somewhere. A fill that is needed once and for all, because nothing else writes
its bytes, is the business of ``cleared``.
"""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram
from compiler.low.rewrites.tables import without_calls
from compiler.low.rewrites.uses import Uses

Mask: TypeAlias = npt.NDArray[np.bool_]


def without_idle_clears(program: LowProgram) -> LowProgram:
    """The program without fills that make no difference."""
    fills = fills_of(program)
    if not len(fills):
        return program
    uses = Uses(program)
    is_idle = np.zeros(len(program.calls.step), dtype=np.bool_)
    for place, call in uses.of_calls(fills):
        is_idle[call] = uses.is_idle(place, uses.written(place))
    return without_calls(program, is_idle)


def fills_of(program: LowProgram) -> Column:
    """Calls that fill, outside of sequences."""
    is_fill = np.array(
        [
            isinstance(binding.parameters, CopyParameters) and binding.parameters.kind is Kind.FILL
            for binding in program.bindings
        ],
        dtype=np.bool_,
    )
    views, view = program.views, filled_views(program)
    buffer = views.buffer[view]
    is_single = (views.sequence[view] == NO_ROW) & (program.buffers.sequence[buffer] == NO_ROW)
    return np.flatnonzero(is_fill[program.calls.binding] & is_single).astype(np.int64)


def filled_views(program: LowProgram) -> Column:
    """[calls] the first view of each: of a fill, what it fills."""
    calls = program.calls
    return calls.operand_views[np.minimum(calls.first_view, max(len(calls.operand_views) - 1, 0))]
