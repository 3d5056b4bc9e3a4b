"""HTML of reports: whole pages, tables and figures, made of plain text.

Every function takes text as it is and escapes it; what it gives is HTML. Functions that take HTML say so. A
page refers to nothing outside of itself and forbids its own scripts to load anything.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final, final

from compiler.errors import Measure
from compiler.report.colours import INK

NOTHING: Final = "-"
"""In a cell: there is no such number."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Args:
        heading: above it.
        is_number: whether its cells are numbers, which stand below each other digit by digit.
    """

    heading: str
    is_number: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A figure of a headline.

    Args:
        label: what it is.
        value: the number, as printed.
        note: its unit, kind and what it is of.
    """

    label: str
    value: str
    note: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A section of a page.

    Args:
        name: of its anchor.
        title: of its heading.
        body: HTML.
    """

    name: str
    title: str
    body: str


def words(text: str) -> Column:
    """A column of words."""
    return Column(heading=text)


def number(text: str) -> Column:
    """A column of numbers."""
    return Column(heading=text, is_number=True)


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>\n"


def subheading(text: str) -> str:
    """A heading inside of a section."""
    return f"<h3>{escape(text)}</h3>\n"


def listing(lines: Iterable[str]) -> str:
    """Lines as they are, in a box of their own."""
    return f'<div class="scroll"><pre>{escape(chr(10).join(lines))}</pre></div>\n'


def bullets(lines: Sequence[str]) -> str:
    """Sentences, one below the other; nothing for none."""
    if not lines:
        return ""
    return "<ul>" + "".join(f"<li>{escape(line)}</li>" for line in lines) + "</ul>\n"


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], *, marked: frozenset[int] = frozenset()
) -> str:
    """A table; long ones scroll on a screen and are whole in print.

    Args:
        columns: of the table.
        rows: cells of each row.
        marked: rows that stand out.
    """

    def cell(tag: str, column: Column, text: str) -> str:
        kind = ' class="number"' if column.is_number else ""
        return f"<{tag}{kind}>{escape(text)}</{tag}>"

    head = "".join(cell("th", column, column.heading) for column in columns)
    lines: list[str] = []
    for place, row in enumerate(rows):
        cells = "".join(cell("td", column, text) for column, text in zip(columns, row, strict=True))
        lines.append(f'<tr class="marked">{cells}</tr>' if place in marked else f"<tr>{cells}</tr>")
    body = "\n".join(lines)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>\n'
    )


def facts(found: Sequence[Fact]) -> str:
    """Figures beside each other, large."""
    return (
        '<div class="facts">'
        + "".join(
            f'<div class="fact"><span class="label">{escape(fact.label)}</span>'
            f'<span class="value">{escape(fact.value)}</span>'
            f'<span class="note">{escape(fact.note)}</span></div>'
            for fact in found
        )
        + "</div>\n"
    )


def legend(colours: Mapping[str, str], names: Mapping[str, str]) -> str:
    """What colours mean.

    Args:
        colours: by key.
        names: words by key, in order.
    """
    return (
        '<p class="legend">'
        + "".join(
            f'<span><i style="background:{colours[key]}"></i>{escape(text)}</span>'
            for key, text in names.items()
        )
        + "</p>\n"
    )


def count(measure: Measure | None) -> str:
    """A number whose heading says its unit and kind; ``NOTHING`` for none."""
    return NOTHING if measure is None else f"{measure.value:,}"


def page(title: str, subtitle: str, sections: Sequence[Section], scripts: str) -> str:
    """A whole page.

    Args:
        title: of the page.
        subtitle: a sentence below it.
        sections: in order.
        scripts: HTML that goes behind everything.
    """
    links = "".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in sections)
    bodies = "".join(
        f'<section id="{section.name}"><h2>{escape(section.title)}</h2>\n{section.body}</section>\n'
        for section in sections
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{_POLICY}\n'
        f'<meta name="viewport" content="width=device-width">\n<title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n"
        f"<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>\n<nav>{links}</nav>\n"
        "<main>\n<noscript><p>Plots need scripts, which are part of this file.</p></noscript>\n"
        f"{bodies}</main>\n{scripts}</body>\n</html>\n"
    )


# The plotting library makes functions of texts for callbacks, and draws icons from data in the file.
_POLICY: Final = (
    '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
    "script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:; "
    'font-src data:">'
)

_STYLE: Final = f"""
:root {{ --ink: {INK}; --quiet: #5A6570; --rule: #D9DCE0; --accent: #0072B2; }}
* {{ box-sizing: border-box; }}
html {{ scroll-padding-top: 48px; }}
body {{ margin: 0; color: var(--ink); background: #FFFFFF; font: 15px/1.5 system-ui, sans-serif; }}
header, main, nav {{ width: 1100px; margin: 0 auto; padding: 0 30px; }}
header {{ padding-top: 32px; }}
header p {{ margin: 2px 0 14px; color: var(--quiet); }}
h1 {{ margin: 0; font-size: 27px; font-weight: 600; letter-spacing: -0.01em; }}
h2 {{ margin: 44px 0 10px; padding-top: 10px; border-top: 1px solid var(--rule); font-size: 19px;
  font-weight: 600; }}
h3 {{ margin: 26px 0 6px; font-size: 15px; font-weight: 600; }}
p {{ max-width: 84ch; margin: 6px 0; }}
nav {{ position: sticky; top: 0; z-index: 5; padding-top: 8px; padding-bottom: 8px; background: #FFFFFF; }}
nav a {{ margin-right: 20px; color: var(--quiet); text-decoration: none; font-size: 14px; }}
nav a:hover {{ color: var(--accent); }}
.facts {{ display: grid; grid-template-columns: repeat(4, 1fr); gap: 20px 26px; margin: 14px 0; }}
.fact {{ border-left: 2px solid var(--rule); padding-left: 12px; }}
.fact span {{ display: block; }}
.fact .label {{ color: var(--quiet); font-size: 13px; }}
.fact .value {{ font-size: 23px; line-height: 1.3; font-weight: 600; font-variant-numeric: tabular-nums; }}
.fact .note {{ color: var(--quiet); font-size: 13px; line-height: 1.35; }}
.legend {{ max-width: none; font-size: 13px; color: var(--quiet); }}
.legend span {{ margin-right: 18px; white-space: nowrap; }}
.legend i {{ display: inline-block; width: 11px; height: 11px; margin-right: 6px; border-radius: 2px; }}
.plot {{ margin: 6px 0; min-height: 1px; }}
.scroll {{ max-height: 420px; overflow: auto; margin: 8px 0; }}
table {{ width: 100%; border-collapse: collapse; font-size: 13px; line-height: 1.4; }}
th {{ position: sticky; top: 0; background: #FFFFFF; text-align: left; font-weight: 600;
  box-shadow: inset 0 -1px 0 var(--ink); vertical-align: bottom; }}
th, td {{ padding: 4px 14px 4px 0; }}
td {{ border-bottom: 1px solid #EDEFF1; vertical-align: top; overflow-wrap: break-word; }}
th.number, td.number {{ text-align: right; font-variant-numeric: tabular-nums; }}
td.number {{ white-space: nowrap; }}
tr.marked td {{ font-weight: 600; }}
pre {{ margin: 0; font: 12px/1.5 ui-monospace, monospace; white-space: pre-wrap; }}
ul {{ margin: 6px 0; padding-left: 20px; }}
@media print {{
  @page {{ size: A4 landscape; margin: 9mm; }}
  body {{ font-size: 12px; }}
  header, main {{ width: 1042px; padding: 0; }}
  nav {{ display: none; }}
  .scroll {{ max-height: none; overflow: visible; }}
  .plot, .facts, tr {{ break-inside: avoid; }}
  h2, h3, .legend {{ break-after: avoid; }}
  th {{ position: static; }}
  .plot, .legend i, .fact {{ print-color-adjust: exact; }}
}}
"""
