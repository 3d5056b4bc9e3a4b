"""Equal values have equal bytes, different values different ones, the rest is refused (CA-04, CA-05)."""

import collections
import enum
import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, cast

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import numpy.typing as npt
import pydantic
import pytest

from compiler.fingerprint import REPOSITORY
from compiler.store.canonical import decode, digest_value, encode, from_text, in_order, to_text
from compiler.store.container import Columns, locate, read_columns, write_columns
from tests.store.sample_types import Options, Rounding, ScaleOptions


class Color(enum.IntFlag):
    """A flag."""

    RED = 1
    BLUE = 2


@dataclass(frozen=True, kw_only=True)
class Left:
    """Equal fields, another class than Right."""

    value: object


@dataclass(frozen=True, kw_only=True)
class Right:
    """Equal fields, another class than Left."""

    value: object


class Model:
    """A strict model as far as the encoding sees it."""

    model_fields: ClassVar[Mapping[str, object]] = {"value": None}

    def __init__(self, value: object) -> None:
        self.value = value


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["$float", "$type", "$$", "$", "fields", "nan:", "a"]),
    st.binary(max_size=6),
    st.sampled_from([Rounding.UP, Rounding.DOWN, Color.RED | Color.BLUE]),
)
VALUES: st.SearchStrategy[object] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(
            st.one_of(st.text(max_size=3), st.sampled_from(["$float", "$map"])), inner, max_size=3
        ),
        st.dictionaries(st.one_of(st.integers(), st.text(max_size=2), st.none()), inner, max_size=3),
        st.builds(Left, value=inner),
        st.builds(Right, value=inner),
    ),
    max_leaves=8,
)
CLASSES: dict[str, type] = {
    f"{found.__module__}:{found.__qualname__}": found for found in (Left, Right, Rounding, Color)
}


def same(first: object, second: object) -> bool:
    """Equality as keys need it, written without the encoding: types, bits of floats, no order of mappings."""
    if type(first) is not type(second):
        return False
    match first:
        case float():
            return struct.pack(">d", first) == struct.pack(">d", cast("float", second))
        case tuple():
            one, other = cast("tuple[object, ...]", first), cast("tuple[object, ...]", second)
            return len(one) == len(other) and all(map(same, one, other))
        case dict():
            ours, theirs = cast("dict[object, object]", first), cast("dict[object, object]", second)
            return len(ours) == len(theirs) and all(
                any(same(key, name) and same(item, found) for name, found in theirs.items())
                for key, item in ours.items()
            )
        case Left() | Right():
            return same(first.value, cast("Left", second).value)
        case _:
            return first == second


@hypothesis.given(VALUES)
def test_decoding_undoes_encoding(value: object) -> None:
    text = to_text(encode(value))
    assert same(decode(from_text(text), CLASSES.__getitem__), value)


@hypothesis.given(VALUES, VALUES)
def test_texts_are_equal_exactly_when_values_are(first: object, second: object) -> None:
    assert (to_text(encode(first)) == to_text(encode(second))) == same(first, second)


@hypothesis.given(st.dictionaries(st.text(max_size=4), st.integers(), max_size=6), st.randoms())
def test_insertion_order_of_mappings_does_not_count(value: dict[str, int], random: Any) -> None:  # noqa: ANN401
    items = list(value.items())
    random.shuffle(items)
    assert digest_value(dict(items)) == digest_value(value) == digest_value(MappingProxyType(value))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (0, False),
        (0, 0.0),
        (0.0, -0.0),
        (1, "1"),
        ((), {}),
        ((), None),
        ("", b""),
        (("a", "b"), ("ab",)),
        (Left(value=1), Right(value=1)),
        (Left(value=1), {"value": 1}),
        (Rounding.UP, "UP"),
        ({"$float": "0x1.0000000000000p+0"}, 1.0),
        (Model(1), Model(2)),
        (np.zeros(2, np.float32), np.zeros(2, np.float64)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.array([0.0, -0.0])),
    ],
)
def test_values_that_are_easily_confused_differ(first: object, second: object) -> None:
    assert digest_value(first) != digest_value(second)


def test_floats_are_told_apart_by_their_bits() -> None:
    quiet = struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]
    assert digest_value(quiet) != digest_value(math.nan)
    assert digest_value(math.nan) == digest_value(float("nan"))
    assert encode(1.5) == {"$float": "0x1.8000000000000p+0"}


@hypothesis.given(hnp.arrays(np.int32, hnp.array_shapes(max_dims=3, max_side=4)))
def test_arrays_count_by_content_and_not_by_how_they_lie(array: npt.NDArray[np.int32]) -> None:
    wide = np.repeat(array, 2, axis=0)
    for other in (np.asfortranarray(array), array.astype(">i4"), wide[::2], array.copy()):
        assert digest_value(other) == digest_value(array)


class Text(str):
    """A subclass of a built-in type."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ([1], "value is a list"),
        ({1}, "value is a set"),
        (frozenset({1}), "value is a frozenset"),
        (np.float64(1), "value is a float64"),
        (np.int64(1), "value is a int64"),
        (1j, "value is a complex"),
        (Text("x"), "value is a Text"),
        (bytearray(b"x"), "value is a bytearray"),
        (object(), "value is a object"),
        (Left, "value is a type"),
        (len, "value is a builtin_function_or_method"),
        ({"a": (1, [2])}, r"value\['a'\]\[1\] is a list"),
        (Left(value={1}), "value.value is a set"),
        ({(1, 2.0): [1]}, r"value\[\(1, 2.0\)\] is a list"),
        (np.array(["a"]), "value: arrays of <U1 have no encoding"),
        (np.array([object()]), "value: arrays of object have no encoding"),
        (np.ma.masked_array([1]), "value is a MaskedArray"),
    ],
)
def test_everything_else_is_refused_by_its_type_and_place(value: object, name: str) -> None:
    with pytest.raises(TypeError, match=name):
        encode(value)


@pytest.mark.parametrize(
    "text",
    [
        b'{"b":1,"a":2}',
        b'{"a": 1}',
        b'{"a":1,"a":1}',
        b"1.5",
        b"NaN",
        b"1e3",
        b'"\xc3\xa9"',
        b'"\\u0041"',
        b"[1]\n",
        b"[",
        b"",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_only_the_one_text_of_a_value_is_read(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the messages are JSON's
        from_text(text)


def test_decoding_without_classes_refuses_them() -> None:
    for value in (Left(value=1), Rounding.UP, Color.RED, np.zeros(1)):
        with pytest.raises(ValueError, match=r"cannot be decoded here|can be decoded"):
            decode(encode(value))


HASH_SEEDS = """
import json, sys
from tests.store.test_canonical import sample
from compiler.store.canonical import digest_value
print(digest_value(sample(json.loads(sys.argv[1]))))
"""


def sample(order: list[int]) -> object:
    """A value with every kind of part, its mappings filled in the given order."""
    return {
        f"key {index}": (
            Options(seed=index),
            {index: Rounding.UP, "x": 1.5},
            np.arange(index),
            {str(index): b"x"},
        )
        for index in order
    }


def test_digests_are_equal_in_every_process() -> None:
    digests = {digest_value(sample([0, 1, 2, 3]))}
    for seed, order in (("0", [0, 1, 2, 3]), ("1", [3, 1, 0, 2]), ("4711", [2, 3, 1, 0])):
        done = subprocess.run(
            [sys.executable, "-c", HASH_SEEDS, json.dumps(order)],
            cwd=REPOSITORY.root,
            env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": "Asia/Tokyo"},
            capture_output=True,
            text=True,
            check=True,
        )
        digests.add(cast("Any", done.stdout.strip()))
    assert len(digests) == 1


ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=5),
    hnp.arrays(
        st.sampled_from([np.bool_, np.int8, np.uint16, np.int64, np.float16, np.float32, ">f8"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
    ),
    max_size=3,
)


@hypothesis.given(ARRAYS, VALUES.filter(lambda value: not isinstance(value, Left)))
def test_tables_come_back_bit_by_bit(arrays: dict[str, npt.NDArray[Any]], meta: object) -> None:
    try:
        decode(encode(meta))
    except ValueError:
        meta = None  # classes are not for tables
    data = write_columns(Columns(arrays=arrays, meta=meta))
    table = read_columns(data)
    assert same(table.meta, meta)
    assert list(table.arrays) == sorted(arrays)
    for name, array in arrays.items():
        found = table.arrays[name]
        assert found.dtype == array.dtype.newbyteorder("<")
        assert found.shape == array.shape
        assert found.tobytes() == array.astype(found.dtype).tobytes()
        assert not found.flags.writeable
    assert write_columns(Columns(arrays=dict(reversed(arrays.items())), meta=meta)) == data
    assert write_columns(table) == data


TABLE = write_columns(
    Columns(arrays={"tile": np.arange(5, dtype=np.int16), "flag": np.array([True, False])}, meta={"n": 1})
)


def test_a_changed_table_is_another_table_or_none() -> None:
    for bit in range(len(TABLE) * 8):
        changed = bytearray(TABLE)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            table = read_columns(bytes(changed))
        except ValueError:
            continue
        assert write_columns(table) == changed, "what is read has exactly one file"
    for length in range(len(TABLE)):
        with pytest.raises(ValueError, match=r"."):
            read_columns(TABLE[:length])
    with pytest.raises(ValueError, match="takes"):
        read_columns(TABLE + b"\0")


def test_a_table_that_claims_to_be_huge_is_refused_before_anything_is_allocated() -> None:
    header = to_text({"columns": [["x", "<f8", [2**40, 2**20]]], "meta": None})
    with pytest.raises(ValueError, match="the table takes"):
        read_columns(b"TWCOLS\x01\n" + len(header).to_bytes(8, "little") + header)


def test_bytes_of_a_table_are_located_for_a_reader() -> None:
    assert locate(TABLE, len(TABLE) - 3) == "column 'tile', element 3"
    assert locate(TABLE, 20) == "header"
    assert locate(b"x", 0) == "header"
    places = {locate(TABLE, offset) for offset in range(len(TABLE))}
    assert places == {"header", "padding", *(f"column 'flag', element {n}" for n in range(2))} | {
        f"column 'tile', element {n}" for n in range(5)
    }


def test_an_options_object_encodes_with_its_classes() -> None:
    assert encode(ScaleOptions()) == {
        "$type": "tests.store.sample_types:ScaleOptions",
        "fields": {
            "factor": 2,
            "rounding": {"$enum": "tests.store.sample_types:Rounding", "name": "DOWN"},
            "tolerance": {"$float": "0x1.0000000000000p-1"},
        },
    }


class Alias(enum.Enum):
    """Two names of one member."""

    FIRST = 1
    SAME = 1  # noqa: PIE796  # the alias is the point


def loop() -> dict[str, object]:
    """A mapping that holds itself."""
    held: dict[str, object] = {}
    held["inner"] = (held,)
    return held


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ("\ud83d\ude00", "half a character"),
        ({"a": "x\udcff"}, r"value\['a'\] is a string with half"),
        ({"\ud800": 1}, "a key of value is a string with half"),
        (1 << 2048, "integer of 2049 bits"),
        (-(1 << 9999), "integer of 10000 bits"),
        (loop(), "holds itself"),
        (collections.OrderedDict[str, int](a=1), "OrderedDict"),
        (collections.Counter[str]("a"), "Counter"),
        (collections.defaultdict[str, int](int), "defaultdict"),
        ({"a": {1: [2]}}, "list"),
        (object(), "object"),
        (np.float64(1.5), "float64"),
    ],
)
def test_what_two_values_could_share_an_encoding_with_is_refused(value: object, fault: str) -> None:
    with pytest.raises(TypeError, match=fault):
        encode(value)


def test_the_longest_integers_have_an_encoding_in_every_process() -> None:
    limit = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(640)  # the smallest that Python allows
        for value in ((1 << 2048) - 1, -((1 << 2048) - 1)):
            assert decode(from_text(to_text(encode(value)))) == value
    finally:
        sys.set_int_max_str_digits(limit)


def test_classes_and_names_count_and_aliases_do_not() -> None:
    assert encode(Left(value=1)) != encode(Right(value=1))
    assert encode(Alias.FIRST) == encode(Alias.SAME)
    assert encode(0.0) != encode(-0.0)
    assert encode(1) != encode(1.0)
    nan, other = struct.unpack(">2d", bytes.fromhex("7ff80000000000007ff8000000000001"))
    assert encode(nan) != encode(other)
    assert encode(nan) == encode(float("nan"))


@hypothesis.given(value=VALUES, random=st.randoms(use_true_random=False))
def test_what_iterates_cannot_tell_equal_values_apart(value: object, random: Any) -> None:  # noqa: ANN401
    """A stage that works through a mapping in its order gives equal bytes for equal keys."""

    def shuffled(part: object) -> object:
        match part:
            case dict():
                items = [(key, shuffled(item)) for key, item in cast("dict[object, object]", part).items()]
                random.shuffle(items)
                return dict(items)
            case tuple():
                return tuple(shuffled(item) for item in cast("tuple[object, ...]", part))
            case Left() | Right():
                return type(part)(value=shuffled(part.value))
            case _:
                return part

    def walked(part: object) -> object:
        """The value with the order of its mappings made visible."""
        match part:
            case dict():
                items = cast("dict[object, object]", part).items()
                return [(to_text(encode(key)), walked(item)) for key, item in items]
            case tuple():
                return [walked(item) for item in cast("tuple[object, ...]", part)]
            case Left() | Right():
                return [type(part), walked(part.value)]
            case _:
                return to_text(encode(part))

    ordered = in_order(value)
    assert walked(in_order(shuffled(value))) == walked(ordered)
    assert walked(decode(from_text(to_text(encode(value))), CLASSES.__getitem__)) == walked(ordered)
    assert encode(ordered) == encode(value)
    assert in_order(ordered) is ordered


def test_mappings_inside_dataclasses_and_models_are_put_in_order_too() -> None:
    left = in_order(Left(value=({"b": 1, "a": MappingProxyType({"d": 1, "c": 2})},)))
    inner = cast("tuple[dict[str, object]]", left.value)[0]
    assert list(inner) == ["a", "b"]
    assert list(cast("MappingProxyType[str, int]", inner["a"])) == ["c", "d"]

    class Table(pydantic.BaseModel):
        """An options model."""

        table: dict[str, int]

    assert list(in_order(Table(table={"b": 1, "a": 2})).table) == ["a", "b"]
    sound = Left(value={"a": 1, "b": 2})
    assert in_order(sound) is sound
