"""What a store did: events worth a warning, and counts of hits, misses and seconds.

Counts are kept for each namespace and stage, since a high overall hit rate says nothing: how
often, how many seconds were saved, how many were spent. They enter no key and no artifact.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from pathlib import Path

from compiler.errors import StoreError
from compiler.store import files
from compiler.store.canonical import JsonObject, JsonValue, from_text, to_text
from compiler.store.digest import digest_of
from compiler.store.lock import held

_logger = logging.getLogger("tilewright.store")


class EventKind(Enum):
    """What can go wrong around a result without making it wrong."""

    DAMAGED = "damaged"
    """A file of the store was not what it should be; it was set aside."""
    CONFLICT = "conflict"
    """Equal keys gave different bytes: a stage is not deterministic."""
    UNUSABLE = "unusable"
    """The store could not be read or written; the result was computed and not kept."""
    REMOTE = "remote"
    """The remote store could not be read or written, or held something damaged."""
    EDITED = "edited"
    """The code of a stage was edited after this process began; its results are neither reused nor kept."""
    UNLOCKED = "unlocked"
    """Another process took too long over the same key, so this one computed it too."""
    WORKER = "worker"
    """A worker died, or could not do what it was given; whoever wanted the result computed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One event.

    Args:
        kind: what happened.
        subject: the stage or file.
        message: a sentence for a person.
    """

    kind: EventKind
    subject: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Counts of one stage.

    Args:
        hits: runs that were reused.
        misses: runs that were computed and kept, or should have been.
        repairs: runs that were computed again because an object was missing or damaged.
        bypassed: runs that were computed without the store.
        lost: runs that a worker was given and did not finish: nobody wanted them any more, or it died.
        saved_microseconds: time that the reused runs had taken.
        spent_microseconds: time that the computed runs took.
    """

    hits: int = 0
    misses: int = 0
    repairs: int = 0
    bypassed: int = 0
    lost: int = 0
    saved_microseconds: int = 0
    spent_microseconds: int = 0

    def __add__(self, other: "Counts") -> "Counts":
        """Both together."""
        return Counts(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(Counts)})

    @property
    def begun(self) -> int:
        """Runs that were begun, whether or not anybody took their result."""
        return self.misses + self.repairs + self.bypassed + self.lost

    @property
    def hit_rate(self) -> float | None:
        """Hits among all runs; None before the first run."""
        runs = self.hits + self.misses + self.repairs + self.bypassed
        return None if runs == 0 else self.hits / runs


class Statistics:
    """Events and counts of one process. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._events: list[Event] = []
        self._warned: set[tuple[EventKind, str]] = set()
        self._counts: dict[tuple[str, str], Counts] = {}
        self._saved: dict[tuple[str, str], Counts] = {}

    @property
    def events(self) -> tuple[Event, ...]:
        """Every event so far, in order."""
        with self._lock:
            return tuple(self._events)

    @property
    def counts(self) -> Mapping[tuple[str, str], Counts]:
        """Counts by namespace and stage."""
        with self._lock:
            return dict(self._counts)

    @property
    def unsaved(self) -> Mapping[tuple[str, str], Counts]:
        """Counts by namespace and stage that are not in the store's own counts yet."""
        with self._lock:
            return {
                name: _minus(counts, self._saved.get(name, Counts())) for name, counts in self._counts.items()
            }

    def report(self, kind: EventKind, subject: str, message: str) -> None:
        """Keep an event; log a warning the first time for each kind and subject."""
        with self._lock:
            self._events.append(Event(kind=kind, subject=subject, message=message))
            first = (kind, subject) not in self._warned
            self._warned.add((kind, subject))
        if first:
            _logger.warning("%s: %s: %s", kind.value, subject, message)

    def count(self, namespace: str, stage: str, counts: Counts) -> None:
        """Add to the counts of a stage."""
        with self._lock:
            self._counts[namespace, stage] = self._counts.get((namespace, stage), Counts()) + counts

    def to_json(self) -> JsonObject:
        """Events and counts, for the process that this one works for."""
        return {
            "events": [[event.kind.value, event.subject, event.message] for event in self.events],
            "counts": _counts_to_json(self.counts),
        }

    def merge(self, told: JsonObject) -> None:
        """Add what a worker's ``to_json`` told.

        Raises:
            ValueError: it is nothing of the kind.
        """
        match told:
            case {"events": list(events), "counts": list(counts)}:
                for name, entry in _counts_from_json(counts):
                    self.count(*name, entry)
                for event in events:
                    match event:
                        case [str(kind), str(subject), str(message)]:
                            self.report(EventKind(kind), subject, message)
                        case _:
                            raise ValueError("an event has a kind, a subject and a message")
            case _:
                raise ValueError("a worker tells events and counts")

    def save(self, root: Path) -> None:
        """Add what was counted since the last time to the store's own counts.

        Raises:
            StoreError: they cannot be written.
        """
        current, new = self.counts, self.unsaved
        if not any(counts != Counts() for counts in new.values()):
            return
        try:
            with held(root / "locks" / "counts", shared=False):
                total = load_counts(root)
                for name, counts in new.items():
                    total[name] = total.get(name, Counts()) + counts
                files.publish(root, root / "counts", _counts_to_file(total), durable=False)
        except OSError as error:
            raise files.store_error(error, root) from error
        with self._lock:
            self._saved = dict(current)


def load_counts(root: Path) -> dict[tuple[str, str], Counts]:
    """The counts of all processes that saved theirs; a damaged or missing file counts as none."""
    try:
        file = files.read(root / "counts")
        return {} if file is None else dict(_counts_from_file(file))
    except (ValueError, OSError, StoreError):
        return {}


def _counts_to_json(counts: Mapping[tuple[str, str], Counts]) -> list[JsonValue]:
    return [
        [namespace, stage, {f.name: int(getattr(entry, f.name)) for f in fields(Counts)}]
        for (namespace, stage), entry in sorted(counts.items())
    ]


def _counts_to_file(counts: Mapping[tuple[str, str], Counts]) -> bytes:
    text = to_text(_counts_to_json(counts))
    return text + b"\n" + digest_of(text).encode() + b"\n"


def _counts_from_file(file: bytes) -> Iterable[tuple[tuple[str, str], Counts]]:
    text = file[:-66]
    if file[-66:] != b"\n" + digest_of(text).encode() + b"\n":
        raise ValueError("differs from its closing digest")
    rows = from_text(text)
    return _counts_from_json(rows if isinstance(rows, list) else [])


def _counts_from_json(rows: list[JsonValue]) -> Iterable[tuple[tuple[str, str], Counts]]:
    for row in rows:
        match row:
            case [str(namespace), str(stage), dict(numbers)]:
                yield (namespace, stage), _counts(numbers)
            case _:
                raise ValueError("a row has a namespace, a stage and counts")


def _counts(numbers: JsonObject) -> Counts:
    known = {f.name for f in fields(Counts)}
    return replace(
        Counts(),
        **{name: value for name, value in numbers.items() if name in known and isinstance(value, int)},
    )


def _minus(counts: Counts, earlier: Counts) -> Counts:
    return Counts(**{f.name: getattr(counts, f.name) - getattr(earlier, f.name) for f in fields(Counts)})
