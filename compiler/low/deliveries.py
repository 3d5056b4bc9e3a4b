"""From geometry to transfers: which owner sends what to whom.

A redistribution says which bytes of which source shard fill which bytes of which destination shard. Every
owner of a destination shard gets them; shards that read the same bytes by the same runs get them in one
multicast (MG-15). One owner of the source shard sends; with several, they take turns. An owner that has the
bytes on its own tile is a recipient like the others when they are sent anyway: its tile receives what it
sends. The fabric delivers nothing to a tile that sends to itself alone: such pairs are *kept*, and whoever
asks copies them inside of the tile. Facts and fixed rules only: nothing is selected here.

Pairs of shards are grouped by source shard, source byte and match, so that the runs of a group are those of
its match. Cost: linear in transfers and recipients, all columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import distinct_rows, ranges
from compiler.geometry.redistribution import Redistribution
from compiler.low.build import LowBuilder
from compiler.low.ids import NodeId, StepId
from compiler.low.ir import Column
from compiler.low.prices import PhaseLoads, per_tile
from compiler.low.storage import Stored
from compiler.target.units import WORD_BYTES

Mask = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deliveries:
    """Transfers between the owners of two values.

    Args:
        sender: [transfers] owner of the source.
        source_byte: [transfers] from the start of its shard.
        byte_count: [transfers].
        recipient_count: [transfers], at least 1.
        recipient: [recipients] owner of the destination, by transfer, ascending by tile.
        destination_byte: [recipients] from the start of its shard.
    """

    sender: Column
    source_byte: Column
    byte_count: Column
    recipient_count: Column
    recipient: Column
    destination_byte: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Part:
    """What one source contributes to a movement.

    Args:
        facts: which bytes of which shard go to which.
        source: the value that is read.
        sent: [pairs, replicas of the destination] which owners are sent their bytes.
        kept: pairs whose only recipient has the source shard on its own tile.
    """

    facts: Redistribution
    source: Stored
    sent: Mask
    kept: Column

    @property
    def is_in_words(self) -> bool:
        """Whether everything that is sent is whole words at word boundaries, as an exchange moves them."""
        return not (self.facts.alignments[self.sent.any(axis=1)] % WORD_BYTES).any()


def part_of(
    facts: Redistribution,
    source: Stored,
    destination: Stored,
    tile_count: int,
    wanted: Mask | None = None,
) -> Part:
    """What is sent and what is kept.

    Args:
        facts: which bytes go from which shard to which.
        source: the value that is read.
        destination: the value that is written.
        tile_count: tiles of the build.
        wanted: [pairs, replicas of the destination] which owners get their bytes; None for all.
    """
    is_local = local_pairs(facts, source, destination, tile_count)
    if wanted is None:
        wanted = np.ones(is_local.shape, dtype=np.bool_)
    _, group_of_pair, _ = _groups(facts, source)
    recipients = np.zeros(len(group_of_pair), dtype=np.int64)
    np.add.at(recipients, group_of_pair, wanted.sum(axis=1))
    # Where nobody needs bytes of another tile, nothing is sent, whatever multicast could do.
    leaves_nothing = not (wanted & ~is_local).any()
    is_alone = (recipients[group_of_pair] == 1) | leaves_nothing
    is_kept: Mask = np.any(wanted & is_local, axis=1) & is_alone
    return Part(
        facts=facts,
        source=source,
        sent=wanted & ~is_kept[:, None],
        kept=np.flatnonzero(is_kept).astype(np.int64),
    )


def local_pairs(facts: Redistribution, source: Stored, destination: Stored, tile_count: int) -> Mask:
    """[pairs, replicas of the destination] whether a receiving owner's own tile holds the source shard."""
    tiles = destination.tile[destination.distribution.owners[facts.destination_shard]]
    owner = source.owner_on_tile(tile_count)[tiles]
    shard = np.where(owner >= 0, source.distribution.shard_of_owner[owner], -1)
    return shard == facts.source_shard[:, None]


def deliveries(part: Part, destination: Stored) -> Deliveries:
    """What an exchange sends of a part."""
    facts = part.facts
    first, group_of_pair, sender = _groups(facts, part.source)
    # Recipients of each group: all wanted owners of its pairs, ascending by tile.
    pair, replica = np.nonzero(part.sent)
    recipient = destination.distribution.owners[facts.destination_shard[pair], replica]
    group = group_of_pair[pair]
    order = np.lexsort((destination.tile[recipient], group))
    recipient, group, place = recipient[order], group[order], facts.destination_base[pair[order]]
    recipients_of_group = np.bincount(group, minlength=len(first))
    first_recipient = np.cumsum(recipients_of_group) - recipients_of_group
    # Runs of each group that anybody wants: those of its match.
    groups = np.flatnonzero(recipients_of_group)
    tables = [found.runs() for found in facts.matches]
    lengths = np.array([len(table.byte_counts) for table in tables], dtype=np.int64)
    match_of_group = facts.match_of_pair[first[groups]]
    runs_of_group = lengths[match_of_group]
    transfer_group = np.repeat(groups, runs_of_group)
    row = np.repeat((np.cumsum(lengths) - lengths)[match_of_group], runs_of_group) + ranges(runs_of_group)
    recipient_count = recipients_of_group[transfer_group]
    listed = np.repeat(first_recipient[transfer_group], recipient_count) + ranges(recipient_count)
    return Deliveries(
        sender=sender[transfer_group],
        source_byte=_joined([table.source for table in tables])[row]
        + facts.source_base[first[transfer_group]],
        byte_count=_joined([table.byte_counts for table in tables])[row],
        recipient_count=recipient_count,
        recipient=recipient[listed],
        destination_byte=np.repeat(_joined([table.destination for table in tables])[row], recipient_count)
        + place[listed],
    )


def phase_loads(parts: Sequence[Part], destination: Stored, tile_count: int) -> PhaseLoads:
    """What the :func:`deliveries` of parts are to the tiles in one phase, without making them.

    Raises:
        ValueError: there are no parts.
    """
    total: PhaseLoads | None = None
    for part in parts:
        facts = part.facts
        first, group_of_pair, sender = _groups(facts, part.source)
        is_sent = np.zeros(len(first), dtype=np.bool_)
        is_sent[group_of_pair[part.sent.any(axis=1)]] = True
        pair, replica = np.nonzero(part.sent)
        senders, sent = part.source.tile[sender[is_sent]], first[is_sent]
        receivers = destination.tile[destination.distribution.owners[facts.destination_shard[pair], replica]]
        words, runs = facts.byte_counts // WORD_BYTES, facts.run_counts
        loads = PhaseLoads(
            sent=per_tile(senders, words[sent], tile_count),
            sends=per_tile(senders, runs[sent], tile_count),
            received=per_tile(receivers, words[pair], tile_count),
            receives=per_tile(receivers, runs[pair], tile_count),
        )
        total = loads if total is None else total.together(loads)
    if total is None:
        raise ValueError("a phase of nothing has no loads")
    return total


def _groups(facts: Redistribution, source: Stored) -> tuple[Column, Column, Column]:
    """Pairs that one multicast serves: a pair of each group, the group of each pair, the sender of each.

    A shard that reads the same bytes twice, as a broadcast does, is not a recipient twice: it is in as many
    groups as it has places for them.
    """
    key = np.stack([facts.source_shard, facts.source_base, facts.match_of_pair], axis=1)
    first, group_of_pair = distinct_rows(key)
    order = np.lexsort((facts.destination_shard, group_of_pair))
    taken = np.stack([group_of_pair[order], facts.destination_shard[order]], axis=1)
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (taken[1:] != taken[:-1]).any(axis=1)
    if not begins.all():
        place = np.arange(len(order), dtype=np.int64)
        repetition = np.empty_like(place)
        repetition[order] = place - np.maximum.accumulate(np.where(begins, place, 0))
        first, group_of_pair = distinct_rows(np.stack([group_of_pair, repetition], axis=1))
    senders = source.distribution.owners[facts.source_shard[first]]
    return first, group_of_pair, senders[np.arange(len(first)), np.arange(len(first)) % senders.shape[1]]


def append_transfers(build: LowBuilder, step: StepId, part: Part, destination: Stored, node: NodeId) -> None:
    """Appends what is sent of a part to an exchange step."""
    sent = deliveries(part, destination)
    build.transfers(
        step,
        source=part.source.at(sent.sender, sent.source_byte),
        byte_count=sent.byte_count,
        recipient_count=sent.recipient_count,
        recipients=destination.at(sent.recipient, sent.destination_byte),
        node=node,
    )


def _joined(columns: list[Column]) -> Column:
    return np.concatenate([np.empty(0, dtype=np.int64), *columns])
