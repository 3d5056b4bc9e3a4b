"""Emitted packages of all tiles: outputs, the slow device of ``tests.package``, and kernels by meaning."""

from functools import partial

import numpy as np
import pytest

from compiler.errors import NumberKind
from compiler.kernels.registry import cycles_of_call, execute
from compiler.low.ir import Role
from compiler.package.host import pack, unpack
from compiler.package.records import Application
from compiler.simulator.application import RunResult, SimulationOptions, Simulator
from compiler.simulator.functional import Meaning
from compiler.simulator.timeline import MeetingKind
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import PhysicalTile
from tests.low.skeletons import expected as skeleton_expected
from tests.low.skeletons import random_input, random_parameters
from tests.package.emitted import Emitted, device_of, emitted, parameter_file
from tests.package.test_emission_skeleton import OPTIONS, emit_skeleton
from tests.package.toy import Data, Toy, expected, random_data
from tests.simulator.packages import finished

TOY = Toy(iterations=3, more=1500)


@pytest.fixture(scope="module")
def package() -> Emitted:
    return emitted(TOY, runs=2)


def weights(application: Application, data: Data, toy: Toy) -> dict[str, bytes]:
    """Files by name, cut out of the file of the call."""
    whole, at = parameter_file(toy, data), 0
    files: dict[str, bytes] = {}
    for binding in application.weights:
        size = max(part.file_offset + part.size for part in binding.slices)
        files[binding.name] = whole[at : at + size]
        at += size
    return files


def x_file(data: Data) -> dict[str, bytes]:
    return {"x": data.x.astype("<u4").tobytes()}


def check(toy: Toy, data: Data, result: RunResult) -> None:
    y, records = expected(toy, data)
    assert np.array_equal(np.frombuffer(result.outputs["y"], "<u4").reshape(y.shape), y)
    for iteration, record in enumerate(records):
        found = np.frombuffer(result.outputs[f"record{iteration}"], "<u4")
        assert np.array_equal(found.reshape(record.shape), record)


def test_weights_stay_and_every_run_has_its_own_input(package: Emitted) -> None:
    """Lessons 21 and 22; the last run ends the program, and the state of all tiles is among the outputs."""
    data = random_data(TOY, 1)
    simulator = Simulator(package.application, SimulationOptions(threads=2))
    assert simulator.initialize(weights(package.application, data, TOY)).is_complete
    results: list[RunResult] = []
    for run in range(2):
        given = Data(x=random_data(TOY, 100 + run).x, weights=data.weights)
        result = finished(simulator, x_file(given))
        check(TOY, given, result)
        results.append(result)
    completion = np.frombuffer(results[-1].outputs["completion"], "<u4")
    assert completion.tolist() == [1] * TILE_COUNT
    cycles = [result.cycles.value for result in results if result.cycles is not None]
    for result in results:
        assert result.cycles is not None
        assert result.cycles.kind is NumberKind.SIMULATED
        assert sum(meeting.kind is MeetingKind.EXCHANGE for meeting in result.timeline) == 2 * TOY.iterations
    # Only where barriers fall between the slots of workers differs.
    assert abs(cycles[1] - cycles[0]) <= 6 * len(results[0].timeline)


def test_it_agrees_with_the_slow_device(package: Emitted) -> None:
    """Memory of every working tile, byte for byte, and what was never written."""
    data = random_data(TOY, 7)
    device = device_of(TOY, package.application)
    device.call("initialize", parameter_file(TOY, data))
    wanted = device.call("run", data.x.astype("<u4").tobytes())
    simulator = Simulator(package.application)
    simulator.initialize(weights(package.application, data, TOY))
    result = finished(simulator, x_file(data))
    roles = [value for value in package.inputs.program.values if value.role is Role.OUTPUT]
    assert b"".join(result.outputs[value.name] for value in roles) == wanted
    window = slice(0x50180 - 0x4C000, 0x50184 - 0x4C000)
    for placed in device.tiles:
        tile = simulator.tile(PhysicalTile(placed.physical))
        written = placed.tile.written(0x4C000, 638976)
        found = tile.written(0x4C000, 638976)
        # What closing a write leaves in the word of its answer is unknown here, and not modelled there.
        written[window] = found[window] = False
        assert np.array_equal(written, found)
        ours = np.frombuffer(tile.read(0x4C000, 638976), np.uint8)[written]
        theirs = np.frombuffer(placed.tile.read(0x4C000, 638976), np.uint8)[written]
        clocks = np.flatnonzero(ours != theirs)
        # Samples of the cycle counter differ: the slow device knows no common time.
        at = np.flatnonzero(written)[clocks] + 0x4C000
        assert ((at >= 0x58004) & (at < 0x5800C)).all()


def test_programs_without_end_serve_any_number_of_runs() -> None:
    toy = Toy(iterations=2)
    package = emitted(toy, runs=None)
    data = random_data(toy, 3)
    simulator = Simulator(package.application)
    simulator.initialize(weights(package.application, data, toy))
    for run in range(5):
        given = Data(x=random_data(toy, run).x, weights=data.weights)
        check(toy, given, finished(simulator, x_file(given)))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_meanings_of_kernels_give_the_bits_of_their_instructions(options: object) -> None:
    """The four-tile program, stepped through and by the semantics of the kernel families."""
    (chosen,) = [candidate for candidate in OPTIONS if candidate is options]
    emission = emit_skeleton(chosen, runs=1)
    application = emission.application
    layouts = {layout.name: layout for layout in emission.layouts}
    parameters, x = random_parameters(chosen, 11), random_input(chosen, 1)
    files = {name: pack(layouts[name], parameters[name]) for name in (b.name for b in application.weights)}
    families = ("copy", "gemm", "pointwise", "reduce")
    meanings = {
        symbol.name: Meaning(apply=partial(execute, symbol.name), cycles=partial(cycles_of_call, symbol.name))
        for symbol in application.debug_symbols
        if symbol.name.split(".")[0] in families
    }
    assert meanings
    results: list[RunResult] = []
    for options_of_run in (SimulationOptions(), SimulationOptions(meanings=meanings)):
        simulator = Simulator(application, options_of_run)
        assert simulator.initialize(files).is_complete
        results.append(finished(simulator, {"x": pack(layouts["x"], x)}))
    stepped, applied = results
    y = unpack(layouts["y"], stepped.outputs["y"])
    assert np.array_equal(y.astype(np.float16), skeleton_expected(chosen, parameters, x))
    assert applied.outputs["y"] == stepped.outputs["y"]
    assert stepped.cycles is not None
    assert applied.cycles is not None
    # Formulas instead of kernels; a call costs a little more than the stepped jump and return.
    assert applied.cycles.value == pytest.approx(stepped.cycles.value, rel=0.02)
    assert [meeting.delivered for meeting in applied.timeline] == [m.delivered for m in stepped.timeline]
