"""Scheduling one phase, and all phases of a program.

The steps, in order: demand -> order -> timing -> rows -> patches. Checking is not among them:
``compiler.exchange.check`` shares no code with them and is run by whoever must know.
"""

from types import MappingProxyType

from compiler.exchange.demand import demand_of_step, exchange_steps
from compiler.exchange.ir import Demand, RowReservations, ScheduledExchange, ScheduledPhase
from compiler.exchange.order import chosen_order
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.rows import encode_rows
from compiler.exchange.timing import check_addresses
from compiler.low.address import Addresses
from compiler.low.ir import LowProgram
from compiler.target.units import Int64Array


def schedule_phase(demand: Demand, reservations: RowReservations | None = None) -> ScheduledPhase:
    """Schedule a phase and write its rows.

    Args:
        demand: what it moves.
        reservations: where rows will lie; None while nobody knows.

    Raises:
        ScheduleInfeasible: addresses are such that no schedule is legal.
        DoesNotFit: a row is larger than its budget.
    """
    check_addresses(demand, reservations)
    times = chosen_order(demand).schedule
    rows, sites = encode_rows(demand, times)
    return ScheduledPhase(
        demand=demand,
        schedule=times,
        rows=rows,
        sites=sites,
        patches=patches_between(rows.words, sites, iterations_of(demand)),
    )


def schedule_program(
    program: LowProgram,
    placement: Addresses,
    physical: Int64Array,
    reservations: RowReservations | None = None,
) -> ScheduledExchange:
    """Schedule every exchange step of a program.

    Args:
        program: a verified low program.
        placement: addresses of its buffers, strides of its sequences.
        physical: [tiles of the build] physical number of each logical tile.
        reservations: where rows will lie; None while nobody knows.

    Raises:
        ScheduleInfeasible: a step cannot be scheduled at these addresses.
        DoesNotFit: a row is larger than its budget.
    """
    phases = {
        step: schedule_phase(demand_of_step(program, placement, step, physical), reservations)
        for step in exchange_steps(program)
    }
    return ScheduledExchange(phases=MappingProxyType(phases))
