"""What callers of the stage of this package need."""

from dataclasses import dataclass
from typing import final

from compiler.evaluation.artifacts import Simulated
from compiler.evaluation.ledger import Ledger
from compiler.exchange.ir import RowReservations
from compiler.graph.codec import Labels
from compiler.graph.ir import Graph
from compiler.low.ir import LowProgram
from compiler.mid.ir import MidProgram
from compiler.package.support import Support
from compiler.placement.ir import Placement
from compiler.planner.artifacts import Considered
from compiler.planner.recipe import Recipe
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReportInputs:
    """Of stage ``build_report``: what the stages of a build gave.

    Args:
        model: name of what was built, as the report says it.
        options: of the build: (name, value as JSON, ``Origin``) of each.
        plotting: version of the plotting library, whose scripts are part of the page.
        given: recipe that was given, as JSON; empty for none.
        structure: of a model, its graph without names; None for a hand-written program, as the following.
        labels: the names of the graph.
        planned: the accepted whole-device program.
        recipe: all choices that lead to it.
        considered: and what else there was for it.
        baseline: choices of the program that the search began with.
        ledger: candidates of the search.
        program: low.
        placement: final.
        support: what is placed beside tensors.
        row_reservations: where rows lie.
        package: the file.
        simulated: None for a package that was not simulated.
    """

    model: str
    options: tuple[tuple[str, str, str], ...]
    plotting: str
    given: str
    structure: Artifact[Graph] | None
    labels: Artifact[Labels] | None
    planned: Artifact[MidProgram] | None
    recipe: Artifact[Recipe] | None
    considered: Artifact[Considered] | None
    baseline: Artifact[Recipe] | None
    ledger: Artifact[Ledger] | None
    program: Artifact[LowProgram]
    placement: Artifact[Placement]
    support: Artifact[Support]
    row_reservations: Artifact[RowReservations]
    package: Artifact[bytes]
    simulated: Artifact[Simulated] | None
