"""Where Dagster finds the assets, and what finding them costs."""

import subprocess
import sys
import tomllib

from compiler.chain import chain_of
from compiler.fingerprint import REPOSITORY
from compiler.models.programs import PROGRAMS
from compiler.models.registry import MODELS
from compiler.models.subjects import GraphModel
from pipeline.definitions import defs

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
    assert keys == {
        f"{subject.name.replace('-', '_')}/{stage.name}"
        for subject in subjects
        for stage in chain_of(subject)
    }
    jobs = {job.name for job in defs.resolve_all_job_defs()}
    assert {f"build_{subject.name.replace('-', '_')}" for subject in subjects} < jobs


def test_loading_the_definitions_imports_nothing_that_computes() -> None:
    heavy = "{'numba', 'capnp', 'compiler.compile'}"
    assert _said(f"import sys, pipeline.definitions; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_the_compiler_imports_no_dagster() -> None:
    """CLI and search run without an orchestrator."""
    assert _said("import sys, compiler.compile; print('dagster' in sys.modules)") == "False"


def _said(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()
