"""A profile against its plan: how long each step of a package took, and what was planned.

Input: the plan of a profiled package, and samples of one run of it, from the simulator or a device. A span is
the time between two samples of one tile; it holds the cycles of taking one sample. The clocks of tiles are
words that wrap, and only differences of one tile's samples mean anything.

Steps are judged by the tile that decides. In a compute step that is the one that works longest. In an
exchange step tiles wait for each other, so the one that comes last has the shortest span, and that span is
what the exchange itself takes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from compiler.errors import PackageInvalid
from compiler.package.profile import CYCLES, STEP
from compiler.package.records import (
    Application,
    CycleSample,
    Profile,
    ProfileStep,
    StepKind,
    TileProfile,
    TileProfilePlan,
)
from compiler.target.costs import PHASE_RESIDUAL
from compiler.target.tiles import CLOCK_HERTZ
from compiler.target.units import Cycles, PhysicalTile

_WRAP: Final = 1 << 32


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpan:
    """One step of the plan.

    Args:
        index: its place in the plan.
        step: number in the low program.
        kind: what most tiles that do something in it do.
        tiles: that do something in it.
        operation: graph node, of the tile that was planned to take longest.
        kernel: symbol of its longest call; empty without one.
        planned: cycles of the tile that takes longest, by formulas or the schedule; None where nothing is
            planned, as for the remainder of a Repeat.
        longest: span of the slowest tile.
        shortest: span of the fastest tile that does something in it.
        deciding: physical tile that decides.
        found: its span.
    """

    index: int
    step: str
    kind: StepKind
    tiles: int
    operation: str
    kernel: str
    planned: int | None
    longest: int
    shortest: int
    deciding: PhysicalTile
    found: int


def profile_of(application: Application, file: bytes) -> Profile:
    """A profile from the samples that a run left.

    Args:
        application: the package.
        file: of its output ``profile.SAMPLES``.
    """
    counters = np.frombuffer(file, "<u4").reshape(len(application.profile_tiles), -1).tolist()
    return Profile(
        clock_hz=CLOCK_HERTZ,
        tiles=tuple(
            TileProfile(
                physical_tile=plan.physical_tile,
                samples=tuple(
                    CycleSample(step=step.local_index, start_cycle=Cycles(start), end_cycle=Cycles(end))
                    for step, start, end in zip(plan.steps, row[:-1], row[1:], strict=True)
                ),
            )
            for plan, row in zip(application.profile_tiles, counters, strict=True)
        ),
    )


def step_spans(plans: Sequence[TileProfilePlan], profile: Profile, name: str) -> tuple[StepSpan, ...]:
    """Each step of the plan and how long it took.

    Args:
        plans: of the package.
        profile: of a run of it.
        name: what to call the profile in errors.

    Raises:
        PackageInvalid: the profile is none of this package.
    """
    planned_tiles = [(plan.physical_tile, len(plan.steps)) for plan in plans]
    sampled = [(tile.physical_tile, len(tile.samples)) for tile in profile.tiles]
    if planned_tiles != sampled or not plans or len({count for _, count in planned_tiles}) > 1:
        raise PackageInvalid(
            "it is not about the tiles and steps of the package, which "
            + (
                f"has {planned_tiles[0][1]} on {len(plans):,} tiles"
                if plans
                else "was not built for profiling"
            ),
            stage="profile",
            subject=name,
            next_step="give a profile of a run of this package, built with --profile",
        )
    start, end = (
        np.array([[getattr(sample, field) for sample in tile.samples] for tile in profile.tiles], np.int64)
        for field in ("start_cycle", "end_cycle")
    )
    spans = (end - start) % _WRAP
    return tuple(
        _span([plan.steps[index] for plan in plans], plans, spans[:, index], index)
        for index in range(planned_tiles[0][1])
    )


def _span(
    steps: list[ProfileStep], plans: Sequence[TileProfilePlan], spans: npt.NDArray[np.int64], index: int
) -> StepSpan:
    active = np.array([step.kind is not StepKind.IDLE for step in steps])
    if not active.any():
        active[:] = True
    acting = np.flatnonzero(active)
    planned = [planned_cycles(steps[tile]) for tile in acting.tolist()]
    slowest = int(acting[int(np.argmax([cycles or 0 for cycles in planned]))])
    kind = steps[slowest].kind
    deciding = acting[spans[acting].argmin()] if kind is StepKind.EXCHANGE else acting[spans[acting].argmax()]
    remarks = {entry.name: entry.value for entry in steps[slowest].metadata}
    return StepSpan(
        index=index,
        step=remarks.get(STEP, ""),
        kind=kind,
        tiles=len(acting),
        operation=steps[slowest].operation,
        kernel=steps[slowest].kernel,
        planned=planned_cycles(steps[slowest]),
        longest=int(spans.max()),
        shortest=int(spans[acting].min()),
        deciding=plans[int(deciding)].physical_tile,
        found=int(spans[deciding]),
    )


def planned_cycles(step: ProfileStep) -> int | None:
    """What a step of a tile was planned to take; None where nothing was planned."""
    match step.kind:
        case StepKind.EXCHANGE:
            return int(step.exchange_event_cycles) + int(PHASE_RESIDUAL)
        case StepKind.COMPUTE:
            return next((int(entry.value) for entry in step.metadata if entry.name == CYCLES), None)
        case StepKind.SYNCHRONIZATION | StepKind.IDLE:
            return None
