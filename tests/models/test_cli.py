"""``tilewright models``."""

from pathlib import Path

import pytest

from compiler.graph.parser import parse_graph
from compiler.models.registry import MODELS
from pipeline.cli import main

USER = """\
from compiler.graph.build import GraphBuilder


def tiny():
    build = GraphBuilder("tiny")
    build.output(build.gelu(build.input("x", (4,)), name="y"))
    return build.finish()
"""


@pytest.mark.parametrize("words", [["models"], ["models", "list"]])
def test_the_list_says_sizes_and_what_can_be_built(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line for line in lines[1 : len(MODELS) + 1]}
    assert list(rows) == [model.name for model in MODELS]
    for part in ("siglip-vit-27 *", "F16[1,729,588]", "F16[1,1,1152]", "428,225,600", "670.346"):
        assert part in rows["siglip-vit-27"]
    assert "*" not in rows["mlp-smoke"]
    assert "four-tiles" in lines[-1]


def test_what_is_shown_can_be_given_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["models", "show", "siglip-mlp-x3"]) == 0
    shown = capsys.readouterr().out
    assert "# 29,749,248 parameters in 59,498,496 bytes\n" in shown
    assert "# 43,374,403,584 floating-point operations of products\n" in shown
    assert parse_graph(shown, "f").name == "siglip-mlp"
    (tmp_path / "mine.graph").write_text(shown)
    assert main(["models", "show", str(tmp_path / "mine.graph")]) == 0
    assert capsys.readouterr().out == shown


def test_a_function_of_a_user(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text(USER)
    assert main(["models", "show", f"{path}:tiny", "--no-lines"]) == 0
    assert capsys.readouterr().out.endswith("graph tiny\ninput x: F16[4]\ny: F16[4] = gelu(x)\noutput y\n")
    assert main(["models", "show", str(path)]) == 1
    assert "it has no function model" in capsys.readouterr().err
    assert main(["models", "show", "tiny"]) == 1
    assert "there is no model of this name" in capsys.readouterr().err
