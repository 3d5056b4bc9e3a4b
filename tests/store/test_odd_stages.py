"""Stages that misbehave leave nothing behind, and what they depend on is in their key or kept from them."""

import random
import threading
import time
from types import MappingProxyType

import pytest

from compiler.errors import InternalError
from compiler.store.records import Records
from compiler.store.result import StageResult
from compiler.store.statistics import EventKind
from compiler.store.store import Mode
from compiler.store.verify import recompute_one
from tests.store.helpers import Open
from tests.store.sample_odd import (
    ENTERED,
    GATHERING,
    ITSELF,
    LISTING,
    ORDER,
    RAISES,
    RAISING,
    MoreInputs,
    TableInputs,
)
from tests.store.sample_types import NumberInputs, Options


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        SystemExit(3),
        MemoryError(),
        GeneratorExit(),
        RecursionError("deep"),
        ValueError("a bug"),
        BaseException("odd"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("mode", [Mode.USE, Mode.REFRESH, Mode.VERIFY])
def test_whatever_a_stage_raises_is_passed_on_and_nothing_is_left(
    reopen: Open, error: BaseException, mode: Mode
) -> None:
    RAISES[:] = [error]
    store = reopen(mode=mode, lock_timeout_seconds=1.0)
    with pytest.raises(type(error)) as raised:
        store.run(RAISING, NumberInputs(number=5), Options())
    assert raised.value is error
    files = [path for path in store.root.rglob("*") if path.is_file()]
    assert [path.name for path in files] == ["VERSION"]
    assert store.run(RAISING, NumberInputs(number=5), Options()).value() == 25
    assert not store.statistics.events, "the lock is free again"


def test_an_interruption_while_publishing_leaves_no_record(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    store = reopen()
    with monkeypatch.context() as patched:
        patched.setattr(Records, "publish", interrupted)
        with pytest.raises(KeyboardInterrupt):
            store.run(RAISING, NumberInputs(number=5), Options())
    assert not list(store.root.glob("ac/*/*/*"))
    assert not list(store.root.glob("tmp/*"))
    result = reopen().run(RAISING, NumberInputs(number=5), Options())
    assert (result.hit, result.value()) == (False, 25)


def test_a_stage_that_asks_for_itself_is_told_so_at_once(reopen: Open) -> None:
    """It would wait for its own lock otherwise."""
    ENTERED.clear()
    store = reopen(lock_timeout_seconds=2.0)
    started = time.monotonic()
    with pytest.raises(InternalError, match="the stage asks for its own result"):
        store.run(ITSELF, NumberInputs(number=5), Options())
    assert len(ENTERED) == 1
    assert time.monotonic() - started < 2.0
    assert not list(store.root.glob("ac/*/*/*"))
    thread = threading.Thread(target=lambda: store.run(RAISING, NumberInputs(number=5), Options()))
    thread.start()
    thread.join(timeout=10)
    assert not thread.is_alive()


def test_equal_mappings_in_any_order_give_equal_keys_and_equal_bytes(reopen: Open) -> None:
    names = [f"name {number}" for number in range(6)]
    results: list[StageResult[bytes]] = []
    for seed in range(4):
        random.Random(seed).shuffle(names)
        inputs = TableInputs(
            table=MappingProxyType({name: len(name) for name in names}),
            nested=({int(name[-1]): 1 for name in names},),
        )
        results.append(reopen(mode=Mode.VERIFY).run(LISTING, inputs, Options()))
    assert len({result.key for result in results}) == 1
    assert len({result.value() for result in results}) == 1
    assert recompute_one(reopen(), results[0].record) is None


def test_inputs_of_another_class_are_refused(reopen: Open) -> None:
    """The code of a subclass is in no key, and its fields may make it another value."""
    with pytest.raises(TypeError, match="stage raising takes NumberInputs, not MoreInputs"):
        reopen().run(RAISING, MoreInputs(number=1, more=2), Options())


def test_the_order_in_which_inner_results_come_changes_nothing(reopen: Open) -> None:
    ORDER[:] = [1, 2, 3]
    first = reopen().run(GATHERING, NumberInputs(number=0), Options())
    ORDER[:] = [3, 1, 2]
    again = reopen(mode=Mode.VERIFY).run(GATHERING, NumberInputs(number=0), Options())
    assert again.digest == first.digest
    assert reopen().run(GATHERING, NumberInputs(number=0), Options()).hit


def test_an_order_that_changes_bytes_is_a_conflict(reopen: Open) -> None:
    """The same runs in another order are the same basis, so other bytes on it are a bug of the stage."""
    ORDER[:] = [1, 2, 3]
    first = reopen().run(GATHERING, NumberInputs(number=7), Options())
    ORDER[:] = [3, 1, 2]
    with pytest.raises(InternalError, match="gave different bytes"):
        reopen(mode=Mode.VERIFY).run(GATHERING, NumberInputs(number=7), Options())
    store = reopen(mode=Mode.VERIFY, strict=False)
    kept = store.run(GATHERING, NumberInputs(number=7), Options())
    assert kept.digest == first.digest, "what was there first stays"
    assert [event.kind for event in store.statistics.events] == [EventKind.CONFLICT]
