"""What can be built: models, which are graphs, and programs that are written by hand in the low tables."""

from dataclasses import dataclass
from typing import TypeAlias, final

from compiler.models.programs import Program


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GraphModel:
    """A model.

    Args:
        name: of a listed model, or what a user's is called.
        text: of a user's graph; empty for a listed model.
    """

    name: str
    text: str = ""


Subject: TypeAlias = GraphModel | Program
"""What a build is about."""
