"""What callers of stage ``kernel_objects`` need, and how object files are kept in the store."""

from dataclasses import dataclass
from typing import Final, cast, final

import numpy as np

from compiler.errors import InvalidInput
from compiler.figures import Figures
from compiler.isa.objects import ObjectFile, read_object, write_object
from compiler.store.codec import ColumnsCodec
from compiler.store.container import Columns
from compiler.store.stage import Artifact


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelObjectsInputs:
    """Of stage ``kernel_objects``.

    Args:
        symbols: texts of the kernels' symbols, once each and ascending.
    """

    symbols: Artifact[tuple[str, ...]]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KernelObjects:
    """What stage ``kernel_objects`` gives.

    Args:
        objects: one for each symbol, in their order.
        figures: how many and how large.
    """

    objects: tuple[ObjectFile, ...]
    figures: Figures


def columns_of_objects(objects: tuple[ObjectFile, ...]) -> Columns:
    """Object files one after the other, with the place where each ends."""
    files = [write_object(item) for item in objects]
    return Columns(
        arrays={
            "content": np.frombuffer(b"".join(files), dtype=np.uint8),
            "end": np.cumsum([0, *(len(file) for file in files)], dtype=np.int64)[1:],
        },
        meta=tuple(item.name for item in objects),
    )


def objects_of_columns(columns: Columns) -> tuple[ObjectFile, ...]:
    """The inverse.

    Raises:
        ValueError: the columns are not those of object files.
    """
    content, end = columns.arrays.get("content"), columns.arrays.get("end")
    names = columns.meta
    if (
        len(columns.arrays) != 2
        or content is None
        or end is None
        or content.dtype != np.uint8
        or end.dtype != np.int64
        or not isinstance(names, tuple)
        or end.shape != (len(cast("tuple[object, ...]", names)),)
    ):
        raise ValueError("object files have a content, names, and an end for each")
    ends = [int(place) for place in end.view(np.int64)]
    if sorted(ends) != ends or ends[-1:] != [len(content)][: len(ends)]:
        raise ValueError("object files do not follow each other")
    data = content.tobytes()
    try:
        return tuple(
            read_object(data[start:stop], str(name))
            for start, stop, name in zip([0, *ends], ends, cast("tuple[object, ...]", names), strict=False)
        )
    except InvalidInput as refusal:
        raise ValueError(str(refusal)) from refusal


OBJECTS: Final = ColumnsCodec(columns=columns_of_objects, value=objects_of_columns)
"""Object files, in order."""
