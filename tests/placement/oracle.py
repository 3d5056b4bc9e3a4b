"""CP-SAT as the judge of placement problems: a model of its own, made from the low program.

Nothing is taken from the solver: addresses are variables in units of 4 bytes (every size, alignment and
border of the generated programs is a multiple), a sequence has a base and a stride, and what shares storage
lies at its displacement.
"""

from collections.abc import Sequence
from enum import Enum

import numpy as np
from ortools.sat.python import cp_model

from compiler.low.ids import NO_ROW
from compiler.low.ir import LowProgram
from compiler.placement.problem import Reserved, lifetimes
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END, STANDARD

UNIT = 4


class Judgement(Enum):
    """What CP-SAT says."""

    PLACED = "placed"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


def judge(program: LowProgram, tile: int, reserved: Sequence[Reserved], seconds: float) -> Judgement:
    """Whether the buffers of a tile can be placed, as far as CP-SAT finds out in so many seconds."""
    buffers = program.buffers
    first, last = lifetimes(program)
    rows = np.flatnonzero(buffers.tile == tile).tolist()
    model = cp_model.CpModel()
    low, high = SRAM_BASE // UNIT, SRAM_END // UNIT
    strides: dict[int, cp_model.IntVar] = {}
    address: dict[int, cp_model.LinearExprT] = {}
    for row in rows:
        if buffers.root[row] == row and buffers.member[row] == 0:
            grain = max(1, int(buffers.alignment[row]) // UNIT)
            scaled = model.new_int_var(0, high // grain, f"base{row}")
            address[row] = grain * scaled
            sequence = int(buffers.sequence[row])
            if sequence != NO_ROW:
                strides[sequence] = model.new_int_var(0, high // grain, f"stride{sequence}")
                model.add(grain * strides[sequence] * UNIT >= int(buffers.byte_count[row]))
                for member in np.flatnonzero(buffers.sequence == sequence).tolist():
                    place = int(buffers.member[member])
                    address[member] = grain * scaled + grain * place * strides[sequence]
    for row in rows:
        if buffers.root[row] != row:
            address[row] = address[int(buffers.root[row])] + int(buffers.displacement[row]) // UNIT
    for row in rows:
        size = -(-int(buffers.byte_count[row]) // UNIT)
        base = INTERLEAVED.base // UNIT if buffers.interleaved[row] else low
        model.add(address[row] >= base)
        model.add(address[row] + size + int(buffers.tail[row]) // UNIT <= high)
        for range_ in reserved:
            if range_.tile == tile and range_.size:
                start, stop = range_.start // UNIT, (range_.start + range_.size) // UNIT
                _one_before_the_other(model, (address[row], size), (start, stop - start))
    for place, one in enumerate(rows):
        for other in rows[place + 1 :]:
            meet = first[one] <= last[other] and first[other] <= last[one]
            if meet and buffers.root[one] != buffers.root[other]:
                sizes = [-(-int(buffers.byte_count[row]) // UNIT) for row in (one, other)]
                _one_before_the_other(model, (address[one], sizes[0]), (address[other], sizes[1]))
    pairs = zip(program.separations.first.tolist(), program.separations.second.tolist(), strict=True)
    for one, other in pairs:
        if one in address and first[one] <= last[other] and first[other] <= last[one]:
            keys = [
                _elements(
                    model,
                    address[row],
                    (int(buffers.byte_count[row]) + int(buffers.tail[row])) // UNIT,
                    f"{row}of{one},{other}",
                )
                for row in (one, other)
            ]
            before = model.new_bool_var("")
            _if(before, model.add(keys[0][1] < keys[1][0]))
            _if(~before, model.add(keys[1][1] < keys[0][0]))
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = 1
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Judgement.PLACED
    return Judgement.INFEASIBLE if status == cp_model.INFEASIBLE else Judgement.UNKNOWN


def _one_before_the_other(
    model: cp_model.CpModel,
    one: tuple[cp_model.LinearExprT, int],
    other: tuple[cp_model.LinearExprT, int],
) -> None:
    before = model.new_bool_var("")
    _if(before, model.add(one[0] + one[1] <= other[0]))
    _if(~before, model.add(other[0] + other[1] <= one[0]))


def _elements(
    model: cp_model.CpModel, start: cp_model.LinearExprT, size: int, name: str
) -> tuple[cp_model.IntVar, cp_model.IntVar]:
    """Numbers of the elements of the first and the last unit of a range, counted from the bottom of SRAM."""
    border = STANDARD.end // UNIT
    standard, interleaved = STANDARD.element_size // UNIT, INTERLEAVED.element_size // UNIT
    below = STANDARD.size // STANDARD.element_size
    numbers: list[cp_model.IntVar] = []
    for end, position in (("first", start), ("last", start + size - 1)):
        number = model.new_int_var(0, 64, f"{end}{name}")
        is_standard = model.new_bool_var("")
        _if(is_standard, model.add(position < border))
        _if(~is_standard, model.add(position >= border))
        base = SRAM_BASE // UNIT
        _if(is_standard, model.add(number * standard <= position - base))
        _if(is_standard, model.add(position - base < (number + 1) * standard))
        _if(~is_standard, model.add((number - below) * interleaved <= position - border))
        _if(~is_standard, model.add(position - border < (number - below + 1) * interleaved))
        numbers.append(number)
    return numbers[0], numbers[1]


def _if(condition: cp_model.LiteralT, constraint: cp_model.Constraint) -> None:
    constraint.only_enforce_if(condition)  # pyright: ignore[reportUnknownMemberType]  # typed in part only
