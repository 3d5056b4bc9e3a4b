"""Tensors of any precision in storage, one element at a time; ``tensors`` does the same for F16 alone."""

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.precision import F8, F16, F32
from tests.kernels.machine import Bytes, Sram
from tests.kernels.tensors import places

Values = npt.NDArray[np.generic]


def dtype_of(where: LocalOperand) -> np.dtype[np.generic]:
    """How NumPy holds its elements."""
    match where.precision:
        case F8():
            return F8.dtype
        case F16():
            return F16.dtype
        case F32():
            return F32.dtype


def stored_values(where: LocalOperand, values: Values) -> Bytes:
    """The bytes of a storage that holds ``values`` at the logical coordinates of its region, else zero."""
    elements = np.zeros(int(np.prod(where.backing)), dtype=dtype_of(where))
    elements[places(where)] = values.reshape(-1)
    return elements.view(np.uint8)


def loaded_values(where: LocalOperand, memory: Sram, address: int) -> Values:
    """The values at the logical coordinates of a region in memory."""
    count = int(np.prod(where.backing)) * where.precision.element_bytes
    elements = memory.read(address, count).view(dtype_of(where))
    return elements[places(where)].reshape(where.logical)
