"""``tilewright diff``: packages, recipes and last builds against each other."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from compiler.report.difference import Difference
from compiler.report.plain import report_of_json
from pipeline.cli import main
from tests.report.builds import Small, small_builds


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> tuple[Small, Small]:
    """For four tiles and for two."""
    found = small_builds(tmp_path_factory)
    return found["wide"], found["narrow"]


def told(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed."""
    assert main(["diff", *words]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def test_a_package_and_itself(builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]) -> None:
    path = str(builds[0].package)
    assert told([path, path], capsys) == (
        "wide.ipuexe -> wide.ipuexe; compared: recipes, packages\nnothing differs\n"
    )


def test_packages(builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]) -> None:
    """From the files, without a store; every line says both numbers, unit, kind and change."""
    words = [str(small.package) for small in builds]
    lines = told(words, capsys).splitlines()
    assert lines[0] == "wide.ipuexe -> narrow.ipuexe; compared: recipes, packages"
    assert "  input x f16, tiles: 4 -> 2 tiles (measured), -2" in lines
    headings = [line for line in lines[1:] if not line.startswith(" ")]
    assert headings == [
        name for name in ("choices", "memory", "residency", "exchanges", "code") if name in headings
    ]
    data = told([*words, "--json"], capsys)
    assert data.count("\n") == 1
    assert sorted(json.loads(data)) == [
        "after",
        "before",
        "choices",
        "code",
        "cycles",
        "memory",
        "nodes",
        "phases",
        "tensors",
    ]
    assert report_of_json(Difference, data).before == "wide.ipuexe"


def test_last_builds(builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]) -> None:
    """By name: cycles by kind and by graph node as well."""
    lines = told(["wide", "narrow", "--store", str(builds[0].root)], capsys).splitlines()
    assert lines[0] == "wide -> narrow; compared: recipes, packages, schedules and memory"
    for kind in ("estimated", "scheduled", "simulated"):
        assert [
            line for line in lines if line.startswith(f"  a run, {kind}: ") and f"cycles ({kind})" in line
        ]
    assert "cycles by graph node (compute, exchange, overhead, idle; scheduled)" in lines
    assert [line for line in lines if line.startswith("  first.product: ")]


def test_a_recipe_against_a_package(builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str]) -> None:
    wide, narrow = builds
    recipe = wide.package.with_suffix(".recipe.json")
    assert told([str(recipe), str(wide.package)], capsys) == (
        "wide.recipe.json -> wide.ipuexe; compared: recipes\nnothing differs\n"
    )
    lines = told([str(recipe), str(narrow.package)], capsys).splitlines()
    assert lines[0] == "wide.recipe.json -> narrow.ipuexe; compared: recipes"


def test_sides_that_do_not_exist(
    builds: tuple[Small, Small], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    wide, _ = builds
    bad = tmp_path / "bad.ipuexe"
    bad.write_bytes(wide.package.read_bytes()[:500])
    for other, message in (
        (bad, "invalid package (read package): bad.ipuexe"),
        (tmp_path / "none.ipuexe", "invalid input (read package): "),
        (tmp_path / "none.recipe.json", "invalid input (diff): "),
        ("nothing", "invalid input (last build): nothing: the store knows no build of it."),
    ):
        assert main(["diff", str(wide.package), str(other), "--store", str(wide.root)]) == 1
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(message)
