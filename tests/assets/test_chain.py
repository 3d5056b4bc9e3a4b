"""The chain of a model: the results of a direct build, explicit versions, small metadata, honest failures."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest

from assets import factory
from assets.factory import key_of
from compiler.chain import chain_of
from compiler.compile import Results, build, stage_of
from compiler.config import BuildOptions
from compiler.errors import DoesNotFit
from compiler.fingerprint import REPOSITORY, Fingerprint, fingerprint
from compiler.models.programs import Program
from compiler.models.subjects import GraphModel
from compiler.store.key import stage_code
from pipeline.model_definitions import definitions_of
from tests.assets.launching import (
    data_versions,
    failures,
    launched,
    materialized,
    metadata_of,
    names_of,
    stale,
    verdicts,
)
from tests.stages.builds import MODEL, SMALL, SUBJECTS, TOO_LARGE, opened

ATTENTION = GraphModel(name="attention-smoke")


def test_definitions_load() -> None:
    dg.Definitions.validate_loadable(definitions_of([SMALL, TOO_LARGE, MODEL]))


@pytest.mark.parametrize("kind", SUBJECTS)
def test_assets_and_the_direct_build_give_equal_digests(
    kind: str, instance: dg.DagsterInstance, builds: tuple[Path, Mapping[str, Results]], tmp_path: Path
) -> None:
    """From a cold store as from a warm one."""
    subject, options = SUBJECTS[kind]
    wanted = {name: result.digest for name, result in builds[1][kind].items()}
    for root in (tmp_path / "store", builds[0]):
        result = launched(instance, subject, root, options=options)
        assert result.success
        found = materialized(result)
        assert data_versions(found) == wanted
        assert {name: metadata_of(entry)["digest"] for name, entry in found.items()} == wanted


@pytest.mark.parametrize("kind", SUBJECTS)
def test_versions_and_metadata_are_explicit(
    kind: str, instance: dg.DagsterInstance, builds: tuple[Path, Mapping[str, Results]]
) -> None:
    """The code version is the code component of the key; metadata is small, its sentence first."""
    (subject, options), results = SUBJECTS[kind], builds[1][kind]
    found = materialized(launched(instance, subject, builds[0], options=options))
    assert list(found) == names_of(subject)
    for name, entry in found.items():
        code = stage_code(stage_of(name, subject), REPOSITORY).digest
        assert (entry.tags or {})["dagster/code_version"] == code
        document = results[name].record.document["code"]
        assert isinstance(document, dict)
        assert document["fingerprint"] == code
        shown = metadata_of(entry)
        assert next(iter(shown)) == "result"
        assert shown["result"].startswith("reused, ")
        assert shown["why"] == "nothing that decides the result changed"
        assert shown["key"] == results[name].key
        assert Path(shown["record"]).is_file()
        assert len(json.dumps(shown)) < 4096
    assert Path(metadata_of(found["build_report"])["page"]).read_text().startswith("<!DOCTYPE html>")
    assert metadata_of(found["simulation"])["run 1 (cycles, simulated)"] > 1000
    assert metadata_of(found["final_placement"])["fullest tile (bytes, measured)"] < 638_976


def test_a_model_that_cannot_be_built_fails_where_it_is_planned(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    """Its chain is there, and says in one error which nodes are the reason; nothing behind it runs."""
    result = launched(instance, ATTENTION, tmp_path / "store")
    assert not result.success
    assert list(materialized(result)) == ["model_graph"]
    assert failures(result) == {
        "attention_smoke__baseline_candidate": (
            "unsupported (planner): attention-smoke: the planner has no constructor for attention.\n"
            "  graph nodes: attention\n"
            "  next: build a part of the model without these nodes"
        )
    }
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    shown = failed.step_failure_data.error
    assert shown is not None
    assert shown.cls_name == "Unsupported"
    assert shown.to_string().rstrip() == failures(result)["attention_smoke__baseline_candidate"]


def test_a_rebuild_says_why(instance: dg.DagsterInstance, warm: tuple[Path, Results], tmp_path: Path) -> None:
    """A larger model, under the same name, against the store's last build of it."""
    shutil.copytree(warm[0], tmp_path / "store")
    larger = Program(name=SMALL.name, summary=SMALL.summary, rows=4, panels=1)
    found = materialized(launched(instance, larger, tmp_path / "store"))
    shown = metadata_of(found["expansion"])
    assert shown["result"].startswith("computed in ")
    assert shown["why"] == "input rows 3 -> 4"
    for entry in found.values():
        assert len(json.dumps(metadata_of(entry))) < 4096


def test_equal_bytes_leave_everything_fresh(
    instance: dg.DagsterInstance, warm: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stage of new code is out of date until it ran; as its bytes are equal, nothing behind it ever is."""
    assert launched(instance, SMALL, warm[0]).success
    assert stale(instance, SMALL) == {}

    def edited(module: str) -> Fingerprint:
        code = fingerprint(module)
        if module != stage_of("final_placement", SMALL).module:
            return code
        files = (*code.files, ("compiler/added.py", "0" * 64))
        return Fingerprint(module=module, modules=code.modules, files=files, root=code.root)

    monkeypatch.setattr(factory, "fingerprint", edited)
    assert stale(instance, SMALL) == {"final_placement": ["has a new code version"]}
    assert launched(instance, SMALL, warm[0], stages=["final_placement"]).success
    assert stale(instance, SMALL) == {}
    assert launched(instance, SMALL, warm[0], stages=["expansion"], cache="refresh").success
    assert stale(instance, SMALL) == {}


def test_new_bytes_make_what_takes_them_out_of_date(
    instance: dg.DagsterInstance, warm: tuple[Path, Results]
) -> None:
    assert launched(instance, SMALL, warm[0]).success
    larger = Program(name=SMALL.name, summary=SMALL.summary, rows=4, panels=1)
    assert launched(instance, larger, warm[0], stages=["expansion"]).success
    assert set(stale(instance, SMALL)) == {
        stage.name for stage in chain_of(SMALL) if "expansion" in stage.after
    }


def test_one_stage_alone_takes_what_was_materialized(
    instance: dg.DagsterInstance, warm: tuple[Path, Results]
) -> None:
    """The last materialization counts, not what the model would give now."""
    assert launched(instance, SMALL, warm[0]).success
    larger = Program(name=SMALL.name, summary=SMALL.summary, rows=4, panels=1)
    result = launched(instance, larger, warm[0], stages=["final_placement"])
    assert result.success
    (entry,) = materialized(result).values()
    assert metadata_of(entry)["digest"] == warm[1]["final_placement"].digest


def test_one_stage_alone_builds_what_it_stands_behind_when_it_is_gone(
    instance: dg.DagsterInstance, warm: tuple[Path, Results], tmp_path: Path
) -> None:
    """An empty store, and none at all, with and without a history."""
    for _ in range(2):
        for root, cache in ((tmp_path / "new", "use"), (tmp_path / "none", "off")):
            result = launched(instance, SMALL, root, stages=["emission"], cache=cache)
            assert result.success
            (entry,) = materialized(result).values()
            assert metadata_of(entry)["digest"] == warm[1]["emission"].digest
        shutil.rmtree(tmp_path / "new")
        assert launched(instance, SMALL, warm[0]).success
    assert not (tmp_path / "none").exists()


def test_every_check_passes_on_a_good_build(instance: dg.DagsterInstance, warm: tuple[Path, Results]) -> None:
    found = verdicts(launched(instance, SMALL, warm[0]))
    assert set(found) == {
        "expansion/program_verified",
        "expansion/second_build_identical",
        "kernel_objects/second_build_identical",
        "provisional_placement/tensors_fit",
        "provisional_placement/second_build_identical",
        "support_sizing/exchanges_scheduled",
        "support_sizing/code_fits",
        "support_sizing/second_build_identical",
        "final_placement/every_tile_fits",
        "final_placement/placement_checked",
        "final_placement/second_build_identical",
        "emission/delivery_exact",
        "emission/package_valid",
        "emission/second_build_identical",
        "simulation/numerics_equal",
        "simulation/second_build_identical",
        "simulation/no_more_cycles",
        "build_report/second_build_identical",
    }
    assert all(found.values())


def test_a_failure_stops_what_stands_behind(instance: dg.DagsterInstance, tmp_path: Path) -> None:
    """New or reused: nothing is materialized of it, and the step fails in the words of the error."""
    with opened(tmp_path / "store") as store, pytest.raises(DoesNotFit) as raised:
        build(store, TOO_LARGE, BuildOptions())
    for cache in ("use", "refresh"):
        result = launched(instance, TOO_LARGE, tmp_path / "store", cache=cache)
        assert not result.success
        assert list(materialized(result)) == ["expansion", "kernel_objects"]
        assert failures(result) == {"too_large__provisional_placement": str(raised.value)}
        assert verdicts(result) == {
            "expansion/program_verified": True,
            "expansion/second_build_identical": True,
            "kernel_objects/second_build_identical": True,
            "provisional_placement/tensors_fit": False,
        }
        assert instance.get_latest_materialization_event(key_of(TOO_LARGE, "provisional_placement")) is None


def test_other_numerics_fail_their_check(
    instance: dg.DagsterInstance, warm: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result exists, since one wants to look at it; the run fails all the same."""

    def other(found: object, wanted: object) -> str:  # noqa: ARG001  # the signature of what it stands for
        return "1 of 96 elements differ"

    monkeypatch.setattr("compiler.evaluation.stage_simulation._difference", other)
    result = launched(instance, SMALL, warm[0], stages=["simulation"], cache="off")
    assert not result.success
    assert list(materialized(result)) == ["simulation"]
    (check,) = [check for check in result.get_asset_check_evaluations() if not check.passed]
    assert check.description is not None
    assert check.description.startswith("run 0, output y: 1 of 96 elements differ; run 1")


def test_verifying_fails_where_bytes_differ(
    instance: dg.DagsterInstance, warm: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal results verify; a stage that gives something else under the same key fails its step."""
    assert launched(instance, SMALL, warm[0], cache="verify").success

    def other(found: object, wanted: object) -> str:  # noqa: ARG001  # the signature of what it stands for
        return "1 of 96 elements differ"

    monkeypatch.setattr("compiler.evaluation.stage_simulation._difference", other)
    result = launched(instance, SMALL, warm[0], cache="verify")
    assert list(materialized(result)) == names_of(SMALL)[:-2]
    assert "gave different bytes" in failures(result)["small__simulation"]
    assert not verdicts(result)["simulation/second_build_identical"]
