"""``tilewright calibrate``: cycle formulas of kernel families against simulated cycles, without Dagster.

The job ``calibrate_kernels`` does the same as assets. The exit status is 1 when a formula is further off than
the limit.
"""

import argparse
import sys
from pathlib import Path


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Make the parser that of the command; ``run`` is set to a function from arguments to an exit status."""
    parser.add_argument("families", nargs="*", metavar="FAMILY", help="families (default: all)")
    parser.add_argument("--page", type=Path, metavar="PATH", help="write a page with plots there")
    parser.set_defaults(run=_calibrate)


def _calibrate(arguments: argparse.Namespace) -> int:
    from pipeline.calibration import calibrate
    from pipeline.kernel_samples import SAMPLES, sample_of

    families: list[str] = arguments.families or list(SAMPLES)
    for family in families:
        sample_of(family)  # names are checked before any work
    calibrations = [calibrate(family) for family in families]
    for calibration in calibrations:
        print(calibration.sentence)
    path: Path | None = arguments.page
    if path is not None:
        from pipeline.calibration_plots import page

        path.write_text(page(calibrations), encoding="utf-8")
        print(f"plots: {path}")
    wrong = [calibration.family for calibration in calibrations if not calibration.is_within_limit]
    if wrong:
        print(f"beyond the limit: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0
