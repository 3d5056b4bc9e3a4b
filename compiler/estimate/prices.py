"""Prices of work that is not built yet, and the SRAM that it may take: columns in, columns out.

All are *estimated*. An exchange costs what its busiest tile needs: its bytes at one word a cycle, sent and
received at the same time, or the controls of its fragments, whichever is longer, and the overhead of a phase.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from compiler.target.costs import (
    COPY_BYTES_PER_CYCLE,
    COPY_CALL,
    PHASE_OVERHEAD,
    POINTER_RESET,
    RECEIVE_FRAGMENT,
    RECEIVE_ROW_WORDS,
    SEND_FRAGMENT,
    SEND_ROW_WORDS,
    SUPPORT_ELEMENTS,
)
from compiler.target.memory import INTERLEAVED, SRAM_BASE, STANDARD
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.units import WORD_BYTES, Bytes

_SUPPORT: Final = SUPPORT_ELEMENTS * STANDARD.element_size

INTERLEAVED_BUDGET: Final = Bytes(DEFAULT_LAYOUT.data_end - INTERLEAVED.base)
"""Bytes of a tile that only the interleaved region can hold: 424,880."""
DATA_BUDGET: Final = Bytes(DEFAULT_LAYOUT.data_end - SRAM_BASE - _SUPPORT - DEFAULT_LAYOUT.state.size)
"""Bytes of a tile for all of a program's values: 586,960. What is kept free is a policy."""


def phase_cycles(
    size: npt.NDArray[np.int64], sends: npt.NDArray[np.int64], receives: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Cycles [n] of exchange phases.

    Args:
        size: [n] bytes that the busiest tile sends or receives, the greater.
        sends: [n] fragments that it sends.
        receives: [n] fragments that it receives, each at a new place.
    """
    control = SEND_FRAGMENT * sends + (RECEIVE_FRAGMENT + POINTER_RESET) * receives
    return PHASE_OVERHEAD + np.maximum(-(-size // WORD_BYTES), control)


def row_words(sends: npt.NDArray[np.int64], receives: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Words [n] of the exchange row of a tile with so many fragments."""
    return SEND_ROW_WORDS * sends + RECEIVE_ROW_WORDS * receives


def local_copy_cycles(size: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Cycles [n] of copies of so many bytes inside a tile."""
    return COPY_CALL - (-size // COPY_BYTES_PER_CYCLE)
