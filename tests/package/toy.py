"""A small program with kernels of its own, so that emission is tested without compiler stages above it.

The kernels add words and copy words, by the supervisor, one after the other. The program: an input is copied
into a sum; a Repeat adds a parameter of its own iteration, sends the sum to other tiles at a fixed and at a
moving place, sends a moving parameter, and adds what arrived; the sum and what was recorded are outputs.
:func:`expected` does the same with NumPy.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.order import RowMajor
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F32
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.geometry.traversal import Loops, Traversal
from compiler.isa.assembler import assemble
from compiler.isa.builder import Builder
from compiler.isa.objects import ObjectFile
from compiler.isa.program import SectionKind
from compiler.isa.registers import LINK, ZERO, m
from compiler.kernels.contract import (
    Access,
    Alias,
    Binding,
    Operand,
    Parameters,
    Pointer,
    Result,
    Scalar,
    Work,
)
from compiler.kernels.symbols import SymbolKey
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.ids import BufferId, NodeId, SequenceId
from compiler.low.ir import HostValue, LowProgram, Role
from compiler.placement.ir import Placement
from compiler.target.instructions import Mode
from compiler.target.memory import INTERLEAVED
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Cycles

ADD = SymbolKey(family="toy", variant="add")
COPY = SymbolKey(family="toy", variant="copy")

WORDS = 24
"""Words that each tile adds."""

BIAS = 0x1234_5678
"""A scalar that no single instruction holds."""


@final
@dataclass(frozen=True, slots=True)
class ToyParameters(Parameters):
    """Words of a call."""

    family: ClassVar[str] = "toy"

    words: int


def _bytes(words: int) -> Traversal:
    return Traversal(pieces=(Loops(run_bytes=4 * words, bases=(0,), counts=(), strides=()),))


def _binding(
    symbol: SymbolKey, words: int, operands: int, bias: int | None, aliases: tuple[Alias, ...] = ()
) -> Binding:
    scalars = [Scalar(name="words", value=words)]
    if bias is not None:
        scalars.append(Scalar(name="bias", value=bias))
    return Binding(
        family="toy",
        parameters=ToyParameters(words),
        results=(Access(operand=None, alignment=8, writes=_bytes(words)),),
        operands=tuple(Access(operand=None, alignment=8, reads=_bytes(words)) for _ in range(operands)),
        arguments=(
            Pointer(reference=Result(0)),
            *(Pointer(reference=Operand(n)) for n in range(operands)),
            *scalars,
        ),
        aliases=aliases,
        permitted=aliases,
        symbol=symbol,
        work=Work(moved_bytes=4 * words),
        cycles=Cycles(100),
    )


def adding(words: int, bias: int) -> Binding:
    """Operand 0 := operand 0 + operand 1 + bias, word by word."""
    return _binding(ADD, words, 2, bias, (Alias(result=Result(0), operand=Operand(0)),))


def copying(words: int) -> Binding:
    """Result := operand 0."""
    return _binding(COPY, words, 1, None)


def kernel_objects() -> tuple[ObjectFile, ...]:
    """The code of both."""
    objects: list[ObjectFile] = []
    for key, pointers in ((ADD, (2, 3, 4)), (COPY, (2, 3))):
        code = Builder(str(key))
        code.section(f".text.{key}", SectionKind.CODE, Mode.SUPERVISOR)
        code.label(str(key), is_global=True, is_function=True)
        count = m(pointers[-1] + 1)
        loop = code.label(f".L{key}")
        code.emit("ld32", m(0), m(3), ZERO, 0)
        if key is ADD:
            code.emit("ld32", m(1), m(4), ZERO, 0)
            code.emit("add", m(0), m(0), m(1))
            code.emit("add", m(0), m(0), m(6))
        code.emit("st32", m(0), m(2), ZERO, 0)
        for pointer in pointers:
            code.emit("add", m(pointer), m(pointer), 4)
        code.emit("add", count, count, -1)
        code.emit("brnz", count, loop)
        # A kernel may leave anything behind.
        for register in (6, 7, 8, 9):
            code.emit("setzi", m(register), 0xBAD00 + register)
        code.emit("br", LINK)
        objects.append(assemble(code.finish(), str(key)))
    return tuple(objects)


SYMBOLS = (str(ADD), str(COPY))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Toy:
    """A program of some tiles.

    Args:
        tiles: logical tiles.
        iterations: of the Repeat.
        padding: words before the operand in each member of the parameters, so that displacements matter.
        more: further words of a parameter on the first tile, to need several host batches.
        extra: further copies on the first tile, to make its program long.
    """

    tiles: tuple[int, ...] = (3, 46, 700, 1471)
    iterations: int = 2
    padding: int = 4
    more: int = 0
    extra: int = 0


def host_value(name: str, role: Role, shape: tuple[int, ...], toy: Toy) -> HostValue:
    """A row-major tensor with a row of its shards on each tile."""
    cut = AxisTiling(axis=0, partitions=len(toy.tiles))
    layout = TensorLayout(order=RowMajor(), tiling=GridTiling(axes=(cut,)))
    owners = OwnerMap(tile_count=TILE_COUNT, embedding=tuple(TileId(tile) for tile in toy.tiles))
    return HostValue(
        name=name, role=role, shape=shape, format=TensorFormat(precision=F32(), layout=layout), owners=owners
    )


def _resident(low: LowBuilder, toy: Toy, name: str, role: Role, words: int, node: NodeId) -> list[BufferId]:
    """A tensor of the host with so many words on each tile."""
    value = low.value(host_value(name, role, (len(toy.tiles), words), toy))
    return [
        low.buffer(
            tile=tile, byte_count=4 * words, alignment=8, node=node, role=role, value=value, shard=shard
        )
        for shard, tile in enumerate(toy.tiles)
    ]


def build(toy: Toy) -> LowProgram:
    """The low program."""
    low = LowBuilder(TILE_COUNT)
    node = low.node("toy")
    count = len(toy.tiles)

    def temporary(tile: int, words: int = WORDS) -> BufferId:
        return low.buffer(tile=tile, byte_count=4 * words, alignment=8, node=node)

    x = _resident(low, toy, "x", Role.INPUT, WORDS, node)
    y = _resident(low, toy, "y", Role.OUTPUT, WORDS, node)
    members = [
        _resident(low, toy, f"w{number}", Role.PARAMETER, WORDS + toy.padding, node)
        for number in range(toy.iterations)
    ]
    if toy.more:
        lone = replace(toy, tiles=toy.tiles[:1])
        _resident(low, lone, "more", Role.PARAMETER, toy.more, node)
    records = [
        _resident(low, toy, f"record{number}", Role.OUTPUT, WORDS, node) for number in range(toy.iterations)
    ]
    weights = [low.sequence([member[place] for member in members]) for place in range(count)]
    record = [low.sequence([member[place] for member in records]) for place in range(count)]
    total = [temporary(tile) for tile in toy.tiles]
    arrived = [temporary(tile) for tile in toy.tiles]
    shifted = [temporary(tile) for tile in toy.tiles]

    def moving(
        buffers: list[list[BufferId]], sequences: list[SequenceId], place: int, at: int
    ) -> AddressOperand:
        return AddressOperand(buffer=buffers[0][place], displacement=at, sequence=sequences[place])

    step = low.compute_step()
    for place in range(count):
        low.copy(
            step,
            copying(WORDS),
            source=AddressOperand(buffer=x[place]),
            destination=AddressOperand(buffer=total[place]),
            rows=1,
            row_bytes=4 * WORDS,
            source_stride=4 * WORDS,
            destination_stride=4 * WORDS,
            node=node,
        )
    add = adding(WORDS, BIAS)
    with low.repeat(toy.iterations):
        step = low.compute_step()
        for place in range(count):
            weight = low.view(members[0][place], None, origin=4 * toy.padding, sequence=weights[place])
            fixed = low.view(total[place], None)
            low.call(step, add, [fixed, fixed, weight], node)
        step = low.exchange_step()
        # The first tile's sum goes to all others, and is recorded there where the iteration wants it.
        others = range(1, count)
        low.transfer(
            step,
            source=AddressOperand(buffer=total[0]),
            byte_count=4 * WORDS,
            recipients=[AddressOperand(buffer=arrived[place]) for place in others],
            node=node,
        )
        step = low.exchange_step()
        low.transfer(
            step,
            source=AddressOperand(buffer=total[0]),
            byte_count=4 * WORDS,
            recipients=[moving(records, record, place, 0) for place in others],
            node=node,
        )
        # The last tile's parameter goes to the first.
        low.transfer(
            step,
            source=moving(members, weights, count - 1, 4 * toy.padding),
            byte_count=4 * WORDS,
            recipients=[AddressOperand(buffer=shifted[0])],
            node=node,
        )
        step = low.compute_step()
        for place in others:
            fixed, other = low.view(total[place], None), low.view(arrived[place], None)
            low.call(step, add, [fixed, fixed, other], node)
        fixed, other = low.view(total[0], None), low.view(shifted[0], None)
        low.call(step, add, [fixed, fixed, other], node)
        low.copy(
            step,
            copying(WORDS),
            source=AddressOperand(buffer=shifted[0]),
            destination=moving(records, record, 0, 0),
            rows=1,
            row_bytes=4 * WORDS,
            source_stride=4 * WORDS,
            destination_stride=4 * WORDS,
            node=node,
        )
    step = low.compute_step()
    for source, destination in [(total[place], y[place]) for place in range(count)] + [
        (total[0], arrived[0])
    ] * toy.extra:
        low.copy(
            step,
            copying(WORDS),
            source=AddressOperand(buffer=source),
            destination=AddressOperand(buffer=destination),
            rows=1,
            row_bytes=4 * WORDS,
            source_stride=4 * WORDS,
            destination_stride=4 * WORDS,
            node=node,
        )
    return low.finish()


def place(program: LowProgram, gap: int = 16) -> Placement:
    """Every buffer, and every sequence as a whole, in interleaved elements of its own.

    Args:
        program: of the toy.
        gap: bytes between members of sequences.
    """
    address = np.zeros(len(program.buffers.tile), dtype=np.int64)
    stride = np.zeros(len(program.sequences.first), dtype=np.int64)
    element = int(INTERLEAVED.element_size)
    cursor: dict[int, int] = {}
    for buffer in range(len(address)):
        tile, size = int(program.buffers.tile[buffer]), int(program.buffers.byte_count[buffer])
        sequence, member = int(program.buffers.sequence[buffer]), int(program.buffers.member[buffer])
        if sequence >= 0 and member > 0:
            first = int(program.sequences.first[sequence])
            address[buffer] = address[first] + member * stride[sequence]
            continue
        start = cursor.get(tile, int(INTERLEAVED.base))
        address[buffer] = start + 0x40
        if sequence >= 0:
            stride[sequence] = size + gap
            size += int(program.sequences.count[sequence]) * int(stride[sequence])
        cursor[tile] = start + -(-(size + 0x40) // element) * element
    return Placement(address=address, stride=stride)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """Words of the tensors, [tiles, words] each."""

    x: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.uint32]


def random_data(toy: Toy, seed: int) -> Data:
    """Inputs and parameters; ``weights`` is [iterations, tiles, words]."""
    rng = np.random.default_rng(seed)
    count = len(toy.tiles)
    return Data(
        x=rng.integers(0, 2**32, (count, WORDS), dtype=np.uint32),
        weights=rng.integers(0, 2**32, (toy.iterations, count, WORDS + toy.padding), dtype=np.uint32),
    )


def expected(toy: Toy, data: Data) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """(y, records [iterations, tiles, words])."""
    total = data.x.copy()
    records = np.zeros((toy.iterations, *total.shape), dtype=np.uint32)
    bias = np.uint32(BIAS)
    for iteration in range(toy.iterations):
        weights = data.weights[iteration, :, toy.padding :]
        total = total + weights + bias
        first, shifted = total[0].copy(), weights[-1]
        records[iteration, 1:] = first
        records[iteration, 0] = shifted
        total[1:] = total[1:] + first + bias
        total[0] = total[0] + shifted + bias
    return total, records
