"""Files that users name: read whole, within a bound, or refused in words; and written whole or not at all."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from compiler.errors import InvalidInput

_LARGEST_FILE: Final = 1 << 26
"""Bytes of a file that is read: a hundred times the memory of a tile."""


def read_bytes(path: Path, *, stage: str) -> bytes:
    """The content of a file.

    Raises:
        InvalidInput: it cannot be read or is too large; ``stage`` is who wanted it.
    """
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise _unreadable(path, stage, f"it cannot be read ({error.strerror})") from None
    except ValueError as error:  # a path that the operating system cannot even be asked for
        raise _unreadable(path, stage, f"it cannot be read ({error})") from None
    if len(content) > _LARGEST_FILE:
        raise _unreadable(path, stage, f"it has more than {_LARGEST_FILE:,} bytes")
    return content


def read_text(path: Path, *, stage: str) -> str:
    """The text of a file in UTF-8, with or without byte order mark; every line ends in a newline character.

    Raises:
        InvalidInput: as for ``read_bytes``, or it is no text.
    """
    try:
        text = read_bytes(path, stage=stage).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _unreadable(path, stage, f"it is no text: byte {error.start} is not UTF-8") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that it never exists in part.

    Raises:
        OSError: it cannot be written.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(content)
    part.replace(path)


def _unreadable(path: Path, stage: str, reason: str) -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(reason, stage=stage, subject=str(path), next_step="give the path of a readable file")
