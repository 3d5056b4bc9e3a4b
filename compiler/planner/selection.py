"""The choices of a program while it is built: the recipe's, and where it is silent the planner's own.

Products are computed in the best way of their fronts, values wait as they are made.
"""

from collections.abc import Mapping
from typing import Final, final

from compiler.errors import Unsupported
from compiler.geometry.relation import Side
from compiler.kernels.gemm.binding import Orientation
from compiler.planner import gemm_layout
from compiler.planner.bounds import STAGE
from compiler.planner.fronts import FrontInputs, Fronts, fronts_of
from compiler.planner.gemm_candidates import GemmCandidate
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.gemm_problem import Arrival, GemmProblem
from compiler.planner.recipe import Boundary, Options, Recipe

SHORTLIST: Final = 16
"""Candidates of each class of a product that are looked at."""


@final
class Selection:
    """The choices of a program, and what else there was.

    Args:
        recipe: choices that are made.
        prefers_small: whether products are chosen by bytes rather than by cycles.
        fronts: gives the fronts of a product.

    Attributes:
        options: of the whole program.
        chosen: by path, of each product that was asked for.
        boundaries: by path, of each value that was asked for.
        alternatives: by path of a product, the shortlist of its fronts.
        dropped: by path of a product, how many ways were dropped, by reason.
    """

    def __init__(self, *, recipe: Recipe, prefers_small: bool, fronts: Fronts = fronts_of) -> None:
        self.options: Options = recipe.options
        self.chosen: dict[str, GemmChoice] = {}
        self.boundaries: dict[str, Boundary] = {}
        self.alternatives: dict[str, tuple[GemmCandidate, ...]] = {}
        self.dropped: dict[str, Mapping[str, int]] = {}
        self._recipe = recipe
        self._prefers_small = prefers_small
        self._fronts = fronts
        self._is_settled = False

    def settled(self, recipe: Recipe) -> "Selection":
        """The choices of a recipe that names all of them: nothing else is looked at."""
        settled = Selection(recipe=recipe, prefers_small=self._prefers_small, fronts=self._fronts)
        settled._is_settled = True
        return settled

    def of(self, path: str, problem: GemmProblem, arrivals: Mapping[Side, Arrival]) -> GemmChoice:
        """The choice of one product.

        Raises:
            Unsupported: nothing computes it, or the recipe's choice does not suit it.
        """
        choice = self._recipe.gemms.get(path)
        shortlist: tuple[GemmCandidate, ...] = ()
        if choice is None or not self._is_settled:
            found = self._fronts(
                FrontInputs(
                    problem=problem,
                    cast_before_copies=self.options.cast_before_copies,
                    left=arrivals.get(Side.LEFT),
                    right=arrivals.get(Side.RIGHT),
                )
            )
            shortlist = tuple(candidate for front in found.fronts for candidate in front.shortlist(SHORTLIST))
            self.alternatives[path], self.dropped[path] = shortlist, found.dropped
        if choice is None:
            if not shortlist:
                reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped[path].items())
                raise Unsupported(
                    f"nothing computes this product on {problem.tile_count} tiles: {reasons}",
                    stage=STAGE,
                    subject=path,
                    next_step="use more tiles, or smaller extents",
                    nodes=(path,),
                )
            choice = min(shortlist, key=self._rank).choice
        reason = gemm_layout.fault(problem, choice)
        if reason is not None:
            raise Unsupported(
                f"the recipe's choice does not suit this product: {reason}",
                stage=STAGE,
                subject=path,
                next_step="leave this product out of the recipe, or change the choice",
                nodes=(path,),
            )
        self.chosen[path] = choice
        return choice

    def boundary(self, path: str) -> Boundary:
        """In which form a value waits that other nodes read."""
        self.boundaries[path] = self._recipe.boundaries.get(path, "as made")
        return self.boundaries[path]

    def _rank(self, candidate: GemmCandidate) -> tuple[int, ...]:
        size = candidate.tile_bytes
        # A swapped product is stored transposed, which its readers pay for: that is for the search to weigh.
        is_swapped = candidate.choice.orientation is Orientation.SWAPPED
        if self._prefers_small:
            return (is_swapped, size, candidate.cycles, candidate.row_words)
        return (is_swapped, candidate.cycles, size, candidate.row_words)
