"""The report of a build: figures by kind, provenance, and a text that reads back."""

import dataclasses

import numpy as np
import pytest

from compiler.config import BuildOptions, PackageOptions, PlanningOptions
from compiler.errors import NumberKind
from compiler.estimate.mid import estimate
from compiler.geometry.precision import F8
from compiler.graph.build import GraphBuilder
from compiler.models.smoke import gemm_smoke
from compiler.planner.recipe import Options, Recipe
from compiler.report.build import (
    Origin,
    build_report,
    option_values,
    report_from_json,
    report_json,
    roofline,
    words_of_choice,
)
from tests.report.builds import Small


def test_the_report_reads_back(wide: Small) -> None:
    """Equal reports, equal texts; built twice it is the same."""
    report = build_report(wide.built)
    text = report_json(report)
    assert report_from_json(text) == report
    assert report_json(report_from_json(text)) == text == report_json(build_report(wide.built))


def test_texts_that_are_no_report_are_refused(wide: Small) -> None:
    text = report_json(build_report(wide.built))
    for wrong, message in (
        (text.replace('"version":2', '"version":1', 1), "a report of version 1; this is version 2"),
        (text.replace('"version":2', '"version":"2"', 1), "no BuildReport: version"),
        (text.replace('{"version":2', '{"more":0,"version":2', 1), "no BuildReport: more"),
        (text.replace('"model":"wide",', "", 1), "no BuildReport: model"),
        (text[:-1], "no BuildReport: the text"),
    ):
        with pytest.raises(ValueError, match=message):
            report_from_json(wrong)


def test_the_headline_says_each_kind_once(wide: Small) -> None:
    headline = build_report(wide.built).headline
    assert [measure.kind for measure in headline.cycles] == [
        NumberKind.ESTIMATED,
        NumberKind.SCHEDULED,
        NumberKind.SIMULATED,
    ]
    simulated = wide.results["simulation"].value()
    assert headline.cycles[-1].value == simulated.cycles[-1]
    assert headline.microseconds == pytest.approx(int(simulated.cycles[-1]) / 1500)
    assert headline.roofline is not None
    assert headline.of_roofline is not None
    assert headline.roofline.kind is NumberKind.BOUND
    assert 0.0 < headline.of_roofline <= 1.0
    assert headline.host_bytes.value == 2 * 4 * 64 * 2  # x and the output, F16
    assert headline.package.value == wide.package.stat().st_size
    (accuracy,) = headline.accuracy
    assert accuracy.output == "second"
    assert accuracy.cosine > 0.9999


def test_without_a_simulation_cycles_are_scheduled(wide: Small) -> None:
    headline = build_report(dataclasses.replace(wide.built, simulated=None)).headline
    assert headline.cycles[-1].kind is NumberKind.SCHEDULED
    assert headline.accuracy == ()


def test_what_is_not_finite_is_no_number(wide: Small) -> None:
    """An output with infinities leaves a report that can be written."""
    simulated = wide.built.simulated
    assert simulated is not None
    broken = dataclasses.replace(simulated, accuracy={"second": np.array([[np.inf, 0.0]])})
    report = build_report(dataclasses.replace(wide.built, simulated=broken))
    assert report.headline.accuracy[0].largest_difference is None
    assert report_from_json(report_json(report)) == report


def test_candidates_with_their_fates(wide: Small) -> None:
    """As the search's ledger has them: the baseline first, numbers with their kinds."""
    considered = build_report(wide.built).considered
    ledger = wide.results["proposal_rounds"].value().ledger
    assert [(one.round, one.change, one.fate, one.reason) for one in considered] == [
        (entry.round, entry.change, entry.fate.value, entry.reason) for entry in ledger
    ]
    assert considered[0].round == 0
    assert considered[0].scheduled is not None
    for one, entry in zip(considered, ledger, strict=True):
        for measure, value, kind in (
            (one.estimated, entry.estimated_cycles, NumberKind.ESTIMATED),
            (one.scheduled, entry.scheduled_cycles, NumberKind.SCHEDULED),
        ):
            assert (None if measure is None else (measure.value, measure.kind)) == (
                None if value is None else (value, kind)
            )


def test_choices_with_what_was_not_chosen(wide: Small) -> None:
    """Each product: the chosen one is among those kept, reasons are counted."""
    report = build_report(wide.built)
    planned = wide.built.planned
    assert planned is not None
    assert [choice.node for choice in report.choices] == sorted(planned.recipe.gemms)
    for choice in report.choices:
        assert choice.choice == words_of_choice(planned.recipe.gemms[choice.node])
        assert [other.choice for other in choice.kept if other.is_chosen] == [choice.choice]
        cycles = [other.cycles for other in choice.kept]
        assert cycles == sorted(cycles)
        assert all(dropped.count > 0 for dropped in choice.dropped)
    assert sum(cost.cycles for cost in report.estimates) == estimate(planned.program).cycles


def test_options_say_where_they_come_from() -> None:
    options = BuildOptions(planning=PlanningOptions(tiles=64), package=PackageOptions(runs=3), workers=2)
    found = {value.name: (value.value, value.origin) for value in option_values(options)}
    assert found["planning.tiles"] == ("64", Origin.GIVEN)
    assert found["package.runs"] == ("3", Origin.GIVEN)
    assert found["planning.rounding"] == ('"nearest"', Origin.DEFAULT)
    assert "workers" not in found


def test_choices_say_where_they_come_from(wide: Small) -> None:
    """The recipe that was given, the search where it left the baseline, else the planner."""
    planned = wide.built.planned
    assert planned is not None
    assert planned.baseline is not None
    changed = {
        choice.node: Origin.SEARCH
        if planned.baseline.gemms[choice.node] != planned.recipe.gemms[choice.node]
        else Origin.PLANNER
        for choice in build_report(wide.built).choices
    }
    node = min(changed)
    given = Recipe(
        gemms={node: planned.recipe.gemms[node]},
        options=Options(packing_rows=planned.recipe.options.packing_rows),
    )
    for other, wanted in (
        (planned, changed),
        (dataclasses.replace(planned, given=given), changed | {node: Origin.RECIPE}),
        (
            dataclasses.replace(planned, baseline=recipe_without(planned.recipe, node)),
            {name: Origin.SEARCH if name == node else Origin.PLANNER for name in changed},
        ),
    ):
        report = build_report(dataclasses.replace(wide.built, planned=other))
        assert {choice.node: choice.origin for choice in report.choices} == wanted
    report = build_report(dataclasses.replace(wide.built, planned=dataclasses.replace(planned, given=given)))
    origins = {option.name: option.origin for option in report.options}
    assert origins["recipe.packing_rows"] is Origin.RECIPE
    assert origins["recipe.parallel_reductions"] in (Origin.DEFAULT, Origin.PLANNER, Origin.SEARCH)


def recipe_without(recipe: Recipe, node: str) -> Recipe:
    """The recipe without the choice of a node."""
    return Recipe(
        gemms={name: choice for name, choice in recipe.gemms.items() if name != node}, options=recipe.options
    )


def test_the_roofline_counts_products() -> None:
    """64 products of 16 bits a cycle on every tile, twice as many of 8 bits."""
    graph = gemm_smoke(16)  # [16, 64] x [64, 1024]
    assert roofline(graph, 16).value == 16 * 64 * 1024 // (64 * 16)
    assert roofline(graph, 7).value == -(-16 * 64 * 1024 // (64 * 7))
    build = GraphBuilder("eight")
    left = build.input("left", (16, 64), precision=F8())
    right = build.parameter("right", (64, 32), precision=F8())
    build.output(build.gemm(left, right, name="product"))
    assert roofline(build.finish(), 4).value == 16 * 64 * 32 // (128 * 4)
