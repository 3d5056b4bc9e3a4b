"""Reader and writer of ``.ipuexe`` packages and of measured profiles.

A package is one unpacked Cap'n Proto message, schema in ``application.capnp``; a profile is another, schema
in ``profile.capnp``. Reading gives records that obey every rule of ``validate.py`` or raises
``PackageInvalid`` for the first rule broken; nothing in a file, however damaged, does anything else. Writing
is deterministic to the byte, refuses a package that breaks a rule, and what is written reads back equal.

Memory: reading copies the data of segments out of the file's bytes, ``save`` copies them into the file's
bytes; each once. ``write_package`` copies once more, into ``bytes``. ``wire.py`` bounds what hostile bytes
can cost.
"""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from compiler.errors import InvalidInput, Measure, NumberKind, PackageInvalid
from compiler.package.records import Application, Profile
from compiler.package.validate import (
    REBUILD,
    Violation,
    profile_violations,
    version_violations,
    violations,
)
from compiler.package.wire import DamagedMessage, MessageFormat, application_format, profile_format
from compiler.target.memory import SRAM_SIZE
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Bytes

SIZE_LIMIT: Final = Bytes(2 * TILE_COUNT * SRAM_SIZE)
"""Largest package in bytes. Policy: all memory of all tiles, and as much again for everything else."""

READ_STAGE: Final = "read package"
WRITE_STAGE: Final = "write package"

_RecordT = TypeVar("_RecordT")


def read_package(data: bytes, *, name: str) -> Application:
    """The package in some bytes.

    Args:
        data: the file; the result shares nothing with it.
        name: what to call it in errors.

    Raises:
        PackageInvalid: it is not a package, or breaks a rule.
    """
    return _read(application_format(), data, name, violations)


def write_package(application: Application) -> bytes:
    """The file of a package, the same bytes for equal packages.

    Raises:
        ValueError: the package breaks a rule, or a value is not of its field's type.
    """
    return bytes(_write(application_format(), application, violations))


def load(path: Path) -> Application:
    """The package in a file.

    Raises:
        InvalidInput: the file cannot be read.
        PackageInvalid: it is not a package, or breaks a rule.
    """
    return read_package(package_bytes(path), name=path.name)


def package_bytes(path: Path) -> bytes:
    """The bytes of a package's file, not more than a package can have.

    Raises:
        InvalidInput: the file cannot be read.
        PackageInvalid: it is larger than any package.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            _check_size(size, path.name)
            return file.read(size)
    except OSError as error:
        raise InvalidInput(
            f"the package cannot be read: {error.strerror}",
            stage=READ_STAGE,
            subject=str(path),
            next_step="check the path and its permissions",
        ) from None


def save(application: Application, path: Path) -> None:
    """Write a package into a file, whole or not at all.

    Raises:
        InvalidInput: the file cannot be written.
        ValueError: the package breaks a rule, or a value is not of its field's type.
    """
    _write_file(_write(application_format(), application, violations), path)


def read_profile(data: bytes, *, name: str) -> Profile:
    """The measured profile in some bytes.

    Raises:
        PackageInvalid: it is not a profile, or of another version.
    """
    return _read(profile_format(), data, name, profile_violations)


def write_profile(profile: Profile) -> bytes:
    """The file of a measured profile, the same bytes for equal profiles.

    Raises:
        ValueError: it is of another version, or a value is not of its field's type.
    """
    return bytes(_write(profile_format(), profile, profile_violations))


def _read(
    message_format: MessageFormat[_RecordT],
    data: bytes,
    name: str,
    judge: Callable[[_RecordT], Iterator[Violation]],
) -> _RecordT:
    _check_size(len(data), name)
    try:
        message = message_format.open(data)
        # Another version may mean another structure: say so before reading by the rules of this one.
        _raise_first(version_violations(message.schema_version()), name)
        record = message.record()
    except DamagedMessage as damage:
        place = f"{name}, {'.'.join(damage.place)}" if damage.place else name
        raise PackageInvalid(damage.problem, stage=READ_STAGE, subject=place, next_step=REBUILD) from None
    _raise_first(judge(record), name)
    return record


def _raise_first(found: Iterator[Violation], name: str) -> None:
    for violation in found:
        raise PackageInvalid(
            violation.message,
            stage=READ_STAGE,
            subject=f"{name}, {violation.place}" if violation.place else name,
            numbers=violation.numbers,
            next_step=violation.next_step,
        )


def _write(
    message_format: MessageFormat[_RecordT],
    record: _RecordT,
    judge: Callable[[_RecordT], Iterator[Violation]],
) -> bytearray:
    for violation in judge(record):
        raise ValueError(f"{violation.place or 'package'}: {violation.message}")
    message = message_format.encode(record)
    if len(message) > SIZE_LIMIT:
        raise ValueError(f"a package of {len(message):,} bytes, the limit is {SIZE_LIMIT:,}")
    return message


def _check_size(size: int, name: str) -> None:
    if size > SIZE_LIMIT:
        raise PackageInvalid(
            "the file is larger than any package of this target",
            stage=READ_STAGE,
            subject=name,
            numbers=[
                Measure(name="file", value=size, limit=SIZE_LIMIT, unit="bytes", kind=NumberKind.MEASURED)
            ],
            next_step=REBUILD,
        )


def _write_file(message: bytearray, path: Path) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        try:
            with temporary.open("xb") as file:
                file.write(message)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"the package cannot be written: {error.strerror}",
            stage=WRITE_STAGE,
            subject=str(path),
            next_step="check the folder, its permissions and the free space",
        ) from None
