"""The part of pycapnp that packages need, with types.

pycapnp has none, and finds fields by name at run time. The protocols here state what its objects are;
nothing else in the project imports the library.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import methodcaller
from pathlib import Path
from typing import Any, Protocol, cast

import capnp

_library = cast("Any", capnp)

LibraryError = cast("type[Exception]", _library.KjException)
"""What the library raises: for a damaged message while reading, for an unfit value while writing."""


class StructReader(Protocol):
    """A struct of a message; its fields are read with ``getter``."""


class ListReader(Protocol):
    """A list of a message; ``numbers`` and ``structs`` give its elements."""

    def __len__(self) -> int: ...


class Enumerant(Protocol):
    """A value of an enumeration."""

    @property
    def raw(self) -> int:
        """Its number, known to the schema or not."""
        ...


class StructBuilder(Protocol):
    """A struct being written; its fields are set as attributes."""

    def init(self, field: str, size: int = ...) -> object:
        """Allocate what a pointer leads to: a struct, or a list of a size."""
        ...


class ListBuilder(Protocol):
    """A list being written; its structs are ``struct_at`` their places."""

    def __getitem__(self, index: int) -> object: ...

    def __setitem__(self, index: int, value: int) -> None: ...


class _Slot(Protocol):
    """The layout of a struct in words."""

    dataWordCount: int  # noqa: N815 - the library's name
    pointerCount: int  # noqa: N815 - the library's name
    fields: Sequence["_DeclaredField"]


class _DeclaredField(Protocol):
    name: str


class _Node(Protocol):
    struct: _Slot


class StructSchema(Protocol):
    """The description of a struct."""

    node: _Node
    fields: dict[str, "FieldHandle"]


class ListSchema(Protocol):
    """The description of a list of structs."""

    elementType: StructSchema  # noqa: N815 - the library's name


class FieldHandle(Protocol):
    """A field of a struct, found once."""

    schema: object


class StructModule(Protocol):
    """A struct as a root."""

    schema: StructSchema

    def from_segments(self, segments: Sequence[memoryview], traversal_limit_in_words: int) -> StructReader:
        """The root of a message; nothing is copied."""
        ...

    def new_message(
        self, num_first_segment_words: int, allocate_seg_callable: Callable[[int], memoryview]
    ) -> StructBuilder:
        """The root of an empty message, built in memory that the callable gives."""
        ...


def load_struct(path: Path, name: str) -> StructModule:
    """A struct that a schema file declares."""
    return cast("StructModule", getattr(_library.load(str(path)), name))


def getter(handle: FieldHandle) -> Callable[[StructReader], Any]:
    """Reads one field: a number, a truth value, a text, bytes, an ``Enumerant``, a struct or a list.

    By the field's handle: through the library's attributes it costs five times as much.
    """
    return methodcaller("_get_by_field", handle)


def numbers(elements: ListReader) -> Iterable[int]:
    """The elements of a list of numbers."""
    return cast("Iterable[int]", elements)


def structs(elements: ListReader) -> Iterable[StructReader]:
    """The elements of a list of structs."""
    return cast("Iterable[StructReader]", elements)


def struct_at(elements: ListBuilder, index: int) -> StructBuilder:
    """An element of a list of structs being written."""
    return cast("StructBuilder", elements[index])


def field_names(schema: StructSchema) -> list[str]:
    """The fields in the order of their ordinals."""
    return [field.name for field in schema.node.struct.fields]


def struct_words(schema: StructSchema) -> int:
    """Words of the struct itself."""
    return schema.node.struct.dataWordCount + schema.node.struct.pointerCount


def schema_inside(handle: FieldHandle) -> StructSchema:
    """The struct that a field holds."""
    return cast("StructSchema", handle.schema)


def schema_of_elements(handle: FieldHandle) -> StructSchema:
    """The struct that a field holds a list of."""
    return cast("ListSchema", handle.schema).elementType


def new_struct(target: StructBuilder, name: str) -> StructBuilder:
    """Allocate the struct of a field."""
    return cast("StructBuilder", target.init(name))


def new_list(target: StructBuilder, name: str, size: int) -> ListBuilder:
    """Allocate the list of a field."""
    return cast("ListBuilder", target.init(name, size))
