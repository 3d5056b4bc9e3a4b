"""The neighbourhood of a candidate: near, distinct, in one order, and built from like any recipe."""

from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from compiler.errors import Unsupported
from compiler.geometry.precision import F16
from compiler.mid.verify import verify
from compiler.planner.candidate import Candidate, build_candidate
from compiler.planner.choices import Setting
from compiler.planner.gemm_choice import Algorithm, GemmChoice
from compiler.planner.propose import (
    ALTERNATIVES,
    LONGER,
    alternatives_of,
    inputs_of_products,
    products_in_turn,
    propose,
    smaller,
    turned_round,
)
from compiler.planner.recipe import Recipe
from tests.mid.rewriting import refusals
from tests.planner.graphs import CODES, GRAPHS, assert_right, mlp

SETTING = Setting(tile_count=16)


def built(name: str, recipe: Recipe | None = None) -> Candidate:
    """A candidate of one of the graphs."""
    return build_candidate(GRAPHS[name](), SETTING, Recipe() if recipe is None else recipe)


@pytest.mark.parametrize("name", sorted(GRAPHS))
def test_proposals_differ_in_one_respect(name: str) -> None:
    """PR-13: one product, two that follow each other, a boundary, a home or options; none twice.

    A boundary may change with the product that makes its value, homes with the products that read the inputs.
    """
    candidate = built(name)
    graph, own = GRAPHS[name](), candidate.recipe
    found = propose(graph, candidate)
    texts = [recipe.to_json() for recipe in found]
    assert len(set(texts)) == len(texts)
    assert own.to_json() not in texts
    singly: Counter[str] = Counter()
    reads = inputs_of_products(graph)
    for recipe in found:
        assert recipe.gemms.keys() == own.gemms.keys()
        changed = tuple(path for path in own.gemms if recipe.gemms[path] != own.gemms[path])
        waiting = {path for path in own.boundaries if recipe.boundaries[path] != own.boundaries[path]}
        homes = {name for name in own.inputs if recipe.inputs.get(name) != own.inputs[name]}
        if recipe.options != own.options:
            assert (changed, waiting, homes) == ((), set(), set())
        elif waiting:
            assert len(waiting) == 1
            assert set(changed) <= waiting
            assert not homes
        elif not changed:
            assert len(homes) == 1
        elif homes:
            assert homes == {name for path in changed for name in reads[path]}
        elif recipe.gemms[changed[0]] == turned_round(own.gemms[changed[0]]):
            assert len(changed) == 1
        elif len(changed) == 1:
            singly[changed[0]] += 1
        else:
            assert any(set(changed) == set(pair) for pair in products_in_turn(graph))
    assert all(0 < count <= ALTERNATIVES for count in singly.values())
    assert singly.keys() == own.gemms.keys()
    for path in own.gemms:
        alone = [recipe for recipe in found if recipe.gemms[path] != own.gemms[path]]
        assert any(name not in recipe.inputs for recipe in alone for name in reads[path]) or not reads[path]
    assert [recipe.to_json() for recipe in propose(GRAPHS[name](), built(name))] == texts


@settings(max_examples=20)
@given(data=st.data(), name=st.sampled_from(sorted(GRAPHS)), seed=st.integers(0, 1 << 32))
def test_proposals_build_right_programs(data: st.DataObject, name: str, seed: int) -> None:
    """PR-12, PR-14, ML-26: well formed, every call bound, equal to the reference; or a named refusal."""
    graph, candidate = GRAPHS[name](), built(name)
    for _ in range(data.draw(st.integers(1, 2))):
        recipe = data.draw(st.sampled_from(propose(graph, candidate)))
        try:
            candidate = build_candidate(graph, SETTING, recipe)
        except Unsupported as refusal:
            event(f"refused for {len(refusal.nodes)} nodes")
            return
        normalized = recipe.model_copy(update={"inputs": candidate.recipe.inputs})
        assert candidate.recipe.to_json() == normalized.to_json()
        assert verify(candidate.program) == ()
        assert refusals(candidate.program) == []
        assert_right(graph, candidate.program, seed)


def test_the_fastest_of_each_class_comes_first() -> None:
    """Orientations and residencies before more of the same."""
    candidate = built("mlp")
    for path, found in candidate.alternatives.items():
        present = candidate.recipe.gemms[path]
        others = alternatives_of(present, found)
        assert present not in others
        assert {choice.model_dump_json() for choice in others} == {
            each.choice.model_dump_json() for each in found if each.choice != present
        }
        cycles = {each.choice.model_dump_json(): each.cycles for each in reversed(found)}
        classes = {
            (each.choice.orientation, each.choice.parameter_residency)
            for each in found
            if each.choice != present
        }
        first = others[: len(classes)]
        assert {(choice.orientation, choice.parameter_residency) for choice in first} == classes
        ranks = [cycles[choice.model_dump_json()] for choice in first]
        assert ranks == sorted(ranks)


def test_products_follow_each_other_through_other_work_and_repeats() -> None:
    """The edges along which two choices are changed together."""
    assert products_in_turn(GRAPHS["mlp with biases"]()) == (("up.product", "down.product"),)
    assert products_in_turn(GRAPHS["projections"]()) == ()
    assert products_in_turn(GRAPHS["casts"]()) == (("first", "product0"),)
    # What the body carries on is read by its first product in the next iteration.
    assert products_in_turn(mlp(F16(), blocks=2)) == (
        ("blocks/hidden", "blocks/y"),
        ("blocks/y", "blocks/hidden"),
    )


def test_options_are_proposed_where_they_are_about_something() -> None:
    """Donation and the side of casts where something is cast, groups where there are several sums."""
    changed: dict[str, set[str]] = {}
    for name in ("mlp", "mlp in F8"):
        candidate = built(name)
        own = candidate.recipe.options.model_dump()
        changed[name] = {
            option
            for recipe in propose(GRAPHS[name](), candidate)
            for option, value in recipe.options.model_dump().items()
            if value != own[option]
        }
    assert "cast_before_copies" not in changed["mlp"]
    assert "reuse_cast_inputs" not in changed["mlp"]
    assert {"cast_before_copies", "reuse_cast_inputs"} <= changed["mlp in F8"]


def test_casts_are_a_precision_of_the_graph() -> None:
    """A graph in one precision has no proposal about casts, whatever its size."""
    plain = build_candidate(mlp(F16(), rows=1), SETTING, Recipe())
    assert all(recipe.options.cast_before_copies for recipe in propose(mlp(F16(), rows=1), plain))
    mixed = build_candidate(mlp(CODES, rows=1), SETTING, Recipe())
    assert not all(recipe.options.cast_before_copies for recipe in propose(mlp(CODES, rows=1), mixed))


def test_where_there_is_no_place_blocks_of_k_get_longer() -> None:
    """Fewer phases: their code and rows take memory, too."""
    choice = GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY, row_parts=2, column_parts=2, inner_block=16)
    paths = sorted(built("mlp").recipe.gemms)
    candidate = built("mlp", Recipe(gemms=dict.fromkeys(paths, choice)))
    proposed = smaller(candidate)
    for path in paths:
        longer = {
            16 * factor: recipe
            for factor in LONGER
            for recipe in proposed
            if recipe.gemms[path] == choice.model_copy(update={"inner_block": 16 * factor})
        }
        assert set(longer) == {16 * factor for factor in LONGER}
        assert built("mlp", longer[32]).cost.phases < candidate.cost.phases
