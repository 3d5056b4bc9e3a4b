"""A slow, obvious writer of Cap'n Proto messages, from the public description of the encoding.

It knows no schema file and no library: each struct is a list of what its author knows about its layout. Used
to see that our files are, byte for byte, what the encoding prescribes for their content.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass
class Struct:
    """A struct: its data section as bytes (whole words) and its pointers in order."""

    data: bytes
    pointers: "list[Struct | StructList | bytes | None]" = field(default_factory=list)


@dataclass
class StructList:
    """A list of structs of one layout."""

    elements: Sequence[Struct]


def message(root: Struct) -> bytes:
    """The message with this root in one segment, objects depth first in field order."""
    words: list[bytes] = [bytes(8)]
    _place(words, 0, root)
    return struct.pack("<II", 0, len(words)) + b"".join(words)


def text(value: str) -> bytes | None:
    """A text as the bytes of its list; an empty one is a null pointer."""
    return value.encode() + b"\0" if value else None


def _place(words: list[bytes], pointer: int, value: Struct | StructList | bytes) -> None:
    """Append an object and point to it."""
    offset = (len(words) - pointer - 1) << 2
    match value:
        case Struct():
            words[pointer] = struct.pack("<IHH", offset, len(value.data) // 8, len(value.pointers))
            _fill(words, _reserve(words, value), value)
        case StructList():
            first = value.elements[0]
            size = len(first.data) // 8 + len(first.pointers)
            words[pointer] = struct.pack("<II", offset | 1, 7 | size * len(value.elements) << 3)
            words.append(
                struct.pack("<IHH", len(value.elements) << 2, len(first.data) // 8, len(first.pointers))
            )
            starts = [_reserve(words, element) for element in value.elements]
            for start, element in zip(starts, value.elements, strict=True):
                _fill(words, start, element)
        case bytes():
            words[pointer] = struct.pack("<II", offset | 1, 2 | len(value) << 3)
            padded = value + bytes(-len(value) % 8)
            words.extend(padded[start : start + 8] for start in range(0, len(padded), 8))


def _reserve(words: list[bytes], value: Struct) -> int:
    start = len(words)
    words.extend([bytes(8)] * (len(value.data) // 8 + len(value.pointers)))
    return start


def _fill(words: list[bytes], start: int, value: Struct) -> None:
    count = len(value.data) // 8
    for index in range(count):
        words[start + index] = value.data[8 * index : 8 * index + 8]
    for index, target in enumerate(value.pointers):
        if target is not None:
            _place(words, start + count + index, target)
