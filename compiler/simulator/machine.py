"""All tiles of an application side by side: loading their images, running them, and each one's clock.

Input: the images of a package. A ``Machine`` holds one row of every array for each tile, tiles in order of
their physical numbers; a *place* is such a row. It knows what a tile is and nothing of barriers, rows or
hosts: :meth:`Machine.advance` runs tiles until each one needs somebody else, and says why it stopped.

**Memory.** 1,472 tiles have 0.9 GB of SRAM and 0.2 GB of marks for written bytes, and room for 0.6 GB of
decoded instructions. The arrays are made of small pages that the system provides when they are touched first,
so that bytes which no image, program or transfer writes cost nothing. Words that nothing wrote hold zeros
instead of NaN patterns here; nobody can tell, since using them is a fault.

**Threads.** Tiles do not meet between stops, so any number of threads gives the same result.
"""

import mmap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, TypeVar, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.package.records import ALL_TILES, DebugRegion, DebugSymbol, TileImage
from compiler.simulator import state as at
from compiler.simulator.core import run_tile
from compiler.simulator.decoder import decode_tables
from compiler.simulator.faults import NamedRange
from compiler.simulator.state import Accumulators, Decoded, Memory, Shadow, State, Table, Weights
from compiler.simulator.tile import Stop, Tile, TileBuffers, TileOptions
from compiler.target.control_registers import SupervisorRegister
from compiler.target.memory import SRAM_BASE, SRAM_END
from compiler.target.registers import NEUTRAL_MUX
from compiler.target.units import WORD_BYTES, Address, BoolArray, Int64Array, PhysicalTile

SUPERVISOR_BASE: Final = at.SUPERVISOR * at.CONTEXT_STRIDE
"""Where the block of the supervisor begins in the state of a tile."""

WRITTEN: Final = 15
"""Mark of a word of which all four bytes were written."""

_PC: Final = SUPERVISOR_BASE + at.PC
_READY: Final = SUPERVISOR_BASE + at.READY
_CHUNKS_PER_THREAD: Final = 4

_ScalarT = TypeVar("_ScalarT", bound=np.generic)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """What messages call addresses.

    Args:
        symbols: the same on every tile; of equal addresses the first.
        regions: of single tiles, or of all.
    """

    symbols: tuple[DebugSymbol, ...] = ()
    regions: tuple[DebugRegion, ...] = ()

    def on(self, tile: PhysicalTile) -> list[NamedRange]:
        """Named ranges of a tile."""
        return self.code() + [
            NamedRange(name=region.name, start=int(region.address), size=int(region.size))
            for region in self.regions
            if region.physical_tile in (tile, ALL_TILES) and _is_in_memory(region.address, region.size)
        ]

    def code(self) -> list[NamedRange]:
        """Symbols by address; each reaches to the next one, or to the end of a region of all tiles."""
        found = sorted({int(symbol.address): symbol.name for symbol in reversed(self.symbols)}.items())
        sections = [
            (int(region.address), int(region.address + region.size))
            for region in self.regions
            if region.physical_tile == ALL_TILES
        ]
        ranges: list[NamedRange] = []
        for position, (start, name) in enumerate(found):
            ends = [end for first, end in sections if first <= start < end]
            ends.append(found[position + 1][0] if position + 1 < len(found) else int(SRAM_END))
            if _is_in_memory(start, min(ends) - start):
                ranges.append(NamedRange(name=name, start=start, size=min(ends) - start))
        return ranges


def _is_in_memory(address: int, size: int) -> bool:
    return address >= SRAM_BASE and address + size <= SRAM_END


@final
class Machine:
    """The tiles.

    Args:
        images: what each tile holds; verified by the reader of packages.
        names: for messages.
        options: how tiles are simulated; their physical numbers are taken from the images.
        threads: how many run tiles.
        cycle_limit: most cycles a tile may run without needing somebody else.
    """

    def __init__(
        self,
        images: Sequence[TileImage],
        names: Names,
        options: TileOptions,
        *,
        threads: int,
        cycle_limit: int,
    ) -> None:
        ordered = sorted(images, key=lambda image: image.physical_tile)
        count = len(ordered)
        self.physical: Final[Int64Array] = np.array(
            [image.physical_tile for image in ordered], dtype=np.int64
        )
        self.diagnostic: Final = tuple(image.diagnostic_address for image in ordered)
        self.names: Final = names
        self._threads: Final = threads
        self._cycle_limit: Final = cycle_limit
        self._options: Final = options
        self._place_of: Final = {image.physical_tile: place for place, image in enumerate(ordered)}
        self._tables: Final = decode_tables(options.decisions)
        self._buffers: Final = TileBuffers(0, track=False)
        self._buffers.state = np.zeros((count, at.STATE_SIZE), np.int64)
        self._buffers.memory = _untouched((count, at.MEMORY_WORDS), np.uint32)
        self._buffers.shadow = _untouched((count, at.MEMORY_WORDS), np.uint8)
        self._buffers.touched = np.zeros((count, 0), np.uint8)
        self._buffers.decoded = _untouched((count, at.CODE_WORDS), np.int64)
        self._buffers.accumulators = np.zeros((count, at.WORKERS * at.ACCUMULATOR_STRIDE), np.float32)
        self._buffers.weights = np.zeros((count, at.WEIGHT_COUNT), np.float64)
        self.state: Final = self._buffers.state
        self.memory: Final = self._buffers.memory
        self.shadow: Final = self._buffers.shadow
        self.decoded: Final = self._buffers.decoded
        self._tiles: Final = [
            Tile(replace(options, physical=int(image.physical_tile)), self._buffers.row(place))
            for place, image in enumerate(ordered)
        ]
        for place, (image, tile) in enumerate(zip(ordered, self._tiles, strict=True)):
            for segment in image.segments:
                self._load(place, segment.address, segment.data, int(segment.memory_size))
            for register in (SupervisorRegister.INCOMING_MUX, SupervisorRegister.INCOMING_MUXPAIR):
                tile.set_control_register(register, NEUTRAL_MUX)
            tile.start_supervisor(int(image.entry_point))

    def _load(self, place: int, address: int, data: bytes, size: int) -> None:
        """Put a segment into memory; no instruction has been decoded yet."""
        first = address - at.BASE
        self.memory[place].view(np.uint8)[first : first + len(data)] = np.frombuffer(data, np.uint8)
        self.memory[place].view(np.uint8)[first + len(data) : first + size] = 0
        self._mark(place, first, np.ones(size, np.bool_))

    def _mark(self, place: int, first: int, written: BoolArray) -> None:
        """Set the marks of bytes from an offset in SRAM on."""
        begin, end = first // WORD_BYTES, -(-(first + len(written)) // WORD_BYTES)
        if first % WORD_BYTES == 0 and len(written) % WORD_BYTES == 0 and written.all():
            self.shadow[place, begin:end] = WRITTEN
            return
        bits = np.unpackbits(self.shadow[place, begin:end, None], axis=1, bitorder="little")[:, :4]
        flat = bits.reshape(-1).copy()
        flat[first - WORD_BYTES * begin :][: len(written)] = written
        self.shadow[place, begin:end] = np.packbits(flat.reshape(-1, 4), axis=1, bitorder="little")[:, 0]

    # Tiles.

    @property
    def count(self) -> int:
        """Tiles of the application."""
        return len(self.physical)

    def place_of(self, tile: PhysicalTile) -> int | None:
        """The place of a tile, None when the application has none of this number."""
        return self._place_of.get(tile)

    def tile(self, place: int) -> Tile:
        """A tile as a place with names."""
        tile = self._tiles[place]
        if not tile.ranges:
            tile.ranges = self.names.on(PhysicalTile(int(self.physical[place])))
        return tile

    # Memory.

    def write(self, place: int, address: Address, data: bytes, written: BoolArray | None = None) -> None:
        """Put bytes into memory as transfers do.

        Args:
            place: of the tile.
            address: where, in SRAM.
            data: the bytes.
            written: which of them are known; all when None.
        """
        first = address - at.BASE
        self.memory[place].view(np.uint8)[first : first + len(data)] = np.frombuffer(data, np.uint8)
        self._mark(place, first, np.ones(len(data), np.bool_) if written is None else written)
        self.forget_code(place, address, len(data))

    def read(self, place: int, address: Address, size: int) -> tuple[bytes, BoolArray]:
        """Bytes of SRAM, and which of them were ever written."""
        tile = self._tiles[place]
        return tile.read(int(address), size), tile.written(int(address), size)

    def word(self, place: int, address: int) -> int | None:
        """A word of SRAM, None when it lies elsewhere or is not wholly written."""
        offset = address - at.BASE
        if offset % WORD_BYTES or not 0 <= offset < at.SIZE:
            return None
        index = offset // WORD_BYTES
        return int(self.memory[place, index]) if self.shadow[place, index] == WRITTEN else None

    def forget_code(self, place: int, address: int, size: int) -> None:
        """Decode again what was decoded from these bytes; both halves of a bundle share a decision."""
        first = ((address - at.BASE) // WORD_BYTES) & ~1
        last = (-(-(address + size - at.BASE) // WORD_BYTES) + 1) & ~1
        self.decoded[place, min(first, at.CODE_WORDS) : min(last, at.CODE_WORDS)] = 0

    # Time.

    def cycle(self, place: int) -> int:
        """The clock of a tile."""
        return int(self.state[place, at.CYCLE])

    def resume(self, places: int | Int64Array, addresses: int | Int64Array, cycles: int | Int64Array) -> None:
        """Let the supervisors of tiles go on, each at an address and a cycle."""
        self.state[places, _PC] = addresses
        self.state[places, at.CYCLE] = cycles
        self.state[places, _READY] = cycles

    def program_counters(self, places: Int64Array) -> Int64Array:
        """Where the supervisors of some tiles stand."""
        return self.state[places, _PC]

    def program_counter(self, place: int) -> int:
        """Where the supervisor of a tile stands."""
        return int(self.state[place, _PC])

    def register(self, place: int, number: int) -> int:
        """A main register of the supervisor."""
        return int(self.state[place, SUPERVISOR_BASE + at.MRF + number])

    def set_register(self, place: int, number: int, value: int) -> None:
        """Write a main register of the supervisor."""
        self._tiles[place].set_main_register(at.SUPERVISOR, number, value)

    def control_registers(self, places: Int64Array, register: SupervisorRegister) -> Int64Array:
        """A control register of some supervisors."""
        return self.state[places, at.SUPERVISOR_CSR + int(register)]

    def workers_active(self, places: Int64Array) -> BoolArray:
        """Whether workers run on some tiles."""
        return self.state[places, at.ACTIVE_WORKERS] > 0

    # Running.

    def advance(self, places: Int64Array) -> Int64Array:
        """Run tiles until each needs somebody else.

        Args:
            places: which.

        Returns:
            Why each stopped, a value of ``Stop``.

        Raises:
            Unsupported: an instruction is not simulated.
        """
        stops = np.zeros(len(places), np.int64)
        if self._threads == 1 or len(places) < 2 * self._threads:
            self._advance(places, stops)
        else:
            chunks = min(len(places), _CHUNKS_PER_THREAD * self._threads)
            with ThreadPoolExecutor(max_workers=self._threads) as pool:
                # Arrays are split into views: every thread fills its part of the stops.
                list(pool.map(self._advance, np.array_split(places, chunks), np.array_split(stops, chunks)))
        self.check_supported(places, stops)
        return stops

    def check_supported(self, places: Int64Array, stops: Int64Array) -> None:
        """Raise for the first tile that stopped before an instruction that is not simulated.

        Raises:
            Unsupported: as said.
        """
        for index in np.flatnonzero(stops == Stop.UNSUPPORTED.value).tolist():
            raise self.tile(int(places[index])).unsupported()

    def _advance(self, places: Int64Array, stops: Int64Array) -> None:
        buffers, tables = self._buffers, self._tables
        _run_tiles(
            places,
            stops,
            self._cycle_limit,
            buffers.state,
            buffers.memory,
            buffers.shadow,
            buffers.touched,
            buffers.decoded,
            buffers.accumulators,
            buffers.weights,
            tables.forms,
            tables.lookup,
        )

    def arrays(self, place: int) -> "TileArrays":
        """Everything that the interpreter of one tile takes, in its order."""
        row = self._buffers.row(place)
        return (
            row.state[0],
            row.memory[0],
            row.shadow[0],
            row.touched[0],
            row.decoded[0],
            row.accumulators[0],
            row.weights[0],
            self._tables.forms,
            self._tables.lookup,
        )

    @property
    def cycle_limit(self) -> int:
        """Most cycles a tile may run without needing somebody else."""
        return self._cycle_limit


def _untouched(shape: tuple[int, int], kind: type[_ScalarT]) -> npt.NDArray[_ScalarT]:
    """Zeros, in memory that exists only where it has been touched."""
    size = shape[0] * shape[1] * np.dtype(kind).itemsize
    pages = mmap.mmap(-1, max(size, 1))
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        # Large pages would bring in the memory of three tiles at once.
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, dtype=kind, count=shape[0] * shape[1]).reshape(shape)


TileArrays = tuple[State, Memory, Shadow, Shadow, Decoded, Accumulators, Weights, Table, Table]


@compiled(nogil=True)
def _run_tiles(
    places: Int64Array,
    stops: Int64Array,
    cycle_limit: int,
    state: State,
    memory: Memory,
    shadow: Shadow,
    touched: Shadow,
    decoded: Decoded,
    accumulators: Accumulators,
    weights: Weights,
    forms: Table,
    lookup: Table,
) -> None:
    """``run_tile`` for each place; arrays have a row for each."""
    for index in range(places.size):
        place = int(places[index])
        stops[index] = run_tile(
            state[place],
            memory[place],
            shadow[place],
            touched[place],
            decoded[place],
            accumulators[place],
            weights[place],
            forms,
            lookup,
            state[place, at.CYCLE] + cycle_limit,
        )
