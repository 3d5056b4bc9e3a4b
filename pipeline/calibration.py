"""How far the formulas of the kernel families are from what their machine code takes.

Plans are chosen by formulas, so each family's is held against simulated cycles over a grid of calls: the call
that its sample describes, each of its options changed alone, and for each of these every extent changed alone
to a half, an odd third and a few. What a family refuses is no point of its grid.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import InternalError, InvalidInput
from compiler.kernels.contract import Binding
from compiler.target.units import Cycles
from pipeline.kernel_runs import run_call
from pipeline.kernel_samples import Sample, bind_sample, sample_of

STAGE: Final = "calibration"
LIMIT: Final = 0.02
"""Of the deviation of a formula from the simulated cycles, as a part of them."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One call.

    Args:
        symbol: of its kernel.
        options: those that are not as usual, like ``precision=f8``.
        shape: one number for each extent of the family's sample.
        estimated: cycles of the formula.
        simulated: cycles of the machine code.
    """

    symbol: str
    options: str
    shape: tuple[int, ...]
    estimated: Cycles
    simulated: Cycles

    @property
    def deviation(self) -> float:
        """The formula against the simulation: 0.01 is one percent too much."""
        return self.estimated / self.simulated - 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The grid of one family.

    Args:
        family: its name.
        extents: what the numbers of a shape are.
        points: at least one.
    """

    family: str
    extents: tuple[str, ...]
    points: tuple[Point, ...]

    def __post_init__(self) -> None:
        """There is a point."""
        if not self.points:
            raise ValueError(f"no call of {self.family} was measured")

    @property
    def worst(self) -> Point:
        """The point whose formula is furthest off."""
        return max(self.points, key=lambda point: abs(point.deviation))

    @property
    def sentence(self) -> str:
        """The family's formula in a sentence."""
        worst = self.worst
        return (
            f"the formula of {self.family} is at most {100 * abs(worst.deviation):.2f} % off, limit "
            f"{100 * LIMIT:.0f} %, at {len(self.points)} calls: {worst.estimated:,} cycles (estimated), "
            f"{worst.simulated:,} (simulated) for {','.join(map(str, worst.shape))}"
            f"{f' with {worst.options}' if worst.options else ''}"
        )

    @property
    def is_within_limit(self) -> bool:
        """Whether every formula is close enough."""
        return abs(self.worst.deviation) <= LIMIT


def calibrate(family: str) -> Calibration:
    """Run the grid of a family in the instruction simulator.

    Raises:
        InvalidInput: there is no such family.
        InternalError: a kernel stopped with a fault.
    """
    sample = sample_of(family)
    return Calibration(
        family=family,
        extents=sample.extents,
        points=tuple(_measured(*call) for call in _grid(family, sample)),
    )


def _grid(family: str, sample: Sample) -> Iterator[tuple[str, tuple[int, ...], Binding]]:
    """Options in words, shape and binding of each call that the family takes; every call once."""
    seen: set[tuple[str, tuple[int, ...]]] = set()
    for options in _options(sample):
        for shape in _shapes(sample.default):
            try:
                binding = bind_sample(family, shape, options)
            except InvalidInput:
                continue
            if (str(binding.symbol), shape) not in seen:
                seen.add((str(binding.symbol), shape))
                yield ", ".join(f"{name}={value}" for name, value in options.items()), shape, binding


def _options(sample: Sample) -> Iterator[Mapping[str, str]]:
    yield {}
    for name, values in sample.choices.items():
        yield from ({name: value} for value in values[1:])


def _shapes(default: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    yield default
    for axis, extent in enumerate(default):
        for changed in (extent // 2, extent // 3 | 1, 5, 4 * extent):
            if 0 < changed != extent:
                yield (*default[:axis], changed, *default[axis + 1 :])


def _measured(options: str, shape: tuple[int, ...], binding: Binding) -> Point:
    figures = run_call(binding)
    if figures.fault is not None:
        raise InternalError(
            f"the kernel stopped: {figures.fault}",
            stage=STAGE,
            subject=f"{binding.symbol} {','.join(map(str, shape))}",
            next_step="report this message",
        )
    return Point(
        symbol=str(binding.symbol),
        options=options,
        shape=shape,
        estimated=figures.estimated,
        simulated=figures.simulated,
    )
