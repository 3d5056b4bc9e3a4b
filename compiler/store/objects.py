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

_LONGEST_HEADER = 18
"""Bytes of the longest head of a zstd frame."""

_MOST_FOR_A_BYTE = 1 << 15
"""No byte of a frame stands for more content: a block has at least 4 bytes and gives at most 128 KiB."""

_PIECE = 4096
"""Bytes of a frame that are decompressed at once while checking: at most 128 MiB of content."""


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
    _check_size(frame, ref.size)
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
            _check_size(_checked_frame(file), ref.size)
            return file

        return self._read(ref, check)

    def scrub(self, path: Path) -> bool:
        """Check one file completely, as ``walk`` gave it. False when it is damaged; it is then set aside.

        A file that is gone by now is as good: nothing of it is damaged.

        Raises:
            StoreError: the store cannot be read.
        """
        try:
            start = files.head(path, _LONGEST_HEADER)
            # The size is only a claim yet, good for refusing what is longer than such content can be.
            file = None if start is None else files.read(path, largest=_largest_file(_content_size(start)))
            if file is not None and _digest_of_content(file) != path.name:
                raise ValueError("holds content with another digest")
        except ValueError as error:
            self._set_aside(path, str(error))
            return False
        return True

    def walk(self) -> Iterator[Path]:
        """Everything that lies where objects lie, sorted."""
        for folder in files.entries(self._root / "cas"):
            yield from files.entries(folder) if files.is_folder(folder) else [folder]

    def _read(self, ref: ObjectRef, check: Callable[[bytes], bytes]) -> bytes | None:
        path = self.path(ref.digest)
        try:
            file = files.read(path, largest=_largest_file(ref.size))
            return None if file is None else check(file)
        except ValueError as error:
            self._set_aside(path, str(error))
            return None

    def _set_aside(self, path: Path, fault: str) -> None:
        if self._writable:
            files.set_aside(self._root, path)
        self._on_damage(path, fault)


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


def _check_size(frame: bytes, wanted: ByteCount) -> None:
    size = _content_size(frame)
    if size != wanted:
        raise ValueError(f"holds {size} bytes of content instead of {wanted}")
    if size > len(frame) * _MOST_FOR_A_BYTE:
        raise ValueError(f"claims {size} bytes of content, more than {len(frame)} bytes can hold")


def _largest_file(size: ByteCount) -> int:
    """More than the file of an object of that size takes: a compressor stores what it cannot make smaller."""
    return size + size // 64 + 1024


def _digest_of_content(file: bytes) -> Digest:
    """The digest of what a file holds, found piece by piece: the size that it claims is never allocated.

    Raises:
        ValueError: the file is damaged.
    """
    frame = memoryview(_checked_frame(file))
    _check_size(file, _content_size(file))
    decompressor = zstandard.ZstdDecompressor().decompressobj()
    digest = hashlib.sha256()
    size = 0
    try:
        for start in range(0, len(frame), _PIECE):
            piece = decompressor.decompress(frame[start : start + _PIECE])
            digest.update(piece)
            size += len(piece)
    except zstandard.ZstdError as error:
        raise ValueError(f"cannot be decompressed: {error}") from error
    if not decompressor.eof or decompressor.unused_data or size != _content_size(file):
        raise ValueError("cannot be decompressed: the frame ends elsewhere")
    return Digest(digest.hexdigest())
