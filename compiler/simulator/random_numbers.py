"""The random generator of a worker: xoroshiro128 with and-or-xor output (decision ``random``).

One step gives 64 bits. An instruction that rounds stochastically takes one step for each four results and
gives result k the bits 16k .. 16k + 15; ``urand32`` takes the low half of a step; ``rmask`` compares 16 bits
of one step for each element.
"""

from compiler.simulator.borrowing import borrowing
from compiler.simulator.state import PRNG_0, PRNG_1, State


@borrowing
def _rotate(word: int, places: int) -> int:
    """A 64-bit word (as a signed integer) rotated left."""
    return (word << places) | ((word >> (64 - places)) & ((1 << places) - 1))


@borrowing
def draw(state: State, base: int) -> int:
    """64 fresh random bits of the context at ``base``, as a signed integer."""
    s0 = state[base + PRNG_0]
    s1 = state[base + PRNG_1]
    mixed = s0 ^ s1
    both = s0 & s1
    state[base + PRNG_0] = _rotate(s0, 55) ^ mixed ^ (mixed << 14)
    state[base + PRNG_1] = _rotate(mixed, 36)
    return mixed ^ (_rotate(both, 1) | _rotate(both, 2))


@borrowing
def seed(state: State, base: int, value: int) -> None:
    """What writing ``value`` to PRNG_SEED does."""
    inverted = ~value & 0xFFFFFFFF
    state[base + PRNG_0] = value | (inverted << 32)
    low = ((value << 13) & 0xFFFFFFFF) | (inverted >> 19)
    high = ((inverted << 13) & 0xFFFFFFFF) | (value >> 19)
    state[base + PRNG_1] = low | (high << 32)
