"""How a placement is kept in the store: its two columns."""

from typing import Final

import numpy as np

from compiler.placement.ir import Placement
from compiler.store.codec import ColumnsCodec
from compiler.store.container import Columns


def columns_of_placement(placement: Placement) -> Columns:
    """A placement as columns."""
    return Columns(arrays={"address": placement.address, "stride": placement.stride})


def placement_of_columns(columns: Columns) -> Placement:
    """The inverse; its columns cannot be written.

    Raises:
        ValueError: the columns are not those of a placement.
    """
    if sorted(columns.arrays) != ["address", "stride"]:
        raise ValueError(f"a placement has the columns address and stride, not {', '.join(columns.arrays)}")
    for name, column in columns.arrays.items():
        if column.dtype != np.int64 or column.ndim != 1:
            raise ValueError(f"{name} is not a column of 64-bit integers")
    address, stride = (columns.arrays[name].view(np.int64) for name in ("address", "stride"))
    return Placement(address=address, stride=stride)


PLACEMENT: Final = ColumnsCodec(columns=columns_of_placement, value=placement_of_columns)
"""What stages that give or take placements declare."""
