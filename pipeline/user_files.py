"""Files that users name: read whole, within a bound, or refused in words; and written whole or not at all."""

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from compiler.errors import InvalidInput

_LARGEST_FILE: Final = 1 << 26
"""Bytes of a file that is read: a hundred times the memory of a tile."""

_LONGEST_NAME: Final = 100
"""Characters of a file's name that the name of its part has, too: folders take 255 bytes of a name."""


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
    """Write a file so that it never exists in part. Links are followed; a device or a pipe just gets it.

    Raises:
        InvalidInput: it cannot be written.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)  # a folder refuses
            return
        whole = path.resolve()
        part = whole.with_name(f".{whole.name[:_LONGEST_NAME]}.{secrets.token_hex(8)}.part")
        try:
            part.write_bytes(content)
            part.replace(whole)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, f"it cannot be written ({error.strerror})") from None
    except (ValueError, RuntimeError) as error:  # a path with a NUL, a loop of links
        raise unwritable(path, f"it cannot be written ({error})") from None


def why_unwritable(path: Path) -> str | None:
    """Why a file cannot be written there, as far as that can be told before any work; None if it can."""
    if path.is_dir():
        return "it is a folder"
    if path.exists() and not path.is_file():
        return None  # a device or a pipe, whose folder does not matter
    if not path.parent.is_dir():
        return "its folder does not exist"
    if not os.access(path.parent, os.W_OK):
        return "its folder cannot be written"
    return None


def unwritable(
    path: Path,
    reason: str,
    next_step: str = "give a path in a folder that exists, has room, and can be written",
) -> "InvalidInput":
    """What to raise of a file that a user wants and cannot have."""
    from compiler.errors import InvalidInput

    return InvalidInput(reason, stage="write file", subject=str(path), next_step=next_step)


def _unreadable(path: Path, stage: str, reason: str) -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(reason, stage=stage, subject=str(path), next_step="give the path of a readable file")
