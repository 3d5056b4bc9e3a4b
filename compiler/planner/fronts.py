"""The fronts of a product as something of their own, that programs ask for and the store keeps (ML-29).

Finding them is most of the work of planning a product, and many programs have the same product: candidates of
a search, builds with other options or recipes, models with the same layers. What decides a front is all in
``FrontInputs``, the tiles of the build and the rounding of sums among it; nothing else is asked while it is
found. A front says how distributed values are cut into parts and what that costs; tiles' buffers, names and
owners are not in it, so that it fits wherever the product occurs (ML-39).

Whoever plans is given a function from inputs to fronts: ``fronts_of``, which finds them, or one that asks the
store first.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Orientation
from compiler.planner.gemm_candidates import ClassFront, GemmCandidates, candidates
from compiler.planner.gemm_choice import Residency
from compiler.planner.gemm_grids import Grids
from compiler.planner.gemm_problem import Arrival, GemmProblem
from compiler.planner.gemm_variants import Variants
from compiler.store.codec import ColumnsCodec
from compiler.store.container import Columns


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FrontInputs:
    """All that decides the fronts of a product.

    Args:
        problem: the product, with tiles and rounding of the build.
        cast_before_copies: whether operands in another precision are cast before they are brought.
        left, right: how the operands lie; None for arguments with a home of their own.
    """

    problem: GemmProblem
    cast_before_copies: bool
    left: Arrival | None = None
    right: Arrival | None = None

    @property
    def arrivals(self) -> Mapping[Side, Arrival]:
        """How operands lie that are no arguments with a home of their own."""
        arriving = ((Side.LEFT, self.left), (Side.RIGHT, self.right))
        return {side: arrival for side, arrival in arriving if arrival is not None}


Fronts: TypeAlias = Callable[[FrontInputs], GemmCandidates]
"""Gives the fronts of a product."""


@functools.lru_cache(maxsize=256)
def fronts_of(inputs: FrontInputs) -> GemmCandidates:
    """The fronts of a product. A search without store asks for the same ones time and again."""
    return candidates(inputs.problem, cast_before_copies=inputs.cast_before_copies, arrivals=inputs.arrivals)


# How they are kept: the columns of all fronts one behind the other, and what is one number for each front.

_OF_GRIDS: Final = tuple(field.name for field in fields(Grids) if field.name != "orientation")
_OF_VARIANTS: Final = tuple(field.name for field in fields(Variants) if field.name != "grid")
_FLAGS: Final = ("is_wide",)
_PRICES: Final = 4


def columns_of_fronts(found: GemmCandidates) -> Columns:
    """Fronts as columns."""
    arrays: dict[str, npt.NDArray[Any]] = {
        **{
            f"grid.{name}": np.concatenate([getattr(one.grids, name) for one in found.fronts])
            for name in _OF_GRIDS
        },
        **{
            name: np.concatenate([getattr(one.variants, name) for one in found.fronts])
            for name in _OF_VARIANTS
        },
    }
    classes = tuple(
        (len(one), one.micro, one.residency.value, one.grids.orientation.value) for one in found.fronts
    )
    return Columns(arrays=arrays, meta=(classes, tuple(found.dropped.items())))


def fronts_of_columns(columns: Columns) -> GemmCandidates:
    """The inverse; its columns cannot be written.

    Raises:
        ValueError: the columns are not those of fronts.
    """
    meta: Any = columns.meta
    try:
        classes, dropped = meta
        classes = [
            (int(count), int(micro), Residency(residency), Orientation(orientation))
            for count, micro, residency, orientation in classes
        ]
        counts = {str(reason): int(count) for reason, count in dropped}
    except (TypeError, ValueError) as fault:
        raise ValueError(f"no facts about fronts: {fault}") from fault
    ends = np.cumsum([0, *(count for count, *_ in classes)]).tolist()
    names = {*(f"grid.{name}" for name in _OF_GRIDS), *_OF_VARIANTS}
    if set(columns.arrays) != names:
        raise ValueError(f"fronts have the columns {', '.join(sorted(names))}")
    for name, array in columns.arrays.items():
        shape = (ends[-1], _PRICES) if name == "costs" else (ends[-1],)
        if array.shape != shape or array.dtype != (np.bool_ if name in _FLAGS else np.int64):
            raise ValueError(f"{name} is no column of {ends[-1]} rows")
    fronts: list[ClassFront] = []
    for (count, micro, residency, orientation), end in zip(classes, ends[1:], strict=True):
        part: dict[str, Any] = {name: array[end - count : end] for name, array in columns.arrays.items()}
        fronts.append(
            ClassFront(
                micro=micro,
                residency=residency,
                grids=Grids(orientation=orientation, **{name: part[f"grid.{name}"] for name in _OF_GRIDS}),
                variants=Variants(
                    grid=np.arange(count, dtype=np.int64), **{name: part[name] for name in _OF_VARIANTS}
                ),
            )
        )
    return GemmCandidates(fronts=tuple(fronts), dropped=counts)


FRONTS: Final = ColumnsCodec(columns=columns_of_fronts, value=fronts_of_columns)
"""The fronts of a product."""
