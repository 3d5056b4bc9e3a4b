"""Changing a column, or leaving rows out, of a program's frozen tables."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from compiler.low.ir import LowProgram


def changed(program: LowProgram, table: str, column: str, row: int, value: int) -> LowProgram:
    """The program with one number changed."""
    rows: Any = getattr(program, table)
    values = getattr(rows, column).copy()
    values[row] = value
    return dataclasses.replace(program, **{table: dataclasses.replace(rows, **{column: values})})


def without_rows(program: LowProgram, table: str, rows: Sequence[int]) -> LowProgram:
    """The program without some rows of a table whose rows nothing refers to."""
    columns: Any = getattr(program, table)
    kept = {
        field.name: np.delete(getattr(columns, field.name), rows)
        for field in dataclasses.fields(columns)
        if field.name != "operand_views"
    }
    return dataclasses.replace(program, **{table: dataclasses.replace(columns, **kept)})
