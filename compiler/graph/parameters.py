"""Random numbers for inputs and parameters: each element by itself, the same everywhere and always.

Element i of a tensor with seed s is a function of s XOR i alone, so that any part of a tensor can be filled
without the rest, by any number of workers. SplitMix64 (Steele, Lea and Flood, 2014) turns s XOR i into 64
bits, 52 of them into a number inside (0, 1), and the inverse of the normal distribution that into a normal
number (Wichura's algorithm AS 241, 1988, good to 16 digits).

Only additions, multiplications, divisions and square roots are used, which IEEE 754 rounds in one way: the
logarithm in the tails is the series of the area hyperbolic tangent instead of a library's, whose last bit
depends on the machine.
"""

from collections.abc import Iterator, Mapping
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.errors import InvalidInput
from compiler.geometry.precision import Precision
from compiler.geometry.region import Region
from compiler.graph.ir import Constant, Fill, Graph, Normal, TensorType
from compiler.graph.rounding import stored

_MASK: Final = (1 << 64) - 1
_GOLDEN: Final = 0x9E3779B97F4A7C15
_FIRST: Final = 0xBF58476D1CE4E5B9
_SECOND: Final = 0x94D049BB133111EB


def tensor_seed(seed: int, number: int) -> int:
    """The seed of input or parameter ``number`` of a graph, counted through both: 64 well mixed bits."""
    return _split_mix((seed + _GOLDEN * number) & _MASK)


def filled(
    fill: Fill, tensor: TensorType, seed: int, region: Region | None = None
) -> npt.NDArray[np.generic]:
    """A tensor, or a region of it, as it is stored.

    Args:
        fill: distribution.
        tensor: precision and shape of the whole tensor.
        seed: of the tensor, 0 .. 2^64 - 1.
        region: what is wanted; everything when None.

    Returns:
        The region's extents, in the element type of the precision.
    """
    wanted = Region.of_extents(tensor.shape) if region is None else region
    match fill:
        case Constant(value=value):
            return stored(np.full(wanted.extents, value, dtype=np.float64), tensor.precision)
        case Normal(sigma=sigma):
            numbers = np.zeros(wanted.extents, dtype=np.uint64)
            for axis, (extent, (start, stop)) in enumerate(zip(tensor.shape, wanted.bounds, strict=True)):
                steps = np.arange(start, stop, dtype=np.uint64)
                numbers *= np.uint64(extent)
                numbers += steps.reshape((-1,) + (1,) * (len(tensor.shape) - axis - 1))
            return _normal_stored(numbers, sigma, seed, tensor.precision)
        case _:
            assert_never(fill)


def _normal_stored(
    numbers: npt.NDArray[np.uint64], sigma: float, seed: int, precision: Precision
) -> npt.NDArray[np.generic]:
    values = np.empty(numbers.size, dtype=np.float64)
    standard_normal(numbers.reshape(-1), np.uint64(seed), values)
    return stored(values.reshape(numbers.shape) * sigma, precision)


@final
class RandomTensors(Mapping[str, npt.NDArray[np.generic]]):
    """Inputs and parameters of a graph by name, made from their fills whenever they are asked for.

    Raises:
        InvalidInput: an input or parameter without a fill.
    """

    def __init__(self, graph: Graph, seed: int) -> None:
        self._sources: dict[str, tuple[Fill, TensorType, int]] = {}
        for number, (argument, fill) in enumerate(zip(graph.block.arguments, graph.fills, strict=True)):
            value = graph.block.values[argument]
            if fill is None:
                raise InvalidInput(
                    "the model says no fill for it, so there are no random values",
                    stage="random values",
                    subject=value.name,
                    nodes=(value.name,),
                    next_step="bring values, or give it a fill in the model",
                )
            self._sources[value.name] = (fill, value.type, tensor_seed(seed, number))

    def __getitem__(self, name: str) -> npt.NDArray[np.generic]:
        """The values, as they are stored."""
        fill, tensor, seed = self._sources[name]
        return filled(fill, tensor, seed)

    def __iter__(self) -> Iterator[str]:
        """Inputs, then parameters."""
        return iter(self._sources)

    def __len__(self) -> int:
        """Inputs and parameters."""
        return len(self._sources)


def _split_mix(state: int) -> int:
    """The number that SplitMix64 gives first from ``state``."""
    mixed = (state + _GOLDEN) & _MASK
    mixed = (mixed ^ mixed >> 30) * _FIRST & _MASK
    mixed = (mixed ^ mixed >> 27) * _SECOND & _MASK
    return mixed ^ mixed >> 31


@compiled
def standard_normal(
    numbers: npt.NDArray[np.uint64], seed: np.uint64, values: npt.NDArray[np.float64]
) -> None:
    """Standard normal numbers.

    Args:
        numbers: [n], which elements.
        seed: of the tensor.
        values: [n], written.
    """
    for index in range(len(numbers)):
        mixed = (seed ^ numbers[index]) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed = mixed ^ (mixed >> np.uint64(31))
        values[index] = inverse_normal((float(mixed >> np.uint64(12)) + 0.5) * 2.0**-52)


@compiled
def inverse_normal(probability: float) -> float:
    """The number that a standard normal one stays below with ``probability``, inside (0, 1)."""
    centred = probability - 0.5
    if abs(centred) <= 0.425:
        r = 0.180625 - centred * centred
        above = (
            ((((((2509.0809287301226727 * r + 33430.575583588128105) * r + 67265.770927008700853) * r
            + 45921.953931549871457) * r + 13731.693765509461125) * r + 1971.5909503065514427) * r
            + 133.14166789178437745) * r + 3.387132872796366608
        )  # fmt: skip
        below = (
            ((((((5226.495278852545925 * r + 28729.085735721942674) * r + 39307.89580009271061) * r
            + 21213.794301586595867) * r + 5394.1960214247511077) * r + 687.1870074920579083) * r
            + 42.313330701600911252) * r + 1.0
        )  # fmt: skip
        return centred * above / below
    tail = probability if centred < 0 else 1.0 - probability
    r = np.sqrt(-_logarithm(tail))
    if r <= 5.0:
        r -= 1.6
        above = (
            ((((((7.7454501427834140764e-4 * r + 0.0227238449892691845833) * r + 0.24178072517745061177) * r
            + 1.27045825245236838258) * r + 3.64784832476320460504) * r + 5.7694972214606914055) * r
            + 4.6303378461565452959) * r + 1.42343711074968357734
        )  # fmt: skip
        below = (
            ((((((1.05075007164441684324e-9 * r + 5.475938084995344946e-4) * r
            + 0.0151986665636164571966) * r + 0.14810397642748007459) * r + 0.68976733498510000455) * r
            + 1.6763848301838038494) * r + 2.05319162663775882187) * r + 1.0
        )  # fmt: skip
    else:
        r -= 5.0
        above = (
            ((((((2.01033439929228813265e-7 * r + 2.71155556874348757815e-5) * r
            + 0.0012426609473880784386) * r + 0.026532189526576123093) * r + 0.29656057182850489123) * r
            + 1.7848265399172913358) * r + 5.4637849111641143699) * r + 6.6579046435011037772
        )  # fmt: skip
        below = (
            ((((((2.04426310338993978564e-15 * r + 1.4215117583164458887e-7) * r
            + 1.8463183175100546818e-5) * r + 7.868691311456132591e-4) * r + 0.0148753612908506148525) * r
            + 0.13692988092273580531) * r + 0.59983220655588793769) * r + 1.0
        )  # fmt: skip
    return above / below if centred > 0 else -above / below


@compiled
def _logarithm(number: float) -> float:
    """Natural logarithm of m * 2^e inside (0, 1), m in [1/2, 1): e ln 2 + 2 artanh((m - 1) / (m + 1))."""
    exponent = 0
    while number < 0.5:
        number *= 2.0
        exponent -= 1
    ratio = (number - 1.0) / (number + 1.0)
    square = ratio * ratio
    total = 0.0
    for power in range(33, 0, -2):
        total = total * square + 1.0 / power
    return exponent * 0.6931471805599453 + 2.0 * ratio * total
