"""Calls of every kernel at several specializations: extents, scales, strides and places in larger storage."""

import itertools
from collections.abc import Iterator

from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.geometry.product import matrix_product
from compiler.geometry.relation import Identity, broadcast_relation
from compiler.kernels import registry
from compiler.kernels.contract import Binding, Refusal
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.gemm.binding import GemmParameters, Mode, Rounding
from compiler.kernels.pointwise.binding import Operation, PointwiseParameters
from compiler.kernels.reduce.binding import ReduceParameters
from tests.kernels.casts import cast, shared
from tests.kernels.products import plain, product
from tests.kernels.rearranging import call
from tests.kernels.tensors import operand

PRECISIONS: tuple[tuple[Precision, ...], ...] = (
    (F32(), F16(), F8(scale_exponent=-3)),
    (F32(), F16(), F8(scale_exponent=5)),
)


def every_call() -> Iterator[Binding]:
    """Bindings; where a family refuses a combination there is none."""
    for answer in itertools.chain(_casts(), _copies(), _products(), _pointwise(), _rearranged(), _sums()):
        if isinstance(answer, Binding):
            yield answer


def _casts() -> Iterator[Binding | Refusal]:
    for precisions, is_separate in itertools.product(PRECISIONS, (False, True)):
        for one, other in itertools.product(precisions, precisions):
            for count, aliases in (
                (7, ()),
                (900, ()),
                (900, (shared(-1024),)),
                (800, (shared(-32768),)),
                (70, (shared(-32768),)),
            ):
                source, result = (operand(RowMajor(), (count,), precision=each) for each in (one, other))
                yield cast(result, source, *aliases, is_separate=is_separate)
        codes = precisions[2]
        for rows, aliases in ((20, ()), (90, ()), (20, (shared(-1024),))):
            halves = operand(AmpLeft(), (rows, 48))
            whole = operand(AmpLeft(), (rows, 64), logical=(rows, 48), precision=codes)
            yield cast(whole, halves, *aliases, is_separate=is_separate)
            yield cast(halves, whole, *aliases, is_separate=is_separate)
            yield cast(whole, operand(RowMajor(), (rows, 48)), is_separate=is_separate)


def _copies() -> Iterator[Binding | Refusal]:
    for kind, unit, rows, gap in itertools.product(Kind, (2, 4, 8), (1, 5), (0, 3)):
        for units in (3, 50):
            stride = (units + gap) * unit
            yield registry.bind(
                "copy",
                CopyParameters(
                    kind=kind,
                    rows=rows,
                    row_bytes=units * unit,
                    destination_stride=stride,
                    source_stride=stride if kind is Kind.MOVE else 0,
                ),
            )


def _products() -> Iterator[Binding | Refusal]:
    for mode, is_wide, rounding in itertools.product(Mode, (False, True), Rounding):
        for rows, groups in ((3, 1), (80, 2)):
            for precision in (F16(), F8(scale_exponent=-3), F8(scale_exponent=2)):
                yield plain(
                    rows,
                    groups * precision.micro,
                    32,
                    mode=mode,
                    is_wide=is_wide,
                    rounding=rounding,
                    precisions=(precision, precision),
                )
        for blocks, group in ((2, 64), (5, 48)):
            yield product(
                operand(
                    BlockMajorTransposed(row_block=group, column_block=16),
                    (16 * blocks, group),
                    is_interleaved=True,
                ),
                operand(AmpLeft(), (16 * blocks, 32)),
                operand(AmpRight(), (32, group), is_interleaved=is_wide),
                GemmParameters(mode=mode, rounding=rounding),
                matrix_product((16 * blocks, 32), (32, group)),
            )


def _pointwise() -> Iterator[Binding | Refusal]:
    for rows, width in itertools.product((1, 9, 30), (5, 6, 8, 48)):
        whole, row = operand(RowMajor(), (rows, width)), operand(RowMajor(), (width,))
        identity, along = Identity(rank=2), broadcast_relation(row.physical, whole.physical)
        for second, relation in ((whole, identity), (row, along)):
            yield registry.bind(
                "pointwise", PointwiseParameters(), (whole, whole, second), (None, identity, relation)
            )
        panels = operand(AmpLeft(), (rows, -(-width // 16) * 16), logical=(rows, width))
        codes = (F8(scale_exponent=-3), F8(scale_exponent=2))
        for result in (
            whole,
            panels,
            *(operand(RowMajor(), (rows, width), precision=each) for each in codes),
        ):
            yield registry.bind(
                "pointwise", PointwiseParameters(operation=Operation.GELU), (result, whole), (None, identity)
            )
            yield registry.bind(
                "pointwise",
                PointwiseParameters(operation=Operation.BIAS_GELU),
                (result, whole, row),
                (None, identity, along),
            )


_ORDERS: tuple[ElementOrder, ...] = (
    RowMajor(),
    AmpLeft(),
    AmpOutput(),
    AmpRight(),
    AmpTransposedLeft(),
    AmpTransposedOutput(),
    AmpTransposedRight(),
    BlockMajor(row_block=32, column_block=16),
    BlockMajorTransposed(row_block=32, column_block=16),
)


def _rearranged() -> Iterator[Binding | Refusal]:
    for precision, order, other in itertools.product((F16(), F8()), _ORDERS, _ORDERS):
        for logical in ((64, 64), (32, 96), (2, 64, 32), (20, 18), (40, 34), (5, 17), (2, 30, 33)):
            yield call(order, other, logical, precision=precision)


def _sums() -> Iterator[Binding | Refusal]:
    for count, partials in itertools.product((4, 100), (1, 6)):
        vector, stack = operand(RowMajor(), (count,)), operand(RowMajor(), (partials, count))
        yield registry.bind(
            "reduce",
            ReduceParameters(partials=partials),
            (vector, vector, stack),
            (None, Identity(rank=1), None),
        )
