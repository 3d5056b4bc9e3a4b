"""The builder: a graph written as Python, one call for each operation.

    build = GraphBuilder("mlp")
    x = build.input("x", (64, 256), fill=Normal(sigma=0.5))
    up = build.parameter("up", (256, 1024))
    build.output(build.gelu(build.gemm(x, up), name="h"))
    graph = build.finish()

Types of results are inferred by ``rules``. Nothing is raised on the way: a node that breaks a rule is kept as
a fault with the line that wrote it, what depends on it is built without further complaint, and ``finish``
raises everything at once. Only a question that a faulty value cannot answer (its shape) raises earlier. What
is no tensor, no precision or no flag where one belongs is such a fault, too: annotations hold nobody back.

Values without a given name are called after their operation, numbered. Their provenance is the innermost line
outside this module, and the note of :meth:`BlockBuilder.noted`.
"""

import inspect
import operator
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, SupportsIndex, TypeAlias, cast, final

from compiler.errors import InvalidModel
from compiler.geometry.mapping import Shape
from compiler.geometry.precision import F16, Precision
from compiler.graph.faults import Fault, refusal
from compiler.graph.form import MOST_NESTED, described, misfits
from compiler.graph.ir import (
    Add,
    Attention,
    Block,
    Cast,
    Concat,
    Fill,
    Gelu,
    Gemm,
    Graph,
    LayerNorm,
    MergeAxes,
    Node,
    Operation,
    Provenance,
    Repeat,
    Reshape,
    Slice,
    Softmax,
    SplitAxis,
    TensorType,
    Transpose,
    Value,
    ValueId,
)
from compiler.graph.order import in_definition_order
from compiler.graph.rules import name_of, result_types, type_fault
from compiler.graph.verify import verify

_NOTHING: Final[Mapping[str, "Tensor"]] = MappingProxyType({})
_NO_SEQUENCES: Final[Mapping[str, Sequence["Tensor"]]] = MappingProxyType({})


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tensor:
    """A value of a graph that is being built; only builders make them.

    Args:
        owner: the builder of its block.
        row: its row in the block's table; None for a faulty value, which no block has.
        name: its name.
    """

    owner: "BlockBuilder"
    row: ValueId | None
    name: str

    @property
    def type(self) -> TensorType:
        """Precision and shape.

        Raises:
            InvalidModel: what computes the value breaks a rule; all faults so far.
        """
        if self.row is None:
            raise self.owner.refused()
        return self.owner.type_of(self.row)

    @property
    def shape(self) -> Shape:
        """Extents; raises as :attr:`type`."""
        return self.type.shape


@final
@dataclass(slots=True, kw_only=True, eq=False)
class _Shared:
    """What a graph's builder and those of its bodies have in common."""

    graph_name: str
    faults: list[Fault] = field(default_factory=list[Fault])
    note: str = ""


class BlockBuilder:
    """Builds one block: the operations. The whole graph's builder is a :class:`GraphBuilder`."""

    def __init__(self, shared: _Shared, path: str, depth: int) -> None:
        self._shared = shared
        self._path = path
        self._depth = depth
        self._values: list[Value] = []
        self._arguments: list[ValueId] = []
        self._nodes: list[Node] = []
        self._names: dict[str, Provenance] = {}

    @contextmanager
    def noted(self, note: str) -> Generator[None, None, None]:
        """What is built inside carries ``note`` in its provenance, behind the notes around it."""
        before = self._shared.note
        self._shared.note = f"{before}, {note}" if before else str(note)
        try:
            yield
        finally:
            self._shared.note = before

    def gemm(
        self,
        left: Tensor,
        right: Tensor,
        *,
        transpose_left: bool = False,
        transpose_right: bool = False,
        precision: Precision | None = None,
        name: str | None = None,
    ) -> Tensor:
        """:class:`~compiler.graph.ir.Gemm`."""
        operation = Gemm(transpose_left=transpose_left, transpose_right=transpose_right, precision=precision)
        return self._append(operation, (left, right), name)

    def add(self, left: Tensor, right: Tensor, *, name: str | None = None) -> Tensor:
        """:class:`~compiler.graph.ir.Add`."""
        return self._append(Add(), (left, right), name)

    def gelu(self, operand: Tensor, *, name: str | None = None) -> Tensor:
        """:class:`~compiler.graph.ir.Gelu`."""
        return self._append(Gelu(), (operand,), name)

    def layer_norm(
        self,
        operand: Tensor,
        scale_and_bias: tuple[Tensor, Tensor] | None = None,
        *,
        epsilon: float,
        name: str | None = None,
    ) -> Tensor:
        """:class:`~compiler.graph.ir.LayerNorm`, affine with ``scale_and_bias``."""
        vectors = () if scale_and_bias is None else scale_and_bias
        operation = LayerNorm(epsilon=float(epsilon), affine=scale_and_bias is not None)
        return self._append(operation, (operand, *vectors), name)

    def softmax(self, operand: Tensor, *, name: str | None = None) -> Tensor:
        """:class:`~compiler.graph.ir.Softmax`."""
        return self._append(Softmax(), (operand,), name)

    def attention(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        scale: float,
        causal: bool = False,
        score_precision: Precision | None = None,
        value_precision: Precision | None = None,
        name: str | None = None,
    ) -> Tensor:
        """:class:`~compiler.graph.ir.Attention`."""
        operation = Attention(
            scale=float(scale),
            causal=causal,
            score_precision=score_precision,
            value_precision=value_precision,
        )
        return self._append(operation, (query, key, value), name)

    def reshape(self, operand: Tensor, shape: Sequence[SupportsIndex], *, name: str | None = None) -> Tensor:
        """:class:`~compiler.graph.ir.Reshape`."""
        return self._append(Reshape(shape=_integers(shape)), (operand,), name)

    def split_axis(
        self,
        operand: Tensor,
        axis: SupportsIndex,
        extents: Sequence[SupportsIndex],
        *,
        name: str | None = None,
    ) -> Tensor:
        """:class:`~compiler.graph.ir.SplitAxis`."""
        return self._append(SplitAxis(axis=_integer(axis), extents=_integers(extents)), (operand,), name)

    def merge_axes(
        self, operand: Tensor, axis: SupportsIndex, count: SupportsIndex, *, name: str | None = None
    ) -> Tensor:
        """:class:`~compiler.graph.ir.MergeAxes`."""
        return self._append(MergeAxes(axis=_integer(axis), count=_integer(count)), (operand,), name)

    def transpose(
        self, operand: Tensor, order: Sequence[SupportsIndex], *, name: str | None = None
    ) -> Tensor:
        """:class:`~compiler.graph.ir.Transpose`."""
        return self._append(Transpose(order=_integers(order)), (operand,), name)

    def slice(
        self,
        operand: Tensor,
        axis: SupportsIndex,
        start: SupportsIndex,
        stop: SupportsIndex,
        *,
        name: str | None = None,
    ) -> Tensor:
        """:class:`~compiler.graph.ir.Slice`."""
        operation = Slice(axis=_integer(axis), start=_integer(start), stop=_integer(stop))
        return self._append(operation, (operand,), name)

    def concat(self, operands: Sequence[Tensor], axis: SupportsIndex, *, name: str | None = None) -> Tensor:
        """:class:`~compiler.graph.ir.Concat`."""
        return self._append(Concat(axis=_integer(axis)), tuple(operands), name)

    def cast(self, operand: Tensor, precision: Precision, *, name: str | None = None) -> Tensor:
        """:class:`~compiler.graph.ir.Cast`."""
        return self._append(Cast(precision=precision), (operand,), name)

    def repeat(
        self,
        count: SupportsIndex,
        body: "Body",
        *,
        carried: Mapping[str, Tensor],
        invariants: Mapping[str, Tensor] = _NOTHING,
        sequences: Mapping[str, Sequence[Tensor]] = _NO_SEQUENCES,
        name: str | None = None,
    ) -> dict[str, Tensor]:
        """:class:`~compiler.graph.ir.Repeat`.

        Args:
            count: iterations.
            body: called once with the builder of the body and its arguments by name; gives what replaces each
                carried value, by name.
            carried: what each carried argument starts from.
            invariants: what each invariant argument is.
            sequences: for each argument, what each iteration sees.
            name: of the result, or of the first part of the results' names when several values are carried.

        Returns:
            The carried values after the last iteration, by name.
        """
        iterations = _integer(count)
        provenance = self._here()
        name = self._new_name("repeat") if name is None else name
        starts = (*carried.values(), *invariants.values())
        members = [tuple(tensors) for tensors in sequences.values()]
        faults = len(self._shared.faults)
        if self._depth == MOST_NESTED:  # before the body is built, and what is inside it
            self._fault(name, provenance, f"repeat: more than {MOST_NESTED} repeats inside one another")
            return {key: self.faulty(key) for key in carried}
        for reason in misfits(iterations, int, "repeat: count"):
            self._fault(name, provenance, reason)
            iterations = 1
        if not carried:
            self._fault(name, provenance, "repeat: it carries no value")
        for argument, tensors in zip(sequences, members, strict=True):
            if len(tensors) != iterations:
                self._fault(
                    name,
                    provenance,
                    f"repeat: {argument} has {len(tensors)} members for {iterations} iterations",
                )
        inner = BlockBuilder(self._shared, f"{self._path}{name}/", self._depth + 1)
        firsts = (*starts, *(tensors[0] if tensors else None for tensors in members))
        arguments: dict[str, Tensor] = {}
        for argument, first in zip((*carried, *invariants, *sequences), firsts, strict=True):
            if argument in arguments:
                self._fault(name, provenance, f"repeat: two arguments are called {argument}")
            row = None if first is None else self._row(first)
            bound = None if row is None else self._values[row].type
            arguments[argument] = inner.argument(argument, bound, provenance)
        after = _named(body(inner, MappingProxyType(arguments)))
        if after is None or set(after) != set(carried):
            gives = "no mapping" if after is None else _listed(after)
            self._fault(
                name,
                provenance,
                f"repeat: the body gives {gives} for the carried values {_listed(carried)}",
            )
            after = {key: inner.faulty(key) for key in carried} if after is None else after
        results = [inner.own(after[key], key) for key in carried if key in after]
        names = [name if len(carried) == 1 else f"{name}.{key}" for key in carried]
        operands = self._rows((*starts, *(member for tensors in members for member in tensors)), name)
        if len(self._shared.faults) > faults or operands is None or None in results:
            return {key: self.faulty(each) for key, each in zip(carried, names, strict=True)}
        operation = Repeat(
            count=iterations,
            carried=len(carried),
            invariants=len(invariants),
            body=inner.block([row for row in results if row is not None]),
        )
        made = self._apply(operation, operands, names, provenance)
        return dict(zip(carried, made, strict=True))

    def type_of(self, row: ValueId) -> TensorType:
        """Type of a value of this block."""
        return self._values[row].type

    def refused(self) -> InvalidModel:
        """The error for the faults so far."""
        return refusal(self._shared.graph_name, self._shared.faults)

    def argument(self, name: str, tensor: TensorType | None, provenance: Provenance) -> Tensor:
        """Adds an argument to the block; a faulty one for what has no type."""
        if tensor is None:
            return self.faulty(name)
        made = self._define(name, tensor, provenance)
        if made.row is not None:
            self._arguments.append(made.row)
        return made

    def own(self, tensor: Tensor, what: str) -> ValueId | None:
        """Row of a tensor of this block, for a result; a fault for one of another block."""
        rows = self._rows((tensor,), what)
        return None if rows is None else rows[0]

    def block(self, results: Sequence[ValueId]) -> Block:
        """What was built."""
        return Block(
            values=tuple(self._values),
            arguments=tuple(self._arguments),
            nodes=tuple(self._nodes),
            results=tuple(results),
        )

    def _append(self, operation: Operation, operands: tuple[Tensor, ...], name: str | None) -> Tensor:
        name = self._new_name(name_of(operation)) if name is None else name
        rows = self._rows(operands, name)
        if rows is None:
            return self.faulty(name)
        (made,) = self._apply(operation, rows, [name], self._here())
        return made

    def _apply(
        self,
        operation: Operation,
        operands: Sequence[ValueId],
        names: Sequence[str],
        provenance: Provenance,
    ) -> list[Tensor]:
        """Adds a node with inferred types; a fault and faulty results where the rules forbid it."""
        if not isinstance(operation, Repeat):  # whose body is of a builder's making
            malformed = list(misfits(operation, type(operation)))
            for reason in malformed:
                self._fault(names[0], provenance, f"{name_of(operation)}: {reason}")
            if malformed:
                return [self.faulty(name) for name in names]
        try:
            types = result_types(operation, [self._values[row].type for row in operands])
        except ValueError as error:
            self._fault(names[0], provenance, f"{name_of(operation)}: {error}")
            return [self.faulty(name) for name in names]
        made = [self._define(name, type_, provenance) for name, type_ in zip(names, types, strict=True)]
        self._nodes.append(
            Node(
                operation=operation,
                operands=tuple(operands),
                results=tuple(tensor.row for tensor in made if tensor.row is not None),
            )
        )
        return made

    def _define(
        self, name: str, tensor: TensorType, provenance: Provenance, fill: Fill | None = None
    ) -> Tensor:
        """Adds a value; a fault and a faulty one for what has no name, type or fill that is one."""
        malformed = [
            *misfits(name, str, "the name"),
            *misfits(tensor, TensorType),
            *misfits(fill, Fill | None, "the fill"),
        ]
        for reason in malformed:
            self._fault(str(name), provenance, reason)
        if malformed:
            return self.faulty(str(name))
        self._names.setdefault(name, provenance)
        self._values.append(Value(name=name, type=tensor, provenance=provenance))
        return Tensor(owner=self, row=ValueId(len(self._values) - 1), name=name)

    def faulty(self, name: str) -> Tensor:
        """A value that no block has, for what could not be built."""
        return Tensor(owner=self, row=None, name=name)

    def _row(self, tensor: Tensor) -> ValueId | None:
        """Row of a tensor that can be computed with: of this block, and its type sound."""
        if _no_tensor(tensor) is not None or tensor.owner is not self or tensor.row is None:
            return None
        return tensor.row if type_fault(self._values[tensor.row].type) is None else None

    def _rows(self, tensors: Sequence[Tensor], name: str) -> list[ValueId] | None:
        """Rows of operands, or None where one is faulty; a fault for what is no tensor of this block."""
        reasons = [
            f"operand {number} {reason}"
            for number, tensor in enumerate(tensors)
            if (reason := _no_tensor(tensor)) is not None
        ]
        for reason in reasons:
            self._fault(name, self._here(), reason)
        if reasons:
            return None
        foreign = [tensor for tensor in tensors if tensor.owner is not self]
        for tensor in foreign:
            self._fault(
                name,
                self._here(),
                f"{tensor.name} belongs to another block; a repeat sees values from outside as arguments",
            )
        rows = [self._row(tensor) for tensor in tensors]
        found = [row for row in rows if row is not None]
        return found if len(found) == len(rows) else None

    def _fault(self, name: str, provenance: Provenance, reason: str) -> None:
        self._shared.faults.append(Fault(subject=self._path + name, provenance=provenance, reason=reason))

    def _new_name(self, stem: str) -> str:
        number = len(self._values)
        while f"{stem}_{number}" in self._names:
            number += 1
        return f"{stem}_{number}"

    def _here(self) -> Provenance:
        """The innermost line outside this module."""
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename == __file__:
            frame = frame.f_back
        if frame is None:
            return Provenance(file="", line=0, note=self._shared.note)
        file = Path(frame.f_code.co_filename).name
        return Provenance(file=file, line=frame.f_lineno, note=self._shared.note)


Body: TypeAlias = Callable[[BlockBuilder, Mapping[str, Tensor]], Mapping[str, Tensor]]
"""A function that builds the body of a Repeat."""


@final
class GraphBuilder(BlockBuilder):
    """Builds a graph."""

    def __init__(self, name: str) -> None:
        super().__init__(_Shared(graph_name=str(name)), "", 0)
        for reason in misfits(name, str, "the name"):
            self._fault(str(name), self._here(), reason)
        self._inputs: list[tuple[ValueId, Fill | None]] = []
        self._parameters: list[tuple[ValueId, Fill | None]] = []
        self._outputs: list[Tensor] = []

    def input(
        self,
        name: str,
        shape: Sequence[SupportsIndex],
        precision: Precision | None = None,
        *,
        fill: Fill | None = None,
    ) -> Tensor:
        """A value that each run brings; F16 unless told otherwise."""
        return self._source(self._inputs, name, shape, precision, fill)

    def parameter(
        self,
        name: str,
        shape: Sequence[SupportsIndex],
        precision: Precision | None = None,
        *,
        fill: Fill | None = None,
    ) -> Tensor:
        """A value that stays on the device; F16 unless told otherwise."""
        return self._source(self._parameters, name, shape, precision, fill)

    def output(self, tensor: Tensor) -> None:
        """The value, as an output."""
        reason = _no_tensor(tensor)
        if reason is not None:
            self._fault("output", self._here(), f"it {reason}")
            tensor = self.faulty("output")
        self._outputs.append(tensor)

    def finish(self) -> Graph:
        """The graph.

        Raises:
            InvalidModel: it breaks rules; all faults with their lines.
        """
        outputs = [self.own(tensor, tensor.name) for tensor in self._outputs]
        sources = (*self._inputs, *self._parameters)
        self._arguments = [row for row, _ in sources]
        graph = Graph(
            name=self._shared.graph_name,
            block=self.block([row for row in outputs if row is not None]),
            input_count=len(self._inputs),
            fills=tuple(fill for _, fill in sources),
        )
        # Outputs that are faulty are missing from the graph, which then has no fault of its own.
        about_graph = bool(graph.outputs) or not outputs
        found = [fault for fault in verify(graph) if about_graph or fault.provenance is not None]
        if self._shared.faults or found:
            raise refusal(graph.name, [*self._shared.faults, *found])
        return replace(graph, block=in_definition_order(graph.block))

    def _source(
        self,
        sources: list[tuple[ValueId, Fill | None]],
        name: str,
        shape: Sequence[SupportsIndex],
        precision: Precision | None,
        fill: Fill | None,
    ) -> Tensor:
        tensor = TensorType(
            precision=F16() if precision is None else precision,
            shape=_integers(shape),
        )
        made = self._define(name, tensor, self._here(), fill)
        if made.row is not None:
            sources.append((made.row, fill))
        return made


def _integer(number: SupportsIndex) -> int:
    """A plain integer: NumPy's, which models compute shapes with, are none."""
    return operator.index(number)


def _integers(numbers: Sequence[SupportsIndex]) -> tuple[int, ...]:
    return tuple(map(_integer, numbers))


def _listed(names: Mapping[str, object]) -> str:
    return ", ".join(map(str, names)) if names else "nothing"


def _named(given: object) -> Mapping[str, Tensor] | None:
    """What a body gives, if that is a mapping at all."""
    return cast("Mapping[str, Tensor]", given) if isinstance(given, Mapping) else None


def _no_tensor(value: object) -> str | None:
    """Why a value cannot be computed with at all; None for a tensor."""
    return None if isinstance(value, Tensor) else f"is {described(value)}, not a tensor of this graph"
