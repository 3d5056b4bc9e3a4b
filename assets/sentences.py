"""What came of a stage, in words: the same on the command line and in Dagster."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compiler.figures import Figures
    from compiler.store.result import StageResult

_LONGEST_REASON = 160


def outcome_of(result: "StageResult[Any]", figures: "Figures") -> str:
    """Whether it was reused or computed, and its first figure."""
    first = f"; {figures[0]}" if figures else ""
    if result.hit:
        return f"reused, {result.saved_seconds:.1f} s (measured) saved{first}"
    return f"{result.status.value} in {result.seconds:.1f} s (measured){first}"


def reuse_of(count: int, reused: int, saved_seconds: float) -> str:
    """How much of a build was reused.

    Args:
        count: stages of the build.
        reused: those of them that were.
        saved_seconds: that they took when they were computed.
    """
    which = "every stage" if reused == count else f"{reused} of {count} stages"
    return f"reused: {which}, {saved_seconds:.1f} s (measured) saved"


def reasons_of(result: "StageResult[Any]", most: int) -> list[str]:
    """Why it was computed, a line for each changed part of its key; nothing for what was reused.

    Args:
        result: of a stage.
        most: lines that are wanted; what is beyond is counted in one more.
    """
    if result.hit:
        return []
    lines = [
        line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]}..."
        for line in result.explanation
    ]
    more = len(lines) - most
    return [*lines[:most], *([f"and {more} more"] if more > 0 else [])]
