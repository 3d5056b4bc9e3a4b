"""The programs that can be built by name without a graph: written by hand, in the low tables.

They exercise every stage behind the planner. Models, which are graphs, are in ``registry``. Here are only
facts: a program is made when its first stage runs, so that listing programs costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A hand-written program of four tiles in some size.

    Args:
        name: what users call it: lower-case words joined by dashes.
        summary: what it is good for, a sentence without a final full stop.
        rows: of its input and output.
        panels: of 16 columns, in each half of their width.
    """

    name: str
    summary: str
    rows: int
    panels: int


PROGRAMS: Final[Mapping[str, Program]] = {
    program.name: program
    for program in (
        Program(
            name="four-tiles",
            summary="copy, GEMM, exchange, sum, Repeat, multicast and gather on four tiles, written by hand",
            rows=6,
            panels=2,
        ),
    )
}
"""By name."""
