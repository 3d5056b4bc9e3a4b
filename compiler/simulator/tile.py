"""One tile, or many side by side: memory, registers, and running them.

A :class:`Tile` is a place with identity: arrays that the interpreter changes. It knows nothing of files,
kernels or other tiles; ``harness`` loads programs and calls them.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from compiler.errors import Unsupported
from compiler.simulator import state as places
from compiler.simulator.core import run_tile
from compiler.simulator.decoder import decode_tables
from compiler.simulator.faults import (
    Fault,
    FaultKind,
    NamedRange,
    context_name,
    instruction_text,
    locate,
)
from compiler.simulator.matrix import fill_byte_values
from compiler.simulator.operations import UNSUPPORTED_MNEMONICS
from compiler.simulator.state import (
    ARF,
    BASE,
    CODE_WORDS,
    CONTEXT_STRIDE,
    CONTEXTS,
    MRF,
    SIZE,
    SUPERVISOR,
    SUPERVISOR_CSR,
    WORKERS,
)
from compiler.simulator.supervisor import launch
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import SUPERVISOR_LOCAL_SYNC
from compiler.target.instructions import Mode, instruction_table
from compiler.target.isa_decisions import Decisions, our_decisions

STAGE: Final = "simulation"

POISON: Final = 0x7FFF7FFF
"""Word of SRAM that nothing wrote: NaN as binary32 and as two halves."""


@final
class Perturbation(Enum):
    """What happens to the results of transcendental functions."""

    NONE = places.PERTURB_NONE
    """They are correctly rounded."""
    UP = places.PERTURB_UP
    """One unit in the last place away from zero."""
    DOWN = places.PERTURB_DOWN
    """One unit in the last place toward zero."""
    MIXED = places.PERTURB_MIXED
    """One or the other, by the operands."""


@final
class Stop(Enum):
    """Why a tile returned to its caller."""

    LIMIT = places.STOP_LIMIT
    """The cycle limit came first."""
    FAULT = places.STOP_FAULT
    RETURNED = places.STOP_RETURN
    """The supervisor branched to address 0."""
    EXCHANGE = places.STOP_EXCHANGE
    """The supervisor is about to run an instruction of the exchange."""
    UNSUPPORTED = places.STOP_UNSUPPORTED
    IDLE = places.STOP_IDLE
    """No context is active."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileOptions:
    """How a tile is simulated.

    Args:
        decisions: answers to open questions of the instruction set, which the program was built with.
        poison: treat SRAM that nothing wrote, and registers that a launch leaves undefined, as unknown and
            refuse their use; otherwise they read as NaN patterns like any other data.
        track: keep bitmaps of read and written bytes.
        perturbation: of transcendental results.
        physical: the tile's number in TILE_ID.
    """

    decisions: Decisions
    poison: bool = True
    track: bool = False
    perturbation: Perturbation = Perturbation.NONE
    physical: int = 0


def default_options() -> TileOptions:
    """Our decisions, poison on, nothing tracked or perturbed."""
    return TileOptions(decisions=our_decisions())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class QueueReport:
    """The first matrix instruction whose result depends on an open question: see ``matrix``."""

    context: int
    address: int
    cycle: int
    symbol: str | None

    def __str__(self) -> str:
        """One line for people."""
        where = self.symbol if self.symbol is not None else f"{self.address:#x}"
        return (
            f"{context_name(self.context)}, cycle {self.cycle}, {where}: results depend on whether the"
            " queues of the matrix units are first in, first out or addressed by phase"
        )


@final
class Tile:
    """A tile processor and its SRAM.

    Args:
        options: how it is simulated.
        buffers: rows of the arrays of several tiles, or None to own them.
    """

    def __init__(self, options: TileOptions, buffers: "TileBuffers | None" = None) -> None:
        own = TileBuffers(1, track=options.track) if buffers is None else buffers
        self.options: Final = options
        self.state: Final = own.state[0]
        self.memory: Final = own.memory[0]
        self.shadow: Final = own.shadow[0]
        self.touched: Final = own.touched[0]
        self._decoded: Final = own.decoded[0]
        self._accumulators: Final = own.accumulators[0]
        self._weights: Final = own.weights[0]
        tables = decode_tables(options.decisions)
        self._forms: Final = tables.forms
        self._lookup: Final = tables.lookup
        self.ranges: list[NamedRange] = []
        """Symbols and operands that messages may name."""
        fill_byte_values(self._weights)
        self.state[places.UNDEFINED] = places.NEVER if options.poison else POISON
        # Nobody knows what accumulators hold before somebody clears them.
        stride, sums = places.ACCUMULATOR_STRIDE, places.IN_QUEUE
        self._accumulators.reshape(WORKERS, stride)[:, :sums] = np.nan
        # Nor how random numbers begin; a generator of zeros would give nothing but zeros.
        for worker in range(WORKERS):
            self.state[self._base(worker) + places.PRNG_0] = worker + 1
        # No rendezvous is pending.
        self.state[places.LAST_EXIT] = -int(SUPERVISOR_LOCAL_SYNC)
        constants = options.decisions.constants
        self.state[places.PERTURB] = options.perturbation.value
        self.state[places.WEIGHT_FORMAT_BIT] = constants["FP_NFMT_CWEI_FMT"]
        self.state[places.OPERAND_FORMAT_BIT] = constants["FP_NFMT_ARF_FMT"]
        self.state[places.SCALE_BIT] = constants["FP_SCL_SCALE"]
        self.state[SUPERVISOR_CSR + SupervisorRegister.TILE_ID] = options.physical
        if not options.poison:
            self.shadow[:] = 15

    # Memory.

    def place(self, address: int, data: bytes | npt.NDArray[Any]) -> None:
        """Write bytes, as the loader or host would.

        Raises:
            ValueError: they do not lie in SRAM.
        """
        raw = np.frombuffer(
            data if isinstance(data, bytes) else np.ascontiguousarray(data).tobytes(), np.uint8
        )
        start = self._offset(address, raw.size)
        self.memory.view(np.uint8)[start : start + raw.size] = raw
        first, last = start // 4, (start + raw.size + 3) // 4
        written = np.zeros((last - first) * 4, np.uint8)
        written[start - 4 * first : start - 4 * first + raw.size] = 1
        self.shadow[first:last] |= np.packbits(written.reshape(-1, 4), axis=1, bitorder="little")[:, 0]
        first, last = min(first & ~1, CODE_WORDS), min((last + 1) & ~1, CODE_WORDS)
        self._decoded[first:last] = 0

    def read(self, address: int, size: int) -> bytes:
        """Bytes of SRAM, written or not.

        Raises:
            ValueError: they do not lie in SRAM.
        """
        start = self._offset(address, size)
        return self.memory.view(np.uint8)[start : start + size].tobytes()

    def written(self, address: int, size: int) -> npt.NDArray[np.bool_]:
        """For each byte, whether anything wrote it: bool [size]."""
        return self._bits(self.shadow, address, size, low=True)

    def bytes_read(self, address: int = BASE, size: int = SIZE) -> npt.NDArray[np.bool_]:
        """For each byte, whether an instruction loaded it: bool [size]. Needs ``track``."""
        return self._bits(self._tracked(), address, size, low=True)

    def bytes_written(self, address: int = BASE, size: int = SIZE) -> npt.NDArray[np.bool_]:
        """For each byte, whether an instruction stored it: bool [size]. Needs ``track``."""
        return self._bits(self._tracked(), address, size, low=False)

    def forget_touched(self) -> None:
        """Start the bitmaps of read and written bytes again."""
        self.touched[:] = 0

    def _tracked(self) -> npt.NDArray[np.uint8]:
        if self.touched.size == 0:
            raise ValueError("this tile does not track touched bytes")
        return self.touched

    def _bits(
        self, masks: npt.NDArray[np.uint8], address: int, size: int, *, low: bool
    ) -> npt.NDArray[np.bool_]:
        start = self._offset(address, size)
        first, last = start // 4, (start + size + 3) // 4
        bits = np.unpackbits(masks[first:last, None], axis=1, bitorder="little")
        nibble = bits[:, :4] if low else bits[:, 4:]
        return nibble.reshape(-1)[start - 4 * first : start - 4 * first + size].astype(np.bool_)

    @staticmethod
    def _offset(address: int, size: int) -> int:
        if size < 0 or address < BASE or address + size > BASE + SIZE:
            raise ValueError(f"bytes {address:#x}..{address + size:#x} are not in SRAM")
        return address - BASE

    # Registers.

    def main_register(self, context: int, number: int) -> int:
        """A register of the main file."""
        return int(self.state[self._base(context) + MRF + number])

    def set_main_register(self, context: int, number: int, value: int) -> None:
        """Write a register of the main file; the zero register keeps its value."""
        if number != 15:
            self.state[self._base(context) + MRF + number] = value & 0xFFFFFFFF
            self.state[self._base(context) + places.TAINT] &= ~(1 << number)

    def arithmetic_register(self, worker: int, number: int) -> int:
        """A register of a worker's arithmetic file."""
        return int(self.state[self._base(worker) + ARF + number])

    def set_arithmetic_register(self, worker: int, number: int, value: int) -> None:
        """Write a register of a worker's arithmetic file; only $a0 to $a7 have storage."""
        if not 0 <= number < 8:
            raise ValueError(f"$a{number} has no storage")
        self.state[self._base(worker) + ARF + number] = value & 0xFFFFFFFF
        self.state[self._base(worker) + places.TAINT] &= ~(1 << (16 + number))

    def accumulator(self, worker: int, number: int) -> np.float32:
        """AACC[number] of a worker."""
        place = number // 2 + (places.ODD if number & 1 else places.EVEN)
        return np.float32(self._accumulators[worker * places.ACCUMULATOR_STRIDE + place])

    def program_counter(self, context: int) -> int:
        """Address of the next instruction of a context."""
        return int(self.state[self._base(context) + places.PC])

    def is_active(self, context: int) -> bool:
        """Whether a context runs (a supervisor waiting for workers does)."""
        return bool(self.state[self._base(context) + places.STATUS] != places.INACTIVE)

    def control_register(self, register: SupervisorRegister) -> int:
        """What a control register of the supervisor holds."""
        return int(self.state[SUPERVISOR_CSR + register])

    def set_control_register(self, register: SupervisorRegister, value: int) -> None:
        """Write a control register of the supervisor that merely holds a value."""
        self.state[SUPERVISOR_CSR + register] = value & 0xFFFFFFFF

    @property
    def cycle(self) -> int:
        """Cycles since the tile was made."""
        return int(self.state[places.CYCLE])

    @property
    def instructions(self) -> int:
        """Instructions that workers executed; a bundle counts two."""
        return int(self.state[places.INSTRUCTIONS])

    @property
    def supervisor_instructions(self) -> int:
        """Instructions that the supervisor executed."""
        return int(self.state[places.SUPERVISOR_INSTRUCTIONS])

    @property
    def matrix_instructions(self) -> int:
        """Instructions of the matrix units among them."""
        return int(self.state[places.AMP_INSTRUCTIONS])

    @property
    def bytes_held(self) -> int:
        """Host memory of its arrays, used or not."""
        arrays = (self.state, self.memory, self.shadow, self.touched)
        arrays += (self._decoded, self._accumulators, self._weights)
        return sum(array.nbytes for array in arrays)

    @staticmethod
    def _base(context: int) -> int:
        if not 0 <= context < CONTEXTS:
            raise ValueError(f"there is no context {context}")
        return context * CONTEXT_STRIDE

    # Running.

    def start_supervisor(self, address: int) -> None:
        """Let the supervisor continue at an address."""
        base = self._base(SUPERVISOR)
        self.state[places.FAULT_CODE] = places.NO_FAULT
        self.state[base + places.PC] = address
        self.state[base + places.STATUS] = places.ACTIVE
        self.state[base + places.READY] = self.cycle

    def stop(self) -> None:
        """Stop every context where it is, and forget a fault."""
        for context in range(CONTEXTS):
            self.state[self._base(context) + places.STATUS] = places.INACTIVE
            self.state[self._base(context) + places.REPEAT_COUNT] = 0
        self.state[places.ACTIVE_WORKERS] = 0
        self.state[places.FAULT_CODE] = places.NO_FAULT

    def start_worker(self, worker: int, entry: int, vertex_base: int) -> None:
        """Start a worker as ``run`` does, without a supervisor.

        Raises:
            ValueError: there is no such worker, or it is running.
        """
        if not 0 <= worker < WORKERS:
            raise ValueError(f"there is no worker {worker}")
        if self.is_active(worker):
            raise ValueError(f"worker {worker} is running")
        self.state[places.FAULT_CODE] = places.NO_FAULT
        launch(self.state, worker, entry, vertex_base, self.cycle)

    def advance(self, limit: int) -> Stop:
        """Run until cycle ``limit`` or until something stops the tile.

        A tile that has a fault stays there until a context is started.

        Raises:
            Unsupported: an instruction is not simulated.
        """
        if self.state[places.FAULT_CODE] != places.NO_FAULT:
            return Stop.FAULT
        stop = Stop(
            run_tile(
                self.state,
                self.memory,
                self.shadow,
                self.touched,
                self._decoded,
                self._accumulators,
                self._weights,
                self._forms,
                self._lookup,
                limit,
            )
        )
        if stop is Stop.UNSUPPORTED:
            raise self.unsupported()
        return stop

    def fault(self) -> Fault:
        """The fault that stopped the tile."""
        context = int(self.state[places.FAULT_CONTEXT])
        address = int(self.state[places.FAULT_PC])
        data = int(self.state[places.FAULT_DATA])
        kind = FaultKind(int(self.state[places.FAULT_CODE]))
        text = "no instruction" if kind is FaultKind.INVALID_PC else self.instruction_at(address, context)
        return Fault(
            kind=kind,
            context=context,
            address=address,
            instruction=text,
            cycle=int(self.state[places.FAULT_CYCLE]),
            symbol=locate(address, self.ranges),
            data=data,
            operand=locate(data, self.ranges),
        )

    def instruction_at(self, address: int, context: int) -> str:
        """Text of the instruction or bundle at an address."""
        offset = address - BASE
        if address & 3 or not 0 <= offset < SIZE:
            return "no instruction"
        word = int(self.memory[offset // 4])
        following = int(self.memory[offset // 4 + 1]) if offset + 4 < SIZE else 0
        return instruction_text(word, following, Mode.SUPERVISOR if context == SUPERVISOR else Mode.WORKER)

    def queue_report(self) -> QueueReport | None:
        """The first result that depends on the unknown model of the matrix queues, or None."""
        address = int(self.state[places.QUEUE_PC])
        if address == 0:
            return None
        return QueueReport(
            context=int(self.state[places.QUEUE_CONTEXT]),
            address=address,
            cycle=int(self.state[places.QUEUE_CYCLE]),
            symbol=locate(address, self.ranges),
        )

    def unsupported(self) -> Unsupported:
        """The error for the instruction before which the tile stopped."""
        context = self._running_context()
        address = int(self.state[self._base(context) + places.CURRENT_PC])
        text = self.instruction_at(address, context)
        reasons = [reason for name, reason in UNSUPPORTED_MNEMONICS.items() if name in text.split()]
        if reasons:
            reason = reasons[0]
        elif any(name.endswith("amp") and name in text for name in instruction_table().mnemonics):
            reason = "no source states what its flags mean"
        else:
            reason = "the exchange is not part of a single tile"
        return Unsupported(
            f"{context_name(context)} cannot run {text}: {reason}",
            stage=STAGE,
            subject=f"instruction at {locate(address, self.ranges) or hex(address)}",
            next_step="use another instruction",
        )

    def _running_context(self) -> int:
        """The context whose instruction stopped the tile, by the slot of the cycle."""
        worker = self.cycle % WORKERS
        return worker if self.state[self._base(worker) + places.STATUS] == places.ACTIVE else SUPERVISOR


@final
class TileBuffers:
    """Arrays of several tiles, one row each.

    Args:
        count: tiles.
        track: whether to keep bitmaps of touched bytes.
    """

    def __init__(self, count: int, *, track: bool) -> None:
        self.state = np.zeros((count, places.STATE_SIZE), np.int64)
        self.memory = np.full((count, places.MEMORY_WORDS), POISON, np.uint32)
        self.shadow = np.zeros((count, places.MEMORY_WORDS), np.uint8)
        self.touched = np.zeros((count, places.MEMORY_WORDS if track else 0), np.uint8)
        self.decoded = np.zeros((count, CODE_WORDS), np.int64)
        self.accumulators = np.zeros((count, WORKERS * places.ACCUMULATOR_STRIDE), np.float32)
        self.weights = np.zeros((count, places.WEIGHT_COUNT), np.float64)

    def row(self, index: int) -> "TileBuffers":
        """The arrays of one tile, shared."""
        part = TileBuffers(0, track=False)
        part.state = self.state[index : index + 1]
        part.memory = self.memory[index : index + 1]
        part.shadow = self.shadow[index : index + 1]
        part.touched = self.touched[index : index + 1]
        part.decoded = self.decoded[index : index + 1]
        part.accumulators = self.accumulators[index : index + 1]
        part.weights = self.weights[index : index + 1]
        return part


def make_tiles(count: int, options: TileOptions) -> tuple[Tile, ...]:
    """Tiles side by side in shared arrays."""
    buffers = TileBuffers(count, track=options.track)
    return tuple(Tile(options, buffers.row(index)) for index in range(count))


def advance_all(tiles: Sequence[Tile], limit: int, threads: int = 1) -> tuple[Stop, ...]:
    """Run each tile to a cycle limit. Tiles do not interact, so threads change nothing but the time.

    Raises:
        Unsupported: of the first tile that meets an instruction that is not simulated.
    """
    if threads == 1:
        return tuple(tile.advance(limit) for tile in tiles)
    with ThreadPoolExecutor(max_workers=threads) as pool:
        return tuple(pool.map(Tile.advance, tiles, [limit] * len(tiles)))
