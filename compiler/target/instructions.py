"""The instruction table of the IPU21 tile processor.

Input is ``instructions.csv`` beside this module, one row per instruction form. Columns:

``mnemonic``
    name as written in assembly text.
``operands``
    in the order of assembly text, each ``name=kind`` with ``/r``, ``/w`` or ``/rw`` on registers (what the
    instruction does to them). Kinds are listed at :class:`OperandKind`; a kind may be followed by literal
    text that belongs to the operand: ``+=`` and ``++`` advanced address, ``>>`` shifted, ``@`` replaced,
    ``:BL`` ``:BU`` ``:B`` broadcast of the low half, upper half or word.
``layout``
    the 32 bits from bit 31 down: literal ``0``/``1`` bits, ``name[hi:lo]`` for operand bits, and ``coissue``
    for the bit that is 1 in both words of a bundle. A form without ``coissue`` must stand alone.
``payload``
    layout of a second word, for the one instruction that has two.
``mode``, ``lane``, ``group``
    which contexts know it, which half of a bundle it may fill, and whether it is a control, system or
    exchange instruction (the first two are barred from repeat bodies).
``scale``, ``region``
    bytes per unit of the offset or stride operand; ``interleaved`` when the address must be there.
``relocation``
    ``operand=name`` when a symbol may stand for that operand.
``generation``
    first processor generation that has the form; IPU21 has all of them.
``standing``
    ``public`` for forms of the vendor's published tables, ``third-party`` for forms known from reverse
    engineering.

Guarantees, checked when the table is loaded: every layout is exactly 32 bits; every operand bit is stored
exactly once, except low bits that alignment forces to zero; no two forms of one mode share a word. The
simulator builds its own decoder from this data, so everything here is plain values.

A decoded operand value is the number assembly text means: the lowest register number of a group, a signed
immediate, a branch target in bytes, the whole 32-bit value of an upper immediate.
"""

import csv
import dataclasses
import functools
import hashlib
import importlib.resources
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, final

WORD_BITS: Final = 32
COISSUE_BIT: Final = 1 << 31


@final
class Mode(Enum):
    """The two kinds of hardware context."""

    WORKER = "worker"
    SUPERVISOR = "supervisor"


@final
class Lane(Enum):
    """Which half of a bundle an instruction can fill."""

    MAIN = "main"
    AUX = "aux"


@final
class Group(Enum):
    """Classes of instructions that rules single out."""

    PLAIN = "plain"
    CONTROL = "control"
    SYSTEM = "system"
    EXCHANGE = "exchange"


@final
class Generation(Enum):
    """Processor generations, oldest first."""

    IPU1 = "ipu1"
    IPU2 = "ipu2"
    IPU21 = "ipu21"


@final
class Standing(Enum):
    """Where the knowledge of an encoding comes from."""

    PUBLIC = "public"
    """The vendor's published instruction tables."""
    THIRD_PARTY = "third-party"
    """Reverse engineering by others, quoted in public."""


@final
class OperandKind(Enum):
    """What an operand is. The value is the token of the table, without its width."""

    MRF = "m"
    """A register of the main file, or an aligned pair of them (``m2``)."""
    ARF = "a"
    """A register of the arithmetic file, or an aligned pair or quad of them (``a2``, ``a4``)."""
    UNSIGNED = "u"
    SIGNED = "s"
    """Two's complement."""
    HIGH = "high"
    """The upper bits of a word; the value is the whole word, its low bits zero."""
    TARGET = "target"
    """A code address in bytes, stored in words."""
    FLAGS = "flags"
    """Control flags of the matrix units; see ``isa_decisions.csv`` for their values."""
    ROUNDING = "rounding"
    """A rounding mode."""
    STRIDES = "strides"
    """Two selector bits for each packed address."""


@final
class Access(Enum):
    """What an instruction does to a register operand."""

    READ = "r"
    WRITE = "w"
    READ_WRITE = "rw"
    NONE = ""
    """Not a register."""


REGISTER_KINDS: Final = frozenset({OperandKind.MRF, OperandKind.ARF})
REGISTER_FIELD_BITS: Final = 4
SUFFIXES: Final = ("+=", "++", ">>", "@", ":BL", ":BU", ":B")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Operand:
    """One operand of a form.

    Args:
        name: its role, unique in the form.
        kind: what it is.
        width: bits of its field; 4 for registers.
        count: registers in the group (1, 2 or 4); 1 for other kinds.
        suffix: literal text that follows it, or "".
        access: what happens to a register.
    """

    name: str
    kind: OperandKind
    width: int
    count: int
    suffix: str
    access: Access
    is_register: bool = dataclasses.field(init=False)
    """Whether it names a register or a group of them."""
    shift: int = dataclasses.field(init=False)
    """How far the value is shifted right before it is stored."""
    step: int = dataclasses.field(init=False)
    """Legal values are multiples of this."""
    lowest: int = dataclasses.field(init=False)
    """The smallest legal value."""
    highest: int = dataclasses.field(init=False)
    """The largest legal value."""

    def __post_init__(self) -> None:
        """Check the combination and derive the legal values."""
        is_register = self.kind in REGISTER_KINDS
        if is_register != (self.access is not Access.NONE):
            raise ValueError(
                f"operand {self.name}: registers, and only they, say whether they are read or written"
            )
        if self.count not in (1, 2, 4) or (self.count > 1 and not is_register):
            raise ValueError(f"operand {self.name}: groups have 1, 2 or 4 registers, not {self.count}")
        if not 1 <= self.width <= WORD_BITS:
            raise ValueError(f"operand {self.name}: a field of {self.width} bits does not exist")
        shift = 0
        if self.kind is OperandKind.TARGET:
            shift = 2
        elif self.kind is OperandKind.HIGH:
            shift = WORD_BITS - self.width
        lowest, highest = 0, ((1 << self.width) - self.count) << shift
        if self.kind is OperandKind.SIGNED:
            lowest, highest = -(1 << (self.width - 1)), (1 << (self.width - 1)) - 1
        derived = {
            "is_register": is_register,
            "shift": shift,
            "step": self.count << shift,
            "lowest": lowest,
            "highest": highest,
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def token(self) -> str:
        """Kind as the table writes it, with its suffix: ``m``, ``a2``, ``u12``, ``m+=``, ``a:BL``."""
        if self.is_register:
            return self.kind.value + (str(self.count) if self.count > 1 else "") + self.suffix
        return f"{self.kind.value}{self.width}{self.suffix}"

    def accepts(self, value: int) -> bool:
        """Whether the field can hold the value."""
        return self.lowest <= value <= self.highest and value % self.step == 0

    @property
    def rule(self) -> str:
        """Which values it accepts, for messages."""
        span = f"in {self.shown(self.lowest)}..{self.shown(self.highest)}"
        return span if self.step == 1 else f"a multiple of {self.shown(self.step)} {span}"

    def shown(self, value: int) -> str:
        """A value as people write it: addresses and upper halves in hexadecimal."""
        return f"{value:#x}" if self.shift and abs(value) >= 16 else str(int(value))

    def refusal(self, value: int) -> str:
        """Why :meth:`accepts` says no, naming the operand."""
        return f"operand {self.name} must be {self.rule}, not {self.shown(value)}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """Operand bits inside a word.

    Args:
        operand: index of the operand in its form.
        low: lowest bit of the word.
        width: number of bits.
        operand_low: the lowest bit of the operand that is stored here.
    """

    operand: int
    low: int
    width: int
    operand_low: int

    @property
    def mask(self) -> int:
        """The bits of the word."""
        return ((1 << self.width) - 1) << self.low


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InstructionForm:
    """One row of the table; see the module's text for the meaning of each column.

    Args:
        fixed_mask: bits of the word that are the same in every instance; the co-issue bit is not among them.
        fixed_bits: their values.
        scale: bytes per unit of the offset or stride operand; None when there is none.
        relocation: (operand index, relocation name) when a symbol may stand for an operand.
        payload: operands of the second word, in order; empty for one-word instructions.
        payload_fields: their places in it.
    """

    mnemonic: str
    operands: tuple[Operand, ...]
    fields: tuple[Field, ...]
    fixed_mask: int
    fixed_bits: int
    can_coissue: bool
    payload: tuple[Operand, ...]
    payload_fields: tuple[Field, ...]
    modes: tuple[Mode, ...]
    lane: Lane
    group: Group
    scale: int | None
    interleaved_only: bool
    relocation: tuple[int, str] | None
    generation: Generation
    standing: Standing
    note: str

    def __post_init__(self) -> None:
        """Check that bits are covered exactly."""
        names = [operand.name for operand in (*self.operands, *self.payload)]
        if len(set(names)) != len(names):
            raise ValueError(f"{self}: two operands have one name")
        stored = self.fixed_mask | (COISSUE_BIT if self.can_coissue else 0)
        _check_coverage(str(self), self.operands, self.fields, stored)
        if self.payload:
            _check_coverage(f"payload of {self}", self.payload, self.payload_fields, 0)
        if self.fixed_bits & ~self.fixed_mask:
            raise ValueError(f"{self}: fixed bits outside their mask")

    def __str__(self) -> str:
        """Mnemonic and operand kinds: ``ld32 m, m, m, u12``."""
        return f"{self.mnemonic} {', '.join(self.tokens)}".rstrip()

    @property
    def tokens(self) -> tuple[str, ...]:
        """Operand kinds, the key of a form among those of its mnemonic."""
        return tuple(operand.token for operand in self.operands)

    @property
    def words(self) -> int:
        """Words it occupies: 2 with a payload."""
        return 2 if self.payload else 1


def _check_coverage(what: str, operands: Sequence[Operand], fields: Sequence[Field], taken: int) -> None:
    stored = [0] * len(operands)
    for field in fields:
        if taken & field.mask or field.low + field.width > WORD_BITS:
            raise ValueError(f"{what}: two parts of the word overlap at bit {field.low}")
        taken |= field.mask
        bits = ((1 << field.width) - 1) << field.operand_low
        if stored[field.operand] & bits:
            raise ValueError(f"{what}: operand {operands[field.operand].name} stores a bit twice")
        stored[field.operand] |= bits
    if taken != (1 << WORD_BITS) - 1:
        raise ValueError(f"{what}: not every bit of the word is described")
    for operand, bits in zip(operands, stored, strict=True):
        # Bits below the alignment of a register group are zero and need no place.
        if (bits | (operand.count - 1)) != (1 << operand.width) - 1:
            raise ValueError(f"{what}: operand {operand.name} is not stored completely")


def encode(form: InstructionForm, operands: Sequence[int], *, coissue: bool = False) -> int:
    """The instruction word (the first word, when there are two).

    Args:
        form: the form.
        operands: values in the order of ``form.operands``.
        coissue: set the co-issue bit: the word is half of a bundle.

    Raises:
        ValueError: a value is out of range, naming the operand and the range; or the form cannot co-issue.
    """
    if coissue and not form.can_coissue:
        raise ValueError(f"{form.mnemonic} cannot be part of a bundle")
    word = _place(form.mnemonic, form.operands, form.fields, operands) | form.fixed_bits
    return word | COISSUE_BIT if coissue else word


def encode_payload(form: InstructionForm, operands: Sequence[int]) -> int:
    """The second word of a two-word instruction.

    Raises:
        ValueError: a value is out of range, or the form has one word.
    """
    if not form.payload:
        raise ValueError(f"{form.mnemonic} has no second word")
    return _place(form.mnemonic, form.payload, form.payload_fields, operands)


def _place(mnemonic: str, operands: Sequence[Operand], fields: Sequence[Field], values: Sequence[int]) -> int:
    if len(values) != len(operands):
        raise ValueError(f"{mnemonic} takes {len(operands)} operands, not {len(values)}")
    stored: list[int] = []
    for operand, value in zip(operands, values, strict=True):
        if not operand.accepts(value):
            raise ValueError(f"{mnemonic}: {operand.refusal(value)}")
        stored.append(value >> operand.shift)
    word = 0
    for field in fields:
        word |= (stored[field.operand] >> field.operand_low << field.low) & field.mask
    return word


def extract(operands: Sequence[Operand], fields: Sequence[Field], word: int) -> tuple[int, ...] | None:
    """Operand values of a word of a known form; None when a register group is not aligned."""
    stored = [0] * len(operands)
    for field in fields:
        stored[field.operand] |= (word & field.mask) >> field.low << field.operand_low
    for index, operand in enumerate(operands):
        value = stored[index]
        if value % operand.count:
            return None
        if operand.kind is OperandKind.SIGNED and value >> (operand.width - 1):
            value -= 1 << operand.width
        stored[index] = value << operand.shift
    return tuple(stored)


@final
class InstructionTable:
    """All forms, with look-up by name and by word.

    Decoding groups the forms of a mode by their mask of fixed bits: one dictionary per mask, the masks with
    most bits first. Since no two forms share a word, the first hit is the only one.

    Args:
        forms: every form; checked to have no word in common within a mode.
        digest: SHA-256 of the facts, in hexadecimal.
    """

    def __init__(self, forms: Sequence[InstructionForm], digest: str) -> None:
        self.rows: Final = tuple(forms)
        self.digest: Final = digest
        self._by_mnemonic: dict[str, tuple[InstructionForm, ...]] = {}
        for form in self.rows:
            if any(other.tokens == form.tokens for other in self._by_mnemonic.get(form.mnemonic, ())):
                raise ValueError(f"{form} appears twice")
            self._by_mnemonic[form.mnemonic] = (*self._by_mnemonic.get(form.mnemonic, ()), form)
        self._buckets = {
            (mode, coissue): _buckets(self.rows, mode, coissue=coissue)
            for mode in Mode
            for coissue in (False, True)
        }

    @property
    def mnemonics(self) -> tuple[str, ...]:
        """All names, sorted."""
        return tuple(sorted(self._by_mnemonic))

    def forms(self, mnemonic: str) -> tuple[InstructionForm, ...]:
        """The forms of a mnemonic in the order of the table; empty for an unknown name."""
        return self._by_mnemonic.get(mnemonic, ())

    def form(self, mnemonic: str, operand_kinds: Sequence[str]) -> InstructionForm:
        """The form with these operand kinds, as :attr:`Operand.token` writes them.

        Raises:
            ValueError: there is none.
        """
        for form in self.forms(mnemonic):
            if form.tokens == tuple(operand_kinds):
                return form
        raise ValueError(f"no instruction {mnemonic} {', '.join(operand_kinds)}")

    def decode(
        self, word: int, mode: Mode, *, coissue: bool = False
    ) -> tuple[InstructionForm, tuple[int, ...]] | None:
        """Form and operand values of a word; None when it is no instruction of the mode.

        Args:
            word: 32 bits.
            mode: kind of context that fetches it.
            coissue: the word is half of a bundle, so bit 31 must be set.
        """
        for mask, values in self._buckets[mode, coissue]:
            form = values.get(word & mask)
            if form is not None:
                operands = extract(form.operands, form.fields, word)
                return None if operands is None else (form, operands)
        return None


def _buckets(
    forms: Sequence[InstructionForm], mode: Mode, *, coissue: bool
) -> tuple[tuple[int, Mapping[int, InstructionForm]], ...]:
    if coissue and mode is Mode.SUPERVISOR:  # it has no bundles
        return ()
    buckets: dict[int, dict[int, InstructionForm]] = {}
    for form in forms:
        if mode not in form.modes or (coissue and not form.can_coissue):
            continue
        mask, bits = form.fixed_mask, form.fixed_bits
        if form.can_coissue:
            mask |= COISSUE_BIT
            bits |= COISSUE_BIT if coissue else 0
        for other_mask, others in buckets.items():
            for other_bits, other in others.items():
                if not (bits ^ other_bits) & mask & other_mask:
                    raise ValueError(f"{form} and {other} share a word in {mode.value} mode")
        buckets.setdefault(mask, {})[bits] = form
    return tuple(sorted(buckets.items(), key=lambda item: (-item[0].bit_count(), item[0])))


_OPERAND = re.compile(r"(\w+)=([a-z]+?)(\d*)(" + "|".join(map(re.escape, SUFFIXES)) + r"|)(?:/(rw|r|w))?")
_PIECE = re.compile(r"(\w+)\[(\d+):(\d+)\]")


def _parse_operand(text: str) -> Operand:
    match = _OPERAND.fullmatch(text)
    if match is None:
        raise ValueError(f"instruction table: {text!r} is not an operand")
    name, kind_text, number, suffix, access = match.groups()
    kind = OperandKind(kind_text)
    is_register = kind in REGISTER_KINDS
    return Operand(
        name=name,
        kind=kind,
        width=REGISTER_FIELD_BITS if is_register else int(number),
        count=int(number or 1) if is_register else 1,
        suffix=suffix,
        access=Access(access or ""),
    )


def _parse_layout(text: str, operands: Sequence[Operand]) -> tuple[tuple[Field, ...], int, int, bool]:
    """Fields, mask of fixed bits, their values, and whether there is a co-issue bit."""
    names = [operand.name for operand in operands]
    fields: list[Field] = []
    bit = WORD_BITS
    fixed_mask = fixed_bits = 0
    can_coissue = False
    for piece in text.split():
        if piece == "coissue":
            if bit != WORD_BITS:
                raise ValueError(f"instruction table: the co-issue bit is bit 31, in {text!r}")
            bit -= 1
            can_coissue = True
        elif match := _PIECE.fullmatch(piece):
            name, high, low = match[1], int(match[2]), int(match[3])
            width = high - low + 1
            bit -= width
            if name not in names:
                raise ValueError(f"instruction table: {text!r} places an unknown operand {name}")
            fields.append(Field(operand=names.index(name), low=bit, width=width, operand_low=low))
        else:
            bit -= len(piece)
            fixed_mask |= ((1 << len(piece)) - 1) << bit
            fixed_bits |= int(piece, 2) << bit
    if bit != 0:
        raise ValueError(f"instruction table: {text!r} describes {WORD_BITS - bit} bits")
    return tuple(fields), fixed_mask, fixed_bits, can_coissue


def _parse_payload(text: str) -> tuple[tuple[Operand, ...], tuple[Field, ...]]:
    operands = tuple(
        Operand(
            name=match[1],
            kind=OperandKind.UNSIGNED,
            width=int(match[2]) + 1,
            count=1,
            suffix="",
            access=Access.NONE,
        )
        for match in _PIECE.finditer(text)
    )
    return operands, _parse_layout(text, operands)[0] if text else ()


def _parse_row(row: Mapping[str, str]) -> InstructionForm:
    operands = tuple(map(_parse_operand, row["operands"].split()))
    fields, fixed_mask, fixed_bits, can_coissue = _parse_layout(row["layout"], operands)
    payload, payload_fields = _parse_payload(row["payload"])
    relocation = None
    if row["relocation"]:
        name, kind = row["relocation"].split("=")
        relocation = ([operand.name for operand in operands].index(name), kind)
    return InstructionForm(
        mnemonic=row["mnemonic"],
        operands=operands,
        fields=fields,
        fixed_mask=fixed_mask,
        fixed_bits=fixed_bits,
        can_coissue=can_coissue,
        payload=payload,
        payload_fields=payload_fields,
        modes=tuple(Mode) if row["mode"] == "both" else (Mode(row["mode"]),),
        lane=Lane(row["lane"]),
        group=Group(row["group"]),
        scale=int(row["scale"]) if row["scale"] else None,
        interleaved_only=row["region"] == "interleaved",
        relocation=relocation,
        generation=Generation(row["generation"]),
        standing=Standing(row["standing"]),
        note=row["note"],
    )


def parse_table(text: str) -> InstructionTable:
    """Read and check a table in the form of ``instructions.csv``.

    The digest covers every column but ``note`` and ``standing``: words of explanation change no bit.

    Raises:
        ValueError: a row is malformed, or a guarantee of this module does not hold.
    """
    rows = list(csv.DictReader(text.splitlines()))
    facts = hashlib.sha256(b"instructions 1\n")
    for row in rows:
        line = "\t".join(value for key, value in row.items() if key not in ("note", "standing"))
        facts.update(line.encode() + b"\n")
    return InstructionTable([_parse_row(row) for row in rows], facts.hexdigest())


@functools.cache
def instruction_table() -> InstructionTable:
    """The table of this package, loaded and checked once."""
    source = importlib.resources.files("compiler.target").joinpath("instructions.csv")
    return parse_table(source.read_text(encoding="utf-8"))
