"""Packages and profiles for tests."""

from dataclasses import replace

from compiler.package.records import (
    ALL_TILES,
    EXCHANGE_PHASE,
    Application,
    Binding,
    CycleSample,
    DebugRegion,
    DebugSymbol,
    DeviceConfigWrite,
    EntryPoint,
    ExchangeActivities,
    ExchangeActivity,
    ExchangeActivityKind,
    HostCall,
    HostExchange,
    HostPage,
    HostSlice,
    MetadataEntry,
    Profile,
    ProfileStep,
    RegionSlice,
    Segment,
    SegmentFlags,
    StepKind,
    TileImage,
    TileProfile,
    TileProfilePlan,
)
from compiler.target.units import Address, Bytes, Cycles, PhysicalTile

CODE = SegmentFlags.READABLE | SegmentFlags.EXECUTABLE
DATA = SegmentFlags.READABLE | SegmentFlags.WRITABLE


def segment(address: int, size: int, data: bytes = b"", flags: int = DATA) -> Segment:
    """A segment."""
    return Segment(address=Address(address), memory_size=Bytes(size), data=data, flags=flags)


def tile(number: int, *segments: Segment) -> TileImage:
    """A tile image that starts where images do."""
    return TileImage(
        physical_tile=PhysicalTile(number),
        entry_point=Address(0x4C010),
        segments=segments,
        command_address=Address(0),
        diagnostic_address=Address(0x58000),
    )


def region_slice(number: int, address: int, offset: int, size: int) -> RegionSlice:
    """A slice of a binding."""
    return RegionSlice(
        tile=PhysicalTile(number), tile_address=Address(address), file_offset=Bytes(offset), size=Bytes(size)
    )


def binding(name: str, *slices: RegionSlice) -> Binding:
    """A binding of F16 elements."""
    return Binding(name=name, dtype="f16", shape=(2, 16), slices=slices)


def host_slice(page: int, page_offset: int, file_offset: int, size: int) -> HostSlice:
    """A slice of a call."""
    return HostSlice(
        page=page, page_offset=Bytes(page_offset), file_offset=Bytes(file_offset), size=Bytes(size)
    )


def minimal() -> Application:
    """The smallest valid package: one tile that holds nothing."""
    return Application(compiler_version="", tiles=(tile(0),))


def complete() -> Application:
    """A valid package in which every field of every record is used."""
    activities = ExchangeActivities.of(
        ExchangeActivity(
            kind=kind,
            start_cycle=Cycles(10 * kind),
            end_cycle=Cycles(10 * kind + 7),
            fanout=kind,
            paired=kind == 1,
        )
        for kind in ExchangeActivityKind
    )
    steps = (
        ProfileStep(
            local_index=0,
            phase=EXCHANGE_PHASE | 3,
            epoch=1,
            operation="layer.0.mlp.up",
            kind=StepKind.EXCHANGE,
            metadata=(MetadataEntry(name="bound", value="112"), MetadataEntry(name="horizon", value="118")),
            exchange_activities=activities,
            exchange_event_cycles=Cycles(118),
        ),
        ProfileStep(
            local_index=1, phase=4, epoch=1, operation="größer", kind=StepKind.COMPUTE, kernel="gemm.f16.k=64"
        ),
        ProfileStep(local_index=2, phase=5, epoch=2, operation="", kind=StepKind.IDLE),
    )
    return Application(
        compiler_version="tilewright 0.1.0",
        tiles=(
            tile(64, segment(0x4C010, 24, bytes(range(21)), CODE), segment(0x60000, 4096)),
            tile(2, segment(0x4C010, 8, b"12345678", CODE)),
        ),
        inputs=(binding("x", region_slice(64, 0x60000, 0, 32), region_slice(2, 0x80000, 32, 32)),),
        outputs=(binding("y", region_slice(64, 0x60020, 0, 64)), binding("z")),
        weights=(binding("w", region_slice(2, 0xE7FF0, (1 << 64) - 17, 16)),),
        host_exchange=HostExchange(
            startup_mark=23,
            command_page=0,
            command_offset=Bytes(4092),
            pages=(HostPage(index=0, size=Bytes(4096)), HostPage(index=1, size=Bytes(1 << 33))),
            attach_order=(0, 1),
            calls=(
                HostCall(name="initialize", command=0, phases=0),
                HostCall(
                    name="run",
                    command=7,
                    phases=5,
                    inputs=(host_slice(1, 0, 0, 32), host_slice(1, 4096, 32, 32)),
                    outputs=(host_slice(1, (1 << 33) - 64, 1 << 40, 64),),
                    invocations=3,
                    input_batch_ends=(1, 2),
                    output_batch_ends=(1,),
                ),
            ),
        ),
        entry_points=(EntryPoint(name="run", command=7, external_syncs=2),),
        device_config_writes=(
            DeviceConfigWrite(offset=0x3000, value=0xFFFF_FFFF),
            DeviceConfigWrite(offset=0x3004, value=0),
        ),
        profile_tiles=(
            TileProfilePlan(physical_tile=PhysicalTile(2), steps=steps),
            TileProfilePlan(physical_tile=PhysicalTile(64), steps=()),
        ),
        debug_symbols=(DebugSymbol(name="gemm.f16.k=64", address=Address(0x4C100)),),
        debug_regions=(
            DebugRegion(physical_tile=PhysicalTile(64), address=Address(0x60000), size=Bytes(4096), name="x"),
            DebugRegion(physical_tile=ALL_TILES, address=Address(0x58000), size=Bytes(4), name="completion"),
        ),
    )


def profile() -> Profile:
    """A measured profile."""
    samples = (
        CycleSample(step=0, start_cycle=Cycles(0xFFFF_FFF0), end_cycle=Cycles(12)),
        CycleSample(step=1, start_cycle=Cycles(12), end_cycle=Cycles(900)),
    )
    return Profile(
        clock_hz=1_500_000_000,
        tiles=(
            TileProfile(physical_tile=PhysicalTile(64), samples=samples),
            TileProfile(physical_tile=PhysicalTile(2), samples=()),
        ),
    )


def with_segments(*segments: Segment) -> Application:
    """The smallest package whose only tile has these segments."""
    return replace(minimal(), tiles=(tile(0, *segments),))


def with_call(
    call: HostCall, *, pages: tuple[HostPage, ...] = (HostPage(index=0, size=Bytes(4096)),)
) -> Application:
    """The smallest package with one call, command word at the start of page 0."""
    return replace(minimal(), host_exchange=HostExchange(pages=pages, calls=(call,)))
