"""What a set of moves does to memory, and whether that is what was asked for.

Input: moves with their times. The meaning of a set of moves is a map from bytes to what was there before:
they are carried out in the order of their times on memory in which every byte holds its own name. Two sets of
moves are equivalent if their maps agree on every byte of every tile: nothing is missing, misplaced or changed
besides, and reads and writes of the same bytes happened in an order that comes to the same.

Maps are runs: consecutive bytes with consecutive origins, as long as can be, so that equal maps have equal
runs. Where no byte is written twice or both read and written, the order is of no account and the moves
themselves are the map: all columns, sorted and joined. Otherwise runs are read and replaced, one move after
another.
"""

from bisect import bisect_right
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.target.memory import SRAM_END
from compiler.target.units import WORD_BYTES, Int64Array

_TIME_LIMIT = 1 << 32
"""More than any event; rows of a tile fit its memory."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Consecutive words that go from one place to another, shape [moves].

    Args:
        source: physical tile that sends.
        source_address: byte address of the first word there.
        slot: slot in which it is sent.
        receiver: physical tile that writes.
        address: byte address of the first word there; negative where no pointer is set.
        event: event at which it is written.
        words: how many.
        stream: which of the sending instructions it comes from.
    """

    source: Int64Array
    source_address: Int64Array
    slot: Int64Array
    receiver: Int64Array
    address: Int64Array
    event: Int64Array
    words: Int64Array
    stream: Int64Array

    def taken(self, chosen: Int64Array) -> "Moves":
        """Some of them, in the order given."""
        return Moves(
            source=self.source[chosen],
            source_address=self.source_address[chosen],
            slot=self.slot[chosen],
            receiver=self.receiver[chosen],
            address=self.address[chosen],
            event=self.event[chosen],
            words=self.words[chosen],
            stream=self.stream[chosen],
        )


def line_key(tile: Int64Array, time: Int64Array) -> Int64Array:
    """One number that orders by tile, then by time; times may be a little negative."""
    return tile * _TIME_LIMIT + time


def first_difference(wanted: Moves, found: Moves) -> tuple[int, str] | None:
    """Where two sets of moves first come to something else: the tile, and what is there; None if nowhere."""
    if _order_matters(wanted) or _order_matters(found):
        expected, actual = _carried_out(wanted), _carried_out(found)
    else:
        expected, actual = _as_map(wanted), _as_map(found)
    columns = [
        np.stack([runs.tile, runs.address, runs.size, runs.source, runs.source_address])
        for runs in (expected, actual)
    ]
    common = min(column.shape[1] for column in columns)
    differs = (columns[0][:, :common] != columns[1][:, :common]).any(axis=0)
    if not differs.any() and columns[0].shape == columns[1].shape:
        return None
    index = int(np.argmax(differs)) if differs.any() else common
    tile = min(int(column[0, index]) for column in columns if index < column.shape[1])
    return tile, f"asked for {_run_text(columns[0], index)}, found {_run_text(columns[1], index)}"


def _order_matters(moves: Moves) -> bool:
    """Whether a byte is written twice, or both read and written."""
    written_low = line_key(moves.receiver, moves.address)
    order = np.argsort(written_low)
    written_low = written_low[order]
    written_high = written_low + WORD_BYTES * moves.words[order]
    if (written_low[1:] < written_high[:-1]).any():
        return True
    read_low = line_key(moves.source, moves.source_address)
    # Writes are disjoint and in order: those that meet a read are those between two bisections.
    first = np.searchsorted(written_high, read_low, "right")
    behind = np.searchsorted(written_low, read_low + WORD_BYTES * moves.words, "left")
    return bool((behind > first).any())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Map:
    """Runs of bytes with consecutive origins, as long as can be, in order of tile and address."""

    tile: Int64Array
    address: Int64Array
    size: Int64Array
    source: Int64Array
    source_address: Int64Array


def _as_map(moves: Moves) -> _Map:
    return _joined_runs(
        moves.receiver, moves.address, WORD_BYTES * moves.words, moves.source, moves.source_address
    )


def _joined_runs(
    tile: Int64Array, address: Int64Array, size: Int64Array, source: Int64Array, source_address: Int64Array
) -> _Map:
    """Join disjoint runs that continue each other, and drop those that say that nothing changed."""
    changes = np.flatnonzero((tile != source) | (address != source_address))
    order = changes[np.lexsort((address[changes], tile[changes]))]
    left, right = order[:-1], order[1:]
    goes_on = (
        (tile[left] == tile[right])
        & (address[left] + size[left] == address[right])
        & (source[left] == source[right])
        & (source_address[left] + size[left] == source_address[right])
    )
    first = np.flatnonzero(np.append(True, ~goes_on)[: len(order)])
    return _Map(
        tile=tile[order[first]],
        address=address[order[first]],
        size=np.add.reduceat(size[order], first) if len(first) else size[order],
        source=source[order[first]],
        source_address=source_address[order[first]],
    )


@final
class _Memory:
    """What each byte of some tiles was before: runs of (address, end, origin tile, origin address)."""

    def __init__(self) -> None:
        self._runs: dict[int, list[tuple[int, int, int, int]]] = {}

    def read(self, tile: int, address: int, size: int) -> list[tuple[int, int, int]]:
        """Consecutive runs (size, origin tile, origin address) of a range."""
        runs = self._runs.get(tile, [])
        result: list[tuple[int, int, int]] = []
        end = address + size
        index = max(bisect_right(runs, (address, SRAM_END, 0, 0)) - 1, 0)
        while address < end:
            while index < len(runs) and runs[index][1] <= address:
                index += 1
            if index == len(runs) or runs[index][0] > address:  # never written: it is its own origin
                stop = min(end, runs[index][0]) if index < len(runs) else end
                result.append((stop - address, tile, address))
            else:
                start, run_end, origin, origin_address = runs[index]
                stop = min(end, run_end)
                result.append((stop - address, origin, origin_address + address - start))
            address = stop
        return result

    def write(self, tile: int, address: int, content: list[tuple[int, int, int]]) -> None:
        """Replace a range by runs as ``read`` returns them."""
        runs = self._runs.setdefault(tile, [])
        end = address + sum(size for size, _, _ in content)
        low = max(bisect_right(runs, (address, SRAM_END, 0, 0)) - 1, 0)
        while low < len(runs) and runs[low][1] <= address:
            low += 1
        high = low
        while high < len(runs) and runs[high][0] < end:
            high += 1
        replaced: list[tuple[int, int, int, int]] = []
        for start, stop, origin, origin_address in runs[low:high]:
            if start < address:
                replaced.append((start, address, origin, origin_address))
            if stop > end:
                replaced.append((end, stop, origin, origin_address + end - start))
        at = address
        for size, origin, origin_address in content:
            replaced.append((at, at + size, origin, origin_address))
            at += size
        runs[low:high] = sorted(replaced)

    def as_map(self) -> _Map:
        """All of it."""
        rows = [
            (tile, start, stop - start, origin, origin_address)
            for tile, runs in sorted(self._runs.items())
            for start, stop, origin, origin_address in runs
        ]
        columns = np.array(rows, dtype=np.int64).reshape(-1, 5).T
        return _joined_runs(columns[0], columns[1], columns[2], columns[3], columns[4])


def _carried_out(moves: Moves) -> _Map:
    """Carry moves out in the order of their times.

    A write at event e happens in slot e - 1: a read in slot t sees the writes at events up to t.
    """
    memory = _Memory()
    count = len(moves.words)
    held: dict[int, list[tuple[int, int, int]]] = {}
    source, source_address = moves.source.tolist(), moves.source_address.tolist()
    receiver, address = moves.receiver.tolist(), moves.address.tolist()
    size = (WORD_BYTES * moves.words).tolist()
    time = np.concatenate([2 * moves.slot + 1, 2 * moves.event])
    for step in np.argsort(time, kind="stable").tolist():
        move = step % count
        if step < count:
            held[move] = memory.read(source[move], source_address[move], size[move])
        else:
            memory.write(receiver[move], address[move], held.pop(move))
    return memory.as_map()


def _run_text(columns: Int64Array, index: int) -> str:
    if index >= columns.shape[1]:
        return "nothing more"
    tile, address, size, source, source_address = columns[:, index].tolist()
    return f"{size} bytes at {address:#x} of tile {tile} from {source_address:#x} of tile {source}"
