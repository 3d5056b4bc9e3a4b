"""Stage ``emission``: the package of a placed program.

Exchanges are scheduled again, at final addresses and with rows where they will lie. Then every byte of every
phase is followed by a checker that shares no code with the scheduler; only a program whose exchanges deliver
exactly what was asked for is emitted. What is written is read back before it counts.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from compiler.errors import InternalError, Measure, NumberKind, few_of
from compiler.evaluation.artifacts import HOST_FILES, EmissionInputs, EmittedPackage, HostFiles
from compiler.evaluation.scheduling import scheduled
from compiler.exchange.check import check_program
from compiler.exchange.ir import RowReservations, ScheduledExchange
from compiler.exchange.report import report_of
from compiler.figures import FIGURES, Figures, counted
from compiler.low.ir import LowProgram
from compiler.package.artifacts import HasPackageChoices, program_inputs
from compiler.package.emit import emit
from compiler.package.format import read_package, write_package
from compiler.package.host import HostLayout, write_layout
from compiler.placement.ir import Placement
from compiler.store.codec import BYTES, Fields
from compiler.store.stage import Stage, StageRunner
from compiler.target.isa_decisions import Decisions, decisions_of
from compiler.target.tiles import physical_tiles
from compiler.version import VERSION

DELIVERY_STAGE: Final = "delivery check"


def emitted(inputs: EmissionInputs, options: HasPackageChoices, caller: StageRunner) -> EmittedPackage:
    """Emit a package.

    Raises:
        ScheduleInfeasible: a phase cannot be scheduled at the final addresses.
        DoesNotFit: an area is larger than what was reserved for it.
        InternalError: an exchange does not deliver what was asked for, or what is written reads otherwise.
    """
    exchange = scheduled(caller, inputs.program, inputs.placement, inputs.row_reservations, options)
    program, placement, code = inputs.program.value(), inputs.placement.value(), inputs.code.value()
    ready = program_inputs(
        program,
        placement,
        (exchange.demands.value(), exchange.schedules.value(), exchange.rows.value()),
        code,
        options.package,
    )
    _check_deliveries(program, placement, ready.exchange, inputs.row_reservations.value())
    emission = emit(
        ready,
        code,
        inputs.support.value(),
        compiler_version=_version(decisions_of(options.isa)),
        shapes=dict(inputs.shapes),
    )
    package = write_package(emission.application)
    if read_package(package, name="the package") != emission.application:
        raise InternalError(
            "what is written reads otherwise",
            stage="emission",
            subject="package",
            next_step="report the model and the options",
        )
    return EmittedPackage(
        package=package,
        host_files=_host_files(emission.layouts),
        figures=_figures(ready.exchange, package),
    )


def _version(decisions: Decisions) -> str:
    """Who wrote the package, and with whose answers to open questions of the instruction set."""
    if not decisions.overridden:
        return VERSION
    values = " ".join(f"{name}={value:#x}" for name, value in sorted(decisions.overridden.items()))
    return f"{VERSION} with isa overrides {values}"


def _check_deliveries(
    program: LowProgram, placement: Placement, exchange: ScheduledExchange, reservations: RowReservations
) -> None:
    physical = physical_tiles(np.arange(program.tile_count))
    found = check_program(program, placement, physical, exchange, reservations)
    for step, findings in found.items():
        raise InternalError(
            f"its rows do not do what was asked for: {few_of(findings)}",
            stage=DELIVERY_STAGE,
            subject=f"exchange step {step}",
            nodes=program.nodes,
            next_step="report the model and the options",
        )


def _host_files(layouts: Sequence[HostLayout]) -> HostFiles:
    return tuple((layout.file_name, write_layout(layout)) for layout in layouts)


def _figures(exchange: ScheduledExchange, package: bytes) -> Figures:
    """The size of the file, and the exchanges in sum; each counts as often as its Repeat runs it."""
    reports = [(report_of(phase), phase.demand.iterations) for phase in exchange.phases.values()]
    return (
        counted("package", len(package), "bytes"),
        Measure(
            name="exchange",
            value=sum(report.horizon.value * times for report, times in reports),
            unit="events",
            kind=NumberKind.SCHEDULED,
        ),
        Measure(
            name="exchange, at least",
            value=sum(report.used_bound.value * times for report, times in reports),
            unit="events",
            kind=NumberKind.BOUND,
        ),
        Measure(
            name="largest exchange row",
            value=max((report.row_bytes.value for report, _ in reports), default=0),
            unit="bytes",
            kind=NumberKind.SCHEDULED,
        ),
        counted("phases whose delivery was followed", len(reports), "phases"),
    )


EMISSION: Final = Stage(
    name="emission",
    module=__name__,
    format=1,
    inputs=EmissionInputs,
    outputs=Fields(
        of=EmittedPackage,
        codecs=(("package", BYTES), ("host_files", HOST_FILES), ("figures", FIGURES)),
    ),
    reads=("package.runs", "package.profile", "isa.overrides"),
    tables=("target", "instructions", "decisions"),
    calling=emitted,
)
