"""Several processes on one store, killed ones and full disks among them.

Nothing acknowledged is lost, nothing wrong is accepted, and nobody waits for the dead.
"""

import errno
import fcntl
import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compiler.errors import InternalError, StoreError
from compiler.store.collect import Limits, collect
from compiler.store.digest import ByteCount
from compiler.store.lock import exclusive
from compiler.store.result import Status
from compiler.store.statistics import EventKind
from compiler.store.store import Mode, Store
from compiler.store.verify import scrub
from tests.store.helpers import TABLES, Open, in_child, reachable_folder
from tests.store.sample_stages import CALLS, SQUARE
from tests.store.sample_types import INT, SOURCES, NumberInputs, Options

KILLS = 200
WRITERS = 4


def run(store: Store, number: int, options: Options | None = None) -> int:
    """The square of a number through the store."""
    return store.run(SQUARE, NumberInputs(number=number), Options() if options is None else options).value()


def assert_sound(store: Store) -> int:
    """Every record answers rightly and nothing is damaged. Gives the number of records."""
    found = scrub(store)
    assert found.damaged == ()
    assert found.incomplete == ()
    for path in store.records.walk():
        record = store.records.load(path)
        assert record is not None
        match record.document["inputs"]:
            case {"number": {"value": int(number)}}:
                pass
            case _:
                pytest.fail("not a record of the sample stage")
        data = store.objects.get(record.outputs[0].ref)
        assert data is not None
        assert INT.decode(data) == number**2
    return found.records


def forked(action: Callable[[int], None]) -> tuple[int, int]:
    """Process id and reading end of a child that runs ``action`` with the writing end of a pipe."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            action(writing)
        finally:
            os._exit(1)
    os.close(writing)
    return child, reading


@pytest.mark.slow
def test_writers_killed_at_random_lose_nothing_acknowledged(reopen: Open) -> None:
    """200 writers, four at a time and two on the same keys, each killed with SIGKILL at a random moment."""
    run(reopen(), 0)
    dice = random.Random(7)
    acknowledged: set[int] = set()
    first = 1
    for _ in range(KILLS // WRITERS):

        def writer(parity: int, start: int = first) -> Callable[[int], None]:
            def write_forever(pipe: int) -> None:
                store = reopen()
                for number in range(2 * start + parity, 2 * start + 10_000, 2):
                    run(store, number)
                    os.write(pipe, b"%d\n" % number)

            return write_forever

        children = [forked(writer(index % 2)) for index in range(WRITERS)]
        time.sleep(dice.uniform(0.001, 0.06))
        for child, _ in children:
            os.kill(child, signal.SIGKILL)
        for child, reading in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
            with os.fdopen(reading) as pipe:
                lines = pipe.read().split("\n")[:-1]
            acknowledged |= {int(line) for line in lines}
        first = max(acknowledged, default=0) // 2 + 1

    assert len(acknowledged) > KILLS // 4, "the writers hardly wrote anything"
    store = reopen()
    assert assert_sound(store) >= len(acknowledged)
    CALLS.clear()
    for number in sorted(acknowledged):
        assert run(store, number) == number**2
    assert CALLS == []
    assert store.statistics.events == ()
    run(store, 2 * first)
    collect(store, Limits(grace_seconds=0), now=time.time() + 100)
    assert list((store.root / "tmp").iterdir()) == []
    assert {path.name for path in (store.root / "locks").iterdir()} <= {"gc", "counts"}
    assert assert_sound(store) >= len(acknowledged)


def killed_at_call(number: int, action: Callable[[], None]) -> bool:
    """Run ``action`` in a child that dies just before its n-th call into the operating system.

    Gives False when the child finished first.
    """

    def guarded(_pipe: int) -> None:
        calls = 0

        def counted(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401  # any call of the system
                nonlocal calls
                calls += 1
                if calls == number:
                    os.kill(os.getpid(), signal.SIGKILL)
                return function(*arguments, **named)

            return call

        for name in ("open", "write", "fsync", "close", "mkdir", "rename", "replace", "utime", "unlink"):
            setattr(os, name, counted(getattr(os, name)))
        fcntl.flock = counted(fcntl.flock)
        action()
        os._exit(0)

    child, reading = forked(guarded)
    os.close(reading)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in {0, -signal.SIGKILL}
    return code != 0


@pytest.mark.slow
def test_a_writer_killed_at_each_step_leaves_a_store_that_works(tmp_path: Path) -> None:
    """From an empty folder to the published record, before every single call that changes anything."""
    run(Store.open(tmp_path / "warm", sources=SOURCES, tables=TABLES), 3)
    steps = 0
    while True:
        steps += 1
        root = tmp_path / str(steps)

        def build(root: Path = root) -> None:
            run(Store.open(root, sources=SOURCES, tables=TABLES, strict=True), 3)

        killed = killed_at_call(steps, build)
        store = Store.open(root, sources=SOURCES, tables=TABLES, strict=True)
        assert_sound(store)
        assert run(store, 3) == 9
        assert run(store, 3) == 9
        assert store.statistics.events == ()
        if not killed:
            break
    assert steps > 30, "the steps were not counted"


def test_eight_processes_that_ask_for_one_missing_key_compute_it_once(reopen: Open, tmp_path: Path) -> None:
    reopen()
    trace = tmp_path / "trace"
    ready, go = os.pipe()

    def ask(pipe: int) -> None:
        os.read(ready, 1)
        os.write(pipe, str(run(reopen(), 12, Options(trace=trace))).encode())

    children = [forked(ask) for _ in range(8)]
    os.write(go, b"x" * 8)
    answers: list[str] = []
    for child, reading in children:
        with os.fdopen(reading) as pipe:
            answers.append(pipe.read())
        os.waitpid(child, 0)
    os.close(ready)
    os.close(go)
    assert answers == ["144"] * 8
    assert len(trace.read_text().splitlines()) == 1
    assert list((reopen().root / "locks").iterdir()) in ([], [reopen().root / "locks" / "gc"])


def test_a_lock_dies_with_its_holder(reopen: Open) -> None:
    store = reopen()
    lock = store.root / "locks" / "x"

    def hold(pipe: int) -> None:
        with exclusive(lock, timeout_seconds=5) as alone:
            os.write(pipe, b"held" if alone else b"not")
            time.sleep(60)

    child, reading = forked(hold)
    assert os.read(reading, 10) == b"held"
    with exclusive(lock, timeout_seconds=0.05) as alone:
        assert not alone
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    with exclusive(lock, timeout_seconds=5) as alone:
        assert alone
    assert not lock.exists()


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The holder removes the file between the moments when a waiter opens and locks it."""
    lock, flock, removed = tmp_path / "lock", fcntl.flock, False

    def late_flock(descriptor: int, operation: int) -> None:
        nonlocal removed
        if not removed:
            removed = True
            lock.unlink()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", late_flock)
    with exclusive(lock, timeout_seconds=1) as alone, exclusive(lock, timeout_seconds=0.05) as second:
        assert alone
        assert not second


def test_whoever_waits_too_long_computes_and_says_so(reopen: Open) -> None:
    store = reopen(lock_timeout_seconds=0.05)
    document_key = store.attempt(SQUARE, NumberInputs(number=5), Options()).key
    store.records.path(SQUARE.namespace, document_key).unlink()
    with exclusive(store.root / "locks" / document_key, timeout_seconds=1):
        assert run(store, 5) == 25
    assert [event.kind for event in store.statistics.events] == [EventKind.UNLOCKED]


def test_collecting_beside_builds_never_gives_a_wrong_answer(reopen: Open) -> None:
    root = reopen().root

    def collect_forever(pipe: int) -> None:
        store = reopen()
        os.write(pipe, b"x")
        while True:
            collect(store, Limits(budget_bytes=ByteCount(2000), grace_seconds=0), now=time.time() + 1)

    child, reading = forked(collect_forever)
    os.read(reading, 1)
    store = reopen()
    try:
        for turn in range(60):
            assert run(store, turn % 7) == (turn % 7) ** 2
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
    assert root.exists()
    assert_sound(store)
    assert {event.kind for event in store.statistics.events} <= set[EventKind]()


@pytest.mark.parametrize("step", range(1, 12))
def test_a_full_disk_costs_nothing_but_the_reuse(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """ENOSPC at the n-th write; half of the bytes are taken before, as a real disk does."""
    reopen()
    write, calls = os.write, 0

    def full(descriptor: int, data: bytes) -> int:
        nonlocal calls
        calls += 1
        if calls < step:
            return write(descriptor, data)
        if calls == step and len(data) > 1:
            return write(descriptor, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store, strict = reopen(strict=False), reopen()
    monkeypatch.setattr(os, "write", full)
    result = store.run(SQUARE, NumberInputs(number=6), Options())
    exhausted = calls >= step
    assert result.value() == 36
    if exhausted:
        assert EventKind.UNUSABLE in {event.kind for event in store.statistics.events}
        with pytest.raises(StoreError, match="no space is left"):
            strict.run(SQUARE, NumberInputs(number=7), Options())
    monkeypatch.undo()
    assert list((store.root / "tmp").iterdir()) == []
    assert_sound(reopen())
    assert run(reopen(), 6) == 36
    assert run(reopen(), 7) == 49


def test_a_store_on_a_full_disk_can_be_opened_read_and_made_smaller(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The advice for a full disk is to collect, so collecting must not need room."""
    reopen().run(SQUARE, NumberInputs(number=6), Options())

    def full(path: str | Path, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT and not Path(path).exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return opened(path, flags, *rest)

    opened = os.open
    monkeypatch.setattr(os, "open", full)
    store = reopen(strict=False)
    assert store.run(SQUARE, NumberInputs(number=6), Options()).hit
    assert store.run(SQUARE, NumberInputs(number=7), Options()).value() == 49
    done = collect(store, Limits(budget_bytes=ByteCount(0), grace_seconds=0), now=time.time() + 1)
    assert (done.records, done.objects) == (1, 1)
    assert not [path for name in ("ac", "cas") for path in (store.root / name).rglob("*") if path.is_file()]
    with pytest.raises(StoreError, match="no space is left"):
        Store.open(tmp_path / "a new one")


def test_a_store_that_loses_its_permissions_is_done_without() -> None:
    def build(root: Path) -> str:
        store = Store.open(root, sources=SOURCES)
        run(store, 2)
        for path in [root, *root.rglob("*")]:
            path.chmod(0o500 if path.is_dir() else 0o400)
        assert run(store, 2) == 4
        result = store.run(SQUARE, NumberInputs(number=3), Options())
        assert (result.value(), result.status) == (9, Status.COMPUTED)
        kinds = {event.kind.value for event in store.statistics.events}
        text = next(event.message for event in store.statistics.events if event.kind is EventKind.UNUSABLE)
        for path in [root, *root.rglob("*")]:
            path.chmod(0o700)
        return f"{sorted(kinds)} {'permission is denied' in text}"

    with reachable_folder() as folder:
        text = in_child(lambda: build(folder / "store"), unprivileged=True)
    assert text == "['unlocked', 'unusable'] True"


def test_verification_by_several_processes_agrees(reopen: Open) -> None:
    run(reopen(), 4)

    def verify() -> str:
        try:
            return str(run(reopen(mode=Mode.VERIFY), 4))
        except InternalError as error:
            return str(error)

    assert [in_child(verify) for _ in range(2)] == ["16", "16"]
