"""A placement: an address for every buffer of a low program, and a stride for every sequence."""

from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placement:
    """Addresses. ``compiler.placement.check`` says when they are right.

    Args:
        address: [buffers] byte address of each buffer's start in its tile's SRAM, shared buffers included.
        stride: [sequences] bytes from a member of the sequence to the next.
    """

    address: npt.NDArray[np.int64]
    stride: npt.NDArray[np.int64]
