"""What a well-formed whole-device program is. This docstring is the definition (ML-26).

Values and program:

1.  *Reference.* Every value that an operation, an argument list or a result list names is in its block's
    table.
2.  *Single assignment.* A value is made once: it is an argument, or a result of one operation. It is used
    after that only.
3.  *Name.* Names of values can be printed, are not empty, and are unique in their block.
4.  *Value.* A value has at least one axis, at least one element on each, and a shape that its format can be
    laid over (ML-04).
5.  *Owners.* An owner map is for the tiles of the program and has a place for each owner.
6.  *Program.* There are tiles; not more inputs than arguments; as many names of outputs as results of the
    block, at least one; the program's name and those of outputs can be printed, the latter are unique.

A copy (ML-14, ML-20):

7.  *Copy parts.* It has parts. Their boxes are not empty, lie in the result, do not meet and fill it.
8.  *Copy mapping.* The mapping of a part is from the extents of its box to the shape of its source.
9.  *Copy precision.* Source and result have one precision, scale included: copies move, casts compute.

A computation (ML-02, ML-10, OI-03, RD-06):

10. *Arity.* One result. A product has two operands, and a third where it accumulates; a sum and a cast have
    one; an element-wise operation has as many as it takes. There is a relation for each operand.
11. *Precision.* Operands of a product are both F16 or both F8, its result and the sums that it starts from
    are F16. Sums are of F16 and F16. Element-wise operations take F16 and make F16; GELU makes F8 as well. A
    cast changes the precision, or the scale.
12. *Relation.* The relation of an operand holds between its shape and that of the result, partials axes left
    out (OI-04). Operands of a product have the relations of its axes, left and right; the partial sums that
    it starts from, and the operand of a sum, have the coordinates of the result. An element-wise result and
    a cast need one coordinate of each operand.
13. *Partials.* With parts, the result of a product has an axis in front with one coordinate for each part,
    the parts cover the contraction, and a shard holds one partial (ML-38). A sum has at least two partials.
    The axis of partials is not one of the two that an order of matrices orders.
14. *Replicas.* Replicas of a result are equal because their owners compute the same. Sums start with what the
    owner's tile holds, and stochastic rounding differs from tile to tile: neither's results have replicas.
15. *Shards.* Shards of results and operands are boxes, but the operand of a sum may have any. Where a shard
    of a tensor with several axes is a run of its storage sequence, everything that the computation touches is
    row-major, of one shape, cut so, and related by identity.
16. *Locality.* What an owner's shard of the result needs of an operand lies in the shard that its tile holds
    of that operand, the part of the contraction that a partial sums over included. Sums are excepted: they
    fetch their partials (RD-01).
17. *Alias.* An alias names a result and an operand, each at most once. The operand has an owner on each tile
    of the result; the result's shard begins ``displacement`` bytes behind the operand's, or before it where
    that is negative, ends no later and has bytes in common with it. The operand is no parameter, no
    invariant and no member of a sequence of a Repeat (RP-06), and nothing reads it afterwards; a block's
    results are read. An accumulating product has the partial sums that it starts from, of its result's type,
    in its result's storage, and products alias nothing else; sums, whose operand other tiles read meanwhile,
    alias nothing.

A Repeat (ML-34):

18. *Repeat bindings.* It runs at least once. Its body has an argument for each carried value, invariant and
    sequence, and a result for each carried value, as it has itself.
19. *Repeat types.* Shape, format and owners of what is bound to an argument are those of the argument; those
    of a body's result, and of the Repeat's, are those of the carried argument.
20. *Sequence.* A sequence has one member for each iteration; all have one shape, format and owner map.

A body is a block like any other; bodies may hold Repeats.

Not looked at: whether a kernel exists for what a tile computes (families refuse when they bind), whether
anything fits. Not required: that every value is used.

All faults are told at once; what cannot be asked because of an earlier fault of the same operation or value
is not asked. No code is shared with the builder. Cost: columns over owners for each computation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, assert_never, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.mapping import Shape, text_of_shape
from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.region import Region
from compiler.geometry.relation import (
    Follow,
    Identity,
    ProductOperand,
    Relation,
    Side,
    Span,
    operand_axes,
    validate,
)
from compiler.kernels.gemm.binding import Mode, Rounding
from compiler.kernels.pointwise.binding import Operation as Pointwise
from compiler.mid.faults import Clause, Fault, malformed
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    MidProgram,
    MidValueId,
    Operation,
    Repeat,
    StorageAlias,
    Value,
    operands_of,
    results_of,
)
from compiler.mid.shards import is_flat, shard_boxes, shards_on
from compiler.mid.work import Cast, Elementwise, Product, Sum

MOST_DISPLACED: Final = 1 << 32
"""Bytes between two beginnings that no memory has; sums with it fit 64 bits."""


def verify(program: MidProgram) -> tuple[Fault, ...]:
    """All faults of a program; none when it is well formed."""
    parameters = frozenset(program.block.arguments[max(program.input_count, 0) :])
    return (
        *_program_faults(program),
        *_block_faults(program.block, program.tile_count, "", parameters),
    )


def check(program: MidProgram) -> MidProgram:
    """The program, if it is well formed.

    Raises:
        InternalError: it is not; the message lists the faults.
    """
    faults = verify(program)
    if faults:
        raise malformed(program.name, faults)
    return program


def _program_faults(program: MidProgram) -> Iterator[Fault]:
    results, arguments = program.block.results, program.block.arguments
    reasons: list[str] = []
    if not program.name.isprintable() or not program.name:
        reasons.append(f"the name {program.name!r} cannot be printed")
    if program.tile_count < 1:
        reasons.append(f"it is for {program.tile_count} tiles")
    if not 0 <= program.input_count <= len(arguments):
        reasons.append(f"{program.input_count} inputs of {len(arguments)} arguments")
    if len(program.outputs) != len(results) or not results:
        reasons.append(f"{len(program.outputs)} names of outputs for {len(results)} results")
    reasons += [
        f"the output name {name!r} cannot be printed"
        for name in program.outputs
        if not name or not name.isprintable()
    ]
    if len(set(program.outputs)) != len(program.outputs):
        reasons.append("two outputs have one name")
    for reason in reasons:
        yield Fault(clause=Clause.PROGRAM, subject=program.name, reason=reason)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """An operation while it is looked at.

    Args:
        block: its block.
        path: names of the repeats around the block.
        number: of the operation.
        operation: the operation.
    """

    block: Block
    path: str
    number: int
    operation: Operation

    @property
    def subject(self) -> str:
        """The first result, by name."""
        for result in results_of(self.operation):
            if 0 <= result < len(self.block.values):
                return self.path + self.block.values[result].name
        return self.path + "an operation without results"

    @property
    def kind(self) -> str:
        """``operation 3, product``."""
        match self.operation:
            case Compute(work=work):
                kind = type(work).__name__.lower()
            case Copy() | Repeat():
                kind = type(self.operation).__name__.lower()
            case _:
                assert_never(self.operation)
        return f"operation {self.number}, {kind}"

    def value(self, number: MidValueId) -> Value:
        return self.block.values[number]

    def fault(self, clause: Clause, reason: str) -> Fault:
        return Fault(
            clause=clause,
            subject=self.subject,
            operation=self.kind,
            node=self.operation.node,
            reason=reason,
        )


def _block_faults(
    block: Block, tile_count: int, path: str, protected: frozenset[MidValueId]
) -> Iterator[Fault]:
    """Faults of a block, in which nothing may take the storage of ``protected`` values."""
    made: dict[MidValueId, int] = {}
    twice: list[MidValueId] = []
    for number, values in enumerate([block.arguments, *map(results_of, block.operations)], start=-1):
        for value in values:
            if value in made:
                twice.append(value)
            made.setdefault(value, number)
    sound: set[MidValueId] = set()
    named: set[str] = set()
    for number, value in enumerate(block.values):
        faults = [*_value_faults(value, tile_count, path)]
        if not faults:
            sound.add(MidValueId(number))
        yield from faults
        if not value.name or not value.name.isprintable():
            yield _about(Clause.NAME, path, value, f"the name {value.name!r} cannot be printed")
        elif value.name in named:
            yield _about(Clause.NAME, path, value, "another value has this name")
        named.add(value.name)
        if MidValueId(number) not in made:
            yield _about(Clause.SINGLE_ASSIGNMENT, path, value, "nothing makes it")
    for number in dict.fromkeys(twice):
        if _exists(block, number):
            yield _about(Clause.SINGLE_ASSIGNMENT, path, block.values[number], "it is made twice")
    for what, values in (("argument", block.arguments), ("result", block.results)):
        for value in values:
            if not _exists(block, value):
                yield Fault(
                    clause=Clause.REFERENCE,
                    subject=path.removesuffix("/") or "the program",
                    reason=f"{what} is value {value}, which does not exist",
                )
    last_read = _last_reads(block)
    for number, operation in enumerate(block.operations):
        site = _Site(block=block, path=path, number=number, operation=operation)
        touched = (*operands_of(operation), *results_of(operation))
        wrong = [*_reference_faults(site, made)]
        yield from wrong
        match operation:
            case Repeat():
                yield from _repeat_faults(site, operation, tile_count)
            case Copy():
                if not wrong and sound.issuperset(touched):
                    yield from _copy_faults(site, operation)
            case Compute():
                if not wrong and sound.issuperset(touched):
                    yield from _compute_faults(site, operation, last_read, protected)
            case _:
                assert_never(operation)


def _exists(block: Block, value: MidValueId) -> bool:
    return 0 <= value < len(block.values)


def _about(clause: Clause, path: str, value: Value, reason: str) -> Fault:
    return Fault(clause=clause, subject=path + value.name, node=value.node, reason=reason)


def _last_reads(block: Block) -> dict[MidValueId, int]:
    """The last operation that reads a value; one past all operations for results of the block."""
    reads: dict[MidValueId, int] = {}
    for number, operation in enumerate(block.operations):
        reads.update((value, number) for value in operands_of(operation))
    reads.update((value, len(block.operations)) for value in block.results)
    return reads


def _value_faults(value: Value, tile_count: int, path: str) -> Iterator[Fault]:
    if not value.shape or min(value.shape) < 1:
        yield _about(Clause.VALUE, path, value, f"the shape {text_of_shape(value.shape)} has no element")
        return
    try:
        owner_count = value.distribution.owner_count
    except ValueError as error:
        yield _about(Clause.VALUE, path, value, str(error))
        return
    if value.owners.tile_count != tile_count:
        reason = f"its owner map is for {value.owners.tile_count} tiles, not {tile_count}"
        yield _about(Clause.OWNERS, path, value, reason)
    elif value.owners.domain < owner_count:
        reason = f"{owner_count} owners do not fit {value.owners.domain} tiles"
        yield _about(Clause.OWNERS, path, value, reason)


def _reference_faults(site: _Site, made: dict[MidValueId, int]) -> Iterator[Fault]:
    block = site.block
    for value in dict.fromkeys(operands_of(site.operation)):
        if not _exists(block, value):
            yield site.fault(Clause.REFERENCE, f"it reads value {value}, which does not exist")
        elif made.get(value, len(block.operations)) >= site.number:
            reason = f"{block.values[value].name} is used before it is made"
            yield site.fault(Clause.SINGLE_ASSIGNMENT, reason)
    for value in results_of(site.operation):
        if not _exists(block, value):
            yield site.fault(Clause.REFERENCE, f"it makes value {value}, which does not exist")


def _copy_faults(site: _Site, copy: Copy) -> Iterator[Fault]:
    result = site.value(copy.result)
    whole = Region.of_extents(result.shape)
    fits = True
    for number, part in enumerate(copy.parts):
        box, source = part.region, site.value(part.source)
        if box.rank != whole.rank or box.is_empty or not whole.contains(box):
            fits = False
            reason = f"box {box.bounds} of part {number} is empty or leaves {text_of_shape(result.shape)}"
            yield site.fault(Clause.COPY_PARTS, reason)
        for name, shape, wanted in (
            ("destination", part.mapping.destination_shape, box.extents),
            ("source", part.mapping.source_shape, source.shape),
        ):
            if shape != wanted:
                yield site.fault(
                    Clause.COPY_MAPPING,
                    f"the {name} of part {number} is {text_of_shape(wanted)}, "
                    f"its mapping's {text_of_shape(shape)}",
                )
        if source.format.precision != result.format.precision:
            yield site.fault(
                Clause.COPY_PRECISION,
                f"part {number} reads {source.format.precision} into {result.format.precision}",
            )
    if not fits:
        return
    for number, part in enumerate(copy.parts):
        for other, earlier in enumerate(copy.parts[:number]):
            if not part.region.intersect(earlier.region).is_empty:
                yield site.fault(Clause.COPY_PARTS, f"parts {other} and {number} meet")
                return
    filled = sum(part.region.volume for part in copy.parts)
    if filled != whole.volume:
        yield site.fault(
            Clause.COPY_PARTS, f"its parts fill {filled} of {whole.volume} elements of the result"
        )


def _compute_faults(
    site: _Site, compute: Compute, last_read: dict[MidValueId, int], protected: frozenset[MidValueId]
) -> Iterator[Fault]:
    reason = _arity_fault(compute)
    if reason is not None:
        yield site.fault(Clause.ARITY, reason)
        return
    result = site.value(compute.results[0])
    operands = [site.value(operand) for operand in compute.operands]
    reason = _precision_fault(
        compute, result.format.precision, [operand.format.precision for operand in operands]
    )
    if reason is not None:
        yield site.fault(Clause.PRECISION, reason)
    wrong = [
        *(site.fault(Clause.PARTIALS, reason) for reason in _partials_faults(compute, result, operands)),
        *(site.fault(Clause.RELATION, reason) for reason in _relation_faults(compute, result, operands)),
    ]
    yield from wrong
    reason = _replica_fault(compute, result)
    if reason is not None:
        yield site.fault(Clause.REPLICAS, reason)
    yield from _alias_faults(site, compute, last_read, protected)
    if not wrong:
        yield from _placement_faults(site, compute, result, operands)


def _arity_fault(compute: Compute) -> str | None:
    work = compute.work
    match work:
        case Product(mode=mode):
            wanted = 3 if mode is Mode.ACCUMULATE else 2
        case Sum() | Cast():
            wanted = 1
        case Elementwise(operation=operation):
            wanted = 1 if operation is Pointwise.GELU else 2
        case _:
            assert_never(work)
    if len(compute.results) != 1:
        return f"it has {len(compute.results)} results, not one"
    if len(compute.operands) != wanted:
        return f"it has {len(compute.operands)} operands, not {wanted}"
    if len(compute.relations) != wanted:
        return f"it has {len(compute.relations)} relations for {wanted} operands"
    return None


def _precision_fault(compute: Compute, result: Precision, operands: Sequence[Precision]) -> str | None:
    work = compute.work
    match work:
        case Product():
            factors = {type(operand) for operand in operands[:2]}
            fits = factors in ({F16}, {F8}) and all(each == F16() for each in (result, *operands[2:]))
        case Sum():
            fits = all(each == F16() for each in (result, *operands))
        case Elementwise(operation=operation):
            made = F16 if operation is Pointwise.ADD else F16 | F8
            fits = isinstance(result, made) and all(each == F16() for each in operands)
        case Cast():
            fits = operands[0] != result
        case _:
            assert_never(work)
    if fits:
        return None
    read = ", ".join(map(_precision_text, operands))
    return f"it cannot make {_precision_text(result)} from {read}"


def _precision_text(precision: Precision) -> str:
    match precision:
        case F8(scale_exponent=scale):
            return f"F8({scale})"
        case F16() | F32():
            return type(precision).__name__
        case _:
            assert_never(precision)


def _has_partials(compute: Compute) -> bool:
    return isinstance(compute.work, Product) and bool(compute.work.parts)


def _shape_without_partials(compute: Compute, result: Value) -> Shape:
    return result.shape[1:] if _has_partials(compute) else result.shape


def _partials_faults(compute: Compute, result: Value, operands: Sequence[Value]) -> Iterator[str]:
    match compute.work:
        case Product(parts=parts, axes=axes) if parts:
            partials, count = result, len(parts)
            contraction = axes.contraction[0].left
            left = operands[0].shape
            if contraction < len(left) and parts[-1][1] != left[contraction]:
                yield f"its parts end at {parts[-1][1]}, the contraction at {left[contraction]}"
            if result.shape[0] != count:
                yield f"{result.name} has {result.shape[0]} coordinates in front for {count} parts"
        case Sum():
            partials = operands[0]
            if partials.shape[0] < 2:
                yield f"{partials.name} has {partials.shape[0]} partials; a sum needs two"
        case _:
            return
    if len(partials.shape) < 3 and partials.format.layout.order != RowMajor():
        order = type(partials.format.layout.order).__name__
        yield f"{order} of {partials.name} orders the axis of partials"


def _relation_faults(compute: Compute, result: Value, operands: Sequence[Value]) -> Iterator[str]:
    work = compute.work
    shape = _shape_without_partials(compute, result)
    wanted: tuple[Relation | None, ...]
    match work:
        case Product(axes=axes):
            wanted = (
                ProductOperand(axes=axes, side=Side.LEFT),
                ProductOperand(axes=axes, side=Side.RIGHT),
                Identity(rank=len(shape)),
            )
        case Sum():
            wanted = (Identity(rank=len(shape)),)
        case Elementwise() | Cast():
            wanted = (None,) * len(operands)
        case _:
            assert_never(work)
    holds = True
    for number, (operand, relation) in enumerate(zip(operands, compute.relations, strict=True)):
        read = operand.shape[1:] if isinstance(work, Sum) else operand.shape
        needed = wanted[number]
        if needed is not None and relation != needed:
            holds = False
            yield f"operand {number} is read by {relation}, not {needed}"
            continue
        try:
            validate(relation, read, shape)
        except ValueError as error:
            holds = False
            yield f"operand {number}: {error}"
            continue
        if needed is None:
            for axis, reading in enumerate(operand_axes(relation, read)):
                if isinstance(reading, Span) and reading.stop != reading.start + 1:
                    yield (
                        f"operand {number}: each coordinate of the result reads "
                        f"{reading.start}:{reading.stop} along its axis {axis}"
                    )
    if isinstance(work, Product) and holds:
        try:
            work.axes.result_shape(operands[0].shape, operands[1].shape)
        except ValueError as error:
            yield str(error)


def _replica_fault(compute: Compute, result: Value) -> str | None:
    differs = isinstance(compute.work, Sum) or (
        isinstance(compute.work, Product) and compute.work.rounding is Rounding.STOCHASTIC
    )
    replicas = result.distribution.replicas
    if not differs or replicas == 1:
        return None
    return f"{result.name} has {replicas} replicas, which would not be equal"


def _alias_faults(
    site: _Site, compute: Compute, last_read: dict[MidValueId, int], protected: frozenset[MidValueId]
) -> Iterator[Fault]:
    work = compute.work
    if isinstance(work, Product):
        accumulates = work.mode is Mode.ACCUMULATE
        if compute.aliases != ((StorageAlias(result=0, operand=2),) if accumulates else ()):
            what = "its partial sums" if accumulates else "nothing"
            yield site.fault(Clause.ALIAS, f"it takes the storage of {what}, and says otherwise")
            return
        if accumulates and not _is_of_one_type(
            site.value(compute.results[0]), site.value(compute.operands[2])
        ):
            yield site.fault(
                Clause.ALIAS, "the partial sums that it starts from are not of its result's type"
            )
            return
    if isinstance(work, Sum) and compute.aliases:
        yield site.fault(Clause.ALIAS, "other tiles read the operand of a sum while it is made")
        return
    for ends in ([alias.result for alias in compute.aliases], [alias.operand for alias in compute.aliases]):
        if len(set(ends)) != len(ends):
            yield site.fault(Clause.ALIAS, "two aliases have one end")
    for alias in compute.aliases:
        reason = _alias_fault(site, compute, alias, last_read, protected)
        if reason is not None:
            yield site.fault(Clause.ALIAS, reason)


def _alias_fault(
    site: _Site,
    compute: Compute,
    alias: StorageAlias,
    last_read: dict[MidValueId, int],
    protected: frozenset[MidValueId],
) -> str | None:
    if not 0 <= alias.result < len(compute.results) or not 0 <= alias.operand < len(compute.operands):
        return f"result {alias.result} or operand {alias.operand} does not exist"
    number = compute.operands[alias.operand]
    result, operand = site.value(compute.results[alias.result]), site.value(number)
    if number in protected:
        return f"{operand.name} must keep its storage: it is a parameter, an invariant or of a sequence"
    if last_read[number] > site.number:
        return f"{operand.name} is read later"
    tiles = result.owners.tiles(result.distribution.owner_count)
    shards = shards_on(operand, tiles)
    if (shards < 0).any():
        return f"{operand.name} is not on every tile of {result.name}"
    sizes = result.distribution.storage_bytes[result.distribution.shard_of_owner]
    if abs(alias.displacement) > MOST_DISPLACED:
        return f"a shard of {result.name} is {alias.displacement:+d} bytes from that of {operand.name}"
    ends = alias.displacement + sizes
    if (ends > operand.distribution.storage_bytes[shards]).any():
        return f"a shard of {result.name}, {alias.displacement:+d} bytes, leaves that of {operand.name}"
    if ((sizes > 0) & (ends <= 0)).any():
        return f"a shard of {result.name}, {alias.displacement:+d} bytes, lies before that of {operand.name}"
    return None


def _placement_faults(
    site: _Site, compute: Compute, result: Value, operands: Sequence[Value]
) -> Iterator[Fault]:
    """What depends on where shards are: that they are boxes, and that owners have what they need."""
    if isinstance(compute.work, Sum):
        flat, local = is_flat([result]), ()
    else:
        flat, local = is_flat([result, *operands]), tuple(zip(operands, compute.relations, strict=True))
    if flat:
        for operand, relation in local:
            if operand.shape != result.shape or not isinstance(relation, Identity) or _has_partials(compute):
                yield site.fault(
                    Clause.SHARDS,
                    f"{operand.name} and {result.name} are not alike, and one is cut by sequence",
                )
                return
    try:
        made = shard_boxes(result, flat=flat)
        held = [shard_boxes(operand, flat=flat) for operand, _ in local]
    except ValueError as error:
        yield site.fault(Clause.SHARDS, str(error))
        return
    if _has_partials(compute) and (made.physical_stops[:, 0] - made.starts[:, 0] != 1).any():
        yield site.fault(Clause.PARTIALS, f"a shard of {result.name} holds more or less than one partial")
        return
    of_owner = result.distribution.shard_of_owner
    owners = np.flatnonzero(made.is_filled[of_owner])
    tiles = result.owners.tiles(len(of_owner))[owners]
    boxes = made.of(of_owner[owners])
    for (operand, relation), every in zip(local, held, strict=True):
        shards = shards_on(operand, tiles)
        needed = _needed(compute, relation, operand, flat, boxes.starts, boxes.stops)
        missing = shards < 0
        there = every.of(np.maximum(shards, 0))
        for axis, (first, stop) in enumerate(needed):
            missing |= (first < there.starts[:, axis]) | (stop > there.stops[:, axis])
        if missing.any():
            at = int(np.flatnonzero(missing)[0])
            wanted = ",".join(f"{int(first[at])}:{int(stop[at])}" for first, stop in needed)
            has = "nothing of it"
            if shards[at] >= 0:
                bounds = zip(there.starts[at].tolist(), there.stops[at].tolist(), strict=True)
                has = f"[{','.join(f'{first}:{stop}' for first, stop in bounds)}]"
            yield site.fault(
                Clause.LOCALITY,
                f"{int(missing.sum())} tiles need of {operand.name} what they do not hold; tile "
                f"{int(tiles[at])} needs [{wanted}] and holds {has}",
            )


def _needed(
    compute: Compute,
    relation: Relation,
    operand: Value,
    flat: bool,
    starts: npt.NDArray[np.int64],
    stops: npt.NDArray[np.int64],
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """For each axis of an operand, what owners with these boxes of the result read: (starts, stops)."""
    if flat:
        return [(starts[:, 0], stops[:, 0])]
    partial = np.zeros(len(starts), dtype=np.int64)
    parts = compute.work.parts if isinstance(compute.work, Product) else ()
    if parts:
        partial, starts, stops = starts[:, 0], starts[:, 1:], stops[:, 1:]
    summed = -1
    if parts and isinstance(relation, ProductOperand):
        pair = relation.axes.contraction[0]
        summed = pair.left if relation.side is Side.LEFT else pair.right
    needed: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for axis, reading in enumerate(operand_axes(relation, operand.shape)):
        match reading:
            case Follow(axis=followed, start=start):
                needed.append((starts[:, followed] + start, stops[:, followed] + start))
            case Span(start=start, stop=stop):
                bounds = parts if axis == summed else ((start, stop),) * max(1, len(parts))
                table = np.array(bounds, dtype=np.int64)[partial]
                needed.append((table[:, 0], table[:, 1]))
            case _:
                assert_never(reading)
    return needed


def _repeat_faults(site: _Site, repeat: Repeat, tile_count: int) -> Iterator[Fault]:
    body = repeat.body
    carried, fixed = len(repeat.carried), len(repeat.carried) + len(repeat.invariants)
    protected = frozenset(body.arguments[carried:])
    yield from _block_faults(body, tile_count, f"{site.subject}/", protected)
    if repeat.count < 1:
        yield site.fault(Clause.REPEAT_BINDINGS, f"it runs {repeat.count} times")
    bound = fixed + len(repeat.sequences)
    if len(body.arguments) != bound:
        reason = f"its body has {len(body.arguments)} arguments, {bound} are bound"
        yield site.fault(Clause.REPEAT_BINDINGS, reason)
        return
    for what, results in (("its body", body.results), ("it", repeat.results)):
        if len(results) != carried:
            reason = f"{what} has {len(results)} results, {carried} values are carried"
            yield site.fault(Clause.REPEAT_BINDINGS, reason)
            return
    used = (*operands_of(repeat), *repeat.results)
    if not all(_exists(site.block, value) for value in used):
        return
    if not all(_exists(body, value) for value in (*body.arguments, *body.results)):
        return
    arguments = [body.values[argument] for argument in body.arguments]
    pairs: list[tuple[str, Value, Value]] = [
        *(
            ("argument", argument, site.value(value))
            for argument, value in zip(arguments, (*repeat.carried, *repeat.invariants), strict=False)
        ),
        *(
            ("argument", argument, site.value(member))
            for argument, members in zip(arguments[fixed:], repeat.sequences, strict=True)
            for member in members[:1]
        ),
        *(
            ("carried value", argument, body.values[result])
            for argument, result in zip(arguments, body.results, strict=False)
        ),
        *(
            ("carried value", argument, site.value(result))
            for argument, result in zip(arguments, repeat.results, strict=False)
        ),
    ]
    for what, argument, value in pairs:
        if not _is_of_one_type(argument, value):
            reason = f"{what} {argument.name} and {value.name} differ in shape, format or owners"
            yield site.fault(Clause.REPEAT_TYPES, reason)
    for argument, members in zip(arguments[fixed:], repeat.sequences, strict=True):
        if len(members) != repeat.count:
            reason = f"{len(members)} members of {argument.name} for {repeat.count} iterations"
            yield site.fault(Clause.SEQUENCE, reason)
        for member in members[1:]:
            if not _is_of_one_type(site.value(members[0]), site.value(member)):
                reason = (
                    f"members {site.value(members[0]).name} and {site.value(member).name} of {argument.name} "
                    "differ in shape, format or owners"
                )
                yield site.fault(Clause.SEQUENCE, reason)


def _is_of_one_type(one: Value, other: Value) -> bool:
    return (one.shape, one.format, one.owners) == (other.shape, other.format, other.owners)
