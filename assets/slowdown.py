"""Whether a build takes more cycles than the last one: a check, and a tag of the run that says so.

Builds are compared that chose the same; model, compiler and kernels may have changed, and that is what one
wants to hear of. By day more cycles are a warning; in a run that verifies, like those of the night, an error.
"""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import dagster as dg

from assets.metadata import CHOICES, FAULT
from compiler.errors import NumberKind

if TYPE_CHECKING:
    from compiler.figures import Figures

STAGE: Final = "simulation"
"""Whose cycles are compared."""
NAME: Final = "no_more_cycles"
TOLERANCE: Final = 0.005
"""Part of the last build's cycles that may come on top without a notice."""
SLOWER_TAG: Final = "tilewright/slower"
"""Tag of a run that takes more cycles; its value says how many."""


def spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """Its declaration on an asset."""
    return dg.AssetCheckSpec(
        NAME,
        asset=key,
        description="A run takes no more cycles than in the last build that chose the same.",
        blocking=True,
    )


def compared(
    key: dg.AssetKey,
    figures: "Figures",
    choices: Mapping[str, Any],
    last: dg.AssetMaterialization | None,
    *,
    is_strict: bool,
) -> dg.AssetCheckResult:
    """What it says of a result.

    Args:
        key: of the asset.
        figures: of the result.
        choices: of the run.
        last: what was materialized before.
        is_strict: whether more cycles are an error.
    """
    cycles = max(figure.value for figure in figures if _is_cycles(figure.unit, figure.kind))
    before = None if last is None else _cycles_of(last, choices)
    if before is None:
        return dg.AssetCheckResult(
            check_name=NAME,
            asset_key=key,
            passed=True,
            description="No earlier build that chose the same is known.",
            metadata={"cycles (simulated)": cycles},
        )
    limit = int(before * (1 + TOLERANCE))
    share = 100 * (cycles / before - 1)
    return dg.AssetCheckResult(
        check_name=NAME,
        asset_key=key,
        passed=cycles <= limit,
        severity=dg.AssetCheckSeverity.ERROR if is_strict else dg.AssetCheckSeverity.WARN,
        description=f"{before:,} -> {cycles:,} cycles (simulated), {share:+.2f} %, limit {limit:,}",
        metadata={
            "cycles (simulated)": cycles,
            "cycles of the last build (simulated)": before,
            "limit of cycles": limit,
        },
    )


def _is_cycles(unit: str, kind: NumberKind) -> bool:
    return unit == "cycles" and kind is NumberKind.SIMULATED


def _cycles_of(last: dg.AssetMaterialization, choices: Mapping[str, Any]) -> int | None:
    """Cycles of what was materialized before; None when it cannot be compared."""
    metadata = last.metadata
    if FAULT in metadata or CHOICES not in metadata:
        return None
    if json.loads(str(metadata[CHOICES].value)) != choices:
        return None
    found = [entry.value for name, entry in metadata.items() if name.endswith("(cycles, simulated)")]
    return max((value for value in found if isinstance(value, int)), default=None)
