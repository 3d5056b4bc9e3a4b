"""The code fingerprint against an independent account of what a module consists of.

Every case builds small packages in a folder of its own, so nothing depends on this repository's modules.
CA-05: these digests enter persistent keys and are cryptographic.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest

from compiler.fingerprint import REPOSITORY, Fingerprint, Sources, defines_stage, fingerprint

STAGE = "from compiler.store.stage import Stage\n"
PROGRAM = {
    "compiler/__init__.py": '"""Top."""\n',
    "compiler/store/__init__.py": "",
    "compiler/store/stage.py": "class Stage:\n    pass\n",
    "compiler/order/__init__.py": '"""Package."""\n',
    "compiler/order/stage.py": STAGE
    + "from compiler.order import sort\nfrom compiler.shared import LIMIT\nORDER = Stage()\n",
    "compiler/order/sort.py": (
        '"""Sorts."""\nimport json\n\ndef sort(x):\n    """Sort."""\n    return x  # nothing\n'
    ),
    "compiler/timing.py": STAGE
    + "from compiler.order.stage import ORDER\nimport compiler.clock\nTIMING: Stage = Stage()\n",
    "compiler/clock.py": (
        "def late():\n    if late:\n        from compiler.shared import LIMIT\n    return 5.0\n"
    ),
    "compiler/shared.py": "import os\nLIMIT = 1\n",
    "compiler/unrelated.py": "X = 1\n",
}


def write(root: Path, files: Mapping[str, str]) -> Sources:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Sources(root=root, packages=("compiler",))


@pytest.fixture
def fingerprints(tmp_path: Path) -> Callable[[Mapping[str, str]], dict[str, Fingerprint]]:
    """Fingerprints of both stages of the program with some files replaced."""

    def take(changes: Mapping[str, str]) -> dict[str, Fingerprint]:
        sources = write(tmp_path / str(len(list(tmp_path.iterdir()))), {**PROGRAM, **changes})
        return {
            "order": fingerprint("compiler.order.stage", sources=sources),
            "timing": fingerprint("compiler.timing", sources=sources),
        }

    return take


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("compiler/shared.py", "LIMIT = 1", "LIMIT = 2", {"order", "timing"}),
        ("compiler/clock.py", "5.0", "5", {"timing"}),
        ("compiler/order/sort.py", "return x", "return -x", {"order"}),
        ("compiler/order/stage.py", "Stage()", "Stage(1)", {"order"}),
        ("compiler/timing.py", "= Stage()", "= Stage(1)", {"timing"}),
        ("compiler/order/__init__.py", '"""Package."""', "Y = 1", {"order"}),
        ("compiler/__init__.py", '"""Top."""', "Y = 1", {"order", "timing"}),
        ("compiler/unrelated.py", "X = 1", "X = 2", set[str]()),
        ("compiler/order/sort.py", "# nothing", "# something", set[str]()),
        ("compiler/order/sort.py", "Sorts.", "Sorts well.", set[str]()),
        ("compiler/order/sort.py", '"""Sort."""', '"""Sort a list."""', set[str]()),
        ("compiler/order/sort.py", "def sort(x):", "def sort(\n    x,\n):", set[str]()),
        ("compiler/order/sort.py", "import json\n", 'import json\n\n"""A loose string."""\n', set[str]()),
    ],
)
def test_an_edit_changes_exactly_the_stages_that_run_the_code(
    fingerprints: Callable[[Mapping[str, str]], dict[str, Fingerprint]],
    file: str,
    old: str,
    new: str,
    changed: set[str],
) -> None:
    before = fingerprints({})
    assert old in PROGRAM[file]
    after = fingerprints({file: PROGRAM[file].replace(old, new)})
    assert {name for name in before if before[name].digest != after[name].digest} == changed
    for name in changed:
        differing = {path for path, _ in set(before[name].files) ^ set(after[name].files)}
        assert differing == {file}


def test_the_closure_is_cut_at_other_stages(
    fingerprints: Callable[[Mapping[str, str]], dict[str, Fingerprint]],
) -> None:
    taken = fingerprints({})
    assert taken["timing"].modules == (
        "compiler",
        "compiler.clock",
        "compiler.shared",
        "compiler.store",
        "compiler.store.stage",
        "compiler.timing",
    )
    assert taken["order"].modules == (
        "compiler",
        "compiler.order",
        "compiler.order.sort",
        "compiler.order.stage",
        "compiler.shared",
        "compiler.store",
        "compiler.store.stage",
    )


@pytest.mark.parametrize(
    ("statement", "fault"),
    [
        ("from compiler.order.stage import sort", "imports sort from compiler.order.stage"),
        ("import compiler.order.stage", "imports the module compiler.order.stage, which defines a stage"),
        (
            "from compiler.order import stage",
            "imports the module compiler.order.stage, which defines a stage",
        ),
        ("import compiler.missing", "imports compiler.missing, which does not exist"),
        ("from compiler.missing import x", "imports compiler.missing, which does not exist"),
        ("from .shared import LIMIT", "relative imports"),
        ("from compiler.shared import *", "star imports"),
        ("import importlib", "import importlib makes"),
        ("import importlib.util", "import importlib.util makes"),
        ("from importlib import import_module", "import_module makes"),
        ("import importlib.resources\nimportlib.import_module('compiler.shared')", "import_module makes"),
        ("__import__('compiler.shared')", "__import__ makes"),
        ("eval('1')", "eval makes"),
        ("exec('1')", "exec makes"),
        ("import runpy", "import runpy makes"),
        ("import sys\nsys.modules['x']", "sys.modules makes"),
        ("x = len.__doc__", "__doc__ makes"),
        ("from importlib.resources import files\nfiles('a' + 'b')", "must be written as a string"),
        ("from compiler.order.stage import ORDER\nORDER.function", "reads ORDER.function of a stage"),
        ("from compiler.order.stage import ORDER as x\nx.outputs.codec", "reads ORDER.outputs of a stage"),
        ("import compiler.shared\ncompiler.order.stage.sort", "uses the module compiler.order.stage"),
        ("import builtins", "import builtins makes"),
        ("from builtins import exec as run", "from builtins import exec as run makes"),
        ("__builtins__['exec']", "__builtins__ makes"),
        ("import inspect\ninspect.getsource(len)", "getsource makes"),
        ("import inspect as i\ni.getdoc(len)", "getdoc makes"),
        ("from inspect import getsource", "from inspect import getsource makes"),
        ("import sys as s", "import sys as s makes"),
        ("import sys\nsys.__dict__", "sys.__dict__ makes"),
        ("import sys\nvars(sys)", "sys as a value makes"),
        ("from sys import modules as m", "sys.modules makes"),
        ("import importlib.metadata\nx = importlib", "importlib as a value makes"),
        ("import importlib.metadata\ngetattr(importlib.metadata, 'import_module')", "'import_module') makes"),
        ("from operator import attrgetter\nattrgetter('__import__')", "attrgetter('__import__') makes"),
        ("import os\nos.__loader__.exec_module", "exec_module makes"),
        ("if x:\n  from compiler.missing import y", "imports compiler.missing, which does not exist"),
        ("x = (", "cannot be parsed: "),
        ("x = 1\n  y = 2", "cannot be parsed: unexpected indent"),
    ],
)
def test_what_would_escape_the_fingerprint_is_refused_with_its_line(
    fingerprints: Callable[[Mapping[str, str]], dict[str, Fingerprint]], statement: str, fault: str
) -> None:
    with pytest.raises(ValueError, match=rf"clock\.py:[12]: .*{re.escape(fault)}"):
        fingerprints({"compiler/clock.py": statement + "\n"})


def test_a_module_that_does_not_exist_or_is_not_ours_is_refused(tmp_path: Path) -> None:
    sources = write(tmp_path, PROGRAM)
    for module in ("compiler.nothing", "json", "os.path"):
        with pytest.raises(ValueError, match="is not a module of compiler"):
            fingerprint(module, sources=sources)


def test_data_files_of_a_package_count_for_the_modules_in_it(tmp_path: Path) -> None:
    tables = {
        "compiler/target/__init__.py": "",
        "compiler/target/memory.py": "SIZE = 1\n",
        "compiler/target/table.csv": "a,b\n",
        "compiler/target/data/deep.csv": "c\n",
        "compiler/target/.hidden": "x",
        "compiler/target/__pycache__/memory.pyc": "x",
        "compiler/target/inner/__init__.py": "",
        "compiler/target/inner/other.csv": "d\n",
        "compiler/user.py": "import compiler.target.memory\n",
        "compiler/reader.py": (
            "from importlib.resources import files\nT = files('compiler.target') / 'table.csv'\n"
        ),
    }
    sources = write(tmp_path / "a", {**PROGRAM, **tables})
    for module in ("compiler.user", "compiler.reader"):
        names = {path for path, _ in fingerprint(module, sources=sources).files}
        assert names >= {"compiler/target/table.csv", "compiler/target/data/deep.csv"}
        assert not {name for name in names if "hidden" in name or "inner" in name or "__pycache__" in name}
        for changed in ("compiler/target/table.csv", "compiler/target/data/deep.csv"):
            edited = write(tmp_path / module / changed, {**PROGRAM, **tables, changed: "new\n"})
            assert fingerprint(module, sources=sources).digest != fingerprint(module, sources=edited).digest
    assert not any(path.endswith(".csv") for path, _ in fingerprint("compiler.clock", sources=sources).files)


def test_equal_code_in_another_folder_has_an_equal_fingerprint(tmp_path: Path) -> None:
    first = fingerprint("compiler.timing", sources=write(tmp_path / "a", PROGRAM))
    second = fingerprint("compiler.timing", sources=write(tmp_path / "b/c", PROGRAM))
    assert first == second
    assert first.digest == second.digest


def test_a_file_edited_later_is_named(tmp_path: Path) -> None:
    sources = write(tmp_path, PROGRAM)
    taken = fingerprint("compiler.timing", sources=sources)
    now = time.time_ns() + 10**9
    assert taken.edited_since(now) == ()
    os.utime(tmp_path / "compiler/clock.py", ns=(now + 1, now + 1))
    (tmp_path / "compiler/shared.py").unlink()
    assert taken.edited_since(now) == ("compiler/clock.py", "compiler/shared.py")


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (b"x = '\xff'\n", "cannot be parsed: "),
        (b"# coding: no-such-code\n", "cannot be parsed: "),
        (b"x = 1\0\n", "null bytes"),
        (b"\xff\xfex\0", "cannot be parsed: "),
    ],
)
def test_bytes_that_are_no_source_are_refused_with_the_file(
    tmp_path: Path, content: bytes, fault: str
) -> None:
    sources = write(tmp_path, PROGRAM)
    (tmp_path / "compiler/clock.py").write_bytes(content)
    with pytest.raises(ValueError, match=rf"(clock\.py.*{fault})|({fault})"):
        fingerprint("compiler.timing", sources=sources)


def test_source_in_another_encoding_is_the_same_code(tmp_path: Path) -> None:
    text = "# coding: latin-1\nX = 'ü'\n"
    sources = write(tmp_path, {**PROGRAM, "compiler/clock.py": "X = 'ü'\n"})
    before = fingerprint("compiler.clock", sources=sources).digest
    other = write(tmp_path / "other", PROGRAM)
    (tmp_path / "other/compiler/clock.py").write_bytes(text.encode("latin-1"))
    assert fingerprint("compiler.clock", sources=other).digest == before


@pytest.mark.parametrize(
    "statement",
    [
        "import compiler.order\n\ndef f():\n    return compiler.order.deep.inner.g()\n",
        "import compiler.order as o\n\ndef f():\n    return o.deep.inner.g()\n",
        "from compiler import order\n\ndef f():\n    return order.deep.inner.g\n",
        "if True:\n    from compiler.order import deep as d\nx = [d.inner.g for _ in ()]\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import compiler.order.deep.inner\n",
        "try:\n    from compiler.order.deep.inner import g\nexcept ImportError:\n    g = None\n",
        "from compiler.order.deep.inner import g as decorator\n\n@decorator\ndef f():\n    pass\n",
    ],
)
def test_what_can_be_reached_counts_however_it_is_written(tmp_path: Path, statement: str) -> None:
    """Somebody else may have imported the submodule, so its attribute works without an import here."""
    deep = {
        "compiler/order/deep/__init__.py": "",
        "compiler/order/deep/inner.py": "def g():\n    return 1\n",
        "compiler/clock.py": statement,
    }
    taken = fingerprint("compiler.timing", sources=write(tmp_path / "a", {**PROGRAM, **deep}))
    assert "compiler.order.deep.inner" in taken.modules
    deep["compiler/order/deep/inner.py"] = "def g():\n    return 2\n"
    edited = fingerprint("compiler.timing", sources=write(tmp_path / "b", {**PROGRAM, **deep}))
    assert {path for path, _ in set(taken.files) ^ set(edited.files)} == {"compiler/order/deep/inner.py"}


def test_the_name_of_a_stage_may_be_read_and_the_stage_passed_on(tmp_path: Path) -> None:
    clock = "from compiler.order.stage import ORDER\nNAME = ORDER.name\nrun(ORDER)\n"
    taken = fingerprint("compiler.timing", sources=write(tmp_path, {**PROGRAM, "compiler/clock.py": clock}))
    assert "compiler.order.stage" not in taken.modules


def test_a_renamed_module_is_other_code(tmp_path: Path) -> None:
    renamed = {name: text for name, text in PROGRAM.items() if name != "compiler/clock.py"}
    renamed["compiler/watch.py"] = PROGRAM["compiler/clock.py"]
    renamed["compiler/timing.py"] = PROGRAM["compiler/timing.py"].replace("compiler.clock", "compiler.watch")
    first = fingerprint("compiler.timing", sources=write(tmp_path / "a", PROGRAM))
    second = fingerprint("compiler.timing", sources=write(tmp_path / "b", renamed))
    assert first.digest != second.digest
    assert {path for path, _ in set(first.files) - set(second.files)} == {
        "compiler/clock.py",
        "compiler/timing.py",
    }


def test_data_files_that_cannot_be_decided_are_refused_by_name(tmp_path: Path) -> None:
    def pipe(path: Path) -> None:
        os.mkfifo(path)

    def dangling(path: Path) -> None:
        path.symlink_to("nowhere")

    def loop(path: Path) -> None:
        path.symlink_to(path.parent)

    def unreadable(path: Path) -> None:
        path.write_text("x")
        path.chmod(0)

    for number, make in enumerate((pipe, dangling, loop, unreadable)):
        root = tmp_path / str(number)
        sources = write(root, PROGRAM)
        make(root / "compiler/odd.csv")
        if make is unreadable and os.access(root / "compiler/odd.csv", os.R_OK):
            continue  # this user may read everything
        with pytest.raises(ValueError, match=rf"{root}/compiler/odd\.csv: "):
            fingerprint("compiler.timing", sources=sources)


def test_a_file_that_was_moved_into_place_counts_as_edited(tmp_path: Path) -> None:
    """Its own time of change is older than the process, but it was not what the process imported."""
    sources = write(tmp_path, PROGRAM)
    new = tmp_path / "new.py"
    new.write_text("def late():\n    return 6.0\n")
    os.utime(new, (1, 1))
    time.sleep(0.02)
    began = time.time_ns()
    time.sleep(0.02)
    new.rename(tmp_path / "compiler/clock.py")
    assert fingerprint("compiler.timing", sources=sources).edited_since(began) == ("compiler/clock.py",)


@hypothesis.given(
    edges=st.sets(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14), root=st.integers(0, 6)
)
@hypothesis.settings(max_examples=40)
def test_the_closure_is_the_reachable_set(
    tmp_path_factory: pytest.TempPathFactory, edges: set[tuple[int, int]], root: int
) -> None:
    files = {"compiler/__init__.py": ""}
    for node in range(7):
        imports = [f"import compiler.m{target}\n" for source, target in sorted(edges) if source == node]
        files[f"compiler/m{node}.py"] = "".join(imports)
    sources = write(tmp_path_factory.mktemp("graph"), files)
    reachable = {root}
    for _ in range(7):
        reachable |= {target for source, target in edges if source in reachable}
    expected = {"compiler", *(f"compiler.m{node}" for node in reachable)}
    assert set(fingerprint(f"compiler.m{root}", sources=sources).modules) == expected


def test_every_module_that_stages_may_reach_can_be_fingerprinted() -> None:
    """The rules hold for the code as it is. What works on the store from outside is no code of any stage.

    That is the store itself, whose workers find stages by name, and the driver, which hands stages to it.
    """
    fingerprint("compiler.store.stage")
    for path in sorted((REPOSITORY.root / "compiler").rglob("*.py")):
        parts = path.relative_to(REPOSITORY.root).with_suffix("").parts
        if parts[:2] not in {("compiler", "store"), ("compiler", "compile")}:
            fingerprint(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def test_no_module_below_the_command_line_reads_the_environment() -> None:
    """Stages may read no environment variable; the one exception decides where caches lie."""
    for path in sorted((REPOSITORY.root / "compiler").rglob("*.py")):
        if path.name == "cache_home.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute):
                assert node.attr not in {"environ", "getenv", "environb"}, f"{path}:{node.lineno}"


def test_stages_are_found_in_the_module_body_only(tmp_path: Path) -> None:
    sources = write(
        tmp_path,
        {
            **PROGRAM,
            "compiler/generic.py": STAGE + "A = Stage[int, int](x=1)\n",
            "compiler/renamed.py": "from compiler.store.stage import Stage as S\nA: int = S()\n",
            "compiler/inner.py": STAGE + "def f():\n    a = Stage()\n",
            "compiler/other.py": "from compiler.elsewhere import Stage\nA = Stage()\n",
        },
    )
    found = {
        name
        for name in ("generic", "renamed", "inner", "other")
        if defines_stage(f"compiler.{name}", sources=sources)
    }
    assert found == {"generic", "renamed"}


READ = """
import json, sys
from compiler.fingerprint import fingerprint
code = fingerprint("compiler.store.stage")
print(json.dumps([code.digest, code.modules, code.files]))
"""


def read_in_process(checkout: Path, cache: Path) -> str:
    """The code of a module of a checkout, as a new process says it."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "XDG_CACHE_HOME": str(cache)}
    done = subprocess.run(
        [sys.executable, "-B", "-c", READ],
        env=environment,
        cwd=checkout,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_what_is_kept_of_files_changes_no_fingerprint(tmp_path: Path) -> None:
    """None is kept, it is, it is damaged, it cannot be written, and a file was edited since."""
    cache, checkout = tmp_path / "cache", tmp_path / "checkout"
    shutil.copytree(
        REPOSITORY.root / "compiler", checkout / "compiler", ignore=shutil.ignore_patterns("__pycache__")
    )
    first = read_in_process(checkout, cache)
    (kept,) = (cache / "tilewright/sources").iterdir()
    content = kept.read_bytes()
    assert read_in_process(checkout, cache) == first
    assert kept.read_bytes() == content

    # A digest that is none of the file's, under a checksum that is not its own.
    kept.write_bytes(content.replace(b'":["', b'":["0', 1))
    assert read_in_process(checkout, cache) == first
    (tmp_path / "file").touch()
    assert read_in_process(checkout, tmp_path / "file") == first

    edited = checkout / "compiler/store/stage.py"
    status = edited.stat()
    edited.write_text(edited.read_text().replace("import", "import  ", 1))
    assert read_in_process(checkout, cache) == first, "the same abstract syntax"
    edited.write_text(f"{edited.read_text()}\nADDED = 1\n")
    os.utime(edited, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert read_in_process(checkout, cache) != first, "whatever the times of the file say"
