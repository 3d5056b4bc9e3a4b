"""A whole device of tiles like those of an MLP block: for the time of extraction and placement."""

from compiler.geometry.layout import MemoryClass
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.ids import BufferId
from compiler.low.ir import LowProgram
from tests.placement.programs import with_separations

TILES = 1472
BUFFERS = 40
"""Of each tile."""


def mlp_like(classes: int, members: int = 1) -> LowProgram:
    """Every tile has panels of weights, staged activations, partial sums and results, in a few variants.

    Args:
        classes: how many kinds of tiles there are.
        members: members of each sequence of weights; without sequences 1.
    """
    builder = LowBuilder(TILES)
    apart: list[tuple[int, int]] = []
    nodes = [builder.node(name) for name in ("mlp.up", "mlp.gelu", "mlp.down", "mlp.residual")]
    steps = [builder.exchange_step() for _ in range(12)]
    sink = builder.buffer(tile=0, byte_count=64, alignment=32, node=nodes[0])
    for tile in range(TILES):
        kind = tile % classes
        earlier: list[BufferId] = []
        for number in range(BUFFERS):
            is_weight = number % 8 == 0
            size = 32 * (24 + 13 * (number % 7) + 5 * kind + (150 if is_weight else 0))
            copies = members if is_weight else 1
            rows = [
                builder.buffer(
                    tile=tile,
                    byte_count=size,
                    alignment=32,
                    node=nodes[number % 4],
                    tail=32 if number % 3 == 0 else 0,
                    memory_class=MemoryClass.INTERLEAVED if number % 4 == 0 else MemoryClass.STANDARD,
                )
                for _ in range(copies)
            ]
            if copies > 1:
                builder.sequence(rows)
            begin = 0 if is_weight else number % 9
            for row in rows:
                for step in (begin, 11 if is_weight else min(11, begin + 1 + number % 3)):
                    builder.transfer(
                        steps[step],
                        source=AddressOperand(buffer=row),
                        byte_count=4,
                        recipients=[AddressOperand(buffer=sink, displacement=0)],
                        node=nodes[0],
                    )
            if earlier and number % 5 == 0:
                apart.append((earlier[-1], rows[0]))
            earlier.append(rows[0])
    return with_separations(builder.finish(), apart)
