"""ONNX models as graphs.

Inputs: the bytes of a model. Gives the graph, and the values of its parameters by name. It reads data and
runs nothing of a file; what a model means is decided by the operations listed in ``_OPERATIONS`` and by
nothing else. Any other operation, attribute or element type is refused, all nodes that are in the way in one
error.

**Numbers.** ``FLOAT`` and ``FLOAT16`` are both F16 here, as the models that come with the compiler are: what
the device multiplies. A ``Cast`` between them changes nothing. Integers are only understood where they say
shapes, axes and positions, and must be constants there.

**Element-wise functions.** ONNX writes a GELU as half a dozen nodes, in an order that differs from exporter
to exporter. Instead of templates of nodes, the importer follows what they compute: a chain of element-wise
nodes with constants, of one tensor, is one function of a number, so it is evaluated at some numbers while the
nodes are walked. Where that function is a GELU, exact or in its tanh form, or the identity, the chain is
replaced by it; a chain that never becomes one of these and is used by something else is refused with all its
nodes. The exact GELU becomes the tanh form, which differs from it by less than 0.0005: as much as F16 does
near 1. Two different functions would have to agree at all probes to 10^-6 to be taken for one another.

**Order.** Inputs as the file lists them, parameters as its nodes first use them, nodes as they stand there:
equal files give equal graphs.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, cast, final

import numpy as np
import numpy.typing as npt
import onnx
from google.protobuf.message import DecodeError

from compiler.errors import InvalidModel, Unsupported, few_of
from compiler.graph.build import GraphBuilder, Tensor
from compiler.graph.ir import Constant, Fill, Graph, Normal, Provenance, Value

STAGE: Final = "onnx"
OLDEST: Final = 13
"""Operator set from which on all operations mean what they do here."""
NEWEST: Final = 23
"""The last whose operations were compared with what is here."""

Array: TypeAlias = npt.NDArray[Any]

_FLOATS: Final = {onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16}
_LARGEST: Final = 65504.0
"""Of F16."""
_PROBES: Final = np.linspace(-6.0, 6.0, 97)
_CLOSE: Final = 1e-6
_erf: Final = np.vectorize(math.erf, otypes=[np.float64])
_GELUS: Final = (
    _PROBES / 2 * (1 + _erf(_PROBES / math.sqrt(2))),
    _PROBES / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (_PROBES + 0.044715 * _PROBES**3))),
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Imported:
    """A model of a file.

    Args:
        graph: what it computes.
        values: of each parameter, in F16 and in the shape of the graph.
    """

    graph: Graph
    values: Mapping[str, npt.NDArray[np.float16]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Function:
    """An element-wise function of a tensor that is no operation of graphs, or not yet.

    Args:
        of: the tensor.
        probes: its values at ``_PROBES``.
        nodes: that compute it, described.
    """

    of: Tensor
    probes: npt.NDArray[np.float64]
    nodes: tuple[str, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """What a node would give that is in the way: nothing that depends on it is looked at."""


_Value: TypeAlias = Tensor | Array | _Function | _Refused
"""What a name of the file stands for; an array is a constant."""


class _ObstacleError(Exception):
    """Why a node cannot be taken; its text completes "node: "."""


@final
@dataclass(slots=True, kw_only=True, eq=False)
class _Import:
    """The state of an import.

    Args:
        build: of the graph.
        known: what each name stands for.
        parameters: constants that became parameters, by name.
        obstacles: nodes that are in the way, described.
        source: for each value that a node gives, its number and kind.
    """

    build: GraphBuilder
    known: dict[str, _Value] = field(default_factory=dict[str, _Value])
    parameters: dict[str, Array] = field(default_factory=dict[str, Array])
    tensors: dict[str, Tensor] = field(default_factory=dict[str, Tensor])
    obstacles: list[str] = field(default_factory=list[str])
    source: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])

    def tensor(self, name: str) -> Tensor:
        """The tensor that a name stands for; a constant becomes a parameter at its first use.

        Raises:
            _ObstacleError: it is none.
        """
        value = self.known[name]
        match value:
            case Tensor():
                return value
            case _Function():
                self.obstacles += [node for node in value.nodes if node not in self.obstacles]
                self.known[name] = _Refused()
                raise _ObstacleError
            case _Refused():
                raise _ObstacleError
            case _:
                return self._parameter(name, value)

    def constant(self, name: str) -> Array:
        """The constant that a name stands for.

        Raises:
            _ObstacleError: it is computed when the model runs.
        """
        value = self.known[name]
        if isinstance(value, np.ndarray):
            return value
        raise _ObstacleError(f"{name} has to be a constant")

    def integers(self, name: str) -> list[int]:
        """Whole numbers that a constant holds."""
        value = self.constant(name)
        if value.dtype.kind != "i":
            raise _ObstacleError(f"{name} has to be of integers")
        return [int(number) for number in value.reshape(-1)]

    def _parameter(self, name: str, value: Array) -> Tensor:
        if name not in self.tensors:
            if value.dtype.kind != "f" or value.dtype.itemsize > 4:
                raise _ObstacleError(f"{name} holds {value.dtype}, not FLOAT or FLOAT16")
            if value.size == 0:
                raise _ObstacleError(f"{name} is empty")
            if not bool(np.all(np.abs(value.astype(np.float64)) <= _LARGEST)):
                raise _ObstacleError(f"{name} holds numbers that F16 has not")
            stored = np.atleast_1d(value).astype(np.float16)
            self.parameters[name] = stored
            self.tensors[name] = self.build.parameter(name, stored.shape, fill=_fill(stored))
        return self.tensors[name]


def import_onnx(content: bytes, name: str) -> Imported:
    """The graph of a model.

    Args:
        content: of the file.
        name: of the file without its folder, for messages; the graph is called after it.

    Raises:
        InvalidModel: it is no ONNX model, or breaks a rule of graphs.
        Unsupported: operations, types or shapes that are not supported, all of them.
    """
    model = _parsed(content, name)
    graph = model.graph
    state = _Import(build=GraphBuilder(name.rpartition(".")[0] or name))
    _no_data_elsewhere(graph, name)
    for initializer in graph.initializer:
        state.known[initializer.name] = onnx.numpy_helper.to_array(initializer)
    for given in graph.input:
        if given.name not in state.known:  # old files list initializers as inputs, too
            state.known[given.name] = state.build.input(
                given.name, _shape(given, name), fill=Normal(sigma=1.0)
            )
    outputs = {output.name: "" for output in graph.output}
    for number, node in enumerate(graph.node):
        _take(state, node, number, name)
    for output in outputs:
        try:
            tensor = state.tensor(output)
            state.build.output(tensor)
            outputs[output] = tensor.name
        except _ObstacleError as obstacle:
            if str(obstacle):
                state.obstacles.append(f"output {output}: {obstacle}")
        except KeyError:
            raise _broken(name, f"nothing gives its output {output}") from None
    if state.obstacles:
        raise Unsupported(
            f"there are {len(state.obstacles)} nodes that cannot be taken: {few_of(state.obstacles)}",
            stage=STAGE,
            subject=name,
            nodes=tuple(obstacle.partition(": ")[0] for obstacle in state.obstacles),
            next_step="export the model without them; docs/onnx.md lists what is supported",
        )
    names = {made: output for output, made in outputs.items() if made in state.source}
    return Imported(graph=_placed(state, names, name), values=state.parameters)


def _parsed(content: bytes, name: str) -> onnx.ModelProto:
    try:
        model = onnx.load_model_from_string(content)
    except DecodeError:
        raise _broken(name, "it is no ONNX model") from None
    sets = {entry.domain: entry.version for entry in model.opset_import}
    version = sets.get("", sets.get("ai.onnx"))
    if version is None or not model.graph.node:
        raise _broken(name, "it is no ONNX model, or one without nodes")
    if not OLDEST <= version <= NEWEST:
        raise Unsupported(
            f"its operator set is {version}; {OLDEST} to {NEWEST} are supported",
            stage=STAGE,
            subject=name,
            next_step="export it for one of these, or convert it with onnx.version_converter",
        )
    return model


def _no_data_elsewhere(graph: onnx.GraphProto, name: str) -> None:
    elsewhere = [
        initializer.name
        for initializer in graph.initializer
        if initializer.data_location == onnx.TensorProto.EXTERNAL
    ]
    if elsewhere:
        raise Unsupported(
            f"the values of {few_of(elsewhere)} are in other files",
            stage=STAGE,
            subject=name,
            nodes=tuple(elsewhere),
            next_step="save the model as one file: onnx.save(onnx.load(FILE), OTHER)",
        )


def _shape(given: onnx.ValueInfoProto, name: str) -> list[int]:
    kind = given.type.tensor_type
    if kind.elem_type not in _FLOATS:
        raise Unsupported(
            f"input {given.name} holds {_type_name(kind.elem_type)}, not FLOAT or FLOAT16",
            stage=STAGE,
            subject=name,
            nodes=(given.name,),
            next_step="export a model whose inputs are of these types",
        )
    open_axes = [
        axis.dim_param or str(number) for number, axis in enumerate(kind.shape.dim) if axis.dim_value < 1
    ]
    if open_axes or not kind.shape.dim:
        what = f"its axes {few_of(open_axes)} have no extent" if open_axes else "it has no axes"
        raise Unsupported(
            f"input {given.name}: {what}",
            stage=STAGE,
            subject=name,
            nodes=(given.name,),
            next_step="export the model for one shape of its inputs",
        )
    return [axis.dim_value for axis in kind.shape.dim]


def _take(state: _Import, node: onnx.NodeProto, number: int, name: str) -> None:
    """Take one node; what it gives is known behind it."""
    told = f"{node.name or node.output[0]}: {node.domain + '.' if node.domain else ''}{node.op_type}"
    missing = [operand for operand in node.input if operand and operand not in state.known]
    if missing:
        raise _broken(name, f"node {told} takes {missing[0]}, which nothing before it gives")
    try:
        operation = None if node.domain not in {"", "ai.onnx"} else _OPERATIONS.get(node.op_type)
        if operation is None:
            _look_away(state, node)
            raise _ObstacleError("no such operation")
        given = operation(
            state, _Node(node=node, told=told, wanted=[result or None for result in node.output])
        )
        for result, value in zip(node.output, given, strict=True):
            if not result:
                continue
            state.known[result] = value
            if isinstance(value, Tensor):
                state.source.setdefault(value.name, (number, told))
    except _ObstacleError as obstacle:
        if str(obstacle):
            state.obstacles.append(f"{told}: {obstacle}")
        state.known |= {result: _Refused() for result in node.output}


def _look_away(state: _Import, node: onnx.NodeProto) -> None:
    """A node behind one that is in the way is not in the way itself.

    Raises:
        _ObstacleError: it is behind one.
    """
    if any(isinstance(state.known[operand], _Refused) for operand in node.input if operand):
        raise _ObstacleError


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Node:
    """A node, and how its attributes are read."""

    node: onnx.NodeProto
    told: str
    wanted: list[str | None]

    @property
    def name(self) -> str | None:
        """Of its first result."""
        return self.wanted[0]

    def operand(self, number: int) -> str:
        """Name of an operand.

        Raises:
            _ObstacleError: it has none.
        """
        if number < len(self.node.input) and self.node.input[number]:
            return self.node.input[number]
        raise _ObstacleError(f"operand {number} is missing")

    def has_operand(self, number: int) -> bool:
        """Whether an optional operand is given."""
        return number < len(self.node.input) and bool(self.node.input[number])

    def attribute(self, name: str, default: object) -> Any:  # noqa: ANN401  # of the kind of its default
        """An attribute, or its default."""
        for attribute in self.node.attribute:
            if attribute.name == name:
                return cast("object", onnx.helper.get_attribute_value(attribute))
        return default

    def must_be(self, name: str, wanted: object) -> None:
        """An attribute has one supported value, which is its default.

        Raises:
            _ObstacleError: it has another.
        """
        found = self.attribute(name, wanted)
        if found != wanted:
            raise _ObstacleError(f"{name} is {found!r}, not {wanted!r}")


def _identity(state: _Import, node: _Node) -> list[_Value]:
    return [state.known[node.operand(0)]]


def _constant(state: _Import, node: _Node) -> list[_Value]:  # noqa: ARG001  # one signature for all
    for attribute in node.node.attribute:
        value: Any = onnx.helper.get_attribute_value(attribute)
        match attribute.name:
            case "value":
                return [onnx.numpy_helper.to_array(value)]
            case "value_float" | "value_floats":
                return [np.array(value, dtype=np.float32)]
            case "value_int" | "value_ints":
                return [np.array(value, dtype=np.int64)]
            case _:
                pass
    raise _ObstacleError("a constant of this kind")


def _cast(state: _Import, node: _Node) -> list[_Value]:
    wanted = node.attribute("to", 0)
    if wanted not in _FLOATS:
        raise _ObstacleError(f"to {_type_name(wanted)}")
    value = state.known[node.operand(0)]
    if isinstance(value, np.ndarray):
        return [value.astype(onnx.helper.tensor_dtype_to_np_dtype(wanted))]
    return [value]


def _matmul(state: _Import, node: _Node) -> list[_Value]:
    left, right = state.tensor(node.operand(0)), state.tensor(node.operand(1))
    if min(len(left.shape), len(right.shape)) < 2:
        raise _ObstacleError("of a vector")
    return [state.build.gemm(left, right, name=node.name)]


def _gemm(state: _Import, node: _Node) -> list[_Value]:
    node.must_be("alpha", 1.0)
    node.must_be("beta", 1.0)
    has_bias = node.has_operand(2)
    product = state.build.gemm(
        state.tensor(node.operand(0)),
        state.tensor(node.operand(1)),
        transpose_left=bool(node.attribute("transA", 0)),
        transpose_right=bool(node.attribute("transB", 0)),
        name=f"{node.name}.product" if has_bias else node.name,
    )
    if not has_bias:
        return [product]
    return [state.build.add(product, state.tensor(node.operand(2)), name=node.name)]


def _gelu(state: _Import, node: _Node) -> list[_Value]:
    return [state.build.gelu(state.tensor(node.operand(0)), name=node.name)]


def _softmax(state: _Import, node: _Node) -> list[_Value]:
    operand = state.tensor(node.operand(0))
    if _axis(node.attribute("axis", -1), len(operand.shape)) != len(operand.shape) - 1:
        raise _ObstacleError("not over the last axis")
    return [state.build.softmax(operand, name=node.name)]


def _layer_norm(state: _Import, node: _Node) -> list[_Value]:
    operand = state.tensor(node.operand(0))
    if _axis(node.attribute("axis", -1), len(operand.shape)) != len(operand.shape) - 1:
        raise _ObstacleError("over more than the last axis")
    if any(node.node.output[1:]):
        raise _ObstacleError("mean and variance are used")
    scale = state.tensor(node.operand(1))
    if node.has_operand(2):
        bias = state.tensor(node.operand(2))
    else:
        raise _ObstacleError("without a bias")
    epsilon = float(node.attribute("epsilon", 1e-5))
    made = state.build.layer_norm(operand, (scale, bias), epsilon=epsilon, name=node.name)
    return [made, *(_Refused() for _ in node.node.output[1:])]


def _reshape(state: _Import, node: _Node) -> list[_Value]:
    operand, shape = state.tensor(node.operand(0)), state.integers(node.operand(1))
    if not node.attribute("allowzero", 0):
        shape = [
            operand.shape[axis] if extent == 0 and axis < len(operand.shape) else extent
            for axis, extent in enumerate(shape)
        ]
    return [_reshaped(state, node, operand, shape)]


def _flatten(state: _Import, node: _Node) -> list[_Value]:
    operand = state.tensor(node.operand(0))
    axis = int(node.attribute("axis", 1))
    axis += len(operand.shape) if axis < 0 else 0
    shape = [math.prod(operand.shape[:axis]), math.prod(operand.shape[axis:])]
    return [_reshaped(state, node, operand, shape)]


def _squeeze(state: _Import, node: _Node) -> list[_Value]:
    operand = state.tensor(node.operand(0))
    rank = len(operand.shape)
    axes = (
        {_axis(axis, rank) for axis in state.integers(node.operand(1))}
        if node.has_operand(1)
        else {axis for axis, extent in enumerate(operand.shape) if extent == 1}
    )
    shape = [extent for axis, extent in enumerate(operand.shape) if axis not in axes]
    return [_reshaped(state, node, operand, shape)]


def _unsqueeze(state: _Import, node: _Node) -> list[_Value]:
    operand, given = state.tensor(node.operand(0)), state.integers(node.operand(1))
    shape = list(operand.shape)
    for axis in sorted(_axis(axis, len(operand.shape) + len(given)) for axis in given):
        shape.insert(axis, 1)
    return [_reshaped(state, node, operand, shape)]


def _reshaped(state: _Import, node: _Node, operand: Tensor, shape: list[int]) -> Tensor:
    size = math.prod(operand.shape)
    if shape.count(-1) == 1 and (rest := -math.prod(shape)) > 0 and size % rest == 0:
        shape = [size // rest if extent == -1 else extent for extent in shape]
    if not shape or min(shape) < 1 or math.prod(shape) != size:
        raise _ObstacleError(f"from {list(operand.shape)} to {shape}")
    return state.build.reshape(operand, shape, name=node.name)


def _transpose(state: _Import, node: _Node) -> list[_Value]:
    operand = state.tensor(node.operand(0))
    order = node.attribute("perm", list(reversed(range(len(operand.shape)))))
    return [state.build.transpose(operand, order, name=node.name)]


def _slice(state: _Import, node: _Node) -> list[_Value]:
    operand = state.tensor(node.operand(0))
    starts, stops = state.integers(node.operand(1)), state.integers(node.operand(2))
    axes = state.integers(node.operand(3)) if node.has_operand(3) else list(range(len(starts)))
    steps = state.integers(node.operand(4)) if node.has_operand(4) else [1] * len(starts)
    if set(steps) - {1}:
        raise _ObstacleError("with steps other than 1")
    made = operand
    for number, (axis, start, stop) in enumerate(zip(axes, starts, stops, strict=True)):
        place = _axis(axis, len(operand.shape))
        first, last, _ = slice(start, stop).indices(operand.shape[place])
        if first >= last:
            raise _ObstacleError("of nothing")
        name = node.name if number == len(axes) - 1 else None
        made = state.build.slice(made, place, first, last, name=name)
    return [made]


def _concat(state: _Import, node: _Node) -> list[_Value]:
    operands = [state.tensor(operand) for operand in node.node.input]
    axis = _axis(node.attribute("axis", 0), len(operands[0].shape))
    return [state.build.concat(operands, axis, name=node.name) if len(operands) > 1 else operands[0]]


def _split(state: _Import, node: _Node) -> list[_Value]:
    operand, count = state.tensor(node.operand(0)), len(node.node.output)
    axis = _axis(node.attribute("axis", 0), len(operand.shape))
    extent = operand.shape[axis]
    part = -(-extent // count)  # all alike, but for a shorter last one
    lengths = [part] * (count - 1) + [extent - part * (count - 1)]
    if node.has_operand(1):
        lengths = state.integers(node.operand(1))
    if len(lengths) != count or min(lengths) < 1 or sum(lengths) != extent:
        raise _ObstacleError(f"{extent} into {lengths}")
    stops = np.cumsum(lengths).tolist()
    return [
        state.build.slice(operand, axis, stop - length, stop, name=name)
        for stop, length, name in zip(stops, lengths, node.wanted, strict=True)
    ]


def _add(state: _Import, node: _Node) -> list[_Value]:
    """Of tensors; where a function is among them, a step of it."""
    left, right = node.operand(0), node.operand(1)
    if any(isinstance(state.known[name], _Function) for name in (left, right)):
        return _element_wise(np.add)(state, node)
    return [state.build.add(state.tensor(left), state.tensor(right), name=node.name)]


def _element_wise(function: Callable[..., npt.NDArray[np.float64]]) -> "_Operation":
    """A step of a function of one tensor and constants."""

    def step(state: _Import, node: _Node) -> list[_Value]:
        given = [state.known[name] for name in node.node.input]
        if any(isinstance(value, _Refused) for value in given):
            raise _ObstacleError
        roots = {id(root): root for value in given if (root := _root(value)) is not None}
        many = [value for value in given if isinstance(value, np.ndarray) and value.size != 1]
        if len(roots) != 1 or many:
            raise _ObstacleError("it is no part of a GELU")
        (root,) = roots.values()
        with np.errstate(all="ignore"):
            probes = np.asarray(function(*(_probes(value) for value in given)), dtype=np.float64)
        before = [each for value in given if isinstance(value, _Function) for each in value.nodes]
        nodes = (*dict.fromkeys(before), f"{node.told}: it is no part of a GELU")
        if any(np.allclose(probes, gelu, rtol=_CLOSE, atol=_CLOSE) for gelu in _GELUS):
            return [state.build.gelu(root, name=node.name)]
        if np.allclose(probes, _PROBES, rtol=_CLOSE, atol=_CLOSE):
            return [root]
        return [_Function(of=root, probes=probes, nodes=nodes)]

    return step


def _root(value: _Value) -> Tensor | None:
    match value:
        case Tensor():
            return value
        case _Function(of=root):
            return root
        case _:
            return None


def _probes(value: _Value) -> npt.NDArray[np.float64]:
    match value:
        case _Function(probes=probes):
            return probes
        case np.ndarray():
            return value.astype(np.float64).reshape(1)
        case _:
            return _PROBES


_Operation: TypeAlias = Callable[[_Import, _Node], list[_Value]]

_OPERATIONS: Final[Mapping[str, _Operation]] = {
    "Add": _add,
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "Div": _element_wise(np.divide),
    "Erf": _element_wise(_erf),
    "Flatten": _flatten,
    "Gelu": _gelu,
    "Gemm": _gemm,
    "Identity": _identity,
    "LayerNormalization": _layer_norm,
    "MatMul": _matmul,
    "Mul": _element_wise(np.multiply),
    "Neg": _element_wise(np.negative),
    "Pow": _element_wise(np.power),
    "Reshape": _reshape,
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Sqrt": _element_wise(np.sqrt),
    "Squeeze": _squeeze,
    "Sub": _element_wise(np.subtract),
    "Tanh": _element_wise(np.tanh),
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}

OPERATIONS: Final = tuple(sorted(_OPERATIONS))
"""Names of the operations that are taken."""


def _axis(axis: int, rank: int) -> int:
    found = axis + rank if axis < 0 else axis
    if not 0 <= found < rank:
        raise _ObstacleError(f"axis {axis} of {rank}")
    return found


def _fill(values: npt.NDArray[np.float16]) -> Fill:
    """Numbers for simulations that are like those of the file: of its spread, or its one value."""
    wide = values.astype(np.float64)
    if wide.min() == wide.max():
        return Constant(value=float(wide.reshape(-1)[0]))
    return Normal(sigma=float(np.sqrt((wide**2).mean())))


def _type_name(number: int) -> str:
    try:
        return onnx.TensorProto.DataType.Name(cast("Any", number))
    except ValueError:
        return f"type {number}"


def _placed(state: _Import, names: Mapping[str, str], name: str) -> Graph:
    """The graph, with the nodes of the file as provenance: their number from 1 on stands for the line.

    Args:
        state: at the end.
        names: of outputs that the file calls otherwise than the node that gives them.
        name: of the file.
    """
    graph = state.build.finish()
    values: list[Value] = []
    for value in graph.block.values:
        number, note = state.source.get(value.name, (-1, ""))
        place = Provenance(file=name, line=number + 1, note=note)
        values.append(Value(name=names.get(value.name, value.name), type=value.type, provenance=place))
    return dataclasses.replace(graph, block=dataclasses.replace(graph.block, values=tuple(values)))


def _broken(name: str, message: str) -> InvalidModel:
    return InvalidModel(
        message, stage=STAGE, subject=name, next_step="give a model that onnx.checker accepts"
    )
