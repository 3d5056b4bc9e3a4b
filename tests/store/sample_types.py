"""Values, options and codecs of the stages that the store's tests run. Defines no stage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from compiler.fingerprint import REPOSITORY, Sources
from compiler.store.codec import ColumnsCodec, JsonCodec
from compiler.store.container import Columns
from compiler.store.stage import Artifact

Ints = npt.NDArray[np.int64]

SOURCES = Sources(root=REPOSITORY.root, packages=("compiler", "tests"))
"""The repository with its tests: the stages below are code like any other."""


class Rounding(Enum):
    """An option that is no plain value."""

    DOWN = "down"
    UP = "up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleOptions:
    """A group of options."""

    factor: int = 2
    rounding: Rounding = Rounding.DOWN
    tolerance: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One options object for all sample stages, as a build has one."""

    scale: ScaleOptions = field(default_factory=ScaleOptions)
    seed: int = 0
    workers: int = 1
    log_level: str = "info"
    trace: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleInputs:
    """An artifact and two plain values."""

    values: Artifact[Ints]
    limit: int = 1000
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberInputs:
    """One plain value."""

    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Two outputs of one stage."""

    total: int
    parts: Ints


def ints_to_columns(values: Ints) -> Columns:
    """One column."""
    return Columns(arrays={"values": values})


def ints_from_columns(columns: Columns) -> Ints:
    """The inverse."""
    return columns.arrays["values"].astype(np.int64, copy=False)


def int_to_plain(value: int) -> object:
    """A number is plain."""
    return value


def int_from_plain(value: Any) -> int:  # noqa: ANN401  # decoded JSON
    """A number, and nothing else."""
    if type(value) is not int:
        raise ValueError("not a number")
    return value


def mapping_to_plain(value: Mapping[str, int]) -> object:
    """A mapping is plain."""
    return dict(value)


def mapping_from_plain(value: Any) -> Mapping[str, int]:  # noqa: ANN401  # decoded JSON
    """The inverse."""
    return dict(cast("Mapping[str, int]", value))


INTS = ColumnsCodec(columns=ints_to_columns, value=ints_from_columns)
INT = JsonCodec(plain=int_to_plain, value=int_from_plain)
MAPPING = JsonCodec(plain=mapping_to_plain, value=mapping_from_plain)
