"""The report of a build as data: what was built, how fast it is, how full, and what was decided.

Input: what the stages of one build gave. Every number says its kind, and numbers of different kinds are never
set off against each other, but for two that are meant to be: the distance to the roofline, which is a bound,
and the time of a run, which is its cycles by the clock of the card.

The *roofline* is the time that the products of the graph need at least if every tile of the build multiplies
in each cycle. Only products count, by ``graph.flops``.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from math import ceil, isfinite
from typing import Any, Final, cast, final

from pydantic import BaseModel

from compiler.errors import Measure, NumberKind, few_of
from compiler.estimate.mid import estimate
from compiler.evaluation.artifacts import Simulated
from compiler.evaluation.ledger import Ledger
from compiler.exchange.ir import ScheduledExchange
from compiler.figures import counted
from compiler.geometry.precision import F8
from compiler.graph.flops import node_flops
from compiler.graph.ir import Block, Gemm, Graph, Repeat
from compiler.graph.rules import product_precision
from compiler.low.ir import LowProgram, Role
from compiler.low.text import text_of_program
from compiler.mid.ir import MidProgram
from compiler.package.support import Support
from compiler.placement.ir import Placement
from compiler.planner.artifacts import Considered as Alternatives
from compiler.planner.gemm_choice import GemmChoice
from compiler.planner.recipe import Options, Recipe
from compiler.report.memory import MemoryUse, memory_use
from compiler.report.plain import json_of, report_of_json, strict
from compiler.report.timeline import CycleShares, PhaseFigures, cycle_shares, phase_table, times_of
from compiler.target.costs import PEAK_F8, PEAK_F16
from compiler.target.tiles import CLOCK_HERTZ

VERSION: Final = 2


class Origin(Enum):
    """Where a value of an option or a choice comes from."""

    DEFAULT = "default"
    """What it is when nobody says anything."""
    GIVEN = "given"
    """Whoever started the build said it: on the command line, or in the form of a launch."""
    RECIPE = "recipe"
    """The recipe that was given says it."""
    PLANNER = "planner"
    """The planner chose it by estimates, for the baseline."""
    SEARCH = "search"
    """The search changed it, since schedules became better."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """An output of the simulated package against the reference of the graph, over all runs.

    Args:
        output: its name.
        largest_difference: of an element; None when some element is not finite.
        cosine: the lowest.
    """

    output: str
    largest_difference: float | None
    cosine: float


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What one wants to know first.

    Args:
        cycles: of a run, one of each kind that is known: estimated, scheduled, simulated.
        microseconds: of a run, by the last of ``cycles`` and the clock of the card.
        hertz: of that clock.
        roofline: cycles that its products need at least; None without a graph.
        of_roofline: the roofline over the last of ``cycles``; 1.0 cannot be exceeded. None without one.
        fullest_tile: bytes that the fullest tile uses.
        largest_row: bytes of the largest exchange row.
        host_bytes: bytes that the host moves in a run.
        package: bytes of the file.
        accuracy: by output; nothing where no model was simulated.
    """

    cycles: tuple[Measure, ...]
    microseconds: float
    hertz: int
    roofline: Measure | None
    of_roofline: float | None
    fullest_tile: Measure
    largest_row: Measure
    host_bytes: Measure
    package: Measure
    accuracy: tuple[Accuracy, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OptionValue:
    """An option of the build.

    Args:
        name: its dotted path.
        value: as JSON.
        origin: where it comes from.
    """

    name: str
    value: str
    origin: Origin


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OperationEstimate:
    """What the planner thinks that one operation of the whole-device program costs.

    Args:
        node: graph node.
        what: kind of operation.
        cycles: of its slowest tile, estimated; in a body, in one iteration.
        phases: exchange phases.
    """

    node: str
    what: str
    cycles: int
    phases: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One way of computing a product; all figures are estimated.

    Args:
        choice: in words.
        cycles: from operands as they arrive to the result.
        standard_bytes: of values that can lie in either region.
        interleaved_bytes: of values that can lie in the interleaved one only.
        row_words: of exchange rows.
        is_chosen: whether it was taken.
    """

    choice: str
    cycles: int
    standard_bytes: int
    interleaved_bytes: int
    row_words: int
    is_chosen: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """Ways of computing a product that were not kept: how many, and why."""

    reason: str
    count: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChoice:
    """What was chosen for a product.

    Args:
        node: path of the graph node.
        choice: in words.
        origin: who chose it.
        kept: the shortlist of its fronts, the fastest first.
        dropped: what is not on a front, by reason.
    """

    node: str
    choice: str
    origin: Origin
    kept: tuple[Alternative, ...]
    dropped: tuple[Dropped, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """A candidate of the search.

    Args:
        round: of proposals; 0 for the baseline.
        change: what it does otherwise than the best candidate of its round.
        fate: what became of it.
        reason: more words; empty where the fate says all.
        estimated: cycles of a run; None where it could not be built.
        scheduled: cycles of a run; None where it did not come so far.
    """

    round: int
    change: str
    fate: str
    reason: str
    estimated: Measure | None
    scheduled: Measure | None


@final
@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """The report of a build.

    Args:
        version: form of the report.
        model: what was built.
        missing: what the report cannot say, and why, a sentence each.
        tiles: of the build.
        headline: what one wants to know first.
        options: of the build, in order, then those of its recipe.
        considered: candidates of the search in its order; nothing for a hand-written program.
        choices: by product; nothing for a hand-written program.
        estimates: by operation of the whole-device program; nothing for a hand-written program.
        steps: the low program, a line each.
        cycles: where they go, by final schedules.
        phases: exchanges.
        memory: of all tiles.
    """

    version: int
    model: str
    missing: tuple[str, ...]
    tiles: int
    headline: Headline
    options: tuple[OptionValue, ...]
    considered: tuple[Considered, ...]
    choices: tuple[NodeChoice, ...]
    estimates: tuple[OperationEstimate, ...]
    steps: tuple[str, ...]
    cycles: CycleShares
    phases: tuple[PhaseFigures, ...]
    memory: MemoryUse


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Planned:
    """What a model's build has before its low program.

    Args:
        graph: of the model.
        program: whole-device.
        recipe: all choices that lead to it.
        baseline: those of the program that the search began with; None where that is not known.
        given: choices that were given to the build.
        considered: what else there was.
    """

    graph: Graph
    program: MidProgram
    recipe: Recipe
    baseline: Recipe | None
    given: Recipe
    considered: Alternatives


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Built:
    """What the stages of a build gave.

    Args:
        model: what was built.
        options: of the build, with where they come from (``option_values``).
        planned: of a model; None for a hand-written program.
        ledger: of the search.
        program: low.
        placement: final.
        support: what is placed beside tensors.
        exchange: scheduled at final addresses.
        package_bytes: size of the file.
        simulated: None while it was not simulated.
    """

    model: str
    options: tuple[OptionValue, ...]
    planned: Planned | None
    ledger: Ledger
    program: LowProgram
    placement: Placement
    support: Support
    exchange: ScheduledExchange
    package_bytes: int
    simulated: Simulated | None


def build_report(built: Built) -> BuildReport:
    """The report of a build."""
    shares = cycle_shares(built.program, times_of(built.exchange, built.program), NumberKind.SCHEDULED)
    phases = phase_table(built.exchange)
    memory = memory_use(built.program, built.placement, built.support)
    planned = built.planned
    return BuildReport(
        version=VERSION,
        model=built.model,
        missing=_missing(built),
        tiles=built.program.tile_count,
        headline=_headline(built, shares, phases, memory),
        options=built.options if planned is None else (*built.options, *_recipe_options(planned)),
        considered=considered_of(built.ledger),
        choices=() if planned is None else choices_of(planned),
        estimates=() if planned is None else estimates_of(planned.program),
        steps=tuple(text_of_program(built.program).splitlines()),
        cycles=shares,
        phases=phases,
        memory=memory,
    )


def report_json(report: BuildReport) -> str:
    """The report as JSON, the same text for equal reports."""
    return json_of(report)


def report_from_json(text: str | bytes) -> BuildReport:
    """The inverse.

    Raises:
        ValueError: it is no report of this version.
    """
    report = report_of_json(BuildReport, text)
    if report.version != VERSION:
        raise ValueError(f"a report of version {report.version}; this is version {VERSION}")
    return report


def roofline(graph: Graph, tile_count: int) -> Measure:
    """Cycles that the products of a graph need at least on so many tiles."""
    cycles = ceil(_peak_cycles(graph.block) / tile_count)
    return Measure(name="roofline", value=cycles, unit="cycles", kind=NumberKind.BOUND)


def option_values(options: BaseModel) -> tuple[OptionValue, ...]:
    """All options with their values, in order, and which of them were left alone."""
    given, usual = _flat(options.model_dump(mode="json")), _flat(type(options)().model_dump(mode="json"))
    return tuple(
        OptionValue(
            name=name,
            value=json.dumps(value),
            origin=Origin.DEFAULT if value == usual[name] else Origin.GIVEN,
        )
        for name, value in given.items()
        if name not in ("version", "workers")  # decide nothing about the package
    )


def _recipe_options(planned: Planned) -> Iterator[OptionValue]:
    """The options of the whole program, which are part of its recipe."""
    chosen, given = planned.recipe.options, planned.given.options
    before = None if planned.baseline is None else planned.baseline.options
    for name, field in Options.model_fields.items():
        value: object = getattr(chosen, name)
        if name in given.model_fields_set and value == getattr(given, name):
            origin = Origin.RECIPE
        elif before is not None and value != getattr(before, name):
            origin = Origin.SEARCH
        else:
            origin = Origin.DEFAULT if value == field.default else Origin.PLANNER
        yield OptionValue(name=f"recipe.{name}", value=json.dumps(value), origin=origin)


def _origin_of_choice(planned: Planned, node: str) -> Origin:
    chosen = planned.recipe.gemms[node]
    if planned.given.gemms.get(node) == chosen:
        return Origin.RECIPE
    if planned.baseline is not None and planned.baseline.gemms.get(node) != chosen:
        return Origin.SEARCH
    return Origin.PLANNER


def _missing(built: Built) -> tuple[str, ...]:
    found: list[str] = []
    if built.planned is None:
        found.append(
            "The program was written by hand: it has no graph, hence no roofline and no estimate, and no "
            "search or choices."
        )
    if built.simulated is None:
        found.append(
            "The package was not simulated: cycles are those of its schedules, and nothing is known of its "
            "outputs."
        )
    elif not built.simulated.accuracy:
        found.append("Outputs were compared bit for bit with the low program; they have no cosine.")
    elif built.simulated.differences:
        found.append(
            f"The package computes something else than its graph: {few_of(built.simulated.differences)}."
        )
    return tuple(found)


def considered_of(ledger: Ledger) -> tuple[Considered, ...]:
    """The candidates of a search."""

    def cycles(value: int | None, kind: NumberKind) -> Measure | None:
        return None if value is None else Measure(name="a run", value=value, unit="cycles", kind=kind)

    return tuple(
        Considered(
            round=entry.round,
            change=entry.change,
            fate=entry.fate.value,
            reason=entry.reason,
            estimated=cycles(entry.estimated_cycles, NumberKind.ESTIMATED),
            scheduled=cycles(entry.scheduled_cycles, NumberKind.SCHEDULED),
        )
        for entry in ledger
    )


def estimates_of(program: MidProgram) -> tuple[OperationEstimate, ...]:
    """What each operation of a whole-device program costs, estimated."""
    return tuple(
        OperationEstimate(node=cost.node, what=cost.what, cycles=cost.cycles, phases=cost.phases)
        for cost in estimate(program).operations
    )


def choices_of(planned: Planned) -> tuple[NodeChoice, ...]:
    """What was chosen for each product, and what else there was."""
    considered = planned.considered
    found: list[NodeChoice] = []
    for node, chosen in planned.recipe.gemms.items():
        kept = sorted(considered.alternatives.get(node, ()), key=lambda other: other.cycles)
        dropped = considered.dropped.get(node, {})
        found.append(
            NodeChoice(
                node=node,
                choice=words_of_choice(chosen),
                origin=_origin_of_choice(planned, node),
                kept=tuple(
                    Alternative(
                        choice=words_of_choice(other.choice),
                        cycles=other.cycles,
                        standard_bytes=other.standard_bytes,
                        interleaved_bytes=other.interleaved_bytes,
                        row_words=other.row_words,
                        is_chosen=other.choice == chosen,
                    )
                    for other in kept
                ),
                dropped=tuple(
                    Dropped(reason=reason, count=count) for reason, count in sorted(dropped.items())
                ),
            )
        )
    return tuple(found)


def words_of_choice(choice: GemmChoice) -> str:
    """A choice as people say it: algorithm and grid, then what is not usual."""
    usual = GemmChoice.model_fields
    told = [choice.algorithm.value]
    told.append(f"{choice.grid} (rows x columns x parts of K)")
    for name in usual:
        value: object = getattr(choice, name)
        if name in ("algorithm", "row_parts", "column_parts", "inner_parts") or value == usual[name].default:
            continue
        shown: object = getattr(value, "value", value)
        told.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(told)


def _headline(
    built: Built, shares: CycleShares, phases: tuple[PhaseFigures, ...], memory: MemoryUse
) -> Headline:
    cycles: list[Measure] = []
    planned = built.planned
    if planned is not None:
        value = int(estimate(planned.program).cycles)
        cycles.append(Measure(name="a run", value=value, unit="cycles", kind=NumberKind.ESTIMATED))
    cycles.append(shares.cycles)
    simulated = built.simulated
    if simulated is not None and len(simulated.cycles):
        value = int(simulated.cycles[-1])
        cycles.append(Measure(name="a run", value=value, unit="cycles", kind=NumberKind.SIMULATED))
    bound = None if planned is None else roofline(planned.graph, built.program.tile_count)
    last = cycles[-1].value
    buffers = built.program.buffers
    moved = int(buffers.byte_count[(buffers.role == Role.INPUT) | (buffers.role == Role.OUTPUT)].sum())
    return Headline(
        cycles=tuple(cycles),
        microseconds=last / CLOCK_HERTZ * 1e6,
        hertz=CLOCK_HERTZ,
        roofline=bound,
        of_roofline=None if bound is None or last == 0 else bound.value / last,
        fullest_tile=counted(
            f"physical tile {memory.fullest}", memory.used[memory.fullest], "bytes", limit=memory.size
        ),
        largest_row=Measure(
            name="largest exchange row",
            value=max((phase.row_bytes.value for phase in phases), default=0),
            unit="bytes",
            kind=NumberKind.SCHEDULED,
        ),
        host_bytes=counted("host bytes of a run", moved, "bytes"),
        package=counted("package", built.package_bytes, "bytes"),
        accuracy=()
        if simulated is None
        else tuple(
            Accuracy(
                output=name,
                largest_difference=largest if isfinite(largest := float(values[:, 0].max())) else None,
                cosine=float(values[:, 1].min()),
            )
            for name, values in sorted(simulated.accuracy.items())
        ),
    )


def _peak_cycles(block: Block) -> float:
    """Cycles of the products of a block on one tile that always multiplies."""
    found = 0.0
    for node in block.nodes:
        operation = node.operation
        if isinstance(operation, Repeat):
            found += operation.count * _peak_cycles(operation.body)
            continue
        peak = PEAK_F16
        if isinstance(operation, Gemm):
            left, right = (block.values[operand].type for operand in node.operands)
            if isinstance(product_precision(operation.precision, left, right), F8):
                peak = PEAK_F8
        found += node_flops(block, node) / peak
    return found


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found |= _flat(cast("Mapping[str, Any]", value), f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found
