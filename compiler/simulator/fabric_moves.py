"""Moving the data of a phase.

Input: a course without timing or address faults. Every stream is read at once at its first slot, and every
arrival is written at once at its first event, in order of these numbers.

**Why that is exact.** A write at event e happens in slot e - 1, so a read in slot t sees exactly the writes
at events up to t. A stream in slots S .. S + n - 1 and a payload at events P .. P + m - 1 of one tile that
share a byte share a memory element; the checks leave only phases in which then S + n <= P or P + m <= S. The
whole stream therefore sees either nothing or all of the payload, which is what the order of S and P says. A
tile writes one payload at a time, and tiles meet only through the items under way, which take at least 19.
That makes receiving and forwarding in one phase well defined.

**Items under way.** A stream whose bytes nobody writes in this phase holds them itself: arrivals are copied
straight from tile to tile. Others, which forward what arrives or whose place is reused, are read into a
buffer. Most streams are of the first sort, and the copy is bound by memory traffic, which this halves.
"""

import numpy as np
import numpy.typing as npt

from compiler.compiled import compiled
from compiler.simulator.fabric_timeline import Arrivals, Streams, time_key
from compiler.target.memory import SRAM_BASE
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array

WRITTEN = 15
"""Shadow of a word of which all four bytes were written."""

_DIRECT = -1


def move(
    streams: Streams,
    arrivals: Arrivals,
    memory: npt.NDArray[np.uint32],
    shadow: npt.NDArray[np.uint8],
    places: Int64Array,
) -> Int64Array:
    """Move all items.

    Args:
        streams: what is sent.
        arrivals: what is written, and where.
        memory: SRAM, shape [places, words]; changed.
        shadow: bit k of an entry says that byte k of the word was written; same shape, changed.
        places: row of ``memory`` of each tile that streams and arrivals index.

    Returns:
        Of each stream the first word that is not wholly written, counted in words, or -1.
    """
    words = streams.count * (streams.size // WORD_BYTES)
    item_words = streams.size[arrivals.stream] // WORD_BYTES
    arrival_words = arrivals.count * item_words
    changes = _overwritten(streams, words, arrivals, arrival_words)
    buffered = np.where(changes, words, 0)
    start = np.where(changes, np.cumsum(buffered) - buffered, _DIRECT)
    time = np.concatenate([arrivals.event, streams.slot])
    unwritten = np.full(len(words), -1, dtype=np.int64)
    _run(
        np.argsort(time, kind="stable"),
        start,
        words,
        (streams.address - SRAM_BASE) // WORD_BYTES,
        places[streams.tile],
        arrivals.stream,
        arrivals.item * item_words,
        arrival_words,
        (arrivals.address - SRAM_BASE) // WORD_BYTES,
        places[arrivals.tile],
        memory,
        shadow,
        np.empty(int(buffered.sum()), dtype=np.uint32),
        np.empty(int(buffered.sum()), dtype=np.uint8),
        unwritten,
    )
    return unwritten


def _overwritten(
    streams: Streams, words: Int64Array, arrivals: Arrivals, arrival_words: Int64Array
) -> BoolArray:
    """Streams with a byte that some arrival on their tile writes, whenever it does."""
    if not len(arrivals.tile):
        return np.zeros(len(words), dtype=np.bool_)
    begin = time_key(arrivals.tile, arrivals.address)
    order = np.argsort(begin, kind="stable")
    # Of all arrivals that begin before a stream ends, does the furthest end behind its beginning?
    furthest = np.maximum.accumulate((begin + WORD_BYTES * arrival_words)[order])
    last = np.searchsorted(begin[order], time_key(streams.tile, streams.address + WORD_BYTES * words)) - 1
    return (last >= 0) & (furthest[np.maximum(last, 0)] > time_key(streams.tile, streams.address))


@compiled(nogil=True)
def _run(
    order: Int64Array,
    start: Int64Array,
    read_count: Int64Array,
    read_word: Int64Array,
    read_place: Int64Array,
    write_stream: Int64Array,
    write_item: Int64Array,
    write_count: Int64Array,
    write_word: Int64Array,
    write_place: Int64Array,
    memory: npt.NDArray[np.uint32],
    shadow: npt.NDArray[np.uint8],
    buffer: npt.NDArray[np.uint32],
    buffer_shadow: npt.NDArray[np.uint8],
    unwritten: Int64Array,
) -> None:
    """Take the steps in ``order``: numbers below that of the arrivals are writes, the others reads."""
    for position in range(order.size):
        step = int(order[position])
        if step < write_stream.size:
            stream = int(write_stream[step])
            to = int(write_place[step])
            first = int(write_item[step])
            if start[stream] == _DIRECT:
                place = int(read_place[stream])
                _copy(
                    memory[to],
                    shadow[to],
                    int(write_word[step]),
                    memory[place],
                    shadow[place],
                    int(read_word[stream]) + first,
                    int(write_count[step]),
                )
            else:
                _copy(
                    memory[to],
                    shadow[to],
                    int(write_word[step]),
                    buffer,
                    buffer_shadow,
                    int(start[stream]) + first,
                    int(write_count[step]),
                )
        else:
            stream = step - write_stream.size
            place = int(read_place[stream])
            first = int(read_word[stream])
            count = int(read_count[stream])
            for word in range(count):
                if shadow[place, first + word] != WRITTEN:
                    unwritten[stream] = word
                    break
            if start[stream] != _DIRECT:
                _copy(buffer, buffer_shadow, int(start[stream]), memory[place], shadow[place], first, count)


@compiled(nogil=True)
def _copy(
    to: npt.NDArray[np.uint32],
    to_shadow: npt.NDArray[np.uint8],
    to_word: int,
    source: npt.NDArray[np.uint32],
    source_shadow: npt.NDArray[np.uint8],
    source_word: int,
    count: int,
) -> None:
    for word in range(count):
        to[to_word + word] = source[source_word + word]
    for word in range(count):
        to_shadow[to_word + word] = source_shadow[source_word + word]
