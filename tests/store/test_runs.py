"""Running stages through the store: what is reused, what is said about it, and what can go wrong.

CA-01 (separate accounts), CA-04 and CA-05 (keys).
"""

import dataclasses
import importlib.metadata
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from compiler.errors import DoesNotFit, InternalError, StoreError
from compiler.fingerprint import Fingerprint
from compiler.store.codec import BYTES
from compiler.store.digest import Digest, digest_of
from compiler.store.key import library_versions, stage_code
from compiler.store.result import StageResult, Status
from compiler.store.stage import Namespace, Stage
from compiler.store.statistics import EventKind, load_counts
from compiler.store.store import Access, Mode, Store
from tests.store.helpers import TABLES, Open
from tests.store.sample_search import SEARCH
from tests.store.sample_stages import (
    CALLS,
    CARELESS,
    CRASH,
    REFUSE,
    SCALE,
    SQUARE,
    SUMMARIZE,
    UNSTABLE,
    UNSTABLE_STAGE,
    square,
)
from tests.store.sample_types import (
    INT,
    INTS,
    SOURCES,
    Ints,
    NumberInputs,
    Options,
    Rounding,
    ScaleInputs,
    ScaleOptions,
)

VALUES = np.arange(6, dtype=np.int64)


def scaled(
    store: Store, options: Options | None = None, *, label: str = "", limit: int = 1000
) -> StageResult[Ints]:
    """The scale stage over fixed values."""
    artifact = store.put(VALUES, INTS)
    return store.run(
        SCALE,
        ScaleInputs(values=artifact, limit=limit),
        Options() if options is None else options,
        label=label,
    )


def test_the_second_run_reuses_the_first_without_running_anything(reopen: Open) -> None:
    with reopen() as store:
        first = scaled(store)
        assert (first.status, first.hit, first.saved_seconds) == (Status.COMPUTED, False, 0.0)
        assert first.seconds > 0
        assert first.explanation == ("no earlier run of this stage is known",)
        assert first.value().tolist() == [0, 2, 4, 6, 8, 10]
    second = scaled(reopen())
    assert (second.status, second.hit, second.seconds) == (Status.HIT, True, 0.0)
    assert second.saved_seconds == first.seconds
    assert second.explanation == ()
    assert second.value().tolist() == first.value().tolist()
    assert (second.digest, second.key) == (first.digest, first.key)
    assert second.read("value") == first.read("value")
    assert CALLS == ["scale"]
    assert not second.value().flags.writeable
    assert not first.value().flags.writeable


def each_excluded_thing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Callable[[], None]]:
    """Things about a process that enter no key, and how to change them."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    return {
        "working folder": lambda: monkeypatch.chdir(folder),
        "host": lambda: monkeypatch.setattr(socket, "gethostname", lambda: "another-host"),
        "user": lambda: monkeypatch.setenv("USER", "somebody"),
        "time": lambda: monkeypatch.setattr(time, "time", lambda: 1e9),
        "time zone": lambda: monkeypatch.setenv("TZ", "Asia/Tokyo"),
        "locale": lambda: monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8"),
        "process": lambda: monkeypatch.setattr(os, "getpid", lambda: 1),
        "log level": lambda: logging.getLogger("tilewright.store").setLevel(logging.ERROR),
    }


@pytest.mark.parametrize(
    "thing", ["working folder", "host", "user", "time", "time zone", "locale", "process", "log level"]
)
def test_what_is_excluded_from_keys_changes_neither_hits_nor_bytes(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, thing: str
) -> None:
    first = scaled(reopen())
    each_excluded_thing(monkeypatch, tmp_path)[thing]()
    second = scaled(reopen())
    assert second.hit
    assert second.read("value") == first.read("value")
    other = Store.open(tmp_path / "moved/store", sources=SOURCES, tables=TABLES)
    cold = scaled(other)
    assert not cold.hit
    assert (cold.key, cold.digest) == (first.key, first.digest)
    assert cold.read("value") == first.read("value")
    logging.getLogger("tilewright.store").setLevel(logging.NOTSET)


@pytest.mark.parametrize(
    "options",
    [Options(workers=8), Options(log_level="debug"), Options(trace=Path("trace")), Options(seed=5)],
    ids=["workers", "log level", "path", "an option of other stages"],
)
def test_options_that_decide_nothing_are_in_no_key(reopen: Open, tmp_path: Path, options: Options) -> None:
    if options.trace is not None:
        options = dataclasses.replace(options, trace=tmp_path / "trace")
    first = scaled(reopen())
    second = scaled(reopen(), options, label="another model")
    assert second.hit
    assert second.read("value") == first.read("value")
    assert scaled(reopen(mode=Mode.REFRESH), options).key == first.key


@pytest.mark.parametrize(
    ("changed", "rebuilt", "line"),
    [
        ("nothing", set[str](), ""),
        ("values", {"scale", "summarize"}, "input values "),
        ("limit", {"scale", "summarize"}, "input limit 1000 -> 5"),
        ("factor", {"scale"}, "option scale.factor 2 -> 3"),
        ("rounding", {"scale"}, "option scale.rounding DOWN -> UP"),
        ("tolerance", {"scale"}, "option scale.tolerance 0.5 -> 0.25"),
        ("seed", {"square"}, "option seed 0 -> 1"),
        ("target", {"scale"}, "table target "),
        ("library", {"scale", "summarize", "square"}, "library numpy "),
    ],
)
def test_each_part_of_the_key_rebuilds_exactly_the_stages_that_depend_on_it(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, changed: str, rebuilt: set[str], line: str
) -> None:
    def run(store: Store, change: str) -> dict[str, tuple[str, ...]]:
        values = store.put(VALUES + (change == "values"), INTS)
        inputs = ScaleInputs(values=values, limit=5 if change == "limit" else 1000)
        group = ScaleOptions(
            factor=3 if change == "factor" else 2,
            rounding=Rounding.UP if change == "rounding" else Rounding.DOWN,
            tolerance=0.25 if change == "tolerance" else 0.5,
        )
        options = Options(scale=group, seed=int(change == "seed"))
        results = (
            store.run(SCALE, inputs, options),
            store.run(SUMMARIZE, inputs, options),
            store.run(SQUARE, NumberInputs(number=3), options),
        )
        return {result.record.stage: result.explanation for result in results if not result.hit}

    assert set(run(reopen(), "nothing")) == {"scale", "summarize", "square"}
    tables = {"target": digest_of(b"edited")} if changed == "target" else TABLES
    if changed == "library":
        version = importlib.metadata.version

        def other_version(name: str) -> str:
            return "0.0" if name == "numpy" else version(name)

        monkeypatch.setattr(importlib.metadata, "version", other_version)
        library_versions.cache_clear()
    try:
        again = run(reopen(tables=tables), changed)
    finally:
        monkeypatch.undo()
        library_versions.cache_clear()
    assert set(again) == rebuilt
    for explanation in again.values():
        assert len(explanation) == 1, explanation
        assert explanation[0].startswith(line)


def test_an_output_with_equal_bytes_leaves_what_follows_valid(store: Store) -> None:
    """Early cutoff: the consumer is keyed by content and not by how the content came about."""

    def chain(options: Options) -> tuple[bool, bool]:
        first = scaled(store, options, limit=0)
        second = store.run(SUMMARIZE, ScaleInputs(values=first), options)
        return first.hit, second.hit

    assert chain(Options()) == (False, False)
    assert chain(Options(scale=ScaleOptions(factor=7))) == (False, True)


def test_a_consumer_of_one_output_does_not_depend_on_the_others(store: Store) -> None:
    inputs = ScaleInputs(values=store.put(VALUES, INTS))
    whole = store.run(SUMMARIZE, inputs, Options())
    assert [output.name for output in whole.record.outputs] == ["total", "parts"]
    assert whole.value().total == 15
    assert INT.decode(whole.read("total")) == 15
    part = whole.part("parts", INTS)
    assert part.value().tolist() == VALUES.tolist()
    assert part.digest == store.put(VALUES, INTS).digest
    assert store.run(SUMMARIZE, ScaleInputs(values=part), Options()).hit
    with pytest.raises(KeyError, match="has no output 'nothing'"):
        whole.part("nothing", BYTES)


def test_a_failure_is_kept_and_raised_again_with_equal_text(reopen: Open) -> None:
    texts: list[str] = []
    for _ in range(2):
        with pytest.raises(DoesNotFit) as raised:
            reopen().run(REFUSE, NumberInputs(number=10), Options())
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
    assert CALLS == ["refuse"]
    attempt = reopen().attempt(REFUSE, NumberInputs(number=10), Options())
    assert attempt.hit
    assert str(attempt.failure) == texts[0]
    with pytest.raises(DoesNotFit):
        attempt.value()
    assert reopen().run(REFUSE, NumberInputs(number=9), Options()).value() == 9


def test_a_bug_is_not_kept(store: Store) -> None:
    for _ in range(2):
        with pytest.raises(InternalError):
            store.run(CRASH, NumberInputs(number=1), Options())
    assert CALLS == ["crash", "crash"]
    assert not list(store.records.walk())


def test_a_stage_cannot_read_an_option_that_it_did_not_declare(store: Store) -> None:
    with pytest.raises(InternalError, match="option scale is read and not declared"):
        store.run(CARELESS, NumberInputs(number=1), Options())


def test_options_may_be_a_mapping_and_must_be_there(store: Store) -> None:
    options = {"scale": {"factor": 2, "rounding": Rounding.DOWN, "tolerance": 0.5}, "seed": 0, "other": [1]}
    result = store.run(SQUARE, NumberInputs(number=3), _Traceless(options))  # pyright: ignore[reportArgumentType]  # any options with the declared members
    assert result.value() == 9
    with pytest.raises(InternalError, match="option seed is declared and does not exist"):
        store.run(SQUARE, NumberInputs(number=3), {})  # pyright: ignore[reportArgumentType]  # on purpose
    with pytest.raises(InternalError, match="the digest of table target is missing"):
        scaled(Store.open(store.root, sources=SOURCES))


class _Traceless(dict[str, object]):
    """A mapping that also has the options which decide nothing."""

    def __init__(self, options: dict[str, object]) -> None:
        super().__init__({**options, "trace": None, "workers": 1, "log_level": "info"})


@pytest.mark.parametrize("damage", ["flip", "cut", "gone", "folder"])
@pytest.mark.parametrize("moment", ["before the run", "after the run"])
def test_a_lost_object_is_computed_again_and_written_back(reopen: Open, damage: str, moment: str) -> None:
    store = reopen()
    expected = scaled(store).read("value")
    path = store.objects.path(digest_of(expected))
    store = reopen()
    result = None if moment == "before the run" else scaled(store)
    match damage:
        case "flip":
            path.write_bytes(path.read_bytes()[:-1] + b"\0")
        case "cut":
            path.write_bytes(path.read_bytes()[:20])
        case "gone":
            path.unlink()
        case _:
            path.unlink()
            path.mkdir()
    result = scaled(store) if result is None else result
    assert result.read("value") == expected
    assert CALLS == ["scale", "scale"]
    assert scaled(reopen()).read("value") == expected
    assert CALLS == ["scale", "scale"], "the repair was written back"
    damaged = [event for event in store.statistics.events if event.kind is EventKind.DAMAGED]
    assert len(damaged) == (damage != "gone")


def test_a_damaged_record_is_a_miss(reopen: Open) -> None:
    store = reopen()
    key = scaled(store).key
    path = store.records.path(Namespace.STAGE, key)
    path.write_bytes(path.read_bytes()[:-2])
    again = scaled(store)
    assert again.status is Status.COMPUTED
    assert again.explanation == ("nothing changed, and the earlier result is not there any more",)
    assert [event.kind for event in store.statistics.events] == [EventKind.DAMAGED]
    assert scaled(store).hit


def test_other_bytes_under_one_key_are_reported_with_their_place(reopen: Open) -> None:
    UNSTABLE[:] = [1, 1, 258]
    inputs = NumberInputs(number=3)
    kept = reopen().run(UNSTABLE_STAGE, inputs, Options())
    reopen(mode=Mode.VERIFY).run(UNSTABLE_STAGE, inputs, Options())
    store = reopen(mode=Mode.VERIFY, strict=False)
    found = store.run(UNSTABLE_STAGE, inputs, Options())
    assert found.digest == kept.digest, "the first result stays"
    assert found.value().tolist() == [1, 1, 1]
    (event,) = store.statistics.events
    assert event.kind is EventKind.CONFLICT
    assert event.subject == "unstable"
    offset = len(kept.read("value")) - 24
    assert event.message == (
        f"two runs under key {kept.key} gave different bytes: "
        f"output value, byte {offset} (column 'values', element 0): 0x01 and 0x02"
    )
    UNSTABLE[:] = [3]
    with pytest.raises(InternalError, match="gave different bytes"):
        reopen(mode=Mode.VERIFY).run(UNSTABLE_STAGE, inputs, Options())
    assert reopen().run(UNSTABLE_STAGE, inputs, Options()).value().tolist() == [1, 1, 1]


def test_a_lost_object_that_comes_out_differently_is_an_error(reopen: Open) -> None:
    UNSTABLE[:] = [1, 2]
    store = reopen(strict=False)
    result = store.run(UNSTABLE_STAGE, NumberInputs(number=1), Options())
    again = store.run(UNSTABLE_STAGE, NumberInputs(number=1), Options())
    store.objects.path(result.record.outputs[0].ref.digest).unlink()
    with pytest.raises(InternalError, match="came out differently"):
        again.value()


def test_every_mode_gives_the_same_bytes(reopen: Open) -> None:
    """Disabled, cold and warm are equivalent, and only what each mode says is read or written."""
    expected = scaled(reopen(mode=Mode.OFF)).read("value")
    root = reopen(mode=Mode.OFF).root
    assert not root.exists()
    off = scaled(reopen(mode=Mode.OFF))
    assert off.status is Status.BYPASSED
    assert off.value().tolist() == (VALUES * 2).tolist()
    assert off.read("value") == expected
    modes = (Mode.USE, Mode.USE, Mode.REFRESH, Mode.VERIFY)
    results = [scaled(reopen(mode=mode)) for mode in modes]
    assert [result.read("value") for result in results] == [expected] * 4
    assert [result.hit for result in results] == [False, True, False, False]
    assert results[2].explanation == ("computed again, since the store is opened to refresh",)
    assert {result.digest for result in results} == {off.digest}
    assert CALLS == ["scale"] * 5


def test_a_read_only_store_is_used_and_never_changed(reopen: Open) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        reopen(access=Access.READ_ONLY)
    scaled(reopen())
    store = reopen(access=Access.READ_ONLY)
    before = {path: path.stat().st_mtime_ns for path in store.root.rglob("*")}
    with store:
        assert scaled(store).hit
        other = scaled(store, limit=3)
        assert other.status is Status.COMPUTED
        assert other.value().tolist() == [0, 2, 3, 3, 3, 3]
        assert other.value() is other.value()
        assert other.read("value")
    assert {path: path.stat().st_mtime_ns for path in store.root.rglob("*")} == before
    assert CALLS == ["scale", "scale"]


def test_results_of_edited_code_are_neither_read_nor_written(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    scaled(reopen())
    store = reopen(strict=False)
    monkeypatch.setattr("compiler.store.store.LOADED_AT_NANOSECONDS", 0)
    result = scaled(store)
    assert result.status is Status.BYPASSED
    assert result.value().tolist() == (VALUES * 2).tolist()
    event = store.statistics.events[0]
    assert event.kind is EventKind.EDITED
    assert "tests/store/sample_stages.py" in event.message


def test_a_hit_runs_nothing_and_a_lost_inner_record_does_not_matter(reopen: Open) -> None:
    first = reopen().run(SEARCH, NumberInputs(number=5), Options())
    assert first.value() == 0 + 1 + 4
    assert CALLS == ["square", "refuse"] * 3
    assert [run.request["stage"] for run in first.record.consumed] == ["square", "refuse"] * 3
    store = reopen()
    for run in first.record.consumed[:2]:
        store.records.path(Namespace(run.request["namespace"]), run.key).unlink()
    second = store.run(SEARCH, NumberInputs(number=5), Options())
    assert second.hit
    assert len(CALLS) == 6


def test_another_inner_result_runs_the_outer_stage_again(reopen: Open) -> None:
    store = reopen()
    first = store.run(SEARCH, NumberInputs(number=2), Options())
    inner = store.run(SQUARE, NumberInputs(number=1), Options())
    other = store.run(SQUARE, NumberInputs(number=7), Options())
    store.records.publish(dataclasses.replace(inner.record, outputs=other.record.outputs))
    second = store.run(SEARCH, NumberInputs(number=2), Options())
    assert second.status is Status.COMPUTED
    assert second.explanation == ("consumed stage square gives another result",)
    assert second.key == first.key
    assert second.value() == 49
    assert store.statistics.events == (), "a result that rests on others is no contradiction"
    assert store.run(SEARCH, NumberInputs(number=2), Options()).hit


def test_an_option_that_the_inner_stage_reads_has_to_be_declared_by_the_outer(store: Store) -> None:
    undeclared = dataclasses.replace(SEARCH, reads=())
    with pytest.raises(InternalError, match="option seed is read and not declared"):
        store.run(undeclared, NumberInputs(number=2), Options())


def test_what_rests_on_edited_code_is_not_kept(reopen: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store = reopen(strict=False)
    outer = {name for name, _ in stage_code(SEARCH, SOURCES).files}
    assert "tests/store/sample_stages.py" not in outer, "the inner code is not the outer's"

    def edited_since(code: Fingerprint, _nanoseconds: int) -> tuple[str, ...]:
        return ("x.py",) if code.module.endswith("sample_stages") else ()

    monkeypatch.setattr(Fingerprint, "edited_since", edited_since)
    result = store.run(SEARCH, NumberInputs(number=2), Options())
    assert result.status is Status.BYPASSED
    assert result.value() == 1
    assert not list(store.records.walk())


def test_the_code_component_of_the_key_is_the_stages_code_version(store: Store) -> None:
    code = stage_code(SCALE, SOURCES)
    assert scaled(store).record.document["code"] == {
        "fingerprint": code.digest,
        "modules": dict(code.files),
    }
    names = [name for name, _ in code.files]
    assert "tests/store/sample_types.py" in names
    assert "compiler/store/container.py" in names, "codecs decide bytes"
    assert "compiler/store/collect.py" not in names, "repairing the collector rebuilds nothing"


def test_plain_inputs_stay_small_and_have_an_encoding(store: Store) -> None:
    values = store.put(VALUES, INTS)
    with pytest.raises(ValueError, match=r"plain inputs and options of stage scale take \d+ bytes; pass"):
        store.run(SCALE, ScaleInputs(values=values, shape=tuple(range(20000))), Options())
    with pytest.raises(TypeError, match=r"value\[0\] is a list"):
        store.run(SCALE, ScaleInputs(values=values, shape=([],)), Options())  # pyright: ignore[reportArgumentType]  # on purpose
    with pytest.raises(TypeError, match="takes ScaleInputs, not NumberInputs"):
        store.run(SCALE, NumberInputs(number=1), Options())  # pyright: ignore[reportArgumentType]  # on purpose


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"name": "Bad name"}, "is not a stage name"),
        ({"function": None}, "needs exactly one of function and calling"),
        ({"function": len}, "is not a module-level function"),
        ({"inputs": int}, "is not a frozen dataclass"),
        ({"reads": ("a..b",)}, "is not the path of an option"),
        ({"reads": ("scale", "scale.factor")}, "is named twice"),
    ],
)
def test_a_declaration_that_no_key_could_cover_is_refused(change: dict[str, object], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        dataclasses.replace(SQUARE, **change)


def test_a_stage_whose_module_does_not_import_its_code_is_refused(store: Store) -> None:
    stray = Stage(
        name="stray",
        module="compiler.store.digest",
        format=1,
        inputs=NumberInputs,
        outputs=SQUARE.outputs,
        function=square,
    )
    with pytest.raises(InternalError, match=r"runs code of tests\.store\.sample_stages.* does not import"):
        store.run(stray, NumberInputs(number=1), Options())


def test_counts_are_kept_for_each_namespace_and_across_processes(reopen: Open) -> None:
    for _ in range(3):
        with reopen() as store:
            scaled(store)
            store.run(SQUARE, NumberInputs(number=2), Options())
            store.run(SQUARE, NumberInputs(number=2), Options())
    counts = load_counts(reopen().root)
    assert (counts["stage", "scale"].hits, counts["stage", "scale"].misses) == (2, 1)
    assert (counts["kernel", "square"].hits, counts["kernel", "square"].misses) == (5, 1)
    assert counts["stage", "scale"].hit_rate == pytest.approx(2 / 3)
    assert counts["stage", "scale"].saved_microseconds == 2 * counts["stage", "scale"].spent_microseconds


def test_a_warning_is_logged_once_and_every_event_counted(
    reopen: Open, caplog: pytest.LogCaptureFixture
) -> None:
    store = reopen(strict=False)
    ref = store.objects.put(b"content")
    for _ in range(2):
        store.objects.path(ref.digest).write_bytes(b"x")
        store.objects.get(ref)
    assert len(store.statistics.events) == 2
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_an_artifact_is_known_by_its_content(store: Store) -> None:
    first, second = store.put(VALUES, INTS), store.put(VALUES.copy(), INTS)
    assert first.digest == second.digest
    assert first.value().tolist() == VALUES.tolist()
    store.objects.path(Digest(first.digest)).unlink()
    with pytest.raises(StoreError, match=f"object {first.digest} is gone"):
        first.value()


SEEDS = """
import sys
from pathlib import Path
import numpy as np
from compiler.store.store import Store
from tests.store.helpers import TABLES
from tests.store.sample_stages import SCALE, SQUARE
from tests.store.sample_types import INTS, SOURCES, Options, ScaleInputs
with Store.open(Path(sys.argv[1]), sources=SOURCES, tables=TABLES, strict=True) as store:
    inputs = ScaleInputs(values=store.put(np.arange(6), INTS))
    result = store.run(SCALE, inputs, Options(workers=int(sys.argv[2])))
    print(result.key, result.digest, result.hit)
"""


def test_keys_and_bytes_are_equal_in_every_process(tmp_path: Path) -> None:
    """Other hash seeds, workers, time zones, locales, folders: in an empty store and in a full one."""

    def built(root: Path, seed: str, workers: str, folder: Path) -> list[str]:
        folder.mkdir(exist_ok=True)
        done = subprocess.run(
            [sys.executable, "-c", SEEDS, str(root), workers],
            cwd=folder,
            env={
                **os.environ,
                "PYTHONHASHSEED": seed,
                "PYTHONPATH": str(SOURCES.root),
                "LC_ALL": "C" if seed == "0" else "C.UTF-8",
                "TZ": "UTC" if seed == "0" else "America/New_York",
            },
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    first = built(tmp_path / "one", "0", "1", tmp_path / "a")
    assert first[2] == "False"
    assert built(tmp_path / "two", "1", "8", tmp_path / "b") == first
    assert built(tmp_path / "one", "4711", "8", tmp_path / "b") == [*first[:2], "True"]


def test_threads_that_ask_for_one_missing_key_compute_it_once(reopen: Open, tmp_path: Path) -> None:
    store = reopen()
    options = Options(trace=tmp_path / "trace")

    def ask(number: int) -> int:
        return store.run(SQUARE, NumberInputs(number=number), options).value()

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(ask, [5] * 8))
    assert found == [25] * 8
    assert CALLS == ["square"]
    assert store.statistics.counts["kernel", "square"].hits == 7
