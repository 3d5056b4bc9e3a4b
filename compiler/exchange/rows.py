"""From times to instructions: one row for each tile of a phase, with the places of its addresses.

Input: a demand and its schedule. Output: ``Rows`` and ``Sites``.

A row is written from left to right with a cursor of time. What a tile has to do is a list of sends (a first
slot and a length) and of *moments*: events with a pointer, a selection, or both. A control at event e acts in
slot e - 1, its *issue slot*.

* Outside of sends, one control: ``delaypic`` or ``delayxpic`` up to the event, behind a plain ``delay`` when
  it is too far. Two: a ``delay`` up to the issue slot, then a ``sendpicp`` that sends nothing.
* A send starts with ``send``. In it, ``sendoff`` leads up to the next issue slot; ``sendpic`` or ``sendpicp``
  there carries one or two controls and goes on sending.
* ``sendpicp`` and its wait last until the next issue slot or send, or as long as the instruction can.

**Alignment.** ``sendpicp`` has two words and must start at an even one. Where it would not, an earlier
instruction that takes two events or more is cut in two, the nearest first, back to and including the previous
``sendpicp``; beyond that a cut would move an aligned instruction. If there is none, everything since the
previous pair happens event by event, in an odd number of words. Then the last of them becomes a ``sendpicp``,
too: what it lacks is said again, the source that is selected and the pointer where it stands. That is how two
messages meet that follow each other from one source into one buffer, so nothing changes. A ``send`` could not
be replaced so; the timing keeps pairs away from the event after a send's first instruction.

**Paired transfers.** Their multiplexer and format are controls of their own, which share no event with any
other. They cannot be part of a ``sendpicp``: no two controls may be due at the event right behind one of them
when it is alone, which the timing sees to.

**Sites.** Instructions are a table until the end: operation, events, who owns the address, at which offset.
Cuts act on this table; only then the words are computed, and with each word the site of its address, from the
same row of the table (``row_words``; XR-01, XR-02, XR-04). Addresses are absolute, or count from the base of
their section, which a ``put`` in the row may set (``ir.BaseSections``).

**Speed.** A row is written in one go: its moments, its instructions and its words stay in the processor's
cache, and the tables of the phase are read once, in rows that are as wide as a line of it.
"""

import functools

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.bound import refuse_large_rows
from compiler.exchange.columns import ascending, bounds_of
from compiler.exchange.events import is_early
from compiler.exchange.ir import BEFORE_ROW, BaseSections, Demand, Rows, Schedule, Sites, WordArray
from compiler.exchange.relocation import iterations_of, with_addresses
from compiler.exchange.row_instructions import Column, Send, instructions_of
from compiler.exchange.row_moments import NONE, PAIR_SELECTOR, Moment, Payload, moments_of
from compiler.exchange.row_words import layouts, words_of
from compiler.target import fabric
from compiler.target import words as encoders
from compiler.target.registers import IncomingFormat, MainRegister
from compiler.target.tiles import PARTNER_LANE, TILE_COUNT
from compiler.target.units import Int64Array

# Numba knows no length of an enumeration.
_MOMENT_COLUMNS = len(Moment)
_INSTRUCTION_COLUMNS = len(Column)
_SITE_COLUMNS = 5


@functools.cache
def idle_row() -> WordArray:
    """The row of a tile that takes no part in a phase: it returns at once."""
    row = np.array([encoders.br(MainRegister.M10)], dtype=np.uint32)
    row.flags.writeable = False
    return row


def encode_rows(
    demand: Demand, schedule: Schedule, sections: BaseSections | None = None
) -> tuple[Rows, Sites]:
    """Write the rows of all tiles of a phase, with the addresses of iteration 0.

    Args:
        demand: what moves.
        schedule: when.
        sections: from which bases addresses count; all are absolute if None.

    Raises:
        DoesNotFit: a row is larger than its budget.
        ValueError: no row can keep the times: a control in the first slot of a send, two right behind it or
            behind one of a paired transfer, controls that cannot share their event, overlapping payloads or
            sends, or a base register that is written meanwhile.
    """
    moves, tiles = demand.transfers, schedule.tiles
    put = np.zeros(0, dtype=np.int64) if sections is None else np.flatnonzero(sections.start != BEFORE_ROW)
    nothing = np.zeros(0, dtype=np.int64)
    words, first_word, sites = _encoded(
        _sends(demand, schedule),
        by_tile(moves.source, schedule.slot),
        np.bincount(moves.source, minlength=TILE_COUNT),
        _payloads(demand, schedule),
        by_tile(moves.receiver, schedule.write),
        np.bincount(moves.receiver, minlength=TILE_COUNT),
        put,
        np.bincount(nothing if sections is None else sections.tile[put], minlength=TILE_COUNT),
        nothing if sections is None else sections.start,
        np.zeros((0, 2), dtype=np.int64)
        if sections is None
        else np.stack([sections.is_incoming, sections.register], axis=1),
        nothing if sections is None else sections.of_transfer,
        nothing if sections is None else sections.of_recipient,
        tiles,
        schedule.horizon,
        int(encoders.DELAY_LIMIT),
        *layouts(),
    )
    refuse_large_rows(demand, tiles, first_word)
    found = Sites(
        word=sites[:, 0].copy(),
        kind=sites[:, 1].copy(),
        owner=sites[:, 2].copy(),
        offset=sites[:, 3].copy(),
        section=sites[:, 4].copy(),
    )
    words = with_addresses(words, found, iterations_of(demand, sections))
    return Rows(tiles=tiles, first_word=first_word, words=words), found


def controlled_events(demand: Demand, schedule: Schedule, tiles: Int64Array) -> list[Int64Array]:
    """Of each tile the events at which its row changes something, ascending."""
    payloads = _payloads(demand, schedule)
    order = by_tile(demand.transfers.receiver, schedule.write)
    bounds = bounds_of(np.bincount(demand.transfers.receiver, minlength=TILE_COUNT))
    events: list[Int64Array] = []
    for tile in tiles.tolist():
        recipients = order[bounds[tile] : bounds[tile + 1]]
        lists = np.empty((4, 2 * len(recipients) + 1, 2), dtype=np.int64)
        moments = np.empty((5 * len(recipients), _MOMENT_COLUMNS), dtype=np.int64)
        found = moments_of(payloads, recipients, lists, moments)
        events.append(moments[:found, Moment.EVENT].copy())
    return events


def by_tile(tile: Int64Array, time: Int64Array) -> Int64Array:
    """Rows in order of tile and time."""
    bits = int(time.max(initial=0)).bit_length()
    return ascending((tile << bits) + time)


def _sends(demand: Demand, schedule: Schedule) -> Int64Array:
    """The table of sends, columns as in ``Send``."""
    table = np.empty((len(schedule.slot), len(Send)), dtype=np.int64)
    table[:, Send.SLOT] = schedule.slot
    table[:, Send.ITEMS] = demand.transfers.words >> schedule.is_paired
    table[:, Send.CONTROL] = schedule.control
    return table


def _payloads(demand: Demand, schedule: Schedule) -> Int64Array:
    """The table of payloads, columns as in ``Payload``."""
    moves = demand.transfers
    owner = moves.transfer_of_recipient
    table = np.empty((len(owner), len(Payload)), dtype=np.int64)
    table[:, Payload.SELECT] = schedule.select
    table[:, Payload.WRITE] = schedule.write
    table[:, Payload.ITEMS] = schedule.release - schedule.select
    table[:, Payload.MUX] = moves.source[owner]
    table[:, Payload.FORMAT] = IncomingFormat.ORDINARY
    table[:, Payload.WORDS] = moves.words[owner]
    table[:, Payload.ADDRESS] = moves.receiver_address
    table[:, Payload.STRIDE] = moves.receiver_stride
    if schedule.is_paired.any():
        paired = np.flatnonzero(schedule.is_paired[owner])
        source, receiver = moves.source[owner[paired]], moves.receiver[paired]
        # The multiplexer of a pair names its source as seen from the lane of the member that selects.
        seen = (source ^ (receiver & PARTNER_LANE)) + PAIR_SELECTOR
        table[paired, Payload.MUX] = np.where(is_early(moves)[paired], seen, NONE)
        is_east = fabric.directions(source, receiver) == fabric.Direction.EAST
        table[paired, Payload.FORMAT] = np.where(
            is_east, np.int64(IncomingFormat.PAIRED_EAST), IncomingFormat.PAIRED_WEST
        )
    return table


@compiled
def _encoded(
    send_table: Int64Array,
    sends: Int64Array,
    send_counts: Int64Array,
    payload_table: Int64Array,
    payloads: Int64Array,
    payload_counts: Int64Array,
    puts: Int64Array,
    put_counts: Int64Array,
    put_events: Int64Array,
    put_values: Int64Array,
    section_of_transfer: Int64Array,
    section_of_recipient: Int64Array,
    tiles: Int64Array,
    horizon: Int64Array,
    longest_delay: int,
    fixed: Int64Array,
    pieces: Int64Array,
) -> tuple[WordArray, Int64Array, Int64Array]:
    """Words of all rows with empty address fields, where each row begins, and all sites.

    ``sends``, ``payloads`` and ``puts`` are transfers, recipients and sections in order of tile and time; so
    many of each tile.
    """
    # A payload has at most five moments. A send and a moment take at most a wait, two instructions of their
    # own, one that leads on and a cut each, and an instruction two words; beside them a row has writes of
    # base registers, each behind a wait, delays that the longest one cannot cover, and its return.
    most_payloads = int(payload_counts.max())
    most_moments = 5 * most_payloads
    most = 5 * (int(send_counts.max()) + most_moments) + 2 * int(put_counts.max()) + 8
    if horizon.size:
        most += int(horizon.max()) // longest_delay
    lists = np.empty((4, 2 * most_payloads + 1, 2), dtype=np.int64)
    moments = np.empty((most_moments, _MOMENT_COLUMNS), dtype=np.int64)
    table = np.empty((most, _INSTRUCTION_COLUMNS), dtype=np.int64)
    words = np.empty(4 * (sends.size + payloads.size) + most, dtype=np.uint32)
    sites = np.empty((2 * (sends.size + payloads.size) + most, _SITE_COLUMNS), dtype=np.int64)
    first_word = np.zeros(tiles.size + 1, dtype=np.int64)
    at = 0
    site = 0
    send = 0
    payload = 0
    put = 0
    for index in range(tiles.size):
        tile = int(tiles[index])
        recipients = payloads[payload : payload + payload_counts[tile]]
        found = moments_of(payload_table, recipients, lists, moments)
        instructions = instructions_of(
            table,
            send_table,
            sends[send : send + send_counts[tile]],
            payload_table,
            recipients,
            moments[:found],
            puts[put : put + put_counts[tile]],
            put_events,
            int(horizon[index]),
        )
        while at + 2 * instructions > words.size:
            words = np.concatenate((words, np.empty(words.size, dtype=np.uint32)))
        while site + 2 * instructions > sites.shape[0]:
            sites = np.concatenate((sites, np.empty(sites.shape, dtype=np.int64)))
        at, site = words_of(
            table[:instructions],
            send_table,
            put_values,
            section_of_transfer,
            section_of_recipient,
            fixed,
            pieces,
            words,
            at,
            sites,
            site,
        )
        first_word[index + 1] = at
        send += send_counts[tile]
        payload += payload_counts[tile]
        put += put_counts[tile]
    return words[:at].copy(), first_word, sites[:site]
