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
from compiler.exchange.columns import ascending, bounds_of
from compiler.target.memory import SRAM_END
from compiler.target.units import WORD_BYTES, Int64Array

_TILE_SHIFT: Final = int(SRAM_END // WORD_BYTES).bit_length()
"""A word of the chip is its tile, shifted so far, plus its number on the tile."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moves:
    """Consecutive words that go from one place to another, shape [moves]; addresses are whole words of SRAM.

    Args:
        source: physical tile that sends.
        source_address: byte address of the first word there.
        slot: slot in which it is sent.
        receiver: physical tile that writes.
        address: byte address of the first word there.
        event: event at which it is written.
        words: how many.
    """

    source: Int64Array
    source_address: Int64Array
    slot: Int64Array
    receiver: Int64Array
    address: Int64Array
    event: Int64Array
    words: Int64Array


def first_difference(wanted: Moves, found: Moves) -> tuple[int, str] | None:
    """Where two sets of moves first come to something else: the tile, and what is there; None if nowhere."""
    places = [_places(moves) for moves in (wanted, found)]
    orders = [ascending(written) for _, written in places]
    if any(
        _order_matters(written[order], moves.words[order], read, moves.words, ascending(read))
        for (read, written), order, moves in zip(places, orders, (wanted, found), strict=True)
    ):
        begin, first = _touched(places, (wanted, found))
        runs = [
            _joined(*_carried_out(begin, first, read, written, moves.words, _steps(moves)))
            for (read, written), moves in zip(places, (wanted, found), strict=True)
        ]
    else:
        runs = [
            _joined(written[order], read[order], moves.words[order])
            for (read, written), order, moves in zip(places, orders, (wanted, found), strict=True)
        ]
    if runs[0].shape == runs[1].shape and (runs[0] == runs[1]).all():
        return None
    common = min(len(run) for run in runs)
    differs = (runs[0][:common] != runs[1][:common]).any(axis=1)
    index = int(np.argmax(differs)) if differs.any() else common
    tile = min(int(run[index, 0]) >> _TILE_SHIFT for run in runs if index < len(run))
    return tile, f"asked for {_run_text(runs[0], index)}, found {_run_text(runs[1], index)}"


def _places(moves: Moves) -> tuple[Int64Array, Int64Array]:
    """First words of the chip that are read and written."""
    return (
        (moves.source << _TILE_SHIFT) + moves.source_address // WORD_BYTES,
        (moves.receiver << _TILE_SHIFT) + moves.address // WORD_BYTES,
    )


@compiled
def _order_matters(
    written: Int64Array,
    written_words: Int64Array,
    read: Int64Array,
    read_words: Int64Array,
    order: Int64Array,
) -> bool:
    """Whether a word is written twice, or both read and written.

    ``written`` ascends; ``order`` puts ``read`` in order. Writes are disjoint where the second walk begins,
    so that of those that end behind a read only the first can meet it.
    """
    for index in range(1, written.size):
        if written[index - 1] + written_words[index - 1] > written[index]:
            return True
    write = 0
    for position in range(order.size):
        index = order[position]
        while write < written.size and written[write] + written_words[write] <= read[index]:
            write += 1
        if write < written.size and written[write] < read[index] + read_words[index]:
            return True
    return False


@compiled
def _joined(place: Int64Array, origin: Int64Array, words: Int64Array) -> Int64Array:
    """[runs, 3] place, origin and length of runs, from disjoint ones in order.

    Runs that continue each other are joined, those that say that nothing changed dropped.
    """
    runs = np.empty((place.size, 3), dtype=np.int64)
    count = 0
    for index in range(place.size):
        if place[index] == origin[index]:
            continue
        last = count - 1
        if (
            last >= 0
            and runs[last, 0] + runs[last, 2] == place[index]
            and runs[last, 1] + runs[last, 2] == origin[index]
        ):
            runs[last, 2] += words[index]
            continue
        runs[count, 0] = place[index]
        runs[count, 1] = origin[index]
        runs[count, 2] = words[index]
        count += 1
    return runs[:count]


def _touched(
    places: list[tuple[Int64Array, Int64Array]], sets: tuple[Moves, Moves]
) -> tuple[Int64Array, Int64Array]:
    """Stretches of words that any move reads or writes: where each begins, and in a line of all."""
    begin = np.concatenate([place for pair in places for place in pair])
    end = begin + np.concatenate([moves.words for moves in sets for _ in range(2)])
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


@compiled
def _carried_out(
    begin: Int64Array,
    first: Int64Array,
    read: Int64Array,
    written: Int64Array,
    words: Int64Array,
    steps: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Place, origin and length of every word of the stretches, after all steps.

    A stretch begins at a word of the chip (``begin``), and in the line of all stretches (``first``).
    """
    total = int(first[-1])
    place = np.empty(total, dtype=np.int64)
    for stretch in range(begin.size):
        for word in range(first[stretch + 1] - first[stretch]):
            place[first[stretch] + word] = begin[stretch] + word
    origin = place.copy()
    count = words.size
    at = np.zeros(count + 1, dtype=np.int64)
    for move in range(count):
        at[move + 1] = at[move] + words[move]
    held = np.empty(at[count], dtype=np.int64)
    for step in steps:
        move = step if step < count else step - count
        here = read[move] if step < count else written[move]
        stretch = np.searchsorted(begin, here, side="right") - 1
        there = first[stretch] + here - begin[stretch]
        for word in range(words[move]):
            if step < count:
                held[at[move] + word] = origin[there + word]
            else:
                origin[there + word] = held[at[move] + word]
    return place, origin, np.ones(total, dtype=np.int64)


def _run_text(runs: Int64Array, index: int) -> str:
    if index >= len(runs):
        return "nothing more"
    place, origin, words = runs[index].tolist()
    here, there = (
        f"{WORD_BYTES * (word & ((1 << _TILE_SHIFT) - 1)):#x} of tile {word >> _TILE_SHIFT}"
        for word in (place, origin)
    )
    return f"{WORD_BYTES * words} bytes at {here} from {there}"
