"""What the stages of an exchange hand to each other: all phases of a program at once, in program order.

    demand -> order -> timing -> rows

Each is a stage of its own with the phases of a whole program as one small object, so that an edit of the row
encoder leaves demands, orders and times as they are. The stages are declared in ``stage_demand`` and so on;
this module holds what their callers need.
"""

from dataclasses import dataclass
from types import MappingProxyType
from typing import final

from compiler.exchange.ir import (
    Demand,
    Patches,
    RowReservations,
    Rows,
    Schedule,
    ScheduledExchange,
    ScheduledPhase,
    Sites,
)
from compiler.low.ir import LowProgram
from compiler.placement.ir import Placement
from compiler.store.stage import Artifact
from compiler.target.units import Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EncodedRows:
    """The instructions of a phase."""

    rows: Rows
    sites: Sites
    patches: Patches


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DemandInputs:
    """Of stage ``exchange.demand``: a verified program at its addresses."""

    program: Artifact[LowProgram]
    placement: Artifact[Placement]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OrderInputs:
    """Of stage ``exchange.order``."""

    demands: Artifact[tuple[Demand, ...]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TimingInputs:
    """Of stage ``exchange.timing``; ``reservations`` says where rows will lie, once that is known."""

    demands: Artifact[tuple[Demand, ...]]
    orders: Artifact[tuple[Int64Array, ...]]
    reservations: Artifact[RowReservations] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowInputs:
    """Of stage ``exchange.rows``."""

    demands: Artifact[tuple[Demand, ...]]
    schedules: Artifact[tuple[Schedule, ...]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangeArtifacts:
    """What the four stages gave for a program."""

    demands: Artifact[tuple[Demand, ...]]
    schedules: Artifact[tuple[Schedule, ...]]
    rows: Artifact[tuple[EncodedRows, ...]]


def exchange_of(
    demands: tuple[Demand, ...], schedules: tuple[Schedule, ...], rows: tuple[EncodedRows, ...]
) -> ScheduledExchange:
    """The phases of a program, from what the stages gave for each.

    Raises:
        ValueError: they are not of equally many phases.
    """
    return ScheduledExchange(
        phases=MappingProxyType(
            {
                demand.step: ScheduledPhase(
                    demand=demand,
                    schedule=schedule,
                    rows=encoded.rows,
                    sites=encoded.sites,
                    patches=encoded.patches,
                )
                for demand, schedule, encoded in zip(demands, schedules, rows, strict=True)
            }
        )
    )
