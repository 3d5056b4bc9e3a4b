"""Programs at each stage in `docs/architecture.md`, in the text forms of the stages themselves.

A model as graph, whole-device program and tables of tiles; then the four-tile program from tables to package.
``python -m tests.test_walkthrough`` writes the sections again; the tests demand that they are as written.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from compiler.exchange.ir import ScheduledExchange
from compiler.exchange.phase import schedule_program
from compiler.exchange.report import report_of
from compiler.graph.text import text_of_graph
from compiler.isa.disassembler import disassemble
from compiler.isa.linker import Image
from compiler.isa.listing import list_bytes
from compiler.isa.rows import Row, decode_row, row_listing
from compiler.kernels.objects import kernel_objects
from compiler.low.expand.program import expand
from compiler.low.ir import LowProgram
from compiler.low.project import project
from compiler.low.text import text_of_program, text_of_tile
from compiler.mid.text import text_of_program as text_of_mid
from compiler.models.registry import Variation, model_named
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.package.emit import emit
from compiler.package.hostplan import plan_host
from compiler.package.programs import ProgramInputs
from compiler.package.records import Application
from compiler.package.runtime import link_tile_code
from compiler.package.support import Support, size_support
from compiler.placement.ir import Placement
from compiler.placement.place import place
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from compiler.target.instructions import Mode
from compiler.target.isa_decisions import our_decisions
from compiler.target.tiles import logical_to_physical, physical_tiles
from compiler.target.units import LogicalTile

DOCUMENT: Final = Path(__file__).parent.parent / "docs" / "architecture.md"
BEGIN: Final = "<!-- the four-tile program, written by tests/test_walkthrough.py: begin -->\n"
END: Final = "<!-- end -->\n"
MODEL_BEGIN: Final = "<!-- mlp-smoke, written by tests/test_walkthrough.py: begin -->\n"
MODEL_END: Final = "<!-- mlp-smoke: end -->\n"
MODEL_TILES: Final = 16
TILE: Final = LogicalTile(0)
"""The tile that is followed."""
BIAS_OWNER: Final = LogicalTile(2)
"""The tile whose row is patched."""

_MID_TEXT: Final = """\
Each product has become a copy that brings its left operand and the products of all tiles; weights lie where
they are used, and GELU is applied in place.
"""
_TILE_TEXT: Final = """\
What tile 0 does of it. `b` is a buffer, `t` a transfer, `s` a sequence; `b1@s0` is the member of sequence 0
that the iteration visits, beginning with buffer 1.
"""
_ROW_TEXT: Final = """\
The row of the tile that owns the biases. Its send starts at another address in each iteration: that word is
patched before the row runs.
"""


class _Build:
    """Every stage of the program, as a candidate's evaluation has them."""

    def __init__(self) -> None:
        options = SkeletonOptions()
        self.program = skeleton(options)
        self.work = project(self.program)
        self.physical = physical_tiles(np.arange(options.tile_count))
        symbols = sorted({str(binding.symbol): binding.symbol for binding in self.program.bindings}.items())
        self.image = link_tile_code(
            kernel_objects({symbol for _, symbol in symbols}, our_decisions()), [name for name, _ in symbols]
        )
        provisional = self._inputs(place(self.program, ()), None)
        self.support = size_support(self.image, provisional)
        reserved = self.support.reservations.for_placement(options.tile_count)
        self.placement = place(self.program, reserved)
        self.final = self._inputs(self.placement, self.support)
        self.application = emit(
            self.final, self.image, self.support, compiler_version="walkthrough"
        ).application

    def _inputs(self, placement: Placement, support: Support | None) -> ProgramInputs:
        reservations = None if support is None else support.row_reservations()
        return ProgramInputs(
            program=self.program,
            work=self.work,
            placement=placement,
            exchange=schedule_program(self.program, placement, self.physical, reservations),
            host=plan_host(self.program, placement),
            symbols={symbol.name: symbol.address for symbol in self.image.symbols if symbol.is_global},
            runs=1,
        )


def section() -> str:
    """The generated part of the document."""
    build = _Build()
    return "\n".join(
        (
            "### Low\n",
            _quoted(text_of_program(build.program)),
            _TILE_TEXT,
            _quoted(text_of_tile(build.program, build.work, TILE)),
            "### Final placement\n",
            "Buffers of tile 0 in what the program's own code and rows leave free:\n",
            _quoted("\n".join(_placed(build.program, build.placement))),
            "### Exchange\n",
            _quoted("\n".join(str(report_of(phase)) for phase in build.final.exchange.phases.values())),
            _ROW_TEXT,
            _quoted("\n".join(_row(build.final.exchange))),
            "### Code\n",
            "Linked once, for all tiles alike:\n",
            _quoted("\n".join(_symbols(build.image))),
            "The program of tile 0, disassembled from the package:\n",
            _quoted("\n".join(_tile_program(build.application))),
            "### Package\n",
            _quoted("\n".join(_package(build.application))),
        )
    )


def _quoted(text: str) -> str:
    return f"```\n{text.rstrip()}\n```\n"


def _placed(program: LowProgram, placement: Placement) -> Iterator[str]:
    rows = np.flatnonzero(program.buffers.tile == TILE)
    for row in rows[np.argsort(placement.address[rows], kind="stable")].tolist():
        sequence = int(program.buffers.sequence[row])
        member = "" if sequence < 0 else f", member {program.buffers.member[row]} of s{sequence}"
        start, size = int(placement.address[row]), int(program.buffers.byte_count[row])
        yield f"{start:#x} .. {start + size:#x}  b{row}{member}"
    for sequence, first in enumerate(program.sequences.first.tolist()):
        if program.buffers.tile[first] == TILE:
            yield f"s{sequence}: {placement.stride[sequence]:,} bytes from member to member"


def _row(exchange: ScheduledExchange) -> Iterator[str]:
    phase = next(phase for phase in exchange.phases.values() if len(phase.patches.word))
    words = phase.rows.row(logical_to_physical(BIAS_OWNER))
    assert words is not None
    row = decode_row(words)
    assert isinstance(row, Row)
    yield from row_listing(row)
    for word, values in zip(phase.patches.word.tolist(), phase.patches.values, strict=True):
        first = int(phase.rows.first_word[np.searchsorted(phase.rows.first_word, word, side="right") - 1])
        uses = ", ".join(f"{value:08x}" for value in values.tolist())
        yield f"word {word - first} in iterations 0, 1: {uses}"


def _symbols(image: Image) -> Iterator[str]:
    for symbol in sorted(image.symbols, key=lambda symbol: symbol.address):
        if symbol.is_function:
            yield f"{symbol.address:#x}  {symbol.name}"


def _regions(application: Application) -> Iterator[tuple[int, int, str]]:
    tile = logical_to_physical(TILE)
    for region in application.debug_regions:
        if region.physical_tile == tile:
            yield region.address, region.size, region.name


def _tile_program(application: Application) -> Iterator[str]:
    address, size, _ = next(region for region in _regions(application) if region[2] == "tile program")
    image = next(t for t in application.tiles if t.physical_tile == logical_to_physical(TILE))
    content = next(s.data[address - s.address :][:size] for s in image.segments if s.address == address)
    assert list(disassemble(content, Mode.SUPERVISOR, address))
    yield from list_bytes(content, mode=Mode.SUPERVISOR, address=address, labels={}, remarks={})


def _package(application: Application) -> Iterator[str]:
    size = sum(len(segment.data) for tile in application.tiles for segment in tile.segments)
    yield f"{len(application.tiles):,} tiles, {size:,} bytes of segments (measured)"
    for kind in ("weights", "inputs", "outputs"):
        for binding in getattr(application, kind):
            shards, held = len(binding.slices), sum(piece.size for piece in binding.slices)
            yield f"{kind[:-1]} {binding.name}: {held:,} bytes in {shards:,} slices"
    for address, region_size, name in sorted(_regions(application)):
        yield f"tile {TILE}: {address:#x} .. {address + region_size:#x}  {name}"


def model_section() -> str:
    """The generated part about a model."""
    graph = model_named("mlp-smoke").graph(Variation(tiles=MODEL_TILES))
    setting = Setting(tile_count=MODEL_TILES)
    candidate = build_candidate(graph, setting, Recipe())
    return "\n".join(
        (
            "### Graph\n",
            _quoted(text_of_graph(graph, with_provenance=False)),
            "### Mid\n",
            _MID_TEXT,
            _quoted(text_of_mid(candidate.program)),
            "### Low\n",
            _quoted(text_of_program(expand(candidate.program))),
        )
    )


def _written(begin: str, end: str) -> tuple[str, str, str]:
    text = DOCUMENT.read_text()
    before, found, rest = text.partition(begin)
    inside, ended, after = rest.partition(end)
    assert found, "the document has no place for the walk-through"
    assert ended, "the walk-through of the document does not end"
    return before + begin, inside, end + after


def test_the_document_shows_the_program_as_the_stages_print_it() -> None:
    assert _written(BEGIN, END)[1] == section()


def test_the_document_shows_the_model_as_the_stages_print_it() -> None:
    assert _written(MODEL_BEGIN, MODEL_END)[1] == model_section()


if __name__ == "__main__":
    for first, last, make in ((BEGIN, END, section), (MODEL_BEGIN, MODEL_END, model_section)):
        head, _, tail = _written(first, last)
        DOCUMENT.write_text(head + make() + tail)
