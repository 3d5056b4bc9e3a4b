"""Padding of shards: the bytes that hold no element. When a value has been made, they are zero.

Kernels multiply, add and copy padding along with elements, and say what they need in it. The rule above is
more than most of them need, and is kept in two places:

*before elements arrive*
    A copy or the pieces of a sum arrive by exchange or as local copies, which leave padding alone. It is
    cleared first, exactly or together with the shard around it, whichever is faster. Local copies that write
    a part of a word keep the other part, be it padding or an element that comes later: a shard into which
    such copies go is cleared as a whole, so that nothing is kept that was never written.
*after a kernel*
    Kernels say what they leave in the padding of their results. Where that may be something else than zero (a
    bias that was added to padding rows), exactly those bytes are cleared afterwards.

What nobody needs to be cleared is found out later, from all uses together (``low.rewrites.clears``).
"""

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import distinct_rows
from compiler.geometry.distribution import Distribution
from compiler.geometry.operand import ORIGIN_MODULUS
from compiler.geometry.tiling import GridTiling, round_up
from compiler.kernels.contract import Access, Binding, PaddingState, Refusal
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.registry import bind
from compiler.low.accesses import Spans, subtract, traversal_spans
from compiler.low.accesses import merged as union
from compiler.low.build import LowBuilder
from compiler.low.ids import NodeId, StepId
from compiler.low.ir import Column
from compiler.low.storage import Stored
from compiler.target.costs import KERNEL_LAUNCH
from compiler.target.units import WORD_BYTES, Cycles

Mask: TypeAlias = npt.NDArray[np.bool_]


def has_padding(distribution: Distribution) -> bool:
    """Whether any shard stores more than elements."""
    return bool((distribution.storage_elements != distribution.logical_elements).any())


def clear_before(
    build: LowBuilder,
    step: StepId,
    stored: Stored,
    node: NodeId,
    chosen: Mask | None = None,
    whole: Mask | None = None,
) -> None:
    """Appends fills that make the padding of each shard zero; they may clear elements too.

    Whatever fills the elements comes in a later step.

    Args:
        build: the program.
        step: compute step.
        stored: whose padding.
        node: graph node that it works for.
        chosen: [owners] whose padding; None for all.
        whole: [owners] whose shards are cleared as wholes, padded or not; None for none.
    """
    distribution = stored.distribution
    whole = np.zeros(len(stored.tile), dtype=np.bool_) if whole is None else whole
    wanted = ~whole if chosen is None else chosen & ~whole
    for shards in _alike(distribution):
        shard = int(shards[0])
        owners = distribution.owners[shards].reshape(-1)
        all_of_it = (0, int(distribution.storage_bytes[shard]))
        fills = min((_fills([all_of_it]), _fills(padding_of(distribution, shard))), key=_cycles)
        _append(build, step, fills, stored, owners[wanted[owners]], node)
    cleared = np.flatnonzero(whole)
    sizes = distribution.storage_bytes[distribution.shard_of_owner[cleared]]
    for size in np.unique(sizes).tolist():
        # In words, as buffers are: the last one may hold less than a word of the shard.
        all_of_it = (0, round_up(int(size), WORD_BYTES))
        _append(build, step, _fills([all_of_it]), stored, cleared[sizes == size], node)


def clear_after(
    build: LowBuilder, stored: Stored, calls: Sequence[tuple[Access, Column]], node: NodeId
) -> None:
    """Appends fills of the padding that calls have not left at zero; none, and no step, where there is none.

    Args:
        build: the program.
        stored: the result.
        calls: for each group of calls, what they do to the shard of the result, and the owners that make
            them; all calls that make the result.
        node: graph node that it works for.
    """
    distribution = stored.distribution
    if not has_padding(distribution):
        return
    makers = np.zeros((len(stored.tile), len(calls)), dtype=np.int64)
    for group, (_, owners) in enumerate(calls):
        makers[owners, group] = 1
    step: StepId | None = None
    for shards in _alike(distribution):
        owners = distribution.owners[shards].reshape(-1)
        first, kind = distinct_rows(makers[owners])
        for number, row in enumerate(first.tolist()):
            zero = union(
                span
                for group in np.flatnonzero(makers[owners[row]]).tolist()
                for span in _zero(calls[group][0])
            )
            left = subtract(padding_of(distribution, int(shards[0])), zero)
            if left:
                step = build.compute_step() if step is None else step
                _append(build, step, _fills(left), stored, owners[kind == number], node)


def padding_of(distribution: Distribution, shard: int) -> Spans:
    """The bytes of a shard that hold no element."""
    starts, stops = distribution.held_bytes(shard).gaps(int(distribution.storage_bytes[shard]))
    return tuple(zip(starts.tolist(), stops.tolist(), strict=True))


def _zero(access: Access) -> Spans:
    """Padding that a call leaves at zero."""
    return union(
        span
        for padding in access.padding
        if padding.after is PaddingState.ZERO
        for span in traversal_spans(padding.part)
    )


def _alike(distribution: Distribution) -> list[Column]:
    """Shards with padding, in groups of equal storage and equal elements."""
    padded = np.flatnonzero(distribution.storage_elements != distribution.logical_elements)
    logical = distribution.logical_elements[padded]
    key = np.stack([distribution.shard_map[padded], distribution.storage_elements[padded], logical], axis=1)
    if isinstance(distribution.format.layout.tiling, GridTiling):
        covers = np.zeros((distribution.shard_count, len(distribution.shape)), dtype=np.int64)
        covers[distribution.cover_shard] = distribution.cover.stops - distribution.cover.starts
        key = np.concatenate([key, covers[padded]], axis=1)
    else:
        key = np.concatenate([key, padded[:, None]], axis=1)
    first, number = distinct_rows(key)
    return [padded[number == row].astype(np.int64) for row in range(len(first))]


def _fills(spans: Iterable[tuple[int, int]]) -> list[tuple[int, Binding]]:
    """Fills of spans, and where each begins: those that follow one another at equal distances are one.

    Raises:
        ValueError: a span is no whole number of 16-bit units.
    """
    fills: list[tuple[int, Binding]] = []
    for start, rows, row_bytes, stride in _progressions(list(spans)):
        bound = bind(
            "copy",
            CopyParameters(
                kind=Kind.FILL,
                rows=rows,
                row_bytes=row_bytes,
                destination_stride=stride,
                destination_origin=start % ORIGIN_MODULUS,
            ),
        )
        if isinstance(bound, Refusal):
            raise ValueError(f"padding cannot be cleared: {bound.reason}")
        fills.append((start, bound))
    return fills


def _progressions(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """(first byte, rows, bytes of a row, stride) of ascending spans, as long as they are alike."""
    found: list[tuple[int, int, int, int]] = []
    for start, stop in spans:
        if found:
            first, rows, row_bytes, stride = found[-1]
            distance = start - first - (rows - 1) * stride
            if stop - start == row_bytes and (rows == 1 or distance == stride):
                found[-1] = (first, rows + 1, row_bytes, distance)
                continue
        found.append((start, 1, stop - start, stop - start))
    return found


def _cycles(fills: Sequence[tuple[int, Binding]]) -> Cycles:
    return Cycles(sum(binding.cycles + KERNEL_LAUNCH for _, binding in fills))


def _append(
    build: LowBuilder,
    step: StepId,
    fills: Sequence[tuple[int, Binding]],
    stored: Stored,
    owners: Column,
    node: NodeId,
) -> None:
    for start, binding in fills:
        build.calls(step, binding, [stored.at(owners, start)], node)
