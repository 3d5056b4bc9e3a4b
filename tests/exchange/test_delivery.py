"""What moves come to, against a memory of words."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.exchange.delivery import Moves, chip_words, first_difference
from compiler.target.memory import SRAM_BASE

Move = tuple[int, int, int, int, int, int, int]
"""Source, word there, slot, receiver, word there, event, words."""


def moves_of(rows: list[Move]) -> Moves:
    source, read, slot, receiver, written, event, words = np.array(rows, dtype=np.int64).reshape(-1, 7).T
    reads = chip_words(source, SRAM_BASE + 4 * read)
    return Moves(
        read=reads,
        slot=slot,
        written=chip_words(receiver, SRAM_BASE + 4 * written),
        event=event,
        words=words,
        reads=reads,
        read_words=words,
    )


def carried_out(rows: list[Move]) -> dict[tuple[int, int], tuple[int, int]]:
    """Words that changed, with what they hold: a read in slot t sees the writes at events up to t."""
    memory: dict[tuple[int, int], tuple[int, int]] = {}
    held: dict[int, list[tuple[int, int]]] = {}
    steps = [(2 * row[2] + 1, number, 0) for number, row in enumerate(rows)]
    steps += [(2 * row[5], len(rows) + number, 1) for number, row in enumerate(rows)]
    for _, number, is_write in sorted(steps):
        row = number % len(rows)
        source, read, _, receiver, written, _, words = rows[row]
        if is_write:
            for word in range(words):
                memory[receiver, written + word] = held[row][word]
        else:
            held[row] = [memory.get((source, read + word), (source, read + word)) for word in range(words)]
    return {place: origin for place, origin in memory.items() if place != origin}


@st.composite
def moves(draw: st.DrawFn, span: int) -> Move:
    slot = draw(st.integers(0, 30))
    return (
        draw(st.integers(0, 2)),
        draw(st.integers(0, span)),
        slot,
        draw(st.integers(0, 2)),
        draw(st.integers(0, span)),
        draw(st.integers(slot + 1, slot + 20)),
        draw(st.integers(1, 4)),
    )


@given(data=st.data(), span=st.sampled_from((6, 40, 400)))
def test_moves_are_equal_when_they_come_to_the_same(data: st.DataObject, span: int) -> None:
    """Orders that matter and orders that do not, moves cut in two, one changed."""
    rows = data.draw(st.lists(moves(span), max_size=8))
    other = list(rows)
    if rows and data.draw(st.booleans()):
        index = data.draw(st.integers(0, len(rows) - 1))
        source, read, slot, receiver, written, event, words = rows[index]
        other[index : index + 1] = [
            (source, read, slot, receiver, written, event, 1),
            (source, read + 1, slot, receiver, written + 1, event, words - 1),
        ][: 1 if words == 1 else 2]
    if rows and data.draw(st.booleans()):
        other[data.draw(st.integers(0, len(other) - 1))] = data.draw(moves(span))
    difference = first_difference(moves_of(rows), moves_of(other))
    assert (difference is None) == (carried_out(rows) == carried_out(other))


def test_the_difference_names_the_first_run() -> None:
    wanted = moves_of([(0, 10, 5, 1, 0, 9, 4)])
    found = moves_of([(0, 10, 5, 1, 0, 9, 4), (0, 20, 6, 1, 8, 9, 2)])
    assert first_difference(wanted, found) == (
        1,
        "asked for nothing more, found 8 bytes at 0x4c020 of tile 1 from 0x4c050 of tile 0",
    )
