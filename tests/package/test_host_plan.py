"""The host plan: slices, batches, pages, bindings; packets and programs against known words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import Unsupported
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F16
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.low.build import LowBuilder
from compiler.low.ir import HostValue, LowProgram, Role
from compiler.package.hostplan import HostPlan, Slices, plan_host
from compiler.package.hostprograms import (
    HostGroup,
    batches_by_tile,
    grouped,
    reading_body,
    reading_packets,
    reading_program,
    requesting_program,
    writing_body,
    writing_packets,
    writing_program,
)
from compiler.placement.ir import Placement
from compiler.target.host import HostDirection, requester
from compiler.target.tiles import logical_to_physical
from compiler.target.units import Address, Bytes, LogicalTile, PhysicalTile

TILE = PhysicalTile(260)
PAGE = 4096


def hexadecimal(*words: int) -> list[str]:
    return [f"{word:08x}" for word in words]


# Known words.


def test_a_read_as_vendor_tools_write_it() -> None:
    assert hexadecimal(*reading_body(Address(0x50170), 1)) == ["782a02e3", "41800000"]
    assert hexadecimal(*reading_program(0x604, Bytes(64), requests=False)) == [
        *("19800604", "438080a0", "41800007"),
        *("19800010", "438080a6", "782a0003", "41800000"),
        *("41800007", "19800640", "438080a0", "43a00000"),
    ]


def test_a_write_as_vendor_tools_write_it() -> None:
    assert hexadecimal(*writing_body(Address(0x50160), Address(0x50120), [Bytes(64)])) == [
        *("782a02c3", "79ea0243", "40a00001", "782a02d3", "41800000")
    ]
    words = hexadecimal(*writing_program(0x604, Address(0x50120), Bytes(64), requests=False))
    assert words[3:5] == ["19800001", "438080a6"]
    # The packets have no answer to expect but that of the one that closes them.
    assert hexadecimal(*writing_packets(TILE, Bytes(0x40), Bytes(64))) == [
        *("a0820000", "00000011", "cc82020c", "00000000")
    ]


def test_a_tile_that_requests_meets_the_host_as_master_and_announces_after_two_instructions() -> None:
    plain = reading_program(0x604, Bytes(64), requests=False)
    requesting = reading_program(0x604, Bytes(64), requests=True)
    assert hexadecimal(*requesting[:3]) == ["19800604", "438080a0", "4180000f"]
    assert requesting[3:5] == plain[3:5]
    assert hexadecimal(requesting[5], requesting[6]) == ["782a0003", "782a0013"], "request, then packets"
    assert requesting[7:] == plain[6:]


def test_a_tile_that_only_requests_neither_expects_nor_sends_data() -> None:
    assert hexadecimal(*requesting_program(PhysicalTile(4))) == [
        *("19800604", "438080a0", "4180000f", "782a0003"),
        *("41800007", "19800640", "438080a0", "43a00000"),
    ]


@pytest.mark.parametrize(
    ("size", "requests"), [(4, 1), (60, 1), (64, 1), (100, 2), (1024, 1), (4092, 5), (4096, 4)]
)
def test_reads_cover_a_slice_in_order(size: int, requests: int) -> None:
    packets = reading_packets(TILE, Bytes(PAGE), Bytes(size))
    assert len(packets) == 2 * requests
    at, place = PAGE, 0x50180
    for number in range(requests):
        first, second = packets[2 * number : 2 * number + 2]
        unit = 64 if first & 0x20000000 else 4
        count = second & 15 or 16
        assert unit * (second >> 4 & 0x7FFFFFF) == at
        assert 32 * (first & 0x7FFF) + 0x4C000 == place
        assert (first & 0x0C000000 != 0) == (number == requests - 1), "the last one is marked"
        at, place = at + unit * count, place + unit * count
    assert at == PAGE + size


@pytest.mark.parametrize("size", [4, 64, 100, 256, 300, 4096])
def test_packets_follow_each_other_by_18_events(size: int) -> None:
    """From the first word of a write's data to the next packet."""
    program = writing_program(0x604, Address(0x90000), Bytes(size), requests=False)
    sends = [word for word in program[5:] if word >> 27 == 0xF or word >> 19 == 0x40A00000 >> 19]
    position, since_payload, sent = 0, 99, 0
    for number, word in enumerate(sends):
        if word >> 19 == 0x40A00000 >> 19:
            position += (word & 0x7FFFF) + 1
            continue
        item, count = word >> 3 & 0x3FFFF, (word >> 21 & 63) + 1
        if 4 * item >= 0x90000:
            since_payload, sent = position, sent + count
        else:
            assert number == 0 or position - since_payload >= 18
        position += count
    assert 4 * sent == size


# Slices.


def resident(
    widths: list[int], tiles: list[int], role: Role, replicas: int = 1
) -> tuple[LowProgram, Placement]:
    """Tensors of one role, [tiles / replicas, width] halves each; replicas of a shard follow each other."""
    low = LowBuilder(1472)
    node = low.node("node")
    for number, width in enumerate(widths):
        cut = AxisTiling(axis=0, partitions=len(tiles) // replicas)
        value = low.value(
            HostValue(
                name=f"tensor{number}",
                role=role,
                shape=(len(tiles) // replicas, width),
                format=TensorFormat(
                    precision=F16(),
                    layout=TensorLayout(order=RowMajor(), tiling=GridTiling(axes=(cut,), replicas=replicas)),
                ),
                owners=OwnerMap(tile_count=1472, embedding=tuple(TileId(tile) for tile in tiles)),
            )
        )
        for owner, tile in enumerate(tiles):
            low.buffer(
                tile=tile,
                byte_count=2 * width,
                alignment=8,
                node=node,
                role=role,
                value=value,
                shard=owner // replicas,
            )
    program = low.finish()
    address = 0x90000 + 0x10000 * program.buffers.value
    return program, Placement(address=address, stride=np.zeros(0, dtype=np.int64))


@st.composite
def tensors(draw: st.DrawFn) -> tuple[list[int], list[int], Role, int]:
    replicas = draw(st.integers(1, 2))
    count = replicas * draw(st.integers(1, 3))
    tiles = draw(st.lists(st.integers(0, 1471), min_size=count, max_size=count, unique=True))
    widths = draw(st.lists(st.integers(1, 5000).map(lambda n: 2 * n), min_size=1, max_size=4))
    return widths, tiles, draw(st.sampled_from([Role.PARAMETER, Role.INPUT, Role.OUTPUT])), replicas


def slices_of(plan: HostPlan, role: Role) -> Slices:
    return {Role.PARAMETER: plan.parameters, Role.INPUT: plan.inputs, Role.OUTPUT: plan.outputs}[role]


@given(tensors())
def test_slices_move_every_byte_once_and_a_tile_at_most_one_in_a_batch(
    case: tuple[list[int], list[int], Role, int],
) -> None:
    widths, tiles, role, replicas = case
    program, placement = resident(widths, tiles, role, replicas)
    plan = plan_host(program, placement)
    slices = slices_of(plan, role)
    rows = list(
        zip(
            *(getattr(slices, name).tolist() for name in ("batch", "tile", "address", "size", "file_offset")),
            strict=True,
        )
    )
    assert len({(batch, tile) for batch, tile, _, _, _ in rows}) == len(rows)
    assert all(0 < size <= PAGE and size % 4 == 0 for _, _, _, size, _ in rows)
    assert rows == sorted(rows, key=lambda row: row[:2])
    # Of each copy of each shard: (tile, file offset) of every word, and its address.
    wanted: dict[tuple[int, int], int] = {}
    start = 0
    for number, width in enumerate(widths):
        for owner, tile in enumerate(tiles):
            first = owner % replicas == 0 if role is Role.OUTPUT else True
            physical = logical_to_physical(LogicalTile(tile))
            if role is Role.OUTPUT and replicas > 1:
                shard = tiles[owner - owner % replicas :][:replicas]
                first = physical == min(logical_to_physical(LogicalTile(copy)) for copy in shard)
            for byte in range(0, 2 * width, 4) if first else ():
                wanted[physical, start + owner // replicas * 2 * width + byte] = (
                    0x90000 + 0x10000 * number + byte
                )
        start += len(tiles) // replicas * 2 * width
    found = {
        (tile, file_offset + byte): address + byte
        for _, tile, address, size, file_offset in rows
        for byte in range(0, size, 4)
    }
    assert found == wanted
    # No batch is there without need.
    most = max(sum(1 for _, tile, _, _, _ in rows if tile == one) for one in {row[1] for row in rows})
    assert slices.batches == most
    assert plan.tiles.tolist() == sorted({row[1] for row in rows})


@given(tensors())
def test_a_package_states_the_slices_in_slots_of_a_page(case: tuple[list[int], list[int], Role, int]) -> None:
    widths, tiles, role, replicas = case
    plan = plan_host(*resident(widths, tiles, role, replicas))
    exchange = plan.host_exchange()
    slices = slices_of(plan, role)
    assert (exchange.startup_mark, exchange.command_page, exchange.attach_order) == (23, 0, (0, 1))
    assert [(page.index, page.size) for page in exchange.pages] == [(0, PAGE), (1, PAGE * len(plan.tiles))]
    calls = {call.name: call for call in exchange.calls}
    call = calls["initialize" if role is Role.PARAMETER else "run"]
    parts = call.outputs if role is Role.OUTPUT else call.inputs
    ends = call.output_batch_ends if role is Role.OUTPUT else call.input_batch_ends
    assert len(parts) == len(slices.tile)
    assert len(ends) == slices.batches
    for part, tile, size in zip(parts, slices.tile.tolist(), slices.size.tolist(), strict=True):
        assert (part.page, part.size) == (1, size)
        assert part.page_offset == PAGE * plan.tiles.tolist().index(tile)
        assert plan.host_offset(tile) == PAGE + part.page_offset
    other = calls["run" if role is Role.PARAMETER else "initialize"]
    assert (other.phases, other.inputs, other.outputs) == (0, (), ())
    assert call.phases == 2 * slices.batches - (role is not Role.PARAMETER)


def test_bindings_list_every_copy_of_every_shard() -> None:
    program, placement = resident([10], [5, 3, 700, 1], Role.OUTPUT, replicas=2)
    (binding,) = plan_host(program, placement).output_bindings
    assert (binding.name, binding.dtype, binding.shape) == ("tensor0", "f16", (2, 10))
    physical = {tile: logical_to_physical(LogicalTile(tile)) for tile in (5, 3, 700, 1)}
    assert {(part.tile, part.file_offset, part.size) for part in binding.slices} == {
        (physical[5], 0, 20),
        (physical[3], 0, 20),
        (physical[700], 20, 20),
        (physical[1], 20, 20),
    }


def test_shards_that_are_no_words_are_refused() -> None:
    with pytest.raises(Unsupported) as refusal:
        plan_host(*resident([7], [5], Role.INPUT))
    assert str(refusal.value) == (
        "unsupported (host plan): tensor0: a shard is not made of whole words of 4 bytes, in which the host"
        " exchanges data.\n"
        "  next: pad its last axis, or cut it elsewhere"
    )


# Groups.


@given(tensors())
def test_every_tile_that_transfers_is_announced_by_its_requester(
    case: tuple[list[int], list[int], Role, int],
) -> None:
    widths, tiles, role, replicas = case
    plan = plan_host(*resident(widths, tiles, role, replicas))
    slices = slices_of(plan, role)
    direction = HostDirection.TILE_TO_HOST if role is Role.OUTPUT else HostDirection.HOST_TO_TILE
    work = batches_by_tile(plan, slices, direction)
    for batch in range(slices.batches):
        moving = set(slices.tile[slices.batch == batch].tolist())
        present = {tile for tile, parts in work.items() if parts[batch] is not None}
        assert present == moving | {requester(PhysicalTile(tile)) for tile in moving}
        announced: set[int] = set()
        for tile in present:
            part = work[tile][batch]
            assert part is not None
            assert len(part.packets) <= (0x160 - 8) // 4, "packets end before staging"
            if part.request:
                bits = part.packets[0] | part.packets[1] << 24
                announced |= {
                    64 * (bit // 2) + (tile & 0x3D) + 2 * (bit % 2) for bit in range(46) if bits >> bit & 1
                }
            assert part.request == (tile == requester(tile))
        assert announced == moving


def test_groups_copy_packets_only_when_they_change() -> None:
    plan = plan_host(*resident([10_000], [0, 2], Role.PARAMETER))
    work = batches_by_tile(plan, plan.parameters, HostDirection.HOST_TO_TILE)
    physical = logical_to_physical(LogicalTile(0))
    groups = grouped(work[physical])
    assert [len(group.parts) for group in groups] == [4, 1], "20,000 bytes: four pages and a rest"
    table = groups[0].table(0x60000)
    headers = table[1:12:3]
    assert headers == [10 << 24 | 1024, 1024, 1024, 1024]
    assert table[0:12:3] == [0x90000 + PAGE * batch for batch in range(4)]
    assert table[2] == 0x60000 + 4 * 12


def test_groups_keep_a_request_that_does_not_change() -> None:
    plan = plan_host(*resident([2048], [0], Role.PARAMETER))
    part = batches_by_tile(plan, plan.parameters, HostDirection.HOST_TO_TILE)[PhysicalTile(0)][0]
    assert part is not None
    request, packets = part.packets[:2], part.packets[2:]
    changed = type(part)(
        program=part.program,
        request=True,
        packets=(*request, *reversed(packets)),
        destination=part.destination,
        words=part.words,
    )
    table = HostGroup(parts=(part, changed)).table(0x60000)
    assert table[4] == len(packets) << 24 | 1 << 23 | part.words
    assert table[5] == 0x60000 + 4 * (6 + len(part.packets))
    assert table[6:] == [*part.packets, *reversed(packets)]
