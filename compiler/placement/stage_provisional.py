"""Stage ``provisional_placement``: addresses for a program whose own needs are not known yet.

Only what the runtime has on every tile is kept free. The addresses decide which exchange schedules and loops
the program needs, hence how much code, rows and tables; the final placement uses what those leave.
"""

from typing import Final

from compiler.placement.artifacts import ProvisionalPlacementInputs
from compiler.placement.codec import PLACEMENT
from compiler.placement.ir import Placement
from compiler.placement.place import place
from compiler.placement.problem import runtime_ranges
from compiler.store.codec import Single
from compiler.store.stage import Stage
from compiler.target.runtime_layout import DEFAULT_LAYOUT


def place_provisionally(inputs: ProvisionalPlacementInputs, _options: object) -> Placement:
    """Addresses beside the runtime.

    Raises:
        DoesNotFit: it is proven that nothing fits, or nothing was found; the message says which.
    """
    program = inputs.program.value()
    return place(program, runtime_ranges(DEFAULT_LAYOUT, program.tile_count))


PROVISIONAL_PLACEMENT: Final = Stage(
    name="provisional_placement",
    module=__name__,
    format=1,
    inputs=ProvisionalPlacementInputs,
    outputs=Single(codec=PLACEMENT),
    tables=("target",),
    function=place_provisionally,
)
