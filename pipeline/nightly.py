"""What is built every night: each representative model that can be, computed again and compared.

A night finds what a day does not: bytes that differ from those that the same key gave before. So stages are
not taken from the store but run, and their results compared with what it holds.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from compiler.models.registry import MODELS, model_named

CRON: Final = "0 2 * * *"
CACHE: Final = "verify"
"""How the store is used."""
DAY_TAG: Final = "tilewright/nightly"
"""Tag of the runs; its value is the day."""


REPRESENTATIVE: Final = tuple(model.name for model in MODELS if model.representative)
"""Names of the models."""


def buildable(names: Iterable[str]) -> Iterator[str]:
    """Those of some listed models that this version can build. Makes their graphs.

    Raises:
        InvalidInput: one is not listed.
    """
    from compiler.planner.supported import obstacle

    for name in names:
        if obstacle(model_named(name).build()) is None:
            yield name
