"""Low programs that are nothing but lives of buffers: what placement looks at, without kernels."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from compiler.geometry.layout import MemoryClass, TensorFormat, TensorLayout
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F32
from compiler.geometry.tiling import GridTiling
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.ids import NO_VALUE, BufferId
from compiler.low.ir import HostValue, LowProgram, Role, Separations


@dataclass(frozen=True, kw_only=True)
class Life:
    """A buffer, or a sequence of them, that lives from step ``first`` to step ``last`` of a tile."""

    byte_count: int
    first: int = 0
    last: int = 0
    tile: int = 0
    alignment: int = 8
    tail: int = 0
    interleaved: bool = False
    role: Role = Role.TEMPORARY
    members: int = 1
    aliases: tuple[tuple[int, int, int, int], ...] = ()
    """(displacement, bytes, first, last) of temporaries in its storage."""
    node: str = "node"


@dataclass(frozen=True, kw_only=True)
class Lives:
    """Lives, and pairs of them that must be in separate memory elements."""

    lives: tuple[Life, ...]
    apart: tuple[tuple[int, int], ...] = ()


def program_of(
    lives: Lives,
    *,
    tile_count: int = 2,
    repeat: tuple[int, int] | None = None,
    apart_members: Sequence[tuple[int, int]] = (),
) -> LowProgram:
    """A program whose buffers live as told: each is sent from in its first and last step to a sink.

    Args:
        lives: what lives; steps are those outside of any Repeat, unless ``repeat`` says otherwise.
        tile_count: tiles; the last one holds the sinks.
        repeat: (first, last) of the steps that are the body of a Repeat.
        apart_members: more pairs to be in separate elements, of buffers by their numbers.
    """
    builder = LowBuilder(tile_count)
    node = builder.node("sink")
    buffers: list[list[BufferId]] = []
    touched: list[tuple[int, AddressOperand]] = []
    for number, life in enumerate(lives.lives):
        role = life.role
        value = NO_VALUE
        if role is not Role.TEMPORARY:
            value = builder.value(host_value(f"value{number}", life.byte_count, life.tile, tile_count, role))
        members = [
            builder.buffer(
                tile=life.tile,
                byte_count=life.byte_count,
                alignment=life.alignment,
                node=builder.node(life.node),
                tail=life.tail,
                memory_class=MemoryClass.INTERLEAVED if life.interleaved else MemoryClass.STANDARD,
                role=role,
                value=value,
            )
            for _ in range(life.members)
        ]
        if life.members > 1:
            builder.sequence(members)
        buffers.append(members)
        touched += [(step, AddressOperand(buffer=b)) for b in members for step in (life.first, life.last)]
        for displacement, byte_count, first, last in life.aliases:
            alias = builder.alias(
                members[0], displacement=displacement, byte_count=byte_count, alignment=4, node=node
            )
            touched += [(step, AddressOperand(buffer=alias)) for step in (first, last)]
    sink = builder.buffer(tile=tile_count - 1, byte_count=4, alignment=4, node=node)

    def fill(steps: Sequence[int]) -> None:
        for number in steps:
            step = builder.exchange_step()
            for when, operand in touched:
                if when == number:
                    builder.transfer(
                        step,
                        source=operand,
                        byte_count=4,
                        recipients=[AddressOperand(buffer=sink)],
                        node=node,
                    )

    last = max((step for step, _ in touched), default=0)
    if repeat is None:
        fill(range(last + 1))
    else:
        fill(range(repeat[0]))
        with builder.repeat(3):
            fill(range(repeat[0], repeat[1] + 1))
        fill(range(repeat[1] + 1, last + 1))
    program = builder.finish()
    first_of = [members[0] for members in buffers]
    apart = [(first_of[one], first_of[other]) for one, other in lives.apart]
    return with_separations(program, [*apart, *apart_members])


def host_value(name: str, byte_count: int, tile: int, tile_count: int, role: Role) -> HostValue:
    """A vector of F32 on one tile."""
    return HostValue(
        name=name,
        role=role,
        shape=(byte_count // 4,),
        format=TensorFormat(precision=F32(), layout=TensorLayout(order=RowMajor(), tiling=GridTiling())),
        owners=OwnerMap(tile_count=tile_count, embedding=(TileId(tile),)),
    )


def with_separations(program: LowProgram, pairs: Sequence[tuple[int, int]]) -> LowProgram:
    """The program with these separations instead of its own."""
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return dataclasses.replace(program, separations=Separations(first=columns[0], second=columns[1]))


@st.composite
def random_lives(draw: st.DrawFn, *, most: int, sizes: st.SearchStrategy[int], steps: int = 6) -> Lives:
    """Lives on one tile, some aligned, some interleaved, some sequences, some shared, some separated."""
    lives: list[Life] = []
    for _ in range(draw(st.integers(1, most))):
        first = draw(st.integers(0, steps - 1))
        size = 4 * draw(sizes)
        members = draw(st.sampled_from([1, 1, 1, 2, 3]))
        aliases: tuple[tuple[int, int, int, int], ...] = ()
        if members == 1 and draw(st.booleans()):
            length = 4 * draw(st.integers(1, size // 4))
            begin = draw(st.integers(0, steps - 1))
            displacement = 4 * draw(st.integers(-(length // 4) + 1, size // 4 - 1))
            aliases = ((displacement, length, begin, draw(st.integers(begin, steps - 1))),)
        lives.append(
            Life(
                byte_count=size,
                first=first,
                last=draw(st.integers(first, steps - 1)),
                alignment=draw(st.sampled_from([4, 8, 16, 32])),
                tail=draw(st.sampled_from([0, 0, 16])),
                interleaved=draw(st.booleans()),
                members=members,
                aliases=aliases,
            )
        )
    numbers = st.integers(0, len(lives) - 1)
    pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=3))
    return Lives(lives=tuple(lives), apart=tuple((a, b) for a, b in pairs if a < b))
