"""How a low program is kept in the store: tables as columns, the rest as canonical JSON in one more column.

Bindings, forms, values and steps are trees of frozen dataclasses. ``store.canonical`` writes them with the
name of each class. They are read back only into classes that such a tree can hold by its declarations: those
reached from the fields of ``LowProgram``, and the parameters of the kernel families. Nothing else is ever
constructed.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, cast, get_type_hints

import numpy as np
import numpy.typing as npt

from compiler.kernels.contract import Parameters
from compiler.kernels.registry import FAMILIES
from compiler.low.ir import (
    Buffers,
    Calls,
    Copies,
    LowProgram,
    Recipients,
    Separations,
    Sequences,
    Transfers,
    Views,
)
from compiler.store.canonical import decode, encode, from_text, to_text
from compiler.store.classes import reachable_classes
from compiler.store.codec import ColumnsCodec
from compiler.store.container import Columns

T = TypeVar("T")

_TABLES: Final[Mapping[str, type]] = {
    "buffers": Buffers,
    "sequences": Sequences,
    "separations": Separations,
    "views": Views,
    "calls": Calls,
    "copies": Copies,
    "transfers": Transfers,
    "recipients": Recipients,
}
_TREES: Final = ("tile_count", "steps", "forms", "bindings", "values", "nodes")
_TREE_COLUMN: Final = "trees"


def columns_of_program(program: LowProgram) -> Columns:
    """A program as columns named ``table.column``, and one of text in bytes."""
    arrays: dict[str, npt.NDArray[Any]] = {
        f"{table}.{field.name}": getattr(getattr(program, table), field.name)
        for table, of in _TABLES.items()
        for field in dataclasses.fields(of)
    }
    text = to_text(encode({name: getattr(program, name) for name in _TREES}))
    arrays[_TREE_COLUMN] = np.frombuffer(text, dtype=np.uint8)
    return Columns(arrays=arrays)


def program_of_columns(columns: Columns) -> LowProgram:
    """The inverse; its columns cannot be written.

    Raises:
        ValueError: the columns are not those of a program.
    """
    arrays = dict(columns.arrays)
    text = arrays.pop(_TREE_COLUMN, None)
    if text is None or text.dtype != np.uint8:
        raise ValueError("the table holds no low program: it has no column of text")
    trees = decode(from_text(text.tobytes()), _class_of)
    if not isinstance(trees, dict) or sorted(cast("dict[str, object]", trees)) != sorted(_TREES):
        raise ValueError(f"a low program has {', '.join(_TREES)} beside its tables")
    tables = {name: _table(name, of, arrays) for name, of in _TABLES.items()}
    if arrays:
        raise ValueError(f"{min(arrays)} is no column of a low program")
    return LowProgram(**tables, **cast("dict[str, Any]", trees))


LOW_PROGRAM: Final = ColumnsCodec(columns=columns_of_program, value=program_of_columns)
"""What stages that give or take low programs declare."""


def _table(name: str, of: Callable[..., T], arrays: dict[str, npt.NDArray[Any]]) -> T:
    fields = dataclasses.fields(cast("Any", of))
    columns = {field.name: arrays.pop(f"{name}.{field.name}", None) for field in fields}
    for column, array in columns.items():
        if array is None or array.dtype != np.int64 or array.ndim != 1:
            raise ValueError(f"{name}.{column} is not a column of 64-bit integers")
    return of(**columns)


def _class_of(reference: str) -> type:
    found = _classes().get(reference)
    if found is None:
        raise ValueError(f"{reference} is no class that a low program holds")
    return found


@cache
def _classes() -> Mapping[str, type]:
    """Every dataclass and enumeration that the trees of a program can hold, by reference."""
    hints = get_type_hints(LowProgram)
    parameters = tuple(of for of in Parameters.__subclasses__() if of.family in FAMILIES)
    return reachable_classes([hints[name] for name in _TREES], {Parameters: parameters})
