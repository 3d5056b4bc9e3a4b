"""Records to Cap'n Proto messages and back.

A ``Codec`` pairs a record with the struct of the same name. The two agree field by field (``tile_address``
is ``tileAddress``); that is checked when a codec is built, and everything else derives from it: reading,
writing, and the exact size of what is written.

**Writing** is deterministic to the byte. The size of the message is computed first and the message is built
in one segment inside a buffer of exactly that size, objects in the order of their fields, depth first. Empty
texts, data and lists are null pointers. No default of the library decides a byte of the layout.

**Reading hostile bytes.** The framing is checked here, word for word, before the library sees it. The library
then checks each pointer as it is followed. Three limits keep memory and time proportional to the file:

- traversal: the library may visit as many words as the message has. Objects that share bytes, and lists
  whose elements take no room (which it counts as one word each), exhaust that at once;
- records: ``MAXIMUM_RECORDS`` list elements, counted before any is built, because a small record takes
  some twenty times the memory of its bytes in the file;
- size: ``format.py`` refuses larger files than a package can need.

Nesting needs no limit: neither schema is recursive, so depth is fixed. Several hundred thousand mutated
packages have shown no way to crash the library within these limits (``tests/package/test_fuzz.py`` repeats
that), so there is no second walker over its pointers.
"""

import functools
import importlib.resources
import itertools
import struct
from collections.abc import Callable
from dataclasses import fields
from enum import IntEnum
from typing import Any, Final, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from compiler.package.library import (
    FieldHandle,
    LibraryError,
    ListReader,
    StructBuilder,
    StructReader,
    StructSchema,
    field_names,
    getter,
    load_struct,
    new_list,
    new_struct,
    numbers,
    schema_inside,
    schema_of_elements,
    struct_at,
    struct_words,
    structs,
)
from compiler.package.records import (
    NO_ACTIVITIES,
    Application,
    ExchangeActivities,
    ExchangeActivity,
    ExchangeActivityKind,
    Profile,
)

MAXIMUM_RECORDS: Final = 1 << 24
"""Most list elements in one message. Policy: over 11,000 for each tile of the chip."""

_WORD_BYTES: Final = 8
_MAXIMUM_SEGMENTS: Final = 512
"""The library reads no more."""

_RecordT = TypeVar("_RecordT")
_ValueT = TypeVar("_ValueT")


class DamagedMessage(Exception):
    """Bytes that are no message of the schema: an outcome for ``format.py`` to report.

    Attributes:
        problem: what is wrong, as a sentence about the place.
        place: the fields that lead to it, outermost first; empty for the message as a whole.
    """

    def __init__(self, problem: str, place: tuple[str, ...] = ()) -> None:
        super().__init__(problem)
        self.problem = problem
        self.place = place

    def inside(self, outer: str) -> "DamagedMessage":
        """The same, seen from one level further out."""
        return DamagedMessage(self.problem, (outer, *self.place))


class _Budget:
    """Counts the list elements of one message."""

    def __init__(self) -> None:
        self._left = MAXIMUM_RECORDS

    def take(self, count: int, name: str) -> None:
        self._left -= count
        if self._left < 0:
            raise DamagedMessage(f"the file holds more than {MAXIMUM_RECORDS:,} list elements", (name,))


class _Field(Generic[_ValueT]):
    """How one field becomes an attribute and back.

    ``read`` may raise what the library raises: ``Codec`` translates. ``write`` leaves what is empty unset.
    ``words`` counts what the field's pointer leads to, and is 0 for what lies in the struct itself. As it
    stands, a field whose value the library takes and gives as it is.
    """

    def __init__(self, name: str, get: Callable[[StructReader], Any]) -> None:
        self.name = name
        self.get = get

    def read(self, source: StructReader, budget: _Budget) -> _ValueT:
        del budget
        return cast("_ValueT", self.get(source))

    def write(self, value: _ValueT, target: StructBuilder) -> None:
        setattr(target, self.name, value)

    def words(self, value: _ValueT) -> int:
        del value
        return 0


class _Integer(_Field[int]):
    """An integer, or a flag or other kind of one, which the library does not take for one."""

    def write(self, value: int, target: StructBuilder) -> None:
        setattr(target, self.name, int(value))


class _Enumeration(_Field[IntEnum]):
    """An enumeration, as the number of its enumerant."""

    def __init__(self, name: str, get: Callable[[StructReader], Any], kind: type[IntEnum]) -> None:
        super().__init__(name, get)
        self._kind = kind

    def read(self, source: StructReader, budget: _Budget) -> IntEnum:
        del budget
        number: int = self.get(source).raw
        try:
            return self._kind(number)
        except ValueError:
            raise DamagedMessage(f"{number} is no {self._kind.__name__}", (self.name,)) from None

    def write(self, value: IntEnum, target: StructBuilder) -> None:
        setattr(target, self.name, int(value))


class _Text(_Field[str]):
    """A text: UTF-8 with a zero byte behind it."""

    def write(self, value: str, target: StructBuilder) -> None:
        if value:
            setattr(target, self.name, value)

    def words(self, value: str) -> int:
        return _words(len(value.encode()) + 1) if value else 0


class _Data(_Field[bytes]):
    """Bytes. The library's views would spare the copy, but keep the message alive for ever."""

    def write(self, value: bytes, target: StructBuilder) -> None:
        if value:
            setattr(target, self.name, value)

    def words(self, value: bytes) -> int:
        return _words(len(value))


class _IntegerList(_Field[tuple[int, ...]]):
    """A list of 32-bit integers."""

    def read(self, source: StructReader, budget: _Budget) -> tuple[int, ...]:
        elements: ListReader = self.get(source)
        budget.take(len(elements), self.name)
        return tuple(numbers(elements))

    def write(self, value: tuple[int, ...], target: StructBuilder) -> None:
        if value:
            elements = new_list(target, self.name, len(value))
            for index, element in enumerate(value):
                elements[index] = element

    def words(self, value: tuple[int, ...]) -> int:
        return _words(4 * len(value))


class _Record(_Field[_RecordT]):
    """A single struct."""

    def __init__(self, name: str, get: Callable[[StructReader], Any], codec: "Codec[_RecordT]") -> None:
        super().__init__(name, get)
        self._codec = codec

    def read(self, source: StructReader, budget: _Budget) -> _RecordT:
        try:
            return self._codec.read(self.get(source), budget)
        except DamagedMessage as damage:
            raise damage.inside(self.name) from None

    def write(self, value: _RecordT, target: StructBuilder) -> None:
        self._codec.write(value, new_struct(target, self.name))

    def words(self, value: _RecordT) -> int:
        return self._codec.words(value)


class _RecordList(_Field[tuple[_RecordT, ...]]):
    """A list of structs, side by side behind one word that describes them."""

    def __init__(self, name: str, get: Callable[[StructReader], Any], codec: "Codec[_RecordT]") -> None:
        super().__init__(name, get)
        self._codec = codec

    def read(self, source: StructReader, budget: _Budget) -> tuple[_RecordT, ...]:
        elements: ListReader = self.get(source)
        budget.take(len(elements), self.name)
        records: list[_RecordT] = []
        for index, element in enumerate(structs(elements)):
            try:
                records.append(self._codec.read(element, budget))
            except DamagedMessage as damage:
                raise damage.inside(f"{self.name}[{index}]") from None
        return tuple(records)

    def write(self, value: tuple[_RecordT, ...], target: StructBuilder) -> None:
        if value:
            elements = new_list(target, self.name, len(value))
            for index, record in enumerate(value):
                self._codec.write(record, struct_at(elements, index))

    def words(self, value: tuple[_RecordT, ...]) -> int:
        return 1 + sum(map(self._codec.words, value)) if value else 0


class _Activities(_Field[ExchangeActivities]):
    """The list of structs that is read into columns: there can be millions of rows."""

    def __init__(self, name: str, get: Callable[[StructReader], Any], element: StructSchema) -> None:
        super().__init__(name, get)
        self._element_words = Codec(ExchangeActivity, element).struct_words
        self._names = field_names(element)
        self._kind, *self._others = (getter(element.fields[column]) for column in self._names)

    def read(self, source: StructReader, budget: _Budget) -> ExchangeActivities:
        elements: ListReader = self.get(source)
        count = len(elements)
        if count == 0:
            return NO_ACTIVITIES
        budget.take(count, self.name)
        kind = np.empty(count, np.uint16)
        start = np.empty(count, np.uint32)
        end = np.empty(count, np.uint32)
        fanout = np.empty(count, np.uint16)
        paired = np.empty(count, np.bool_)
        get_kind = self._kind
        get_start, get_end, get_fanout, get_paired = self._others
        for row, element in enumerate(structs(elements)):
            kind[row] = get_kind(element).raw
            start[row] = get_start(element)
            end[row] = get_end(element)
            fanout[row] = get_fanout(element)
            paired[row] = get_paired(element)
        unknown = kind > max(ExchangeActivityKind)
        if unknown.any():
            row = int(unknown.argmax())
            place = (f"{self.name}[{row}]", self._names[0])
            raise DamagedMessage(f"{kind[row]} is no {ExchangeActivityKind.__name__}", place)
        return ExchangeActivities(kind=kind, start_cycle=start, end_cycle=end, fanout=fanout, paired=paired)

    def write(self, value: ExchangeActivities, target: StructBuilder) -> None:
        if len(value) == 0:
            return
        elements = new_list(target, self.name, len(value))
        rows = zip(*(column.tolist() for column in value.columns()), strict=True)
        for index, row in enumerate(rows):
            element = struct_at(elements, index)
            for name, number in zip(self._names, row, strict=True):
                setattr(element, name, number)

    def words(self, value: ExchangeActivities) -> int:
        return 1 + self._element_words * len(value) if len(value) > 0 else 0


class Codec(Generic[_RecordT]):
    """Reads and writes one kind of record as the struct of its name.

    Args:
        record: the record, a dataclass.
        schema: the library's description of its struct.

    Raises:
        ValueError: record and struct do not have the same fields in the same order.
    """

    def __init__(self, record: type[_RecordT], schema: StructSchema) -> None:
        self._record = record
        self.struct_words = struct_words(schema)
        # Ordinals number the fields; the schema lists them in that order.
        declared = field_names(schema)
        attributes = [field.name for field in fields(cast("Any", record))]
        if declared != [_camel(attribute) for attribute in attributes]:
            raise ValueError(f"{record.__name__} has fields {attributes} and its struct {declared}")
        hints = get_type_hints(record)
        self._fields: list[tuple[str, _Field[Any]]] = [
            (attribute, _field(name, hints[attribute], schema.fields[name]))
            for attribute, name in zip(attributes, declared, strict=True)
        ]

    def read(self, source: StructReader, budget: _Budget) -> _RecordT:
        """The record of a struct.

        Raises:
            DamagedMessage: it is not one.
        """
        values: dict[str, object] = {}
        for attribute, field in self._fields:
            try:
                values[attribute] = field.read(source, budget)
            except UnicodeDecodeError:
                raise DamagedMessage("this text is not UTF-8", (field.name,)) from None
            except LibraryError:
                raise DamagedMessage(_BAD_POINTER, (field.name,)) from None
        return self._record(**values)

    def first_field(self, source: StructReader) -> object:
        """The field of ordinal 0 alone."""
        return self._fields[0][1].read(source, _Budget())

    def write(self, record: _RecordT, target: StructBuilder) -> None:
        """Fill an empty struct.

        Raises:
            ValueError: a value is not of the field's type.
        """
        for attribute, field in self._fields:
            value = getattr(record, attribute)
            try:
                field.write(value, target)
            except LibraryError:
                raise ValueError(
                    f"{type(record).__name__}.{attribute}: {value!r} does not fit its type in the file"
                ) from None

    def words(self, record: _RecordT) -> int:
        """Words of the struct and of everything it points to."""
        return self.struct_words + sum(field.words(getattr(record, name)) for name, field in self._fields)


_BAD_POINTER: Final = (
    "the message is damaged here: a pointer does not lead to an object of its type inside the file,"
    " or objects share their bytes"
)


class Message(Generic[_RecordT]):
    """A message whose framing is sound, about to be read."""

    def __init__(self, codec: Codec[_RecordT], root: StructReader) -> None:
        self._codec = codec
        self._root = root

    def schema_version(self) -> int:
        """The version that the root states: worth knowing before this one's rules read the rest."""
        return cast("int", self._codec.first_field(self._root))

    def record(self) -> _RecordT:
        """The root, which shares nothing with the message.

        Raises:
            DamagedMessage: it is no message of the schema.
        """
        return self._codec.read(self._root, _Budget())


class MessageFormat(Generic[_RecordT]):
    """Messages with one kind of record at the root.

    Args:
        record: the root.
        file_name: the schema that declares its struct, beside this module.
    """

    def __init__(self, record: type[_RecordT], file_name: str) -> None:
        with importlib.resources.as_file(importlib.resources.files("compiler.package") / file_name) as path:
            self._struct = load_struct(path, record.__name__)
        self._codec = Codec(record, self._struct.schema)

    def open(self, data: bytes) -> Message[_RecordT]:
        """The message in some bytes: segment table and segments, nothing else.

        Raises:
            DamagedMessage: the framing is wrong, or there is no root.
        """
        limit = len(data) // _WORD_BYTES
        try:
            root = self._struct.from_segments(_segments(data), traversal_limit_in_words=limit)
        except LibraryError:
            raise DamagedMessage(_BAD_POINTER) from None
        return Message(self._codec, root)

    def encode(self, record: _RecordT) -> bytearray:
        """The message of a record, in one segment.

        Raises:
            ValueError: a value is not of its field's type.
        """
        words = 1 + self._codec.words(record)
        message = bytearray(_WORD_BYTES * (1 + words))
        struct.pack_into("<II", message, 0, 0, words)
        # Never released by hand: the library writes through it for as long as the builder lives.
        segment = memoryview(message)[_WORD_BYTES:]

        def give_segment(least_words: int) -> memoryview:
            del least_words  # counted above
            return segment

        builder = self._struct.new_message(num_first_segment_words=words, allocate_seg_callable=give_segment)
        self._codec.write(record, builder)
        return message


@functools.cache
def application_format() -> MessageFormat[Application]:
    """Of packages."""
    return MessageFormat(Application, "application.capnp")


@functools.cache
def profile_format() -> MessageFormat[Profile]:
    """Of measured profiles."""
    return MessageFormat(Profile, "profile.capnp")


def _segments(data: bytes) -> list[memoryview]:
    """Cut a message by its segment table: count - 1, then the words of each, then padding to a word."""
    if len(data) % _WORD_BYTES != 0 or len(data) == 0:
        raise DamagedMessage(f"{len(data):,} bytes are no message, which is a whole number of 8-byte words")
    (count,) = struct.unpack_from("<I", data)
    count += 1
    if count > _MAXIMUM_SEGMENTS:
        raise DamagedMessage(f"the segment table claims {count:,} segments, of at most {_MAXIMUM_SEGMENTS}")
    start = _WORD_BYTES * _words(4 * (1 + count))
    if start > len(data):
        raise DamagedMessage(
            f"the file ends inside its segment table, after {len(data):,} of {start:,} bytes"
        )
    ends = list(
        itertools.accumulate(
            (_WORD_BYTES * words for words in struct.unpack_from(f"<{count}I", data, 4)), initial=start
        )
    )
    if ends[-1] != len(data):
        raise DamagedMessage(f"the file has {len(data):,} bytes, its segment table accounts for {ends[-1]:,}")
    view = memoryview(data)
    return [view[first:end] for first, end in itertools.pairwise(ends)]


def _field(name: str, hint: object, handle: FieldHandle) -> _Field[Any]:
    """The field for a record's annotation, with the schema's handle on it."""
    get = getter(handle)
    hint = getattr(hint, "__supertype__", hint)  # integers with a unit are integers
    if hint is int:
        return _Integer(name, get)
    if hint is bool:
        return _Field(name, get)
    if hint is str:
        return _Text(name, get)
    if hint is bytes:
        return _Data(name, get)
    if hint is ExchangeActivities:
        return _Activities(name, get, schema_of_elements(handle))
    if get_origin(hint) is tuple:
        element = cast("type[Any]", get_args(hint)[0])
        if element is int:
            return _IntegerList(name, get)
        return _RecordList(name, get, Codec(element, schema_of_elements(handle)))
    kind = cast("type[Any]", hint)
    if issubclass(kind, IntEnum):
        return _Enumeration(name, get, kind)
    return _Record(name, get, Codec(kind, schema_inside(handle)))


def _camel(attribute: str) -> str:
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _words(size: int) -> int:
    return -(-size // _WORD_BYTES)
