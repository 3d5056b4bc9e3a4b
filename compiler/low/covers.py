"""Whole words around runs that are none: how bytes at odd places travel all the same.

An exchange moves words at word boundaries; halves that begin inside a word, or end there, are no load of it.
Their *cover* is: all words that hold a byte of a run. Covers are sent into a stack on the receiving tile, and
the runs are copied out of it there, where copies can move halves. What covers hold besides is sent for
nothing, and nobody reads it.

Words between the runs are not sent, however few they are: they may be padding that nothing ever wrote. They
have their places in the stack, so that the runs lie in it as they lie in the source's shard.

Pairs of one match that begin at the same place of a word have the same cover. Facts alone: nothing is chosen
or built here.
"""

import dataclasses
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.geometry.boxes import distinct_rows
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
    phase = facts.source_base % WORD_BYTES
    first, cover_of_pair = distinct_rows(np.stack([facts.match_of_pair, phase], axis=1))
    matches: list[Match] = []
    starts: list[int] = []
    spans: list[int] = []
    for pair in first.tolist():
        words = _words_of(facts.matches[int(facts.match_of_pair[pair])], int(phase[pair]))
        starts.append(int(words[0, 0]))
        spans.append(int(words[-1, 1] - words[0, 0]))
        matches.append(_match_of(words - words[0, 0]))
    source_base = facts.source_base - phase + np.array(starts, dtype=np.int64)[cover_of_pair]
    covers = dataclasses.replace(
        facts, source_base=source_base, match_of_pair=cover_of_pair, matches=tuple(matches)
    )
    part = part_of(covers, source, destination, tile_count)
    size = np.array(spans, dtype=np.int64)[cover_of_pair]
    size[part.kept] = 0
    before = np.cumsum(size) - size
    # Pairs ascend by the destination's shard: the first of each begins its stack.
    opening = np.searchsorted(facts.destination_shard, facts.destination_shard)
    place = stack_bytes[facts.destination_shard] + before - before[opening]
    used = stack_bytes.copy()
    np.add.at(used, facts.destination_shard, size)
    unstacked = np.ones(len(size), dtype=np.bool_)
    unstacked[part.kept] = False
    return Covers(
        sent=dataclasses.replace(part, facts=dataclasses.replace(covers, destination_base=place)),
        direct=facts,
        kept=part.kept,
        stacked=dataclasses.replace(facts, source_base=facts.source_base - source_base + place),
        unstacked=np.flatnonzero(unstacked).astype(np.int64),
        stack_bytes=used,
    )


def _words_of(match: Match, phase: int) -> Column:
    """[spans, 2] first byte and last, ascending, of the words that runs touch which begin inside a word."""
    runs = match.runs()
    order = np.argsort(runs.source, kind="stable")
    start = (runs.source + phase)[order] // WORD_BYTES * WORD_BYTES
    stop = round_up_all((runs.source + phase + runs.byte_counts)[order], WORD_BYTES)
    reach = np.maximum.accumulate(stop)
    begins = np.append(True, start[1:] > reach[:-1])
    ends = np.append(begins[1:], True)
    return np.stack([start[begins], reach[ends]], axis=1)


def _match_of(words: Column) -> Match:
    """The same bytes on both sides: one loop where spans are equal and equally far apart."""
    lengths, steps = words[:, 1] - words[:, 0], np.diff(words[:, 0])
    if len(steps) and (lengths == lengths[0]).all() and (steps == steps[0]).all():
        step = int(steps[0])
        loop = Loops(run_bytes=int(lengths[0]), bases=(0, 0), counts=(len(words),), strides=((step, step),))
        return Match(pieces=(loop,))
    return Match(
        pieces=tuple(
            Loops(run_bytes=stop - start, bases=(start, start), counts=(), strides=())
            for start, stop in words.tolist()
        )
    )
