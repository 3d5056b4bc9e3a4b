"""Checking a store: that every file is what it says, and that computing again gives the same.

``scrub`` reads everything. ``recompute`` runs stages again from their records alone: the record names the
stage's module, holds plain inputs and options, and says where artifacts are. What cannot be recomputed is
said so with the reason, never passed over: above all a record whose code is not today's, which proves nothing
about today's code.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.errors import InternalError
from compiler.fingerprint import LOADED_AT_NANOSECONDS
from compiler.store.canonical import JsonObject, JsonValue, decode, to_text
from compiler.store.codec import Outputs
from compiler.store.difference import first_difference
from compiler.store.digest import Digest, digest_of
from compiler.store.explain import differences
from compiler.store.key import code_component, library_versions, stage_code
from compiler.store.options import recorded
from compiler.store.records import Output, Record, outputs_to_json, source_outputs
from compiler.store.resolve import Resolver
from compiler.store.stage import AnyStage, Artifact
from compiler.store.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Scrubbed:
    """What reading everything found.

    Args:
        records: sound records.
        objects: sound objects.
        damaged: files that were damaged, and set aside if the store may be written.
        incomplete: keys of records that name an object which is not there.
    """

    records: int
    objects: int
    damaged: tuple[Path, ...]
    incomplete: tuple[Digest, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing was damaged. A missing object is no damage: it is computed again when needed."""
        return not self.damaged


@dataclass(frozen=True, slots=True, kw_only=True)
class Recomputed:
    """What computing records again found.

    Args:
        equal: records that came out the same.
        different: (key, stage, first difference) of those that did not.
        skipped: how many could not be computed again, by reason.
    """

    equal: int
    different: tuple[tuple[Digest, str, str], ...]
    skipped: tuple[tuple[str, int], ...]


class NotRecomputableError(Exception):
    """A record cannot be computed again; the message is the reason."""


def scrub(store: Store) -> Scrubbed:
    """Read every record and object and check all digests.

    Raises:
        StoreError: the store cannot be read.
    """
    damaged: list[Path] = []
    incomplete: list[Digest] = []
    records = objects = 0
    for path in store.objects.walk():
        if store.objects.scrub(path):
            objects += 1
        else:
            damaged.append(path)
    for path in store.records.walk():
        record = store.records.load(path)
        if record is None:
            damaged.append(path)
            continue
        records += 1
        if not all(store.objects.has(output.ref) for output in record.outputs):
            incomplete.append(record.key)
    return Scrubbed(records=records, objects=objects, damaged=tuple(damaged), incomplete=tuple(incomplete))


def sample(store: Store, count: int, *, seed: int) -> tuple[Record, ...]:
    """Some records of the store, the same for the same records and seed, spread evenly over keys."""
    found = [record for path in store.records.walk() if (record := store.records.load(path)) is not None]
    return tuple(
        sorted(found, key=lambda record: hashlib.sha256(f"{seed}:{record.key}".encode()).digest())[:count]
    )


def recompute(store: Store, records: Iterable[Record]) -> Recomputed:
    """Run the stages of ``records`` again and compare. The store is used for inputs and is not changed."""
    equal = 0
    different: list[tuple[Digest, str, str]] = []
    skipped: Counter[str] = Counter()
    for record in records:
        try:
            difference = recompute_one(store, record)
        except NotRecomputableError as reason:
            skipped[str(reason)] += 1
            continue
        if difference is None:
            equal += 1
        else:
            different.append((record.key, record.stage, difference))
    return Recomputed(equal=equal, different=tuple(different), skipped=tuple(sorted(skipped.items())))


def recompute_one(store: Store, record: Record) -> str | None:
    """Run the stage of one record again.

    Returns:
        None when the outcome is the recorded one, else where they part.

    Raises:
        NotRecomputableError: the record cannot be computed again, and why.
    """
    stage, inputs, options = remade(store, record)
    try:
        outcome = store.execute(stage, inputs, options, record.document)
    except NotRecomputableError:
        raise
    except Exception as error:  # noqa: BLE001  # whatever a stage raises now and did not raise then is a finding
        return f"the stage raised {type(error).__name__}: {error}"
    if outcome.record.digest == record.digest:
        return None
    present = {output.name: store.objects.get(output.ref) for output in record.outputs}
    return first_difference(stage, record, present, outcome.record, outcome.data)


def remade(store: Store, record: Record) -> tuple[AnyStage, object, object]:
    """Stage, inputs and options of a record's run, made again from what the record says.

    Raises:
        NotRecomputableError: they cannot be, and why.
    """
    resolver = Resolver(store.sources)
    try:
        stage = resolver.stage(record.module, record.stage)
    except ValueError as error:
        raise NotRecomputableError(f"the stage is not there: {error}") from error
    _check_current(store, stage, record)
    try:
        inputs: object = stage.inputs(**dict(_inputs(store, resolver, record)))
        options = recorded(stage, _options(resolver, record))
    except NotRecomputableError:
        raise
    except Exception as error:  # constructors of today may refuse values of then in any way
        raise NotRecomputableError(f"inputs and options cannot be made from the record: {error}") from error
    return stage, inputs, options


class _Recorded(Artifact[Any]):
    """An input that is found through what a record says of it."""

    def __init__(
        self, store: Store, digest: Digest, outputs: tuple[Output, ...], decoder: Outputs[Any]
    ) -> None:
        self._store = store
        self._digest = digest
        self._refs = {output.name: output.ref for output in outputs}
        self._outputs = outputs
        self._decoder = decoder

    @property
    def digest(self) -> Digest:
        """The recorded digest."""
        return self._digest

    def value(self) -> Any:  # noqa: ANN401  # the type is known to the stage alone
        """The decoded objects."""
        return self._decoder.join(self._read)

    def source(self) -> JsonValue:
        """As recorded."""
        return {"outputs": outputs_to_json(self._outputs), "decoder": self._decoder.describe()}

    def _read(self, name: str) -> bytes:
        data = self._store.objects.get(self._refs[name])
        if data is None:
            raise NotRecomputableError("an input is not there any more")
        return data


def _check_current(store: Store, stage: AnyStage, record: Record) -> None:
    """Only a record of today's code, format, tables and libraries says something about them."""
    try:
        code = stage_code(stage, store.sources)
    except InternalError as error:
        raise NotRecomputableError(f"its code cannot be followed: {error.message}") from error
    if code.edited_since(LOADED_AT_NANOSECONDS):
        raise NotRecomputableError("the code was edited after this process began")
    today: JsonObject = {
        **record.document,
        "format": stage.format,
        "code": code_component(code),
        "tables": {name: store.tables.get(name, "") for name in stage.tables},
        "libraries": dict(library_versions()),
    }
    changed = {str(difference.path[0]) for difference in differences(record.document, today)}
    if changed:
        raise NotRecomputableError(f"it was made with other {' and '.join(sorted(changed))}")


def _inputs(store: Store, resolver: Resolver, record: Record) -> Iterator[tuple[str, object]]:
    fields = record.document["inputs"]
    assert isinstance(fields, dict)
    for name, field in fields.items():
        match field:
            case {"artifact": str(digest)}:
                yield name, _artifact(store, resolver, Digest(digest), record.sources[name])
            case {"value": value}:
                yield name, decode(value, resolver.named_class)
            case _:
                raise ValueError(f"input {name} is neither an artifact nor a value")


def _artifact(store: Store, resolver: Resolver, digest: Digest, source: JsonValue) -> _Recorded:
    outputs = source_outputs(source)
    decoder = source["decoder"] if isinstance(source, dict) else None
    whole = digest_of(to_text({"outputs": outputs_to_json(outputs), "failure": None}))
    if digest not in {whole, *(output.ref.digest for output in outputs[:1])}:
        raise ValueError("the source of an artifact is that of another")
    if not all(store.objects.has(output.ref) for output in outputs):
        raise NotRecomputableError("an input is not there any more")
    return _Recorded(store, digest, outputs, resolver.outputs(decoder))


def _options(resolver: Resolver, record: Record) -> dict[str, object]:
    options = record.document["options"]
    assert isinstance(options, dict)
    return {path: decode(value, resolver.named_class) for path, value in options.items()}
