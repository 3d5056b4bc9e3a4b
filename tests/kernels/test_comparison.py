"""The table of ``docs/kernels.md``: simulated cycles beside those measured for earlier kernels on hardware.

``python -m tests.kernels.test_comparison`` writes the table anew.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import final

import pytest

from pipeline.kernel_runs import Figures, run_call
from pipeline.kernel_samples import SAMPLES, bind_sample

DOCUMENT = Path(__file__).parents[2] / "docs" / "kernels.md"
BEGIN, END = "<!-- begin comparison -->\n", "<!-- end comparison -->\n"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A call that was measured for the kernels of an earlier compiler.

    Args:
        title: what the call does.
        family: of ours.
        shape: as its sample names it.
        options: of its sample.
        measured: cycles on hardware of the earlier kernel.
        rule: the rule of the hardware that keeps ours above it, where it is.
    """

    title: str
    family: str
    shape: tuple[int, ...]
    options: Mapping[str, str] = field(default_factory=dict[str, str])
    measured: int
    rule: str | None = None


F8 = {"precision": "f8"}
BLOCKS = {"result": "blocks"}
NARROW_BLOCKS = {"result": "blocks", "weights": "narrow"}
SEPARATE = {"memory": "separate"}
GELU = {"operation": "gelu"}
BIAS_GELU = {"operation": "bias_gelu"}

POINTS = (
    *(
        Point(title="product, F16", family="gemm", shape=shape, measured=measured)
        for shape, measured in (
            ((184, 288, 48), 48_654),
            ((182, 288, 48), 48_180),
            ((184, 288, 32), 32_538),
            ((146, 576, 32), 53_718),
            ((120, 80, 272), 55_344),
        )
    ),
    *(
        Point(title="product, F8", family="gemm", shape=shape, options=F8, measured=measured)
        for shape, measured in (
            ((244, 128, 64), 18_576),
            ((82, 192, 160), 29_508),
            ((122, 160, 128), 26_232),
            ((81, 160, 80), 12_402),
            ((146, 96, 48), 7_122),
            ((56, 128, 80), 8_076),
            ((57, 128, 80), 8_124),
        )
    ),
    *(
        Point(title=title, family="gemm", shape=shape, options=options, measured=measured)
        for title, shape, options, measured in (
            ("product in blocks, narrow weights", (48, 240, 64), NARROW_BLOCKS, 35_022),
            ("product in blocks", (48, 240, 64), BLOCKS, 33_102),
            ("product in blocks", (96, 64, 64), BLOCKS, 12_108),
            ("product in blocks", (128, 64, 64), BLOCKS, 19_872),
        )
    ),
    *(
        Point(title="sum of partials", family="reduce", shape=shape, measured=measured)
        for shape, measured in (
            ((8, 2), 360),
            ((56, 2), 438),
            ((1472, 2), 2_700),
            ((1472, 4), 3_444),
            ((2208, 4), 4_974),
            ((2208, 28), 18_222),
            ((576, 15), 3_090),
            ((2624, 6), 7_218),
        )
    ),
    *(
        Point(title="add", family="pointwise", shape=shape, measured=measured)
        for shape, measured in (((1, 1152), 1_368), ((1, 2152), 2_124))
    ),
    Point(
        title="cast of F16 to F8, operands apart",
        family="cast",
        shape=(1, 8320),
        options=SEPARATE,
        measured=2_706,
    ),
    *(
        Point(title="GELU", family="pointwise", shape=shape, options=GELU, measured=measured)
        for shape, measured in (
            ((1, 2), 462),
            ((1, 6), 702),
            ((1, 14), 1_182),
            ((1, 16), 792),
            ((1, 18), 810),
            ((1, 30), 1_182),
            ((1, 94), 1_182),
            ((1, 96), 792),
            ((1, 98), 942),
            ((1, 1408), 7_260),
            ((1, 2208), 10_956),
        )
    ),
    *(
        Point(title="GELU with bias", family="pointwise", shape=shape, options=BIAS_GELU, measured=measured)
        for shape, measured in (
            ((1, 16), 540),
            ((1, 94), 1_458),
            ((1, 98), 1_170),
            ((1, 1408), 5_760),
            ((1, 2152), 8_550),
            ((1, 2208), 8_730),
            ((3, 94), 3_942),
            ((3, 2152), 25_206),
            ((3, 2208), 25_746),
        )
    ),
)


@functools.cache
def figures_of(index: int) -> Figures:
    """What a point takes."""
    point = POINTS[index]
    return run_call(bind_sample(point.family, point.shape, point.options))


def table() -> str:
    """The table as Markdown."""
    lines = [
        "| call | shape | simulated | estimated | earlier, measured on hardware | simulated / earlier |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for index, point in enumerate(POINTS):
        figures = figures_of(index)
        names = ", ".join(
            f"{name} {extent:,}"
            for name, extent in zip(SAMPLES[point.family].extents, point.shape, strict=True)
        )
        rule = "" if point.rule is None else f" ({point.rule})"
        lines.append(
            f"| {point.title} | {names} | {figures.simulated:,} | {figures.estimated:,} | {point.measured:,} "
            f"| {figures.simulated / point.measured:.3f}{rule} |"
        )
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("index", range(len(POINTS)))
def test_ours_take_no_longer_unless_a_rule_of_the_hardware_says_so(index: int) -> None:
    point, figures = POINTS[index], figures_of(index)
    assert figures.fault is None
    assert figures.is_equal
    assert figures.deviation == pytest.approx(0, abs=0.02)
    assert figures.simulated <= point.measured or point.rule is not None


def test_the_document_shows_these_figures() -> None:
    text = DOCUMENT.read_text()
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)]
    assert shown == table(), "run python -m tests.kernels.test_comparison to write the table anew"


if __name__ == "__main__":
    document = DOCUMENT.read_text()
    head, rest = document.split(BEGIN)
    DOCUMENT.write_text(head + BEGIN + table() + END + rest.split(END)[1])
