"""What a package says of itself, against what it was made from."""

import contextlib
import dataclasses
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import PackageInvalid
from compiler.isa.linker import Image
from compiler.low.ir import Role
from compiler.package.records import ALL_TILES, Application, DebugRegion, Segment
from compiler.report.package import (
    Overview,
    overview_of,
    phases_of,
    row_lines,
    symbols_of,
    tile_of,
)
from compiler.report.plain import json_of, report_of_json
from compiler.target.tiles import TILE_COUNT, physical_tiles
from compiler.target.units import Address, Bytes, PhysicalTile
from tests.report.builds import Small


def test_the_parts_add_up_to_the_file(wide: Small) -> None:
    """And every byte of every segment is in a part with a name."""
    size = wide.package.stat().st_size
    overview = overview_of(wide.application, size)
    assert sum(part.total.value for part in overview.parts) == overview.file.value == size
    content = sum(len(segment.data) for image in wide.application.tiles for segment in image.segments)
    by_name = {part.name: part.total.value for part in overview.parts}
    assert size - by_name["descriptions"] == content
    assert set(by_name) == {
        "linked code",
        "tile program",
        "host programs",
        "tables",
        "exchange rows",
        "descriptions",
    }
    assert overview.tiles.value == TILE_COUNT
    assert overview.calls == ("initialize", "run")


def test_tiles_with_work_are_those_of_the_program(wide: Small, narrow: Small) -> None:
    for small in (wide, narrow):
        overview = overview_of(small.application, 0)
        work = np.union1d(small.program.calls.tile, small.program.buffers.tile)
        assert overview.working_tiles.value == len(work)
        assert overview.phases.value == len(small.exchange.phases)


def test_tensors_are_those_of_the_host(wide: Small) -> None:
    """Tiles and bytes of each, counted from the low program; words of the runtime are no tensors."""
    buffers, values = wide.program.buffers, wide.program.values
    found = {tensor.name: tensor for tensor in overview_of(wide.application, 0).tensors}
    assert set(found) == {value.name for value in values}
    for number, value in enumerate(values):
        rows = np.flatnonzero(buffers.value == number)
        per_tile = Counter[int]()
        for row in rows.tolist():
            per_tile[int(buffers.tile[row])] += int(buffers.byte_count[row])
        tensor = found[value.name]
        assert (tensor.tiles, tensor.total.value) == (len(per_tile), per_tile.total())
        assert tensor.largest.value == max(per_tile.values())
        assert (
            tensor.role == {Role.PARAMETER: "weight", Role.INPUT: "input", Role.OUTPUT: "output"}[value.role]
        )
        assert tensor.shape == value.shape


def test_phases_are_those_that_were_scheduled(wide: Small) -> None:
    """By program order: rows, horizons and items of every tile."""
    found = phases_of(wide.application)
    assert [phase.number for phase in found] == list(range(len(wide.exchange.phases)))
    for phase, step in zip(found, sorted(wide.exchange.phases), strict=True):
        scheduled = wide.exchange.phases[step]
        rows = scheduled.rows
        assert [row.tile for row in phase.rows] == rows.tiles.tolist()
        assert [row.words for row in phase.rows] == np.diff(rows.first_word).tolist()
        assert [row.events for row in phase.rows] == scheduled.schedule.horizon.tolist()
        assert phase.horizon.value == scheduled.schedule.horizon.max()
        moves, paired = scheduled.demand.transfers, scheduled.schedule.is_paired
        items = np.where(paired, moves.words // 2, moves.words)
        for row in phase.rows:
            assert row.items == items[moves.source == row.tile].sum()
        assert phase.items.value == items.sum()
        lines = row_lines(wide.application, phase.rows[0])
        assert lines[0].startswith("[0,")
        assert lines[-1].endswith("br $m10")


def test_functions_are_those_that_are_called(wide: Small) -> None:
    """Calls of kernels as often as the program has rows, on as many tiles; sizes as they were linked."""
    symbols = {symbol.name: symbol for symbol in symbols_of(wide.application)}
    program = wide.program
    calls: Counter[str] = Counter()
    tiles: dict[str, set[int]] = {}
    for table in (program.calls, program.copies):
        for binding, tile in zip(table.binding.tolist(), table.tile.tolist(), strict=True):
            name = str(program.bindings[int(binding)].symbol)
            calls[name] += 1
            tiles.setdefault(name, set()).add(tile)
    kernels = {name: symbol for name, symbol in symbols.items() if not name.startswith("runtime.")}
    assert {name: symbol.calls.value for name, symbol in kernels.items()} == calls
    assert {name: symbol.tiles.value for name, symbol in kernels.items()} == {
        name: len(found) for name, found in tiles.items()
    }
    code: Image = wide.results["support_sizing"].value().code
    linked = {function.name: function for function in code.symbols if function.is_function}
    assert set(symbols) == set(linked)
    for name, function in linked.items():
        assert symbols[name].address == function.address
        assert symbols[name].size.value >= max(function.size, 4)
    sections = sum(section.size for section in code.sections)
    assert sum(symbol.size.value for symbol in symbols.values()) <= sections


def test_the_memory_of_a_tile(wide: Small) -> None:
    """Tensors at the addresses they were placed at, everything else in order and without overlap."""
    logical, physical = 1, int(physical_tiles(np.array([1]))[0])
    found = tile_of(wide.application, PhysicalTile(physical))
    assert found is not None
    buffers = wide.program.buffers
    placed = {
        (int(address), int(address + size))
        for address, size, tile, role in zip(
            wide.built.placement.address.tolist(),
            buffers.byte_count.tolist(),
            buffers.tile.tolist(),
            buffers.role.tolist(),
            strict=True,
        )
        if tile == logical and role != Role.TEMPORARY
    }
    named = {
        (span.start, span.stop)
        for span in found.memory
        if span.name.startswith(("weight", "input", "output"))
    }
    assert named == placed
    assert all(
        first.stop == second.start for first, second in zip(found.memory, found.memory[1:], strict=False)
    )
    assert found.memory[0].start == wide.application.tile_memory_base
    assert found.memory[-1].stop == wide.application.tile_memory_base + wide.application.tile_memory_size
    free = sum(span.stop - span.start for span in found.memory if not span.name)
    assert found.named.value + free == wide.application.tile_memory_size
    states = {span.name: span.is_initialized for span in found.memory}
    assert states["tile program"]
    assert not states["input x"]


def test_the_program_of_a_tile_names_what_it_calls(wide: Small) -> None:
    work = tile_of(wide.application, PhysicalTile(0))
    idle = tile_of(wide.application, PhysicalTile(TILE_COUNT - 1))
    assert work is not None
    assert idle is not None
    program = "\n".join(work.program)
    for name in {str(binding.symbol) for binding in wide.program.bindings}:
        assert name in program
    assert "runtime.host_run" in program
    assert work.host_programs
    assert "sans" in "\n".join(idle.program)
    assert not idle.host_programs


def test_a_tile_that_is_not_there(wide: Small) -> None:
    without = dataclasses.replace(wide.application, tiles=wide.application.tiles[1:])
    missing = wide.application.tiles[0].physical_tile
    assert tile_of(without, missing) is None


def test_words_that_are_no_row_are_refused(wide: Small) -> None:
    """The package is well formed; what a tile calls as a row is not one."""
    phase = phases_of(wide.application)[0]
    row = phase.rows[0]

    def broken(segment: Segment) -> Segment:
        at = row.address - segment.address
        if not 0 <= at < len(segment.data):
            return segment
        data = segment.data[:at] + b"\xff\xff\xff\x0f" + segment.data[at + 4 :]
        return dataclasses.replace(segment, data=data, memory_size=Bytes(len(data)))

    application = _with_segments(wide.application, row.tile, broken)
    with pytest.raises(PackageInvalid) as refused:
        phases_of(application)
    assert f"its program calls a row at {row.address:#x} that is none: row word 0" in str(refused.value)


@given(st.data())
def test_any_package_is_told_or_refused(wide: Small, data: st.DataObject) -> None:
    """Regions anywhere, with the names that mean something, and other words where programs are.

    A package that obeys the rules of its reader ends in figures or in ``PackageInvalid``.
    """
    names = st.sampled_from(
        ["tile program", "exchange rows", "host programs", "tables", "runtime state", "x"]
    )
    places = st.one_of(st.integers(0, 2**32 - 1), st.integers(0x4C000, 0x5F000))
    regions = st.builds(
        DebugRegion,
        physical_tile=st.sampled_from([PhysicalTile(0), PhysicalTile(1), ALL_TILES]),
        address=places.map(Address),
        size=st.one_of(st.integers(1, 2**32 - 1), st.integers(1, 600)).map(Bytes),
        name=names,
    )
    kept = data.draw(st.booleans())
    added = tuple(data.draw(st.lists(regions, max_size=6)))
    at, word = data.draw(st.integers(0, 200)), data.draw(st.integers(0, 2**32 - 1))

    def changed(part: Segment) -> Segment:
        if not 4 * at < len(part.data) - 4:
            return part
        content = part.data[: 4 * at] + word.to_bytes(4, "little") + part.data[4 * at + 4 :]
        return dataclasses.replace(part, data=content)

    few = dataclasses.replace(wide.application, tiles=wide.application.tiles[:2])
    application = dataclasses.replace(
        _with_segments(few, 0, changed),
        debug_regions=(
            *(region for region in few.debug_regions if kept and region.physical_tile in (0, 1, ALL_TILES)),
            *added,
        ),
    )
    overview = overview_of(application, 1 << 24)
    content = sum(len(part.data) for image in application.tiles for part in image.segments)
    assert [part.total.value for part in overview.parts if part.name == "descriptions"] == [
        (1 << 24) - content
    ]
    assert overview.file.value == sum(part.total.value for part in overview.parts)
    tile = tile_of(application, PhysicalTile(0))
    assert tile is not None
    assert 0 <= tile.named.value <= application.tile_memory_size
    assert all(symbol.size.value >= 0 for symbol in symbols_of(application))
    with contextlib.suppress(PackageInvalid):
        phases_of(application)


def test_the_overview_as_json(wide: Small) -> None:
    overview = overview_of(wide.application, 5)
    assert report_of_json(Overview, json_of(overview)) == overview
    with pytest.raises(ValueError, match="no Overview: tiles"):
        report_of_json(Overview, json_of(overview).replace('"tiles":{', '"tile":{'))


def _with_segments(application: Application, tile: int, change: "object") -> Application:
    assert callable(change)
    return dataclasses.replace(
        application,
        tiles=tuple(
            dataclasses.replace(image, segments=tuple(change(segment) for segment in image.segments))
            if image.physical_tile == tile
            else image
            for image in application.tiles
        ),
    )
