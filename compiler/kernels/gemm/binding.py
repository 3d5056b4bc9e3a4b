"""Products of F16 or F8 matrices on the AMP unit: contract, cost and semantics.

The unit multiplies rows of a *left* operand by *weights*, panels of µ K x 16 columns, 512 bytes in either
precision. The result is F16. In storage (elements; µ of left and weights is 16 for F16, 32 for F8):

==========  ==========================================================  =====================
access      index                                                       name of the order
==========  ==========================================================  =====================
left        row r, k: r*µ + (k//µ)*panel + k%µ                          AmpLeft
weights     k, column n: (n//16)*column + (k//µ)*16µ + (n%16)*µ + k%µ   AmpRight, BlockMajor
result      row r, column n: r*16 + (n//16)*panel + n%16                AmpLeft
or blocks   (r//16)*block + r%16*16 + (n//16)*panel + n%16              transposed BlockMajor
==========  ==========================================================  =====================

A result in blocks of 16 rows is what another product takes as weights. Its kernels walk the blocks of each
worker one after the other, which costs a fill and drain of the unit for each. They are F16 only: the distance
of blocks takes the place of the scale among the arguments.

Only these formulas are asked of an operand, whatever its order is called, so that slices of larger storage,
one matrix of a batch, and transposed orders (attention's keys) bind whenever they obey them. In the swapped
orientation the mathematical right operand is the AMP's left one and the result is stored transposed.

**Numbers** (pinned): within a panel products are summed in K order by the unit, four at a time (F8: eight,
and each such sum times two to the scale of the call); the sum is rounded to F16 after each panel of K and is
the start of the next. An initializing call starts from zero, an accumulating one from what the result holds.

**Scale.** Codes of F8 stand for their value times two to an exponent of their tensor. The exponents of both
operands add up to the scale, an argument of the call: two scales share a kernel.

**Padding.** K padding of an F16 left operand may hold any finite numbers, because weights there are zero;
that of an F8 one is zero. Rows beyond the logical ones produce rows that nobody reads, but garbage in them
could overflow, so they are zero. Then the result's padding is zero as well, as the next product wants it.

**Memory.** A bundle loads left elements while it stores results: they never share a memory element. When
results are read back, loads of partials and stores of results of one bundle go to opposite halves of
interleaved memory.

**Cost** follows the instructions in ``code``: see :func:`cycles`.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from math import prod
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AMP_COLUMNS
from compiler.geometry.precision import F8, F16, SCALE_EXPONENTS, decode_f143
from compiler.geometry.product import ProductAxes
from compiler.geometry.region import Region
from compiler.geometry.relation import ProductOperand, Side
from compiler.geometry.traversal import Traversal, traverse
from compiler.kernels.contract import (
    NO_BYTES,
    Access,
    Binding,
    Family,
    Operand,
    Padding,
    PaddingState,
    Parameters,
    Pointer,
    Refusal,
    Request,
    Result,
    Scalar,
    TileMemory,
    Work,
)
from compiler.kernels.gemm.arithmetic import multiply
from compiler.kernels.halves import halves, to_bytes
from compiler.kernels.symbols import SymbolKey
from compiler.kernels.timing import LOAD, REGISTER, SIMPLE, TAKEN, Clock, shares
from compiler.target.units import Cycles

NAME: Final = "gemm"
PANEL_BYTES: Final = 512
"""Bytes of one panel of weights: what the AMP unit holds."""
ROW_BYTES: Final = 32
"""Bytes of one row of a panel, of left operand and result alike."""
BLOCK_ROWS: Final = 16
"""Rows of the result in a block."""
MOST_ROWS: Final = 0x4000
"""Fewer rows than this: the kernel divides them among workers by a multiplication that is exact below."""
MOST_GROUPS: Final = 0x8000
"""Fewer groups and panel rows than this: two of them share an argument."""


class Mode(Enum):
    """What the first panel of K starts from."""

    INITIALIZE = "initialize"
    """Zero."""
    ACCUMULATE = "accumulate"
    """What the result holds."""


class Orientation(Enum):
    """Which mathematical operand is the AMP's left one."""

    NORMAL = "normal"
    """The left one; the result has AmpLeft rows."""
    SWAPPED = "swapped"
    """The right one; the result is stored transposed."""


class Rounding(Enum):
    """How sums become F16. An option of the whole build, hence compiled in."""

    NEAREST = "nearest"
    """Nearest even."""
    STOCHASTIC = "stochastic"
    """Up or down at random, in proportion to the distance."""


class Weights(Enum):
    """How weights are loaded into the unit."""

    WIDE = "wide"
    """128 bits at a time, from interleaved memory."""
    NARROW = "narrow"
    """64 bits at a time, from any memory."""


class Factor(Enum):
    """What is multiplied."""

    F16 = "f16"
    F8 = "f8"

    @property
    def micro(self) -> int:
        """Elements of K in a panel."""
        return F16.micro if self is Factor.F16 else F8.micro


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GemmParameters(Parameters):
    """A product.

    Args:
        mode: what the first panel of K starts from.
        orientation: which operand is the AMP's left one.
        rounding: how sums become F16.
    """

    family: ClassVar[str] = NAME
    mode: Mode
    orientation: Orientation = Orientation.NORMAL
    rounding: Rounding = Rounding.NEAREST


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GemmShape:
    """The runtime scalars of a call.

    Args:
        rows: rows of left operand and result.
        k_groups: panels along K.
        column_groups: groups of 16 columns.
        left_panel_rows: rows from one panel of the left operand to the next.
        result_panel_rows: rows from one column group of the result to the next.
        weight_stride: bytes from the weights of one column group to those of the next.
        scale: products count times two to this; None for factors without scale.
        block_stride: bytes from 16 rows of the result to the next 16; None where all rows follow one another.
    """

    rows: int
    k_groups: int
    column_groups: int
    left_panel_rows: int
    result_panel_rows: int
    weight_stride: int
    scale: int | None = None
    block_stride: int | None = None

    def scalars(self) -> tuple[Scalar, ...]:
        """As arguments, behind the three pointers."""
        last: tuple[Scalar, ...] = ()
        if self.scale is not None:
            last = (Scalar(name="scale", value=self.scale),)
        elif self.block_stride is not None:
            last = (Scalar(name="block_stride", value=self.block_stride),)
        return (
            Scalar(name="rows", value=self.rows),
            Scalar(name="groups", value=self.k_groups | self.column_groups << 16),
            Scalar(name="panel_rows", value=self.left_panel_rows | self.result_panel_rows << 16),
            Scalar(name="weight_stride", value=self.weight_stride),
            *last,
        )

    @staticmethod
    def of_words(words: Sequence[int], kernel: "Kernel") -> "GemmShape":
        """The inverse of :meth:`scalars`; more words than there are scalars are ignored."""
        rows, groups, panel_rows, weight_stride = words[:4]
        return GemmShape(
            rows=rows,
            k_groups=groups & 0xFFFF,
            column_groups=groups >> 16,
            left_panel_rows=panel_rows & 0xFFFF,
            result_panel_rows=panel_rows >> 16,
            weight_stride=weight_stride,
            scale=_signed_scale(words[4]) if kernel.factor is Factor.F8 else None,
            block_stride=words[4] if kernel.has_blocks else None,
        )

    def result_runs(self) -> Iterator[tuple[int, int, int, int]]:
        """Gapless parts of the result: (byte, column group, first row, rows)."""
        for group in range(self.column_groups):
            start = group * self.result_panel_rows * ROW_BYTES
            if self.block_stride is None:
                yield start, group, 0, self.rows
                continue
            for block in range(self.rows // BLOCK_ROWS):
                yield start + block * self.block_stride, group, block * BLOCK_ROWS, BLOCK_ROWS


def _signed_scale(word: int) -> int:
    """The scale that the unit takes from a register: six bits, two's complement."""
    count = len(SCALE_EXPONENTS)
    return (word - SCALE_EXPONENTS.start) % count + SCALE_EXPONENTS.start


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """What a kernel is specialized on.

    Args:
        mode: what the first panel of K starts from.
        factor: what is multiplied.
        weights: how weights are loaded.
        rounding: how sums become F16.
        has_blocks: the result is in blocks of 16 rows.
    """

    mode: Mode
    factor: Factor
    weights: Weights
    rounding: Rounding
    has_blocks: bool = False

    @property
    def symbol(self) -> SymbolKey:
        """Its symbol."""
        blocks = (("result", "blocks"),) if self.has_blocks else ()
        return SymbolKey(
            family=NAME,
            variant=self.mode.value,
            choices=(
                ("precision", self.factor.value),
                ("weights", self.weights.value),
                ("rounding", self.rounding.value),
                *blocks,
            ),
        )

    @staticmethod
    def of(key: SymbolKey) -> "Kernel":
        """The inverse of :attr:`symbol`.

        Raises:
            ValueError: the family has no such kernel.
        """
        kernel = Kernel(
            mode=Mode(key.variant),
            factor=Factor(key.choice("precision")),
            weights=Weights(key.choice("weights")),
            rounding=Rounding(key.choice("rounding")),
            has_blocks=any(name == "result" for name, _ in key.choices),
        )
        if key != kernel.symbol or (kernel.has_blocks and kernel.factor is Factor.F8):
            raise ValueError(f"family {NAME} has no kernel {key}")
        return kernel


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Matrix:
    """An operand with the axes of its two roles, in the order in which they are flattened."""

    name: str
    operand: LocalOperand
    first: tuple[int, ...]
    second: tuple[int, ...]

    def extent(self, axes: Sequence[int]) -> int:
        return prod(self.operand.physical[axis] for axis in axes)

    def logical(self, axes: Sequence[int]) -> int:
        return prod(self.operand.logical[axis] for axis in axes)

    def offsets(self, axes: Sequence[int]) -> npt.NDArray[np.int64]:
        """Elements [extent] from the region's start along axes flattened into one, the last fastest."""
        starts = np.array(self.operand.region.starts, dtype=np.int64)
        storage = self.operand.storage
        total = np.zeros(1, dtype=np.int64)
        for axis in axes:
            coordinates = np.tile(starts, (self.operand.physical[axis], 1))
            coordinates[:, axis] += np.arange(self.operand.physical[axis])
            along = storage.indices(coordinates) - storage.index(self.operand.region.starts)
            total = (total[:, None] + along).reshape(-1)
        return total

    @property
    def others(self) -> tuple[int, ...]:
        """Axes with neither role: of a batch, or read at one coordinate."""
        roles = {*self.first, *self.second}
        return tuple(axis for axis in range(len(self.operand.backing)) if axis not in roles)


def _groups(offsets: npt.NDArray[np.int64], width: int, lane: int) -> int | None:
    """The stride of groups of ``width`` lanes ``lane`` apart; 0 for one group; None for anything else."""
    if len(offsets) % width or len(offsets) == 0:
        return None
    groups = offsets.reshape(-1, width)
    stride = int(groups[1, 0]) if len(groups) > 1 else 0
    expected = np.arange(len(groups))[:, None] * stride + np.arange(width) * lane
    return stride if np.array_equal(groups, expected) else None


def bind(request: Request) -> Binding | Refusal:
    """The call for one product, its operands named result, left and right (mathematically)."""
    parameters = request.parameters
    if not isinstance(parameters, GemmParameters):
        raise ValueError(f"{type(parameters).__name__} are not parameters of {NAME}")
    if len(request.operands) != 3:
        return Refusal(
            reason=f"a product has one result and two operands, not {len(request.operands)} in all"
        )
    if request.aliases:
        return Refusal(reason="the result of a product cannot take the storage of an operand")
    result, left, right = request.operands
    match request.relations:
        case (
            None,
            ProductOperand(axes=axes, side=Side.LEFT),
            ProductOperand(axes=same, side=Side.RIGHT),
        ) if axes == same:
            pass
        case _:
            return Refusal(
                reason="the operands are not related to the result as left and right of one product"
            )
    if not isinstance(result.precision, F16):
        return Refusal(reason=f"result 0 is {type(result.precision).__name__}; products are F16")
    scale: int | None
    match left.precision, right.precision:
        case F16(), F16():
            factor, scale = Factor.F16, None
        case F8(scale_exponent=one), F8(scale_exponent=other):
            factor, scale = Factor.F8, one + other
            if scale not in SCALE_EXPONENTS:
                return Refusal(
                    reason=f"the scale exponents of operand 0, {one}, and operand 1, {other}, add up to "
                    f"{scale}, which is not {SCALE_EXPONENTS.start} .. {SCALE_EXPONENTS.stop - 1}"
                )
        case _:
            return Refusal(
                reason=f"operand 0 is {type(left.precision).__name__} and operand 1 "
                f"{type(right.precision).__name__}; both are F16 or both F8"
            )
    matrices = _matrices(parameters.orientation, axes, result, left, right)
    return _bind_matrices(parameters, factor, scale, matrices, request)


def _matrices(
    orientation: Orientation,
    axes: ProductAxes,
    result: LocalOperand,
    left: LocalOperand,
    right: LocalOperand,
) -> tuple[_Matrix, _Matrix, _Matrix]:
    """Result, AMP left (rows, K) and weights (columns, K) in terms of the AMP unit."""
    rows = tuple(axis.operand for axis in axes.rows), tuple(axis.result for axis in axes.rows)
    columns = tuple(axis.operand for axis in axes.columns), tuple(axis.result for axis in axes.columns)
    left_k = tuple(axis.left for axis in axes.contraction)
    right_k = tuple(axis.right for axis in axes.contraction)
    row_matrix = _Matrix(name="operand 0", operand=left, first=rows[0], second=left_k)
    column_matrix = _Matrix(name="operand 1", operand=right, first=columns[0], second=right_k)
    if orientation is Orientation.NORMAL:
        return (
            _Matrix(name="result 0", operand=result, first=rows[1], second=columns[1]),
            row_matrix,
            column_matrix,
        )
    return (
        _Matrix(name="result 0", operand=result, first=columns[1], second=rows[1]),
        column_matrix,
        row_matrix,
    )


def _bind_matrices(
    parameters: GemmParameters,
    factor: Factor,
    scale: int | None,
    matrices: tuple[_Matrix, _Matrix, _Matrix],
    request: Request,
) -> Binding | Refusal:
    result, left, weights = matrices
    shape = _shape(factor.micro, scale, result, left, weights)
    if isinstance(shape, Refusal):
        return shape
    reads_result = parameters.mode is Mode.ACCUMULATE or shape.k_groups > 1
    if reads_result and result.operand.memory_class is not MemoryClass.INTERLEAVED:
        reason = "it accumulates" if parameters.mode is Mode.ACCUMULATE else "K has more than one panel"
        return Refusal(reason=f"result 0 must be in interleaved memory because {reason}")
    is_wide = weights.operand.memory_class is MemoryClass.INTERLEAVED
    kernel = Kernel(
        mode=parameters.mode,
        factor=factor,
        weights=Weights.WIDE if is_wide else Weights.NARROW,
        rounding=parameters.rounding,
        has_blocks=shape.block_stride is not None,
    )
    needed = {result.name: 8, left.name: 8, weights.name: 16 if is_wide else 8}
    for matrix in matrices:
        if matrix.operand.origin % needed[matrix.name]:
            return Refusal(
                reason=f"{matrix.name} begins at {matrix.operand.origin} modulo 32, "
                f"not at a multiple of {needed[matrix.name]} bytes"
            )
    accesses = {
        result.name: Access(
            operand=result.operand,
            start=_start(result),
            alignment=needed[result.name],
            memory_class=MemoryClass.INTERLEAVED if reads_result else MemoryClass.STANDARD,
            reads=result.operand.traversal() if parameters.mode is Mode.ACCUMULATE else NO_BYTES,
            writes=result.operand.traversal(),
            padding=_result_padding(result.operand, parameters.mode),
        ),
        left.name: Access(
            operand=left.operand,
            relation=request.relations[1 if left.name == "operand 0" else 2],
            start=_start(left),
            alignment=needed[left.name],
            reads=left.operand.traversal(),
            padding=_left_padding(left, factor),
        ),
        weights.name: Access(
            operand=weights.operand,
            relation=request.relations[1 if weights.name == "operand 0" else 2],
            start=_start(weights),
            alignment=needed[weights.name],
            memory_class=MemoryClass.INTERLEAVED if is_wide else MemoryClass.STANDARD,
            reads=weights.operand.traversal(),
            padding=_weight_padding(weights.operand),
        ),
    }
    amp_left, amp_right = (Operand(0), Operand(1)) if left.name == "operand 0" else (Operand(1), Operand(0))
    return Binding(
        family=NAME,
        parameters=parameters,
        results=(accesses["result 0"],),
        operands=(accesses["operand 0"], accesses["operand 1"]),
        separate=((Result(0), amp_left),),
        arguments=(
            Pointer(reference=Result(0)),
            Pointer(reference=amp_left),
            Pointer(reference=amp_right),
            *shape.scalars(),
        ),
        symbol=kernel.symbol,
        work=Work(
            flops=2 * result.logical(result.first) * result.logical(result.second) * left.logical(left.second)
        ),
        cycles=cycles(kernel, shape),
    )


def _shape(
    micro: int, scale: int | None, result: _Matrix, left: _Matrix, weights: _Matrix
) -> GemmShape | Refusal:
    """The scalars of a product whose operands obey the storage formulas, or what does not."""
    for matrix in (result, left, weights):
        for axis in matrix.others:
            if matrix.operand.physical[axis] != 1:
                return Refusal(
                    reason=f"axis {axis} of {matrix.name} has extent {matrix.operand.physical[axis]}; "
                    "a call multiplies one matrix of a batch"
                )
    rows, k, columns = left.extent(left.first), left.extent(left.second), weights.extent(weights.first)
    for what, count, other, matrix in (
        ("rows", rows, result.extent(result.first), result),
        ("columns", columns, result.extent(result.second), result),
        ("K", k, weights.extent(weights.second), weights),
    ):
        if count != other:
            return Refusal(
                reason=f"{what}: {count} in one operand but {other} in {matrix.name}, padding included"
            )
    if left.logical(left.second) != weights.logical(weights.second):
        return Refusal(
            reason=f"{left.name} has {left.logical(left.second)} elements along K, "
            f"{weights.name} has {weights.logical(weights.second)}"
        )
    if not 0 < rows < MOST_ROWS:
        return Refusal(reason=f"{rows} rows are not 1 .. {MOST_ROWS - 1}")
    for what, count, width in (("K", k, micro), ("columns", columns, AMP_COLUMNS)):
        if count == 0 or count % width:
            return Refusal(reason=f"{what}: {count}, padding included, is no multiple of {width}")
    block_stride = _block_stride(result)
    strides: dict[str, int] = {}
    for name, matrix, axes, width, lane in (
        ("left rows", left, left.first, 1, 0),
        ("left", left, left.second, micro, 1),
        ("result rows", result, result.first, BLOCK_ROWS if block_stride else 1, AMP_COLUMNS),
        ("result", result, result.second, AMP_COLUMNS, 1),
        ("weights", weights, weights.first, AMP_COLUMNS, micro),
        ("weight panels", weights, weights.second, micro, 1),
    ):
        stride = _groups(matrix.offsets(axes), width, lane)
        if stride is None:
            return Refusal(reason=f"{matrix.name} is not stored in panels as the AMP unit reads it")
        strides[name] = stride
    for name, matrix, needed in (
        ("left rows", left, micro),
        ("result rows", result, block_stride or AMP_COLUMNS),
        ("weight panels", weights, AMP_COLUMNS * micro),
    ):
        if strides[name] not in (0, needed):
            return Refusal(reason=f"{matrix.name} is not stored in panels as the AMP unit reads it")
    shape = GemmShape(
        rows=rows,
        k_groups=k // micro,
        column_groups=columns // AMP_COLUMNS,
        left_panel_rows=strides["left"] // micro,
        result_panel_rows=strides["result"] // AMP_COLUMNS,
        weight_stride=strides["weights"] * weights.operand.precision.element_bytes,
        scale=scale,
        block_stride=block_stride * F16.element_bytes if block_stride else None,
    )
    if scale is not None and block_stride:
        return Refusal(
            reason=f"{result.name} is in blocks of {BLOCK_ROWS} rows; those of F8 products are not"
        )
    for name, matrix, unit in (
        ("left", left, micro),
        ("result", result, AMP_COLUMNS),
        ("weights", weights, 1),
    ):
        if strides[name] < 0 or strides[name] % unit:
            return Refusal(reason=f"{matrix.name}: its panels are not whole rows apart")
    counts = (shape.k_groups, shape.column_groups, shape.left_panel_rows, shape.result_panel_rows)
    if max(counts) >= MOST_GROUPS:
        return Refusal(reason=f"{max(counts)} groups or panel rows are not fewer than {MOST_GROUPS}")
    return shape


def _block_stride(result: _Matrix) -> int:
    """Elements from 16 rows of the result to the next 16; 0 where all rows follow one another, or do not."""
    rows = result.offsets(result.first)
    stride = _groups(rows, BLOCK_ROWS, AMP_COLUMNS)
    return stride if stride is not None and stride > BLOCK_ROWS * AMP_COLUMNS else 0


def _start(matrix: _Matrix) -> int:
    return matrix.operand.traversal().extent[0]


def _part(operand: LocalOperand, regions: Sequence[Region]) -> Traversal:
    """Bytes of some disjoint regions of an operand."""
    element = operand.precision.element_bytes
    return Traversal(
        pieces=tuple(
            piece for region in regions for piece in traverse(operand.storage, region, element).pieces
        )
    )


def _paddings(*parts: Padding) -> tuple[Padding, ...]:
    """The parts that hold anything."""
    return tuple(part for part in parts if part.part.pieces)


def _left_padding(left: _Matrix, factor: Factor) -> tuple[Padding, ...]:
    """Behind K: finite, or zero in F8. Behind the rows: zero."""
    behind_k = PaddingState.FINITE if factor is Factor.F16 else PaddingState.ZERO
    operand = left.operand
    logical = operand.logical_region
    k_axes = set(left.second)
    whole_rows = Region(
        bounds=tuple(
            physical if axis in k_axes else bounds
            for axis, (physical, bounds) in enumerate(zip(operand.region.bounds, logical.bounds, strict=True))
        )
    )
    return _paddings(
        Padding(part=_part(operand, whole_rows.subtract(logical)), before=behind_k, after=None),
        Padding(
            part=_part(operand, operand.region.subtract(whole_rows)), before=PaddingState.ZERO, after=None
        ),
    )


def _weight_padding(operand: LocalOperand) -> tuple[Padding, ...]:
    return _paddings(Padding(part=operand.padding_traversal(), before=PaddingState.ZERO, after=None))


def _result_padding(operand: LocalOperand, mode: Mode) -> tuple[Padding, ...]:
    before = PaddingState.ANY if mode is Mode.INITIALIZE else PaddingState.ZERO
    return _paddings(Padding(part=operand.padding_traversal(), before=before, after=PaddingState.ZERO))


NEXT_PANEL: Final = (SIMPLE, TAKEN)
"""Instructions of the supervisor between two panels of K."""
NEXT_COLUMNS: Final = (SIMPLE, SIMPLE, SIMPLE, TAKEN, REGISTER, SIMPLE, SIMPLE)
"""The same between two groups of columns."""
LAST_COLUMNS: Final = (SIMPLE, SIMPLE, SIMPLE, SIMPLE)
"""The same behind the last panel."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Launches:
    """What the six workers issue in each kind of launch, their exits included.

    Args:
        first: of a call.
        starting: of any other group of columns.
        accumulating: of a panel of K behind the first.
    """

    first: tuple[int, ...]
    starting: tuple[int, ...]
    accumulating: tuple[int, ...]


@functools.lru_cache(maxsize=1 << 12)
def cycles(kernel: Kernel, shape: GemmShape) -> Cycles:
    """Estimated from the structure of the code: a launch for each panel, four bundles for each row."""
    issues = launches(kernel, shape.rows)
    load = weight_load(kernel)
    clock = Clock()
    begin(kernel, clock)

    def panel(issued: tuple[int, ...]) -> None:
        clock.wait()
        clock.supervisor(load)
        clock.launch(issued)

    for column in range(shape.column_groups):
        panel(issues.first if column == 0 else issues.starting)
        for _ in range(shape.k_groups - 1):
            clock.supervisor(*NEXT_PANEL)
            panel(issues.accumulating)
        clock.supervisor(*(NEXT_COLUMNS if column + 1 < shape.column_groups else LAST_COLUMNS))
    clock.wait()
    end(kernel, clock)
    return clock.elapsed


def launches(kernel: Kernel, rows: int) -> Launches:
    """What workers issue when a call has so many rows."""
    counts = shares(rows)
    if kernel.has_blocks:
        chunks = [_chunks(sum(counts[:worker]), count) for worker, count in enumerate(counts)]
        return Launches(
            first=tuple(23 + _chunk_issues(kernel.mode, own) for own in chunks),
            starting=tuple(3 + _chunk_issues(kernel.mode, own) for own in chunks),
            accumulating=tuple(3 + _chunk_issues(Mode.ACCUMULATE, own) for own in chunks),
        )
    return Launches(
        first=tuple(_first_issues(kernel.mode, count) for count in counts),
        starting=tuple(3 + _pass_issues(kernel.mode, count) for count in counts),
        accumulating=tuple(2 + _pass_issues(Mode.ACCUMULATE, count) for count in counts),
    )


def weight_load(kernel: Kernel) -> int:
    """Cycles in which the supervisor loads the weights of a panel."""
    return SIMPLE * (32 if kernel.weights is Weights.WIDE else 64)


def begin(kernel: Kernel, clock: Clock) -> None:
    """What a call does before the first panel."""
    clock.supervisor(*[SIMPLE] * 21)
    if kernel.factor is Factor.F8:
        clock.supervisor(SIMPLE, SIMPLE, SIMPLE)
    if kernel.has_blocks:
        clock.supervisor(SIMPLE, SIMPLE)
    clock.supervisor(REGISTER, REGISTER)
    if kernel.rounding is Rounding.STOCHASTIC:
        clock.supervisor(REGISTER, SIMPLE, SIMPLE, SIMPLE, REGISTER)
    clock.supervisor(REGISTER, SIMPLE, SIMPLE)


def end(kernel: Kernel, clock: Clock) -> None:
    """What a call does when its last workers are done."""
    if kernel.rounding is Rounding.STOCHASTIC:
        clock.supervisor(LOAD, REGISTER)
    clock.supervisor(SIMPLE, TAKEN)


def _first_issues(mode: Mode, rows: int) -> int:
    """Issues of the first launch of a worker with so many rows: arguments, choice of its passes, a pass."""
    initializes = mode is Mode.INITIALIZE
    choice = {0: 9, 1: 7, 2: 4}.get(rows, 2) + ({0: 3, 1: 2}.get(rows, 1) if initializes else 0)
    return 20 + choice + _pass_issues(mode, rows)


def _chunks(first: int, count: int) -> list[int]:
    """How many rows of each block a worker has that does ``count`` rows from ``first`` on."""
    chunks: list[int] = []
    while count > 0:
        chunks.append(min(count, BLOCK_ROWS - first % BLOCK_ROWS))
        first, count = first + chunks[-1], count - chunks[-1]
    return chunks


def _chunk_issues(mode: Mode, chunks: list[int]) -> int:
    """Issues of a launch over blocks, its entry left out."""
    if not chunks:
        return 5
    choice = {1: 4, 2: 3} if mode is Mode.INITIALIZE else {1: 6, 2: 5}
    passes = sum(_pass_issues(mode, rows) + choice.get(rows, 3) for rows in chunks)
    # Each block ends with a test, and all but the last with the step to the next.
    return 5 + passes + len(chunks) + 9 * (len(chunks) - 1) + 1


def _pass_issues(mode: Mode, rows: int) -> int:
    """Issues of a pass over so many rows of a worker."""
    if rows == 0:
        return 1
    if mode is Mode.INITIALIZE:
        return 12 if rows == 1 else 4 * rows + 10
    return 17 if rows == 1 else 4 * rows + (14 if rows == 2 else 15)


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """The formula, given the argument registers."""
    kernel = Kernel.of(key)
    return cycles(kernel, GemmShape.of_words(arguments[3:], kernel))


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers.

    Its numbers are those of ``arithmetic``; what is said here is where they lie.
    """
    kernel = Kernel.of(key)
    result, left, right = arguments[:3]
    shape = GemmShape.of_words(arguments[3:], kernel)
    rows, micro = shape.rows, kernel.factor.micro
    left_stride = shape.left_panel_rows * ROW_BYTES
    sums = np.zeros((rows, shape.column_groups, AMP_COLUMNS), dtype=np.float16)
    if kernel.mode is Mode.ACCUMULATE:
        for start, group, first, count in shape.result_runs():
            data = memory.read(result + start, count * ROW_BYTES)
            sums[first : first + count, group] = halves(data).reshape(count, AMP_COLUMNS)
    x = np.empty((rows, shape.k_groups, micro), dtype=np.float64)
    weights = np.empty((shape.k_groups, micro, shape.column_groups, AMP_COLUMNS), dtype=np.float64)
    for panel in range(shape.k_groups):
        data = memory.read(left + panel * left_stride, rows * ROW_BYTES)
        x[:, panel] = _numbers(data, kernel.factor).reshape(rows, micro)
        for group in range(shape.column_groups):
            data = memory.read(right + group * shape.weight_stride + panel * PANEL_BYTES, PANEL_BYTES)
            weights[panel, :, group] = _numbers(data, kernel.factor).reshape(AMP_COLUMNS, micro).T
    sums = multiply(
        x.reshape(rows, -1),
        weights.reshape(shape.k_groups * micro, -1),
        sums.reshape(rows, -1),
        micro,
        shape.scale,
    ).reshape(sums.shape)
    for start, group, first, count in shape.result_runs():
        memory.write(result + start, to_bytes(sums[first : first + count, group]))


def _numbers(data: npt.NDArray[np.uint8], factor: Factor) -> npt.NDArray[np.float64]:
    """The numbers [n] in bytes, those of codes before scaling."""
    return (halves(data) if factor is Factor.F16 else decode_f143(data)).astype(np.float64)


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
