"""Locks between processes that the operating system frees when their holder dies.

``flock`` on a small file for each key: no lock outlives a killed process, so nothing has to decide whether a
lock is stale. The file is removed by the holder before it lets go. A waiter that wakes up with a removed file
holds a lock on nothing, notices that the name now means another file (or none) and starts again; so at any
time at most one process holds the lock under the name.

A lock never protects correctness: equal keys give equal bytes, so when waiting takes too long, or the file
system knows no locks, one computes anyway.
"""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Generator
from pathlib import Path

_FIRST_PAUSE_SECONDS = 0.002
_LONGEST_PAUSE_SECONDS = 0.1


@contextlib.contextmanager
def exclusive(path: Path, *, timeout_seconds: float) -> Generator[bool]:
    """Hold the lock named ``path`` while the context lasts; gives False when it was not had in time.

    An unwritable folder or a file system without locks gives False at once.
    """
    descriptor = _acquire(path, timeout_seconds)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                path.unlink()
            os.close(descriptor)


@contextlib.contextmanager
def held(path: Path, *, shared: bool) -> Generator[None]:
    """Hold a lock whose file stays, for as long as it takes to get it: shared with others or alone.

    Raises:
        OSError: the file cannot be opened or the file system knows no locks.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _acquire(path: Path, timeout_seconds: float) -> int | None:
    deadline = time.monotonic() + timeout_seconds
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            if error.errno not in {errno.EAGAIN, errno.EACCES} or time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            continue
        if _names(path, descriptor):
            return descriptor
        os.close(descriptor)


def _names(path: Path, descriptor: int) -> bool:
    """Whether ``path`` still means the file behind ``descriptor``."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False
