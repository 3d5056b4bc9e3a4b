"""Tensors as files, and the description of a file.

The oracle is the coordinate interpreter of the geometry tests. Requirement: a binding's file is its shards in
storage order, padding included.
"""

import json
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import InvalidInput
from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import AmpRight, RowMajor
from compiler.geometry.precision import F8, F16, F32, decode_f143, encode_f143
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding
from compiler.package.host import HostLayout, HostRole, pack, read_layout, unpack, write_layout
from tests.geometry.interpreter import shard_storage
from tests.geometry.strategies import formats, precisions

Values = npt.NDArray[np.float32]


@st.composite
def layouts(draw: st.DrawFn) -> HostLayout:
    """Any tensor that a package can have, small."""
    shape = tuple(draw(st.lists(st.integers(1, 20), min_size=1, max_size=3)))
    return HostLayout(
        name=draw(st.sampled_from(["x", "layer/0.weight", "Ω 1"])),
        role=draw(st.sampled_from(HostRole)),
        shape=draw(st.sampled_from([shape, shape[::-1], (prod(shape),), (1, *shape)])),
        distributed=shape,
        format=draw(formats(shape, draw(precisions))),
    )


def stored(layout: HostLayout, values: Values) -> npt.NDArray[Any]:
    """Elements as they are stored, one for each value."""
    match layout.format.precision:
        case F32():
            return values
        case F16():
            return values.astype(np.float16)
        case F8(scale_exponent=scale):
            return encode_f143(values, scale)


def read_back(layout: HostLayout, values: Values) -> Values:
    """What is left of values after rounding."""
    elements = stored(layout, values)
    precision = layout.format.precision
    if isinstance(precision, F8):
        return decode_f143(elements, precision.scale_exponent)
    return elements.astype(np.float32)


def sample(layout: HostLayout, seed: int) -> Values:
    return np.random.default_rng(seed).normal(0, 20, layout.shape).astype(np.float32)


@given(layouts(), st.integers(0, 99))
def test_a_file_is_the_shards_in_order_with_zero_padding(layout: HostLayout, seed: int) -> None:
    values = sample(layout, seed)
    elements = stored(layout, values)
    shards = shard_storage(layout.distributed, layout.format)
    sizes = distribute(layout.distributed, layout.format).storage_elements.tolist()
    elements = elements.reshape(layout.distributed)
    wanted = np.zeros(sum(sizes), dtype=elements.dtype)
    start = 0
    for shard, size in zip(shards, sizes, strict=True):
        for coordinate, index in shard.items():
            wanted[start + index] = elements[coordinate]
        start += size
    assert pack(layout, values) == wanted.tobytes()
    assert layout.file_bytes == wanted.nbytes


@given(layouts(), st.integers(0, 99))
def test_unpacking_gives_the_rounded_values_and_ignores_padding(layout: HostLayout, seed: int) -> None:
    values = sample(layout, seed)
    file = np.frombuffer(pack(layout, values), np.uint8).copy()
    ones = np.frombuffer(pack(layout, np.ones(layout.shape, np.float32)), np.uint8)
    elements = ones.reshape(-1, layout.format.precision.element_bytes)
    file.reshape(elements.shape)[~elements.any(axis=1)] = 0xFF
    assert np.array_equal(unpack(layout, file.tobytes()), read_back(layout, values))


def test_values_of_any_float_type_are_rounded_once() -> None:
    layout = HostLayout(
        name="x",
        role=HostRole.INPUT,
        shape=(3,),
        distributed=(3,),
        format=TensorFormat(precision=F16(), layout=TensorLayout(order=RowMajor(), tiling=GridTiling())),
    )
    # Halfway between two halves, and a little above: rounding to binary32 first would lose the difference.
    exact = np.array([1 + 2**-11, 1 + 2**-11 + 2**-40, 1e6])
    assert unpack(layout, pack(layout, exact)).tolist() == [1.0, 1 + 2**-10, np.inf]


@given(layouts())
def test_descriptions_read_back(layout: HostLayout) -> None:
    text = write_layout(layout)
    assert read_layout(text, name="x") == layout
    assert write_layout(read_layout(text, name="x")) == text
    assert json.loads(text)["bytes"] == layout.file_bytes
    assert "/" not in layout.file_name


def test_a_description() -> None:
    layout = HostLayout(
        name="layer/w",
        role=HostRole.WEIGHT,
        shape=(64, 20),
        distributed=(64, 20),
        format=TensorFormat(
            precision=F8(scale_exponent=-2),
            layout=TensorLayout(
                order=AmpRight(),
                tiling=GridTiling(
                    replicas=2,
                    axes=(
                        AxisTiling(axis=0, partitions=2, block_size=32),
                        AxisTiling(axis=-1, partitions=1, shard_padding_multiple=16, padding=Padding.ZERO),
                    ),
                ),
            ),
        ),
    )
    assert layout.file_name == "layer%2Fw.host.json"
    assert json.loads(write_layout(layout)) == {
        "name": "layer/w",
        "role": "weight",
        "shape": [64, 20],
        "precision": "f143",
        "scale": -2,
        "distributed": [64, 20],
        "order": {"kind": "AmpRight"},
        "tiling": {
            "kind": "grid",
            "replicas": 2,
            "axes": [
                {
                    "axis": axis,
                    "partitions": partitions,
                    "padding_groups": 1,
                    "block_size": block,
                    "padding_multiple": 1,
                    "shard_padding_multiple": multiple,
                    "owner_stride": None,
                    "padding": padding,
                }
                for axis, partitions, block, multiple, padding in (
                    (0, 2, 32, 1, "reject"),
                    (-1, 1, 1, 16, "zero"),
                )
            ],
        },
        "memory": "standard",
        "bytes": 64 * 32,
    }


LINEAR = HostLayout(
    name="bias",
    role=HostRole.WEIGHT,
    shape=(10,),
    distributed=(10,),
    format=TensorFormat(
        precision=F16(), layout=TensorLayout(order=RowMajor(), tiling=LinearTiling(partitions=2, grain=4))
    ),
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"bytes": 26}, "it states 26 bytes, its layout has 24"),
        ({"shape": [0]}, "shape [0] has an extent that is not positive"),
        ({"shape": "10"}, "shape is no list"),
        ({"shape": [True]}, "shape is no whole number"),
        ({"shape": [2**40]}, "shape is 1099511627776, beyond 2147483648"),
        ({"shape": [65536, 65536], "distributed": [1 << 16, 1 << 16]}, "it is larger than any device"),
        ({"shape": [11]}, "shapes [11] and [10] have not as many elements"),
        ({"distributed": [0]}, "distributed [0] has an extent that is not positive"),
        ({"precision": "f64"}, "precision is 'f64', not one of f32, f16, f143"),
        ({"scale": 1}, "scale is 1, but elements are f16"),
        ({"name": ""}, "name is no text"),
        ({"order": {"kind": "Spiral"}}, "order is 'Spiral', not one of RowMajor, AmpLeft,"),
        ({"order": None}, "an object without kind"),
        ({"tiling": {"kind": "linear", "partitions": 2}}, "an object has kind, partitions where"),
        ({"tiling": {"kind": "linear", "partitions": 0, "grain": 4, "replicas": 1}}, "partitions, grain and"),
        ({"tiling": {"kind": "hexagonal"}}, "tiling is 'hexagonal', not grid or linear"),
        ({"memory": "tape"}, "'tape' is not a valid MemoryClass"),
        ({"role": "spy"}, "'spy' is not a valid HostRole"),
        ({"extra": 1}, "an object has name, role,"),
    ],
)
def test_what_is_no_description(change: dict[str, object], reason: str) -> None:
    text = json.dumps(json.loads(write_layout(LINEAR)) | change)
    with pytest.raises(InvalidInput) as refusal:
        read_layout(text, name="bias.host.json")
    assert str(refusal.value).startswith(
        "invalid input (host files): bias.host.json: it does not describe a tensor of a package: "
    )
    assert reason in str(refusal.value)


@pytest.mark.parametrize("text", ["", "[]", "1", "{", "[" * 100_000, '{"name": "x"}'])
def test_what_is_no_object(text: str) -> None:
    with pytest.raises(InvalidInput):
        read_layout(text, name="x.host.json")


def test_tensors_and_files_of_other_sizes_are_refused() -> None:
    with pytest.raises(InvalidInput) as shape:
        pack(LINEAR, np.zeros((2, 5), np.float32))
    assert str(shape.value) == (
        "invalid input (host files): weight 'bias': it has the shape [10], the given values [2, 5].\n"
        "  next: give a tensor of this shape"
    )
    with pytest.raises(InvalidInput) as size:
        unpack(LINEAR, bytes(20))
    assert str(size.value) == (
        "invalid input (host files): weight 'bias': its file has 24 bytes, the given one 20.\n"
        "  next: give a file of this length"
    )


def test_every_role_and_kind_has_a_name() -> None:
    for role, precision in product(HostRole, (F32(), F16(), F8())):
        layout = HostLayout(
            name="x",
            role=role,
            shape=(4,),
            distributed=(4,),
            format=TensorFormat(precision=precision, layout=LINEAR.format.layout),
        )
        assert read_layout(write_layout(layout), name="x") == layout
