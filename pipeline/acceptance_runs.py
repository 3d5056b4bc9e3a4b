"""Carrying out the lines of ``acceptance``: builds, simulations, refusals, caches, interruptions.

Everything that a line builds goes through the store that it is given, so that a line whose results are known
takes no time and an interrupted one goes on where it was. Lines about caches and interruptions have stores of
their own, in a folder that is gone afterwards. Builds of which only the package counts end with emission.
"""

import contextlib
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, assert_never, final

import numpy as np

from compiler.compile import build, run_stage
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.errors import InternalError, Measure, NumberKind, TilewrightError
from compiler.evaluation.artifacts import Simulated
from compiler.evaluation.meanings import meanings_of
from compiler.evaluation.running import model_runs
from compiler.figures import counted
from compiler.fingerprint import REPOSITORY
from compiler.graph.codec import LABELS, STRUCTURE, StoredGraph
from compiler.models.layers import BRING_UP, HALF
from compiler.models.subjects import GraphModel
from compiler.package.format import read_package
from compiler.report.build import BuildReport, build_report
from compiler.report.timeline import PARTS
from compiler.simulator.application import SimulationOptions as DeviceOptions
from compiler.simulator.application import Simulator
from compiler.store.collect import Account, accounts
from compiler.store.layout import Mode
from compiler.store.result import StageResult
from compiler.store.stage import Namespace
from compiler.store.store import Store
from compiler.store.verify import scrub
from compiler.tables import table_digests
from pipeline.acceptance import Cached, Check, Killed, Line, Outcome, Refused, Runs, Variant
from pipeline.last_results import built_of, last_build

SEED: Final = 1
"""Of weights and inputs."""

ESTIMATE_PERCENT: Final = 5
"""By which scheduled cycles may differ from simulated ones."""

PACKAGE_CHAIN: Final = (
    "model_graph",
    "baseline_candidate",
    "proposal_rounds",
    "expansion",
    "kernel_objects",
    "provisional_placement",
    "support_sizing",
    "final_placement",
    "emission",
)
"""Stages of a build that ends with the package."""

_POLL_SECONDS: Final = 0.02


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How lines are carried out.

    Args:
        store: root of the store.
        attempts: of the search, in every build.
        workers: threads that a stage may use.
    """

    store: Path
    attempts: int
    workers: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Found:
    """What came of a demand."""

    checks: tuple[Check, ...]
    figures: tuple[Measure, ...] = ()
    parts: tuple[tuple[str, float], ...] = ()


def run_line(line: Line, settings: Settings) -> Outcome:
    """Carry out a line.

    Raises:
        TilewrightError: a build failed that should not.
    """
    began, used = time.monotonic(), _processor_seconds()
    match line.demand:
        case Runs():
            found = _runs(line.demand, settings)
        case Refused():
            found = _refused(line.demand, settings)
        case Cached():
            found = _cached(line.demand, settings)
        case Killed():
            found = _killed(line.demand, settings)
        case _:
            assert_never(line.demand)
    return Outcome(
        name=line.name,
        demand=type(line.demand).__name__.lower(),
        words=("build", *line.demand.variant.words(), "--attempts", str(settings.attempts)),
        checks=found.checks,
        figures=found.figures,
        parts=found.parts,
        wall_seconds=round(time.monotonic() - began, 3),
        processor_seconds=round(_processor_seconds() - used, 3),
    )


# A package that has to run.


def _runs(demand: Runs, settings: Settings) -> _Found:
    model, options = _subject(demand.variant), _options(demand.variant, settings, runs=demand.runs)
    with _opened(settings.store, Mode.USE) as store:
        results = build(store, model, options)
        report = build_report(built_of(store, last_build(store, model.name)))
    simulated: Simulated = results["simulation"].value()
    checks = [
        _numerics(simulated),
        *_cycles(report, simulated, demand.cycles_at_most),
    ]
    if demand.variant.rounding == "nearest" and demand.runs > 1:
        checks.append(_repeats(simulated))
    if demand.functional:
        checks.append(_same_on_another_device(results, simulated, settings, functional=True))
    if demand.again:
        checks.append(_same_on_another_device(results, simulated, settings, functional=False))
    head = report.headline
    figures = (
        *head.cycles,
        *(() if head.roofline is None else (head.roofline,)),
        head.host_bytes,
        head.fullest_tile,
        head.largest_row,
        head.package,
    )
    total = report.cycles.total
    parts = tuple((part, round(getattr(total, part), 1)) for part in PARTS)
    return _Found(checks=tuple(checks), figures=figures, parts=parts)


def _numerics(simulated: Simulated) -> Check:
    worst = min((float(values[:, 1].min()) for values in simulated.accuracy.values()), default=0.0)
    largest = max((float(values[:, 0].max()) for values in simulated.accuracy.values()), default=0.0)
    wrong = simulated.differences
    return Check(
        what="outputs against the reference of the graph",
        required="finite, within the tolerance, cosine above its limit",
        found=wrong[0] if wrong else f"largest difference {largest:.6f}, cosine {worst:.9f}",
        kind=NumberKind.SIMULATED.value,
        passed=not wrong,
    )


def _cycles(report: BuildReport, simulated: Simulated, most: int | None) -> Iterator[Check]:
    took = int(simulated.cycles.max())
    if most is not None:
        yield Check(
            what="cycles of a run",
            required=f"at most {most:,}",
            found=f"{took:,}",
            kind=NumberKind.SIMULATED.value,
            passed=took <= most,
        )
    scheduled = report.cycles.cycles.value
    distance = 100.0 * (scheduled - took) / took
    yield Check(
        what="scheduled cycles against simulated ones",
        required=f"within {ESTIMATE_PERCENT} %",
        found=f"{scheduled:,} against {took:,}, {distance:+.2f} %",
        kind=f"{NumberKind.SCHEDULED.value}, {NumberKind.SIMULATED.value}",
        passed=abs(distance) <= ESTIMATE_PERCENT,
    )


def _repeats(simulated: Simulated) -> Check:
    same = all(
        np.array_equal(run.view(np.uint32), values[0].view(np.uint32))
        for values in simulated.outputs.values()
        for run in values[1:]
    )
    return Check(
        what="outputs of runs after one upload",
        required="equal to the bit",
        found=f"{'equal' if same else 'different'} in {len(simulated.cycles)} runs",
        kind=NumberKind.SIMULATED.value,
        passed=same,
    )


def _same_on_another_device(
    results: Mapping[str, StageResult[Any]], simulated: Simulated, settings: Settings, *, functional: bool
) -> Check:
    """Runs the package on a fresh device, by the meanings of kernels or instruction by instruction."""
    stored = results["model_graph"]
    graph = StoredGraph(
        structure=stored.part("structure", STRUCTURE).value(), labels=stored.part("labels", LABELS).value()
    ).graph
    emitted = results["emission"].value()
    application = read_package(emitted.package, name="the package")
    device = Simulator(
        application,
        DeviceOptions(meanings=meanings_of(application) if functional else None, threads=settings.workers),
    )
    (run,) = model_runs(device, graph, emitted.host_files, seed=SEED, runs=1)
    differing = sum(
        int((found.view(np.uint32) != simulated.outputs[name][0].view(np.uint32)).sum())
        for name, found in run.outputs.items()
    )
    return Check(
        what="outputs of functional simulation" if functional else "outputs of another device from start-up",
        required="equal to the bit",
        found="equal" if not differing else f"{differing:,} elements differ",
        kind=NumberKind.SIMULATED.value,
        passed=not differing,
    )


# A model that cannot fit.


def _refused(demand: Refused, settings: Settings) -> _Found:
    """The command as a user gives it, in a process of its own."""
    with _folder() as folder:
        words = ["build", *demand.variant.words(), "--attempts", str(settings.attempts), "--store", "store"]
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pipeline.cli", *words],
            cwd=folder,
            env=_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
        left = sorted(path.name for path in folder.iterdir() if path.name != "store")
        with _opened(folder / "store", Mode.USE) as store:
            scrubbed = scrub(store)
    message = done.stderr
    missing = [part for part in (", limit ", " too many", "graph nodes: ", "next: ") if part not in message]
    return _Found(
        checks=(
            Check(
                what="the build",
                required="does not fit, exit status 1",
                found=f"{message.partition('.')[0][:200]}, exit status {done.returncode}",
                passed=message.startswith("does not fit (") and done.returncode == 1,
            ),
            Check(
                what="its message",
                required="bound, shortfall, nodes and remedy",
                found=f"without{','.join(missing)}" if missing else " ".join(message.split())[:1000],
                passed=not missing,
            ),
            Check(
                what="seconds",
                required=f"less than {demand.seconds}",
                found=f"{seconds:.1f}",
                kind=NumberKind.MEASURED.value,
                passed=seconds < demand.seconds,
            ),
            Check(
                what="files beside the store",
                required="none",
                found=", ".join(left) or "none",
                passed=not left,
            ),
            Check(
                what="the store",
                required="sound",
                found=f"{scrubbed.records} results, {len(scrubbed.damaged)} damaged, "
                f"{len(scrubbed.incomplete)} incomplete",
                kind=NumberKind.MEASURED.value,
                passed=not scrubbed.damaged and not scrubbed.incomplete,
            ),
        )
    )


# Caches and interruptions.


def _cached(demand: Cached, settings: Settings) -> _Found:
    """Three builds, each a process of its own, so that none has in memory what an earlier one worked out.

    One without search goes first and is not counted: machine code of hot loops is there for all of them.
    """
    digests: dict[str, str] = {}
    figures: list[Measure] = []
    with _folder() as folder:
        root = folder / "store"
        _digest_in_process(root, Mode.OFF, demand.variant, replace(settings, attempts=0))
        before: Mapping[Namespace, Account] = {}
        for state, mode in (("without store", Mode.OFF), ("cold", Mode.USE), ("warm", Mode.USE)):
            began, used = time.monotonic(), _processor_seconds()
            digests[state] = _digest_in_process(root, mode, demand.variant, settings)
            wall, processor = time.monotonic() - began, _processor_seconds() - used
            figures += [_milliseconds(f"{state}, wall", wall)]
            figures += [_milliseconds(f"{state}, processor", processor)]
            if mode is Mode.OFF:
                continue
            with _opened(root, mode) as store:
                after = accounts(store)
            for namespace, account in after.items():
                name = f"{state}, {namespace.value}"
                hits, misses = account.counts.hits, account.counts.misses
                if namespace in before:
                    hits -= before[namespace].counts.hits
                    misses -= before[namespace].counts.misses
                figures += [
                    counted(f"{name}: retained", account.disk_bytes, "bytes"),
                    counted(f"{name}: entries", account.records, "results"),
                    counted(f"{name}: hits", hits, "runs"),
                    counted(f"{name}: misses", misses, "runs"),
                ]
            before = after
    return _Found(checks=(_same_packages(digests),), figures=tuple(figures))


def _digest_in_process(root: Path, mode: Mode, variant: Variant, settings: Settings) -> str:
    """The digest of a package, built by a process that begins and ends with it, as a command does.

    Raises:
        InternalError: the build failed; its message is in this one.
    """
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as process:
        digest, failure = process.submit(_digest_or_failure, root, mode, variant, settings).result()
    if failure:
        raise InternalError(
            f"a build in a process of its own failed: {failure}",
            stage="accept",
            subject=variant.model,
            next_step="build the model by itself",
        )
    return digest


def _digest_or_failure(root: Path, mode: Mode, variant: Variant, settings: Settings) -> tuple[str, str]:
    """Digest of the package, or what is wrong: words, since errors do not travel between processes."""
    try:
        with _opened(root, mode) as store:
            return sha256(_package(store, variant, settings)).hexdigest(), ""
    except TilewrightError as error:
        return "", str(error)


def _killed(demand: Killed, settings: Settings) -> _Found:
    with _opened(settings.store, Mode.USE) as store:
        whole = _package(store, demand.variant, settings)
    with _folder() as folder:
        root = folder / "store"
        process = multiprocessing.get_context("spawn").Process(
            target=_build_package, args=(root, demand.variant, settings)
        )
        process.start()
        records = root / "ac"
        while process.is_alive() and _file_count(records) < demand.results:
            time.sleep(_POLL_SECONDS)
        was_alive = process.is_alive()
        process.kill()
        process.join()
        held = _file_count(records)
        with _opened(root, Mode.USE) as store:
            resumed = _package(store, demand.variant, settings)
            scrubbed = scrub(store)
            reused = sum(counts.hits for counts in store.statistics.counts.values())
    return _Found(
        checks=(
            Check(
                what="the build, killed",
                required=f"when the store held {demand.results} results or more",
                found=f"{held} results, {'at work' if was_alive else 'at its end'}",
                kind=NumberKind.MEASURED.value,
                passed=was_alive and held >= demand.results,
            ),
            _same_packages(
                {"uninterrupted": sha256(whole).hexdigest(), "resumed": sha256(resumed).hexdigest()}
            ),
            Check(
                what="results that the resumed build reused",
                required="some",
                found=f"{reused:,}",
                kind=NumberKind.MEASURED.value,
                passed=reused > 0,
            ),
            Check(
                what="the store",
                required="sound",
                found=f"{scrubbed.records} results, {len(scrubbed.damaged)} damaged, "
                f"{len(scrubbed.incomplete)} incomplete",
                kind=NumberKind.MEASURED.value,
                passed=not scrubbed.damaged and not scrubbed.incomplete,
            ),
        )
    )


def _build_package(root: Path, variant: Variant, settings: Settings) -> None:
    """What a process does that will be killed."""
    with _opened(root, Mode.USE) as store:
        _package(store, variant, settings)


def _file_count(folder: Path) -> int:
    return sum(1 for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else 0


def _same_packages(digests: Mapping[str, str]) -> Check:
    same = len(set(digests.values())) == 1
    return Check(
        what=f"packages, {', '.join(digests)}",
        required="the same bytes",
        found="SHA-256 " + ", ".join(digest[:16] for digest in dict.fromkeys(digests.values())),
        kind=NumberKind.MEASURED.value,
        passed=same,
    )


# Parts of all of them.


def _package(store: Store, variant: Variant, settings: Settings) -> bytes:
    model, options = _subject(variant), _options(variant, settings, runs=1)
    done: dict[str, StageResult[Any]] = {}
    for name in PACKAGE_CHAIN:
        done[name] = run_stage(name, store, model, options, done)
    package: bytes = done["emission"].value().package
    return package


def _subject(variant: Variant) -> GraphModel:
    precision = None if variant.precision is None else HALF if variant.precision == "f16" else BRING_UP
    return GraphModel(name=variant.model, batch=variant.batch, precision=precision)


def _options(variant: Variant, settings: Settings, *, runs: int) -> BuildOptions:
    return BuildOptions(
        planning=PlanningOptions(
            tiles=variant.tiles,
            rounding=variant.rounding,
            replicate_inputs=variant.replicate_inputs,
            attempts=settings.attempts,
        ),
        simulation=SimulationOptions(seed=SEED, runs=runs),
        workers=settings.workers,
    )


def _opened(root: Path, mode: Mode) -> Store:
    return Store.open(root, mode=mode, strict=True, tables=table_digests())


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="tilewright-accept-") as name:
        yield Path(name)


def _environment() -> dict[str, str]:
    """That of this process, with the folder of the running code, so that another one finds the same."""
    return {**os.environ, "PYTHONPATH": str(REPOSITORY.root)}


def _milliseconds(name: str, seconds: float) -> Measure:
    return counted(name, round(1000 * seconds), "ms")


def _processor_seconds() -> float:
    """Of this process and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
