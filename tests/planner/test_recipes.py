"""Whatever recipe the search proposes, its program means what the graph says.

Random models with the structure of the real ones, rows and widths cut, on any number of tiles; and proposals
for models at full size on the whole device. The oracle is the graph's reference, within the tolerances of F16
and F8; the programs are interpreted, so that nothing below the whole-device language is asked.
"""

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from compiler.errors import DoesNotFit, Unsupported
from compiler.graph.ir import Graph
from compiler.mid.verify import verify
from compiler.models.registry import model_named
from compiler.planner.candidate import Candidate, build_candidate
from compiler.planner.choices import Setting
from compiler.planner.propose import propose
from compiler.planner.recipe import Recipe
from compiler.target.tiles import TILE_COUNT
from tests.low.planned import graphs
from tests.planner.graphs import assert_right

RECIPES = 3
"""Proposals that are taken for each random model."""
BLOCKS = 3
"""The most blocks in a row that any of the models has."""


def _proposed(
    graph: Graph, setting: Setting, candidate: Candidate, wanted: int, first: int
) -> list[Candidate]:
    """Programs of so many proposals, from one of them on; those that cannot be built are passed over."""
    recipes = propose(graph, candidate)
    found: list[Candidate] = []
    for number in range(len(recipes)):
        try:
            found.append(build_candidate(graph, setting, recipes[(first + number) % len(recipes)]))
        except (Unsupported, DoesNotFit):
            continue
        if len(found) == wanted:
            break
    return found


@settings(max_examples=70)
@given(
    graph=graphs(),
    tiles=st.one_of(st.integers(1, 64), st.sampled_from((300, 1000, TILE_COUNT))),
    first=st.integers(0, 40),
    seed=st.integers(0, 1 << 20),
)
def test_proposals_compute_what_the_graph_says(graph: Graph, tiles: int, first: int, seed: int) -> None:
    """ML-26, PR-12, PR-13: one-row products and extents that divide nothing among them."""
    setting = Setting(tile_count=tiles)
    try:
        candidate = build_candidate(graph, setting, Recipe())
    except (Unsupported, DoesNotFit):
        reject()
    for found in (candidate, *_proposed(graph, setting, candidate, RECIPES, first)):
        assert verify(found.program) == ()
        assert_right(graph, found.program, seed, blocks=BLOCKS)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gemm-smoke", "siglip-mlp", "siglip-mlp-f8", "siglip-mlp-x3", "mlp-block"])
def test_a_proposal_at_full_size_computes_what_the_graph_says(name: str) -> None:
    """The same on the whole device, by a proposal beside the planner's first choice."""
    graph, setting = model_named(name).build(), Setting(tile_count=TILE_COUNT)
    candidate = build_candidate(graph, setting, Recipe())
    (found,) = _proposed(graph, setting, candidate, 1, first=1)
    assert found.recipe != candidate.recipe
    assert verify(found.program) == ()
    assert_right(graph, found.program, seed=1, blocks=BLOCKS)
