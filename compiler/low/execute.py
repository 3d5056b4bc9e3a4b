"""Runs a low program on the host: the oracle for everything that is made of it.

Every tile is an array of bytes with addresses: private ones by default, those of a placement if one is given.
Calls do what their families say a kernel does to memory, copies and transfers move bytes, a Repeat runs its
body; addresses come from ``compiler.low.address`` alone. Tiles see each other only in exchange steps, where
transfers happen in row order.

**What it catches.** When a run begins, every byte that is not a parameter's or an input's, nor one of a
cleared buffer that no run has written, is poison: 0x80 and 0xff in turn, which is NaN in F16 and F32 and, at
even addresses, in F8. Beside the bytes lies a map of those that are defined. Moving bytes moves their part of
the map; a call that needs an undefined byte is refused, and so is an output with one. A call must find
padding as its binding wants it (finite, zero), and must write exactly the bytes that its binding says. A
refusal is a ``ValueError`` that names step, iteration, tile and work: a mistake in what made the program.

Cost: linear in the bytes touched, with a Python call for each row and iteration. It is meant to be obvious.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.precision import F8, F16, F32, F143_NAN, Precision
from compiler.geometry.tiling import round_up
from compiler.kernels.contract import arguments_at
from compiler.kernels.registry import family_of
from compiler.low.accesses import AccessSpans, Spans, merged, spans_of, subtract
from compiler.low.address import (
    Addresses,
    destinations_of,
    operands_of_calls,
    resolve,
    resolve_all,
    sources_of,
)
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, ComputeStep, ExchangeStep, LowProgram, Role
from compiler.low.steps import executions, rows_by_step, table_of
from compiler.low.values import ByteArray, Elements, distribution_of, pack, unpack
from compiler.target.memory import SRAM_BASE

POISON: Final = (0x80, 0xFF)
"""Bytes at even and odd addresses that nothing has written."""

_GUARD: Final = 64
"""Bytes that nothing owns between private allocations, tails included."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PrivateAddresses:
    """Addresses that no two buffers share unless the program says so, without regard to the size of SRAM."""

    address: Column
    stride: Column


def private_addresses(program: LowProgram) -> PrivateAddresses:
    """Each root of its own, with guards around it and at its alignment; sequences at one stride."""
    buffers = program.buffers
    count = len(buffers.tile)
    low, high = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    np.minimum.at(low, buffers.root, buffers.displacement)
    np.maximum.at(high, buffers.root, buffers.displacement + buffers.byte_count + buffers.tail)
    address = np.zeros(count, dtype=np.int64)
    stride = np.zeros(len(program.sequences.first), dtype=np.int64)
    free = np.full(program.tile_count, SRAM_BASE, dtype=np.int64)
    for root in np.flatnonzero(buffers.root == np.arange(count)).tolist():
        sequence, member = int(buffers.sequence[root]), int(buffers.member[root])
        if sequence != NO_ROW and member > 0:
            continue
        tile, alignment = int(buffers.tile[root]), int(buffers.alignment[root])
        extent = round_up(int(high[root] - low[root]) + _GUARD, alignment)
        address[root] = round_up(int(free[tile] - low[root]), alignment)
        free[tile] = address[root] + extent
        if sequence != NO_ROW:
            stride[sequence] = extent
            free[tile] += extent * (int(program.sequences.count[sequence]) - 1)
    members = np.flatnonzero(buffers.sequence != NO_ROW)
    sequences = buffers.sequence[members]
    first = program.sequences.first[sequences]
    address[members] = address[first] + buffers.member[members] * stride[sequences]
    return PrivateAddresses(address=address[buffers.root] + buffers.displacement, stride=stride)


@final
class Execution:
    """A program and the memory of its tiles, over any number of runs.

    Args:
        program: a well-formed program.
        placement: where buffers are; private addresses without one.
    """

    def __init__(self, program: LowProgram, placement: Addresses | None = None) -> None:
        self._program = program
        self._placement = private_addresses(program) if placement is None else placement
        buffers = program.buffers
        end = self._placement.address + buffers.byte_count + buffers.tail
        self._memories = {
            tile: _TileBytes(int(end[buffers.tile == tile].max()))
            for tile in np.unique(buffers.tile).tolist()
        }
        self._spans = [spans_of(binding) for binding in program.bindings]
        steps = len(table_of(program.steps).kind)
        self._calls = rows_by_step(program.calls.step, steps)
        self._copies = rows_by_step(program.copies.step, steps)
        self._transfers = rows_by_step(program.transfers.step, steps)
        self._call_operands = operands_of_calls(program.calls, program.views)
        self._distributions = [distribution_of(value) for value in program.values]

    def upload(self, parameters: Mapping[str, Elements]) -> None:
        """Writes all parameters; they stay.

        Raises:
            ValueError: not exactly the parameters of the program, or an array that does not fit.
        """
        self._write(Role.PARAMETER, parameters)

    def run(self, inputs: Mapping[str, Elements]) -> dict[str, Elements]:
        """Runs the program once.

        Args:
            inputs: elements of each input.

        Returns:
            Elements of each output.

        Raises:
            ValueError: not exactly the inputs of the program, an array that does not fit, or one of the
                mistakes that the module names.
        """
        self._begin()
        self._write(Role.INPUT, inputs)
        for step, iteration in executions(self._program.steps):
            match step:
                case ComputeStep():
                    for row in _rows_of(self._copies, step.step):
                        self._copy(row, iteration)
                    for row in _rows_of(self._calls, step.step):
                        self._call(row, iteration)
                case ExchangeStep():
                    self._exchange(_rows_of(self._transfers, step.step), iteration)
                case _:
                    assert_never(step)
        return {
            value.name: self._read(number)
            for number, value in enumerate(self._program.values)
            if value.role is Role.OUTPUT
        }

    def contents(self, buffer: int) -> tuple[ByteArray, npt.NDArray[np.bool_]]:
        """The bytes of a buffer as the last run left them, and which of them are defined."""
        memory, start, count = self._place(buffer)
        return memory.read(start, count), memory.defined_in(start, count).copy()

    def _place(self, buffer: int) -> tuple["_TileBytes", int, int]:
        buffers = self._program.buffers
        memory = self._memories[int(buffers.tile[buffer])]
        return memory, int(self._placement.address[buffer]), int(buffers.byte_count[buffer])

    def _begin(self) -> None:
        """Forgets everything but parameters, and zeros of cleared buffers that no run has written to."""
        resident = np.flatnonzero(self._program.buffers.role == Role.PARAMETER).tolist()
        kept = [self.contents(buffer) for buffer in resident]
        for memory in self._memories.values():
            memory.poison()
        for buffer, (data, defined) in zip(resident, kept, strict=True):
            memory, start, _ = self._place(buffer)
            memory.store(start, data, defined)
        for buffer in np.flatnonzero(self._program.buffers.cleared == 1).tolist():
            memory, start, count = self._place(buffer)
            memory.keep_clear(start, count)

    def _write(self, role: Role, arrays: Mapping[str, Elements]) -> None:
        program = self._program
        names = [value.name for value in program.values if value.role is role]
        if sorted(names) != sorted(arrays):
            raise ValueError(f"the program has the {role.name.lower()}s {names}, not {list(arrays)}")
        for number, value in enumerate(program.values):
            if value.role is not role:
                continue
            shards = pack(self._distributions[number], arrays[value.name])
            for buffer in np.flatnonzero(program.buffers.value == number).tolist():
                memory, start, _ = self._place(buffer)
                memory.write(start, shards[int(program.buffers.shard[buffer])])

    def _read(self, number: int) -> Elements:
        program, distribution = self._program, self._distributions[number]
        name = program.values[number].name
        # Shards without bytes have no buffer.
        empty = np.flatnonzero(distribution.storage_bytes == 0).tolist()
        shards: dict[int, ByteArray] = {shard: np.empty(0, dtype=np.uint8) for shard in empty}
        for buffer in np.flatnonzero(program.buffers.value == number).tolist():
            shard = int(program.buffers.shard[buffer])
            held = np.zeros(int(distribution.storage_bytes[shard]), dtype=np.bool_)
            for start, stop in zip(*distribution.held_bytes(shard).spans(), strict=True):
                held[start:stop] = True
            whole, defined = self.contents(buffer)
            data, defined = whole[: len(held)], defined[: len(held)]
            where = f"output {name}, shard {shard} on tile {int(program.buffers.tile[buffer])}"
            if not defined[held].all():
                raise ValueError(f"{where}: byte {int(np.flatnonzero(held & ~defined)[0])} was never written")
            if shard in shards and (shards[shard] != data)[held].any():
                raise ValueError(f"{where} differs from another replica")
            shards.setdefault(shard, data)
        return unpack(distribution, [shards[shard] for shard in range(distribution.shard_count)])

    def _copy(self, row: int, iteration: int) -> None:
        copies, number = self._program.copies, int(self._program.copies.binding[row])
        destination = resolve(self._placement, destinations_of(copies).row(row), iteration)
        source = resolve(self._placement, sources_of(copies).row(row), iteration)
        tile, step = int(copies.tile[row]), int(copies.step[row])
        memory, count = self._memories[tile], int(copies.row_bytes[row])
        runs = range(int(copies.rows[row]))
        moved = [
            memory.defined_in(source + run * int(copies.source_stride[row]), count).copy() for run in runs
        ]
        self._execute(
            number,
            memory,
            [destination, source],
            f"step {step}, iteration {iteration}, tile {tile}, copy {row}",
        )
        for run, defined in enumerate(moved):
            memory.define(destination + run * int(copies.destination_stride[row]), defined)

    def _call(self, row: int, iteration: int) -> None:
        calls, number = self._program.calls, int(self._program.calls.binding[row])
        binding, spans = self._program.bindings[number], self._spans[number]
        first = int(calls.first_view[row])
        operands = self._call_operands.take(np.arange(first, first + len(binding.accesses)))
        addresses = resolve_all(self._placement, operands, iteration).tolist()
        tile, step = int(calls.tile[row]), int(calls.step[row])
        where = f"step {step}, iteration {iteration}, tile {tile}, call {row} of {binding.symbol}"
        memory = self._memories[tile]
        for position, (access, address) in enumerate(zip(spans, addresses, strict=True)):
            operand = binding.accesses[position].operand
            precision = None if operand is None else operand.precision
            _check_before(memory, access, address, precision, f"{where}: {binding.reference(position)}")
        self._execute(number, memory, addresses, where)

    def _execute(self, number: int, memory: "_TileBytes", addresses: list[int], where: str) -> None:
        """Lets the family do the call's work, and compares what it wrote with what the binding says."""
        binding, spans = self._program.bindings[number], self._spans[number]
        allowed = _absolute(addresses, [access.writes for access in spans])
        defined = _absolute(addresses, [access.defines for access in spans])
        kept = [
            (start, memory.defined_in(start, stop - start).copy())
            for start, stop in subtract(allowed, defined)
        ]
        memory.written.clear()
        family_of(binding.family).execute(binding.symbol, arguments_at(binding, addresses), memory)
        written = merged(memory.written)
        if subtract(written, allowed) or subtract(defined, written):
            raise ValueError(f"{where}: the family wrote {written}, the binding says {defined} to {allowed}")
        for start, was in kept:
            memory.define(start, was)

    def _exchange(self, rows: list[int], iteration: int) -> None:
        """Transfers in row order, each to its recipients."""
        program, transfers, recipients = self._program, self._program.transfers, self._program.recipients
        tile = program.buffers.tile
        ends = np.append(transfers.first_recipient, len(recipients.transfer)).tolist()
        starts = resolve_all(self._placement, sources_of(transfers), iteration).tolist()
        places = resolve_all(self._placement, destinations_of(recipients), iteration).tolist()
        senders = tile[transfers.source].tolist()
        receivers = tile[recipients.destination].tolist()
        counts = transfers.byte_count.tolist()
        for row in rows:
            memory, start, count = self._memories[senders[row]], starts[row], counts[row]
            data, defined = memory.read(start, count), memory.defined_in(start, count).copy()
            for recipient in range(ends[row], ends[row + 1]):
                self._memories[receivers[recipient]].store(places[recipient], data, defined)


@final
class _TileBytes:
    """The SRAM of a tile up to ``end``, and which bytes of it are defined. Semantics of kernels act on it."""

    def __init__(self, end: int) -> None:
        size = end - SRAM_BASE
        self._bytes = np.zeros(size, dtype=np.uint8)
        self._defined = np.zeros(size, dtype=np.bool_)
        self._touched = np.zeros(size, dtype=np.bool_)
        self.written: list[tuple[int, int]] = []
        self.poison()

    def poison(self) -> None:
        """Makes every byte undefined."""
        self._bytes[0::2], self._bytes[1::2] = POISON
        self._defined[:] = False

    def keep_clear(self, address: int, count: int) -> None:
        """Makes bytes zero that nothing has ever written: they are as they were loaded."""
        place = self._slice(address, count)
        clear = ~self._touched[place]
        self._bytes[place][clear] = 0
        self._defined[place] |= clear

    def read(self, address: int, count: int, /) -> ByteArray:
        """A copy of ``count`` bytes."""
        return self._bytes[self._slice(address, count)].copy()

    def write(self, address: int, data: ByteArray, /) -> None:
        """Replaces bytes, which are defined from now on."""
        place = self._slice(address, len(data))
        self._bytes[place] = data
        self._defined[place] = True
        self._touched[place] = True
        self.written.append((address, address + len(data)))

    def store(self, address: int, data: ByteArray, defined: npt.NDArray[np.bool_]) -> None:
        """Replaces bytes with moved ones."""
        place = self._slice(address, len(data))
        self._bytes[place] = data
        self._defined[place] = defined
        self._touched[place] = True

    def define(self, address: int, defined: npt.NDArray[np.bool_]) -> None:
        """Says which of the bytes are defined."""
        self._defined[self._slice(address, len(defined))] = defined

    def defined_in(self, address: int, count: int) -> npt.NDArray[np.bool_]:
        """Which of ``count`` bytes are defined; a view."""
        return self._defined[self._slice(address, count)]

    def _slice(self, address: int, count: int) -> slice:
        first = address - SRAM_BASE
        if first < 0 or first + count > len(self._bytes):
            raise ValueError(f"bytes {address:#x}..{address + count:#x} are outside of the tile's memory")
        return slice(first, first + count)


def _absolute(addresses: Sequence[int], spans: Sequence[Spans]) -> Spans:
    return merged(
        (address + start, address + stop)
        for address, of_access in zip(addresses, spans, strict=True)
        for start, stop in of_access
    )


def _rows_of(index: tuple[Column, Column], step: int) -> list[int]:
    order, first = index
    return order[int(first[step]) : int(first[step + 1])].tolist()


def _check_before(
    memory: _TileBytes, access: AccessSpans, address: int, precision: Precision | None, where: str
) -> None:
    for start, stop in access.needs:
        undefined = np.flatnonzero(~memory.defined_in(address + start, stop - start))
        if len(undefined):
            raise ValueError(f"{where}: byte {start + int(undefined[0])} was never written")
    for start, stop in access.zero:
        if memory.read(address + start, stop - start).any():
            raise ValueError(f"{where}: padding in bytes {start} to {stop} is not zero")
    for start, stop in access.finite:
        if precision is not None and not _is_finite(memory.read(address + start, stop - start), precision):
            raise ValueError(f"{where}: padding in bytes {start} to {stop} is not finite")


def _is_finite(data: ByteArray, precision: Precision) -> bool:
    match precision:
        case F32() | F16():
            return bool(np.isfinite(data.view(precision.dtype)).all())
        case F8():
            return not (data == F143_NAN).any()
        case _:
            assert_never(precision)
