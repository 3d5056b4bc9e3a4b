"""The content store: bytes under the digest of themselves.

An object file is a zstd frame with checksum and content size, followed by a skippable frame that holds the
SHA-256 of the first frame; ``zstd -d`` reads it. Why three checks:

- the digest of the content, the file's name, is the proof that the bytes are the right ones;
- the digest of the frame catches damage before anything is decompressed, so that a flipped bit in a header
  cannot make the reader allocate gigabytes, and it catches flips in the few header bits that decoders ignore:
  every flipped bit of a file is damage, without exception;
- zstd's own checksum tells ``zstd -t`` users the same.

Every read checks all of it. A damaged file is set aside and counts as missing: whoever needs the object
computes it again and writes it back. Objects never change, so writing one that is there already only
refreshes its age.
"""

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

from compiler.store import files
from compiler.store.digest import ByteCount, Digest, ObjectRef, digest_of

_LEVEL = 3
_TRAILER = (0x184D2A50).to_bytes(4, "little") + (32).to_bytes(4, "little")
"""Head of a skippable frame with 32 bytes."""


def pack(data: bytes) -> bytes:
    """The file of an object."""
    frame = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True, write_content_size=True).compress(
        data
    )
    return frame + _TRAILER + hashlib.sha256(frame).digest()


def unpack(file: bytes, ref: ObjectRef) -> bytes:
    """The content of an object's file.

    Raises:
        ValueError: the file is damaged or holds other content; the message says what is wrong.
    """
    frame = _checked_frame(file)
    _check_size(frame, ref)
    try:
        data = zstandard.ZstdDecompressor().decompress(
            frame, max_output_size=ref.size, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
    if digest_of(data) != ref.digest:
        raise ValueError("holds content with another digest")
    return data


class Objects:
    """The objects below one folder.

    Args:
        root: the store.
        on_damage: told about each damaged file and what is wrong with it, once it is set aside.
        writable: whether damaged files may be moved.
    """

    def __init__(self, root: Path, *, on_damage: Callable[[Path, str], None], writable: bool) -> None:
        self._root = root
        self._on_damage = on_damage
        self._writable = writable

    def path(self, digest: Digest) -> Path:
        """Where an object lies or would lie."""
        return self._root / "cas" / digest[:2] / digest

    def has(self, ref: ObjectRef) -> bool:
        """Whether a file is there; only reading tells whether it is sound."""
        return files.is_file(self.path(ref.digest))

    def put(self, data: bytes, *, durable: bool = True) -> ObjectRef:
        """Store ``data``; when this returns, reading gives it back.

        Raises:
            StoreError: it cannot be written.
        """
        ref = ObjectRef(digest=digest_of(data), size=ByteCount(len(data)))
        self.put_file(ref, pack(data), durable=durable)
        return ref

    def put_file(self, ref: ObjectRef, file: bytes, *, durable: bool = True) -> None:
        """Store an object whose file is already packed and checked.

        Raises:
            StoreError: it cannot be written.
        """
        path = self.path(ref.digest)
        if self.file(ref) is not None:
            files.touch(path)
        else:
            files.publish(self._root, path, file, durable=durable)

    def get(self, ref: ObjectRef) -> bytes | None:
        """The content of an object; None when it is missing or damaged.

        Raises:
            StoreError: the store cannot be read.
        """
        return self._read(ref, lambda file: unpack(file, ref))

    def file(self, ref: ObjectRef) -> bytes | None:
        """The file of an object after the checks that need no decompression; None when missing or damaged.

        Raises:
            StoreError: the store cannot be read.
        """

        def check(file: bytes) -> bytes:
            _check_size(_checked_frame(file), ref)
            return file

        return self._read(ref, check)

    def scrub(self, path: Path) -> bool:
        """Check one file completely, as ``walk`` gave it. False when it is damaged; it is then set aside.

        Raises:
            StoreError: the store cannot be read.
        """

        def check(file: bytes) -> bytes:
            size = _content_size(_checked_frame(file))
            return unpack(file, ObjectRef(digest=Digest(path.name), size=size))

        return self._check(path, check) is not None

    def walk(self) -> Iterator[Path]:
        """Everything that lies where objects lie, sorted."""
        for folder in sorted(self._root.glob("cas/*")):
            yield from sorted(folder.iterdir()) if folder.is_dir() else [folder]

    def _read(self, ref: ObjectRef, check: Callable[[bytes], bytes]) -> bytes | None:
        return self._check(self.path(ref.digest), check)

    def _check(self, path: Path, check: Callable[[bytes], bytes]) -> bytes | None:
        try:
            file = files.read(path)
            return None if file is None else check(file)
        except IsADirectoryError:
            fault = "is a folder"
        except ValueError as error:
            fault = str(error)
        if self._writable:
            files.set_aside(self._root, path)
        self._on_damage(path, fault)
        return None


def _checked_frame(file: bytes) -> bytes:
    """The zstd frame of an object's file, whole and unchanged."""
    end = len(file) - len(_TRAILER) - 32
    if end <= 0 or file[end : end + len(_TRAILER)] != _TRAILER:
        raise ValueError(f"is cut off or overwritten: {len(file)} bytes without the closing digest")
    if hashlib.sha256(memoryview(file)[:end]).digest() != file[end + len(_TRAILER) :]:
        raise ValueError("differs from its closing digest")
    return file[:end]


def _content_size(frame: bytes) -> ByteCount:
    try:
        return ByteCount(zstandard.frame_content_size(frame))
    except zstandard.ZstdError as error:
        raise ValueError(f"cannot be decompressed: {error}") from error


def _check_size(frame: bytes, ref: ObjectRef) -> None:
    size = _content_size(frame)
    if size != ref.size:
        raise ValueError(f"holds {size} bytes of content instead of {ref.size}")
