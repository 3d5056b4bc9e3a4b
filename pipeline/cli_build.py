"""``tilewright build``: a model from its name to a package, with simulated cycles.

Every stage goes through the store, directly or (``--dagster``) as assets, with the same results. The package
and the descriptions of its tensors are written when all stages have succeeded, the package last; a build that
fails leaves no file. Nothing of the compiler or of Dagster is imported before the command runs.
"""

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipeline.arguments import positive, whole

if TYPE_CHECKING:
    from compiler.compile import Results
    from compiler.config import BuildOptions
    from compiler.models.subjects import Subject
    from compiler.store.layout import Mode
    from compiler.store.result import StageResult
    from compiler.store.store import Store


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Make the parser that of the command; ``run`` is set to a function from arguments to an exit status."""
    add_choices(parser)
    parser.add_argument(
        "--output",
        type=Path,
        metavar="PATH",
        help="the package (default: MODEL.ipuexe here); descriptions of its tensors go beside it",
    )
    parser.add_argument(
        "--dagster", action="store_true", help="run the stages as assets and keep their history"
    )
    parser.set_defaults(run=_build)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """What is built, how, and with which store: of every command that runs stages of a model."""
    parser.epilog = "Names are listed by tilewright models."
    parser.add_argument("model", metavar="MODEL", help="name of a model or program, or a user's model file")
    parser.add_argument("--tiles", type=positive, metavar="N", help="tiles to use (default: all of the card)")
    parser.add_argument("--batch", type=positive, metavar="B", help="images (default: the model's own)")
    parser.add_argument(
        "--precision",
        choices=("f16", "f8"),
        help="of products, F8 with the exponent of bring-up (default: the model's own)",
    )
    parser.add_argument(
        "--rounding",
        choices=("nearest", "stochastic"),
        default="nearest",
        help="how sums of products become F16 (default: nearest, ties to even)",
    )
    parser.add_argument(
        "--replicate-inputs",
        action="store_true",
        help="let the host write inputs to every tile that reads them",
    )
    parser.add_argument(
        "--attempts",
        type=whole,
        default=4,
        metavar="N",
        help="programs that the search places and schedules beside the first (default: 4)",
    )
    parser.add_argument(
        "--recipe", type=Path, metavar="FILE", help="take the choices that it makes, and search no others"
    )
    parser.add_argument(
        "--runs", type=positive, default=2, metavar="N", help="simulated runs of the package (default: 2)"
    )
    parser.add_argument("--seed", type=whole, default=1, metavar="N", help="of weights and inputs")
    parser.add_argument(
        "--inject",
        choices=("none", "wrong_output", "more_cycles", "unrepeatable", "worse_program"),
        default="none",
        help="make something wrong on purpose, to see that a check of --dagster fails (default: none)",
    )
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )
    parser.add_argument(
        "--cache",
        choices=("use", "refresh", "verify", "off"),
        default="use",
        help="use the store, compute all of it again, do so and compare, or work without it (default: use)",
    )
    parser.add_argument(
        "--workers", type=positive, default=1, metavar="N", help="threads that a stage may use (default: 1)"
    )


def _build(arguments: argparse.Namespace) -> int:
    subject = subject_of(arguments)
    _check_output(_output(subject, arguments))
    return _with_dagster(subject, arguments) if arguments.dagster else _directly(subject, arguments)


def subject_of(arguments: argparse.Namespace) -> "Subject":
    """What is built, by name or from a user's file.

    Raises:
        InvalidInput: there is no such model or file.
        InvalidModel: the file holds no well-formed graph.
    """
    from compiler.graph.text import text_of_graph
    from compiler.models.layers import BRING_UP, HALF
    from compiler.models.programs import PROGRAMS
    from compiler.models.registry import MODELS
    from compiler.models.subjects import GraphModel
    from pipeline.model_files import model_of

    place: str = arguments.model
    if place in PROGRAMS:
        return PROGRAMS[place]
    if place in [model.name for model in MODELS]:
        precision = None
        if arguments.precision is not None:
            precision = HALF if arguments.precision == "f16" else BRING_UP
        return GraphModel(name=place, batch=arguments.batch, precision=precision)
    graph = model_of(place)
    return GraphModel(name=graph.name, text=text_of_graph(graph, with_provenance=True))


def options_of(arguments: argparse.Namespace) -> "BuildOptions":
    """The options of the build."""
    from compiler.config import BuildOptions, InjectOptions, PlanningOptions, SimulationOptions
    from compiler.target.tiles import TILE_COUNT

    return BuildOptions(
        planning=PlanningOptions(
            tiles=TILE_COUNT if arguments.tiles is None else arguments.tiles,
            rounding=arguments.rounding,
            replicate_inputs=arguments.replicate_inputs,
            attempts=arguments.attempts,
        ),
        simulation=SimulationOptions(seed=arguments.seed, runs=arguments.runs),
        inject=InjectOptions(fault=arguments.inject),
        workers=arguments.workers,
    )


def recipe_of(arguments: argparse.Namespace) -> str:
    """The text of the recipe; empty without one.

    Raises:
        InvalidInput: the file cannot be read, or holds no recipe of this version.
    """
    path: Path | None = arguments.recipe
    if path is None:
        return ""
    from compiler.planner.recipe import recipe_of_json
    from pipeline.user_files import read_text

    return recipe_of_json(read_text(path, stage="build"), str(path)).to_json()


def _directly(model: "Subject", arguments: argparse.Namespace) -> int:
    from compiler.compile import build

    options, recipe = options_of(arguments), recipe_of(arguments)
    with _open(arguments, _mode(arguments)) as store:
        results = build(store, model, options, recipe=recipe, report=_say)
        _finish(model, results, arguments)
    return 0


def _with_dagster(model: "Subject", arguments: argparse.Namespace) -> int:
    """Run the job of the model here; what it materialized is then read from the store."""
    from compiler.errors import InvalidInput
    from compiler.store.layout import Mode

    if _mode(arguments) is Mode.OFF:
        raise InvalidInput(
            "assets leave their results in the store, and it is off",
            stage="build",
            subject="--dagster --cache off",
            next_step="leave one of the two out",
        )
    from assets.recall import recalled
    from compiler.compile import run_stage, stage_of
    from pipeline.launch import launch

    options = options_of(arguments)
    launched = launch(model, settings_of(arguments), say=say_line)
    for message in launched.failures:
        print(message, file=sys.stderr)
    if launched.failures:
        return 1
    with _open(arguments, Mode.USE) as store:
        results: dict[str, StageResult[Any]] = {}
        for name, key in launched.keys.items():
            result = recalled(store, stage_of(name, model), key)
            if result is None:  # a store that cannot be written keeps nothing
                result = run_stage(name, store, model, options, results, recipe=recipe_of(arguments))
            results[name] = result
        _finish(model, results, arguments)
    warnings = f", {launched.warnings} warn" if launched.warnings else ""
    print(f"  checks: {launched.passed_checks} passed{warnings}")
    return 0


def settings_of(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """The same choices as settings of the resource ``Builds``."""
    return {
        "cache": arguments.cache,
        "store": str(store_root(arguments)),
        "options": options_of(arguments).model_dump(exclude={"version", "workers"}),
        "recipe": recipe_of(arguments),
        "workers": arguments.workers,
    }


def store_root(arguments: argparse.Namespace) -> Path:
    """The folder of the store."""
    from compiler.cache_home import cache_home

    path: Path | None = arguments.store
    return (cache_home() / "store" if path is None else path).absolute()


def _mode(arguments: argparse.Namespace) -> "Mode":
    from compiler.store.layout import Mode

    return Mode[cast("str", arguments.cache).upper()]


def _open(arguments: argparse.Namespace, mode: "Mode") -> "Store":
    from compiler.store.layout import Mode
    from compiler.store.store import Store
    from compiler.tables import table_digests

    # Whoever verifies wants a difference to be a failure; otherwise it is a warning.
    return Store.open(store_root(arguments), mode=mode, strict=mode is Mode.VERIFY, tables=table_digests())


def _say(name: str, result: "StageResult[Any]") -> None:
    """What came of a stage, and why it was computed, in two lines."""
    from assets.sentences import outcome_of, reasons_of
    from compiler.compile import figures_of

    say_line(f"{name}: {outcome_of(result, figures_of(name, result))}")
    reasons = reasons_of(result, 2)
    if reasons:
        say_line(f"  since {'; '.join(reasons)}")


def say_line(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # somebody waits for it


def _finish(model: "Subject", results: "Results", arguments: argparse.Namespace) -> None:
    """Write the package and say what it does.

    Raises:
        InternalError: the simulated package computes something else than its program or model.
    """
    from compiler.compile import figures_of
    from compiler.errors import InternalError
    from compiler.package.host import belonging
    from pipeline.cli_report import write_report

    differences: tuple[str, ...] = results["simulation"].value().differences
    if differences:
        raise InternalError(
            f"the package computes something else than it should: {'; '.join(differences[:3])}",
            stage="simulation",
            subject=model.name,
            next_step="report the model and the options",
        )
    path = _output(model, arguments)
    emitted = results["emission"].value()
    for name, text in emitted.host_files:
        _write(path.with_name(name), belonging(text, emitted.package).encode())
    _write(path, emitted.package)  # last, so that a package never lacks a description
    if "proposal_rounds" in results:
        recipe = results["proposal_rounds"].value().recipe
        _write(path.with_suffix(".recipe.json"), recipe.to_json().encode())
    page = path.with_suffix(".report.html")
    write_report(page, results["build_report"].value())
    print(model.name)
    for stage in ("final_placement", "emission", "simulation"):
        for figure in figures_of(stage, results[stage]):
            print(f"  {figure}")
    print(f"  written to {path}; report: {page}")


def _output(model: "Subject", arguments: argparse.Namespace) -> Path:
    path: Path | None = arguments.output
    return Path(f"{model.name}.ipuexe") if path is None else path


def _check_output(path: Path) -> None:
    """Before any work: that the package can be written there.

    Raises:
        InvalidInput: it cannot.
    """
    from compiler.errors import InvalidInput

    if path.is_dir():
        reason = "it is a folder"
    elif not path.parent.is_dir():
        reason = "its folder does not exist"
    elif not os.access(path.parent, os.W_OK):
        reason = "its folder cannot be written"
    else:
        return
    raise InvalidInput(
        f"the package cannot be written: {reason}",
        stage="build",
        subject=str(path),
        next_step="name a file in a folder that exists and can be written",
    )


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_bytes(content)
    part.replace(path)
