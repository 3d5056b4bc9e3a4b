"""An application package and a measured profile as values.

One record for each struct of ``application.capnp`` and ``profile.capnp``, with the same fields in the same
order, so that the codec in ``wire.py`` derives one from the other. Sequences are tuples, integers carry their
unit, equality is by content.

A record holds whatever the file says, bad packages included; ``validate.py`` judges. Tiles are physical,
addresses are bytes in the SRAM of a tile, cycles are those of the tile clock.

The activities of an exchange step are the one table that can reach millions of rows (transfers times tiles),
so they are columns and not records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.target.memory import SRAM_BASE, SRAM_SIZE
from compiler.target.units import Address, Bytes, Cycles, PhysicalTile

SCHEMA_VERSION: Final = 5
"""The version of both schemas that this module describes; loaders demand it exactly."""

TARGET: Final = "ipu21"
"""The target's name in a package."""

ALL_TILES: Final = PhysicalTile(0xFFFF_FFFF)
"""In a debug region: the region exists on every tile."""

EXCHANGE_PHASE: Final = 0x8000_0000
"""The bit that a profile step of an exchange sets in ``phase``, beside the number of the exchange."""

_AT_THE_START: Final = Bytes(0)
_NO_CYCLES: Final = Cycles(0)


class SegmentFlags(IntFlag):
    """What a segment is used for; a package states the union."""

    READABLE = 1
    WRITABLE = 2
    EXECUTABLE = 4


class StepKind(IntEnum):
    """What a tile does in a step."""

    EXCHANGE = 0
    COMPUTE = 1
    SYNCHRONIZATION = 2
    IDLE = 3


class ExchangeActivityKind(IntEnum):
    """What an interval of an exchange row is for."""

    SEND = 0
    RECEIVE = 1
    PARTNER_BUSY = 2
    """The transmit lane is lent to the other tile of the pair."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Bytes of one tile's memory.

    Args:
        address: first byte address.
        memory_size: bytes of memory; those beyond ``data`` are zero.
        data: the first bytes.
        flags: what they are used for.
    """

    address: Address
    memory_size: Bytes
    data: bytes
    flags: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileImage:
    """What a tile holds when its program starts.

    Args:
        physical_tile: the tile.
        entry_point: address at which its supervisor starts.
        segments: its memory; what no segment covers is undefined.
        command_address: where the tile finds the command of a call; 0 when commands stay on the host.
        diagnostic_address: where the tile leaves its completion word.
    """

    physical_tile: PhysicalTile
    entry_point: Address
    segments: tuple[Segment, ...]
    command_address: Address
    diagnostic_address: Address


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSlice:
    """A contiguous part of a binding's file and where it lives on the device."""

    tile: PhysicalTile
    tile_address: Address
    file_offset: Bytes
    size: Bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """A named tensor of the application.

    Args:
        name: unique over inputs, outputs and weights.
        dtype: name of the element type.
        shape: logical extents.
        slices: its shards, which may share parts of the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    slices: tuple[RegionSlice, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostPage:
    """Host memory that the device can reach during a session."""

    index: int
    size: Bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostSlice:
    """A contiguous part of a call's input or output and where it lies in a host page."""

    page: int
    page_offset: Bytes
    file_offset: Bytes
    size: Bytes


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostCall:
    """A command that the device understands and the host data of its phases.

    Args:
        name: what a user calls it.
        command: the word that the host writes to start it.
        phases: host phases, counting those that only hand over.
        inputs: slices that the host fills, batch after batch.
        outputs: slices that the host collects, batch after batch.
        invocations: how often one call runs the program.
        input_batch_ends: for each batch, the number of input slices in it and all before it.
        output_batch_ends: the same for outputs.
    """

    name: str
    command: int
    phases: int
    inputs: tuple[HostSlice, ...] = ()
    outputs: tuple[HostSlice, ...] = ()
    invocations: int = 1
    input_batch_ends: tuple[int, ...] = ()
    output_batch_ends: tuple[int, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostExchange:
    """The protocol between host and device.

    Args:
        startup_mark: value of the mark register that starts the loaded program.
        command_page: index of the page that holds the command word.
        command_offset: its offset in that page.
        pages: all host pages.
        attach_order: page indices in the order in which a session attaches them.
        calls: what the device can be asked to do.
    """

    startup_mark: int = 0
    command_page: int = 0
    command_offset: Bytes = _AT_THE_START
    pages: tuple[HostPage, ...] = ()
    attach_order: tuple[int, ...] = ()
    calls: tuple[HostCall, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EntryPoint:
    """A command with the number of external synchronizations it takes part in."""

    name: str
    command: int
    external_syncs: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceConfigWrite:
    """A device register to set before loading."""

    offset: int
    value: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataEntry:
    """A named remark on a step."""

    name: str
    value: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeActivity:
    """An interval of an exchange row, in cycles since slot 0; ``fanout`` counts the receivers of a send."""

    kind: ExchangeActivityKind
    start_cycle: Cycles
    end_cycle: Cycles
    fanout: int
    paired: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExchangeActivities:
    """The intervals of one tile's exchange row as columns of one length, read-only.

    Args:
        kind: values of ``ExchangeActivityKind``.
        start_cycle: first cycle since slot 0 of the row.
        end_cycle: one past the last.
        fanout: receivers of a send.
        paired: whether items are 64 bits.
    """

    kind: npt.NDArray[np.uint16]
    start_cycle: npt.NDArray[np.uint32]
    end_cycle: npt.NDArray[np.uint32]
    fanout: npt.NDArray[np.uint16]
    paired: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        """Columns have their types and one length, and nobody changes them later."""
        for column, wanted in zip(self.columns(), _ACTIVITY_TYPES, strict=True):
            if column.dtype != wanted or column.shape != (len(self.kind),):
                raise ValueError(
                    f"a column of {wanted} is {column.dtype} with shape {column.shape},"
                    f" for {len(self.kind)} activities"
                )
            column.flags.writeable = False
        if len(self.kind) and self.kind.max() > max(ExchangeActivityKind):
            raise ValueError(f"activity kind {self.kind.max()} is unknown")

    @staticmethod
    def of(activities: Iterable[ExchangeActivity]) -> "ExchangeActivities":
        """The columns of some rows."""
        rows = [(row.kind, row.start_cycle, row.end_cycle, row.fanout, row.paired) for row in activities]
        columns = list(zip(*rows, strict=True)) or [()] * len(_ACTIVITY_TYPES)
        return ExchangeActivities(
            kind=np.array(columns[0], np.uint16),
            start_cycle=np.array(columns[1], np.uint32),
            end_cycle=np.array(columns[2], np.uint32),
            fanout=np.array(columns[3], np.uint16),
            paired=np.array(columns[4], np.bool_),
        )

    def __len__(self) -> int:
        """Activities."""
        return len(self.kind)

    def __iter__(self) -> Iterator[ExchangeActivity]:
        """The rows, in order."""
        for kind, start, end, fanout, paired in zip(
            self.kind.tolist(),
            self.start_cycle.tolist(),
            self.end_cycle.tolist(),
            self.fanout.tolist(),
            self.paired.tolist(),
            strict=True,
        ):
            yield ExchangeActivity(
                kind=ExchangeActivityKind(kind),
                start_cycle=Cycles(start),
                end_cycle=Cycles(end),
                fanout=fanout,
                paired=paired,
            )

    def __eq__(self, other: object) -> bool:
        """Equality by content."""
        if not isinstance(other, ExchangeActivities):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        """By content."""
        return hash(self._content())

    def columns(self) -> tuple[npt.NDArray[np.generic], ...]:
        """The columns in the order of the fields of a row."""
        return (self.kind, self.start_cycle, self.end_cycle, self.fanout, self.paired)

    def _content(self) -> tuple[bytes, ...]:
        return tuple(column.tobytes() for column in self.columns())


_ACTIVITY_TYPES = (
    np.dtype(np.uint16),
    np.dtype(np.uint32),
    np.dtype(np.uint32),
    np.dtype(np.uint16),
    np.dtype(np.bool_),
)

NO_ACTIVITIES = ExchangeActivities.of(())
"""Of a step that is no exchange."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileStep:
    """A planned step of one tile.

    Args:
        local_index: its position in the steps of the tile, which is also the position of its samples.
        phase: what it belongs to; of an exchange, ``EXCHANGE_PHASE`` and the number of the exchange.
        epoch: groups steps for reports; loaders do not interpret it.
        operation: the graph operation it serves.
        kind: what the tile does.
        kernel: symbol of the kernel, empty when there is none.
        metadata: named remarks.
        exchange_activities: intervals of the exchange row.
        exchange_event_cycles: length of the exchange row.
    """

    local_index: int
    phase: int
    epoch: int
    operation: str
    kind: StepKind
    kernel: str = ""
    metadata: tuple[MetadataEntry, ...] = ()
    exchange_activities: ExchangeActivities = NO_ACTIVITIES
    exchange_event_cycles: Cycles = _NO_CYCLES


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileProfilePlan:
    """The steps of one tile in the order in which it runs them."""

    physical_tile: PhysicalTile
    steps: tuple[ProfileStep, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DebugSymbol:
    """A name for an address, the same on every tile."""

    name: str
    address: Address


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DebugRegion:
    """A name for a range of bytes on one tile, or on ``ALL_TILES``."""

    physical_tile: PhysicalTile
    address: Address
    size: Bytes
    name: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Application:
    """A complete application package.

    Args:
        schema_version: version of the schema it is written in.
        compiler_version: who wrote it; informs only.
        target: name of the target it is for.
        tile_memory_base: lowest byte address of a tile's SRAM.
        tile_memory_size: bytes of a tile's SRAM.
        tiles: the image of each tile.
        inputs: tensors that a call takes.
        outputs: tensors that a call gives.
        weights: tensors set once.
        host_exchange: the protocol between host and device.
        entry_points: commands, for loaders that call them directly.
        device_config_writes: registers to set before loading.
        profile_tiles: what each tile does step by step, when the package is built for profiling.
        debug_symbols: names of addresses that are the same on every tile.
        debug_regions: names of ranges.
    """

    schema_version: int = SCHEMA_VERSION
    compiler_version: str
    target: str = TARGET
    tile_memory_base: Address = SRAM_BASE
    tile_memory_size: Bytes = SRAM_SIZE
    tiles: tuple[TileImage, ...]
    inputs: tuple[Binding, ...] = ()
    outputs: tuple[Binding, ...] = ()
    weights: tuple[Binding, ...] = ()
    host_exchange: HostExchange = HostExchange()
    entry_points: tuple[EntryPoint, ...] = ()
    device_config_writes: tuple[DeviceConfigWrite, ...] = ()
    profile_tiles: tuple[TileProfilePlan, ...] = ()
    debug_symbols: tuple[DebugSymbol, ...] = ()
    debug_regions: tuple[DebugRegion, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CycleSample:
    """Cycle counter at start and end of a step, 32 bits that wrap."""

    step: int
    start_cycle: Cycles
    end_cycle: Cycles


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TileProfile:
    """The samples of one tile."""

    physical_tile: PhysicalTile
    samples: tuple[CycleSample, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What one run of a package measured.

    Args:
        schema_version: version of the schema it is written in.
        clock_hz: tile clock, to convert cycles into seconds.
        tiles: samples of each tile.
    """

    schema_version: int = SCHEMA_VERSION
    clock_hz: int
    tiles: tuple[TileProfile, ...]
