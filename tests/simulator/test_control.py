"""Branches, repeats, launches, control registers, issue slots."""

import numpy as np
import pytest

from compiler.simulator.faults import FaultKind
from compiler.simulator.harness import Run, call, load
from compiler.simulator.tile import Stop, Tile, TileOptions, advance_all, default_options, make_tiles
from compiler.target.control_registers import SupervisorRegister
from compiler.target.isa_decisions import our_decisions, read_overrides
from tests.simulator.programs import DATA, program_of, run_worker


@pytest.mark.parametrize(
    ("branch", "value", "taken"),
    [
        ("brz", 0, True), ("brz", 5, False), ("brnz", 0, False), ("brnz", 0x80000000, True),
        ("brneg", 0x80000000, True), ("brneg", 0x7FFFFFFF, False), ("brpos", 0, True),
        ("brpos", 0x7FFFFFFF, True), ("brpos", 0xFFFFFFFF, False), ("brnzdec", 0, False),
        ("brnzdec", 3, True),
    ],
)  # fmt: skip
def test_conditional_branches(branch: str, value: int, taken: bool) -> None:
    body = f"{branch} $m1, .Lthere\nsetzi $m2, 1\nexitz $m15\n.Lthere:\nsetzi $m2, 2"
    tile, run = run_worker(body, main={1: value})
    assert run.fault is None
    assert tile.main_register(0, 2) == (2 if taken else 1)
    assert tile.main_register(0, 1) == (value - 1 if branch == "brnzdec" and taken else value)


def test_calls_and_absolute_branches() -> None:
    body = """
    call $m10, .Lfunction
    .align 8
    nop
    nop
    { call $m9, .Lfunction2 ; fnop }
    bri .Lend
    setzi $m3, 9
.Lfunction:
    setzi $m1, 5
    br $m10
.Lfunction2:
    setzi $m2, 6
    br $m9
.Lend:
    """
    tile, run = run_worker(body)
    assert run.fault is None
    assert [tile.main_register(0, k) for k in (1, 2, 3)] == [5, 6, 0]
    assert tile.main_register(0, 9) - tile.main_register(0, 10) == 20


@pytest.mark.parametrize(("count", "expected"), [(0, 0), (1, 1), (7, 7), (300, 300)])
@pytest.mark.parametrize("by_register", [True, False])
def test_repeats(count: int, expected: int, by_register: bool) -> None:
    """A register count uses 16 bits, and an instruction beside the repeat runs once."""
    operand = "$m4" if by_register else str(count)
    body = f"""
    .align 8
    {{ rpt {operand}, 1 ; setzi $a3, 4 }}
    {{ add $m1, $m1, 1 ; fnop }}
    {{ add $m2, $m2, 2 ; fnop }}
    add $m3, $m3, 1
    """
    tile, run = run_worker(body, main={4: 0x70000 | count})
    assert run.fault is None
    assert [tile.main_register(0, k) for k in (1, 2, 3)] == [expected, 2 * expected, 1]
    assert tile.arithmetic_register(0, 3) == 4
    assert run.cycles == 6 * (3 + 2 * expected) - 5


def test_bundles_read_before_they_write() -> None:
    body = f"""
    setzi $m2, {DATA:#x}
    setzi $a0, 1
    setzi $a1, 2
    st64 $a0:1, $m2, 0
    setzi $a0, 7
    .align 8
    {{ ld32 $a2, $m2, $m15, 0 ; or $a0, $a2, 16 }}
    {{ st32 $a0, $m2, $m15, 4 ; setzi $a0, 9 }}
    {{ atom $m5, $a0 ; or $a0, $a0, 2 }}
    """
    tile, run = run_worker(body, arithmetic={2: 64})
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in (0, 2)] == [11, 1]
    assert tile.main_register(0, 5) == 9
    assert tile.read(DATA + 16, 4) == (64 | 16).to_bytes(4, "little")


def run_supervisor(text: str, registers: dict[int, int] | None = None) -> tuple[Tile, Run]:
    program = program_of(text)
    tile = Tile(default_options())
    load(tile, program)
    return tile, call(tile, program.address_of("main"), registers or {})


def test_launches() -> None:
    """``runall`` spreads vertex bases, ``run`` starts one free worker behind the start of memory."""
    tile, run = run_supervisor(f"""
.supervisor
main:
    or $m12, $m10, 0
    setzi $m0, 0x1234
    put 0x23, $m0
    setzi $m0, 0x80000
    put $FP_ICTL, $m0
    setzi $m0, worker
    setzi $m1, {DATA:#x}
    runall $m0, $m1, 3
    sync 2
    setzi $m0, single
    setzi $m1, 16
    run $m0, $m1, 2
    run $m0, $m1, 2
    sync 2
    br $m12
.worker
worker:
    get $m0, $WSR
    get $m1, 2
    get $m2, 3
    or $m3, $m12, 0
    or $m4, $m13, 0
    uget $a0, $FP_CTL
    uget $a1, $FP_STS
    exitz $m15
single:
    or $m5, $m13, 0
    exitz $m15
""")
    assert run.stop is Stop.RETURNED, run.fault
    for worker in range(6):
        registers = [tile.main_register(worker, k) for k in range(6)]
        base = 0x1234 if worker == 2 else 0
        single = 0x4C000 + 16 + 8 if worker < 2 else 0
        assert registers == [worker, DATA + 12 * worker, base, base, DATA + 12 * worker, single]
        assert tile.arithmetic_register(worker, 0) == 0x80000


@pytest.mark.parametrize(
    ("leave", "value", "consensus"),
    [("exitz", 0, 1), ("exitz", 1, 0), ("exitnz", 0x80000000, 1), ("exitnz", 0, 0), ("exitpos", 0, 1),
     ("exitpos", 0x80000000, 0), ("exitneg", 0x80000000, 1), ("exitneg", 1, 0)],
)  # fmt: skip
def test_consensus_of_workers(leave: str, value: int, consensus: int) -> None:
    """The status bit survives only when every worker's condition holds."""
    tile, run = run_supervisor(
        f"""
.supervisor
main:
    or $m12, $m10, 0
    setzi $m0, 2
    put 2, $m0
    setzi $m0, worker
    runall $m0, $m15, 0
    sync 2
    get $m3, 1
    setzi $m0, 1
    put 2, $m0
    get $m4, 1
    br $m12
.worker
worker:
    get $m0, $WSR
    cmpeq $m0, $m0, 3
    brz $m0, .Lgood
    ldconst $m1, {value:#x}
    {leave} $m1
.Lgood:
    ldconst $m1, {0x80000000 if leave in ("exitnz", "exitneg") else 0:#x}
    {leave} $m1
"""
    )
    assert run.stop is Stop.RETURNED, run.fault
    assert (tile.main_register(6, 3) & 1, tile.main_register(6, 4) & 1) == (consensus, 0)


def test_supervisor_costs() -> None:
    """Cycles of single supervisor instructions; the call itself adds its return."""
    costs = {
        "add $m0, $m0, 1": 1, "setzi $m0, 5": 1, "mul $m0, $m0, $m0": 1, "st32 $m0, $m1, $m15, 0": 1,
        "ld32 $m0, $m1, $m15, 1": 6, "brz $m15, .Lnext": 6, "brnz $m15, .Lnext": 1, "bri .Lnext": 6,
        "put $FP_ICTL, $m15": 6, "get $m0, $FP_ICTL": 6, "put 0xa7, $m15": 13, "sync 2": 1,
        "ld32step $m0, $m1, $m2+=, 0": 6, "stm32 $m0, $m1, $m15": 1,
    }  # fmt: skip
    for text, cost in costs.items():
        program = program_of(f".supervisor\nmain:\n{text}\n.Lnext:\nbr $m10\n")
        tile = Tile(default_options())
        load(tile, program)
        tile.place(DATA, bytes(16))
        # A rendezvous that is over costs nothing more.
        tile.advance(tile.cycle + 100)
        run = call(tile, program.address_of("main"), {1: DATA, 2: 0})
        assert run.stop is Stop.RETURNED, run.fault
        assert run.cycles == cost + 6, text


LOOPING = """
.supervisor
main:
    or $m12, $m10, 0
    setzi $m0, worker
    runall $m0, $m15, 0
    setzi $m1, 0
.Lcount:
    add $m1, $m1, 1
    add $m2, $m1, {minus}
    brnz $m2, .Lcount
    sync 2
    br $m12
.worker
worker:
    get $m0, $WSR
    and $m0, $m0, 7
    cmpult $m1, $m0, {workers}
    brnz $m1, .Lwork
    exitz $m15
.Lwork:
    setzi $m2, 999
.Lloop:
    add $m3, $m3, 1
    brnzdec $m2, .Lloop
    exitz $m15
"""


def test_the_supervisor_is_held_while_all_workers_run() -> None:
    """Its counting starts when a slot is free: with six long workers, after them; with five, beside them."""
    _, all_six = run_supervisor(LOOPING.format(workers=6, minus=-200))
    _, five = run_supervisor(LOOPING.format(workers=5, minus=-200))
    work = 6 * (5 + 2 * 1000 + 1)
    assert all_six.cycles > work + 200 * 8
    assert five.cycles < work + 60


def test_a_slot_is_a_sixth_of_the_cycles() -> None:
    _, run = run_worker("\n".join(["nop"] * 50))
    assert run.cycles == 6 * 51 - 5  # up to and including the exit, from the worker's own slot on
    _, divided = run_worker("setzi $a0, 0\nf32div $a1, $a0, $a0\nnop")
    assert divided.cycles == 6 * (1 + 3 + 1 + 1) - 5


def test_cycle_counters() -> None:
    tile, run = run_worker("get $m0, $COUNT_L\nnop\nnop\nget $m1, $COUNT_L\nget $m2, $COUNT_U")
    assert run.fault is None
    assert tile.main_register(0, 1) - tile.main_register(0, 0) == 18
    assert tile.main_register(0, 2) == 0


def test_worker_registers() -> None:
    body = """
    setzi $m0, 77
    put 7, $m0
    get $m1, 7
    put $DBG_DATA, $m0
    get $m2, $DBG_DATA
    get $m3, $PC
    get $m4, $REPEAT_COUNT
    setzi $a0, 0x7ff
    uput $TAS, $a0
    uget $a1, $TAS
    uput $FP_NFMT, $a0
    uget $a2, $FP_NFMT
    uput $FP_SCL, $a0
    uget $a3, $FP_SCL
    uget $a4, $FP_CLR
    """
    tile, run = run_worker(body)
    assert run.fault is None
    assert [tile.main_register(0, k) for k in (1, 2, 4)] == [77, 77, 0]
    assert tile.main_register(0, 3) == 0x4C000 + 5 * 4
    assert [tile.arithmetic_register(0, k) for k in range(1, 5)] == [0x7FF, 0x7FF, 0x7FF, 0]


def test_float_flags_are_sticky_until_cleared() -> None:
    body = """
    ldconst $a0, 0x7bff7bff
    f16v2add $a1, $a0, $a0
    uget $a2, $FP_STS
    setzi $a0, 0
    f32div $a1, $a0, $a0
    ldconst $a3, 0x3f800000
    f32div $a1, $a3, $a0
    uget $a3, $FP_STS
    setzi $a4, 5
    uput $FP_CLR, $a4
    uget $a4, $FP_STS
    """
    tile, run = run_worker(body)
    assert run.fault is None
    assert [tile.arithmetic_register(0, k) for k in (2, 3, 4)] == [4, 7, 2]
    _, run = run_worker("uget $a2, $FP_STS", tile=tile)
    assert tile.arithmetic_register(0, 2) == 0  # a launch clears them


def test_status_of_active_contexts() -> None:
    """Two bits for each context: the supervisor, then the workers."""
    tile, run = run_supervisor("""
.supervisor
main:
    setzi $m0, worker
    get $m1, $CTXT_STS
    run $m0, $m15, 0
    run $m0, $m15, 0
    get $m2, $CTXT_STS
    sync 2
    get $m3, $CTXT_STS
    br $m10
.worker
worker:
    setzi $m0, 20
.Lwait:
    brnzdec $m0, .Lwait
    exitz $m15
""")
    assert run.stop is Stop.RETURNED, run.fault
    assert [tile.main_register(6, k) for k in (1, 2, 3)] == [0b1, 0b010101, 0b1]


def test_a_launch_of_all_beside_active_workers_is_noted() -> None:
    text = "main:\nsetzi $m0, worker\nrun $m0, $m15, 0\nrunall $m0, $m15, 0\n.worker\nworker:\nbri worker"
    tile, run = run_supervisor(f".supervisor\n{text}")
    assert run.fault is not None
    assert run.fault.kind is FaultKind.WORKERS_ACTIVE
    status = SupervisorRegister.SSR
    assert tile.control_register(status) == status.field("RAERR").mask


@pytest.mark.parametrize(("active", "cycles"), [(0, 1), (1, 2), (5, 6)])
def test_the_supervisor_takes_what_workers_leave(active: int, cycles: int) -> None:
    """It issues in the slots of inactive workers only: with five active, one instruction in six cycles."""
    launches = "run $m0, $m15, 0\n" * active
    tile, run = run_supervisor(
        f".supervisor\nmain:\nsetzi $m0, worker\n{launches}get $m1, $SCOUNT_L\n"
        + "add $m3, $m3, 1\n" * 30
        + "get $m2, $SCOUNT_L\nsync 2\nbr $m10\n"
        ".worker\nworker:\nsetzi $m0, 60\n.Lwait:\nbrnzdec $m0, .Lwait\nexitz $m15\n"
    )
    assert run.stop is Stop.RETURNED, run.fault
    took = tile.main_register(6, 2) - tile.main_register(6, 1) - 6
    expected = {0: 30, 1: 36, 5: 180}[active]
    assert abs(took - expected) <= cycles


def test_context_status_and_tile_number() -> None:
    program = program_of(".supervisor\nmain:\nget $m0, 0x72\nget $m1, 3\nget $m2, 0x60\nbr $m10\n")
    tile = Tile(TileOptions(decisions=our_decisions(), physical=321))
    load(tile, program)
    assert call(tile, program.address_of("main"), {}).stop is Stop.RETURNED
    assert [tile.main_register(6, k) for k in (0, 1)] == [1, 321]
    assert tile.control_register(SupervisorRegister.TILE_ID) == 321


def test_overrides_of_decisions_reach_the_machine() -> None:
    """Flags and field positions of a user's file are what the machine decodes."""
    lines = "\n".join(f"TAMP_F16V4_E4_P{phase} = {32 + phase}" for phase in range(4))
    decisions = read_overrides(f"{lines}\nFP_NFMT_ARF_FMT = 4\n", "file")
    options = TileOptions(decisions=decisions)
    body = "setzi $a0, 0x10\nuput $FP_NFMT, $a0\nsetzi $a0, 0x38\nf8v2tof16 $a1, $a0"
    tile, run = run_worker(body, options=options)
    assert run.fault is None
    assert tile.arithmetic_register(0, 1) & 0xFFFF == np.float16(0.5).view(np.uint16)
    _, run = run_worker("f16v4hihov4amp $azeros, $azeros, $azeros, 32", options=options)
    assert run.fault is None


def test_same_results_for_any_number_of_threads() -> None:
    program = program_of(LOOPING.format(workers=4, minus=-50))

    def digest(threads: int) -> list[bytes]:
        tiles = make_tiles(5, default_options())
        for index, tile in enumerate(tiles):
            load(tile, program)
            tile.set_main_register(0, 3, index)
            tile.start_supervisor(program.address_of("main"))
        stops = advance_all(tiles, 100_000, threads)
        assert set(stops) == {Stop.RETURNED}
        return [tile.state.tobytes() + tile.memory.tobytes() for tile in tiles]

    first = digest(1)
    assert first == digest(1)
    assert first == digest(4)
    assert len(set(first)) == 5


def test_limits_stop_and_continue() -> None:
    program = program_of(LOOPING.format(workers=6, minus=-50))
    whole, parts = Tile(default_options()), Tile(default_options())
    for tile in (whole, parts):
        load(tile, program)
        tile.start_supervisor(program.address_of("main"))
    assert whole.advance(1_000_000) is Stop.RETURNED
    limit = 0
    while parts.advance(limit) is Stop.LIMIT:
        assert parts.cycle == limit
        limit += 7
    assert np.array_equal(parts.state, whole.state)


def test_an_infinite_loop_ends_at_the_limit() -> None:
    _, run = run_worker(".Lloop:\nbri .Lloop", limit=1000)
    assert run.stop is Stop.LIMIT
    assert run.cycles == 1000


def test_worker_base_of_an_active_worker() -> None:
    _, run = run_supervisor("""
.supervisor
main:
    setzi $m0, worker
    run $m0, $m15, 0
    put 0x21, $m15
.worker
worker:
    nop
    bri worker
""")
    assert run.fault is not None
    assert run.fault.kind is FaultKind.WORKERS_ACTIVE
