"""From geometry to transfers: which owner sends what to whom.

A redistribution says which bytes of which source shard fill which bytes of which destination shard. Every
owner of a destination shard gets them; shards that read the same bytes by the same runs get them in one
multicast (MG-15). One owner of the source shard sends; with several, they take turns. An owner that has the
bytes on its own tile is a recipient like the others when they are sent anyway: its tile receives what it
sends. Facts and fixed rules only: nothing is priced here.

Pairs of shards are grouped by source shard, source byte and match, so that the runs of a group are those of
its match. Cost: linear in transfers and recipients, all columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import distinct_rows, ranges
from compiler.geometry.operand import ORIGIN_MODULUS
from compiler.geometry.redistribution import Redistribution
from compiler.kernels.contract import Refusal
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.registry import bind
from compiler.low.build import LowBuilder
from compiler.low.ids import NodeId, StepId
from compiler.low.ir import Column
from compiler.low.prices import PhaseLoads, per_tile
from compiler.low.storage import Stored
from compiler.target.units import WORD_BYTES, Cycles

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


def local_pairs(facts: Redistribution, source: Stored, destination: Stored, tile_count: int) -> Mask:
    """[pairs, replicas of the destination] whether a receiving owner's own tile holds the source shard."""
    tiles = destination.tile[destination.distribution.owners[facts.destination_shard]]
    owner = source.owner_on_tile(tile_count)[tiles]
    shard = np.where(owner >= 0, source.distribution.shard_of_owner[owner], -1)
    return shard == facts.source_shard[:, None]


def deliveries(
    facts: Redistribution,
    source: Stored,
    destination: Stored,
    *,
    wanted: Mask | None = None,
    shift: Column | None = None,
) -> Deliveries:
    """What an exchange sends.

    Args:
        facts: which bytes go from which shard to which.
        source: the value that is read.
        destination: the value that is written.
        wanted: [pairs, replicas of the destination] which owners get their bytes; None for all.
        shift: [pairs] bytes added to places at the destination; None for none.
    """
    owners = destination.distribution.owners[facts.destination_shard]
    if wanted is None:
        wanted = np.ones(owners.shape, dtype=np.bool_)
    base = facts.destination_base if shift is None else facts.destination_base + shift
    first, group_of_pair, sender = _groups(facts, source)
    # Recipients of each group: all wanted owners of its pairs, ascending by tile.
    pair, replica = np.nonzero(wanted)
    recipient = owners[pair, replica]
    group = group_of_pair[pair]
    order = np.lexsort((destination.tile[recipient], group))
    recipient, group, place = recipient[order], group[order], base[pair[order]]
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


def are_words(facts: Redistribution) -> bool:
    """Whether all runs are whole words at word boundaries, as an exchange moves them."""
    return not (facts.alignments % WORD_BYTES).any()


def phase_cycles(
    parts: Sequence[tuple[Redistribution, Stored]],
    destination: Stored,
    tile_count: int,
    *,
    wanted: Mask | None = None,
) -> Cycles:
    """What :func:`deliveries` from several sources cost in one phase, estimated, without making them.

    Args:
        parts: which bytes of which source.
        destination: the value that is written.
        tile_count: tiles of the build.
        wanted: [pairs, replicas of the destination] of the only part, as in :func:`deliveries`.
    """
    total: PhaseLoads | None = None
    for facts, source in parts:
        owners = destination.distribution.owners[facts.destination_shard]
        is_wanted = np.ones(owners.shape, dtype=np.bool_) if wanted is None else wanted
        first, group_of_pair, sender = _groups(facts, source)
        is_sent = np.zeros(len(first), dtype=np.bool_)
        is_sent[group_of_pair[is_wanted.any(axis=1)]] = True
        pair, replica = np.nonzero(is_wanted)
        senders, sent = source.tile[sender[is_sent]], first[is_sent]
        receivers = destination.tile[owners[pair, replica]]
        words, runs = facts.byte_counts // WORD_BYTES, facts.run_counts
        loads = PhaseLoads(
            sent=per_tile(senders, words[sent], tile_count),
            sends=per_tile(senders, runs[sent], tile_count),
            received=per_tile(receivers, words[pair], tile_count),
            receives=per_tile(receivers, runs[pair], tile_count),
        )
        total = loads if total is None else total.together(loads)
    if total is None:
        raise ValueError("a phase of nothing has no price")
    return total.cycles


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


def append_transfers(
    build: LowBuilder,
    step: StepId,
    sent: Deliveries,
    source: Stored,
    destination: Stored,
    node: NodeId,
) -> None:
    """Appends deliveries to an exchange step.

    The fabric delivers to a tile what it sends to others as well; what a tile would send to itself alone is
    copied there instead, in a step behind the exchange.
    """
    first = np.cumsum(sent.recipient_count) - sent.recipient_count
    stays = (sent.recipient_count == 1) & (
        source.tile[sent.sender] == destination.tile[sent.recipient[first]]
    )
    leaves = np.repeat(~stays, sent.recipient_count)
    build.transfers(
        step,
        source=source.at(sent.sender[~stays], sent.source_byte[~stays]),
        byte_count=sent.byte_count[~stays],
        recipient_count=sent.recipient_count[~stays],
        recipients=destination.at(sent.recipient[leaves], sent.destination_byte[leaves]),
        node=node,
    )
    if stays.any():
        _append_stays(build, sent, np.flatnonzero(stays), first, source, destination, node)


def _append_stays(
    build: LowBuilder,
    sent: Deliveries,
    stays: Column,
    first: Column,
    source: Stored,
    destination: Stored,
    node: NodeId,
) -> None:
    """Local copies of deliveries that stay on their tiles, those of equal length and origins together."""
    step = build.compute_step()
    to, of = sent.destination_byte[first[stays]], sent.source_byte[stays]
    key = np.stack([sent.byte_count[stays], to % ORIGIN_MODULUS, of % ORIGIN_MODULUS], axis=1)
    kinds, kind_of = distinct_rows(key)
    for kind, row in enumerate(kinds.tolist()):
        byte_count, destination_origin, source_origin = key[row].tolist()
        parameters = CopyParameters(
            kind=Kind.MOVE,
            rows=1,
            row_bytes=byte_count,
            destination_stride=byte_count,
            destination_origin=destination_origin,
            source_stride=byte_count,
            source_origin=source_origin,
        )
        binding = bind("copy", parameters)
        if isinstance(binding, Refusal):
            raise ValueError(f"whole words cannot be copied: {binding.reason}")
        chosen = np.flatnonzero(kind_of == kind)
        build.copies(
            step,
            binding,
            source=source.at(sent.sender[stays[chosen]], of[chosen]),
            destination=destination.at(sent.recipient[first[stays[chosen]]], to[chosen]),
            rows=1,
            row_bytes=byte_count,
            source_stride=byte_count,
            destination_stride=byte_count,
            node=node,
        )


def _joined(columns: list[Column]) -> Column:
    return np.concatenate([np.empty(0, dtype=np.int64), *columns])
