"""Random problems with every constraint there is, from seeds: hard ones, since little memory is left free."""

import numpy as np

from compiler.geometry.owners import TileId
from compiler.low.ir import LowProgram
from compiler.placement.bound import Space, bounds_of
from compiler.placement.problem import Reserved, problems_of
from compiler.target.memory import INTERLEAVED, SRAM_BASE, SRAM_END
from tests.placement.programs import Life, Lives, program_of


def constrained(seed: int, count: int, slack: float) -> tuple[LowProgram, tuple[Reserved, ...]]:
    """A program for tile 0 and what is reserved there.

    Args:
        seed: which one.
        count: lives; a sequence is one of them.
        slack: free bytes beyond those that live at the fullest step, as a part of them; may be below zero.
    """
    chance = np.random.default_rng(seed)
    steps = max(3, count // 2)
    lives: list[Life] = []
    for _ in range(count):
        first = int(chance.integers(steps))
        last = min(steps - 1, first + int(chance.integers(0, steps // 2 + 1)))
        size = 32 * int(chance.integers(8, 600))
        members = int(chance.choice([1, 1, 1, 1, 1, 2, 3]))
        aliases: tuple[tuple[int, int, int, int], ...] = ()
        if members == 1 and chance.random() < 0.25:
            length = 32 * int(chance.integers(1, size // 32 + 1))
            displacement = 32 * int(chance.integers(-(length // 32) + 1, size // 32))
            begin = int(chance.integers(last, steps))
            aliases = ((displacement, length, begin, min(steps - 1, begin + 2)),)
        lives.append(
            Life(
                byte_count=size if members == 1 else size // 64 * 32 + 32,
                first=first,
                last=last,
                alignment=int(chance.choice([8, 16, 32, 32])),
                tail=int(chance.choice([0, 0, 16, 32])),
                interleaved=bool(chance.random() < 0.25),
                members=members,
                aliases=aliases,
            )
        )
    apart = [tuple(sorted(chance.choice(count, 2, replace=False).tolist())) for _ in range(count // 5)]
    program = program_of(Lives(lives=tuple(lives), apart=tuple((a, b) for a, b in apart)))
    needed = {bound.space: bound.needed for bound in bounds_of(problems_of(program, ())[0])}
    free = int(needed[Space.ALL] * (1 + slack)) // 32 * 32
    inside = min(int(needed.get(Space.INTERLEAVED, 0) * 1.25) // 32 * 32 + 0x2000, free)
    low, high = INTERLEAVED.base - (free - inside), INTERLEAVED.base + inside
    hole = 32 * int(chance.integers(1, 40))
    at = INTERLEAVED.base + 32 * int(chance.integers(0, max(1, inside // 32)))
    reserved = (
        Reserved(tile=TileId(0), start=SRAM_BASE, size=max(0, low - SRAM_BASE)),
        Reserved(
            tile=TileId(0), start=min(high + hole, SRAM_END), size=SRAM_END - min(high + hole, SRAM_END)
        ),
        Reserved(tile=TileId(0), start=at, size=hole),
    )
    return program, reserved
