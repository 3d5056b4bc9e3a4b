"""The loader's interface, the runtime's layout, and figures (TA-05, TA-06, TA-07)."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target import costs, loader
from compiler.target.loader import LOAD_BASE, LOAD_LIMIT, frames_of, is_loadable
from compiler.target.memory import EXECUTABLE_LIMIT, SRAM_END, ByteRange, is_executable
from compiler.target.runtime_layout import DEFAULT_LAYOUT, random_seed, sync_endpoint
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Address, Bytes, LogicalTile, PhysicalTile, Words


def test_the_image_of_a_tile() -> None:
    assert (LOAD_BASE, LOAD_LIMIT) == (0x4C010, 0xE7BB0)
    assert SRAM_END - LOAD_LIMIT == 0x450
    assert loader.FRAME_PAYLOAD == 992
    assert (loader.BATCHES, loader.STARTUP_MARK) == (23, 23)
    assert loader.BATCHES * loader.BATCH_TILES == TILE_COUNT


def test_a_batch_of_full_images_fits_the_transport_area() -> None:
    frames = loader.BATCH_TILES * loader.FRAME_LIMIT * loader.FRAME_SIZE
    assert loader.TRANSPORT_DESCRIPTORS + frames <= loader.TRANSPORT_SIZE


@given(st.integers(0, 643 * 992))
def test_frames_hold_the_padded_image(size: int) -> None:
    frames = frames_of(Bytes(size))
    assert (frames - 1) * 992 < max(size, 0x4134) <= frames * 992


def test_an_image_that_is_too_long_is_refused() -> None:
    message = "^an image of 637857 bytes needs 644 frames, the loader takes at most 643$"
    with pytest.raises(ValueError, match=message):
        frames_of(Bytes(643 * 992 + 1))


def test_loadable_ranges() -> None:
    def span(start: int, end: int) -> ByteRange:
        return ByteRange(start=Address(start), size=Bytes(end - start))

    assert is_loadable(span(0x4C010, 0xE7BB0))
    assert not is_loadable(span(0x4C00C, 0x4C010))
    assert not is_loadable(span(0xE7BA0, 0xE7BB4))


def test_debug_registers_of_tiles_do_not_overlap() -> None:
    assert loader.debug_register(PhysicalTile(0), 0) == 0x30000
    assert loader.debug_register(PhysicalTile(3), 2) == 0x30000 + 0xC0 + 8
    assert loader.debug_register(PhysicalTile(0), 15) < loader.debug_register(PhysicalTile(1), 0)
    with pytest.raises(ValueError, match=r"^debug register 16 is outside 0\.\.15$"):
        loader.debug_register(PhysicalTile(0), 16)


def test_addresses_of_the_layout() -> None:
    layout = DEFAULT_LAYOUT
    assert (layout.entry, layout.lower_code.start, layout.lower_code.end) == (0x4C010, 0x4C018, 0x50000)
    assert (layout.window.start, layout.window.end) == (0x50000, 0x58000)
    assert (layout.close_packet, layout.staging) == (0x50160, 0x50180)
    assert (layout.completion, layout.profile_start, layout.profile_end) == (0x58000, 0x58004, 0x58008)
    assert [layout.worker_stack(worker) for worker in range(6)] == [0x580E0 + 0x100 * w for w in range(6)]
    assert (layout.supervisor_stack, layout.data_start, layout.data_end) == (0x586E0, 0x586E0, 0xE7BB0)
    assert (layout.upper_code_range.start, layout.upper_code_range.end) == (0x5C000, 0x80000)


def test_parts_of_the_layout_are_loadable_and_apart() -> None:
    layout = DEFAULT_LAYOUT
    parts = [layout.lower_code, layout.window, layout.state, layout.upper_code_range]
    assert all(map(is_loadable, parts))
    assert not any(one.overlaps(other) for one in parts for other in parts if one is not other)
    assert is_executable(layout.lower_code)
    assert is_executable(layout.upper_code_range)


@pytest.mark.parametrize("worker", [-1, 6])
def test_a_stack_of_no_worker_is_refused(worker: int) -> None:
    with pytest.raises(ValueError, match=rf"^worker {worker} is outside 0\.\.5$"):
        DEFAULT_LAYOUT.worker_stack(worker)


def test_layouts_that_cannot_be_are_refused() -> None:
    layout = DEFAULT_LAYOUT
    with pytest.raises(ValueError, match=r"^runtime layout: upper code \(0x80008\) is above executable"):
        replace(layout, upper_code=Address(EXECUTABLE_LIMIT + 8))
    with pytest.raises(ValueError, match=r"^runtime layout: state end \(0x586e0\) is above upper code"):
        replace(layout, upper_code=Address(0x58600))
    with pytest.raises(ValueError, match="the worker stacks fill the state to its end"):
        replace(layout, stack_size=Bytes(0x80))
    with pytest.raises(ValueError, match="the completion word starts the state"):
        replace(layout, completion=Address(0x58004))
    with pytest.raises(ValueError, match="the window holds the host's"):
        replace(layout, window=ByteRange(start=Address(0x50000), size=Bytes(0x2000)))
    with pytest.raises(ValueError, match="staging, stacks and code start on 8-byte boundaries"):
        replace(layout, staging=Address(0x50184))


def test_every_worker_of_the_chip_has_its_own_endpoint_and_seed() -> None:
    workers = [(LogicalTile(tile), worker) for tile in range(TILE_COUNT) for worker in range(6)]
    assert len({sync_endpoint(*worker) for worker in workers}) == len(workers)
    assert len({random_seed(*worker) for worker in workers}) == len(workers)
    assert (sync_endpoint(LogicalTile(3), 2), random_seed(LogicalTile(3), 2)) == (26, 34)


def test_figures_reproduce_what_was_measured() -> None:
    assert costs.patch_cycles(Words(87)) == 2491
    assert costs.patch_cycles(Words(0)) == 0
    assert costs.copy_cycles(Bytes(0)) == 288
    assert costs.copy_cycles(Bytes(4096)) == 288 + 512
    assert costs.copy_cycles(Bytes(1)) == 289
    low, high = costs.PHASE_RESIDUAL_RANGE
    assert low <= costs.PHASE_RESIDUAL <= high < costs.PHASE_OVERHEAD


@given(st.integers(0, 100_000))
def test_patching_costs_at_least_the_measured_rate(count: int) -> None:
    cycles = costs.patch_cycles(Words(count))
    assert 0 <= cycles * 87 - count * 2491 < 87


@pytest.mark.parametrize("identity", [sync_endpoint, random_seed])
def test_workers_that_do_not_exist_have_no_identity(
    identity: Callable[[LogicalTile, int], int],
) -> None:
    with pytest.raises(ValueError, match=r"worker 6 is outside 0\.\.5"):
        identity(LogicalTile(0), 6)
    with pytest.raises(ValueError, match=r"tile 1472 is outside 0\.\.1471"):
        identity(LogicalTile(1472), 0)
    with pytest.raises(ValueError, match=r"tile 1472 is outside 0\.\.1471"):
        loader.debug_register(PhysicalTile(1472), 0)
