"""Stage ``support_sizing``: how much of each tile the program itself needs, and where (EC-07, EC-16).

Code, exchange rows, tables, tile and host programs are sized from what their emitters write for a provisional
placement: exchanges are scheduled at its addresses, the kernels are linked with the runtime, and every
program is written once. Their sizes depend on addresses by little, and the reservations say by how much; that
is why there are two placements and no loop.
"""

from typing import Final

import numpy as np

from compiler.evaluation.artifacts import SizedSupport, SupportSizingInputs
from compiler.evaluation.scheduling import scheduled
from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.figures import FIGURES, Figures, counted
from compiler.package.artifacts import IMAGE, SUPPORT, HasPackageChoices, LinkingInputs, program_inputs
from compiler.package.stage_linking import LINKING
from compiler.package.support import Support, size_support
from compiler.store.codec import Fields
from compiler.store.stage import Stage, StageRunner


def sized(inputs: SupportSizingInputs, options: HasPackageChoices, caller: StageRunner) -> SizedSupport:
    """Sizes and places of everything that is not a tensor.

    Raises:
        ScheduleInfeasible: a phase cannot be scheduled at the provisional addresses.
        DoesNotFit: executable memory is too small for the code of a tile.
    """
    exchange = scheduled(caller, inputs.program, inputs.placement, None, options)
    linking = LinkingInputs(objects=inputs.objects, symbols=inputs.symbols.value())
    code = caller.run(LINKING, linking, options).value()
    phases = (exchange.demands.value(), exchange.schedules.value(), exchange.rows.value())
    written = program_inputs(inputs.program.value(), inputs.placement.value(), phases, code, options.package)
    support = size_support(code, written)
    return SizedSupport(
        code=code,
        support=support,
        row_reservations=support.row_reservations(),
        figures=_figures(support),
    )


def _figures(support: Support) -> Figures:
    """What a tile gives to the program itself, and what code it could still take."""
    reservations = support.reservations
    own = np.bincount(reservations.tile, weights=reservations.byte_count)
    return (
        counted("code, rows, tables and runtime of a tile at most", int(own.max()), "bytes"),
        counted("code that a tile can still take, at least", int(support.headroom.min()), "bytes"),
    )


SUPPORT_SIZING: Final = Stage(
    name="support_sizing",
    module=__name__,
    format=2,
    inputs=SupportSizingInputs,
    outputs=Fields(
        of=SizedSupport,
        codecs=(
            ("code", IMAGE),
            ("support", SUPPORT),
            ("row_reservations", ROW_RESERVATIONS),
            ("figures", FIGURES),
        ),
    ),
    reads=("package.runs", "package.profile"),
    tables=("target", "instructions", "decisions"),
    calling=sized,
)
