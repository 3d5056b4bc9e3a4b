"""One text for one value: the canonical encoding that keys and small outputs are made of.

Input: values built from the types below. Output: JSON in exactly one form, so that equal values have equal
bytes in every process, whatever the hash seed or the insertion order, and different values have different
bytes (CA-04).

====================  ====================================================================
value                 encoded as
====================  ====================================================================
None, bool, int, str  themselves
float                 ``{"$float": "0x1.8000000000000p+0"}``; a NaN by its 64 bits
bytes                 ``{"$bytes": "00ff"}``
tuple                 an array
mapping               an object when all keys are strings, where a leading ``$`` of a key is doubled;
                      otherwise ``{"$map": [[key, value], ...]}`` sorted by the encoded key
enum member           ``{"$enum": "module:Class", "name": "NAME"}``; a flag by value
dataclass, model      ``{"$type": "module:Class", "fields": {...}}``
NumPy array           ``{"$array": "<f4", "shape": [...], "sha256": "..."}``, little endian, rows first
====================  ====================================================================

Every tagged form is an object with a key that starts with a single ``$``, which no mapping produces: the
encoding is injective. The class is part of a dataclass's encoding, since two kinds of node may have equal
fields.

**Anything else is refused by the name of its type**; above all lists and sets (mutable, unordered), NumPy
scalars and subclasses of the built-in types; integers of more than 2,048 bits, strings with half a character
(a lone surrogate) and what holds itself have no encoding either. A value that cannot be encoded never turns
into a constant: the failure that gave two models one key in another system. Pickles are not used because they
depend on object identity.

Arrays are encoded by the digest of their content: enough for a key, and the only form that ``decode`` cannot
undo.

The order of a mapping is not encoded. So that nothing can depend on it, stages see their inputs and options
``in_order``.
"""

import dataclasses
import enum
import json
import struct
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias, TypeVar, cast

import numpy as np
import numpy.typing as npt

from compiler.store.digest import Digest, digest_of

JsonValue: TypeAlias = "bool | int | str | list[JsonValue] | dict[str, JsonValue] | None"
"""JSON without floating-point numbers: what canonical text consists of."""

JsonObject: TypeAlias = dict[str, JsonValue]

Resolve: TypeAlias = Callable[[str], type]
"""Finds the class with a reference ``module:Class``, or raises ``ValueError``."""

T = TypeVar("T")

_MOST_BITS = 2048
"""The longest integer: what every Python process writes in decimal digits, however its limit is set."""

ARRAY_TYPES: frozenset[str] = frozenset(
    {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}
)
"""The element types that arrays may have, as NumPy writes them; complete on purpose."""


def encode(value: object) -> JsonValue:
    """``value`` as JSON.

    Raises:
        TypeError: it holds a type that has no encoding; the message names it and where it is.
    """
    try:
        return _encode(value, "value")
    except RecursionError:
        raise TypeError(
            "value holds itself or is nested too deeply, so it has no canonical encoding"
        ) from None


def in_order(value: T) -> T:
    """``value`` with every mapping in it in the order of its encoding, as ``decode`` gives it.

    Equal mappings have one encoding whatever their order; what works on them must not see more than the
    encoding does. What is in order already is given back as it is.
    """
    return cast("T", _in_order(value))


def _in_order(value: object) -> object:
    if type(value) is tuple:
        old = cast("tuple[object, ...]", value)
        new = tuple(_in_order(item) for item in old)
        return old if _same(old, new) else new
    if type(value) in {dict, MappingProxyType}:
        mapping = cast("Mapping[object, object]", value)
        named = all(type(key) is str for key in mapping)
        items = sorted(
            ((key, _in_order(item)) for key, item in mapping.items()),
            key=lambda item: _rank(item[0], named=named),
        )
        if _same(
            [part for item in mapping.items() for part in item], [part for item in items for part in item]
        ):
            return value
        return dict(items) if type(value) is dict else MappingProxyType(dict(items))
    fields = None if isinstance(value, enum.Enum) else model_fields(value)
    if not fields:
        return value
    changed = {name: new for name in fields if (new := _in_order(old := getattr(value, name))) is not old}
    if not changed:
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(value, **changed)
    return cast("_Model", value).model_copy(update=changed)


class _Model(Protocol):
    """A strict model, as far as it is used here."""

    def model_copy(self, *, update: Mapping[str, object]) -> object: ...


def _same(old: Sequence[object], new: Sequence[object]) -> bool:
    return all(first is second for first, second in zip(old, new, strict=True))


def _rank(key: object, *, named: bool) -> bytes:
    """Sorts the keys of a mapping as its encoding does: names of members by letters, others by their text."""
    return _name_of(str(key)).encode("utf-8") if named else to_text(encode(key))


def decode(encoded: JsonValue, resolve: Resolve | None = None) -> object:
    """The value that ``encode`` turned into ``encoded``.

    Args:
        encoded: canonical JSON.
        resolve: finds classes; without it, enum members and dataclasses are refused.

    Raises:
        ValueError: ``encoded`` is not an encoding, names a class that ``resolve`` refuses, or holds an array.
    """
    match encoded:
        case None | bool() | int() | str():
            return encoded
        case list():
            return tuple(decode(item, resolve) for item in encoded)
        case {"$float": str(text), **rest} if not rest:
            return _decode_float(text)
        case {"$bytes": str(text), **rest} if not rest:
            return bytes.fromhex(text)
        case {"$map": list(pairs), **rest} if not rest:
            return dict(_decode_pair(pair, resolve) for pair in pairs)
        case {"$enum": str(reference), "name": str(name), **rest} if not rest:
            return _enum_class(reference, resolve)[name]
        case {"$enum": str(reference), "value": int(value), **rest} if not rest:
            return _enum_class(reference, resolve)(value)
        case {"$type": str(reference), "fields": dict(fields), **rest} if not rest:
            if resolve is None:
                raise ValueError(f"{reference} cannot be decoded here")
            return resolve(reference)(**{name: decode(field, resolve) for name, field in fields.items()})
        case dict():
            if any(key.startswith("$") and not key.startswith("$$") for key in encoded):
                raise ValueError(f"{min(encoded)!r} does not start an encoding that can be decoded")
            return {key.removeprefix("$"): decode(item, resolve) for key, item in encoded.items()}


def to_text(encoded: JsonValue) -> bytes:
    """The only text of ``encoded``: sorted keys, no blanks, ASCII."""
    return json.dumps(encoded, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def from_text(text: bytes) -> JsonValue:
    """The JSON that ``to_text`` turned into ``text``.

    Raises:
        ValueError: it is not JSON, or not in the one form that ``to_text`` writes.
    """
    try:
        parsed = cast(
            "JsonValue", json.loads(text, parse_float=_refuse_number, parse_constant=_refuse_number)
        )
        again = to_text(parsed)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if again != text:
        raise ValueError("not in canonical form")
    return parsed


def digest_value(value: object) -> Digest:
    """The digest of a value: of the text of its encoding."""
    return digest_of(to_text(encode(value)))


def reference_of(named: type) -> str:
    """How a class is named in an encoding: ``module:Class``."""
    return f"{named.__module__}:{named.__qualname__}"


def model_fields(value: object) -> tuple[str, ...] | None:
    """The fields of a dataclass or of a strict model (a class with ``model_fields``); None for the rest."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return tuple(field.name for field in dataclasses.fields(value) if field.init)
    declared: object = getattr(type(value), "model_fields", None)
    if isinstance(declared, Mapping):
        return tuple(cast("Mapping[str, object]", declared))
    return None


def little_endian(array: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """``array`` in little-endian byte order and rows first, copied only if it is not.

    Raises:
        TypeError: its element type is not one of ``ARRAY_TYPES``.
    """
    wanted = array.dtype.newbyteorder("<")
    if wanted.str not in ARRAY_TYPES:
        raise TypeError(f"arrays of {array.dtype} have no encoding")
    return np.asarray(array, dtype=wanted, order="C")


def _encode(value: object, where: str) -> JsonValue:
    match value:
        case None | bool():
            return value
        case enum.Flag():
            return {"$enum": reference_of(type(value)), "value": value.value}
        case enum.Enum():
            return {"$enum": reference_of(type(value)), "name": value.name}
        case int() if type(value) is int:
            if value.bit_length() > _MOST_BITS:
                raise TypeError(f"{where} is an integer of {value.bit_length()} bits, more than {_MOST_BITS}")
            return value
        case str() if type(value) is str:
            return _checked_string(value, where)
        case float() if type(value) is float:
            return {"$float": _encode_float(value)}
        case bytes() if type(value) is bytes:
            return {"$bytes": value.hex()}
        case tuple() if type(value) is tuple:  # pyright: ignore[reportUnknownArgumentType]  # any items
            items = cast("tuple[object, ...]", value)
            return [_encode(item, f"{where}[{index}]") for index, item in enumerate(items)]
        case np.ndarray() if type(value) is np.ndarray:
            return _encode_array(cast("npt.NDArray[np.generic]", value), where)
        case dict() | MappingProxyType() if type(value) in {dict, MappingProxyType}:  # pyright: ignore[reportUnknownArgumentType]  # any items
            return _encode_mapping(cast("Mapping[object, object]", value), where)
        case _:
            fields = model_fields(value)
            if fields is None:
                raise TypeError(f"{where} is a {type(value).__qualname__}, which has no canonical encoding")
            encoded: JsonObject = {name: _encode(getattr(value, name), f"{where}.{name}") for name in fields}
            return {"$type": reference_of(type(value)), "fields": encoded}


def _encode_mapping(value: Mapping[object, object], where: str) -> JsonValue:
    if all(type(key) is str for key in value):
        named = cast("Mapping[str, object]", value)
        return {
            _name_of(_checked_string(key, f"a key of {where}")): _encode(item, f"{where}[{key!r}]")
            for key, item in named.items()
        }
    pairs: list[JsonValue] = [
        [_encode(key, f"a key of {where}"), _encode(item, f"{where}[{key!r}]")] for key, item in value.items()
    ]
    return {"$map": sorted(pairs, key=to_text)}


def _name_of(key: str) -> str:
    """A key of a mapping as the name of a member."""
    return "$" + key if key.startswith("$") else key


def _checked_string(value: str, where: str) -> str:
    """A string that is text. JSON writes two halves of a character as it writes the whole character."""
    if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
        raise TypeError(f"{where} is a string with half a character, which has no canonical encoding")
    return value


def _encode_array(value: npt.NDArray[np.generic], where: str) -> JsonValue:
    try:
        plain = little_endian(value)
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from None
    return {
        "$array": plain.dtype.str,
        "shape": [int(extent) for extent in plain.shape],
        "sha256": digest_of(plain.tobytes()),
    }


def _encode_float(value: float) -> str:
    return value.hex() if value == value else "nan:" + struct.pack(">d", value).hex()


def _decode_float(text: str) -> float:
    if not text.startswith("nan:"):
        return float.fromhex(text)
    return struct.unpack(">d", bytes.fromhex(text.removeprefix("nan:")))[0]


def _decode_pair(pair: JsonValue, resolve: Resolve | None) -> tuple[object, object]:
    match pair:
        case [key, item]:
            return decode(key, resolve), decode(item, resolve)
        case _:
            raise ValueError("a mapping is encoded as pairs")


def _enum_class(reference: str, resolve: Resolve | None) -> type[enum.Enum]:
    found = None if resolve is None else resolve(reference)
    if found is None or not issubclass(found, enum.Enum):
        raise ValueError(f"{reference} cannot be decoded here")
    return found


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is not written as canonical text writes numbers")
