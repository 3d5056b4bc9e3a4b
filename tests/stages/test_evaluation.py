"""One candidate, from its whole-device program to its package: what is placed when, and what stays."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

from assets.recall import recalled
from compiler.chain import chain_of
from compiler.compile import Results
from compiler.errors import NumberKind
from compiler.estimate.low import timeline
from compiler.evaluation.artifacts import EmissionInputs, PlacedProgram, SizedSupport
from compiler.exchange.artifacts import exchange_of
from compiler.exchange.check import check_program
from compiler.exchange.ir import ScheduledExchange
from compiler.exchange.stage_demand import EXCHANGE_DEMAND
from compiler.exchange.stage_rows import EXCHANGE_ROWS
from compiler.exchange.stage_timing import EXCHANGE_TIMING
from compiler.low.ir import LowProgram
from compiler.package.support import Support
from compiler.placement.check import check
from compiler.placement.ir import Placement
from compiler.placement.problem import runtime_ranges
from compiler.placement.stage_provisional import PROVISIONAL_PLACEMENT
from compiler.report.timeline import times_of
from compiler.store.layout import Access
from compiler.store.result import StageResult
from compiler.store.stage import AnyStage, Artifact
from compiler.store.store import Store
from compiler.tables import table_digests
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.tiles import physical_tiles
from compiler.target.units import Int64Array
from tests.stages.builds import SUBJECTS

SCHEDULING = ("exchange.demand", "exchange.order", "exchange.timing", "exchange.rows")

Builds = tuple[Path, Mapping[str, Results]]


def _runs(result: StageResult[Any]) -> Counter[str]:
    """How often each stage was run inside of a stage."""
    return Counter(str(run.request["stage"]) for run in result.record.consumed)


def _recalled(root: Path, of: StageResult[Any], stage: AnyStage) -> Any:  # noqa: ANN401  # what it gave
    """What a stage gave when it was run inside of another."""
    run = next(run for run in of.record.consumed if run.request["stage"] == stage.name)
    with Store.open(root, access=Access.READ_ONLY, tables=table_digests()) as store:
        found = recalled(store, stage, run.key)
        assert found is not None
        return found.value()


def _exchange(root: Path, results: Results) -> ScheduledExchange:
    """The schedules that a package was emitted with."""
    stages = (EXCHANGE_DEMAND, EXCHANGE_TIMING, EXCHANGE_ROWS)
    return exchange_of(*(_recalled(root, results["emission"], stage) for stage in stages))


@pytest.mark.parametrize("kind", SUBJECTS)
def test_addresses_and_schedules_are_made_twice_and_no_more(kind: str, builds: Builds) -> None:
    """EC-05, EC-06, EC-14: provisionally, with the code linked and support sized from that; then finally."""
    results = builds[1][kind]
    assert _runs(results["support_sizing"]) == Counter((*SCHEDULING, "linking"))
    assert not results["provisional_placement"].record.consumed
    assert not results["final_placement"].record.consumed
    assert _runs(results["emission"]) == Counter(SCHEDULING)


@pytest.mark.parametrize("kind", SUBJECTS)
def test_final_addresses_keep_clear_of_what_the_program_itself_takes(kind: str, builds: Builds) -> None:
    """EC-07, EC-08: code, rows, tables and host programs first, tensors in what remains."""
    results = builds[1][kind]
    program: LowProgram = results["expansion"].value().program
    placed: PlacedProgram = results["final_placement"].value()
    sized: SizedSupport = results["support_sizing"].value()
    reservations = sized.support.reservations
    reserved = reservations.for_placement(program.tile_count)
    assert check(program, placed.placement, reserved) == ()
    assert int(reservations.byte_count.sum()) > 0
    # Before anything was reserved only the runtime was kept free.
    provisional: Placement = results["provisional_placement"].value().placement
    assert check(program, provisional, runtime_ranges(DEFAULT_LAYOUT, program.tile_count)) == ()


@pytest.mark.parametrize("kind", SUBJECTS)
def test_exchanges_are_those_of_the_final_addresses(kind: str, builds: Builds) -> None:
    """EC-09: followed word by word from where tensors and rows lie at last."""
    root, built = builds
    results = built[kind]
    program: LowProgram = results["expansion"].value().program
    placed: PlacedProgram = results["final_placement"].value()
    sized: SizedSupport = results["support_sizing"].value()
    exchange = _exchange(root, results)
    tiles: Int64Array = np.arange(program.tile_count)
    physical = physical_tiles(tiles)
    assert exchange.phases
    assert not check_program(program, placed.placement, physical, exchange, sized.row_reservations)


def test_the_cycles_of_a_candidate_are_those_of_its_package(builds: Builds) -> None:
    """EC-11, EC-13: low program, addresses, schedules, package and cost of the accepted one stay together."""
    root, built = builds
    results = built["model"]
    program: LowProgram = results["expansion"].value().program
    times = times_of(_exchange(root, results), program)
    search = results["proposal_rounds"].value()
    accepted = next(figure for figure in search.figures if figure.name == "accepted")
    assert accepted.kind is NumberKind.SCHEDULED
    assert accepted.value == timeline(program, times, NumberKind.SCHEDULED).cycles
    simulated = int(results["simulation"].value().cycles.max())
    assert accepted.value == pytest.approx(simulated, rel=0.05)


def test_what_is_provisional_stays_inside() -> None:
    """EC-18: nothing but the sizing takes provisional addresses; what is emitted has final ones alone."""
    for subject, _ in SUBJECTS.values():
        takers = [stage.name for stage in chain_of(subject) if PROVISIONAL_PLACEMENT.name in stage.after]
        assert takers == ["support_sizing"]
    gives = get_type_hints(SizedSupport).values()
    assert Placement not in gives
    takes = list(get_type_hints(EmissionInputs).values())
    assert takes.count(Artifact[Placement]) == 1
    assert takes.count(Artifact[Support]) == 1
