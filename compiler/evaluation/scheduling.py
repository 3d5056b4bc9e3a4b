"""Runs the four stages of an exchange for all phases of a placed program."""

from compiler.exchange.artifacts import (
    DemandInputs,
    ExchangeArtifacts,
    OrderInputs,
    RowInputs,
    TimingInputs,
)
from compiler.exchange.ir import RowReservations
from compiler.exchange.stage_demand import EXCHANGE_DEMAND
from compiler.exchange.stage_order import EXCHANGE_ORDER
from compiler.exchange.stage_rows import EXCHANGE_ROWS
from compiler.exchange.stage_timing import EXCHANGE_TIMING
from compiler.low.ir import LowProgram
from compiler.placement.ir import Placement
from compiler.store.stage import Artifact, StageRunner


def scheduled(
    caller: StageRunner,
    program: Artifact[LowProgram],
    placement: Artifact[Placement],
    reservations: Artifact[RowReservations] | None,
    options: object,
) -> ExchangeArtifacts:
    """The schedules and rows of a program at some addresses, provisional or final.

    Args:
        caller: runs the stages.
        program: a verified program.
        placement: its addresses.
        reservations: where rows will lie; None while nobody knows.
        options: of the build; the stages of exchanges read none.

    Raises:
        ScheduleInfeasible: a phase cannot be scheduled at these addresses.
    """
    demands = caller.run(EXCHANGE_DEMAND, DemandInputs(program=program, placement=placement), options)
    orders = caller.run(EXCHANGE_ORDER, OrderInputs(demands=demands), options)
    schedules = caller.run(
        EXCHANGE_TIMING, TimingInputs(demands=demands, orders=orders, reservations=reservations), options
    )
    rows = caller.run(EXCHANGE_ROWS, RowInputs(demands=demands, schedules=schedules), options)
    return ExchangeArtifacts(demands=demands, schedules=schedules, rows=rows)
