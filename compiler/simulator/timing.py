"""Cycles that ``compiler.target.costs`` does not hold yet."""

from typing import Annotated

from compiler.target.standing import ESTIMATED

DIVIDE_TURNS: Annotated[int, ESTIMATED] = 3
"""Slot turns of ``f32div``: the slow end of the one to three that vendor kernels allow for. Figure,
inferred."""

WEIGHT_LOAD: Annotated[int, ESTIMATED] = 1
"""Cycles of the supervisor for ``ld64putcs`` and ``ld128putcs``. Figure, inferred from fitted products."""
