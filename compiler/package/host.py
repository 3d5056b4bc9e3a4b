"""Tensors of users as files of a package, and back.

A binding's file is its shards one after the other, as they lie in memory, padding included. Which element is
where follows from the tensor's shape and format, and nothing else; beside a package lies a description of
both for each tensor, ``<name>.host.json``::

    {
      "name": "weights", "role": "weight", "shape": [64, 32],
      "precision": "f16", "scale": 0, "distributed": [64, 32],
      "order": {"kind": "AmpRight"},
      "tiling": {"kind": "grid", "replicas": 1, "axes": [{"axis": 0, "partitions": 2, "padding": "zero"}]},
      "memory": "interleaved", "bytes": 4096
    }

and, first of all where it was written beside a package, ``"package"``: the SHA-256 of that file
(an axis has more numbers than shown here). ``shape`` is what the model says; ``distributed`` has the same
elements in the same sequence, and is what tiling and order are about, since plans merge axes. ``scale`` is
the exponent of 8-bit elements: an element counts as code * 2^scale. :func:`pack` takes values of any float
type and rounds to nearest even; :func:`unpack` gives them as binary32, which holds every element exactly.
:func:`read_layout` and :func:`write_layout` are inverse.
"""

import json
from dataclasses import dataclass, fields
from enum import Enum
from hashlib import sha256
from math import prod
from typing import Any, Final, TypeAlias, assert_never, cast, final
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from compiler.errors import InvalidInput
from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, Precision, decode_f143, encode_f143
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding, TensorTiling
from compiler.low.values import pack as pack_shards
from compiler.low.values import unpack as unpack_shards

STAGE: Final = "host files"

_PACKAGE: Final = "package"
"""Field of a description: whose it is."""

Values: TypeAlias = npt.NDArray[np.floating[Any]]


class HostRole(Enum):
    """What a tensor is to a user of the package."""

    WEIGHT = "weight"
    INPUT = "input"
    OUTPUT = "output"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostLayout:
    """What ``<name>.host.json`` says.

    Args:
        name: of the binding.
        role: which list of the package it is in.
        shape: extents as users know them.
        distributed: extents that tiles divide, of as many elements in the same sequence.
        format: precision and layout.
    """

    name: str
    role: HostRole
    shape: tuple[int, ...]
    distributed: tuple[int, ...]
    format: TensorFormat

    def __post_init__(self) -> None:
        """Both shapes have the same elements."""
        if prod(self.shape) != prod(self.distributed):
            raise ValueError(
                f"shapes {list(self.shape)} and {list(self.distributed)} have not as many elements"
            )

    @property
    def file_bytes(self) -> int:
        """Bytes of the binding's file."""
        return int(self.distribution.storage_bytes.sum())

    @property
    def distribution(self) -> Distribution:
        """How its elements are divided."""
        return distribute(self.distributed, self.format)

    @property
    def file_name(self) -> str:
        """Name of the description; characters that file systems do not like are percent codes."""
        return f"{quote(self.name, safe='')}.host.json"


def pack(layout: HostLayout, values: Values) -> bytes:
    """The file of a tensor; padding is zero.

    Raises:
        InvalidInput: the tensor has another shape.
    """
    if values.shape != layout.shape:
        raise _refused(
            layout,
            f"it has the shape {list(layout.shape)}, the given values {list(values.shape)}",
            "give a tensor of this shape",
        )
    stored = _encoded(layout.format.precision, values).reshape(layout.distributed)
    shards = pack_shards(layout.distribution, stored)
    return b"".join(shard.tobytes() for shard in shards)


def unpack(layout: HostLayout, file: bytes) -> npt.NDArray[np.float32]:
    """The tensor in a file; padding is not looked at.

    Raises:
        InvalidInput: the file has another length.
    """
    if len(file) != layout.file_bytes:
        raise _refused(
            layout,
            f"its file has {layout.file_bytes:,} bytes, the given one {len(file):,}",
            "give a file of this length",
        )
    distribution = layout.distribution
    ends = np.cumsum(distribution.storage_bytes)
    shards = np.split(np.frombuffer(file, dtype=np.uint8), ends[:-1])
    return _decoded(layout.format.precision, unpack_shards(distribution, shards)).reshape(layout.shape)


def _encoded(precision: Precision, values: Values) -> npt.NDArray[Any]:
    match precision:
        case F32():
            return values.astype(F32.dtype)
        case F16():
            # Beyond the range of binary16 is infinity, as everywhere.
            with np.errstate(over="ignore"):
                return values.astype(F16.dtype)
        case F8(scale_exponent=scale):
            return encode_f143(values, scale)
        case _:
            assert_never(precision)


def _decoded(precision: Precision, stored: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    match precision:
        case F32() | F16():
            return stored.astype(np.float32)
        case F8(scale_exponent=scale):
            return decode_f143(stored, scale)
        case _:
            assert_never(precision)


# The description as text.

_ORDERS: Final[tuple[type[ElementOrder], ...]] = (
    RowMajor,
    AmpLeft,
    AmpTransposedLeft,
    AmpRight,
    AmpTransposedRight,
    AmpOutput,
    AmpTransposedOutput,
    BlockMajor,
    BlockMajorTransposed,
)
_KEYS: Final = (
    "name",
    "role",
    "shape",
    "precision",
    "scale",
    "distributed",
    "order",
    "tiling",
    "memory",
    "bytes",
)
_PRECISIONS: Final = {"f32": F32, "f16": F16, "f143": F8}

_LARGEST: Final = 1 << 31
"""Magnitude of numbers in a description: more than any memory has bytes."""

_MOST_SHARDS: Final = 1 << 16
"""More than there are tiles."""

_Json: TypeAlias = dict[str, Any]


def precision_name(precision: Precision) -> str:
    """The element type's name, in descriptions and in packages."""
    match precision:
        case F32():
            return "f32"
        case F16():
            return "f16"
        case F8():
            return "f143"
        case _:
            assert_never(precision)


def write_layout(layout: HostLayout) -> str:
    """The text of a description; the same for equal layouts."""
    precision = layout.format.precision
    order, tiling = layout.format.layout.order, layout.format.layout.tiling
    description = {
        "name": layout.name,
        "role": layout.role.value,
        "shape": list(layout.shape),
        "precision": precision_name(precision),
        "scale": precision.scale_exponent if isinstance(precision, F8) else 0,
        "distributed": list(layout.distributed),
        "order": {"kind": type(order).__name__} | _numbers(order),
        "tiling": _tiling_description(tiling),
        "memory": layout.format.layout.memory_class.value,
        "bytes": layout.file_bytes,
    }
    return json.dumps(description, indent=2) + "\n"


def read_layout(text: str, *, name: str) -> HostLayout:
    """The layout in a description.

    Args:
        text: the file.
        name: what to call it in errors.

    Raises:
        InvalidInput: it is no description, or one of something that cannot be.
    """
    try:
        found = cast("object", json.loads(text))
        described = cast("_Json", found) if isinstance(found, dict) else {}
        described.pop(_PACKAGE, None)
        layout = _layout_of(_object(described, _KEYS))
        stated = described["bytes"]
        if layout.file_bytes != stated:
            raise ValueError(f"it states {stated} bytes, its layout has {layout.file_bytes}")
    except (ValueError, TypeError, RecursionError) as refusal:
        raise InvalidInput(
            f"it does not describe a tensor of a package: {refusal}",
            stage=STAGE,
            subject=name,
            next_step="build the package again, which writes the description",
        ) from None
    return layout


def belonging(text: str, package: bytes) -> str:
    """A description that says which package it was written beside.

    Args:
        text: a description.
        package: the file.
    """
    described = cast("_Json", json.loads(text))
    return json.dumps({_PACKAGE: sha256(package).hexdigest()} | described, indent=2) + "\n"


def belongs(text: str, package: bytes) -> bool:
    """Whether a description is of a package; one that names none is of any.

    Args:
        text: a description that :func:`read_layout` accepts.
        package: the file.
    """
    named = cast("_Json", json.loads(text)).get(_PACKAGE)
    return named is None or named == sha256(package).hexdigest()


def _layout_of(found: _Json) -> HostLayout:
    kind = _PRECISIONS.get(found["precision"])
    if kind is None:
        raise ValueError(f"precision is {found['precision']!r}, not one of {', '.join(_PRECISIONS)}")
    scale = _integer(found["scale"], "scale")
    if kind is not F8 and scale:
        raise ValueError(f"scale is {scale}, but elements are {found['precision']}")
    layout = HostLayout(
        name=_text(found["name"], "name"),
        role=HostRole(found["role"]),
        shape=_extents(found["shape"], "shape"),
        distributed=_extents(found["distributed"], "distributed"),
        format=TensorFormat(
            precision=F8(scale_exponent=scale) if kind is F8 else kind(),
            layout=TensorLayout(
                order=_order_of(found["order"]),
                tiling=_tiling_of(found["tiling"]),
                memory_class=MemoryClass(found["memory"]),
            ),
        ),
    )
    if layout.format.layout.tiling.shard_count > _MOST_SHARDS or prod(layout.shape) > _LARGEST:
        raise ValueError("it is larger than any device")
    return layout


def _extents(found: object, name: str) -> tuple[int, ...]:
    extents = tuple(_integer(extent, name) for extent in _array(found, name))
    if min(extents, default=1) < 1:
        raise ValueError(f"{name} {list(extents)} has an extent that is not positive")
    return extents


def _order_of(found: object) -> ElementOrder:
    kinds = {kind.__name__: kind for kind in _ORDERS}
    kind = kinds.get(_kind(found))
    if kind is None:
        raise ValueError(f"order is {_kind(found)!r}, not one of {', '.join(kinds)}")
    names = tuple(field.name for field in fields(kind))
    described = _object(found, ("kind", *names))
    return kind(**{name: _integer(described[name], name) for name in names})


def _tiling_description(tiling: TensorTiling) -> _Json:
    match tiling:
        case GridTiling(replicas=replicas, axes=axes):
            return {
                "kind": "grid",
                "replicas": replicas,
                "axes": [_numbers(axis) | {"padding": axis.padding.value} for axis in axes],
            }
        case LinearTiling():
            return {"kind": "linear"} | _numbers(tiling)
        case _:
            assert_never(tiling)


def _tiling_of(found: object) -> TensorTiling:
    match _kind(found):
        case "grid":
            described = _object(found, ("kind", "replicas", "axes"))
            return GridTiling(
                replicas=_integer(described["replicas"], "replicas"),
                axes=tuple(_axis_of(axis) for axis in _array(described["axes"], "axes")),
            )
        case "linear":
            names = tuple(field.name for field in fields(LinearTiling))
            described = _object(found, ("kind", *names))
            return LinearTiling(**{name: _integer(described[name], name) for name in names})
        case other:
            raise ValueError(f"tiling is {other!r}, not grid or linear")


def _axis_of(found: object) -> AxisTiling:
    described = _object(found, tuple(field.name for field in fields(AxisTiling)))
    numbers = {
        name: _integer(value, name)
        for name, value in described.items()
        if name not in ("padding", "owner_stride")
    }
    stride = described["owner_stride"]
    return AxisTiling(
        padding=Padding(described["padding"]),
        owner_stride=None if stride is None else _integer(stride, "owner_stride"),
        **numbers,
    )


def _numbers(value: ElementOrder | AxisTiling | LinearTiling) -> _Json:
    """The fields of a value that are numbers, or nothing."""
    found = {field.name: cast("object", getattr(value, field.name)) for field in fields(value)}
    return {name: number for name, number in found.items() if number is None or isinstance(number, int)}


def _object(found: object, keys: tuple[str, ...]) -> _Json:
    if not isinstance(found, dict):
        raise TypeError(f"an object with {', '.join(keys)} is missing")
    described = cast("_Json", found)
    if described.keys() != frozenset(keys):
        raise ValueError(f"an object has {', '.join(described)} where {', '.join(keys)} belong")
    return described


def _kind(found: object) -> str:
    kind = cast("_Json", found).get("kind") if isinstance(found, dict) else None
    if not isinstance(kind, str):
        raise TypeError("an object without kind")
    return kind


def _array(found: object, name: str) -> list[object]:
    if not isinstance(found, list):
        raise TypeError(f"{name} is no list")
    return cast("list[object]", found)


def _integer(found: object, name: str) -> int:
    if not isinstance(found, int) or isinstance(found, bool):
        raise TypeError(f"{name} is no whole number")
    if abs(found) > _LARGEST:
        raise ValueError(f"{name} is {found}, beyond {_LARGEST}")
    return found


def _text(found: object, name: str) -> str:
    if not isinstance(found, str) or not found:
        raise TypeError(f"{name} is no text")
    return found


def _refused(layout: HostLayout, message: str, next_step: str) -> InvalidInput:
    return InvalidInput(
        message,
        stage=STAGE,
        subject=f"{layout.role.value} {layout.name!r}",
        next_step=next_step,
    )
