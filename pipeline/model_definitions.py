"""Definitions of some models: their assets, a job that builds each, and the nightly builds of those listed.

A command that builds one model makes those of this model; Dagster's pages load all (``definitions``).
"""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never

import dagster as dg

from assets.builds import Builds
from assets.factory import group_of, key_of, model_assets
from compiler.chain import chain_of
from compiler.models.programs import Program
from compiler.models.registry import MODELS
from compiler.models.subjects import GraphModel, Subject
from pipeline.lost_runs import lost_runs
from pipeline.nightly import CACHE, CRON, DAY_TAG, REPRESENTATIVE, buildable
from pipeline.notices import failure_notices

MODEL_TAG: Final = "tilewright/model"
"""Tag of every run: the model."""


def job_name(model: Subject) -> str:
    """The name of the job that builds a model."""
    return f"build_{group_of(model)}"


def keys_of(model: Subject) -> list[dg.AssetKey]:
    """The keys of a model's assets, in order."""
    return [key_of(model, stage.name) for stage in chain_of(model)]


def summary_of(model: Subject) -> str:
    """What it is, in a line."""
    match model:
        case GraphModel(name=name):
            listed = [listed.summary for listed in MODELS if listed.name == name]
            return listed[0] if listed else "a user's model"
        case Program(summary=summary):
            return summary
        case _:
            assert_never(model)


def definitions_of(models: list[Subject]) -> dg.Definitions:
    """The definitions for some models: their assets, a job for each, the nightly builds of those listed."""
    chains = dg.Definitions(
        assets=[asset for model in models for asset in model_assets(model)],
        jobs=[
            dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
                job_name(model),
                selection=keys_of(model),
                description=f"Build {model.name}: {summary_of(model)}.",
                tags={MODEL_TAG: model.name},
            )
            for model in models
        ],
        sensors=[failure_notices, lost_runs],
        resources={
            "builds": Builds.configure_at_launch()  # pyright: ignore[reportUnknownMemberType]  # Dagster's
        },
        # Stages use several threads themselves, and a process for each step costs more than a reused result.
        executor=dg.in_process_executor,
    )
    nightly = {model.name: keys_of(model) for model in models if model.name in REPRESENTATIVE}
    return dg.Definitions.merge(chains, _nightly(nightly)) if nightly else chains


def _nightly(keys: Mapping[str, list[dg.AssetKey]]) -> dg.Definitions:
    """The schedule of the nightly builds, and the job of its runs.

    Args:
        keys: of the assets of each representative model, by its name.
    """
    job = dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
        "nightly",
        selection=[key for chain in keys.values() for key in chain],
        description="The representative models; each run of the schedule takes one of them.",
    )

    @dg.schedule(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
        name="nightly",
        job=job,
        cron_schedule=CRON,
        description="Build each representative model that can be, and compare with what the store holds.",
    )
    def tick(context: dg.ScheduleEvaluationContext) -> Iterator[dg.RunRequest]:
        day = f"{context.scheduled_execution_time:%Y-%m-%d}"
        for name in buildable(keys):
            yield dg.RunRequest(
                run_key=f"{day} {name}",
                asset_selection=keys[name],
                run_config={"resources": {"builds": {"config": {"cache": CACHE}}}},
                tags={DAY_TAG: day, MODEL_TAG: name},
            )

    return dg.Definitions(jobs=[job], schedules=[tick])
