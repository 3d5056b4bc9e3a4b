"""What callers of the stages of the planner need, and how recipes and choices are kept in the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

from pydantic import ValidationError

from compiler.figures import Figures
from compiler.graph.codec import Labels
from compiler.graph.ir import Graph
from compiler.mid.ir import MidProgram
from compiler.planner.gemm_candidates import GemmCandidate
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.planner.rewriting import Tried
from compiler.store.codec import JsonCodec
from compiler.store.digest import Digest, parse_digest
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateInputs:
    """Of stage ``baseline_candidate``.

    Args:
        structure: the graph without names.
        labels: its names, which messages and provenance are about.
        recipe: choices that are given, as JSON; the others are the planner's.
    """

    structure: Artifact[Graph]
    labels: Artifact[Labels]
    recipe: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """What was considered for a program and not taken (PR-14).

    Args:
        alternatives: by path of a product's node, the shortlist of its fronts, the choice that was made among
            them if it is on a front.
        dropped: by path of a product's node, how many ways of computing it are on no front, by reason.
        rewrites: those that would change the program, in order, and which of them did.
    """

    alternatives: Mapping[str, tuple[GemmCandidate, ...]]
    dropped: Mapping[str, Mapping[str, int]]
    rewrites: tuple[Tried, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What a search asks of a planned program before anything else.

    Args:
        cycles: of a run, estimated.
        bytes: data of a tile at most, estimated.
        interleaved_bytes: those among them that have to be in interleaved memory.
        phases: exchange phases of a run; each takes code and rows on every tile.
        identity: equal for programs that differ in nothing but names and the order of independent work.
    """

    cycles: int
    bytes: int
    interleaved_bytes: int
    phases: int
    identity: Digest


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlannedProgram:
    """A whole-device program that its verifier accepts.

    Args:
        program: the program.
        recipe: all choices that lead to it.
        considered: and what else there was.
        summary: its cycles and its identity.
        figures: what it costs, estimated.
    """

    program: MidProgram
    recipe: Recipe
    considered: Considered
    summary: Summary
    figures: Figures

    @property
    def alternatives(self) -> Mapping[str, tuple[GemmCandidate, ...]]:
        """By path of a product's node, other choices for it."""
        return self.considered.alternatives


def plain_recipe(recipe: Recipe) -> object:
    """A recipe as a plain value: its text."""
    return recipe.to_json()


def recipe_of_plain(plain: Any) -> Recipe:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: it is no text.
        InvalidInput: it is the text of no recipe of this version.
    """
    if not isinstance(plain, str):
        raise ValueError("a recipe is kept as text")
    return recipe_of_json(plain, "stored recipe")


def plain_considered(considered: Considered) -> object:
    """What was considered as plain values."""
    return (
        {
            path: tuple(
                (
                    each.choice.model_dump_json(),
                    each.cycles,
                    each.standard_bytes,
                    each.interleaved_bytes,
                    each.row_words,
                )
                for each in found
            )
            for path, found in considered.alternatives.items()
        },
        considered.dropped,
        tuple((tried.name, tried.before, tried.after, tried.is_kept) for tried in considered.rewrites),
    )


def considered_of_plain(plain: Any) -> Considered:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: the values are not those of what was considered.
    """
    try:
        alternatives, dropped, rewrites = plain
        return Considered(
            alternatives={
                str(path): tuple(
                    GemmCandidate(
                        choice=GemmChoice.model_validate_json(choice),
                        cycles=int(cycles),
                        standard_bytes=int(standard),
                        interleaved_bytes=int(interleaved),
                        row_words=int(words),
                    )
                    for choice, cycles, standard, interleaved, words in found
                )
                for path, found in alternatives.items()
            },
            dropped={
                str(path): {str(reason): int(count) for reason, count in counts.items()}
                for path, counts in dropped.items()
            },
            rewrites=tuple(
                Tried(name=str(name), before=before, after=after, is_kept=bool(is_kept))
                for name, before, after, is_kept in rewrites
            ),
        )
    except (AttributeError, TypeError, ValidationError) as fault:
        raise ValueError(f"nothing that was considered: {fault}") from fault


def plain_summary(summary: Summary) -> object:
    """A summary as plain values."""
    return (
        summary.cycles,
        summary.bytes,
        summary.interleaved_bytes,
        summary.phases,
        str(summary.identity),
    )


def summary_of_plain(plain: Any) -> Summary:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: the values are not those of a summary.
    """
    match plain:
        case (int(cycles), int(total), int(interleaved), int(phases), str(identity)):
            return Summary(
                cycles=cycles,
                bytes=total,
                interleaved_bytes=interleaved,
                phases=phases,
                identity=parse_digest(identity),
            )
        case _:
            raise ValueError("a summary has cycles, bytes of two kinds, phases and an identity")


RECIPE: Final = JsonCodec(plain=plain_recipe, value=recipe_of_plain)
"""A recipe, as its text."""
CONSIDERED: Final = JsonCodec(plain=plain_considered, value=considered_of_plain)
"""Alternatives, what was dropped, and rewrites."""
SUMMARY: Final = JsonCodec(plain=plain_summary, value=summary_of_plain)
"""Cycles and identity of a program."""
