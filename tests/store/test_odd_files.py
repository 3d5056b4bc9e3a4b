"""What lies in a store and should not: links, pipes, folders, files that claim to be huge, newer formats.

Whatever it is, a build gives the right answer, nothing waits for ever, and nothing huge is allocated.
"""

import hashlib
import os
import resource
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.errors import StoreError
from compiler.store import files
from compiler.store.canonical import JsonObject, to_text
from compiler.store.collect import Limits, accounts, collect, pin, pins
from compiler.store.digest import ByteCount, Digest, ObjectRef, digest_of
from compiler.store.key import key_of
from compiler.store.objects import Objects, pack, unpack
from compiler.store.records import record_from_file, record_to_file
from compiler.store.stage import Namespace
from compiler.store.statistics import EventKind
from compiler.store.store import Access, Mode, Store
from compiler.store.verify import scrub
from tests.store.helpers import Open, in_child, reachable_folder
from tests.store.sample_search import SEARCH
from tests.store.sample_stages import SQUARE
from tests.store.sample_types import SOURCES, NumberInputs, Options

GIGABYTE = 1 << 30


def link_to_sound(path: Path) -> None:
    """A link to a file that would do."""
    elsewhere = path.parent.parent.parent / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def dangling_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("nowhere")


def link_to_itself(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def unix_socket(path: Path) -> None:
    path.unlink()
    here = Path.cwd()
    os.chdir(path.parent)  # addresses of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("s")
        Path("s").rename(path.name)
    finally:
        os.chdir(here)


def full_folder(path: Path) -> None:
    path.unlink()
    (path / "below").mkdir(parents=True)
    (path / "below/file").write_text("x")


def sparse(path: Path) -> None:
    """The sound file, followed by a gigabyte that takes no room on disk."""
    os.truncate(path, GIGABYTE)


def all_zeros(path: Path) -> None:
    os.truncate(path, 0)
    os.truncate(path, GIGABYTE)


ODD: list[Callable[[Path], None]] = [
    link_to_sound,
    dangling_link,
    link_to_itself,
    pipe,
    unix_socket,
    full_folder,
    sparse,
    all_zeros,
]


def peak() -> int:
    """The most memory that this process had at once, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", ["cas/*/*", "ac/*/*/*", "last/*/*"])
def test_a_build_goes_on_whatever_is_in_the_place_of_a_file(
    reopen: Open, place: str, odd: Callable[[Path], None]
) -> None:
    store = reopen()
    first = store.run(SQUARE, NumberInputs(number=5), Options())
    (path,) = store.root.glob(place)
    odd(path)
    before = peak()
    store = reopen()
    again = store.run(SQUARE, NumberInputs(number=5), Options())
    assert again.value() == first.value() == 25
    assert path.is_file()
    assert not path.is_symlink(), "what was there is replaced"
    assert reopen().run(SQUARE, NumberInputs(number=5), Options()).hit
    assert scrub(reopen()).sound
    assert peak() - before < GIGABYTE // 4


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("place", ["cas/*/*", "ac/*/*/*"])
def test_reading_everything_finds_it_and_collecting_removes_it(
    reopen: Open, place: str, odd: Callable[[Path], None]
) -> None:
    store = reopen()
    store.run(SQUARE, NumberInputs(number=5), Options())
    (path,) = store.root.glob(place)
    odd(path)
    found = scrub(reopen(access=Access.READ_ONLY))
    assert found.damaged == (path,)
    assert path.exists() or path.is_symlink(), "reading changes nothing"
    assert accounts(reopen(access=Access.READ_ONLY))[Namespace.STAGE].seconds >= 0
    assert scrub(reopen()).damaged == (path,)
    assert scrub(reopen()).sound
    collect(reopen(), Limits(grace_seconds=0), now=time.time() + 30 * 24 * 3600)
    assert not list((store.root / "bad").iterdir())


@pytest.mark.parametrize("odd", ODD)
def test_the_version_has_to_be_a_file(reopen: Open, odd: Callable[[Path], None]) -> None:
    root = reopen().root
    odd(root / "VERSION")
    with pytest.raises(StoreError, match=r"VERSION: the file "):
        reopen()


@pytest.mark.parametrize("odd", ODD)
def test_a_pin_that_is_no_file_stops_the_collector(reopen: Open, odd: Callable[[Path], None]) -> None:
    store = reopen()
    result = store.run(SQUARE, NumberInputs(number=5), Options())
    pin(store, "release", [result.key])
    odd(store.root / "pins/release")
    with pytest.raises(StoreError, match=r"pins/release: the pin cannot be understood"):
        collect(store, Limits(budget_bytes=ByteCount(0), grace_seconds=0), now=time.time())
    assert store.run(SQUARE, NumberInputs(number=5), Options()).hit


@pytest.mark.parametrize("text", ["{}", "null", "7", '"a"', '["xyz"]', "[7]", "", "[]\n", "\udcff"])
def test_a_pin_that_is_no_list_of_keys_stops_the_collector(reopen: Open, text: str) -> None:
    store = reopen()
    pin(store, "release", [])
    (store.root / "pins/release").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(StoreError, match=r"pins/release: the pin cannot be understood"):
        collect(store, Limits(), now=time.time())


@pytest.mark.parametrize("odd", ODD)
def test_counts_that_cannot_be_read_begin_again(reopen: Open, odd: Callable[[Path], None]) -> None:
    with reopen() as store:
        store.run(SQUARE, NumberInputs(number=5), Options())
    odd(store.root / "counts")
    with reopen() as store:
        store.run(SQUARE, NumberInputs(number=5), Options())
    assert accounts(reopen())[Namespace.KERNEL].counts.hits == 1


def claiming(size: int) -> bytes:
    """The file of an object, sound but for a frame whose head claims a size of content."""
    frame = bytes.fromhex("28b52ffd") + bytes([0xC0, 0x58]) + size.to_bytes(8, "little") + b"\x01\0\0"
    return frame + pack(b"")[-40:-32] + hashlib.sha256(frame).digest()


@pytest.mark.parametrize("size", [GIGABYTE, 1 << 40, 1 << 62, (1 << 63) + 1, (1 << 64) - 3])
def test_a_claimed_size_is_never_allocated(tmp_path: Path, size: int) -> None:
    damages: list[str] = []
    objects = Objects(tmp_path, on_damage=lambda _, text: damages.append(text), writable=True)
    path = objects.path(Digest("0" * 64))
    path.parent.mkdir(parents=True)
    path.write_bytes(claiming(size))
    before = peak()
    assert not objects.scrub(path)
    assert damages
    with pytest.raises(ValueError, match=r"more than \d+ bytes can hold|cannot have \d+ bytes"):
        unpack(claiming(size), ObjectRef(digest=Digest("0" * 64), size=ByteCount(size)))
    assert peak() - before < GIGABYTE // 8


def test_content_that_is_highly_compressible_is_no_damage(tmp_path: Path) -> None:
    """The bound on what a byte can hold is above what the compressor reaches: a gigabyte in 32 KiB."""
    data = bytes(50_000_000)
    file = pack(data)
    assert len(file) < 2000
    assert unpack(file, ObjectRef(digest=digest_of(data), size=ByteCount(len(data)))) == data
    objects = Objects(tmp_path, on_damage=lambda _, text: pytest.fail(text), writable=True)
    assert objects.scrub(objects.path(objects.put(data).digest))


def closed(text: bytes) -> bytes:
    """A text with its closing digest."""
    return text + b"\n" + digest_of(text).encode() + b"\n"


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        (b'{"consumed"', b'{"a":1,"consumed"', "fields of a record"),
        (b'"key":"', b'"kex":1,"key":"', "a consumed run has"),
        (b'"stage":"square"', b'"stagy":"square"', "without namespace and stage"),
        (b'"namespace":"kernel"', b'"namespace":"attic"', "'attic' is not a valid Namespace"),
        (b'"outputs":[["value","', b'"outputs":[["value","0', "not a digest"),
    ],
)
def test_a_record_of_another_format_is_damage_and_never_guessed_at(
    reopen: Open, old: bytes, new: bytes, fault: str
) -> None:
    result = reopen().run(SEARCH, NumberInputs(number=2), Options())
    text = record_to_file(result.record)[:-66]
    assert old in text
    with pytest.raises(ValueError, match=fault):
        record_from_file(closed(text.replace(old, new)))


@pytest.mark.parametrize("microseconds", [-1, True, 10**4000, 1 << 53])
def test_a_time_that_nobody_measured_is_damage(reopen: Open, microseconds: int) -> None:
    record = reopen().run(SQUARE, NumberInputs(number=2), Options()).record
    text = record_to_file(record)[:-66]
    old = b'"microseconds":' + to_text(record.microseconds)
    with pytest.raises(ValueError, match="microseconds"):
        record_from_file(closed(text.replace(old, b'"microseconds":' + to_text(microseconds))))


def test_last_documents_answer_for_their_own_stage_and_label_only(reopen: Open) -> None:
    store = reopen()
    store.run(SQUARE, NumberInputs(number=2), Options(), label="a")
    store.run(SQUARE, NumberInputs(number=3), Options(), label="b")
    first, second = sorted(store.root.glob("last/*/*"))
    text = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(text)
    assert store.last.read("square", "a") is None
    assert list(store.last.walk()) == []
    for garbage in (b"", b"{}", b'{"document":{},"label":"a"}', b"\xff", b"[" * 100_000, b"1" * 10_000):
        first.write_bytes(garbage)
        assert list(store.last.of_stage("square")) == []
    assert store.last.read("x" * 300, "a") is None
    assert store.last.read("x\0", "a") is None


def test_the_last_document_is_replaced_by_one_that_python_calls_equal(reopen: Open) -> None:
    """True equals 1 in Python and not in a key."""
    store = reopen()
    document = store.run(SQUARE, NumberInputs(number=1), Options(), label="a").record.document
    odd: JsonObject = {**document, "format": True}
    store.last.write("square", "a", odd)
    found = store.last.read("square", "a")
    assert found is not None
    assert found.key == key_of(odd) != key_of(document)


def test_how_long_a_damaged_file_is_kept_counts_from_when_it_was_found(reopen: Open) -> None:
    store = reopen()
    store.run(SQUARE, NumberInputs(number=5), Options())
    (path,) = store.root.glob("cas/*/*")
    path.write_bytes(b"x")
    os.utime(path, (1, 1))
    assert not scrub(store).sound
    day = 24 * 3600
    collect(store, Limits(grace_seconds=0), now=time.time() + 6 * day)
    assert len(list((store.root / "bad").iterdir())) == 1
    collect(store, Limits(grace_seconds=0), now=time.time() + 8 * day)
    assert not list((store.root / "bad").iterdir())


@pytest.mark.parametrize("folder", ["pins", "ac", "ac/kernel", "cas", "last", "tmp"])
def test_a_folder_that_cannot_be_listed_never_looks_empty(folder: str) -> None:
    """Otherwise the collector would take pinned results, or objects of records that it does not see."""
    with reachable_folder() as above:
        root = above / "store"

        def prepared() -> str:
            store = Store.open(root, sources=SOURCES)
            for number in range(3):
                pin(store, f"p{number}", [store.run(SQUARE, NumberInputs(number=number), Options()).key])
            (root / folder).chmod(0o300)
            try:
                collect(store, Limits(budget_bytes=ByteCount(0), grace_seconds=0), now=time.time() + 1e6)
            except StoreError as error:
                return f"refused {error.subject}"
            finally:
                (root / folder).chmod(0o700)
            return "collected"

        def used() -> str:
            store = Store.open(root, sources=SOURCES)
            hits = [store.run(SQUARE, NumberInputs(number=number), Options()).hit for number in range(3)]
            return f"{hits} {len(pins(store))}"

        outcome = in_child(prepared, unprivileged=True)
        # Without a limit of age nobody asks for labels.
        expected = "collected" if folder == "last" else f"refused {root / folder}"
        assert outcome == expected
        assert in_child(used, unprivileged=True) == "[True, True, True] 3"


@pytest.mark.parametrize("place", ["last", "last/square", "last/square/*", "cas/*/*", "ac/*/*/*"])
def test_what_cannot_be_read_costs_speed_only(place: str) -> None:
    with reachable_folder() as above:
        root = above / "store"

        def action() -> str:
            store = Store.open(root, sources=SOURCES)
            store.run(SQUARE, NumberInputs(number=1), Options())
            (path,) = root.glob(place)
            path.chmod(0)
            store = Store.open(root, sources=SOURCES)
            values = [store.run(SQUARE, NumberInputs(number=n), Options()).value() for n in (1, 2)]
            path.chmod(0o700)
            kinds = {event.kind for event in store.statistics.events}
            return f"{values} {sorted(kind.value for kind in kinds)}"

        assert in_child(action, unprivileged=True) == f"[1, 4] ['{EventKind.UNUSABLE.value}']"


def test_pretending_to_collect_needs_no_permission_and_changes_nothing(reopen: Open) -> None:
    store = reopen()
    store.run(SQUARE, NumberInputs(number=5), Options())
    (path,) = store.root.glob("cas/*/*")
    path.write_bytes(b"x")
    before = {found: found.lstat() for found in store.root.rglob("*")}
    limits = Limits(budget_bytes=ByteCount(0), grace_seconds=0)
    reading = reopen(access=Access.READ_ONLY)
    pretended = collect(reading, limits, now=time.time() + 1, pretend=True)
    assert {found: found.lstat() for found in store.root.rglob("*")} == before
    done = collect(store, limits, now=time.time() + 1)
    assert (pretended.records, pretended.objects) == (done.records, done.objects) == (1, 1)
    with pytest.raises(StoreError, match="open for reading"):
        collect(reading, limits, now=time.time())


def test_a_record_that_nobody_could_read_back_is_not_written(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "LARGEST", 500)
    store = reopen(strict=False)
    assert store.run(SQUARE, NumberInputs(number=5), Options()).value() == 25
    assert not list(store.root.glob("ac/*/*/*"))
    assert any("500 are the most" in event.message for event in store.statistics.events)


def test_a_store_stays_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A relative path, with blanks, letters beyond ASCII and a tilde in it."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    monkeypatch.chdir(first)
    with Store.open(Path("~/Ein Stück 木"), sources=SOURCES) as store:
        monkeypatch.chdir(second)
        assert store.run(SQUARE, NumberInputs(number=5), Options()).value() == 25
    assert list(second.iterdir()) == []
    assert [path.name for path in first.iterdir()] == ["~"]
    assert store.root == first / "~/Ein Stück 木"
    monkeypatch.chdir(first)
    assert (
        Store.open(Path("~/Ein Stück 木"), sources=SOURCES).run(SQUARE, NumberInputs(number=5), Options()).hit
    )


def test_a_store_that_is_off_looks_at_nothing(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "nothing", mode=Mode.OFF, access=Access.READ_ONLY, sources=SOURCES)
    assert sum(account.records for account in accounts(store).values()) == 0
    assert scrub(store).sound
    assert not (tmp_path / "nothing").exists()
