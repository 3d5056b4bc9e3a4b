"""The exact text of everything that a user can meet when an application is simulated."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from compiler.errors import InvalidInput, PackageInvalid, Unsupported
from compiler.package.records import Application, HostCall
from compiler.simulator.application import SimulationOptions, Simulator
from compiler.simulator.application_faults import ApplicationFaultKind
from compiler.simulator.functional import KernelMemory, Meaning
from compiler.simulator.recording import Breakpoint
from compiler.target.units import Address, Bytes, PhysicalTile
from tests.simulator.packages import (
    ATTACH,
    BARRIER,
    DATA,
    END,
    FOLLOW,
    PACKETS,
    ROW,
    STAGING,
    STEP,
    Words,
    application,
    binding,
    echo,
    host_slice,
    image,
    linked,
    stored,
)

Kind = ApplicationFaultKind

READ = (0xEC82020C, 0x00000401)
"""Tile 260 asks for 64 bytes at 0x1000 of host memory, into staging."""
SHORT_READ = (0xCC82020C, 0x00004001)
"""The same for 4 bytes."""
WRITE = (0xA0820000, 0x00000401)
"""It announces 64 bytes for the same place."""
CLOSE = (0xCC82020C, 0x00000000)
REQUEST = (0x100, 0)
"""Tile 4 requests an exchange for tile 260."""


def alone(text: str, memory: Mapping[int, Words] | None = None) -> Application:
    """A package of tile 7."""
    return application([image(7, text, memory)])


def together(**texts: str) -> Application:
    """A package of tiles by number."""
    return application([image(int(name.removeprefix("t")), text) for name, text in texts.items()])


def batch(
    *,
    packets: Sequence[int] = READ,
    body: str = "send 1, 0x14000, 3\n",
    expected: int = 16,
    wait: str = "sync 0\n",
    mux: int = 0x604,
    request: Sequence[int] = REQUEST,
    asking: str = "send 1, 0x14000, 3\n",
    zone: int = 7,
    writes: bool = False,
    memory: Mapping[int, Words] | None = None,
    other: str | None = None,
) -> Application:
    """One batch in which tile 260 does something and tile 4 requests; the parts can be spoilt.

    Args:
        packets: words at the start of the window of tile 260.
        body: what it does with them.
        expected: words that it expects.
        wait: how it waits for them.
        mux: what it listens to.
        request: words of tile 4.
        asking: what tile 4 does.
        zone: in which tile 260 meets the host first.
        writes: whether the batch is one of outputs.
        memory: more of tile 260.
        other: program of tile 500.
    """
    moving = f"setzi $m8, {mux:#x}\nput $INCOMING_MUX, $m8\nsync {zone}\n"
    moving += f"setzi $m8, {expected}\nput $INCOMING_DCOUNT, $m8\n{body}{wait}sync 7\n"
    asker = f"setzi $m8, 0x604\nput $INCOMING_MUX, $m8\nsync 15\n{asking}sync 7\n"
    images = [
        image(4, ATTACH + asker + END, {PACKETS: request} if request else None),
        image(260, ATTACH + moving + END, {PACKETS: packets} | dict(memory or {})),
        image(500, ATTACH + (FOLLOW if other is None else other) + END),
    ]
    tensor = [binding("tensor", 260, DATA, 64)]
    call = HostCall(name="run", command=0, phases=2, inputs=(host_slice(0, 64),), input_batch_ends=(1,))
    if writes:
        call = HostCall(name="run", command=0, phases=1, outputs=(host_slice(0, 64),), output_batch_ends=(1,))
    return application(
        images, calls=[call], inputs=[] if writes else tensor, outputs=tensor if writes else []
    )


def sending(
    *,
    packets: Sequence[int] = (*WRITE, *CLOSE),
    body: str | None = None,
    expected: int = 1,
    wait: str = "sync 0\n",
    asking: str = "send 1, 0x14000, 3\n",
) -> Application:
    """A batch in which tile 260 writes 64 bytes."""
    whole = "send 1, 0x14000, 3\nsend 15, 0x24000, 3\ndelay 1\nsend 1, 0x14002, 3\n"
    return batch(
        packets=packets,
        body=whole if body is None else body,
        expected=expected,
        wait=wait,
        asking=asking,
        other=2 * FOLLOW,
        writes=True,
        memory={DATA: range(16)},
    )


def faults(
    package: Application, options: SimulationOptions | None = None
) -> list[tuple[ApplicationFaultKind, str]]:
    """What a run reports."""
    inputs = {tensor.name: bytes(64) for tensor in package.inputs}
    result = Simulator(package, options).run(inputs)
    assert result.outputs == {}
    assert result.cycles is None
    return [(fault.kind, str(fault)) for fault in result.faults]


Case = tuple[str, Callable[[], Application], Kind, Sequence[str]]

CASES: Sequence[Case] = (
    (
        "instruction",
        lambda: alone(ATTACH + "ld32 $m0, $m15, $m15, 1\n"),
        Kind.INSTRUCTION,
        [
            (
                "tile 7: supervisor, cycle 1, 0x4c014: ld32 $m0, $m15, $m15, 1: the access is outside SRAM:"
                " address 0x4 [INVALID_ADDRESS]"
            )
        ],
    ),
    (
        "exchange",
        lambda: alone(ATTACH + STEP + END + BARRIER, {ROW: [0x40A0001E, 0x792C0001, 0x43A00000]}),
        Kind.EXCHANGE,
        [
            (
                "exchange phase 0, tile 7, event 31, row word 1: the word at 0x60000 is sent, but nothing was"
                " ever written there"
            )
        ],
    ),
    (
        "no row",
        lambda: alone(ATTACH + STEP + END + BARRIER, {ROW: [0x40A0001E, 0x19000000, 0x12345678]}),
        Kind.ROW,
        [
            (
                "tile 7, cycle 245: the row that it calls at 0x5d000: row word 2 (12345678): is no"
                " instruction of a row"
            )
        ],
    ),
    (
        "row at a bad place",
        lambda: alone(ATTACH + "sync 3\ncall $m10, 0x17401\n" + END),
        Kind.ROW,
        [
            (
                "tile 7, cycle 174: the row that it calls at 0x5d004: it is not at a multiple of 8 bytes in"
                " executable memory"
            )
        ],
    ),
    (
        "row with a barrier",
        lambda: alone(ATTACH + STEP + END + BARRIER, {ROW: [0x41800003, 0x43A00000]}),
        Kind.ROW,
        ["tile 7, cycle 245: the row that it calls at 0x5d000: it starts with a barrier of its own"],
    ),
    (
        "runaway",
        lambda: alone(ATTACH + "again:\nbri again\n"),
        Kind.RUNAWAY,
        ["tile 7, cycle 5,001: it ran 5,000 cycles without waiting for anything"],
    ),
    (
        "deadlock at the barrier",
        lambda: together(t0=ATTACH + "sync 3\n" + END, t5=ATTACH + END, t9=ATTACH + FOLLOW + END),
        Kind.DEADLOCK,
        [
            (
                "the barrier of the chip cannot complete: of the tiles 1 wait at the barrier of the chip"
                " (first: tile 0), 1 stay away from the host (first: tile 9), 1 have ended (first: tile 5)"
            )
        ],
    ),
    (
        "deadlock at the host",
        lambda: batch(other=""),
        Kind.DEADLOCK,
        [
            (
                "host phase 0 of call run cannot begin: of the tiles 2 wait for the host (first: tile 4), 1"
                " have ended (first: tile 500)"
            )
        ],
    ),
    (
        "nobody meets the host",
        lambda: alone(END),
        Kind.DEADLOCK,
        ["the host cannot attach its pages: of the tiles 1 have ended (first: tile 7)"],
    ),
    (
        "workers",
        lambda: alone(ATTACH + "setzi $m0, busy\nrun $m0, $m15, 0\nsync 3\n.worker\nbusy:\nbrz $m15, busy\n"),
        Kind.WORKERS_ACTIVE,
        ["tile 7, cycle 8: its workers run while it waits for others"],
    ),
    (
        "sync 1 without sans",
        lambda: alone(ATTACH + "sync 1\n"),
        Kind.ABSENCE,
        ["tile 7, cycle 1: sync 1 without sans: it waits for the end of what it did not stay away from"],
    ),
    (
        "sync 3 after sans",
        lambda: alone(ATTACH + "sans 0\nsync 3\n"),
        Kind.ABSENCE,
        ["tile 7, cycle 2: sync 3 between sans 0 and its sync 1"],
    ),
    (
        "sans twice",
        lambda: alone(ATTACH + "sans 0\nsans 1\n"),
        Kind.ABSENCE,
        ["tile 7, cycle 2: sans 1, but it stays away already, and has not waited with sync 1"],
    ),
    (
        "unknown sans",
        lambda: alone(ATTACH + "sans 2\n"),
        Kind.ABSENCE,
        ["tile 7, cycle 1: sans 2: there are only 0, the barrier of the chip, and 1, the host"],
    ),
    (
        "zone",
        lambda: alone(ATTACH + "sync 4\n"),
        Kind.ZONE,
        ["tile 7, cycle 1: sync 4: nothing is known of how this zone is used"],
    ),
    (
        "control outside of a row",
        lambda: alone(ATTACH + "call $m10, 0x17400\n", {ROW: [0x64000640, 0x43A00000]}),
        Kind.OUTSIDE_ROW,
        ["tile 7, cycle 7: delayxpic 0, 0, 1600: this instruction has a meaning only in an exchange row"],
    ),
    (
        "completion never written",
        lambda: alone(ATTACH + "bri 0\n"),
        Kind.COMPLETION,
        ["tile 7, cycle 7: its program ended, but its completion word at 0x58000 was never written"],
    ),
    (
        "completion with another value",
        lambda: alone(ATTACH + END.replace("setzi $m0, 1", "setzi $m0, 2")),
        Kind.COMPLETION,
        ["tile 7, cycle 10: its program ended, but its completion word at 0x58000 is 0x2"],
    ),
    # Words to the host.
    (
        "send outside of a batch",
        lambda: alone(ATTACH + "send 1, 0x14000, 3\n", {PACKETS: READ}),
        Kind.SEND,
        ["tile 7, cycle 1: it sends outside of exchange rows and host batches"],
    ),
    (
        "send after a batch",
        lambda: batch(wait="sync 0\nsync 7\nsend 1, 0x14000, 3\n"),
        Kind.SEND,
        ["tile 260, cycle 34: it sends outside of exchange rows and host batches"],
    ),
    (
        "stream that was never started",
        lambda: batch(body="sendoff 1, 0, 3\n"),
        Kind.SEND,
        ["tile 260, cycle 30: sendoff continues a stream, but none was started"],
    ),
    (
        "send control",
        lambda: batch(body="send 1, 0x14000, 1\n"),
        Kind.SEND,
        ["tile 260, cycle 30: it sends to the host with send control 1, not 3"],
    ),
    (
        "send outside of memory",
        lambda: batch(body="send 1, 0x100, 3\n"),
        Kind.SEND,
        ["tile 260, cycle 30: it sends 2 words to the host from 0x400, outside of SRAM"],
    ),
    (
        "unwritten words",
        lambda: batch(body="send 1, 0x14001, 3\n"),
        Kind.UNINITIALISED,
        ["tile 260, cycle 30: it sends the word at 0x50008, which nothing wrote"],
    ),
    (
        "data outside of a batch",
        lambda: alone(ATTACH + "sync 0\n"),
        Kind.WORDS_EXPECTED,
        ["tile 7, cycle 1: it waits for data from the host outside of a host batch"],
    ),
    (
        "multiplexer",
        lambda: batch(mux=0x640),
        Kind.MULTIPLEXER,
        ["tile 260, cycle 32: the host answers through multiplexer value 0x604, but it listens to 0x640"],
    ),
    (
        "requester at the wrong place",
        lambda: batch(zone=15),
        Kind.REQUEST,
        [
            (
                "tile 260, cycle 32: it meets the host as requester (sync 15), which only tiles of row 0 with"
                " lane 0 or 1 do"
            )
        ],
    ),
    (
        "no request",
        lambda: batch(asking=""),
        Kind.REQUEST,
        ["tile 4, cycle 16: it meets the host as requester (sync 15), but sends no request"],
    ),
    (
        "request of no tile",
        lambda: batch(request=(0, 1 << 22)),
        Kind.REQUEST,
        ["tile 4, cycle 18: request 00000000 00400000 has bits that stand for no tile"],
    ),
    (
        "request of a tile that is not there",
        lambda: batch(request=(0x300, 0)),
        Kind.REQUEST,
        ["tile 4, cycle 18: it requests an exchange for tile 262, which the package does not hold"],
    ),
    (
        "request of another tile",
        lambda: batch(request=(1, 0)),
        Kind.REQUEST,
        [
            "tile 4, cycle 18: tile 4 requests an exchange for it, but it asks the host for nothing",
            "tile 260, cycle 32: it exchanges data with the host, but no tile requested that",
        ],
    ),
    # Packets.
    (
        "unknown packet",
        lambda: batch(packets=(0x1234, 0)),
        Kind.PACKET,
        ["tile 260, cycle 32: packet 00001234 00000000 is none that the host knows"],
    ),
    (
        "packet of another tile",
        lambda: batch(packets=(0xEC83020C, 0x401)),
        Kind.PACKET,
        ["tile 260, cycle 32: packet ec83020c 00000401 names tile 262, not the one that sends it"],
    ),
    (
        "half a packet",
        lambda: batch(body="send 0, 0x14000, 3\n"),
        Kind.PACKET,
        ["tile 260, cycle 31: packet word 0 (ec82020c) has no second word"],
    ),
    (
        "half an end",
        lambda: batch(packets=(0xE882020C, 0x401)),
        Kind.PACKET,
        [
            (
                "tile 260, cycle 32: packet e882020c 00000401 sets one of the two bits that end a program's"
                " packets"
            )
        ],
    ),
    (
        "read outside of the window",
        lambda: batch(packets=(0xEC8203FF, 0x401)),
        Kind.PACKET,
        [
            (
                "tile 260, cycle 32: packet ec8203ff 00000401 wants 64 bytes at 0x53fe0, outside of the"
                " window 0x50000..0x54000"
            )
        ],
    ),
    (
        "read of nothing somewhere",
        lambda: batch(packets=(0xCC82020C, 0x10)),
        Kind.PACKET,
        ["tile 260, cycle 32: packet cc82020c 00000010 reads no bytes, at a place in host memory"],
    ),
    (
        "write with bits of a read",
        lambda: batch(packets=(0xA0820001, 0x401)),
        Kind.PACKET,
        ["tile 260, cycle 32: packet a0820001 00000401 is a write with bits of a read"],
    ),
    (
        "write that is too long",
        lambda: batch(packets=(0xA0820000, 0x405)),
        Kind.PACKET,
        ["tile 260, cycle 32: packet a0820000 00000405 writes 320 bytes; 4 to 256 can be written at once"],
    ),
    (
        "write without its data",
        lambda: batch(packets=WRITE),
        Kind.PACKET,
        ["tile 260, cycle 32: packet a0820000 00000401 is followed by 16 words less than it announces"],
    ),
    (
        "packet behind the last",
        lambda: batch(packets=(*READ, *READ), body="send 3, 0x14000, 3\n"),
        Kind.PACKET,
        ["tile 260, cycle 34: a packet that ends the packets of its program is followed by another"],
    ),
    (
        "no last packet",
        lambda: batch(packets=(0xE082020C, 0x401)),
        Kind.PACKET,
        ["tile 260, cycle 32: its last packet does not end the packets of its program"],
    ),
    (
        "host memory that is no page",
        lambda: batch(packets=(0xEC82020C, 0x801)),
        Kind.HOST_RANGE,
        ["tile 260, cycle 32: a read of 64 bytes at 0x2000 of host memory is outside of every page"],
    ),
    (
        "host memory across pages",
        lambda: batch(packets=(0xEC82020C, 0x3F2)),
        Kind.HOST_RANGE,
        ["tile 260, cycle 32: a read of 128 bytes at 0xfc0 of host memory is outside of every page"],
    ),
    (
        "host memory across 4,096 bytes",
        lambda: replace(
            (package := batch(packets=(0xEC82020C, 0x7F2))),
            host_exchange=replace(
                package.host_exchange,
                pages=(
                    package.host_exchange.pages[0],
                    replace(package.host_exchange.pages[1], size=Bytes(8192)),
                ),
            ),
        ),
        Kind.HOST_RANGE,
        ["tile 260, cycle 32: a read of 128 bytes at 0x1fc0 of host memory crosses a multiple of 4096 bytes"],
    ),
    (
        "no close",
        lambda: sending(body="send 1, 0x14000, 3\nsend 15, 0x24000, 3\n"),
        Kind.CLOSE,
        ["tile 260, cycle 48: it writes to the host and does not close: a read of no bytes is missing"],
    ),
    (
        "close of nothing",
        lambda: sending(packets=CLOSE, body="send 1, 0x14000, 3\n"),
        Kind.CLOSE,
        ["tile 260, cycle 32: it closes, but has written nothing"],
    ),
    (
        "packets too close",
        lambda: sending(body="send 1, 0x14000, 3\nsend 15, 0x24000, 3\nsend 1, 0x14002, 3\n"),
        Kind.WRITE_SPACING,
        ["tile 260, cycle 50: a packet follows 16 cycles after the start of a write's data, which needs 18"],
    ),
    (
        "other number of words",
        lambda: batch(expected=15),
        Kind.WORDS_EXPECTED,
        ["tile 260, cycle 32: it waits for 15 words from the host, but has asked for 16"],
    ),
    (
        "no wait for words",
        lambda: batch(wait=""),
        Kind.WORDS_EXPECTED,
        ["tile 260, cycle 32: it has asked the host for 16 words and does not wait for them"],
    ),
    (
        "input that nobody reads",
        lambda: batch(packets=SHORT_READ, expected=1),
        Kind.INPUT_UNREAD,
        [
            (
                "input batch 0 of call run: no tile has read the byte at 0x1004 of host memory, from its"
                " slice of 64 bytes at 0x1000"
            )
        ],
    ),
    (
        "output that nobody writes",
        lambda: sending(
            packets=(0x80820000, 0x00004003, *CLOSE),
            body="send 1, 0x14000, 3\nsend 2, 0x24000, 3\ndelay 14\nsend 1, 0x14002, 3\n",
        ),
        Kind.OUTPUT_UNWRITTEN,
        [
            (
                "output batch 0 of call run: no tile has written the byte at 0x100c of host memory, from its"
                " slice of 64 bytes at 0x1000"
            )
        ],
    ),
    (
        "output in memory that nobody writes",
        lambda: replace(alone(ATTACH + END), outputs=(binding("state", 7, DATA, 8),)),
        Kind.OUTPUT_UNWRITTEN,
        ["tile 7: output state: nothing wrote the byte at 0x90000"],
    ),
    (
        "number of phases",
        lambda: replace(
            (package := echo()),
            host_exchange=replace(
                package.host_exchange, calls=(replace(package.host_exchange.calls[0], phases=5),)
            ),
        ),
        Kind.PHASE_COUNT,
        ["call run has 5 host phases, but its 1 input and 1 output batches take 4 meetings"],
    ),
)


@pytest.mark.parametrize(
    ("package", "kind", "texts"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_the_text_of_a_fault(package: Callable[[], Application], kind: Kind, texts: Sequence[str]) -> None:
    found = faults(package(), SimulationOptions(cycle_limit=5000))
    assert [text for _, text in found] == list(texts)
    assert {found_kind for found_kind, _ in found} == {kind}


def test_every_kind_of_fault_has_a_case() -> None:
    assert {case[2] for case in CASES} == set(Kind)


def test_all_tiles_with_a_fault_are_named() -> None:
    text = ATTACH + "sync 4\n"
    found = faults(together(t9=text, t2=ATTACH + END, t5=text))
    assert [line for _, line in found] == [
        "tile 5, cycle 1: sync 4: nothing is known of how this zone is used",
        "tile 9, cycle 1: sync 4: nothing is known of how this zone is used",
    ]


def test_an_output_of_an_earlier_run_does_not_count() -> None:
    """The second run writes twelve bytes of the same 64."""
    short = (0x80820000, 0x00004003, *CLOSE)
    again = "sync 0\nsync 7\nsync 7\n" + stored(short, PACKETS)
    again += "send 1, 0x14000, 3\nsend 2, 0x24000, 3\ndelay 14\nsend 1, 0x14002, 3\nsync 0\n"
    package = sending(wait=again, asking="send 1, 0x14000, 3\nsync 7\nsync 15\nsend 1, 0x14000, 3\n")
    simulator = Simulator(package)
    assert simulator.run().is_complete
    (fault,) = simulator.run().faults
    assert fault.kind is Kind.OUTPUT_UNWRITTEN
    assert "has written the byte at 0x100c of host memory" in fault.text


def test_a_host_that_is_asked_for_what_it_does_not_know_gives_nothing() -> None:
    """Bytes of a page that were never put there are as unknown in SRAM."""
    package = batch(
        packets=(0xEC82020C, 0x002),
        expected=32,
        wait=f"sync 0\nsetzi $m2, {STAGING:#x}\nld32 $m3, $m2, $m15, 1\nout:\nbrnz $m3, out\n",
    )
    ((kind, text),) = faults(package)
    assert kind is Kind.INSTRUCTION
    assert text.startswith("tile 260: supervisor, cycle ")
    assert "brnz $m3, 0x4c038: a value descends from SRAM that nothing wrote" in text


def leave_memory(_: tuple[int, ...], memory: KernelMemory) -> None:
    memory.write(0xE7FFE, np.zeros(4, np.uint8))


def read_beyond(_: tuple[int, ...], memory: KernelMemory) -> None:
    memory.read(0x4BFFC, 8)


def follow_unwritten(_: tuple[int, ...], memory: KernelMemory) -> None:
    memory.write(DATA + 8 * int(memory.read(DATA, 1)[0]), np.zeros(1, np.uint8))


@pytest.mark.parametrize(
    ("apply", "text"),
    [
        (leave_memory, "tile 7, cycle 7: kernel: it touches bytes 0xe7ffe..0xe8002, outside of SRAM"),
        (read_beyond, "tile 7, cycle 7: kernel: it touches bytes 0x4bffc..0x4c004, outside of SRAM"),
        (follow_unwritten, "tile 7, cycle 7: kernel: where it writes depends on bytes that nothing wrote"),
    ],
)
def test_a_meaning_that_touches_what_it_may_not(
    apply: Callable[[tuple[int, ...], KernelMemory], None], text: str
) -> None:
    program = ATTACH + "call $m10, kernel\n" + END + "kernel:\nbr $m10\n"
    package = replace(alone(program), debug_symbols=linked(program)[1])
    options = SimulationOptions(meanings={"kernel": Meaning(apply=apply)})
    assert faults(package, options) == [(Kind.UNINITIALISED, text)]


# What callers do wrong.


def message(error: type[Exception], act: Callable[[], object]) -> str:
    with pytest.raises(error) as refusal:
        act()
    return str(refusal.value)


def test_inputs_of_other_names_and_sizes() -> None:
    simulator = Simulator(echo())
    assert message(InvalidInput, lambda: simulator.run({})) == (
        "invalid input (simulation): application: input 'x' is missing.\n  next: give a file of 64 bytes"
    )
    assert message(InvalidInput, lambda: simulator.run({"x": bytes(63)})) == (
        "invalid input (simulation): application: input 'x' has 63 bytes, its file has 64.\n"
        "  next: pack the tensor as its description says"
    )
    assert message(InvalidInput, lambda: simulator.run({"x": bytes(64), "y": b""})) == (
        "invalid input (simulation): application: there is no input 'y'.\n"
        "  next: give the inputs of the package: x"
    )
    assert simulator.run({"x": bytes(64)}).is_complete, "a refused call changes nothing"


def test_calls_out_of_order() -> None:
    simulator = Simulator(echo())
    simulator.run({"x": bytes(64)})
    assert message(InvalidInput, lambda: simulator.run({"x": bytes(64)})) == (
        "invalid input (simulation): application: its program has ended after the runs that it was built"
        " for.\n"
        "  next: make a new simulator, or build the package for more runs"
    )
    assert message(InvalidInput, simulator.initialize) == (
        "invalid input (simulation): application: its weights are on the device already.\n"
        "  next: make a new simulator for other weights"
    )
    package = replace(echo(), weights=(binding("w", 260, DATA, 4),))
    package = replace(
        package,
        host_exchange=replace(
            package.host_exchange,
            calls=(
                *package.host_exchange.calls,
                HostCall(
                    name="initialize",
                    command=0,
                    phases=2,
                    inputs=(host_slice(0, 4),),
                    input_batch_ends=(1,),
                ),
            ),
        ),
    )
    assert message(InvalidInput, lambda: Simulator(package).run({"x": bytes(64)})) == (
        "invalid input (simulation): application: its weights have not been given.\n"
        "  next: initialize it with them first"
    )


def test_a_stopped_device_takes_no_calls() -> None:
    simulator = Simulator(alone(ATTACH + "sync 4\n"))
    assert not simulator.run().is_complete
    assert message(InvalidInput, simulator.run) == (
        "invalid input (simulation): application: the device has stopped in an earlier call.\n"
        "  next: make a new simulator"
    )


def test_tiles_that_the_package_does_not_hold() -> None:
    for options in (
        SimulationOptions(trace_tiles=(PhysicalTile(8),)),
        SimulationOptions(stop_at=Breakpoint(address=Address(ROW), tile=PhysicalTile(8))),
    ):
        assert message(InvalidInput, lambda options=options: Simulator(alone(END), options)) == (
            "invalid input (simulation): application: the package does not hold tile 8.\n"
            "  next: choose a physical number of its tiles"
        )


def test_calls_and_bindings_that_do_not_fit_together() -> None:
    package = echo()
    assert message(PackageInvalid, lambda: Simulator(replace(package, inputs=()))) == (
        "invalid package (simulation): application: call run takes 64 bytes, its tensors have 0.\n"
        "  next: build the package again"
    )
    assert message(PackageInvalid, lambda: Simulator(replace(package, outputs=()))) == (
        "invalid package (simulation): application: call run gives 64 bytes, which are not those of its first"
        " tensors.\n"
        "  next: build the package again"
    )
    unattached = replace(package, host_exchange=replace(package.host_exchange, attach_order=(0,)))
    assert message(PackageInvalid, lambda: Simulator(unattached)) == (
        "invalid package (simulation): application: call run uses page 1, which is never attached.\n"
        "  next: build the package again"
    )


def test_files_and_pages_that_cannot_be() -> None:
    """What a damaged package could ask for in memory is bounded before anything is made."""
    package = echo()
    exchange = package.host_exchange
    far = replace(package.inputs[0].slices[0], file_offset=Bytes(1 << 60))
    holed = replace(package, inputs=(replace(package.inputs[0], slices=(far,)),))
    page = replace(exchange.pages[1], size=Bytes(1 << 40))
    large = replace(package, host_exchange=replace(exchange, pages=(exchange.pages[0], page)))
    twice = replace(package, host_exchange=replace(exchange, attach_order=(0, 1, 1)))
    spread = replace(exchange.calls[0], outputs=(replace(host_slice(0, 64), file_offset=Bytes(1 << 60)),))
    hole = replace(package, host_exchange=replace(exchange, calls=(spread,)))
    for spoilt, text in (
        (holed, "call run takes 64 bytes, its tensors have 1,152,921,504,606,847,040"),
        (large, "its host pages have 1,099,511,631,872 bytes, or one is attached twice"),
        (twice, "its host pages have 8,192 bytes, or one is attached twice"),
        (hole, "call run gives 1,152,921,504,606,847,040 bytes, which are not those of its first tensors"),
        (
            replace(
                package, outputs=(*package.outputs, replace(package.outputs[0], name="z", slices=(far,)))
            ),
            "the file of z has 1,152,921,504,606,847,040 bytes, its slices only 64",
        ),
    ):
        assert message(PackageInvalid, lambda spoilt=spoilt: Simulator(spoilt)) == (
            f"invalid package (simulation): application: {text}.\n  next: build the package again"
        )


def test_several_invocations() -> None:
    package = echo()
    call = replace(package.host_exchange.calls[0], invocations=3)
    several = replace(package, host_exchange=replace(package.host_exchange, calls=(call,)))
    assert message(Unsupported, lambda: Simulator(several)) == (
        "unsupported (simulation): call run: it has 3 invocations, and nothing is known of what lies between"
        " them.\n"
        "  next: build the package with one invocation, and call it several times"
    )


def test_instructions_that_are_not_simulated() -> None:
    worker = "worker:\nf32v2class $a0, $a2:3\nexitz $m15\n"
    text = ATTACH + "setzi $m0, worker\nrunall $m0, $m15, 0\nsync 2\n" + END + ".worker\n" + worker
    package = replace(alone(text), debug_symbols=linked(text)[1])
    simulator = Simulator(package)
    assert message(Unsupported, simulator.run) == (
        "unsupported (simulation): instruction at worker: worker 2 cannot run f32v2class $a0, $a2:3: no"
        " source states the result codes of the finite classes.\n"
        "  next: use another instruction"
    )
    assert "the device has stopped in an earlier call" in message(InvalidInput, simulator.start)
