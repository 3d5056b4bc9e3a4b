"""The schedule of nightly builds, evaluated, and what failed runs say of themselves."""

import datetime as dt
from pathlib import Path

import dagster as dg

from compiler.models.registry import MODELS
from compiler.models.subjects import GraphModel
from compiler.planner.supported import obstacle
from pipeline.definitions import defs
from pipeline.model_definitions import keys_of
from pipeline.notices import FAILURE_TAG, STAGE_TAG, failure_notices
from tests.assets.launching import launched

DAY = dt.datetime(2026, 3, 14, 2, tzinfo=dt.UTC)


def test_a_night_builds_each_representative_model_that_can_be(instance: dg.DagsterInstance) -> None:
    """One run each, of all stages, which compares with the store."""
    repository = defs.get_repository_def()
    context = dg.build_schedule_context(
        instance=instance, scheduled_execution_time=DAY, repository_def=repository
    )
    requests = repository.get_schedule_def("nightly").evaluate_tick(context).run_requests
    assert requests is not None
    wanted = [model.name for model in MODELS if model.representative and obstacle(model.build()) is None]
    assert "siglip-mlp" in wanted
    assert [request.tags["tilewright/model"] for request in requests] == wanted
    for name, request in zip(wanted, requests, strict=True):
        assert request.run_key == f"2026-03-14 {name}"
        assert request.tags["tilewright/nightly"] == "2026-03-14"
        assert request.asset_selection == keys_of(GraphModel(name=name))
        assert request.run_config == {"resources": {"builds": {"config": {"cache": "verify"}}}}


def test_the_configuration_of_a_night_is_one_that_its_job_takes() -> None:
    job = defs.resolve_job_def("nightly")
    settings = {"resources": {"builds": {"config": {"cache": "verify"}}}}
    assert dg.validate_run_config(job, settings)["resources"]["builds"]["config"]["cache"] == "verify"


def test_a_failed_run_is_tagged_with_its_stage_and_words(
    instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    result = launched(instance, GraphModel(name="attention-smoke"), tmp_path / "store")
    event = next(event for event in result.all_events if event.event_type is dg.DagsterEventType.RUN_FAILURE)
    run = instance.get_run_by_id(result.run_id)
    assert run is not None
    failure_notices(
        dg.build_run_status_sensor_context(
            sensor_name="failure_notices", dagster_event=event, dagster_instance=instance, dagster_run=run
        ).for_run_failure()
    )
    tagged = instance.get_run_by_id(result.run_id)
    assert tagged is not None
    assert tagged.tags[STAGE_TAG] == "baseline_candidate"
    assert tagged.tags[FAILURE_TAG] == (
        "unsupported (planner): attention-smoke: the planner has no constructor for attention."
    )
