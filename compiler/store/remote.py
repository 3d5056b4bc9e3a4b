"""A shared store behind any file system that fsspec knows: read-through and, where allowed, write-back.

It has the layout of a local store's ``cas`` and ``ac``. What comes from it is checked exactly as local files
are before it is written here, so a damaged or torn remote file is a miss. Who may write is a question of
trust, since a record says what a computation gives: ``upload`` is off unless asked for; developers read what
continuous integration writes.

Objects go first and the record last, as locally. A remote that fails once is not asked again in this process:
waiting for a dead server at every key would cost more than computing. fsspec is imported when a remote is
opened and not before.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar, cast

from compiler.errors import StoreError
from compiler.store.digest import Digest, ObjectRef
from compiler.store.layout import VERSION_TEXT
from compiler.store.objects import unpack
from compiler.store.records import Record, record_from_file, record_to_file
from compiler.store.stage import Namespace
from compiler.store.statistics import EventKind, Statistics

T = TypeVar("T")


class _FileSystem(Protocol):
    """What is used of fsspec, which declares no types."""

    def cat_file(self, path: str) -> bytes: ...

    def pipe_file(self, path: str, value: bytes) -> None: ...

    def makedirs(self, path: str, exist_ok: bool) -> None: ...

    def exists(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...


class Remote:
    """A remote store.

    Args:
        url: where it is, with a protocol that fsspec knows, such as ``s3://bucket/folder`` or
            ``file:///folder``.
        upload: whether results of this process are written there.
        strict: raise ``StoreError`` on trouble instead of going on without the remote.
        statistics: told about trouble.
    """

    def __init__(self, url: str, *, upload: bool, strict: bool, statistics: Statistics) -> None:
        self._url = url
        self._upload = upload
        self._strict = strict
        self._statistics = statistics
        self._suspect: set[str] = set()
        self._file_system: _FileSystem | None = None
        self._folder = ""
        self._guard(self._connect)

    def record(self, namespace: Namespace, key: Digest) -> Record | None:
        """The record of a key, checked; None when there is none that can be used."""
        path = f"ac/{namespace.value}/{key[:2]}/{key}"

        def check(file: bytes) -> Record:
            record = record_from_file(file)
            if record.key != key or record.namespace is not namespace:
                raise ValueError("lies under a key that is not its own")
            return record

        return self._read(path, check)

    def object_file(self, ref: ObjectRef) -> bytes | None:
        """The file of an object, checked to its content; None when there is none that can be used."""

        def check(file: bytes) -> bytes:
            unpack(file, ref)
            return file

        return self._read(_object_path(ref), check)

    def publish(self, record: Record, read_file: Callable[[ObjectRef], bytes | None]) -> None:
        """Write a record and what it names, as far as they are not there.

        Args:
            record: the record; another record for its key is reported and left, when both rest on the same
                runs.
            read_file: the local file of an object; when it gives None, nothing is published.
        """
        if not self._upload:
            return
        known = self.record(record.namespace, record.key)
        differs = known is not None and known.digest != record.digest
        if known is not None and differs and known.basis == record.basis:
            self._statistics.report(
                EventKind.CONFLICT, record.stage, f"{self._url} holds other bytes for key {record.key}"
            )
            return
        for output in record.outputs:  # also beside an equal record: one of them may be damaged or gone
            file = read_file(output.ref)
            if file is None:
                return
            self._write(_object_path(output.ref), file)
        if known is None or differs:
            path = f"ac/{record.namespace.value}/{record.key[:2]}/{record.key}"
            self._write(path, record_to_file(record), replace=True)

    def _connect(self) -> None:
        from fsspec.core import (  # only a build with a remote pays for the import
            url_to_fs,  # pyright: ignore[reportUnknownVariableType]  # fsspec declares no types
        )

        connect = cast("Callable[[str], tuple[_FileSystem, str]]", url_to_fs)
        file_system, folder = connect(self._url)
        version = f"{folder}/VERSION"
        if file_system.exists(version):
            if file_system.cat_file(version) != VERSION_TEXT:
                raise ValueError("it is a store of another version")
        elif self._upload:
            file_system.makedirs(folder, exist_ok=True)
            file_system.pipe_file(version, VERSION_TEXT)
        self._file_system, self._folder = file_system, folder

    def _read(self, path: str, check: Callable[[bytes], T]) -> T | None:
        file = self._guard(lambda: self._read_file(path))
        if file is None:
            return None
        try:
            return check(file)
        except ValueError as error:
            self._suspect.add(path)
            self._statistics.report(EventKind.REMOTE, f"{self._url}/{path}", f"the file {error}")
            return None

    def _read_file(self, path: str) -> bytes | None:
        if self._file_system is None:
            return None
        try:
            return self._file_system.cat_file(f"{self._folder}/{path}")
        except FileNotFoundError:
            return None

    def _write(self, path: str, file: bytes, *, replace: bool = False) -> None:
        def write() -> None:
            if self._file_system is None:
                return
            name = f"{self._folder}/{path}"
            sound = path not in self._suspect and not replace
            if sound and self._file_system.exists(name) and self._file_system.size(name) == len(file):
                return
            self._file_system.makedirs(name.rpartition("/")[0], exist_ok=True)
            self._file_system.pipe_file(name, file)
            self._suspect.discard(path)

        self._guard(write)

    def _guard(self, action: Callable[[], T]) -> T | None:
        """Do something remote; on trouble, report it and do without the remote from now on."""
        try:
            return action()
        except Exception as error:  # every protocol has exceptions of its own
            self._file_system = None
            fault = StoreError(
                f"the remote store does not work: {error}",
                stage="store",
                subject=self._url,
                next_step="check address and permissions, or build without a remote store",
            )
            if self._strict:
                raise fault from error
            self._statistics.report(EventKind.REMOTE, self._url, str(fault))
            return None


def _object_path(ref: ObjectRef) -> str:
    return f"cas/{ref.digest[:2]}/{ref.digest}"
