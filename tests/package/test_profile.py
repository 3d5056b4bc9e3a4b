"""Profiled packages: every step sampled on every tile, a plan beside it, and the same results as without.

Independent of the emitters: what is found is the samples of the simulator, and what they must be follows from
the schedule, from kernels' formulas and from the barrier times that the simulator records by itself.
"""

from dataclasses import replace
from typing import Final

import numpy as np
import numpy.typing as npt
import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions, PackageOptions, SimulationOptions
from compiler.errors import PackageInvalid
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step
from compiler.low.prices import work_of_steps
from compiler.package.format import read_package, read_profile, write_profile
from compiler.package.profile import REMAINDER, SAMPLES
from compiler.package.records import Application, ExchangeActivityKind, Profile, StepKind
from compiler.report.profile import profile_of, step_spans
from compiler.simulator.application import RunResult, Simulator
from compiler.simulator.timeline import FIRST_SAMPLE, LAST_SAMPLE, MeetingKind
from compiler.store.layout import Mode
from compiler.store.store import Store
from compiler.tables import table_digests
from compiler.target.tiles import TILE_COUNT, physical_tiles
from tests.stages.builds import SMALL

SAMPLING: Final = 150
"""Cycles that taking a sample costs at most."""


def built(tmp: pytest.TempPathFactory, *, profile: bool) -> Results:
    options = BuildOptions(
        package=PackageOptions(profile=profile), simulation=SimulationOptions(runs=1, seed=3)
    )
    with Store.open(tmp.mktemp("store"), mode=Mode.USE, strict=True, tables=table_digests()) as store:
        results = build(store, SMALL, options)
        for result in results.values():
            result.value()
        return results


@pytest.fixture(scope="module")
def profiled(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return built(tmp_path_factory, profile=True)


@pytest.fixture(scope="module")
def application(profiled: Results) -> Application:
    return read_package(profiled["emission"].value().package, name="profiled")


@pytest.fixture(scope="module")
def run(application: Application) -> RunResult:
    """A run with everything zero."""
    simulator = Simulator(application)
    files = [
        {binding.name: bytes(sum(part.size for part in binding.slices)) for binding in bindings}
        for bindings in (application.weights, application.inputs)
    ]
    assert simulator.initialize(files[0]).is_complete
    result = simulator.run(files[1])
    assert result.is_complete
    return result


@pytest.fixture(scope="module")
def samples(run: RunResult) -> npt.NDArray[np.int64]:
    """[tiles, samples] clocks."""
    return np.frombuffer(run.outputs[SAMPLES], "<u4").reshape(TILE_COUNT, -1).astype(np.int64)


def flat(steps: tuple[Step, ...]) -> list[Step]:
    """Steps in the order in which their ends are reached the first time."""
    found: list[Step] = []
    for step in steps:
        found += [*flat(step.body), step] if isinstance(step, RepeatStep) else [step]
    return found


def test_a_profiled_package_computes_the_same(
    profiled: Results, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Profiling is a flavour: other cycles and another package, the same numbers."""
    plain = built(tmp_path_factory, profile=False)
    assert profiled["simulation"].value().differences == plain["simulation"].value().differences == ()
    for name, values in plain["simulation"].value().outputs.items():
        assert np.array_equal(values, profiled["simulation"].value().outputs[name])
    assert profiled["emission"].value().package != plain["emission"].value().package
    assert read_package(plain["emission"].value().package, name="plain").profile_tiles == ()


def test_samples_ascend_and_lie_between_those_of_the_run(
    samples: npt.NDArray[np.int64], run: RunResult
) -> None:
    first, last = (np.frombuffer(run.outputs[name], "<u4") for name in (FIRST_SAMPLE, LAST_SAMPLE))
    assert (np.diff(samples, axis=1) > 0).all()
    assert (samples[:, 0] > first).all()
    assert (samples[:, -1] < last).all()


def test_the_plan_is_the_program(profiled: Results, application: Application) -> None:
    """Kinds, cycles by formulas, and rows with what they send and receive, of every tile."""
    program: LowProgram = profiled["expansion"].value().program
    steps = flat(program.steps)
    work = work_of_steps(program, 1 + max(step.step for step in steps))
    assert [plan.physical_tile for plan in application.profile_tiles] == list(range(TILE_COUNT))
    physical: list[int] = physical_tiles(np.arange(program.tile_count, dtype=np.int64)).tolist()
    sent = received = 0
    for plan in application.profile_tiles:
        assert [step.local_index for step in plan.steps] == list(range(len(steps)))
        for planned, step in zip(plan.steps, steps, strict=True):
            remarks = {entry.name: entry.value for entry in planned.metadata}
            assert remarks["step"] == str(step.step)
            match step:
                case RepeatStep():
                    assert planned.operation == REMAINDER
                case ComputeStep() if plan.physical_tile in physical:
                    cycles = int(work[step.step, physical.index(plan.physical_tile)])
                    assert (planned.kind is StepKind.COMPUTE) == (cycles > 0)
                    assert remarks.get("cycles", "0") == str(cycles)
                case ExchangeStep() if planned.kind is StepKind.EXCHANGE:
                    for activity in planned.exchange_activities:
                        assert 0 <= activity.start_cycle < activity.end_cycle <= planned.exchange_event_cycles
                        words = (activity.end_cycle - activity.start_cycle) * (2 if activity.paired else 1)
                        sent += words * (activity.kind is ExchangeActivityKind.SEND) * activity.fanout
                        received += words * (activity.kind is ExchangeActivityKind.RECEIVE)
                case _:
                    assert planned.kind is StepKind.IDLE
    moved = program.transfers.byte_count[program.recipients.transfer].sum() // 4
    assert sent == received == moved


def test_spans_are_what_was_planned_and_a_sample(
    profiled: Results, application: Application, run: RunResult
) -> None:
    """A compute step takes its formulas; an exchange ends its phase; a Repeat takes its other iterations."""
    profile = profile_of(application, run.outputs[SAMPLES])
    assert read_profile(write_profile(profile), name="again") == profile
    spans = step_spans(application.profile_tiles, profile, "profile")
    steps = flat(profiled["expansion"].value().program.steps)
    assert [span.step for span in spans] == [str(step.step) for step in steps]
    for span in spans:
        if span.kind is StepKind.SYNCHRONIZATION:
            continue
        assert span.planned is not None
        assert abs(span.found - SAMPLING / 2 - span.planned) <= SAMPLING / 2 + 0.02 * span.planned
        assert span.shortest <= span.found <= span.longest
    for number, step in enumerate(steps):
        if isinstance(step, RepeatStep):
            body = spans[number - len(step.body) : number]
            once = sum(span.found for span in body)
            rest = (step.count - 1) * once
            assert 0.5 * rest <= spans[number].found <= rest + SAMPLING
    barriers = [meeting for meeting in run.timeline if meeting.kind is MeetingKind.EXCHANGE]
    first = next(span for span in spans if span.kind is StepKind.EXCHANGE)
    assert barriers[0].end - barriers[0].release <= first.found


def test_profiles_of_others_are_refused(application: Application, run: RunResult) -> None:
    profile = profile_of(application, run.outputs[SAMPLES])
    short = replace(profile, tiles=profile.tiles[:-1])
    for wrong, plans in ((short, application.profile_tiles), (profile, ())):
        with pytest.raises(PackageInvalid) as refusal:
            step_spans(plans, wrong, "run.profile")
        assert "invalid package (profile): run.profile: it is not about the tiles and steps" in str(
            refusal.value
        )
    assert isinstance(short, Profile)
