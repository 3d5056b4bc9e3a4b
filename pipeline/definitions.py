"""What Dagster loads: the assets of every model and a job that builds each.

Loading imports Dagster and reads source for code versions; nothing that computes is imported before a step
runs.
"""

from typing import assert_never

import dagster as dg

from assets.builds import Builds
from assets.factory import group_of, key_of, model_assets
from compiler.chain import chain_of
from compiler.models.programs import PROGRAMS, Program
from compiler.models.registry import MODELS
from compiler.models.subjects import GraphModel, Subject


def job_name(model: Subject) -> str:
    """The name of the job that builds a model."""
    return f"build_{group_of(model)}"


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
    """The definitions for some models."""
    return dg.Definitions(
        assets=[asset for model in models for asset in model_assets(model)],
        jobs=[
            dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
                job_name(model),
                selection=[key_of(model, stage.name) for stage in chain_of(model)],
                description=f"Build {model.name}: {summary_of(model)}.",
            )
            for model in models
        ],
        resources={
            "builds": Builds.configure_at_launch()  # pyright: ignore[reportUnknownMemberType]  # Dagster's
        },
        # Stages use several threads themselves, and a process for each step costs more than a reused result.
        executor=dg.in_process_executor,
    )


defs = definitions_of([*(GraphModel(name=model.name) for model in MODELS), *PROGRAMS.values()])
