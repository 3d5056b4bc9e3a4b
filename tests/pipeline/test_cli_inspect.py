"""``tilewright inspect``: a package from its file alone, and files that are none."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from compiler.report.package import overview_of, phases_of, symbols_of
from pipeline.cli import main
from tests.report.builds import Small, small_builds


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Small:
    """A build for four tiles."""
    return small_builds(tmp_path_factory)["wide"]


def inspected(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed."""
    assert main(["inspect", *words]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    return told.out


def test_the_overview(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    """Every number says its kind, by itself or in the heading of its list."""
    lines = inspected([str(small.package)], capsys).splitlines()
    overview = overview_of(small.application, small.package.stat().st_size)
    assert lines[0] == (
        f"wide.ipuexe: for ipu21, written by {overview.compiler_version}; "
        f"file: {overview.file.value:,} bytes (measured)"
    )
    assert "  tiles with work: 4 tiles (measured)" in lines
    assert "  calls: initialize, run" in lines
    assert "content (measured)" in lines
    assert any(line.endswith("input x f16 [4, 64] on 4 tiles, at most 128 on one") for line in lines)


def test_a_tile_with_its_rows(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    text = inspected([str(small.package), "--tile", "0", "--phases"], capsys)
    assert "tile 0: starts at 0x4c010; initialized: " in text
    assert "bytes  input x, set by nobody before the host or a run" in text
    assert "gemm." in text
    assert "program of tile 0\n.supervisor\n" in text
    for phase in phases_of(small.application):
        assert f"phase {phase.number}: horizon: {phase.horizon.value:,} events (scheduled)" in text
    assert "    [0," in text


def test_functions(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    text = inspected([str(small.package), "--symbols"], capsys)
    assert all(symbol.name in text for symbol in symbols_of(small.application))


def test_the_same_as_json(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    text = inspected([str(small.package), "--tile", "0", "--phases", "--symbols", "--json"], capsys)
    assert text.count("\n") == 1
    found = json.loads(text)
    assert sorted(found) == ["overview", "phases", "symbols", "tile"]
    assert found["overview"]["working_tiles"] == {
        "name": "tiles with work",
        "value": 4,
        "unit": "tiles",
        "kind": "measured",
        "limit": None,
    }
    assert len(found["phases"]) == found["overview"]["phases"]["value"]
    assert found["tile"]["tile"] == 0
    alone = json.loads(inspected([str(small.package), "--json"], capsys))
    assert sorted(alone) == ["overview"]


def test_what_is_no_package_is_refused(
    small: Small, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Cut off, empty, something else, not there: in the words of the reader, without a traceback."""
    data = small.package.read_bytes()
    for content in (data[:1000], data[:-8], b"", b"something else entirely"):
        path = tmp_path / "bad.ipuexe"
        path.write_bytes(content)
        assert main(["inspect", str(path)]) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err.startswith("invalid package (read package): bad.ipuexe")
    assert main(["inspect", str(tmp_path / "none.ipuexe")]) == 1
    assert capsys.readouterr().err.startswith("invalid input (read package): ")


def test_a_tile_that_is_not_there(small: Small, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(small.package), "--tile", "5000"]) == 1
    assert capsys.readouterr().err == (
        "invalid input (inspect): tile 5000: the package has no image for it.\n"
        "  next: give the physical number of one of the 1,472 tiles\n"
    )
