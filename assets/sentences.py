"""What came of a stage, in words: the same on the command line and in Dagster."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from compiler.figures import Figures
    from compiler.store.result import StageResult

_LONGEST_REASON = 160


def outcome_of(result: "StageResult[Any]", figures: "Figures") -> str:
    """Whether it was reused or computed, and its first figure."""
    first = f"; {figures[0]}" if figures else ""
    if result.hit:
        return f"reused, {result.saved_seconds:.1f} s (measured) saved{first}"
    return f"{result.status.value} in {result.seconds:.1f} s (measured){first}"


def reuse_of(results: "Mapping[str, StageResult[Any]]", reused: "Collection[str]") -> str:
    """How much of a build was reused.

    A stage that runs later ones, as the search does, contains them: their time is in its own and counts once,
    and what such a stage has just run itself was there before in name only.

    Args:
        results: of all stages, by name, in the order of the chain.
        reused: the stages whose results were there when their turn came.
    """
    count, microseconds = 0, 0
    before: dict[str, set[str]] = {}
    for name, result in results.items():
        outer = [each for each, inner in before.items() if result.key in inner]
        if name in reused and all(each in reused for each in outer):
            count += 1
            microseconds += 0 if outer else result.record.microseconds
        before[name] = {run.key for run in result.record.consumed}
    which = "every stage" if count == len(results) else f"{count} of {len(results)} stages"
    return f"reused: {which}, {microseconds / 1e6:.1f} s (measured) saved"


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
