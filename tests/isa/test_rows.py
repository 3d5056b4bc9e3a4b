"""The row decoder (XR-06): literal rows, agreement with the instruction table, and every refusal."""

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.isa.rows import (
    NO_REGISTER,
    RESULTS,
    UNKNOWN,
    ControlKind,
    Operation,
    RefusalReason,
    RefusedRow,
    Row,
    RowRefusal,
    SendKind,
    decode_row,
    decode_whole,
    planned_row,
    refused_row,
    row_listing,
)
from compiler.target.instructions import InstructionForm, encode, encode_payload, instruction_table
from compiler.target.units import Events
from tests.fixtures.exchange.examples import load

RETURN = 0x43A00000
KINDS = {"OWN_MUX": "XPIC0", "PAIR_MUX": "XPIC1", "POINTER": "PIC0", "FORMAT": "PIC1"}


def decoded(*words: int) -> Row:
    row = decode_row(np.array(words, dtype=np.uint32))
    assert isinstance(row, Row), row
    return row


def refused(*words: int) -> str:
    refusal = decode_row(np.array(words, dtype=np.uint32))
    assert isinstance(refusal, RowRefusal)
    return str(refusal)


def controls_of(row: Row) -> list[tuple[int, str, int]]:
    controls = row.controls
    kinds = [ControlKind(kind).name for kind in controls.kind.tolist()]
    return sorted(zip(controls.event.tolist(), kinds, controls.value.tolist(), strict=True))


def test_literal_rows_of_phases() -> None:
    rows = 0
    for phase in load("phases")["phases"]:
        for tile in phase["tiles"]:
            row = decoded(*(int(word, 16) for word in tile["row"]["words"]))
            assert row.horizon == tile["horizon"]
            stated = [(event, KINDS[kind], value) for event, kind, value in tile["controls"]]
            assert controls_of(row) == sorted(stated)
            rows += 1
    assert rows == 22


def test_receive_only_row_of_four_messages() -> None:
    """Vendor row: each source is selected at the event at which the payload before is first written."""
    row = decoded(
        0x64000082, 0x40A00032, 0xF6600000, 0x03014048, 0xF6600000, 0x03095000, 0xF6600000, 0x04016000,
        0xF7200000, 0x19017000, RETURN,
    )  # fmt: skip
    assert controls_of(row) == [
        (1, "XPIC0", 0x82),
        (53, "PIC0", 0x14048), (53, "XPIC0", 0xC0),
        (105, "PIC0", 0x15000), (105, "XPIC0", 0xC2),
        (157, "PIC0", 0x16000), (157, "XPIC0", 0x100),
        (209, "PIC0", 0x17000), (209, "XPIC0", 0x640),
    ]  # fmt: skip
    assert row.horizon == 266
    assert row.sends.slot.size == 0


def test_base_change_between_two_sends() -> None:
    row = decoded(0x40A00009, 0x7A6C0001, 0x40A00010, 0x436080A7, 0x40A00013, 0x79E00081, RETURN)
    sends = row.sends
    assert sends.slot.tolist() == [10, 80]
    assert sends.count.tolist() == [20, 16]
    assert sends.item.tolist() == [0x18000, 0x10]
    assert sends.control.tolist() == [1, 1]
    assert sends.kind.tolist() == [SendKind.START, SendKind.START]
    assert controls_of(row) == [(60, "OUTGOING_BASE", UNKNOWN)]
    assert row.controls.register.tolist() == [6]
    assert row_listing(row) == (
        "[0,10) delay 10",
        "[10,30) send words=20 item_addr=0x18000 sctl=1",
        "[30,47) delay 17",
        "[47,60) put OUTGOING_BASE,m6",
        "[60,80) delay 20",
        "[80,96) send words=16 item_addr=0x10 sctl=1",
        "[96,96) br $m10",
    )


def test_listing_shows_controls_and_both_words() -> None:
    words = (0x41800003, 0x64002000, 0x61A40001, 0x60098000, 0xF6600000, 0x03014048, RETURN)
    assert row_listing(decoded(*words)) == (
        "[0,0) sync 3",
        "[0,1) delayxpic adv=1 sel=1 value=0x0 -> control at 1",
        "[1,54) delaypic adv=53 sel=1 value=0x1 -> control at 54",
        "[54,56) delaypic adv=2 sel=0 value=0x18000 -> control at 56",
        (
            "[56,108) sendpicp words=52 item_addr=0x0 sctl=0 xpic_sel=0 xpic=0xc0 pic_sel=0 pic=0x14048"
            " -> control at 57"
        ),
        "[108,108) br $m10",
    )


def test_full_duplex_stream() -> None:
    """A stream keeps its control and cursor through the instructions that carry controls."""
    row = decoded(
        0x40A00021, 0x788C0001, 0x76900000, 0x70000001, 0xF3AC01D9, 0x0201D000, 0x72F00640, 0x77F9F000,
        0x77404001, RETURN,
    )  # fmt: skip
    sends = row.sends
    assert sends.slot.tolist() == [34, 39, 92, 93, 123, 147, 211]
    assert (sends.slot + sends.count).tolist() == [39, 92, 93, 123, 147, 211, 334]
    assert (sends.item - sends.slot).tolist() == [0x18000 - 34] * 7
    assert set(sends.control.tolist()) == {1}
    assert sends.kind.tolist() == [SendKind.START] + [SendKind.CONTINUE] * 6
    assert sends.word.tolist() == [1, 2, 3, 4, 6, 7, 8]


def test_base_registers_set_in_the_row() -> None:
    """One event and 13; the value is known when the row sets the register, or it is the one that is zero."""
    row = decoded(0x19800400, 0x438080A4, 0x43F080A7, 0x436080A7, RETURN)
    assert row.horizon == 1 + 3 * 13
    assert controls_of(row) == [
        (14, "INCOMING_BASE", 0x400),
        (27, "OUTGOING_BASE", 0),
        (40, "OUTGOING_BASE", UNKNOWN),
    ]


def test_row_without_traffic() -> None:
    row = decoded(RETURN)
    assert row.horizon == 0
    assert row.instructions.operation.tolist() == [Operation.RETURN]


def test_nothing_behind_the_end_is_read() -> None:
    row = decoded(0x40A00000, RETURN, 0xFFFFFFFF, 0x12345678)
    assert row.words.tolist() == [0x40A00000, RETURN]


def test_second_word_that_looks_like_the_end() -> None:
    row = decoded(0xF0000000, RETURN, RETURN)
    assert len(row.words) == 3
    assert controls_of(row) == [(1, "PIC0", RETURN & 0x3FFFF), (1, "XPIC0", RETURN >> 18)]


REFUSALS: list[tuple[tuple[int, ...], str]] = [
    ((0x40A00000,), "row word 1 (00000000): the row does not end with br $m10"),
    ((0xFFFFFFFF,), "row word 0 (ffffffff): the second word of sendpicp is missing"),
    ((0x43900000,), "row word 0 (43900000): is no instruction of a row"),
    ((0x40C00000, RETURN), "row word 0 (40c00000): is no instruction of a row"),
    ((0x40A00000, 0x41800003, RETURN), "row word 1 (41800003): sync may only be the first word"),
    ((0x41800007, RETURN), "row word 0 (41800007): a row can only wait for sync zone 3"),
    (
        (0x438080A0, RETURN),
        "row word 0 (438080a0): a row may only put INCOMING_BASE and OUTGOING_BASE",
    ),
    (
        (0x40A00000, 0xF0000000, 0, RETURN),
        "row word 1 (f0000000): sendpicp must start at an even word",
    ),
    ((0x70000001, RETURN), "row word 0 (70000001): continues a stream, but none was started"),
    ((0x70100000, RETURN), "row word 0 (70100000): continues a stream, but none was started"),
    (
        (0x78000001, 0x40A00000, 0x70100640, RETURN),
        "row word 2 (70100640): carries a control and starts a stream, which only send can",
    ),
    (
        (0xF0000001, 0, RETURN),
        "row word 0 (f0000001): carries a control and starts a stream, which only send can",
    ),
    (
        (0x40A00000, 0x78000001, 0xF0000011, 0, RETURN),
        "row word 2 (f0000011): sendpicp continues the stream at another item than the next",
    ),
    (
        (0x40A00000, 0x78000001, 0xF000000B, 0, RETURN),
        "row word 2 (f000000b): sendpicp continues the stream with another send control",
    ),
    (
        (0x78000001, 0x436080A7, 0x70000001, RETURN),
        "row word 2 (70000001): continues a stream across a write of OUTGOING_BASE",
    ),
    (
        (0x78000001, 0x70102000, RETURN),
        "row word 1 (70102000): the multiplexer value has more than 13 bits",
    ),
    (
        (0x78000001, 0x70000005, RETURN),
        "row word 1 (70000005): continues the stream with items of another size",
    ),
]


@pytest.mark.parametrize(("words", "text"), REFUSALS)
def test_refusals(words: tuple[int, ...], text: str) -> None:
    assert refused(*words) == text


def test_every_refusal_is_tested() -> None:
    reasons: set[RefusalReason] = set()
    for words, _ in REFUSALS:
        refusal = decode_row(np.array(words, dtype=np.uint32))
        assert isinstance(refusal, RowRefusal)
        reasons.add(refusal.reason)
    assert reasons == set(RefusalReason)


@given(st.lists(st.integers(0, 0xFFFFFFFF), max_size=12))
def test_any_words_decode_or_are_refused(words: list[int]) -> None:
    result = decode_row(np.array([*words, RETURN], dtype=np.uint32))
    assert isinstance(result, Row | RowRefusal)


def form(mnemonic: str, kinds: str) -> InstructionForm:
    return instruction_table().form(mnemonic, kinds.split())


# Each field of each timed instruction, encoded by the table, comes back as what it means.


@given(st.integers(1, 0x80000))
def test_fields_of_delay(events: int) -> None:
    row = decoded(encode(form("delay", "u19"), (events - 1,)), RETURN)
    assert row.horizon == events


@given(st.integers(1, 128), st.integers(0, 1), st.integers(0, 0x3FFFF))
def test_fields_of_delaypic(events: int, selector: int, value: int) -> None:
    row = decoded(encode(form("delaypic", "u7 u1 u18"), (events - 1, selector, value)), RETURN)
    assert controls_of(row) == [(events, f"PIC{selector}", value)]


@given(st.integers(1, 4096), st.integers(0, 1), st.integers(0, 0x1FFF))
def test_fields_of_delayxpic(events: int, selector: int, value: int) -> None:
    row = decoded(encode(form("delayxpic", "u12 u1 u13"), (events - 1, selector, value)), RETURN)
    assert controls_of(row) == [(events, f"XPIC{selector}", value)]


@given(st.integers(1, 64), st.integers(0, 0x3FFFF), st.integers(0, 7))
def test_fields_of_send(count: int, item: int, control: int) -> None:
    sends = decoded(encode(form("send", "u6 u18 u3"), (count - 1, item, control)), RETURN).sends
    facts = (sends.slot, sends.count, sends.item, sends.control)
    assert [column.tolist() for column in facts] == [[0], [count], [item], [control]]


@given(st.integers(1, 4096), st.integers(0, 0x7FF), st.integers(0, 3))
def test_fields_of_sendoff(count: int, delta: int, control: int) -> None:
    start = encode(form("send", "u6 u18 u3"), (4, 100, 1))
    more = encode(form("sendoff", "u12 u11 u3"), (count - 1, delta, control))
    sends = decoded(start, more, RETURN).sends
    assert (sends.slot[1], sends.count[1], sends.item[1]) == (5, count, 105 + delta)
    assert sends.control[1] == control


@given(st.integers(1, 64), st.integers(0, 3), st.integers(0, 0x1FFF), st.sampled_from((1, 2, 3, 5, 7)))
def test_fields_of_sendpic(count: int, selector: int, value: int, control: int) -> None:
    start = encode(form("send", "u6 u18 u3"), (4, 100, control))
    row = decoded(start, encode(form("sendpic", "u6 u2 u18"), (count - 1, selector, value)), RETURN)
    assert controls_of(row) == [(6, ("XPIC0", "XPIC1", "PIC0", "PIC1")[selector], value)]
    assert (row.sends.item[1], row.sends.count[1], row.sends.control[1]) == (105, count, control)


@given(
    st.integers(1, 64),
    st.sampled_from((0, 1, 6)),
    st.tuples(st.integers(0, 1), st.integers(0, 0x1FFF)),
    st.tuples(st.integers(0, 1), st.integers(0, 0x3FFFF)),
)
def test_fields_of_sendpicp(count: int, control: int, xpic: tuple[int, int], pic: tuple[int, int]) -> None:
    table = form("sendpicp", "u6 u18 u3 u1")
    before = encode(form("send", "u6 u18 u3"), (0, 99, control or 1))
    item = 100 if control else 0
    first = encode(table, (count - 1, item, control, pic[0]))
    second = encode_payload(table, (xpic[0] << 13 | xpic[1], pic[1]))
    row = decoded(0x40A00000, before, first, second, RETURN)
    expected = [(3, f"PIC{pic[0]}", pic[1]), (3, f"XPIC{xpic[0]}", xpic[1])]
    assert controls_of(row) == expected
    assert row.sends.count.tolist() == ([1, count] if control else [1])
    assert row.horizon == 2 + count


def test_planned_columns_are_ordered() -> None:
    row = planned_row(
        horizon=Events(50),
        sends=[(3, 4, 0x100, 1), (10, 5, 0x200, 2)],
        controls=[(20, ControlKind.PIC0, 7), (4, ControlKind.XPIC0, 9)],
    )
    assert row.controls.event.tolist() == [4, 20]
    assert row.controls.register.tolist() == [NO_REGISTER] * 2
    assert row.sends.item.tolist() == [0x100, 0x200]


@pytest.mark.parametrize("sends", [[(3, 4, 0, 1), (6, 1, 0, 1)], [(45, 6, 0, 1)], [(3, 0, 0, 1)]])
def test_impossible_sends(sends: list[tuple[int, int, int, int]]) -> None:
    with pytest.raises(ValueError, match=r"sends are not in order of slots within 0\.\.50"):
        planned_row(horizon=Events(50), sends=sends)


@pytest.mark.parametrize("event", [0, 51])
def test_impossible_controls(event: int) -> None:
    with pytest.raises(ValueError, match=r"controls are not in order of events within 1\.\.50"):
        planned_row(horizon=Events(50), controls=[(event, ControlKind.PIC0, 0)])


@given(st.lists(st.lists(st.integers(0, 2**32 - 1), max_size=4), max_size=4), st.data())
def test_a_row_that_words_must_end_with_is_the_row_they_begin_with(
    noise: list[list[int]], data: st.DataObject
) -> None:
    """Rows of the examples and random words, some with words behind them."""
    known = [
        [int(word, 16) for word in tile["row"]["words"]]
        for phase in load("phases")["phases"]
        for tile in phase["tiles"]
    ]
    rows = data.draw(st.lists(st.sampled_from(known), max_size=6)) + noise
    rows = [row + data.draw(st.sampled_from(([], [0]))) for row in rows]
    words = np.array([word for row in rows for word in row], dtype=np.uint32)
    first_word = np.cumsum([0, *(len(row) for row in rows)])
    for index, row in enumerate(rows):
        own = words[first_word[index] : first_word[index + 1]]
        alone = decode_row(own)
        instructions, sends, controls = (
            np.empty((len(row), columns), dtype=np.int64) for columns in (4, 6, 5)
        )
        result = np.zeros(RESULTS, dtype=np.int64)
        reason = decode_whole(own, instructions, sends, controls, result)
        if isinstance(alone, RowRefusal) or len(alone.words) < len(row):
            assert reason != 0
            refusal = alone if isinstance(alone, RowRefusal) else None
            assert refused_row(own, index, reason, int(result[4])) == RefusedRow(row=index, refusal=refusal)
            continue
        assert reason == 0
        assert result[3] == alone.horizon
        for table, count, columns in (
            (instructions, result[0], alone.instructions),
            (sends, result[1], alone.sends),
            (controls, result[2], alone.controls),
        ):
            for found, column in zip(table[:count].T, fields(columns), strict=True):
                assert found.tolist() == getattr(columns, column.name).tolist()
