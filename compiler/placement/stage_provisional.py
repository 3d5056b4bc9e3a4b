"""Stage ``provisional_placement``: addresses for a program whose own needs are not known yet.

Only what the runtime has on every tile is kept free. The addresses decide which exchange schedules and loops
the program needs, hence how much code, rows and tables; the final placement uses what those leave.
"""

from typing import Final

from compiler.figures import FIGURES, Figures, counted
from compiler.low.ir import LowProgram
from compiler.placement.artifacts import ProvisionalPlacement, ProvisionalPlacementInputs
from compiler.placement.codec import PLACEMENT
from compiler.placement.ir import Placement
from compiler.placement.place import place
from compiler.placement.problem import runtime_ranges
from compiler.placement.usage import covered_bytes
from compiler.store.codec import Fields
from compiler.store.stage import Stage
from compiler.target.memory import SRAM_SIZE
from compiler.target.runtime_layout import DEFAULT_LAYOUT


def place_provisionally(inputs: ProvisionalPlacementInputs, _options: object) -> ProvisionalPlacement:
    """Addresses beside the runtime.

    Raises:
        DoesNotFit: it is proven that nothing fits, or nothing was found; the message says which.
    """
    program = inputs.program.value()
    runtime = runtime_ranges(DEFAULT_LAYOUT, program.tile_count)
    placement = place(program, runtime)
    room = int(SRAM_SIZE) - sum(each.size for each in runtime if each.tile == 0)
    return ProvisionalPlacement(placement=placement, figures=_figures(program, placement, room))


def _figures(program: LowProgram, placement: Placement, room: int) -> Figures:
    """How full the fullest tile is; what its tensors leave of the room is for code, rows and tables."""
    buffers = program.buffers
    stop = placement.address + buffers.byte_count
    used = covered_bytes(buffers.tile, placement.address, stop, program.tile_count)
    return (
        counted("tensors of a tile at most", int(used.max(initial=0)), "bytes", limit=room),
        counted("buffers", len(buffers.tile), "buffers"),
    )


PROVISIONAL_PLACEMENT: Final = Stage(
    name="provisional_placement",
    module=__name__,
    format=1,
    inputs=ProvisionalPlacementInputs,
    outputs=Fields(of=ProvisionalPlacement, codecs=(("placement", PLACEMENT), ("figures", FIGURES))),
    tables=("target",),
    function=place_provisionally,
)
