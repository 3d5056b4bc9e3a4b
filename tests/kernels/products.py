"""Products to ask for, and the pinned definition of their numbers one element at a time."""

import itertools
import math

import numpy as np
import numpy.typing as npt

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import AmpLeft, AmpRight
from compiler.geometry.precision import F8, F16, decode_f143
from compiler.geometry.product import ProductAxes, matrix_product
from compiler.geometry.relation import ProductOperand, Side
from compiler.kernels import registry
from compiler.kernels.contract import Binding, Refusal
from compiler.kernels.gemm.binding import GemmParameters, Mode, Rounding
from tests.kernels.machine import INTERLEAVED, STANDARD, Bytes, bound
from tests.kernels.tensors import Halves, operand

LEFT = STANDARD + 8
RESULT = INTERLEAVED + 8
WIDE_WEIGHTS = 0xC0000 + 16
NARROW_WEIGHTS = 0x70000 + 8
"""Each at exactly its smallest alignment, in memory elements of its own."""

HALVES = (F16(), F16())


def product(
    result: LocalOperand,
    left: LocalOperand,
    right: LocalOperand,
    parameters: GemmParameters,
    axes: ProductAxes | None = None,
) -> Binding | Refusal:
    """A product of the last two axes, unless axes are given."""
    used = matrix_product(left.physical, right.physical) if axes is None else axes
    relations = (None, ProductOperand(axes=used, side=Side.LEFT), ProductOperand(axes=used, side=Side.RIGHT))
    return registry.bind("gemm", parameters, (result, left, right), relations)


def plain(
    rows: int,
    k: int,
    columns: int,
    *,
    mode: Mode = Mode.INITIALIZE,
    is_wide: bool = True,
    rounding: Rounding = Rounding.NEAREST,
    logical: tuple[int, int, int] | None = None,
    precisions: tuple[F16 | F8, F16 | F8] = HALVES,
) -> Binding:
    """A product of whole matrices in the natural orders, left and right of these precisions."""
    r, c, n = (rows, k, columns) if logical is None else logical
    return bound(
        product(
            operand(AmpLeft(), (rows, columns), logical=(r, n), is_interleaved=True, origin=8),
            operand(AmpLeft(), (rows, k), logical=(r, c), origin=8, precision=precisions[0]),
            operand(
                AmpRight(),
                (k, columns),
                logical=(c, n),
                is_interleaved=is_wide,
                origin=16 if is_wide else 8,
                precision=precisions[1],
            ),
            GemmParameters(mode=mode, rounding=rounding),
        )
    )


def storages(binding: Binding) -> tuple[LocalOperand, LocalOperand, LocalOperand]:
    """Geometry of result, left and right."""
    result, left, right = (access.operand for access in binding.accesses)
    assert result is not None
    assert left is not None
    assert right is not None
    return result, left, right


def places(binding: Binding) -> tuple[int, int, int]:
    """Addresses that the binding accepts and that are no better aligned than it asks for."""
    is_wide = binding.symbol.choice("weights") == "wide"
    return RESULT, LEFT, WIDE_WEIGHTS if is_wide else NARROW_WEIGHTS


def reference(left: Halves, right: Halves, start: Halves) -> Halves:
    """The pinned definition for F16: four products at a time in F32, F16 after each 16 of K."""
    return _chain(left.astype(np.float64), right.astype(np.float64), start, step=4, scale=0)


def reference_of_codes(left: Bytes, right: Bytes, start: Halves, scale: int) -> Halves:
    """The pinned definition for F8: eight products at a time in F32, F16 after each 32 of K."""
    numbers = [decode_f143(codes).astype(np.float64) for codes in (left, right)]
    return _chain(numbers[0], numbers[1], start, step=8, scale=scale)


def _chain(
    left: npt.NDArray[np.float64], right: npt.NDArray[np.float64], start: Halves, *, step: int, scale: int
) -> Halves:
    result = start.copy()
    depth = left.shape[1]
    for row, column in itertools.product(range(left.shape[0]), range(right.shape[1])):
        for panel in range(0, depth, 4 * step):
            accumulator = np.float32(result[row, column])
            for first in range(panel, min(panel + 4 * step, depth), step):
                total = 0.0
                for k in range(first, min(first + step, depth)):
                    total += float(left[row, k]) * float(right[k, column])
                accumulator = np.float32(float(accumulator) + math.ldexp(total, scale))
            result[row, column] = np.float16(accumulator)
    return result


def is_close(found: npt.NDArray[np.float64], exact: npt.NDArray[np.float64]) -> bool:
    """Whether a product of numbers about 1 in size is as good as rounding once for each panel lets it be."""
    return bool((np.abs(found - exact) <= 0.01 + 0.002 * np.abs(exact)).all())
