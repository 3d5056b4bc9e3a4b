"""One chain of assets for each model: what Dagster shows of a build.

Key ``[model, stage]``, group = model: the graph shows for each model what is out of date, "Materialize all"
on its group builds it, and figures plot over time. (Partitioned assets never look out of date.) What Dagster
compares is always explicit:

===============  ==========================================================================================
code version     digest of the stage's code, the one in its keys; read when definitions load
data version     digest of the result: another run with equal bytes leaves everything behind it fresh
who skips work   the store; Dagster runs every selected step, and an unchanged one costs some milliseconds
===============  ==========================================================================================

Assets hand each other no values: they are connected by ``deps`` and find their inputs in the store.

A stage that fails, now or when the reused failure was computed, materializes nothing. Its step fails with the
text of the error, and what stands behind it does not run.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg

from assets.builds import Builds
from assets.checks import checks_of
from assets.metadata import metadata_of
from compiler.chain import ChainStage, chain_of
from compiler.errors import TilewrightError
from compiler.fingerprint import fingerprint
from compiler.models.subjects import Subject


def model_assets(model: Subject) -> list[dg.AssetsDefinition]:
    """The chain of a model, in order."""
    return [_stage_asset(model, stage) for stage in chain_of(model)]


def group_of(model: Subject) -> str:
    """The group of a model's assets and the first part of their keys.

    It is the model's name with _ for -, since names of groups are made of letters, digits and _.
    """
    return model.name.replace("-", "_")


def key_of(model: Subject, stage: str) -> dg.AssetKey:
    """The key of a stage's asset."""
    return dg.AssetKey([group_of(model), stage])


def _stage_asset(model: Subject, stage: ChainStage) -> dg.AssetsDefinition:
    key, checks = key_of(model, stage.name), checks_of(stage.name)

    @dg.asset(
        key=key,
        deps=[key_of(model, name) for name in stage.after],
        group_name=group_of(model),
        code_version=fingerprint(stage.module).digest,
        description=stage.summary,
        kinds={"python"},
        tags={"stage": stage.name},
        check_specs=[check.spec(key) for check in checks],
    )
    def run(
        context: dg.AssetExecutionContext, builds: Builds
    ) -> Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]:
        from compiler.compile import figures_of

        try:
            result = builds.run(model, stage.name, _materialized_keys(context.instance, model))
            figures = figures_of(stage.name, result)
        except TilewrightError as error:
            yield from (check.refused(key, error) for check in checks if check.is_breach(error))
            raise dg.Failure(description=str(error), allow_retries=False) from error
        metadata = metadata_of(builds.opened, result, figures)
        context.log.info("%s: %s", stage.name, metadata["result"].value)
        yield dg.MaterializeResult(
            data_version=dg.DataVersion(result.digest),
            metadata=metadata,
            check_results=[check.judged(key, result, figures) for check in checks],
        )

    return run


def _materialized_keys(instance: dg.DagsterInstance, model: Subject) -> dict[str, str]:
    """For each stage of a model that was materialized, the store's key of its last result."""
    keys: dict[str, str] = {}
    for stage in chain_of(model):
        event = instance.get_latest_materialization_event(key_of(model, stage.name))
        materialization = None if event is None else event.asset_materialization
        if materialization is not None and "key" in materialization.metadata:
            keys[stage.name] = str(materialization.metadata["key"].value)
    return keys
