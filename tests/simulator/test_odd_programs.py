"""Programs that nobody writes on purpose: the machine names a fault or goes on, and stays whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import Unsupported
from compiler.simulator.faults import FaultKind
from compiler.simulator.harness import call, load, run_workers
from compiler.simulator.state import (
    ACTIVE,
    ACTIVE_WORKERS,
    ARF,
    CONTEXT_STRIDE,
    CONTEXTS,
    FP_CTL,
    MRF,
    STATUS,
    WORKERS,
)
from compiler.simulator.tile import Perturbation, Stop, Tile, TileOptions, default_options
from compiler.target.instructions import (
    InstructionForm,
    Lane,
    Mode,
    Operand,
    OperandKind,
    encode,
    instruction_table,
)
from compiler.target.isa_decisions import our_decisions
from tests.simulator.programs import DATA, INTERLEAVED, program_of, run_worker, words_of

CODE = 0x4C000
END = 0x80000


@pytest.mark.parametrize(("count", "bundles"), [(0xFFFF, 1), (3, 256), (0x10002, 2)])
def test_longest_repeats(count: int, bundles: int) -> None:
    """A count has 16 bits, a body up to 256 bundles."""
    body = f".align 8\nnop\nrpt $m4, {bundles - 1}\n" + "{ add $m1, $m1, 1 ; fnop }\n" * bundles
    tile, run = run_worker(body, main={4: count})
    assert run.fault is None
    assert tile.main_register(0, 1) == (count & 0xFFFF) * bundles
    assert run.cycles == 6 * (3 + (count & 0xFFFF) * bundles) - 5


def test_code_at_the_end_of_executable_memory() -> None:
    pair = words_of("nop\nnop")
    bundle = words_of(".align 8\n{ nop ; fnop }")
    for words, cycle in ((pair, 12), (bundle, 6)):
        tile = Tile(default_options())
        tile.place(END - 8, np.array(words, np.uint32))
        fault = run_workers(tile, END - 8, 0, workers=(0,)).fault
        assert fault is not None
        assert (fault.kind, fault.address, fault.cycle) == (FaultKind.INVALID_PC, END, cycle)
    tile = Tile(default_options())
    tile.place(END - 4, np.array(bundle[:1], np.uint32))
    fault = run_workers(tile, END - 4, 0, workers=(0,)).fault
    assert fault is not None
    assert fault.kind is FaultKind.ILLEGAL_BUNDLE


def test_a_branch_into_a_bundle() -> None:
    """Its second half alone is no instruction, before and after the bundle ran."""
    body = ".align 8\n.Lx:\n{ add $m1, $m1, 1 ; fnop }\nbrnz $m2, .Lend\nsetzi $m2, 1\nbri .Lx+4\n.Lend:"
    tile, run = run_worker(body)
    assert run.fault is not None
    assert (run.fault.kind, run.fault.symbol) == (FaultKind.ILLEGAL_BUNDLE, "main+0x4")
    assert tile.main_register(0, 1) == 1


@pytest.mark.parametrize(
    ("address", "text", "kind"),
    [
        (CODE - 4, "ld32 $m0, $m1, 0", FaultKind.OUT_OF_RANGE),
        (CODE, "ld32 $m0, $m1, 0", None),
        (0xE7FF8, "ld64 $a0:1, $m1, 0", None),
        (0xE7FFC, "ld64 $a0:1, $m1, 0", FaultKind.MISALIGNED),
        (0xE8000, "ld64 $a0:1, $m1, 0", FaultKind.OUT_OF_RANGE),
        (0xE7FFF, "ldz8 $m0, $m1, 0", None),
        (0xE7FFF, "ldz8 $m0, $m1, 1", FaultKind.OUT_OF_RANGE),
        (0x7FFF0, "ld128 $a0:3, $m1, 0", FaultKind.WIDE_OUTSIDE_INTERLEAVED),
        (0x7FFF8, "ld128 $a0:3, $m1, 0", FaultKind.MISALIGNED),
        (0x80000, "ld128 $a0:3, $m1, 0", None),
        (0xE7FF0, "ld128 $a0:3, $m1, 0", None),
        (0xFFFFFFFF, "ldz8 $m0, $m1, 0", FaultKind.OUT_OF_RANGE),
        (0xFFFFFFF0, "ld32 $m0, $m1, 0x14", FaultKind.OUT_OF_RANGE),
    ],
)
def test_borders_of_memory(address: int, text: str, kind: FaultKind | None) -> None:
    options = TileOptions(decisions=our_decisions(), poison=False)
    _, run = run_worker(text, main={1: address}, options=options)
    assert (None if run.fault is None else run.fault.kind) is kind


def test_addresses_wrap() -> None:
    """Sums of an address have 32 bits."""
    tile = Tile(default_options())
    tile.place(DATA, b"\x07\x00\x00\x00")
    body = "ld32 $m0, $m1, $m2, 4\nld32step $m3, $m1, $m4+=, 1"
    _, run = run_worker(body, main={1: 0xFFFFFFF0, 2: DATA, 4: DATA + 16}, tile=tile)
    assert run.fault is None
    assert [tile.main_register(0, k) for k in (0, 3, 4)] == [7, 7, DATA + 20]


def test_six_workers_race_for_a_word() -> None:
    """Each reads in its slot what was there before any of them stored: one increment is left."""
    program = program_of(
        ".worker\nmain:\nld32 $m2, $m13, 0\nadd $m2, $m2, 1\nst32 $m2, $m13, $m15, 0\nexitz $m15\n",
        Mode.WORKER,
    )
    tile = Tile(default_options())
    load(tile, program)
    tile.place(DATA, bytes(4))
    assert run_workers(tile, program.address_of("main"), DATA).fault is None
    assert tile.read(DATA, 4) == b"\x01\x00\x00\x00"


READABLE = {0, 1, 2, 3, 4, 7, 0x60, 0x61, 0x70}
"""Besides the two registers of repeats that a launch leaves undefined."""
WRITABLE = {7, 0x70}
FLOAT_READABLE = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10}
FLOAT_WRITABLE = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
OF_SUPERVISOR = {0x20, *range(0x21, 0x27), 0x31, 0x33, 0x50, 0x70, *range(0xA0, 0xAC)}


def test_every_control_register_of_a_worker() -> None:
    """What is not listed is refused, never ignored."""
    for number in range(256):
        cases = (
            (f"get $m0, {number}", number in READABLE, number in (5, 6)),
            (f"put {number}, $m0", number in WRITABLE, False),
            (f"uget $a0, {number}", number in FLOAT_READABLE, number == 8),
            (f"uput {number}, $a0", number in FLOAT_WRITABLE, False),
        )
        for text, is_legal, is_undefined in cases:
            _, run = run_worker(text)
            kind = None if run.fault is None else run.fault.kind
            refused = FaultKind.UNDEFINED_REGISTER if is_undefined else FaultKind.NO_REGISTER
            assert kind is (None if is_legal else refused), text


def test_every_control_register_of_the_supervisor() -> None:
    for number in range(256):
        readable = number in OF_SUPERVISOR | {0, 1, 2, 3, 0x60, 0x61, 0x72}
        for text, is_legal in (
            (f"get $m0, {number}", readable),
            (f"put {number}, $m15", number in OF_SUPERVISOR | {2}),
        ):
            program = program_of(f".supervisor\nmain:\n{text}\nbr $m10\n")
            tile = Tile(default_options())
            load(tile, program)
            run = call(tile, program.address_of("main"), {})
            kind = None if run.fault is None else run.fault.kind
            assert kind is (None if is_legal else FaultKind.NO_REGISTER), text


FORMS = {mode: [form for form in instruction_table().rows if mode in form.modes] for mode in Mode}
ADDRESSES = [DATA, INTERLEAVED, CODE, END - 8, 0xE7FF8, 0]
NUMBERS = [0, 1, 0x3F800000, 0x3C003C00, 0x7FC00000, 0x7F800000, 0x7E007E00, 0x7C01FC00, 0x80000000]
CONTROLS = [0, 7, 1 << 19, 1 << 20, 1 << 16, 2 << 16, 3 << 16 | 7]


def operand_value(random: np.random.Generator, operand: Operand) -> int:
    if operand.is_register:
        count = 8 if operand.kind is OperandKind.ARF and random.random() < 0.9 else 16
        return int(random.integers(count)) // operand.count * operand.count
    if operand.kind is OperandKind.TARGET and random.random() < 0.9:
        return CODE + 4 * int(random.integers(64))
    low, high = operand.lowest // operand.step, operand.highest // operand.step
    if random.random() < 0.5:
        low, high = max(low, -4), min(high, 16)
    return int(random.integers(low, high + 1)) * operand.step


def encoded(random: np.random.Generator, form: InstructionForm, *, coissue: bool) -> int:
    return encode(form, [operand_value(random, operand) for operand in form.operands], coissue=coissue)


def random_words(random: np.random.Generator) -> list[int]:
    """64 words: instructions of both modes, bundles, and noise."""
    words: list[int] = []
    while len(words) < 64:
        if random.random() < 0.02:
            words.append(int(random.integers(1 << 32)))
            continue
        mode = Mode.WORKER if random.random() < 0.8 else Mode.SUPERVISOR
        form = FORMS[mode][random.integers(len(FORMS[mode]))]
        other = FORMS[Mode.WORKER][random.integers(len(FORMS[Mode.WORKER]))]
        if len(words) % 2 == 0 and form.can_coissue and other.can_coissue and form.lane is not other.lane:
            main, aux = (form, other) if form.lane is Lane.MAIN else (other, form)
            words += [encoded(random, main, coissue=True), encoded(random, aux, coissue=True)]
        else:
            words.append(encoded(random, form, coissue=False))
    return words[:64]


def random_tile(random: np.random.Generator) -> Tile:
    """Contexts with plausible registers, about to run random words anywhere among them."""
    tile = Tile(
        TileOptions(
            decisions=our_decisions(),
            poison=bool(random.integers(2)),
            track=bool(random.integers(2)),
            perturbation=list(Perturbation)[random.integers(4)],
        )
    )
    start = END - 256 if random.random() < 0.1 else CODE
    tile.place(start, np.array(random_words(random), np.uint32))
    for place in (DATA, INTERLEAVED):
        tile.place(place, random.integers(0, 1 << 32, 256, dtype=np.uint32))
    for context in range(CONTEXTS):
        for register in range(15):
            address = int(random.choice(ADDRESSES)) + 8 * int(random.integers(20))
            value = address if random.random() < 0.6 else int(random.integers(1 << 32))
            tile.set_main_register(context, register, value)
        for register in range(8 if context < WORKERS else 0):
            tile.set_arithmetic_register(context, register, int(random.choice(NUMBERS)))
    if random.random() < 0.5:
        tile.start_supervisor(start + 4 * int(random.integers(64)))
    for worker in range(WORKERS):
        if random.random() < 0.5:
            tile.start_worker(worker, start + 4 * int(random.integers(64)), DATA)
            tile.state[worker * CONTEXT_STRIDE + FP_CTL] = int(random.choice(CONTROLS))
    return tile


@given(seed=st.integers(0, 2**32 - 1))
def test_random_programs_end_in_a_named_way(seed: int) -> None:
    """No crash, no hang, every fault has a text, and registers stay words whatever ran."""
    random = np.random.default_rng(seed)
    tile = random_tile(random)
    for _ in range(3):
        try:
            stop = tile.advance(tile.cycle + int(random.integers(1, 500)))
        except Unsupported:
            break
        if stop is Stop.FAULT:
            fault = tile.fault()
            assert f"{fault.address:#x}" in str(fault)
        if stop is not Stop.LIMIT:
            break
    contexts = tile.state[: CONTEXTS * CONTEXT_STRIDE].reshape(CONTEXTS, CONTEXT_STRIDE)
    registers = contexts[:, : ARF + 16]
    assert ((registers >= 0) & (registers < 1 << 32)).all()
    assert (contexts[:, [MRF + 15, *range(ARF + 8, ARF + 16)]] == 0).all()
    assert int((contexts[:WORKERS, STATUS] == ACTIVE).sum()) == tile.state[ACTIVE_WORKERS]
