"""The checker: each rule catches rows that break it, and nothing that it lets pass fails in the simulator."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.exchange.check import CheckKind, Finding, check_phase
from compiler.exchange.ir import Patches, RowReservations, Rows
from compiler.exchange.phase import schedule_phase
from compiler.isa.rows import Row, decode_row
from compiler.simulator.fabric import Phase, run_phase
from compiler.target import words as encoders
from compiler.target.fabric import MULTICAST, SendControl
from compiler.target.registers import NEUTRAL_MUX, MainRegister
from compiler.target.units import Events, Items, PhysicalTile, Word
from compiler.target.words import Control
from tests.exchange.memory import carry_out, random_memory
from tests.exchange.phases import RandomPhase, Transfer, demand, placed, random_phases

NO_PATCHES = Patches(word=np.empty(0, dtype=np.int64), values=np.empty((0, 1), dtype=np.uint32))
RETURN = encoders.br(MainRegister.M10)
EAST = SendControl.EAST
MUX = Control.PAIR_MUX
ONE = [Transfer(source=0, address=0x60000, words=10, recipients=((64, 0xA0000, 0),))]
"""A transfer from tile 0 to tile 64: time to mux -31, 54 events from selection to write."""


def rows_of(rows: Mapping[int, Sequence[Word]]) -> Rows:
    """Rows from words of tiles in ascending order."""
    bounds = np.cumsum([0, *(len(words) for words in rows.values())])
    return Rows(
        tiles=np.array(list(rows), dtype=np.int64),
        first_word=bounds,
        words=np.array([word for words in rows.values() for word in words], dtype=np.uint32),
    )


def delay(events: int) -> Word:
    return encoders.delay(Events(events))


def pointer(events: int, address: int) -> Word:
    return encoders.delaypic(Events(events), Control.POINTER, address // 4)


def select(events: int, source: int, control: Control = Control.OWN_MUX) -> Word:
    return encoders.delayxpic(Events(events), control, source)


def send(words: int, address: int, control: SendControl = EAST) -> Word:
    return encoders.send(Events(words), Items(address // 4), control)


def sender(
    *, wait: int = 31, words: int = 10, address: int = 0x60000, control: SendControl = EAST
) -> list[Word]:
    return [delay(wait), send(words, address, control), RETURN]


def receiver(
    *, source: int = 0, first: int = 1, words: int = 10, address: int = 0xA0000, after: int = 15
) -> list[Word]:
    """Selects at event ``first``, is neutral ``words`` later; the pointer is set at event 55."""
    return [
        select(first, source),
        select(words, NEUTRAL_MUX),
        pointer(55 - first - words, address),
        delay(after),
        RETURN,
    ]


def findings(
    rows: Mapping[int, Sequence[Word]], asked: Sequence[Transfer] = tuple(ONE)
) -> tuple[Finding, ...]:
    return check_phase(placed(asked), 1, rows_of(rows), NO_PATCHES)


def test_rows_as_they_should_be_pass() -> None:
    assert not findings({0: sender(), 64: receiver()})
    result = schedule_phase(demand(ONE))
    assert result.rows.words.tolist() == [*sender(), *receiver()]


WRONG: dict[str, tuple[CheckKind, dict[int, list[Word]]]] = {
    "a stream that never started": (
        CheckKind.REFUSED,
        {0: [delay(31), encoders.sendoff(Events(10), Items(0), EAST), RETURN], 64: receiver()},
    ),
    "words behind the return": (CheckKind.REFUSED, {0: [*sender(), RETURN], 64: receiver()}),
    "no row for the receiver": (CheckKind.MISSING_ROW, {0: sender()}),
    "the multiplexer of the pair": (
        CheckKind.WRONG_MUX,
        {0: sender(), 64: [select(1, 0, MUX), select(10, NEUTRAL_MUX, MUX), *receiver()[2:]]},
    ),
    "64-bit items": (
        CheckKind.WRONG_MUX,
        {0: sender(control=EAST | SendControl.PAIRED), 64: receiver()},
    ),
    "the host as a source": (CheckKind.UNKNOWN_SOURCE, {0: sender(), 64: receiver(source=0x600)}),
    "a tile without a row as a source": (CheckKind.UNKNOWN_SOURCE, {0: sender(), 64: receiver(source=3)}),
    "never neutral": (
        CheckKind.STAYS_SELECTED,
        {0: sender(), 64: [select(1, 0), pointer(54, 0xA0000), delay(15), RETURN]},
    ),
    "no pointer": (
        CheckKind.NO_POINTER,
        {0: sender(), 64: [select(1, 0), select(10, NEUTRAL_MUX), delay(59), RETURN]},
    ),
    "a pointer that comes too late": (
        CheckKind.NO_POINTER,
        {0: sender(), 64: [select(1, 0), select(10, NEUTRAL_MUX), pointer(45, 0xA0000), delay(14), RETURN]},
    ),
    "a row that ends too soon": (CheckKind.CUT_SHORT, {0: sender(), 64: receiver(after=14)}),
    "reading below memory": (CheckKind.OUTSIDE, {0: sender(address=0x1000), 64: receiver()}),
    "writing past memory": (CheckKind.OUTSIDE, {0: sender(), 64: receiver(address=0xE7FF0)}),
    "both ways for one receiver": (CheckKind.SEND_CONTROL, {0: sender(control=MULTICAST), 64: receiver()}),
    "the other way": (CheckKind.DELIVERY, {0: sender(control=SendControl.WEST), 64: receiver()}),
    "a pointer one word off": (CheckKind.DELIVERY, {0: sender(), 64: receiver(address=0xA0004)}),
    "data from elsewhere": (CheckKind.DELIVERY, {0: sender(address=0x60004), 64: receiver()}),
    "a send one slot early": (CheckKind.DELIVERY, {0: sender(wait=30), 64: receiver()}),
    "a send one slot late": (CheckKind.DELIVERY, {0: sender(wait=32), 64: receiver()}),
    "a word too few": (CheckKind.DELIVERY, {0: sender(words=9), 64: receiver()}),
    "neutral one event early": (
        CheckKind.DELIVERY,
        {0: sender(), 64: [select(1, 0), select(9, NEUTRAL_MUX), pointer(45, 0xA0000), delay(15), RETURN]},
    ),
    "a word too many": (CheckKind.DELIVERY, {0: sender(words=11), 64: receiver(words=11, after=16)}),
    "nothing at all": (CheckKind.DELIVERY, {0: [RETURN], 64: [RETURN]}),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_row_is_found(name: str) -> None:
    kind, rows = WRONG[name]
    assert kind in {finding.kind for finding in findings(rows)}


def test_a_pointer_one_event_early_is_found() -> None:
    """The last word of the message before goes where the next one begins."""
    asked = [*ONE, Transfer(source=128, address=0x61000, words=20, recipients=((64, 0xB0000, 0),))]

    def rows(early: int) -> dict[int, Sequence[Word]]:
        selections = [select(1, 0), select(10, 128), select(20, NEUTRAL_MUX)]
        pointers = [pointer(24, 0xA0000), pointer(10 - early, 0xB0000)]
        return {
            0: sender(),
            64: [*selections, *pointers, delay(25 + early), RETURN],
            128: sender(wait=37, words=20, address=0x61000),
        }

    assert not findings(rows(0), asked)
    assert [finding.kind for finding in findings(rows(1), asked)] == [CheckKind.DELIVERY]


def test_bytes_that_nobody_asked_for_are_found() -> None:
    two = [*ONE, Transfer(source=0, address=0x60028, words=1, recipients=((64, 0xA0100, 0),))]
    result = schedule_phase(demand(two))
    found = check_phase(placed(ONE), 1, result.rows, result.patches)
    assert [finding.kind for finding in found] == [CheckKind.DELIVERY]
    assert str(found[0]) == (
        "tile 64, iteration 0: a byte does not hold what was asked for: asked for nothing more,"
        " found 4 bytes at 0xa0100 of tile 64 from 0x60028 of tile 0"
    )


def test_data_in_the_order_of_another_table_are_found() -> None:
    """Receive then forward, against forward then receive: legal rows, other bytes."""
    arrives = Transfer(source=0, address=0x60000, words=10, recipients=((64, 0xA0000, 0),))
    forwards = Transfer(source=64, address=0xA0000, words=10, recipients=((128, 0xA0000, 0),))
    result = schedule_phase(demand([arrives, forwards]))
    assert not check_phase(placed([arrives, forwards]), 1, result.rows, result.patches)
    found = check_phase(placed([forwards, arrives]), 1, result.rows, result.patches)
    assert [finding.kind for finding in found] == [CheckKind.DELIVERY]


def test_reading_and_writing_one_element_at_once_is_found() -> None:
    """The rows of a phase whose addresses were apart, at addresses that are not."""
    both = [*ONE, Transfer(source=64, address=0x60000, words=300, recipients=((192, 0xA0000, 0),))]
    result = schedule_phase(demand(both))
    near = [*ONE, Transfer(source=64, address=0xA4000, words=300, recipients=((192, 0xA0000, 0),))]
    words = result.rows.words.copy()
    of_send = result.sites.word[(result.sites.owner == 1) & (result.sites.kind == 0)]
    words[of_send] = words[of_send] & ~np.uint32(0x3FFFF << 3) | np.uint32(0xA4000 // 4 << 3)
    rows = Rows(tiles=result.rows.tiles, first_word=result.rows.first_word, words=words)
    found = check_phase(placed(near), 1, rows, result.patches)
    assert [finding.kind for finding in found] == [CheckKind.SHARED_ELEMENT]


@pytest.mark.parametrize(("tile", "address"), [(0, 0x60008), (0, 0x63FF8), (64, 0x7FFF8)])
def test_a_row_in_the_element_of_data_is_found(tile: int, address: int) -> None:
    """The last case is found by the look-ahead of the fetch alone."""
    asked = [Transfer(source=0, address=0x60000, words=10, recipients=((64, 0x80000, 0),))]
    result = schedule_phase(demand(asked))
    places = RowReservations(tile=np.array([tile]), address=np.array([address]), byte_count=np.array([64]))
    found = check_phase(placed(asked), 1, result.rows, result.patches, places)
    assert [finding.kind for finding in found] == [CheckKind.ROW_ELEMENT]


def test_a_loopback_that_nobody_else_takes_is_found() -> None:
    asked = [Transfer(source=0, address=0x60000, words=10, recipients=((0, 0xA0000, 0), (64, 0xA0000, 0)))]
    result = schedule_phase(demand(asked))
    words = [Word(word) for word in result.rows.words[: result.rows.first_word[1]].tolist()]
    assert not check_phase(placed(asked), 1, result.rows, result.patches)
    kinds = {finding.kind for finding in findings({0: words, 64: [RETURN]}, asked)}
    assert kinds == {CheckKind.ISOLATED_LOOPBACK, CheckKind.SEND_CONTROL, CheckKind.DELIVERY}


def test_an_iteration_without_its_patch_is_found() -> None:
    asked = [Transfer(source=0, address=0x60000, words=10, recipients=((64, 0xA0000, 40),), stride=40)]
    result = schedule_phase(demand(asked, 3))
    assert not check_phase(placed(asked), 3, result.rows, result.patches)
    values = result.patches.values.copy()
    values[0, 2] = values[0, 1]
    patches = Patches(word=result.patches.word, values=values)
    found = check_phase(placed(asked), 3, result.rows, patches)
    assert [(finding.kind, finding.iteration) for finding in found] == [(CheckKind.DELIVERY, 2)]


@settings(max_examples=100)
@given(random_phases(largest=8), st.integers(0, 2**32 - 1))
def test_what_passes_with_a_flipped_bit_works_in_the_simulator(phase: RandomPhase, seed: int) -> None:
    result = schedule_phase(demand(phase.transfers))
    if not result.rows.words.size:
        return
    random = np.random.default_rng(seed)
    words = result.rows.words.copy()
    words[random.integers(0, words.size)] ^= np.uint32(1) << np.uint32(random.integers(0, 32))
    rows = Rows(tiles=result.rows.tiles, first_word=result.rows.first_word, words=words)
    if check_phase(placed(phase.transfers), 1, rows, result.patches):
        return
    decoded: dict[PhysicalTile, Row] = {}
    for index, tile in enumerate(rows.tiles.tolist()):
        row = decode_row(words[rows.first_word[index] : rows.first_word[index + 1]])
        assert isinstance(row, Row)
        decoded[PhysicalTile(tile)] = row
    memory = random_memory(rows.tiles)
    expected = memory.copy()
    carry_out(expected, rows.tiles, phase.transfers, 0)
    found = run_phase(Phase.of(decoded), memory, np.full(memory.shape, 15, dtype=np.uint8))
    assert not found.faults, [str(fault) for fault in found.faults]
    assert (memory == expected).all()
