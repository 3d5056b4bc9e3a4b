"""How outputs of stages become bytes and values again.

A codec is a pair of inverse functions with a name by which a record can find it: for raw bytes, for small
values as canonical JSON, for tables as columns. The conversion functions are module-level functions of the
module that owns the type, so that the fingerprint of a stage covers its codecs and a record can name them.
There is no general codec: nothing is decoded that its owner did not write a decoder for, and never a pickle.

``Outputs`` arranges codecs into what one run of a stage publishes: one output, or one for each field of a
dataclass.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Generic, Protocol, TypeVar

from compiler.store.canonical import JsonValue, decode, encode, from_text, reference_of, to_text
from compiler.store.container import Columns, locate, read_columns, write_columns

T = TypeVar("T")

Read = Callable[[str], bytes]
"""Reads the verified bytes of the output with a name."""


class Codec(Protocol[T]):
    """A value as bytes and back: ``decode`` undoes ``encode``, and equal values have equal bytes."""

    @property
    def reference(self) -> str:
        """How records name this codec: ``module:function`` of its decoder, or a built-in name."""
        ...

    @property
    def modules(self) -> frozenset[str]:
        """The modules whose code the codec runs."""
        ...

    def encode(self, value: T) -> bytes:
        """The bytes of ``value``."""
        ...

    def decode(self, data: bytes) -> T:
        """The value of ``data``; ``ValueError`` when there is none."""
        ...

    def locate(self, data: bytes, offset: int) -> str:
        """Where in ``data`` a byte lies, in words; empty when there is nothing to say."""
        ...


@dataclass(frozen=True, slots=True)
class BytesCodec:
    """Bytes as they are."""

    @property
    def reference(self) -> str:
        """The built-in name."""
        return "bytes"

    @property
    def modules(self) -> frozenset[str]:
        """None but this."""
        return frozenset()

    def encode(self, value: bytes) -> bytes:
        """``value`` itself."""
        return value

    def decode(self, data: bytes) -> bytes:
        """``data`` itself."""
        return data

    def locate(self, data: bytes, offset: int) -> str:  # noqa: ARG002  # the protocol's signature
        """Nothing to say."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonCodec(Generic[T]):
    """A small value as canonical JSON.

    Args:
        plain: turns a value into None, truth values, numbers, strings, bytes, tuples and mappings of such.
        value: the inverse; raises ``ValueError`` for what ``plain`` never gives.
    """

    plain: Callable[[T], object]
    value: Callable[[Any], T]

    def __post_init__(self) -> None:
        """Both conversions can be found by name."""
        _check_function(self.plain)
        _check_function(self.value)

    @property
    def reference(self) -> str:
        """Where the decoder is."""
        return _function_reference(self.value)

    @property
    def modules(self) -> frozenset[str]:
        """Where both conversions are."""
        return frozenset({self.plain.__module__, self.value.__module__})

    def encode(self, value: T) -> bytes:
        """Canonical text."""
        return to_text(encode(self.plain(value)))

    def decode(self, data: bytes) -> T:
        """The value of canonical text."""
        return self.value(decode(from_text(data)))

    def locate(self, data: bytes, offset: int) -> str:
        """The text around the byte."""
        return f"text {data[max(0, offset - 20) : offset + 20].decode('ascii', 'replace')!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnsCodec(Generic[T]):
    """A table as columns.

    Args:
        columns: turns a value into arrays and small facts.
        value: the inverse; its arrays cannot be written. Raises ``ValueError`` for what ``columns`` never
            gives.
    """

    columns: Callable[[T], Columns]
    value: Callable[[Columns], T]

    def __post_init__(self) -> None:
        """Both conversions can be found by name."""
        _check_function(self.columns)
        _check_function(self.value)

    @property
    def reference(self) -> str:
        """Where the decoder is."""
        return _function_reference(self.value)

    @property
    def modules(self) -> frozenset[str]:
        """Where both conversions are."""
        return frozenset({self.columns.__module__, self.value.__module__})

    def encode(self, value: T) -> bytes:
        """The container's bytes."""
        return write_columns(self.columns(value))

    def decode(self, data: bytes) -> T:
        """The value of a container."""
        return self.value(read_columns(data))

    def locate(self, data: bytes, offset: int) -> str:
        """The column and element of the byte."""
        return locate(data, offset)


BYTES = BytesCodec()


class Outputs(Protocol[T]):
    """What one run of a stage publishes, in a fixed order."""

    @property
    def codecs(self) -> tuple[tuple[str, Codec[Any]], ...]:
        """Name and codec of each output."""
        ...

    def split(self, value: T) -> Iterator[tuple[str, bytes]]:
        """Name and bytes of each output, in order."""
        ...

    def join(self, read: Read) -> T:
        """The value of the bytes that ``read`` gives."""
        ...

    def describe(self) -> JsonValue:
        """What a record keeps so that the outputs can be decoded without the stage."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Single(Generic[T]):
    """One output."""

    codec: Codec[T]
    name: str = "value"

    @property
    def codecs(self) -> tuple[tuple[str, Codec[Any]], ...]:
        """The one."""
        return ((self.name, self.codec),)

    def split(self, value: T) -> Iterator[tuple[str, bytes]]:
        """The one."""
        yield self.name, self.codec.encode(value)

    def join(self, read: Read) -> T:
        """The decoded output."""
        return self.codec.decode(read(self.name))

    def describe(self) -> JsonValue:
        """Name and codec."""
        return {"single": [self.name, self.codec.reference]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fields(Generic[T]):
    """One output for each field of a frozen dataclass, so that a consumer can depend on some of them.

    Args:
        of: the dataclass.
        codecs: (field, codec) in the order of the fields.
    """

    of: type[T]
    codecs: tuple[tuple[str, Codec[Any]], ...]

    def __post_init__(self) -> None:
        """There is a codec for each field."""
        if not dataclasses.is_dataclass(self.of):
            raise ValueError(f"{self.of.__qualname__} is not a dataclass")
        fields = [field.name for field in dataclasses.fields(self.of)]
        if fields != [name for name, _ in self.codecs]:
            raise ValueError(f"{self.of.__qualname__} has the fields {fields}, in this order")

    def split(self, value: T) -> Iterator[tuple[str, bytes]]:
        """One for each field."""
        for name, codec in self.codecs:
            yield name, codec.encode(getattr(value, name))

    def join(self, read: Read) -> T:
        """The dataclass with every field decoded."""
        return self.of(**{name: codec.decode(read(name)) for name, codec in self.codecs})

    def describe(self) -> JsonValue:
        """Class, names and codecs."""
        fields: list[JsonValue] = [[name, codec.reference] for name, codec in self.codecs]
        return {"type": reference_of(self.of), "fields": fields}


def _check_function(function: Callable[..., object]) -> None:
    if not isinstance(function, FunctionType) or "<" in function.__qualname__:
        raise ValueError(f"{function!r} is not a module-level function, so no record could name it")


def _function_reference(function: Callable[..., object]) -> str:
    return f"{function.__module__}:{function.__qualname__}"
