"""From instructions to words, each with the site of its address.

Input: the table of instructions of a row (``row_instructions``). Output: words whose address fields are
empty, and with each address field its site, from the same row of the same table (XR-01, XR-02, XR-04).

Where operands lie in words is taken from the instruction table, once, as columns of numbers.
"""

import functools
from typing import Final

import numpy as np

from compiler.compiled import compiled
from compiler.exchange.ir import ABSOLUTE, SiteKind, WordArray
from compiler.exchange.row_instructions import Column, Operation, Send
from compiler.exchange.row_moments import NONE, PAIR_SELECTOR
from compiler.target import words as encoders
from compiler.target.control_registers import SupervisorRegister
from compiler.target.fabric import SendControl
from compiler.target.instructions import InstructionForm, instruction_table
from compiler.target.registers import MainRegister
from compiler.target.units import Int64Array
from compiler.target.words import Control

_FORMS: Final = {
    Operation.DELAY: ("delay", "u19"),
    Operation.DELAYPIC: ("delaypic", "u7 u1 u18"),
    Operation.DELAYXPIC: ("delayxpic", "u12 u1 u13"),
    Operation.SEND: ("send", "u6 u18 u3"),
    Operation.SENDOFF: ("sendoff", "u12 u11 u3"),
    Operation.SENDPIC: ("sendpic", "u6 u2 u18"),
    Operation.SENDPICP: ("sendpicp", "u6 u18 u3 u1"),
    Operation.PUT: ("put", "u8 m"),
}
_OPERANDS: Final = 4
_PIECES: Final = 4
"""Most operands of an instruction, and most pieces that they are stored in."""

_SECOND_WORD: Final = len(Operation)
"""Row of the layouts that is that of the second word of ``sendpicp``."""

_OUTGOING_BASE: Final = int(SupervisorRegister.OUTGOING_BASE)
_INCOMING_BASE: Final = int(SupervisorRegister.INCOMING_BASE)
_PAIRED: Final = int(SendControl.PAIRED)


@functools.cache
def _form(operation: Operation) -> InstructionForm:
    mnemonic, kinds = _FORMS[operation]
    return instruction_table().form(mnemonic, kinds.split())


@functools.cache
def layouts() -> tuple[Int64Array, Int64Array]:
    """Fixed bits of each operation, and the pieces that its operands are stored in.

    The pieces have the shape [operations + 1, pieces, 4]: operand, its lowest bit that is stored, the mask of
    the bits, where they go. The last row is that of the second word of ``sendpicp``. Unused pieces come
    last and have an empty mask.
    """
    fixed = np.zeros(len(Operation) + 1, dtype=np.int64)
    pieces = np.zeros((len(Operation) + 1, _PIECES, 4), dtype=np.int64)
    fields = {int(operation): _form(operation).fields for operation in _FORMS}
    fields[_SECOND_WORD] = _form(Operation.SENDPICP).payload_fields
    for row, stored in fields.items():
        for piece, field in enumerate(stored):
            pieces[row, piece] = field.operand, field.operand_low, (1 << field.width) - 1, field.low
    for operation in _FORMS:
        fixed[operation] = _form(operation).fixed_bits
    fixed[Operation.RETURN] = encoders.br(MainRegister.M10)
    return fixed, pieces


_STORE_SELECTOR: Final = int(Control.POINTER)
"""Added to a format or pointer selector in ``sendpic``, which has one field for both kinds."""


@compiled
def words_of(
    table: Int64Array,
    send_table: Int64Array,
    put_values: Int64Array,
    section_of_transfer: Int64Array,
    section_of_recipient: Int64Array,
    fixed: Int64Array,
    pieces: Int64Array,
    words: WordArray,
    at: int,
    sites: Int64Array,
    site: int,
) -> tuple[int, int]:
    """Write a row from ``words[at]`` on, its sites from ``sites[site]`` on; the places behind both.

    Args:
        table: the instructions.
        send_table: the table of sends of the phase.
        put_values: [sections, 2] whether the base is the incoming one, and the main register that holds it.
        section_of_transfer: [transfers] row of ``put_values`` or ``ABSOLUTE``.
        section_of_recipient: [recipients] the same.
        fixed: see ``layouts``.
        pieces: see ``layouts``.
        words: words of the phase.
        at: where the row begins.
        sites: sites of the phase, columns as in ``ir.Sites``.
        site: where those of the row begin.
    """
    operands = np.zeros(_OPERANDS, dtype=np.int64)
    for row in range(table.shape[0]):
        operation = int(table[row, Column.OPERATION.value])
        transfer = int(table[row, Column.TRANSFER.value])
        mux = int(table[row, Column.MUX.value])
        pointer = int(table[row, Column.POINTER.value])
        form = int(table[row, Column.FORMAT.value])
        control = 0
        is_wide = False
        if transfer >= 0 and operation != Operation.PUT.value:
            control = int(send_table[transfer, Send.CONTROL.value])
            is_wide = control & _PAIRED != 0
        operands[0] = table[row, Column.EVENTS.value] - 1
        operands[1] = 0
        operands[2] = 0
        operands[3] = 0
        if operation == Operation.SEND.value or operation == Operation.SENDOFF.value:
            operands[2] = control
        elif operation == Operation.DELAYXPIC.value or (operation == Operation.SENDPIC.value and mux >= 0):
            operands[1] = mux // PAIR_SELECTOR
            operands[2] = mux % PAIR_SELECTOR
        elif operation == Operation.DELAYPIC.value or operation == Operation.SENDPIC.value:
            operands[1] = 0 if form == NONE else 1
            operands[2] = 0 if form == NONE else form
            if operation == Operation.SENDPIC.value:
                operands[1] += _STORE_SELECTOR
        elif operation == Operation.SENDPICP.value:
            operands[2] = control
        elif operation == Operation.PUT.value:
            operands[0] = _INCOMING_BASE if put_values[transfer, 0] != 0 else _OUTGOING_BASE
            operands[1] = put_values[transfer, 1]
        words[at] = fixed[operation] | _packed(pieces[operation], operands)
        sends_pair = operation == Operation.SENDPICP.value and transfer >= 0
        if operation == Operation.SEND.value or sends_pair:
            kind = SiteKind.PAIR_ITEM.value if sends_pair else SiteKind.SEND_ITEM.value
            if is_wide:
                kind = SiteKind.WIDE_PAIR_ITEM.value if sends_pair else SiteKind.WIDE_SEND_ITEM.value
            sites[site, 0] = at
            sites[site, 1] = kind
            sites[site, 2] = transfer
            sites[site, 3] = table[row, Column.OFFSET.value] * (2 if is_wide else 1)
            sites[site, 4] = section_of_transfer[transfer] if section_of_transfer.size else ABSOLUTE
            site += 1
        if operation == Operation.SENDPICP.value:
            at += 1
            operands[0] = mux
            operands[1] = 0
            words[at] = _packed(pieces[_SECOND_WORD], operands)
        if pointer >= 0:
            kind = SiteKind.DELAY_POINTER.value
            if operation == Operation.SENDPIC.value:
                kind = SiteKind.SEND_POINTER.value
            elif operation == Operation.SENDPICP.value:
                kind = SiteKind.PAIR_POINTER.value
            sites[site, 0] = at
            sites[site, 1] = kind
            sites[site, 2] = pointer
            sites[site, 3] = table[row, Column.POINTER_OFFSET.value]
            sites[site, 4] = section_of_recipient[pointer] if section_of_recipient.size else ABSOLUTE
            site += 1
        at += 1
    return at, site


@compiled
def _packed(pieces: Int64Array, operands: Int64Array) -> int:
    """Operands at their places in a word."""
    word = 0
    for piece in range(pieces.shape[0]):
        if pieces[piece, 2] == 0:
            break
        word |= (int(operands[pieces[piece, 0]]) >> pieces[piece, 1] & pieces[piece, 2]) << pieces[piece, 3]
    return word
