"""Each clause of a well-formed program, broken in one place."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import pytest
from hypothesis import given

from compiler.errors import InternalError
from compiler.geometry.mapping import identity
from compiler.geometry.order import AmpLeft, AmpRight, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F8, F16, F32
from compiler.geometry.region import Region
from compiler.geometry.relation import Broadcast, Follow, Identity, SelectedWindow, Span
from compiler.geometry.tiling import LinearTiling
from compiler.kernels.gemm.binding import Rounding
from compiler.mid.build import renumbered
from compiler.mid.faults import Clause, Fault
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    CopyPart,
    MidProgram,
    MidValueId,
    Operation,
    Repeat,
    StorageAlias,
)
from compiler.mid.verify import check, verify
from compiler.mid.work import Product, Sum, Work
from tests.mid.examples import OWNERS, ROWS, SUMS, TILES, number_of, small_program, with_value
from tests.mid.products import cut, grid_format
from tests.mid.strategies import programs

Change: TypeAlias = Callable[[MidProgram], MidProgram]
MISSING = MidValueId(999)


def value_is(name: str, /, **changes: Any) -> Change:  # noqa: ANN401  # fields of a value
    """Another value of this name."""

    def change(made: MidProgram) -> MidProgram:
        return replace(made, block=with_value(made.block, name, lambda value: replace(value, **changes)))

    return change


def program_is(**changes: Any) -> Change:  # noqa: ANN401  # fields of a program
    """A program with other fields."""
    return lambda made: replace(made, **changes)


def operation_is(node: str, kind: type[Operation], change: Callable[[Any, Block], Operation]) -> Change:
    """Another operation of this kind that works for ``node``."""

    def changed(made: MidProgram) -> MidProgram:
        operations = list(made.block.operations)
        (number,) = (
            number
            for number, operation in enumerate(operations)
            if operation.node == node and isinstance(operation, kind)
        )
        operations[number] = change(operations[number], made.block)
        return replace(made, block=replace(made.block, operations=tuple(operations)))

    return changed


def compute_is(node: str, **changes: Any) -> Change:  # noqa: ANN401  # fields of a computation
    """A computation with other fields; ``node`` has one."""
    return operation_is(node, Compute, lambda compute, _: replace(compute, **changes))


def the_sum(change: Callable[[Compute], Operation]) -> Change:
    """The sum of ``up``, changed."""
    return _work_is(lambda work: isinstance(work, Sum), change)


def the_partials(change: Callable[[Compute], Operation]) -> Change:
    """The product with parts of ``up``, changed."""
    return _work_is(lambda work: isinstance(work, Product) and bool(work.parts), change)


def _work_is(is_meant: Callable[[Work], bool], change: Callable[[Compute], Operation]) -> Change:
    def changed(made: MidProgram) -> MidProgram:
        operations = tuple(
            change(operation) if isinstance(operation, Compute) and is_meant(operation.work) else operation
            for operation in made.block.operations
        )
        return replace(made, block=replace(made.block, operations=operations))

    return changed


def parts_are(change: Callable[[tuple[CopyPart, ...]], tuple[CopyPart, ...]]) -> Change:
    """The parts of the copy of two, changed."""
    return operation_is("joined", Copy, lambda copy, _: replace(copy, parts=change(copy.parts)))


def body_is(change: Callable[[Block], Block]) -> Change:
    """The body of the loop, changed."""
    return operation_is("loop", Repeat, lambda repeat, _: replace(repeat, body=change(repeat.body)))


def both(*changes: Change) -> Change:
    """One after the other."""

    def change(made: MidProgram) -> MidProgram:
        for each in changes:
            made = each(made)
        return made

    return change


def product_with(**changes: Any) -> Change:  # noqa: ANN401  # fields of a product
    """The product that starts from nothing, as another product."""
    return operation_is(
        "start", Compute, lambda compute, _: replace(compute, work=replace(compute.work, **changes))
    )


ON_ONE_TILE = grid_format(RowMajor())
ELSEWHERE = OwnerMap(tile_count=TILES, rotation=1)
FLAT = replace(
    ROWS, layout=replace(ROWS.layout, order=RowMajor(), tiling=LinearTiling(partitions=4, grain=4))
)

CASES: list[tuple[str, Clause, Change, str]] = [
    (
        "an operand that does not exist",
        Clause.REFERENCE,
        compute_is("bias", operands=(MISSING, MidValueId(1))),
        "it reads value 999, which does not exist",
    ),
    (
        "a result that does not exist",
        Clause.REFERENCE,
        compute_is("bias", results=(MISSING,)),
        "it makes value 999, which does not exist",
    ),
    (
        "an argument that does not exist",
        Clause.REFERENCE,
        lambda made: replace(made, block=replace(made.block, arguments=(*made.block.arguments, MISSING))),
        "argument is value 999, which does not exist",
    ),
    (
        "a result of the block that does not exist",
        Clause.REFERENCE,
        lambda made: replace(made, block=replace(made.block, results=(*made.block.results[:2], MISSING))),
        "result is value 999, which does not exist",
    ),
    (
        "operations in another order",
        Clause.SINGLE_ASSIGNMENT,
        lambda made: replace(made, block=replace(made.block, operations=made.block.operations[::-1])),
        "start.product is used before it is made",
    ),
    (
        "an argument that is made",
        Clause.SINGLE_ASSIGNMENT,
        operation_is(
            "bias", Compute, lambda compute, block: replace(compute, results=(number_of(block, "x"),))
        ),
        "it is made twice",
    ),
    (
        "a value that nothing makes",
        Clause.SINGLE_ASSIGNMENT,
        lambda made: replace(made, block=replace(made.block, operations=made.block.operations[1:])),
        "nothing makes it",
    ),
    ("no name", Clause.NAME, value_is("b", name=""), "the name '' cannot be printed"),
    (
        "a name of control characters",
        Clause.NAME,
        value_is("b", name="a\n"),
        "the name 'a\\n' cannot be printed",
    ),
    ("one name twice", Clause.NAME, value_is("b", name="x"), "another value has this name"),
    ("no axes", Clause.VALUE, value_is("b", shape=()), "the shape [] has no element"),
    ("no elements", Clause.VALUE, value_is("b", shape=(0,)), "the shape [0] has no element"),
    (
        "a format that does not fit",
        Clause.VALUE,
        value_is("x", format=grid_format(AmpRight())),
        "needs a multiple of 16 on axis 0",
    ),
    (
        "owners of another build",
        Clause.OWNERS,
        value_is("x", owners=OwnerMap(tile_count=5)),
        "its owner map is for 5 tiles, not 4",
    ),
    (
        "more owners than places",
        Clause.OWNERS,
        value_is("x", owners=OwnerMap(tile_count=TILES, embedding=OWNERS.permutation or (OWNERS.tile(0),))),
        "4 owners do not fit 1 tiles",
    ),
    ("a program without tiles", Clause.PROGRAM, program_is(tile_count=0), "it is for 0 tiles"),
    ("more inputs than arguments", Clause.PROGRAM, program_is(input_count=9), "9 inputs of 4 arguments"),
    ("a program without name", Clause.PROGRAM, program_is(name=""), "the name '' cannot be printed"),
    (
        "an output without name",
        Clause.PROGRAM,
        program_is(outputs=("a", "b")),
        "2 names of outputs for 3 results",
    ),
    (
        "an output with an empty name",
        Clause.PROGRAM,
        program_is(outputs=("a", "b", "")),
        "the output name '' cannot be printed",
    ),
    (
        "two outputs with one name",
        Clause.PROGRAM,
        program_is(outputs=("a", "b", "b")),
        "two outputs have one",
    ),
    ("a copy of nothing", Clause.COPY_PARTS, parts_are(lambda _: ()), "fill 0 of 512 elements"),
    ("a part left out", Clause.COPY_PARTS, parts_are(lambda parts: parts[:1]), "fill 256 of 512 elements"),
    ("one part twice", Clause.COPY_PARTS, parts_are(lambda parts: (*parts, parts[0])), "parts 0 and 2 meet"),
    (
        "a part outside of the result",
        Clause.COPY_PARTS,
        parts_are(lambda parts: (parts[0], replace(parts[1], region=Region(bounds=((0, 8), (40, 72)))))),
        "box ((0, 8), (40, 72)) of part 1 is empty or leaves [8,64]",
    ),
    (
        "a mapping of another destination",
        Clause.COPY_MAPPING,
        parts_are(lambda parts: (parts[0], replace(parts[1], mapping=identity((8, 31))))),
        "the destination of part 1 is [8,32], its mapping's [8,31]",
    ),
    (
        "a mapping of another source",
        Clause.COPY_MAPPING,
        value_is("bias.elementwise", shape=(8, 48)),
        "the source of part 1 is [8,48], its mapping's [8,32]",
    ),
    (
        "a copy that casts",
        Clause.COPY_PRECISION,
        value_is("small.copy", format=replace(ON_ONE_TILE, precision=F32())),
        "part 0 reads F16() into F32()",
    ),
    (
        "a sum of two operands",
        Clause.ARITY,
        the_sum(lambda compute: replace(compute, operands=compute.operands * 2)),
        "it has 2 operands, not 1",
    ),
    ("no result", Clause.ARITY, compute_is("bias", results=()), "it has 0 results, not one"),
    (
        "a relation too few",
        Clause.ARITY,
        compute_is("bias", relations=(Identity(rank=2),)),
        "it has 1 relations for 2 operands",
    ),
    (
        "a product of two precisions",
        Clause.PRECISION,
        value_is("w", format=replace(SUMS, precision=F8())),
        "it cannot make F16 from F16, F8(0)",
    ),
    (
        "a sum in F32",
        Clause.PRECISION,
        value_is("up.sum", format=replace(ROWS, precision=F32())),
        "it cannot make F32 from F16",
    ),
    (
        "an addition that makes codes",
        Clause.PRECISION,
        value_is("bias.elementwise", format=grid_format(RowMajor(), (cut(0, 4),), precision=F8())),
        "it cannot make F8(0) from F16, F16",
    ),
    (
        "a cast that does not",
        Clause.PRECISION,
        value_is("small.cast", format=replace(SUMS, precision=F16())),
        "it cannot make F16 from F16",
    ),
    (
        "a relation of other shapes",
        Clause.RELATION,
        value_is("b", shape=(31,)),
        "operand 1: operand axis 0 has extent 31",
    ),
    (
        "a product with another relation",
        Clause.RELATION,
        compute_is("start", relations=(Identity(rank=2), Identity(rank=2))),
        "operand 0 is read by (d0,d1), not left of ac,cb->ab",
    ),
    (
        "a sum that reads something else",
        Clause.RELATION,
        the_sum(
            lambda compute: replace(
                compute, relations=(Broadcast(operand_rank=1, result_rank=2, single_axes=()),)
            )
        ),
        "operand 0 is read by (d1), not (d0,d1)",
    ),
    (
        "an addition of a window",
        Clause.RELATION,
        compute_is(
            "bias",
            relations=(
                Identity(rank=2),
                SelectedWindow(result_rank=2, axes=(Span(start=0, stop=32),)),
            ),
        ),
        "each coordinate of the result reads 0:32 along its axis 0",
    ),
    (
        "contractions of different lengths",
        Clause.RELATION,
        value_is("w", shape=(48, 32)),
        "left axis 1 has extent 32, right axis 0 has extent 48",
    ),
    (
        "parts that leave some of K",
        Clause.PARTIALS,
        both(value_is("start.product", shape=(1, 8, 32)), product_with(parts=((0, 16),))),
        "its parts end at 16, the contraction at 32",
    ),
    (
        "another number of partials than parts",
        Clause.PARTIALS,
        both(value_is("start.product", shape=(1, 8, 32)), product_with(parts=((0, 16), (16, 32)))),
        "start.product has 1 coordinates in front for 2 parts",
    ),
    (
        "several partials in a shard",
        Clause.PARTIALS,
        value_is("up.product", format=grid_format(AmpLeft(), (cut(1, 4),))),
        "a shard of up.product holds more or less than one partial",
    ),
    (
        "one partial",
        Clause.PARTIALS,
        value_is("up.product", shape=(1, 8, 32)),
        "up.product has 1 partials; a sum needs two",
    ),
    (
        "an order of partials",
        Clause.PARTIALS,
        both(
            value_is("up.product", shape=(2, 32), format=grid_format(AmpLeft())),
            value_is("up.sum", shape=(32,), format=ON_ONE_TILE),
        ),
        "AmpLeft of up.product orders the axis of partials",
    ),
    (
        "a sum on several tiles",
        Clause.REPLICAS,
        value_is("up.sum", format=grid_format(AmpLeft(), replicas=2)),
        "up.sum has 2 replicas, which would not be equal",
    ),
    (
        "a product on several tiles, rounded at random",
        Clause.REPLICAS,
        both(
            value_is("start.product", format=grid_format(AmpLeft(), replicas=2)),
            product_with(rounding=Rounding.STOCHASTIC),
        ),
        "start.product has 2 replicas, which would not be equal",
    ),
    (
        "a result that is cut by its sequence, an operand that is not",
        Clause.SHARDS,
        value_is("bias.elementwise", format=FLAT),
        "b and bias.elementwise are not alike, and one is cut by sequence",
    ),
    (
        "shards that are runs of panels",
        Clause.SHARDS,
        value_is(
            "up.sum",
            format=replace(ROWS, layout=replace(ROWS.layout, tiling=LinearTiling(partitions=4, grain=16))),
        ),
        "shards of up.sum are runs of its storage sequence",
    ),
    (
        "a result on other tiles",
        Clause.LOCALITY,
        value_is("bias.elementwise", owners=ELSEWHERE),
        "4 tiles need of sums.product what they do not hold; tile 1 needs [0:2,0:32] and holds [2:4,0:32]",
    ),
    (
        "an operand that is not there",
        Clause.LOCALITY,
        value_is("b", format=ON_ONE_TILE),
        "3 tiles need of b what they do not hold; tile 1 needs [0:32] and holds nothing of it",
    ),
    (
        "another part of the contraction",
        Clause.LOCALITY,
        the_partials(lambda compute: replace(compute, work=replace(compute.work, parts=((0, 8), (8, 32))))),
        "2 tiles need of up.copy what they do not hold; tile 1 needs [0:4,8:32] and holds [0:4,16:32]",
    ),
    (
        "an alias of something that is read later",
        Clause.ALIAS,
        compute_is("bias", aliases=(StorageAlias(result=0, operand=0),)),
        "sums.product is read later",
    ),
    (
        "an alias of a parameter",
        Clause.ALIAS,
        both(program_is(input_count=1), compute_is("bias", aliases=(StorageAlias(result=0, operand=1),))),
        "b must keep its storage",
    ),
    (
        "an alias that begins too far before",
        Clause.ALIAS,
        compute_is("bias", aliases=(StorageAlias(result=0, operand=1, displacement=-(1 << 20)),)),
        "a shard of bias.elementwise, -1048576 bytes, lies before that of b",
    ),
    (
        "an alias further away than any memory reaches",
        Clause.ALIAS,
        compute_is("bias", aliases=(StorageAlias(result=0, operand=1, displacement=-(1 << 70)),)),
        "a shard of bias.elementwise is -1180591620717411303424 bytes from that of b",
    ),
    (
        "an alias that does not fit",
        Clause.ALIAS,
        compute_is("bias", aliases=(StorageAlias(result=0, operand=1),)),
        "a shard of bias.elementwise, +0 bytes, leaves that of b",
    ),
    (
        "an alias of an operand that does not exist",
        Clause.ALIAS,
        compute_is("bias", aliases=(StorageAlias(result=0, operand=2),)),
        "result 0 or operand 2 does not exist",
    ),
    (
        "one operand in two aliases",
        Clause.ALIAS,
        compute_is("bias", aliases=(StorageAlias(result=0, operand=1),) * 2),
        "two aliases have one end",
    ),
    (
        "a sum in the storage of a partial",
        Clause.ALIAS,
        the_sum(lambda compute: replace(compute, aliases=(StorageAlias(result=0, operand=0),))),
        "other tiles read the operand of a sum",
    ),
    (
        "an accumulating product elsewhere",
        Clause.ALIAS,
        compute_is("sums", aliases=()),
        "it takes the storage of its partial sums, and says otherwise",
    ),
    (
        "an accumulating product of another type",
        Clause.ALIAS,
        value_is("sums.product", format=ROWS),
        "the partial sums that it starts from are not of its result's type",
    ),
    (
        "an alias of a member of a sequence",
        Clause.ALIAS,
        body_is(
            lambda body: replace(
                body,
                operations=(replace_aliases(body.operations[0], (StorageAlias(result=0, operand=1),)),),
            )
        ),
        "m must keep its storage",
    ),
    (
        "no iterations",
        Clause.REPEAT_BINDINGS,
        operation_is("loop", Repeat, lambda repeat, _: replace(repeat, count=0)),
        "it runs 0 times",
    ),
    (
        "an argument too few",
        Clause.REPEAT_BINDINGS,
        body_is(lambda body: replace(body, arguments=body.arguments[:1])),
        "its body has 1 arguments, 2 are bound",
    ),
    (
        "a body without result",
        Clause.REPEAT_BINDINGS,
        body_is(lambda body: replace(body, results=())),
        "its body has 0 results, 1 values are carried",
    ),
    (
        "a Repeat without result",
        Clause.REPEAT_BINDINGS,
        operation_is("loop", Repeat, lambda repeat, _: replace(repeat, results=())),
        "it has 0 results, 1 values are carried",
    ),
    (
        "another type outside than inside",
        Clause.REPEAT_TYPES,
        value_is("bias.elementwise", format=ROWS),
        "argument h and bias.elementwise differ in shape, format or owners",
    ),
    (
        "another type afterwards",
        Clause.REPEAT_TYPES,
        value_is("loop.repeat", owners=ELSEWHERE),
        "carried value h and loop.repeat differ in shape, format or owners",
    ),
    (
        "another type after an iteration",
        Clause.REPEAT_TYPES,
        body_is(lambda body: with_value(body, "step.elementwise", lambda value: replace(value, format=ROWS))),
        "carried value h and step.elementwise differ in shape, format or owners",
    ),
    (
        "a member too few",
        Clause.SEQUENCE,
        operation_is("loop", Repeat, lambda repeat, _: replace(repeat, sequences=(repeat.sequences[0][:2],))),
        "2 members of m for 3 iterations",
    ),
    (
        "members of different types",
        Clause.SEQUENCE,
        operation_is(
            "loop",
            Repeat,
            lambda repeat, block: replace(
                repeat, sequences=((*repeat.sequences[0][:2], number_of(block, "x")),)
            ),
        ),
        "members sums.product and x of m differ in shape, format or owners",
    ),
    (
        "a fault in a body",
        Clause.ARITY,
        body_is(lambda body: replace(body, operations=(replace_operands(body.operations[0]),))),
        "it has 1 operands, not 2",
    ),
]


def replace_aliases(operation: Operation, aliases: tuple[StorageAlias, ...]) -> Operation:
    """A computation with other aliases."""
    assert isinstance(operation, Compute)
    return replace(operation, aliases=aliases)


def replace_operands(operation: Operation) -> Operation:
    """A computation without its last operand."""
    assert isinstance(operation, Compute)
    return replace(operation, operands=operation.operands[:1])


def test_the_small_program_is_well_formed() -> None:
    """Else nothing below means anything."""
    made = small_program()
    assert verify(made) == ()
    assert check(made) is made


@pytest.mark.parametrize(
    ("clause", "change", "reason"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_clause_is_broken(clause: Clause, change: Change, reason: str) -> None:
    """And said so, with its clause (ML-26)."""
    faults = verify(change(small_program()))
    assert [fault for fault in faults if fault.clause is clause and reason in fault.reason], "\n".join(
        map(str, faults)
    )


def test_every_clause_has_a_case() -> None:
    """The list above is complete."""
    assert {case[1] for case in CASES} == set(Clause)


@given(programs())
def test_what_is_well_formed_stays_so_whatever_the_order_of_values(made: MidProgram) -> None:
    """Numbers of values mean nothing."""
    assert verify(made) == ()
    block = made.block
    last = len(block.values) - 1
    numbers = {MidValueId(number): MidValueId(last - number) for number in range(last + 1)}
    backwards = Block(
        values=block.values[::-1],
        arguments=tuple(numbers[value] for value in block.arguments),
        operations=tuple(renumbered(operation, numbers) for operation in block.operations),
        results=tuple(numbers[value] for value in block.results),
    )
    assert verify(replace(made, block=backwards)) == ()


def test_the_message_of_one_fault() -> None:
    """As a user reads it, who cannot do anything about it."""
    with pytest.raises(InternalError) as caught:
        check(value_is("bias.elementwise", owners=ELSEWHERE)(small_program()))
    lines = str(caught.value).splitlines()
    assert lines[0] == "internal error, please report it (mid): small: 2 faults"
    assert lines[1] == (
        "    bias.elementwise: operation 6, elementwise of bias: clause 16, locality: 4 tiles need of "
        "sums.product what they do not hold; tile 1 needs [0:2,0:32] and holds [2:4,0:32]"
    )
    assert lines[-2:] == [
        "  graph nodes: bias, loop",
        "  next: report this message with the model and the recipe",
    ]


def test_all_faults_are_told_at_once() -> None:
    """With the value, the operation and the graph node of each."""
    made = both(
        value_is("bias.elementwise", owners=ELSEWHERE),
        value_is("small.copy", format=replace(ON_ONE_TILE, precision=F32())),
        program_is(outputs=("a", "b", "b")),
    )(small_program())
    faults = verify(made)
    texts = [str(fault) for fault in faults]
    assert texts[0] == "small: clause 6, program: two outputs have one name"
    assert (
        "bias.elementwise: operation 6, elementwise of bias: clause 16, locality: 4 tiles need of "
        "sums.product what they do not hold; tile 1 needs [0:2,0:32] and holds [2:4,0:32]" in texts
    )
    assert any(text.startswith("small.copy: operation 9, copy of small: clause 9") for text in texts)
    with pytest.raises(InternalError, match="faults") as caught:
        check(made)
    assert caught.value.nodes == ("bias", "loop", "small")
    assert f"{len(faults)} faults" in caught.value.message


def test_a_fault_of_a_body_is_told_with_its_repeat() -> None:
    """By the name of the Repeat's result."""
    change = body_is(lambda body: replace(body, operations=(replace_operands(body.operations[0]),)))
    (fault,) = verify(change(small_program()))
    assert fault == Fault(
        clause=Clause.ARITY,
        subject="loop.repeat/step.elementwise",
        operation="operation 0, elementwise",
        node="step",
        reason="it has 1 operands, not 2",
    )


def test_a_window_of_an_operand_may_be_used() -> None:
    """Whatever reads one coordinate for each of the result (OI-04)."""
    wide = value_is("b", shape=(48,))
    window = compute_is(
        "bias",
        relations=(
            Identity(rank=2),
            SelectedWindow(result_rank=2, axes=(Follow(axis=1, start=16),)),
        ),
    )
    assert verify(both(wide, window)(small_program())) == ()
