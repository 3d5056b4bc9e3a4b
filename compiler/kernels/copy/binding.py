"""Copies and fills of bytes inside a tile: contract, cost and semantics.

A copy is asked for by a descriptor of bytes (rows, row length, strides, and where both sides begin modulo 32)
and names no tensor (CP-01, CP-04). Its accesses have no operand; an address of a call is that of its first
byte. Source and destination do not overlap.

The widest unit that divides everything is taken: 64, 32 or 16 bits. Rows that continue one another on both
sides are one row.

==========  ===========================================================================================
kernel      when
==========  ===========================================================================================
``span``    one row of 64- or 32-bit units: workers take units in turn
``rows``    several of them: workers share the columns of a row, the rows, or both
``halves``  16-bit units, one row or several
==========  ===========================================================================================

each as ``move_...`` and ``fill_...`` (zero bytes).

There are no 16-bit stores. At the ends of a row of halves a word can hold two bytes that are not ours: they
are read and written back, which the access says. Rows that meet in one word are never written at the same
time: the kernel then does even and odd rows one after the other.
"""

from dataclasses import dataclass
from enum import Enum
from math import gcd
from typing import ClassVar, Final, assert_never, final

import numpy as np

from compiler.geometry.traversal import Loops, Traversal
from compiler.kernels.contract import (
    ADDRESSABLE,
    NO_BYTES,
    Access,
    Argument,
    Binding,
    Family,
    Operand,
    Parameters,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
)
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LANES, LOAD, SIMPLE, TAKEN, Clock, call_cycles, lane_share, shares
from compiler.target.units import Cycles

NAME: Final = "copy"
WORKERS: Final = 6
WORD: Final = 4
HALF: Final = 2
MOST: Final = 0x10000
"""Rows, and columns of a lane, are fewer: two of them share an argument."""
MOST_SIXTHS: Final = 98304
"""Numbers that ``halves`` divides by six in its multiplication are below this."""


class Kind(Enum):
    """What is written."""

    MOVE = "move"
    """The bytes of the source."""
    FILL = "fill"
    """Zeros."""


class Shape(Enum):
    """The kernels of each kind."""

    SPAN = "span"
    ROWS = "rows"
    HALVES = "halves"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CopyParameters(Parameters):
    """Bytes to copy or to fill.

    Args:
        kind: what is written.
        rows: number of rows, 1 or more.
        row_bytes: bytes of each, 1 or more.
        destination_stride: bytes from row to row of the destination.
        destination_origin: address of its first byte modulo 32.
        source_stride: bytes from row to row of the source; 0 for fills.
        source_origin: address of its first byte modulo 32; 0 for fills.
    """

    family: ClassVar[str] = NAME
    kind: Kind
    rows: int
    row_bytes: int
    destination_stride: int
    destination_origin: int = 0
    source_stride: int = 0
    source_origin: int = 0


def symbol_of(kind: Kind, shape: Shape, unit: int) -> SymbolKey:
    """The kernel of a kind, shape and unit (bytes)."""
    choices = () if shape is Shape.HALVES else (("unit", f"u{8 * unit}"),)
    return SymbolKey(family=NAME, variant=f"{kind.value}_{shape.value}", choices=choices)


def bind(request: Request) -> Binding | Refusal:
    """The call for one descriptor; there are no operands."""
    parameters = request.parameters
    if not isinstance(parameters, CopyParameters):
        raise ValueError(f"{type(parameters).__name__} are not parameters of {NAME}")
    if request.operands or request.aliases:
        return Refusal(reason="a copy is described by bytes; it has no operands and no aliases")
    refusal = _refusal(parameters)
    if refusal is not None:
        return Refusal(reason=refusal)
    longest = max(parameters.row_bytes, parameters.destination_stride, parameters.source_stride)
    if parameters.rows * longest > ADDRESSABLE:
        return Refusal(reason=f"{parameters.rows} rows of {longest} bytes lie beyond every address")
    rows = _Rows.of(parameters)
    if rows.unit == 1:
        return Refusal(
            reason=f"rows of {parameters.row_bytes} bytes at strides {parameters.source_stride} and "
            f"{parameters.destination_stride} are not made of 16-bit units"
        )
    if rows.count >= MOST:
        return Refusal(reason=f"{rows.count} rows are not fewer than {MOST}")
    scalars: tuple[Scalar, ...]
    if rows.unit == HALF:
        shape, (scalars, cycles) = Shape.HALVES, _bind_halves(rows)
    elif rows.count == 1:
        shape, (scalars, cycles) = Shape.SPAN, _bind_span(rows)
    else:
        shape, (scalars, cycles) = Shape.ROWS, _bind_rows(rows)
    is_move = parameters.kind is Kind.MOVE
    pointers: list[Argument] = [Pointer(reference=Result(0))]
    if is_move:
        pointers.append(Pointer(reference=Operand(0)))
    source = Access(
        operand=None,
        alignment=rows.unit,
        reads=_traversal(rows.count, 0, rows.row_bytes, rows.source_stride),
    )
    return Binding(
        family=NAME,
        parameters=parameters,
        results=(_destination(rows),),
        operands=(source,) if is_move else (),
        arguments=(*pointers, *scalars),
        symbol=symbol_of(parameters.kind, shape, rows.unit),
        work=Work(moved_bytes=parameters.rows * parameters.row_bytes),
        cycles=cycles,
    )


def _refusal(parameters: CopyParameters) -> str | None:
    if parameters.rows < 1 or parameters.row_bytes < 1:
        return f"{parameters.rows} rows of {parameters.row_bytes} bytes are nothing to copy"
    strides = [("destination", parameters.destination_stride)]
    if parameters.kind is Kind.MOVE:
        strides.append(("source", parameters.source_stride))
    for name, stride in strides:
        if parameters.rows > 1 and stride < parameters.row_bytes:
            return f"rows of {parameters.row_bytes} bytes overlap at a {name} stride of {stride}"
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """A descriptor without rows that continue one another."""

    kind: Kind
    count: int
    row_bytes: int
    source_stride: int
    destination_stride: int
    destination_origin: int
    unit: int

    @staticmethod
    def of(parameters: CopyParameters) -> "_Rows":
        count, row_bytes = parameters.rows, parameters.row_bytes
        strides = [parameters.destination_stride]
        if parameters.kind is Kind.MOVE:
            strides.append(parameters.source_stride)
        if count == 1 or all(stride == row_bytes for stride in strides):
            count, row_bytes = 1, count * row_bytes
            strides = [row_bytes] * len(strides)
        origins = (parameters.source_origin, parameters.destination_origin)
        return _Rows(
            kind=parameters.kind,
            count=count,
            row_bytes=row_bytes,
            source_stride=strides[-1],
            destination_stride=strides[0],
            destination_origin=parameters.destination_origin,
            unit=gcd(8, row_bytes, *origins, *strides),
        )

    @property
    def per_unit(self) -> int:
        """Issues for each unit."""
        return 2 if self.kind is Kind.MOVE else 1


def _traversal(count: int, start: int, row_bytes: int, stride: int) -> Traversal:
    loop = ((count,), ((stride,),)) if count > 1 else ((), ())
    if count > 1 and stride == row_bytes:
        return _traversal(1, start, count * row_bytes, 0)
    return Traversal(pieces=(Loops(run_bytes=row_bytes, bases=(start,), counts=loop[0], strides=loop[1]),))


def _destination(rows: _Rows) -> Access:
    """What is written. Rows of halves touch whole words; the bytes between are read first."""
    if rows.unit != HALF:
        return Access(
            operand=None,
            alignment=rows.unit,
            writes=_traversal(rows.count, 0, rows.row_bytes, rows.destination_stride),
        )
    first = rows.destination_origin % WORD
    writes: list[Loops] = []
    reads: list[Loops] = []
    for start, count, stride, length in _alike(rows):
        before = (first + start) % WORD
        after = -(before + length) % WORD
        writes += _traversal(count, start - before, before + length + after, stride).pieces
        if before:
            reads += _traversal(count, start - before, before, stride).pieces
        if after:
            reads += _traversal(count, start + length, after, stride).pieces
    return Access(
        operand=None,
        start=-first,
        alignment=WORD,
        reads=Traversal(pieces=tuple(reads)) if reads else NO_BYTES,
        writes=Traversal(pieces=tuple(writes)),
    )


def _alike(rows: _Rows) -> list[tuple[int, int, int, int]]:
    """(start, rows, stride, bytes) of destination rows that lie alike in their words; none share a word."""
    stride = rows.destination_stride
    if rows.count > 1 and stride == rows.row_bytes:
        return [(0, 1, 0, rows.count * rows.row_bytes)]
    if rows.count == 1 or stride % WORD == 0:
        return [(0, rows.count, stride, rows.row_bytes)]
    return [
        (parity * stride, (rows.count - parity + 1) // 2, 2 * stride, rows.row_bytes) for parity in range(2)
    ]


def _phases(rows: _Rows) -> int:
    """2 when neighbouring rows can meet in a word, so that even and odd rows are done in turn."""
    meets = rows.destination_stride == rows.row_bytes and (
        rows.destination_origin % WORD or rows.destination_stride % WORD
    )
    return 2 if rows.count > 1 and meets else 1


def _pointer_count(kind: Kind) -> int:
    return 2 if kind is Kind.MOVE else 1


def _bind_span(rows: _Rows) -> tuple[tuple[Scalar, ...], Cycles]:
    units = rows.row_bytes // rows.unit
    scalars = (
        Scalar(name="units_per_worker", value=units // WORKERS),
        Scalar(name="units_left", value=units % WORKERS),
    )
    return scalars, _span_cycles(rows)


def _span_cycles(rows: _Rows) -> Cycles:
    """Of ``span``: workers take units in turn."""
    pointers = _pointer_count(rows.kind)
    issues = [9 + 2 * pointers + rows.per_unit * share for share in shares(rows.row_bytes // rows.unit)]
    return call_cycles(4 + pointers, issues)


def _bind_rows(rows: _Rows) -> tuple[tuple[Scalar, ...], Cycles]:
    columns = rows.row_bytes // rows.unit
    fitting = [lanes for lanes in LANES if columns // lanes[0] < MOST]
    lanes = min(fitting, key=lambda candidate: _rows_cycles(rows, candidate))
    strides = [Scalar(name="destination_stride", value=rows.destination_stride)]
    if rows.kind is Kind.MOVE:
        strides.append(Scalar(name="source_stride", value=rows.source_stride))
    scalars = (
        Scalar(name="rows", value=rows.count),
        Scalar(name="columns", value=columns),
        Scalar(name="lanes", value=lanes[0] | lanes[1] << 8),
        Scalar(name="per_lane", value=rows.count // lanes[1] | columns // lanes[0] << 16),
        *strides,
    )
    return scalars, _rows_cycles(rows, lanes)


def _rows_cycles(rows: _Rows, lanes: tuple[int, int]) -> Cycles:
    columns = rows.row_bytes // rows.unit
    pointers = _pointer_count(rows.kind)
    issues: list[int] = []
    for worker in range(WORKERS):
        own_rows = lane_share(rows.count, worker // lanes[0], lanes[1])
        own_columns = lane_share(columns, worker % lanes[0], lanes[0])
        if own_rows <= 0:
            issues.append(16)
        elif own_columns <= 0:
            issues.append(21)
        else:
            each = 2 + 2 * pointers + rows.per_unit * own_columns
            issues.append(22 + 6 * pointers + own_rows * each)
    return call_cycles(17 + 2 * pointers, issues)


def _bind_halves(rows: _Rows) -> tuple[tuple[Scalar, ...], Cycles]:
    halves = rows.row_bytes // HALF
    fitting = [
        (columns, lines)
        for columns, lines in LANES
        if rows.count * columns < MOST_SIXTHS and (halves // 2 + columns) * lines < MOST_SIXTHS
    ]
    lanes = min(fitting, key=lambda candidate: _halves_cycles(rows, candidate))
    packed = lanes[0] | lanes[1] << 8 | _phases(rows) - 1 << 16 | rows.destination_origin % WORD << 24
    strides = [Scalar(name="destination_stride", value=rows.destination_stride)]
    if rows.kind is Kind.MOVE:
        strides.append(Scalar(name="source_stride", value=rows.source_stride))
    scalars = (
        Scalar(name="rows", value=rows.count),
        Scalar(name="halves", value=halves),
        Scalar(name="lanes", value=packed),
        *strides,
    )
    return scalars, _halves_cycles(rows, lanes)


def _halves_cycles(rows: _Rows, lanes: tuple[int, int]) -> Cycles:
    """Of ``halves`` with the workers in such lanes: launch after launch, row after row of each worker."""
    pointers = _pointer_count(rows.kind)
    phases = _phases(rows)
    clock = Clock()
    clock.supervisor(*[SIMPLE] * (13 + 2 * pointers))
    for phase in range(phases):
        if phase == 1:
            clock.supervisor(*[SIMPLE] * (pointers + 1))
        clock.supervisor(LOAD, *[SIMPLE] * 5, LOAD, *[SIMPLE] * (4 + pointers))
        count = (rows.count + phases - 1 - phase) // phases
        clock.launch([_halves_issues(rows, lanes, worker, phase, count) for worker in range(WORKERS)])
        clock.wait()
        if phase == 0:
            clock.supervisor(SIMPLE if phases == 2 else TAKEN)
    clock.supervisor(SIMPLE, TAKEN)
    return clock.elapsed


def _halves_issues(rows: _Rows, lanes: tuple[int, int], worker: int, phase: int, count: int) -> int:
    """Issues of a worker that shares ``count`` rows, from row ``phase`` on."""
    row_lane, column_lane = worker // lanes[0], worker % lanes[0]
    own = lane_share(count, row_lane, lanes[1])
    if own <= 0:
        return 18
    # Rows of one worker lie in their words in at most two ways, in turn.
    step = _phases(rows) * lanes[1]
    first = phase + _phases(rows) * row_lane
    issues = 18 + 4 * _pointer_count(rows.kind)
    for turn in range(2):
        origin = rows.destination_origin + (first + turn * step) * rows.destination_stride
        issues += (own + 1 - turn) // 2 * _row_issues(rows, lanes[0], column_lane, origin % WORD != 0)
    return issues


def _row_issues(rows: _Rows, column_lanes: int, lane: int, has_head: bool) -> int:
    """Issues of a worker in one row of halves that begins inside a word, or at its start."""
    pointers, is_move = _pointer_count(rows.kind), rows.kind is Kind.MOVE
    edge = 2 + pointers
    halves = rows.row_bytes // HALF - has_head
    issues = 3 + pointers
    if has_head:
        issues += 3 + pointers + (edge if lane == 0 else 0)
    words = lane_share(halves // 2, lane, column_lanes)
    issues += 10
    if words > 0:
        issues += 1 + pointers + (3 + 3 * words if is_move else 1 + words)
    issues += 2
    if halves % 2:
        issues += 3
        if lane == column_lanes - 1:
            issues += 2 + pointers + edge
    return issues + 2 + 3 * pointers


def _rows_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> tuple[Shape, _Rows]:
    """What a kernel is asked to copy or fill, from its argument registers."""
    kind_word, shape_word = key.variant.split("_", maxsplit=1)
    kind, shape = Kind(kind_word), Shape(shape_word)
    scalars = arguments[_pointer_count(kind) :]
    unit = HALF if shape is Shape.HALVES else int(key.choice("unit").removeprefix("u")) // 8
    if key != symbol_of(kind, shape, unit):
        raise ValueError(f"family {NAME} has no kernel {key}")
    origin = 0
    match shape:
        case Shape.SPAN:
            count, row_bytes = 1, unit * (WORKERS * scalars[0] + scalars[1])
            strides = [row_bytes]
        case Shape.ROWS:
            count, row_bytes = scalars[0], unit * scalars[1]
            strides = [*scalars[4 : 4 + _pointer_count(kind)]]
        case Shape.HALVES:
            count, row_bytes = scalars[0], unit * scalars[1]
            strides = [*scalars[3 : 3 + _pointer_count(kind)]]
            origin = scalars[2] >> 24
        case _:
            assert_never(shape)
    rows = _Rows(
        kind=kind,
        count=count,
        row_bytes=row_bytes,
        source_stride=strides[-1],
        destination_stride=strides[0],
        destination_origin=origin,
        unit=unit,
    )
    return shape, rows


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    shape, rows = _rows_of_call(key, arguments)
    if shape is Shape.SPAN:
        return _span_cycles(rows)
    packed = arguments[_pointer_count(rows.kind) + 2]
    lanes = packed & 0xFF, packed >> 8 & 0xFF
    return _rows_cycles(rows, lanes) if shape is Shape.ROWS else _halves_cycles(rows, lanes)


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers."""
    _, rows = _rows_of_call(key, arguments)
    destination, source = arguments[0] + rows.destination_origin, arguments[1]
    for row in range(rows.count):
        if rows.kind is Kind.MOVE:
            data = memory.read(source + row * rows.source_stride, rows.row_bytes)
        else:
            data = np.zeros(rows.row_bytes, dtype=np.uint8)
        memory.write(destination + row * rows.destination_stride, data)


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
