"""Places a low program: an address for every buffer, or why there is none.

Tiles whose problems are equal are one class, and each class is solved once (``solve``). Three outcomes, never
mixed:

- ``Placed``: every buffer has an address. ``compiler.placement.check`` says independently whether it is
  right.
- ``Infeasible``: some tile cannot hold its buffers, proven by a bound or by a search that ended.
- ``Unknown``: some tile's problem was neither solved nor refuted within the search's nodes.

Deterministic: by tile, request and order, without clocks; search is limited by nodes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias, assert_never, final

import numpy as np

from compiler.geometry.owners import TileId
from compiler.low.ids import NO_ROW
from compiler.low.ir import LowProgram
from compiler.placement.explain import refusal_of_open, refusal_of_refuted
from compiler.placement.ir import Placement
from compiler.placement.problem import Reserved, TileProblem, problems_of, with_strides
from compiler.placement.solve import DEFAULT_NODES, Open, Refuted, Solution, solve


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Placed:
    """Everything has an address.

    Args:
        placement: the addresses.
        classes: how many distinct problems the tiles had.
        tiles: tiles with buffers.
    """

    placement: Placement
    classes: int
    tiles: int


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Infeasible:
    """Nothing can fit.

    Args:
        problem: the first tile's problem that has no solution.
        proof: why.
        tiles: tiles with the same problem.
    """

    problem: TileProblem
    proof: Refuted
    tiles: tuple[TileId, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unknown:
    """Nothing was found, and nothing proves that nothing fits.

    Args:
        problem: the first tile's problem without an answer.
        tried: what was tried.
        tiles: tiles with the same problem.
    """

    problem: TileProblem
    tried: Open
    tiles: tuple[TileId, ...]


Outcome: TypeAlias = Placed | Infeasible | Unknown


def place(program: LowProgram, reserved: Sequence[Reserved], nodes: int = DEFAULT_NODES) -> Placement:
    """The addresses of a program, as :func:`place_counted`."""
    return place_counted(program, reserved, nodes).placement


def place_counted(program: LowProgram, reserved: Sequence[Reserved], nodes: int = DEFAULT_NODES) -> Placed:
    """The addresses of a program, and how many distinct problems that took.

    Args:
        program: a well-formed program.
        reserved: ranges that no buffer may have.
        nodes: decisions that the search may make for each distinct problem.

    Raises:
        DoesNotFit: it is proven that nothing fits, or nothing was found; the message says which.
        ValueError: a reserved range is of no tile.
    """
    outcome = attempt(program, reserved, nodes)
    match outcome:
        case Placed():
            return outcome
        case Infeasible(problem=problem, proof=proof, tiles=tiles):
            raise refusal_of_refuted(program, problem, proof, tiles)
        case Unknown(problem=problem, tried=tried, tiles=tiles):
            raise refusal_of_open(program, problem, tried, tiles)
        case _:
            assert_never(outcome)


def attempt(program: LowProgram, reserved: Sequence[Reserved], nodes: int = DEFAULT_NODES) -> Outcome:
    """Which of the three outcomes a program has; errors as :func:`place_counted`, but for those two."""
    problems = problems_of(program, reserved)
    classes: dict[bytes, list[TileProblem]] = {}
    for problem in problems:
        classes.setdefault(problem.digest(), []).append(problem)
    address = np.zeros(len(program.buffers.tile), dtype=np.int64)
    stride = np.zeros(len(program.sequences.first), dtype=np.int64)
    unknown: Unknown | None = None
    for alike in classes.values():
        tiles = tuple(problem.tile for problem in alike)
        answer = solve(alike[0], nodes)
        match answer:
            case Refuted():
                return Infeasible(problem=alike[0], proof=answer, tiles=tiles)
            case Open():
                # A later tile may yet be proven infeasible, which says more.
                if unknown is None:
                    unknown = Unknown(problem=alike[0], tried=answer, tiles=tiles)
            case Solution(base=base, stride=strides):
                for problem in alike:
                    placed = with_strides(problem, strides)
                    address[placed.buffer] = base[placed.request] + placed.offset
                    of_sequence = placed.sequence != NO_ROW
                    stride[placed.sequence[of_sequence]] = strides[of_sequence]
            case _:
                assert_never(answer)
    if unknown is not None:
        return unknown
    address.flags.writeable = stride.flags.writeable = False
    return Placed(
        placement=Placement(address=address, stride=stride), classes=len(classes), tiles=len(problems)
    )
