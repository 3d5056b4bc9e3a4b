"""Rows at other addresses, from the sites that the encoder recorded.

Input: words, their sites, and addresses of the transfers. Output: the words with those addresses, or the
words that differ between several sets of addresses, with their values. Words are never searched for addresses
(XR-03); times never change, so addresses must be legal for the schedule that the rows were made for.

A *use* of a row is one set of addresses: an iteration of a Repeat, or one of several calls that share the
row. The patches of a row restore the same words before every use, also those that a use happens to share with
the one before: what it finds in memory then does not matter.
"""

import functools
from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.exchange.ir import Demand, Patches, SiteKind, Sites, WordArray
from compiler.target.instructions import Field, instruction_table
from compiler.target.units import WORD_BYTES, Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uses:
    """Byte addresses of a phase in each of its uses.

    Args:
        source: [uses, transfers] where each transfer is read.
        destination: [uses, recipients] where each recipient writes.
    """

    source: Int64Array
    destination: Int64Array


def iterations_of(demand: Demand) -> Uses:
    """The iterations of the Repeat around a phase."""
    iteration = np.arange(demand.iterations)[:, None]
    moves = demand.transfers
    return Uses(
        source=moves.address + iteration * moves.stride,
        destination=moves.receiver_address + iteration * moves.receiver_stride,
    )


def with_addresses(words: WordArray, sites: Sites, source: Int64Array, destination: Int64Array) -> WordArray:
    """Rows with the addresses of one use.

    Args:
        words: of all rows of the phase; whatever address their sites hold.
        sites: their sites.
        source: [transfers] byte addresses.
        destination: [recipients] byte addresses.
    """
    moved = words.copy()
    moved[sites.word] = _filled(words[sites.word], sites, _items(sites, source, destination))
    return moved


def patches_between(words: WordArray, sites: Sites, uses: Uses) -> Patches:
    """The words that are not the same in all uses, with their values in each."""
    items = _items(sites, uses.source, uses.destination)
    varies = np.flatnonzero((items != items[:1]).any(axis=0))
    chosen = Sites(
        word=sites.word[varies],
        kind=sites.kind[varies],
        owner=sites.owner[varies],
        offset=sites.offset[varies],
    )
    values = _filled(words[chosen.word], chosen, items[:, varies])
    return Patches(word=chosen.word, values=np.ascontiguousarray(values.T))


def _items(sites: Sites, source: Int64Array, destination: Int64Array) -> Int64Array:
    """[.., sites] what each site holds: words from address 0, the bases being 0."""
    is_send = np.isin(sites.kind, [kind for kind in SiteKind if kind.is_send])
    address = np.empty((*source.shape[:-1], len(sites.word)), dtype=np.int64)
    address[..., is_send] = source[..., sites.owner[is_send]]
    address[..., ~is_send] = destination[..., sites.owner[~is_send]]
    return address // WORD_BYTES + sites.offset


def _filled(words: WordArray, sites: Sites, items: Int64Array) -> WordArray:
    """[.., sites] words with other values in the fields of their sites."""
    masks = np.array([_field(kind).mask for kind in SiteKind], dtype=np.int64)[sites.kind]
    lows = np.array([_field(kind).low for kind in SiteKind], dtype=np.int64)[sites.kind]
    return (words.astype(np.int64) & ~masks | items << lows).astype(np.uint32)


@functools.cache
def _field(kind: SiteKind) -> Field:
    """Where words of a kind hold the address; fields of addresses are in one piece."""
    match kind:
        case SiteKind.SEND_ITEM:
            fields, operand = instruction_table().form("send", ["u6", "u18", "u3"]).fields, 1
        case SiteKind.PAIR_ITEM:
            fields, operand = instruction_table().form("sendpicp", ["u6", "u18", "u3", "u1"]).fields, 1
        case SiteKind.DELAY_POINTER:
            fields, operand = instruction_table().form("delaypic", ["u7", "u1", "u18"]).fields, 2
        case SiteKind.SEND_POINTER:
            fields, operand = instruction_table().form("sendpic", ["u6", "u2", "u18"]).fields, 2
        case SiteKind.PAIR_POINTER:
            fields = instruction_table().form("sendpicp", ["u6", "u18", "u3", "u1"]).payload_fields
            operand = 1
    (field,) = (field for field in fields if field.operand == operand)
    return field
