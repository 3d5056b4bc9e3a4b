"""Machine code follows the source: an edited constant gives the new result, anything else the cache.

Each case runs in new processes on a copy of the package, since the cache only matters between processes.
"""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from compiler.compiled import compiled

REPOSITORY = Path(__file__).resolve().parent.parent
CALLEE = """
'''Scales.'''
from compiler.compiled import compiled

FACTOR = 3

@compiled
def scaled(value: int) -> int:
    '''Scaled.'''
    return value * FACTOR
"""
CALLER = """
from compiler.compiled import compiled
from compiler.probe.callee import scaled

@compiled(nogil=True)
def total(count: int) -> int:
    result = 0
    for index in range(count):
        result += scaled(index)
    return result
"""
RUN = """
import json, warnings
warnings.simplefilter("error")
from compiler.probe.caller import total
result = total(5)
print(json.dumps([result, sum(total.stats.cache_hits.values()), sum(total.stats.cache_misses.values())]))
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the modules that `compiled` needs, with a caller and a callee beside them."""
    root = tmp_path / "copy"
    (root / "compiler/probe").mkdir(parents=True)
    for name in ("__init__.py", "cache_home.py", "compiled.py", "errors.py", "fingerprint.py"):
        shutil.copy(REPOSITORY / "compiler" / name, root / "compiler" / name)
    (root / "compiler/probe/__init__.py").touch()
    (root / "compiler/probe/callee.py").write_text(CALLEE)
    (root / "compiler/probe/caller.py").write_text(CALLER)
    return root


def run(copy: Path, script: str = RUN, **settings: str) -> tuple[float, int, int]:
    """Result, cache hits and cache misses of a new process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    # Python itself takes an edit within one second for none when it may keep byte code.
    environment |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    environment |= {"XDG_CACHE_HOME": str(copy.parent / "cache"), **settings}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    result, hits, misses = json.loads(done.stdout)
    return result, hits, misses


@pytest.mark.slow
def test_an_edited_constant_of_a_callee_gives_the_new_result_and_no_edit_a_hit(copy: Path) -> None:
    assert run(copy) == (30, 0, 1)
    assert run(copy) == (30, 1, 0)
    (copy / "compiler/probe/callee.py").write_text(CALLEE.replace("FACTOR = 3", "FACTOR = 4"))
    assert run(copy) == (40, 0, 1)
    (copy / "compiler/probe/callee.py").write_text(CALLEE.replace("Scales.", "Multiplies."))
    assert run(copy) == (30, 1, 0)
    moved = copy.with_name("another_checkout")
    shutil.copytree(copy, moved)
    assert run(moved) == (30, 1, 0)
    entries = list((copy.parent / "cache/tilewright/numba").glob("*/*/*/*/caller.total-*.nbi"))
    assert len(entries) == 2, "one folder for each code fingerprint"


@pytest.mark.slow
def test_the_cache_is_moved_by_the_user_damaged_or_unwritable_without_harm(copy: Path) -> None:
    elsewhere = copy.parent / "elsewhere"
    assert run(copy, NUMBA_CACHE_DIR=str(elsewhere)) == (30, 0, 1)
    assert run(copy, NUMBA_CACHE_DIR=str(elsewhere)) == (30, 1, 0)
    assert not (copy.parent / "cache/tilewright/numba").exists()

    entries = sorted(elsewhere.glob("*/*/*/*/caller.total-*.nbc"))
    assert entries
    for entry in entries:
        entry.write_bytes(entry.read_bytes()[:100])
    assert run(copy, NUMBA_CACHE_DIR=str(elsewhere))[:2] == (30, 0)
    assert run(copy, NUMBA_CACHE_DIR=str(elsewhere)) == (30, 1, 0), "the damaged entry was replaced"

    (copy.parent / "file").touch()
    assert run(copy, NUMBA_CACHE_DIR=str(copy.parent / "file"))[:2] == (30, 0)
    assert not list(copy.glob("**/*.nb?")), "nothing beside the sources"


@compiled
def row_sums(table: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    sums = np.zeros(table.shape[0], np.int64)
    for row in range(table.shape[0]):
        for column in range(table.shape[1]):
            sums[row] += table[row, column]
    return sums


LARGE = np.arange(100_000)


@compiled
def from_a_global_table(index: int) -> int:
    return int(LARGE[index])


def test_machine_code_equals_the_interpreted_reference() -> None:
    table = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert row_sums(table).tolist() == row_sums.py_func(table).tolist() == [6, 22, 38]


def test_no_warning_of_numba_escapes() -> None:
    assert from_a_global_table(7) == 7


def test_checked_bounds_raise() -> None:
    @compiled(boundscheck=True)
    def first(table: npt.NDArray[np.int64]) -> int:
        return int(table[0])

    with pytest.raises(IndexError):
        first(np.zeros(0, np.int64))


TWO_TYPES = """
import json, sys, warnings
warnings.simplefilter("error")
import numpy as np
from compiler.probe.callee import scaled
stats = scaled.stats
result = scaled({"int": 5, "float": 5.5}[sys.argv[1]])
print(json.dumps([result, sum(stats.cache_hits.values()), sum(stats.cache_misses.values())]))
"""


@pytest.mark.slow
def test_an_entry_of_other_types_is_never_taken(copy: Path) -> None:
    """Two processes that compile a function for other types at once may give their entries one number."""
    cache = copy.parent / "cache"

    def entries() -> list[Path]:
        return sorted(cache.glob("**/callee.scaled-*.nbc"))

    integer, floating = (TWO_TYPES.replace("sys.argv[1]", f'"{kind}"') for kind in ("int", "float"))
    assert run(copy, integer)[0] == 15
    (first,) = entries()
    index = next(cache.glob("**/callee.scaled-*.nbi"))
    kept = first.read_bytes(), index.read_bytes()
    first.unlink()
    index.unlink()
    assert run(copy, floating)[0] == 16.5
    assert entries() == [first], "the same number"
    index.write_bytes(kept[1])  # the index of one, the code of the other
    result, hits, _ = run(copy, integer)
    assert (type(result), result, hits) == (int, 15, 0), "the other code would give 15.0"
    assert run(copy, integer) == (15, 1, 0), "and it is repaired"


@pytest.mark.slow
def test_a_damaged_index_is_replaced(copy: Path) -> None:
    assert run(copy) == (30, 0, 1)
    for damage in (b"", b"x", b"\x80\x04K\x01."):
        for index in (copy.parent / "cache").glob("**/*.nbi"):
            index.write_bytes(damage)
        assert run(copy)[:2] == (30, 0)
        assert run(copy) == (30, 1, 0)


@pytest.mark.slow
def test_processes_that_compile_at_once_agree(copy: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(run, [copy] * 4))
    assert {result for result, _, _ in results} == {30}
    assert run(copy) == (30, 1, 0)
    assert not list(copy.parent.glob("cache/**/*.tmp*"))


@pytest.mark.slow
def test_without_any_home_nothing_is_kept_and_nothing_is_said(copy: Path) -> None:
    nobody = "import pwd\ndef unknown(_):\n    raise KeyError\npwd.getpwuid = unknown\n" + RUN
    assert run(copy, nobody, XDG_CACHE_HOME="relative", HOME="")[:2] == (30, 0)
    assert run(copy, nobody, XDG_CACHE_HOME="relative", HOME="")[:2] == (30, 0)
    assert not list(copy.rglob("*.nb?"))


@pytest.mark.slow
def test_what_a_function_captures_is_never_taken_from_the_cache(copy: Path) -> None:
    (copy / "compiler/probe/made.py").write_text(
        "from compiler.compiled import compiled\n\n"
        "def made(factor):\n    @compiled\n    def scaled(value):\n        return value * factor\n\n"
        "    return scaled\n"
    )
    script = (
        "import json\nfrom compiler.probe.made import made\nthree, four = made(3), made(4)\n"
        "print(json.dumps([three(1) * 10 + four(1), sum(four.stats.cache_hits.values()), 0]))"
    )
    assert run(copy, script) == (34, 0, 0)
    assert run(copy, script) == (34, 0, 0)
    assert not list(copy.parent.glob("cache/**/made.*"))
