"""Regions, elements and access rules, against a map of every byte (TA-01)."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target.memory import (
    ATOM_SIZE,
    EXECUTABLE_LIMIT,
    FETCH_LOOKAHEAD,
    INTERLEAVED,
    SRAM,
    SRAM_BASE,
    SRAM_END,
    SRAM_SIZE,
    STANDARD,
    ByteRange,
    Region,
    accesses_conflict,
    element_key,
    element_keys,
    fetched,
    is_executable,
    ranges_share_an_element,
    region_of,
    share_an_element,
    wide_access_allowed,
)
from compiler.target.units import Address, Bytes

# The map of elements, written out: 13 of 16 KiB, then 13 of 32 KiB.
STANDARD_ELEMENTS = [0x4C000 + 0x4000 * index for index in range(13)]
INTERLEAVED_ELEMENTS = [0x80000 + 0x8000 * index for index in range(13)]
ELEMENTS = [(start, start + 0x4000) for start in STANDARD_ELEMENTS] + [
    (start, start + 0x8000) for start in INTERLEAVED_ELEMENTS
]

addresses = st.integers(SRAM_BASE, SRAM_END - 1).map(Address)
near_boundaries = st.tuples(st.sampled_from(ELEMENTS), st.integers(-40, 40)).map(
    lambda pick: Address(max(pick[0][0] + pick[1], SRAM_BASE))
)
any_address = st.one_of(addresses, near_boundaries)


def span(start: int, size: int) -> ByteRange:
    return ByteRange(start=Address(start), size=Bytes(size))


ranges = st.tuples(any_address, st.one_of(st.integers(0, 64), st.integers(0, 0x20000))).map(
    lambda pick: span(pick[0], min(pick[1], SRAM_END - pick[0]))
)


def owner(address: int) -> int:
    """The element of an address by searching the map."""
    return next(start for start, end in ELEMENTS if start <= address < end)


def test_sram_is_what_the_map_covers() -> None:
    assert (SRAM_BASE, SRAM_END, SRAM_SIZE) == (0x4C000, 0xE8000, 638_976)
    assert (ELEMENTS[0][0], ELEMENTS[-1][1]) == (SRAM_BASE, SRAM_END)
    assert all(left[1] == right[0] for left, right in pairwise(ELEMENTS))
    assert (STANDARD.size, INTERLEAVED.size) == (208 * 1024, 416 * 1024)
    assert list(SRAM.elements()) == [start for start, _ in ELEMENTS]


def test_keys_at_every_boundary() -> None:
    for start, end in ELEMENTS:
        for address in (start, start + 1, start + 7, end - 8, end - 1):
            assert element_key(Address(address)) == start
            assert region_of(Address(address)) is (STANDARD if start < 0x80000 else INTERLEAVED)


def test_vectorized_keys_over_all_words_equal_the_map() -> None:
    every_word = np.arange(SRAM_BASE, SRAM_END, 4)
    expected = np.concatenate([np.full((end - start) // 4, start) for start, end in ELEMENTS])
    np.testing.assert_array_equal(element_keys(every_word), expected)


@given(st.lists(any_address, min_size=1, max_size=20))
def test_vectorized_keys_equal_scalar_keys(sample: list[Address]) -> None:
    keys = element_keys(np.array(sample))
    assert keys.tolist() == [element_key(address) for address in sample] == list(map(owner, sample))


@pytest.mark.parametrize("address", [0, SRAM_BASE - 1, SRAM_END, 1 << 20])
def test_addresses_outside_are_refused(address: int) -> None:
    message = rf"^address {address:#x} is outside SRAM \(0x4c000\.\.0xe8000\)$"
    for refuse in (
        lambda: element_key(Address(address)),
        lambda: element_keys(np.array([SRAM_BASE, address])),
        lambda: region_of(Address(address)),
    ):
        with pytest.raises(ValueError, match=message):
            refuse()


@pytest.mark.parametrize(("start", "size"), [(0x4BFFC, 8), (0xE7FFC, 8), (0x50000, -1)])
def test_ranges_outside_are_refused(start: int, size: int) -> None:
    with pytest.raises(ValueError, match=r"^bytes 0x[0-9a-f]+\.\.0x[0-9a-f]+ are not a range of SRAM "):
        span(start, size)


def test_a_region_is_made_of_elements() -> None:
    with pytest.raises(ValueError, match="region odd is not a whole number of 16384-byte elements"):
        Region(name="odd", base=Address(0), end=Address(0x4001), interleave=1)


@given(ranges, ranges)
def test_sharing_is_having_an_element_in_common(first: ByteRange, second: ByteRange) -> None:
    def touched(one: ByteRange) -> set[int]:
        return {start for start, end in ELEMENTS if max(start, one.start) < min(end, one.end)}

    assert list(first.elements()) == sorted(touched(first))
    assert share_an_element(first, second) == bool(touched(first) & touched(second))
    assert share_an_element(first, second) == share_an_element(second, first)
    if first.size and second.size:
        vectorized = ranges_share_an_element(
            np.array([first.start]),
            np.array([first.size]),
            np.array([[second.start]]),
            np.array([[second.size]]),
        )
        assert vectorized.tolist() == [[share_an_element(first, second)]]


def test_neighbours_share_only_inside_an_element() -> None:
    assert share_an_element(span(0x50000, 4), span(0x53FFC, 4))
    assert not share_an_element(span(0x53FFC, 4), span(0x54000, 4))
    assert share_an_element(span(0x80000, 8), span(0x87FF8, 8))
    assert not share_an_element(span(0x87FF8, 8), span(0x88000, 8))
    assert not share_an_element(span(0x7FFFC, 4), span(0x80000, 4))
    assert not share_an_element(span(0x50000, 0), span(0x50000, 4))


def test_vectorized_ranges_of_one_byte() -> None:
    starts = np.array([0x50000, 0x53FFF, 0x54000])
    one = np.ones(3, dtype=np.int64)
    shared = ranges_share_an_element(starts, one, np.array([0x50000]), np.array([1]))
    assert shared.tolist() == [True, True, False]


def test_vectorized_ranges_are_not_empty() -> None:
    with pytest.raises(ValueError, match="vectorized ranges hold at least one byte"):
        ranges_share_an_element(np.array([0x50000]), np.array([0]), np.array([0x50000]), np.array([4]))


@given(ranges, ranges)
def test_overlap_and_containment_are_those_of_byte_sets(first: ByteRange, second: ByteRange) -> None:
    shared = range(max(first.start, second.start), min(first.end, second.end))
    assert first.overlaps(second) == (len(shared) > 0)
    assert first.contains(second) == (len(shared) == second.size)


def test_bundle_conflicts_of_known_pairs() -> None:
    """hardware: two accesses of a bundle in one array conflict; opposite atoms of a pair do not."""
    load, store = span(0x90000, 8), span(0x90008, 8)
    assert not accesses_conflict(load, store)
    assert accesses_conflict(load, span(0x90010, 8))
    assert not accesses_conflict(load, span(0x90010 + 5 * 8, 8))
    assert accesses_conflict(span(0x90000, 16), store)
    assert not accesses_conflict(span(0x90000, 16), span(0x98000, 8))
    assert not accesses_conflict(span(0x90010, 1), span(0x90008, 8))
    assert accesses_conflict(span(0x50000, 8), span(0x50008, 8))
    assert not accesses_conflict(span(0x50000, 8), span(0x54008, 8))


accesses = st.tuples(any_address, st.sampled_from([1, 2, 4, 8, 16])).map(
    lambda pick: span(pick[0] // pick[1] * pick[1], pick[1])
)


@given(accesses, accesses)
def test_bundle_conflicts_against_arrays(first: ByteRange, second: ByteRange) -> None:
    """The oracle names the array that serves each byte."""

    def arrays(one: ByteRange) -> set[tuple[int, int]]:
        return {
            (owner(byte), byte // ATOM_SIZE % 2 if byte >= EXECUTABLE_LIMIT else 0)
            for byte in range(one.start, one.end)
        }

    assert accesses_conflict(first, second) == bool(arrays(first) & arrays(second))


@pytest.mark.parametrize(("start", "size"), [(0x50004, 8), (0x50000, 12), (0x90008, 16), (0x50000, 0)])
def test_only_single_aligned_accesses_are_judged(start: int, size: int) -> None:
    with pytest.raises(ValueError, match=f"{size} bytes at {start:#x} are not one aligned access"):
        accesses_conflict(span(start, size), span(0x60000, 4))


def test_wide_accesses_need_interleaved_memory_and_alignment() -> None:
    assert wide_access_allowed(Address(0x80000))
    assert wide_access_allowed(Address(0xE7FF0))
    assert not wide_access_allowed(Address(0x80008))
    assert not wide_access_allowed(Address(0x7FFF0))


def test_code_runs_only_in_the_standard_region() -> None:
    assert is_executable(span(0x4C010, 8))
    assert is_executable(span(0x7FFF8, 8))
    assert not is_executable(span(0x7FFFC, 8))
    assert not is_executable(span(0x80000, 4))
    assert not is_executable(span(0x4C011, 4))


def test_the_fetcher_reads_ahead_as_far_as_sram_goes() -> None:
    assert FETCH_LOOKAHEAD == 64
    assert fetched(span(0x53FC0, 8)) == span(0x53FC0, 8 + 64)
    assert fetched(span(0xE7FF0, 8)).end == SRAM_END
    assert list(fetched(span(0x53FC0, 8)).elements()) == [0x50000, 0x54000]
