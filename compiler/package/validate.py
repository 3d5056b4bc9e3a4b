"""What a package must obey, one function for each rule, whose docstring is the rule.

A rule looks at a whole package and yields every place that breaks it; it assumes nothing about the other
rules. ``RULES`` holds them in the order in which a reader should hear about them: what the package is for
first, then memory, then what refers to it. Rules that only the loader imposes (how far an image reaches,
which tiles exist) are here as well, because a package that breaks them cannot be loaded.

Time is linear in the package, but for sorting the segments of each tile.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, TypeAlias, TypeVar, final

from compiler.errors import Measure, NumberKind
from compiler.package.records import (
    ALL_TILES,
    SCHEMA_VERSION,
    TARGET,
    Application,
    Binding,
    HostCall,
    HostSlice,
    Profile,
    Segment,
)
from compiler.target.loader import LOAD_BASE, LOAD_LIMIT
from compiler.target.memory import SRAM_BASE, SRAM_END, SRAM_SIZE
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Address, Bytes, PhysicalTile

REBUILD: Final = "build the package again, or obtain it again"
OTHER_PROGRAM: Final = "use a package of this version and target, or the program that wrote this one"

COMMAND_BYTES: Final = 4
"""Bytes of the command word in the command page."""

_FILE_POSITIONS: Final = 1 << 64
"""Positions in a file are 64-bit numbers."""

_CONFIGURATION_ALIGNMENT: Final = 4
"""Device registers are words."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """A place that breaks a rule.

    Args:
        place: what it is about inside the package; empty for the package itself.
        message: what is wrong, a sentence without a final full stop.
        numbers: the sizes that decided.
        next_step: what the user can do.
    """

    place: str
    message: str
    numbers: tuple[Measure, ...] = ()
    next_step: str = REBUILD


_ValueT = TypeVar("_ValueT", bound=Hashable)

Rule: TypeAlias = Callable[[Application], Iterator[Violation]]


def violations(application: Application) -> Iterator[Violation]:
    """Every violation of every rule, rule by rule; none for a valid package."""
    for rule in RULES:
        yield from rule(application)


def profile_violations(profile: Profile) -> Iterator[Violation]:
    """The same for a measured profile, whose only rule is its version."""
    yield from version_violations(profile.schema_version)


def version_violations(found: int) -> Iterator[Violation]:
    """The schema version is the one that this program reads and writes."""
    if found != SCHEMA_VERSION:
        yield Violation(
            place="",
            message=f"schema version {found}, this program reads version {SCHEMA_VERSION}",
            next_step=OTHER_PROGRAM,
        )


# What the package is for.


def schema_version_is_known(application: Application) -> Iterator[Violation]:
    """The schema version is the one that this program reads and writes."""
    yield from version_violations(application.schema_version)


def target_is_known(application: Application) -> Iterator[Violation]:
    """The target is the one that this program knows."""
    if application.target != TARGET:
        yield Violation(
            place="",
            message=f"the package is for target {application.target!r}, not {TARGET!r}",
            next_step=OTHER_PROGRAM,
        )


def memory_base_is_the_targets(application: Application) -> Iterator[Violation]:
    """Tile memory begins where the target's does."""
    if application.tile_memory_base != SRAM_BASE:
        yield Violation(
            place="",
            message=(
                f"tile memory begins at {application.tile_memory_base:#x}, the target's at {SRAM_BASE:#x}"
            ),
            next_step=OTHER_PROGRAM,
        )


def memory_size_is_the_targets(application: Application) -> Iterator[Violation]:
    """Tile memory is as large as the target's."""
    if application.tile_memory_size != SRAM_SIZE:
        yield Violation(
            place="",
            message=(
                f"a tile has {application.tile_memory_size:,} bytes of memory,"
                f" the target's have {SRAM_SIZE:,}"
            ),
            next_step=OTHER_PROGRAM,
        )


# Tile images.


def some_tile_is_loaded(application: Application) -> Iterator[Violation]:
    """There is at least one tile image."""
    if not application.tiles:
        yield Violation(place="", message="the package holds no tile image")


def tiles_exist(application: Application) -> Iterator[Violation]:
    """Each tile image is for a tile of the target."""
    for tile in application.tiles:
        if tile.physical_tile >= TILE_COUNT:
            yield Violation(
                place=_tile(tile.physical_tile),
                message=f"the target has physical tiles 0 to {TILE_COUNT - 1} only",
            )


def tiles_are_unique(application: Application) -> Iterator[Violation]:
    """No tile has two images."""
    for tile in _repeated(tile.physical_tile for tile in application.tiles):
        yield Violation(place=_tile(tile), message="the package holds two images of this tile")


def segments_lie_in_memory(application: Application) -> Iterator[Violation]:
    """Each segment lies inside tile memory."""
    for place, segment in _segments(application):
        if not _in_memory(segment.address, segment.memory_size):
            yield Violation(place=place, message=_outside_memory(segment.address, segment.memory_size))


def segments_are_loadable(application: Application) -> Iterator[Violation]:
    """Each segment lies where the loader can give memory a value."""
    for place, segment in _segments(application):
        end = segment.address + segment.memory_size
        # What is outside memory has been said already.
        if not segment.memory_size or not _in_memory(segment.address, segment.memory_size):
            continue
        if segment.address < LOAD_BASE or end > LOAD_LIMIT:
            yield Violation(
                place=place,
                message=(
                    f"bytes {segment.address:#x} to {end:#x} reach beyond what the loader can fill,"
                    f" {LOAD_BASE:#x} to {LOAD_LIMIT:#x}"
                ),
            )


def data_fits_its_segment(application: Application) -> Iterator[Violation]:
    """The data of a segment is no longer than its memory."""
    for place, segment in _segments(application):
        if len(segment.data) > segment.memory_size:
            yield Violation(
                place=place,
                message="the data is longer than the memory it is for",
                numbers=(_bytes("data", len(segment.data), segment.memory_size),),
            )


def segments_are_disjoint(application: Application) -> Iterator[Violation]:
    """No two segments of a tile share a byte."""
    for tile in application.tiles:
        occupied = [
            (segment.address, segment.address + segment.memory_size, index)
            for index, segment in enumerate(tile.segments)
            if segment.memory_size
        ]
        for (first_start, first_end, first), (start, end, index) in pairwise(sorted(occupied)):
            if start < first_end:
                yield Violation(
                    place=_tile(tile.physical_tile),
                    message=(
                        f"segments {first} ({first_start:#x} to {first_end:#x}) and"
                        f" {index} ({start:#x} to {end:#x}) overlap"
                    ),
                )


# Device configuration.


def configuration_is_aligned(application: Application) -> Iterator[Violation]:
    """Configuration writes go to whole registers."""
    for index, write in enumerate(application.device_config_writes):
        if write.offset % _CONFIGURATION_ALIGNMENT != 0:
            yield Violation(
                place=f"device configuration write {index}",
                message=f"offset {write.offset:#x} is not a multiple of {_CONFIGURATION_ALIGNMENT}",
            )


def configuration_is_unambiguous(application: Application) -> Iterator[Violation]:
    """No register is configured twice."""
    for offset in _repeated(write.offset for write in application.device_config_writes):
        yield Violation(
            place="device configuration writes", message=f"offset {offset:#x} is written more than once"
        )


# Bindings.


def bindings_are_named(application: Application) -> Iterator[Violation]:
    """Each binding has a name."""
    for kind, bindings in _binding_lists(application):
        for index, binding in enumerate(bindings):
            if not binding.name:
                yield Violation(place=f"{kind} {index}", message="this binding has no name")


def binding_names_are_unique(application: Application) -> Iterator[Violation]:
    """No two bindings, be they inputs, outputs or weights, have the same name."""
    names = [binding.name for _, bindings in _binding_lists(application) for binding in bindings]
    for name in _repeated(name for name in names if name):
        yield Violation(place=f"binding {name!r}", message="more than one binding has this name")


def binding_tiles_are_loaded(application: Application) -> Iterator[Violation]:
    """Each slice of a binding lies on a tile of the package."""
    loaded = {tile.physical_tile for tile in application.tiles}
    for place, binding in _bindings(application):
        for index, part in enumerate(binding.slices):
            if part.tile not in loaded:
                yield Violation(
                    place=f"{place}, slice {index}", message=f"the package holds no image of tile {part.tile}"
                )


def binding_slices_lie_in_memory(application: Application) -> Iterator[Violation]:
    """Each slice of a binding lies inside tile memory."""
    for place, binding in _bindings(application):
        for index, part in enumerate(binding.slices):
            if not _in_memory(part.tile_address, part.size):
                yield Violation(
                    place=f"{place}, slice {index}", message=_outside_memory(part.tile_address, part.size)
                )


def binding_slices_lie_in_files(application: Application) -> Iterator[Violation]:
    """Each slice of a binding ends at a position that a file can have."""
    for place, binding in _bindings(application):
        for index, part in enumerate(binding.slices):
            if part.file_offset + part.size >= _FILE_POSITIONS:
                yield Violation(
                    place=f"{place}, slice {index}",
                    message=f"{part.size:,} bytes at file offset {part.file_offset:,} end beyond any file",
                )


# Host exchange.


def host_pages_are_unique(application: Application) -> Iterator[Violation]:
    """No two host pages have the same index."""
    for index in _repeated(page.index for page in application.host_exchange.pages):
        yield Violation(place=f"host page {index}", message="more than one page has this index")


def attached_pages_exist(application: Application) -> Iterator[Violation]:
    """The attach order names pages of the package."""
    known = _page_sizes(application)
    for position, page in enumerate(application.host_exchange.attach_order):
        if page not in known:
            yield Violation(
                place=f"attach order, position {position}", message=f"the package has no host page {page}"
            )


def command_word_lies_in_its_page(application: Application) -> Iterator[Violation]:
    """If there are calls, the command page exists and holds the command word."""
    exchange = application.host_exchange
    if not exchange.calls:
        return
    size = _page_sizes(application).get(exchange.command_page)
    if size is None:
        yield Violation(
            place="command page", message=f"there are calls, but no host page {exchange.command_page}"
        )
    elif exchange.command_offset + COMMAND_BYTES > size:
        yield Violation(
            place="command page",
            message=f"the command word at offset {exchange.command_offset:,} ends behind the page",
            numbers=(_bytes("end of the command word", exchange.command_offset + COMMAND_BYTES, size),),
        )


def call_pages_exist(application: Application) -> Iterator[Violation]:
    """Each slice of a call lies in a page of the package."""
    known = _page_sizes(application)
    for place, part in _host_slices(application):
        if part.page not in known:
            yield Violation(place=place, message=f"the package has no host page {part.page}")


def call_slices_lie_in_their_page(application: Application) -> Iterator[Violation]:
    """Each slice of a call lies inside its page."""
    sizes = _page_sizes(application)
    for place, part in _host_slices(application):
        end = part.page_offset + part.size
        size = sizes.get(part.page)
        if size is not None and end > size:
            yield Violation(
                place=place,
                message=(
                    f"{part.size:,} bytes at offset {part.page_offset:,} end behind host page {part.page}"
                ),
                numbers=(_bytes("end of the slice", end, size),),
            )


def calls_are_invoked(application: Application) -> Iterator[Violation]:
    """Each call runs the program at least once."""
    for call in application.host_exchange.calls:
        if call.invocations < 1:
            yield Violation(place=_call(call), message="the call runs the program 0 times")


def batches_ascend(application: Application) -> Iterator[Violation]:
    """The batch ends of a call ascend strictly."""
    for place, ends, _ in _batches(application):
        for batch, (end, next_end) in enumerate(pairwise(ends)):
            if next_end <= end:
                yield Violation(
                    place=place, message=f"batch {batch} ends at slice {end} and the next at slice {next_end}"
                )


def batches_hold_all_slices(application: Application) -> Iterator[Violation]:
    """The last batch of a call ends with the last slice; without slices there need be no batch."""
    for place, ends, slices in _batches(application):
        last = ends[-1] if ends else 0
        if last != slices:
            yield Violation(place=place, message=f"the batches end at slice {last} of {slices}")


# Profile plan and debug information.


def profiled_tiles_are_loaded(application: Application) -> Iterator[Violation]:
    """Each tile of the profile plan is a tile of the package."""
    loaded = {tile.physical_tile for tile in application.tiles}
    for plan in application.profile_tiles:
        if plan.physical_tile not in loaded:
            yield Violation(
                place="profile plan", message=f"the package holds no image of tile {plan.physical_tile}"
            )


def profiled_tiles_are_unique(application: Application) -> Iterator[Violation]:
    """No tile has two profile plans."""
    for tile in _repeated(plan.physical_tile for plan in application.profile_tiles):
        yield Violation(place="profile plan", message=f"there are two plans for tile {tile}")


def profile_steps_are_numbered(application: Application) -> Iterator[Violation]:
    """The local index of a profile step is its position."""
    for plan in application.profile_tiles:
        for position, step in enumerate(plan.steps):
            if step.local_index != position:
                yield Violation(
                    place=f"profile plan of tile {plan.physical_tile}",
                    message=f"step {position} has local index {step.local_index}",
                )


def debug_symbols_are_named(application: Application) -> Iterator[Violation]:
    """Each debug symbol has a name."""
    for index, symbol in enumerate(application.debug_symbols):
        if not symbol.name:
            yield Violation(
                place=f"debug symbol {index}", message=f"the symbol at {symbol.address:#x} has no name"
            )


def debug_regions_are_named(application: Application) -> Iterator[Violation]:
    """Each debug region has a name."""
    for index, region in enumerate(application.debug_regions):
        if not region.name:
            yield Violation(
                place=f"debug region {index}", message=f"the region at {region.address:#x} has no name"
            )


def debug_regions_are_not_empty(application: Application) -> Iterator[Violation]:
    """Each debug region holds at least one byte."""
    for index, region in enumerate(application.debug_regions):
        if region.size < 1:
            yield Violation(place=f"debug region {index}", message=f"region {region.name!r} holds no byte")


def debug_regions_lie_on_tiles(application: Application) -> Iterator[Violation]:
    """Each debug region is on a tile of the package, or on all tiles."""
    loaded = {tile.physical_tile for tile in application.tiles} | {ALL_TILES}
    for index, region in enumerate(application.debug_regions):
        if region.physical_tile not in loaded:
            yield Violation(
                place=f"debug region {index}",
                message=f"region {region.name!r}: the package holds no image of tile {region.physical_tile}",
            )


RULES: Final[tuple[Rule, ...]] = (
    schema_version_is_known,
    target_is_known,
    memory_base_is_the_targets,
    memory_size_is_the_targets,
    some_tile_is_loaded,
    tiles_exist,
    tiles_are_unique,
    segments_lie_in_memory,
    segments_are_loadable,
    data_fits_its_segment,
    segments_are_disjoint,
    configuration_is_aligned,
    configuration_is_unambiguous,
    bindings_are_named,
    binding_names_are_unique,
    binding_tiles_are_loaded,
    binding_slices_lie_in_memory,
    binding_slices_lie_in_files,
    host_pages_are_unique,
    attached_pages_exist,
    command_word_lies_in_its_page,
    call_pages_exist,
    call_slices_lie_in_their_page,
    calls_are_invoked,
    batches_ascend,
    batches_hold_all_slices,
    profiled_tiles_are_loaded,
    profiled_tiles_are_unique,
    profile_steps_are_numbered,
    debug_symbols_are_named,
    debug_regions_are_named,
    debug_regions_are_not_empty,
    debug_regions_lie_on_tiles,
)
"""Every rule; the first violation in this order is the one that a reader reports."""


def _segments(application: Application) -> Iterator[tuple[str, Segment]]:
    for tile in application.tiles:
        for index, segment in enumerate(tile.segments):
            yield f"{_tile(tile.physical_tile)}, segment {index}", segment


def _binding_lists(application: Application) -> tuple[tuple[str, tuple[Binding, ...]], ...]:
    return (
        ("input", application.inputs),
        ("output", application.outputs),
        ("weight", application.weights),
    )


def _bindings(application: Application) -> Iterator[tuple[str, Binding]]:
    for kind, bindings in _binding_lists(application):
        for binding in bindings:
            yield f"{kind} {binding.name!r}", binding


def _host_slices(application: Application) -> Iterator[tuple[str, HostSlice]]:
    for call in application.host_exchange.calls:
        for kind, slices in (("input", call.inputs), ("output", call.outputs)):
            for index, part in enumerate(slices):
                yield f"{_call(call)}, {kind} slice {index}", part


def _batches(application: Application) -> Iterator[tuple[str, tuple[int, ...], int]]:
    for call in application.host_exchange.calls:
        yield f"{_call(call)}, input batches", call.input_batch_ends, len(call.inputs)
        yield f"{_call(call)}, output batches", call.output_batch_ends, len(call.outputs)


def _page_sizes(application: Application) -> dict[int, Bytes]:
    return {page.index: page.size for page in application.host_exchange.pages}


def _repeated(values: Iterable[_ValueT]) -> Iterator[_ValueT]:
    """Each value that comes again, once, in the order of its second appearance."""
    seen: dict[_ValueT, int] = {}
    for value in values:
        seen[value] = seen.get(value, 0) + 1
        if seen[value] == 2:
            yield value


def _in_memory(address: Address, size: Bytes) -> bool:
    return address >= SRAM_BASE and address + size <= SRAM_END


def _outside_memory(address: Address, size: Bytes) -> str:
    return (
        f"bytes {address:#x} to {address + size:#x} are not inside tile memory,"
        f" {SRAM_BASE:#x} to {SRAM_END:#x}"
    )


def _tile(tile: PhysicalTile) -> str:
    return f"tile {tile}"


def _call(call: HostCall) -> str:
    return f"call {call.name!r}"


def _bytes(name: str, value: int, limit: int) -> Measure:
    return Measure(name=name, value=value, limit=limit, unit="bytes", kind=NumberKind.MEASURED)
