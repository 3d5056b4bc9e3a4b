"""Files of a store: published whole or not at all, and errors that say what to do.

A file appears under its name only after its bytes are on disk: written under a temporary name inside the
store (host, process and random digits, so that two writers on a shared disk cannot meet), synchronised,
renamed; then its folder is synchronised, since a rename may otherwise be lost in a power cut. A process that
is killed in between leaves a temporary file, which no reader looks at and the garbage collector removes.

Only regular files are read, and none that is larger than it can be: a link leads to what nobody checked, a
pipe is waited on for ever, a sparse file takes nothing on disk and gigabytes in memory. Folders are listed so
that one which cannot be read is an error and never looks empty: the collector would take what is in it for
gone.
"""

import contextlib
import errno
import os
import secrets
import shutil
import socket
import stat
from collections.abc import Generator
from pathlib import Path

from compiler.errors import StoreError

TEMPORARY = "tmp"
"""Folder of files in flight, inside the store so that a rename never crosses devices."""

ASIDE = "bad"
"""Folder of damaged files."""

LARGEST = 1 << 28
"""The most bytes of a file that is not an object: far more than the longest list of consumed runs takes."""

_KINDS = {
    stat.S_IFDIR: "is a folder",
    stat.S_IFLNK: "is a link",
    stat.S_IFIFO: "is a pipe",
    stat.S_IFSOCK: "is a socket",
}


def publish(root: Path, target: Path, data: bytes, *, durable: bool = True) -> None:
    """Write ``data`` so that ``target`` appears with all of it or not at all; an earlier file is replaced.

    Args:
        root: the store.
        target: a path below it.
        data: the whole content.
        durable: wait until the file would survive a power cut.

    Raises:
        StoreError: it cannot be written.
    """
    temporary = root / TEMPORARY / temporary_name()
    try:
        _make_folder(temporary.parent)
        _make_folder(target.parent)
        try:
            _write(temporary, data, durable=durable)
            try:
                temporary.rename(target)
            except (IsADirectoryError, NotADirectoryError):
                set_aside(root, target)
                temporary.rename(target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
        if durable:
            _sync_folder(target.parent)
    except OSError as error:
        raise store_error(error, target) from error


def read(path: Path, *, largest: int = LARGEST) -> bytes | None:
    """The content of a file; None when there is none.

    Args:
        path: the file.
        largest: the most bytes that it can have.

    Raises:
        ValueError: something else than a regular file is in its place, or it is too large; the message
            continues "the file ...".
        StoreError: it cannot be read.
    """
    with _opened(path) as descriptor:
        if descriptor is None:
            return None
        size = os.fstat(descriptor).st_size
        if size > largest:
            raise ValueError(f"has {size} bytes, and {largest} are the most that it can have")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read()


def head(path: Path, count: int) -> bytes | None:
    """The first ``count`` bytes of a file, or all of a shorter one; None when there is none.

    Raises:
        ValueError: as for ``read``.
        StoreError: it cannot be read.
    """
    with _opened(path) as descriptor:
        return None if descriptor is None else os.pread(descriptor, count, 0)


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, sorted by name; nothing when there is no folder.

    Raises:
        StoreError: the folder cannot be read. Unlike with ``Path.glob`` that never looks like an empty one.
    """
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise store_error(error, folder) from error


def is_folder(path: Path) -> bool:
    """Whether a folder, or a link to one, has this name.

    Raises:
        StoreError: that cannot be found out.
    """
    try:
        return stat.S_ISDIR(path.stat().st_mode)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno == errno.ELOOP:
            return False
        raise store_error(error, path) from error


def set_aside(root: Path, path: Path) -> bool:
    """Move something damaged out of the way, keeping it for a look. False when somebody else was faster.

    Raises:
        StoreError: it cannot be moved.
    """
    try:
        _make_folder(root / ASIDE)
        aside = root / ASIDE / f"{path.name[:200]}.{secrets.token_hex(4)}"
        path.rename(aside)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise store_error(error, path) from error
    with contextlib.suppress(OSError):  # how long it is kept counts from now
        os.utime(aside, follow_symlinks=False)
    return True


def remove(path: Path) -> None:
    """Remove a file, or a folder with all that is in it; that it is gone already is as good.

    Raises:
        StoreError: it cannot be removed.
    """
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise store_error(error, path) from error


def touch(path: Path) -> None:
    """Note that a file was used.

    A file that is gone or may not be changed is no error: only its age is lost.
    """
    with contextlib.suppress(OSError):
        os.utime(path)


def modified(path: Path) -> float:
    """When a file was last written or used, in seconds since the epoch; 0 when it is gone."""
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0.0


def is_file(path: Path) -> bool:
    """Whether a regular file, not a folder or a link, has this name."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def store_error(error: OSError, path: Path) -> StoreError:
    """What the operating system refused, as a user reads it."""
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            message = "no space is left to write it"
            next_step = "free some space, or shrink the store with `tilewright store gc --budget BYTES`"
        case errno.EROFS:
            message = "the file system is read-only"
            next_step = "use a store on a writable file system, or open this one for reading only"
        case errno.EACCES | errno.EPERM:
            message = "permission is denied"
            next_step = (
                "give this user read and write permission, use another store, or open it for reading only"
            )
        case errno.ENOTDIR | errno.EEXIST:
            message = "a file is where the store needs a folder"
            next_step = "move that file away or use another store"
        case _:
            message = f"the operating system reports: {error.strerror or type(error).__name__}"
            next_step = "check the disk that holds the store, or use another store"
    return StoreError(message, stage="store", subject=str(path), next_step=next_step)


def is_full(error: StoreError) -> bool:
    """Whether an error says that no space is left."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in {errno.ENOSPC, errno.EDQUOT}


def temporary_name() -> str:
    """A name that no other writer uses, on this machine or another."""
    host = "".join(letter for letter in socket.gethostname() if letter.isalnum() or letter in "-_")[:32]
    return f"{host}-{os.getpid()}-{secrets.token_hex(8)}"


@contextlib.contextmanager
def _opened(path: Path) -> Generator[int | None]:
    """A regular file, open for reading; None when there is none, also where a name is too long for one."""
    try:
        # Without waiting: opening a pipe would last until somebody writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        descriptor = None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            descriptor = None
        elif error.errno in {errno.ELOOP, errno.ENXIO}:  # a link or a socket
            raise ValueError(_kind(path)) from error
        else:
            raise store_error(error, path) from error
    if descriptor is None:
        yield None
        return
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError(_kind(path))
        yield descriptor
    except OSError as error:
        raise store_error(error, path) from error
    finally:
        os.close(descriptor)


def _kind(path: Path) -> str:
    """What is in the place of a regular file."""
    try:
        return _KINDS.get(stat.S_IFMT(path.lstat().st_mode), "is no regular file")
    except OSError:
        return "is no regular file"


def _write(path: Path, data: bytes, *, durable: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_folder(folder: Path) -> None:
    """Make a folder and its parents; each new name is synchronised."""
    if folder.is_dir():
        return
    _make_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir()
        _sync_folder(folder.parent)
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
