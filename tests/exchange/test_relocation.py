"""Sites: rows at other addresses without encoding them again, and the patches of a Repeat."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.exchange.ir import ABSOLUTE, BEFORE_ROW, Demand, PlacedTransfers, ScheduledPhase, SiteKind
from compiler.exchange.phase import schedule_phase
from compiler.exchange.relocation import Uses, iterations_of, patches_between, with_addresses
from compiler.exchange.rows import encode_rows
from compiler.isa.rows import ControlKind, Operation, SendKind
from compiler.target.costs import EXCHANGE_PUT_EVENTS
from compiler.target.fabric import ITEM_BYTES, PAIRED_ITEM_BYTES, SendControl
from compiler.target.memory import SRAM_BASE, SRAM_END
from compiler.target.tiles import TILE_COUNT
from compiler.target.units import Int64Array, PhysicalTile
from tests.exchange.memory import decoded
from tests.exchange.paired import MixedPhase, mixed_phases
from tests.exchange.phases import RandomPhase, Transfer, demand, random_phases
from tests.exchange.test_paired import as_placed, phase_of
from tests.exchange.test_sections import with_bases


def moved(wanted: Demand, source: Int64Array, destination: Int64Array) -> Demand:
    """The same transfers at other addresses."""
    moves = wanted.transfers
    return Demand(
        step=wanted.step,
        iterations=1,
        transfers=PlacedTransfers(
            row=moves.row,
            node=moves.node,
            source=moves.source,
            address=source,
            stride=np.zeros_like(source),
            words=moves.words,
            first_recipient=moves.first_recipient,
            receiver=moves.receiver,
            receiver_address=destination,
            receiver_stride=np.zeros_like(destination),
        ),
        dependences=wanted.dependences,
        nodes=wanted.nodes,
    )


def at(source: Int64Array, destination: Int64Array) -> Uses:
    """One use."""
    return Uses(source=source[None], destination=destination[None], base=np.zeros((1, 0), dtype=np.int64))


def random_addresses(random: np.random.Generator, words: Int64Array) -> Int64Array:
    return random.integers(SRAM_BASE // 4, (SRAM_END - 4 * words) // 4 + 1) * 4


@given(random_phases(), st.integers(0, 2**32 - 1))
def test_relocated_rows_equal_rows_encoded_there(phase: RandomPhase, seed: int) -> None:
    """XR-03, XR-05: the sites are all that depends on addresses; times are kept."""
    result = schedule_phase(demand(phase.transfers))
    random = np.random.default_rng(seed)
    moves = result.demand.transfers
    source = random_addresses(random, moves.words)
    # What a tile receives moves as one: where payloads follow each other no pointer is set.
    lowest, highest = np.full(TILE_COUNT, SRAM_END), np.full(TILE_COUNT, SRAM_BASE)
    np.minimum.at(lowest, moves.receiver, moves.receiver_address)
    np.maximum.at(highest, moves.receiver, moves.receiver_address + 4 * moves.recipient_words)
    by = random.integers((SRAM_BASE - lowest) // 4, np.maximum(SRAM_END - highest, 0) // 4 + 1) * 4
    destination = moves.receiver_address + by[moves.receiver]
    rows, sites = encode_rows(moved(result.demand, source, destination), result.schedule)
    relocated = with_addresses(result.rows.words, result.sites, at(source, destination))
    assert (relocated == rows.words).all()
    assert (sites.word == result.sites.word).all()


@given(random_phases(), st.integers(0, 2**32 - 1))
def test_decoded_relocated_rows_have_the_intended_addresses(phase: RandomPhase, seed: int) -> None:
    """XR-07: what the decoder finds are the new addresses, each where and when the schedule has it."""
    result = schedule_phase(demand(phase.transfers))
    random = np.random.default_rng(seed)
    moves, times = result.demand.transfers, result.schedule
    source = random_addresses(random, moves.words)
    destination = random_addresses(random, moves.recipient_words)
    rows = decoded(result.rows, with_addresses(result.rows.words, result.sites, at(source, destination)))
    for tile, row in rows.items():
        starts = row.sends.kind == SendKind.START
        mine = np.flatnonzero(moves.source == tile)
        expected = sorted(zip(times.slot[mine].tolist(), (source[mine] // 4).tolist(), strict=True))
        assert list(zip(row.sends.slot[starts].tolist(), row.sends.item[starts].tolist(), strict=True)) == (
            expected
        )
        is_pointer = row.controls.kind == ControlKind.PIC0
        events, values = row.controls.event[is_pointer].tolist(), row.controls.value[is_pointer].tolist()
        pointers = dict(zip(events, values, strict=True))
        has_pointer = np.unique(result.sites.owner[result.sites.kind >= SiteKind.DELAY_POINTER])
        for recipient in has_pointer[moves.receiver[has_pointer] == tile].tolist():
            assert pointers[int(times.write[recipient])] == destination[recipient] // 4


def check_sites(phase: ScheduledPhase, uses: Uses) -> None:
    """Every site decodes to its address, and nothing that states an address has none."""
    rows, sites = phase.rows, phase.sites
    moved_rows = decoded(rows, with_addresses(rows.words, sites, uses))
    tile_of = np.searchsorted(rows.first_word, sites.word, side="right") - 1
    stated: dict[tuple[int, int, bool], int] = {}
    for index, tile in enumerate(rows.tiles.tolist()):
        row = moved_rows[PhysicalTile(tile)]
        sends, controls = row.sends, row.controls
        is_pair = np.isin(sends.word, row.instructions.word[row.instructions.operation == Operation.SENDPICP])
        for send in np.flatnonzero((sends.kind == SendKind.START) | is_pair).tolist():
            unit = PAIRED_ITEM_BYTES if sends.control[send] & SendControl.PAIRED else ITEM_BYTES
            stated[index, int(sends.word[send]), True] = unit * int(sends.item[send])
        for control in np.flatnonzero(controls.kind == ControlKind.PIC0).tolist():
            stated[index, int(controls.word[control]), False] = ITEM_BYTES * int(controls.value[control])
    for site, index in enumerate(tile_of.tolist()):
        kind = SiteKind(int(sites.kind[site]))
        owner, section = int(sites.owner[site]), int(sites.section[site])
        address = int((uses.source if kind.is_send else uses.destination)[0, owner])
        address += 4 * int(sites.offset[site]) - (0 if section == ABSOLUTE else int(uses.base[0, section]))
        word = int(sites.word[site] - rows.first_word[index]) - (kind is SiteKind.PAIR_POINTER)
        assert stated.pop((index, word, kind.is_send)) == address
    assert not stated


@given(phase=random_phases() | mixed_phases(), seed=st.integers(0, 2**32 - 1))
def test_every_site_decodes_to_its_new_address(phase: RandomPhase | MixedPhase, seed: int) -> None:
    """XR-01, XR-07: send and receive fields, inline words, items of 32 and of 64 bits."""
    if isinstance(phase, MixedPhase):
        result = phase_of(
            as_placed(phase.transfers), list(phase.slots), np.array(phase.is_paired, dtype=np.bool_)
        )
    else:
        result = schedule_phase(demand(phase.transfers))
    random = np.random.default_rng(seed)
    moves = result.demand.transfers
    source = random_addresses(random, moves.words) & np.where(result.schedule.is_paired, ~7, ~3)
    check_sites(result, at(source, random_addresses(random, moves.recipient_words)))


@given(phase=random_phases(moving=True, largest=12), seed=st.integers(0, 2**32 - 1))
def test_sites_of_sections_decode_to_distances_from_their_bases(phase: RandomPhase, seed: int) -> None:
    """Writes of base registers, too, are where the sections say."""
    plain = schedule_phase(demand(phase.transfers, phase.iterations))
    result = with_bases(plain.demand, plain.schedule)
    sections = result.sections
    if sections is None:
        return
    random = np.random.default_rng(seed)
    uses = iterations_of(result.demand, sections)
    lift = 4 * int(random.integers(0, 100))
    check_sites(result, Uses(source=uses.source + lift, destination=uses.destination + lift, base=uses.base))
    for tile, row in decoded(result.rows, result.rows.words).items():
        bases = row.controls.kind == ControlKind.OUTGOING_BASE
        mine = (sections.tile == tile) & (sections.start != BEFORE_ROW)
        assert (row.controls.event[bases] - EXCHANGE_PUT_EVENTS).tolist() == sections.start[mine].tolist()
        assert row.controls.register[bases].tolist() == sections.register[mine].tolist()


def test_an_address_that_its_field_cannot_hold_is_refused() -> None:
    """Items of 64 bits at multiples of 8, nothing below its base."""
    wide = Transfer(source=0, address=0x60000, words=8, recipients=((64, 0xA0000, 0), (66, 0xA0000, 0)))
    result = phase_of(as_placed((wide,)), [100], np.array([True]))
    for address in (0x60004, -8, 1 << 21):
        with pytest.raises(ValueError, match="row word 1 cannot hold the address of its transfer 0"):
            with_addresses(
                result.rows.words, result.sites, at(np.array([address]), np.array([0xA0000, 0xA0000]))
            )


def test_sites_cover_every_kind_of_address_field() -> None:
    """XR-01, XR-02: a full-duplex tile with controls alone and in pairs, in and outside of its send."""
    transfers = [
        Transfer(source=64, address=0x60000, words=300, recipients=((260, 0x70000, 0),)),
        Transfer(source=0, address=0x60400, words=54, recipients=((64, 0x74000, 0),)),
        Transfer(source=4, address=0x60400, words=30, recipients=((64, 0x7C000, 0),)),
        Transfer(source=8, address=0x60400, words=54, recipients=((128, 0x74000, 0),)),
        Transfer(source=12, address=0x60400, words=56, recipients=((128, 0x7C000, 0),)),
        Transfer(source=16, address=0x60400, words=56, recipients=((128, 0x70000, 0),)),
    ]
    result = schedule_phase(demand(transfers))
    ordinary = {kind for kind in SiteKind if kind.unit == ITEM_BYTES or not kind.is_send}
    assert set(result.sites.kind.tolist()) == ordinary
    assert len(np.unique(result.sites.word)) == len(result.sites.word)


@given(random_phases(moving=True))
def test_patches_are_the_words_that_change_and_give_each_iteration_its_row(phase: RandomPhase) -> None:
    result = schedule_phase(demand(phase.transfers, phase.iterations))
    uses = iterations_of(result.demand)
    every = np.stack(
        [
            with_addresses(result.rows.words, result.sites, at(source, destination))
            for source, destination in zip(uses.source, uses.destination, strict=True)
        ]
    )
    assert (every[0] == result.rows.words).all()
    assert result.patches.word.tolist() == np.flatnonzero((every != every[0]).any(axis=0)).tolist()
    assert (result.patches.values == every[:, result.patches.word].T).all()


def test_uses_restore_the_same_words_in_either_order() -> None:
    """A use at address fields of zero is a use like any other, first or last."""
    result = schedule_phase(
        demand([Transfer(source=0, address=0x60000, words=8, recipients=((64, 0xA0000, 0),))])
    )
    zero, other = np.zeros((1, 1), dtype=np.int64), np.full((1, 1), 0x70000)
    for first, second in ((zero, other), (other, zero)):
        both = np.concatenate([first, second])
        uses = Uses(source=both, destination=both, base=np.zeros((2, 0), dtype=np.int64))
        found = patches_between(result.rows.words, result.sites, uses)
        assert found.word.tolist() == result.sites.word.tolist()
        for use in range(2):
            words = result.rows.words.copy()
            words[found.word] = found.values[:, use]
            expected = with_addresses(result.rows.words, result.sites, uses, use)
            assert (words == expected).all()
