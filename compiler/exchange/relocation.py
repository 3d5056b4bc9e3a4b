"""Rows at other addresses, from the sites that the encoder recorded.

Input: words, their sites, and addresses of the transfers. Output: the words with those addresses, or the
words that differ between several sets of addresses, with their values. Words are never searched for addresses
(XR-03); times never change, so addresses must be legal for the schedule that the rows were made for
(``replay`` finds out).

A *use* of a row is one set of addresses: an iteration of a Repeat, or one of several calls that share the
row. The patches of a row restore the same words before every use, also those that a use happens to share with
the one before: what it finds in memory then does not matter.
"""

import functools
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.ir import BaseSections, Demand, Patches, SiteKind, Sites, WordArray
from compiler.target.instructions import Field, instruction_table
from compiler.target.units import WORD_BYTES, BoolArray, Int64Array


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Uses:
    """Byte addresses of a phase in each of its uses.

    Args:
        source: [uses, transfers] where each transfer is read.
        destination: [uses, recipients] where each recipient writes.
        base: [uses, sections] what the base registers of the sections hold.
    """

    source: Int64Array
    destination: Int64Array
    base: Int64Array


def iterations_of(demand: Demand, sections: BaseSections | None = None) -> Uses:
    """The iterations of the Repeat around a phase."""
    iteration = np.arange(demand.iterations)[:, None]
    moves = demand.transfers
    base = np.zeros((demand.iterations, 0), dtype=np.int64)
    return Uses(
        source=moves.address + iteration * moves.stride,
        destination=moves.receiver_address + iteration * moves.receiver_stride,
        base=base if sections is None else sections.address + iteration * sections.stride,
    )


def with_addresses(words: WordArray, sites: Sites, uses: Uses, use: int = 0) -> WordArray:
    """Rows with the addresses of one use.

    Args:
        words: of all rows of the phase; whatever address their sites hold.
        sites: their sites.
        uses: addresses.
        use: which of them.

    Raises:
        ValueError: an address is no multiple of the items that its field counts, or its field cannot hold it.
    """
    moved = words.copy()
    wrong = _fill(moved, *_columns(sites), uses.source[use], uses.destination[use], uses.base[use], _fields())
    _check(sites, wrong)
    return moved


def patches_between(words: WordArray, sites: Sites, uses: Uses) -> Patches:
    """The words that are not the same in all uses, with their values in each.

    Raises:
        ValueError: an address is no multiple of the items that its field counts, or its field cannot hold it.
    """
    if len(uses.source) == 1:
        return Patches(word=np.zeros(0, dtype=np.int64), values=np.zeros((0, 1), dtype=np.uint32))
    addresses = (uses.source, uses.destination, uses.base, _fields())
    chosen = np.flatnonzero(_varies(sites.kind, sites.owner, sites.section, *addresses))
    values = np.empty((len(chosen), len(uses.source)), dtype=np.uint32)
    _check(sites, _values(words, chosen, *_columns(sites), *addresses, values))
    return Patches(word=sites.word[chosen], values=values)


def field_masks(kind: Int64Array) -> WordArray:
    """[sites] the bits of their words that hold addresses."""
    return _fields()[kind, _MASK].astype(np.uint32)


def _columns(sites: Sites) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
    return sites.word, sites.kind, sites.owner, sites.offset, sites.section


def _check(sites: Sites, wrong: int) -> None:
    if wrong >= 0:
        raise ValueError(
            f"row word {int(sites.word[wrong])} cannot hold the address of its"
            f" {'transfer' if SiteKind(int(sites.kind[wrong])).is_send else 'recipient'}"
            f" {int(sites.owner[wrong])}"
        )


_IS_SEND: Final = 0
_UNIT: Final = 1
_LOW: Final = 2
_MASK: Final = 3


@functools.cache
def _fields() -> Int64Array:
    """[kinds, 4] whether it is an address of a source, bits below its unit, lowest bit of the field, mask."""
    table = np.zeros((len(SiteKind), 4), dtype=np.int64)
    for kind in SiteKind:
        field = _field(kind)
        table[kind] = kind.is_send, int(kind.unit).bit_length() - 1, field.low, field.mask
    table.flags.writeable = False
    return table


@compiled
def _stored(
    kind: int,
    owner: int,
    offset: int,
    section: int,
    source: Int64Array,
    destination: Int64Array,
    base: Int64Array,
    fields: Int64Array,
) -> int:
    """What a field holds, at its place in the word, or -1 if it cannot."""
    address = (source[owner] if fields[kind, _IS_SEND] != 0 else destination[owner]) + WORD_BYTES * offset
    if section >= 0:
        address -= base[section]
    unit = fields[kind, _UNIT]
    if address < 0 or address >> unit << unit != address:
        return -1
    value = address >> unit << fields[kind, _LOW]
    return int(value) if value & ~fields[kind, _MASK] == 0 else -1


@compiled
def _fill(
    words: WordArray,
    word: Int64Array,
    kind: Int64Array,
    owner: Int64Array,
    offset: Int64Array,
    section: Int64Array,
    source: Int64Array,
    destination: Int64Array,
    base: Int64Array,
    fields: Int64Array,
) -> int:
    """Fill all fields; -1, or a site that cannot hold its address."""
    for site in range(word.size):
        stored = _stored(
            int(kind[site]),
            int(owner[site]),
            int(offset[site]),
            int(section[site]),
            source,
            destination,
            base,
            fields,
        )
        if stored < 0:
            return site
        words[word[site]] = words[word[site]] & ~fields[kind[site], _MASK] | stored
    return -1


@compiled
def _varies(
    kind: Int64Array,
    owner: Int64Array,
    section: Int64Array,
    source: Int64Array,
    destination: Int64Array,
    base: Int64Array,
    fields: Int64Array,
) -> BoolArray:
    """[sites] whether the field is not the same in all uses."""
    result = np.zeros(kind.size, dtype=np.bool_)
    for site in range(kind.size):
        operand = source if fields[kind[site], _IS_SEND] != 0 else destination
        first = operand[0, owner[site]]
        for use in range(1, source.shape[0]):
            moved = operand[use, owner[site]] - first
            if section[site] >= 0:
                moved -= base[use, section[site]] - base[0, section[site]]
            if moved != 0:
                result[site] = True
                break
    return result


@compiled
def _values(
    words: WordArray,
    chosen: Int64Array,
    word: Int64Array,
    kind: Int64Array,
    owner: Int64Array,
    offset: Int64Array,
    section: Int64Array,
    source: Int64Array,
    destination: Int64Array,
    base: Int64Array,
    fields: Int64Array,
    values: WordArray,
) -> int:
    """Words of chosen sites in all uses; -1, or a site that cannot hold its address."""
    for row in range(chosen.size):
        site = int(chosen[row])
        for use in range(source.shape[0]):
            stored = _stored(
                int(kind[site]),
                int(owner[site]),
                int(offset[site]),
                int(section[site]),
                source[use],
                destination[use],
                base[use],
                fields,
            )
            if stored < 0:
                return site
            values[row, use] = words[word[site]] & ~fields[kind[site], _MASK] | stored
    return -1


@functools.cache
def _field(kind: SiteKind) -> Field:
    """Where words of a kind hold the address; fields of addresses are in one piece."""
    match kind:
        case SiteKind.SEND_ITEM | SiteKind.WIDE_SEND_ITEM:
            fields, operand = instruction_table().form("send", ["u6", "u18", "u3"]).fields, 1
        case SiteKind.PAIR_ITEM | SiteKind.WIDE_PAIR_ITEM:
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
