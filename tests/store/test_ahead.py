"""Runs that workers compute ahead: the same results, records and order as without; dead workers cost time."""

import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from compiler.errors import StoreError
from compiler.store import ahead
from compiler.store.ahead import Backend, Workers, done_in_order
from compiler.store.canonical import JsonValue
from compiler.store.layout import Mode
from compiler.store.records import Record
from compiler.store.statistics import Counts, EventKind
from compiler.store.store import Store
from compiler.store.verify import scrub
from compiler.store.watch import Watch
from tests.store.helpers import TABLES
from tests.store.sample_types import SOURCES, NumberInputs, Options
from tests.store.sample_wide import DEADLY, SLOW, WIDE

THREE = Workers(count=3)
"""More workers than the result needs."""


def consumed(record: Record) -> list[tuple[str, JsonValue, str]]:
    """What a record says of the runs that it rests on, in order."""
    return [(str(run.key), run.request["inputs"], str(run.output)) for run in record.consumed]


def wide_counts(store: Store) -> Counts:
    """Of the stage that is run several times."""
    return store.statistics.counts["stage", "slow"]


@pytest.mark.parametrize("workers", [THREE, Workers(count=2, backend=Backend.THREADING)])
def test_workers_change_no_result_and_no_record(workers: Workers, tmp_path: Path) -> None:
    """DS-11, DS-12, DS-16: the same value and the same runs in the same order, a failure among them."""
    alone = _opened(tmp_path / "alone").run(WIDE, NumberInputs(number=9), Options())
    with _opened(tmp_path / "helped", workers=workers) as store:
        helped = store.run(WIDE, NumberInputs(number=9), Options())
        assert not store.statistics.events
        counts = wide_counts(store)
    assert alone.value() == helped.value() == 0 + 100 + 4 + 9
    assert alone.digest == helped.digest
    assert consumed(alone.record) == consumed(helped.record)
    assert len(helped.record.consumed) == 4
    # 0 to 3 were taken, and each was computed once; what was begun beyond was given up or is there already.
    assert counts.hits + counts.misses - counts.begun + counts.lost == 4
    assert counts.begun >= 4
    assert scrub(_opened(tmp_path / "helped")).damaged == ()


def test_what_is_there_already_is_given_to_nobody(tmp_path: Path) -> None:
    """A search that was killed goes on where it was."""
    with _opened(tmp_path / "store") as store:
        for number in range(4):
            store.attempt(SLOW, NumberInputs(number=number), Options())
    with _opened(tmp_path / "store", workers=THREE) as store:
        store.run(WIDE, NumberInputs(number=4), Options())
        assert wide_counts(store) == Counts(hits=4, saved_microseconds=wide_counts(store).saved_microseconds)


def test_workers_that_die_are_replaced_and_in_the_end_done_without(tmp_path: Path) -> None:
    """No hang, no damage, the result of one run after the other, and an event for each that was lost."""
    import os

    number = os.getpid()
    with _opened(tmp_path / "store", workers=Workers(count=2)) as store:
        found = store.run(DEADLY, NumberInputs(number=number), Options())
        told = [event for event in store.statistics.events if event.kind is EventKind.WORKER]
    assert found.value() == 0 + number + 4
    assert 1 <= len(told) <= 3
    assert all("a worker was lost" in event.message for event in told)
    report = scrub(_opened(tmp_path / "store"))
    assert (report.damaged, report.incomplete) == ((), ())


def test_nobody_works_ahead_of_a_store_that_is_not_reused(tmp_path: Path) -> None:
    """Refreshing, verifying and building without the store compute everything once, where it is asked for."""
    for mode in (Mode.OFF, Mode.REFRESH, Mode.VERIFY):
        with _opened(tmp_path / mode.value, workers=THREE, mode=mode) as store:
            assert store.run(WIDE, NumberInputs(number=9), Options()).value() == 113
            assert wide_counts(store).begun == 4
            assert not store.statistics.events


def test_a_worker_with_other_tables_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it would compute is something else; whoever asked computes it."""

    def elsewhere(tasks: list[Any], *_: object) -> Generator[str, None, None]:
        for task in tasks:
            yield task.__class__(**{**_fields(task), "tables": (("target", "0" * 64),)})()

    monkeypatch.setattr(ahead, "done_in_order", elsewhere)
    with _opened(tmp_path / "store", workers=THREE) as store:
        assert store.run(WIDE, NumberInputs(number=4), Options()).value() == 113
        told = [event.message for event in store.statistics.events]
        assert wide_counts(store).misses == 4
    assert len(told) == 4
    assert all(message.startswith("a worker did not compute it: ") for message in told)


def test_progress_is_told(tmp_path: Path) -> None:
    """Names of stages from the outside in, and how many of the runs that were asked for are done."""
    told: list[tuple[object, ...]] = []

    class Listening(Watch):
        def began(self, stages: tuple[str, ...]) -> None:
            told.append(("began", *stages))

        def ended(self, stages: tuple[str, ...]) -> None:
            told.append(("ended", *stages))

        def counted(self, stages: tuple[str, ...], done: int, of: int) -> None:
            told.append((*stages, done, of))

    with _opened(tmp_path / "store", watch=Listening()) as store:
        store.run(WIDE, NumberInputs(number=2), Options())
    assert told == [
        ("began", "wide"),
        ("wide", "slow", 0, 2),
        ("began", "wide", "slow"),
        ("ended", "wide", "slow"),
        ("wide", "slow", 1, 2),
        ("began", "wide", "slow"),
        ("ended", "wide", "slow"),
        ("wide", "slow", 2, 2),
        ("ended", "wide"),
    ]


def test_tasks_are_done_in_order_and_given_up_when_nobody_asks() -> None:
    lost: list[int] = []
    tasks: list[Callable[[], str]] = [lambda number=number: str(number) for number in range(6)]
    assert list(done_in_order(tasks, Workers(count=2, backend=Backend.THREADING), lost.append)) == list(
        "012345"
    )
    assert lost == [0]
    answers = done_in_order(tasks, Workers(count=2, backend=Backend.THREADING), lost.append)
    assert next(answers) == "0"
    answers.close()
    assert 1 <= lost[1] <= 5


def test_workers_are_well_formed() -> None:
    with pytest.raises(ValueError, match="0 workers"):
        Workers(count=0)
    for backend, scheduler in ((Backend.DASK, ""), (Backend.LOKY, "tcp://here:1")):
        with pytest.raises(ValueError, match="a scheduler belongs to backend dask"):
            Workers(backend=backend, scheduler=scheduler)


@pytest.mark.slow
def test_a_cluster_of_processes_with_a_shared_store(tmp_path: Path) -> None:
    """Two processes of Dask compute into the store; the same results and records."""
    alone = _opened(tmp_path / "alone").run(WIDE, NumberInputs(number=9), Options())
    with cluster() as address:
        workers = Workers(backend=Backend.DASK, scheduler=address)
        with _opened(tmp_path / "helped", workers=workers) as store:
            helped = store.run(WIDE, NumberInputs(number=9), Options())
            assert not store.statistics.events
            assert wide_counts(store).hits == 4  # the cluster computed them
    assert alone.digest == helped.digest
    assert consumed(alone.record) == consumed(helped.record)


def test_a_cluster_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing package, then a missing scheduler: never a failure that is kept."""
    monkeypatch.setattr(ahead, "_TIMEOUT_SECONDS", 1)
    workers = Workers(backend=Backend.DASK, scheduler="tcp://127.0.0.1:9")
    with monkeypatch.context() as hidden:
        hidden.setitem(sys.modules, "distributed", None)
        with pytest.raises(StoreError) as raised:
            _opened(tmp_path / "store", workers=workers).run(WIDE, NumberInputs(number=9), Options())
    assert str(raised.value) == (
        "store (workers): backend dask: package distributed is not installed.\n"
        "  next: install it: pip install distributed; or take backend loky"
    )
    with pytest.raises(StoreError, match="no scheduler answers"):
        _opened(tmp_path / "store", workers=workers).run(WIDE, NumberInputs(number=9), Options())
    assert _opened(tmp_path / "store").run(WIDE, NumberInputs(number=9), Options()).value() == 113


@contextmanager
def cluster() -> Generator[str]:
    """A scheduler and two worker processes in a process of their own; gives its address."""
    script = (
        "from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None,"
        " host='127.0.0.1') as cluster:\n"
        "        print(cluster.scheduler_address, flush=True)\n"
        "        input()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=SOURCES.root,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate("\n", timeout=60)


def _fields(errand: object) -> dict[str, object]:
    from dataclasses import fields

    return {field.name: getattr(errand, field.name) for field in fields(cast("Any", errand))}


def _opened(root: Path, **settings: object) -> Store:
    known: dict[str, object] = {"sources": SOURCES, "tables": TABLES, "strict": True, **settings}
    return Store.open(root, **known)  # pyright: ignore[reportArgumentType]  # settings by name
