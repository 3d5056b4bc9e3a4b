"""Integer operations of both register files, in every form, against Python's integers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from compiler.simulator.operations import LAST_INTEGER, operation_of
from compiler.target.instructions import InstructionForm, Lane, OperandKind, instruction_table
from tests.simulator.streams import Words, stream_arithmetic, stream_main

MASK = 0xFFFFFFFF
CORNERS = [0, 1, 2, 31, 32, 33, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xFFFFFFFF]


def signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word


def halves(word: int) -> list[int]:
    return [word & 0xFFFF, word >> 16]


def octets(word: int) -> list[int]:
    return [word >> (8 * k) & 0xFF for k in range(4)]


def join(parts: list[int]) -> int:
    width = 32 // len(parts)
    return sum(part << (width * index) for index, part in enumerate(parts))


def leading(bits: str, digit: str) -> int:
    return len(bits) - len(bits.lstrip(digit))


BINARY: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "andc": lambda a, b: a & ~b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "xnor": lambda a, b: ~(a ^ b),
    "shl": lambda a, b: a << b if b < 32 else 0,
    "shr": lambda a, b: a >> b if b < 32 else 0,
    "shrs": lambda a, b: signed(a) >> min(b, 40),
    "cmpeq": lambda a, b: int(a == b),
    "cmpne": lambda a, b: int(a != b),
    "cmpslt": lambda a, b: int(signed(a) < signed(b)),
    "cmpult": lambda a, b: int(a < b),
    "max": lambda a, b: max(signed(a), signed(b)),
    "min": lambda a, b: min(signed(a), signed(b)),
    "roll16": lambda a, b: join([halves(a)[1], halves(b)[0]]),
    "roll8l": lambda a, b: join([octets(a)[3], *octets(b)[:3]]),
    "roll8r": lambda a, b: join([*octets(a)[1:], octets(b)[0]]),
    "sort4x16lo": lambda a, b: join([halves(a)[0], halves(b)[0]]),
    "sort4x16hi": lambda a, b: join([halves(a)[1], halves(b)[1]]),
    "sort8x8lo": lambda a, b: join([octets(a)[0], octets(a)[2], octets(b)[0], octets(b)[2]]),
    "sort8x8hi": lambda a, b: join([octets(a)[1], octets(a)[3], octets(b)[1], octets(b)[3]]),
    "shuf8x8lo": lambda a, b: join([octets(a)[0], octets(b)[0], octets(a)[1], octets(b)[1]]),
    "shuf8x8hi": lambda a, b: join([octets(a)[2], octets(b)[2], octets(a)[3], octets(b)[3]]),
}

UNARY: dict[str, Callable[[int], int]] = {
    "abs": lambda a: abs(signed(a)),
    "bitrev8": lambda a: join([int(f"{octet:08b}"[::-1], 2) for octet in octets(a)]),
    "clz": lambda a: leading(f"{a:032b}", "0"),
    "cms": lambda a: leading(f"{a:032b}"[1:], f"{a:032b}"[0]),
    "popc": lambda a: f"{a:b}".count("1"),
    "sort8": lambda a: join([octets(a)[0], octets(a)[2], octets(a)[1], octets(a)[3]]),
    "swap8": lambda a: join([octets(a)[1], octets(a)[0], octets(a)[3], octets(a)[2]]),
    "not": lambda a: ~a,
}

FORMS = [form for form in instruction_table().rows if form.mnemonic in BINARY or form.mnemonic in UNARY]


def operands(columns: int, count: int = 300) -> Words:
    random = np.random.default_rng(columns)
    words = random.integers(0, 1 << 32, (count, columns), dtype=np.uint32)
    small = random.integers(0, 40, (count, columns), dtype=np.uint32)
    words = np.where(random.random((count, columns)) < 0.3, small, words)
    corners = np.array([[a, b] for a in CORNERS for b in CORNERS], np.uint32)
    words[: len(corners), :2] = corners
    return words


def immediate_values(kind: OperandKind, width: int) -> list[int]:
    match kind:
        case OperandKind.SIGNED:
            return [0, 1, -1, 17, -(1 << (width - 1)), (1 << (width - 1)) - 1]
        case OperandKind.HIGH:
            return [0, 1 << 20, 0xABC00000, 0xFFF00000]
        case _:
            return [0, 1, 5, 31, 32, (1 << width) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One spelling of a form, and its operands as columns of numbers."""

    text: str
    columns: list[list[int]]


def cases(form: InstructionForm, words: Words) -> Iterator[Case]:
    """The form with registers, and with each immediate value worth trying."""
    is_aux = form.lane is Lane.AUX
    registers = [("$a0", 0), ("$a2", 2)] if is_aux else [("$m5", 0), ("$m6", 1)]
    immediates = [operand for operand in form.operands if not operand.is_register]
    values = immediate_values(immediates[0].kind, immediates[0].width) if immediates else [0]
    mnemonic = form.mnemonic
    if immediates and immediates[0].width == 16 and mnemonic in ("add", "cmpeq", "max", "min", "sub"):
        mnemonic += "s" if immediates[0].kind is OperandKind.SIGNED else "z"
    for value in values:
        texts: list[str] = []
        columns: list[list[int]] = []
        left = list(registers)
        for operand in form.operands[1:]:
            if not operand.is_register:
                texts.append(str(value))
                columns.append([value & MASK] * len(words))
                continue
            register, column = left.pop(0)
            texts.append(register + operand.suffix)
            numbers = [int(word) for word in words[:, column]]
            if operand.suffix:
                half = 0 if operand.suffix == ":BL" else 1
                numbers = [halves(word)[half] * 0x10001 for word in numbers]
            columns.append(numbers)
        yield Case(text=f"{mnemonic} {'$a4' if is_aux else '$m7'}, {', '.join(texts)}", columns=columns)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_every_form_of_every_integer_operation(form: InstructionForm) -> None:
    is_aux = form.lane is Lane.AUX
    words = operands(4 if is_aux else 3)
    for case in cases(form, words):
        got = stream_arithmetic(case.text, words)[:, 0] if is_aux else stream_main(case.text, words)
        for index, arguments in enumerate(zip(*case.columns, strict=True)):
            if form.mnemonic in UNARY:
                expected = UNARY[form.mnemonic](*arguments)
            else:
                expected = BINARY[form.mnemonic](*arguments)
            assert int(got[index]) == expected & MASK, (case.text, [hex(number) for number in arguments])


def test_pairs_of_words() -> None:
    words = operands(4)
    a, b, c, d = (words[:, k] for k in range(4))
    expected = {
        "and64 $a4:5, $a0:1, $a2:3": (a & c, b & d),
        "andc64 $a4:5, $a0:1, $a2:3": (a & ~c, b & ~d),
        "or64 $a4:5, $a0:1, $a2:3": (a | c, b | d),
        "not64 $a4:5, $a0:1": (~a, ~b),
        "sort4x32lo $a4:5, $a0:1, $a2:3": (a, c),
        "sort4x32hi $a4:5, $a0:1, $a2:3": (b, d),
        "roll32 $a4:5, $a0:1, $a2:3": (b, c),
    }
    for body, columns in expected.items():
        got = stream_arithmetic(body, words)
        assert np.array_equal(got, np.stack(columns, axis=1)), body


def test_moves_and_constants() -> None:
    words = operands(3)
    moved = stream_main("movz $m7, $m5, $m6", words)
    assert np.array_equal(moved, np.where(words[:, 0] != 0, words[:, 1], words[:, 2]))
    assert set(stream_main("setzi $m7, 0xfffff", words).tolist()) == {0xFFFFF}
    assert set(stream_arithmetic("setzi $a4, 0xfffff", operands(4))[:, 0].tolist()) == {0xFFFFF}
    quads = operands(4)
    body = "{ atom $m7, $a2 ; setzi $a2, 0 }\nst32 $m7, $m15, $m3, 0\nld32 $a5, $m15, $m3, 0"
    assert np.array_equal(stream_arithmetic(f".align 8\n{body}", quads)[:, 1], quads[:, 2])


def test_zero_registers_keep_zero() -> None:
    words = operands(3)
    body = "add $m15, $m5, $m6\nld32 $m15, $m15, $m3, 0\nadd $m7, $m15, 7"
    assert set(stream_main(f"st32 $m5, $m15, $m3, 0\n{body}", words).tolist()) == {7}
    body = "or $a14, $a0, $a2\nor $a15, $a0, $a2\nor $a4, $a14, $a15"
    assert set(stream_arithmetic(body, operands(4))[:, 0].tolist()) == {0}


def test_all_integer_operations_are_covered() -> None:
    covered = {operation_of(form) for form in FORMS if form.lane is Lane.MAIN} | {18, 19, 20}
    assert covered == set(range(1, LAST_INTEGER + 1))
