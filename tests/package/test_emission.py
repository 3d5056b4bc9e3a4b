"""Complete packages: run from their bytes, memory maps, capacities, determinism, refusals.

Requirements: EC-07, EC-12, EC-16, EC-17 (sizing, reservations, checks), RP-02, RP-03, RP-05 (sequences in
Repeat), XR-03 (patches from sites), TA-06.
"""

import os
import re
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from compiler.errors import DoesNotFit, InternalError, Unsupported
from compiler.isa.disassembler import disassemble
from compiler.isa.program import Bundle, Instruction
from compiler.isa.rows import Row, decode_row
from compiler.low.ir import Role
from compiler.package.assembly import Area
from compiler.package.emit import check_calls, check_tensors, emit, write_emission
from compiler.package.format import load
from compiler.package.host import read_layout
from compiler.package.programs import emit_programs
from compiler.package.records import ALL_TILES, SegmentFlags, TileImage
from compiler.package.runtime import IDENTITY_SITE
from compiler.package.support import Purpose, size_support
from compiler.target.instructions import Mode
from compiler.target.loader import LOAD_LIMIT
from compiler.target.memory import ByteRange, share_an_element
from compiler.target.tiles import TILE_COUNT, logical_to_physical, physical_to_logical
from compiler.target.units import Address, Bytes, LogicalTile
from tests.package.emitted import IDLE, VERSION, Emitted, device_of, emitted, parameter_file, program_inputs
from tests.package.toy import Data, Toy, build, expected, place, random_data

TOYS = (
    Toy(iterations=2, more=3000),
    Toy(iterations=3),
    Toy(iterations=5, tiles=(0, 1, 2, 63, 64, 800)),
    Toy(iterations=2, padding=8300),
    Toy(iterations=1),
)


@pytest.fixture(scope="module", params=TOYS, ids=str)
def package(request: pytest.FixtureRequest) -> Emitted:
    toy = request.param
    assert isinstance(toy, Toy)
    return emitted(toy, runs=3)


# Running.


def test_three_runs_after_one_upload_give_what_numpy_gives(package: Emitted) -> None:
    """Lessons 21, 22, 24: every iteration has its own parameters, which stay, and rows follow them."""
    toy = package.toy
    data = random_data(toy, 1)
    device = device_of(toy, package.application)
    device.call("initialize", parameter_file(toy, data))
    for run in range(3):
        assert not device.is_complete
        fresh = random_data(toy, 100 + run // 2)
        given = Data(x=fresh.x, weights=data.weights)
        found = np.frombuffer(device.call("run", given.x.astype("<u4").tobytes()), "<u4")
        y, records = expected(toy, given)
        assert np.array_equal(found[: y.size].reshape(y.shape), y)
        assert np.array_equal(found[y.size :].reshape(records.shape), records)
    assert device.is_complete
    calls = {call.name: call.phases for call in package.application.host_exchange.calls}
    assert device.phases_run == calls["initialize"] + 3 * (calls["run"] + 1)


def test_rendezvous_are_counted_as_calls_state_them(package: Emitted) -> None:
    calls = {call.name: call for call in package.application.host_exchange.calls}
    assert calls["initialize"].phases == 2 * len(calls["initialize"].input_batch_ends)
    run = calls["run"]
    batches = len(run.input_batch_ends) + len(run.output_batch_ends)
    assert run.phases == 2 * batches - 1
    (entry,) = package.application.entry_points
    assert (entry.name, entry.command, entry.external_syncs) == ("run", 0, 2 * batches)


def test_a_program_that_serves_as_long_as_it_is_powered() -> None:
    toy = TOYS[1]
    package = emitted(toy, runs=None)
    device = device_of(toy, package.application)
    data = random_data(toy, 5)
    device.call("initialize", parameter_file(toy, data))
    completion = next(binding for binding in package.application.outputs if binding.name == "completion")
    for _ in range(4):
        found = np.frombuffer(device.call("run", data.x.astype("<u4").tobytes()), "<u4")
        assert np.array_equal(found[: data.x.size].reshape(data.x.shape), expected(toy, data)[0])
        assert np.count_nonzero(np.frombuffer(device.read(completion), "<u4")) == len(device.tiles)
        assert not device.is_complete, "it waits for the next run"


def test_samples_enclose_the_steps_of_a_run() -> None:
    toy = TOYS[0]
    package = emitted(toy)
    device = device_of(toy, package.application)
    data = random_data(toy, 5)
    device.call("initialize", parameter_file(toy, data))
    device.call("run", data.x.astype("<u4").tobytes())
    bindings = {binding.name: binding for binding in package.application.outputs}
    start, end = (
        np.frombuffer(device.read(bindings[f"profile.{name}-cycle"]), "<u4") for name in ("start", "end")
    )
    for tile in toy.tiles:
        physical = logical_to_physical(LogicalTile(tile))
        assert end[physical] > start[physical] > 0


# What a package holds.


def segments_by_address(image: TileImage) -> list[tuple[int, int, bytes, int]]:
    return [(s.address, s.address + s.memory_size, s.data, s.flags) for s in image.segments]


def test_all_tiles_are_there_and_idle_ones_are_alike(package: Emitted) -> None:
    images = {image.physical_tile: image for image in package.application.tiles}
    assert sorted(images) == list(range(TILE_COUNT))
    working = {logical_to_physical(LogicalTile(tile)) for tile in package.toy.tiles}
    idle = [tile for tile in images if tile not in working and tile >= 64]
    for tile in (idle[0], idle[-1]):
        assert segments_by_address(images[tile])[1:] == segments_by_address(images[IDLE])[1:]
        first, other = images[tile].segments[0].data, images[IDLE].segments[0].data
        differing = [n for n in range(0, len(first), 4) if first[n : n + 4] != other[n : n + 4]]
        assert len(differing) == 1
        assert 0x4C010 + differing[0] == package.image.address_of(IDENTITY_SITE)


def test_memory_maps_do_not_overlap(package: Emitted) -> None:
    """Independent of how support was sized: segments, tensors and the window of each tile with work."""
    program, placement = package.inputs.program, package.placement
    images = {image.physical_tile: image for image in package.application.tiles}
    for tile in (*package.toy.tiles, 7):
        spans = [(0x50000, 0x58000, "window")]
        image = images[logical_to_physical(LogicalTile(tile))]
        spans += [(start, end, "segment") for start, end, _, _ in segments_by_address(image)]
        rows = np.flatnonzero(program.buffers.tile == tile)
        spans += [
            (
                int(placement.address[row]),
                int(placement.address[row] + program.buffers.byte_count[row]),
                "tensor",
            )
            for row in rows
        ]
        spans.sort()
        for (_, end, first), (start, _, second) in pairwise(spans):
            assert end <= start, (tile, first, second)
        assert spans[0][0] >= 0x4C010
        for start, end, kind in spans:
            assert end <= (LOAD_LIMIT if kind == "segment" else 0xE8000)
            code = [s for s in image.segments if s.flags & SegmentFlags.EXECUTABLE]
            if kind != "tensor":
                continue
            for segment in code:
                fetched = ByteRange(start=segment.address, size=Bytes(segment.memory_size + 64))
                data = ByteRange(start=Address(start), size=Bytes(end - start))
                assert segment.address + segment.memory_size <= 0x80000
                assert not share_an_element(fetched, data), "fetch and data never meet"


def test_reservations_are_disjoint_and_hold_all_segments(package: Emitted) -> None:
    reservations = package.support.reservations
    for tile in (*package.toy.tiles, 7):
        own = np.flatnonzero(reservations.tile == tile)
        starts, ends = reservations.start[own], reservations.start[own] + reservations.byte_count[own]
        assert (ends[:-1] <= starts[1:]).all()
        image = package.application.tiles[logical_to_physical(LogicalTile(tile))]
        for start, end, _, _ in segments_by_address(image):
            assert ((starts <= start) & (end <= ends)).any()
        for purpose in (Purpose.ROWS, Purpose.CODE):
            chosen = reservations.purpose[own] == purpose
            assert not (starts[chosen] % 0x4000).any()
            assert not (ends[chosen] % 0x4000).any()


def test_every_word_of_code_is_an_instruction(package: Emitted) -> None:
    names = {"tile program", "host programs", "exchange rows"}
    seen: dict[str, int] = {}
    images = {image.physical_tile: image for image in package.application.tiles}
    for region in package.application.debug_regions:
        if region.physical_tile == ALL_TILES or region.name not in names:
            continue
        if region.name == "tile program" and physical_to_logical(region.physical_tile) not in (
            *package.toy.tiles,
            9,
        ):
            continue
        content = next(s.data for s in images[region.physical_tile].segments if s.address == region.address)
        assert len(content) == region.size
        for entry in disassemble(content, Mode.SUPERVISOR, region.address):
            assert isinstance(entry.item, Instruction), (region, hex(entry.offset))
        seen[region.name] = seen.get(region.name, 0) + 1
    assert seen.keys() == names
    for section in package.image.sections:
        for entry in disassemble(section.content, None, section.address):
            assert isinstance(entry.item, Instruction | Bundle)


def test_every_row_decodes_where_the_program_calls_it(package: Emitted) -> None:
    places = emit_programs(package.inputs, package.support.bases).rows
    images = {image.physical_tile: image for image in package.application.tiles}
    for step, row_place in places.items():
        rows = package.inputs.exchange.phases[step].rows
        for tile, address in zip(row_place.tiles.tolist(), row_place.address.tolist(), strict=True):
            assert address % 8 == 0
            physical = logical_to_physical(LogicalTile(tile))
            segment = next(
                s for s in images[physical].segments if s.address <= address < s.address + s.memory_size
            )
            words = np.frombuffer(segment.data, "<u4")[(address - segment.address) // 4 :]
            assert isinstance(decode_row(words), Row)
            wanted = rows.row(physical)
            assert wanted is not None
            assert np.array_equal(words[: len(wanted)], wanted)


def test_symbols_and_regions_name_what_they_should(package: Emitted) -> None:
    symbols = {symbol.name: symbol.address for symbol in package.application.debug_symbols}
    assert symbols["toy.add"] == package.image.address_of("toy.add")
    assert {"runtime.start", "runtime.complete", "toy.copy"} <= symbols.keys()
    sections = {r.name: r for r in package.application.debug_regions if r.physical_tile == ALL_TILES}
    assert sections[".text.toy.add"].address == symbols["toy.add"]


# Determinism.


def test_equal_inputs_give_equal_bytes(package: Emitted) -> None:
    assert emitted(package.toy, runs=3).content == package.content


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    script = (
        "import hashlib\n"
        "from tests.package.emitted import emitted\n"
        "from tests.package.toy import Toy\n"
        "print(hashlib.sha256(emitted(Toy(iterations=3)).content).hexdigest())\n"
    )
    root = Path(__file__).parents[2]
    digests = {
        subprocess.run(
            [sys.executable, "-c", script],
            check=True,
            capture_output=True,
            text=True,
            cwd=root,
            env=os.environ | {"PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


# Sizing and emission.


def test_sizes_do_not_depend_on_addresses() -> None:
    """EC-17: sized at provisional addresses, emitted at others of which nothing was known."""
    toy = Toy(iterations=3)
    program = build(toy)
    image, provisional = program_inputs(toy, placement=place(program, gap=16))
    support = size_support(image, provisional)
    _, final = program_inputs(toy, placement=place(program, gap=25_000))
    first = emit_programs(provisional, support.bases).assembly
    second = emit_programs(final, support.bases).assembly
    for area in (Area.PROGRAM, Area.HOST):
        assert np.array_equal(first.stream(area).sizes, second.stream(area).sizes)
        assert np.array_equal(first.stream(area).sizes, support.capacity[area])
    application = emit(final, image, support, compiler_version=VERSION).application
    device = device_of(toy, application)
    data = random_data(toy, 2)
    device.call("initialize", parameter_file(toy, data))
    found = np.frombuffer(device.call("run", data.x.astype("<u4").tobytes()), "<u4")
    assert np.array_equal(found[: data.x.size].reshape(data.x.shape), expected(toy, data)[0])


def test_long_programs_go_to_the_upper_range_and_close_whole_elements() -> None:
    toy = Toy(iterations=2, extra=2000)
    package = emitted(toy)
    first = toy.tiles[0]
    assert package.support.start[Area.PROGRAM, first] == 0x5C000
    assert (package.support.start[Area.PROGRAM, toy.tiles[1:]] < 0x50000).all()
    size = int(package.support.capacity[Area.PROGRAM, first])
    assert size > 0x4000
    rows = int(package.support.start[Area.ROWS, first])
    assert rows == 0x5C000 + -(-(size + 64) // 0x4000) * 0x4000
    assert package.support.headroom[first] == rows - 64 - 0x5C000 - size
    data = random_data(toy, 2)
    device = device_of(toy, package.application)
    device.call("initialize", parameter_file(toy, data))
    found = np.frombuffer(device.call("run", data.x.astype("<u4").tobytes()), "<u4")
    assert np.array_equal(found[: data.x.size].reshape(data.x.shape), expected(toy, data)[0])


def test_row_reservations_are_the_schedules_view_of_rows(package: Emitted) -> None:
    reserved = package.support.row_reservations()
    tiles = sorted(logical_to_physical(LogicalTile(tile)) for tile in package.toy.tiles)
    assert reserved.tile.tolist() == tiles
    for tile, address in zip(reserved.tile.tolist(), reserved.address.tolist(), strict=True):
        assert package.support.start[Area.ROWS, physical_to_logical(tile)] == address


# Refusals.


def test_code_that_does_not_fit() -> None:
    toy = Toy(iterations=2, extra=12_000)
    image, inputs = program_inputs(toy)
    with pytest.raises(DoesNotFit) as refusal:
        size_support(image, inputs)
    numbers = {measure.name: measure for measure in refusal.value.numbers}
    total = numbers["together, in whole elements and with look-ahead more"]
    assert total.value == sum(measure.value for measure in refusal.value.numbers) - total.value
    assert total.limit == 0x50000 - 0x4C010 + 0x80000 - 0x5C000
    assert re.sub(r"[\d,]+ (?=bytes)", "N ", str(refusal.value)) == (
        "does not fit (support sizing): tile 3: the executable memory of a tile has no room for its code and"
        " exchange rows.\n"
        "  linked code: N bytes (measured)\n"
        "  host programs: N bytes (measured)\n"
        "  tile program: N bytes (measured)\n"
        "  exchange rows: N bytes (measured)\n"
        "  together, in whole elements and with look-ahead more: N bytes (measured), limit 163,824,"
        f" {total.value - 163_824:,} too many\n"
        "  next: use fewer kinds of kernels, or give this tile fewer calls and transfers"
    )


def test_an_area_that_outgrew_its_reservation(package: Emitted) -> None:
    """EC-14: the candidate is refused, and nothing is made larger."""
    capacity = package.support.capacity.copy()
    tile = package.toy.tiles[1]
    needed = int(capacity[Area.PROGRAM, tile])
    capacity[Area.PROGRAM, tile] -= 4
    with pytest.raises(DoesNotFit) as refusal:
        emit(
            package.inputs,
            package.image,
            replace(package.support, capacity=capacity),
            compiler_version=VERSION,
        )
    assert str(refusal.value) == (
        f"does not fit (emission): tile {tile}: what was reserved for the tile program before placement"
        " is too small.\n"
        f"  tile program: {needed:,} bytes (measured), limit {needed - 4:,}, 4 too many\n"
        "  next: size the support again from the final schedule, then place and schedule once more"
    )


def test_a_tensor_in_a_reservation(package: Emitted) -> None:
    program, placement = package.inputs.program, package.placement
    role = program.buffers.role
    for target, allowed_role in ((0x50100, Role.TEMPORARY), (0x586D8, None), (0x4FFF8, None)):
        for kind in (Role.TEMPORARY, Role.INPUT):
            address = placement.address.copy()
            buffer = int(np.flatnonzero(role == kind)[0])
            address[buffer] = target
            moved = replace(placement, address=address)
            if kind is allowed_role:
                check_tensors(program, moved, package.support)
                continue
            with pytest.raises(InternalError, match=f"buffer {buffer} at {target:#x} to .* is reserved for"):
                check_tensors(program, moved, package.support)


def test_a_kernel_that_may_not_have_its_addresses(package: Emitted) -> None:
    """RP-03: in every iteration, not only in the first."""
    program, placement = package.inputs.program, package.placement
    check_calls(program, placement)
    stride = placement.stride.copy()
    stride[0] += 4
    if package.toy.iterations == 1:
        check_calls(program, replace(placement, stride=stride))
        return
    with pytest.raises(InternalError) as refusal:
        check_calls(program, replace(placement, stride=stride))
    assert "is not aligned to 8 bytes, in iteration 1" in str(refusal.value)
    assert "graph nodes: toy" in str(refusal.value)


def test_a_tensor_with_the_name_of_a_state_word(package: Emitted) -> None:
    program = package.inputs.program
    values = (replace(program.values[0], name="completion"), *program.values[1:])
    inputs = replace(package.inputs, program=replace(program, values=values))
    with pytest.raises(Unsupported) as refusal:
        emit(inputs, package.image, package.support, compiler_version=VERSION)
    assert str(refusal.value) == (
        "unsupported (emission): completion: a tensor has the name of a word of the runtime, which every"
        " package has among its outputs.\n"
        "  next: rename the tensor"
    )


def test_a_package_is_written_with_the_description_of_its_tensors(package: Emitted, tmp_path: Path) -> None:
    paths = write_emission(package.emission, tmp_path / "toy.ipuexe")
    assert load(paths[0]) == package.application
    names = [path.name for path in paths[1:]]
    assert names[:2] == ["x.host.json", "y.host.json"]
    for path, layout in zip(paths[1:], package.emission.layouts, strict=True):
        assert read_layout(path.read_text(encoding="utf-8"), name=path.name) == layout
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in paths)
