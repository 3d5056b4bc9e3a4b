"""A small model, and what a build of it gave, stage by stage."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from compiler.compile import Results
from compiler.fingerprint import REPOSITORY
from compiler.models.programs import Program
from compiler.store.store import Store
from compiler.tables import table_digests

SMALL = Program(name="small", summary="as small as it gets", rows=3, panels=1)
TOO_LARGE = Program(name="too-large", summary="does not fit into its tiles", rows=4000, panels=2)

STAGES = {
    "expansion": "compiler.models.stage_program",
    "provisional_placement": "compiler.placement.stage_provisional",
    "exchange.demand": "compiler.exchange.stage_demand",
    "exchange.order": "compiler.exchange.stage_order",
    "exchange.timing": "compiler.exchange.stage_timing",
    "exchange.rows": "compiler.exchange.stage_rows",
    "kernel_objects": "compiler.kernels.stage_objects",
    "linking": "compiler.package.stage_linking",
    "support_sizing": "compiler.package.stage_support",
    "final_placement": "compiler.evaluation.stage_final_placement",
    "emission": "compiler.evaluation.stage_emission",
    "simulation": "compiler.evaluation.stage_simulation",
}
"""Every stage, and the module that declares it."""

_SCRIPT = """
import json, sys
from pathlib import Path
from compiler.compile import build
from compiler.config import BuildOptions
from compiler.fingerprint import Sources
from compiler.models.programs import Program
from compiler.store.layout import Mode
from compiler.store.store import Store
from compiler.tables import table_digests

root, source, mode, workers = sys.argv[1:]
sources = Sources(root=Path(source), packages=("compiler",))
model = Program(name="small", summary="as small as it gets", rows=3, panels=1)
with Store.open(
    Path(root), mode=Mode[mode], tables=table_digests(), sources=sources, strict=True
) as store:
    results = build(store, model, BuildOptions(workers=int(workers)))
    outcomes = [
        [run.request["stage"], run.output] for result in results.values() for run in result.record.consumed
    ] + [[name, result.digest] for name, result in results.items()]
    computed = sorted(stage for (_, stage), counts in store.statistics.counts.items() if counts.misses)
    print(json.dumps({"outcomes": outcomes, "computed": computed}))
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


def build_in_process(
    source: Path, root: Path, *, mode: str = "USE", workers: int = 1, environment: Mapping[str, str]
) -> tuple[list[tuple[str, str]], list[str]]:
    """Build ``SMALL`` in a process of its own.

    Args:
        source: the folder that holds what counts as the code of stages. What runs is this checkout's, whose
            machine code is on disk.
        root: the store.
        mode: name of the store's mode.
        workers: threads.
        environment: of the process, complete.

    Returns:
        The outcomes of all runs, and the names of the stages that were computed and kept.
    """
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(root), str(source), mode, str(workers)],
        cwd=REPOSITORY.root,
        env={**environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    return [(stage, digest) for stage, digest in said["outcomes"]], said["computed"]
