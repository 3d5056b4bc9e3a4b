"""What is in a package, read from the package alone.

Input: an application, as the reader of packages gives it (which judged it). Nothing of the compiler's tables
is known here: what lies where follows from debug regions, what is called from the words of tile programs, and
when exchanges happen from their rows, decoded. So these figures are about what will run, and a difference
from what the compiler planned can be seen.

**Phases.** Every tile runs the same steps. Where its program takes part in an exchange it calls a row; where
it stays away it says so (``sans``, then ``sync``). Thus the n-th of both on any tile belongs to the n-th
exchange of the program; iterations of a loop are one. Programs of tiles are supervisor code without second
words, which lets their calls be found in whole arrays of words.

Tiles are physical.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.errors import Measure, NumberKind, PackageInvalid
from compiler.figures import counted
from compiler.isa.listing import list_bytes
from compiler.isa.rows import RowRefusal, decode_row, row_listing
from compiler.package.records import (
    ALL_TILES,
    Application,
    Binding,
    DebugRegion,
    Segment,
    TileImage,
)
from compiler.target.instructions import InstructionForm, Mode, instruction_table
from compiler.target.memory import SRAM_BASE, SRAM_SIZE
from compiler.target.units import WORD_BYTES, PhysicalTile

STAGE: Final = "inspect"
PROGRAM: Final = "tile program"
HOST_PROGRAMS: Final = "host programs"
ROWS: Final = "exchange rows"
LINKED: Final = "linked code"
OTHER: Final = "other"
STATE: Final = "runtime state"
RUNTIME: Final = "runtime."
"""What names of routines of the runtime begin with; all other functions are kernels."""

_WordArray = npt.NDArray[np.uint32]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A kind of content.

    Args:
        name: linked code, or the name of its regions.
        tiles: on how many tiles it is.
        total: bytes of the file that are its content, on all tiles.
        largest: bytes of it on one tile at most.
    """

    name: str
    tiles: int
    total: Measure
    largest: Measure


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostTensor:
    """A tensor that the host writes or reads.

    Args:
        name: of the binding.
        role: input, output or weight.
        dtype: name of the element type.
        shape: logical extents.
        tiles: on how many tiles it lies.
        total: bytes of it on the device; more than those of its file where shards are on several tiles.
        largest: bytes of it on one tile at most.
    """

    name: str
    role: str
    dtype: str
    shape: tuple[int, ...]
    tiles: int
    total: Measure
    largest: Measure


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """A package in figures.

    Args:
        compiler_version: who wrote it.
        target: what it is for.
        file: bytes of the file.
        parts: content of the file by kind, then what describes it.
        tiles: images in it.
        working_tiles: tiles that call a kernel or take part in an exchange.
        phases: exchanges in its program; those in a loop count once.
        symbols: functions.
        tensors: of the host, state words of the runtime left out.
        calls: what a user can ask for.
    """

    compiler_version: str
    target: str
    file: Measure
    parts: tuple[Part, ...]
    tiles: Measure
    working_tiles: Measure
    phases: Measure
    symbols: Measure
    tensors: tuple[HostTensor, ...]
    calls: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Bytes of a tile's memory.

    Args:
        start: byte address.
        stop: the first behind.
        name: what is there.
        is_initialized: whether the package says what they hold.
    """

    start: int
    stop: int
    name: str
    is_initialized: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileContents:
    """One tile.

    Args:
        tile: physical.
        entry: address at which its supervisor starts.
        initialized: bytes that the package sets.
        named: bytes that a region or tensor has; the others are free, or hold what lives inside a run.
        memory: by address; spans may meet, as tensors do that share storage.
        program: the tile's own program as an assembly listing.
        host_programs: what it runs when the host brings or takes data.
    """

    tile: int
    entry: int
    initialized: Measure
    named: Measure
    memory: tuple[Span, ...]
    program: tuple[str, ...]
    host_programs: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowSummary:
    """One tile's row of a phase, decoded.

    Args:
        tile: physical.
        address: byte address.
        words: of the row.
        events: that it takes.
        items: that it sends.
    """

    tile: int
    address: int
    words: int
    events: int
    items: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PackagePhase:
    """One exchange of the program.

    Args:
        number: in program order.
        horizon: events of its longest row.
        row_bytes: bytes of its largest row.
        items: that are sent by all tiles.
        rows: by tile.
    """

    number: int
    horizon: Measure
    row_bytes: Measure
    items: Measure
    rows: tuple[RowSummary, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Symbol:
    """A function, the same on every tile.

    Args:
        name: of the function.
        address: of its first instruction.
        size: bytes up to the next function or the end of its section.
        calls: calls in the tile programs of all tiles.
        tiles: tiles whose programs call it.
    """

    name: str
    address: int
    size: Measure
    calls: Measure
    tiles: Measure


def overview_of(application: Application, file_bytes: int) -> Overview:
    """The figures of a package.

    Args:
        application: what is in it.
        file_bytes: size of its file.
    """
    totals: Counter[str] = Counter()
    tiles: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    index = _Regions(application)
    for image in application.tiles:
        own: Counter[str] = Counter()
        for segment in image.segments:
            own.update(index.content(image.physical_tile, segment))
        for name, size in own.items():
            totals[name] += size
            tiles[name] += 1
            largest[name] = max(largest[name], size)
    parts = [
        Part(
            name=name,
            tiles=tiles[name],
            total=counted(name, totals[name], "bytes"),
            largest=counted(f"{name} of a tile at most", largest[name], "bytes"),
        )
        for name in sorted(totals, key=lambda name: (-totals[name], name))
    ]
    rest = file_bytes - totals.total()
    parts.append(
        Part(
            name="descriptions",
            tiles=0,
            total=counted("descriptions", rest, "bytes"),
            largest=counted("descriptions of a tile at most", 0, "bytes"),
        )
    )
    sites = _Sites(application)
    return Overview(
        compiler_version=application.compiler_version,
        target=application.target,
        file=counted("file", file_bytes, "bytes"),
        parts=tuple(parts),
        tiles=counted("tiles", len(application.tiles), "tiles"),
        working_tiles=counted("tiles with work", len(sites.working), "tiles"),
        phases=counted("exchange phases", sites.phase_count, "phases"),
        symbols=counted("functions", len(application.debug_symbols), "functions"),
        tensors=tuple(_tensors(application)),
        calls=tuple(call.name for call in application.host_exchange.calls),
    )


def tile_of(application: Application, tile: PhysicalTile) -> TileContents | None:
    """What one tile holds and runs; None when the package has no image for it."""
    image = _image(application, tile)
    if image is None:
        return None
    index = _Regions(application)
    spans = [
        Span(
            start=region.address,
            stop=region.address + region.size,
            name=region.name,
            is_initialized=_is_initialized(image, region.address, region.size),
        )
        for region in index.of(tile)
    ]
    named = [region.address for region in index.of(tile)]
    for role, binding in _bindings(application):
        if binding.slices and all(part.tile_address in _state(index, tile) for part in binding.slices):
            continue
        spans += [
            Span(
                start=part.tile_address,
                stop=part.tile_address + part.size,
                name=f"{role} {binding.name}",
                is_initialized=False,
            )
            for part in binding.slices
            if part.tile == tile
        ]
    spans += [
        Span(
            start=segment.address,
            stop=segment.address + segment.memory_size,
            name="segment",
            is_initialized=bool(segment.data),
        )
        for segment in image.segments
        if not any(segment.address <= address < segment.address + segment.memory_size for address in named)
    ]
    spans.sort(key=lambda span: (span.start, span.stop, span.name))
    memory = tuple(_with_gaps(spans))
    initialized = sum(segment.memory_size for segment in image.segments)
    free = sum(span.stop - span.start for span in memory if not span.name)
    names = _names(application)
    return TileContents(
        tile=tile,
        entry=image.entry_point,
        initialized=counted("initialized", initialized, "bytes", limit=SRAM_SIZE),
        named=counted("named", SRAM_SIZE - free, "bytes", limit=SRAM_SIZE),
        memory=memory,
        program=_listed(image, index.named(tile, PROGRAM), names),
        host_programs=_listed(image, index.named(tile, HOST_PROGRAMS), names),
    )


def phases_of(application: Application) -> tuple[PackagePhase, ...]:
    """The exchanges of a package, every row decoded.

    Raises:
        PackageInvalid: a tile calls a row that is none.
    """
    sites = _Sites(application)
    rows: list[list[RowSummary]] = [[] for _ in range(sites.phase_count)]
    for image in application.tiles:
        for phase, address in sites.rows.get(image.physical_tile, ()):
            words = _words(image, address)
            row = decode_row(words)
            if isinstance(row, RowRefusal):
                raise PackageInvalid(
                    f"its program calls a row at {address:#x} that is none: {row}",
                    stage=STAGE,
                    subject=f"tile {image.physical_tile}",
                    next_step="build the package again",
                )
            rows[phase].append(
                RowSummary(
                    tile=image.physical_tile,
                    address=address,
                    words=len(row.words),
                    events=row.horizon,
                    items=int(row.sends.count[row.sends.control & _DIRECTIONS != 0].sum()),
                )
            )
    return tuple(
        PackagePhase(
            number=number,
            horizon=Measure(
                name="horizon",
                value=max((row.events for row in found), default=0),
                unit="events",
                kind=NumberKind.SCHEDULED,
            ),
            row_bytes=counted(
                "largest row", WORD_BYTES * max((row.words for row in found), default=0), "bytes"
            ),
            items=counted("items sent", sum(row.items for row in found), "items"),
            rows=tuple(sorted(found, key=lambda row: row.tile)),
        )
        for number, found in enumerate(rows)
    )


def row_lines(application: Application, row: RowSummary) -> tuple[str, ...]:
    """The instructions of a row that ``phases_of`` gave, a line each."""
    image = _image(application, PhysicalTile(row.tile))
    if image is None:
        raise ValueError(f"the package has no tile {row.tile}")
    decoded = decode_row(_words(image, row.address))
    if isinstance(decoded, RowRefusal):
        raise ValueError(f"{row} is no row of this package")
    return row_listing(decoded)


def symbols_of(application: Application) -> tuple[Symbol, ...]:
    """All functions by address."""
    sites = _Sites(application)
    ordered = sorted(application.debug_symbols, key=lambda symbol: (symbol.address, symbol.name))
    ends = sorted(
        region.address + region.size
        for region in application.debug_regions
        if region.physical_tile == ALL_TILES
    )
    starts = sorted({symbol.address for symbol in ordered})
    found: list[Symbol] = []
    for symbol in ordered:
        following = bisect_right(starts, symbol.address)
        stops = [starts[following]] if following < len(starts) else []
        end = bisect_right(ends, symbol.address)
        stops += [ends[end]] if end < len(ends) else []
        size = min(stops, default=symbol.address) - symbol.address
        found.append(
            Symbol(
                name=symbol.name,
                address=symbol.address,
                size=counted("size", size, "bytes"),
                calls=counted("calls", sites.calls[symbol.address], "calls"),
                tiles=counted("calling tiles", sites.callers[symbol.address], "tiles"),
            )
        )
    return tuple(found)


_DIRECTIONS: Final = 3
"""Bits of a send control of which one is set when items reach the fabric."""


@final
class _Regions:
    """Debug regions by tile, each by address."""

    def __init__(self, application: Application) -> None:
        self._common: list[DebugRegion] = []
        self._own: dict[int, list[DebugRegion]] = {}
        for region in application.debug_regions:
            if region.physical_tile == ALL_TILES:
                self._common.append(region)
            else:
                self._own.setdefault(region.physical_tile, []).append(region)
        self._common.sort(key=lambda region: region.address)

    def of(self, tile: int) -> list[DebugRegion]:
        """Those of a tile."""
        own = [*self._common, *self._own.get(tile, ())]
        return sorted(own, key=lambda region: (region.address, region.name))

    def named(self, tile: int, name: str) -> list[DebugRegion]:
        """Those of a tile alone with a name."""
        return [region for region in self._own.get(tile, ()) if region.name == name]

    def content(self, tile: int, segment: Segment) -> Mapping[str, int]:
        """Bytes of a segment's data by what they are."""
        found: Counter[str] = Counter()
        end = segment.address + len(segment.data)
        reach = int(segment.address)
        for region in sorted(self._own.get(tile, ()), key=lambda region: (region.address, region.name)):
            start, stop = max(reach, region.address), min(end, region.address + region.size)
            if start < stop:
                found[region.name] += stop - start
                reach = stop
        rest = len(segment.data) - found.total()
        if rest:
            # Sections are aligned: what is between them belongs to the code.
            is_code = any(
                region.address < end and segment.address < region.address + region.size
                for region in self._common
            )
            found[LINKED if is_code else OTHER] += rest
        return found


@final
class _Sites:
    """Calls and exchanges in the programs of all tiles.

    Attributes:
        rows: by tile, (phase, address of the row) of each exchange that it takes part in.
        phase_count: exchanges of the program.
        calls: by address of a function, calls of it.
        callers: by address of a function, tiles that call it.
        working: tiles that call a kernel or a row.
    """

    def __init__(self, application: Application) -> None:
        index = _Regions(application)
        self.rows: dict[int, list[tuple[int, int]]] = {}
        self.calls: Counter[int] = Counter()
        self.callers: Counter[int] = Counter()
        self.working: set[int] = set()
        self.phase_count = 0
        kernels = {
            symbol.address for symbol in application.debug_symbols if not symbol.name.startswith(RUNTIME)
        }
        for image in application.tiles:
            tile = image.physical_tile
            held = index.named(tile, ROWS)
            phase = 0
            called: Counter[int] = Counter()
            for region in index.named(tile, PROGRAM):
                for target in _targets(_words(image, region.address)[: region.size // WORD_BYTES]):
                    if target is None:
                        phase += 1
                    elif any(rows.address <= target < rows.address + rows.size for rows in held):
                        self.rows.setdefault(tile, []).append((phase, target))
                        phase += 1
                    else:
                        called[target] += 1
            self.calls.update(called)
            self.callers.update(called.keys())
            if tile in self.rows or called.keys() & kernels:
                self.working.add(tile)
            self.phase_count = max(self.phase_count, phase)


def _targets(words: _WordArray) -> Iterator[int | None]:
    """Addresses that a program calls, in order; None where it stays away from an exchange."""
    call, absence = _call_form(), _form("sans")
    is_call = words & np.uint32(call.fixed_mask) == call.fixed_bits
    is_absence = words & np.uint32(absence.fixed_mask) == absence.fixed_bits
    for place in np.flatnonzero(is_call | is_absence).tolist():
        if is_absence[place]:
            yield None
            continue
        decoded = instruction_table().decode(int(words[place]), Mode.SUPERVISOR)
        if decoded is not None:
            yield decoded[1][-1]


@cache
def _form(mnemonic: str) -> InstructionForm:
    (form,) = instruction_table().forms(mnemonic)
    return form


@cache
def _call_form() -> InstructionForm:
    return _form("call")


def _image(application: Application, tile: PhysicalTile) -> TileImage | None:
    return next((image for image in application.tiles if image.physical_tile == tile), None)


def _words(image: TileImage, address: int) -> _WordArray:
    """The words of a tile from an address on to the end of the segment that holds it."""
    for segment in image.segments:
        offset = address - segment.address
        if 0 <= offset < len(segment.data):
            count = (len(segment.data) - offset) // WORD_BYTES
            return np.frombuffer(segment.data, dtype="<u4", count=count, offset=offset).astype(np.uint32)
    return np.empty(0, dtype=np.uint32)


def _is_initialized(image: TileImage, address: int, size: int) -> bool:
    return any(
        segment.address <= address and address + size <= segment.address + segment.memory_size
        for segment in image.segments
    )


def _state(index: _Regions, tile: int) -> range:
    """Addresses of the runtime's state."""
    for region in index.of(tile):
        if region.name == STATE:
            return range(region.address, region.address + region.size)
    return range(0)


def _bindings(application: Application) -> Iterator[tuple[str, Binding]]:
    groups = (("weight", application.weights), ("input", application.inputs), ("output", application.outputs))
    for role, bindings in groups:
        for binding in bindings:
            yield role, binding


def _tensors(application: Application) -> Iterator[HostTensor]:
    index = _Regions(application)
    for role, binding in _bindings(application):
        if binding.slices and all(
            part.tile_address in _state(index, part.tile) for part in binding.slices[:1]
        ):
            continue
        sizes: Counter[int] = Counter()
        for part in binding.slices:
            sizes[part.tile] += part.size
        yield HostTensor(
            name=binding.name,
            role=role,
            dtype=binding.dtype,
            shape=tuple(binding.shape),
            tiles=len(sizes),
            total=counted(binding.name, sizes.total(), "bytes"),
            largest=counted(f"{binding.name} on a tile at most", max(sizes.values(), default=0), "bytes"),
        )


def _with_gaps(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans, and one without a name wherever none is."""
    reach, end = int(SRAM_BASE), SRAM_BASE + SRAM_SIZE
    for span in spans:
        # Regions may lie anywhere, by the rules of packages; only SRAM can be free.
        if min(span.start, end) > reach:
            yield Span(start=reach, stop=min(span.start, end), name="", is_initialized=False)
        yield span
        reach = max(reach, span.stop)
    if reach < end:
        yield Span(start=reach, stop=end, name="", is_initialized=False)


def _names(application: Application) -> Mapping[int, str]:
    return {symbol.address: symbol.name for symbol in application.debug_symbols}


def _listed(image: TileImage, regions: Iterable[DebugRegion], names: Mapping[int, str]) -> tuple[str, ...]:
    """Listings of regions, calls with the names of what they call."""
    call = _call_form()
    lines: list[str] = []
    for region in regions:
        words = _words(image, region.address)[: region.size // WORD_BYTES]
        remarks: dict[int, str] = {}
        for place in np.flatnonzero(words & np.uint32(call.fixed_mask) == call.fixed_bits).tolist():
            decoded = instruction_table().decode(int(words[place]), Mode.SUPERVISOR)
            if decoded is not None and decoded[1][-1] in names:
                remarks[region.address + WORD_BYTES * place] = names[decoded[1][-1]]
        lines += list_bytes(
            words.astype("<u4").tobytes(),
            mode=Mode.SUPERVISOR,
            address=region.address,
            labels={},
            remarks=remarks,
        )
    return tuple(lines)
