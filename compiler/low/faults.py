"""What can be wrong with a low program: the rules by name, and a breach of one at a row of a table."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import final

import numpy as np
import numpy.typing as npt


class Rule(Enum):
    """The rules of a well-formed program; ``compiler.low.verify`` explains them."""

    REFERENCE = "reference"
    STEP_NUMBER = "step number"
    REPEAT = "repeat"
    BUFFER = "buffer"
    SHARING = "sharing"
    SEQUENCE = "sequence"
    SEPARATION = "separation"
    HOST_VALUE = "host value"
    STEP_KIND = "step kind"
    TILE = "tile"
    ITERATION = "iteration"
    BINDING = "binding"
    FORM = "form"
    RANGE = "range"
    ALIGNMENT = "alignment"
    MEMORY_CLASS = "memory class"
    OVERLAP = "overlap"
    COPY = "copy"
    WORDS = "words"
    RECIPIENTS = "recipients"
    RESIDENT = "resident"
    DELIVERY = "delivery"
    UNDEFINED = "undefined"
    PRECISION = "precision"
    PADDING = "padding"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One breach.

    Args:
        table: the table, by its name in ``LowProgram``.
        row: row of it; of ``steps`` the step.
        rule: what was broken.
        message: how.
    """

    table: str
    row: int
    rule: Rule
    message: str

    def __str__(self) -> str:
        """One line."""
        return f"{self.table} {self.row}: {self.rule.value}: {self.message}"


def faults_at(
    table: str, rule: Rule, wrong: npt.NDArray[np.bool_], message: Callable[[int], str]
) -> Iterator[Fault]:
    """A fault for each row in ``wrong`` [rows], told by ``message``."""
    for row in np.flatnonzero(wrong).tolist():
        yield Fault(table=table, row=row, rule=rule, message=message(row))
