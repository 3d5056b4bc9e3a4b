"""Stage ``simulation``: a package, run from its bytes and compared with the program that it came from.

Weights and inputs are random and the same for the same seed. They are uploaded as a user would, packed by the
descriptions beside the package; the simulator is given the package and nothing else. The executor of low
programs computes the same from the tables alone. Outputs have to be equal to the bit (nearest-even mode);
where they differ is part of the result, which is why a mismatch is no error here: cycles and outputs of a
wrong package are what one wants to look at.
"""

from collections.abc import Mapping
from typing import Final, Protocol, assert_never

import numpy as np
import numpy.typing as npt

from compiler.evaluation.artifacts import SIMULATED, Simulated, SimulationInputs
from compiler.evaluation.faults import InjectChoices
from compiler.evaluation.running import (
    SimulationChoices,
    completed,
    falsified,
    layouts_of,
    simulation_options,
)
from compiler.geometry.precision import F8, F16, F32, decode_f143, encode_f143
from compiler.low.execute import Execution
from compiler.low.ir import HostValue, Role
from compiler.low.values import Elements
from compiler.package.format import read_package
from compiler.package.host import HostLayout, pack, unpack
from compiler.simulator.application import Simulator
from compiler.store.codec import Single
from compiler.store.stage import Stage
from compiler.target.isa_decisions import IsaChoices

Values = npt.NDArray[np.float32]


class Options(Protocol):
    """What is read of the options of a build."""

    @property
    def simulation(self) -> SimulationChoices:
        """How the package is tried."""
        ...

    @property
    def inject(self) -> InjectChoices:
        """What is made wrong on purpose."""
        ...

    @property
    def isa(self) -> IsaChoices:
        """Whose answers the package was built with, and is run with."""
        ...

    @property
    def workers(self) -> int:
        """Threads that may run tiles; changes no result."""
        ...


def simulated(inputs: SimulationInputs, options: Options) -> Simulated:
    """Run the package.

    Raises:
        InternalError: the device stopped.
    """
    program = inputs.program.value()
    layouts = {layout.name: layout for layout in layouts_of(inputs.host_files.value())}
    application = read_package(inputs.package.value(), name="the package")
    simulator = Simulator(application, simulation_options(options.isa, options.workers))
    executor = Execution(program)

    seed = options.simulation.seed
    weights = _random(program.values, Role.PARAMETER, seed, 0)
    completed(simulator.initialize(_files(layouts, weights)))
    executor.upload(_elements(program.values, weights))
    outputs = [value for value in program.values if value.role is Role.OUTPUT]
    found: dict[str, list[Values]] = {value.name: [] for value in outputs}
    cycles: list[int] = []
    differences: list[str] = []
    for run in range(options.simulation.runs):
        given = _random(program.values, Role.INPUT, seed, run + 1)
        result = falsified(completed(simulator.run(_files(layouts, given))), options.inject.fault)
        wanted = executor.run(_elements(program.values, given))
        for value in outputs:
            values = unpack(layouts[value.name], result.outputs[value.name])
            found[value.name].append(values)
            difference = _difference(values, _decoded(value, wanted[value.name]))
            if difference is not None:
                differences.append(f"run {run}, output {value.name}: {difference}")
        assert result.cycles is not None
        cycles.append(result.cycles.value)
    return Simulated(
        outputs={name: np.stack(values) for name, values in found.items()},
        cycles=np.array(cycles, dtype=np.int64),
        accuracy={},
        differences=tuple(differences),
    )


def _random(
    values: tuple[HostValue, ...], role: Role, seed: int, run: int
) -> dict[str, npt.NDArray[np.float64]]:
    """Values of every tensor of a role. Matrices are scaled by their rows, so that products stay small."""
    return {
        value.name: np.random.default_rng([seed, run, number]).standard_normal(value.shape)
        / (np.sqrt(value.shape[-2]) if role is Role.PARAMETER and len(value.shape) > 1 else 1.0)
        for number, value in enumerate(values)
        if value.role is role
    }


def _files(
    layouts: Mapping[str, HostLayout], values: Mapping[str, npt.NDArray[np.float64]]
) -> dict[str, bytes]:
    return {name: pack(layouts[name], array) for name, array in values.items()}


def _elements(
    values: tuple[HostValue, ...], arrays: Mapping[str, npt.NDArray[np.float64]]
) -> dict[str, Elements]:
    """The same values as the executor takes them: rounded to the precision of their tensor."""
    return {value.name: _encoded(value, arrays[value.name]) for value in values if value.name in arrays}


def _encoded(value: HostValue, array: npt.NDArray[np.float64]) -> Elements:
    precision = value.format.precision
    match precision:
        case F32() | F16():
            return array.astype(precision.dtype)
        case F8(scale_exponent=scale):
            return encode_f143(array, scale)
        case _:
            assert_never(precision)


def _decoded(value: HostValue, elements: Elements) -> Values:
    precision = value.format.precision
    match precision:
        case F32() | F16():
            return elements.astype(np.float32)
        case F8(scale_exponent=scale):
            return decode_f143(elements, scale)
        case _:
            assert_never(precision)


def _difference(found: Values, wanted: Values) -> str | None:
    """How two arrays differ in their bits; None when they do not."""
    wrong = np.flatnonzero(found.view(np.uint32).reshape(-1) != wanted.view(np.uint32).reshape(-1))
    if not len(wrong):
        return None
    place = tuple(int(coordinate) for coordinate in np.unravel_index(int(wrong[0]), found.shape))
    return (
        f"{len(wrong):,} of {found.size:,} elements differ from the low program's, the first at "
        f"{list(place)}: {found[place]} instead of {wanted[place]}"
    )


SIMULATION: Final = Stage(
    name="simulation",
    module=__name__,
    format=1,
    inputs=SimulationInputs,
    outputs=Single(codec=SIMULATED),
    reads=("simulation.seed", "simulation.runs", "inject.fault", "isa.overrides"),
    unkeyed=(("workers", 1),),
    tables=("target", "instructions", "decisions"),
    function=simulated,
)
