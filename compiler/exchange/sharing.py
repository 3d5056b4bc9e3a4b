"""Rows that differ by relocations alone, stored once.

Input: scheduled phases. Output: ``SharedRows``: of each tile the rows that it needs, and for each phase which
of them it uses and which words it writes there before. Two rows of a tile can be one if they agree in all but
the addresses at their sites; sites are those that the encoder recorded, and words are not read (XR-03).

A shared row has a *use* for each iteration of each phase that shares it. Words that are not the same in all
its uses are written before every use, also by a use that would find them as they should be: what it finds
depends on which use came before, and phases may run in any order and any number of times. Words that are the
same in all uses, as where two phases have equal addresses, are never written.

Writing a word costs time before the phase and a row costs memory, which is the caller's to weigh: rows are
joined in program order as long as a use writes at most ``patch_limit`` words of a row, or none that it would
not write if the row were its own.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.exchange.columns import bounds_of
from compiler.exchange.ir import Patches, ScheduledPhase, WordArray
from compiler.exchange.relocation import field_masks
from compiler.target.units import BoolArray, Int64Array, Words


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PhaseUse:
    """How a phase uses shared rows.

    Args:
        row: [tiles of the phase] row of ``SharedRows`` that each tile runs.
        patches: words of ``SharedRows`` to be written before, and with what, one use for each iteration.
    """

    row: Int64Array
    patches: Patches


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SharedRows:
    """Rows of several phases.

    Args:
        tile: [rows] physical tile that each belongs to, in order of first use.
        first_word: [rows + 1] where each begins in ``words``.
        words: all rows, as their first use needs them.
        uses: of each phase, in the order given.
    """

    tile: Int64Array
    first_word: Int64Array
    words: WordArray
    uses: tuple[PhaseUse, ...]


@final
class _Shared:
    """A row under construction."""

    def __init__(
        self, number: int, tile: int, words: WordArray, sites: Int64Array, values: WordArray
    ) -> None:
        self.number = number
        self.tile = tile
        self.words = words
        self.sites = sites
        self.first = values[:, :1].copy()
        self.varies: BoolArray = (values != self.first).any(axis=1)

    def joined(self, values: WordArray) -> BoolArray:
        """[sites] which would vary if these uses joined."""
        return self.varies | (values != self.first).any(axis=1)


def share_rows(phases: Sequence[ScheduledPhase], patch_limit: Words) -> SharedRows:
    """Store rows of phases once where they differ by relocations alone.

    Args:
        phases: in program order.
        patch_limit: most words of a shared row that are written before a use, if they are more than each of
            its phases would write anyway. At 0 rows are joined whose words are equal in every iteration.
    """
    every: list[_Shared] = []
    groups: dict[tuple[int, bytes, bytes], list[_Shared]] = {}
    members: list[list[tuple[_Shared, WordArray]]] = []
    for phase in phases:
        rows, sites = phase.rows, phase.sites
        empty = rows.words.copy()
        empty[sites.word] &= ~field_masks(sites.kind)
        values = _values(phase)
        first_site = np.searchsorted(sites.word, rows.first_word)
        here: list[tuple[_Shared, WordArray]] = []
        for index, tile in enumerate(rows.tiles.tolist()):
            begin, end = rows.first_word[index : index + 2].tolist()
            first, last = first_site[index : index + 2].tolist()
            places = sites.word[first:last] - begin
            mine = values[first:last]
            key = (tile, empty[begin:end].tobytes(), places.tobytes())
            group = groups.setdefault(key, [])
            shared = next((row for row in group if _fits(row, mine, patch_limit)), None)
            if shared is None:
                shared = _Shared(len(every), tile, rows.words[begin:end], places, mine)
                every.append(shared)
                group.append(shared)
            else:
                shared.varies = shared.joined(mine)
            here.append((shared, mine))
        members.append(here)
    first_word = bounds_of(np.array([len(row.words) for row in every], dtype=np.int64))
    nothing = np.empty(0, dtype=np.uint32)
    return SharedRows(
        tile=np.array([row.tile for row in every], dtype=np.int64),
        first_word=first_word,
        words=np.concatenate([nothing, *(row.words for row in every)]),
        uses=tuple(
            _use(here, first_word, phase.patches.values.shape[1])
            for here, phase in zip(members, phases, strict=True)
        ),
    )


def _fits(row: _Shared, values: WordArray, patch_limit: Words) -> bool:
    """Whether uses may join a row."""
    written = int(row.joined(values).sum())
    own = int((values != values[:, :1]).any(axis=1).sum())
    return written <= patch_limit or written == own == int(row.varies.sum())


def _values(phase: ScheduledPhase) -> WordArray:
    """[sites, iterations] the words at the sites of a phase."""
    sites, patches = phase.sites, phase.patches
    values = np.repeat(phase.rows.words[sites.word][:, None], patches.values.shape[1], axis=1)
    values[np.searchsorted(sites.word, patches.word)] = patches.values
    return values


def _use(here: list[tuple[_Shared, WordArray]], first_word: Int64Array, iterations: int) -> PhaseUse:
    """What a phase writes before it runs: all words of its rows that vary in any of their uses."""
    words = [np.empty(0, dtype=np.int64)]
    values = [np.empty((0, iterations), dtype=np.uint32)]
    for shared, mine in here:
        chosen = np.flatnonzero(shared.varies)
        words.append(first_word[shared.number] + shared.sites[chosen])
        values.append(mine[chosen])
    word = np.concatenate(words)
    order = np.argsort(word, kind="stable")
    return PhaseUse(
        row=np.array([shared.number for shared, _ in here], dtype=np.int64),
        patches=Patches(word=word[order], values=np.concatenate(values)[order]),
    )
