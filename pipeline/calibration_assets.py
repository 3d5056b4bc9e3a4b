"""The calibration of each kernel family as an asset, with its worst deviation as a check; their job."""

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import dagster as dg

from assets.factory import Yielded
from assets.failure import StageFailed
from compiler.errors import TilewrightError
from compiler.fingerprint import fingerprint

if TYPE_CHECKING:
    from pipeline.calibration import Calibration

FAMILIES: Final = ("cast", "copy", "gemm", "pointwise", "rearrange", "reduce")
"""Those whose calls ``kernel_samples`` describes, named here since listing them there loads all of them."""

GROUP: Final = "calibration"
JOB: Final = "calibrate_kernels"
CHECK: Final = "formula_within_limit"
_CODE: Final = ("pipeline.kernel_samples", "compiler.kernels.objects", "compiler.simulator.harness")
_MOST_ROWS: Final = 8


def calibration_definitions() -> dg.Definitions:
    """The assets and their job."""
    return dg.Definitions(
        assets=[_family_asset(family) for family in FAMILIES],
        jobs=[
            dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
                JOB,
                selection=[key_of(family) for family in FAMILIES],
                description="Hold the cycle formulas of all kernel families against simulated cycles.",
            )
        ],
    )


def key_of(family: str) -> dg.AssetKey:
    """The key of a family's asset."""
    return dg.AssetKey([GROUP, family])


def _code_version() -> str:
    """Of samples with their formulas, of generators and of the simulator."""
    parts = [fingerprint(module).digest for module in _CODE]
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def _family_asset(family: str) -> dg.AssetsDefinition:
    key = key_of(family)

    @dg.asset(
        key=key,
        group_name=GROUP,
        code_version=_code_version(),
        description=f"How far the cycle formula of {family} is from simulated cycles of its code, over "
        "a grid of calls. When the check fails, plans that use the family are chosen by wrong costs.",
        kinds={"python"},
        check_specs=[
            dg.AssetCheckSpec(
                CHECK,
                asset=key,
                description="The formula is nowhere further from simulated cycles than the limit.",
                blocking=True,
            )
        ],
    )
    def run(context: dg.AssetExecutionContext) -> Iterator[Yielded]:
        from compiler.cache_home import cache_home
        from pipeline.calibration import LIMIT, calibrate
        from pipeline.calibration_plots import page, small_plot

        try:
            calibration = calibrate(family)
        except TilewrightError as error:
            raise StageFailed(error) from None
        context.log.info("%s", calibration.sentence)
        worst = calibration.worst
        path = cache_home() / "calibration" / f"{family}.html"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page([calibration]), encoding="utf-8")
        percent = round(100 * abs(worst.deviation), 3)
        measured = repr(
            [(point.symbol, point.shape, point.estimated, point.simulated) for point in calibration.points]
        )
        yield dg.MaterializeResult(
            data_version=dg.DataVersion(hashlib.sha256(measured.encode()).hexdigest()),
            metadata={
                "result": dg.MetadataValue.text(calibration.sentence),
                "worst deviation (%)": dg.MetadataValue.float(percent),
                "calls": dg.MetadataValue.int(len(calibration.points)),
                "deviations between the limits": dg.MetadataValue.md(small_plot(calibration)),
                "furthest off": dg.MetadataValue.md(_table(calibration)),
                "page": dg.PathMetadataValue(str(path)),
            },
            check_results=[
                dg.AssetCheckResult(
                    check_name=CHECK,
                    asset_key=key,
                    passed=calibration.is_within_limit,
                    description=calibration.sentence,
                    metadata={"worst deviation (%)": percent, "limit (%)": 100 * LIMIT},
                )
            ],
        )

    return run


def _table(calibration: "Calibration") -> str:
    """The calls whose formula is furthest off."""
    furthest = sorted(calibration.points, key=lambda point: -abs(point.deviation))[:_MOST_ROWS]
    rows = [
        f"| {','.join(map(str, point.shape))} | {point.options} | {point.estimated:,} "
        f"| {point.simulated:,} | {100 * point.deviation:+.2f} % |"
        for point in furthest
    ]
    head = f"| {','.join(calibration.extents)} | options | estimated | simulated | off |"
    return "\n".join([head, "|---|---|--:|--:|--:|", *rows])
