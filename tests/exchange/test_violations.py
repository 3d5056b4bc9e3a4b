"""Every rule of the fabric, broken on purpose: the checker and the simulator each see it.

A case is rows, word for word, of a few tiles. Both are given the same words and what was asked for; the
simulator has random memory, and data that are not as asked count as seen. XR-06: neither knows how the rows
came about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from compiler.exchange.check import CheckKind, check_phase
from compiler.exchange.ir import Patches, RowReservations, Rows
from compiler.isa.rows import Row, RowRefusal, decode_row
from compiler.simulator.exchange_faults import ExchangeFaultKind
from compiler.simulator.fabric import Phase, run_phase
from compiler.target import words as encoders
from compiler.target.fabric import SendControl
from compiler.target.registers import NEUTRAL_MUX, MainRegister
from compiler.target.units import Events, Items, PhysicalTile, Word
from compiler.target.words import Control
from tests.exchange.memory import carry_out, random_memory
from tests.exchange.phases import Transfer, placed

EAST = SendControl.EAST
PAIRED_EAST = SendControl.EAST | SendControl.PAIRED
RETURN = encoders.br(MainRegister.M10)
REFUSED = "refused"
OTHER_DATA = "other data"
NO_PATCHES = Patches(word=np.empty(0, dtype=np.int64), values=np.empty((0, 1), dtype=np.uint32))


def wait(events: int) -> Word:
    return encoders.delay(Events(events))


def send(items: int, item: int, control: SendControl = EAST) -> Word:
    return encoders.send(Events(items), Items(item), control)


def select(events: int, source: int, control: Control = Control.OWN_MUX) -> Word:
    return encoders.delayxpic(Events(events), control, source)


def store(events: int, value: int, control: Control = Control.POINTER) -> Word:
    return encoders.delaypic(Events(events), control, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Rows that break a rule.

    Args:
        asked: what they should do.
        rows: words by physical tile, ascending.
        checker: what the checker calls it.
        simulator: a kind of fault, ``OTHER_DATA``, or ``REFUSED`` when the words are no row.
        row_address: where rows lie.
    """

    asked: Sequence[Transfer]
    rows: Mapping[int, Sequence[Word]]
    checker: CheckKind
    simulator: ExchangeFaultKind | str
    row_address: Mapping[int, int] | None = None


def seen_by_checker(case: Case) -> set[CheckKind]:
    rows = Rows(
        tiles=np.array(list(case.rows), dtype=np.int64),
        first_word=np.cumsum([0, *(len(words) for words in case.rows.values())]),
        words=np.array([word for words in case.rows.values() for word in words], dtype=np.uint32),
    )
    places = None
    if case.row_address is not None:
        count = len(case.row_address)
        places = RowReservations(
            tile=np.array(list(case.row_address)),
            address=np.array(list(case.row_address.values())),
            byte_count=np.full(count, 64),
        )
    return {finding.kind for finding in check_phase(placed(case.asked), 1, rows, NO_PATCHES, places)}


def seen_by_simulator(case: Case) -> set[ExchangeFaultKind | str]:
    rows: dict[PhysicalTile, Row] = {}
    for tile, words in case.rows.items():
        row = decode_row(np.array(words, dtype=np.uint32))
        if isinstance(row, RowRefusal):
            return {REFUSED}
        rows[PhysicalTile(tile)] = row
    phase = Phase.of(rows)
    if case.row_address is not None:
        addresses = np.array([case.row_address.get(tile, -1) for tile in case.rows])
        phase = replace(phase, row_address=addresses)
    memory = random_memory(phase.tiles)
    expected = memory.copy()
    taking_part = {tile for transfer in case.asked for tile, _, _ in transfer.recipients}
    if taking_part <= set(phase.tiles.tolist()):
        carry_out(expected, phase.tiles, case.asked, 0)
    result = run_phase(phase, memory, np.full(memory.shape, 15, dtype=np.uint8))
    seen: set[ExchangeFaultKind | str] = {fault.kind for fault in result.faults}
    return seen if seen or (memory == expected).all() else {OTHER_DATA}


# 0 -> 64: time to mux -31; 54 events from selection to write. 0 -> 66: -30.
ONE = (Transfer(source=0, address=0x60000, words=10, recipients=((64, 0xA0000, 0),)),)
SENDER = (wait(31), send(10, 0x60000 // 4), RETURN)
RECEIVER = (select(1, 0), select(10, NEUTRAL_MUX), store(44, 0xA0000 // 4), wait(15), RETURN)
# The same paired, to both: selected at 1, format at 54, written at 56, neutral at 11, ordinary at 64.
PAIR = (Transfer(source=0, address=0x60000, words=20, recipients=((64, 0xA0000, 0), (66, 0xA0000, 0))),)
PAIR_SENDER = (wait(31), send(10, 0x60000 // 8, PAIRED_EAST), RETURN)
MUX, FORMAT = Control.PAIR_MUX, Control.FORMAT
SELECTS = (select(1, 0, MUX), select(10, NEUTRAL_MUX, MUX))
STORES = (store(2, 0xA0000 // 4), store(8, 0, FORMAT), wait(7), RETURN)
EARLY = (*SELECTS, store(43, 1, FORMAT), *STORES)
LATE = (store(54, 1, FORMAT), *STORES)


def paired_case(checker: CheckKind, simulator: ExchangeFaultKind | str, **rows: Sequence[Word]) -> Case:
    """Rows that differ from the right ones where stated."""
    words: dict[int, Sequence[Word]] = {
        0: rows.get("sender", PAIR_SENDER),
        64: rows.get("early", EARLY),
        66: rows.get("late", LATE),
    }
    return Case(asked=PAIR, rows=words, checker=checker, simulator=simulator)


def behind_ordinary(slot: int, checker: CheckKind, simulator: ExchangeFaultKind) -> Case:
    """Ten words of 0 that 66 writes at events 56 to 65; then ten items of 128 to both, sent from a slot on.

    The late member's time to mux from 128 is -26. A slot from 39 on is right: formats are set 27 later.
    """
    asked = (
        Transfer(source=0, address=0x60000, words=10, recipients=((66, 0xA0000, 0),)),
        Transfer(source=128, address=0x60000, words=20, recipients=((64, 0xA0000, 0), (66, 0xA1000, 0))),
    )
    rows = {
        0: SENDER,
        64: (select(slot - 26, 128, MUX), *EARLY[1:]),
        66: (
            select(2, 0),
            select(10, NEUTRAL_MUX),
            store(44, 0xA0000 // 4),
            store(slot - 29, 1, FORMAT),
            store(2, 0xA1000 // 4),
            *STORES[1:],
        ),
        128: (wait(slot), send(10, 0x60000 // 8, PAIRED_EAST), RETURN),
    }
    return Case(asked=asked, rows=rows, checker=checker, simulator=simulator)


Check, Fault = CheckKind, ExchangeFaultKind

CASES: dict[str, Case] = {
    "a send before its receiver can select": Case(
        asked=ONE,
        rows={0: (wait(30), send(10, 0x60000 // 4), RETURN), 64: RECEIVER},
        checker=Check.DELIVERY,
        simulator=OTHER_DATA,
    ),
    "a send in the other direction": Case(
        asked=ONE,
        rows={0: (wait(31), send(10, 0x60000 // 4, SendControl.WEST), RETURN), 64: RECEIVER},
        checker=Check.DELIVERY,
        simulator=OTHER_DATA,
    ),
    "a loopback that nobody else takes": Case(
        asked=(Transfer(source=0, address=0x60000, words=10, recipients=((0, 0xA0000, 0),)),),
        rows={
            # Time to mux -29: sent from slot 40, selected at 12, written from 64 on.
            0: (
                select(12, 0),
                select(10, NEUTRAL_MUX),
                wait(18),
                send(10, 0x60000 // 4),
                store(14, 0xA0000 // 4),
                wait(15),
                RETURN,
            )
        },
        checker=Check.ISOLATED_LOOPBACK,
        simulator=Fault.ISOLATED_LOOPBACK,
    ),
    "a paired loopback to the pair of the sender alone": Case(
        asked=(replace(PAIR[0], source=64),),
        rows={
            # The late member's time to mux is -28: sent from slot 50, selected at 22, written from 77 on.
            64: (
                select(22, 64, MUX),
                select(10, NEUTRAL_MUX, MUX),
                wait(18),
                send(10, 0x60000 // 8, PAIRED_EAST),
                store(15, 1, FORMAT),
                *STORES,
            ),
            66: (store(75, 1, FORMAT), *STORES),
        },
        checker=Check.ISOLATED_LOOPBACK,
        simulator=Fault.ISOLATED_LOOPBACK,
    ),
    "a pair of which one takes no part": Case(
        asked=(Transfer(source=0, address=0x60000, words=20, recipients=((64, 0xA0000, 0),)),),
        rows={0: PAIR_SENDER, 64: EARLY},
        checker=Check.LONE_MEMBER,
        simulator=Fault.INCOMPLETE_PAIR,
    ),
    "a paired item that crosses an atom": paired_case(
        Check.MISALIGNED,
        Fault.RECEIVE_ADDRESS,
        early=(*SELECTS, store(43, 1, FORMAT), store(2, 0xA0004 // 4), *STORES[1:]),
    ),
    "the late member selects": paired_case(
        Check.LATE_MEMBER,
        Fault.LATE_PAIR_MUX,
        early=LATE,
        late=(select(2, 0 ^ 2, MUX), select(10, NEUTRAL_MUX, MUX), store(42, 1, FORMAT), *STORES),
    ),
    "both members select": paired_case(
        Check.PAIR_MUX,
        Fault.PAIR_MUX_CONFLICT,
        late=(select(2, 0 ^ 2, MUX), select(10, NEUTRAL_MUX, MUX), store(42, 1, FORMAT), *STORES),
    ),
    "one member selects when the other releases": paired_case(
        Check.PAIR_MUX,
        Fault.PAIR_MUX_CONFLICT,
        late=(select(11, 0 ^ 2, MUX), select(10, NEUTRAL_MUX, MUX), store(33, 1, FORMAT), *STORES),
    ),
    "the multiplexer of the tile lets paired items through": Case(
        asked=ONE,
        rows={0: PAIR_SENDER, 64: RECEIVER},
        checker=Check.WRONG_MUX,
        simulator=Fault.FORMAT_MISMATCH,
    ),
    "the multiplexer of the pair lets ordinary words through": paired_case(
        Check.WRONG_MUX, Fault.FORMAT_MISMATCH, sender=SENDER
    ),
    "no format": paired_case(
        Check.FORMAT,
        Fault.FORMAT_MISMATCH,
        late=(store(56, 0xA0000 // 4), wait(15), RETURN),
    ),
    "the format of the other direction": paired_case(
        Check.FORMAT, Fault.FORMAT_MISMATCH, late=(store(54, 2, FORMAT), *STORES)
    ),
    "a format one event late": paired_case(
        Check.FORMAT,
        Fault.FORMAT_MISMATCH,
        late=(store(55, 1, FORMAT), store(1, 0xA0000 // 4), *STORES[1:]),
    ),
    "an ordinary format one event early": paired_case(
        Check.FORMAT,
        Fault.FORMAT_MISMATCH,
        late=(store(54, 1, FORMAT), STORES[0], store(7, 0, FORMAT), wait(8), RETURN),
    ),
    "a paired format before an ordinary payload has ended": behind_ordinary(
        38, Check.FORMAT_CHANGE, Fault.FORMAT_CHANGE
    ),
    "a paired payload before an ordinary one has ended": behind_ordinary(
        36, Check.OVERLAPPING_RECEIVES, Fault.OVERLAPPING_RECEIVES
    ),
    "a send while the partner uses the lane": Case(
        asked=(*PAIR, Transfer(source=2, address=0x60000, words=5, recipients=((4, 0xA0000, 0),))),
        rows={
            0: PAIR_SENDER,
            2: (wait(35), send(5, 0x60000 // 4), RETURN),
            4: (wait(70), RETURN),
            64: EARLY,
            66: LATE,
        },
        checker=Check.BORROWED_LANE,
        simulator=Fault.BORROWED_LANE,
    ),
    "paired sends of partners at once": Case(
        asked=(*PAIR, Transfer(source=2, address=0x60000, words=10, recipients=((4, 0xA0000, 0),))),
        rows={
            0: PAIR_SENDER,
            2: (wait(40), send(5, 0x60000 // 8, PAIRED_EAST), RETURN),
            4: (wait(70), RETURN),
            64: EARLY,
            66: LATE,
        },
        checker=Check.BORROWED_LANE,
        simulator=Fault.OVERLAPPING_SENDS,
    ),
    "two controls at one event, one of a pair": paired_case(
        Check.CONTROL_PAIR,
        Fault.CONTROL_PAIR,
        early=(
            wait(0x1),
            wait(1),
            *encoders.sendpicp(
                Events(1),
                Items(0),
                SendControl(0),
                store=(Control.FORMAT, 0),
                mux=(Control.OWN_MUX, NEUTRAL_MUX),
            ),
            *EARLY,
        ),
    ),
    "two words of one instruction at an odd place": Case(
        asked=ONE,
        rows={
            0: SENDER,
            64: (
                wait(1),
                *encoders.sendpicp(
                    Events(1),
                    Items(0),
                    SendControl(0),
                    store=(Control.POINTER, 0xA0000 // 4),
                    mux=(Control.OWN_MUX, 0),
                ),
                RETURN,
            ),
        },
        checker=Check.REFUSED,
        simulator=REFUSED,
    ),
    "a send across a write of its base": Case(
        asked=ONE,
        rows={
            0: (
                wait(31),
                send(5, 0x60000 // 4),
                encoders.put(encoders.SupervisorRegister.OUTGOING_BASE, MainRegister.M15),
                encoders.sendoff(Events(5), Items(0), EAST),
                RETURN,
            ),
            64: RECEIVER,
        },
        checker=Check.REFUSED,
        simulator=REFUSED,
    ),
    "no pointer": Case(
        asked=ONE,
        rows={0: SENDER, 64: (select(1, 0), select(10, NEUTRAL_MUX), wait(59), RETURN)},
        checker=Check.NO_POINTER,
        simulator=Fault.POINTER_UNSET,
    ),
    "a pointer one event early, on the message before": Case(
        asked=(*ONE, Transfer(source=128, address=0x61000, words=20, recipients=((64, 0xB0000, 0),))),
        rows={
            0: SENDER,
            64: (
                select(1, 0),
                select(10, 128),
                select(20, NEUTRAL_MUX),
                store(24, 0xA0000 // 4),
                store(9, 0xB0000 // 4),
                wait(26),
                RETURN,
            ),
            128: (wait(37), send(20, 0x61000 // 4), RETURN),
        },
        checker=Check.DELIVERY,
        simulator=OTHER_DATA,
    ),
    "a row that ends four events after its payload": Case(
        asked=ONE,
        rows={0: SENDER, 64: (*RECEIVER[:3], wait(14), RETURN)},
        checker=Check.CUT_SHORT,
        simulator=Fault.PAYLOAD_CUT,
    ),
    "reading outside of memory": Case(
        asked=ONE,
        rows={0: (wait(31), send(10, 0x1000 // 4), RETURN), 64: RECEIVER},
        checker=Check.OUTSIDE,
        simulator=Fault.SEND_ADDRESS,
    ),
    "writing outside of memory": Case(
        asked=ONE,
        rows={0: SENDER, 64: (*RECEIVER[:2], store(44, 0xE7FFC // 4), wait(15), RETURN)},
        checker=Check.OUTSIDE,
        simulator=Fault.RECEIVE_ADDRESS,
    ),
    "reading and writing one memory element at once": Case(
        asked=(*ONE, Transfer(source=64, address=0xA4000, words=60, recipients=((128, 0x90000, 0),))),
        rows={
            0: SENDER,
            # Reads in slots 40 to 99, writes at events 55 to 64.
            64: (
                *RECEIVER[:2],
                wait(29),
                send(14, 0xA4000 // 4),
                encoders.sendpic(Events(46), Control.POINTER, 0xA0000 // 4),
                RETURN,
            ),
            128: (
                select(10, 64),
                store(56, 0x90000 // 4),
                select(4, NEUTRAL_MUX),
                wait(61),
                RETURN,
            ),
        },
        checker=Check.SHARED_ELEMENT,
        simulator=Fault.SEND_RECEIVE_ELEMENT,
    ),
    "reading in the element of the row": Case(
        asked=ONE,
        rows={0: SENDER, 64: RECEIVER},
        checker=Check.ROW_ELEMENT,
        simulator=Fault.SEND_ROW_ELEMENT,
        row_address={0: 0x60400},
    ),
    "writing in the element that a row's fetch looks ahead into": Case(
        asked=(replace(ONE[0], recipients=((64, 0x80000, 0),)),),
        rows={0: SENDER, 64: (*RECEIVER[:2], store(44, 0x80000 // 4), wait(15), RETURN)},
        checker=Check.ROW_ELEMENT,
        simulator=Fault.RECEIVE_ROW_ELEMENT,
        row_address={64: 0x7FFC8},
    ),
    "forwarding before all has arrived": Case(
        asked=(*ONE, Transfer(source=64, address=0xA0000, words=1, recipients=((128, 0xB0000, 0),))),
        rows={
            0: SENDER,
            # Read in slot 40, written from event 55 on; tile 128 takes it at slot 40 - 31.
            64: (*RECEIVER[:2], wait(29), send(1, 0xA0000 // 4), store(14, 0xA0000 // 4), wait(15), RETURN),
            128: (select(10, 64), select(1, NEUTRAL_MUX), store(55, 0xB0000 // 4), wait(6), RETURN),
        },
        checker=Check.DELIVERY,
        simulator=OTHER_DATA,
    ),
}


def test_rows_as_they_should_be_break_no_rule() -> None:
    for asked, rows in (
        (ONE, {0: SENDER, 64: RECEIVER}),
        (PAIR, {0: PAIR_SENDER, 64: EARLY, 66: LATE}),
    ):
        case = Case(asked=asked, rows=rows, checker=CheckKind.REFUSED, simulator=REFUSED)
        assert not seen_by_checker(case)
        assert not seen_by_simulator(case)
    case = behind_ordinary(39, CheckKind.FORMAT_CHANGE, ExchangeFaultKind.FORMAT_CHANGE)
    assert not seen_by_checker(case)
    assert not seen_by_simulator(case)


@pytest.mark.parametrize("name", CASES)
def test_a_broken_rule_is_seen_by_the_checker(name: str) -> None:
    assert CASES[name].checker in seen_by_checker(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_a_broken_rule_is_seen_by_the_simulator(name: str) -> None:
    assert CASES[name].simulator in seen_by_simulator(CASES[name])
