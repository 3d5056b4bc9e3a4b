"""What can be wrong with a graph, collected and told at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import InvalidModel
from compiler.graph.ir import Provenance

_SHOWN: Final = 20
"""Faults that a message lists: more than a screen helps nobody."""
_LONGEST: Final = 500
"""Characters of a reason."""
_LONGEST_SUBJECT: Final = 120
"""Characters of a subject; of a longer one the end is shown."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One breach of a rule.

    Args:
        subject: name of the node or value, behind the names of the repeats that it is in (``encoder/up``).
        provenance: where that was written, if anybody knows.
        reason: what is wrong, a clause without a full stop.
        is_node: the subject is a node or value, and not the graph or a line of text.
    """

    subject: str
    provenance: Provenance | None
    reason: str
    is_node: bool = True

    def __str__(self) -> str:
        """``mlp.py:12: up: reason``."""
        place = "" if self.provenance is None else f"{printable(str(self.provenance))}: "
        return f"{place}{self.shown_subject}: {printable(self.reason)}"

    @property
    def shown_subject(self) -> str:
        """The subject as messages show it."""
        end = printable(self.subject[-_LONGEST_SUBJECT:])
        return end if len(self.subject) <= _LONGEST_SUBJECT else f"...{end}"


def refusal(graph_name: str, faults: Sequence[Fault]) -> InvalidModel:
    """The error for at least one fault: all of them, in the order of lines where these are known."""
    ordered = sorted(
        dict.fromkeys(faults), key=lambda fault: fault.provenance.line if fault.provenance else 0
    )
    lines = [str(fault) for fault in ordered[:_SHOWN]]
    if len(ordered) > _SHOWN:
        lines.append(f"and {len(ordered) - _SHOWN} more")
    message = lines[0] if len(ordered) == 1 else "\n    ".join([f"{len(ordered)} faults", *lines])
    return InvalidModel(
        message,
        stage="graph",
        subject=printable(graph_name),
        nodes=tuple(dict.fromkeys(fault.shown_subject for fault in ordered[:_SHOWN] if fault.is_node)),
        next_step="correct the model where it says so",
    )


def printable(text: str) -> str:
    """A line that can be shown anywhere: what cannot be printed as escapes, and what is too long cut.

    Names, files and messages come from models, and may hold line ends or the control codes of terminals.
    """
    shown = "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode("ascii")
        for letter in text[: _LONGEST + 1]
    )
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
