"""``tilewright build``: a model from its name to a package, with simulated cycles.

Every stage goes through the store, directly or (``--dagster``) as assets, with the same results. The package
and the descriptions of its tensors are written when all stages have succeeded, the package last; a build that
fails leaves no file. Nothing of the compiler or of Dagster is imported before the command runs.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from pipeline.arguments import positive
from pipeline.build_arguments import add_build_arguments, options_of, recipe_of, subject_of
from pipeline.user_files import why_unwritable, write_whole

if TYPE_CHECKING:
    from compiler.compile import Results
    from compiler.config import BuildOptions
    from compiler.errors import InvalidInput, Measure
    from compiler.models.subjects import Subject
    from compiler.store.ahead import Workers
    from compiler.store.layout import Mode
    from compiler.store.result import StageResult
    from compiler.store.store import Store
    from compiler.store.watch import Watch


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
    parser.add_argument("--json", action="store_true", help="print one JSON document, when all is done")
    parser.set_defaults(run=_build)


def add_choices(parser: argparse.ArgumentParser) -> None:
    """What is built, how, and with which store: of every command that runs stages of a model."""
    parser.epilog = "Names are listed by tilewright models."
    parser.add_argument("model", metavar="MODEL", help="name of a model or program, or a user's model file")
    add_build_arguments(parser)
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
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes that work on candidates, and threads of the simulation (default: 1)",
    )
    parser.add_argument(
        "--backend",
        choices=("loky", "threading", "sequential", "dask"),
        default="loky",
        help="who the workers are: processes or threads of this machine, nobody, or a Dask cluster that "
        "shares the store (default: loky)",
    )
    parser.add_argument("--scheduler", metavar="ADDRESS", help="of the cluster, for --backend dask")


def _build(arguments: argparse.Namespace) -> int:
    if arguments.json and arguments.dagster:
        raise _contradiction(
            "--dagster --json", "what Dagster ran is told in its pages, and not by this command"
        )
    subject = subject_of(arguments)
    _check_output(_output(subject, arguments))
    return _with_dagster(subject, arguments) if arguments.dagster else _directly(subject, arguments)


def workers_of(arguments: argparse.Namespace, options: "BuildOptions") -> "Workers":
    """Who works on candidates: as many as simulate, whichever way their number was given.

    Raises:
        InvalidInput: a cluster without scheduler, or the other way round.
    """
    from compiler.store.ahead import Backend, Workers

    backend, scheduler = Backend(arguments.backend), cast("str | None", arguments.scheduler)
    if backend is Backend.DASK and scheduler is None:
        raise _contradiction("--backend dask", "a cluster has a scheduler", "give its --scheduler ADDRESS")
    if backend is not Backend.DASK and scheduler is not None:
        raise _contradiction("--scheduler", "only a cluster has a scheduler", "give --backend dask with it")
    return Workers(count=options.workers, backend=backend, scheduler=scheduler or "")


def _directly(model: "Subject", arguments: argparse.Namespace) -> int:
    from assets.sentences import reuse_of
    from compiler.chain import chain_of
    from compiler.compile import build
    from pipeline.cli_progress import Shown, shown

    options, recipe = options_of(arguments), recipe_of(arguments)
    workers = workers_of(arguments, options)

    def passed(name: str, result: "StageResult[Any]", showing: Shown) -> None:
        showing.passed()
        for line in _lines(name, result):
            showing.say(line)

    with (
        shown(len(chain_of(model)), is_quiet=arguments.json) as showing,
        _open(arguments, _mode(arguments), workers=workers, watch=showing) as store,
    ):
        results = build(
            store,
            model,
            options,
            recipe=recipe,
            report=lambda name, result: passed(name, result, showing),
        )
        files = _written(model, results, arguments)
    if arguments.json:
        print(json.dumps(_document(model, options, results, files, store), indent=2))
        return 0
    begun = _begun(store)
    reused = [name for name, result in results.items() if result.hit]
    _print_summary(model, results, begun, reuse_of(results, reused), files)
    return 0


def _with_dagster(model: "Subject", arguments: argparse.Namespace) -> int:
    """Run the job of the model here; what it materialized is then read from the store."""
    from compiler.store.layout import Mode

    if _mode(arguments) is Mode.OFF:
        raise _contradiction(
            "--dagster --cache off", "assets leave their results in the store, and it is off"
        )
    from assets.recall import recalled
    from assets.sentences import reuse_of
    from compiler.compile import run_stage, stage_of
    from pipeline.launch import launch

    options, recipe = options_of(arguments), recipe_of(arguments)
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
                result = run_stage(name, store, model, options, results, recipe=recipe)
            results[name] = result
        files = _written(model, results, arguments)
        _print_summary(model, results, None, reuse_of(results, launched.reused), files)
    warnings = f", {launched.warnings} warn" if launched.warnings else ""
    print(f"  checks: {launched.passed_checks} passed{warnings}")
    return 0


def settings_of(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """The same choices as settings of the resource ``Builds``.

    Raises:
        InvalidInput: as for options, recipe and workers.
    """
    options = options_of(arguments)
    workers = workers_of(arguments, options)
    return {
        "cache": arguments.cache,
        "store": str(store_root(arguments)),
        "options": options.model_dump(exclude={"version", "workers"}),
        "recipe": recipe_of(arguments),
        "workers": workers.count,
        "backend": workers.backend.value,
        "scheduler": workers.scheduler,
    }


def say_line(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # somebody waits for it


def store_root(arguments: argparse.Namespace) -> Path:
    """The folder of the store."""
    from compiler.cache_home import cache_home

    path: Path | None = arguments.store
    return (cache_home() / "store" if path is None else path).absolute()


def _mode(arguments: argparse.Namespace) -> "Mode":
    from compiler.store.layout import Mode

    return Mode[cast("str", arguments.cache).upper()]


def _open(
    arguments: argparse.Namespace,
    mode: "Mode",
    *,
    workers: "Workers | None" = None,
    watch: "Watch | None" = None,
) -> "Store":
    from compiler.store.layout import Mode
    from compiler.store.store import Store
    from compiler.tables import table_digests

    # Whoever verifies wants a difference to be a failure; otherwise it is a warning.
    return Store.open(
        store_root(arguments),
        mode=mode,
        strict=mode is Mode.VERIFY,
        tables=table_digests(),
        workers=workers,
        watch=watch,
    )


def _lines(name: str, result: "StageResult[Any]") -> list[str]:
    """What came of a stage, and why it was computed, in two lines."""
    from assets.sentences import outcome_of, reasons_of
    from compiler.compile import figures_of

    reasons = reasons_of(result, 2)
    return [
        f"{name}: {outcome_of(result, figures_of(name, result))}",
        *([f"  since {'; '.join(reasons)}"] if reasons else []),
    ]


def _begun(store: "Store") -> int:
    """Evaluations of candidates that were begun, that of the baseline among them."""
    counts = store.statistics.counts.get(("stage", "candidate_evaluation"))
    return 0 if counts is None else counts.begun


def _written(model: "Subject", results: "Results", arguments: argparse.Namespace) -> dict[str, list[Path]]:
    """Write the package, what lies beside it and its recipe; gives their paths.

    Raises:
        InternalError: the simulated package computes something else than its program or model.
    """
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
    described: list[Path] = []
    for name, text in emitted.host_files:
        described.append(path.with_name(name))
        write_whole(described[-1], belonging(text, emitted.package).encode())
    write_whole(path, emitted.package)  # last, so that a package never lacks a description
    files = {"package": [path], "tensors": described}
    if "proposal_rounds" in results:
        recipe = results["proposal_rounds"].value().recipe
        files["recipe"] = [path.with_suffix(".recipe.json")]
        write_whole(files["recipe"][0], recipe.to_json().encode())
    files["report"] = [path.with_suffix(".report.html")]
    write_report(files["report"][0], results["build_report"].value())
    return files


def _print_summary(
    model: "Subject", results: "Results", begun: int | None, reuse: str, files: dict[str, list[Path]]
) -> None:
    """The figures of the package, by stage, and what the search took."""
    from compiler.compile import figures_of

    print(model.name)
    for stage in ("final_placement", "support_sizing", "emission", "simulation"):
        for figure in figures_of(stage, results[stage]):
            print(f"  {figure}")
    if begun is not None and "proposal_rounds" in results:
        print(f"  {_attempts(results)}")
        print(f"  evaluations begun by this build: {begun:,} candidates (measured)")
    print(f"  {reuse}")
    print(f"  written to {files['package'][0]}; report: {files['report'][0]}")


def _attempts(results: "Results") -> "Measure":
    """Candidates that the search counted against its budget."""
    from compiler.compile import figures_of
    from compiler.evaluation.ledger import ATTEMPTS

    return next(
        each for each in figures_of("proposal_rounds", results["proposal_rounds"]) if each.name == ATTEMPTS
    )


def _document(
    model: "Subject",
    options: "BuildOptions",
    results: "Results",
    files: dict[str, list[Path]],
    store: "Store",
) -> dict[str, object]:
    """What ``--json`` prints: plain values, figures with their kinds."""
    from compiler.compile import figures_of

    stages: list[dict[str, object]] = [
        {
            "name": name,
            "status": result.status.value,
            "seconds": round(result.seconds, 3),
            "saved_seconds": round(result.saved_seconds, 3),
            "because": list(result.explanation),
            "key": result.key,
            "digest": result.digest,
            "outputs": {output.name: output.ref.digest for output in result.record.outputs},
            "figures": [_figure(figure) for figure in figures_of(name, result)],
        }
        for name, result in results.items()
    ]
    document: dict[str, object] = {
        "model": model.name,
        "options": options.model_dump(mode="json"),
        "stages": stages,
        "files": {kind: [str(path.absolute()) for path in paths] for kind, paths in files.items()},
        "store": {
            "path": str(store.root),
            "events": [
                {"kind": event.kind.value, "subject": event.subject, "message": event.message}
                for event in store.statistics.events
            ],
        },
    }
    if "proposal_rounds" in results:
        document["search"] = {"attempts": _attempts(results).value, "evaluations_begun": _begun(store)}
    return document


def _figure(figure: "Measure") -> dict[str, object]:
    return {
        "name": figure.name,
        "value": figure.value,
        "unit": figure.unit,
        "kind": figure.kind.value,
        "limit": figure.limit,
    }


def _contradiction(words: str, message: str, next_step: str = "leave one of the two out") -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(message, stage="build", subject=words, next_step=next_step)


def _output(model: "Subject", arguments: argparse.Namespace) -> Path:
    path: Path | None = arguments.output
    return Path(f"{model.name}.ipuexe") if path is None else path


def _check_output(path: Path) -> None:
    """Before any work: that the package can be written there.

    Raises:
        InvalidInput: it cannot.
    """
    from compiler.errors import InvalidInput

    reason = why_unwritable(path)
    if reason is None:
        return
    raise InvalidInput(
        f"the package cannot be written: {reason}",
        stage="build",
        subject=str(path),
        next_step="name a file in a folder that exists and can be written",
    )
