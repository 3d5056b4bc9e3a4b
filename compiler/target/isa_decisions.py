"""Answers of ours where no public source states the fact.

Assembler, simulator and kernels must agree on one answer. Each row of ``isa_decisions.csv`` is such a
**decision**, not a hardware fact: rows with a value give a number a name (flags of the matrix units,
positions of format fields, rounding codes), rows without one state a behaviour. Rows marked ``override`` can
be replaced by whoever knows the vendor's headers:

    # one per line
    TAMP_F16V4_E4_P0 = 0x10

:func:`read_overrides` applies such a file. Its digest differs from that of our own answers, so everything
built with it is built, cached and labelled separately.
"""

import csv
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Protocol, final

from compiler.errors import InvalidInput

STAGE: Final = "isa overrides"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One answer.

    Args:
        name: identifier of a number, or a dashed name of a behaviour.
        value: the number; None for a behaviour.
        highest: the largest number that its field can hold or, for the position of a field, that leaves room
            for the field in its register; None for a behaviour.
        may_override: whether a user's file can replace the number.
        group: names of one group have different values; "" for a behaviour.
        statement: what it decides.
        reason: why this answer, and what is at risk.
        overridden: the number comes from a user's file.
    """

    name: str
    value: int | None
    highest: int | None
    may_override: bool
    group: str
    statement: str
    reason: str
    overridden: bool = False

    def __post_init__(self) -> None:
        """Check that a number fits its field."""
        if (self.value is None) != (self.highest is None):
            raise ValueError(f"decision {self.name}: numbers, and only they, have a largest value")
        if self.value is not None and self.highest is not None and not 0 <= self.value <= self.highest:
            raise ValueError(f"decision {self.name}: {self.value} is not in 0..{self.highest}")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Decisions:
    """All answers, in the order of the file."""

    rows: tuple[Decision, ...]

    def __post_init__(self) -> None:
        """Check that names are unique and that no two of a group mean the same."""
        seen: dict[tuple[str, int], str] = {}
        if len({row.name for row in self.rows}) != len(self.rows):
            raise ValueError("a decision is listed twice")
        for row in self.rows:
            if (
                row.value is not None
                and (other := seen.setdefault((row.group, row.value), row.name)) != row.name
            ):
                raise ValueError(f"{other} and {row.name} have the same value {row.value}")

    @property
    def constants(self) -> Mapping[str, int]:
        """Names that assembly text and kernels can use, with their values."""
        return {row.name: row.value for row in self.rows if row.value is not None}

    @property
    def overridden(self) -> Mapping[str, int]:
        """The part of :attr:`constants` that a user's file replaced: provenance of what is built with it."""
        return {row.name: row.value for row in self.rows if row.value is not None and row.overridden}

    @property
    def digest(self) -> str:
        """SHA-256 of names, values and statements in hexadecimal."""
        facts = hashlib.sha256(b"isa decisions 1\n")
        for row in self.rows:
            facts.update(f"{row.name}\t{row.value}\t{row.highest}\t{row.statement}\n".encode())
        return facts.hexdigest()


@functools.cache
def our_decisions() -> Decisions:
    """The answers of this package, without overrides."""
    source = importlib.resources.files("compiler.target").joinpath("isa_decisions.csv")
    return Decisions(
        rows=tuple(
            Decision(
                name=row["name"],
                value=int(row["value"]) if row["value"] else None,
                highest=int(row["highest"]) if row["highest"] else None,
                may_override=row["override"] == "yes",
                group=row["group"],
                statement=row["decision"],
                reason=row["reason"],
            )
            for row in csv.DictReader(source.read_text(encoding="utf-8").splitlines())
        )
    )


class IsaChoices(Protocol):
    """What is read of the options of the instruction set."""

    @property
    def overrides(self) -> str:
        """Numbers that replace ours, as ``overrides_text`` writes them."""
        ...


class HasIsaChoices(Protocol):
    """What is read of the options of a build."""

    @property
    def isa(self) -> IsaChoices:
        """How open questions of the instruction set are answered."""
        ...


def decisions_of(choices: IsaChoices) -> Decisions:
    """The answers of a build.

    Raises:
        InvalidInput: an override is none.
    """
    return read_overrides(choices.overrides, "isa.overrides") if choices.overrides else our_decisions()


def overrides_text(decisions: Decisions) -> str:
    """The overrides in decisions: one text for equal ones, and none for our own."""
    return "".join(f"{name} = {value:#x}\n" for name, value in sorted(decisions.overridden.items()))


_ASSIGNMENT: Final = re.compile(
    r"\s*(\w+)\s*=\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0|[1-9][0-9]*)\s*(?:\#.*)?", re.ASCII
)
_LONGEST_NUMBER: Final = 40


def read_overrides(text: str, source: str) -> Decisions:
    """Our decisions with the numbers of a user's file.

    Args:
        text: lines ``NAME = VALUE``; empty lines and comments from ``#`` are skipped.
        source: name of the file, for messages.

    Raises:
        InvalidInput: a line is malformed, names nothing that can be overridden, repeats a name, does not fit
            its field, or makes two names of a group equal.
    """
    rows = {row.name: row for row in our_decisions().rows}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if not line.split("#")[0].strip():
            continue
        place = f"{source}:{number}"
        match = _ASSIGNMENT.fullmatch(line)
        if match is None or len(match[2]) > _LONGEST_NUMBER:
            raise _refused(place, "this is not NAME = VALUE", "write one name and one number on the line")
        row = rows.get(match[1])
        if row is None or not row.may_override:
            raise _refused(
                place,
                f"{match[1]} is not a value that can be overridden",
                "see `tilewright isa decisions` for the names that can be",
            )
        if row.overridden:
            raise _refused(place, f"{row.name} is given twice", "keep one of the two lines")
        value = int(match[2], 0)
        if row.highest is None or value > row.highest:
            raise _refused(
                place,
                f"{row.name} is at most {row.highest} and cannot be {value}",
                "take the value of the header",
            )
        rows[row.name] = replace(row, value=value, overridden=True)
    try:
        return Decisions(rows=tuple(rows.values()))
    except ValueError as conflict:
        raise _refused(source, str(conflict), "override every name of the group") from None


def _refused(subject: str, message: str, next_step: str) -> InvalidInput:
    return InvalidInput(message, stage=STAGE, subject=subject, next_step=next_step)
