"""Control and status registers: numbers, bit fields, and which context has them.

``get`` and ``put`` reach numbers 0 .. 255, ``uget`` and ``uput`` of workers the numbers from 256 with the
excess as operand. The two kinds of context have separate spaces: one number can mean different registers. A
member of ``SupervisorRegister`` or ``WorkerRegister`` *is* its number and knows its fields and how it is
known:

    SupervisorRegister.FP_ICTL.field("OFLO").insert(word, 1)

Names are those of assembly text without the ``$``. One register of the vendor's lists, SNOTIFY, has no
public number and is left out. Positions of fields are known from the earlier generation unless the field
says otherwise. Its address fields had 19 bits; here they end with the highest bit that a tile address has,
which is inferred.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Annotated, Self, final

from compiler.target.memory import SRAM_END
from compiler.target.standing import EARLIER, INFERRED, VENDOR, VERIFIED, Standing, stands
from compiler.target.tiles import WORKERS_PER_TILE


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BitField:
    """Bits ``high .. low`` of a 32-bit register, and how their position is known."""

    high: int
    low: int
    standing: Standing = EARLIER

    def __post_init__(self) -> None:
        """The bits exist."""
        if not 0 <= self.low <= self.high < 32:
            raise ValueError(f"bits {self.high}..{self.low} are no field of a 32-bit register")

    @property
    def mask(self) -> int:
        """The field's bits in place."""
        return ((1 << (self.high - self.low + 1)) - 1) << self.low

    def extract(self, word: int) -> int:
        """The value that a register's word holds in this field."""
        return (word & self.mask) >> self.low

    def insert(self, word: int, value: int) -> int:
        """The word with this field replaced."""
        if not 0 <= value <= self.mask >> self.low:
            raise ValueError(f"value {value} does not fit bits {self.high}..{self.low}")
        return word & ~self.mask | value << self.low


def _bits(high: int, low: int, standing: Standing = EARLIER) -> BitField:
    return BitField(high=high, low=low, standing=standing)


def _bit(position: int, standing: Standing = EARLIER) -> BitField:
    return BitField(high=position, low=position, standing=standing)


def _flags(*names: str) -> dict[str, BitField]:
    """Single bits from bit 0 upwards."""
    return {name: _bit(position) for position, name in enumerate(names)}


_TOP_ADDRESS_BIT = (SRAM_END - 1).bit_length() - 1
_BYTE_ADDRESS = {"ADDR": _bits(_TOP_ADDRESS_BIT, 0, INFERRED)}
_WORD_ADDRESS = {"ADDR": _bits(_TOP_ADDRESS_BIT, 2, INFERRED)}
_BUNDLE_ADDRESS = {"ADDR": _bits(_TOP_ADDRESS_BIT, 3, INFERRED)}
_WORD = {"VALUE": _bits(31, 0)}
_TILE_NUMBER = {"TILE_ID": _bits(10, 0)}
_FLOAT_FLAGS = _flags("INV", "DIV0", "OFLO")
_FLOAT_CONTROL = _FLOAT_FLAGS | {"RND": _bits(18, 16), "ESR": _bit(19), "NANOO": _bit(20)}
_CONTEXTS = {
    name: _bits(2 * context + 1, 2 * context)
    for context, name in enumerate(("SU", *(f"W{worker}" for worker in range(WORKERS_PER_TILE))))
}
_BREAK_CHANNEL = {"CHAN_ID": _bit(0)}
_DATA_BREAK = _flags("MLD", "MSTNI", "SIC") | {
    "SIZE": _bits(5, 3),
    "MDNR": _bit(6),
    "CTXT": _bits(21, 15),
}


class ControlRegister(IntEnum):
    """A register number with its fields; the two subclasses list them.

    Attributes:
        standing: how its number is known.
        fields: its bit fields by name; empty when none is stated.
    """

    _value_: int
    standing: Standing
    fields: Mapping[str, BitField]

    def __new__(cls, number: int, standing: Standing, fields: Mapping[str, BitField] | None = None) -> Self:
        """A member from its row: number, standing, fields."""
        member = int.__new__(cls, number)
        member._value_ = number
        member.standing = standing
        member.fields = MappingProxyType({} if fields is None else dict(fields))
        return member

    def field(self, name: str) -> BitField:
        """A bit field by name; ``ValueError`` when the register has none of that name."""
        if name not in self.fields:
            raise ValueError(f"register {self.name} has no field {name}: it has {', '.join(self.fields)}")
        return self.fields[name]


@stands(VENDOR)
class WorkerRegister(ControlRegister):
    """Control registers of a worker. Numbers from 256 are reached with ``uget`` and ``uput``."""

    PC = 0x000, VENDOR, _WORD_ADDRESS
    WSR = 0x001, VENDOR, {"CTXTID_M1": _bits(2, 0), "ETYPE": _bits(7, 4), "ERPT": _bit(9)}
    """Context number 0 .. 5, exception type, exception inside a repeat."""
    VERTEX_BASE = 0x002, VENDOR, _WORD_ADDRESS
    WORKER_BASE = 0x003, VENDOR, _BYTE_ADDRESS
    REPEAT_COUNT = 0x004, VENDOR, {"VALUE": _bits(15, 0, VENDOR)}
    REPEAT_FIRST = 0x005, VENDOR, _BUNDLE_ADDRESS
    REPEAT_END = 0x006, VENDOR, _BUNDLE_ADDRESS
    SYNC_ENDPOINT = 0x007, VERIFIED
    """Identity of the context at barriers: 8 * logical tile + context. The name is ours."""
    COUNT_L = 0x060, VENDOR, _WORD
    COUNT_U = 0x061, VENDOR, _WORD
    """Tile cycle counter, lower and upper half."""
    DBG_DATA = 0x070, VENDOR, _WORD
    DBG_BRK_ID = 0x071, VENDOR, _BREAK_CHANNEL
    FP_STS = 0x100, VENDOR, _FLOAT_FLAGS
    """What has happened since the launch."""
    FP_CLR = 0x101, VENDOR, _FLOAT_FLAGS | {"ZAACC": _bit(3)}
    """Writing ones clears flags, ZAACC all accumulators; reads as zero."""
    FP_CTL = 0x102, VENDOR, _FLOAT_CONTROL
    """Enabled exceptions, rounding, stochastic rounding, overflow to NaN; starts as FP_ICTL."""
    PRNG_0_0 = 0x103, VENDOR, _WORD
    PRNG_0_1 = 0x104, VENDOR, _WORD
    PRNG_1_0 = 0x105, VENDOR, _WORD
    PRNG_1_1 = 0x106, VENDOR, _WORD
    PRNG_SEED = 0x107, VENDOR, _WORD
    """Writing it sets all four words of the generator."""
    TAS = 0x108, VENDOR, {"F16_0": _bits(15, 0), "F16_16": _bits(31, 16)}
    FP_NFMT = 0x109, VENDOR
    """Formats of 8-bit operands; starts as FP_INFMT."""
    FP_SCL = 0x10A, VENDOR
    """Scale exponent of 8-bit operands; starts as FP_ISCL."""


@stands(EARLIER)
class SupervisorRegister(ControlRegister):
    """Control registers of the supervisor."""

    PC = 0x00, VENDOR, _WORD_ADDRESS
    SSR = 0x01, EARLIER, _flags("LC", "GC", "ANS", "RAERR") | {"ETYPE": _bits(7, 4), "PERR": _bit(9)}
    """Status: consensus of the workers, exception type."""
    CR = 0x02, VERIFIED, _flags("LC_CLR", "LC_SET") | {"ZCWEI": _bit(2, VERIFIED)}
    """Commands; ZCWEI clears all common weights."""
    TILE_ID = 0x03, EARLIER, _TILE_NUMBER
    """The tile's physical number; read only."""
    FP_ICTL = 0x20, VENDOR, _FLOAT_CONTROL
    """What FP_CTL of each worker starts with."""
    WORKER0_BASE = 0x21, VERIFIED, _BYTE_ADDRESS
    WORKER1_BASE = 0x22, VERIFIED, _BYTE_ADDRESS
    WORKER2_BASE = 0x23, VERIFIED, _BYTE_ADDRESS
    WORKER3_BASE = 0x24, VERIFIED, _BYTE_ADDRESS
    WORKER4_BASE = 0x25, VERIFIED, _BYTE_ADDRESS
    WORKER5_BASE = 0x26, VERIFIED, _BYTE_ADDRESS
    FP_INFMT = 0x31, VENDOR
    """What FP_NFMT of each worker starts with."""
    FP_ISCL = 0x33, VENDOR
    """What FP_SCL of each worker starts with."""
    CCCSLOAD = 0x50, VENDOR, _BYTE_ADDRESS
    """Address from which ``ld64putcs`` and ``ld128putcs`` load, and which they advance."""
    SCOUNT_L = 0x60, EARLIER, _WORD
    SCOUNT_U = 0x61, EARLIER, _WORD
    DBG_DATA = 0x70, VENDOR, _WORD
    DBG_BRK_ID = 0x71, VENDOR, _BREAK_CHANNEL
    CTXT_STS = 0x72, VENDOR, _CONTEXTS | {"ERERR": _bits(29, 27), "EERR": _bit(30), "MERR": _bit(31)}
    """``registers.ContextStatus`` of each context, ``registers.ReceiveError``, exchange and memory error."""
    DBG_CTL = 0x73, EARLIER, {"CHAN_EN": _bits(1, 0)}
    DBG_ECSR = 0x74, EARLIER, {"EPCM": _bit(0), "CTXT": _bits(3, 1), "BOS": _bit(5)}
    DBG_ECLR = 0x75, EARLIER, {"CLR": _bits(6, 0)}
    DBG_IBRK0_CTL = 0x80, EARLIER, _flags("ENS", "ENW", "EVM")
    DBG_IBRK0_PC = 0x81, EARLIER, _WORD_ADDRESS
    DBG_IBRK0_VERT = 0x82, EARLIER, _WORD_ADDRESS
    DBG_DBRK0_CTL = 0x90, EARLIER, _DATA_BREAK
    DBG_DBRK0_BASE = 0x91, EARLIER, _BYTE_ADDRESS
    DBG_DBRK0_SIDA = 0x92, EARLIER, {"VALUE": _bits(18, 0)}
    INCOMING_MUX = 0xA0, VERIFIED, _TILE_NUMBER
    """Source that this tile listens to."""
    INCOMING_MUXPAIR = 0xA1, VERIFIED, _TILE_NUMBER
    """The same for the pair; only one member of a pair may write it at a time."""
    INCOMING_DELTA = 0xA2, VERIFIED, _WORD_ADDRESS
    """Cursor of incoming words."""
    INCOMING_FORMAT = 0xA3, EARLIER, {"VALUE": _bits(1, 0)}
    """``registers.IncomingFormat``."""
    INCOMING_BASE = 0xA4, VERIFIED, _WORD_ADDRESS
    """Added to every pointer control."""
    INCOMING_SINIT = 0xA5, EARLIER, _WORD_ADDRESS
    INCOMING_DCOUNT = 0xA6, VERIFIED, {"VALUE": _bits(16, 0)}
    """Words that ``sync`` in zone RECEIVE waits for."""
    OUTGOING_BASE = 0xA7, VERIFIED, _WORD_ADDRESS
    """Added to every item address of a send; a multiple of 8 for paired sends."""
    OUTGOING_DELTA = 0xA8, VERIFIED, _WORD_ADDRESS
    """Cursor of outgoing words."""
    EXCHANGE_CTL = 0xA9, EARLIER, _flags("ACTV", "SEV", "SWV", "S64", "ATMC")
    ANS_DCOUNT = 0xAA, EARLIER, {"VALUE": _bits(18, 0)}
    EXCHANGE_ADJ = 0xAB, EARLIER, {"COFF": _bits(3, 0), "SEWS": _bit(4)}


UPPER_REGISTERS: Annotated[int, VENDOR] = 0x100
"""Number that ``uget`` and ``uput`` count from. Fact, vendor tools."""
