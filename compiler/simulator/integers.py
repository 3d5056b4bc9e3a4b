"""Integer operations: two words in, one word out (decision ``wide-shifts`` where no source says which)."""

from compiler.compiled import compiled
from compiler.simulator.operations import (
    ABS,
    ADD,
    AND,
    ANDC,
    CLZ,
    CMPEQ,
    CMPNE,
    CMPSLT,
    CMPULT,
    CMS,
    MAX,
    MIN,
    MUL,
    OR,
    POPC,
    ROLL8L,
    ROLL8R,
    ROLL16,
    SETZI,
    SHL,
    SHR,
    SHRS,
    SHUF8X8HI,
    SHUF8X8LO,
    SORT4X16HI,
    SORT4X16LO,
    SORT8,
    SORT8X8HI,
    SORT8X8LO,
    SUB,
    SWAP8,
    XNOR,
    XOR,
)

MASK: int = 0xFFFFFFFF
SIGN: int = 0x80000000


@compiled
def signed(word: int) -> int:
    """A word as a two's complement number."""
    return word - ((word & SIGN) << 1)


@compiled
def permute(operation: int, a: int, b: int) -> int:
    """The operations that only move halves, bytes and bits.

    Halves and bytes are numbered from the least significant; ``a`` is the operand written first. Operations
    of one operand ignore ``b``.
    """
    if operation == ROLL16:
        return (a >> 16) | ((b & 0xFFFF) << 16)
    if operation == ROLL8L:
        return (a >> 24) | ((b & 0xFFFFFF) << 8)
    if operation == ROLL8R:
        return (a >> 8) | ((b & 0xFF) << 24)
    if operation == SORT4X16LO:
        return (a & 0xFFFF) | ((b & 0xFFFF) << 16)
    if operation == SORT4X16HI:
        return (a >> 16) | (b & 0xFFFF0000)
    if operation == SORT8X8LO:
        return (a & 0xFF) | ((a >> 8) & 0xFF00) | ((b & 0xFF) << 16) | ((b & 0xFF0000) << 8)
    if operation == SORT8X8HI:
        return ((a >> 8) & 0xFF) | ((a >> 16) & 0xFF00) | ((b & 0xFF00) << 8) | (b & 0xFF000000)
    if operation == SHUF8X8LO:
        return (a & 0xFF) | ((b & 0xFF) << 8) | ((a & 0xFF00) << 8) | ((b & 0xFF00) << 16)
    if operation == SHUF8X8HI:
        return ((a >> 16) & 0xFF) | ((b >> 8) & 0xFF00) | ((a >> 8) & 0xFF0000) | (b & 0xFF000000)
    if operation == SORT8:
        return (a & 0xFF0000FF) | ((a >> 8) & 0xFF00) | ((a << 8) & 0xFF0000)
    if operation == SWAP8:
        return ((a >> 8) & 0x00FF00FF) | ((a << 8) & 0xFF00FF00)
    # BITREV8: swap neighbours, then pairs, then nibbles.
    a = ((a >> 1) & 0x55555555) | ((a & 0x55555555) << 1)
    a = ((a >> 2) & 0x33333333) | ((a & 0x33333333) << 2)
    return ((a >> 4) & 0x0F0F0F0F) | ((a & 0x0F0F0F0F) << 4)


@compiled
def leading_zeros(word: int) -> int:
    """Zeros above the highest set bit; 32 for 0."""
    count = 32
    while word:
        word >>= 1
        count -= 1
    return count


@compiled
def population(word: int) -> int:
    """Set bits."""
    word -= (word >> 1) & 0x55555555
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & MASK) >> 24


@compiled
def rare_integer(operation: int, a: int, b: int) -> int:
    """:func:`integer` for what loops seldom run."""
    if operation == ABS:
        return abs(signed(a)) & MASK
    if operation == CLZ:
        return leading_zeros(a)
    if operation == CMS:
        # Bits below bit 31 that repeat it: the leading zeros of the word with its sign folded away.
        return leading_zeros((a ^ (MASK if a & SIGN else 0)) & MASK) - 1
    if operation == POPC:
        return population(a)
    if operation == SHRS:
        return (signed(a) >> min(b, 31)) & MASK
    return permute(operation, a, b)


@compiled
def integer(operation: int, a: int, b: int) -> int:
    """Result of an integer operation.

    Args:
        operation: 1 .. ``LAST_INTEGER`` of ``operations`` without MOVZ and ATOM.
        a: first source, a word.
        b: second source plus immediate, a word.
    """
    if operation == ADD:
        return (a + b) & MASK
    if operation == SETZI:
        return b
    if operation == SUB:
        return (b - a) & MASK
    if operation == AND:
        return a & b
    if operation == OR:
        return a | b
    if operation == SHL:
        return (a << b) & MASK if b < 32 else 0
    if operation == SHR:
        return a >> b if b < 32 else 0
    if operation == MUL:
        return (a * b) & MASK
    if operation == CMPEQ:
        return 1 if a == b else 0
    if operation == CMPNE:
        return 1 if a != b else 0
    if operation == CMPSLT:
        return 1 if signed(a) < signed(b) else 0
    if operation == CMPULT:
        return 1 if a < b else 0
    if operation == ANDC:
        return a & ~b & MASK
    if operation == XOR:
        return a ^ b
    if operation == XNOR:
        return ~(a ^ b) & MASK
    if operation == MAX:
        return a if signed(a) >= signed(b) else b
    if operation == MIN:
        return a if signed(a) <= signed(b) else b
    return rare_integer(operation, a, b)
