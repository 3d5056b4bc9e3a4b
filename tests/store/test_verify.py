"""Verification finds what is damaged and what comes out differently, and says what it could not check."""

import dataclasses
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from compiler.fingerprint import Sources
from compiler.store.canonical import JsonValue
from compiler.store.digest import digest_of
from compiler.store.records import Record
from compiler.store.resolve import Resolver
from compiler.store.store import Mode, Store
from compiler.store.verify import Recomputed, recompute, sample, scrub
from tests.store.helpers import Open
from tests.store.sample_search import SEARCH
from tests.store.sample_stages import (
    CALLS,
    REFUSE,
    SCALE,
    SQUARE,
    SUMMARIZE,
    UNSTABLE,
    UNSTABLE_STAGE,
)
from tests.store.sample_types import INTS, SOURCES, NumberInputs, Options, Rounding, ScaleInputs, ScaleOptions


def build(store: Store) -> None:
    """One run of every kind: artifact and plain inputs, options, several outputs, a failure, inner stages."""
    options = Options(scale=ScaleOptions(rounding=Rounding.UP, factor=3), workers=7)
    values = store.put(np.arange(5), INTS)
    scaled = store.run(SCALE, ScaleInputs(values=values, shape=(1, 2)), options)
    whole = store.run(SUMMARIZE, ScaleInputs(values=scaled), options)
    store.run(SUMMARIZE, ScaleInputs(values=whole.part("parts", INTS), limit=3), options)
    store.attempt(REFUSE, NumberInputs(number=10), options)
    store.run(SEARCH, NumberInputs(number=2), options)


def everything(store: Store) -> tuple[Record, ...]:
    """All records."""
    return sample(store, 1000, seed=0)


def test_results_are_computed_again_from_their_records_alone(reopen: Open) -> None:
    build(reopen())
    CALLS.clear()
    store = reopen()
    records = everything(store)
    found = recompute(store, records)
    assert found == Recomputed(equal=len(records), different=(), skipped=())
    assert len(records) == 9
    assert sorted({*CALLS}) == ["refuse", "scale", "square", "summarize"]


def test_a_difference_is_found_with_its_place(reopen: Open) -> None:
    store = reopen()
    UNSTABLE[:] = [4, 5]
    result = store.run(UNSTABLE_STAGE, NumberInputs(number=2), Options())
    found = recompute(store, [result.record])
    ((key, stage, difference),) = found.different
    assert (key, stage) == (result.key, "unstable")
    assert difference.endswith("(column 'values', element 0): 0x04 and 0x05")
    assert store.run(UNSTABLE_STAGE, NumberInputs(number=2), Options()).value().tolist() == [4, 4]
    UNSTABLE[:] = []
    ((_, _, crash),) = recompute(store, [result.record]).different
    assert crash == "the stage raised IndexError: pop from empty list"


def test_a_sample_depends_on_the_keys_and_the_seed_alone(reopen: Open) -> None:
    store = reopen()
    for number in range(12):
        store.run(SQUARE, NumberInputs(number=number), Options())
    first = sample(store, 5, seed=1)
    assert [record.key for record in first] == [record.key for record in sample(reopen(), 5, seed=1)]
    assert [record.key for record in first] != [record.key for record in sample(store, 5, seed=2)]
    assert len({record.key for record in everything(store)}) == 12


def with_document(record: Record, **parts: JsonValue) -> Record:
    """The record with parts of its key document replaced."""
    return dataclasses.replace(record, document={**record.document, **parts})


def test_what_cannot_be_computed_again_is_said_with_the_reason(reopen: Open) -> None:
    store = reopen()
    values = store.put(np.arange(5), INTS)
    record = store.run(SCALE, ScaleInputs(values=values), Options()).record
    foreign: JsonValue = {"value": {"$type": "os:system", "fields": {"command": "x"}}}
    unmakeable = "inputs and options cannot be made from the record"
    records = {
        "it was made with other code": with_document(record, code={"fingerprint": "x", "modules": {}}),
        "it was made with other libraries": with_document(record, libraries={}),
        "it was made with other format": with_document(record, format=0),
        "it was made with other tables": with_document(record, tables={"target": digest_of(b"old")}),
        "the stage is not there: tests.store.sample_stages declares no stage other": with_document(
            record, stage="other"
        ),
        "the stage is not there: os is not a module of compiler, tests": dataclasses.replace(
            record, module="os"
        ),
        f"{unmakeable}: os is not a module of compiler, tests": with_document(
            record, inputs={**_fields(record), "limit": foreign}
        ),
        f"{unmakeable}: the source of an artifact is that of another": with_document(
            record, inputs={**_fields(record), "values": {"artifact": digest_of(b"other")}}
        ),
    }
    for reason, changed in records.items():
        assert recompute(store, [changed]) == Recomputed(equal=0, different=(), skipped=((reason, 1),))
    store.objects.path(values.digest).unlink()
    assert recompute(store, [record]).skipped == (("an input is not there any more", 1),)


EDITED = """
from tests.store.sample_stages import SQUARE as OTHER
import dataclasses
SQUARE = dataclasses.replace(OTHER, module=__name__)
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = (", "the stage is not there: editing.stage cannot be imported: SyntaxError"),
        (
            "raise RuntimeError('half done')",
            "the stage is not there: editing.stage cannot be imported: Runtime",
        ),
        ("{stage}\nX = eval('1')", "its code cannot be followed: "),
    ],
)
def test_code_that_somebody_is_editing_spoils_no_verification(
    reopen: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    package = tmp_path / "sources/editing"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "stage.py").write_text(text.replace("{stage}", EDITED))
    monkeypatch.setattr(sys, "path", [str(tmp_path / "sources"), *sys.path])
    monkeypatch.delitem(sys.modules, "editing", raising=False)
    monkeypatch.delitem(sys.modules, "editing.stage", raising=False)
    record = reopen().run(SQUARE, NumberInputs(number=2), Options()).record
    store = reopen(sources=Sources(root=tmp_path / "sources", packages=("editing",)))
    found = recompute(store, [dataclasses.replace(record, module="editing.stage")])
    assert found.equal == 0
    assert found.skipped[0][0].startswith(reason)


def _fields(record: Record) -> Mapping[str, JsonValue]:
    inputs = record.document["inputs"]
    assert isinstance(inputs, dict)
    return inputs


@pytest.mark.parametrize(
    "reference",
    [
        "os:system",
        "subprocess:Popen",
        "compiler.store.resolve:importlib",
        "compiler.store.files:publish",
        "compiler.store.store:Store",
        "compiler.errors:StoreError",
        "compiler.store.records:Path",
        "compiler.store..records:Record",
        "compiler.store.records:Record.__init__",
        "compiler.nothing:X",
        "",
        ":",
    ],
)
def test_names_in_records_lead_to_nothing_but_values_of_this_repository(reference: str) -> None:
    resolver = Resolver(SOURCES)
    with pytest.raises(ValueError, match=r"."):
        resolver.named_class(reference)
    with pytest.raises(ValueError, match=r"."):
        resolver.codec(reference)
    with pytest.raises(ValueError, match=r"."):
        resolver.stage(reference, "scale")


def test_names_of_values_codecs_and_stages_are_found() -> None:
    resolver = Resolver(SOURCES)
    assert resolver.named_class("tests.store.sample_types:Rounding") is Rounding
    assert resolver.named_class("tests.store.sample_types:ScaleOptions") is ScaleOptions
    assert resolver.codec(INTS.reference) is INTS
    assert resolver.stage("tests.store.sample_stages", "scale") is SCALE
    assert resolver.outputs(SUMMARIZE.outputs.describe()) == SUMMARIZE.outputs
    with pytest.raises(ValueError, match="not a description of outputs"):
        resolver.outputs(None)


def test_everything_damaged_is_found_by_reading(reopen: Open) -> None:
    build(reopen(mode=Mode.USE))
    store = reopen()
    sound = scrub(store)
    assert sound.sound
    assert sound.records == 9
    assert sound.objects == len(list(store.objects.walk()))

    objects, records = list(store.objects.walk()), list(store.records.walk())
    objects[0].write_bytes(objects[1].read_bytes())
    stray = store.root / "cas/zz"
    stray.mkdir()
    (stray / "not-a-digest").write_bytes(objects[1].read_bytes())
    records[0].write_bytes(b"")
    missing = objects[2]
    missing.unlink()
    found = scrub(store)
    assert set(found.damaged) == {objects[0], records[0], stray / "not-a-digest"}
    assert not any(path.exists() for path in found.damaged)
    assert found.incomplete
    again = scrub(store)
    assert again.sound
    build(reopen())
    assert scrub(reopen()).sound
