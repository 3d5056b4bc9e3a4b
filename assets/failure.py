"""How a stage's error fails its step: in its own words, without the places that it went through."""

import dagster as dg
from dagster._core.errors import (
    DagsterUserCodeProcessError,  # the one exception whose shown text an exception can bring along
)
from dagster_shared.error import SerializableErrorInfo

from compiler.errors import TilewrightError


class StageFailed(DagsterUserCodeProcessError, dg.Failure):
    """An error of the closed hierarchy. A person reads its text; where it was raised helps nobody.

    Args:
        error: what the stage raised, now or when the reused result was computed.
    """

    def __init__(self, error: TilewrightError) -> None:
        shown = SerializableErrorInfo(message=str(error), stack=[], cls_name=type(error).__name__)
        super().__init__(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
            description=str(error), allow_retries=False, user_code_process_error_infos=[shown]
        )
