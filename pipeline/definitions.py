"""What Dagster loads: the assets of every model and a job that builds each.

Loading imports Dagster and reads source for code versions; nothing that computes is imported before a step
runs.
"""

import dagster as dg

from assets.builds import Builds
from assets.factory import group_of, key_of, model_assets
from compiler.chain import CHAIN
from compiler.models.programs import PROGRAMS, Program


def job_name(model: Program) -> str:
    """The name of the job that builds a model."""
    return f"build_{group_of(model)}"


def definitions_of(models: list[Program]) -> dg.Definitions:
    """The definitions for some models."""
    return dg.Definitions(
        assets=[asset for model in models for asset in model_assets(model)],
        jobs=[
            dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
                job_name(model),
                selection=[key_of(model, stage.name) for stage in CHAIN],
                description=f"Build {model.name}: {model.summary}.",
            )
            for model in models
        ],
        resources={
            "builds": Builds.configure_at_launch()  # pyright: ignore[reportUnknownMemberType]  # Dagster's
        },
        # Stages use several threads themselves, and a process for each step costs more than a reused result.
        executor=dg.in_process_executor,
    )


defs = definitions_of(list(PROGRAMS.values()))
