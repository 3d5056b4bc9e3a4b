"""The checker finds each kind of violation, and all of them at once."""

import dataclasses
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from compiler.geometry.owners import TileId
from compiler.low.ir import LowProgram
from compiler.placement.check import Rule, check
from compiler.placement.ir import Placement
from compiler.placement.place import place
from compiler.placement.problem import Reserved, runtime_ranges
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from tests.placement.programs import Life, Lives, program_of

Addresses = npt.NDArray[np.int64]
_RESERVED = (*runtime_ranges(DEFAULT_LAYOUT, 2), Reserved(tile=TileId(1), start=0x7FF00, size=0))

_LIVES = Lives(
    lives=(
        Life(byte_count=64, first=0, last=1, alignment=32),
        Life(byte_count=64, first=1, last=2, interleaved=True, tail=32),
        Life(byte_count=128, first=0, last=2, aliases=((64, 64, 0, 2),)),
        Life(byte_count=16, first=0, last=2, members=3),
        Life(byte_count=64, first=2, last=2),
    ),
    apart=((0, 2), (0, 4)),
)
# Buffers: 0, 1, 2 with alias 3, members 4 5 6, 7, and the sink on tile 1.


def _placed() -> tuple[LowProgram, Placement]:
    program = program_of(_LIVES)
    return program, place(program, _RESERVED)


def _at(buffer: int, address: int) -> Callable[[Addresses], None]:
    def move(addresses: Addresses) -> None:
        addresses[buffer] = address

    return move


def _like(buffer: int, other: int, distance: int = 0) -> Callable[[Addresses], None]:
    def move(addresses: Addresses) -> None:
        addresses[buffer] = addresses[other] + distance

    return move


_CORRUPTIONS: list[tuple[Rule, tuple[int, ...], Callable[[Addresses], None]]] = [
    (Rule.RANGE, (0,), _at(0, SRAM_END - 32)),
    (Rule.RANGE, (1,), _at(1, SRAM_END - 64 - 8)),
    (Rule.ALIGNMENT, (0,), _at(0, INTERLEAVED.base + 0x8008)),
    (Rule.CLASS, (1,), _at(1, INTERLEAVED.base - 64)),
    (Rule.SHARING, (3,), _at(3, INTERLEAVED.base + 0x20000)),
    (Rule.SEQUENCE, (5,), _at(5, INTERLEAVED.base + 0x20000)),
    (Rule.RESERVED, (0,), _at(0, SRAM_BASE)),
    (Rule.OVERLAP, (0, 1), _like(0, 1)),
    (Rule.SEPARATION, (0, 2), _like(0, 2, 256)),
]


@pytest.mark.parametrize(("rule", "buffers", "corrupt"), _CORRUPTIONS)
def test_a_violation_is_found(
    rule: Rule, buffers: tuple[int, ...], corrupt: Callable[[Addresses], None]
) -> None:
    program, placement = _placed()
    assert check(program, placement, _RESERVED) == ()
    address = placement.address.copy()
    corrupt(address)
    found = check(program, Placement(address=address, stride=placement.stride), _RESERVED)
    assert (rule, buffers) in [(violation.rule, violation.buffers) for violation in found]


def test_an_address_for_each_buffer() -> None:
    program, placement = _placed()
    short = Placement(address=placement.address[:-1], stride=placement.stride)
    assert [violation.rule for violation in check(program, short, _RESERVED)] == [Rule.COUNT]


def test_buffers_of_other_times_may_share_bytes_and_elements() -> None:
    """Buffers 0 and 7 are separated, and never live at once."""
    program, placement = _placed()
    address = placement.address.copy()
    address[7] = address[0]
    assert check(program, Placement(address=address, stride=placement.stride), _RESERVED) == ()


def test_all_violations_are_reported() -> None:
    program, placement = _placed()
    nowhere = dataclasses.replace(placement, address=np.zeros_like(placement.address))
    found = check(program, nowhere, _RESERVED)
    assert {violation.buffers for violation in found if violation.rule is Rule.RANGE} == {
        (row,) for row in range(len(placement.address))
    }
    assert str(found[0]) == "tile 0: range: buffer 0 is at 0x0"
