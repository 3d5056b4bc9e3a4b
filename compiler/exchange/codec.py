"""How the tables of exchange phases are kept in the store: one file for all phases of a program.

A column is named by the phase's place, its table and its own name: ``2.transfers.source``. What is no column
(the step, its iterations, names of nodes) stands in the header.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from compiler.exchange.artifacts import EncodedRows
from compiler.exchange.ir import (
    Demand,
    Dependences,
    Patches,
    PlacedTransfers,
    RowReservations,
    Rows,
    Schedule,
    Sites,
)
from compiler.low.ids import StepId
from compiler.store.codec import ColumnsCodec
from compiler.store.container import Columns
from compiler.target.units import Int64Array

T = TypeVar("T")

_Arrays = dict[str, npt.NDArray[Any]]

_OTHER_COLUMNS: Final[Mapping[str, tuple[type[np.generic], int]]] = {
    "rows.words": (np.uint32, 1),
    "patches.values": (np.uint32, 2),
}
"""Element type and axes of the columns that are not lists of 64-bit integers."""


def columns_of_demands(demands: tuple[Demand, ...]) -> Columns:
    """The demands of a program as columns."""
    arrays: _Arrays = {}
    for number, demand in enumerate(demands):
        arrays |= _columns_of(f"{number}.transfers", demand.transfers)
        arrays |= _columns_of(f"{number}.dependences", demand.dependences)
    return Columns(
        arrays=arrays,
        meta=tuple((int(demand.step), demand.iterations, demand.nodes) for demand in demands),
    )


def demands_of_columns(columns: Columns) -> tuple[Demand, ...]:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of demands.
    """
    arrays = dict(columns.arrays)
    demands: list[Demand] = []
    for number, fact in enumerate(_tuple(columns.meta)):
        step, iterations, nodes = _tuple(fact)
        if type(step) is not int or type(iterations) is not int:
            raise ValueError("a demand has a step, iterations and nodes")
        demands.append(
            Demand(
                step=StepId(step),
                iterations=iterations,
                transfers=_table_of(f"{number}.transfers", PlacedTransfers, arrays),
                dependences=_table_of(f"{number}.dependences", Dependences, arrays),
                nodes=tuple(str(node) for node in _tuple(nodes)),
            )
        )
    _check_empty(arrays)
    return tuple(demands)


def columns_of_orders(orders: tuple[Int64Array, ...]) -> Columns:
    """An order for each phase as columns."""
    return Columns(arrays={f"{number}.order": order for number, order in enumerate(orders)}, meta=len(orders))


def orders_of_columns(columns: Columns) -> tuple[Int64Array, ...]:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of orders.
    """
    arrays = dict(columns.arrays)
    orders = tuple(_take(f"{number}.order", arrays) for number in range(_count(columns.meta)))
    _check_empty(arrays)
    return orders


def columns_of_schedules(schedules: tuple[Schedule, ...]) -> Columns:
    """A schedule for each phase as columns."""
    arrays: _Arrays = {}
    for number, schedule in enumerate(schedules):
        arrays |= _columns_of(f"{number}.schedule", schedule)
    return Columns(arrays=arrays, meta=len(schedules))


def schedules_of_columns(columns: Columns) -> tuple[Schedule, ...]:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of schedules.
    """
    arrays = dict(columns.arrays)
    schedules = tuple(
        _table_of(f"{number}.schedule", Schedule, arrays) for number in range(_count(columns.meta))
    )
    _check_empty(arrays)
    return schedules


def columns_of_rows(phases: tuple[EncodedRows, ...]) -> Columns:
    """Rows, sites and patches of each phase as columns."""
    arrays: _Arrays = {}
    for number, phase in enumerate(phases):
        arrays |= _columns_of(f"{number}.rows", phase.rows)
        arrays |= _columns_of(f"{number}.sites", phase.sites)
        arrays |= _columns_of(f"{number}.patches", phase.patches)
    return Columns(arrays=arrays, meta=len(phases))


def rows_of_columns(columns: Columns) -> tuple[EncodedRows, ...]:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of rows.
    """
    arrays = dict(columns.arrays)
    phases = tuple(
        EncodedRows(
            rows=_table_of(f"{number}.rows", Rows, arrays),
            sites=_table_of(f"{number}.sites", Sites, arrays),
            patches=_table_of(f"{number}.patches", Patches, arrays),
        )
        for number in range(_count(columns.meta))
    )
    _check_empty(arrays)
    return phases


def columns_of_reservations(reservations: RowReservations) -> Columns:
    """Where rows will lie, as columns."""
    return Columns(arrays=_columns_of("reservations", reservations))


def reservations_of_columns(columns: Columns) -> RowReservations:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of reservations.
    """
    arrays = dict(columns.arrays)
    reservations = _table_of("reservations", RowReservations, arrays)
    _check_empty(arrays)
    return reservations


DEMANDS: Final = ColumnsCodec(columns=columns_of_demands, value=demands_of_columns)
"""What moves, by phase."""
ORDERS: Final = ColumnsCodec(columns=columns_of_orders, value=orders_of_columns)
"""[transfers] who chooses first, by phase."""
SCHEDULES: Final = ColumnsCodec(columns=columns_of_schedules, value=schedules_of_columns)
"""When everything happens, by phase."""
ROWS: Final = ColumnsCodec(columns=columns_of_rows, value=rows_of_columns)
"""Instructions, by phase."""
ROW_RESERVATIONS: Final = ColumnsCodec(columns=columns_of_reservations, value=reservations_of_columns)
"""Where rows will lie."""


def _columns_of(prefix: str, table: object) -> Mapping[str, npt.NDArray[Any]]:
    """The columns of a table, which has nothing else."""
    names = [field.name for field in dataclasses.fields(cast("Any", table))]
    return {f"{prefix}.{name}": getattr(table, name) for name in names}


def _table_of(prefix: str, of: Callable[..., T], arrays: _Arrays) -> T:
    names = [field.name for field in dataclasses.fields(cast("Any", of))]
    return of(**{name: _take(f"{prefix}.{name}", arrays) for name in names})


def _take(name: str, arrays: _Arrays) -> npt.NDArray[Any]:
    found = arrays.pop(name, None)
    if found is None:
        raise ValueError(f"column {name} is missing")
    table_and_column = ".".join(name.split(".")[-2:])
    kind, axes = _OTHER_COLUMNS.get(table_and_column, (np.int64, 1))
    if found.dtype != kind or found.ndim != axes:
        raise ValueError(f"column {name} has {found.ndim} axes of {found.dtype}")
    return found


def _count(meta: object) -> int:
    if type(meta) is not int or meta < 0:
        raise ValueError("the number of phases is missing")
    return meta


def _tuple(meta: object) -> tuple[object, ...]:
    if not isinstance(meta, tuple):
        raise ValueError("the facts of phases are missing")
    return cast("tuple[object, ...]", meta)


def _check_empty(arrays: _Arrays) -> None:
    if arrays:
        raise ValueError(f"{min(arrays)} is no column of the phases")
