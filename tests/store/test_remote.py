"""A shared store: read through, written back, checked like local files, and done without when it fails."""

import contextlib
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import fsspec
import numpy as np
import pytest

from compiler.errors import StoreError
from compiler.store.objects import pack
from compiler.store.result import Status
from compiler.store.statistics import EventKind
from compiler.store.store import Access, Mode, RemoteSettings, Store
from compiler.store.verify import scrub
from tests.store.helpers import TABLES
from tests.store.sample_search import SEARCH
from tests.store.sample_stages import CALLS, SQUARE, SUMMARIZE, UNSTABLE, UNSTABLE_STAGE
from tests.store.sample_types import INTS, SOURCES, NumberInputs, Options, ScaleInputs

Machine = Callable[..., Store]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """The store of a machine by name, connected to the shared folder."""
    CALLS.clear()

    def opened(
        name: str,
        *,
        upload: bool = False,
        strict: bool = True,
        url: str = "",
        access: Access = Access.READ_WRITE,
        mode: Mode = Mode.USE,
    ) -> Store:
        remote = RemoteSettings(url=url or f"file://{tmp_path}/shared", upload=upload)
        return Store.open(
            tmp_path / name,
            sources=SOURCES,
            tables=TABLES,
            strict=strict,
            remote=remote,
            access=access,
            mode=mode,
        )

    return opened


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """The shared folder."""
    return tmp_path / "shared"


@pytest.fixture
def memory() -> Iterator[str]:
    """A shared store in memory: another protocol, no folders."""
    name = f"memory://{uuid.uuid4()}"
    yield name
    with contextlib.suppress(FileNotFoundError):
        fsspec.filesystem("memory").rm(name, recursive=True)  # pyright: ignore[reportUnknownMemberType]  # no types


def total(store: Store) -> int:
    """A result with two objects."""
    inputs = ScaleInputs(values=store.put(np.arange(9), INTS))
    return store.run(SUMMARIZE, inputs, Options()).value().total


@pytest.mark.parametrize("protocol", ["file", "memory"])
def test_what_one_machine_uploads_another_reuses(machine: Machine, memory: str, protocol: str) -> None:
    url = memory if protocol == "memory" else ""
    assert total(machine("ci", upload=True, url=url)) == 36
    developer = machine("developer", url=url)
    result = developer.run(SUMMARIZE, ScaleInputs(values=developer.put(np.arange(9), INTS)), Options())
    assert result.hit
    assert result.value().parts.tolist() == list(range(9))
    assert CALLS == ["summarize"]
    assert scrub(developer).records == 1, "it is kept here, too"
    assert total(machine("developer", url="memory://nothing")) == 36
    assert CALLS == ["summarize"]


def test_nothing_is_uploaded_unless_asked(machine: Machine, shared: Path) -> None:
    total(machine("developer"))
    assert not shared.exists()
    total(machine("ci", upload=True))
    assert sorted(path.name for path in shared.iterdir()) == ["VERSION", "ac", "cas"]
    before = sorted(shared.rglob("*"))
    developer = machine("developer")
    developer.run(SQUARE, NumberInputs(number=4), Options())
    assert sorted(shared.rglob("*")) == before


def test_results_of_inner_stages_are_shared_as_well(machine: Machine) -> None:
    first = machine("ci", upload=True).run(SEARCH, NumberInputs(number=3), Options())
    CALLS.clear()
    again = machine("developer").run(SEARCH, NumberInputs(number=3), Options())
    assert again.hit
    assert again.digest == first.digest
    assert CALLS == []


@pytest.mark.parametrize("what", ["cas", "ac"])
@pytest.mark.parametrize("damage", ["cut", "other", "empty"])
def test_a_damaged_remote_file_is_a_miss_and_is_replaced_by_the_next_upload(
    machine: Machine, shared: Path, what: str, damage: str
) -> None:
    total(machine("ci", upload=True))
    for path in (shared / what).rglob("*"):
        if path.is_file():
            sound = path.read_bytes()
            other = pack(b"something else") if what == "cas" else sound[:-3] + b"xx\n"
            path.write_bytes({"cut": sound[:-1], "other": other, "empty": b""}[damage])
    developer = machine("developer", strict=False)
    assert total(developer) == 36
    assert CALLS == ["summarize", "summarize"]
    assert {event.kind for event in developer.statistics.events} == {EventKind.REMOTE}
    assert scrub(developer).sound
    assert total(machine("another-ci", upload=True, strict=False)) == 36
    assert total(machine("reader")) == 36
    assert CALLS == ["summarize"] * 3


def test_a_remote_that_does_not_work_is_done_without(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    store = machine("developer", url=f"file://{tmp_path}/file", upload=True, strict=False)
    assert total(store) == 36
    assert len(store.statistics.events) == 1
    event = store.statistics.events[0]
    assert event.kind is EventKind.REMOTE
    assert "the remote store does not work" in event.message
    with pytest.raises(StoreError, match="the remote store does not work"):
        machine("strict", url=f"file://{tmp_path}/file", upload=True)
    with pytest.raises(StoreError, match="the remote store does not work"):
        machine("strict", url="nonsense://x")


def test_a_remote_of_another_version_is_not_used(machine: Machine, shared: Path) -> None:
    shared.mkdir()
    (shared / "VERSION").write_text("tilewright store 99\n")
    with pytest.raises(StoreError, match="it is a store of another version"):
        machine("ci", upload=True)


def test_other_bytes_under_one_key_do_not_replace_what_is_shared(machine: Machine) -> None:
    UNSTABLE[:] = [1, 2]

    def run(store: Store) -> int:
        return int(store.run(UNSTABLE_STAGE, NumberInputs(number=1), Options()).value()[0])

    assert run(machine("ci", upload=True)) == 1
    other = machine("other-ci", upload=True, mode=Mode.REFRESH, strict=False)
    assert run(other) == 2
    assert {event.kind for event in other.statistics.events} == {EventKind.CONFLICT}
    assert run(machine("developer")) == 1


def test_a_lost_local_object_is_fetched_again(machine: Machine) -> None:
    total(machine("ci", upload=True))
    store = machine("developer")
    total(store)
    for path in list(store.objects.walk()):
        path.unlink()
    assert total(store) == 36
    assert CALLS == ["summarize"]


def test_reading_only_everywhere_still_reuses(machine: Machine, shared: Path) -> None:
    total(machine("ci", upload=True))
    machine("reader")
    reader = machine("reader", access=Access.READ_ONLY)
    before = sorted(reader.root.rglob("*"))
    result = reader.run(SUMMARIZE, ScaleInputs(values=reader.put(np.arange(9), INTS)), Options())
    assert result.status is Status.HIT
    assert result.value().total == 36
    assert sorted(reader.root.rglob("*")) == before
    assert shared.exists()
    assert CALLS == ["summarize"]
