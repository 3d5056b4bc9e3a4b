"""From words to instructions and bundles.

Bit 31 set in worker code begins a bundle, in supervisor code an instruction with a payload. What is neither
an instruction nor a bundle of the mode stays a number. Lanes are not checked: a bundle of two main
instructions decodes, as in the vendor's disassembler.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, final

from compiler.isa.program import BUNDLE, WORD, Bundle, Data, Instruction
from compiler.target.instructions import COISSUE_BIT, Mode, extract, instruction_table

_WIDTHS: Final = (4, 2, 1)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What some bytes mean.

    Args:
        offset: bytes from the start.
        size: bytes.
        item: an instruction, a bundle, or the number as data.
    """

    offset: int
    size: int
    item: Instruction | Bundle | Data


def disassemble(content: bytes, mode: Mode | None = None, address: int = 0) -> Iterator[Decoded]:
    """Decode bytes from front to back.

    Args:
        content: the bytes.
        mode: kind of context that executes them; None takes, word by word, the worker reading if there is
            one, else that of the supervisor.
        address: of the first byte; bundles are recognised at multiples of 8 only.
    """
    offset = 0
    while offset < len(content):
        decoded = None
        for tried in (Mode.WORKER, Mode.SUPERVISOR) if mode is None else (mode,):
            decoded = _decode(content, offset, tried, address)
            if decoded is not None:
                break
        decoded = decoded or _number(content, offset)
        yield decoded
        offset += decoded.size


def _word(content: bytes, offset: int) -> int | None:
    word = content[offset : offset + WORD]
    return int.from_bytes(word, "little") if len(word) == WORD else None


def _decode(content: bytes, offset: int, mode: Mode, address: int) -> Decoded | None:
    first = _word(content, offset)
    if first is None:
        return None
    if not first & COISSUE_BIT:
        single = _instruction(first, mode, coissue=False)
        return None if single is None else Decoded(offset=offset, size=WORD, item=single)
    second = _word(content, offset + WORD)
    if second is None or (address + offset) % BUNDLE:
        return None
    item: Instruction | Bundle | None = None
    if mode is Mode.SUPERVISOR:
        item = _with_payload(first, second)
    elif second & COISSUE_BIT:
        halves = [_instruction(word, mode, coissue=True) for word in (first, second)]
        if halves[0] is not None and halves[1] is not None:
            item = Bundle(main=halves[0], aux=halves[1])
    return None if item is None else Decoded(offset=offset, size=BUNDLE, item=item)


def _instruction(word: int, mode: Mode, *, coissue: bool) -> Instruction | None:
    found = instruction_table().decode(word, mode, coissue=coissue)
    if found is None or found[0].payload:
        return None
    return Instruction(form=found[0], operands=found[1], mode=mode)


def _with_payload(first: int, second: int) -> Instruction | None:
    found = instruction_table().decode(first, Mode.SUPERVISOR)
    if found is None or not found[0].payload:
        return None
    form, operands = found
    payload = extract(form.payload, form.payload_fields, second)
    if payload is None:
        return None
    return Instruction(form=form, operands=operands + payload, mode=Mode.SUPERVISOR)


def _number(content: bytes, offset: int) -> Decoded:
    """A word as data, or what is left of one at the end."""
    width = next(width for width in _WIDTHS if offset + width <= len(content))
    number = int.from_bytes(content[offset : offset + width], "little")
    return Decoded(offset=offset, size=width, item=Data(width=width, values=(number,)))
