"""The file format for tables: named columns of raw little-endian numbers behind a canonical header.

Nothing in it can be executed, and a reader allocates nothing before the lengths add up. A file is, in order::

    8 bytes    the letters TWCOLS, byte 1, byte 10
    8 bytes    length of the header, unsigned, little endian
    header     canonical JSON: {"columns": [[name, element type, [extent, ...]], ...], "meta": encoding}
    zeros      up to the next multiple of 64
    column     its elements, rows first, then zeros up to the next multiple of 64, except after the last

Columns are sorted by name. Their places follow from the header, so none can overlap or be out of range;
everything is checked while reading, padding included, so one table has one file. Columns start at multiples
of 64 bytes and are read without a copy.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from compiler.store.canonical import ARRAY_TYPES, JsonValue, decode, encode, from_text, little_endian, to_text

_MAGIC = b"TWCOLS\x01\n"
_ALIGNMENT = 64

Array = npt.NDArray[np.generic]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Columns:
    """A table with small facts beside it.

    Args:
        arrays: columns by name, of any shapes; element types are those of ``canonical.ARRAY_TYPES``.
        meta: facts about the table, of types that have a canonical encoding without classes.
    """

    arrays: Mapping[str, Array]
    meta: object = None

    def __post_init__(self) -> None:
        """The mapping cannot be changed afterwards."""
        object.__setattr__(self, "arrays", MappingProxyType(dict(self.arrays)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    length: int


def write_columns(table: Columns) -> bytes:
    """The file of a table.

    Raises:
        TypeError: a column or the facts have no encoding.
    """
    plain = {name: little_endian(table.arrays[name]) for name in sorted(table.arrays)}
    columns: list[JsonValue] = [
        [name, array.dtype.str, [int(extent) for extent in array.shape]] for name, array in plain.items()
    ]
    header = to_text({"columns": columns, "meta": encode(table.meta)})
    parts = [_MAGIC, len(header).to_bytes(8, "little"), header]
    position = len(_MAGIC) + 8 + len(header)
    for array in plain.values():
        padding = -position % _ALIGNMENT
        parts += [bytes(padding), array.tobytes()]
        position += padding + array.nbytes
    return b"".join(parts)


def read_columns(data: bytes) -> Columns:
    """The table in a file; its arrays are views of ``data`` and cannot be written.

    Raises:
        ValueError: ``data`` is not exactly what ``write_columns`` writes for some table.
    """
    meta, places, end = _layout(data)
    if len(data) != end:
        raise ValueError(f"the table takes {end} bytes and the file has {len(data)}")
    arrays: dict[str, Array] = {}
    position = len(_MAGIC) + 8 + int.from_bytes(data[8:16], "little")
    for place in places:
        if data[position : place.start].strip(b"\0"):
            raise ValueError(f"the padding before column {place.name!r} is not zero")
        array = np.frombuffer(data, np.dtype(place.dtype), math.prod(place.shape), place.start)
        if place.dtype == "|b1" and array.size and int(array.view(np.uint8).max()) > 1:
            raise ValueError(f"column {place.name!r} holds a truth value other than 0 and 1")
        arrays[place.name] = array.reshape(place.shape)
        position = place.start + place.length
    return Columns(arrays=arrays, meta=decode(meta))


def locate(data: bytes, offset: int) -> str:
    """Where in a table's file a byte lies, for a reader of a difference: "column 'tile', element 3"."""
    try:
        _, places, _ = _layout(data)
    except ValueError:
        return "header"
    for place in places:
        if place.start <= offset < place.start + place.length:
            element = (offset - place.start) // np.dtype(place.dtype).itemsize
            return f"column {place.name!r}, element {element}"
    return "header" if not places or offset < places[0].start else "padding"


def _layout(data: bytes) -> tuple[JsonValue, tuple[_Place, ...], int]:
    """Facts, columns and the length of the file, from the header alone."""
    if data[:8] != _MAGIC:
        raise ValueError("not a table: the file does not start as tables do")
    body = 16 + int.from_bytes(data[8:16], "little")
    if len(data) < body:
        raise ValueError("the header is cut off")
    match from_text(data[16:body]):
        case {"columns": list(columns), "meta": meta, **rest} if not rest:
            pass
        case _:
            raise ValueError("the header does not have exactly columns and meta")
    places = tuple(_places(columns, body))
    names = [place.name for place in places]
    if names != sorted(set(names)):
        raise ValueError("columns are not sorted by name")
    return meta, places, places[-1].start + places[-1].length if places else body


def _places(columns: list[JsonValue], position: int) -> Iterator[_Place]:
    for column in columns:
        match column:
            case [str(name), str(dtype), list(shape)] if dtype in ARRAY_TYPES:
                extents = tuple(extent for extent in shape if type(extent) is int and extent >= 0)
            case _:
                raise ValueError(f"{column!r} does not describe a column")
        if len(extents) != len(shape):
            raise ValueError(f"column {name!r} has an extent that is not a count")
        start = position + -position % _ALIGNMENT
        length = math.prod(extents) * np.dtype(dtype).itemsize
        yield _Place(name=name, dtype=dtype, shape=extents, start=start, length=length)
        position = start + length
