"""Whether a package is of the program that the search accepts under the code of today: a check of emission.

A stage that is run alone takes what the others materialized, whatever their code has become since. So a
package can be of a program that was chosen by schedules, sizes or kernels of other code. That is no error,
and worth a warning: the search is out of date, and running it again says whether its outcome still holds.
"""

from typing import TYPE_CHECKING, Final

import dagster as dg

from compiler.chain import ChainStage

if TYPE_CHECKING:
    from assets.builds import Builds
    from compiler.models.subjects import Subject

STAGE: Final = "emission"
"""Whose package is asked about."""
NAME: Final = "search_outcome_holds"
_SEARCH: Final = "proposal_rounds"
_FIRST: Final = "model_graph"


def is_checked(stage: ChainStage) -> bool:
    """Whether it is a stage that gives packages of programs that were searched."""
    return stage.name == STAGE and _FIRST in stage.after


def spec(key: dg.AssetKey) -> dg.AssetCheckSpec:
    """Its declaration on an asset."""
    return dg.AssetCheckSpec(
        NAME,
        asset=key,
        description="The search, under the code of today, accepts the program that was emitted.",
        blocking=False,
    )


def compared(key: dg.AssetKey, builds: "Builds", model: "Subject") -> dg.AssetCheckResult:
    """What it says of the package that this run materialized."""
    passed, said = _judged(builds, model)
    return dg.AssetCheckResult(
        check_name=NAME,
        asset_key=key,
        passed=passed,
        severity=dg.AssetCheckSeverity.WARN,
        description=said,
    )


def _judged(builds: "Builds", model: "Subject") -> tuple[bool, str]:
    from compiler.store.store import LookedUp

    if builds.cache == "off":  # nothing is recalled then: the search ran for this package
        return True, "The search ran for this package, without a store."
    today = builds.looked_up(model, _SEARCH)
    if isinstance(today, LookedUp):
        reasons = "; ".join(today.reasons) or "it was not run with this graph and these options"
        return False, f"unknown: {reasons}. Materialize {_SEARCH} to see whether its outcome still holds."
    if today.failure is not None:
        return False, f"the search fails: {today.failure.message}"
    document = builds.known(model, "expansion").record.document
    outputs = {output.name: output.ref.digest for output in today.record.outputs}
    match document["inputs"]:
        case {"program": {"artifact": str(emitted)}} if emitted == outputs["program"]:
            return True, "The search accepts the program of this package."
        case _:
            return False, f"the search accepts another program now. Materialize expansion and {STAGE}."
