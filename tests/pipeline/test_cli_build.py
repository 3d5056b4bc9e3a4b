"""``tilewright build``: the same package with and without Dagster, and failures in their own words."""

from pathlib import Path

import pytest

from compiler.models import programs
from compiler.package.format import load
from compiler.package.host import read_layout
from pipeline.cli import main
from pipeline.home import VARIABLE
from tests.stages.builds import SMALL, TOO_LARGE


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two small models, and a home of their own."""
    monkeypatch.setattr(programs, "PROGRAMS", {model.name: model for model in (SMALL, TOO_LARGE)})
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_a_package_and_its_descriptions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Cold and direct, then warm with Dagster: equal files, and a line with simulated cycles."""
    assert main(["build", "small", "--store", "store"]) == 0
    cold = capsys.readouterr()
    assert cold.err == ""
    lines = cold.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "expansion",
        "final_placement",
        "emission",
        "simulation",
        "small",
    ]
    assert lines[-1].startswith("small: run 1: ")
    assert " cycles (simulated); run 2: " in lines[-1]
    assert lines[-1].endswith(" bytes (measured) in small.ipuexe")
    assert (
        main(["build", "small", "--store", "store", "--dagster", "--output", str(tmp_path / "out.ipuexe")])
        == 0
    )
    warm = capsys.readouterr()
    assert warm.err == ""
    assert warm.out.splitlines()[-1].partition(" in ")[0] == lines[-1].partition(" in ")[0]
    assert all("Reused, which saved" in line for line in warm.out.splitlines()[:-1])
    assert (tmp_path / "out.ipuexe").read_bytes() == (tmp_path / "small.ipuexe").read_bytes()
    application = load(tmp_path / "small.ipuexe")
    described = {
        path.name: read_layout(path.read_text(), name=path.name) for path in tmp_path.glob("*.host.json")
    }
    tensors = (*application.inputs, *application.weights, application.outputs[0])
    assert set(described) == {f"{binding.name}.host.json" for binding in tensors}


@pytest.mark.parametrize("how", [(), ("--dagster",)])
def test_a_failure_is_told_once_in_its_own_words(
    how: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit status 1, no traceback, no file."""
    assert main(["build", "too-large", "--store", "store", *how]) == 1
    told = capsys.readouterr()
    assert told.err == (
        "does not fit (placement): tile 0 (and 1 more tiles alike): what lives at step 1 needs more than is "
        "free in SRAM, however it is placed.\n"
        "  SRAM at step 1: 1,288,320 bytes (bound), limit 588,064, 700,256 too many\n"
        "  graph nodes: skeleton\n"
        "  next: split the operations named above over more tiles, or lower their precision\n"
    )
    assert [line.partition(":")[0] for line in told.out.splitlines()] == ["expansion"]
    assert not list(tmp_path.glob("*.ipuexe")) + list(tmp_path.glob("*.json"))


@pytest.mark.parametrize("how", [(), ("--dagster",)])
def test_a_package_that_computes_something_else_is_not_written(
    how: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    def other(found: object, wanted: object) -> str:  # noqa: ARG001  # the signature of what it stands for
        return "an element differs"

    monkeypatch.setattr("compiler.evaluation.stage_simulation._difference", other)
    assert main(["build", "small", "--store", "store", *how]) == 1
    told = capsys.readouterr().err
    differences = "run 1, output y: an element differs; run 2, output y: an element differs"
    assert told == (
        f"check numerics_equal of small/simulation failed: {differences}\n"
        if how
        else "internal error, please report it (simulation): small: the package computes something else than "
        f"its program: {differences}.\n  next: report the model and the options\n"
    )
    assert not list(tmp_path.glob("*.ipuexe"))


def test_models_that_cannot_be_built_yet_are_told_from_those_that_do_not_exist(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By name or by file, a model that exists is called one."""
    (tmp_path / "mine.graph").write_text("graph mine\ninput x: F16[2]\ny: F16[2] = softmax(x)\noutput y\n")
    (tmp_path / "bare.graph").write_text("graph bare\ninput x: F16[2]\noutput x\n")
    for place, reason in (
        ("siglip-mlp", "the planner has no constructor for gemm, gelu"),
        ("mine.graph", "the planner has no constructor for softmax"),
        ("./bare.graph", "there is no planner for graphs"),
    ):
        assert main(["build", place]) == 1
        told = capsys.readouterr()
        assert told.out == ""
        assert told.err == (
            f"unsupported (build): {place}: the model exists, and this version cannot build it: {reason}.\n"
            "  next: look at it with tilewright models show; what can be built is small, too-large\n"
        )
    (tmp_path / "wrong.graph").write_text("graph wrong\n")
    messages = {
        "huge": (
            "invalid input (models): huge: there is no model of this name.\n"
            "  next: list the names with: tilewright models\n"
        ),
        "siglip-mpl": (
            "invalid input (models): siglip-mpl: there is no model of this name.\n"
            "  next: perhaps siglip-mlp or siglip-mlp-x3 or siglip-mlp-f8\n"
        ),
        "wrong.graph": (
            "invalid model (graph): wrong: wrong: it has no output.\n"
            "  next: correct the model where it says so\n"
        ),
    }
    for place, message in messages.items():
        assert main(["build", place]) == 1
        assert capsys.readouterr().err == message


def test_wrong_words_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["build", "small", "--dagster", "--cache", "off"]) == 1
    assert capsys.readouterr().err == (
        "invalid input (build): --dagster --cache off: assets leave their results in the store, and it is "
        "off.\n"
        "  next: leave one of the two out\n"
    )
    with pytest.raises(SystemExit) as wrong:
        main(["build", "small", "--workers", "none"])
    assert wrong.value.code == 2


@pytest.mark.parametrize(
    ("place", "reason"), [(".", "it is a folder"), ("missing/a.ipuexe", "its folder does not exist")]
)
def test_a_package_that_cannot_be_written_is_refused_before_any_work(
    place: str, reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / place
    assert main(["build", "small", "--store", str(tmp_path / "store"), "--output", str(path)]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        f"invalid input (build): {path}: the package cannot be written: {reason}.\n"
        "  next: name a file in a folder that exists and can be written\n"
    )
    assert not (tmp_path / "store").exists()
