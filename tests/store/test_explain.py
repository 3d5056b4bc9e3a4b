"""Explanations: they lack nothing of the key, they read well, and they pick the nearest earlier run."""

import copy
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import hypothesis.strategies as st
import pytest

from compiler.errors import InvalidInput
from compiler.fingerprint import REPOSITORY
from compiler.store.canonical import JsonObject, JsonValue, encode, to_text
from compiler.store.explain import Absent, Difference, differences, explain, nearest
from compiler.store.history import find_record, last_document, nearest_record
from tests.store.helpers import Open
from tests.store.sample_stages import SQUARE
from tests.store.sample_types import NumberInputs, Options, Rounding, ScaleOptions

JSON: st.SearchStrategy[JsonValue] = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["a", "b", "$float"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "c", "$enum", "$type", "fields"]), inner, max_size=3),
    ),
    max_leaves=10,
)


def applied(document: JsonValue, change: Difference) -> JsonValue:
    """The document with one difference applied, as its reader would do it by hand."""
    if not change.path:
        assert not isinstance(change.new, Absent)
        return change.new
    result: Any = copy.deepcopy(document)
    place = result
    for part in change.path[:-1]:
        place = place[part]
    if isinstance(change.new, Absent):
        del place[change.path[-1]]
    else:
        place[change.path[-1]] = change.new
    return result


@hypothesis.given(JSON, JSON)
def test_a_document_and_the_differences_give_the_other_document(old: JsonValue, new: JsonValue) -> None:
    changes = differences(old, new)
    result = old
    for change in changes:
        result = applied(result, change)
    assert to_text(result) == to_text(new)
    assert bool(changes) == (to_text(old) != to_text(new))
    assert all(str(change) for change in changes)


DOCUMENT: JsonObject = {
    "format": 1,
    "code": {
        "fingerprint": "0" * 64,
        "modules": {"compiler/exchange/order.py": "1" * 64, "compiler/a.py": "2" * 64},
    },
    "inputs": {"expansion": {"artifact": "3" * 64}, "count": {"value": 3}},
    "options": {"exchange.stream_words": 0, "scale": encode(ScaleOptions())},
    "tables": {"target": "4" * 64},
    "libraries": {"numpy": "2.4.5"},
}


def changed(**parts: JsonValue) -> JsonObject:
    """The document with parts replaced; ``a__b`` is b of a."""
    document: Any = copy.deepcopy(DOCUMENT)
    for path, value in parts.items():
        *parents, last = path.split("__")
        place = document
        for parent in parents:
            place = place[parent]
        place[last.replace("_dot_", ".")] = value
    return document


@pytest.mark.parametrize(
    ("document", "lines"),
    [
        (changed(), ()),
        (changed(format=2), ("format 1 -> 2",)),
        (
            changed(
                code={
                    "fingerprint": "9" * 64,
                    "modules": {"compiler/exchange/order.py": "8" * 64, "compiler/b.py": "2" * 64},
                }
            ),
            (
                "code: compiler/a.py (removed)",
                "code: compiler/b.py (added)",
                "code: compiler/exchange/order.py",
            ),
        ),
        (changed(options__exchange_dot_stream_words=1024), ("option exchange.stream_words 0 -> 1024",)),
        (
            changed(options__scale=encode(ScaleOptions(rounding=Rounding.UP, tolerance=0.1))),
            ("option scale.rounding DOWN -> UP", "option scale.tolerance 0.5 -> 0.1"),
        ),
        (changed(options={"scale": encode(ScaleOptions())}), ("option exchange.stream_words 0 -> absent",)),
        (
            changed(inputs__expansion={"artifact": "5" * 64}),
            ("input expansion 333333333333 -> 555555555555",),
        ),
        (changed(inputs__count={"value": "four"}), ("input count 3 -> four",)),
        (changed(tables__target="6" * 64), ("table target 444444444444 -> 666666666666",)),
        (changed(libraries__numpy="2.4.6"), ("library numpy 2.4.5 -> 2.4.6",)),
        (
            changed(inputs__count={"value": "long " * 30}),
            ("input count 3 -> 150 characters 3cb6fbe1a8d9",),
        ),
        (
            changed(inputs__count={"value": '{\n "a": 1}'}),
            ("input count 3 -> 10 characters fa919d96ce3e",),
        ),
        (changed(inputs__count={"value": ""}), ("input count 3 -> nothing",)),
    ],
)
def test_each_component_is_named_in_words(document: JsonObject, lines: tuple[str, ...]) -> None:
    assert explain(DOCUMENT, document) == lines


@hypothesis.given(st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1)), max_size=5))
def test_the_nearest_is_the_first_with_the_fewest_differences(candidates: list[dict[str, int]]) -> None:
    document: Any = {"a": 1, "b": 1, "c": 1}
    found = nearest(document, candidates)  # pyright: ignore[reportArgumentType]  # integers are JSON
    expected = min(candidates, key=lambda one: len(differences(one, document)), default=None)  # pyright: ignore[reportArgumentType]  # as above
    assert found == expected


@pytest.mark.parametrize(("old", "new"), [(True, 1), (False, 0), ([True], [1]), ({"a": 0}, {"a": False})])
def test_what_python_calls_equal_is_a_difference_when_the_key_differs(old: JsonValue, new: JsonValue) -> None:
    assert len(differences({"x": old}, {"x": new})) == 1
    assert differences({"x": old}, {"x": old}) == ()


def test_a_miss_is_explained_against_the_label_first_and_any_run_otherwise(reopen: Open) -> None:
    store = reopen()

    def why(number: int, seed: int, label: str) -> tuple[str, ...]:
        result = store.run(SQUARE, NumberInputs(number=number), Options(seed=seed), label=label)
        return result.explanation

    assert why(1, 0, "first") == ("no earlier run of this stage is known",)
    assert why(1, 1, "second") == ("option seed 0 -> 1",)
    assert why(2, 0, "first") == ("input number 1 -> 2",)
    assert why(3, 1, "third") == ("input number 1 -> 3",), "the second is nearer than the first"
    assert why(2, 0, "second") == (), "a hit, and from now on the last of this label"
    assert why(2, 3, "second") == ("option seed 0 -> 3",)


def test_earlier_results_are_found_for_a_key_and_for_a_label(reopen: Open) -> None:
    store = reopen()
    first = store.run(SQUARE, NumberInputs(number=1), Options(), label="model")
    assert nearest_record(store, first.record.document) is None
    second = store.run(SQUARE, NumberInputs(number=2), Options(seed=4), label="model")
    third = store.run(SQUARE, NumberInputs(number=2), Options(seed=5), label="model")
    assert last_document(store, "square", "model") == third.record.document
    near = nearest_record(store, third.record.document)
    assert near is not None
    assert near.key == second.key
    assert find_record(store, first.key[:12]) == first.record
    with pytest.raises(InvalidInput, match="no result in the store has this key"):
        find_record(store, "0" * 8)
    with pytest.raises(InvalidInput, match="at least 6 digits"):
        find_record(store, first.key[:5])
    with pytest.raises(InvalidInput, match="never run under this label"):
        last_document(store, "square", "other")


PARTS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Inputs:
    number: int

def plain(value: int) -> object:
    return value

def value(plain: object) -> int:
    return plain
"""
STAGE = """
from compiler.store.codec import JsonCodec, Single
from compiler.store.stage import Stage
from compiler.sample.helper import helped
from compiler.sample.parts import Inputs, plain, value

def run(inputs, options):
    return helped(inputs.number)

SAMPLE = Stage(name="sample", module=__name__, format=1, inputs=Inputs,
    outputs=Single(codec=JsonCodec(plain=plain, value=value)), function=run)
"""
OUTER = """
from compiler.sample.parts import Inputs, plain, value
from compiler.sample.stage import SAMPLE
from compiler.store.codec import JsonCodec, Single
from compiler.store.stage import Stage

def run(inputs, options, caller):
    return caller.run(SAMPLE, inputs, options).value()

SEARCH = Stage(name="search", module=__name__, format=1, inputs=Inputs,
    outputs=Single(codec=JsonCodec(plain=plain, value=value)), calling=run)
"""
SEARCHED = """
import json, sys
from pathlib import Path
from compiler.sample.outer import SEARCH
from compiler.sample.parts import Inputs
from compiler.store.history import changes_inside
from compiler.store.store import Store
with Store.open(Path(sys.argv[1]), strict=True) as store:
    store.run(SEARCH, Inputs(number=20), None)
    result = store.run(SEARCH, Inputs(number=21), None)
    print(json.dumps([result.value(), list(changes_inside(store, result.record))]))
"""
HELPER = '''"""Helps."""
FACTOR = 2

def helped(number):
    """Help."""
    return number * FACTOR  # that is all
'''
RUN = """
import json, sys
from pathlib import Path
from compiler.sample.parts import Inputs
from compiler.sample.stage import SAMPLE
from compiler.store.store import Store
with Store.open(Path(sys.argv[1]), strict=True) as store:
    result = store.run(SAMPLE, Inputs(number=21), None)
print(json.dumps([result.value(), result.hit, list(result.explanation)]))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "value", "hit"),
    [
        ("FACTOR = 2", "FACTOR = 3", 63, False),
        ("number * FACTOR", "number + FACTOR", 23, False),
        ("Help.", "Help a lot.", 42, True),
        ("# that is all", "# that is everything", 42, True),
        ("FACTOR = 2", "FACTOR  =  2\n\n", 42, True),
    ],
)
def test_an_edit_of_a_helper_is_a_miss_that_names_the_file_and_a_comment_is_a_hit(
    tmp_path: Path, old: str, new: str, value: int, *, hit: bool
) -> None:
    build = sample(tmp_path, RUN)
    assert build(HELPER)[:2] == [42, False]
    assert old in HELPER
    explanation = [] if hit else ["code: compiler/sample/helper.py"]
    assert build(HELPER.replace(old, new)) == [value, hit, explanation]


@pytest.mark.slow
@pytest.mark.parametrize(("new", "value"), [("FACTOR * number", 42), ("number + FACTOR", 23)])
def test_an_edit_behind_an_inner_stage_is_named_whether_or_not_it_gives_something_else(
    tmp_path: Path, new: str, value: int
) -> None:
    build = sample(tmp_path, SEARCHED)
    assert build(HELPER) == [42, []]
    assert build(HELPER.replace("number * FACTOR", new)) == [
        value,
        ["sample: code: compiler/sample/helper.py"],
    ]


def sample(folder: Path, script: str) -> Callable[[str], list[object]]:
    """What a script prints in a repository of three modules, when a text is the helper's."""
    source = REPOSITORY.root / "compiler"
    root = folder / "copy"
    (root / "compiler/sample").mkdir(parents=True)
    for name in ("__init__.py", "errors.py", "fingerprint.py", "cache_home.py"):
        shutil.copy(source / name, root / "compiler" / name)
    shutil.copytree(source / "store", root / "compiler/store", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "compiler/sample/__init__.py").touch()
    (root / "compiler/sample/parts.py").write_text(PARTS)
    (root / "compiler/sample/stage.py").write_text(STAGE)
    (root / "compiler/sample/outer.py").write_text(OUTER)
    helper = root / "compiler/sample/helper.py"

    def build(text: str) -> list[object]:
        helper.write_text(text)
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder / "store")],
            # Python itself takes an edit within one second for none when it may keep byte code.
            env={**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
            cwd=root,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return build


def test_opening_a_store_imports_neither_numba_nor_fsspec() -> None:
    script = (
        "import sys\nfrom compiler.store.store import Store\n"
        "from compiler.store import collect, verify, history\nimport pipeline.cli_store\n"
        "print(sorted({'numba', 'fsspec', 'llvmlite'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=REPOSITORY.root, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
