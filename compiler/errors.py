"""The closed hierarchy of errors that a user can meet.

One class for each thing a user can do about it:

============================  ============================================================================
class                         what to do
============================  ============================================================================
``InvalidModel``              correct the model
``InvalidInput``              correct the file or option: assembly text, an override file, a problem file
``Unsupported``               use another operation, shape, precision or target
``DoesNotFit``                make it smaller or split it: a capacity is exceeded, and by how much is stated
``ScheduleInfeasible``        change placement or traffic: no exchange schedule obeys the fabric's rules
``PackageInvalid``            rebuild or obtain the package again
``StoreError``                repair or move the store: permissions, space, damage
``InternalError``             report it: a bug of ours, never of the model
============================  ============================================================================

Every error carries the stage that found it, the subject it is about, the numbers against their limits, the
graph nodes concerned and a next step. ``str(error)`` is the message as a user reads it, and ``tests/errors/``
holds the exact text of each message that exists.

Pure value types of the lower layers (tile numbers, tilings, regions, ...) raise ``ValueError`` when a caller
constructs one that cannot exist: that is a mistake in our code and reaches a user only as ``InternalError``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar, Final, final


class NumberKind(Enum):
    """How a number came about. Numbers of different kinds are never compared."""

    BOUND = "bound"
    """Proven: nothing can be better."""
    ESTIMATED = "estimated"
    """From a formula over a program that is not yet scheduled."""
    SCHEDULED = "scheduled"
    """From final schedules and cycle formulas."""
    SIMULATED = "simulated"
    """From executing the emitted bytes."""
    MEASURED = "measured"
    """From a clock or a counter: wall time, file sizes, linked code."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A number against its limit.

    Args:
        name: what is counted.
        value: the number found.
        unit: unit of both numbers, as printed ("bytes", "cycles", ...).
        kind: how ``value`` came about.
        limit: the largest value that would have been accepted; None when the number only informs.
    """

    name: str
    value: int
    unit: str
    kind: NumberKind
    limit: int | None = None

    def __str__(self) -> str:
        """One line, with the excess when the limit is exceeded."""
        text = f"{self.name}: {self.value:,} {self.unit} ({self.kind.value})"
        if self.limit is None:
            return text
        excess = self.value - self.limit
        return f"{text}, limit {self.limit:,}" + (f", {excess:,} too many" if excess > 0 else "")


MOST_NODES: Final = 100
"""Graph nodes that a message names; ``nodes`` has all of them."""


def few_of(findings: Sequence[object], most: int = 3) -> str:
    """The first of some findings, one behind the other, and how many more there are."""
    shown = "; ".join(str(finding) for finding in findings[:most])
    return shown + (f"; and {len(findings) - most} more" if len(findings) > most else "")


class TilewrightError(Exception):
    """Base of the closed hierarchy; never raised itself.

    Args:
        message: one sentence that says what is wrong, without a final full stop.
        stage: the stage or command that found it.
        subject: the thing it is about: a node, file, tile, symbol.
        next_step: what the user can do now, a sentence in the imperative.
        numbers: the numbers that decided, each with its limit.
        nodes: names of the graph nodes concerned, in graph order.
    """

    title: ClassVar[str]

    def __init__(
        self,
        message: str,
        *,
        stage: str,
        subject: str,
        next_step: str,
        numbers: Sequence[Measure] = (),
        nodes: Sequence[str] = (),
    ) -> None:
        if type(self) not in ALL_ERRORS:
            raise TypeError(f"{type(self).__name__} is not one of the errors of compiler/errors.py")
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.subject = subject
        self.next_step = next_step
        self.numbers = tuple(numbers)
        self.nodes = tuple(nodes)

    def __str__(self) -> str:
        """The message as a user reads it."""
        lines = [f"{self.title} ({self.stage}): {self.subject}: {self.message}."]
        lines += [f"  {number}" for number in self.numbers]
        if self.nodes:
            more = len(self.nodes) - MOST_NODES
            shown = ", ".join(self.nodes[:MOST_NODES])
            lines.append(f"  graph nodes: {shown}" + (f" and {more} more" if more > 0 else ""))
        lines.append(f"  next: {self.next_step}")
        return "\n".join(lines)


@final
class InvalidModel(TilewrightError):
    """The model breaks a rule of the graph: a shape, a type, a missing weight."""

    title = "invalid model"


@final
class InvalidInput(TilewrightError):
    """A file or option other than a model or package is not what it should be."""

    title = "invalid input"


@final
class Unsupported(TilewrightError):
    """Valid, but this version cannot do it."""

    title = "unsupported"


@final
class DoesNotFit(TilewrightError):
    """A capacity is exceeded; ``numbers`` says which and by how much."""

    title = "does not fit"


@final
class ScheduleInfeasible(TilewrightError):
    """No exchange schedule obeys the rules of the fabric for the given addresses."""

    title = "no schedule"


@final
class PackageInvalid(TilewrightError):
    """A package breaks a rule of its format."""

    title = "invalid package"


@final
class StoreError(TilewrightError):
    """The store cannot be read or written."""

    title = "store"


@final
class InternalError(TilewrightError):
    """A bug of ours: an invariant that our own code broke."""

    title = "internal error, please report it"


ALL_ERRORS: frozenset[type[TilewrightError]] = frozenset(
    {
        InvalidModel,
        InvalidInput,
        Unsupported,
        DoesNotFit,
        ScheduleInfeasible,
        PackageInvalid,
        StoreError,
        InternalError,
    }
)
