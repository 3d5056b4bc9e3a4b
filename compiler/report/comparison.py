"""Two builds side by side: their reports number by number, as data and as a page.

Numbers are set against each other when they are of one kind. Graph nodes and options are compared by name;
exchange phases have none and are compared in their order.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import Measure
from compiler.report.build import BuildReport
from compiler.report.colours import SIDE_COLOURS
from compiler.report.markup import (
    NOTHING,
    Column,
    Section,
    count,
    legend,
    number,
    page,
    paragraph,
    subheading,
    table,
    words,
)
from compiler.report.memory import MemoryUse
from compiler.report.plain import strict
from compiler.report.timeline import PARTS, PhaseFigures, Share

VERSION: Final = 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A number of both builds; a side that lacks what it is about has None.

    Args:
        what: it is, with its kind.
        unit: of both.
        before: of the first build.
        after: of the second.
    """

    what: str
    unit: str
    before: float | None
    after: float | None

    @property
    def change(self) -> float | None:
        """After less before; None where a side has nothing."""
        return None if self.before is None or self.after is None else self.after - self.before


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NodePair:
    """Scheduled cycles of a graph node in both builds; None where a build has no such node."""

    node: str
    before: Share | None
    after: Share | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PhasePair:
    """The exchange phases at one place of both builds; None behind the last one of a build."""

    phase: int
    before: PhaseFigures | None
    after: PhaseFigures | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ValuePair:
    """An option or choice that differs, as words; None where a build has no such thing."""

    name: str
    before: str | None
    after: str | None


@final
@strict
@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two builds.

    Args:
        version: form of the comparison.
        before: name of the first build.
        after: name of the second.
        headline: figures of both.
        nodes: where cycles go, those with most first.
        phases: exchange phases in their order.
        memory: of tiles.
        options: those that differ.
        choices: of products, those that differ.
    """

    version: int
    before: str
    after: str
    headline: tuple[Pair, ...]
    nodes: tuple[NodePair, ...]
    phases: tuple[PhasePair, ...]
    memory: tuple[Pair, ...]
    options: tuple[ValuePair, ...]
    choices: tuple[ValuePair, ...]


def comparison_of(before: BuildReport, after: BuildReport, names: tuple[str, str]) -> Comparison:
    """What two reports say, side by side.

    Args:
        before: of the first build.
        after: of the second.
        names: what the builds are called.
    """
    one = {node.node: node.share for node in before.cycles.nodes}
    other = {node.node: node.share for node in after.cycles.nodes}
    nodes = [NodePair(node=node, before=one.get(node), after=other.get(node)) for node in _either(one, other)]
    phases = max(len(before.phases), len(after.phases))
    return Comparison(
        version=VERSION,
        before=names[0],
        after=names[1],
        headline=tuple(_paired(_of_headline(before), _of_headline(after))),
        nodes=tuple(sorted(nodes, key=lambda pair: -max(_cycles(pair.before), _cycles(pair.after)))),
        phases=tuple(
            PhasePair(
                phase=phase,
                before=before.phases[phase] if phase < len(before.phases) else None,
                after=after.phases[phase] if phase < len(after.phases) else None,
            )
            for phase in range(phases)
        ),
        memory=tuple(_paired(_of_memory(before.memory), _of_memory(after.memory))),
        options=_differing(
            {option.name: option.value for option in before.options},
            {option.name: option.value for option in after.options},
        ),
        choices=_differing(
            {choice.node: choice.choice for choice in before.choices},
            {choice.node: choice.choice for choice in after.choices},
        ),
    )


def page_of_comparison(before: BuildReport, after: BuildReport, names: tuple[str, str]) -> str:
    """Two builds as a page, the same text for equal reports."""
    # Half a second, for nobody but those who make pages.
    from compiler.report.plots.comparison import plots_of_comparison

    found, plots = comparison_of(before, after, names), plots_of_comparison(before, after)
    sides = legend(SIDE_COLOURS, {"before": f"before: {found.before}", "after": f"after: {found.after}"})
    sections = [
        Section(name="headline", title="Headline", body=sides + _pairs_table(found.headline)),
        Section(name="cycles", title="Cycles", body=sides + plots.places.get("nodes", "") + _nodes(found)),
        Section(
            name="exchange", title="Exchange", body=sides + plots.places.get("phases", "") + _phases(found)
        ),
        Section(
            name="memory",
            title="Memory",
            body=paragraph("Bytes that each tile uses, the fullest first (measured).")
            + sides
            + plots.places["tiles"]
            + _pairs_table(found.memory),
        ),
        Section(name="provenance", title="Provenance", body=_provenance(found)),
    ]
    return page(f"{found.before} and {found.after}", "Two builds side by side.", sections, plots.scripts)


def _of_headline(report: BuildReport) -> dict[str, tuple[float, str]]:
    headline = report.headline

    def named(name: str, measure: Measure) -> tuple[str, tuple[float, str]]:
        return f"{name} ({measure.kind.value})", (measure.value, measure.unit)

    found = dict(named("cycles of a run", cycles) for cycles in reversed(headline.cycles))
    kind = headline.cycles[-1].kind.value
    found[f"time of a run (by {kind} cycles)"] = round(headline.microseconds, 3), "µs"
    if headline.roofline is not None and headline.of_roofline is not None:
        found |= [named("roofline", headline.roofline)]
        found[f"of the roofline (by {kind} cycles)"] = round(100 * headline.of_roofline, 2), "%"
    found |= [
        named("fullest tile", headline.fullest_tile),
        named("largest exchange row", headline.largest_row),
        named("bytes of the host in a run", headline.host_bytes),
        named("package", headline.package),
    ]
    for accuracy in headline.accuracy:
        found[f"cosine of {accuracy.output} (simulated)"] = accuracy.cosine, ""
    return found


def _of_memory(memory: MemoryUse) -> dict[str, tuple[float, str]]:
    fullest = max(max(series, default=0) for series in memory.live)
    return {
        "used of the fullest tile": (max(memory.used), "bytes"),
        "used of a tile on average": (sum(memory.used) // len(memory.used), "bytes"),
        "code, rows, tables and runtime of a tile at most": (max(memory.own), "bytes"),
        "exchange rows of a tile at most": (max(memory.rows), "bytes"),
        "resident tensors of a tile at most": (max(memory.resident), "bytes"),
        "tensors of a tile at the fullest step": (fullest, "bytes"),
        "classes of tiles": (len(memory.classes), "classes"),
    }


def _paired(
    before: Mapping[str, tuple[float, str]], after: Mapping[str, tuple[float, str]]
) -> Iterator[Pair]:
    for what in _either(before, after):
        one, other = before.get(what), after.get(what)
        _, unit = one if one is not None else after[what]
        yield Pair(
            what=what,
            unit=unit,
            before=None if one is None else one[0],
            after=None if other is None else other[0],
        )


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[ValuePair, ...]:
    return tuple(
        ValuePair(name=name, before=before.get(name), after=after.get(name))
        for name in _either(before, after)
        if before.get(name) != after.get(name)
    )


def _either(before: Iterable[str], after: Iterable[str]) -> tuple[str, ...]:
    """What the first side has, in its order, then what only the second one has."""
    return tuple(dict.fromkeys((*before, *after)))


def _cycles(share: Share | None) -> float:
    return 0.0 if share is None else share.cycles


_SIDES: Final[tuple[Column, ...]] = (number("before"), number("after"), number("change"))


def _pairs_table(pairs: Iterable[Pair]) -> str:
    rows = [
        (
            pair.what,
            NOTHING if pair.before is None else _written(pair.before),
            NOTHING if pair.after is None else _written(pair.after),
            NOTHING if pair.change is None else _change(pair.change),
            pair.unit,
        )
        for pair in pairs
    ]
    return table([words("figure"), *_SIDES, words("unit")], rows)


def _nodes(found: Comparison) -> str:
    def change(pair: NodePair, part: str) -> str:
        before = 0.0 if pair.before is None else getattr(pair.before, part)
        after = 0.0 if pair.after is None else getattr(pair.after, part)
        return _change(round(after) - round(before))

    rows = [
        (
            pair.node,
            NOTHING if pair.before is None else f"{pair.before.cycles:,.0f}",
            NOTHING if pair.after is None else f"{pair.after.cycles:,.0f}",
            _change(round(_cycles(pair.after)) - round(_cycles(pair.before))),
            *(change(pair, part) for part in PARTS),
        )
        for pair in found.nodes
    ]
    return subheading("Cycles by graph node (scheduled), and the change of each part") + table(
        [words("graph node"), *_SIDES, *(number(part) for part in PARTS)], rows
    )


def _phases(found: Comparison) -> str:
    def cells(phase: PhaseFigures | None) -> tuple[str, ...]:
        if phase is None:
            return (NOTHING,) * 5
        return (
            f"{phase.step}",
            count(phase.bound),
            count(phase.horizon),
            f"{phase.ratio:.3f}",
            count(phase.row_bytes),
        )

    headings = ("step", "bound", "horizon", "ratio", "row bytes")
    rows = [
        (
            f"{pair.phase}",
            *cells(pair.before),
            *cells(pair.after),
            NOTHING
            if pair.before is None or pair.after is None
            else _change(pair.after.horizon.value - pair.before.horizon.value),
        )
        for pair in found.phases
    ]
    columns = [
        number("phase"),
        *(number(f"{heading}, {side}") for side in ("before", "after") for heading in headings),
        number("horizon, change"),
    ]
    return table(columns, rows) if rows else paragraph("Nothing moves between tiles in either build.")


def _provenance(found: Comparison) -> str:
    def differing(title: str, what: str, pairs: tuple[ValuePair, ...]) -> str:
        rows = [(pair.name, pair.before or NOTHING, pair.after or NOTHING) for pair in pairs]
        body = table([words(what), words("before"), words("after")], rows) if rows else paragraph("None.")
        return subheading(title) + body

    return differing("Options that differ", "option", found.options) + differing(
        "Choices of products that differ", "graph node", found.choices
    )


def _written(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.7g}"


def _change(value: float) -> str:
    if not value:
        return "0"
    return f"{value:+,}" if isinstance(value, int) else f"{value:+,.3g}"
