"""The runtime: the machine code that every tile has besides kernels and its own program.

Written with the instruction builder, one section for each routine, all in one object. What each does and in
which order is that of programs that ran on hardware; register roles and addresses are those of
``target.runtime_layout``. Copies of data are kernels and not here.

===========================  ==================================================  =====================
routine                      arguments                                           returns by
===========================  ==================================================  =====================
``runtime.entry``            first instruction of every tile                     never
``runtime.start``            start-up, first rendezvous with the host            tile program
``runtime.worker_barrier``   none; all workers have run and exited               $m7
``runtime.host_run``         $m2 batches, $m3 descriptors, $m4 host program      $m9
``runtime.follower``         none; stays away from one host batch                $m10
``runtime.repeat_call``      $m2 times, $m3 what to call with $m10               $m9
``runtime.patch_row``        $m2 row, $m3 offsets, $m4 values, $m5 count         $m9
``runtime.patch_tables``     $m2 descriptors, $m3 count, $m4 left, $m5 total     $m9
``runtime.patch_arithmetic`` the same                                            $m9
``runtime.sample_cycle``     $m2 where worker 0 leaves its cycle counter         $m10
``runtime.complete``         none; completion word, then the final halt          never
===========================  ==================================================  =====================

Routines may change $m0, $m1, $m5 to $m8 and their arguments; patches keep $m4 and $m5. Nothing but exchange
steps of a Repeat expects a value in $m6.

Two instructions differ from tile to tile: where the tile program is, and which number the tile has. Their
places are labelled; whoever makes an image writes them (:func:`tile_sites`). As linked, they would end in an
invalid program counter with the completion word unset, which no loader takes for success.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, final

from compiler.isa.assembler import assemble
from compiler.isa.builder import Builder
from compiler.isa.expressions import Symbol
from compiler.isa.linker import Image, LinkRegion, link
from compiler.isa.objects import ObjectFile
from compiler.isa.program import SectionKind
from compiler.isa.registers import VERTEX_BASE, WORKER_BASE, ZERO, a, m
from compiler.target.control_registers import UPPER_REGISTERS, SupervisorRegister, WorkerRegister
from compiler.target.instructions import Mode
from compiler.target.memory import FETCH_LOOKAHEAD, ByteRange
from compiler.target.registers import HOST_MUX, NEUTRAL_MUX, Absence, MainRegister, SyncZone
from compiler.target.runtime_layout import (
    BARRIER_RETURN,
    COMPLETED,
    DEFAULT_LAYOUT,
    ENDPOINTS_PER_TILE,
    HELPER_RETURN,
    KERNEL_RETURN,
    STACK_POINTER,
    sync_endpoint,
)
from compiler.target.tiles import WORKERS_PER_TILE
from compiler.target.units import WORD_BYTES, Address, Bytes, LogicalTile, Word
from compiler.target.words import setzi as setzi_word

ENTRY: Final = "runtime.entry"
START: Final = "runtime.start"
WORKER_BARRIER: Final = "runtime.worker_barrier"
HOST_RUN: Final = "runtime.host_run"
FOLLOWER: Final = "runtime.follower"
REPEAT_CALL: Final = "runtime.repeat_call"
PATCH_ROW: Final = "runtime.patch_row"
PATCH_TABLES: Final = "runtime.patch_tables"
PATCH_ARITHMETIC: Final = "runtime.patch_arithmetic"
SAMPLE_CYCLE: Final = "runtime.sample_cycle"
COMPLETE: Final = "runtime.complete"

ROUTINES: Final = (
    START,
    WORKER_BARRIER,
    HOST_RUN,
    FOLLOWER,
    REPEAT_CALL,
    PATCH_ROW,
    PATCH_TABLES,
    PATCH_ARITHMETIC,
    SAMPLE_CYCLE,
    COMPLETE,
)
"""What tile programs can call; every image has all of it."""

PROGRAM_SITE: Final = "runtime.site.tile_program"
"""The instruction that loads the address of the tile program into $m0."""

IDENTITY_SITE: Final = "runtime.site.identity"
"""The instruction that loads the barrier identity of a tile's worker 0 into a worker's $m0."""

DESCRIPTOR_WORDS: Final = 3
"""Words of a descriptor of ``runtime.host_run``: destination, header, packets."""

PACKET_COUNT_SHIFT: Final = 24
"""Header of a host batch: packet words to copy to the window are above this bit."""

KEEP_REQUEST_BIT: Final = 23
"""Header of a host batch: the request that starts the window stays, packets go behind it."""

REQUEST_BYTES: Final = Bytes(8)
"""Bytes of the request in front of the packets."""

TABLE_PATCH_WORDS: Final = 2
"""Words of a descriptor of ``runtime.patch_tables``: word address, table address."""

ARITHMETIC_PATCH_WORDS: Final = 3
"""Words of a descriptor of ``runtime.patch_arithmetic``: word address, value in iteration 0, step."""

PARALLEL_PATCHES: Final = 24
"""From so many words on, workers share the work of ``runtime.patch_row``. Policy."""

_WARM_UP_DRAWS: Final = 15
"""Random numbers that each worker throws away, so that neighbouring seeds part. Policy."""

_LAYOUT: Final = DEFAULT_LAYOUT
_RETURN: Final = m(KERNEL_RETURN)
_HELPER_RETURN: Final = m(HELPER_RETURN)
_STACK: Final = m(STACK_POINTER)
_LOCAL: Final = int(SyncZone.LOCAL)


def runtime_object() -> ObjectFile:
    """The runtime as an object; the same bytes every time."""
    code = Builder("runtime")
    for write in _WRITERS:
        write(code)
    return assemble(code.finish(), "runtime")


def link_tile_code(kernels: Sequence[ObjectFile], symbols: Sequence[str]) -> Image:
    """Link the runtime and the kernels of a program; the image is the same on every tile.

    Args:
        kernels: objects that define the symbols.
        symbols: kernels that the program calls.

    Raises:
        DoesNotFit: the code ranges of a tile are too small.
        InvalidInput: a kernel is missing or defined twice.
    """
    image = link(
        (runtime_object(), *kernels),
        entry=ENTRY,
        keep=(*ROUTINES, PROGRAM_SITE, IDENTITY_SITE, *sorted(symbols)),
        regions=_REGIONS,
    )
    if image.entry != _LAYOUT.entry:
        raise ValueError(f"the entry is linked at {image.entry}, the loader starts at {_LAYOUT.entry:#x}")
    return image


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileSite:
    """An instruction that differs from tile to tile."""

    address: Address
    word: Word


def tile_sites(image: Image, tile: LogicalTile, program: Address) -> tuple[TileSite, TileSite]:
    """What a tile's copy of the image holds at the labelled places.

    Args:
        image: from :func:`link_tile_code`.
        tile: the tile.
        program: where its program starts.
    """
    values = {PROGRAM_SITE: int(program), IDENTITY_SITE: sync_endpoint(tile, 0)}
    first, second = (
        TileSite(address=Address(image.address_of(site)), word=setzi_word(MainRegister.M0, value))
        for site, value in values.items()
    )
    return first, second


def _code_region(name: str, span: ByteRange) -> LinkRegion:
    # Data may begin where the range ends: the fetcher must not reach it.
    end = span.end - FETCH_LOOKAHEAD
    return LinkRegion(name=name, start=span.start, end=end, executable=True, interleave=1)


_REGIONS: Final = (
    _code_region(
        "lower code",
        ByteRange(start=_LAYOUT.entry, size=Bytes(_LAYOUT.window.start - _LAYOUT.entry)),
    ),
    _code_region("upper code", _LAYOUT.upper_code_range),
)


def _begin(code: Builder, name: str, mode: Mode = Mode.SUPERVISOR) -> None:
    """Open a routine's section at its label."""
    code.section(f".text.{name}", SectionKind.CODE, mode)
    code.align(8)
    code.label(name, is_global=True, is_function=True)


def _begin_workers(code: Builder, name: str, label: str) -> None:
    """Continue a routine's section with code of workers."""
    code.section(f".text.{name}", SectionKind.CODE, Mode.WORKER)
    code.align(8)
    code.label(label)


def _set_mux(code: Builder, value: int) -> None:
    code.emit("setzi", m(0), value)
    code.emit("put", int(SupervisorRegister.INCOMING_MUX), m(0))


def _run_all(code: Builder, entry: str, vertex_base: int = int(MainRegister.ZERO)) -> None:
    """Start all workers with one vertex base and wait until the last has exited."""
    code.emit("setzi", m(0), Symbol(entry))
    code.emit("runall", m(0), m(vertex_base), 0)
    code.emit("sync", _LOCAL)


def _worker_number(code: Builder, register: int) -> None:
    code.emit("get", m(register), int(WorkerRegister.WSR))
    code.emit("and", m(register), m(register), WorkerRegister.WSR.field("CTXTID_M1").mask)


def _write_entry(code: Builder) -> None:
    _begin(code, ENTRY)
    code.emit("setzi", m(0), Symbol(START))
    code.emit("br", m(0))


def _write_start(code: Builder) -> None:
    code.section(f".text.{START}", SectionKind.CODE, Mode.SUPERVISOR)
    code.align(8)
    code.emit("nop", note="programs that ran have a word in front of the start")
    code.label(START, is_global=True, is_function=True)
    code.emit("sync", int(SyncZone.INTERNAL), note="the loader has released all tiles")
    code.emit("sync", _LOCAL, note="the loader's workers have retired")
    _set_mux(code, NEUTRAL_MUX)
    code.emit("put", int(SupervisorRegister.OUTGOING_BASE), ZERO)
    code.emit("get", m(0), int(SupervisorRegister.FP_ICTL))
    code.emit("or", m(0), m(0), SupervisorRegister.FP_ICTL.field("OFLO").mask)
    code.emit("put", int(SupervisorRegister.FP_ICTL), m(0), note="overflow faults")
    code.emit("setzi", _STACK, int(_LAYOUT.stacks))
    for worker in range(WORKERS_PER_TILE):
        code.emit("put", int(SupervisorRegister.WORKER0_BASE) + worker, _STACK)
        code.emit("add", _STACK, _STACK, int(_LAYOUT.stack_size))
    _run_all(code, "runtime.worker_init")
    _set_mux(code, HOST_MUX)
    code.emit("sync", int(SyncZone.EXTERNAL_2_HOST), note="the host has attached its pages")
    _set_mux(code, NEUTRAL_MUX)
    code.label(PROGRAM_SITE, is_global=True)
    code.emit("setzi", m(0), 0)
    code.emit("br", m(0))


def _write_worker_init(code: Builder) -> None:
    """Identity at barriers and random seed of a worker, which go through its stack to the float file."""
    _begin(code, "runtime.worker_init", Mode.WORKER)
    _worker_number(code, 1)
    code.label(IDENTITY_SITE, is_global=True)
    code.emit("setzi", m(0), 0)
    code.emit("or", m(0), m(0), m(1))
    code.emit("put", int(WorkerRegister.SYNC_ENDPOINT), m(0))
    code.emit("add", m(0), m(0), ENDPOINTS_PER_TILE, note="the seed is the identity on the next tile")
    code.emit("st32", m(0), WORKER_BASE, ZERO, 0)
    code.emit("ld32", a(0), WORKER_BASE, ZERO, 0)
    code.emit("uput", int(WorkerRegister.PRNG_SEED) - UPPER_REGISTERS, a(0))
    with code.repeat(_WARM_UP_DRAWS):
        code.bundle(("nop",), ("urand32", a(0)))
    code.emit("exitz", ZERO)


def _write_worker_barrier(code: Builder) -> None:
    _begin(code, WORKER_BARRIER)
    _run_all(code, "runtime.idle_worker")
    code.emit("br", m(BARRIER_RETURN))
    _begin_workers(code, WORKER_BARRIER, "runtime.idle_worker")
    code.emit("exitz", ZERO)


def _copy_words(
    code: Builder, label: str, *, source: int, destination: int, count: int, scratch: int
) -> None:
    """Copy words one after the other; changes all four registers."""
    code.emit("brz", m(count), Symbol(f"{label}.done"))
    loop = code.label(label)
    code.emit("ld32", m(scratch), m(source), ZERO, 0)
    code.emit("add", m(source), m(source), int(WORD_BYTES))
    code.emit("st32", m(scratch), m(destination), ZERO, 0)
    code.emit("add", m(destination), m(destination), int(WORD_BYTES))
    code.emit("add", m(count), m(count), -1)
    code.emit("brnz", m(count), loop)
    code.label(f"{label}.done")


def _write_host_run(code: Builder) -> None:
    """For each batch: packets into the window, the host program, what arrived to where it belongs."""
    _begin(code, HOST_RUN)
    # A Repeat may have left a base behind, and host programs send from absolute addresses.
    code.emit("put", int(SupervisorRegister.OUTGOING_BASE), ZERO)
    batch = code.label(".Lhost_run.batch")
    code.emit("ld32", m(5), m(3), ZERO, 1, note="header")
    code.emit("ld32", m(0), m(3), ZERO, 2, note="packets")
    code.emit("shr", m(6), m(5), KEEP_REQUEST_BIT - REQUEST_BYTES.bit_length() + 1)
    code.emit("and", m(6), m(6), int(REQUEST_BYTES))
    code.emit("setzi", m(1), int(_LAYOUT.window.start))
    code.emit("add", m(1), m(1), m(6))
    code.emit("shr", m(6), m(5), PACKET_COUNT_SHIFT)
    _copy_words(code, ".Lhost_run.packets", source=0, destination=1, count=6, scratch=7)
    code.emit("setzi", _RETURN, Symbol(".Lhost_run.after"))
    code.emit("br", m(4))
    code.label(".Lhost_run.after")
    code.emit("ld32", m(0), m(3), ZERO, 0, note="destination")
    code.emit("setzi", m(1), int(_LAYOUT.staging))
    code.emit("shl", m(6), m(5), 32 - KEEP_REQUEST_BIT)
    code.emit("shr", m(6), m(6), 32 - KEEP_REQUEST_BIT)
    _copy_words(code, ".Lhost_run.data", source=1, destination=0, count=6, scratch=7)
    code.emit("add", m(3), m(3), DESCRIPTOR_WORDS * WORD_BYTES)
    code.emit("add", m(2), m(2), -1)
    code.emit("brnz", m(2), batch)
    code.emit("br", _HELPER_RETURN)


def _write_follower(code: Builder) -> None:
    _begin(code, FOLLOWER)
    code.emit("sans", int(Absence.EXTERNAL))
    code.emit("sync", int(SyncZone.ABSENCE))
    code.emit("br", _RETURN)


def _write_repeat_call(code: Builder) -> None:
    _begin(code, REPEAT_CALL)
    code.emit("setzi", _RETURN, Symbol(".Lrepeat_call.after"))
    again = code.label(".Lrepeat_call.again")
    code.emit("br", m(3))
    code.label(".Lrepeat_call.after")
    code.emit("add", m(2), m(2), -1)
    code.emit("brnz", m(2), again)
    code.emit("br", _HELPER_RETURN)


def _write_patch_row(code: Builder) -> None:
    """Words that differ between uses of a row: one after the other or, when many, shared by the workers."""
    _begin(code, PATCH_ROW)
    code.emit("brz", m(5), Symbol(".Lpatch_row.done"))
    code.emit("cmpult", m(0), m(5), PARALLEL_PATCHES)
    code.emit("brz", m(0), Symbol(".Lpatch_row.many"))
    loop = code.label(".Lpatch_row.loop")
    code.emit("ld32", m(0), m(3), ZERO, 0)
    code.emit("ld32", m(1), m(4), ZERO, 0)
    code.emit("add", m(3), m(3), int(WORD_BYTES))
    code.emit("add", m(4), m(4), int(WORD_BYTES))
    code.emit("add", m(0), m(2), m(0))
    code.emit("st32", m(1), m(0), ZERO, 0)
    code.emit("add", m(5), m(5), -1)
    code.emit("brnz", m(5), loop)
    code.label(".Lpatch_row.done")
    code.emit("br", _HELPER_RETURN)
    code.label(".Lpatch_row.many")
    frame = 4 * WORD_BYTES
    code.emit("add", _STACK, _STACK, -frame)
    for word, register in enumerate((2, 3, 4, 5)):
        code.emit("st32", m(register), _STACK, ZERO, word)
    _run_all(code, "runtime.patch_row.worker", int(STACK_POINTER))
    code.emit("add", _STACK, _STACK, frame)
    code.emit("br", _HELPER_RETURN)
    _begin_workers(code, PATCH_ROW, "runtime.patch_row.worker")
    _worker_number(code, 0)
    for word in range(4):
        code.emit("ld32", m(1 + word), VERTEX_BASE, ZERO, word)
    code.emit("shl", m(0), m(0), 2)
    code.emit("shl", m(4), m(4), 2, note="bytes of the lists")
    again = code.label(".Lpatch_row.share")
    code.emit("ld32", m(5), m(2), m(0), 0)
    code.emit("ld32", m(6), m(3), m(0), 0)
    code.emit("add", m(5), m(1), m(5))
    code.emit("st32", m(6), m(5), ZERO, 0)
    code.emit("add", m(0), m(0), WORKERS_PER_TILE * WORD_BYTES)
    code.emit("cmpult", m(5), m(0), m(4))
    code.emit("brnz", m(5), again)
    code.emit("exitz", ZERO)


def _write_patch_tables(code: Builder) -> None:
    """Word := table[iteration], for every descriptor."""
    _begin(code, PATCH_TABLES)
    code.emit("sub", m(8), m(5), m(4), note="iteration")
    code.emit("shl", m(8), m(8), 2)
    loop = code.label(".Lpatch_tables.loop")
    code.emit("ld32", m(0), m(2), ZERO, 0)
    code.emit("ld32", m(1), m(2), ZERO, 1)
    code.emit("add", m(2), m(2), TABLE_PATCH_WORDS * WORD_BYTES)
    code.emit("ld32", m(1), m(1), m(8), 0)
    code.emit("st32", m(1), m(0), ZERO, 0)
    code.emit("add", m(3), m(3), -1)
    code.emit("brnz", m(3), loop)
    code.emit("br", _HELPER_RETURN)


def _write_patch_arithmetic(code: Builder) -> None:
    """Word := value + step * iteration modulo 2^32, for every descriptor: the loop that was measured."""
    _begin(code, PATCH_ARITHMETIC)
    code.emit("sub", m(8), m(5), m(4), note="iteration")
    loop = code.label(".Lpatch_arithmetic.loop")
    code.emit("ld32", m(0), m(2), ZERO, 0)
    code.emit("ld32", m(1), m(2), ZERO, 1)
    code.emit("ld32", m(7), m(2), ZERO, 2)
    code.emit("mul", m(7), m(7), m(8))
    code.emit("add", m(2), m(2), ARITHMETIC_PATCH_WORDS * WORD_BYTES)
    code.emit("add", m(1), m(1), m(7))
    code.emit("st32", m(1), m(0), ZERO, 0)
    code.emit("add", m(3), m(3), -1)
    code.emit("brnz", m(3), loop)
    code.emit("br", _HELPER_RETURN)


def _write_sample_cycle(code: Builder) -> None:
    """Worker 0 stores its counter, the lower word; the address reaches it through the lowest worker stack."""
    _begin(code, SAMPLE_CYCLE)
    code.emit("setzi", m(5), int(_LAYOUT.stacks))
    code.emit("st32", m(2), m(5), ZERO, 0)
    _run_all(code, "runtime.sample_worker", 5)
    code.emit("br", _RETURN)
    _begin_workers(code, SAMPLE_CYCLE, "runtime.sample_worker")
    _worker_number(code, 0)
    code.emit("brnz", m(0), Symbol(".Lsample_worker.exit"))
    code.emit("get", m(1), int(WorkerRegister.COUNT_L))
    code.emit("ld32", m(2), VERTEX_BASE, ZERO, 0)
    code.emit("st32", m(1), m(2), ZERO, 0)
    code.label(".Lsample_worker.exit")
    code.emit("exitz", ZERO)


def _write_complete(code: Builder) -> None:
    """The completion word, then the branch to address 0 that loaders take for the end."""
    _begin(code, COMPLETE)
    code.emit("setzi", m(0), COMPLETED)
    code.emit("setzi", m(1), int(_LAYOUT.completion))
    code.emit("st32", m(0), m(1), ZERO, 0)
    code.emit("setzi", m(0), 0)
    code.emit("br", m(0))


_WRITERS: Final[tuple[Callable[[Builder], None], ...]] = (
    _write_entry,
    _write_start,
    _write_worker_init,
    _write_worker_barrier,
    _write_host_run,
    _write_follower,
    _write_repeat_call,
    _write_patch_row,
    _write_patch_tables,
    _write_patch_arithmetic,
    _write_sample_cycle,
    _write_complete,
)
