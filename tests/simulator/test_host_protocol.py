"""Packets read back, and batches between tiles and the host, from literal programs and by hand."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.package.records import HostCall, HostSlice, TileImage
from compiler.simulator.application import Simulator
from compiler.simulator.packets import Packet, PacketKind, can_request, read_packet, requested_tiles
from compiler.simulator.timeline import MeetingKind
from compiler.target.host import (
    HOST_WINDOW,
    LONGEST_PACKET,
    LONGEST_WRITE,
    close_packet,
    host_mux,
    read_request,
    request_bitmap,
    requester,
    write_header,
)
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Address, Bytes, PhysicalTile
from tests.fixtures.exchange.examples import load
from tests.simulator.packages import (
    ATTACH,
    DATA,
    END,
    FOLLOW,
    PACKETS,
    STAGING,
    application,
    binding,
    copied,
    echo,
    finished,
    host_slice,
    image,
    linked,
    receiving,
    stored,
    wrapped,
    writing,
)

EXAMPLES = load("host")
TILES = st.integers(0, TILE_COUNT - 1).map(PhysicalTile)


def array(*words: int) -> npt.NDArray[np.int64]:
    return np.array(words, dtype=np.int64)


def packet(tile: PhysicalTile, *words: int) -> Packet:
    found = read_packet(tile, array(*words), 0)
    assert isinstance(found, Packet), found
    return found


# Packets.


@pytest.mark.parametrize("example", EXAMPLES["packets"], ids=lambda example: example["words"][0])
def test_literal_packets_mean_what_they_are_known_to(example: dict[str, Any]) -> None:
    words = [int(word, 16) for word in example["words"]]
    data = [0] * 16 if example["kind"] == "write_header" else []
    found = packet(PhysicalTile(example["tile"]), *words, *data)
    kinds = {"write_header": PacketKind.WRITE, "close": PacketKind.CLOSE, "read_request": PacketKind.READ}
    assert found.kind is kinds[example["kind"]]
    assert found.host_offset == example.get("host_offset", 0)
    assert found.size == example.get("size", 0)
    if found.kind is not PacketKind.WRITE:
        assert found.arrival == example["destination"]
        assert found.is_final


SIZES = st.one_of(
    st.integers(1, 15).map(lambda count: 4 * count), st.integers(1, 16).map(lambda count: 64 * count)
)


@given(TILES, SIZES, st.integers(0, 2**20), st.integers(0, 511), st.booleans())
def test_packets_read_back_as_they_were_written(
    tile: PhysicalTile, size: int, place: int, arrival: int, final: bool
) -> None:
    offset = Bytes(place * (64 if size >= 64 else 4))
    to = Address(HOST_WINDOW.start + 32 * arrival)
    if to + size <= HOST_WINDOW.end:
        words = read_request(tile, to, offset, Bytes(size), final=final)
        wanted = Packet(
            kind=PacketKind.READ, at=0, host_offset=offset, size=Bytes(size), arrival=to, is_final=final
        )
        assert packet(tile, *words) == wanted
        assert size <= LONGEST_PACKET
    if size <= LONGEST_WRITE:
        data = range(size // 4)
        found = packet(tile, *write_header(tile, offset, Bytes(size)), *data)
        assert (found.kind, found.host_offset, found.size) == (PacketKind.WRITE, offset, size)
        assert found.words == 2 + size // 4
    assert packet(tile, *close_packet(tile, to)).kind is PacketKind.CLOSE


@given(TILES, TILES)
def test_packets_of_another_tile_are_refused(tile: PhysicalTile, other: PhysicalTile) -> None:
    words = read_request(tile, Address(0x50180), Bytes(0), Bytes(64))
    assert isinstance(read_packet(other, array(*words), 0), Packet) == (tile == other)


@given(st.lists(TILES, min_size=1, max_size=30))
def test_requests_name_the_tiles_of_their_group(tiles: list[PhysicalTile]) -> None:
    groups: dict[PhysicalTile, set[PhysicalTile]] = {}
    for tile in tiles:
        groups.setdefault(requester(tile), set()).add(tile)
    for leader, members in groups.items():
        assert can_request(leader)
        words = array(*request_bitmap(sorted(members)))
        assert requested_tiles(leader, words) == tuple(sorted(members))


def test_literal_requests() -> None:
    for example in EXAMPLES["requests"]:
        words = array(*example["bitmap"])
        assert requested_tiles(PhysicalTile(example["requester"]), words) == (example["tile"],)


def test_requesters_are_the_lower_lanes_of_row_0() -> None:
    leaders = {requester(PhysicalTile(tile)) for tile in range(TILE_COUNT)}
    assert {tile for tile in range(TILE_COUNT) if can_request(PhysicalTile(tile))} == leaders


# Batches.


def random_bytes(size: int, seed: int = 0) -> bytes:
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8).tobytes()


@pytest.mark.parametrize("size", [4, 60, 64, 68, 1024, 2052, 4096])
def test_what_goes_in_comes_out(size: int) -> None:
    """Short, long and mixed packets in both directions; a tile outside of the exchange requests it."""
    simulator = Simulator(echo(size, runs=2))
    for run in range(2):
        x = random_bytes(size, run)
        result = finished(simulator, {"x": x})
        assert result.outputs == {"y": x}
        assert [meeting.kind for meeting in result.timeline] == 2 * [
            MeetingKind.BATCH_BEGIN,
            MeetingKind.BATCH_END,
        ]
        assert [meeting.taking_part for meeting in result.timeline] == [2, 2, 2, 2]


def test_literal_programs_of_tile_260_move_their_64_bytes() -> None:
    """The host programs that ran on hardware, in both directions, with the literal request of tile 4."""
    reading, sending = EXAMPLES["programs"][1], EXAMPLES["programs"][0]
    rows = {
        0x5D000: [int(word, 16) for word in sending["row"]["words"]],
        0x5D100: [int(word, 16) for word in reading["row"]["words"]],
    }
    request = next(example for example in EXAMPLES["requests"] if example["tile"] == 260)
    packets = {(e["tile"], e["kind"]): [int(word, 16) for word in e["words"]] for e in EXAMPLES["packets"]}
    memory = rows | {
        reading["packets"]: packets[260, "read_request"],
        sending["packets"]: packets[260, "write_header"] + packets[260, "close"],
    }
    text = (
        ATTACH
        + wrapped(260, f"call $m10, {0x5D100 >> 2:#x}\n")
        + wrapped(260, f"call $m10, {0x5D000 >> 2:#x}\n")
    )
    ask = wrapped(4, f"send 1, {0x50120 >> 2:#x}, 3\n", [260])
    leader = image(4, ATTACH + ask + ask + END, {0x50120: request["bitmap"]})
    part = HostSlice(page=0, page_offset=Bytes(64), file_offset=Bytes(0), size=Bytes(64))
    call = HostCall(
        name="run",
        command=0,
        phases=3,
        inputs=(part,),
        outputs=(part,),
        input_batch_ends=(1,),
        output_batch_ends=(1,),
    )
    package = application(
        [leader, image(260, text + END, memory)],
        inputs=[binding("x", 260, 0x50120, 64)],
        outputs=[binding("y", 260, 0x50120, 64)],
        calls=[call],
    )
    x = random_bytes(64)
    assert finished(Simulator(package), {"x": x}).outputs == {"y": x}


def test_weights_are_written_once_and_stay() -> None:
    """Two weight batches of one tile; each run sends them back."""
    sizes = (4096, 128)
    text = ATTACH
    for batch, size in enumerate(sizes):
        program, packets = receiving(1, size, announce=[1])
        text += stored(packets, PACKETS) + program
        text += copied(STAGING, DATA + 4096 * batch, size // 4, f"weight{batch}")
    for run in range(3):
        program, packets = writing(1, DATA + 4096, 128, announce=[1])
        text += stored(packets, PACKETS) + program + f"run{run}:\n"
    initialize = HostCall(
        name="initialize",
        command=0,
        phases=4,
        inputs=(host_slice(0, 4096), host_slice(0, 128, 4096)),
        input_batch_ends=(1, 2),
    )
    run_call = HostCall(
        name="run", command=0, phases=1, outputs=(host_slice(0, 128),), output_batch_ends=(1,)
    )
    follower = image(9, ATTACH + 5 * FOLLOW + END)
    package = application(
        [image(1, text + END), follower],
        weights=[binding("a", 1, DATA, 4096), binding("b", 1, DATA + 4096, 128)],
        outputs=[binding("y", 1, DATA + 4096, 128)],
        calls=[initialize, run_call],
    )
    simulator = Simulator(package)
    a, b = random_bytes(4096), random_bytes(128, 1)
    assert simulator.initialize({"a": a, "b": b}).is_complete
    for _ in range(3):
        assert finished(simulator).outputs == {"y": b}


def test_tiles_of_several_groups_and_rows_in_one_batch() -> None:
    """Pairs, rows and lanes: tiles 0, 2 and 1027 need two requesters, one of them among the tiles."""
    tiles = (0, 2, 1027)
    leaders = {0: [0, 2], int(requester(PhysicalTile(1027))): [1027]}
    assert set(leaders) == {0, 1}
    images: list[TileImage] = []
    for slot, tile in enumerate(tiles):
        mine = leaders.get(tile, [])
        read, read_packets = receiving(tile, 64, slot, announce=mine)
        write, write_packets = writing(tile, DATA, 64, slot, announce=mine)
        text = ATTACH + stored(read_packets, PACKETS) + read + copied(STAGING, DATA, 16, "copy")
        images.append(image(tile, text + stored(write_packets, PACKETS) + write + END))
    ask = wrapped(1, f"send 1, {PACKETS >> 2:#x}, 3\n", [1027])
    bitmap = [int(word) for word in request_bitmap([PhysicalTile(1027)])]
    images.append(image(1, ATTACH + stored(bitmap, PACKETS) + ask + ask + END))
    slices = tuple(host_slice(slot, 64, 64 * slot) for slot in range(3))
    call = HostCall(
        name="run",
        command=0,
        phases=3,
        inputs=slices,
        outputs=slices,
        input_batch_ends=(3,),
        output_batch_ends=(3,),
    )
    bindings = [binding(f"t{tile}", tile, DATA, 64) for tile in tiles]
    package = application(images, inputs=bindings, outputs=bindings, calls=[call], slots=3)
    files = {f"t{tile}": random_bytes(64, tile) for tile in tiles}
    assert finished(Simulator(package), files).outputs == files


def test_a_tile_listens_to_the_host_by_its_place() -> None:
    for tile, mux in EXAMPLES["muxes"]:
        assert host_mux(PhysicalTile(tile)) == mux


def test_code_that_the_host_overwrites_is_decoded_again() -> None:
    """Instructions in staging run before and after other ones arrive there."""
    first, other = (np.frombuffer(linked(f"setzi $m5, {n}\nbr $m10\n")[0], "<u4") for n in (7, 9))
    call = f"call $m10, {STAGING >> 2:#x}\nsetzi $m1, {DATA:#x}\nst32 $m5, $m1, $m15, "
    read, packets = receiving(1, 8, announce=[1])
    write, more = writing(1, DATA, 8, announce=[1])
    text = ATTACH + call + "0\n" + stored(packets, PACKETS) + read + call + "1\n" + stored(more, PACKETS)
    part = host_slice(0, 8)
    run = HostCall(
        name="run",
        command=0,
        phases=3,
        inputs=(part,),
        outputs=(part,),
        input_batch_ends=(1,),
        output_batch_ends=(1,),
    )
    package = application(
        [image(1, text + write + END, {STAGING: first})],
        inputs=[binding("x", 1, STAGING, 8)],
        outputs=[binding("y", 1, DATA, 8)],
        calls=[run],
    )
    result = finished(Simulator(package), {"x": other.tobytes()})
    assert np.frombuffer(result.outputs["y"], "<u4").tolist() == [7, 9]
