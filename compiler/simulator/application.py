"""A whole application, run from its package.

    simulator = Simulator(application)
    simulator.initialize(weights)
    result = simulator.run(inputs)

Tensors are packed bytes by name, as the package's bindings describe their files; ``package.host`` packs and
unpacks logical tensors. Weights stay on the device between runs. What goes wrong inside the device is in the
result, and stops the device; what the caller does wrong raises.

**Two speeds.** Without a table of meanings every instruction is executed, and cycles are simulated. With one,
calls of the kernels in it are applied as a whole (see ``functional``), and cycles are estimated.

**The cycles of a run** are ``timeline.SAMPLED_SPAN``, or ``timeline.SPAN`` of packages without samples. Equal
packages and inputs give equal results, whatever the number of threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

import numpy as np

from compiler.errors import InvalidInput, Measure, NumberKind, PackageInvalid, Unsupported
from compiler.package.records import Application, Binding, HostCall, HostSlice, RegionSlice
from compiler.simulator.application_faults import ApplicationFault, ApplicationFaultKind, DeviceStopped
from compiler.simulator.barrier import Device, Wait
from compiler.simulator.functional import Functional, Meaning
from compiler.simulator.host import CallOutcome, Host, call_file_sizes
from compiler.simulator.machine import Machine, Names
from compiler.simulator.recording import Breakpoint, BreakReached, Recorder
from compiler.simulator.tile import STAGE, Tile, TileOptions, default_options
from compiler.simulator.timeline import FIRST_SAMPLE, LAST_SAMPLE, SAMPLED_SPAN, SPAN, Meeting
from compiler.simulator.trace import trace_json
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Bytes, PhysicalTile

INITIALIZE: Final = "initialize"
RUN: Final = "run"

DEFAULT_CYCLE_LIMIT: Final = 1_000_000_000
"""Most cycles that a tile may run without waiting for anything. Policy: longer than any kernel."""

HOST_MEMORY_LIMIT: Final = 1 << 30
"""Most bytes of all host pages. Policy: a page for every tile is less than a hundredth of it."""

_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
_REBUILD: Final = "build the package again"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """How an application is simulated.

    Args:
        meanings: kernels that are applied as a whole, by symbol; symbols that the package does not have are
            ignored. None executes every instruction.
        threads: how many run tiles.
        cycle_limit: most cycles that a tile may run without waiting for anything.
        tile: decisions and perturbation of all tiles; physical numbers are the package's.
        trace_tiles: tiles whose events are kept.
        stop_at: where to stop, or None.
    """

    meanings: Mapping[str, Meaning] | None = None
    threads: int = 1
    cycle_limit: int = DEFAULT_CYCLE_LIMIT
    tile: TileOptions | None = None
    trace_tiles: tuple[PhysicalTile, ...] = ()
    stop_at: Breakpoint | None = None

    def __post_init__(self) -> None:
        """Counts are positive."""
        if self.threads < 1 or self.cycle_limit < 1:
            raise ValueError("a simulation has at least one thread, and time")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a call did.

    Args:
        outputs: files of the output bindings; empty when the device stopped.
        cycles: of the span of a run; None when the device stopped, or for ``initialize``.
        timeline: the meetings of tiles since the call before.
        faults: why the device stopped; empty when it did not.
        notes: what one should know to read the figures.
        stopped_at: the tile at the breakpoint, or None.
    """

    outputs: Mapping[str, bytes]
    cycles: Measure | None
    timeline: tuple[Meeting, ...]
    faults: tuple[ApplicationFault, ...]
    notes: tuple[str, ...]
    stopped_at: PhysicalTile | None

    @property
    def is_complete(self) -> bool:
        """Whether the call came to its end."""
        return not self.faults and self.stopped_at is None


@final
class Simulator:
    """A device with an application on it.

    Args:
        application: the package; its images are not kept.
        options: how it is simulated.

    Raises:
        PackageInvalid: calls and bindings do not fit together.
        InvalidInput: a traced tile, or that of the breakpoint, is not in the package.
        Unsupported: a call asks for several invocations.
    """

    def __init__(self, application: Application, options: SimulationOptions | None = None) -> None:
        chosen = SimulationOptions() if options is None else options
        self._weights: Final = application.weights
        self._inputs: Final = application.inputs
        self._outputs: Final = application.outputs
        exchange = application.host_exchange
        self._initialize: Final = _call(application, INITIALIZE)
        self._run: Final = _call(application, RUN)
        self._called_outputs: Final = _outputs_of_call(application.outputs, self._run)
        _check_file(application.weights, self._initialize, INITIALIZE)
        _check_file(application.inputs, self._run, RUN)
        for binding in (*application.inputs, *application.outputs, *application.weights):
            _check_covered(f"the file of {binding.name}", _size_of(binding), binding.slices)
        pages = sum(page.size for page in exchange.pages)
        if pages > HOST_MEMORY_LIMIT or len(set(exchange.attach_order)) != len(exchange.attach_order):
            raise _invalid(f"its host pages have {pages:,} bytes, or one is attached twice")
        for call in (self._initialize, self._run):
            for size, parts in zip(call_file_sizes(call), (call.inputs, call.outputs), strict=True):
                _check_covered(f"a file of call {call.name}", size, parts)
            for part in (*call.inputs, *call.outputs):
                if part.page not in exchange.attach_order:
                    raise _invalid(f"call {call.name} uses page {part.page}, which is never attached")
        names = Names(symbols=application.debug_symbols, regions=application.debug_regions)
        self._machine: Final = Machine(
            application.tiles,
            names,
            default_options() if chosen.tile is None else chosen.tile,
            threads=chosen.threads,
            cycle_limit=chosen.cycle_limit,
        )
        self._code: Final = names.code()
        stopping = [] if chosen.stop_at is None or chosen.stop_at.tile is None else [chosen.stop_at.tile]
        places = [self._place(tile) for tile in chosen.trace_tiles]
        for tile in stopping:
            self._place(tile)
        functional = None
        if chosen.meanings is not None:
            meant = {
                int(symbol.address): (symbol.name, chosen.meanings[symbol.name])
                for symbol in reversed(application.debug_symbols)
                if symbol.name in chosen.meanings
            }
            functional = Functional(meant)
        self._is_functional: Final = functional is not None
        self._has_unpriced_meanings: Final = any(
            meaning.cycles is None for meaning in (chosen.meanings or {}).values()
        )
        self._recorder: Final = Recorder(self._machine, places, chosen.stop_at, self._code)
        self._device: Final = Device(self._machine, functional, self._recorder)
        self._host: Final = Host(exchange, self._device)
        self._is_initialized = False
        self._stop: RunResult | None = None
        self._seen = 0

    # Calls.

    @property
    def has_weights(self) -> bool:
        """Whether weights must be given before the first run."""
        return bool(self._weights)

    @property
    def physical_tiles(self) -> tuple[PhysicalTile, ...]:
        """Tiles of the application, ascending."""
        return tuple(PhysicalTile(tile) for tile in self._machine.physical.tolist())

    def start(self) -> RunResult:
        """Run all tiles to the first place where they wait for each other; calls do it when they must.

        Raises:
            InvalidInput: the device has stopped.
            Unsupported: an instruction is not simulated.
        """
        self._check_alive()

        def act() -> RunResult:
            self._device.run()
            return self._result({}, None)

        return self._guard(act)

    def initialize(self, weights: Mapping[str, bytes] = _NOTHING) -> RunResult:
        """Put the weights on the device, where they stay.

        Args:
            weights: file of each weight.

        Raises:
            InvalidInput: a weight is missing, unknown, or of another size; or there was a call before.
            Unsupported: an instruction is not simulated.
        """
        if self._is_initialized:
            raise _refused("its weights are on the device already", "make a new simulator for other weights")
        file = _joined("weight", self._weights, weights)
        self._check_alive()
        self._is_initialized = True

        def act() -> RunResult:
            self._host.attach()
            self._host.call(self._initialize, file)
            return self._result({}, None)

        return self._guard(act)

    def run(self, inputs: Mapping[str, bytes] = _NOTHING) -> RunResult:
        """Run the program once. Without weights, the first run initializes.

        Args:
            inputs: file of each input.

        Raises:
            InvalidInput: an input is missing, unknown, or of another size; weights were not given; or the
                program has ended.
            Unsupported: an instruction is not simulated.
        """
        file = _joined("input", self._inputs, inputs)
        self._check_alive()
        if not self._is_initialized:
            if self._weights:
                raise _refused("its weights have not been given", "initialize it with them first")
            first = self.initialize()
            if not first.is_complete:
                return first
        if (self._device.wait == Wait.ENDED).all() and (self._run.inputs or self._run.outputs):
            raise _refused(
                "its program has ended after the runs that it was built for",
                "make a new simulator, or build the package for more runs",
            )

        def act() -> RunResult:
            outcome = self._host.call(self._run, file)
            self._device.settle()
            sampled = self._sampled_span()
            end = outcome.end if outcome.end is not None else int(self._device.reached.max())
            cycles = Measure(
                name="run",
                value=max(0, end - outcome.start) if sampled is None else sampled,
                unit="cycles",
                kind=NumberKind.ESTIMATED if self._is_functional else NumberKind.SIMULATED,
            )
            return self._result(self._output_files(outcome), cycles)

        return self._guard(act)

    # Looking at the device.

    def tile(self, tile: PhysicalTile) -> Tile:
        """A tile, to look at its registers and memory.

        Raises:
            InvalidInput: the package does not hold it.
        """
        return self._machine.tile(self._place(tile))

    def trace(self) -> str:
        """What traced tiles have done so far, as JSON for Chrome or Perfetto."""
        tracks = {
            PhysicalTile(int(self._machine.physical[place])): track
            for place, track in self._recorder.tracks.items()
        }
        return trace_json(tracks, [named.name for named in self._code])

    # Parts.

    def _place(self, tile: PhysicalTile) -> int:
        place = self._machine.place_of(tile)
        if place is None:
            raise _refused(f"the package does not hold tile {tile}", "choose a physical number of its tiles")
        return place

    def _check_alive(self) -> None:
        if self._stop is not None:
            raise _refused("the device has stopped in an earlier call", "make a new simulator")

    def _guard(self, act: Callable[[], RunResult]) -> RunResult:
        """Do something with the device; faults and the breakpoint become a result."""
        try:
            return act()
        except DeviceStopped as stopped:
            self._stop = self._result({}, None, faults=stopped.faults)
            return self._stop
        except BreakReached as reached:
            tile = PhysicalTile(int(self._machine.physical[reached.place]))
            self._stop = self._result({}, None, stopped_at=tile)
            return self._stop
        except Unsupported:
            self._stop = self._result({}, None)
            raise

    def _result(
        self,
        outputs: Mapping[str, bytes],
        cycles: Measure | None,
        *,
        faults: Sequence[ApplicationFault] = (),
        stopped_at: PhysicalTile | None = None,
    ) -> RunResult:
        timeline = tuple(self._device.timeline[self._seen :])
        self._seen = len(self._device.timeline)
        return RunResult(
            outputs=outputs,
            cycles=cycles,
            timeline=timeline,
            faults=tuple(faults),
            notes=self._notes(),
            stopped_at=stopped_at,
        )

    def _samples(self, name: str) -> list[int] | None:
        """The words of an output that tiles write their clocks to; None where one was not written."""
        words = [
            self._machine.word(self._place(part.tile), int(part.tile_address))
            for binding in self._outputs
            if binding.name == name
            for part in binding.slices
        ]
        found = [word for word in words if word is not None]
        return found if found and len(found) == len(words) else None

    def _sampled_span(self) -> int | None:
        """Cycles of the run just done by the samples of its tiles; None where the package takes none."""
        first, last = self._samples(FIRST_SAMPLE), self._samples(LAST_SAMPLE)
        if first is None or last is None:
            return None
        # Clocks are words that wrap; the longest span by far is shorter than half of their period.
        behind = [(word - first[0] + (1 << 31)) % (1 << 32) for word in first]
        before = [(word - first[0] + (1 << 31)) % (1 << 32) for word in last]
        return max(before) - max(behind)

    def _notes(self) -> tuple[str, ...]:
        notes = [f"cycles of a run: {SPAN if self._sampled_span() is None else SAMPLED_SPAN}"]
        if self._is_functional:
            notes.append("functional: cycles are estimated")
            if self._has_unpriced_meanings:
                notes.append(
                    "kernels whose cycles are not known count as their launch alone: the sum is too small"
                )
        missing = TILE_COUNT - self._machine.count
        if missing:
            notes.append(f"{missing:,} tiles are not in the package and count as absent from every barrier")
        return tuple(notes)

    def _output_files(self, outcome: CallOutcome) -> dict[str, bytes]:
        """Files of the outputs: those of the call, then those that are read from memory."""
        files: dict[str, bytes] = {}
        at = 0
        for binding in self._outputs[: self._called_outputs]:
            size = _size_of(binding)
            files[binding.name] = outcome.file[at : at + size]
            at += size
        for binding in self._outputs[self._called_outputs :]:
            files[binding.name] = self._read(binding)
        return files

    def _read(self, binding: Binding) -> bytes:
        """The file of a binding, from the memory of its tiles."""
        file = np.zeros(_size_of(binding), np.uint8)
        for part in binding.slices:
            data, written = self._machine.read(self._place(part.tile), part.tile_address, int(part.size))
            if not written.all():
                missing = int(part.tile_address) + int(np.argmin(written))
                text = f"output {binding.name}: nothing wrote the byte at {missing:#x}"
                raise DeviceStopped(
                    ApplicationFault(kind=ApplicationFaultKind.OUTPUT_UNWRITTEN, text=text, tile=part.tile)
                )
            file[part.file_offset : part.file_offset + part.size] = np.frombuffer(data, np.uint8)
        return file.tobytes()


# Packages.


def _call(application: Application, name: str) -> HostCall:
    """A call by its name; one without phases when the package has none."""
    for call in application.host_exchange.calls:
        if call.name == name:
            if call.invocations != 1:
                raise Unsupported(
                    f"it has {call.invocations} invocations, and nothing is known of what lies between them",
                    stage=STAGE,
                    subject=f"call {name}",
                    next_step="build the package with one invocation, and call it several times",
                )
            return call
    return HostCall(name=name, command=0, phases=0)


def _size_of(binding: Binding) -> Bytes:
    return Bytes(max((part.file_offset + part.size for part in binding.slices), default=0))


def _check_file(bindings: Sequence[Binding], call: HostCall, name: str) -> None:
    """The input file of a call is the files of the bindings, one after the other."""
    size, _ = call_file_sizes(call)
    wanted = sum(_size_of(binding) for binding in bindings)
    if size != wanted:
        raise _invalid(f"call {name} takes {size:,} bytes, its tensors have {wanted:,}")


def _check_covered(what: str, size: Bytes, parts: Sequence[RegionSlice | HostSlice]) -> None:
    """A file is not longer than its slices together: it has no part that nobody holds."""
    covered = sum(part.size for part in parts)
    if size > covered:
        raise _invalid(f"{what} has {size:,} bytes, its slices only {covered:,}")


def _outputs_of_call(outputs: Sequence[Binding], call: HostCall) -> int:
    """How many of the outputs, from the first on, make the output file of a call."""
    _, size = call_file_sizes(call)
    total = count = 0
    while total < size and count < len(outputs):
        total += _size_of(outputs[count])
        count += 1
    if total != size:
        raise _invalid(f"call {call.name} gives {size:,} bytes, which are not those of its first tensors")
    return count


def _joined(role: str, bindings: Sequence[Binding], given: Mapping[str, bytes]) -> bytes:
    """The files of all bindings, one after the other.

    Raises:
        InvalidInput: one is missing, unknown, or of another size.
    """
    names = [binding.name for binding in bindings]
    for name in given:
        if name not in names:
            known = ", ".join(names) or "none"
            raise _refused(f"there is no {role} {name!r}", f"give the {role}s of the package: {known}")
    files: list[bytes] = []
    for binding in bindings:
        file = given.get(binding.name)
        if file is None:
            raise _refused(
                f"{role} {binding.name!r} is missing", f"give a file of {_size_of(binding):,} bytes"
            )
        if len(file) != _size_of(binding):
            raise _refused(
                f"{role} {binding.name!r} has {len(file):,} bytes, its file has {_size_of(binding):,}",
                "pack the tensor as its description says",
            )
        files.append(file)
    return b"".join(files)


def _refused(message: str, next_step: str) -> InvalidInput:
    return InvalidInput(message, stage=STAGE, subject="application", next_step=next_step)


def _invalid(message: str) -> PackageInvalid:
    return PackageInvalid(message, stage=STAGE, subject="application", next_step=_REBUILD)
