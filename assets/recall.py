"""Results that an earlier run of Dagster materialized, found again by their keys.

A stage that is rematerialized alone takes its inputs as they were materialized, even if the code of the
stages before it has changed since: that is what the graph shows, and what the recorded versions of inputs
say.
"""

from typing import Any

from compiler.errors import StoreError
from compiler.store.digest import parse_digest
from compiler.store.records import Output
from compiler.store.result import StageResult, Status
from compiler.store.stage import AnyStage
from compiler.store.store import Store


def recalled(store: Store, stage: AnyStage, key: str) -> StageResult[Any] | None:
    """The result under a key, or None when it is gone or of another format than the stage has now."""
    record = store.records.read(stage.namespace, parse_digest(key))
    if (
        record is None
        or record.failure is not None
        or record.document["format"] != stage.format
        or record.decoder != stage.outputs.describe()
        or not all(store.objects.has(output.ref) for output in record.outputs)
    ):
        return None

    def load(output: Output) -> bytes:
        data = store.objects.get(output.ref)
        if data is None:
            raise StoreError(
                f"output {output.name} of stage {stage.name} was lost after it was materialized",
                stage="store",
                subject=str(store.root),
                next_step=f"materialize {stage.name} again",
            )
        return data

    return StageResult(
        record=record, status=Status.HIT, explanation=(), outputs=stage.outputs, load=load, fresh={}
    )
