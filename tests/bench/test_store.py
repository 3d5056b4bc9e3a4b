"""What the store costs: keys, hits, misses and writing. Figures, never failures."""

import dataclasses
from pathlib import Path
from typing import Protocol

import numpy as np
import pytest

from compiler.fingerprint import fingerprint
from compiler.store.canonical import digest_value
from compiler.store.key import key_document, key_of, without_code
from compiler.store.stage import Consumed
from compiler.store.store import Store
from tests.store.helpers import TABLES
from tests.store.sample_search import SEARCH
from tests.store.sample_stages import SCALE, SQUARE
from tests.store.sample_types import INTS, SOURCES, NumberInputs, Options, ScaleInputs


class Benchmark(Protocol):
    """The fixture of pytest-benchmark."""

    def __call__(self, function: object, *arguments: object) -> object:
        """Measure a call."""
        ...


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store.open(tmp_path / "store", sources=SOURCES, tables=TABLES, strict=True)


def test_key_of_a_stage(benchmark: Benchmark, store: Store) -> None:
    inputs = ScaleInputs(values=store.put(np.arange(10), INTS))
    benchmark(lambda: key_of(key_document(SCALE, inputs, Options(), tables=TABLES, sources=SOURCES)))


def test_hit_with_one_mebibyte(benchmark: Benchmark, store: Store) -> None:
    """Record, object, both digests and decoding."""
    inputs = ScaleInputs(values=store.put(np.random.default_rng(0).integers(0, 999, 2**17), INTS))
    store.run(SCALE, inputs, Options())
    benchmark(lambda: store.run(SCALE, inputs, Options()).value())


def test_hit_whose_value_nobody_needs(benchmark: Benchmark, store: Store) -> None:
    store.run(SQUARE, NumberInputs(number=3), Options())
    benchmark(lambda: store.run(SQUARE, NumberInputs(number=3), Options()))


def test_miss_of_a_small_stage(benchmark: Benchmark, store: Store) -> None:
    """Lock, run, object, record and last document, synchronised."""
    numbers = iter(range(10**9))
    benchmark(lambda: store.run(SQUARE, NumberInputs(number=next(numbers)), Options()))


def test_hit_that_rests_on_200_inner_runs(benchmark: Benchmark, store: Store) -> None:
    """Each is derived again under today's code and looked up."""
    outer = store.run(SEARCH, NumberInputs(number=0), Options())
    inner = [store.run(SQUARE, NumberInputs(number=number), Options()) for number in range(200)]
    consumed = tuple(
        Consumed(
            module=SQUARE.module,
            request=without_code(run.record.document),
            key=run.key,
            output=run.digest,
        )
        for run in inner
    )
    store.records.publish(dataclasses.replace(outer.record, consumed=consumed))

    def hit() -> int:
        return len(store.run(SEARCH, NumberInputs(number=0), Options()).record.consumed)

    assert hit() == 200
    benchmark(hit)


def test_write_of_eight_mebibytes(benchmark: Benchmark, store: Store) -> None:
    contents = iter(np.random.default_rng(seed).bytes(2**23) for seed in range(10**9))
    benchmark(lambda: store.objects.put(next(contents)))


def test_digest_of_a_large_value(benchmark: Benchmark) -> None:
    value = tuple({"index": index, "values": (index, float(index), str(index))} for index in range(2000))
    benchmark(digest_value, value)


def test_fingerprint_from_nothing(benchmark: Benchmark) -> None:
    """Everything below the store, parsed anew: what a process pays once."""
    from compiler import fingerprint as module

    def taken() -> str:
        for memo in (module.fingerprint, module._read, module._file_digest):  # pyright: ignore[reportPrivateUsage]  # the memos of a process
            memo.cache_clear()
        return fingerprint("compiler.store.stage").digest

    benchmark(taken)
