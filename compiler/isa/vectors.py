"""Known encodings as a check of this package: files of vectors, one JSON object a line.

``asm``, ``mode`` (``worker``, ``supervisor``, ``both``, or anything else for "not stated") and
``bytes_hex_le`` (in memory order) say what encodes to what; ``expect: "reject"`` marks bytes that no
disassembler may accept, and, when there are no bytes, text that no assembler may accept. Other keys are
ignored, and so are empty lines and comments (lines that begin with ``#`` or ``//``). Targets of branches are
byte addresses.

A vector agrees when its text assembles to its bytes **and** its bytes decode to the instructions of its text
**and** the printed form of those reads back as them. When no mode is stated, one mode that agrees is enough.
Text that holds data besides instructions is compared by its bytes alone: they need not decode to it. The
payload word of ``sendpicp`` may be left out of the text; then it is taken from the bytes.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast, final

from compiler.errors import InvalidInput
from compiler.isa.assembler import assemble
from compiler.isa.disassembler import disassemble
from compiler.isa.printing import print_program
from compiler.isa.program import (
    WORD,
    Bundle,
    Data,
    Instruction,
    Label,
    Permission,
    Program,
    Section,
    SectionKind,
)
from compiler.isa.text import parse
from compiler.target.instructions import Mode, extract, instruction_table

STAGE: Final = "check vectors"
_LENIENT: Final = (
    Permission.INVALID_REPEAT,
    Permission.INVALID_OPERANDS,
    Permission.INVALID_BUNDLES,
)
"""Vectors state encodings, not programs: rules about neighbours and repeated registers are off."""
_COMMENTS: Final = ("#", "//")
_SHORT_PAYLOAD: Final = re.compile(r"\s*sendpicp(?:[^,]*,){3}[^,]*")
_MODES: Final[Mapping[str, tuple[Mode, ...]]] = {
    "worker": (Mode.WORKER,),
    "supervisor": (Mode.SUPERVISOR,),
    "both": (Mode.WORKER, Mode.SUPERVISOR),
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Vector:
    """One line of a file.

    Args:
        place: file and line.
        text: the assembly text.
        content: the bytes.
        modes: the modes that must agree, or of which one must.
        needs_all: all of ``modes`` must agree.
        is_rejected: the bytes, or the text when there are none, must be refused.
    """

    place: str
    text: str
    content: bytes
    modes: tuple[Mode, ...]
    needs_all: bool
    is_rejected: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """A vector that does not agree, and how."""

    vector: Vector
    reason: str

    def __str__(self) -> str:
        """One line."""
        text = self.vector.text.encode("unicode_escape").decode("ascii")
        return f"{self.vector.place}: {text}: {self.reason}"


def read_vectors(text: str, source: str) -> tuple[Vector, ...]:
    """Read a file of vectors.

    Raises:
        InvalidInput: a line is not a vector, or there is none: a check of nothing would always succeed.
    """
    vectors: list[Vector] = []
    # Strings of JSON may hold the other characters at which splitlines() would cut.
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        if line.strip() and not line.lstrip().startswith(_COMMENTS):
            vectors.append(_read_vector(line, f"{source}:{number}"))
    if not vectors:
        raise InvalidInput(
            "this file has no vectors",
            stage=STAGE,
            subject=source,
            next_step="write one JSON object a line with asm, mode and bytes_hex_le",
        )
    return tuple(vectors)


def _read_vector(line: str, place: str) -> Vector:
    try:
        row = json.loads(line)
        if not isinstance(row, dict):
            raise ValueError("it is no JSON object")
        fields = cast(dict[str, object], row)
        asm = fields["asm"]
        if not isinstance(asm, str):
            raise ValueError("asm is no string")
        is_rejected = str(fields.get("expect")).lower() == "reject"
        hexadecimal = (fields.get("bytes_hex_le") if is_rejected else fields["bytes_hex_le"]) or ""
        if not isinstance(hexadecimal, str):
            raise ValueError("bytes_hex_le is no string")
        content = bytes.fromhex(hexadecimal)
        if is_rejected and len(content) % WORD:
            raise ValueError(f"bytes to refuse are whole words, not {len(content)} bytes")
    except KeyError as missing:
        raise _malformed(place, f"{missing.args[0]} is missing") from None
    except RecursionError:
        raise _malformed(place, "it is nested too deeply") from None
    except ValueError as refusal:
        raise _malformed(place, str(refusal)) from None
    mode = str(fields.get("mode", "?")).strip().lower()
    return Vector(
        place=place,
        text=asm,
        content=content,
        modes=_MODES.get(mode, tuple(Mode)),
        needs_all=mode in _MODES or is_rejected,
        is_rejected=is_rejected,
    )


def _malformed(place: str, reason: str) -> InvalidInput:
    return InvalidInput(
        f"this line is no vector: {reason}",
        stage=STAGE,
        subject=place,
        next_step="write one JSON object a line with asm, mode and bytes_hex_le",
    )


def check_vector(vector: Vector) -> str | None:
    """How a vector disagrees; None when it agrees."""
    check = _check_rejected if vector.is_rejected else _check_agreement
    reasons = [check(vector, mode) for mode in vector.modes]
    failed = [
        f"{reason} ({mode.value})"
        for mode, reason in zip(vector.modes, reasons, strict=True)
        if reason is not None
    ]
    if not failed or (not vector.needs_all and len(failed) < len(reasons)):
        return None
    return "; ".join(failed)


def check_vectors(vectors: tuple[Vector, ...]) -> tuple[Disagreement, ...]:
    """All vectors that disagree."""
    return tuple(
        Disagreement(vector=vector, reason=reason)
        for vector in vectors
        if (reason := check_vector(vector)) is not None
    )


def _check_rejected(vector: Vector, mode: Mode) -> str | None:
    if not vector.content:
        try:
            parse(vector.text, vector.place, mode=mode, byte_branches=True)
        except InvalidInput:
            return None
        return "the text should be refused and assembles"
    items = [decoded.item for decoded in disassemble(vector.content, mode)]
    if any(isinstance(item, Data) for item in items):
        return None
    return f"should be refused and decodes to {_shown(items)}"


def _check_agreement(vector: Vector, mode: Mode) -> str | None:
    try:
        program = _parse(_completed(vector), vector.place, mode)
        assembled = assemble(program, vector.place).sections
    except InvalidInput as refusal:
        return f"does not assemble: {refusal.message}"
    if len(assembled) != 1:
        return f"does not assemble: it has {len(assembled)} sections, not one with code"
    section = assembled[0]
    if section.relocations:
        return "does not assemble: its symbols are not defined"
    if section.content != vector.content:
        return f"assembles to {section.content.hex()}, not {vector.content.hex()}"
    items = [decoded.item for decoded in disassemble(vector.content, mode)]
    written = [item for item in program.sections[0].items if not isinstance(item, Label)]
    if items != written and all(isinstance(item, Instruction | Bundle) for item in written):
        return f"decodes to {_shown(items)}"
    printed = print_program(program)
    if _parse(printed, vector.place, mode) != program:
        return f"prints as text with another meaning: {printed!r}"
    return None


def _parse(text: str, place: str, mode: Mode) -> Program:
    return parse(text, place, mode=mode, byte_branches=True, permissions=_LENIENT)


def _completed(vector: Vector) -> str:
    """The text with the payload that its format leaves out."""
    if _SHORT_PAYLOAD.fullmatch(vector.text) is None or len(vector.content) != 8:
        return vector.text
    form = instruction_table().forms("sendpicp")[0]
    second = int.from_bytes(vector.content[4:], "little")
    payload = extract(form.payload, form.payload_fields, second) or ()
    return ", ".join([vector.text, *map(str, payload)])


def _shown(items: list[Instruction | Bundle | Data]) -> str:
    section = Section(name=".text", kind=SectionKind.CODE, items=tuple(items))
    lines = print_program(Program(sections=(section,))).splitlines()
    return " / ".join(line.strip() for line in lines if line.startswith(" "))
