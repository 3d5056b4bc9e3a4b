"""What a run that failed or is slower says of itself: tags, by which the list of runs can be filtered.

============================  =====================================================================
tag                           value
============================  =====================================================================
``tilewright/failed_stage``   the stage whose step failed; of several the first
``tilewright/failure``        the first line of what it said, as much as a tag holds
``tilewright/slower``         how many more cycles than the last build a run takes (``assets.slowdown``)
============================  =====================================================================
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

import dagster as dg

STAGE_TAG: Final = "tilewright/failed_stage"
FAILURE_TAG: Final = "tilewright/failure"
_LONGEST: Final = 200
_CLASS_NAME: Final = re.compile(r"^compiler\.errors\.\w+: ")
"""What Dagster puts before the text of an error that it caught itself."""


def failures_of(events: Sequence[dg.DagsterEvent]) -> tuple[str, ...]:
    """The text of each error; for a failed check of a result that exists, what the check says.

    Where no step failed: why resources could not be had.

    Args:
        events: of a run that failed.
    """
    messages: list[str] = []
    for event in events:
        if not event.is_step_failure:
            continue
        data = event.step_failure_data
        if data.user_failure_data is not None and data.user_failure_data.description is not None:
            messages.append(data.user_failure_data.description)
        elif data.error is not None and data.error.cls_name != "DagsterAssetCheckFailedError":
            messages.append(data.error.message.strip())
    if not messages:
        messages = [
            f"check {check.check_name} of {check.asset_key.to_user_string()} failed: {check.description}"
            for check in _checks(events)
            if not check.passed
        ]
    if not messages:
        messages = [
            _CLASS_NAME.sub("", event.engine_event_data.error.message.strip())
            for event in events
            if event.event_type is dg.DagsterEventType.RESOURCE_INIT_FAILURE
            and event.engine_event_data.error is not None
        ]
    return tuple(messages) or ("the run failed before any stage began",)


def was_interrupted(events: Sequence[dg.DagsterEvent]) -> bool:
    """Whether a step ended since the user stopped it."""
    return any(
        event.step_failure_data.error is not None
        and event.step_failure_data.error.cls_name == "DagsterExecutionInterruptedError"
        for event in events
        if event.is_step_failure
    )


def failed_stage_of(events: Sequence[dg.DagsterEvent]) -> str:
    """The stage whose step failed first; empty when none did."""
    for event in events:
        if event.is_step_failure and event.step_key is not None:
            return event.step_key.rpartition("__")[2]
    return ""


def notice_of(stage: str, failures: Sequence[str]) -> Mapping[str, str]:
    """The tags of a failed run."""
    said = failures[0].splitlines()[0] if failures and failures[0] else ""
    tags = {STAGE_TAG: stage, FAILURE_TAG: said[:_LONGEST]}
    return {name: value for name, value in tags.items() if value}


@dg.run_failure_sensor(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
    name="failure_notices",
    description="Tags failed runs with the stage that failed and what it said.",
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def failure_notices(context: dg.RunFailureSensorContext) -> None:
    """Tag a run that failed; runs of the command line tag themselves."""
    run = context.dagster_run
    events = [
        entry.dagster_event
        for entry in context.instance.all_logs(run.run_id)
        if entry.dagster_event is not None
    ]
    context.instance.add_run_tags(run.run_id, notice_of(failed_stage_of(events), failures_of(events)))


def _checks(events: Sequence[dg.DagsterEvent]) -> list[dg.AssetCheckEvaluation]:
    return [
        event.asset_check_evaluation_data
        for event in events
        if event.event_type is dg.DagsterEventType.ASSET_CHECK_EVALUATION
    ]
