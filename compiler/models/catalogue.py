"""The models that can be built by name.

Only facts: a model is made when its first stage runs, so that listing models costs nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
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


MODELS: Final[Mapping[str, Model]] = {
    model.name: model
    for model in (
        Model(
            name="four-tiles",
            summary="copy, GEMM, exchange, sum, Repeat, multicast and gather on four tiles, written by hand",
            rows=6,
            panels=2,
        ),
    )
}
"""By name."""
