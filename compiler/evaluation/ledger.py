"""What a search did: every candidate that was looked at, in order, and what became of it (CD-01)."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, final

from compiler.store.codec import JsonCodec

ATTEMPTS: Final = "evaluated beside the baseline"
"""Name of the figure that counts candidates against the budget of the search."""


class Fate(Enum):
    """What became of a candidate."""

    BASELINE = "baseline"
    """It is what the search began with."""
    ACCEPTED = "accepted"
    """It took the incumbent's place."""
    SLOWER = "no better than the incumbent by its estimate"
    REPEATED = "the same program as an earlier candidate"
    REFUSED = "cannot be built"
    NOT_TRIED = "beyond the budget of attempts"
    FAILED = "failed a stage"
    NO_BETTER = "no better than the incumbent when scheduled"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One candidate.

    Args:
        round: of proposals; 0 for the baseline.
        change: what it does otherwise than the incumbent of its round, in words.
        fate: what became of it.
        reason: more words; empty where the fate says all.
        estimated_cycles: of a run; None where it could not be built.
        scheduled_cycles: of a run, from final schedules; None where it did not come so far.
    """

    round: int
    change: str
    fate: Fate
    reason: str = ""
    estimated_cycles: int | None = None
    scheduled_cycles: int | None = None


Ledger = tuple[Entry, ...]


def plain_ledger(ledger: Ledger) -> object:
    """A ledger as plain values."""
    return tuple(
        (
            entry.round,
            entry.change,
            entry.fate.name,
            entry.reason,
            entry.estimated_cycles,
            entry.scheduled_cycles,
        )
        for entry in ledger
    )


def ledger_of_plain(plain: Any) -> Ledger:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: the values are not those of a ledger.
    """
    try:
        return tuple(
            Entry(
                round=number,
                change=change,
                fate=Fate[fate],
                reason=reason,
                estimated_cycles=estimated,
                scheduled_cycles=scheduled,
            )
            for number, change, fate, reason, estimated, scheduled in plain
        )
    except (KeyError, TypeError) as fault:
        raise ValueError(f"no ledger: {fault}") from fault


LEDGER: Final = JsonCodec(plain=plain_ledger, value=ledger_of_plain)
