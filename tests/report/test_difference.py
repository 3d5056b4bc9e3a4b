"""Two builds set against each other."""

import dataclasses

from compiler.errors import Measure, NumberKind
from compiler.planner.recipe import Options, Recipe, recipe_of_json
from compiler.report.build import BuildReport, build_report
from compiler.report.difference import Difference, Side, difference_of, facts_of
from compiler.report.plain import json_of, report_of_json
from tests.report.builds import Small


def side(small: Small) -> Side:
    """All of a build."""
    text = small.package.with_suffix(".recipe.json").read_text()
    return Side(
        name=small.name,
        recipe=recipe_of_json(text, small.name),
        package=facts_of(small.application, small.package.stat().st_size),
        report=build_report(small.built),
    )


def test_a_build_does_not_differ_from_itself(wide: Small) -> None:
    assert difference_of(side(wide), side(wide)).is_empty


def test_builds_differ_in_what_they_differ_in(wide: Small, narrow: Small) -> None:
    """Numbers of both sides are theirs, of one kind, and not equal; back and forth is the same."""
    before, after = side(wide), side(narrow)
    found, back = difference_of(before, after), difference_of(after, before)
    assert not found.is_empty
    groups = ("cycles", "memory", "tensors", "phases", "code")
    for group in groups:
        for change in getattr(found, group):
            sides = [measure for measure in (change.before, change.after) if measure is not None]
            assert len({measure.kind for measure in sides}) == 1
            assert change.change != 0 or len(sides) == 1
        opposite = {change.what: -change.change for change in getattr(back, group)}
        assert {change.what: change.change for change in getattr(found, group)} == opposite
    cycles = {change.what: change for change in found.cycles}
    for kind in ("estimated", "scheduled", "simulated"):
        assert f"a run, {kind}" in cycles
    assert before.recipe is not None
    assert {choice.node for choice in found.choices} <= {
        "recipe",
        *before.recipe.gemms,
        *before.recipe.boundaries,
        *before.recipe.inputs,
    }
    assert {node.node for node in found.nodes} <= {"first.product", "first", "second.product", "second"}
    tensors = {change.what: change for change in found.tensors}
    assert tensors["input x f16, tiles"].change == -2
    assert report_of_json(Difference, json_of(found)) == found


def test_numbers_of_two_kinds_are_not_compared(wide: Small) -> None:
    """A side that was not simulated says nothing about simulated cycles of the other."""
    report = build_report(wide.built)
    longer = dataclasses.replace(
        report.headline,
        cycles=tuple(
            Measure(name="a run", value=measure.value + 9, unit="cycles", kind=measure.kind)
            for measure in report.headline.cycles
            if measure.kind is not NumberKind.SIMULATED
        ),
    )
    other: BuildReport = dataclasses.replace(report, headline=longer)
    found = difference_of(Side(name="one", report=report), Side(name="other", report=other))
    changes = {change.what: change for change in found.cycles}
    assert changes["a run, estimated"].change == changes["a run, scheduled"].change == 9
    assert "a run, simulated" not in changes


def test_only_what_both_have_is_compared(wide: Small, narrow: Small) -> None:
    alone = Side(name="recipe", recipe=side(narrow).recipe)
    found = difference_of(side(wide), alone)
    assert not any((found.cycles, found.nodes, found.memory, found.tensors, found.phases, found.code))


def test_recipes_are_compared_choice_by_choice(wide: Small) -> None:
    recipe = side(wide).recipe
    assert recipe is not None
    node = next(iter(recipe.gemms))
    changed = recipe.gemms[node].model_copy(update={"row_parts": 3})
    other = Recipe(
        gemms={node: changed},
        boundaries={**recipe.boundaries, "first": "rows"},
        options=Options(packing_rows=32, cast_before_copies=recipe.options.cast_before_copies),
    )
    found = difference_of(Side(name="a", recipe=recipe), Side(name="b", recipe=other)).choices
    told = {(choice.node, choice.what): (choice.before, choice.after) for choice in found}
    assert told["recipe", "packing rows"] == ("0", "32")
    assert told[node, "row parts"] == (str(recipe.gemms[node].row_parts), "3")
    assert told["first", "waits"] == ("as made", "rows")
    assert all(told[name, "home"] == (str(home), None) for name, home in recipe.inputs.items())
    gone = [
        choice
        for choice in found
        if choice.node not in ("recipe", node) and choice.what not in ("waits", "home")
    ]
    assert [(choice.what, choice.after) for choice in gone] == [("choice", None)]
