"""Runs the job of a model in this process, as ``dg launch`` would, and says in short what came of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, final
from uuid import uuid4

import dagster as dg
from dagster import DagsterExecutionInterruptedError

from assets.factory import key_of
from assets.metadata import OUTCOME, REUSED, UNCHANGED, UNKNOWN
from compiler.chain import chain_of
from compiler.models.subjects import Subject
from pipeline.home import home, instance_of, prepare, usable
from pipeline.lost_runs import end_lost_runs
from pipeline.model_definitions import definitions_of, job_name
from pipeline.notices import failed_stage_of, failures_of, notice_of, was_interrupted
from pipeline.open_history import open_history

_CONSOLE: Final = {"console": {"config": {"log_level": "CRITICAL"}}}
"""Dagster logs failures with tracebacks; what a person needs to know is in their text."""


_REASONS: Final = 2
"""As many as are told of why a stage was computed."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What came of a run.

    Args:
        keys: for each stage that was materialized, the store's key of its result.
        failures: what failed, in the words of the errors and checks; empty when the run succeeded.
        reused: the stages whose results were there when their turn came.
        passed_checks, warnings: how many checks passed, and how many only warn.
    """

    keys: Mapping[str, str]
    failures: tuple[str, ...]
    reused: frozenset[str]
    passed_checks: int
    warnings: int


def launch(
    model: Subject,
    settings: Mapping[str, Any],
    *,
    stages: Sequence[str] | None = None,
    tags: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Launched:
    """Build a model as assets, with its history in the home of Dagster.

    Args:
        model: the model.
        settings: of the resource ``Builds``.
        stages: those that run, by name; all when None. They take what the others materialized last.
        tags: of the run. A run that fails gets those of ``notices`` as well.
        say: is told, when a stage was materialized, what came of it and why, and of checks that warn.

    Raises:
        InvalidInput: there can be no home, or it cannot be used.
        KeyboardInterrupt: the user stopped it.
    """
    folder = home()
    prepare(folder)
    job = definitions_of([model]).resolve_job_def(job_name(model))
    names = {key_of(model, stage.name): stage.name for stage in chain_of(model)}
    keys: dict[str, str] = {}
    reused: set[str] = set()
    checks: list[bool] = []

    number = str(uuid4())

    def follow(entry: dg.EventLogEntry) -> None:
        history.keep()
        event = entry.dagster_event
        if event is not None and event.event_type is dg.DagsterEventType.ASSET_MATERIALIZATION:
            materialization = event.step_materialization_data.materialization
            name = names[materialization.asset_key]
            keys[name] = str(materialization.metadata["key"].value)
            say(f"{name}: {materialization.metadata['result'].value}")
            if materialization.metadata[REUSED].value:
                reused.add(name)
            why = str(materialization.metadata["why"].value).splitlines()
            say(f"  since {'; '.join(why[:_REASONS])}{'; ...' if len(why) > _REASONS else ''}")
            outcome = str(materialization.metadata[OUTCOME].value)
            if outcome != UNKNOWN and why != [UNCHANGED]:
                say(f"  the outcome {outcome}")
        elif event is not None and event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            check = event.asset_check_evaluation_data
            checks.append(check.passed)
            if not check.passed and check.severity is dg.AssetCheckSeverity.WARN:
                say(f"  warning: {check.check_name}: {check.description}")

    with (
        usable(folder),
        open_history(folder, number) as history,
        instance_of(folder) as instance,
    ):
        end_lost_runs(instance)
        instance.add_event_listener(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
            number, follow
        )
        try:
            run = job.execute_in_process(
                instance=instance,
                run_id=number,
                asset_selection=None if stages is None else [key_of(model, name) for name in stages],
                run_config={"resources": {"builds": {"config": dict(settings)}}, "loggers": _CONSOLE},
                tags=tags,
                raise_on_error=False,
            )
        except DagsterExecutionInterruptedError:  # between two steps
            raise KeyboardInterrupt from None
        if was_interrupted(run.all_events):
            raise KeyboardInterrupt
        failures: tuple[str, ...] = ()
        if not run.success:
            failures = failures_of(run.all_events)
            instance.add_run_tags(number, notice_of(failed_stage_of(run.all_events), failures))
    return Launched(
        keys=keys,
        failures=failures,
        reused=frozenset(reused),
        passed_checks=sum(checks),
        warnings=len(checks) - sum(checks),
    )
