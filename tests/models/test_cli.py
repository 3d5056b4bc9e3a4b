"""``tilewright models``."""

from pathlib import Path

import pytest

from compiler.graph.parser import parse_graph
from compiler.models.programs import PROGRAMS
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
    """Models and programs, each as what it is; figures with the kind of number that they are."""
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [*(model.name for model in MODELS), *PROGRAMS]
    rows = {line.split()[0]: line for line in lines[1 : len(names) + 1]}
    assert list(rows) == names
    for part in (
        "siglip-vit-27 *",
        " graph ",
        "F16[1,729,588]",
        "F16[1,1,1152]",
        "428,225,600",
        "670.346",
        " no ",
    ):
        assert part in rows["siglip-vit-27"]
    assert "*" not in rows["mlp-smoke"]
    assert " yes " in rows["mlp-smoke"]
    assert " yes " in rows["siglip-mlp-x3"]
    assert " no " in rows["siglip-attention"]
    assert " 0.000372 " in rows["attention-smoke"]
    for part in (" program ", "F16[6,64]", " 8,320 ", " - ", " yes "):
        assert part in rows["four-tiles"]
    assert "\n".join(lines[len(names) + 1 :]) == (
        "\n*: representative. Parameters, and GFLOP of products, two FLOP for each pair: "
        "counted (measured).\n"
        "build: what needs attention, layer_norm cannot be built; the planner has no constructor for it.\n"
        "program: written by hand in the tables of tiles; it has no graph."
    )


def test_what_is_shown_can_be_given_back(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["models", "show", "siglip-mlp-x3"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(
        "# parameters: 29,749,248 elements (measured)\n"
        "# parameters: 59,498,496 bytes (measured)\n"
        "# products: 43,374,403,584 FLOP (measured)\n"
        "# digest "
    )
    assert "cannot be built" not in shown
    assert parse_graph(shown, "f").name == "siglip-mlp"
    (tmp_path / "mine.graph").write_text(shown)
    assert main(["models", "show", str(tmp_path / "mine.graph")]) == 0
    assert capsys.readouterr().out == shown


def test_what_cannot_be_built_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "show", "attention-smoke"]) == 0
    shown = capsys.readouterr().out
    assert "# cannot be built: the planner has no constructor for attention\n" in shown


def test_a_program_is_shown_as_tables(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "show", "four-tiles"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# copy, GEMM, exchange,")
    assert "\nlow program of 4 tiles: " in shown
    assert "\noutput y [6, 64] F16\n" in shown


def test_what_a_model_prints_is_no_part_of_the_output(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """And whoever closes or replaces the streams does so for himself."""
    path = tmp_path / "loud.py"
    for extra in ("sys.stdout.close()", "sys.stdout = sys.stderr = None", "sys.stderr.close()"):
        path.write_text(f"import sys\nprint('loud')\n{USER}\n\nmodel = tiny\n{extra}\n")
        assert main(["models", "show", str(path), "--no-lines"]) == 0
        told = capsys.readouterr()
        assert told.err == "loud\n"
        assert told.out.startswith("# parameters: 0 elements (measured)\n")
        assert parse_graph(told.out, "f").name == "tiny"


def test_a_file_may_begin_with_a_byte_order_mark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "marked.py"
    path.write_bytes(b"\xef\xbb\xbf" + USER.encode())
    assert main(["models", "show", f"{path}:tiny"]) == 0
    assert "graph tiny\n" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["a" * 5000, "siglip\0", "-"])
def test_odd_names_are_no_models(place: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "show", "--", place]) == 1
    assert "there is no model of this name" in capsys.readouterr().err


def test_a_function_of_a_user(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "user.py"
    path.write_text(USER)
    assert main(["models", "show", f"{path}:tiny", "--no-lines"]) == 0
    assert capsys.readouterr().out.endswith("graph tiny\ninput x: F16[4]\ny: F16[4] = gelu(x)\noutput y\n")
    assert main(["models", "show", str(path)]) == 1
    assert "it has no function model" in capsys.readouterr().err
    assert main(["models", "show", "tiny"]) == 1
    assert "there is no model of this name" in capsys.readouterr().err
