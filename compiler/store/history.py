"""Earlier records of a stage, for people who ask why something was computed again."""

from compiler.errors import InvalidInput
from compiler.store.canonical import JsonObject
from compiler.store.explain import differences, explain
from compiler.store.files import modified
from compiler.store.key import current_key, key_of, without_code
from compiler.store.records import Record
from compiler.store.stage import Namespace
from compiler.store.store import Store

_SHORTEST_PREFIX = 6

_MOST_SHOWN = 5
"""Labels that a message shows."""


def find_record(store: Store, prefix: str) -> Record:
    """The record whose key starts with ``prefix``.

    Raises:
        InvalidInput: no record or several records have such a key, or the prefix is too short.
        StoreError: the store cannot be read.
    """
    paths = [path for path in store.records.walk() if path.name.startswith(prefix)]
    if len(prefix) < _SHORTEST_PREFIX:
        fault = f"a key is given by at least {_SHORTEST_PREFIX} digits"
    elif not paths:
        fault = "no result in the store has this key"
    elif len(paths) > 1:
        fault = f"{len(paths)} results have keys that start so"
    else:
        record = store.records.load(paths[0])
        if record is not None:
            return record
        fault = "the result with this key is damaged and was set aside"
    raise InvalidInput(
        fault,
        stage="store explain",
        subject=prefix,
        next_step="give a key as a build or `tilewright store explain LABEL STAGE` prints it",
    )


def last_document(store: Store, stage: str, label: str) -> JsonObject:
    """The key document that a stage was last run with under a label.

    Raises:
        InvalidInput: the stage was never run under that label.
    """
    last = store.last.read(stage, label)
    if last is not None:
        return last.document
    known = sorted((entry.label, str(entry.document["stage"])) for entry in store.last.walk())
    shown = ", ".join(f"`{label} {name}`" for label, name in known[:_MOST_SHOWN])
    more = f", or another of {len(known)}" if len(known) > _MOST_SHOWN else ""
    raise InvalidInput(
        f"stage {stage} was never run under this label",
        stage="store explain",
        subject=label,
        next_step=f"give one of {shown}{more}" if known else "build something first",
    )


def nearest_record(store: Store, document: JsonObject) -> Record | None:
    """The other record of the stage that differs least from ``document``, the newest of several.

    The same question asked of other code is nearer than another question.

    Raises:
        StoreError: the store cannot be read.
    """
    best: tuple[int, int, float, str] | None = None
    nearest: Record | None = None
    for path in store.records.walk():
        record = store.records.load(path)
        if record is None or record.document["stage"] != document["stage"] or record.key == key_of(document):
            continue
        changes = differences(record.document, document)
        asked = sum(change.path[0] != "code" for change in changes)
        rank = (asked, len(changes), -modified(path), path.name)
        if best is None or rank < best:
            best, nearest = rank, record
    return nearest


def changes_inside(store: Store, record: Record) -> tuple[str, ...]:
    """Which code changed of the stages that a result rests on: stage and change, a line each, in their order.

    A stage that runs others keeps its key when only their code changes; what decides then is what they give.
    So for each run that it rests on, the result under today's code is held against the nearest one that was
    asked the same.

    Args:
        store: where the results lie.
        record: of the outer stage.

    Raises:
        StoreError: the store cannot be read.
    """
    found: dict[str, None] = {}
    known: set[str] = set()
    for run in record.consumed:
        name = str(run.request["stage"])
        if name in known:
            continue
        namespace = Namespace(run.request["namespace"])
        key = current_key(run, tables=store.tables, sources=store.sources)
        today = None if key is None else store.records.read(namespace, key)
        if today is None:
            found[f"{name}: has not been run under its present code"] = None
            known.add(name)
            continue
        other = nearest_record(store, today.document)
        if other is None or without_code(other.document) != without_code(today.document):
            continue
        known.add(name)
        for line in explain(other.document, today.document):
            found[f"{name}: {line}"] = None
    return tuple(found)
