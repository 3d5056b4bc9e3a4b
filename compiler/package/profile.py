"""The profile plan: what each tile does between two samples of its clock.

A profiled package has one more output, ``profile.cycles``: for each tile, by physical number, as many words
as there are samples. Sample i is taken before step i of the plan, and the last one behind the last step, on
every tile alike; a tile that has nothing to do in a step samples all the same, and the plan says so. In a
Repeat, the first iteration is sampled; the others are one step, ``REMAINDER``.

What the plan says of a step is what was planned: cycles of its calls by their formulas (metadata
``cycles``), or the events of its row and what happens in it. ``report.profile`` sets samples against it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.exchange.events import WORDS_OF_PAIRED_ITEM
from compiler.exchange.ir import ScheduledExchange, ScheduledPhase
from compiler.low.ir import ComputeStep, ExchangeStep, LowProgram, RepeatStep, Step
from compiler.low.prices import cycles_of_bindings, work_of_steps
from compiler.low.steps import in_order
from compiler.package.records import (
    EXCHANGE_PHASE,
    NO_ACTIVITIES,
    ExchangeActivities,
    ExchangeActivityKind,
    MetadataEntry,
    ProfileStep,
    StepKind,
    TileProfilePlan,
)
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT, physical_to_logical
from compiler.target.units import Cycles, Int64Array, PhysicalTile

SAMPLES: Final = "profile.cycles"
"""Output of profiled packages: all samples."""

REMAINDER: Final = "repeat-remainder"
"""Operation of the step that stands for all iterations of a Repeat but the first."""

STEP: Final = "step"
"""Metadata: number of the step in the low program."""
CYCLES: Final = "cycles"
"""Metadata: cycles of the tile's calls and copies, by formulas."""


def sampled_steps(steps: tuple[Step, ...]) -> Iterator[Step]:
    """What lies between two samples, in order: compute and exchange steps, and a Repeat for its remainder."""
    for step in steps:
        if isinstance(step, RepeatStep):
            yield from sampled_steps(step.body)
        yield step


def sample_count(program: LowProgram) -> int:
    """Samples of each tile."""
    return 1 + sum(1 for _ in sampled_steps(program.steps))


def profile_plan(program: LowProgram, exchange: ScheduledExchange) -> tuple[TileProfilePlan, ...]:
    """The plan of all tiles, by physical number.

    Args:
        program: the program.
        exchange: its exchange steps, as they are emitted.
    """
    steps = tuple(sampled_steps(program.steps))
    work = work_of_steps(program, sum(1 for _ in in_order(program.steps)))
    leading = _leading(program, work.shape)
    rows = {step: _RowsOfPhase.of(phase) for step, phase in exchange.phases.items()}
    symbols = [str(binding.symbol) for binding in program.bindings]

    def planned(index: int, step: Step, tile: PhysicalTile, logical: int, passed: int) -> ProfileStep:
        number = (MetadataEntry(name=STEP, value=str(step.step)),)
        kind, phase, operation, kernel, cycles = StepKind.IDLE, passed, "", "", Cycles(0)
        activities = NO_ACTIVITIES
        match step:
            case ComputeStep() if logical < program.tile_count and work[step.step, logical]:
                kind = StepKind.COMPUTE
                operation = program.nodes[int(leading[1, step.step, logical])]
                kernel = symbols[int(leading[0, step.step, logical])]
                number += (MetadataEntry(name=CYCLES, value=str(int(work[step.step, logical]))),)
            case ExchangeStep():
                phase |= EXCHANGE_PHASE
                row = rows[step.step]
                if tile in row.horizon:
                    kind, operation = StepKind.EXCHANGE, row.operation
                    cycles, activities = row.horizon[tile], row.activities[tile]
            case RepeatStep():
                kind, operation = StepKind.SYNCHRONIZATION, REMAINDER
            case _:
                pass
        return ProfileStep(
            local_index=index,
            phase=phase,
            epoch=index,
            operation=operation,
            kind=kind,
            kernel=kernel,
            metadata=number,
            exchange_activities=activities,
            exchange_event_cycles=cycles,
        )

    passed = np.cumsum([isinstance(step, ExchangeStep) for step in steps]) - [
        isinstance(step, ExchangeStep) for step in steps
    ]
    return tuple(
        TileProfilePlan(
            physical_tile=PhysicalTile(tile),
            steps=tuple(
                planned(index, step, PhysicalTile(tile), int(physical_to_logical(PhysicalTile(tile))), before)
                for index, (step, before) in enumerate(zip(steps, passed.tolist(), strict=True))
            ),
        )
        for tile in range(TILE_COUNT)
    )


def _leading(program: LowProgram, shape: tuple[int, ...]) -> Int64Array:
    """[2, steps, tiles] binding and node of the call or copy that takes longest in each step of each tile."""
    tables = (program.calls, program.copies)
    step, tile, binding, node = (
        np.concatenate([getattr(table, column) for table in tables])
        for column in ("step", "tile", "binding", "node")
    )
    order = np.argsort(cycles_of_bindings(program)[binding], kind="stable")
    found = np.zeros((2, *shape), dtype=np.int64)
    # Of equal places the last one counts, which is the longest.
    found[:, step[order], tile[order]] = binding[order], node[order]
    return found


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RowsOfPhase:
    """The rows of a phase: for each tile that has one its events, and what happens in them."""

    operation: str
    horizon: dict[PhysicalTile, Cycles]
    activities: dict[PhysicalTile, ExchangeActivities]

    @staticmethod
    def of(phase: ScheduledPhase) -> "_RowsOfPhase":
        moves, schedule = phase.demand.transfers, phase.schedule
        paired = schedule.is_paired
        items = np.where(paired, moves.words // WORDS_OF_PAIRED_ITEM, moves.words)
        of = moves.transfer_of_recipient
        fanout = np.bincount(of, minlength=len(items))
        lent = np.flatnonzero(paired)
        everything = (
            (ExchangeActivityKind.SEND, moves.source, schedule.slot, items, fanout, paired),
            (ExchangeActivityKind.RECEIVE, moves.receiver, schedule.write, items[of], 0 * of, paired[of]),
            (
                ExchangeActivityKind.PARTNER_BUSY,
                moves.source[lent] ^ PARTNER_LANE,
                schedule.slot[lent],
                items[lent],
                0 * lent,
                paired[lent],
            ),
        )
        kind = np.concatenate([np.full(len(rows[1]), rows[0]) for rows in everything])
        tile, start, length, receivers, wide = (
            np.concatenate([rows[column] for rows in everything]) for column in range(1, 6)
        )
        order = np.lexsort((kind, start, tile))
        bounds = np.searchsorted(tile[order], np.arange(TILE_COUNT + 1))

        def activities(of_tile: int) -> ExchangeActivities:
            chosen = order[bounds[of_tile] : bounds[of_tile + 1]]
            return ExchangeActivities(
                kind=kind[chosen].astype(np.uint16),
                start_cycle=start[chosen].astype(np.uint32),
                end_cycle=(start + length)[chosen].astype(np.uint32),
                fanout=receivers[chosen].astype(np.uint16),
                paired=wide[chosen].astype(np.bool_),
            )

        tiles = [PhysicalTile(number) for number in schedule.tiles.tolist()]
        nodes: list[int] = np.unique(moves.node).tolist()
        return _RowsOfPhase(
            operation=", ".join(phase.demand.nodes[node] for node in nodes),
            horizon={
                number: Cycles(events)
                for number, events in zip(tiles, schedule.horizon.tolist(), strict=True)
            },
            activities={number: activities(number) for number in tiles},
        )
