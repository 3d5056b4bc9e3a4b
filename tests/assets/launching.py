"""Running the assets of a model, and reading what Dagster kept."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
from dagster._core.definitions.data_version import (
    CachingStaleStatusResolver,  # no public class tells what the graph shows as out of date
)
from dagster._core.loader import LoadingContextForTest

from assets.factory import key_of
from compiler.chain import chain_of
from compiler.config import BuildOptions
from compiler.models.subjects import Subject
from pipeline.model_definitions import definitions_of, job_name


def names_of(model: Subject) -> list[str]:
    """The stages of a build, in order."""
    return [stage.name for stage in chain_of(model)]


def launched(
    instance: dg.DagsterInstance,
    model: Subject,
    root: Path,
    *,
    stages: Sequence[str] | None = None,
    cache: str = "use",
    options: BuildOptions | None = None,
) -> dg.ExecuteInProcessResult:
    """Run some stages of a model, all by default."""
    settings: dict[str, object] = {"store": str(root), "cache": cache}
    if options is not None:
        settings["options"] = options.model_dump(exclude={"version", "workers"})
    job = definitions_of([model]).resolve_job_def(job_name(model))
    return job.execute_in_process(
        instance=instance,
        asset_selection=None if stages is None else [key_of(model, name) for name in stages],
        run_config={
            "resources": {"builds": {"config": settings}},
            "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
        },
        raise_on_error=False,
    )


def data_versions(found: dict[str, dg.AssetMaterialization]) -> dict[str, str]:
    """Data version of each materialization."""
    return {name: (entry.tags or {})["dagster/data_version"] for name, entry in found.items()}


def materialized(result: dg.ExecuteInProcessResult) -> dict[str, dg.AssetMaterialization]:
    """What a run materialized, by stage."""
    return {
        event.step_materialization_data.materialization.asset_key.path[
            -1
        ]: event.step_materialization_data.materialization
        for event in result.get_asset_materialization_events()
    }


def metadata_of(materialization: dg.AssetMaterialization) -> dict[str, Any]:
    """Values of the metadata."""
    return {name: entry.value for name, entry in materialization.metadata.items()}


def verdicts(result: dg.ExecuteInProcessResult) -> Mapping[str, bool]:
    """Which checks passed, by stage and name."""
    return {
        f"{check.asset_key.path[-1]}/{check.check_name}": check.passed
        for check in result.get_asset_check_evaluations()
    }


def failures(result: dg.ExecuteInProcessResult) -> dict[str, str]:
    """Description of each failed step."""
    found: dict[str, str] = {}
    for event in result.all_events:
        if event.is_step_failure:
            data = event.step_failure_data.user_failure_data
            found[str(event.step_key)] = "" if data is None else str(data.description)
    return found


def stale(instance: dg.DagsterInstance, model: Subject) -> dict[str, list[str]]:
    """For each stage that the graph shows as out of date: why."""
    graph = definitions_of([model]).resolve_asset_graph()
    resolver = CachingStaleStatusResolver(instance, graph, LoadingContextForTest(instance))
    reasons = {
        name: [cause.reason for cause in resolver.get_stale_causes(key_of(model, name))]
        for name in names_of(model)
    }
    return {name: causes for name, causes in reasons.items() if causes}
