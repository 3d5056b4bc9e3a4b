"""Memory of tiles, counted byte by byte."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.low.address import destinations_of, operands_of_calls, sources_of
from compiler.low.ids import NO_ROW
from compiler.low.ir import Role
from compiler.low.steps import in_order
from compiler.package.support import Purpose
from compiler.placement.problem import lifetimes
from compiler.report.memory import KINDS, covered, live_bytes, memory_use
from compiler.target.memory import SRAM_SIZE
from compiler.target.tiles import TILE_COUNT, logical_tiles, physical_tiles
from tests.report.builds import Small

ranges = st.lists(
    st.tuples(st.sampled_from([0, 1, 7, TILE_COUNT - 1]), st.integers(0, 40), st.integers(0, 20))
)


@given(ranges)
def test_bytes_in_ranges_count_once(found: list[tuple[int, int, int]]) -> None:
    tile, start, size = np.array(found, dtype=np.int64).reshape(-1, 3).T
    wanted = np.zeros(TILE_COUNT, dtype=np.int64)
    for number in set(tile.tolist()):
        held = {
            byte for other, first, count in found if other == number for byte in range(first, first + count)
        }
        wanted[number] = len(held)
    assert covered(tile, start, start + size).tolist() == wanted.tolist()


def test_what_lives_in_each_step(wide: Small) -> None:
    """Bytes of buffers between the first step that touches them and the last, by sets of addresses."""
    program, address = wide.program, wide.built.placement.address
    buffers, steps = program.buffers, len(list(in_order(program.steps)))
    touched: dict[int, set[int]] = {row: set() for row in range(len(buffers.tile))}
    views = operands_of_calls(program.calls, program.views)
    for call, step in enumerate(program.calls.step.tolist()):
        accesses = len(program.bindings[int(program.calls.binding[call])].accesses)
        first = int(program.calls.first_view[call])
        for operand in range(first, first + accesses):
            touched[int(views.buffer[operand])].add(step)
    for operands, column in (
        (sources_of(program.copies), program.copies.step),
        (destinations_of(program.copies), program.copies.step),
        (sources_of(program.transfers), program.transfers.step),
        (destinations_of(program.recipients), program.transfers.step[program.recipients.transfer]),
    ):
        for buffer, step in zip(operands.buffer.tolist(), column.tolist(), strict=True):
            touched[buffer].add(step)
    live = live_bytes(program, wide.built.placement)
    assert live.shape == (steps, TILE_COUNT)
    for step in range(steps):
        for tile in range(program.tile_count):
            held: set[int] = set()
            for row in np.flatnonzero(buffers.tile == tile).tolist():
                used = touched[row]
                lives = buffers.role[row] != Role.TEMPORARY or (used and min(used) <= step <= max(used))
                if lives:
                    start = int(address[row])
                    held.update(range(start, start + int(buffers.byte_count[row])))
            assert live[step, tile] == len(held)


def test_use_agrees_with_the_placement(wide: Small) -> None:
    """The fullest tile is the stage's figure; parts are parts."""
    built = wide.built
    memory = memory_use(built.program, built.placement, built.support)
    figures = {
        figure.name: figure.value
        for stage in ("final_placement", "support_sizing")
        for figure in wide.results[stage].value().figures
    }
    assert memory.size == SRAM_SIZE
    assert max(memory.used) == memory.used[memory.fullest] == figures["fullest tile"]
    assert max(memory.own) == figures["code, rows, tables and runtime of a tile at most"]
    working = set(physical_tiles(np.arange(built.program.tile_count)).tolist())
    for tile in range(TILE_COUNT):
        assert memory.rows[tile] <= memory.own[tile] <= memory.used[tile] <= SRAM_SIZE
        assert memory.resident[tile] <= memory.used[tile]
        series = memory.live[memory.series[tile]]
        assert len(series) == len(memory.steps)
        assert (max(series) > 0) == (tile in working)
    assert sum(kind.tiles for kind in memory.classes) == built.program.tile_count
    for kind in memory.classes:
        assert kind.peak == max(memory.live[memory.series[kind.tile]])
        assert (kind.own, kind.resident) == (memory.own[kind.tile], memory.resident[kind.tile])


def test_maps_of_tiles(wide: Small) -> None:
    """Byte by byte and step by step, a map holds what lives there, of its kind and for its node."""
    built, program = wide.built, wide.program
    memory = memory_use(program, built.placement, built.support)
    buffers, (first, last) = program.buffers, lifetimes(program)
    logical: list[int] = logical_tiles(np.arange(TILE_COUNT)).tolist()
    working: list[int] = physical_tiles(np.arange(program.tile_count)).tolist()
    for tile in (*working, logical.index(TILE_COUNT - 1)):
        wanted: set[tuple[int, int, str, str]] = set()
        for row in np.flatnonzero(buffers.tile == logical[tile]).tolist():
            value = int(buffers.value[row])
            name = program.values[value].name if value != NO_ROW else program.nodes[int(buffers.node[row])]
            start = int(built.placement.address[row])
            wanted |= {
                (byte, step, Role(int(buffers.role[row])).name.lower(), name)
                for byte in range(start, start + int(buffers.byte_count[row]))
                for step in range(int(first[row]), int(last[row]) + 1)
            }
        tensors = memory.tensors[memory.tensors_of[tile]]
        found = {
            (byte, step, KINDS[tensors.kind[place]], memory.names[tensors.name[place]])
            for place, start in enumerate(tensors.start)
            for byte in range(start, start + tensors.size[place])
            for step in range(tensors.first[place], tensors.last[place] + 1)
        }
        assert found == wanted
        areas, held = memory.support[memory.support_of[tile]], built.support.reservations
        rows = np.flatnonzero(held.tile == logical[tile]).tolist()
        assert sorted(
            zip(areas.start, areas.size, (KINDS[kind] for kind in areas.kind), strict=True)
        ) == sorted(
            (int(held.start[row]), int(held.byte_count[row]), Purpose(int(held.purpose[row])).name.lower())
            for row in rows
        )
        assert set(areas.first) == {0}
        assert set(areas.last) == {memory.steps[-1]}


def test_classes_of_tiles(wide: Small) -> None:
    """Each has as many tiles as say so; the others have no tensors."""
    built = wide.built
    memory = memory_use(built.program, built.placement, built.support)
    for number, kind in enumerate(memory.classes):
        assert memory.class_of.count(number) == kind.tiles
        assert memory.class_of[kind.tile] == number
    assert memory.class_of.count(-1) == TILE_COUNT - built.program.tile_count
