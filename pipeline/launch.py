"""Runs the job of a model in this process, as ``dg launch`` would, and says in short what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, final

import dagster as dg

from assets.factory import key_of
from compiler.chain import chain_of
from compiler.models.subjects import Subject
from pipeline.definitions import definitions_of, job_name
from pipeline.home import home, prepare

_CONSOLE: Final = {"console": {"config": {"log_level": "CRITICAL"}}}
"""Dagster logs failures with tracebacks; what a person needs to know is in their text."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What came of a run.

    Args:
        keys: for each stage that was materialized, the store's key of its result.
        lines: the same stages, and what came of each.
        failures: what failed, in the words of the errors and checks; empty when the run succeeded.
    """

    keys: Mapping[str, str]
    lines: tuple[str, ...]
    failures: tuple[str, ...]


def launch(model: Subject, settings: Mapping[str, str | int]) -> Launched:
    """Build a model as assets, with its history in the home of Dagster.

    Args:
        model: the model.
        settings: of the resource ``Builds``.

    Raises:
        InvalidInput: there can be no home.
    """
    folder = home()
    prepare(folder)
    job = definitions_of([model]).resolve_job_def(job_name(model))
    with dg.DagsterInstance.from_config(str(folder)) as instance:
        run = job.execute_in_process(
            instance=instance,
            run_config={"resources": {"builds": {"config": dict(settings)}}, "loggers": _CONSOLE},
            raise_on_error=False,
        )
        shown = _materialized(model, run)
        return Launched(
            keys={name: str(metadata["key"].value) for name, metadata in shown.items()},
            lines=tuple(f"{name}: {metadata['result'].value}" for name, metadata in shown.items()),
            failures=() if run.success else _failures(run),
        )


def _materialized(
    model: Subject, run: dg.ExecuteInProcessResult
) -> dict[str, Mapping[str, dg.MetadataValue[Any]]]:
    """Metadata of each stage that was materialized."""
    stages = {key_of(model, stage.name): stage.name for stage in chain_of(model)}
    shown: dict[str, Mapping[str, dg.MetadataValue[Any]]] = {}
    for event in run.get_asset_materialization_events():
        materialization = event.step_materialization_data.materialization
        shown[stages[materialization.asset_key]] = materialization.metadata
    return shown


def _failures(run: dg.ExecuteInProcessResult) -> tuple[str, ...]:
    """The text of each error; for a failed check of a result that exists, what the check says."""
    messages: list[str] = []
    for event in run.all_events:
        if not event.is_step_failure:
            continue
        data = event.step_failure_data
        if data.user_failure_data is not None and data.user_failure_data.description is not None:
            messages.append(data.user_failure_data.description)
        elif data.error is not None and data.error.cls_name != "DagsterAssetCheckFailedError":
            messages.append(data.error.message.strip())
    refused = [check for check in run.get_asset_check_evaluations() if not check.passed]
    messages += [
        f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {check.description}"
        for check in refused
        if not messages
    ]
    return tuple(messages) or ("the run failed before any stage began",)
