"""The least code and the smallest tables of a tile, known without generating any of them.

Planning must not import generators and emitters, and yet say early that a program cannot fit. What is listed
here is therefore what generators and emitters make at least: figures of today's, which may grow and leave
these true. Tests hold each against what is generated. All are *bounds*.
"""

from typing import Final

from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.target.memory import EXECUTABLE_LIMIT
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.units import WORD_BYTES, Bytes

EXECUTABLE_ROOM: Final = Bytes(
    DEFAULT_LAYOUT.window.start - DEFAULT_LAYOUT.entry + EXECUTABLE_LIMIT - DEFAULT_LAYOUT.upper_code
)
"""Bytes of a tile in which code and exchange rows can lie: 163,824."""

RUNTIME: Final = Bytes(672)
"""Of the runtime, which every tile has in full."""

PRODUCT: Final = Bytes(920)
"""Of the smallest kernel of products."""

GELU: Final = Bytes(472)
"""Of the smallest kernel with a GELU, whatever else it does."""

ADDITION: Final = Bytes(232)
"""Of the smallest kernel that adds, whatever else it does."""

_NARROWING: Final[tuple[tuple[type[Precision], type[Precision], Bytes], ...]] = (
    (F32, F16, Bytes(288)),
    (F32, F8, Bytes(288)),
    (F16, F8, Bytes(312)),
)
"""Of the smallest kernels that round; from F32 to F8 they may go by way of F16."""

TILE_PROGRAM: Final = Bytes(5 * WORD_BYTES)
"""Of the program of a tile, whatever it does: a clock sampled before and after, and the end."""

HOST_MEETINGS: Final = Bytes(3 * WORD_BYTES)
"""Of a tile's program for inputs, for outputs and for parameters, whether it has some of them or not."""

LOOP: Final = Bytes(8 * WORD_BYTES)
"""Of a tile's program for each Repeat: a frame opened, counted down and closed."""

CALL: Final = Bytes(4 * WORD_BYTES)
"""Of a tile's program for each call of a product: two operands, a result, the jump."""

HOST_DESCRIPTOR: Final = Bytes(3 * WORD_BYTES)
"""Of a tile's tables for each slice of a tensor that travels between it and the host."""

EXCHANGE_ROW: Final = Bytes(2 * WORD_BYTES)
"""Of an exchange row: something sent or received, and the way back."""


def narrowing(source: Precision, result: Precision) -> Bytes:
    """Of the smallest kernel that numbers pass on their way to a narrower precision; 0 to none."""
    sizes = (size for wide, narrow, size in _NARROWING if (type(source), type(result)) == (wide, narrow))
    return next(sizes, Bytes(0))
