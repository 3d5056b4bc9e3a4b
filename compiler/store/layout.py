"""The folder of a store: what may lie in it, which version it has, and who may use it how."""

import os
from enum import Enum
from pathlib import Path

from compiler.errors import StoreError
from compiler.store import files

VERSION_TEXT = b"tilewright store 1\n"
"""The content of ``VERSION`` of this format, local and remote."""

FOLDERS = frozenset({"VERSION", "ac", "bad", "cas", "counts", "last", "locks", "pins", files.TEMPORARY})
"""Every name that a store has in its folder."""


class Access(Enum):
    """What may be done with the files of a store."""

    READ_WRITE = "read and write"
    READ_ONLY = "read only"


class Mode(Enum):
    """How a build uses the store. Enters no key."""

    USE = "use"
    """Reuse what is there, keep what is not."""
    REFRESH = "refresh"
    """Compute everything and keep it."""
    VERIFY = "verify"
    """Compute everything and compare with what is there."""
    OFF = "off"
    """Neither read nor write."""


def is_empty(root: Path) -> bool:
    """Whether nothing is stored in a folder yet: there is none, or nothing of anybody in it.

    Raises:
        StoreError: the folder cannot be read.
    """
    names = {path.name for path in files.entries(root)}
    return names <= FOLDERS - {"VERSION"} and (files.is_folder(root) or not os.path.lexists(root))


def prepare(root: Path, *, writable: bool) -> None:
    """Make sure that a folder is a store of this version, making one if need be.

    Raises:
        StoreError: it cannot serve as one.
    """
    try:
        names = {path.name for path in root.iterdir()}
    except FileNotFoundError:
        names = set[str]()
    except OSError as error:
        raise files.store_error(error, root) from error
    if "VERSION" in names:
        version = _read_version(root)
        if version != VERSION_TEXT:
            raise StoreError(
                f"its version is {version[:40].decode('ascii', 'replace').strip()!r}, "
                f"and this Tilewright reads {VERSION_TEXT.decode().strip()!r}",
                stage="store",
                subject=str(root),
                next_step="use another folder; the old one holds nothing that cannot be built again",
            )
    elif names - FOLDERS:
        raise StoreError(
            f"the folder holds other things, such as {min(names - FOLDERS)!r}, and no store",
            stage="store",
            subject=str(root),
            next_step="give an empty or new folder",
        )
    elif not writable:
        raise StoreError(
            "there is no store here", stage="store", subject=str(root), next_step="give the folder of a store"
        )
    else:
        files.publish(root, root / "VERSION", VERSION_TEXT)
    if writable:
        probe = root / files.TEMPORARY / files.temporary_name()
        try:
            files.publish(root, probe, VERSION_TEXT, durable=False)
        except StoreError as error:
            # What is on a full disk can be reused, and above all removed: the collector begins here, too.
            if "VERSION" not in names or not files.is_full(error):
                raise
        files.remove(probe)


def _read_version(root: Path) -> bytes:
    try:
        return files.read(root / "VERSION") or b""
    except ValueError as error:
        raise StoreError(
            f"the file {error}",
            stage="store",
            subject=str(root / "VERSION"),
            next_step="use another folder; this one holds nothing that cannot be built again",
        ) from error
