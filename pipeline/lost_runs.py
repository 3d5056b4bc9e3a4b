"""Runs whose process was killed: found by the process that they name, and ended as failed.

Dagster cannot know of a process that had no time to say something. Its run would stay "started" for ever, and
two of them would keep every queued run from its turn. Whoever launches on the command line looks first, and a
sensor looks while the pages are served.
"""

from typing import Final

import dagster as dg

from assets.processes import PROCESS_TAG, has_ended
from pipeline.notices import FAILURE_TAG

LOST: Final = "the process of the run was killed, or the machine went down"


def end_lost_runs(instance: dg.DagsterInstance) -> tuple[str, ...]:
    """End the runs that go on as far as Dagster knows and whose process lives no more; their ids."""
    ended: list[str] = []
    going = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING])
    for run in instance.get_runs(filters=going):
        process = run.tags.get(PROCESS_TAG)
        if process is not None and has_ended(process):
            instance.report_run_failed(run, message=LOST)
            instance.add_run_tags(run.run_id, {FAILURE_TAG: LOST})
            ended.append(run.run_id)
    return tuple(ended)


@dg.sensor(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
    name="lost_runs",
    description="Ends runs whose process was killed, so that they keep no other run from its turn.",
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def lost_runs(context: dg.SensorEvaluationContext) -> dg.SkipReason:
    """Look for them."""
    ended = end_lost_runs(context.instance)
    return dg.SkipReason(f"ended {', '.join(ended)}" if ended else "every run that goes on has its process")
