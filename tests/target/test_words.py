"""Words of supervisor and exchange instructions (TA-04): literal rows, limits, and the text of refusals."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target import words
from compiler.target.control_registers import SupervisorRegister
from compiler.target.costs import EXCHANGE_PUT_EVENTS
from compiler.target.fabric import SendControl
from compiler.target.instructions import Mode, instruction_table
from compiler.target.registers import Absence, MainRegister, SyncZone
from compiler.target.units import Address, Bytes, Events, Items, Word, Words
from compiler.target.words import Control
from tests.fixtures.exchange.examples import NAMES, coded, load

M = MainRegister
EAST, PAIRED_EAST, BOTH = SendControl(1), SendControl(5), SendControl(3)
NAMED_OPERANDS: dict[str, int] = {
    **{control.name: control for control in Control},
    **{register.name: register for register in SupervisorRegister},
    **{zone.name: zone for zone in SyncZone},
    **MainRegister.__members__,
}


def encode_listing(listing: Sequence[Sequence[Any]]) -> list[str]:
    """Hexadecimal words of a listing, through the encoders."""
    encoded: list[Word] = []
    for name, *operands in listing:
        if name == "sans":
            encoded.append(words.sans(Absence[operands[0]]))
            continue
        values = [NAMED_OPERANDS[value] if isinstance(value, str) else value for value in operands]
        if name == "sendpicp":
            items, item, control, store, store_value, mux, mux_value = values
            encoded += words.sendpicp(
                Events(items),
                Items(item),
                SendControl(control),
                store=(Control(store), store_value),
                mux=(Control(mux), mux_value),
            )
            continue
        if name in ("send", "sendoff"):
            values[2] = SendControl(values[2])
        encoder: Callable[..., Word] = getattr(words, name)
        encoded.append(encoder(*values))
    return [f"{word:08x}" for word in encoded]


def _examples() -> list[Any]:
    return [
        pytest.param(example, id=f"{name}-{index}")
        for name in NAMES
        for index, example in enumerate(coded(load(name)))
    ]


@pytest.mark.parametrize("example", _examples())
def test_known_words_are_encoded(example: dict[str, Any]) -> None:
    assert encode_listing(example["listing"]) == example["words"]


def test_the_known_words_cover_every_instruction_of_rows() -> None:
    used = {entry[0] for name in NAMES for example in coded(load(name)) for entry in example["listing"]}
    assert used >= {"delay", "delaypic", "delayxpic", "send", "sendoff", "sendpic", "sendpicp"}
    assert used >= {"sync", "sans"}
    assert used >= {"br", "brz", "put", "setzi", "ld32", "shl"}


def test_a_row_lasts_as_long_as_its_listing_says() -> None:
    """Its horizon is the events of all its instructions: none for the return, 13 for a base switch."""
    rows = list(load("rows")["rows"])
    rows += [tile for phase in load("phases")["phases"] for tile in phase["tiles"]]
    for row in rows:
        events = 0
        for name, *operands in row["row"]["listing"]:
            match name:
                case "br":
                    pass
                case "put":
                    events += EXCHANGE_PUT_EVENTS
                case _:
                    events += operands[0]
        assert events == row["horizon"]


def decoded(word: int) -> tuple[str, tuple[int, ...]]:
    """Mnemonic and operands by the table's decoder."""
    found = instruction_table().decode(word, Mode.SUPERVISOR)
    assert found is not None
    return found[0].mnemonic, found[1]


registers = st.sampled_from(list(MainRegister))
targets = st.integers(0x4C000 // 4, 0x80000 // 4 - 1).map(lambda word: Address(4 * word))


@given(registers, registers, registers, st.integers(0, 4095), targets)
def test_supervisor_words_decode_to_their_operands(
    one: MainRegister, two: MainRegister, three: MainRegister, small: int, target: Address
) -> None:
    offset = Words(small)
    assert decoded(words.ld32(one, two, three, offset)) == ("ld32", (one, two, three, small))
    assert decoded(words.st32(one, two, three, offset)) == ("st32", (one, two, three, small))
    assert decoded(words.add(one, two, small - 2048)) == ("add", (one, two, small - 2048))
    assert decoded(words.and_(one, two, small)) == ("and", (one, two, small))
    assert decoded(words.shl(one, two, small % 32)) == ("shl", (one, two, small % 32))
    assert decoded(words.runall(one, two, small)) == ("runall", (one, two, small))
    assert decoded(words.call(one, target)) == ("call", (one, target))
    assert decoded(words.brz(one, target)) == ("brz", (one, target))
    assert decoded(words.bri(target)) == ("bri", (target,))
    assert decoded(words.trap(small % 16)) == ("trap", (small % 16,))
    assert decoded(words.get(one, SupervisorRegister.FP_ICTL)) == ("get", (one, 0x20))
    assert decoded(words.sans(Absence.INTERNAL)) == ("sans", (0,))


@given(st.integers(0, 2**32 - 1), registers)
def test_a_constant_is_loaded_exactly(value: int, register: MainRegister) -> None:
    result = 0
    for word in words.load_constant(register, value):
        match decoded(word):
            case "setzi", (destination, immediate):
                result = immediate
            case "shl", (destination, _, amount):
                result = result << amount & 0xFFFFFFFF
            case "add", (destination, _, immediate):
                result = result + immediate & 0xFFFFFFFF
            case other:
                raise AssertionError(other)
        assert destination == register
    assert result == value
    assert len(words.load_constant(register, value)) == (1 if value < 2**20 else 3)


def test_limits_are_those_of_the_fields() -> None:
    assert words.DELAY_LIMIT == 0x80000
    assert (words.DELAYPIC_LIMIT, words.DELAYXPIC_LIMIT) == (128, 4096)
    assert (words.SEND_LIMIT, words.SENDOFF_LIMIT) == (64, 4096)


def test_positions_count_items_and_words() -> None:
    assert words.item_position(Bytes(0x60000), paired=False) == 0x18000
    assert words.item_position(Bytes(0x60000), paired=True) == 0xC000
    assert words.pointer_value(Bytes(0x50000)) == 0x14000
    assert words.item_position(Bytes(4 * 0x3FFFF), paired=False) == 0x3FFFF


def _pair(items: Events) -> tuple[Word, Word]:
    return words.sendpicp(items, Items(0), EAST, store=(Control.POINTER, 0), mux=(Control.OWN_MUX, 0))


TIMED: list[tuple[Callable[[Events], object], str, int]] = [
    (words.delay, "delay", 0x80000),
    (lambda count: words.delaypic(count, Control.POINTER, 0), "delaypic", 128),
    (lambda count: words.delayxpic(count, Control.OWN_MUX, 0), "delayxpic", 4096),
    (lambda count: words.send(count, Items(0), EAST), "send", 64),
    (lambda count: words.sendoff(count, Items(0), EAST), "sendoff", 4096),
    (lambda count: words.sendpic(count, Control.POINTER, 0), "sendpic", 64),
    (_pair, "sendpicp", 64),
]


@pytest.mark.parametrize(("encoder", "name", "most"), TIMED)
def test_counts_run_from_one_to_the_limit(encoder: Callable[[Events], object], name: str, most: int) -> None:
    encoder(Events(1))
    encoder(Events(most))
    for count in (0, -1, most + 1):
        with pytest.raises(ValueError, match=rf"^{name}: count must be in 1\.\.{most}, not {count}$"):
            encoder(Events(count))


REFUSALS: list[tuple[Callable[[], object], str]] = [
    (
        lambda: words.send(Events(1), Items(1 << 18), EAST),
        "send: operand item must be in 0..262143, not 262144",
    ),
    (
        lambda: words.send(Events(1), Items(0), SendControl(0)),
        "send: control must have a direction (1, 2, 3, 5, 6, 7), not 0",
    ),
    (
        lambda: words.send(Events(1), Items(0), SendControl.PAIRED),
        "send: control must have a direction (1, 2, 3, 5, 6, 7), not 4",
    ),
    (
        lambda: words.sendoff(Events(1), Items(0), SendControl(0)),
        "sendoff: control must have a direction (1, 2, 3, 5, 6, 7), not 0",
    ),
    (
        lambda: words.sendoff(Events(1), Items(2048), EAST),
        "sendoff: operand item_delta must be in 0..2047, not 2048",
    ),
    (
        lambda: words.delaypic(Events(1), Control.OWN_MUX, 0),
        "delaypic: control must be one of POINTER, FORMAT, not OWN_MUX",
    ),
    (
        lambda: words.delayxpic(Events(1), Control.FORMAT, 0),
        "delayxpic: control must be one of OWN_MUX, PAIR_MUX, not FORMAT",
    ),
    (
        lambda: words.delaypic(Events(1), Control.POINTER, 1 << 18),
        "delaypic: POINTER value must be in 0..0x3ffff, not 0x40000",
    ),
    (
        lambda: words.delaypic(Events(1), Control.FORMAT, 3),
        "delaypic: FORMAT value must be in 0..0x2, not 0x3",
    ),
    (
        lambda: words.sendpic(Events(1), Control.PAIR_MUX, 1 << 11),
        "sendpic: PAIR_MUX value must be in 0..0x7ff, not 0x800",
    ),
    (
        lambda: words.sendpicp(
            Events(1), Items(4), SendControl(0), store=(Control.POINTER, 0), mux=(Control.OWN_MUX, 0)
        ),
        "sendpicp: first_item must be 0 when nothing is sent, not 4",
    ),
    (
        lambda: words.sendpicp(
            Events(1), Items(0), EAST, store=(Control.OWN_MUX, 0), mux=(Control.OWN_MUX, 0)
        ),
        "sendpicp: control must be one of POINTER, FORMAT, not OWN_MUX",
    ),
    (
        lambda: words.sendpicp(
            Events(1), Items(0), PAIRED_EAST, store=(Control.FORMAT, 1), mux=(Control.POINTER, 0)
        ),
        "sendpicp: control must be one of OWN_MUX, PAIR_MUX, not POINTER",
    ),
    (lambda: words.setzi(M.M0, 1 << 20), "setzi: operand immediate must be in 0..1048575, not 1048576"),
    (
        lambda: words.add(M.M0, M.M0, 32768),
        "add: operand immediate must be in -32768..32767, not 32768",
    ),
    (lambda: words.and_(M.M0, M.M0, 4096), "and: operand immediate must be in 0..4095, not 4096"),
    (lambda: words.shl(M.M0, M.M0, 32), "shl: amount must be in 0..31, not 32"),
    (
        lambda: words.ld32(M.M0, M.M1, M.ZERO, Words(4096)),
        "ld32: operand offset must be in 0..4095, not 4096",
    ),
    (
        lambda: words.st32(M.M0, M.M1, M.ZERO, Words(-1)),
        "st32: operand offset must be in 0..4095, not -1",
    ),
    (
        lambda: words.brz(M.M0, Address(0x80000)),
        "brz: target must be a multiple of 4 in 0x4c000..0x80000, not 0x80000",
    ),
    (
        lambda: words.call(M.M10, Address(0x4C002)),
        "call: target must be a multiple of 4 in 0x4c000..0x80000, not 0x4c002",
    ),
    (
        lambda: words.bri(Address(0)),
        "bri: target must be a multiple of 4 in 0x4c000..0x80000, not 0x0",
    ),
    (lambda: words.trap(16), "trap: operand number must be in 0..15, not 16"),
    (
        lambda: words.load_constant(M.M0, 1 << 32),
        "setzi: operand immediate must be in 0..1048575, not 1048576",
    ),
    (
        lambda: words.load_constant(M.M0, -1),
        "setzi: operand immediate must be in 0..1048575, not -1",
    ),
    (
        lambda: words.item_position(Bytes(0x50004), paired=True),
        "byte offset 0x50004 is not a multiple of 8 in 0..0x1ffff8",
    ),
    (
        lambda: words.item_position(Bytes(0x100000), paired=False),
        "byte offset 0x100000 is not a multiple of 4 in 0..0xffffc",
    ),
    (
        lambda: words.pointer_value(Bytes(2)),
        "byte offset 0x2 is not a multiple of 4 in 0..0xffffc",
    ),
]


@pytest.mark.parametrize(("refused", "message"), REFUSALS, ids=[message for _, message in REFUSALS])
def test_wrong_operands_are_named(refused: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole text is compared below
        refused()
    assert str(caught.value) == message


def test_every_encoder_is_documented() -> None:
    for name, function in inspect.getmembers(words, inspect.isfunction):
        if not name.startswith("_") and function.__module__ == words.__name__:
            assert function.__doc__, name
