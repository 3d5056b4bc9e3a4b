"""Two small builds in one store, made once for all tests of a process."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, final

import pytest

from compiler.chain import chain_of
from compiler.compile import build, run_stage
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.exchange.ir import ScheduledExchange
from compiler.graph.text import text_of_graph
from compiler.low.ir import LowProgram
from compiler.models.programs import Program
from compiler.models.smoke import mlp_smoke
from compiler.models.subjects import GraphModel
from compiler.package.format import read_package
from compiler.package.records import Application
from compiler.report.build import Built
from compiler.report.written import WrittenReport
from compiler.store.layout import Access
from compiler.store.result import StageResult
from compiler.store.store import Store
from compiler.tables import table_digests
from pipeline.cli_report import write_report
from pipeline.last_results import built_of, last_build

TILES: Final = {"narrow": 2, "wide": 4}
"""Tiles of each build, by the name of its model."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Small:
    """One of the builds.

    Args:
        name: of the model.
        root: the store.
        package: its file, with the recipe beside it.
        results: by stage.
        built: what a report is made of.
    """

    name: str
    root: Path
    package: Path
    results: Mapping[str, StageResult[Any]]
    built: Built

    @property
    def program(self) -> LowProgram:
        """Its low program."""
        return self.built.program

    @property
    def exchange(self) -> ScheduledExchange:
        """Its exchanges."""
        return self.built.exchange

    @property
    def application(self) -> Application:
        """Its package, read."""
        return _read(self.package)


@cache
def _read(path: Path) -> Application:
    return read_package(path.read_bytes(), name=path.stem)


_BUILT: Final[dict[str, Small]] = {}


def small_builds(factory: pytest.TempPathFactory) -> Mapping[str, Small]:
    """The builds by name: an MLP for a few tiles, with the data of as many."""
    if _BUILT:
        return _BUILT
    folder = factory.mktemp("builds")
    root = folder / "store"
    for name, tiles in TILES.items():
        model = GraphModel(name=name, text=text_of_graph(mlp_smoke(4), with_provenance=True))
        options = BuildOptions(
            planning=PlanningOptions(tiles=tiles, attempts=1), simulation=SimulationOptions(runs=1, seed=7)
        )
        with Store.open(root, tables=table_digests(), strict=True) as store:
            results = build(store, model, options)
        package = folder / f"{name}.ipuexe"
        package.write_bytes(results["emission"].value().package)
        recipe = results["proposal_rounds"].value().recipe
        package.with_suffix(".recipe.json").write_text(recipe.to_json())
        with Store.open(root, access=Access.READ_ONLY, tables=table_digests()) as store:
            built = built_of(store, last_build(store, name))
        _BUILT[name] = Small(name=name, root=root, package=package, results=results, built=built)
    return _BUILT


def reported(folder: Path, model: GraphModel | Program, options: BuildOptions) -> WrittenReport:
    """The report of a build that is not simulated, written into a folder under the model's name."""
    done: dict[str, StageResult[Any]] = {}
    with Store.open(folder / "store", tables=table_digests(), strict=True) as store:
        for stage in chain_of(model):
            if stage.name != "simulation":
                done[stage.name] = run_stage(stage.name, store, model, options, done)
        report: WrittenReport = done["build_report"].value()
    write_report(folder / f"{model.name}.html", report)
    return report
