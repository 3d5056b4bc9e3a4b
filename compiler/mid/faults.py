"""What can be wrong with a whole-device program: the clauses by name, and a breach of one."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from compiler.errors import InternalError

_SHOWN: Final = 20
"""Faults that a message lists: more than a screen helps nobody."""


class Clause(Enum):
    """The clauses of a well-formed program; ``compiler.mid.verify`` explains them under these numbers."""

    REFERENCE = 1
    SINGLE_ASSIGNMENT = 2
    NAME = 3
    VALUE = 4
    OWNERS = 5
    PROGRAM = 6
    COPY_PARTS = 7
    COPY_MAPPING = 8
    COPY_PRECISION = 9
    ARITY = 10
    PRECISION = 11
    RELATION = 12
    PARTIALS = 13
    REPLICAS = 14
    SHARDS = 15
    LOCALITY = 16
    ALIAS = 17
    REPEAT_BINDINGS = 18
    REPEAT_TYPES = 19
    SEQUENCE = 20

    def __str__(self) -> str:
        """``clause 16, locality``."""
        return f"clause {self.value}, {self.name.lower().replace('_', ' ')}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One breach.

    Args:
        clause: what was broken.
        subject: name of the value or program, behind the names of the repeats that it is in.
        operation: the operation that breaks it: its number in its block and its kind; empty for a value or
            program that is wrong by itself.
        node: the graph node that it works for; empty where there is none.
        reason: how, a clause without a full stop.
    """

    clause: Clause
    subject: str
    operation: str = ""
    node: str = ""
    reason: str

    def __str__(self) -> str:
        """``up.sum: operation 4, sum, of up: clause 16, locality: reason``."""
        of = f" of {self.node}" if self.node else ""
        operation = f"{self.operation}{of}: " if self.operation else ""
        return f"{self.subject}: {operation}{self.clause}: {self.reason}"


def malformed(program: str, faults: Sequence[Fault]) -> InternalError:
    """The error for at least one fault of a program that we made."""
    lines = [str(fault) for fault in faults[:_SHOWN]]
    if len(faults) > _SHOWN:
        lines.append(f"and {len(faults) - _SHOWN} more")
    message = lines[0] if len(faults) == 1 else "\n    ".join([f"{len(faults)} faults", *lines])
    return InternalError(
        message,
        stage="mid",
        subject=program,
        nodes=tuple(dict.fromkeys(fault.node for fault in faults[:_SHOWN] if fault.node)),
        next_step="report this message with the model and the recipe",
    )
