"""Stage ``final_placement``: where the tensors of a program are, beside everything else that a tile holds.

It places in what the sized support of the program leaves (EC-01), and a checker that shares no code with the
solver looks at the outcome before it counts.
"""

from typing import Final

import numpy as np

from compiler.errors import InternalError, few_of
from compiler.evaluation.artifacts import FinalPlacementInputs, PlacedProgram
from compiler.figures import FIGURES, Figures, counted
from compiler.low.ir import LowProgram
from compiler.package.support import Support
from compiler.placement.check import check
from compiler.placement.codec import PLACEMENT
from compiler.placement.place import Placed, place_counted
from compiler.placement.usage import covered_bytes
from compiler.store.codec import Fields
from compiler.store.stage import Stage
from compiler.target.memory import SRAM_SIZE


def placed(inputs: FinalPlacementInputs, _options: object) -> PlacedProgram:
    """Place a program in what remains.

    Raises:
        DoesNotFit: tensors of a tile have no room.
        InternalError: the independent checker refuses the placement.
    """
    program, support = inputs.program.value(), inputs.support.value()
    reserved = support.reservations.for_placement(program.tile_count)
    found = place_counted(program, reserved)
    violations = check(program, found.placement, reserved)
    if violations:
        raise InternalError(
            f"the placement breaks its rules: {few_of(violations)}",
            stage="placement check",
            subject="final placement",
            nodes=program.nodes,
            next_step="report the model and the options",
        )
    return PlacedProgram(placement=found.placement, figures=_figures(program, found, support))


def _figures(program: LowProgram, found: Placed, support: Support) -> Figures:
    """How full the fullest tile is, and how alike tiles are."""
    placement = found.placement
    reservations = support.reservations
    starts = np.concatenate([placement.address, reservations.start])
    stops = starts + np.concatenate([program.buffers.byte_count, reservations.byte_count])
    tiles = np.concatenate([program.buffers.tile, reservations.tile])
    used = covered_bytes(tiles, starts, stops, int(tiles.max()) + 1)
    return (
        counted("fullest tile", int(used.max()), "bytes", limit=int(SRAM_SIZE)),
        counted("number of the fullest tile", int(used.argmax()), "tile"),
        counted("distinct problems of placement", found.classes, "classes of tiles"),
        counted("placed like another tile, without a search", found.tiles - found.classes, "tiles"),
    )


FINAL_PLACEMENT: Final = Stage(
    name="final_placement",
    module=__name__,
    format=2,
    inputs=FinalPlacementInputs,
    outputs=Fields(of=PlacedProgram, codecs=(("placement", PLACEMENT), ("figures", FIGURES))),
    tables=("target",),
    function=placed,
)
