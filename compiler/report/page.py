"""The report of a build as a page: one file that opens anywhere, to look at, to choose in, and to print.

Input: the data of a report (``build``), and nothing else; so a page can be made again from the data that are
written beside it. The plots are those of ``plots``; a number that a plot shows stands in a table, too.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from compiler.errors import Measure
from compiler.evaluation.ledger import Fate
from compiler.report.build import BuildReport, NodeChoice, Origin
from compiler.report.colours import FATE_COLOURS, KIND_COLOURS, PART_COLOURS, PHASE_COLOURS
from compiler.report.markup import (
    NOTHING,
    Fact,
    Section,
    bullets,
    count,
    facts,
    legend,
    listing,
    number,
    page,
    paragraph,
    subheading,
    table,
    words,
)
from compiler.report.plots.build import plots_of_report
from compiler.report.timeline import PARTS, Share

KIND_WORDS: Final = {
    "code": "code",
    "window": "window of the host",
    "state": "state of the runtime",
    "rows": "exchange rows",
    "tables": "tables",
    "parameter": "parameters",
    "input": "inputs",
    "output": "outputs",
    "temporary": "temporaries",
}
"""What lies in memory, in words."""

PART_WORDS: Final = {
    "compute": "compute",
    "exchange": "exchange",
    "overhead": "overhead of exchanges",
    "idle": "idle, waiting for the tile that decides",
}
"""What happens in a cycle, in words."""

_ORIGINS: Final = {
    Origin.DEFAULT: "default",
    Origin.GIVEN: "given (command line or launch)",
    Origin.RECIPE: "recipe that was given",
    Origin.PLANNER: "planner, by estimates",
    Origin.SEARCH: "search, by schedules",
}

_SHOWN_ALTERNATIVES: Final = 6
"""Of each product; the data have all."""


def page_of_report(report: BuildReport) -> str:
    """The page, the same text for equal reports."""
    plots = plots_of_report(report)
    return page(
        report.model,
        f"Report of a build for {report.tiles:,} tiles of an IPU21.",
        [
            Section(name="headline", title="Headline", body=_headline(report)),
            Section(name="cycles", title="Cycles", body=_cycles(report, plots.places)),
            Section(name="exchange", title="Exchange", body=_exchange(report, plots.places)),
            Section(name="memory", title="Memory", body=_memory(report, plots.places)),
            Section(name="search", title="Search", body=_search(report, plots.places)),
            Section(name="provenance", title="Provenance", body=_provenance(report)),
        ],
        plots.scripts,
    )


def headline_facts(report: BuildReport) -> Iterator[Fact]:
    """The figures of a headline, the last kind of cycles first."""
    headline = report.headline
    for cycles in reversed(headline.cycles):
        yield Fact(label="Cycles of a run", value=f"{cycles.value:,}", note=cycles.kind.value)
    yield Fact(
        label="Time of a run",
        value=f"{headline.microseconds:,.2f} µs",
        note=f"{headline.cycles[-1].kind.value} cycles at {headline.hertz / 1e9:g} GHz",
    )
    if headline.roofline is not None and headline.of_roofline is not None:
        yield Fact(
            label="Of the roofline",
            value=f"{100 * headline.of_roofline:.1f} %",
            note=f"products need at least {headline.roofline.value:,} cycles (bound)",
        )
    fullest = headline.fullest_tile
    yield Fact(
        label="Fullest tile",
        value=f"{fullest.value:,} bytes",
        note=f"{100 * fullest.value / report.memory.size:.1f} % of {report.memory.size:,}; {fullest.name}",
    )
    yield _bytes_fact("Largest exchange row", headline.largest_row)
    yield _bytes_fact("Bytes of the host in a run", headline.host_bytes)
    yield _bytes_fact("Package", headline.package)
    for accuracy in headline.accuracy:
        largest = accuracy.largest_difference
        note = "not finite" if largest is None else f"largest difference {largest:.3g}"
        yield Fact(
            label=f"Cosine of {accuracy.output}", value=f"{accuracy.cosine:.7f}", note=f"simulated; {note}"
        )


def _bytes_fact(label: str, measure: Measure) -> Fact:
    return Fact(label=label, value=f"{measure.value:,} bytes", note=measure.kind.value)


def _headline(report: BuildReport) -> str:
    return facts(list(headline_facts(report))) + bullets(report.missing)


def _cycles(report: BuildReport, places: Mapping[str, str]) -> str:
    shares = report.cycles
    total = shares.cycles.value or 1
    rows = [
        (node.node, *share_cells(node.share), f"{100 * node.share.cycles / total:.1f}")
        for node in sorted(shares.nodes, key=lambda node: -node.share.cycles)
    ]
    rows.append(("in all", *share_cells(shares.total), "100.0"))
    columns = [words("graph node"), *(number(part) for part in PARTS), number("cycles"), number("%")]
    steps = [
        (
            f"{step.step}",
            step.kind,
            ", ".join(step.nodes),
            f"{step.iterations:,}",
            f"{step.tiles:,}",
            f"{step.start:,}",
            *share_cells(step.share),
        )
        for step in shares.steps
    ]
    step_columns = [
        number("step"),
        words("kind"),
        words("graph nodes"),
        number("times"),
        number("tiles"),
        number("begins at"),
        *(number(part) for part in PARTS),
        number("cycles"),
    ]
    estimates = [(cost.node, cost.what, f"{cost.cycles:,}", f"{cost.phases:,}") for cost in report.estimates]
    return (
        paragraph(
            "Every cycle of a run is given to one step: between two barriers the tile that comes last to the "
            "second one decides. While it computes, the average tile computes in a part, and waits in the "
            "rest."
        )
        + legend(PART_COLOURS, PART_WORDS)
        + subheading("By graph node")
        + places.get("nodes", "")
        + table(columns, rows, marked=frozenset({len(rows) - 1}))
        + subheading("By step")
        + places.get("steps", "")
        + table(step_columns, steps)
        + subheading("What the steps do")
        + listing(report.steps)
        + (
            subheading("What the planner expected")
            + table(
                [words("graph node"), words("operation"), number("cycles (estimated)"), number("phases")],
                estimates,
            )
            if estimates
            else ""
        )
    )


def share_cells(share: Share) -> tuple[str, ...]:
    """Cells of the parts of a share and of their sum."""
    return (*(f"{getattr(share, part):,.0f}" for part in PARTS), f"{share.cycles:,.0f}")


def _exchange(report: BuildReport, places: Mapping[str, str]) -> str:
    if not report.phases:
        return paragraph("Nothing moves between tiles.")
    rows = [
        (
            f"{place}",
            f"{phase.step}",
            ", ".join(phase.nodes),
            f"{phase.iterations:,}",
            f"{phase.transfers:,}",
            f"{phase.recipients:,}",
            f"{phase.bound.value:,}",
            f"{phase.horizon.value:,}",
            f"{phase.ratio:.3f}",
            f"{phase.row_bytes.value:,}",
            f"{phase.all_row_bytes.value:,}",
            NOTHING if phase.limiting_tile is None else f"{phase.limiting_tile}",
            phase.limit,
        )
        for place, phase in enumerate(report.phases)
    ]
    columns = [
        number("phase"),
        number("step"),
        words("graph nodes"),
        number("times"),
        number("transfers"),
        number("recipients"),
        number("bound"),
        number("horizon"),
        number("ratio"),
        number("row bytes"),
        number("in all"),
        number("limiting tile"),
        words("limit"),
    ]
    return (
        paragraph(
            "The horizon of a phase is the number of events of its longest row (scheduled). The bound is "
            "what its transfers need at least, as they are used. Choose a phase to see how busy it is."
        )
        + legend(PHASE_COLOURS, {"horizon": "horizon", "bound": "bound"})
        + places["phases"]
        + legend(PHASE_COLOURS, {"sending": "transmit lanes in use", "receiving": "tiles that receive"})
        + places["occupancy"]
        + table(columns, rows)
    )


def _memory(report: BuildReport, places: Mapping[str, str]) -> str:
    memory = report.memory
    classes = [
        (
            f"{place}",
            f"{kind.tiles:,}",
            f"{kind.tile}",
            f"{kind.own:,}",
            f"{kind.resident:,}",
            f"{kind.peak:,}",
        )
        for place, kind in enumerate(memory.classes)
    ]
    columns = [
        number("class"),
        number("tiles"),
        number("first tile"),
        number("code, rows, tables, runtime"),
        number("resident tensors"),
        number("tensors at the fullest step"),
    ]
    return (
        paragraph(
            "All tiles as the chip is laid out: 23 rows of 16 columns of 4 lanes. Choose a tile with a "
            "click, or by its physical number, to see what lives in it."
        )
        + places["metric"]
        + places["tiles"]
        + places["choice"]
        + places.get("live", "")
        + legend(KIND_COLOURS, KIND_WORDS)
        + places.get("map", "")
        + paragraph("Above the dashed line memory is interleaved. Bytes are counted (measured).")
        + subheading("Tile classes")
        + paragraph(
            "Tiles of a class have the same problem of placement: equal sizes, lives, demands and "
            "reservations."
        )
        + table(columns, classes)
    )


def _search(report: BuildReport, places: Mapping[str, str]) -> str:
    if not report.considered:
        return paragraph("There was no search.")
    fates = {fate: fate.value for fate in Fate if any(one.fate == fate.value for one in report.considered)}
    rows = [
        (
            f"{place}",
            f"{one.round}",
            one.change,
            count(one.estimated),
            count(one.scheduled),
            one.fate,
            one.reason,
        )
        for place, one in enumerate(report.considered)
    ]
    columns = [
        number("candidate"),
        number("round"),
        words("change"),
        number("cycles, estimated"),
        number("cycles, scheduled"),
        words("fate"),
        words("reason"),
    ]
    taken = {Fate.BASELINE.value, Fate.ACCEPTED.value}
    return (
        paragraph(
            "Every candidate in the order of the search. Circles are estimates, diamonds are schedules at "
            "final addresses; only schedules decide."
        )
        + legend(
            {fate.name: colour for fate, colour in FATE_COLOURS.items()},
            {fate.name: text for fate, text in fates.items()},
        )
        + places["search"]
        + table(
            columns,
            rows,
            marked=frozenset(place for place, one in enumerate(report.considered) if one.fate in taken),
        )
    )


def _provenance(report: BuildReport) -> str:
    rows = [(option.name, option.value, _ORIGINS[option.origin]) for option in report.options]
    changed = frozenset(
        place for place, option in enumerate(report.options) if option.origin is not Origin.DEFAULT
    )
    choices = [(choice.node, choice.choice, _ORIGINS[choice.origin]) for choice in report.choices]
    return (
        subheading("Options")
        + table([words("option"), words("value"), words("from")], rows, marked=changed)
        + (
            subheading("Choices of products")
            + table([words("graph node"), words("choice"), words("from")], choices)
            + "".join(_alternatives(choice) for choice in report.choices)
            if choices
            else ""
        )
    )


def _alternatives(choice: NodeChoice) -> str:
    shown = [
        other for place, other in enumerate(choice.kept) if place < _SHOWN_ALTERNATIVES or other.is_chosen
    ]
    rows = [
        (
            other.choice,
            f"{other.cycles:,}",
            f"{other.standard_bytes:,}",
            f"{other.interleaved_bytes:,}",
            f"{other.row_words:,}",
        )
        for other in shown
    ]
    columns = [
        words("choice"),
        number("cycles"),
        number("bytes, either region"),
        number("bytes, interleaved"),
        number("row words"),
    ]
    dropped = ", ".join(f"{item.count:,} {item.reason}" for item in choice.dropped) or "none"
    return (
        subheading(f"Alternatives of {choice.node}")
        + table(columns, rows, marked=frozenset(place for place, one in enumerate(shown) if one.is_chosen))
        + paragraph(
            f"Shown: {len(shown):,} of {len(choice.kept):,} that were kept (estimated). Dropped: {dropped}."
        )
        + paragraph(
            "Cycles are those of the product alone, not of what reads it. A product in the swapped "
            "orientation leaves its result transposed, which readers pay for, if they can read it at all. "
            "The planner takes the fastest of the others, and the search tries swapped ones in the whole "
            "program."
        )
    )
