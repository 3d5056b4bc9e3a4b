"""Integers with a unit, so that bytes, words, items and tile numbers never meet by accident.

All are plain integers at run time. Arithmetic on them yields ``int``: whoever adds names the unit of the sum.
"""

from typing import Annotated, Any, NewType, TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.target.standing import VERIFIED

Bytes = NewType("Bytes", int)
"""A length in bytes."""

Words = NewType("Words", int)
"""A length in 32-bit words."""

Items = NewType("Items", int)
"""A length or position in exchange items: 32 bits in an ordinary transfer, 64 bits in a paired one."""

Address = NewType("Address", int)
"""A byte address in the SRAM of a tile."""

Element = NewType("Element", int)
"""A memory element, named by its lowest byte address."""

Word = NewType("Word", int)
"""A 32-bit word of machine code or of a host packet, 0 .. 2**32 - 1."""

Events = NewType("Events", int)
"""Cycles on the clock of an exchange row; slot k is the cycle between events k and k + 1."""

Cycles = NewType("Cycles", int)
"""Tile clock cycles."""

LogicalTile = NewType("LogicalTile", int)
"""A tile as programs number it, 0 .. 1471; neighbours in number are exchange partners."""

PhysicalTile = NewType("PhysicalTile", int)
"""A tile as the exchange fabric, the loader and the packages number it."""

IntegerArray: TypeAlias = npt.NDArray[np.integer[Any]]
"""Integers of any width, as argument of a vectorized function."""

Int64Array: TypeAlias = npt.NDArray[np.int64]
"""The result of a vectorized function."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
"""The result of a vectorized predicate."""

WORD_BYTES: Annotated[Bytes, VERIFIED] = Bytes(4)
"""Bytes in a word. Fact, ran on hardware."""
