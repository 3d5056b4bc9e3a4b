"""The exact message of everything that can be wrong with a package, each with the least bad package.

TA-05 and the rules of the package format: every rule of ``validate.RULES`` has cases here.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.errors import InvalidInput, PackageInvalid
from compiler.package import format as package_format
from compiler.package import validate
from compiler.package.records import (
    ALL_TILES,
    Application,
    DebugRegion,
    DebugSymbol,
    DeviceConfigWrite,
    HostCall,
    HostExchange,
    HostPage,
    Profile,
    ProfileStep,
    StepKind,
    TileProfilePlan,
)
from compiler.package.validate import RULES, Rule, violations
from compiler.package.wire import MAXIMUM_RECORDS, application_format, profile_format
from compiler.target.units import Address, Bytes, PhysicalTile
from tests.package.samples import (
    binding,
    complete,
    host_slice,
    minimal,
    region_slice,
    segment,
    tile,
    with_call,
    with_segments,
)

REBUILD = "\n  next: build the package again, or obtain it again"
OTHER = "\n  next: use a package of this version and target, or the program that wrote this one"
CALL = HostCall(name="run", command=0, phases=1)
STEP = ProfileStep(local_index=1, phase=0, epoch=0, operation="", kind=StepKind.IDLE)


def plan(number: int, *steps: ProfileStep) -> TileProfilePlan:
    return TileProfilePlan(physical_tile=PhysicalTile(number), steps=steps)


def region(number: int, size: int, name: str) -> DebugRegion:
    return DebugRegion(
        physical_tile=PhysicalTile(number), address=Address(0x58000), size=Bytes(size), name=name
    )


def pages(*sizes: int) -> tuple[HostPage, ...]:
    return tuple(HostPage(index=index, size=Bytes(size)) for index, size in enumerate(sizes))


CASES: list[tuple[Rule, Application, str]] = [
    (
        validate.schema_version_is_known,
        replace(minimal(), schema_version=4),
        "a.ipuexe: schema version 4, this program reads version 5." + OTHER,
    ),
    (
        validate.target_is_known,
        replace(minimal(), target="ipu2"),
        "a.ipuexe: the package is for target 'ipu2', not 'ipu21'." + OTHER,
    ),
    (
        validate.memory_base_is_the_targets,
        replace(minimal(), tile_memory_base=Address(0x40000)),
        "a.ipuexe: tile memory begins at 0x40000, the target's at 0x4c000." + OTHER,
    ),
    (
        validate.memory_size_is_the_targets,
        replace(minimal(), tile_memory_size=Bytes(638_972)),
        "a.ipuexe: a tile has 638,972 bytes of memory, the target's have 638,976." + OTHER,
    ),
    (
        validate.some_tile_is_loaded,
        replace(minimal(), tiles=()),
        "a.ipuexe: the package holds no tile image." + REBUILD,
    ),
    (
        validate.tiles_exist,
        replace(minimal(), tiles=(tile(1471), tile(1472))),
        "a.ipuexe, tile 1472: the target has physical tiles 0 to 1471 only." + REBUILD,
    ),
    (
        validate.tiles_are_unique,
        replace(minimal(), tiles=(tile(7), tile(8), tile(7), tile(7))),
        "a.ipuexe, tile 7: the package holds two images of this tile." + REBUILD,
    ),
    (
        validate.segments_lie_in_memory,
        with_segments(segment(0x4C010, 16), segment(0xE7FF0, 17)),
        "a.ipuexe, tile 0, segment 1: bytes 0xe7ff0 to 0xe8001 are not inside tile memory,"
        " 0x4c000 to 0xe8000." + REBUILD,
    ),
    (
        validate.segments_lie_in_memory,
        with_segments(segment(0x4BFFF, 8)),
        "a.ipuexe, tile 0, segment 0: bytes 0x4bfff to 0x4c007 are not inside tile memory,"
        " 0x4c000 to 0xe8000." + REBUILD,
    ),
    (
        validate.segments_lie_in_memory,
        with_segments(segment(0xFFFF_FFFF, 0xFFFF_FFFF)),
        "a.ipuexe, tile 0, segment 0: bytes 0xffffffff to 0x1fffffffe are not inside tile memory,"
        " 0x4c000 to 0xe8000." + REBUILD,
    ),
    (
        validate.segments_are_loadable,
        with_segments(segment(0x4C00F, 8)),
        "a.ipuexe, tile 0, segment 0: bytes 0x4c00f to 0x4c017 reach beyond what the loader can fill,"
        " 0x4c010 to 0xe7bb0." + REBUILD,
    ),
    (
        validate.segments_are_loadable,
        with_segments(segment(0xE7000, 0xBB1)),
        "a.ipuexe, tile 0, segment 0: bytes 0xe7000 to 0xe7bb1 reach beyond what the loader can fill,"
        " 0x4c010 to 0xe7bb0." + REBUILD,
    ),
    (
        validate.data_fits_its_segment,
        with_segments(segment(0x4C010, 4, b"12345")),
        "a.ipuexe, tile 0, segment 0: the data is longer than the memory it is for."
        "\n  data: 5 bytes (measured), limit 4, 1 too many" + REBUILD,
    ),
    (
        validate.segments_are_disjoint,
        with_segments(segment(0x50000, 16), segment(0x4C010, 16), segment(0x4C01F, 1)),
        "a.ipuexe, tile 0: segments 1 (0x4c010 to 0x4c020) and 2 (0x4c01f to 0x4c020) overlap." + REBUILD,
    ),
    (
        validate.configuration_is_aligned,
        replace(minimal(), device_config_writes=(DeviceConfigWrite(offset=0x3002, value=0),)),
        "a.ipuexe, device configuration write 0: offset 0x3002 is not a multiple of 4." + REBUILD,
    ),
    (
        validate.configuration_is_unambiguous,
        replace(
            minimal(),
            device_config_writes=(
                DeviceConfigWrite(offset=0x3000, value=0),
                DeviceConfigWrite(offset=0x3000, value=0),
            ),
        ),
        "a.ipuexe, device configuration writes: offset 0x3000 is written more than once." + REBUILD,
    ),
    (
        validate.bindings_are_named,
        replace(minimal(), outputs=(binding("y"), binding(""))),
        "a.ipuexe, output 1: this binding has no name." + REBUILD,
    ),
    (
        validate.binding_names_are_unique,
        replace(minimal(), inputs=(binding("x"),), weights=(binding("x"),)),
        "a.ipuexe, binding 'x': more than one binding has this name." + REBUILD,
    ),
    (
        validate.binding_tiles_are_loaded,
        replace(
            minimal(), inputs=(binding("x", region_slice(0, 0x60000, 0, 4), region_slice(1, 0x60000, 0, 4)),)
        ),
        "a.ipuexe, input 'x', slice 1: the package holds no image of tile 1." + REBUILD,
    ),
    (
        validate.binding_slices_lie_in_memory,
        replace(minimal(), weights=(binding("w", region_slice(0, 0x60000, 0, 1 << 63)),)),
        "a.ipuexe, weight 'w', slice 0: bytes 0x60000 to 0x8000000000060000 are not inside tile memory,"
        " 0x4c000 to 0xe8000." + REBUILD,
    ),
    (
        validate.binding_slices_lie_in_files,
        replace(minimal(), outputs=(binding("y", region_slice(0, 0x60000, (1 << 64) - 4, 4)),)),
        "a.ipuexe, output 'y', slice 0: 4 bytes at file offset 18,446,744,073,709,551,612"
        " end beyond any file." + REBUILD,
    ),
    (
        validate.host_pages_are_unique,
        replace(minimal(), host_exchange=HostExchange(pages=(pages(64)[0], pages(32)[0]))),
        "a.ipuexe, host page 0: more than one page has this index." + REBUILD,
    ),
    (
        validate.attached_pages_exist,
        replace(minimal(), host_exchange=HostExchange(pages=pages(64), attach_order=(0, 1))),
        "a.ipuexe, attach order, position 1: the package has no host page 1." + REBUILD,
    ),
    (
        validate.command_word_lies_in_its_page,
        with_call(CALL, pages=()),
        "a.ipuexe, command page: there are calls, but no host page 0." + REBUILD,
    ),
    (
        validate.command_word_lies_in_its_page,
        replace(
            minimal(),
            host_exchange=HostExchange(pages=pages(4096), command_offset=Bytes(4093), calls=(CALL,)),
        ),
        "a.ipuexe, command page: the command word at offset 4,093 ends behind the page."
        "\n  end of the command word: 4,097 bytes (measured), limit 4,096, 1 too many" + REBUILD,
    ),
    (
        validate.call_pages_exist,
        with_call(replace(CALL, inputs=(host_slice(1, 0, 0, 4),), input_batch_ends=(1,))),
        "a.ipuexe, call 'run', input slice 0: the package has no host page 1." + REBUILD,
    ),
    (
        validate.call_slices_lie_in_their_page,
        with_call(
            replace(CALL, outputs=(host_slice(0, 0, 0, 4), host_slice(0, 4093, 0, 4)), output_batch_ends=(2,))
        ),
        "a.ipuexe, call 'run', output slice 1: 4 bytes at offset 4,093 end behind host page 0."
        "\n  end of the slice: 4,097 bytes (measured), limit 4,096, 1 too many" + REBUILD,
    ),
    (
        validate.calls_are_invoked,
        with_call(replace(CALL, invocations=0)),
        "a.ipuexe, call 'run': the call runs the program 0 times." + REBUILD,
    ),
    (
        validate.batches_ascend,
        with_call(
            replace(CALL, inputs=(host_slice(0, 0, 0, 4), host_slice(0, 4, 4, 4)), input_batch_ends=(2, 1, 2))
        ),
        "a.ipuexe, call 'run', input batches: batch 0 ends at slice 2 and the next at slice 1." + REBUILD,
    ),
    (
        validate.batches_hold_all_slices,
        with_call(
            replace(CALL, outputs=(host_slice(0, 0, 0, 4), host_slice(0, 4, 4, 4)), output_batch_ends=(1,))
        ),
        "a.ipuexe, call 'run', output batches: the batches end at slice 1 of 2." + REBUILD,
    ),
    (
        validate.batches_hold_all_slices,
        with_call(replace(CALL, inputs=(host_slice(0, 0, 0, 4),))),
        "a.ipuexe, call 'run', input batches: the batches end at slice 0 of 1." + REBUILD,
    ),
    (
        validate.profiled_tiles_are_loaded,
        replace(minimal(), profile_tiles=(plan(0), plan(1))),
        "a.ipuexe, profile plan: the package holds no image of tile 1." + REBUILD,
    ),
    (
        validate.profiled_tiles_are_unique,
        replace(minimal(), profile_tiles=(plan(0), plan(0))),
        "a.ipuexe, profile plan: there are two plans for tile 0." + REBUILD,
    ),
    (
        validate.profile_steps_are_numbered,
        replace(minimal(), profile_tiles=(plan(0, STEP),)),
        "a.ipuexe, profile plan of tile 0: step 0 has local index 1." + REBUILD,
    ),
    (
        validate.debug_symbols_are_named,
        replace(minimal(), debug_symbols=(DebugSymbol(name="", address=Address(0x4C010)),)),
        "a.ipuexe, debug symbol 0: the symbol at 0x4c010 has no name." + REBUILD,
    ),
    (
        validate.debug_regions_are_named,
        replace(minimal(), debug_regions=(region(0, 4, ""),)),
        "a.ipuexe, debug region 0: the region at 0x58000 has no name." + REBUILD,
    ),
    (
        validate.debug_regions_are_not_empty,
        replace(minimal(), debug_regions=(region(0, 4, "a"), region(0, 0, "b"))),
        "a.ipuexe, debug region 1: region 'b' holds no byte." + REBUILD,
    ),
    (
        validate.debug_regions_lie_on_tiles,
        replace(minimal(), debug_regions=(region(ALL_TILES, 4, "a"), region(1, 4, "b"))),
        "a.ipuexe, debug region 1: region 'b': the package holds no image of tile 1." + REBUILD,
    ),
]


def _message(data: bytes) -> str:
    with pytest.raises(PackageInvalid) as caught:
        package_format.read_package(data, name="a.ipuexe")
    return str(caught.value)


@pytest.mark.parametrize(
    ("rule", "bad", "expected"),
    [pytest.param(*case, id=f"{index}-{case[0].__name__}") for index, case in enumerate(CASES)],
)
def test_a_bad_package_is_refused_by_its_rule(rule: Rule, bad: Application, expected: str) -> None:
    assert _message(bytes(application_format().encode(bad))) == f"invalid package (read package): {expected}"
    # The package breaks this rule and no other: without it, nobody would notice.
    assert list(violations(bad)) == list(rule(bad))
    with pytest.raises(ValueError, match=re.escape(next(rule(bad)).message)):
        package_format.write_package(bad)


def test_every_rule_has_a_case_and_is_stated() -> None:
    assert {rule for rule, _, _ in CASES} == set(RULES)
    assert all(rule.__doc__ for rule in RULES)


def test_valid_packages_break_no_rule() -> None:
    assert list(violations(minimal())) == []
    assert list(violations(complete())) == []
    edge = with_segments(segment(0x4C010, 0x9BBA0), segment(0xE8000, 0), segment(0x4C010, 0))
    assert list(violations(edge)) == []


def test_a_profile_of_another_version() -> None:
    data = bytes(profile_format().encode(Profile(schema_version=6, clock_hz=1, tiles=())))
    with pytest.raises(PackageInvalid) as caught:
        package_format.read_profile(data, name="run.profile")
    assert str(caught.value) == (
        "invalid package (read package): run.profile: schema version 6, this program reads version 5." + OTHER
    )
    with pytest.raises(ValueError, match="schema version 6"):
        package_format.write_profile(Profile(schema_version=6, clock_hz=1, tiles=()))


def test_another_version_is_reported_before_the_rest_is_read() -> None:
    data = _damaged(replace(complete(), schema_version=9))
    assert _message(data).startswith("invalid package (read package): a.ipuexe: schema version 9,")


def _damaged(application: Application) -> bytes:
    """A package whose list of inputs is called a list of bits."""
    data = bytearray(application_format().encode(application))
    pointers = 8 + 8 + 16  # behind segment table, root pointer and the numbers of the root
    inputs = pointers + 3 * 8 + 4
    data[inputs] = data[inputs] & ~7 | 1
    return bytes(data)


def _words(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}Q", *words)


GOOD = bytes(application_format().encode(minimal()))


def damages() -> Iterator[tuple[str, bytes, str]]:
    """Files that are no package, each with what is said about it."""
    bad_pointer = (
        "the message is damaged here: a pointer does not lead to an object of its type inside the file,"
        " or objects share their bytes."
    )
    yield "empty", b"", ": 0 bytes are no message, which is a whole number of 8-byte words."
    yield (
        "half a word",
        GOOD[:-1],
        f": {len(GOOD) - 1} bytes are no message, which is a whole number of 8-byte words.",
    )
    yield "text", b"#!/bin/s", ": the segment table claims 1,647,255,844 segments, of at most 512."
    yield "table cut", _words(300), ": the file ends inside its segment table, after 8 of 1,208 bytes."
    yield (
        "cut",
        GOOD[:-8],
        f": the file has {len(GOOD) - 8} bytes, its segment table accounts for {len(GOOD)}.",
    )
    yield (
        "longer",
        GOOD + bytes(8),
        f": the file has {len(GOOD) + 8} bytes, its segment table accounts for {len(GOOD)}.",
    )
    yield "no root", _words(0), f": {bad_pointer}"
    yield "root outside", _words(1 << 32, 7 << 2 | 2 << 32), f": {bad_pointer}"
    yield "wrong list", _damaged(complete()), f", inputs: {bad_pointer}"
    text = bytes(application_format().encode(complete())).replace(b"gemm.f16", b"gemm\xff\xfe16", 1)
    yield "text", text, ", profileTiles[0].steps[1].kernel: this text is not UTF-8."

    kinds = bytearray(application_format().encode(complete()))
    layout = kinds.index(struct.pack("<HHII", 2, 2, 20, 27))  # the last activity: kind, fanout, start, end
    kinds[layout] = 3
    place = "profileTiles[0].steps[0].exchangeActivities[2].kind"
    yield "activity", bytes(kinds), f", {place}: 3 is no ExchangeActivityKind."
    steps = bytearray(application_format().encode(complete()))
    layout = steps.index(struct.pack("<IIIH", 2, 5, 2, 3))  # the last step: local index, phase, epoch, kind
    steps[layout + 12] = 77
    yield "step", bytes(steps), ", profileTiles[0].steps[2].kind: 77 is no StepKind."
    yield "shared", _shared(), f", tiles[1].segments: {bad_pointer}"
    yield "no room", _list_without_room(1 << 29), f", tiles: {bad_pointer}"


def _shared() -> bytes:
    """Fifty tiles that claim the thousand segments of the first: more to read than the file has."""
    segments = [segment(0x4C010 + 8 * index, 8) for index in range(1000)]
    tiles = (tile(0, *segments), *(tile(number) for number in range(1, 50)))
    data = bytearray(application_format().encode(replace(minimal(), tiles=tiles)))
    words = list(struct.unpack(f"<{len(data) // 8}Q", data))
    # Behind segment table, root pointer, root (2 + 12 words), target and the list's tag: 2 + 1 words each.
    pointers = [16 + 2 + 3 * number + 2 for number in range(50)]
    assert words[pointers[0]] & 3 == 1
    assert not any(words[pointer] for pointer in pointers[1:])
    for number, pointer in enumerate(pointers):
        words[pointer] = words[pointers[0]] - (3 * number << 2)
    return _words(*words)


def _list_without_room(count: int) -> bytes:
    """A package whose tiles are that many structs of no size, after a megabyte of nothing."""
    data = bytearray(application_format().encode(replace(minimal(), tiles=())))
    tiles = 8 + 8 + 16 + 2 * 8
    struct.pack_into("<Q", data, tiles, 1 | min(count, (1 << 29) - 1) << 35)
    padding = bytes(1 << 20)
    struct.pack_into("<I", data, 4, (len(data) + len(padding)) // 8 - 1)
    return bytes(data) + padding


@pytest.mark.parametrize(
    ("data", "expected"), [pytest.param(data, text, id=name) for name, data, text in damages()]
)
def test_a_damaged_file_says_what_and_where(data: bytes, expected: str) -> None:
    assert _message(data) == f"invalid package (read package): a.ipuexe{expected}{REBUILD}"


def test_more_list_elements_than_any_package_has() -> None:
    words = MAXIMUM_RECORDS + 1
    data = bytearray(_list_without_room(words))
    data += bytes(8 * words)
    struct.pack_into("<I", data, 4, len(data) // 8 - 1)
    assert _message(bytes(data)) == (
        "invalid package (read package): a.ipuexe, tiles:"
        f" the file holds more than 16,777,216 list elements.{REBUILD}"
    )


def test_a_file_larger_than_any_package(tmp_path: Path) -> None:
    path = tmp_path / "large.ipuexe"
    with path.open("wb") as file:
        file.truncate(package_format.SIZE_LIMIT + 8)  # sparse: it takes no room
    with pytest.raises(PackageInvalid) as caught:
        package_format.load(path)
    assert str(caught.value) == (
        "invalid package (read package): large.ipuexe: the file is larger than any package of this target."
        f"\n  file: 1,881,145,352 bytes (measured), limit 1,881,145,344, 8 too many{REBUILD}"
    )


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "a.ipuexe", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(InvalidInput) as caught:
            package_format.load(path)
        assert str(caught.value) == (
            f"invalid input (read package): {path}: the package cannot be read: {reason}."
            "\n  next: check the path and its permissions"
        )


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "a.ipuexe"
    with pytest.raises(InvalidInput) as caught:
        package_format.save(minimal(), path)
    assert str(caught.value) == (
        f"invalid input (write package): {path}: the package cannot be written: No such file or directory."
        "\n  next: check the folder, its permissions and the free space"
    )
