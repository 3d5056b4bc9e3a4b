"""Feeds mutated packages to the reader; run as a program, so that a crash is an exit code.

``python -m tests.package.fuzz SEED COUNT`` prints, as JSON, how many packages loaded and how many ended in
``PackageInvalid``. Anything else ends the program: another exception, a signal, or more memory than
``MEMORY_LIMIT`` beyond what it has when it starts.

Mutations aim at what a reader can get wrong: single bits and bytes, cuts, pieces of one package in another,
and words that are pointers, sizes of lists, segment tables.
"""

import json
import random
import resource
import struct
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from compiler.errors import PackageInvalid
from compiler.package.format import read_package, write_package
from tests.package.samples import complete, minimal, segment, with_segments

MEMORY_LIMIT = 96 << 20
"""Bytes of address space beyond those at the start: some thousand times the largest package here."""

Mutation = Callable[[bytearray, random.Random], bytearray]


def seeds() -> list[bytes]:
    """Packages to mutate."""
    large = with_segments(*(segment(0x4C010 + 64 * index, 64, bytes(64)) for index in range(200)))
    return [write_package(complete()), write_package(minimal()), write_package(large)]


def _word_start(data: bytearray, rng: random.Random) -> int:
    return 8 * rng.randrange(max(len(data) // 8, 1))


def _flip_bit(data: bytearray, rng: random.Random) -> bytearray:
    if data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def _set_byte(data: bytearray, rng: random.Random) -> bytearray:
    if data:
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
    return data


def _cut(data: bytearray, rng: random.Random) -> bytearray:
    """Shorten, usually by whole words, usually with a segment table that agrees."""
    end = rng.randrange(len(data) + 1) & (~7 if rng.random() < 0.9 else ~0)
    return _agree(data[:end], rng)


def _splice(data: bytearray, rng: random.Random) -> bytearray:
    """Move, repeat or drop a run of words."""
    first, second = sorted((_word_start(data, rng), _word_start(data, rng)))
    place = _word_start(data, rng)
    run = data[first:second]
    match rng.randrange(3):
        case 0:
            data[place : place + len(run)] = run
        case 1:
            data[place:place] = run
        case _:
            del data[first:second]
    return _agree(data, rng)


def _agree(data: bytearray, rng: random.Random) -> bytearray:
    if len(data) >= 8 and rng.random() < 0.9:
        struct.pack_into("<II", data, 0, 0, len(data) // 8 - 1)
    return data


def _copy_word(data: bytearray, rng: random.Random) -> bytearray:
    source, target = _word_start(data, rng), _word_start(data, rng)
    data[target : target + 8] = data[source : source + 8]
    return data


def _write_pointer(data: bytearray, rng: random.Random) -> bytearray:
    """A struct, list, far or other pointer with a near or wild offset and a small or huge size."""
    offset = rng.choice((rng.randrange(-200, 200), rng.getrandbits(30) - (1 << 29))) & 0x3FFF_FFFF
    kind = rng.choice((0, 1, 1, 1, 2, 3))
    count = rng.choice((0, 1, rng.randrange(300), rng.getrandbits(29), (1 << 29) - 1))
    high = rng.getrandbits(32) if kind != 1 else count << 3 | rng.randrange(8)
    position = _word_start(data, rng)
    data[position : position + 8] = struct.pack("<II", offset << 2 | kind, high)
    return data


def _write_tag(data: bytearray, rng: random.Random) -> bytearray:
    """The word before a list of structs: how many, and how large each."""
    count = rng.choice((0, 1, rng.randrange(300), rng.getrandbits(30)))
    sizes = rng.choice((0, 0, 1, 3)), rng.choice((0, 0, 1, 12, 0xFFFF))
    position = _word_start(data, rng)
    data[position : position + 8] = struct.pack("<IHH", count << 2 & 0xFFFF_FFFF, *sizes)
    return data


def _edit_pointer(data: bytearray, rng: random.Random) -> bytearray:
    """Change the target or the size of something that may be a pointer."""
    position = _word_start(data, rng)
    if len(data) - position < 8:
        return data
    low, high = struct.unpack_from("<II", data, position)
    if rng.random() < 0.5:
        low = low + (rng.randrange(-16, 17) << 2) & 0xFFFF_FFFF
    else:
        high = high + (rng.randrange(-16, 17) << 3) & 0xFFFF_FFFF
    struct.pack_into("<II", data, position, low, high)
    return data


def _edit_segment_table(data: bytearray, rng: random.Random) -> bytearray:
    """Another number of segments, or the message cut into two."""
    words = len(data) // 8 - 1
    if rng.random() < 0.3:
        data[:4] = struct.pack("<I", rng.choice((1, 2, 511, 512, 0xFFFF_FFFF)))
    elif words > 1:
        first = rng.randrange(words)
        data[:8] = struct.pack("<IIII", 1, first, words - first, 0)
    return data


MUTATIONS: tuple[Mutation, ...] = (
    _flip_bit,
    _set_byte,
    _cut,
    _splice,
    _copy_word,
    _write_pointer,
    _write_tag,
    _edit_pointer,
    _edit_segment_table,
)


def mutant(seed: int, number: int, packages: list[bytes]) -> bytes:
    """A package with one to four mutations, the same for the same numbers."""
    rng = random.Random(seed << 32 | number)
    data = bytearray(packages[rng.choice((0, 0, 0, 1, 2))])
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(MUTATIONS)(data, rng)
    return bytes(data)


def run(seed: int, count: int) -> Counter[str]:
    """Read that many mutants; those that load must also write and read back."""
    packages = seeds()
    outcomes: Counter[str] = Counter()
    for number in range(count):
        try:
            application = read_package(mutant(seed, number, packages), name="m")
        except PackageInvalid:
            outcomes["invalid"] += 1
            continue
        outcomes["loaded"] += 1
        if read_package(write_package(application), name="m") != application:
            raise AssertionError(f"mutant {number} of seed {seed} does not read back equal")
    return outcomes


def main() -> None:
    """Run with bounded memory."""
    seed, count = (int(argument) for argument in sys.argv[1:])
    run(seed, 10)  # everything is imported and allocated once
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MEMORY_LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    outcomes = run(seed, count)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sys.stdout.write(json.dumps({**outcomes, "peak_kilobytes": peak}))


if __name__ == "__main__":
    main()
