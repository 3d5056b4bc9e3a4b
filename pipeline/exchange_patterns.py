"""Exchange phases for measurements: a pattern and a seed give a low program of one step, placed.

Inputs: the name of a pattern and a seed. Output: a ``Workload``: a demand at addresses from the placement, in
which what a tile sends and what it receives lie in different memory elements, as the phase needs them to run
both ways at once. All patterns use all 1,472 tiles; lists of transfers are shuffled.

=====================  ================================================================================
``balanced``           16-relation: every tile sends 16 spans of 64 words and receives 16, partners random
``groups``             46 groups of 32 consecutive tiles, in each all to all with 12 words
``strided-groups``     the same with every 46th tile in a group
``gemm``               grid of 32 x 46: 16 words of each tile to all others of its row, 16 more to its column
``mixed``              16-relation of 8 to 256 words, lengths random
``hot``                8-relation of 64 words, and each tile sends 64 more to one of 23 hot receivers
``retile``             [1458, 4304] F16 from one random grid to another, about 390,000 transfers
``retile-fine``        the same between finer grids, about 1,170,000 transfers
``multicast``          5,562 spans of 16 words to 118,812 recipients, each to the others of a line of 22 tiles
``scattered``          the same to 21 or 22 random tiles each
=====================  ================================================================================

Sixteen words is a choice: a GEMM of small tiles, in which latency counts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, final

import numpy as np

from compiler.exchange.columns import bounds_of, expanded
from compiler.exchange.demand import placed_transfers
from compiler.exchange.ir import PlacedTransfers
from compiler.low.ids import NO_ROW, StepId
from compiler.low.ir import (
    Buffers,
    Calls,
    Copies,
    ExchangeStep,
    LowProgram,
    Recipients,
    Role,
    Separations,
    Sequences,
    Transfers,
    Views,
)
from compiler.placement.place import place
from compiler.target.tiles import TILE_COUNT, physical_tiles
from compiler.target.units import WORD_BYTES, Int64Array

STEP: Final = StepId(0)
GROUPS: Final = 46
ROWS: Final = 32
GEMM_WORDS: Final = 16
HOT_RECEIVERS: Final = 23
BALANCED_WORDS: Final = 64
GROUP_WORDS: Final = 12
MULTICASTS: Final = 5562
MULTICAST_RECIPIENTS: Final = 118_812
LINE: Final = 22
MATRIX: Final = (1458, 4304)
"""Rows and columns of the retiled matrix; an element has half a word."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """What moves, in logical tiles: spans out of the one buffer of each tile into the other.

    Args:
        source: [transfers] tile.
        words: [transfers] length.
        source_word: [transfers] first word in the tile's source buffer.
        first_recipient: [transfers + 1].
        receiver: [recipients] tile; ascending within a transfer.
        receiver_word: [recipients] first word in the tile's destination buffer.
    """

    source: Int64Array
    words: Int64Array
    source_word: Int64Array
    first_recipient: Int64Array
    receiver: Int64Array
    receiver_word: Int64Array


def phase_of(pattern: str, seed: int) -> PlacedTransfers:
    """The transfers of a pattern, placed, in shuffled order.

    Raises:
        KeyError: there is no such pattern.
    """
    random = np.random.default_rng(seed)
    program = _program(_shuffled(PATTERNS[pattern](random), random), pattern)
    placement = place(program, reserved=())
    transfers, _ = placed_transfers(program, placement, STEP, physical_tiles(np.arange(TILE_COUNT)))
    return transfers


def _packed(tile: Int64Array, words: Int64Array) -> Int64Array:
    """Where spans begin that lie one after the other on each tile, in the order of their rows."""
    order = np.argsort(tile, kind="stable")
    ends = np.cumsum(words[order])
    begins = ends - words[order]
    first = np.searchsorted(tile[order], tile[order])
    place = np.empty_like(words)
    place[order] = begins - begins[first]
    return place


def _spans(source: Int64Array, words: Int64Array, counts: Int64Array, receiver: Int64Array) -> Spans:
    """Spans packed in buffers, in the order of their rows."""
    return Spans(
        source=source,
        words=words,
        source_word=_packed(source, words),
        first_recipient=bounds_of(counts),
        receiver=receiver,
        receiver_word=_packed(receiver, np.repeat(words, counts)),
    )


def _unicasts(source: Int64Array, receiver: Int64Array, words: Int64Array) -> Spans:
    return _spans(source, words, np.ones_like(source), receiver)


def _relation(random: np.random.Generator, degree: int) -> tuple[Int64Array, Int64Array]:
    """Sources and receivers of a random relation: so many sent and received by each tile, none to itself."""
    tiles = np.arange(TILE_COUNT)
    receivers: list[Int64Array] = []
    while len(receivers) < degree:
        permutation = random.permutation(TILE_COUNT)
        own = np.flatnonzero(permutation == tiles)
        if own.size == 1:
            continue  # nobody to swap with
        permutation[own] = np.roll(permutation[own], 1)
        receivers.append(permutation)
    return np.tile(tiles, degree), np.concatenate(receivers)


def _balanced(random: np.random.Generator) -> Spans:
    source, receiver = _relation(random, 16)
    return _unicasts(source, receiver, np.full(len(source), BALANCED_WORDS))


def _mixed(random: np.random.Generator) -> Spans:
    source, receiver = _relation(random, 16)
    return _unicasts(source, receiver, random.integers(8, 257, len(source)))


def _hot(random: np.random.Generator) -> Spans:
    source, receiver = _relation(random, 8)
    chosen = random.permutation(TILE_COUNT)
    hot, senders = chosen[:HOT_RECEIVERS], random.permutation(TILE_COUNT)
    targets = hot[np.arange(TILE_COUNT) % HOT_RECEIVERS]
    own = senders == targets
    targets = np.where(own, hot[(np.arange(TILE_COUNT) + 1) % HOT_RECEIVERS], targets)
    source, receiver = np.concatenate([source, senders]), np.concatenate([receiver, targets])
    return _unicasts(source, receiver, np.full(len(source), BALANCED_WORDS))


def _all_to_all(member: Int64Array) -> Spans:
    """``member[group, place]`` are tiles."""
    source = np.repeat(member[:, :, None], member.shape[1], axis=2).reshape(-1)
    receiver = np.repeat(member[:, None, :], member.shape[1], axis=1).reshape(-1)
    apart = source != receiver
    return _unicasts(source[apart], receiver[apart], np.full(int(apart.sum()), GROUP_WORDS))


def _groups(_random: np.random.Generator) -> Spans:
    return _all_to_all(np.arange(TILE_COUNT).reshape(GROUPS, ROWS))


def _strided_groups(_random: np.random.Generator) -> Spans:
    return _all_to_all(np.arange(TILE_COUNT).reshape(ROWS, GROUPS).T)


def _gemm(_random: np.random.Generator) -> Spans:
    grid = np.arange(TILE_COUNT).reshape(ROWS, GROUPS)
    row, column = np.divmod(np.arange(TILE_COUNT), GROUPS)
    along_row = grid[row]
    along_column = grid[:, column].T
    others = [
        every[every != np.arange(TILE_COUNT)[:, None]].reshape(TILE_COUNT, -1)
        for every in (along_row, along_column)
    ]
    counts = np.repeat([others[0].shape[1], others[1].shape[1]], TILE_COUNT)
    source = np.tile(np.arange(TILE_COUNT), 2)
    receiver = np.concatenate([every.reshape(-1) for every in others])
    return _spans(source, np.full(2 * TILE_COUNT, GEMM_WORDS), counts, receiver)


def _multicast(random: np.random.Generator) -> Spans:
    """The sender is one of the line, or, for the first ones, not."""
    whole = MULTICAST_RECIPIENTS - MULTICASTS * (LINE - 1)
    line = random.integers(0, TILE_COUNT // LINE, MULTICASTS)
    within = random.integers(0, LINE, MULTICASTS)
    away = random.integers(1, TILE_COUNT // LINE, MULTICASTS)
    is_whole = np.arange(MULTICASTS) < whole
    source = np.where(is_whole, (line + away) % (TILE_COUNT // LINE), line) * LINE + within
    receiver = line[:, None] * LINE + np.arange(LINE)
    counts = np.where(is_whole, LINE, LINE - 1)
    receiver = receiver[receiver != source[:, None]]
    return _spans(source, np.full(MULTICASTS, GEMM_WORDS), counts, receiver)


def _scattered(random: np.random.Generator) -> Spans:
    counts = np.full(MULTICASTS, MULTICAST_RECIPIENTS // MULTICASTS)
    counts[: MULTICAST_RECIPIENTS % MULTICASTS] += 1
    source = random.integers(0, TILE_COUNT, MULTICASTS)
    receiver = np.concatenate(
        [
            np.sort(random.choice(np.delete(np.arange(TILE_COUNT), tile), count, replace=False))
            for tile, count in zip(source.tolist(), counts.tolist(), strict=True)
        ]
    )
    return _spans(source, np.full(MULTICASTS, GEMM_WORDS), counts, receiver)


def _cuts(random: np.random.Generator, extent: int, parts: int) -> Int64Array:
    """Bounds of parts of an extent: equal parts, each inner bound moved by up to a third of one."""
    even = np.arange(parts + 1) * extent / parts
    moved = even[1:-1] + random.uniform(-1 / 3, 1 / 3, parts - 1) * extent / parts
    return np.concatenate([[0], np.rint(moved).astype(np.int64), [extent]])


def _retile(random: np.random.Generator, first: tuple[int, int], second: tuple[int, int]) -> Spans:
    """Rows of blocks of one grid to blocks of another; each block lies row by row in its tile."""
    rows, words = MATRIX[0], MATRIX[1] // 2
    from_rows, to_rows = (_cuts(random, rows, grid[0]) for grid in (first, second))
    from_columns, to_columns = (_cuts(random, words, grid[1]) for grid in (first, second))
    from_tile, to_tile = (random.permutation(TILE_COUNT) for _ in range(2))
    begin = np.unique(np.concatenate([from_columns, to_columns]))[:-1]
    length = np.diff(np.append(begin, words))
    row = np.repeat(np.arange(rows), len(begin))
    column = np.tile(begin, rows)

    def held(
        grid: tuple[int, int], row_cuts: Int64Array, column_cuts: Int64Array
    ) -> tuple[Int64Array, Int64Array]:
        """Block number, and word within the block."""
        block_row = np.searchsorted(row_cuts, row, "right") - 1
        block_column = np.searchsorted(column_cuts, column, "right") - 1
        width = column_cuts[block_column + 1] - column_cuts[block_column]
        within = (row - row_cuts[block_row]) * width + column - column_cuts[block_column]
        return block_row * grid[1] + block_column, within

    source_block, source_word = held(first, from_rows, from_columns)
    receiver_block, receiver_word = held(second, to_rows, to_columns)
    source, receiver = from_tile[source_block], to_tile[receiver_block]
    moves = np.flatnonzero(source != receiver)
    return Spans(
        source=source[moves],
        words=np.tile(length, rows)[moves],
        source_word=source_word[moves],
        first_recipient=np.arange(len(moves) + 1),
        receiver=receiver[moves],
        receiver_word=receiver_word[moves],
    )


PATTERNS: Final = MappingProxyType[str, Callable[[np.random.Generator], Spans]](
    {
        "balanced": _balanced,
        "groups": _groups,
        "strided-groups": _strided_groups,
        "gemm": _gemm,
        "mixed": _mixed,
        "hot": _hot,
        "retile": lambda random: _retile(random, (11, 133), (10, 136)),
        "retile-fine": lambda random: _retile(random, (3, 490), (4, 368)),
        "multicast": _multicast,
        "scattered": _scattered,
    }
)
"""Name -> what moves."""


def _shuffled(spans: Spans, random: np.random.Generator) -> Spans:
    order = random.permutation(len(spans.source))
    counts = np.diff(spans.first_recipient)[order]
    recipient = expanded(spans.first_recipient[order], counts)
    return Spans(
        source=spans.source[order],
        words=spans.words[order],
        source_word=spans.source_word[order],
        first_recipient=bounds_of(counts),
        receiver=spans.receiver[recipient],
        receiver_word=spans.receiver_word[recipient],
    )


def _program(spans: Spans, name: str) -> LowProgram:
    """One exchange step between two buffers of each tile, which the placement keeps in different elements."""
    owner = np.repeat(np.arange(len(spans.source)), np.diff(spans.first_recipient))
    sizes = np.full(2 * TILE_COUNT, WORD_BYTES)
    np.maximum.at(sizes, spans.source, WORD_BYTES * (spans.source_word + spans.words))
    np.maximum.at(sizes, TILE_COUNT + spans.receiver, WORD_BYTES * (spans.receiver_word + spans.words[owner]))
    count, transfers, recipients = 2 * TILE_COUNT, len(spans.source), len(spans.receiver)

    def every(value: int, number: int) -> Int64Array:
        return np.full(number, value, dtype=np.int64)

    nothing = every(0, 0)
    return LowProgram(
        tile_count=TILE_COUNT,
        steps=(ExchangeStep(step=STEP),),
        buffers=Buffers(
            tile=np.tile(np.arange(TILE_COUNT), 2),
            byte_count=sizes,
            alignment=every(8, count),
            interleaved=every(0, count),
            tail=every(0, count),
            root=np.arange(count),
            displacement=every(0, count),
            sequence=every(NO_ROW, count),
            member=every(0, count),
            role=every(Role.TEMPORARY, count),
            cleared=every(0, count),
            value=every(NO_ROW, count),
            shard=every(0, count),
            node=every(0, count),
        ),
        sequences=Sequences(first=nothing, count=nothing),
        separations=Separations(first=np.arange(TILE_COUNT), second=TILE_COUNT + np.arange(TILE_COUNT)),
        forms=(),
        views=Views(buffer=nothing, origin=nothing, sequence=nothing, form=nothing),
        bindings=(),
        calls=Calls(
            step=nothing,
            tile=nothing,
            binding=nothing,
            first_view=nothing,
            operand_views=nothing,
            node=nothing,
        ),
        copies=Copies(**dict.fromkeys(Copies.__dataclass_fields__, nothing)),
        transfers=Transfers(
            step=every(STEP, transfers),
            source=spans.source,
            source_displacement=WORD_BYTES * spans.source_word,
            source_sequence=every(NO_ROW, transfers),
            byte_count=WORD_BYTES * spans.words,
            first_recipient=spans.first_recipient[:-1],
            node=every(0, transfers),
        ),
        recipients=Recipients(
            transfer=owner,
            destination=TILE_COUNT + spans.receiver,
            destination_displacement=WORD_BYTES * spans.receiver_word,
            destination_sequence=every(NO_ROW, recipients),
        ),
        values=(),
        nodes=(name,),
    )
