"""What can be built: models, which are graphs, and programs that are written by hand in the low tables."""

from dataclasses import dataclass
from typing import TypeAlias, final

from compiler.geometry.precision import Precision
from compiler.models.programs import Program


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphModel:
    """A model.

    Args:
        name: of a listed model, or what a user's is called.
        text: of a user's graph; empty for a listed model.
        batch, precision: of a listed model, what it is varied by; None for its own. A model that is cut for
            some number of tiles is cut for those of the build.
    """

    name: str
    text: str = ""
    batch: int | None = None
    precision: Precision | None = None


Subject: TypeAlias = GraphModel | Program
"""What a build is about."""
