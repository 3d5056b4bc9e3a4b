"""Garbage collection: what goes when the store is to be smaller.

Order matters. Records go first and objects after them, so that a record never promises an object which the
collector is about to remove; objects go only when no record that is left names them and they are older than a
grace period. Publishing holds a shared lock and collecting an exclusive one, so a freshly written object
cannot go before its record arrives; where locks do not work, the grace period stands in.

Which records go:

1. those older than ``age_seconds``, counted from the last use;
2. while the rest takes more than ``budget_bytes``, those that save the fewest seconds for each byte that they
   occupy: plain age would throw away a search of ten minutes to keep a file that takes a second to write. A
   record occupies its own file and its part of the objects that it names, outputs and inputs alike; records
   that name the same object have equal parts of it.

A pinned record never goes, nor anything that it names. What is current under a label (``last``) is spared by
the age rule and not by the budget. Ages of files from the future count as 0: a clock that was set back
removes nothing.
"""

import contextlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.errors import StoreError
from compiler.store import files
from compiler.store.canonical import JsonValue, from_text, to_text
from compiler.store.digest import ByteCount, Digest, parse_digest
from compiler.store.lock import exclusive, held
from compiler.store.records import Record
from compiler.store.stage import Namespace
from compiler.store.statistics import Counts, load_counts
from compiler.store.store import Store

DEFAULT_GRACE_SECONDS = 3600.0
"""Longer than it takes from putting a value into the store to the first stage that uses it."""

_IN_FLIGHT_SECONDS = 60.0
"""Temporary files younger than this stay even without a grace period: their writers may still be at work."""

_DIGITS_OF_A_KEY = 64

_ASIDE_SECONDS = 7 * 24 * 3600.0
"""How long damaged files are kept for a look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is to be left.

    Args:
        age_seconds: records unused for longer go; None keeps them.
        budget_bytes: the most that objects and records together may take on disk; None for no limit.
        grace_seconds: objects and temporary files younger than this stay.
    """

    age_seconds: float | None = None
    budget_bytes: ByteCount | None = None
    grace_seconds: float = DEFAULT_GRACE_SECONDS

    def __post_init__(self) -> None:
        """No limit is negative."""
        if (self.age_seconds or 0) < 0 or (self.budget_bytes or 0) < 0 or self.grace_seconds < 0:
            raise ValueError("a limit of garbage collection is negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What a collection did, or would do.

    Args:
        records: records removed.
        objects: objects removed.
        others: temporary, damaged and lock files removed.
        freed_bytes: file sizes of all of them.
        kept_bytes: file sizes of the records and objects that stay.
        lost_seconds: time that computing the removed records again would take.
    """

    records: int
    objects: int
    others: int
    freed_bytes: ByteCount
    kept_bytes: ByteCount
    lost_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one namespace holds.

    Args:
        records: results.
        failures: those of them that are failures.
        content_bytes: the objects that the records name, uncompressed, each counted once.
        disk_bytes: file sizes of the records and of those objects; an object is counted in each namespace.
        seconds: time that all results took to compute.
        counts: hits and misses of all processes.
    """

    records: int
    failures: int
    content_bytes: ByteCount
    disk_bytes: ByteCount
    seconds: float
    counts: Counts


def pin(store: Store, name: str, keys: Iterable[Digest]) -> None:
    """Protect the records of ``keys`` from collection under a name, in place of earlier keys of that name.

    Raises:
        ValueError: the name cannot be a file name.
        StoreError: the pin cannot be written.
    """
    listed: list[JsonValue] = [*sorted(parse_digest(key) for key in keys)]
    files.publish(store.root, _pin_path(store, name), to_text(listed))


def unpin(store: Store, name: str) -> None:
    """Remove the protection of that name.

    Raises:
        StoreError: the pin cannot be removed.
    """
    files.remove(_pin_path(store, name))


def pins(store: Store) -> dict[str, tuple[Digest, ...]]:
    """The pinned keys by name.

    Raises:
        StoreError: a pin cannot be read; nothing is collected while that is so.
    """
    found: dict[str, tuple[Digest, ...]] = {}
    for path in files.entries(store.root / "pins"):
        try:
            text = files.read(path)
            keys = from_text(text if text is not None else b"[]")
            if not isinstance(keys, list):
                raise ValueError("it is not a list of keys")
            found[path.name] = tuple(parse_digest(str(key)) for key in keys)
        except ValueError as error:
            raise StoreError(
                f"the pin cannot be understood: {error}",
                stage="store",
                subject=str(path),
                next_step="remove the file and pin the keys again",
            ) from error
    return found


def accounts(store: Store) -> dict[Namespace, Account]:
    """What each namespace holds and how often it helped (CA-06).

    Raises:
        StoreError: the store cannot be read.
    """
    saved = load_counts(store.root)
    result: dict[Namespace, Account] = {}
    everything = list(_entries(store))
    for namespace in Namespace:
        entries = [entry for entry in everything if entry.record.namespace is namespace]
        objects = {output.ref for entry in entries for output in entry.record.outputs}
        counts = Counts()
        for name, stage_counts in (*saved.items(), *store.statistics.unsaved.items()):
            if name[0] == namespace.value:
                counts += stage_counts
        result[namespace] = Account(
            records=len(entries),
            failures=sum(entry.record.failure is not None for entry in entries),
            content_bytes=ByteCount(sum(ref.size for ref in objects)),
            disk_bytes=ByteCount(
                sum(entry.size for entry in entries)
                + sum(_size(store.objects.path(ref.digest)) for ref in objects)
            ),
            seconds=sum(entry.record.microseconds for entry in entries) / 1e6,
            counts=counts,
        )
    return result


def collect(store: Store, limits: Limits, *, now: float, pretend: bool = False) -> Collected:
    """Remove what the limits ask for.

    Args:
        store: a store that may be written, or any to find out.
        limits: what is to be left.
        now: the present, in seconds since the epoch.
        pretend: only find out.

    Raises:
        StoreError: the store cannot be read or written, or a pin cannot be understood.
    """
    if not store.writable and not pretend:
        raise StoreError(
            "nothing can be removed from a store that is open for reading",
            stage="store",
            subject=str(store.root),
            next_step="open the store for writing",
        )
    with contextlib.ExitStack() as stack:
        if store.writable:
            with contextlib.suppress(OSError):
                stack.enter_context(held(store.root / "locks" / "gc", shared=False))
        pinned = {key for keys in pins(store).values() for key in keys}
        entries = list(_entries(store))
        doomed = _too_old(store, entries, limits, pinned, now)
        doomed |= _over_budget(store, entries, limits, pinned, doomed)

        left = [entry for entry in entries if entry.path not in doomed]
        named = {digest for entry in left for digest in _objects(entry)}
        objects = {
            path: _size(path)
            for path in store.objects.walk()
            if path.name not in named and now - files.modified(path) >= limits.grace_seconds
        }
        others = {path: _size(path) for path in _leftovers(store, limits, now)}
        freed = sum(entry.size for entry in entries if entry.path in doomed)
        freed += sum(objects.values()) + sum(others.values())
        kept = sum(entry.size for entry in left)
        kept += sum(_size(path) for path in store.objects.walk() if path not in objects)
        if not pretend:
            for path in (*sorted(doomed), *objects, *others):
                files.remove(path)
            _remove_free_locks(store)
    return Collected(
        records=len(doomed),
        objects=len(objects),
        others=len(others),
        freed_bytes=ByteCount(freed),
        kept_bytes=ByteCount(kept),
        lost_seconds=sum(entry.record.microseconds for entry in entries if entry.path in doomed) / 1e6,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: Path
    record: Record
    size: int
    used: float


def _entries(store: Store) -> Iterator[_Entry]:
    """Every sound record with its file."""
    for path in store.records.walk():
        record = store.records.load(path)
        if record is not None:
            yield _Entry(path=path, record=record, size=_size(path), used=files.modified(path))


def _too_old(
    store: Store, entries: list[_Entry], limits: Limits, pinned: set[Digest], now: float
) -> set[Path]:
    if limits.age_seconds is None:
        return set()
    spared = pinned | {last.key for last in store.last.walk()}
    return {
        entry.path
        for entry in entries
        if now - entry.used > limits.age_seconds and entry.path.name not in spared
    }


def _over_budget(
    store: Store, entries: list[_Entry], limits: Limits, pinned: set[Digest], gone: set[Path]
) -> set[Path]:
    """The cheapest records for each byte, until the rest fits."""
    if limits.budget_bytes is None:
        return set()
    left = [entry for entry in entries if entry.path not in gone]
    uses = Counter(digest for entry in left for digest in _objects(entry))
    sizes = {digest: _size(store.objects.path(digest)) for digest in uses}
    total = sum(sizes.values()) + sum(entry.size for entry in left)

    def density(entry: _Entry) -> tuple[float, float, str]:
        share = entry.size + sum(sizes[digest] / uses[digest] for digest in _objects(entry))
        return entry.record.microseconds / max(share, 1.0), entry.used, entry.path.name

    doomed: set[Path] = set()
    remaining = uses.copy()
    for entry in sorted(left, key=density):
        if total <= limits.budget_bytes:
            break
        if entry.path.name in pinned:
            continue
        doomed.add(entry.path)
        total -= entry.size
        for digest in _objects(entry):
            remaining[digest] -= 1
            if remaining[digest] == 0:
                total -= sizes[digest]
    return doomed


def _objects(entry: _Entry) -> list[Digest]:
    return sorted(ref.digest for ref in entry.record.named)


def _leftovers(store: Store, limits: Limits, now: float) -> Iterator[Path]:
    """Files of writers that were killed, and damaged files that nobody looked at."""
    in_flight = max(limits.grace_seconds, _IN_FLIGHT_SECONDS)
    for folder, age in ((files.TEMPORARY, in_flight), (files.ASIDE, _ASIDE_SECONDS)):
        for path in files.entries(store.root / folder):
            if now - files.modified(path) >= age:
                yield path


def _remove_free_locks(store: Store) -> None:
    """Lock files of holders that were killed; taking and releasing one removes it."""
    for path in files.entries(store.root / "locks"):
        if len(path.name) == _DIGITS_OF_A_KEY:
            with exclusive(path, timeout_seconds=0):
                pass


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def _pin_path(store: Store, name: str) -> Path:
    if not name or name.startswith(".") or not all(letter.isalnum() or letter in "-_." for letter in name):
        raise ValueError(f"{name!r} is not the name of a pin: letters, digits, dots, - and _")
    return store.root / "pins" / name
