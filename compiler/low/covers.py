"""Whole words around runs that are none: how bytes at odd places travel all the same.

An exchange moves words at word boundaries; halves that begin inside a word, or end there, are no load of it.
Their *cover* is: all bytes of a source shard from the first to the last word that a destination shard wants
any of. Covers are sent into a stack on the receiving tile, one behind the other, and the runs are copied out
of it there, where copies can move halves. What covers hold besides is sent for nothing, and nobody reads it.

One cover for each pair of shards: a cover of each run would be smaller where runs are far apart, and take a
fragment for each of them. Facts alone: nothing is chosen or built here.
"""

import dataclasses
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.geometry.match import Match
from compiler.geometry.redistribution import Redistribution
from compiler.geometry.tiling import round_up_all
from compiler.geometry.traversal import Loops
from compiler.low.deliveries import Part, part_of
from compiler.low.ir import Column
from compiler.low.storage import Stored
from compiler.target.units import WORD_BYTES


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Covers:
    """The covers of what one source contributes to a destination.

    Args:
        sent: the covers, into stacks on the destination's tiles; what is kept is not among them.
        direct: the runs, from the source's shards.
        kept: pairs of ``direct`` whose source shard is on the receiving tile and that are copied from there.
        stacked: the same runs, from the stacks.
        unstacked: pairs of ``stacked`` that are copied out of the stacks: all but those that are kept.
        stack_bytes: [destination shards] that the stacks have in use, those of earlier sources included.
    """

    sent: Part
    direct: Redistribution
    kept: Column
    stacked: Redistribution
    unstacked: Column
    stack_bytes: Column


def covers_of(
    facts: Redistribution, source: Stored, destination: Stored, tile_count: int, stack_bytes: Column
) -> Covers:
    """The covers of a redistribution.

    Args:
        facts: which bytes go from which shard to which.
        source: the value that is read.
        destination: the value that is written.
        tile_count: tiles of the build.
        stack_bytes: [destination shards] that the stacks have in use already, whole words.
    """
    tables = [found.runs() for found in facts.matches]
    first, last = (
        np.array(column, dtype=np.int64)[facts.match_of_pair]
        for column in zip(
            *((int(table.source.min()), int((table.source + table.byte_counts).max())) for table in tables),
            strict=True,
        )
    )
    shards, cover_of_pair = np.unique(
        facts.destination_shard * facts.source.shard_count + facts.source_shard, return_inverse=True
    )
    destination_shard, source_shard = np.divmod(shards, facts.source.shard_count)
    start = np.full(len(shards), np.iinfo(np.int64).max)
    stop = np.zeros(len(shards), dtype=np.int64)
    np.minimum.at(start, cover_of_pair, (facts.source_base + first) // WORD_BYTES * WORD_BYTES)
    np.maximum.at(stop, cover_of_pair, round_up_all(facts.source_base + last, WORD_BYTES))
    lengths, length_of_cover = np.unique(stop - start, return_inverse=True)
    covers = Redistribution(
        source=facts.source,
        destination=facts.destination,
        destination_shard=destination_shard,
        source_shard=source_shard,
        destination_base=np.zeros_like(start),
        source_base=start,
        match_of_pair=length_of_cover.astype(np.int64),
        matches=tuple(
            Match(pieces=(Loops(run_bytes=length, bases=(0, 0), counts=(), strides=()),))
            for length in lengths.tolist()
        ),
    )
    part = part_of(covers, source, destination, tile_count)
    size = stop - start
    size[part.kept] = 0
    before = np.cumsum(size) - size
    # Covers ascend by the destination's shard: the first of each begins its stack.
    opening = np.searchsorted(destination_shard, destination_shard)
    place = stack_bytes[destination_shard] + before - before[opening]
    used = stack_bytes.copy()
    np.add.at(used, destination_shard, size)
    is_kept = np.zeros(len(shards), dtype=np.bool_)
    is_kept[part.kept] = True
    return Covers(
        sent=dataclasses.replace(part, facts=dataclasses.replace(covers, destination_base=place)),
        direct=facts,
        kept=np.flatnonzero(is_kept[cover_of_pair]).astype(np.int64),
        stacked=dataclasses.replace(
            facts, source_base=facts.source_base - start[cover_of_pair] + place[cover_of_pair]
        ),
        unstacked=np.flatnonzero(~is_kept[cover_of_pair]).astype(np.int64),
        stack_bytes=used,
    )
