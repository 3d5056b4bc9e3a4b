"""Digests: how the store names content.

SHA-256 throughout (CA-05: what persists is named by a cryptographic hash), written as 64 lower-case
hexadecimal digits. A digest in the store always names the uncompressed content, so that another compressor
changes no name.
"""

import hashlib
from dataclasses import dataclass
from typing import NewType

Digest = NewType("Digest", str)
"""SHA-256 as 64 lower-case hexadecimal digits."""

ByteCount = NewType("ByteCount", int)
"""A number of bytes on the host: in memory or in a file."""


LARGEST_CONTENT = ByteCount(1 << 48)
"""The most bytes of an object: more than any disk here has, and exact in floating point."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ObjectRef:
    """The name of an object: its digest, and its size so that a reader can refuse before it allocates."""

    digest: Digest
    size: ByteCount

    def __post_init__(self) -> None:
        """The digest is well formed and the size one that content can have."""
        parse_digest(self.digest)
        if type(self.size) is not int or not 0 <= self.size <= LARGEST_CONTENT:
            raise ValueError(f"an object cannot have {self.size} bytes")


def digest_of(data: bytes | memoryview) -> Digest:
    """The digest of ``data``."""
    return Digest(hashlib.sha256(data).hexdigest())


def parse_digest(text: str) -> Digest:
    """``text`` as a digest.

    Raises:
        ValueError: it is not 64 lower-case hexadecimal digits.
    """
    if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
        raise ValueError(f"{text!r} is not a digest: 64 lower-case hexadecimal digits")
    return Digest(text)
