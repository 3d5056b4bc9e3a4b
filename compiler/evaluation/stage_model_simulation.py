"""Stage ``simulation`` of a model: its package, run from its bytes and compared with the graph's reference.

Weights and inputs are those that the graph's fills and the seed say. They are uploaded as a user would,
packed by the descriptions beside the package; the simulator is given the package and nothing else, executes
every instruction, and finds memory that nobody wrote as NaN. The reference computes in binary32 from the same
stored numbers. Outputs have to be finite, close to it element by element, and alike as a whole (cosine).

=========================  =========  ==========================
products and casts         tolerance  cosine
=========================  =========  ==========================
none of them F8            0.03       more than 0.9999
some of them F8            0.2        more than 0.99
=========================  =========  ==========================

and a twentieth of the reference's magnitude on top. A mismatch is part of the result: cycles and outputs of a
wrong package are what one wants to look at.
"""

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from compiler.evaluation.artifacts import SIMULATED, ModelSimulationInputs, Simulated
from compiler.evaluation.faults import InjectChoices
from compiler.evaluation.running import SimulationChoices, model_runs, simulation_options
from compiler.geometry.precision import F8
from compiler.graph.codec import StoredGraph
from compiler.graph.evaluate import Numerics, evaluate
from compiler.graph.ir import Block, Cast, Gemm, Repeat
from compiler.graph.parameters import RandomTensors
from compiler.graph.rules import product_precision
from compiler.package.format import read_package
from compiler.simulator.application import Simulator
from compiler.store.codec import Single
from compiler.store.stage import Stage
from compiler.target.isa_decisions import IsaChoices

RELATIVE: Final = 0.05
ABSOLUTE: Final = 0.03
ABSOLUTE_F8: Final = 0.2
COSINE: Final = 0.9999
COSINE_F8: Final = 0.99


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


def simulated(inputs: ModelSimulationInputs, options: Options) -> Simulated:
    """Run the package.

    Raises:
        InternalError: the device stopped.
        InvalidInput: an input or parameter of the graph has no fill.
    """
    graph = StoredGraph(structure=inputs.structure.value(), labels=inputs.labels.value()).graph
    simulator = Simulator(
        read_package(inputs.package.value(), name="the package"),
        simulation_options(options.isa, options.workers),
    )
    choices = options.simulation
    reference = evaluate(graph, RandomTensors(graph, choices.seed), Numerics.F32)
    is_f8 = has_f8(graph.block)
    outputs: dict[str, list[npt.NDArray[np.float32]]] = {name: [] for name in reference}
    accuracy: dict[str, list[tuple[float, float]]] = {name: [] for name in reference}
    cycles: list[int] = []
    differences: list[str] = []
    runs = model_runs(
        simulator,
        graph,
        inputs.host_files.value(),
        seed=choices.seed,
        runs=choices.runs,
        fault=options.inject.fault,
    )
    for number, run in enumerate(runs):
        for name, wanted in reference.items():
            found = run.outputs[name]
            outputs[name].append(found)
            error, cosine, fault = compared(found, wanted, is_f8=is_f8)
            accuracy[name].append((error, cosine))
            if fault is not None:
                differences.append(f"run {number}, output {name}: {fault}")
        cycles.append(run.cycles.value)
    return Simulated(
        outputs={name: np.stack(found) for name, found in outputs.items()},
        cycles=np.array(cycles, dtype=np.int64),
        accuracy={name: np.array(found, dtype=np.float64) for name, found in accuracy.items()},
        differences=tuple(differences),
    )


def compared(
    found: npt.NDArray[np.float32], wanted: npt.NDArray[np.float32], *, is_f8: bool
) -> tuple[float, float, str | None]:
    """The largest difference, the cosine, and what is beyond the tolerance."""
    if not np.isfinite(found).all():
        place = _place(~np.isfinite(found))
        return float("inf"), 0.0, f"element {list(place)} is {found[place]}"
    absolute, least = (ABSOLUTE_F8, COSINE_F8) if is_f8 else (ABSOLUTE, COSINE)
    one, other = found.astype(np.float64), wanted.astype(np.float64)
    difference = np.abs(one - other)
    length = float(np.sqrt((one**2).sum() * (other**2).sum()))
    cosine = float((one * other).sum()) / length if length else float(not difference.any())
    beyond = difference > absolute + RELATIVE * np.abs(other)
    fault = None
    if beyond.any():
        place = _place(beyond)
        fault = (
            f"{int(beyond.sum()):,} of {found.size:,} elements are beyond the tolerance, the first at "
            f"{list(place)}: {found[place]} instead of {wanted[place]}"
        )
    elif cosine <= least:
        fault = f"its cosine with the reference is {cosine:.6f}, not more than {least}"
    return float(difference.max()), cosine, fault


def _place(wrong: npt.NDArray[np.bool_]) -> tuple[int, ...]:
    first = int(np.flatnonzero(wrong.reshape(-1))[0])
    return tuple(int(coordinate) for coordinate in np.unravel_index(first, wrong.shape))


def has_f8(block: Block) -> bool:
    """Whether a product of a block, bodies included, is of F8, or a cast rounds to it.

    Nothing else gives F8: views move what is there, and all other results are at least F16.
    """
    for node in block.nodes:
        match node.operation:
            case Gemm(precision=declared):
                left, right = (block.values[operand].type for operand in node.operands)
                found = isinstance(product_precision(declared, left, right), F8)
            case Cast(precision=precision):
                found = isinstance(precision, F8)
            case Repeat(body=body):
                found = has_f8(body)
            case _:
                found = False
        if found:
            return True
    return False


MODEL_SIMULATION: Final = Stage(
    name="simulation",
    module=__name__,
    format=1,
    inputs=ModelSimulationInputs,
    outputs=Single(codec=SIMULATED),
    reads=("simulation.seed", "simulation.runs", "inject.fault", "isa.overrides"),
    unkeyed=(("workers", 1),),
    tables=("target", "instructions", "decisions"),
    function=simulated,
)
