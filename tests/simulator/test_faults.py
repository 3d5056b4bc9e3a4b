"""Every kind of fault, provoked and named: the messages here are what users read."""

import numpy as np
import pytest

from compiler.errors import InvalidInput, Unsupported
from compiler.simulator.faults import Fault, FaultKind, NamedRange
from compiler.simulator.harness import call, load, name_operands, run_workers
from compiler.simulator.operations import (
    AMP,
    INTEGER_A,
    LAST_BITWISE,
    UNSUPPORTED_MNEMONICS,
    operation_of,
)
from compiler.simulator.state import TAINT
from compiler.simulator.tile import Stop, Tile, TileOptions, default_options
from compiler.target.instructions import Access, InstructionForm, Lane, OperandKind, encode, instruction_table
from compiler.target.isa_decisions import our_decisions
from tests.simulator.programs import DATA, INTERLEAVED, program_of, run_worker, worker_program

OPERANDS = [
    NamedRange(name="left", start=DATA, size=64),
    NamedRange(name="wide", start=INTERLEAVED, size=64),
]
CODE = 0x4C000


def worker_fault(body: str, *, main: dict[int, int] | None = None, worker: int = 0) -> Fault:
    tile = Tile(default_options())
    tile.place(DATA, bytes(64))
    tile.place(INTERLEAVED, bytes(64))
    name_operands(tile, OPERANDS)
    _, run = run_worker(body, main=main, worker=worker, tile=tile)
    assert run.stop is Stop.FAULT
    assert run.fault is not None
    return run.fault


def supervisor_fault(text: str) -> Fault:
    program = program_of(f".supervisor\nmain:\n{text}\n")
    tile = Tile(default_options())
    load(tile, program)
    name_operands(tile, OPERANDS)
    run = call(tile, program.address_of("main"), {})
    assert run.stop is Stop.FAULT
    assert run.fault is not None
    return run.fault


WORKER_CASES = {
    FaultKind.MISALIGNED: (
        "nop\nld32 $m0, $m1, $m15, 0",
        (
            "worker 0, cycle 6, main+0x4 (0x4c004): ld32 $m0, $m1, $m15, 0: the address is not a multiple of"
            " the access size: address 0x60002 (left+0x2) [INVALID_ADDRESS]"
        ),
    ),
    FaultKind.OUT_OF_RANGE: (
        "st64 $a0:1, $m4, $m15, 0",
        (
            "worker 0, cycle 0, main (0x4c000): st64 $a0:1, $m4, $m15, 0: the access is outside SRAM:"
            " address 0xe8000 [INVALID_ADDRESS]"
        ),
    ),
    FaultKind.WIDE_OUTSIDE_INTERLEAVED: (
        "ld128 $a0:3, $m2, $m15, 0",
        (
            "worker 0, cycle 0, main (0x4c000): ld128 $a0:3, $m2, $m15, 0: 128-bit accesses work only in the"
            " interleaved region: address 0x60000 (left) [INVALID_ADDRESS]"
        ),
    ),
    FaultKind.ELEMENT_CONFLICT: (
        "tapack $m8:9, $m2, $m5, $m15\nld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0",
        (
            "worker 0, cycle 6, main+0x4 (0x4c004): ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0: two accesses"
            " of one instruction need the same memory element: address 0x60010 (left+0x10) [MEMORY_CONFLICT]"
        ),
    ),
    FaultKind.FLOAT_EXCEPTION: (
        (
            "ldconst $a0, 0x7bff7bff\nsetzi $a1, 4\nuput $FP_CTL, $a1\n.align 8\n"
            "{ nop ; f16v2add $a1, $a0, $a0 }"
        ),
        (
            "worker 0, cycle 24, main+0x10 (0x4c010): { setzi $m14, 0 ; f16v2add $a1, $a0, $a0 }: an enabled"
            " floating-point exception was raised: overflow [FLOATING_POINT]"
        ),
    ),
    FaultKind.UNINITIALISED: (
        "ld64 $a0:1, $m6, $m15, 0\nf16v4add $a2:3, $a0:1, $a0:1",
        (
            "worker 0, cycle 6, main+0x4 (0x4c004): f16v4add $a2:3, $a0:1, $a0:1: a value descends from SRAM"
            " that nothing wrote"
        ),
    ),
    FaultKind.INVALID_PC: (
        "br $m3",
        (
            "worker 0, cycle 6, wide (0x90000): no instruction: instructions run only from aligned words of"
            " the executable region [INVALID_PROGRAM_COUNTER]"
        ),
    ),
    FaultKind.UNDEFINED_REGISTER: (
        "f16v4mix $a0:1, $a0:1, $a0:1",
        (
            "worker 0, cycle 0, main (0x4c000): f16v4mix $a0:1, $a0:1, $a0:1: a launch leaves this register"
            " undefined and nothing has written it since: register 0x108"
        ),
    ),
    FaultKind.UNDEFINED_VALUE: (
        "ldconst $a0, 0x40000\nuput $FP_CTL, $a0",
        ("worker 0, cycle 6, main+0x4 (0x4c004): uput 2, $a0: no source states what this value means: 4"),
    ),
    FaultKind.SAME_DESTINATIONS: (
        ".allow_invalid_operands\nld2x64pace $azeros, $azeros, $m8:9+=, $m15, 0",
        (
            "worker 0, cycle 0, main (0x4c000): ld2x64pace $a14:15, $a14:15, $m8:9+=, $m15, 0: the two"
            " destinations of a load must differ [INVALID_OPERAND]"
        ),
    ),
    FaultKind.TRAP: (
        "trap 3",
        "worker 0, cycle 0, main (0x4c000): trap 3: trap 3 [PATCHED_BREAK_1]",
    ),
    FaultKind.NO_REGISTER: (
        "get $m0, 200",
        (
            "worker 0, cycle 0, main (0x4c000): get $m0, 200: there is no such register, or it cannot be"
            " accessed like this: register 0xc8 [INVALID_OPERAND]"
        ),
    ),
}
REGISTERS = {1: DATA + 2, 2: DATA, 3: INTERLEAVED, 4: 0xE8000, 5: DATA + 16, 6: 0x70000}


@pytest.mark.parametrize("kind", WORKER_CASES, ids=lambda kind: kind.name)
def test_faults_of_workers(kind: FaultKind) -> None:
    body, message = WORKER_CASES[kind]
    fault = worker_fault(body, main=REGISTERS)
    assert fault.kind is kind
    assert str(fault) == message


def patched(words: dict[int, int], body: str = "nop\nnop\nnop\nnop") -> Fault:
    """Run a program after replacing words at offsets from its start."""
    program = worker_program(body)
    tile = Tile(default_options())
    load(tile, program)
    for offset, word in words.items():
        tile.place(program.address_of("main") + offset, word.to_bytes(4, "little"))
    run = run_workers(tile, program.address_of("main"), 0, workers=(0,))
    assert run.fault is not None
    return run.fault


def word_of(mnemonic: str, kinds: list[str], operands: list[int], *, coissue: bool = False) -> int:
    return encode(instruction_table().form(mnemonic, kinds), operands, coissue=coissue)


def test_illegal_instruction() -> None:
    fault = patched({4: 0x7FFFFFFF})
    assert str(fault) == (
        "worker 0, cycle 6, main+0x4 (0x4c004): word 0x7fffffff: this word is no legal instruction here"
        " [INVALID_INSTRUCTION]"
    )


def test_instructions_of_the_other_mode_are_illegal() -> None:
    assert patched({0: word_of("sync", ["u4"], [2])}).kind is FaultKind.ILLEGAL_INSTRUCTION
    exit_word = word_of("exitz", ["m"], [15])
    assert supervisor_fault(f".long {exit_word}").kind is FaultKind.ILLEGAL_INSTRUCTION


def test_registers_without_storage_are_illegal() -> None:
    assert patched({0: word_of("f32add", ["a", "a", "a"], [9, 0, 0])}).kind is FaultKind.ILLEGAL_INSTRUCTION
    assert patched({0: word_of("f32add", ["a", "a", "a"], [0, 12, 0])}).kind is FaultKind.ILLEGAL_INSTRUCTION
    assert patched({0: word_of("setzi", ["a", "u20"], [13, 1])}).kind is FaultKind.ILLEGAL_INSTRUCTION
    assert patched({0: word_of("setzi", ["m", "u20"], [12, 1])}).kind is FaultKind.ILLEGAL_INSTRUCTION


def test_illegal_bundles() -> None:
    nop = word_of("setzi", ["m", "u20"], [14, 0], coissue=True)
    fnop = word_of("setzi", ["a", "u20"], [13, 0], coissue=True)
    wrong = [
        {0: nop, 4: nop},  # two main halves
        {0: fnop, 4: fnop},  # two auxiliary halves
        {4: nop, 8: fnop},  # not 8-byte aligned
        {0: nop},  # the other half is missing
        # Both halves write $a2.
        {
            0: word_of("ld32", ["a", "m", "m", "u12"], [2, 15, 15, 0], coissue=True),
            4: word_of("setzi", ["a", "u20"], [2, 0], coissue=True),
        },
    ]
    for words in wrong:
        assert patched(words).kind is FaultKind.ILLEGAL_BUNDLE, words
    assert str(patched(wrong[-1])) == (
        "worker 0, cycle 0, main (0x4c000): { ld32 $a2, $m15, $m15, 0 ; setzi $a2, 0 }: a bundle is a main"
        " and an auxiliary instruction, 8-byte aligned, with different destinations [INVALID_INSTRUCTION]"
    )


def test_illegal_repeats() -> None:
    rpt = word_of("rpt", ["u12", "u8"], [3, 0])
    nop = word_of("setzi", ["m", "u20"], [14, 0], coissue=True)
    fnop = word_of("setzi", ["a", "u20"], [13, 0], coissue=True)
    branch = word_of("bri", ["target19"], [CODE], coissue=True)
    get = word_of("uget", ["a", "u8"], [0, 0], coissue=True)
    put = word_of("uput", ["u8", "a"], [8, 15], coissue=True)
    for words in (
        {0: rpt}, {4: rpt}, {4: rpt, 8: branch, 12: fnop}, {4: rpt, 8: nop, 12: get},
        {4: rpt, 8: nop, 12: put},
    ):  # fmt: skip
        assert patched(words).kind is FaultKind.ILLEGAL_REPEAT, words
    assert str(patched({4: rpt})) == (
        "worker 0, cycle 12, main+0x8 (0x4c008): setzi $m14, 0: a repeat body is 8-byte aligned and holds"
        " only bundles without control or system instructions [INVALID_INSTRUCTION]"
    )


@pytest.mark.parametrize(
    ("flag", "text", "name"),
    [
        (1, "setzi $a0, 0\nf32div $a1, $a0, $a0", "invalid operation"),
        (2, "ldconst $a0, 0x3f800000\nf32div $a1, $a0, $azero", "division by zero"),
        (4, "ldconst $a0, 0x7f7fffff\nf32add $a1, $a0, $a0", "overflow"),
        (4, "ldconst $a0, 0x7f7fffff\nf32tof16 $a1, $a0", "overflow"),
        (2, "f32ln $a1, $azero", "division by zero"),
        (1, "ldconst $a0, 0xbf800000\nf32sqrt $a1, $a0", "invalid operation"),
    ],
)
def test_enabled_and_disabled_exceptions(flag: int, text: str, name: str) -> None:
    fault = worker_fault(f"setzi $a7, {flag}\nuput $FP_CTL, $a7\n{text}")
    assert fault.kind is FaultKind.FLOAT_EXCEPTION
    assert f"raised: {name} " in str(fault)
    _, run = run_worker(f"setzi $a7, {7 & ~flag}\nuput $FP_CTL, $a7\n{text}")
    assert run.fault is None


def test_launches_that_cannot_be() -> None:
    fault = supervisor_fault("setzi $m0, main\nrunall $m0, $m15, 0\nrunall $m0, $m15, 0")
    assert fault.kind is FaultKind.ILLEGAL_INSTRUCTION  # what the workers run is supervisor code
    text = "setzi $m0, worker\nrun $m0, $m15, 0\nrunall $m0, $m15, 0\n.worker\nworker:\nnop\nbri worker"
    fault = supervisor_fault(text)
    assert str(fault) == (
        "supervisor, cycle 7, main+0x8 (0x4c008): runall $m0, $m15, 0: workers are running [INVALID_OPERAND]"
    )
    fault = supervisor_fault(f"setzi $m0, {INTERLEAVED:#x}\nrunall $m0, $m15, 0")
    assert str(fault) == (
        "supervisor, cycle 1, main+0x4 (0x4c004): runall $m0, $m15, 0: a worker's entry or vertex base is not"
        " an aligned, executable address: address 0x90000 (wide) [INVALID_OPERAND]"
    )
    fault = supervisor_fault("setzi $m0, main\nsetzi $m1, 2\nrunall $m0, $m1, 0")
    assert fault.kind is FaultKind.INVALID_LAUNCH


def test_a_seventh_launch_waits() -> None:
    """The supervisor issues only in a free slot, so a launch always finds a free worker."""
    text = "setzi $m0, worker\n" + "run $m0, $m15, 0\n" * 7 + ".worker\nworker:\nbri worker"
    program = program_of(f".supervisor\nmain:\n{text}\n")
    tile = Tile(default_options())
    load(tile, program)
    assert call(tile, program.address_of("main"), {}, limit=5000).stop is Stop.LIMIT
    assert tile.program_counter(6) == program.address_of("main") + 4 * 7


def test_weights_must_be_written_and_named() -> None:
    fault = supervisor_fault(f"setzi $m0, {DATA:#x}\nput $CCCSLOAD, $m0\nld64putcs 0")
    assert fault.kind is FaultKind.UNINITIALISED
    fault = supervisor_fault(f"setzi $m0, {DATA:#x}\nput $CCCSLOAD, $m0\nld128putcs 0")
    assert fault.kind is FaultKind.WIDE_OUTSIDE_INTERLEAVED
    word = word_of("ld64putcs", ["u8"], [64])
    assert supervisor_fault(f".long {word}").kind is FaultKind.NO_REGISTER


def test_unwritten_values_travel_and_are_refused_where_they_matter() -> None:
    load_it = "ld64 $a0:1, $m6, $m15, 0\nld32 $m0, $m6, $m15, 0\n"
    refused = [
        "f32mul $a2, $a0, $a15", "f16v4absacc $a0:1", "f16v2tanh $a2, $a1", "f32v2gina $azeros, $a0:1, 0",
        "uput $TAS, $a0", "f16v2tof32 $a2:3, $a1", "ld32 $m1, $m0, $m15, 0", "brz $m0, .Lend", "br $m0",
        "put 7, $m0", "roll16 $a3, $a0, $a15\nf32add $a2, $a3, $a15", "or $m1, $m0, 1\nbrz $m1, .Lend",
        "st64 $a0:1, $m2, $m15, 0\nld32 $a4, $m2, $m15, 0\nf32add $a5, $a4, $a15",
        "atom $m3, $a0\nst32 $m3, $m2, $m15, 0\nldz16 $m4, $m2, $m15, 0\nbrz $m4, .Lend",
        "nop\nrpt $m0, 0\n{ nop ; fnop }",
    ]  # fmt: skip
    for text in refused:
        fault = worker_fault(f"{load_it}{text}\n.Lend:", main=REGISTERS)
        assert fault.kind is FaultKind.UNINITIALISED, text
    allowed = [
        "st64 $a0:1, $m2, $m15, 0", "or $a2, $a0, $a1", "add $m1, $m0, 1",
        "setzi $a0, 0\nf32add $a1, $a0, $a0",
        "ld64 $a0:1, $m2, $m15, 0\nf32add $a2, $a0, $a1", "setzi $m0, 0\nbrz $m0, .Lend",
        "f32v2add $a2:3, $azeros, $azeros",
        "st64 $azeros, $m6, $m15, 0\nld32 $a2, $m6, $m15, 0\nf32ln $a3, $a2",
    ]  # fmt: skip
    for text in allowed:
        tile = Tile(default_options())
        tile.place(DATA, bytes(64))
        _, run = run_worker(f"{load_it}{text}\n.Lend:", main=REGISTERS, tile=tile)
        assert run.fault is None, (text, str(run.fault))


def test_unwritten_elements_may_pass_the_matrix_units_unless_used() -> None:
    """A group of unwritten elements gives results that can be stored, as unwritten bytes, but not added."""
    phases = "".join(
        f"f16v4hihov4amp $a{{d}}, $a{{x}}, $azeros, TAMP_F16V4_E4_P{phase}\n" for phase in range(4)
    )
    group = "ld64 $a0:1, $m6, $m15, 0\nsetzi $a7, 8\nuput $FP_CLR, $a7\n"
    group += phases.format(x="0:1", d="14:15") + phases.format(x="14:15", d="2:3")
    tile = Tile(default_options())
    _, run = run_worker(group + "st64 $a2:3, $m2, $m15, 0", main=REGISTERS, tile=tile)
    assert run.fault is None
    assert not tile.written(DATA, 8).any()
    assert (
        worker_fault(group + "f16v4add $a4:5, $a2:3, $a2:3", main=REGISTERS).kind is FaultKind.UNINITIALISED
    )
    # Partials travel one group further: their results leave during the group after the next.
    partials = group.replace("$a0:1, $azeros", "$azeros, $a0:1", 4) + phases.format(x="14:15", d="2:3")
    assert (
        worker_fault(partials + "f16v4add $a4:5, $a2:3, $a2:3", main=REGISTERS).kind
        is FaultKind.UNINITIALISED
    )
    early = partials.removesuffix(phases.format(x="14:15", d="2:3"))
    _, run = run_worker(early + "f16v4add $a4:5, $a2:3, $a2:3", main=REGISTERS)
    assert run.fault is None
    # Accumulators can be read without the queues, too.
    sums = "ld64 $a0:1, $m6, $m15, 0\n" + phases.format(x="0:1", d="14:15")
    scaled = "uput $TAS, $azero\nf32v2axpy $a4:5, $azeros, $azeros"
    for text in ("f32v2gina $a4:5, $azeros, 0", "f16v4gacc $a4:5", scaled):
        fault = worker_fault(f"{sums}{text}\nf32add $a6, $a4, $a5", main=REGISTERS)
        assert fault.kind is FaultKind.UNINITIALISED, text
    clean = group + phases.format(x="14:15", d="2:3") + "f16v4add $a4:5, $a2:3, $a2:3"
    _, run = run_worker(clean, main=REGISTERS)
    assert run.fault is None


def test_poison_can_be_switched_off() -> None:
    options = TileOptions(decisions=our_decisions(), poison=False)
    tile, run = run_worker("ld32 $a0, $m6, $m15, 0\nf32add $a1, $a0, $a15", main=REGISTERS, options=options)
    assert run.fault is None
    assert tile.arithmetic_register(0, 1) == 0x7FC00000  # it still reads as NaN


def test_registers_that_a_launch_leaves_undefined() -> None:
    for text in ("f32v2axpy $a0:1, $a0:1, $a0:1", "uget $a0, $TAS", "get $m0, 5", "get $m0, 6"):
        assert worker_fault(text).kind is FaultKind.UNDEFINED_REGISTER, text
    written = "uput $TAS, $a15\nuget $a0, $TAS\nf16v4mix $a0:1, $a0:1, $a0:1\n.align 8\nnop\nrpt 1, 0\n"
    tile, run = run_worker(f"{written}{{ nop ; fnop }}\nget $m0, 5\nget $m1, 6")
    assert run.fault is None
    assert tile.main_register(0, 1) - tile.main_register(0, 0) == 8
    # The next launch forgets them.
    _, run = run_worker("uget $a0, $TAS", tile=tile)
    assert run.fault is not None
    options = TileOptions(decisions=our_decisions(), poison=False)
    tile, run = run_worker("uget $a0, $TAS", options=options)
    assert run.fault is None
    assert tile.arithmetic_register(0, 0) == 0x7FFF7FFF


def test_values_that_no_source_explains() -> None:
    for text in (
        "f32int $a0, $a1, 4", "f32int $a0, $a1, 15", "f32v2gina $a0:1, $a2:3, 4", "f16v2gina $a0, $a1, 4095",
    ):  # fmt: skip
        assert worker_fault(text).kind is FaultKind.UNDEFINED_VALUE, text
    for code in range(4):
        _, run = run_worker(f"ldconst $a0, {code << 16:#x}\nuput $FP_CTL, $a0\nf32int $a0, $a1, {code}")
        assert run.fault is None
    fault = supervisor_fault("ldconst $m0, 0x70000\nput $FP_ICTL, $m0")
    assert fault.kind is FaultKind.UNDEFINED_VALUE
    assert fault.data == 7


def test_memory_that_nothing_wrote_is_no_code() -> None:
    """For both kinds of context, behind a program and where a value of unknown bytes was stored."""
    fault = worker_fault("br $m6", main=REGISTERS)
    assert str(fault) == (
        "worker 0, cycle 6, 0x70000: word 0x7fff7fff: a value descends from SRAM that nothing wrote"
    )
    fault = supervisor_fault("setzi $m0, 0x70000\nbr $m0")
    assert (fault.kind, fault.address) == (FaultKind.UNINITIALISED, 0x70000)
    text = "ld32 $m0, $m6, $m15, 0\nsetzi $m1, .Lhere\nst32 $m0, $m1, $m15, 0\n.Lhere:\nnop"
    fault = worker_fault(text, main=REGISTERS)
    assert (fault.kind, fault.symbol) == (FaultKind.UNINITIALISED, "main+0xc")
    # The missing half of a bundle, and a tile without poison.
    bundle = word_of("setzi", ["m", "u20"], [14, 0], coissue=True)
    for poison in (True, False):
        tile = Tile(TileOptions(decisions=our_decisions(), poison=poison))
        tile.place(CODE, np.array([bundle], np.uint32))
        run = run_workers(tile, CODE, 0, workers=(0,))
        assert run.fault is not None
        assert run.fault.kind is (FaultKind.UNINITIALISED if poison else FaultKind.ILLEGAL_INSTRUCTION)


def test_a_fault_lasts() -> None:
    """A tile that stopped stays where it is until something is started; then the rest is forgotten."""
    tile = Tile(default_options())
    program = worker_program("ld32 $m0, $m1, $m15, 0\nsetzi $m2, 7")
    load(tile, program)
    tile.set_main_register(0, 1, 2)
    run = run_workers(tile, program.address_of("main"), 0)
    assert run.stop is Stop.FAULT
    for _ in range(3):
        assert tile.advance(1000) is Stop.FAULT
    assert tile.main_register(0, 2) == 0
    assert tile.fault().kind is FaultKind.MISALIGNED
    for worker in range(6):
        tile.set_main_register(worker, 1, DATA)
    tile.place(DATA, bytes(4))
    run = run_workers(tile, program.address_of("main"), 0, workers=(0, 5))
    assert run.stop is Stop.IDLE
    assert [tile.main_register(worker, 2) for worker in range(6)] == [7, 0, 0, 0, 0, 7]
    with pytest.raises(ValueError, match="there is no worker 6"):
        tile.start_worker(6, CODE, 0)
    tile.start_worker(1, CODE, 0)
    with pytest.raises(ValueError, match="worker 1 is running"):
        tile.start_worker(1, CODE, 0)


@pytest.mark.parametrize(
    ("text", "tainted", "is_fault"),
    [
        ("ldd16a32 $a0, $m1++, $m2, $m3@", 3, True), ("ldd16a32 $a0, $m1++, $m2, $m3@", 4, False),
        ("ldd16v2a32 $a0, $m4++, $m2, $m3@", 5, False), ("ldd16a64 $a0:1, $m1++, $m2, $m3@", 2, True),
        ("ldd16b16 $a0, $m1++, $m2, $m3@", 1, True), ("ld64a32 $a0:3, $m4++, $m2, $m3", 3, True),
        ("ld64a32 $a0:3, $m4++, $m2, $m3", 5, False), ("stm32step $m0, $m2+=, $m3", 3, True),
        ("ld2x64pace $a0:1, $a2:3, $m4:5+=, $m6, 0", 5, True), ("ld32step $m0, $m2, $m3+=, $m6", 6, True),
    ],
)  # fmt: skip
def test_every_address_register_is_watched(text: str, tainted: int, is_fault: bool) -> None:
    tile = Tile(default_options())
    tile.shadow[:] = 15
    program = worker_program(text)
    load(tile, program)
    for number, value in {1: INTERLEAVED, 2: DATA, 3: 0, 4: INTERLEAVED, 5: 0, 6: 0}.items():
        tile.set_main_register(0, number, value)
    if "pace" in text:
        tile.set_main_register(0, 5, DATA)
    tile.state[TAINT] = 1 << tainted
    run = run_workers(tile, program.address_of("main"), 0, workers=(0,))
    assert (run.fault is not None) == is_fault
    assert run.fault is None or run.fault.kind is FaultKind.UNINITIALISED


@pytest.mark.parametrize("mnemonic", UNSUPPORTED_MNEMONICS)
def test_what_is_not_simulated_is_named(mnemonic: str) -> None:
    form = instruction_table().forms(mnemonic)[0]
    operands = [
        {OperandKind.ARF: 4 * (index % 2), OperandKind.MRF: 2 * index}.get(operand.kind, 0)
        for index, operand in enumerate(form.operands)
    ]
    program = worker_program("nop")
    tile = Tile(default_options())
    load(tile, program)
    tile.place(CODE + 4, encode(form, operands).to_bytes(4, "little"))
    with pytest.raises(Unsupported) as caught:
        run_workers(tile, CODE, 0, workers=(3,))
    assert f"worker 3 cannot run {mnemonic} " in str(caught.value)
    assert UNSUPPORTED_MNEMONICS[mnemonic] in str(caught.value)
    assert caught.value.subject == "instruction at main+0x4"


def test_the_exchange_is_named() -> None:
    program = program_of(".supervisor\nmain:\nsync 3\nbr $m10\n")
    tile = Tile(default_options())
    load(tile, program)
    with pytest.raises(Unsupported) as caught:
        call(tile, program.address_of("main"), {})
    assert str(caught.value) == (
        "unsupported (simulation): instruction at main: supervisor cannot run sync 3: the exchange is not"
        " part of a single tile.\n  next: use another instruction"
    )


def test_unknown_symbols_are_named() -> None:
    with pytest.raises(InvalidInput, match="there is no symbol nothing"):
        worker_program("nop").address_of("nothing")


def test_every_kind_of_fault_is_tested() -> None:
    elsewhere = {
        FaultKind.ILLEGAL_INSTRUCTION, FaultKind.ILLEGAL_BUNDLE, FaultKind.ILLEGAL_REPEAT,
        FaultKind.WORKERS_ACTIVE, FaultKind.INVALID_LAUNCH, FaultKind.QUEUE_OVERFLOW,
        FaultKind.WEIGHTS_CHANGED,
    }  # fmt: skip
    assert set(WORKER_CASES) | elsewhere == set(FaultKind)


AUX_FORMS = [
    form
    for form in instruction_table().rows
    if form.lane is Lane.AUX
    and form.mnemonic not in UNSUPPORTED_MNEMONICS
    and any(operand.is_register and operand.access is Access.READ for operand in form.operands)
]


@pytest.mark.parametrize("form", AUX_FORMS, ids=str)
def test_every_source_register_of_the_auxiliary_lane_is_watched(form: InstructionForm) -> None:
    """Operations on numbers refuse an unwritten value in any register they read, and only in those."""
    operands: list[int] = []
    read: set[int] = set()
    free = [0, 2]
    for operand in form.operands:
        if not operand.is_register:
            operands.append(8 if form.mnemonic == "uput" else 0)  # $TAS
        elif operand.access is Access.WRITE:
            operands.append(4)
        else:
            first = free.pop(0)
            operands.append(first)
            read |= set(range(first, first + operand.count))
    kind = operation_of(form)
    moves_bits = INTEGER_A <= kind <= LAST_BITWISE
    for register in range(4):
        tile = Tile(default_options())
        tile.place(CODE, np.array([encode(form, operands), word_of("exitz", ["m"], [15])], np.uint32))
        tile.state[TAINT] = 1 << (16 + register)
        run = run_workers(tile, CODE, 0, workers=(0,))
        if moves_bits:
            assert run.fault is None
            assert bool(tile.state[TAINT] >> 20 & 1) == (register in read)
        elif kind >= AMP:
            assert run.fault is None  # the units pass it on
        else:
            assert (run.fault is not None) == (register in read), register
            assert run.fault is None or run.fault.kind is FaultKind.UNINITIALISED
