"""Casts that keep the sequence of elements: kernels, geometry, cost and semantics.

A unit is what fills 64 bits on the narrower side; workers take units in turn and spend three bundles on each,
for its three loads and stores. Asked to keep source and result in separate memory elements, they load and
store in one instruction and spend two. Conversions that are bound by arithmetic gain nothing from that: F8
to F8 takes five bundles, F32 to F8 seven, F8 to F32 ten. What does not fill a unit is done element by element
by one worker; a byte or half that shares its word with others is put in place beside them, which the access
says.

**Shared storage.** A narrowing cast can leave its result in the storage of its operand, from a *distance* of
bytes before it: then one storage holds the operand, and the distance is all that the result needs beside it.
Result and operand move towards the same end, the result more slowly, so that it never overtakes what is still
to be read if the distance is kept at the start. Workers are not in step, however. Therefore the kernel does
the units in chunks, a launch and a rendezvous for each: a chunk's results end where its operand begins, at
the latest. With a distance of n units the chunks have n, n*r, n*r*r, ... units, where a unit of the operand
is r times as long: results of 200,000 bytes at a distance of 32 KiB take three launches. All chunks begin and
end at multiples of the distance, which keeps loads and stores in separate memory elements when the distance
is an element.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.kernels.cast.conversions import Conversion, converted
from compiler.kernels.contract import Scalar, TileMemory
from compiler.kernels.eight_bit import SETUP
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import SIMPLE, TAKEN, Clock, call_cycles, shares
from compiler.target.memory import INTERLEAVED
from compiler.target.units import Cycles

WORKERS: Final = 6
ELEMENT: Final = int(INTERLEAVED.element_size)
"""Bytes of the longest memory elements."""
DISTANCES: Final = tuple(1 << power for power in range(10, ELEMENT.bit_length()))
"""Bytes from a result to the operand whose storage it shares."""

_BY_ARITHMETIC: Final = frozenset({Conversion.F8_F8, Conversion.F32_F8, Conversion.F8_F32})


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """What a kernel is specialized on.

    Args:
        conversion: what happens to values.
        has_two_ports: whether it loads and stores at once.
        is_shared: whether the result takes the storage of the operand.

    Raises:
        ValueError: there is no such kernel.
    """

    conversion: Conversion
    has_two_ports: bool = False
    is_shared: bool = False

    def __post_init__(self) -> None:
        """Two ports must help, and results that share storage be shorter."""
        if self.has_two_ports and self.conversion in _BY_ARITHMETIC:
            raise ValueError(f"{self.conversion.name} has no kernel for two ports")
        if self.is_shared and not self.conversion.is_narrowing:
            raise ValueError(f"a result of {self.conversion.name} cannot share the storage of its operand")

    @property
    def symbol(self) -> SymbolKey:
        """Its symbol."""
        source, result = self.conversion.value
        choices = [("source", source), ("result", result)]
        if self.conversion not in _BY_ARITHMETIC:
            choices.append(("ports", "two" if self.has_two_ports else "one"))
        if self.is_shared:
            choices.append(("storage", "shared"))
        return SymbolKey(family="cast", variant="linear", choices=tuple(choices))

    @property
    def argument_count(self) -> int:
        """Arguments of a call."""
        return 5 + self.conversion.scale_count + self.is_shared


def has_ports(conversion: Conversion) -> bool:
    """Whether loading and storing at once makes a conversion faster."""
    return conversion not in _BY_ARITHMETIC


KERNELS: Final = {
    kernel.symbol: kernel
    for kernel in (
        Linear(conversion=conversion, has_two_ports=has_two_ports, is_shared=is_shared)
        for conversion in Conversion
        for has_two_ports in ((False, True) if has_ports(conversion) else (False,))
        for is_shared in ((False, True) if conversion.is_narrowing else (False,))
    )
}
"""By their symbols."""


def kernel_of(key: SymbolKey) -> Linear:
    """The kernel of a symbol.

    Raises:
        ValueError: the family has no such kernel.
    """
    if key not in KERNELS:
        raise ValueError(f"family cast has no kernel {key}")
    return KERNELS[key]


def scalars(
    kernel: Linear, count: int, scales: tuple[Scalar, ...], distance: int | None
) -> tuple[Scalar, ...]:
    """Arguments behind the pointers, for so many elements; the distance is that of shared storage."""
    unit = kernel.conversion.unit
    units = count // unit
    first: tuple[Scalar, ...] = ()
    if distance is not None:
        first = (Scalar(name="first_units", value=distance // (unit * kernel.conversion.result_bytes)),)
    return (
        Scalar(name="units_per_worker", value=units // WORKERS),
        Scalar(name="units_left", value=units % WORKERS),
        Scalar(name="tail", value=count % unit),
        *scales,
        *first,
    )


def _count(kernel: Linear, arguments: tuple[int, ...]) -> int:
    """Elements, from the argument registers."""
    per_worker, left, tail = arguments[2:5]
    return kernel.conversion.unit * (WORKERS * per_worker + left) + tail


_NARROWING: Final = {False: (3, 7), True: (2, 9)}
_WIDENING: Final = {False: (3, 8), True: (2, 10)}
_LOOPS: Final = {
    Conversion.F32_F16: _NARROWING,
    Conversion.F16_F32: _WIDENING,
    Conversion.F16_F8: _NARROWING,
    Conversion.F8_F16: _WIDENING,
    Conversion.F8_F8: {False: (5, 9)},
    Conversion.F32_F8: {False: (7, 14)},
    Conversion.F8_F32: {False: (10, 16)},
}
"""Issues of a worker for each unit but the first, and all others around them, by whether it has two ports."""
_TAIL: Final = {
    Conversion.F32_F16: 18,
    Conversion.F16_F32: 5,
    Conversion.F16_F8: 18,
    Conversion.F8_F16: 18,
    Conversion.F8_F8: 21,
    Conversion.F32_F8: 21,
    Conversion.F8_F32: 8,
}
"""Issues for each element behind the last unit."""


def cycles_of_call(kernel: Linear, arguments: tuple[int, ...]) -> Cycles:
    """Of a kernel with these argument registers."""
    count = _count(kernel, arguments)
    units, tail = divmod(count, kernel.conversion.unit)
    if not kernel.is_shared:
        return call_cycles(10 + kernel.argument_count, _issues(kernel, units, tail))
    chunk = arguments[kernel.argument_count - 1]
    ratio = kernel.conversion.source_bytes // kernel.conversion.result_bytes
    clock = Clock()
    clock.supervisor(*[SIMPLE] * (7 + kernel.argument_count))
    left = units + (tail > 0)
    while left:
        now = min(chunk, left)
        left -= now
        full = min(now, units)
        units -= full
        clock.supervisor(*[SIMPLE] * 4, *([TAKEN] if left else [SIMPLE, SIMPLE]), *[SIMPLE] * 15)
        clock.launch(_issues(kernel, full, 0 if left else tail))
        clock.supervisor(SIMPLE)
        clock.wait()
        clock.supervisor(TAKEN if left else SIMPLE)
        chunk *= ratio
    clock.supervisor(SIMPLE, TAKEN)
    return clock.elapsed


def _issues(kernel: Linear, units: int, tail: int) -> list[int]:
    """Of each worker in a launch."""
    conversion = kernel.conversion
    per_unit, around = _LOOPS[conversion][kernel.has_two_ports]
    issues: list[int] = []
    for worker, share in enumerate(shares(units)):
        total = 16 + SETUP * conversion.is_eight_bit
        if share:
            total += around + per_unit * (share - 1)
        if worker == units % WORKERS:
            total += 2
            if tail:
                total += 2 + _TAIL[conversion] * tail
        issues.append(total)
    return issues


def execute(kernel: Linear, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers."""
    result, operand = arguments[:2]
    count = _count(kernel, arguments)
    data = memory.read(operand, count * kernel.conversion.source_bytes)
    made = converted(kernel.conversion, data, arguments[5 : 5 + kernel.conversion.scale_count])
    memory.write(result, np.ascontiguousarray(made).view(np.uint8).reshape(-1))
