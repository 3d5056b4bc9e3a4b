"""The lane for models by path: what a person fills in, what it builds, and what is said of a wrong word."""

from pathlib import Path
from typing import Any

import dagster as dg
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from compiler.chain import MODEL_CHAIN
from compiler.compile import build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.graph.text import text_of_graph
from compiler.models.subjects import GraphModel
from pipeline.definitions import defs
from pipeline.model_files import load_model
from pipeline.user_model import JOB
from tests.assets.launching import data_versions, failures, materialized, verdicts
from tests.stages.builds import opened

MODEL = """\
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Normal


def model():
    build = GraphBuilder("tiny")
    x = build.input("x", (8, 64), fill=Normal(sigma=1.0))
    weight = build.parameter("weight", (64, 32), fill=Normal(sigma=0.125))
    build.output(build.gelu(build.gemm(x, weight, name="product"), name="y"))
    return build.finish()
"""
OPTIONS = BuildOptions(planning=PlanningOptions(tiles=8, attempts=0), simulation=SimulationOptions(runs=1))


def configured(store: Path, **model: str) -> dict[str, Any]:
    """The configuration of a run, as the launchpad takes it."""
    options = {"planning": {"tiles": 8, "attempts": 0}, "simulation": {"runs": 1}}
    return {
        "resources": {
            "user_model": {"config": model},
            "builds": {"config": {"store": str(store), "options": options}},
        },
        "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
    }


def test_a_users_file_is_built_as_without_dagster(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """Then another file in the same lane: nothing of the first is taken for it."""
    path = tmp_path / "mine.py"
    path.write_text(MODEL)
    job = defs.resolve_job_def(JOB)
    wanted: dict[str, dict[str, str]] = {}
    for text in (MODEL, MODEL.replace("(64, 32)", "(64, 48)")):
        path.write_text(text)
        result = job.execute_in_process(
            instance=instance, run_config=configured(tmp_path / "store", path=str(path), function="model")
        )
        assert result.success
        graph = load_model(str(path))
        subject = GraphModel(name=graph.name, text=text_of_graph(graph, with_provenance=True))
        with opened(tmp_path / "store") as store:
            direct = build(store, subject, OPTIONS)
        assert data_versions(materialized(result)) == {name: step.digest for name, step in direct.items()}
        wanted[text] = data_versions(materialized(result))
    first, second = wanted.values()
    assert {name for name in first if first[name] == second[name]} <= {"kernel_objects"}
    assert list(first) == [stage.name for stage in MODEL_CHAIN]


def test_an_onnx_model_is_built(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """The lane takes it as any other file, and its simulated package agrees with the reference."""
    nodes = [
        helper.make_node("Gemm", ["x", "weight", "bias"], ["product"]),
        helper.make_node("Gelu", ["product"], ["y"], approximate="tanh"),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 64])
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 32])
    drawn = np.random.default_rng(3)
    constants = [
        numpy_helper.from_array((drawn.standard_normal(shape) / 8).astype(np.float32), name)
        for name, shape in (("weight", (64, 32)), ("bias", (32,)))
    ]
    graph = helper.make_graph(nodes, "g", [given], [result], constants)
    path = tmp_path / "mine.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]).SerializeToString()
    )
    ran = defs.resolve_job_def(JOB).execute_in_process(
        instance=instance, run_config=configured(tmp_path / "store", path=str(path))
    )
    assert ran.success
    assert verdicts(ran)["simulation/numerics_equal"]
    assert list(materialized(ran)) == [stage.name for stage in MODEL_CHAIN]


def test_a_file_that_is_none_fails_in_one_sentence(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    path = tmp_path / "none.py"
    result = defs.resolve_job_def(JOB).execute_in_process(
        instance=instance, run_config=configured(tmp_path / "store", path=str(path)), raise_on_error=False
    )
    assert not result.success
    (said,) = failures(result).values()
    assert said.startswith(f"invalid input (load model): {path}: ")
    assert "\n  next: " in said


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            {},
            "config for the missing entry: {'resources': {'user_model': {'config': {'path': '...'}}}}",
        ),
        (
            {"resources": {"user_model": {"config": {"path": "m.py", "file": "m.py"}}}},
            'Received unexpected config entry "file" at path root:resources:user_model:config',
        ),
        (
            {
                "resources": {
                    "user_model": {"config": {"path": "m.py"}},
                    "builds": {"config": {"options": {"planning": {"tilez": 16}}}},
                }
            },
            'Received unexpected config entry "tilez" at path root:resources:builds:config:options:planning',
        ),
        (
            {
                "resources": {
                    "user_model": {"config": {"path": "m.py"}},
                    "builds": {"config": {"options": {"planning": {"rounding": "up"}}}},
                }
            },
            "Value at path root:resources:builds:config:options:planning:rounding not in enum type",
        ),
    ],
)
def test_wrong_words_in_the_launchpad_are_told_before_the_run(config: dict[str, Any], said: str) -> None:
    with pytest.raises(dg.DagsterInvalidConfigError) as wrong:
        dg.validate_run_config(defs.resolve_job_def(JOB), config)
    assert said in str(wrong.value)


def test_options_out_of_range_fail_in_one_sentence(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODEL)
    config = configured(tmp_path / "store", path=str(tmp_path / "mine.py"))
    config["resources"]["builds"]["config"]["options"]["planning"]["tiles"] = 5000
    result = defs.resolve_job_def(JOB).execute_in_process(
        instance=instance, run_config=config, raise_on_error=False
    )
    assert failures(result) == {
        "user_model__model_graph": (
            "invalid input (build): options of the resource builds: planning.tiles: Input should be less "
            "than or equal to 1472.\n"
            "  next: correct the configuration of the run"
        )
    }
