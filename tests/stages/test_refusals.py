"""Every check inside a stage can fail: what a broken part gives is caught before it becomes a result."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions, PackageOptions, SimulationOptions
from compiler.errors import InternalError, InvalidInput
from compiler.evaluation.artifacts import (
    HOST_FILES,
    EmissionInputs,
    FinalPlacementInputs,
    SimulationInputs,
)
from compiler.evaluation.stage_emission import emitted
from compiler.evaluation.stage_final_placement import FINAL_PLACEMENT
from compiler.evaluation.stage_simulation import SIMULATION, simulated
from compiler.exchange.artifacts import EncodedRows
from compiler.exchange.codec import ROW_RESERVATIONS, ROWS
from compiler.low.codec import LOW_PROGRAM
from compiler.low.ir import LowProgram
from compiler.models.skeleton import SkeletonOptions
from compiler.models.stage_program import written
from compiler.package.artifacts import IMAGE, SUPPORT
from compiler.package.format import read_package, write_package
from compiler.placement.codec import PLACEMENT
from compiler.placement.ir import Placement
from compiler.placement.place import Placed
from compiler.store.canonical import JsonValue
from compiler.store.codec import BYTES, Codec
from compiler.store.digest import Digest
from compiler.store.layout import Mode
from compiler.store.stage import Artifact, Outcome, Stage, StageRunner
from compiler.store.store import Store
from tests.stages.builds import SMALL, opened


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """One that is off: what these tests break is kept nowhere."""
    return opened(tmp_path / "store", mode=Mode.OFF)


def emission_inputs(results: Results) -> EmissionInputs:
    """Those of the warm build."""
    sized = results["support_sizing"]
    return EmissionInputs(
        program=results["expansion"].part("program", LOW_PROGRAM),
        placement=results["final_placement"].part("placement", PLACEMENT),
        code=sized.part("code", IMAGE),
        support=sized.part("support", SUPPORT),
        row_reservations=sized.part("row_reservations", ROW_RESERVATIONS),
    )


class _Broken(Outcome[Any]):
    """Something that no stage gave."""

    def __init__(self, artifact: Artifact[Any]) -> None:
        self._artifact = artifact

    @property
    def digest(self) -> Digest:
        """Of its bytes."""
        return self._artifact.digest

    def value(self) -> Any:  # noqa: ANN401  # whatever it is
        """The value."""
        return self._artifact.value()

    def source(self) -> JsonValue:
        """Where it is found again."""
        return self._artifact.source()

    def part(self, name: str, codec: Codec[Any]) -> Artifact[Any]:
        """It has none."""
        raise KeyError(name, codec)

    @property
    def failure(self) -> None:
        """It did not fail."""


class Through(StageRunner):
    """Runs stages through the store, and breaks the rows of the last phase."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, stage: Stage[Any, Any, Any], inputs: object, options: object) -> Outcome[Any]:
        """What a stage gave, broken if it is rows."""
        result = self._store.run(stage, inputs, options)
        if stage.name != "exchange.rows":
            return result
        *others, last = result.value()
        words = last.rows.words.copy()
        words[last.sites.word[-1]] ^= np.uint32(1)
        broken: tuple[EncodedRows, ...] = (
            *others,
            EncodedRows(rows=replace(last.rows, words=words), sites=last.sites, patches=last.patches),
        )
        return _Broken(self._store.put(broken, ROWS))


def test_rows_that_deliver_elsewhere_are_never_emitted(store: Store, warm: tuple[Path, Results]) -> None:
    """XR-06, on the path that every package takes."""
    with pytest.raises(InternalError, match=r"delivery check.*exchange step") as refused:
        emitted(emission_inputs(warm[1]), BuildOptions(), Through(store))
    assert "its rows do not do what was asked for" in str(refused.value)
    emitted(emission_inputs(warm[1]), BuildOptions(), store)  # nothing else was wrong


def test_a_placement_that_breaks_its_rules_is_no_result(
    store: Store, warm: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    def all_at_one_place(program: LowProgram, _: object) -> Placed:
        placement = Placement(
            address=np.full(len(program.buffers.tile), 0x60000, dtype=np.int64),
            stride=np.full(len(program.sequences.first), 64, dtype=np.int64),
        )
        return Placed(placement=placement, classes=1, tiles=1)

    monkeypatch.setattr("compiler.evaluation.stage_final_placement.place_counted", all_at_one_place)
    inputs = FinalPlacementInputs(
        program=warm[1]["expansion"].part("program", LOW_PROGRAM),
        support=warm[1]["support_sizing"].part("support", SUPPORT),
    )
    with pytest.raises(InternalError, match=r"placement check.*the placement breaks its rules: tile 0"):
        store.run(FINAL_PLACEMENT, inputs, BuildOptions())


def test_a_program_that_breaks_its_rules_is_no_result(
    warm: tuple[Path, Results], monkeypatch: pytest.MonkeyPatch
) -> None:
    program: LowProgram = warm[1]["expansion"].value().program
    moved = replace(program.transfers, byte_count=program.transfers.byte_count - 1)

    def without_a_byte(_: SkeletonOptions) -> LowProgram:
        return replace(program, transfers=moved)

    monkeypatch.setattr("compiler.models.stage_program.skeleton", without_a_byte)
    with pytest.raises(InternalError, match=r"expansion.*the program breaks its rules: transfers 0: words"):
        written(SkeletonOptions(), None)


def test_a_package_that_computes_something_else_is_told_apart(
    store: Store, warm: tuple[Path, Results]
) -> None:
    """The program multiplies by the other weights first; the package does not."""
    program: LowProgram = warm[1]["expansion"].value().program
    names = {"w0": "w1", "w1": "w0"}
    swapped = replace(
        program,
        values=tuple(replace(value, name=names.get(value.name, value.name)) for value in program.values),
    )
    found = simulated(
        SimulationInputs(
            program=store.put(swapped, LOW_PROGRAM),
            package=warm[1]["emission"].part("package", BYTES),
            host_files=warm[1]["emission"].part("host_files", HOST_FILES),
        ),
        BuildOptions(),
    )
    assert len(found.differences) == 2
    assert found.differences[0].startswith("run 0, output y: ")
    assert "elements differ from the low program's, the first at [" in found.differences[0]


def test_a_package_that_does_not_run_is_an_error(store: Store, warm: tuple[Path, Results]) -> None:
    """Its code is gone from the tile that starts first."""
    emission = warm[1]["emission"]
    application = read_package(emission.read("package"), name="package")
    first, *others = application.tiles
    segments = tuple(
        replace(segment, data=bytes(len(segment.data))) if segment.address == first.entry_point else segment
        for segment in first.segments
    )
    broken = replace(application, tiles=(replace(first, segments=segments), *others))
    inputs = SimulationInputs(
        program=warm[1]["expansion"].part("program", LOW_PROGRAM),
        package=store.put(write_package(broken), BYTES),
        host_files=emission.part("host_files", HOST_FILES),
    )
    with pytest.raises(InternalError, match=r"simulation.*the device stopped"):
        store.run(SIMULATION, inputs, BuildOptions())


def test_options_reach_the_package_and_its_simulation(store: Store, warm: tuple[Path, Results]) -> None:
    """A package for two runs ends after two, and other seeds are other inputs."""
    two = build(store, SMALL, BuildOptions(package=PackageOptions(runs=2)))
    assert two["emission"].digest != warm[1]["emission"].digest
    assert two["simulation"].value().differences == ()
    assert two["simulation"].value().outputs["y"].shape == (2, 3, 32)
    with pytest.raises(InvalidInput, match="its program has ended after the runs"):
        build(
            store,
            SMALL,
            BuildOptions(package=PackageOptions(runs=1), simulation=SimulationOptions(runs=2)),
        )
    inputs = SimulationInputs(
        program=two["expansion"].part("program", LOW_PROGRAM),
        package=two["emission"].part("package", BYTES),
        host_files=two["emission"].part("host_files", HOST_FILES),
    )
    other = store.run(SIMULATION, inputs, BuildOptions(simulation=SimulationOptions(seed=5))).value()
    assert other.differences == ()
    assert not np.array_equal(other.outputs["y"], two["simulation"].value().outputs["y"])
