"""A small program and a small model, and what builds of them gave, stage by stage."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compiler.compile import Results
from compiler.config import BuildOptions, PlanningOptions
from compiler.fingerprint import REPOSITORY
from compiler.models.programs import Program
from compiler.models.subjects import GraphModel, Subject
from compiler.store.store import Store
from compiler.tables import table_digests

SMALL = Program(name="small", summary="as small as it gets", rows=3, panels=1)
TOO_LARGE = Program(name="too-large", summary="does not fit into its tiles", rows=4000, panels=2)
MODEL = GraphModel(name="mlp-smoke")
MODEL_OPTIONS = BuildOptions(planning=PlanningOptions(tiles=16, attempts=1))

SUBJECTS: Mapping[str, tuple[Subject, BuildOptions]] = {
    "program": (SMALL, BuildOptions()),
    "model": (MODEL, MODEL_OPTIONS),
}
"""What these tests build, and how."""

STAGES = {
    "model_graph": "compiler.models.stage_graph",
    "planner.fronts": "compiler.planner.stage_fronts",
    "baseline_candidate": "compiler.planner.stage_baseline",
    "proposal_rounds": "compiler.evaluation.stage_proposal_rounds",
    "candidate_evaluation": "compiler.evaluation.stage_proposal_rounds",
    "expansion": "compiler.low.stage_expansion",
    "expansion of a program": "compiler.models.stage_program",
    "provisional_placement": "compiler.placement.stage_provisional",
    "exchange.demand": "compiler.exchange.stage_demand",
    "exchange.order": "compiler.exchange.stage_order",
    "exchange.timing": "compiler.exchange.stage_timing",
    "exchange.rows": "compiler.exchange.stage_rows",
    "kernel_objects": "compiler.kernels.stage_objects",
    "linking": "compiler.package.stage_linking",
    "support_sizing": "compiler.evaluation.stage_support_sizing",
    "final_placement": "compiler.evaluation.stage_final_placement",
    "emission": "compiler.evaluation.stage_emission",
    "simulation": "compiler.evaluation.stage_model_simulation",
    "simulation of a program": "compiler.evaluation.stage_simulation",
    "build_report": "compiler.report.stage_report",
}
"""Every stage, and the module that declares it."""


def stage_modules(kind: str) -> dict[str, str]:
    """The modules of the stages that a build of a kind of subject runs, by their names."""
    found = {label: module for label, module in STAGES.items() if not label.endswith(" of a program")}
    if kind == "program":
        found |= {
            label.removesuffix(" of a program"): module
            for label, module in STAGES.items()
            if label.endswith(" of a program")
        }
        for searching in (
            "model_graph",
            "planner.fronts",
            "baseline_candidate",
            "proposal_rounds",
            "candidate_evaluation",
        ):
            del found[searching]
    return found


_SCRIPT = """
import json, sys
from pathlib import Path
from compiler.compile import build
from compiler.fingerprint import Sources
from compiler.store.ahead import Workers
from compiler.store.layout import Mode
from compiler.store.store import Store
from compiler.tables import table_digests
from tests.stages.builds import SUBJECTS, outcomes

root, source, kind, mode, workers = sys.argv[1:]
sources = Sources(root=Path(source), packages=("compiler",))
subject, options = SUBJECTS[kind]
with Store.open(
    Path(root),
    mode=Mode[mode],
    tables=table_digests(),
    sources=sources,
    strict=True,
    workers=Workers(count=int(workers)),
) as store:
    results = build(store, subject, options.model_copy(update={"workers": int(workers)}))
    said = {
        "outcomes": outcomes(results),
        "computed": sorted(stage for (_, stage), each in store.statistics.counts.items() if each.misses),
        "reasons": {name: result.explanation for name, result in results.items()},
        "events": [event.message for event in store.statistics.events],
    }
    print(json.dumps(said))
"""


def opened(root: Path, **settings: object) -> Store:
    """A strict store with all tables."""
    known: dict[str, object] = {"tables": table_digests(), "strict": True, **settings}
    return Store.open(root, **known)  # pyright: ignore[reportArgumentType]  # settings by name


def outcomes(results: Results) -> list[tuple[str, str]]:
    """(stage, digest of its outcome) of every run: those inside of others first."""
    inner = [
        (str(run.request["stage"]), str(run.output))
        for result in results.values()
        for run in result.record.consumed
    ]
    return inner + [(name, str(result.digest)) for name, result in results.items()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a process says of its build.

    Args:
        outcomes: of all runs.
        computed: names of the stages that were computed and kept.
        reasons: of the chain's stages, why they were computed.
        events: messages of the store.
    """

    outcomes: list[tuple[str, str]]
    computed: set[str]
    reasons: Mapping[str, list[str]]
    events: list[str]


def build_in_process(
    kind: str,
    source: Path,
    root: Path,
    *,
    mode: str = "USE",
    workers: int = 1,
    environment: Mapping[str, str],
) -> Said:
    """Build one of ``SUBJECTS`` in a process of its own.

    Args:
        kind: which.
        source: the folder that holds what counts as the code of stages. What runs is this checkout's, whose
            machine code is on disk.
        root: the store.
        mode: name of the store's mode.
        workers: processes that work ahead, and threads of the simulation.
        environment: of the process, complete.
    """
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(root), str(source), kind, mode, str(workers)],
        cwd=REPOSITORY.root,
        env={**environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return Said(
        outcomes=[(stage, digest) for stage, digest in said["outcomes"]],
        computed=set(said["computed"]),
        reasons=said["reasons"],
        events=said["events"],
    )
