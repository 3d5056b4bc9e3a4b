"""Where the runtime puts things in a tile, and which register plays which part.

All of it is policy: a program with another layout would run as well, as long as code and layout agree. It
is one value, ``DEFAULT_LAYOUT``, so that whoever reserves, links, emits or simulates reads the same
addresses. What the loader fixes (the start of an image, how far it reaches) is taken from ``loader``; what
the host fixes from ``host``.

From the bottom: entry (two instructions), code, the exchange window for host packets and staged host data,
the runtime's state (completion word, profile samples, stacks), data and further code up to the end of the
standard region, then data only.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, final

from compiler.target.host import HOST_WINDOW
from compiler.target.loader import LOAD_BASE, LOAD_LIMIT
from compiler.target.memory import BUNDLE_ALIGNMENT, EXECUTABLE_LIMIT, ByteRange
from compiler.target.registers import MainRegister
from compiler.target.standing import POLICY, VERIFIED, stands
from compiler.target.tiles import WORKERS_PER_TILE, logical_to_physical
from compiler.target.units import Address, Bytes, LogicalTile

ENTRY_SIZE: Annotated[Bytes, POLICY] = Bytes(8)
"""Bytes of the entry: load the runtime's address, branch to it. Policy."""

COMPLETED: Annotated[int, POLICY] = 1
"""What the completion word holds when a program has finished. Policy."""

FRAME_ALIGNMENT: Annotated[Bytes, POLICY] = Bytes(8)
"""Supervisor stack frames are multiples of so many bytes. Policy."""

FIRST_ARGUMENT: Annotated[MainRegister, POLICY] = MainRegister.M2
"""First argument of a kernel or helper: the address of output 0 of a kernel. Policy."""

LAST_ARGUMENT: Annotated[MainRegister, POLICY] = MainRegister.M9
"""Last register that can hold an argument. Policy."""

SCRATCH: Annotated[MainRegister, POLICY] = MainRegister.M8
"""Holds values on their way to control registers. Policy."""

MOVING_BASE: Annotated[MainRegister, POLICY] = MainRegister.M6
"""Base of sends that advance from one Repeat iteration to the next. Policy."""

BARRIER_RETURN: Annotated[MainRegister, POLICY] = MainRegister.M7
"""Return address of the worker barrier. Policy."""

HELPER_RETURN: Annotated[MainRegister, POLICY] = MainRegister.M9
"""Return address of patch, host and repeat helpers. Policy."""

KERNEL_RETURN: Annotated[MainRegister, POLICY] = MainRegister.M10
"""Return address of kernels, exchange rows, samples and host programs. Policy."""

STACK_POINTER: Annotated[MainRegister, POLICY] = MainRegister.M11
"""Supervisor stack, descending. Policy."""

ENDPOINTS_PER_TILE: Annotated[int, VERIFIED] = 8
"""Barrier identities set aside for each tile, of which its workers use six. Fact, ran on hardware."""


@final
@stands(POLICY)
@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeLayout:
    """Addresses of the runtime; byte addresses in every tile alike.

    Args:
        window: packets to the host, then staged host data. Between host phases transient standard data may
            lie here, but no input, parameter or output.
        close_packet: the packet that ends a transfer, inside the window.
        staging: where data from the host arrive, inside the window.
        state: the runtime's own memory.
        completion: word that tells the host of the end; in the state, like the following.
        profile_start, profile_end: samples of the cycle counter around the whole program.
        stacks: lowest worker stack.
        stack_size: bytes of each worker stack.
        upper_code: where the second range for linked code starts.
    """

    window: ByteRange
    close_packet: Address
    staging: Address
    state: ByteRange
    completion: Address
    profile_start: Address
    profile_end: Address
    stacks: Address
    stack_size: Bytes
    upper_code: Address

    def __post_init__(self) -> None:
        """Everything is where it must be, in order, without overlap."""
        ascending = {
            "entry": LOAD_BASE,
            "code": self.lower_code.start,
            "window": self.window.start,
            "close packet": self.close_packet,
            "staging": self.staging,
            "window end": self.window.end,
            "completion word": self.completion,
            "profile start": self.profile_start,
            "profile end": self.profile_end,
            "stacks": self.stacks,
            "state end": self.state.end,
            "upper code": self.upper_code,
            "executable limit": EXECUTABLE_LIMIT,
        }
        for (low_name, low), (high_name, high) in pairwise(ascending.items()):
            if low > high:
                raise ValueError(f"runtime layout: {low_name} ({low:#x}) is above {high_name} ({high:#x})")
        if self.state.start != self.completion or not self.window.contains(HOST_WINDOW):
            raise ValueError(
                "runtime layout: the completion word starts the state, the window holds the host's"
            )
        if self.stacks + WORKERS_PER_TILE * self.stack_size != self.state.end:
            raise ValueError("runtime layout: the worker stacks fill the state to its end")
        if any(address % BUNDLE_ALIGNMENT for address in (self.staging, self.stacks, self.upper_code)):
            raise ValueError("runtime layout: staging, stacks and code start on 8-byte boundaries")

    @property
    def entry(self) -> Address:
        """First instruction of every tile."""
        return LOAD_BASE

    @property
    def lower_code(self) -> ByteRange:
        """First range for linked code: from the entry to the window."""
        start = Address(LOAD_BASE + ENTRY_SIZE)
        return ByteRange(start=start, size=Bytes(self.window.start - start))

    @property
    def upper_code_range(self) -> ByteRange:
        """Second range for linked code: to the end of the standard region."""
        return ByteRange(start=self.upper_code, size=Bytes(EXECUTABLE_LIMIT - self.upper_code))

    @property
    def data_start(self) -> Address:
        """First byte address that data may have for the whole program."""
        return self.state.end

    @property
    def data_end(self) -> Address:
        """First byte address behind what a package can initialize."""
        return LOAD_LIMIT

    @property
    def supervisor_stack(self) -> Address:
        """Initial stack pointer.

        The stack shares the area of the last worker from above: workers use little of theirs.
        """
        return self.state.end

    def worker_stack(self, worker: int) -> Address:
        """Base of a worker's stack, which ascends."""
        if not 0 <= worker < WORKERS_PER_TILE:
            raise ValueError(f"worker {worker} is outside 0..{WORKERS_PER_TILE - 1}")
        return Address(self.stacks + worker * self.stack_size)


_STATE = Address(0x58000)

DEFAULT_LAYOUT: Annotated[RuntimeLayout, POLICY] = RuntimeLayout(
    window=ByteRange(start=HOST_WINDOW.start, size=Bytes(0x8000)),
    close_packet=Address(HOST_WINDOW.start + 0x160),
    staging=Address(HOST_WINDOW.start + 0x180),
    state=ByteRange(start=_STATE, size=Bytes(0x6E0)),
    completion=_STATE,
    profile_start=Address(_STATE + 4),
    profile_end=Address(_STATE + 8),
    stacks=Address(_STATE + 0xE0),
    stack_size=Bytes(0x100),
    upper_code=Address(0x5C000),
)
"""The layout of every package. Policy."""


def sync_endpoint(tile: LogicalTile, worker: int) -> int:
    """What a worker writes to SYNC_ENDPOINT (ran on hardware)."""
    _check_worker(tile, worker)
    return tile * ENDPOINTS_PER_TILE + worker


def random_seed(tile: LogicalTile, worker: int) -> int:
    """What a worker seeds its random generator with, different for each worker of the chip. Policy."""
    _check_worker(tile, worker)
    return (tile + 1) * ENDPOINTS_PER_TILE + worker


def _check_worker(tile: LogicalTile, worker: int) -> None:
    logical_to_physical(tile)  # refuses what is no tile
    if not 0 <= worker < WORKERS_PER_TILE:
        raise ValueError(f"worker {worker} is outside 0..{WORKERS_PER_TILE - 1}")
