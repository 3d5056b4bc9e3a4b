"""Stage ``support_sizing``: how much of each tile the program itself needs, and where (EC-07, EC-16)."""

from typing import Final

from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.package.artifacts import (
    SUPPORT,
    HasPackageChoices,
    SizedSupport,
    SupportSizingInputs,
    program_inputs,
)
from compiler.package.support import size_support
from compiler.store.codec import Fields
from compiler.store.stage import Stage


def sized(inputs: SupportSizingInputs, options: HasPackageChoices) -> SizedSupport:
    """Sizes and places of everything that is not a tensor.

    Raises:
        DoesNotFit: executable memory is too small for the code of a tile.
    """
    exchange = (inputs.demands.value(), inputs.schedules.value(), inputs.rows.value())
    code = inputs.code.value()
    support = size_support(
        code,
        program_inputs(inputs.program.value(), inputs.placement.value(), exchange, code, options.package),
    )
    return SizedSupport(support=support, row_reservations=support.row_reservations())


SUPPORT_SIZING: Final = Stage(
    name="support_sizing",
    module=__name__,
    format=1,
    inputs=SupportSizingInputs,
    outputs=Fields(of=SizedSupport, codecs=(("support", SUPPORT), ("row_reservations", ROW_RESERVATIONS))),
    reads=("package.runs", "package.profile"),
    tables=("target", "instructions", "decisions"),
    function=sized,
)
