"""How whole-device programs are kept in the store, and their digest.

A program is one column of canonical JSON: the distinct formats and owner maps in two tables, and blocks whose
values name rows of them; everything is a tree of frozen dataclasses as ``store.canonical`` writes them. It is
read back only into classes that a stored program can hold by its declarations.

The digest leaves out what has no influence on what is built: names of program, values and outputs, the graph
nodes that things belong to, and the order of the table of values. Candidates with equal digests are one
candidate.
"""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeAlias, assert_never, final

import numpy as np

from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import Shape
from compiler.geometry.owners import OwnerMap
from compiler.mid.ir import Block, Compute, Copy, MidProgram, MidValueId, Operation, Repeat, Value
from compiler.mid.order import in_definition_order
from compiler.store.canonical import decode, digest_value, encode, from_text, to_text
from compiler.store.classes import reachable_classes
from compiler.store.codec import ColumnsCodec
from compiler.store.container import Columns
from compiler.store.digest import Digest

VERSION: Final = 1
"""Of what is stored and hashed; raise it to disown all earlier texts and digests."""

_COLUMN: Final = "program"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredValue:
    """A value whose format and owner map are rows of the program's tables."""

    name: str
    shape: Shape
    format: int
    owners: int
    node: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRepeat:
    """A Repeat with a stored body."""

    count: int
    carried: tuple[MidValueId, ...]
    invariants: tuple[MidValueId, ...]
    sequences: tuple[tuple[MidValueId, ...], ...]
    body: "StoredBlock"
    results: tuple[MidValueId, ...]
    node: str


StoredOperation: TypeAlias = Copy | Compute | StoredRepeat


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlock:
    """A block of stored values and operations."""

    values: tuple[StoredValue, ...]
    arguments: tuple[MidValueId, ...]
    operations: tuple[StoredOperation, ...]
    results: tuple[MidValueId, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProgram:
    """A program, as it is kept."""

    version: int
    name: str
    tile_count: int
    input_count: int
    outputs: tuple[str, ...]
    formats: tuple[TensorFormat, ...]
    owners: tuple[OwnerMap, ...]
    block: StoredBlock


def program_digest(program: MidProgram) -> Digest:
    """The digest of a well-formed program, names left out."""
    return digest_value(
        _stored(
            MidProgram(
                name="",
                tile_count=program.tile_count,
                block=_without_names(in_definition_order(program.block)),
                input_count=program.input_count,
                outputs=("",) * len(program.outputs),
            )
        )
    )


def columns_of_program(program: MidProgram) -> Columns:
    """A program as one column of text in bytes."""
    text = to_text(encode(_stored(program)))
    return Columns(arrays={_COLUMN: np.frombuffer(text, dtype=np.uint8)})


def program_of_columns(columns: Columns) -> MidProgram:
    """The inverse.

    Raises:
        ValueError: the column is not that of a program.
    """
    text = columns.arrays.get(_COLUMN)
    if text is None or text.dtype != np.uint8 or len(columns.arrays) != 1:
        raise ValueError(f"the table holds no whole-device program: it has not one column, {_COLUMN}")
    stored = decode(from_text(text.tobytes()), _class_of)
    if not isinstance(stored, StoredProgram) or stored.version != VERSION:
        raise ValueError(f"the text is no whole-device program of version {VERSION}")
    try:
        block = _restored(stored.block, stored.formats, stored.owners)
    except IndexError:
        raise ValueError("a value has a format or owner map that the program does not list") from None
    return MidProgram(
        name=stored.name,
        tile_count=stored.tile_count,
        block=block,
        input_count=stored.input_count,
        outputs=stored.outputs,
    )


MID_PROGRAM: Final = ColumnsCodec(columns=columns_of_program, value=program_of_columns)
"""What stages that give or take whole-device programs declare."""


def _without_names(block: Block) -> Block:
    operations: list[Operation] = []
    for operation in block.operations:
        match operation:
            case Repeat(body=body):
                operations.append(dataclasses.replace(operation, node="", body=_without_names(body)))
            case Copy() | Compute():
                operations.append(dataclasses.replace(operation, node=""))
            case _:
                assert_never(operation)
    return dataclasses.replace(
        block,
        values=tuple(dataclasses.replace(value, name="", node="") for value in block.values),
        operations=tuple(operations),
    )


def _stored(program: MidProgram) -> StoredProgram:
    formats: dict[TensorFormat, int] = {}
    owners: dict[OwnerMap, int] = {}
    block = _stored_block(program.block, formats, owners)
    return StoredProgram(
        version=VERSION,
        name=program.name,
        tile_count=program.tile_count,
        input_count=program.input_count,
        outputs=program.outputs,
        formats=tuple(formats),
        owners=tuple(owners),
        block=block,
    )


def _stored_block(block: Block, formats: dict[TensorFormat, int], owners: dict[OwnerMap, int]) -> StoredBlock:
    values = tuple(
        StoredValue(
            name=value.name,
            shape=value.shape,
            format=formats.setdefault(value.format, len(formats)),
            owners=owners.setdefault(value.owners, len(owners)),
            node=value.node,
        )
        for value in block.values
    )
    operations: list[StoredOperation] = []
    for operation in block.operations:
        match operation:
            case Copy() | Compute():
                operations.append(operation)
            case Repeat():
                operations.append(
                    StoredRepeat(
                        count=operation.count,
                        carried=operation.carried,
                        invariants=operation.invariants,
                        sequences=operation.sequences,
                        body=_stored_block(operation.body, formats, owners),
                        results=operation.results,
                        node=operation.node,
                    )
                )
            case _:
                assert_never(operation)
    return StoredBlock(
        values=values,
        arguments=block.arguments,
        operations=tuple(operations),
        results=block.results,
    )


def _restored(block: StoredBlock, formats: tuple[TensorFormat, ...], owners: tuple[OwnerMap, ...]) -> Block:
    operations: list[Operation] = []
    for operation in block.operations:
        match operation:
            case Copy() | Compute():
                operations.append(operation)
            case StoredRepeat():
                operations.append(
                    Repeat(
                        count=operation.count,
                        carried=operation.carried,
                        invariants=operation.invariants,
                        sequences=operation.sequences,
                        body=_restored(operation.body, formats, owners),
                        results=operation.results,
                        node=operation.node,
                    )
                )
            case _:
                assert_never(operation)
    return Block(
        values=tuple(
            Value(
                name=value.name,
                shape=value.shape,
                format=formats[value.format],
                owners=owners[value.owners],
                node=value.node,
            )
            for value in block.values
        ),
        arguments=block.arguments,
        operations=tuple(operations),
        results=block.results,
    )


def _class_of(reference: str) -> type:
    found = _classes().get(reference)
    if found is None:
        raise ValueError(f"{reference} is no class that a whole-device program holds")
    return found


@cache
def _classes() -> Mapping[str, type]:
    return reachable_classes([StoredProgram])
