"""Rows appended many at a time are the rows appended one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import RowMajor
from compiler.geometry.precision import F16
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity
from compiler.kernels.contract import Binding
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.pointwise.binding import PointwiseParameters
from compiler.kernels.registry import bind
from compiler.low.address import AddressOperand
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.codec import columns_of_program
from compiler.low.ids import BufferId, SequenceId, ViewId
from compiler.low.ir import LowProgram

_FORM = LocalOperand(
    precision=F16(), order=RowMajor(), backing=(2, 8), region=Region.of_extents((2, 8)), logical=(2, 8)
)
_BYTES = 32


def _add() -> Binding:
    parameters = PointwiseParameters()
    found = bind("pointwise", parameters, (_FORM,) * 3, (None, Identity(rank=2), Identity(rank=2)))
    assert isinstance(found, Binding)
    return found


def _move() -> Binding:
    parameters = CopyParameters(
        kind=Kind.MOVE, rows=1, row_bytes=_BYTES, source_stride=_BYTES, destination_stride=_BYTES
    )
    found = bind("copy", parameters)
    assert isinstance(found, Binding)
    return found


def _singly(tiles: list[int], sequenced: bool) -> LowProgram:
    build = LowBuilder(64)
    node = build.node("n")
    buffers = [
        [build.buffer(tile=tile, byte_count=_BYTES, alignment=8, node=node) for tile in tiles]
        for _ in range(3)
    ]
    shared = [
        build.alias(root, displacement=0, byte_count=_BYTES, alignment=8, node=node) for root in buffers[0]
    ]
    sequences = [SequenceId(-1)] * len(tiles)
    if sequenced:
        sequences = [
            build.sequence([first, second]) for first, second in zip(buffers[1], buffers[2], strict=True)
        ]
    with build.repeat(2):
        step = build.compute_step()
        columns = [
            [build.view(buffer, _FORM, origin=0, sequence=sequence) for buffer, sequence in pairs]
            for pairs in (
                [(alias, SequenceId(-1)) for alias in shared],
                [(buffer, SequenceId(-1)) for buffer in buffers[0]],
                list(zip(buffers[1], sequences, strict=True)),
            )
        ]
        for views in zip(*columns, strict=True):
            build.call(step, _add(), [ViewId(view) for view in views], node)
        for source, destination, sequence in zip(buffers[1], buffers[0], sequences, strict=True):
            build.copy(
                step,
                _move(),
                source=AddressOperand(buffer=source, sequence=sequence),
                destination=AddressOperand(buffer=destination),
                rows=1,
                row_bytes=_BYTES,
                source_stride=_BYTES,
                destination_stride=_BYTES,
                node=node,
            )
        exchange = build.exchange_step()
        for number, source in enumerate(buffers[0]):
            build.transfer(
                exchange,
                source=AddressOperand(buffer=source, displacement=4),
                byte_count=8,
                recipients=[AddressOperand(buffer=buffer) for buffer in buffers[1][: number % 3 + 1]],
                node=node,
            )
    return build.finish()


def _together(tiles: list[int], sequenced: bool) -> LowProgram:
    build = LowBuilder(64)
    node = build.node("n")
    tile = np.array(tiles, dtype=np.int64)
    buffers = [build.buffers(tile=tile, byte_count=_BYTES, alignment=8, node=node) for _ in range(3)]
    shared = build.aliases(buffers[0], displacement=0, byte_count=_BYTES, alignment=8, node=node)
    sequences = np.full(len(tiles), -1, dtype=np.int64)
    if sequenced:
        sequences = build.sequences(np.stack(buffers[1:], axis=1))
    walked = AddressColumns(buffer=buffers[1], sequence=sequences)
    with build.repeat(2):
        step = build.compute_step()
        build.calls(
            step,
            _add(),
            [AddressColumns(buffer=shared), AddressColumns(buffer=buffers[0]), walked],
            node,
        )
        build.copies(
            step,
            _move(),
            source=walked,
            destination=AddressColumns(buffer=buffers[0]),
            rows=1,
            row_bytes=_BYTES,
            source_stride=_BYTES,
            destination_stride=_BYTES,
            node=node,
        )
        counts = np.minimum(np.arange(len(tiles)) % 3 + 1, len(tiles))
        build.transfers(
            build.exchange_step(),
            source=AddressColumns(buffer=buffers[0], displacement=4),
            byte_count=np.full(len(tiles), 8, dtype=np.int64),
            recipient_count=counts,
            recipients=AddressColumns(buffer=np.concatenate([buffers[1][:count] for count in counts])),
            node=node,
        )
    return build.finish()


def _rows(program: LowProgram) -> dict[str, list[int]]:
    """Every column; calls name their views by number, and views are listed in another sequence."""
    columns = {name: column.tolist() for name, column in columns_of_program(program).arrays.items()}
    views = [
        (columns["views.buffer"][v], columns["views.origin"][v], columns["views.sequence"][v])
        for v in columns.pop("calls.operand_views")
    ]
    return {
        **{name: column for name, column in columns.items() if not name.startswith("views.")},
        "seen": [number for view in views for number in view],
    }


@given(
    tiles=st.lists(st.integers(0, 63), min_size=1, max_size=6, unique=True).map(sorted),
    sequenced=st.booleans(),
)
def test_rows_appended_together_are_those_appended_singly(tiles: list[int], sequenced: bool) -> None:
    """LC-01: appending records, whatever the way."""
    assert _rows(_together(tiles, sequenced)) == _rows(_singly(tiles, sequenced))


def test_storage_is_shared_with_roots_only() -> None:
    """An alias of an alias is refused either way, with the same words."""
    build = LowBuilder(1)
    node = build.node("n")
    root = build.buffer(tile=0, byte_count=8, alignment=8, node=node)
    alias = build.alias(root, displacement=0, byte_count=8, alignment=8, node=node)
    with pytest.raises(ValueError, match="buffer 1 shares the storage of 0 and is no root"):
        build.alias(BufferId(alias), displacement=0, byte_count=8, alignment=8, node=node)
    with pytest.raises(ValueError, match="buffer 1 shares the storage of 0 and is no root"):
        build.aliases(np.array([alias], dtype=np.int64), displacement=0, byte_count=8, alignment=8, node=node)
