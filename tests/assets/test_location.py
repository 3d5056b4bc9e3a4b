"""Where Dagster finds the assets, and what finding them costs."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from compiler.chain import MODEL_CHAIN, chain_of
from compiler.fingerprint import REPOSITORY
from compiler.models.programs import PROGRAMS
from compiler.models.registry import MODELS
from compiler.models.subjects import GraphModel
from pipeline.definitions import defs
from pipeline.home import SETTINGS, VARIABLE
from pipeline.kernel_samples import SAMPLES

ROOT = REPOSITORY.root


def test_all_ways_to_the_assets_name_one_location() -> None:
    """A job that is queued under one name is looked for under the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    assert project["dagster"] == {"module_name": "pipeline.definitions", "code_location_name": "tilewright"}
    assert project["dg"]["project"]["code_location_target_module"] == "pipeline.definitions"
    assert project["dg"]["project"]["code_location_name"] == "tilewright"
    workspace = (ROOT / "workspace.yaml").read_text()
    assert "module_name: pipeline.definitions\n" in workspace
    assert "location_name: tilewright\n" in workspace


def test_every_model_has_a_chain_and_a_job() -> None:
    """Whether or not it can be built."""
    keys = {key.to_user_string() for key in defs.resolve_asset_graph().get_all_asset_keys()}
    subjects = [*(GraphModel(name=model.name) for model in MODELS), *PROGRAMS.values()]
    others = {f"user_model/{stage.name}" for stage in MODEL_CHAIN} | {
        f"calibration/{name}" for name in SAMPLES
    }
    assert keys - others == {
        f"{subject.name.replace('-', '_')}/{stage.name}"
        for subject in subjects
        for stage in chain_of(subject)
    }
    jobs = {job.name for job in defs.resolve_all_job_defs()}
    assert {f"build_{subject.name.replace('-', '_')}" for subject in subjects} < jobs
    assert {"build_user_model", "calibrate_kernels", "nightly"} < jobs


def test_loading_the_definitions_imports_nothing_that_computes() -> None:
    heavy = "{'numba', 'capnp', 'compiler.compile'}"
    assert _said(f"import sys, pipeline.definitions; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_the_compiler_imports_no_dagster() -> None:
    """CLI and search run without an orchestrator."""
    assert _said("import sys, compiler.compile; print('dagster' in sys.modules)") == "False"


COST = """
import sys, time
opened = []
sys.addaudithook(lambda event, given: opened.append(str(given[0])) if event == "open" else None)
began = time.process_time()
import pipeline.definitions
print(time.process_time() - began)
print(*opened, sep="\\n")
"""


def test_loading_the_definitions_is_quick_and_opens_no_model(tmp_path: Path) -> None:
    """Under two seconds of a processor once the sources are known; of our files only code and its data."""
    _said(COST, XDG_CACHE_HOME=str(tmp_path))
    seconds, *opened = _said(COST, XDG_CACHE_HOME=str(tmp_path)).splitlines()
    ours = {Path(name) for name in opened if name.startswith(f"{ROOT}/") and ".venv" not in name}
    assert ours
    assert {path.suffix for path in ours} <= {".py", ".pyc", ".csv", ".capnp"}
    assert float(seconds) < 2


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("dg", "check", "defs"), ("dg", "check", "toml"), ("dagster", "definitions", "validate")]
)
def test_the_commands_of_dagster_find_the_definitions_valid(words: tuple[str, ...], tmp_path: Path) -> None:
    """From the folder of the checkout, without being told where."""
    (tmp_path / "dagster.yaml").write_text(SETTINGS)
    program, *rest = words
    done = subprocess.run(
        [str(Path(sys.executable).with_name(program)), *rest],
        cwd=ROOT,
        env={
            **os.environ,
            VARIABLE: str(tmp_path),
            "DAGSTER_DISABLE_TELEMETRY": "1",
            "PYTHONPATH": str(ROOT),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _said(script: str, **settings: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
