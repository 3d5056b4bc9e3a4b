"""How fast the instruction set layer is: distinct instructions a second, and words of templates a second."""

import random
import time

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from compiler.isa.assembler import assemble
from compiler.isa.template import prepare
from compiler.isa.text import parse

INSTRUCTIONS = 10_000
WORDS_A_SECOND = 500_000
TILES = 1472
ROW_REPEATS = 20


def distinct_instructions() -> str:
    """Text of INSTRUCTIONS different instructions of three shapes."""
    source = random.Random(7)
    lines = [f"setzi $m{number % 12}, {source.randrange(256) << 12 | number}" for number in range(4000)]
    lines += [f"ld32 $a{number % 8}, $m{number % 13}, $m15, {number}" for number in range(4000)]
    lines += [f"add $m{number % 12}, $m{number % 11}, {number - 1000}" for number in range(2000)]
    assert len(set(lines)) == INSTRUCTIONS
    return "\n".join(lines)


def test_10000_distinct_instructions_assemble_in_a_second(benchmark: BenchmarkFixture) -> None:
    text = distinct_instructions()
    seconds: list[float] = []

    def once() -> None:
        start = time.perf_counter()
        section = assemble(parse(text), "t").sections[0]
        seconds.append(time.perf_counter() - start)
        assert section.size == 4 * INSTRUCTIONS

    benchmark(once)
    assert min(seconds) < 1.0


def test_templates_fill_500000_words_a_second(benchmark: BenchmarkFixture) -> None:
    """Rows of all tiles with six slots in eight words, values different on each tile."""
    row = """
        sync 3
        delay ?wait
        send ?words, ?item, 1
        nop
        sendpicp 51, 0, 0, 0, ?source, ?pointer
        setzi $m0, ?address
        br $m10
    """
    template = prepare(parse(".supervisor\n" + row * ROW_REPEATS))
    source = np.random.default_rng(1)
    columns = {
        name: source.integers(0, limit, TILES)
        for name, limit in (
            ("wait", 2**19),
            ("words", 64),
            ("item", 2**18),
            ("source", 2**14),
            ("pointer", 2**18),
            ("address", 2**20),
        )
    }
    seconds: list[float] = []

    def once() -> None:
        start = time.perf_counter()
        words = template.fill(columns, TILES)
        seconds.append(time.perf_counter() - start)
        assert words.shape == (TILES, len(template.words))

    benchmark(once)
    rate = TILES * len(template.words) / min(seconds)
    assert rate > WORDS_A_SECOND
