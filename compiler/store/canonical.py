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
scalars and subclasses of the built-in types. A value that cannot be encoded never turns into a constant: the
failure that gave two models one key in another system. Pickles are not used because they depend on object
identity.

Arrays are encoded by the digest of their content: enough for a key, and the only form that ``decode`` cannot
undo.
"""

import dataclasses
import enum
import json
import struct
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from compiler.store.digest import Digest, digest_of

JsonValue: TypeAlias = "bool | int | str | list[JsonValue] | dict[str, JsonValue] | None"
"""JSON without floating-point numbers: what canonical text consists of."""

JsonObject: TypeAlias = dict[str, JsonValue]

Resolve: TypeAlias = Callable[[str], type]
"""Finds the class with a reference ``module:Class``, or raises ``ValueError``."""

ARRAY_TYPES: frozenset[str] = frozenset(
    {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8"}
)
"""The element types that arrays may have, as NumPy writes them; complete on purpose."""


def encode(value: object) -> JsonValue:
    """``value`` as JSON.

    Raises:
        TypeError: it holds a type that has no encoding; the message names it and where it is.
    """
    return _encode(value, "value")


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
            return value
        case str() if type(value) is str:
            return value
        case float() if type(value) is float:
            return {"$float": _encode_float(value)}
        case bytes() if type(value) is bytes:
            return {"$bytes": value.hex()}
        case tuple() if type(value) is tuple:  # pyright: ignore[reportUnknownArgumentType]  # any items
            items = cast("tuple[object, ...]", value)
            return [_encode(item, f"{where}[{index}]") for index, item in enumerate(items)]
        case np.ndarray() if type(value) is np.ndarray:
            return _encode_array(cast("npt.NDArray[np.generic]", value), where)
        case Mapping():
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
            ("$" + key if key.startswith("$") else key): _encode(item, f"{where}[{key!r}]")
            for key, item in named.items()
        }
    pairs: list[JsonValue] = [
        [_encode(key, f"a key of {where}"), _encode(item, f"{where}[{key!r}]")] for key, item in value.items()
    ]
    return {"$map": sorted(pairs, key=to_text)}


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
