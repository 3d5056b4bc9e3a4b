"""Distributed packing: a row-major value is brought into panels by more tiles than hold it, and then sent.

Changes a copy from rows to panels into two, through a value in the panels of the result, cut into so many
rows and as few whole panels as there are tiles for. Operands and results keep their types; scratch and a
phase come on top.

Safe because both copies change no number: the first has the mapping of the copy, the second moves equal
coordinates. A copy with a policy or several parts stays, as does one whose source is on as many tiles
already, and one that would not become cheaper.
"""

import dataclasses
from math import prod

from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import identity
from compiler.geometry.order import RowMajor, axis_multiples
from compiler.geometry.owners import OwnerMap
from compiler.geometry.tiling import AxisTiling, GridTiling, Padding
from compiler.mid.ir import Block, Copy, CopyPart, MidProgram, Value
from compiler.mid.rewrites.blocks import BlockEdit, CopyPrice, everywhere, is_open_copy


def pack_rows(program: MidProgram, rows: int, price: CopyPrice) -> MidProgram:
    """A program that packs rows where more tiles can.

    Args:
        program: well formed.
        rows: that one tile packs, at most.
        price: of a copy.

    Raises:
        ValueError: no row is packed at a time.
    """
    if rows < 1:
        raise ValueError(f"tiles pack {rows} rows at a time")
    return everywhere(program, lambda block: _pack(block, rows, price))


def _pack(block: Block, rows: int, price: CopyPrice) -> Block:
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        if not is_open_copy(operation) or len(operation.parts) != 1:
            continue
        (part,) = operation.parts
        source, result = block.value(part.source), block.value(operation.result)
        packed = _packed(source, result, rows)
        if packed is None:
            continue
        sent = Copy(
            parts=(CopyPart(source=part.source, region=part.region, mapping=identity(result.shape)),),
            result=operation.result,
            node=operation.node,
        )
        prices = [
            price(operation, [source], packed),
            price(sent, [packed], result),
            price(operation, [source], result),
        ]
        costs = [cycles for cycles in prices if cycles is not None]
        if len(costs) < len(prices) or costs[0] + costs[1] >= costs[2]:
            continue
        staged = edit.add(packed)
        edit.put(
            position,
            dataclasses.replace(operation, result=staged),
            dataclasses.replace(sent, parts=(dataclasses.replace(sent.parts[0], source=staged),)),
        )
    return edit.finish()


def _packed(source: Value, result: Value, rows: int) -> Value | None:
    """The value between; None where nothing is packed, or no more tiles would pack than hold the source."""
    order, rank = result.format.layout.order, len(result.shape)
    if rank < 2 or order == RowMajor() or source.format.layout.order != RowMajor():
        return None
    tile_count = result.owners.tile_count
    row_unit, panel = axis_multiples(order, result.format.precision, rank)[-2:]
    row_parts = min(-(-result.shape[-2] // rows), -(-result.shape[-2] // row_unit))
    cells = prod(result.shape[:-2]) * row_parts
    column_parts = min(tile_count // cells, -(-result.shape[-1] // panel))
    if column_parts < 1 or cells * column_parts <= source.distribution.owner_count:
        return None
    axes = [AxisTiling(axis=axis, partitions=extent) for axis, extent in enumerate(result.shape[:-2])]
    axes += [
        AxisTiling(axis=axis, partitions=parts, block_size=unit, padding_multiple=unit, padding=Padding.ZERO)
        for axis, parts, unit in ((rank - 2, row_parts, row_unit), (rank - 1, column_parts, panel))
    ]
    layout = TensorLayout(
        order=order,
        tiling=GridTiling(axes=tuple(axes)),
        memory_class=result.format.layout.memory_class,
    )
    return Value(
        name=f"{result.name}.packed",
        shape=result.shape,
        format=TensorFormat(precision=result.format.precision, layout=layout),
        owners=OwnerMap(tile_count=tile_count),
        node=result.node,
    )
