"""What planning keeps from one candidate to the next: fronts of products, each for one question alone."""

import dataclasses
from collections.abc import Mapping

from compiler.geometry.precision import F8, F16
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Rounding
from compiler.planner.artifacts import PlannedProgram
from compiler.planner.gemm_candidates import GemmCandidate, GemmCandidates, candidates
from compiler.planner.gemm_problem import Arrival, GemmProblem
from compiler.planner.recipe import Options, Recipe
from compiler.planner.selection import SHORTLIST, Selection
from tests.planner.products import problem_of
from tests.reachable import modules_of, reachable

CODES = F8(scale_exponent=-2)
Arrivals = Mapping[Side, Arrival]
Question = tuple[GemmProblem, bool, Arrivals]

BASE = problem_of(24, 160, 48, tile_count=16, precision=CODES, left_precision=F16(), right_precision=CODES)
PIECES: Arrivals = {Side.LEFT: Arrival(outer=3, inner=48, is_in_panels=False)}

QUESTIONS: Mapping[str, Question] = {
    "base": (BASE, True, PIECES),
    "casts after copies": (BASE, False, PIECES),
    "another extent": (
        problem_of(40, 160, 48, tile_count=16, precision=CODES, left_precision=F16(), right_precision=CODES),
        True,
        PIECES,
    ),
    "other tiles": (dataclasses.replace(BASE, tile_count=11), True, PIECES),
    "other precision": (dataclasses.replace(BASE, left_precision=CODES), True, PIECES),
    "no parameter": (dataclasses.replace(BASE, parameter=None), True, PIECES),
    "other rounding": (dataclasses.replace(BASE, rounding=Rounding.STOCHASTIC), True, PIECES),
    "no arrival": (BASE, True, {}),
    "larger pieces": (BASE, True, {Side.LEFT: Arrival(outer=24, inner=48, is_in_panels=False)}),
    "panels": (BASE, True, {Side.LEFT: Arrival(outer=3, inner=48, is_in_panels=True)}),
    "other side": (BASE, True, {Side.RIGHT: Arrival(outer=3, inner=48, is_in_panels=False)}),
}
"""Questions that differ from the first in one boundary fact each."""


def asked(question: Question) -> tuple[GemmCandidate, ...]:
    """What a build would be told, which may have been kept."""
    problem, casts_first, arrivals = question
    recipe = Recipe(options=Options(cast_before_copies=casts_first))
    selection = Selection(recipe=recipe, prefers_small=False)
    selection.of("y", problem, arrivals)
    return selection.alternatives["y"]


def worked_out(question: Question) -> tuple[GemmCandidate, ...]:
    """The same, by an enumeration of its own."""
    problem, casts_first, arrivals = question
    found = candidates(problem, cast_before_copies=casts_first, arrivals=arrivals)
    return tuple(candidate for front in found.fronts for candidate in front.shortlist(SHORTLIST))


def test_what_is_kept_answers_the_same_question_only() -> None:
    """ML-29: problem, order of casts and arrivals are the whole key; each fact of them counts."""
    answers = {name: asked(question) for name, question in QUESTIONS.items()}
    for name, question in QUESTIONS.items():
        assert answers[name] == worked_out(question), name
        assert asked(question) == answers[name], name
    # Facts that change prices are among them, so that a key without them would be found out.
    different = {name for name, answer in answers.items() if answer != answers["base"]}
    assert different >= {"casts after copies", "another extent", "other tiles", "no arrival", "larger pieces"}


def test_what_is_kept_of_planning_holds_no_buffers() -> None:
    """ML-39: fronts are numbers, programs distributed values; neither reaches a record of tile programs."""
    for kept in (GemmCandidates, PlannedProgram):
        modules = modules_of(reachable(kept))
        assert any(module.startswith(("compiler.planner", "compiler.mid")) for module in modules)
        for outside in ("compiler.low", "compiler.placement", "compiler.exchange", "compiler.package"):
            assert not any(module.startswith(outside) for module in modules), (kept, outside)
