"""Words of supervisor and exchange instructions, from checked operands.

Bit layouts are those of the instruction table and are stated nowhere else. What this module adds is
meaning: counts from 1 instead of the stored count minus one, item positions from bytes, which control a
selector stands for, what a send control may be, what may be branched to. A wrong operand is a caller's bug
and raises ``ValueError`` with instruction, operand, value and range. Functions are named after their
mnemonics.

An exchange row is a sequence of timed instructions. Each takes as many events as its first operand says,
and a *control* that it carries acts at its last event (``delaypic``, ``delayxpic``) or one event after its
start (``sendpic``, ``sendpicp``).
"""

import functools
from enum import IntEnum
from typing import Annotated

from compiler.target.control_registers import SupervisorRegister
from compiler.target.fabric import ITEM_BYTES, PAIRED_ITEM_BYTES, Direction, SendControl
from compiler.target.instructions import InstructionForm, encode, encode_payload, instruction_table
from compiler.target.memory import EXECUTABLE_LIMIT, INSTRUCTION_ALIGNMENT, SRAM_BASE
from compiler.target.registers import Absence, IncomingFormat, MainRegister, SyncZone
from compiler.target.standing import VENDOR, stands
from compiler.target.units import WORD_BYTES, Address, Bytes, Events, Items, Word, Words


@stands(VENDOR)
class Control(IntEnum):
    """What an instruction of a row can change at the receiving side; the values are those of ``sendpic``.

    Their lowest bit is the selector of the other instructions; XPIC are the first two, PIC the last two.
    """

    OWN_MUX = 0
    """Source of this tile: a physical tile, the host, or neutral."""
    PAIR_MUX = 1
    """Source of the pair, written by one of its members."""
    POINTER = 2
    """Where incoming words go: words from INCOMING_BASE, in paired transfers too."""
    FORMAT = 3
    """An ``IncomingFormat``."""


_MUX_CONTROLS = (Control.OWN_MUX, Control.PAIR_MUX)
_STORE_CONTROLS = (Control.POINTER, Control.FORMAT)
_MUX_LIMIT = SupervisorRegister.INCOMING_MUX.field("TILE_ID").mask
_SHIFT_LIMIT = 31


@functools.cache
def _form(mnemonic: str, kinds: str) -> InstructionForm:
    return instruction_table().form(mnemonic, kinds.split())


def _most(mnemonic: str, kinds: str) -> Events:
    """The most events of a timed instruction, whose first operand is stored minus one."""
    return Events(_form(mnemonic, kinds).operands[0].highest + 1)


_DELAY = "delay", "u19"
_DELAYPIC = "delaypic", "u7 u1 u18"
_DELAYXPIC = "delayxpic", "u12 u1 u13"
_SEND = "send", "u6 u18 u3"
_SENDOFF = "sendoff", "u12 u11 u3"
_SENDPIC = "sendpic", "u6 u2 u18"
_SENDPICP = "sendpicp", "u6 u18 u3 u1"

DELAY_LIMIT: Annotated[Events, VENDOR] = _most(*_DELAY)
"""Most events of ``delay``. Fact, vendor tools."""

DELAYPIC_LIMIT: Annotated[Events, VENDOR] = _most(*_DELAYPIC)
"""Most events of ``delaypic``. Fact, vendor tools."""

DELAYXPIC_LIMIT: Annotated[Events, VENDOR] = _most(*_DELAYXPIC)
"""Most events of ``delayxpic``. Fact, vendor tools."""

SEND_LIMIT: Annotated[Events, VENDOR] = _most(*_SEND)
"""Most items of ``send``, ``sendpic`` and ``sendpicp``. Fact, vendor tools."""

SENDOFF_LIMIT: Annotated[Events, VENDOR] = _most(*_SENDOFF)
"""Most items of ``sendoff``. Fact, vendor tools."""


def delay(events: Events) -> Word:
    """Let events pass."""
    return _word(_DELAY, _stored(_DELAY, events))


def delaypic(events: Events, control: Control, value: int) -> Word:
    """Let events pass; a pointer or format control acts at the last."""
    _check_control("delaypic", control, _STORE_CONTROLS, value)
    return _word(_DELAYPIC, _stored(_DELAYPIC, events), control & 1, value)


def delayxpic(events: Events, control: Control, value: int) -> Word:
    """Let events pass; a multiplexer control acts at the last."""
    _check_control("delayxpic", control, _MUX_CONTROLS, value)
    return _word(_DELAYXPIC, _stored(_DELAYXPIC, events), control & 1, value)


def send(items: Events, first_item: Items, control: SendControl) -> Word:
    """Start a stream: send items from a position (see ``item_position``), one an event."""
    return _word(_SEND, _stored(_SEND, items), first_item, _stream("send", control))


def sendoff(items: Events, item_delta: Items, control: SendControl) -> Word:
    """Continue the stream after moving its cursor, by 0 in every row that is known to have run."""
    return _word(_SENDOFF, _stored(_SENDOFF, items), item_delta, _stream("sendoff", control))


def sendpic(items: Events, control: Control, value: int) -> Word:
    """Continue the stream; any one control acts one event after the start."""
    _check_control("sendpic", control, tuple(Control), value)
    return _word(_SENDPIC, _stored(_SENDPIC, items), control, value)


def sendpicp(
    items: Events,
    first_item: Items,
    control: SendControl,
    *,
    store: tuple[Control, int],
    mux: tuple[Control, int],
) -> tuple[Word, Word]:
    """Continue the stream, or only wait; two controls act one event after the start.

    Both words lie in one aligned bundle.

    Args:
        items: items or, without a direction, events.
        first_item: position of the first item sent here; 0 without a direction.
        control: that of the stream; no bits to wait only.
        store: a pointer or format control and its value.
        mux: a multiplexer control and its value.
    """
    _check_control("sendpicp", store[0], _STORE_CONTROLS, store[1])
    _check_control("sendpicp", mux[0], _MUX_CONTROLS, mux[1])
    sends = 0 if control == SendControl(0) else _stream("sendpicp", control)
    if not sends and first_item:
        raise ValueError(f"sendpicp: first_item must be 0 when nothing is sent, not {first_item}")
    first = _word(_SENDPICP, _stored(_SENDPICP, items), first_item, sends, store[0] & 1)
    form = _form(*_SENDPICP)
    selector_bit = 1 << (_form(*_DELAYXPIC).operands[2].width)
    second = encode_payload(form, ((mux[0] & 1) * selector_bit + mux[1], store[1]))
    return first, Word(second)


def sync(zone: SyncZone) -> Word:
    """Wait for a zone."""
    return _word(("sync", "u4"), zone)


def sans(absence: Absence) -> Word:
    """Stay away from the next barrier of a kind."""
    return _word(("sans", "u19"), absence)


def br(target: MainRegister) -> Word:
    """Go to the address in a register."""
    return _word(("br", "m"), target)


def bri(target: Address) -> Word:
    """Go to an address."""
    return _word(("bri", "target19"), _code_address("bri", target))


def brz(source: MainRegister, target: Address) -> Word:
    """Go to an address when a register is zero."""
    return _word(("brz", "m target19"), source, _code_address("brz", target))


def call(link: MainRegister, target: Address) -> Word:
    """Go to an address and keep the next instruction's."""
    return _word(("call", "m target20"), link, _code_address("call", target))


def setzi(destination: MainRegister, value: int) -> Word:
    """Set a register to a value of at most 20 bits."""
    return _word(("setzi", "m u20"), destination, value)


def put(register: SupervisorRegister, source: MainRegister) -> Word:
    """Write a control register."""
    return _word(("put", "u8 m"), register, source)


def get(destination: MainRegister, register: SupervisorRegister) -> Word:
    """Read a control register."""
    return _word(("get", "m u8"), destination, register)


def ld32(destination: MainRegister, base: MainRegister, delta: MainRegister, offset: Words) -> Word:
    """Load the word at base + delta + 4 * offset."""
    return _word(("ld32", "m m m u12"), destination, base, delta, offset)


def st32(source: MainRegister, base: MainRegister, delta: MainRegister, offset: Words) -> Word:
    """Store the word at base + delta + 4 * offset."""
    return _word(("st32", "m m m u12"), source, base, delta, offset)


def add(destination: MainRegister, source: MainRegister, value: int) -> Word:
    """Add a signed value of 16 bits."""
    return _word(("add", "m m s16"), destination, source, value)


def and_(destination: MainRegister, source: MainRegister, mask: int) -> Word:
    """Keep bits of the lowest 12."""
    return _word(("and", "m m u12"), destination, source, mask)


def shl(destination: MainRegister, source: MainRegister, amount: int) -> Word:
    """Shift left by 0 .. 31."""
    if not 0 <= amount <= _SHIFT_LIMIT:
        raise ValueError(f"shl: amount must be in 0..{_SHIFT_LIMIT}, not {amount}")
    return _word(("shl", "m m u12"), destination, source, amount)


def runall(entry: MainRegister, vertex_base: MainRegister, stride: int) -> Word:
    """Start every worker at an address; stride 0 gives all of them one vertex base."""
    return _word(("runall", "m m u16"), entry, vertex_base, stride)


def trap(number: int) -> Word:
    """Stop with a patched breakpoint; the lowest bit says which."""
    return _word(("trap", "u4"), number)


def load_constant(destination: MainRegister, value: int) -> tuple[Word, ...]:
    """Set a register to any 32-bit value: one instruction below 2**20, else three."""
    low_bits = 12
    if value < 1 << _form("setzi", "m u20").operands[1].width:
        return (setzi(destination, value),)
    return (
        setzi(destination, value >> low_bits),
        shl(destination, destination, low_bits),
        add(destination, destination, value & ((1 << low_bits) - 1)),
    )


def item_position(byte_offset: Bytes, *, paired: bool) -> Items:
    """Position of data for a send.

    Args:
        byte_offset: bytes from OUTGOING_BASE; a multiple of the item's size.
        paired: whether items have 64 bits.
    """
    size = PAIRED_ITEM_BYTES if paired else ITEM_BYTES
    highest = _form(*_SEND).operands[1].highest
    if byte_offset % size or not 0 <= byte_offset // size <= highest:
        raise ValueError(
            f"byte offset {byte_offset:#x} is not a multiple of {size} in 0..{highest * size:#x}"
        )
    return Items(byte_offset // size)


def pointer_value(byte_offset: Bytes) -> int:
    """Value of a pointer control: words from INCOMING_BASE to the destination, in every format."""
    highest = _form(*_DELAYPIC).operands[2].highest
    if byte_offset % WORD_BYTES or not 0 <= byte_offset // WORD_BYTES <= highest:
        raise ValueError(
            f"byte offset {byte_offset:#x} is not a multiple of {WORD_BYTES} in 0..{highest * WORD_BYTES:#x}"
        )
    return byte_offset // WORD_BYTES


def _word(form: tuple[str, str], *operands: int) -> Word:
    return Word(encode(_form(*form), operands))


def _stored(form: tuple[str, str], count: Events) -> int:
    most = _most(*form)
    if not 1 <= count <= most:
        raise ValueError(f"{form[0]}: count must be in 1..{most}, not {count}")
    return count - 1


def _stream(mnemonic: str, control: SendControl) -> int:
    if not control & (Direction.EAST | Direction.WEST) or not 0 <= control < 1 << len(SendControl):
        raise ValueError(f"{mnemonic}: control must have a direction (1, 2, 3, 5, 6, 7), not {int(control)}")
    return int(control)


def _check_control(mnemonic: str, control: Control, allowed: tuple[Control, ...], value: int) -> None:
    if control not in allowed:
        names = ", ".join(name.name for name in allowed)
        raise ValueError(f"{mnemonic}: control must be one of {names}, not {control.name}")
    match control:
        case Control.OWN_MUX | Control.PAIR_MUX:
            highest = _MUX_LIMIT
        case Control.POINTER:
            highest = _form(*_DELAYPIC).operands[2].highest
        case Control.FORMAT:
            highest = max(IncomingFormat)
    if not 0 <= value <= highest:
        raise ValueError(f"{mnemonic}: {control.name} value must be in 0..{highest:#x}, not {value:#x}")


def _code_address(mnemonic: str, target: Address) -> int:
    if not SRAM_BASE <= target < EXECUTABLE_LIMIT or target % INSTRUCTION_ALIGNMENT:
        raise ValueError(
            f"{mnemonic}: target must be a multiple of {INSTRUCTION_ALIGNMENT}"
            f" in {SRAM_BASE:#x}..{EXECUTABLE_LIMIT:#x}, not {target:#x}"
        )
    return target
