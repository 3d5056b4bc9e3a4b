"""What callers of stage ``model_graph`` need."""

from dataclasses import dataclass
from typing import final

from compiler.geometry.precision import Precision


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGraphInputs:
    """Of stage ``model_graph``.

    Args:
        name: of a listed model, or what the text is called in messages.
        text: of a user's graph; empty for a listed model.
        tiles, batch, precision: of a listed model, what it is varied by.
    """

    name: str
    text: str = ""
    tiles: int | None = None
    batch: int | None = None
    precision: Precision | None = None
