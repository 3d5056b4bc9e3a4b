"""Running one call of a kernel on a simulated tile, beside its formula and its semantics."""

from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.geometry.layout import MemoryClass
from compiler.geometry.precision import F8, F16, F32, encode_f143
from compiler.isa.linker import link
from compiler.kernels import registry
from compiler.kernels.contract import Access, Binding, arguments_at, check_addresses
from compiler.kernels.stage_objects import objects_of_symbols
from compiler.simulator import harness
from compiler.simulator.faults import NamedRange
from compiler.simulator.tile import Stop, Tile, TileOptions
from compiler.target.isa_decisions import our_decisions
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_SIZE, STANDARD
from compiler.target.runtime_layout import DEFAULT_LAYOUT, FIRST_ARGUMENT
from compiler.target.units import Cycles

STAGE: Final = "kernel run"
_ELEMENT: Final = int(INTERLEAVED.element_size)
"""Storages begin at multiples of it, so that no two share a memory element of either region."""
_MARGIN: Final = 64
"""Bytes behind a storage that nothing else has."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """What one call took.

    Args:
        estimated: by the formula of its family.
        simulated: of the machine code.
        is_equal: whether everything it wrote equals the semantics bit for bit.
        fault: what stopped it, or None.
    """

    estimated: Cycles
    simulated: Cycles
    is_equal: bool
    fault: str | None

    @property
    def deviation(self) -> float:
        """The estimate against the simulation: 0.01 is one percent too much."""
        return self.estimated / self.simulated - 1 if self.simulated else 0.0


@final
class _Memory:
    """All of a tile's bytes, as the semantics of kernels see them."""

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self.data: Final = data

    def read(self, address: int, count: int) -> npt.NDArray[np.uint8]:
        return self.data[address - SRAM_BASE : address - SRAM_BASE + count].copy()

    def write(self, address: int, data: npt.NDArray[np.uint8]) -> None:
        self.data[address - SRAM_BASE : address - SRAM_BASE + len(data)] = data


def run_call(binding: Binding, seed: int = 0) -> Figures:
    """Run a call on random operands.

    Args:
        binding: the call.
        seed: of the operands.

    Raises:
        DoesNotFit: its storages have no room in one tile.
    """
    addresses = _place(binding)
    image = link(objects_of_symbols((str(binding.symbol),), our_decisions()))
    tile = Tile(TileOptions(decisions=our_decisions()))
    harness.load(
        tile,
        harness.Program(
            segments=tuple(harness.Segment(address=address, data=data) for address, data in image.runs())
        ),
    )
    random = np.random.default_rng(seed)
    for position, (access, address) in enumerate(zip(binding.accesses, addresses, strict=True)):
        first, last = access.extent
        tile.place(address + first, _content(access, last - first, random))
        name = str(binding.reference(position))
        tile.ranges.append(NamedRange(name=name, start=address + first, size=last - first))
    arguments = arguments_at(binding, addresses)
    expected = _Memory(np.frombuffer(tile.read(SRAM_BASE, SRAM_SIZE), dtype=np.uint8).copy())
    registers = {FIRST_ARGUMENT + index: word for index, word in enumerate(arguments)}
    outcome = harness.call(tile, image.address_of(str(binding.symbol)), registers)
    registry.execute(str(binding.symbol), arguments, expected)
    found = np.frombuffer(tile.read(SRAM_BASE, SRAM_SIZE), dtype=np.uint8)
    data = int(DEFAULT_LAYOUT.data_start) - SRAM_BASE
    return Figures(
        estimated=binding.cycles,
        simulated=Cycles(outcome.cycles),
        is_equal=bool(np.array_equal(found[data:], expected.data[data:])),
        fault=None if outcome.stop is Stop.RETURNED else str(outcome.fault),
    )


def _place(binding: Binding) -> tuple[int, ...]:
    """Addresses of the storages, each in memory elements of its own; standard memory is used first."""
    free = {STANDARD: _up(int(DEFAULT_LAYOUT.data_start)), INTERLEAVED: _up(int(INTERLEAVED.base))}
    addresses: list[int] = []
    for position, access in enumerate(binding.accesses):
        low, high = access.extent
        # Where there are no elements the aligned byte says where the storage begins.
        origin = access.operand.origin if access.operand is not None else -access.start % access.alignment
        size = high - min(low, 0) + access.tail + _MARGIN + origin
        regions = [INTERLEAVED]
        if access.memory_class is MemoryClass.STANDARD:
            regions = [STANDARD, INTERLEAVED]
        region = next((region for region in regions if free[region] + size <= region.end), None)
        if region is None:
            room = sum(int(region.end) - free[region] for region in regions)
            raise DoesNotFit(
                f"{binding.reference(position)} has no room beside the others on one tile",
                stage=STAGE,
                subject=str(binding.symbol),
                next_step="give a smaller shape",
                numbers=[
                    Measure(
                        name="needed", value=size, unit="bytes", kind=NumberKind.ESTIMATED, limit=max(room, 0)
                    )
                ],
            )
        addresses.append(free[region] + origin)
        free[region] = _up(free[region] + size)
    wrong = check_addresses(binding, addresses)
    if wrong is not None:
        raise ValueError(wrong)
    return tuple(addresses)


def _up(address: int) -> int:
    return -(-address // _ELEMENT) * _ELEMENT


def _content(access: Access, size: int, random: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Elements about 1 in size in every byte of a storage, padding zero; bytes without elements at random."""
    if access.operand is None:
        return random.integers(0, 256, size, dtype=np.uint8)
    values = random.standard_normal(-(-size // access.operand.precision.element_bytes))
    match access.operand.precision:
        case F32():
            data = values.astype(np.float32).view(np.uint8)
        case F16():
            data = values.astype(np.float16).view(np.uint8)
        case F8(scale_exponent=scale):
            data = encode_f143(values, scale)
    content = data[:size].copy()
    first = access.extent[0]
    for padding in access.padding:
        for start, length in zip(*padding.part.runs(), strict=True):
            content[start - first : start - first + length] = 0
    return content
