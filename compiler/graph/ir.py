"""The semantic graph (AR-01): what is computed, not where or how.

A graph is shaped, structured SSA. Values are rows of a dense table and are named by ``ValueId``; a node
applies one operation to values that are defined before it; structure is a ``Repeat`` whose body is a block
with a table of its own, so that nothing reaches into a body except through its arguments.

The classes below are plain: they hold what was written, right or wrong. What makes a graph well formed is
defined by ``verify``, the types of results by ``rules``, the numbers by ``evaluate``.

Conventions of all operations: axes are numbered from 0; the last two axes are the rows and columns of matrix
operations, the axes before them are batch axes. F8 values stand for code * 2^scale (``geometry.precision``).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, NewType, TypeAlias, TypeVar, final

from compiler.geometry.mapping import Shape, text_of_shape
from compiler.geometry.precision import F8, F16, F32, Precision

T = TypeVar("T")

ValueId = NewType("ValueId", int)
"""Row of a block's table of values."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TensorType:
    """Element type and shape; at least one axis, at least one element on each."""

    precision: Precision
    shape: Shape

    def __str__(self) -> str:
        """``F16[1,729,1152]``, ``F8(-4)[64,64]``."""
        return f"{text_of_precision(self.precision)}{text_of_shape(self.shape)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a value was written: file without its folder, line, and whatever else is worth telling."""

    file: str
    line: int
    note: str = ""

    def __str__(self) -> str:
        """``mlp.py:12``."""
        return f"{self.file}:{self.line}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Value:
    """A row of a table of values. Names are unique in a block; a node is called after its first result."""

    name: str
    type: TensorType
    provenance: Provenance | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gemm:
    """left [..., m, k] times right [..., k, n], batch axes broadcast as in NumPy: [..., m, n].

    A transposed operand has its last two axes the other way round. Both operands are multiplied in
    ``precision``, or in their own, which is then the same; sums are wider. The result is as wide as the wider
    operand, and at least F16.
    """

    transpose_left: bool = False
    transpose_right: bool = False
    precision: Precision | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """left + right, broadcast as in NumPy."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gelu:
    """x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))): the tanh form."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LayerNorm:
    """(x - mean) / sqrt(variance + epsilon) over the last axis; affine: times scale [width] plus bias."""

    epsilon: float
    affine: bool = True

    def __post_init__(self) -> None:
        _as_float(self, "epsilon")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Softmax:
    """exp(x) / sum of exp(x) over the last axis."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    """softmax(scale * query keyT) value: query [..., q, d], key [..., k, d], value [..., k, w]: [..., q, w].

    Causal: query i sees the keys 0 to i. ``score_precision`` is that of query and key in their product,
    ``value_precision`` that of probabilities and value, as for :class:`Gemm`.
    """

    scale: float
    causal: bool = False
    score_precision: Precision | None = None
    value_precision: Precision | None = None

    def __post_init__(self) -> None:
        _as_float(self, "scale")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reshape:
    """The same elements in row-major sequence; only what splits of axes and then merges give."""

    shape: Shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SplitAxis:
    """``axis`` becomes several of ``extents``, most significant first."""

    axis: int
    extents: Shape


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MergeAxes:
    """``count`` axes from ``axis`` on become one, the first most significant."""

    axis: int
    count: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Transpose:
    """Result axis i is operand axis ``order[i]``."""

    order: tuple[int, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Coordinates ``start`` to ``stop`` - 1 of one axis."""

    axis: int
    start: int
    stop: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Concat:
    """Operands one behind the other along ``axis``."""

    axis: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The same numbers, rounded to nearest even in ``precision``; too large ones become its largest."""

    precision: Precision


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """``body``, ``count`` times; built once whatever the count.

    Arguments of the body, in order: ``carried`` values, which start from operands and are replaced by the
    body's results after each iteration; ``invariants``, the same in each; and sequences, of which iteration i
    sees member i. Operands: the carried, the invariants, then the ``count`` members of each sequence in turn.
    Results: the carried values after the last iteration.
    """

    count: int
    carried: int
    invariants: int
    body: "Block"

    @property
    def sequences(self) -> int:
        """Number of sequences."""
        return len(self.body.arguments) - self.carried - self.invariants

    def bindings(self, operands: Sequence[T]) -> "RepeatBindings[T]":
        """What of a node's operands is bound to which kind of argument."""
        fixed = self.carried + self.invariants
        starts = range(fixed, fixed + self.sequences * self.count, max(self.count, 1))
        return RepeatBindings(
            carried=tuple(operands[: self.carried]),
            invariants=tuple(operands[self.carried : fixed]),
            sequences=tuple(tuple(operands[start : start + self.count]) for start in starts),
        )


View: TypeAlias = Reshape | SplitAxis | MergeAxes | Transpose | Slice | Concat
"""Operations that move elements and change none."""

Operation: TypeAlias = Gemm | Add | Gelu | LayerNorm | Softmax | Attention | View | Cast | Repeat


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatBindings(Generic[T]):
    """Operands of a Repeat by kind; ``sequences[s][i]`` is what iteration i sees of sequence s."""

    carried: tuple[T, ...]
    invariants: tuple[T, ...]
    sequences: tuple[tuple[T, ...], ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One application of an operation."""

    operation: Operation
    operands: tuple[ValueId, ...]
    results: tuple[ValueId, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Nodes in order over one table of values; ``results`` are what the block gives."""

    values: tuple[Value, ...]
    arguments: tuple[ValueId, ...]
    nodes: tuple[Node, ...]
    results: tuple[ValueId, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Normal:
    """Independent normal numbers around 0 with standard deviation ``sigma``, by element (``parameters``)."""

    sigma: float

    def __post_init__(self) -> None:
        _as_float(self, "sigma")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """Every element is ``value``."""

    value: float

    def __post_init__(self) -> None:
        _as_float(self, "value")


Fill: TypeAlias = Normal | Constant
"""Values of an input or parameter when a user brings none."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """A block whose arguments are inputs, new in each run, and parameters, resident on the device.

    ``block.arguments`` are the inputs, then the parameters; ``fills`` follows the same order.
    """

    name: str
    block: Block
    input_count: int
    fills: tuple[Fill | None, ...]

    @property
    def inputs(self) -> tuple[ValueId, ...]:
        """What each run brings."""
        return self.block.arguments[: self.input_count]

    @property
    def parameters(self) -> tuple[ValueId, ...]:
        """What stays from run to run."""
        return self.block.arguments[self.input_count :]

    @property
    def outputs(self) -> tuple[ValueId, ...]:
        """What each run gives."""
        return self.block.results


def text_of_precision(precision: Precision) -> str:
    """``F16``, ``F32``, ``F8(-4)``."""
    match precision:
        case F32():
            return "F32"
        case F16():
            return "F16"
        case F8(scale_exponent=scale):
            return f"F8({scale})"


def _as_float(owner: object, name: str) -> None:
    """Make a field that was given as an integer a float, so that equal numbers have one text and digest."""
    object.__setattr__(owner, name, float(getattr(owner, name)))
