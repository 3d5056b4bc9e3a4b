"""Tables of a program that is being made: rows are appended one by one or many at a time.

Columns live side by side in one array that doubles when it is full, so that appending costs the same per row
whatever the number of rows, and rows already there can be read and changed meanwhile.
"""

import dataclasses
from collections.abc import Mapping
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.low.ir import Column

_FIRST_ROWS: Final = 64


@final
class GrowingTable:
    """The columns of a table while it grows.

    Args:
        of: the frozen table.
        without: a column of it that does not have one number for each row.
    """

    def __init__(self, of: type, without: str | None = None) -> None:
        names = [field.name for field in dataclasses.fields(of) if field.name != without]
        self._positions = {name: position for position, name in enumerate(names)}
        self._rows = np.empty((_FIRST_ROWS, len(names)), dtype=np.int64)
        self._count = 0

    def __len__(self) -> int:
        """Rows so far."""
        return self._count

    def __getitem__(self, name: str) -> npt.NDArray[np.int64]:
        """A column of the rows so far: a view through which they can be changed."""
        return self._rows[: self._count, self._positions[name]]

    def append(self, **row: int) -> int:
        """Adds a row, which names every column; gives its number."""
        self._reserve(1)
        self._rows[self._count] = [row[name] for name in self._positions]
        self._count += 1
        return self._count - 1

    def extend(self, count: int, columns: Mapping[str, Column | int]) -> npt.NDArray[np.int64]:
        """Adds ``count`` rows, whose columns are arrays or one number for all; gives their numbers."""
        self._reserve(count)
        for name, position in self._positions.items():
            self._rows[self._count : self._count + count, position] = columns[name]
        self._count += count
        return np.arange(self._count - count, self._count, dtype=np.int64)

    def columns(self) -> dict[str, Column]:
        """The rows so far as columns that cannot be written."""
        found: dict[str, Column] = {}
        for name in self._positions:
            found[name] = self[name].copy()
            found[name].flags.writeable = False
        return found

    def _reserve(self, count: int) -> None:
        needed = self._count + count
        if needed > len(self._rows):
            rows = np.empty((max(needed, 2 * len(self._rows)), len(self._positions)), dtype=np.int64)
            rows[: self._count] = self._rows[: self._count]
            self._rows = rows
