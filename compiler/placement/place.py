"""Places a low program: an address for every buffer, or why there is none.

Each distinct problem of a tile is solved once: bounds first, then first fit in every order of ``ORDERS``; the
first order that fits is taken. Three outcomes, never mixed:

- ``Placed``: every buffer has an address. ``compiler.placement.check`` says independently whether it is
  right.
- ``Infeasible``: some tile cannot hold what lives at one step; the bound that proves it is given.
- ``Unknown``: no order worked for some tile, and no bound says that none can.

**Not there:** a complete search, orders that learn from failures, a minimal set of requests that cannot
coexist, and use of the host's window by short-lived buffers. ``Unknown`` therefore still includes problems
that have a solution and problems that a stronger argument would refute.

Deterministic: by tile, request and order, without clocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

import numpy as np

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.geometry.owners import TileId
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram
from compiler.placement.bound import Bound, bounds_of
from compiler.placement.firstfit import ORDERS, Bases, Stuck, first_fit
from compiler.placement.ir import Placement
from compiler.placement.problem import Reserved, TileProblem, problems_of

STAGE = "placement"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """Everything has an address."""

    placement: Placement


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Infeasible:
    """Nothing can fit.

    Args:
        problem: the first tile's problem that has no solution.
        bound: the proof, with a positive shortfall.
        tiles: tiles with the same problem.
    """

    problem: TileProblem
    bound: Bound
    tiles: tuple[TileId, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unknown:
    """No order fits, and nothing proves that none can.

    Args:
        problem: the first tile's problem without a solution.
        stuck: where each order of ``ORDERS`` ended.
        bounds: the problem's bounds, all met.
        tiles: tiles with the same problem.
    """

    problem: TileProblem
    stuck: tuple[Stuck, ...]
    bounds: tuple[Bound, ...]
    tiles: tuple[TileId, ...]


Outcome: TypeAlias = Placed | Infeasible | Unknown


def place(program: LowProgram, reserved: Sequence[Reserved]) -> Placement:
    """The addresses of a program.

    Args:
        program: a well-formed program.
        reserved: ranges that no buffer may have.

    Raises:
        DoesNotFit: it is proven that nothing fits, or nothing was found; the message says which.
        ValueError: a reserved range is of no tile.
    """
    outcome = attempt(program, reserved)
    match outcome:
        case Placed(placement=placement):
            return placement
        case Infeasible() | Unknown():
            raise refusal(program, outcome)
        case _:
            assert_never(outcome)


def attempt(program: LowProgram, reserved: Sequence[Reserved]) -> Outcome:
    """Which of the three outcomes a program has; errors as :func:`place`, but for those two."""
    problems = problems_of(program, reserved)
    classes: dict[bytes, list[TileProblem]] = {}
    for problem in problems:
        classes.setdefault(problem.digest(), []).append(problem)
    address = np.zeros(len(program.buffers.tile), dtype=np.int64)
    stride = np.zeros(len(program.sequences.first), dtype=np.int64)
    unknown: Unknown | None = None
    for alike in classes.values():
        tiles = tuple(problem.tile for problem in alike)
        solved = _solve(alike[0], tiles)
        match solved:
            case Infeasible():
                return solved
            case Unknown():
                # A later tile may yet be proven infeasible, which says more.
                unknown = solved if unknown is None else unknown
            case Bases():
                for problem in alike:
                    address[problem.buffer] = solved.base[problem.request] + problem.offset
                    of_sequence = problem.sequence != NO_ROW
                    stride[problem.sequence[of_sequence]] = problem.stride[of_sequence]
            case _:
                assert_never(solved)
    if unknown is not None:
        return unknown
    address.flags.writeable = stride.flags.writeable = False
    return Placed(placement=Placement(address=address, stride=stride))


def _solve(problem: TileProblem, tiles: tuple[TileId, ...]) -> Bases | Infeasible | Unknown:
    bounds = bounds_of(problem)
    for bound in bounds:
        if bound.shortfall > 0:
            return Infeasible(problem=problem, bound=bound, tiles=tiles)
    stuck: list[Stuck] = []
    for order in ORDERS.values():
        found = first_fit(problem, order)
        if isinstance(found, Bases):
            return found
        stuck.append(found)
    return Unknown(problem=problem, stuck=tuple(stuck), bounds=bounds, tiles=tiles)


def refusal(program: LowProgram, outcome: Infeasible | Unknown) -> DoesNotFit:
    """The error that tells a user of an outcome."""
    problem = outcome.problem
    others = f" (and {len(outcome.tiles) - 1} more tiles alike)" if len(outcome.tiles) > 1 else ""
    subject = f"tile {problem.tile}{others}"
    match outcome:
        case Infeasible(bound=bound):
            concerned = _nodes(program, problem.buffer[list(bound.spans)])
            return DoesNotFit(
                f"what lives at step {problem.steps[bound.rank]} needs more than is free in "
                f"{bound.space.value}, however it is placed",
                stage=STAGE,
                subject=subject,
                next_step="split the operations named above over more tiles, or lower their precision",
                numbers=(_measure(problem, bound),),
                nodes=concerned,
            )
        case Unknown(stuck=stuck, bounds=bounds):
            requests = sorted({attempt.request for attempt in stuck})
            concerned = _nodes(program, problem.buffer[np.isin(problem.request, requests)])
            return DoesNotFit(
                f"none of {len(stuck)} orders of placing {len(problem.alignment)} requests fits; "
                "that none can is not proven",
                stage=STAGE,
                subject=subject,
                next_step="leave more room: split the operations named above, or reserve less",
                numbers=[_measure(problem, bound) for bound in bounds],
                nodes=concerned,
            )
        case _:
            assert_never(outcome)


def _nodes(program: LowProgram, buffers: Column) -> list[str]:
    rows = sorted({int(node) for node in program.buffers.node[buffers]})
    return [program.nodes[row] for row in rows]


def _measure(problem: TileProblem, bound: Bound) -> Measure:
    return Measure(
        name=f"{bound.space.value} at step {problem.steps[bound.rank]}",
        value=bound.needed,
        unit="bytes",
        kind=NumberKind.BOUND,
        limit=bound.free,
    )
