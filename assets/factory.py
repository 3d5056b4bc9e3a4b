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
from typing import Any, TypeAlias

import dagster as dg

from assets import pages, search_holds, slowdown
from assets.builds import Builds, Upstream
from assets.checks import checks_of
from assets.failure import StageFailed
from assets.metadata import MOST_REASONS, OUTCOME, UNCHANGED, metadata_of, outcome_against
from assets.sentences import reasons_of
from compiler.chain import ChainStage, chain_of
from compiler.errors import TilewrightError
from compiler.fingerprint import fingerprint
from compiler.models.subjects import Subject

Yielded: TypeAlias = dg.MaterializeResult[Any] | dg.AssetCheckResult
"""What the step of an asset yields."""


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
    key = key_of(model, stage.name)

    @dg.asset(
        key=key,
        deps=[key_of(model, name) for name in stage.after],
        group_name=group_of(model),
        code_version=fingerprint(stage.module).digest,
        description=stage.summary,
        kinds={"python"},
        tags={"stage": stage.name},
        check_specs=check_specs_of(key, stage),
    )
    def run(context: dg.AssetExecutionContext, builds: Builds) -> Iterator[Yielded]:
        def upstream(name: str) -> str | None:
            return _key_of_last(context.instance, model, name)

        yield from run_stage_asset(context, builds, key, model, stage, upstream)

    return run


def check_specs_of(key: dg.AssetKey, stage: ChainStage) -> list[dg.AssetCheckSpec]:
    """The declarations of what is checked of a stage's asset."""
    specs = [check.spec(key) for check in checks_of(stage.name)]
    if stage.name == slowdown.STAGE:
        specs.append(slowdown.spec(key))
    if search_holds.is_checked(stage):
        specs.append(search_holds.spec(key))
    return specs


def run_stage_asset(
    context: dg.AssetExecutionContext,
    builds: Builds,
    key: dg.AssetKey,
    model: Subject,
    stage: ChainStage,
    upstream: Upstream,
) -> Iterator[Yielded]:
    """What the asset of a stage does: run it through the store, and say what came of it.

    Args:
        context: of the step.
        builds: runs stages.
        key: of the asset.
        model: what is built.
        stage: of its chain.
        upstream: gives the key of a stage that was materialized before.

    Raises:
        StageFailed: it gave an error.
    """
    from compiler.compile import figures_of

    checks, last = checks_of(stage.name), _last_materialization(context.instance, key)
    try:
        result = builds.run(model, stage.name, upstream)
        figures = figures_of(stage.name, result)
    except TilewrightError as error:
        yield from (check.refused(key, error) for check in checks if check.is_breach(error))
        raise StageFailed(error) from None
    choices = builds.choices(model)
    metadata = metadata_of(builds.opened, result, figures, choices, builds.build_options().inject.fault)
    metadata[OUTCOME] = dg.MetadataValue.text(outcome_against(result.digest, last))
    if stage.name == pages.STAGE:
        page = pages.shown_page(builds.opened, key.path[0], result)
        if page is not None:
            metadata["page"] = dg.PathMetadataValue(str(page))
    reasons = "; ".join(reasons_of(result, MOST_REASONS)) or UNCHANGED
    context.log.info(
        "%s: %s; since %s; %s", stage.name, metadata["result"].value, reasons, metadata[OUTCOME].value
    )
    verdicts = [check.judged(key, result, figures) for check in checks]
    if stage.name == slowdown.STAGE:
        verdict = slowdown.compared(key, figures, choices, last, is_strict=builds.cache == "verify")
        verdicts.append(verdict)
        if not verdict.passed:
            notice = {slowdown.SLOWER_TAG: f"{stage.name}: {verdict.description}"}
            context.instance.add_run_tags(context.run.run_id, notice)
    if search_holds.is_checked(stage):
        verdicts.append(search_holds.compared(key, builds, model))
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(result.digest), metadata=metadata, check_results=verdicts
    )


def _last_materialization(instance: dg.DagsterInstance, key: dg.AssetKey) -> dg.AssetMaterialization | None:
    event = instance.get_latest_materialization_event(key)
    return None if event is None else event.asset_materialization


def _key_of_last(instance: dg.DagsterInstance, model: Subject, stage: str) -> str | None:
    """The store's key of the last result that a stage materialized."""
    materialization = _last_materialization(instance, key_of(model, stage))
    if materialization is None or "key" not in materialization.metadata:
        return None
    return str(materialization.metadata["key"].value)
