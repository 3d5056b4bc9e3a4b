"""Garbage collection against an obvious account of what may go, pins above all."""

import os
import time
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from compiler.errors import StoreError
from compiler.store.collect import Collected, Limits, accounts, collect, pin, pins, unpin
from compiler.store.digest import ByteCount, Digest, digest_of
from compiler.store.records import Output, Record
from compiler.store.stage import Namespace
from compiler.store.store import Access, Store
from compiler.store.verify import scrub
from tests.store.helpers import TABLES, Open
from tests.store.sample_stages import SCALE, SQUARE, SUMMARIZE
from tests.store.sample_types import INTS, SOURCES, NumberInputs, Options, ScaleInputs

NOW = time.time() + 10 * 86400


def keep(store: Store, number: int, contents: tuple[bytes, ...], *, seconds: float, days: float) -> Digest:
    """A record of an imaginary run, last used some days before now."""
    outputs = tuple(
        Output(name=f"part{index}", ref=store.objects.put(content)) for index, content in enumerate(contents)
    )
    record = Record(
        document={"v": 1, "namespace": "stage", "stage": "imaginary", "number": number},
        outputs=outputs,
        failure=None,
        consumed=(),
        microseconds=round(seconds * 1e6),
        module="nowhere",
        decoder=None,
        sources={},
    )
    store.records.publish(record)
    moment = NOW - days * 86400
    os.utime(store.records.path(Namespace.STAGE, record.key), (moment, moment))
    return record.key


def keys(store: Store) -> set[str]:
    """The keys of all records."""
    return {path.name for path in store.records.walk()}


def incompressible(size: int, seed: int) -> bytes:
    """Bytes whose file is about as large as they are."""
    return np.random.default_rng(seed).bytes(size)


def test_unused_records_go_by_age_and_pinned_ones_stay(store: Store) -> None:
    old, pinned, new = (
        keep(store, number, (b"content %d" % number,), seconds=1, days=days)
        for number, days in ((1, 9), (2, 9), (3, 1))
    )
    pin(store, "release-1", [pinned])
    assert pins(store) == {"release-1": (pinned,)}
    pretended = collect(store, Limits(age_seconds=5 * 86400, grace_seconds=0), now=NOW, pretend=True)
    assert keys(store) == {old, pinned, new}
    done = collect(store, Limits(age_seconds=5 * 86400, grace_seconds=0), now=NOW)
    assert done == pretended
    assert (done.records, done.objects, done.lost_seconds) == (1, 1, 1.0)
    assert keys(store) == {pinned, new}
    assert scrub(store).incomplete == ()
    unpin(store, "release-1")
    collect(store, Limits(age_seconds=5 * 86400, grace_seconds=0), now=NOW)
    assert keys(store) == {new}
    with pytest.raises(ValueError, match="is not the name of a pin"):
        pin(store, "../escape", [new])


def test_a_budget_keeps_what_was_expensive_for_its_size(store: Store) -> None:
    """A search of ten minutes outlives a file of a second that was used later."""
    search = keep(store, 1, (incompressible(1000, 1),), seconds=600, days=9)
    emission = keep(store, 2, (incompressible(100_000, 2),), seconds=1, days=0)
    small = keep(store, 3, (incompressible(100, 3),), seconds=1, days=9)
    collect(store, Limits(budget_bytes=ByteCount(20_000), grace_seconds=0), now=NOW)
    assert keys(store) == {search, small}
    collect(store, Limits(budget_bytes=ByteCount(1_800), grace_seconds=0), now=NOW)
    assert keys(store) == {search}
    assert emission not in keys(store)
    collect(store, Limits(budget_bytes=ByteCount(0), grace_seconds=0), now=NOW)
    assert keys(store) == set()
    assert list(store.objects.walk()) == []


@hypothesis.given(
    records=st.lists(
        st.tuples(
            st.sets(st.integers(0, 5), max_size=3), st.integers(0, 5), st.integers(0, 9), st.booleans()
        ),
        max_size=6,
    ),
    age=st.one_of(st.none(), st.integers(0, 9)),
    budget=st.one_of(st.none(), st.integers(0, 12_000)),
)
@hypothesis.settings(max_examples=25)
def test_what_is_left_is_whole_pinned_young_and_within_the_budget(
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[set[int], int, int, bool]],
    age: int | None,
    budget: int | None,
) -> None:
    store = Store.open(tmp_path_factory.mktemp("gc"), sources=SOURCES, tables=TABLES)
    pinned: set[str] = set()
    young: set[str] = set()
    for number, (parts, seconds, days, is_pinned) in enumerate(records):
        contents = tuple(incompressible(1500, part) for part in sorted(parts))
        key = keep(store, number, contents, seconds=seconds, days=days + 0.5)
        pinned |= {key} if is_pinned else set()
        young |= {key} if age is None or days + 0.5 <= age else set()
    pin(store, "pinned", [Digest(key) for key in pinned])
    before = keys(store)
    done = collect(
        store,
        Limits(
            age_seconds=None if age is None else age * 86400.0,
            budget_bytes=None if budget is None else ByteCount(budget),
            grace_seconds=0,
        ),
        now=NOW,
    )
    left = keys(store)
    assert pinned <= left <= before
    assert left <= young | pinned
    assert budget is not None or left == young & before | pinned
    found = scrub(store)
    assert (found.damaged, found.incomplete) == ((), ())
    files = [*store.records.walk(), *store.objects.walk()]
    assert done.kept_bytes == sum(path.stat().st_size for path in files)
    if budget is not None and left != pinned:
        assert done.kept_bytes <= budget


def test_the_grace_period_spares_what_has_no_record_yet(store: Store) -> None:
    ref = store.objects.put(b"just written")
    nothing = Collected(
        records=0,
        objects=0,
        others=0,
        freed_bytes=ByteCount(0),
        kept_bytes=ByteCount(store.objects.path(ref.digest).stat().st_size),
        lost_seconds=0,
    )
    assert collect(store, Limits(), now=time.time()) == nothing
    assert collect(store, Limits(), now=time.time() - 10 * 86400) == nothing, "the clock was set back"
    assert store.objects.get(ref) == b"just written"
    collect(store, Limits(), now=time.time() + 7200)
    assert store.objects.get(ref) is None


def test_writing_an_object_again_makes_it_young(store: Store) -> None:
    ref = store.objects.put(b"shared")
    os.utime(store.objects.path(ref.digest), (1, 1))
    store.objects.put(b"shared")
    collect(store, Limits(), now=time.time())
    assert store.objects.get(ref) == b"shared"


def test_reusing_a_result_makes_it_young_and_what_is_current_is_spared(reopen: Open) -> None:
    store = reopen()
    first = store.run(SQUARE, NumberInputs(number=1), Options(), label="a")
    second = store.run(SQUARE, NumberInputs(number=2), Options(), label="a")
    third = store.run(SQUARE, NumberInputs(number=3), Options(), label="a")
    for result in (first, second, third):
        os.utime(store.records.path(Namespace.KERNEL, result.key), (1, 1))
    assert store.run(SQUARE, NumberInputs(number=1), Options(), label="b").hit
    collect(store, Limits(age_seconds=3600), now=time.time())
    assert keys(store) == {first.key, third.key}, "one was used, one is current under its label"


def test_inputs_of_a_record_stay_with_it(reopen: Open) -> None:
    store = reopen()
    values = store.put(np.arange(4), INTS)
    result = store.run(SCALE, ScaleInputs(values=values), Options())
    store.run(SUMMARIZE, ScaleInputs(values=result), Options())
    collect(store, Limits(grace_seconds=0), now=time.time() + 5)
    assert values.value().tolist() == [0, 1, 2, 3]
    assert result.value().tolist() == [0, 2, 4, 6]


def test_leftovers_of_killed_writers_and_damaged_files_go_in_time(store: Store) -> None:
    root = store.root
    for folder in ("tmp", "bad", "locks"):
        (root / folder).mkdir(exist_ok=True)
    (root / "tmp/host-1-abc").write_bytes(b"half")
    (root / "bad/damaged").write_bytes(b"x")
    (root / "locks" / ("a" * 64)).touch()
    collect(store, Limits(), now=time.time())
    assert (root / "tmp/host-1-abc").exists()
    assert not (root / "locks" / ("a" * 64)).exists(), "nobody holds it"
    collect(store, Limits(), now=time.time() + 7200)
    assert not (root / "tmp/host-1-abc").exists()
    assert (root / "bad/damaged").exists()
    collect(store, Limits(), now=time.time() + 8 * 86400)
    assert not (root / "bad/damaged").exists()


def test_nothing_is_collected_when_a_pin_cannot_be_understood(store: Store) -> None:
    key = keep(store, 1, (b"x",), seconds=1, days=9)
    pin(store, "release", [key])
    (store.root / "pins/release").write_bytes(b"[")
    with pytest.raises(StoreError, match="the pin cannot be understood"):
        collect(store, Limits(age_seconds=0, grace_seconds=0), now=NOW)
    assert keys(store) == {key}


def test_limits_are_not_negative_and_reading_removes_nothing(reopen: Open) -> None:
    with pytest.raises(ValueError, match="negative"):
        Limits(age_seconds=-1)
    reopen()
    with pytest.raises(StoreError, match="open for reading"):
        collect(reopen(access=Access.READ_ONLY), Limits(), now=0)


def test_each_namespace_has_its_account(reopen: Open) -> None:
    """CA-06: entries, bytes and hit rate by namespace."""
    with reopen() as store:
        values = store.put(np.arange(100), INTS)
        for _ in range(4):
            store.run(SCALE, ScaleInputs(values=values), Options())
        store.run(SQUARE, NumberInputs(number=4), Options())
    held = accounts(reopen())
    assert set(held) == set(Namespace)
    stage, kernel = held[Namespace.STAGE], held[Namespace.KERNEL]
    (record,) = (
        store.records.load(path) for path in store.records.walk() if path.parent.parent.name == "stage"
    )
    assert record is not None
    size = record.outputs[0].ref.size
    assert (stage.records, stage.failures, stage.content_bytes) == (1, 0, size)
    assert stage.disk_bytes == _sizes(
        store.records.path(Namespace.STAGE, record.key), store.objects.path(record.outputs[0].ref.digest)
    )
    assert stage.counts.hit_rate == 0.75
    assert kernel.content_bytes == len(b"16")
    assert kernel.counts.hit_rate == 0
    assert held[Namespace.SCHEDULE].counts.hit_rate is None
    assert held[Namespace.SCHEDULE].disk_bytes == 0
    assert digest_of(b"16") in {path.name for path in store.objects.walk()}


def _sizes(*paths: Path) -> int:
    return sum(path.stat().st_size for path in paths)
