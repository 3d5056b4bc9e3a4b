"""What a set of moves does to memory, and whether that is what was asked for.

Input: moves with their times. The meaning of a set of moves is a map from words to what was there before:
they are carried out in the order of their times on memory in which every word holds its own name. Two sets of
moves are equivalent if their maps agree on every word of every tile: nothing is missing, misplaced or changed
besides, and reads and writes of the same words happened in an order that comes to the same.

Maps are runs: consecutive words with consecutive origins, as long as can be, so that equal maps have equal
runs. Where no word is written twice or both read and written, the order is of no account and the moves
themselves are the map: sorted by place and joined. Otherwise the words that any move of either set touches
are laid end to end, and the moves are carried out on them one after another.
"""

from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.columns import ascending, bounds_of, expanded
from compiler.target.memory import SRAM_END
from compiler.target.units import WORD_BYTES, Int64Array

_TILE_SHIFT: Final = int(SRAM_END // WORD_BYTES).bit_length()
"""A word of the chip is its tile, shifted so far, plus its number on the tile."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Consecutive words that go from one place to another. Places are words of the chip.

    Args:
        read: [moves] place of the first word that is sent.
        slot: [moves] slot in which it is.
        written: [moves] where it goes.
        event: [moves] event at which it is written.
        words: [moves] how many.
        reads: [reads] places of first words that are sent, those of several moves perhaps once.
        read_words: [reads] how many.
    """

    read: Int64Array
    slot: Int64Array
    written: Int64Array
    event: Int64Array
    words: Int64Array
    reads: Int64Array
    read_words: Int64Array


def chip_words(tile: Int64Array, address: Int64Array) -> Int64Array:
    """Words of the chip at byte addresses, which are whole words of SRAM, of physical tiles."""
    return (tile << _TILE_SHIFT) + address // WORD_BYTES


def first_difference(wanted: Moves, found: Moves) -> tuple[int, str] | None:
    """Where two sets of moves first come to something else: the tile, and what is there; None if nowhere."""
    both = (wanted, found)
    orders = [ascending(moves.written) for moves in both]
    if any(
        _order_matters(
            order, moves.written, moves.words, ascending(moves.reads), moves.reads, moves.read_words
        )
        for order, moves in zip(orders, both, strict=True)
    ):
        begin, first = _touched(both)
        runs = [
            _joined(np.arange(int(first[-1])), *_carried_out(begin, first, moves, _steps(moves)))
            for moves in both
        ]
    else:
        columns = [
            (order, moves.written, moves.read, moves.words) for order, moves in zip(orders, both, strict=True)
        ]
        if _have_equal_runs(*columns[0], *columns[1]):
            return None
        runs = [_joined(*one) for one in columns]
    if runs[0].shape == runs[1].shape and (runs[0] == runs[1]).all():
        return None
    common = min(len(run) for run in runs)
    differs = (runs[0][:common] != runs[1][:common]).any(axis=1)
    index = int(np.argmax(differs)) if differs.any() else common
    tile = min(int(run[index, 0]) >> _TILE_SHIFT for run in runs if index < len(run))
    return tile, f"asked for {_run_text(runs[0], index)}, found {_run_text(runs[1], index)}"


@compiled
def _order_matters(
    write_order: Int64Array,
    written: Int64Array,
    words: Int64Array,
    read_order: Int64Array,
    reads: Int64Array,
    read_words: Int64Array,
) -> bool:
    """Whether a word is written twice, or both read and written; orders are those of places.

    Where the second walk begins writes are disjoint, so that of those that end behind the beginning of a read
    only the first can meet it.
    """
    end = 0
    for move in write_order:
        if written[move] < end:
            return True
        end = written[move] + words[move]
    position = 0
    for read in read_order:
        while (
            position < write_order.size
            and written[write_order[position]] + words[write_order[position]] <= reads[read]
        ):
            position += 1
        if position == write_order.size:
            return False
        if written[write_order[position]] < reads[read] + read_words[read]:
            return True
    return False


@compiled
def _run(
    order: Int64Array, place: Int64Array, origin: Int64Array, words: Int64Array, position: int
) -> tuple[int, int, int, int]:
    """The first run from a position in an order of places on: place, origin, words; and a position behind it.

    Without words there is none.
    """
    begin = 0
    source = 0
    count = 0
    while position < order.size:
        index = order[position]
        if place[index] != origin[index]:
            if count == 0:
                begin = int(place[index])
                source = int(origin[index])
            elif begin + count != place[index] or source + count != origin[index]:
                break
            count += int(words[index])
        position += 1
    return begin, source, count, position


@compiled
def _have_equal_runs(
    order: Int64Array,
    place: Int64Array,
    origin: Int64Array,
    words: Int64Array,
    other_order: Int64Array,
    other_place: Int64Array,
    other_origin: Int64Array,
    other_words: Int64Array,
) -> bool:
    """Whether two sets of moves have the same runs; arguments as of ``_joined``."""
    position = 0
    other_position = 0
    while True:
        begin, source, count, position = _run(order, place, origin, words, position)
        other_begin, other_source, other_count, other_position = _run(
            other_order, other_place, other_origin, other_words, other_position
        )
        if begin != other_begin or source != other_source or count != other_count:
            return False
        if count == 0:
            return True


@compiled
def _joined(order: Int64Array, place: Int64Array, origin: Int64Array, words: Int64Array) -> Int64Array:
    """[runs, 3] place, origin and length of runs, from disjoint ones in an order of places.

    Runs that continue each other are joined, those that say that nothing changed dropped.
    """
    runs = np.empty((place.size, 3), dtype=np.int64)
    found = 0
    position = 0
    while True:
        begin, source, count, position = _run(order, place, origin, words, position)
        if count == 0:
            return runs[:found]
        runs[found, 0] = begin
        runs[found, 1] = source
        runs[found, 2] = count
        found += 1


def _touched(both: tuple[Moves, Moves]) -> tuple[Int64Array, Int64Array]:
    """Stretches of words that any move reads or writes: where each begins, and in a line of all."""
    begin = np.concatenate([place for moves in both for place in (moves.read, moves.written)])
    end = begin + np.concatenate([moves.words for moves in both for _ in range(2)])
    order = ascending(begin)
    reach = np.maximum.accumulate(end[order])
    is_new = np.append(True, begin[order][1:] > reach[:-1])
    first = np.flatnonzero(is_new)
    last = np.append(first[1:], len(order)) - 1
    stretch = begin[order][first]
    return stretch, bounds_of(reach[last] - stretch)


def _steps(moves: Moves) -> Int64Array:
    """Moves numbered twice, as reads and behind them as writes, in order of time.

    A write at event e happens in slot e - 1: a read in slot t sees the writes at events up to t.
    """
    return ascending(np.concatenate([2 * moves.slot + 1, 2 * moves.event]))


def _carried_out(
    begin: Int64Array, first: Int64Array, moves: Moves, steps: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Place, origin and length of every word of the stretches, after all steps.

    A stretch begins at a word of the chip (``begin``), and in the line of all stretches (``first``).
    """
    place = expanded(begin, np.diff(first))
    origin = place.copy()
    held = bounds_of(moves.words)
    stretch = np.searchsorted(begin, moves.read, side="right") - 1
    read = first[stretch] + moves.read - begin[stretch]
    stretch = np.searchsorted(begin, moves.written, side="right") - 1
    written = first[stretch] + moves.written - begin[stretch]
    _carry_out(origin, np.empty(int(held[-1]), dtype=np.int64), held, read, written, moves.words, steps)
    return place, origin, np.ones_like(place)


@compiled
def _carry_out(
    origin: Int64Array,
    held: Int64Array,
    first_held: Int64Array,
    read: Int64Array,
    written: Int64Array,
    words: Int64Array,
    steps: Int64Array,
) -> None:
    """Take steps on ``origin``; what a move has read and not yet written is ``held``."""
    for step in steps:
        move = step if step < words.size else step - words.size
        for word in range(words[move]):
            if step < words.size:
                held[first_held[move] + word] = origin[read[move] + word]
            else:
                origin[written[move] + word] = held[first_held[move] + word]


def _run_text(runs: Int64Array, index: int) -> str:
    if index >= len(runs):
        return "nothing more"
    place, origin, words = runs[index].tolist()
    here, there = (
        f"{WORD_BYTES * (word & ((1 << _TILE_SHIFT) - 1)):#x} of tile {word >> _TILE_SHIFT}"
        for word in (place, origin)
    )
    return f"{WORD_BYTES * words} bytes at {here} from {there}"
