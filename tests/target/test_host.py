"""Host packets, requests and chunks against literal words, and programs put together from them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target import host, words
from compiler.target.control_registers import SupervisorRegister
from compiler.target.fabric import MULTICAST
from compiler.target.host import HOST_PAGE, HOST_WINDOW, LONGEST_PACKET, LONGEST_WRITE, HostDirection
from compiler.target.registers import MainRegister, SyncZone
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Address, Bytes, Events, PhysicalTile, Word
from tests.fixtures.exchange.examples import load

EXAMPLES = load("host")
physical_tiles = st.integers(0, TILE_COUNT - 1).map(PhysicalTile)


def _hex(packet: tuple[Word, Word]) -> list[str]:
    return [f"{word:08x}" for word in packet]


def test_known_packets() -> None:
    for example in EXAMPLES["packets"]:
        tile = PhysicalTile(example["tile"])
        match example["kind"]:
            case "write_header":
                packet = host.write_header(tile, Bytes(example["host_offset"]), Bytes(example["size"]))
            case "read_request":
                packet = host.read_request(
                    tile,
                    Address(example["destination"]),
                    Bytes(example["host_offset"]),
                    Bytes(example["size"]),
                )
            case "close":
                packet = host.close_packet(tile, Address(example["destination"]))
            case other:
                raise AssertionError(other)
        assert _hex(packet) == example["words"]


def test_known_muxes_requesters_and_chunks() -> None:
    for tile, mux in EXAMPLES["muxes"]:
        assert host.host_mux(PhysicalTile(tile)) == mux
    for example in EXAMPLES["requests"]:
        tile = PhysicalTile(example["tile"])
        assert host.requester(tile) == example["requester"]
        assert list(host.request_bitmap([tile])) == example["bitmap"]
    for example in EXAMPLES["chunks"]:
        direction = HostDirection(example["direction"])
        lengths = host.chunks(direction, Bytes(example["host_offset"]), Bytes(example["size"]))
        assert list(lengths) == example["lengths"]


def _send(address: int, count: int) -> Word:
    return words.send(Events(count), words.item_position(Bytes(address), paired=False), MULTICAST)


def test_known_programs_are_made_of_our_words() -> None:
    """The write program waits until ``WRITE_SPACING`` events have passed since its payload began."""
    await_words = words.put(SupervisorRegister.INCOMING_DCOUNT, MainRegister.M8)
    write, read = EXAMPLES["programs"]
    payload = Events(16)
    program = [
        words.setzi(MainRegister.M8, 1),
        await_words,
        _send(write["packets"], host.PACKET_WORDS),
        _send(write["data"], payload),
        words.delay(Events(host.WRITE_SPACING - payload)),
        _send(write["close"], host.PACKET_WORDS),
        words.sync(SyncZone.RECEIVE),
        words.br(MainRegister.M10),
    ]
    assert [f"{word:08x}" for word in program] == write["row"]["words"]
    program = [
        words.setzi(MainRegister.M8, 16),
        await_words,
        _send(read["packets"], host.PACKET_WORDS),
        words.sync(SyncZone.RECEIVE),
        words.br(MainRegister.M10),
    ]
    assert [f"{word:08x}" for word in program] == read["row"]["words"]


@given(physical_tiles)
def test_muxes_and_requesters_of_any_tile(tile: PhysicalTile) -> None:
    assert host.host_mux(tile) == 0x600 + (tile & 0x3F & ~2)
    assert host.requester(tile) == tile & 0x3D
    assert host.requester(host.requester(tile)) == host.requester(tile)
    assert host.route(tile) == (tile >> 1 << 16 | (tile & 1) << 15)


def test_a_group_has_a_bit_for_each_of_its_tiles() -> None:
    groups: dict[int, list[PhysicalTile]] = {}
    for tile in map(PhysicalTile, range(TILE_COUNT)):
        groups.setdefault(host.requester(tile), []).append(tile)
    assert len(groups) == 32
    for members in groups.values():
        bits = [host.request_bitmap([tile]) for tile in members]
        assert len(set(bits)) == len(members) == 46
        first, second = host.request_bitmap(members)
        assert (first, second) == (0xFFFFFF, (1 << 22) - 1)


@given(
    physical_tiles,
    st.integers(0, HOST_WINDOW.size // 32 - 1),
    st.one_of(
        st.tuples(st.integers(0, (1 << 27) - 1), st.integers(1, 15)).map(
            lambda pick: (pick[0] * 4, pick[1] * 4)
        ),
        st.tuples(st.integers(0, (1 << 27) - 1), st.integers(1, 16)).map(
            lambda pick: (pick[0] * 64, pick[1] * 64)
        ),
    ),
    st.booleans(),
)
def test_a_read_request_reads_back(
    tile: PhysicalTile, slot: int, place: tuple[int, int], final: bool
) -> None:
    """A receiver of the two words can recover every operand."""
    offset, size = place
    destination = Address(0x50000 + 32 * slot)
    first, second = host.read_request(tile, destination, Bytes(offset), Bytes(size), final=final)
    assert first >> 30 == 3
    unit = 64 if first >> 29 & 1 else 4
    assert (first >> 26 & 3) == (3 if final else 0)
    assert ((first >> 16 & 0x3FF) << 1 | first >> 15 & 1) == tile
    assert 0x50000 + ((first & 0x7FFF) - 0x200) * 32 == destination
    assert second >> 31 == tile & 1
    assert (second & 0x7FFFFFFF) >> 4 == offset // unit
    assert ((second & 15) or 16) * unit == size


chunked = st.tuples(
    st.sampled_from(list(HostDirection)), st.integers(0, 4000), st.integers(0, 5000), st.booleans()
).map(lambda pick: (pick[0], (pick[1] // 16 * 64 if pick[3] else pick[1] * 4), pick[2] * 4))


@given(chunked)
def test_chunks_are_packets_that_cover_the_range(case: tuple[HostDirection, int, int]) -> None:
    direction, offset, size = case
    position = offset
    lengths = host.chunks(direction, Bytes(offset), Bytes(size))
    longest = LONGEST_PACKET if direction is HostDirection.HOST_TO_TILE else LONGEST_WRITE
    for length in lengths:
        assert position // HOST_PAGE == (position + length - 1) // HOST_PAGE
        assert length <= longest
        if direction is HostDirection.HOST_TO_TILE:
            host.read_request(PhysicalTile(0), HOST_WINDOW.start, Bytes(position), length)
        else:
            host.write_header(PhysicalTile(0), Bytes(position), length)
        position += length
    assert position == offset + size


def test_aligned_chunks_are_as_long_as_allowed() -> None:
    assert host.chunks(HostDirection.HOST_TO_TILE, Bytes(0), Bytes(4096)) == (1024,) * 4
    assert host.chunks(HostDirection.TILE_TO_HOST, Bytes(0), Bytes(640)) == (256, 256, 128)
    assert host.chunks(HostDirection.HOST_TO_TILE, Bytes(64), Bytes(100)) == (64, 36)
    assert host.chunks(HostDirection.HOST_TO_TILE, Bytes(4032), Bytes(128)) == (64, 64)
    assert host.chunks(HostDirection.HOST_TO_TILE, Bytes(64), Bytes(0)) == ()


TILE = PhysicalTile(5)


@pytest.mark.parametrize("size", [0, 2, 62, 68, 1088])
def test_sizes_that_no_packet_has_are_refused(size: int) -> None:
    message = rf"^packet size {size} must be 4\.\.60 in steps of 4 or 64\.\.1024 in steps of 64$"
    with pytest.raises(ValueError, match=message):
        host.read_request(TILE, HOST_WINDOW.start, Bytes(0), Bytes(size))


def test_writes_are_shorter_than_reads() -> None:
    with pytest.raises(ValueError, match=r"^packet size 320 must be 4\.\.60 .* or 64\.\.256 in steps of 64$"):
        host.write_header(TILE, Bytes(0), Bytes(320))


@pytest.mark.parametrize(
    ("offset", "size", "unit"), [(2, 4, 4), (32, 64, 64), (1 << 29, 4, 4), (-64, 64, 64)]
)
def test_host_offsets_that_no_packet_has_are_refused(offset: int, size: int, unit: int) -> None:
    with pytest.raises(ValueError, match=rf"is not a multiple of {unit} that fits a packet$"):
        host.write_header(TILE, Bytes(offset), Bytes(size))


@pytest.mark.parametrize("destination", [0x50010, 0x54000, 0x4FFE0])
def test_destinations_outside_the_window_are_refused(destination: int) -> None:
    message = rf"^destination {destination:#x} is not a multiple of 32 in 0x50000\.\.0x54000$"
    with pytest.raises(ValueError, match=message):
        host.close_packet(TILE, Address(destination))


def test_the_longest_packet_is_stored_as_no_units() -> None:
    first, second = host.read_request(PhysicalTile(0), HOST_WINDOW.start, Bytes(0x400), Bytes(1024))
    assert (first, second) == (0xEC000200, 0x100)


def test_one_request_has_one_requester() -> None:
    with pytest.raises(ValueError, match=r"^tiles 0, 1 do not have one requester$"):
        host.request_bitmap([PhysicalTile(0), PhysicalTile(1)])
    with pytest.raises(ValueError, match=r"do not have one requester$"):
        host.request_bitmap([])


@pytest.mark.parametrize(("offset", "size"), [(2, 4), (0, 6), (-4, 4), (0, -4)])
def test_ranges_of_part_words_are_refused(offset: int, size: int) -> None:
    message = rf"^host range of {size} bytes at {offset} is not made of whole words$"
    with pytest.raises(ValueError, match=message):
        host.chunks(HostDirection.HOST_TO_TILE, Bytes(offset), Bytes(size))
