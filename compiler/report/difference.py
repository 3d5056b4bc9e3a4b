"""What differs between two builds: choices, residency, memory, exchanges, code, cycles.

Input: for each side what is known of it: a recipe, a package, the report of a build, or some of these. What
only one side has is not compared. Two numbers are compared when they are of one kind; so simulated cycles are
set against simulated ones, and never against those of a schedule.

Builds are compared by name: of graph nodes, tensors, functions. Exchanges have no names; they are compared in
their order, and those that one side has more stand alone.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, final

import numpy as np

from compiler.errors import Measure, NumberKind
from compiler.figures import counted
from compiler.package.records import Application
from compiler.planner.recipe import Recipe, StoredOnce
from compiler.report.build import BuildReport, words_of_choice
from compiler.report.memory import covered
from compiler.report.package import (
    HostTensor,
    Overview,
    PackagePhase,
    Symbol,
    overview_of,
    phases_of,
    symbols_of,
)
from compiler.report.timeline import PARTS, Share

T = TypeVar("T")

_OPTIONS: Final = "recipe"
"""Stands for the node in choices about the whole program."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackageFacts:
    """What is compared of a package.

    Args:
        overview: its figures.
        phases: its exchanges.
        symbols: its functions.
        fullest: bytes of the tile that it gives most content, code and tensors of the host.
        mean: the same on average.
    """

    overview: Overview
    phases: tuple[PackagePhase, ...]
    symbols: tuple[Symbol, ...]
    fullest: Measure
    mean: Measure


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What is known of a build.

    Args:
        name: what it is called.
        recipe: its choices.
        package: what its package says.
        report: what its stages said.
    """

    name: str
    recipe: Recipe | None = None
    package: PackageFacts | None = None
    report: BuildReport | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceChange:
    """A choice of one node, or ``recipe``; a side without it has None."""

    node: str
    what: str
    before: str | None
    after: str | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """A number of both sides, of one kind; a side that lacks what it is about has None."""

    what: str
    before: Measure | None
    after: Measure | None

    @property
    def change(self) -> int:
        """After less before; what a side lacks counts as nothing."""
        return (0 if self.after is None else self.after.value) - (
            0 if self.before is None else self.before.value
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """Scheduled cycles of a graph node on both sides; none where a side has no such node."""

    node: str
    before: Share
    after: Share


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What differs. What is equal is not in it.

    Args:
        before: name of the first side.
        after: name of the second.
        choices: of recipes.
        cycles: of a run, by kind.
        nodes: where scheduled cycles go, by graph node.
        memory: of tiles.
        tensors: residency: tiles and bytes of each tensor of the host.
        phases: of exchanges.
        code: bytes and calls of functions, and parts of the file.
    """

    before: str
    after: str
    choices: tuple[ChoiceChange, ...]
    cycles: tuple[MeasureChange, ...]
    nodes: tuple[NodeChange, ...]
    memory: tuple[MeasureChange, ...]
    tensors: tuple[MeasureChange, ...]
    phases: tuple[MeasureChange, ...]
    code: tuple[MeasureChange, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not any(
            (self.choices, self.cycles, self.nodes, self.memory, self.tensors, self.phases, self.code)
        )


def facts_of(application: Application, file_bytes: int) -> PackageFacts:
    """What is compared of a package.

    Raises:
        PackageInvalid: a row of it is none.
    """
    content = _content(application)
    return PackageFacts(
        overview=overview_of(application, file_bytes),
        phases=phases_of(application),
        symbols=symbols_of(application),
        fullest=counted("content of the fullest tile", max(content, default=0), "bytes"),
        mean=counted("content of a tile on average", sum(content) // max(len(content), 1), "bytes"),
    )


def difference_of(before: Side, after: Side) -> Difference:
    """What differs between two sides."""
    first, second = before.package, after.package
    choices: Iterable[ChoiceChange] = ()
    if before.recipe is not None and after.recipe is not None:
        choices = _choices(before.recipe, after.recipe)
    memory: list[MeasureChange] = []
    tensors: list[MeasureChange] = []
    phases: list[MeasureChange] = []
    code: list[MeasureChange] = []
    if first is not None and second is not None:
        memory += _pairs(
            {"fullest": first.fullest, "mean": first.mean}, {"fullest": second.fullest, "mean": second.mean}
        )
        tensors += _pairs(_of_tensors(first.overview.tensors), _of_tensors(second.overview.tensors))
        phases += _pairs(_of_phases(first.phases), _of_phases(second.phases))
        code += _pairs(_of_symbols(first.symbols), _of_symbols(second.symbols))
        code += _pairs(_of_parts(first.overview), _of_parts(second.overview))
    cycles: list[MeasureChange] = []
    nodes: Iterable[NodeChange] = ()
    one, other = before.report, after.report
    if one is not None and other is not None:
        runs, others = _of_runs(one), _of_runs(other)
        # A side that was not simulated says nothing about the simulated cycles of the other.
        both = runs.keys() & others.keys()
        cycles += [change for change in _pairs(runs, others) if change.what in both]
        cycles += _pairs(_of_operations(one), _of_operations(other))
        nodes = _nodes(one, other)
        memory += _pairs(_of_memory(one), _of_memory(other))
        phases += _pairs(_of_bounds(one), _of_bounds(other))
    return Difference(
        before=before.name,
        after=after.name,
        choices=tuple(choices),
        cycles=tuple(cycles),
        nodes=tuple(nodes),
        memory=tuple(memory),
        tensors=tuple(tensors),
        phases=tuple(phases),
        code=tuple(code),
    )


def _pairs(before: Mapping[str, Measure], after: Mapping[str, Measure]) -> Iterator[MeasureChange]:
    """What differs, in the order of the first side, then what only the second one has."""
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if one is not None and other is not None and (one.kind, one.unit) != (other.kind, other.unit):
            continue
        if one is None or other is None or one.value != other.value:
            yield MeasureChange(what=name, before=one, after=other)


def _choices(before: Recipe, after: Recipe) -> Iterator[ChoiceChange]:
    yield from _fields(
        _OPTIONS, before.options.model_dump(mode="json"), after.options.model_dump(mode="json")
    )
    yield from _named("waits", before.boundaries, after.boundaries)
    yield from _named("home", before.inputs, after.inputs)
    for node in dict.fromkeys((*before.gemms, *after.gemms)):
        one, other = before.gemms.get(node), after.gemms.get(node)
        if one is not None and other is not None:
            yield from _fields(node, one.model_dump(mode="json"), other.model_dump(mode="json"))
        else:
            yield ChoiceChange(
                node=node,
                what="choice",
                before=None if one is None else words_of_choice(one),
                after=None if other is None else words_of_choice(other),
            )


def _named(
    what: str, before: Mapping[str, str | StoredOnce], after: Mapping[str, str | StoredOnce]
) -> Iterator[ChoiceChange]:
    """What is chosen otherwise of values or inputs, by name."""
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if one != other:
            yield ChoiceChange(
                node=name,
                what=what,
                before=None if one is None else str(one),
                after=None if other is None else str(other),
            )


def _fields(node: str, before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[ChoiceChange]:
    for name in dict.fromkeys((*before, *after)):
        one, other = before.get(name), after.get(name)
        if (name in before, one) != (name in after, other):
            yield ChoiceChange(
                node=node,
                what=name.replace("_", " "),
                before=str(one) if name in before else None,
                after=str(other) if name in after else None,
            )


def _nodes(before: BuildReport, after: BuildReport) -> Iterator[NodeChange]:
    one = {node.node: node.share for node in before.cycles.nodes}
    other = {node.node: node.share for node in after.cycles.nodes}
    for node in dict.fromkeys((*one, *other)):
        first, second = one.get(node, Share()), other.get(node, Share())
        # Shares are sums of fractions: what rounds to the same cycles is the same.
        if any(round(getattr(first, part)) != round(getattr(second, part)) for part in PARTS):
            yield NodeChange(node=node, before=first, after=second)


def _of_runs(report: BuildReport) -> dict[str, Measure]:
    return {f"a run, {measure.kind.value}": measure for measure in report.headline.cycles}


def _of_operations(report: BuildReport) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for estimate in report.estimates:
        name = f"{estimate.what} of {estimate.node}"
        known = found.get(name)
        found[name] = Measure(
            name=name,
            value=estimate.cycles + (0 if known is None else known.value),
            unit="cycles",
            kind=NumberKind.ESTIMATED,
        )
    return found


def _of_memory(report: BuildReport) -> dict[str, Measure]:
    used, own = report.memory.used, report.memory.own
    return {
        name: counted(name, value, "bytes")
        for name, value in (
            ("used of the fullest tile", max(used)),
            ("used of a tile on average", sum(used) // len(used)),
            ("code, rows, tables and runtime of a tile at most", max(own)),
            ("resident of a tile at most", max(report.memory.resident)),
            (
                "live of a tile at the fullest step",
                max(max(series, default=0) for series in report.memory.live),
            ),
        )
    }


def _of_bounds(report: BuildReport) -> dict[str, Measure]:
    return {f"phase {number}, bound": phase.bound for number, phase in enumerate(report.phases)}


def _of_phases(phases: tuple[PackagePhase, ...]) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for phase in phases:
        found[f"phase {phase.number}, horizon"] = phase.horizon
        found[f"phase {phase.number}, largest row"] = phase.row_bytes
        found[f"phase {phase.number}, items sent"] = phase.items
        found[f"phase {phase.number}, tiles"] = counted("tiles", len(phase.rows), "tiles")
    return found


def _of_tensors(tensors: tuple[HostTensor, ...]) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for tensor in tensors:
        what = f"{tensor.role} {tensor.name} {tensor.dtype}"
        found[f"{what}, tiles"] = counted("tiles", tensor.tiles, "tiles")
        found[f"{what}, on all tiles"] = tensor.total
        found[f"{what}, on one tile at most"] = tensor.largest
    return found


def _of_symbols(symbols: tuple[Symbol, ...]) -> dict[str, Measure]:
    found: dict[str, Measure] = {}
    for symbol in symbols:
        found[symbol.name] = symbol.size
        found[f"{symbol.name}, calls"] = symbol.calls
    return found


def _of_parts(overview: Overview) -> dict[str, Measure]:
    return {f"file, {part.name}": part.total for part in overview.parts} | {"file": overview.file}


def _content(application: Application) -> list[int]:
    """[tiles] bytes of segments and tensors of the host; what they share counts once."""
    ranges = [
        (image.physical_tile, segment.address, segment.address + segment.memory_size)
        for image in application.tiles
        for segment in image.segments
    ]
    for binding in (*application.weights, *application.inputs, *application.outputs):
        ranges += [(part.tile, part.tile_address, part.tile_address + part.size) for part in binding.slices]
    if not ranges:
        return []
    tile, start, stop = np.array(ranges, dtype=np.int64).T
    return covered(tile, start, stop).tolist()
