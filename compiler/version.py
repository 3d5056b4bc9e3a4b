"""The version of the compiler, as packages state it."""

from typing import Final

VERSION: Final = "0.1.0"
"""That of ``pyproject.toml``. It stands here because installed metadata can be of another build."""
