"""Routes over all pairs of tiles, against literal examples and the formulas written out (TA-02, TA-08)."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target import fabric, tiles, words
from compiler.target.fabric import Direction, SendControl
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import LogicalTile, PhysicalTile
from tests.fixtures.exchange.examples import load

ALL = np.arange(TILE_COUNT)
SOURCES, DESTINATIONS = ALL[:, None], ALL[None, :]
physical_tiles = st.integers(0, TILE_COUNT - 1).map(PhysicalTile)


def spelled_out(source: int, destination: int) -> tuple[int, int]:
    """Displacement and time to mux by the formulas as first found, bit by bit and unsimplified."""
    source_column, destination_column = (source >> 2) & 15, (destination >> 2) & 15
    source_half, destination_half = source_column >> 3, destination_column >> 3
    source_low = source_column & 7
    fold_source = source_column if source_column < 8 else 15 - source_column
    fold_destination = destination_column if destination_column < 8 else 15 - destination_column
    lane = destination & 3
    base = 6 * (fold_destination - (fold_source + (source_half ^ (source & 1))))
    if lane >= 2:
        displacement = base + (2 if destination_half == (destination & 1) else 4)
    else:
        displacement = base + (1 if destination_half == lane else 5)
    turn = source_low + 1 if (source ^ destination) & 32 == 0 else 16 - source_low
    time = (
        8 * source_half
        + ((source >> 3) & 3)
        - destination_column
        + ((source_low >> 1) ^ 3)
        + 4 * fold_source
        + turn
        - 4 * fold_destination
        + 2 * ((source >> 6) - (destination >> 6))
        + abs(displacement)
        - 34
    )
    return displacement, time


def test_known_routes() -> None:
    examples = load("routes")
    for example in examples["routes"]:
        route = dict(zip(examples["columns"], example, strict=True))
        source = tiles.logical_to_physical(LogicalTile(route["source"]))
        destination = tiles.logical_to_physical(LogicalTile(route["destination"]))
        assert (source, destination) == (route["physical_source"], route["physical_destination"])
        assert fabric.displacement(source, destination) == route["displacement"]
        assert fabric.direction(source, destination) == route["direction"]
        assert fabric.time_to_mux(source, destination) == route["time_to_mux"]
        assert fabric.send_to_write(source, destination) == route["send_to_write"]


def test_totals_over_all_ordered_pairs() -> None:
    totals = load("routes")["aggregates"]
    different = SOURCES != DESTINATIONS
    times = fabric.times_to_mux(SOURCES, DESTINATIONS)[different]
    displacements = fabric.displacements(SOURCES, DESTINATIONS)[different]
    latencies = fabric.send_to_writes(SOURCES, DESTINATIONS)[different]
    directions = fabric.directions(SOURCES, DESTINATIONS)[different]
    assert {
        "ordered_pairs": int(different.sum()),
        "least_time_to_mux": int(times.min()),
        "greatest_time_to_mux": int(times.max()),
        "sum_of_times_to_mux": int(times.sum()),
        "least_displacement": int(displacements.min()),
        "greatest_displacement": int(displacements.max()),
        "eastward": int((directions == Direction.EAST).sum()),
        "least_send_to_write": int(latencies.min()),
        "greatest_send_to_write": int(latencies.max()),
    } == totals
    assert totals["eastward"] * 2 == totals["ordered_pairs"]


def test_properties_of_every_pair() -> None:
    """Self routes, partners, and what a time to mux depends on."""
    times = fabric.times_to_mux(SOURCES, DESTINATIONS)
    assert (times.min(), times.max()) == (-78, 112)
    assert set(np.diagonal(times).tolist()) == {-29, -28}
    np.testing.assert_array_equal(np.abs(times - times[:, ALL ^ 2]), 1)
    assert not (fabric.displacements(SOURCES, DESTINATIONS) == 0).any()
    rows = ALL >> 6
    in_row = (times - 2 * (rows[:, None] - rows[None, :])).reshape(23, 64, 23, 64)
    np.testing.assert_array_equal(in_row, np.broadcast_to(in_row[:1, :, :1, :], in_row.shape))
    assert (in_row.min(), in_row.max()) == (-34, 68)


def test_paired_times_are_the_later_of_the_pair() -> None:
    times = fabric.times_to_mux(SOURCES, DESTINATIONS)
    paired = fabric.paired_times_to_mux(SOURCES, DESTINATIONS)
    np.testing.assert_array_equal(paired, np.maximum(times, times[:, ALL ^ 2]))
    np.testing.assert_array_equal(paired, paired[:, ALL ^ 2])


def test_the_row_of_the_receiver_does_not_change_the_latency() -> None:
    latencies = fabric.send_to_writes(SOURCES, DESTINATIONS).reshape(TILE_COUNT, 23, 64)
    np.testing.assert_array_equal(latencies, np.broadcast_to(latencies[:, :1, :], latencies.shape))


@given(physical_tiles, physical_tiles)
def test_scalar_and_vectorized_routes_agree(source: PhysicalTile, destination: PhysicalTile) -> None:
    one, other = np.array([source]), np.array([destination], dtype=np.uint16)
    displacement, time = spelled_out(source, destination)
    assert fabric.displacement(source, destination) == displacement
    assert fabric.time_to_mux(source, destination) == time
    assert fabric.displacements(one, other).tolist() == [displacement]
    assert fabric.times_to_mux(one, other).tolist() == [time]
    assert fabric.directions(one, other).tolist() == [fabric.direction(source, destination)]
    assert fabric.paired_times_to_mux(one, other).tolist() == [fabric.paired_time_to_mux(source, destination)]
    assert fabric.send_to_writes(one, other).tolist() == [fabric.send_to_write(source, destination)]
    assert fabric.select_to_writes(other).tolist() == [fabric.select_to_write(destination)]


def test_every_time_equals_the_formula_written_out() -> None:
    """Over one row on each side, which is all that times depend on beside the rows."""
    expected = np.array(
        [[spelled_out(source, destination) for destination in range(64)] for source in range(64)]
    )
    place = np.arange(64)
    np.testing.assert_array_equal(fabric.displacements(place[:, None], place), expected[:, :, 0])
    np.testing.assert_array_equal(fabric.times_to_mux(place[:, None], place), expected[:, :, 1])


def test_known_events_follow_from_the_times() -> None:
    """Rows of the vendor: select = send + T + 1, first write = select + 52 + 2 * row."""
    checked = 0
    for phase in load("phases")["phases"]:
        for transfer in phase["transfers"]:
            if transfer["paired"]:
                continue
            source = PhysicalTile(transfer["physical_source"])
            for receiver in transfer["receivers"]:
                destination = PhysicalTile(receiver["physical"])
                select = (
                    transfer["send_slot"]
                    + fabric.time_to_mux(source, destination)
                    + fabric.SELECT_AFTER_PASSING
                )
                assert select == receiver["select"]
                assert select + fabric.select_to_write(destination) == receiver["first_write"]
                checked += 1
    assert checked == 10


def test_known_events_of_paired_transfers() -> None:
    for plan in load("paired_plans")["plans"]:
        source = tiles.logical_to_physical(LogicalTile(plan["source"]))
        pair = [tiles.logical_to_physical(LogicalTile(tile)) for tile in plan["pair"]]
        assert [fabric.time_to_mux(source, tile) for tile in pair] == plan["times_to_mux"]
        late = {fabric.paired_time_to_mux(source, tile) for tile in pair}
        assert late == {max(plan["times_to_mux"])}
        first_write = plan["send_slot"] + late.pop() + 1 + fabric.select_to_write(pair[0])
        assert first_write == plan["first_write"]
        assert first_write - fabric.FORMAT_BEFORE_WRITE == plan["format_on"]


def test_rows_last_beyond_their_last_write() -> None:
    """The rows of receivers end ``ROW_AFTER_LAST_WRITE`` events behind their payload."""
    checked = 0
    for phase in load("phases")["phases"]:
        ends: dict[int, int] = {}
        for transfer in phase["transfers"]:
            for receiver in transfer["receivers"]:
                end = receiver["first_write"] + transfer["items"]
                ends[receiver["tile"]] = max(end, ends.get(receiver["tile"], 0))
        for row in phase["tiles"]:
            sends = [
                transfer["send_slot"] + transfer["items"]
                for transfer in phase["transfers"]
                if transfer["source"] == row["tile"]
            ]
            if row["tile"] in ends:
                received = ends[row["tile"]] + fabric.ROW_AFTER_LAST_WRITE
                assert row["horizon"] == max(received, *sends, 0)
                checked += 1
    assert checked == 12


def test_a_transfer_is_as_long_as_one_wait_can_follow() -> None:
    assert fabric.LONGEST_TRANSFER == words.DELAYXPIC_LIMIT + fabric.WRITE_AFTER_SELECT


def test_send_controls_are_directions_and_the_paired_bit() -> None:
    assert fabric.MULTICAST == 3
    assert [int(Direction.EAST | SendControl.PAIRED), int(Direction.WEST | SendControl.PAIRED)] == [5, 6]


def test_routes_to_no_tile_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^physical tile 1472 is outside 0\.\.1471$"):
        fabric.time_to_mux(PhysicalTile(0), PhysicalTile(1472))
    with pytest.raises(ValueError, match=r"^tile 1472 is outside 0\.\.1471$"):
        fabric.times_to_mux(np.array([0]), np.array([1472]))
