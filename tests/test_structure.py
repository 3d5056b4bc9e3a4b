"""What the parts of the compiler may be made of and may know: properties of the source as a whole.

Most are negative. A program level that must not exist, a dependency that would put a decision in the wrong
place, a field that would leave something open: each is one assertion over types or imports. Together they
state the opposites of what an earlier structure suffered from (AR-10).
"""

import ast
import dataclasses
import itertools
import typing
from collections.abc import Callable, Iterable
from pathlib import Path

import grimp
import pytest

from compiler.chain import chain_of
from compiler.compile import stage_of
from compiler.estimate.mid import MidCost, OperationCost
from compiler.evaluation import stage_proposal_rounds
from compiler.exchange.ir import RowReservations
from compiler.graph.ir import Operation as GraphOperation
from compiler.graph.ir import View
from compiler.kernels.contract import Binding as KernelBinding
from compiler.low.ir import LowProgram
from compiler.mid import ir as mid
from compiler.mid import work
from compiler.mid.build import BlockBuilder
from compiler.mid.local import LocalCalls
from compiler.package.support import Support
from compiler.planner.candidate import Candidate
from compiler.planner.gemm import construct
from compiler.planner.gemm_candidates import GemmCandidate
from compiler.planner.gemm_choice import Algorithm, GemmChoice
from compiler.planner.recipe import Options, Recipe
from compiler.store.stage import AnyStage, Stage
from tests.reachable import modules_of, reachable
from tests.stages.builds import SUBJECTS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    """Who imports whom."""
    return grimp.build_graph("compiler", "assets", "pipeline")


def _reaches(graph: grimp.ImportGraph, importer: str, imported: str) -> bool:
    return graph.chain_exists(importer=importer, imported=imported, as_packages=True)


def _names(of: type) -> set[str]:
    return {field.name for field in dataclasses.fields(of)}


def _annotations(of: Iterable[type]) -> list[str]:
    return [str(field.type) for one in of for field in dataclasses.fields(one)]


def test_there_are_four_program_levels() -> None:
    """AR-01, PR-14: graph, mid, low and package have one record of a whole program each, candidates none."""
    whole: dict[str, str] = {}
    for path in sorted((ROOT / "compiler").glob("*/*.py")):
        if path.name not in {"ir.py", "records.py"}:
            continue
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith(("Program", "Graph", "Application")):
                whole[node.name] = path.parent.name
    levels = {"Graph": "graph", "MidProgram": "mid", "LowProgram": "low", "Application": "package"}
    # The store's records and those of the tile machine's code are no levels of a model's program.
    assert {name: place for name, place in whole.items() if place not in {"store", "isa"}} == levels
    assert "program" in _names(Candidate)


def test_mid_has_exactly_three_operations() -> None:
    """ML-01, ML-03, ML-25, SL-03: copies, computations, Repeats; one form of a cast, one of a copy."""
    assert set(typing.get_args(mid.Operation)) == {mid.Copy, mid.Compute, mid.Repeat}
    assert {one.__name__ for one in typing.get_args(work.Work)} == {"Product", "Sum", "Elementwise", "Cast"}


def test_nothing_in_mid_is_left_open() -> None:
    """ML-05, ML-24, ML-40, AR-07: no field of an operation is an implementation, an offer or a promise.

    What may be None says so in its meaning: how many partials are brought at a time.
    """
    kinds = (mid.Copy, mid.CopyPart, mid.Compute, mid.Repeat, *typing.get_args(work.Work))
    optional = [text for text in _annotations(kinds) if "None" in text]
    assert optional == ["int | None"]
    assert _names(work.Sum) == {"batch"}


def test_neither_graph_operations_nor_choices_are_in_mid(imports: grimp.ImportGraph) -> None:
    """PR-16, PR-17, PR-18, ML-27: candidates, recipes, searches and options are not the business of mid."""
    for outside in ("compiler.planner", "compiler.estimate", "compiler.config", "compiler.evaluation"):
        assert not _reaches(imports, "compiler.mid", outside)
    assert not reachable(mid.MidProgram) & {*typing.get_args(GraphOperation), *typing.get_args(View)}


def test_geometry_depends_on_nobody_who_prices(imports: grimp.ImportGraph) -> None:
    """AR-02, CA-03, MG-03: planner, low and costs read geometry; it knows none of them."""
    for outside in (
        "compiler.planner",
        "compiler.low",
        "compiler.estimate",
        "compiler.mid",
        "compiler.kernels",
    ):
        assert not _reaches(imports, "compiler.geometry", outside)


def test_kernel_families_serve_planner_low_and_costs(imports: grimp.ImportGraph) -> None:
    """AR-03, PR-32, KB-09: all three bind through the one registry, and nobody else knows a family's code."""
    for reader in ("compiler.planner", "compiler.low", "compiler.estimate"):
        assert _reaches(imports, reader, "compiler.kernels.registry")
    generators = {module for module in imports.modules if module.startswith("compiler.kernels.")}
    codes = {module for module in generators if module.endswith(".code")}
    assert codes
    for code in codes:
        importers = imports.find_modules_that_directly_import(code)
        assert importers <= generators


def test_estimates_construct_nothing(imports: grimp.ImportGraph) -> None:
    """AR-04, DS-22, PR-22: who estimates does not reach a builder of mid programs."""
    assert not _reaches(imports, "compiler.estimate.mid", "compiler.mid.build")
    assert not _reaches(imports, "compiler.estimate.low", "compiler.low.build")


def test_the_planner_expands_and_evaluates_nothing(imports: grimp.ImportGraph) -> None:
    """DS-18, EC-15, PR-13, PR-31: it cannot reach evaluation, placement or schedules, and only proposes."""
    for outside in ("compiler.evaluation", "compiler.placement", "compiler.exchange", "compiler.package"):
        assert not _reaches(imports, "compiler.planner", outside)


def test_low_does_not_know_the_planner(imports: grimp.ImportGraph) -> None:
    """AR-06, AR-07: what is expanded cannot ask the planner anything."""
    assert not _reaches(imports, "compiler.low", "compiler.planner")
    assert not _reaches(imports, "compiler.low", "compiler.evaluation")


def test_a_low_program_requests_nothing() -> None:
    """AR-07: through all of its fields it is numbers and bound calls; no choice, no function, no mid."""
    held = reachable(LowProgram)
    assert KernelBinding in held
    assert Callable not in held
    for outside in ("compiler.mid", "compiler.planner", "compiler.graph", "compiler.estimate"):
        assert not any(module.startswith(outside) for module in modules_of(held)), outside


def test_only_the_driver_sees_support_and_search(imports: grimp.ImportGraph) -> None:
    """AR-05, DS-23, EC-16: packages size and emit; they search, place and schedule nothing."""
    for outside in (
        "compiler.planner",
        "compiler.evaluation",
        "compiler.exchange.order",
        "compiler.placement.place",
    ):
        assert not _reaches(imports, "compiler.package", outside)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_nothing_but_reservations_comes_back_from_emission(kind: str) -> None:
    """AR-05, EC-16: placing and emitting take the sizes of support; what plans and expands takes none."""
    subject, _ = SUBJECTS[kind]
    stages = {each.name: stage_of(each.name, subject) for each in chain_of(subject)}
    sizes = {Support, RowReservations}
    takers = {name for name, stage in stages.items() if reachable(stage.inputs) & sizes}
    assert takers - {"build_report"} == {"final_placement", "emission"}


def test_a_recipe_is_choices_and_nothing_else() -> None:
    """AR-08, PR-02, PR-05, PR-08, SL-04: no edges, no values, no work sites, no overrides."""
    assert set(Recipe.model_fields) == {"version", "gemms", "boundaries", "inputs", "options"}
    assert set(Options.model_fields) == {
        "cast_before_copies",
        "reuse_cast_inputs",
        "packing_rows",
        "parallel_reductions",
        "preparation",
        "tile_mapping",
    }


def test_choices_hold_no_execution() -> None:
    """PR-06, PR-15, ML-30: numbers and enumerations only; no name of generated work, no template."""
    for name, field in GemmChoice.model_fields.items():
        annotation = str(field.annotation)
        assert "int" in annotation or "enum" in annotation, name
        assert "str" not in annotation
        assert "mid" not in annotation


def test_construction_receives_no_prices() -> None:
    """PR-21, PR-23, ML-12: one constructor, given builder, choice and operands; it cannot rank anything."""
    names = set(typing.get_type_hints(construct))
    assert names == {
        "builder",
        "choice",
        "problem",
        "left",
        "right",
        "cast_before_copies",
        "spreads_preparation",
        "node",
        "return",
    }


def test_owners_are_part_of_values() -> None:
    """ML-04, PR-10, PR-29: shape, format and owner map are fields of every value; calls only read them."""
    assert {"shape", "format", "owners"} <= _names(mid.Value)
    assert "owners" not in _names(LocalCalls)


def test_the_loop_and_the_evaluation_are_in_one_module() -> None:
    """DS-01, DS-02, EC-01, SL-01: both routines of a build are read side by side; no other module has one."""
    stages: list[AnyStage] = [
        stage for stage in vars(stage_proposal_rounds).values() if isinstance(stage, Stage)
    ]
    callers = {stage.name: stage.calling.__module__ for stage in stages if stage.calling is not None}
    own = {name for name, module in callers.items() if module == stage_proposal_rounds.__name__}
    assert own == {"proposal_rounds", "candidate_evaluation"}
    # Whoever else runs stages asks for fronts of products, schedules exchanges or links code: no routine of a
    # search or of an evaluation.
    assert set(callers) - own == {"baseline_candidate", "support_sizing", "emission"}


def test_no_sum_stands_beside_computations() -> None:
    """ML-02, RD-02, RD-03: sums are a kind of work of a computation, not another operation."""
    assert work.Sum in typing.get_args(work.Work)
    assert not {one for one in typing.get_args(mid.Operation) if "Sum" in one.__name__}


def test_the_expander_knows_no_kernel_by_name(imports: grimp.ImportGraph) -> None:
    """OI-06, OI-07: low binds calls through the registry; only sums and what moves bytes have families."""
    families = {"copy", "rearrange", "reduce"}
    for module in imports.modules:
        if module.startswith("compiler.low"):
            named = {
                imported.split(".")[2]
                for imported in imports.find_modules_directly_imported_by(module)
                if imported.startswith("compiler.kernels.") and imported.count(".") > 2
            }
            assert named <= families, module


def test_builders_have_few_operations() -> None:
    """PR-28: arguments, copies, computations, Repeats, and fragments that are put in."""
    public = {name for name in vars(BlockBuilder) if not name.startswith("_")}
    assert public == {"argument", "compute", "copy", "copy_parts", "finish", "insert", "repeat", "value"}


def test_constructors_belong_to_families(imports: grimp.ImportGraph) -> None:
    """ML-07, PR-27: products and element-wise work are constructed apart; only the walk knows both.

    How a product is distributed, strides of its grid and partials alike, is known to its family alone.
    """
    families = {"gemm": "compiler.planner.gemm", "elementwise": "compiler.planner.elementwise"}
    assert construct.__module__ == families["gemm"]
    for one, other in itertools.permutations(families.values(), 2):
        assert not imports.chain_exists(importer=one, imported=other)
    readers = imports.find_modules_that_directly_import("compiler.planner.gemm_layout")
    assert readers == {families["gemm"], "compiler.planner.selection"}
    assert len(Algorithm) > 1


def test_hardware_facts_have_one_owner(imports: grimp.ImportGraph) -> None:
    """TA-09, TA-12: the target is the one leaf; who makes code asks it, not packages or the driver."""
    known = imports.find_upstream_modules("compiler.target", as_package=True)
    assert {module for module in known if not module.startswith("compiler.target")} <= {"compiler.errors"}
    for maker in ("compiler.isa", "compiler.kernels", "compiler.low", "compiler.exchange"):
        assert _reaches(imports, maker, "compiler.target")
        for outside in (
            "compiler.package",
            "compiler.evaluation",
            "compiler.compile",
            "compiler.config",
            "compiler.chain",
        ):
            assert not _reaches(imports, maker, outside), (maker, outside)


def test_who_keeps_progress_launches_nothing(imports: grimp.ImportGraph) -> None:
    """DS-20: the store holds choices and results; it knows neither proposals nor evaluations nor builds."""
    for outside in (
        "compiler.planner",
        "compiler.estimate",
        "compiler.evaluation",
        "compiler.compile",
        "compiler.chain",
    ):
        assert not _reaches(imports, "compiler.store", outside)


def test_costs_are_numbers() -> None:
    """CA-08: cycles and bytes come from one walk, and are what is kept of a choice, with no program."""
    assert {"cycles", "bytes", "interleaved_bytes"} <= _names(MidCost)
    for kind in (MidCost, OperationCost, GemmCandidate):
        for text in _annotations((kind,)):
            assert "Program" not in text
            assert "Block" not in text
