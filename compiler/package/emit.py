"""Final emission: from placed and scheduled programs to an application of all tiles.

Input: the final placement and exchange, linked code, and the support that was sized before placement. The
emitters that measured write now (EC-17). Before anything is built, everything that depends on addresses is
checked (EC-12):

* every area of every tile fits the capacity that was reserved for it;
* no tensor lies in a reservation; the window may hold what lives inside a run only;
* every call and copy may have its addresses, in every iteration of the Repeat around it (RP-03).

The result holds all 1,472 tiles. Those without work have the same sequence of steps as the others and stay
away from each; the device could not pass a barrier without them. Equal inputs give equal bytes.

Outputs of the package are, beside the program's, words of the runtime's state that are read from memory when
the program has ended: ``completion``, ``profile.start-cycle`` and ``profile.end-cycle``, one word for each
tile, by physical number, and of profiled programs ``profile.cycles``. They are part of no call.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.errors import DoesNotFit, InternalError, Measure, NumberKind, Unsupported
from compiler.geometry.distribution import distribute
from compiler.isa.linker import Image
from compiler.kernels.contract import Binding as KernelBinding
from compiler.kernels.contract import check_addresses
from compiler.low.address import (
    Addresses,
    AddressOperands,
    destinations_of,
    resolve_all,
    sources_of,
    views_of,
)
from compiler.low.ir import LowProgram, Role
from compiler.low.steps import table_of
from compiler.package.assembly import Area, Stream
from compiler.package.format import save, write_package
from compiler.package.host import HostLayout, HostRole, belonging, write_layout
from compiler.package.hostplan import RUN
from compiler.package.profile import SAMPLES, profile_plan, sample_count
from compiler.package.programs import ProgramInputs, emit_programs
from compiler.package.records import (
    ALL_TILES,
    Application,
    Binding,
    DebugRegion,
    DebugSymbol,
    EntryPoint,
    RegionSlice,
    Segment,
    SegmentFlags,
    TileImage,
)
from compiler.package.runtime import tile_sites
from compiler.package.support import Purpose, Support
from compiler.target.host import RUN_COMMAND
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.tiles import TILE_COUNT, physical_to_logical
from compiler.target.units import WORD_BYTES, Address, Bytes, Int64Array, LogicalTile, PhysicalTile

STAGE: Final = "emission"

_LAYOUT: Final = DEFAULT_LAYOUT
_CODE: Final = SegmentFlags.READABLE | SegmentFlags.EXECUTABLE
_DATA: Final = SegmentFlags.READABLE | SegmentFlags.WRITABLE
_FLAGS: Final = {
    Area.PROGRAM: _CODE,
    Area.HOST: _CODE,
    Area.TABLES: SegmentFlags.READABLE,
    Area.ROWS: _CODE | SegmentFlags.WRITABLE,
    Area.SAMPLES: _DATA,
}
_AREA_NAMES: Final = {
    Area.PROGRAM: "tile program",
    Area.HOST: "host programs",
    Area.TABLES: "tables",
    Area.ROWS: "exchange rows",
    Area.SAMPLES: "samples of steps",
}
_ROLES: Final = {Role.PARAMETER: HostRole.WEIGHT, Role.INPUT: HostRole.INPUT, Role.OUTPUT: HostRole.OUTPUT}
_NO_COMMAND: Final = Address(0)
_STATE_WORDS: Final = {
    "completion": _LAYOUT.completion,
    "profile.start-cycle": _LAYOUT.profile_start,
    "profile.end-cycle": _LAYOUT.profile_end,
}
"""Outputs that are words of the runtime's state."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Emission:
    """A finished package.

    Args:
        application: the package.
        layouts: for each tensor of the host how its file is made, in the order of the low program.
    """

    application: Application
    layouts: tuple[HostLayout, ...]


def emit(
    inputs: ProgramInputs,
    image: Image,
    support: Support,
    *,
    compiler_version: str,
    shapes: Mapping[str, tuple[int, ...]] | None = None,
) -> Emission:
    """Emit a package.

    Args:
        inputs: what programs are emitted from, with final placement and exchange.
        image: from ``runtime.link_tile_code``; ``inputs.symbols`` are its symbols.
        support: places of everything but tensors.
        compiler_version: who writes it.
        shapes: of tensors of the host as users know them, where a program merges axes of them; others have
            the shapes of the program.

    Raises:
        DoesNotFit: an area is larger than what was reserved for it.
        InternalError: a tensor lies in a reservation, or a kernel may not have its addresses.
        Unsupported: a tensor has the name of a word of the runtime's state.
    """
    _check_names(inputs.program)
    check_tensors(inputs.program, inputs.placement, support)
    check_calls(inputs.program, inputs.placement)
    assembly = emit_programs(inputs, support.bases).assembly
    streams = {area: assembly.stream(area) for area in Area}
    _check_capacities(streams, support)
    host, cleared = inputs.host, _cleared(inputs.program, inputs.placement)
    known = {value.name: value.shape for value in inputs.program.values} | dict(shapes or {})

    def named(bindings: Sequence[Binding]) -> tuple[Binding, ...]:
        return tuple(dataclasses.replace(binding, shape=known[binding.name]) for binding in bindings)

    application = Application(
        compiler_version=compiler_version,
        tiles=tuple(
            _tile_image(PhysicalTile(tile), image, streams, support, cleared) for tile in range(TILE_COUNT)
        ),
        inputs=named(host.input_bindings),
        outputs=(*named(host.output_bindings), *_state_bindings(), *_sample_bindings(inputs, support)),
        weights=named(host.weight_bindings),
        host_exchange=host.host_exchange(),
        entry_points=(EntryPoint(name=RUN, command=RUN_COMMAND, external_syncs=host.rendezvous_per_run),),
        profile_tiles=profile_plan(inputs.program, inputs.exchange) if inputs.profile else (),
        debug_symbols=tuple(
            DebugSymbol(name=symbol.name, address=Address(symbol.address))
            for symbol in image.symbols
            if symbol.is_function
        ),
        debug_regions=tuple(_debug_regions(image, streams, support)),
    )
    layouts = tuple(
        HostLayout(
            name=value.name,
            role=_ROLES[value.role],
            shape=known[value.name],
            distributed=value.shape,
            format=value.format,
        )
        for value in inputs.program.values
    )
    return Emission(application=application, layouts=layouts)


def write_emission(emission: Emission, path: Path) -> tuple[Path, ...]:
    """Write a package and, beside it, the description of each tensor; gives all paths, the package first.

    Raises:
        InvalidInput: a file cannot be written.
    """
    written = [path]
    package = write_package(emission.application)
    for layout in emission.layouts:
        description = path.with_name(layout.file_name)
        description.write_text(belonging(write_layout(layout), package), encoding="utf-8")
        written.append(description)
    # Last, so that a package never lacks a description.
    save(emission.application, path)
    return tuple(written)


# Checks.


def _check_names(program: LowProgram) -> None:
    for value in program.values:
        if value.name in (*_STATE_WORDS, SAMPLES):
            raise Unsupported(
                "a tensor has the name of a word of the runtime, which every package has among its outputs",
                stage=STAGE,
                subject=value.name,
                next_step="rename the tensor",
            )


def _check_capacities(streams: dict[Area, Stream], support: Support) -> None:
    for area, stream in streams.items():
        excess = stream.sizes - support.capacity[area]
        if (excess <= 0).all():
            continue
        tile = int(excess.argmax())
        raise DoesNotFit(
            f"what was reserved for the {_AREA_NAMES[area]} before placement is too small",
            stage=STAGE,
            subject=f"tile {tile}",
            numbers=[
                Measure(
                    name=_AREA_NAMES[area],
                    value=int(stream.sizes[tile]),
                    limit=int(support.capacity[area, tile]),
                    unit="bytes",
                    kind=NumberKind.MEASURED,
                )
            ],
            next_step="size the support again from the final schedule, then place and schedule once more",
        )


def check_tensors(program: LowProgram, placement: Addresses, support: Support) -> None:
    """No buffer lies in a reservation. The host's window may hold temporaries that begin with anything.

    Raises:
        InternalError: one does.
    """
    buffers, reservations = program.buffers, support.reservations
    end = placement.address + buffers.byte_count
    bounds = np.searchsorted(reservations.tile, np.arange(TILE_COUNT + 1))
    for turn in range(int(np.diff(bounds).max())):
        row = bounds[buffers.tile] + turn
        exists = row < bounds[buffers.tile + 1]
        row = np.minimum(row, len(reservations.tile) - 1)
        start = reservations.start[row]
        meets = exists & (placement.address < start + reservations.byte_count[row]) & (start < end)
        is_free = (buffers.role == Role.TEMPORARY) & (buffers.cleared == 0)
        in_window = (reservations.purpose[row] == Purpose.WINDOW) & is_free
        wrong = np.flatnonzero(meets & ~in_window)
        if len(wrong):
            buffer = int(wrong[0])
            raise InternalError(
                f"buffer {buffer} at {int(placement.address[buffer]):#x} to {int(end[buffer]):#x} meets"
                f" memory from {int(start[buffer]):#x} that is reserved for"
                f" {Purpose(int(reservations.purpose[row[buffer]])).name.lower()}",
                stage=STAGE,
                subject=f"tile {int(buffers.tile[buffer])}",
                nodes=[program.nodes[int(buffers.node[buffer])]],
                next_step="report the model and the options; the placement ignores its reservations",
            )


def check_calls(program: LowProgram, placement: Addresses) -> None:
    """Every call and copy may have its addresses in every iteration.

    Equal calls are looked at once, since tiles are mostly alike.

    Raises:
        InternalError: one may not.
    """
    iterations = table_of(program.steps).iterations
    views = views_of(program.views)
    for number, binding in enumerate(program.bindings):
        accesses = len(binding.accesses)
        calls = np.flatnonzero(program.calls.binding == number)
        first = program.calls.first_view[calls]
        _check_rows(
            program,
            placement,
            binding,
            [views.take(program.calls.operand_views[first + position]) for position in range(accesses)],
            iterations[program.calls.step[calls]],
            program.calls.tile[calls],
            program.calls.node[calls],
        )
        copies = np.flatnonzero(program.copies.binding == number)
        _check_rows(
            program,
            placement,
            binding,
            [destinations_of(program.copies).take(copies), sources_of(program.copies).take(copies)],
            iterations[program.copies.step[copies]],
            program.copies.tile[copies],
            program.copies.node[copies],
        )


def _check_rows(
    program: LowProgram,
    placement: Addresses,
    binding: KernelBinding,
    operands: Sequence[AddressOperands],
    iterations: Int64Array,
    tiles: Int64Array,
    nodes: Int64Array,
) -> None:
    if not len(tiles):
        return
    last = np.maximum(iterations - 1, 0)
    starts = [resolve_all(placement, operand) for operand in operands]
    moves = [
        resolve_all(placement, operand, 1) - start for operand, start in zip(operands, starts, strict=True)
    ]
    distinct, example = np.unique(np.stack([*starts, *moves, last], axis=1), axis=0, return_index=True)
    width = len(operands)
    for row, first in zip(distinct.tolist(), example.tolist(), strict=True):
        start, move = row[:width], row[width : 2 * width]
        for iteration in range(row[-1] + 1 if any(move) else 1):
            reason = check_addresses(
                binding, [address + iteration * step for address, step in zip(start, move, strict=True)]
            )
            if reason is not None:
                raise InternalError(
                    f"{reason}, in iteration {iteration}" if any(move) else reason,
                    stage=STAGE,
                    subject=f"tile {int(tiles[first])}",
                    nodes=[program.nodes[int(nodes[first])]],
                    next_step="report the model and the options; the placement breaks a kernel's demand",
                )


# Records.


def _cleared(program: LowProgram, placement: Addresses) -> dict[int, list[Segment]]:
    """By logical tile, memory that is zero when the program is loaded.

    It is what the program says (AL-02), and outputs with padding: the host reads shards whole, and a program
    need not write bytes that hold no element.
    """
    buffers = program.buffers
    rows = np.flatnonzero((buffers.cleared == 1) | _is_padded_output(program))
    spans: dict[int, list[tuple[int, int]]] = {}
    for row in rows[np.lexsort((placement.address[rows], buffers.tile[rows]))].tolist():
        start = int(placement.address[row])
        stop = start + int(buffers.byte_count[row])
        of_tile = spans.setdefault(int(buffers.tile[row]), [])
        if of_tile and start <= of_tile[-1][1]:  # two outputs can be one buffer
            start, stop = of_tile[-1][0], max(stop, of_tile.pop()[1])
        of_tile.append((start, stop))
    return {
        tile: [
            Segment(address=Address(start), memory_size=Bytes(stop - start), data=b"", flags=_DATA)
            for start, stop in of_tile
        ]
        for tile, of_tile in spans.items()
    }


def _is_padded_output(program: LowProgram) -> npt.NDArray[np.bool_]:
    """[buffers] which are shards of outputs that hold more than elements."""
    buffers = program.buffers
    found = np.zeros(len(buffers.tile), dtype=np.bool_)
    for number, value in enumerate(program.values):
        if value.role is Role.OUTPUT:
            distribution = distribute(value.shape, value.format)
            is_padded = distribution.storage_elements != distribution.logical_elements
            rows = np.flatnonzero(buffers.value == number)
            found[rows] = is_padded[buffers.shard[rows]]
    return found


def _tile_image(
    tile: PhysicalTile,
    image: Image,
    streams: dict[Area, Stream],
    support: Support,
    cleared: dict[int, list[Segment]],
) -> TileImage:
    logical = physical_to_logical(tile)
    segments = [*_linked_segments(image, logical, Address(int(support.start[Area.PROGRAM, logical])))]
    for area, stream in streams.items():
        content = stream.of(logical).astype("<u4").tobytes()
        if content:
            segments.append(
                Segment(
                    address=Address(int(support.start[area, logical])),
                    memory_size=Bytes(len(content)),
                    data=b"" if area is Area.SAMPLES else content,
                    flags=_FLAGS[area],
                )
            )
    segments.append(
        Segment(address=_LAYOUT.state.start, memory_size=_LAYOUT.state.size, data=b"", flags=_DATA)
    )
    segments += cleared.get(logical, [])
    return TileImage(
        physical_tile=tile,
        entry_point=_LAYOUT.entry,
        segments=tuple(sorted(segments, key=lambda segment: segment.address)),
        command_address=_NO_COMMAND,
        diagnostic_address=_LAYOUT.completion,
    )


def _linked_segments(image: Image, tile: LogicalTile, program: Address) -> list[Segment]:
    """The linked code with the tile's own instructions."""
    sites = tile_sites(image, tile, program)
    segments: list[Segment] = []
    for address, shared, size in image.segments():
        content = bytearray(shared)
        for site in sites:
            offset = site.address - address
            if 0 <= offset < len(content):
                content[offset : offset + WORD_BYTES] = site.word.to_bytes(WORD_BYTES, "little")
        segments.append(
            Segment(
                address=Address(address),
                memory_size=Bytes(size),
                data=bytes(content),
                flags=_CODE if size == len(content) else _CODE | SegmentFlags.WRITABLE,
            )
        )
    return segments


def _state_bindings() -> tuple[Binding, ...]:
    """Words that every tile leaves in the runtime's state."""
    return tuple(
        Binding(
            name=name,
            dtype="u32",
            shape=(TILE_COUNT,),
            slices=tuple(
                RegionSlice(
                    tile=PhysicalTile(tile),
                    tile_address=address,
                    file_offset=Bytes(tile * WORD_BYTES),
                    size=WORD_BYTES,
                )
                for tile in range(TILE_COUNT)
            ),
        )
        for name, address in _STATE_WORDS.items()
    )


def _sample_bindings(inputs: ProgramInputs, support: Support) -> tuple[Binding, ...]:
    """What every tile of a profiled program leaves beside it."""
    if not inputs.profile:
        return ()
    count = sample_count(inputs.program)
    size = Bytes(WORD_BYTES * count)
    return (
        Binding(
            name=SAMPLES,
            dtype="u32",
            shape=(TILE_COUNT, count),
            slices=tuple(
                RegionSlice(
                    tile=PhysicalTile(tile),
                    tile_address=Address(
                        int(support.start[Area.SAMPLES, physical_to_logical(PhysicalTile(tile))])
                    ),
                    file_offset=Bytes(tile * size),
                    size=size,
                )
                for tile in range(TILE_COUNT)
            ),
        ),
    )


def _debug_regions(image: Image, streams: dict[Area, Stream], support: Support) -> list[DebugRegion]:
    """Linked sections and the state, the same on all tiles, then what each tile has of its own."""
    regions = [
        DebugRegion(
            physical_tile=ALL_TILES,
            address=Address(section.address),
            size=Bytes(section.size),
            name=section.name,
        )
        for section in image.sections
        if section.size
    ]
    regions.append(
        DebugRegion(
            physical_tile=ALL_TILES,
            address=_LAYOUT.state.start,
            size=_LAYOUT.state.size,
            name="runtime state",
        )
    )
    sizes = {area: stream.sizes.tolist() for area, stream in streams.items()}
    for tile in range(TILE_COUNT):
        logical = physical_to_logical(PhysicalTile(tile))
        regions += [
            DebugRegion(
                physical_tile=PhysicalTile(tile),
                address=Address(int(support.start[area, logical])),
                size=Bytes(sizes[area][logical]),
                name=name,
            )
            for area, name in _AREA_NAMES.items()
            if sizes[area][logical]
        ]
    return regions
