"""What must be true of a stage's result before the next stage makes sense: blocking asset checks.

A check fails in one of two ways. Most of what they state is enforced inside the stages, which give an error
instead of a result: the check whose error it is fails, and nothing is materialized. The comparison of
numerics is part of a result that exists either way, and is judged by looking at it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import dagster as dg

from compiler.errors import (
    DoesNotFit,
    InternalError,
    PackageInvalid,
    ScheduleInfeasible,
    TilewrightError,
)

if TYPE_CHECKING:
    from compiler.figures import Figures
    from compiler.store.result import StageResult


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check of one stage.

    Args:
        name: in lower-case words.
        stage: whose result it is about.
        statement: what is true when it passes, a sentence.
        is_breach: whether an error of the stage means that the statement is not true.
        faults: what is wrong with a result that exists.
        shown: figures that are shown beside the verdict, by name.
    """

    name: str
    stage: str
    statement: str
    is_breach: "Callable[[TilewrightError], bool]"
    faults: "Callable[[StageResult[Any], Figures], tuple[str, ...]]" = lambda _, __: ()
    shown: tuple[str, ...] = ()

    def spec(self, key: dg.AssetKey) -> dg.AssetCheckSpec:
        """Its declaration on an asset."""
        return dg.AssetCheckSpec(self.name, asset=key, description=self.statement, blocking=True)

    def refused(self, key: dg.AssetKey, error: TilewrightError) -> dg.AssetCheckResult:
        """It failed, because the stage did."""
        return dg.AssetCheckResult(check_name=self.name, asset_key=key, passed=False, description=str(error))

    def judged(self, key: dg.AssetKey, result: "StageResult[Any]", figures: "Figures") -> dg.AssetCheckResult:
        """What it says of a result."""
        faults = self.faults(result, figures)
        numbers = {figure.name: figure for figure in figures if figure.name in self.shown}
        metadata = {name: figure.value for name, figure in numbers.items()}
        metadata |= {
            f"limit of {name}": figure.limit for name, figure in numbers.items() if figure.limit is not None
        }
        return dg.AssetCheckResult(
            check_name=self.name,
            asset_key=key,
            passed=not faults,
            description=self.statement if not faults else "; ".join(faults[:3]),
            metadata=metadata,
        )


def _differences(result: "StageResult[Any]", figures: "Figures") -> tuple[str, ...]:  # noqa: ARG001  # one signature for all
    return result.value().differences


def _beyond_limits(result: "StageResult[Any]", figures: "Figures") -> tuple[str, ...]:  # noqa: ARG001  # one signature for all
    return tuple(
        str(figure) for figure in figures if figure.limit is not None and figure.value > figure.limit
    )


def _is_conflict(error: TilewrightError) -> bool:
    """Whether the store found that equal keys gave different bytes."""
    return isinstance(error, InternalError) and error.stage == "store"


CHECKS: Final = (
    Check(
        name="never_worse_than_baseline",
        stage="proposal_rounds",
        statement="The accepted program takes no more scheduled cycles than the baseline.",
        is_breach=lambda _: False,
        faults=_beyond_limits,
        shown=("accepted", "baseline"),
    ),
    Check(
        name="program_verified",
        stage="expansion",
        statement="The independent verifier finds no fault in the low program.",
        is_breach=lambda error: error.stage == "expansion",
    ),
    Check(
        name="tensors_fit",
        stage="provisional_placement",
        statement="The tensors of every tile have a place beside the runtime.",
        is_breach=lambda error: isinstance(error, DoesNotFit),
        shown=("tensors of a tile at most",),
    ),
    Check(
        name="exchanges_scheduled",
        stage="support_sizing",
        statement="Every exchange has a schedule at provisional addresses.",
        is_breach=lambda error: isinstance(error, ScheduleInfeasible),
    ),
    Check(
        name="code_fits",
        stage="support_sizing",
        statement="Code, rows and tables of every tile have a place.",
        is_breach=lambda error: isinstance(error, DoesNotFit),
        shown=("code, rows, tables and runtime of a tile at most",),
    ),
    Check(
        name="every_tile_fits",
        stage="final_placement",
        statement="Every tile holds its tensors, code, rows and tables at once.",
        is_breach=lambda error: isinstance(error, DoesNotFit),
        shown=("fullest tile",),
    ),
    Check(
        name="placement_checked",
        stage="final_placement",
        statement="The independent checker finds no fault in the placement.",
        is_breach=lambda error: error.stage == "placement check",
    ),
    Check(
        name="delivery_exact",
        stage="emission",
        statement="Every byte of every exchange arrives where it was asked for, and no other changes.",
        is_breach=lambda error: error.stage == "delivery check",
        shown=("phases whose delivery was followed",),
    ),
    Check(
        name="package_valid",
        stage="emission",
        statement="The package obeys every rule of its format and reads back as it was meant.",
        is_breach=lambda error: (
            isinstance(error, PackageInvalid | InternalError)
            and error.stage != "delivery check"
            and not _is_conflict(error)
        ),
        shown=("package",),
    ),
    Check(
        name="numerics_equal",
        stage="simulation",
        statement="Outputs of the simulated package are those of the reference: of a model within the "
        "tolerance of its precision, of a hand-written program to the bit.",
        is_breach=lambda _: False,
        faults=_differences,
    ),
)
"""What is true of one stage."""


def checks_of(stage: str) -> tuple[Check, ...]:
    """The checks of a stage."""
    repeatable = Check(
        name="second_build_identical",
        stage=stage,
        statement="A stage that is computed again under an equal key gives equal bytes (compared when the "
        "run verifies).",
        is_breach=_is_conflict,
    )
    return (*(check for check in CHECKS if check.stage == stage), repeatable)
