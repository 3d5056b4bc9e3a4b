"""What a number of this folder is worth: fact, figure or policy, and how sure it is.

Every public constant of ``compiler.target`` is annotated with one of the markers below, and every enumeration
or class of constants is decorated with ``stands``:

    SRAM_BASE: Annotated[Address, VERIFIED] = Address(0x4C000)

    @stands(EARLIER)
    class SyncZone(IntEnum): ...

so that a reader sees the standing where the number is, and a test can list what says nothing. The kinds
answer "who may change this?": nobody (a fact of chip, card or loader), a new measurement (a figure), or we
(a policy).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, TypeVar

STANDING_ATTRIBUTE: Final = "__standing__"
"""Where ``stands`` leaves the marker of a class."""

_Class = TypeVar("_Class", bound=type[Any])


class Kind(Enum):
    """Who may change a number."""

    FACT = "fact"
    """Nobody here: the chip, the card or the existing loader is like that."""
    FIGURE = "figure"
    """A new measurement: cycles and costs calibrated against something that ran or was published."""
    POLICY = "policy"
    """We: a choice of the runtime's layout or of a budget, under which everything else stays correct."""


class Evidence(Enum):
    """How sure a fact or figure is, surest first."""

    HARDWARE = "ran on hardware"
    """Programs that depend on it ran correctly on a C600, or it was measured there."""
    VENDOR = "vendor tools"
    """Vendor assembler, disassembler, tables, constants or generated programs."""
    EARLIER = "earlier generation"
    """Stated for the previous generation (IPU1) and assumed unchanged."""
    INFERRED = "inferred"
    """Derived from how programs of the above use it."""
    ASSUMED = "assumed"
    """No public source states it: one answer that assembler, simulator and kernels share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Kind of a number and, unless it is a policy, the evidence for it."""

    kind: Kind
    evidence: Evidence | None

    def __post_init__(self) -> None:
        """A policy has no evidence; everything else does."""
        if (self.kind is Kind.POLICY) != (self.evidence is None):
            raise ValueError("facts and figures have evidence, policies have none")

    def __str__(self) -> str:
        """One phrase: ``fact (vendor tools)``."""
        return self.kind.value if self.evidence is None else f"{self.kind.value} ({self.evidence.value})"


VERIFIED: Final = Standing(kind=Kind.FACT, evidence=Evidence.HARDWARE)
VENDOR: Final = Standing(kind=Kind.FACT, evidence=Evidence.VENDOR)
EARLIER: Final = Standing(kind=Kind.FACT, evidence=Evidence.EARLIER)
INFERRED: Final = Standing(kind=Kind.FACT, evidence=Evidence.INFERRED)
MEASURED: Final = Standing(kind=Kind.FIGURE, evidence=Evidence.HARDWARE)
PUBLISHED: Final = Standing(kind=Kind.FIGURE, evidence=Evidence.VENDOR)
ASSUMED_FIGURE: Final = Standing(kind=Kind.FIGURE, evidence=Evidence.ASSUMED)
ESTIMATED: Final = Standing(kind=Kind.FIGURE, evidence=Evidence.INFERRED)
POLICY: Final = Standing(kind=Kind.POLICY, evidence=None)


def stands(standing: Standing) -> Callable[[_Class], _Class]:
    """Give a class of constants (an enumeration, a configuration) its standing."""

    def mark(cls: _Class) -> _Class:
        setattr(cls, STANDING_ATTRIBUTE, standing)
        return cls

    return mark
