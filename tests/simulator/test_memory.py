"""Loads and stores in every form, packed addresses, touched bytes, and code that is written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.simulator.faults import FaultKind
from compiler.simulator.harness import call, load
from compiler.simulator.tile import Stop, Tile, TileOptions, default_options
from compiler.target.isa_decisions import our_decisions
from compiler.target.memory import Address, ByteRange, Bytes, accesses_conflict
from tests.simulator.programs import DATA, INTERLEAVED, program_of, run_worker, words_of

RANDOM = np.random.default_rng(7).integers(0, 1 << 32, 256, dtype=np.uint32)
RAW = RANDOM.tobytes()


def tile_with_data(*, track: bool = False) -> Tile:
    tile = Tile(TileOptions(decisions=our_decisions(), track=track))
    tile.place(DATA, RANDOM)
    tile.place(INTERLEAVED, RANDOM)
    return tile


def expected_load(name: str, address: int) -> int:
    at = address - DATA
    octet, half = RAW[at], int.from_bytes(RAW[at : at + 2], "little")
    match name:
        case "ldz8":
            return octet
        case "lds8":
            return octet | (0xFFFFFF00 if octet & 0x80 else 0)
        case "ldb8":
            return octet * 0x01010101
        case "ldz16":
            return half
        case "lds16":
            return half | (0xFFFF0000 if half & 0x8000 else 0)
        case "ldb16":
            return half * 0x10001
        case _:
            return int.from_bytes(RAW[at : at + 4], "little")


NARROW = {"ldz8": 1, "lds8": 1, "ldb8": 1, "ldz16": 2, "lds16": 2, "ldb16": 2, "ld32": 4}


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("file", ["m", "a"])
@given(base=st.integers(0, 40), delta=st.integers(0, 40), offset=st.integers(0, 40))
def test_loads_of_a_word_or_less(name: str, file: str, base: int, delta: int, offset: int) -> None:
    if (name in ("ldb8", "ldb16") and file == "m") or (name not in ("ldb8", "ldb16", "ld32") and file == "a"):
        return
    size = NARROW[name]
    address = DATA + (base + delta + offset) * size
    main = {5: DATA + base * size, 6: delta * size, 7: offset, 8: delta * size}
    target = f"${file}0", f"${file}1", f"${file}2"
    body = f"""
    {name} {target[0]}, $m5, $m6, {offset}
    {name} {target[1]}, $m5, $m6, $m7
    {name}step {target[2]}, $m5, $m6+=, {offset}
    {name}step ${file}3, $m5, $m8+=, $m7
    """
    tile, run = run_worker(body, main=main, tile=tile_with_data())
    assert run.fault is None
    registers = [
        tile.main_register(0, k) if file == "m" else tile.arithmetic_register(0, k) for k in range(4)
    ]
    assert registers[:2] == [expected_load(name, address)] * 2
    assert registers[2:] == [expected_load(name, DATA + (base + delta) * size)] * 2
    assert [tile.main_register(0, k) for k in (6, 8)] == [(delta + offset) * size] * 2


@pytest.mark.parametrize(
    ("name", "registers", "where"), [("ld64", "$a0:1", DATA), ("ld128", "$a0:3", INTERLEAVED)]
)
@pytest.mark.parametrize("stride", [3, -2])
def test_wide_loads(name: str, registers: str, where: int, stride: int) -> None:
    size = 8 if name == "ld64" else 16
    count = size // 4
    tile = tile_with_data()
    for form in (f"{name} {registers}, $m5, $m6, 2", f"{name} {registers}, $m5, $m6, $m7"):
        _, run = run_worker(form, main={5: where, 6: size, 7: 2}, tile=tile)
        assert run.fault is None
        assert [tile.arithmetic_register(0, k) for k in range(count)] == RANDOM[
            3 * count : 4 * count
        ].tolist()
    for form in (f"{name}step {registers}, $m5, $m6+=, {stride}", f"{name}step {registers}, $m5, $m6+=, $m7"):
        _, run = run_worker(form, main={5: where, 6: 4 * size, 7: stride}, tile=tile)
        assert run.fault is None
        assert [tile.arithmetic_register(0, k) for k in range(count)] == RANDOM[
            4 * count : 5 * count
        ].tolist()
        assert tile.main_register(0, 6) == (4 + stride) * size


def test_stores() -> None:
    body = f"""
    setzi $m2, {DATA:#x}
    setzi $m3, 16
    setzi $m4, 2
    st32 $m0, $m2, $m3, 1
    st32 $a0, $m2, $m3, 2
    st32 $a1, $m2, $m3, $m4
    stm32 $m1, $m2, $m4
    st64 $a2:3, $m2, $m3, 3
    st64 $a4:5, $m2, $m3, $m4
    setzi $m5, 64
    st32step $m0, $m2, $m5+=, -1
    st32step $a0, $m2, $m5+=, 4
    st32step $a1, $m2, $m5+=, $m4
    or $m6, $m5, 0
    add $m5, $m5, 4
    st64step $a2:3, $m2, $m5+=, 2
    st64step $a4:5, $m2, $m5+=, $m4
    add $m7, $m2, 160
    stm32step $m1, $m7+=, $m4
    """
    arithmetic = {k: 0xA0000000 + k for k in range(6)}
    tile, run = run_worker(body, main={0: 0x11111111, 1: 0x22222222}, arithmetic=arithmetic)
    assert run.fault is None

    def word(offset: int) -> int:
        return int.from_bytes(tile.read(DATA + offset, 4), "little")

    assert word(20) == 0x11111111
    assert word(24) == 0xA0000001  # by immediate 2, then by register 2
    assert word(8) == 0x22222222
    assert (word(40), word(44)) == (0xA0000002, 0xA0000003)
    assert (word(32), word(36)) == (0xA0000004, 0xA0000005)
    assert word(64) == 0x11111111
    assert word(60) == 0xA0000000
    assert word(76) == 0xA0000001
    assert tile.main_register(0, 6) == 84
    assert (word(88), word(92), word(104), word(108)) == (0xA0000002, 0xA0000003, 0xA0000004, 0xA0000005)
    assert tile.main_register(0, 5) == 120
    assert word(160) == 0x22222222
    assert tile.main_register(0, 7) == DATA + 168
    assert tile.written(DATA + 20, 4).all()
    assert not tile.written(DATA + 28, 4).any()


def packed(a0: int, a1: int, a2: int) -> tuple[int, int]:
    return a0 | (a2 & 0x7FF) << 21, a1 | (a2 >> 11) << 21


ADDRESSES = st.integers(0, (0xE8000 - 0x4C000) // 8 - 1).map(lambda atom: 0x4C000 + 8 * atom)
STRIDES = st.integers(-512, 511)


@given(addresses=st.tuples(ADDRESSES, ADDRESSES, ADDRESSES))
def test_packing_addresses(addresses: tuple[int, int, int]) -> None:
    main = {3 + k: address for k, address in enumerate(addresses)}
    tile, _ = run_worker("tapack $m6:7, $m3, $m4, $m5", main=main)
    assert (tile.main_register(0, 6), tile.main_register(0, 7)) == packed(*addresses)


@given(
    strides=st.tuples(STRIDES, STRIDES, STRIDES),
    selectors=st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3)),
    name=st.sampled_from(["ld2x64pace", "ldst64pace", "ld2xst64pace", "st64pace"]),
)
def test_pace(strides: tuple[int, int, int], selectors: tuple[int, int, int], name: str) -> None:
    first, second, store = DATA + 0x100, INTERLEAVED + 0x100, 0xC0000
    low, high = packed(first, second, store)
    stride = sum((value & 0x3FF) << (10 * place) for place, value in enumerate(strides))
    s0, s1, s2 = selectors
    text, loads, stores = {
        "ld2x64pace": (f"$a0:1, $a2:3, $m6:7+=, $m5, {s0 | s1 << 2}", [0, 1], False),
        "ldst64pace": (f"$a0:1, $a0:1, $m6:7+=, $m5, {s0 | s2 << 2}", [0], True),
        "ld2xst64pace": (f"$a0:3, $a0:1, $m6:7+=, $m5, {s0 | s1 << 2 | s2 << 4}", [0, 1], True),
        "st64pace": (f"$a0:1, $m6:7+=, $m5, {s2}", [], True),
    }[name]
    tile = tile_with_data()
    arithmetic = {0: 111, 1: 222, 2: 333, 3: 444}
    _, run = run_worker(f"{name} {text}", main={5: stride, 6: low, 7: high}, arithmetic=arithmetic, tile=tile)
    assert run.fault is None
    expected = [111, 222, 333, 444]
    moved = [first, second, store]
    for number in loads:
        expected[2 * number : 2 * number + 2] = RANDOM[64:66].tolist()
        moved[number] += 8 * ([1, *strides][selectors[number]])
    if stores:
        moved[2] += 8 * ([1, *strides][s2])
        assert np.frombuffer(tile.read(store, 8), np.uint32).tolist() == [111, 222]
    assert [tile.arithmetic_register(0, k) for k in range(4)] == expected
    assert (tile.main_register(0, 6), tile.main_register(0, 7)) == packed(*moved)


@given(
    strides=st.tuples(STRIDES, STRIDES, STRIDES),
    selectors=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    size=st.sampled_from([4, 2]),
    odd=st.booleans(),
)
def test_narrow_pace_loads(
    strides: tuple[int, int, int], selectors: tuple[int, int], size: int, odd: bool
) -> None:
    """The second address is aligned to what it loads and moves by multiples of it."""
    second = INTERLEAVED + 0x100 + (size if odd else 0)
    low, high = packed(DATA + 0x100, second, 0xC0000)
    stride = sum((value & 0x3FF) << (10 * place) for place, value in enumerate(strides))
    name = "ld64a32pace" if size == 4 else "ld64b16pace"
    text = f"{name} $a0:1, $a2, $m6:7+=, $m5, {selectors[0] | selectors[1] << 2}"
    tile, run = run_worker(text, main={5: stride, 6: low, 7: high}, tile=tile_with_data(track=True))
    assert run.fault is None
    at = second - INTERLEAVED
    value = int.from_bytes(RAW[at : at + size], "little")
    expected = [*RANDOM[64:66].tolist(), value * (0x10001 if size == 2 else 1)]
    assert [tile.arithmetic_register(0, k) for k in range(3)] == expected
    steps = [([1, *strides])[selector] for selector in selectors]
    moved = packed(DATA + 0x100 + 8 * steps[0], second + size * steps[1], 0xC0000)
    assert (tile.main_register(0, 6), tile.main_register(0, 7)) == moved
    read = np.flatnonzero(tile.bytes_read()) + 0x4C000
    assert read.tolist() == [*range(DATA + 0x100, DATA + 0x108), *range(second, second + size)]


@given(first=ADDRESSES, second=ADDRESSES, near=st.integers(-5, 5), is_near=st.booleans())
def test_conflicts_follow_the_rule_of_the_target(first: int, second: int, near: int, is_near: bool) -> None:
    if is_near:
        second = min(max(first + 8 * near, 0x4C000), 0xE7FF8)
    tile = Tile(default_options())
    tile.shadow[:] = 15
    low, high = packed(first, second, 0)
    _, run = run_worker("ld2x64pace $a0:1, $a2:3, $m6:7+=, $m15, 0", main={6: low, 7: high}, tile=tile)
    expected = accesses_conflict(
        ByteRange(start=Address(first), size=Bytes(8)), ByteRange(start=Address(second), size=Bytes(8))
    )
    assert (run.fault is not None) == expected


def test_pointer_loads() -> None:
    tile = tile_with_data()
    deltas = np.array([0x00280010, 0x00480020], np.uint32)
    tile.place(0xC0000, deltas)
    main = {1: 0xC0000, 2: DATA, 3: 8}
    # The delta in $m3 addresses this load, the pointed half becomes the delta of the next.
    body = "ldd16a32 $a0, $m1++, $m2, $m3@\nldd16a64 $a2:3, $m1++, $m2, $m3@\nldd16b16 $a1, $m1++, $m2, $m3@"
    _, run = run_worker(body, main=main, tile=tile)
    assert run.fault is None
    assert tile.arithmetic_register(0, 0) == RANDOM[2]
    assert [tile.arithmetic_register(0, k) for k in (2, 3)] == RANDOM[4:6].tolist()
    assert tile.arithmetic_register(0, 1) == (int(RANDOM[10]) & 0xFFFF) * 0x10001
    assert (tile.main_register(0, 1), tile.main_register(0, 3)) == (0xC0006, 0x20)

    main = {1: 0xC0000, 2: DATA, 3: 0x00400008}
    _, run = run_worker("ldd16v2a32 $a0, $m1++, $m2, $m3@", main=main, tile=tile)
    assert run.fault is None
    assert tile.arithmetic_register(0, 0) == RANDOM[16]
    assert (tile.main_register(0, 1), tile.main_register(0, 3)) == (0xC0004, 0x00280010)

    main = {1: INTERLEAVED + 16, 2: DATA, 3: 0xFFFF0008}
    _, run = run_worker("ld64a32 $a0:3, $m1++, $m2, $m3", main=main, arithmetic={0: 5}, tile=tile)
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in range(4)] == [5, RANDOM[2], RANDOM[4], RANDOM[5]]
    assert (tile.main_register(0, 1), tile.main_register(0, 3)) == (INTERLEAVED + 24, 0xFFFF0008)


def test_touched_bytes() -> None:
    tile = tile_with_data(track=True)
    body = f"""
    setzi $m2, {DATA:#x}
    ldz8 $m0, $m2, $m15, 5
    lds16 $m0, $m2, $m15, 5
    ld64 $a0:1, $m2, $m15, 3
    st32 $m0, $m2, $m15, 10
    st64 $a0:1, $m2, $m15, 8
    """
    _, run = run_worker(body, tile=tile)
    assert run.fault is None
    read = np.flatnonzero(tile.bytes_read()) + 0x4C000 - DATA
    written = np.flatnonzero(tile.bytes_written()) + 0x4C000 - DATA
    assert read.tolist() == [5, 10, 11, *range(24, 32)]
    assert written.tolist() == [*range(40, 44), *range(64, 72)]
    tile.forget_touched()
    assert not tile.bytes_read().any()


def test_placed_bytes_are_written_bytes() -> None:
    tile = Tile(default_options())
    tile.place(DATA + 3, b"\x01\x02\x03\x04\x05\x06")
    assert tile.written(DATA, 12).tolist() == [False] * 3 + [True] * 6 + [False] * 3
    assert tile.read(DATA + 2, 8) == b"\xff\x01\x02\x03\x04\x05\x06\x7f"
    with pytest.raises(ValueError, match=r"bytes 0xe7ffe\.\.0xe8002 are not in SRAM"):
        tile.place(0xE7FFE, bytes(4))


def test_code_that_is_written_runs_as_written() -> None:
    """A store replaces an instruction that already ran, alone and in a bundle."""
    replacement = words_of("setzi $m1, 77")[0]
    bundle = words_of(".align 8\n{ setzi $m2, 88 ; fnop }")
    program = program_of(f"""
.supervisor
main:
    setzi $m6, 1
    or $m12, $m10, 0
.Lagain:
    setzi $m0, worker
    runall $m0, $m15, 0
    sync 2
patched:
    setzi $m1, 1
    brz $m6, .Ldone
    setzi $m6, 0
    setzi $m3, patched
    ldconst $m4, {replacement:#x}
    st32 $m4, $m3, $m15, 0
    setzi $m3, inside
    ldconst $m4, {bundle[0]:#x}
    st32 $m4, $m3, $m15, 0
    bri .Lagain
.Ldone:
    br $m12
.worker
.align 8
worker:
inside:
    {{ setzi $m2, 1 ; fnop }}
    exitz $m15
""")
    tile = Tile(default_options())
    load(tile, program)
    run = call(tile, program.address_of("main"), {})
    assert run.stop is Stop.RETURNED, run.fault
    assert tile.main_register(6, 1) == 77
    assert [tile.main_register(worker, 2) for worker in range(6)] == [88] * 6


@pytest.mark.parametrize("half", [0, 1])
def test_either_half_of_a_bundle_can_be_written(half: int) -> None:
    """A bundle that ran is checked again when one of its words changed, and then has both halves."""
    old = "{ add $m1, $m1, 1 ; or $a1, $a0, 2 }"
    new = words_of(".align 8\n{ add $m1, $m1, 0x100 ; or $a1, $a0, 0x700 }")[half]
    body = f"""
    .align 8
.Lbundle:
    {old}
    or $a0, $a1, 0
    brnz $m2, .Lend
    setzi $m2, .Lbundle
    ldconst $m3, {new:#x}
    st32 $m3, $m2, $m15, {half}
    bri .Lbundle
.Lend:
    """
    tile, run = run_worker(body)
    assert run.fault is None
    assert tile.main_register(0, 1) == (2 if half else 0x101)
    assert tile.arithmetic_register(0, 1) == (0x702 if half else 2)
    illegal = words_of("nop")[0]
    _, run = run_worker(body.replace(f"{new:#x}", f"{illegal:#x}"))
    if half:
        assert run.fault is not None
        assert run.fault.kind is FaultKind.ILLEGAL_BUNDLE
