"""``tilewright build``: the same package with and without Dagster, and failures in their own words."""

import argparse
import hashlib
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.chain import MODEL_CHAIN, PROGRAM_CHAIN
from compiler.fingerprint import REPOSITORY
from compiler.models import programs
from compiler.package.format import load
from compiler.package.host import belongs, read_layout
from pipeline.build_arguments import options_of
from pipeline.cli import main
from pipeline.cli_build import add_choices, workers_of
from pipeline.cli_progress import Shown, shown
from pipeline.home import VARIABLE
from tests.stages.builds import SMALL, TOO_LARGE

MODEL_STAGES = [stage.name for stage in MODEL_CHAIN]
PROGRAM_STAGES = [stage.name for stage in PROGRAM_CHAIN]
QUICK = ("--runs", "1")

USER = """\
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Normal


def model():
    build = GraphBuilder("tiny")
    x = build.input("x", (8, 64), fill=Normal(sigma=1.0))
    weight = build.parameter("weight", (64, 32), fill=Normal(sigma=0.125))
    build.output(build.gelu(build.gemm(x, weight, name="product"), name="y"))
    return build.finish()
"""


@pytest.fixture(autouse=True)
def own_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two small models, and a home of their own."""
    monkeypatch.setattr(programs, "PROGRAMS", {model.name: model for model in (SMALL, TOO_LARGE)})
    monkeypatch.setenv(VARIABLE, str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def stages_of(printed: str) -> list[str]:
    """The stages of which a line tells what came of them, in order."""
    return re.findall(r"^(\w+): (?:computed|reused)", printed, re.MULTILINE)


def test_a_package_and_its_descriptions(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Cold and direct, then warm with Dagster: equal files, and one screen of figures with their kinds."""
    assert main(["build", "small", "--store", "store"]) == 0
    cold = capsys.readouterr()
    assert cold.err == ""
    assert stages_of(cold.out) == PROGRAM_STAGES
    summary = cold.out[cold.out.index("\nsmall\n") :].splitlines()[2:]
    assert any(line.startswith("  run 0: ") and line.endswith(" cycles (simulated)") for line in summary)
    assert summary[-1] == "  written to small.ipuexe; report: small.report.html"
    assert {path.name for path in tmp_path.glob("small.report.*")} == {
        "small.report.html",
        "small.report.json",
    }
    assert all(
        re.search(r" \((bound|estimated|scheduled|simulated|measured)\)", line) for line in summary[:-1]
    )
    assert len(cold.out.splitlines()) < 40
    assert (
        main(["build", "small", "--store", "store", "--dagster", "--output", str(tmp_path / "out.ipuexe")])
        == 0
    )
    warm = capsys.readouterr()
    assert warm.err == ""
    assert warm.out.count(": reused, ") == len(PROGRAM_STAGES)
    again = warm.out[warm.out.index("\nsmall\n") :].splitlines()[2:]
    assert again[:-3] == summary[:-2]
    assert summary[-2] == f"  reused: 0 of {len(PROGRAM_STAGES)} stages, 0.0 s (measured) saved"
    assert re.fullmatch(r"  reused: every stage, [\d.]+ s \(measured\) saved", again[-3])
    assert again[-1] == "  checks: 18 passed"
    package = (tmp_path / "small.ipuexe").read_bytes()
    assert (tmp_path / "out.ipuexe").read_bytes() == package
    application = load(tmp_path / "small.ipuexe")
    described = {path.name: path.read_text() for path in tmp_path.glob("*.host.json")}
    tensors = (*application.inputs, *application.weights, application.outputs[0])
    assert set(described) == {f"{binding.name}.host.json" for binding in tensors}
    for name, text in described.items():
        read_layout(text, name=name)
        assert belongs(text, package)
        assert not belongs(text, package[:-1])


def test_a_user_s_models_by_function_and_by_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same graph both ways; what the function's file and the text's are called makes no difference."""
    (tmp_path / "mine.py").write_text(USER)
    assert main(["build", "mine.py", "--tiles", "4", "--store", "store", *QUICK]) == 0
    first = capsys.readouterr()
    assert first.err == ""
    assert stages_of(first.out) == MODEL_STAGES
    assert main(["models", "show", "mine.py"]) == 0
    (tmp_path / "text.graph").write_text(capsys.readouterr().out)
    words = ["build", "text.graph", "--tiles", "4", "--store", "store", *QUICK, "--output", "other.ipuexe"]
    assert main(words) == 0
    assert capsys.readouterr().out.count(": reused, ") >= len(MODEL_STAGES) - 1
    package = (tmp_path / "tiny.ipuexe").read_bytes()
    assert (tmp_path / "other.ipuexe").read_bytes() == package


def test_what_a_search_ran_itself_counts_once(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Stages behind the search find their results there: reused from it, but saved by no earlier build."""
    (tmp_path / "mine.py").write_text(USER)
    words = ["build", "mine.py", "--tiles", "4", "--store", "store", *QUICK]
    assert main(words) == 0
    cold = capsys.readouterr().out
    inner = set(re.findall(r"^(\w+): reused, ", cold, re.MULTILINE))
    assert inner >= {"expansion", "support_sizing", "final_placement", "emission"}
    assert f"  reused: 0 of {len(MODEL_STAGES)} stages, 0.0 s (measured) saved\n" in cold
    assert main(words) == 0
    warm = capsys.readouterr().out
    saved = {
        name: float(seconds)
        for name, seconds in re.findall(r"^(\w+): reused, ([\d.]+) s", warm, re.MULTILINE)
    }
    assert set(saved) == set(MODEL_STAGES)
    told = re.search(r"^  reused: every stage, ([\d.]+) s", warm, re.MULTILINE)
    assert told is not None
    outer = [seconds for name, seconds in saved.items() if name not in inner]
    assert abs(float(told[1]) - sum(outer)) <= 0.05 * (len(outer) + 1)


def test_a_kept_recipe_gives_its_package_again(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """PR-01: written beside the package, replayed without search; another version is refused."""
    (tmp_path / "mine.py").write_text(USER)
    words = ["build", "mine.py", "--tiles", "4", "--store", "store", *QUICK]
    assert main(words) == 0
    recipe = tmp_path / "tiny.recipe.json"
    assert main([*words, "--recipe", str(recipe), "--output", "again.ipuexe"]) == 0
    assert (tmp_path / "again.ipuexe").read_bytes() == (tmp_path / "tiny.ipuexe").read_bytes()
    assert (tmp_path / "again.recipe.json").read_bytes() == recipe.read_bytes()
    capsys.readouterr()
    newer = tmp_path / "newer.json"
    newer.write_text(json.dumps(json.loads(recipe.read_text()) | {"version": 3}))
    assert main([*words, "--recipe", str(newer)]) == 1
    assert capsys.readouterr().err == (
        f"invalid input (planner): {newer}: it is no recipe of version 2: version: Input should be 2.\n"
        "  next: build without it, and keep the recipe that the build writes\n"
    )


def test_options_of_planning_reach_the_package(tmp_path: Path) -> None:
    """Other rounding and inputs on every tile that reads them are other packages, and compute the same."""
    (tmp_path / "mine.py").write_text(USER)
    packages: set[bytes] = set()
    for options in ((), ("--rounding", "stochastic"), ("--replicate-inputs",)):
        assert main(["build", "mine.py", "--tiles", "4", "--store", "store", *QUICK, *options]) == 0
        packages.add((tmp_path / "tiny.ipuexe").read_bytes())
    assert len(packages) == 3


@pytest.mark.parametrize("how", [(), ("--dagster",)])
def test_models_that_cannot_be_built_say_why(
    how: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """An operation without constructor, and parameters that so few tiles cannot hold."""
    messages = {
        ("attention-smoke",): (
            "unsupported (planner): attention-smoke: the planner has no constructor for attention.\n"
            "  graph nodes: attention\n"
            "  next: build a part of the model without these nodes\n"
        ),
        ("siglip-mlp", "--tiles", "8"): (
            "does not fit (planner): siglip-mlp: parameters, each stored once need more than the 8 tiles "
            "have.\n"
            "  floor of a tile's data: 2,479,104 bytes (bound), limit 586,960, 1,892,144 too many\n"
            "  floor of a tile's code: 2,124 bytes (bound)\n"
            "  floor of a tile's exchange rows: 16 bytes (bound)\n"
            "  floor of a tile's descriptors: 8,496 bytes (bound)\n"
            "  floor of a tile's code and rows together: 2,140 bytes (bound), limit 163,824\n"
            "  floor of a tile's memory, with what runtime and host reserve: 2,524,284 bytes (bound), "
            "limit 638,976, 1,885,308 too many\n"
            "  kept free of data for code, exchange rows and descriptors: 49,152 bytes (bound)\n"
            "  graph nodes: hidden, y\n"
            "  next: use at least 34 tiles or a narrower precision\n"
        ),
    }
    for words, message in messages.items():
        assert main(["build", *words, "--store", "store", *how]) == 1
        told = capsys.readouterr()
        assert told.err == message
        assert stages_of(told.out) == ["model_graph"]
    assert not list(tmp_path.glob("*.ipuexe"))


def test_an_interrupted_build_says_so(tmp_path: Path) -> None:
    """With and without Dagster: one word, and the exit status of a signal."""
    for how in ([], ["--dagster"]):
        build = subprocess.Popen(
            [sys.executable, "-m", "pipeline.cli", "build", "siglip-mlp", "--store", "store", *how],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY.root)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # What a shell runs in the background, these tests perhaps, ignores interrupts, and so would it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert build.stdout is not None
        assert build.stdout.readline().startswith("model_graph: ")
        build.send_signal(signal.SIGINT)
        _, err = build.communicate(timeout=120)
        assert err == "interrupted\n"
        assert build.returncode == 130


def test_a_terminated_build_says_so(tmp_path: Path) -> None:
    """As an interrupted one: one word while workers are busy, and nothing of theirs is left."""
    build = subprocess.Popen(
        [sys.executable, "-m", "pipeline.cli", "build", "mlp-smoke", "--store", "store", "--workers", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY.root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL),
    )
    assert build.stdout is not None
    while not build.stdout.readline().startswith("baseline_candidate: "):
        pass
    build.send_signal(signal.SIGTERM)
    _, err = build.communicate(timeout=120)  # until the last worker has closed its end, too
    assert err == "terminated\n"
    assert build.returncode == 143
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("how", [(), ("--dagster",)])
def test_a_failure_is_told_once_in_its_own_words(
    how: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Exit status 1, no traceback, no file."""
    assert main(["build", "too-large", "--store", "store", *how]) == 1
    told = capsys.readouterr()
    first, *others = told.err.splitlines()
    assert first.startswith(
        "does not fit (placement): tile 0 (and 1 more tiles alike): what lives at step 1 needs more than is "
        "free in SRAM, however it is placed"
    )
    assert others[0] == "  SRAM at step 1: 1,288,320 bytes (bound), limit 620,832, 667,488 too many"
    assert others[-1].startswith("  next: ")
    assert told.err.count("does not fit") == 1
    assert stages_of(told.out) == ["expansion", "kernel_objects"]
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
    differences = "run 0, output y: an element differs; run 1, output y: an element differs"
    assert told == (
        f"check numerics_equal of small/simulation failed: {differences}\n"
        if how
        else "internal error, please report it (simulation): small: the package computes something else than "
        f"it should: {differences}.\n  next: report the model and the options\n"
    )
    assert not list(tmp_path.glob("*.ipuexe"))


def test_models_that_do_not_exist(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
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


def test_a_store_that_cannot_be_opened_is_told_alike(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Directly and by Dagster, which opens it before any stage."""
    (tmp_path / "store").touch()
    for words in ([], ["--dagster"]):
        assert main(["build", "small", "--store", str(tmp_path / "store"), *words]) == 1
        assert capsys.readouterr().err == (
            f"store (store): {tmp_path}/store: a file is where the store needs a folder.\n"
            "  next: move that file away or use another store\n"
        )


def test_one_document_for_programs_that_read_it(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Figures with kinds, digests, paths, what was reused and why the rest was not, and nothing else."""
    (tmp_path / "mine.py").write_text(USER)
    words = ["build", "mine.py", "--tiles", "4", "--store", "store", *QUICK, "--json"]
    assert main(words) == 0
    told = capsys.readouterr()
    assert told.err == ""
    cold = json.loads(told.out)
    assert cold["model"] == "tiny"
    assert cold["options"]["planning"]["tiles"] == 4
    assert [stage["name"] for stage in cold["stages"]] == MODEL_STAGES
    first = cold["stages"][0]
    assert (first["status"], first["because"]) == ("computed", ["no earlier run of this stage is known"])
    figures = [figure for stage in cold["stages"] for figure in stage["figures"]]
    assert {figure["kind"] for figure in figures} <= {
        "bound",
        "estimated",
        "scheduled",
        "simulated",
        "measured",
    }
    package = tmp_path / "tiny.ipuexe"
    assert cold["files"]["package"] == [str(package)]
    assert cold["files"]["recipe"] == [str(tmp_path / "tiny.recipe.json")]
    emission = next(stage for stage in cold["stages"] if stage["name"] == "emission")
    assert emission["outputs"]["package"] == hashlib.sha256(package.read_bytes()).hexdigest()
    # The search counts its attempts; beside them the baseline was evaluated, and nothing twice.
    assert cold["search"]["evaluations_begun"] == cold["search"]["attempts"] + 1
    assert main(words) == 0
    warm = json.loads(capsys.readouterr().out)
    assert {stage["status"] for stage in warm["stages"]} == {"reused"}
    assert warm["search"] == {"attempts": cold["search"]["attempts"], "evaluations_begun": 0}
    assert [stage["digest"] for stage in warm["stages"]] == [stage["digest"] for stage in cold["stages"]]


def test_every_option_has_a_path(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Typed; a path that does not exist is answered with those that are near."""
    (tmp_path / "mine.py").write_text(USER)
    words = ["build", "mine.py", "--store", "store", *QUICK, "--attempts", "0"]
    chosen = ("planning.tiles=4", "planning.rounding=stochastic", "planning.replicate_inputs=true")
    named = ("--tiles", "4", "--rounding", "stochastic", "--replicate-inputs")
    assert main([*words, *(word for option in chosen for word in ("--option", option))]) == 0
    package = (tmp_path / "tiny.ipuexe").read_bytes()
    capsys.readouterr()
    assert main([*words, *named]) == 0
    assert capsys.readouterr().out.count(": reused, ") == len(MODEL_STAGES)
    assert (tmp_path / "tiny.ipuexe").read_bytes() == package
    for option, message in {
        "tiles=4": ("tiles=4: there is no option 'tiles'.\n  next: perhaps planning.tiles\n"),
        "planing.runs=4": (
            "planing.runs=4: there is no option 'planing.runs'.\n"
            "  next: perhaps planning.rounding or planning.tiles or simulation.runs\n"
        ),
        "planning.tiles=1473": (
            "planning.tiles=1473: planning.tiles: input should be less than or equal to 1472.\n"
            "  next: give a value of its kind and range\n"
        ),
        "planning.tiles": (
            "planning.tiles: this is not PATH=VALUE.\n  next: write the path of an option, = and its value\n"
        ),
        "isa.overrides=X": (
            "isa.overrides=X: isa.overrides: value error, this is not NAME = VALUE.\n"
            "  next: give a value of its kind and range\n"
        ),
    }.items():
        assert main([*words, "--option", option]) == 1
        assert capsys.readouterr().err == f"invalid input (build): {message}"


def test_workers_are_as_many_however_they_are_given() -> None:
    """The option reaches who works on candidates, not only the threads of the simulation."""
    parser = argparse.ArgumentParser()
    add_choices(parser)
    for words in (["--workers", "3"], ["--option", "workers=3"], ["--workers", "2", "--option", "workers=3"]):
        arguments = parser.parse_args(["small", *words])
        assert workers_of(arguments, options_of(arguments)).count == 3


@pytest.mark.parametrize(
    ("model", "words", "reason"),
    [
        ("small", ("--batch", "2"), "a program written by hand is not planned"),
        ("small", ("--recipe", "none.json"), "a program written by hand is not planned"),
        ("small", ("--replicate-inputs",), "a program written by hand is not planned"),
        ("small", ("--tiles", "2"), "a program written by hand is not planned"),
        ("small", ("--option", "planning.tiles=2"), "a program written by hand is not planned"),
        ("mine.py", ("--batch", "2"), "a model of yours is built as its graph says"),
        ("mine.py", ("--precision", "f8"), "a model of yours is built as its graph says"),
    ],
)
def test_words_without_effect_are_refused(
    model: str, words: tuple[str, ...], reason: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(USER)
    assert main(["build", model, "--store", "store", *words]) == 1
    told = words[-1] if words[0] == "--option" else words[0]
    assert capsys.readouterr().err == (
        f"invalid input (build): {model} {told}: {reason}, so this has no effect.\n  next: leave it out\n"
    )
    assert not (tmp_path / "store").exists()


def test_values_of_the_vendor_s_headers(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Code is generated and run with them, planning is reused, and the package says so."""
    (tmp_path / "mine.py").write_text(USER)
    (tmp_path / "values.txt").write_text(
        "# as in some header\nTAMP_F16V4_E4_P1 = 0\nTAMP_F16V4_E4_P0 = 0x1\n"
    )
    words = ["build", "mine.py", "--tiles", "4", "--store", "store", *QUICK, "--attempts", "0"]
    assert main(words) == 0
    capsys.readouterr()
    assert main([*words, "--isa-overrides", "values.txt", "--output", "other.ipuexe"]) == 0
    told = capsys.readouterr().out
    assert [line.split(":")[0] for line in told.splitlines() if ": reused, " in line][:2] == [
        "model_graph",
        "baseline_candidate",
    ]
    ours, other = load(tmp_path / "tiny.ipuexe"), load(tmp_path / "other.ipuexe")
    assert other.compiler_version == (
        f"{ours.compiler_version} with isa overrides TAMP_F16V4_E4_P0=0x1 TAMP_F16V4_E4_P1=0x0"
    )
    assert ours.tiles != other.tiles
    (tmp_path / "same.txt").write_text("TAMP_F16V4_E4_P0=1\nTAMP_F16V4_E4_P1=0\n")
    assert main([*words, "--isa-overrides", "same.txt", "--output", "again.ipuexe"]) == 0
    assert capsys.readouterr().out.count(": reused, ") == len(MODEL_STAGES)
    assert (tmp_path / "again.ipuexe").read_bytes() == (tmp_path / "other.ipuexe").read_bytes()


def test_bars_name_what_is_computed() -> None:
    """Only where somebody looks: they are drawn on a terminal, and what is printed stays as it is."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    drawn = io.StringIO()
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
    console = Console(file=drawn, force_terminal=True, width=120)
    with Progress(*columns, console=console, auto_refresh=False) as bars:
        showing = Shown(bars, 7, is_quiet=False)
        showing.began(("proposal_rounds",))
        showing.counted(("proposal_rounds", "candidate_evaluation"), 1, 4)
        showing.began(("proposal_rounds", "candidate_evaluation", "emission"))
        bars.refresh()
        showing.counted(("proposal_rounds", "candidate_evaluation"), 4, 4)
        showing.ended(("proposal_rounds", "candidate_evaluation", "emission"))
        showing.passed()
        bars.refresh()
    frames = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn.getvalue())
    assert "0/7 proposal_rounds > candidate_evaluation > emission" in frames
    assert "1/4 candidate_evaluation" in frames
    assert "1/7" in frames
    with shown(7, is_quiet=False) as without:
        without.began(("emission",))  # nobody looks: a test's output is no terminal


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--backend", "dask"),
            "--backend dask: a cluster has a scheduler.\n  next: give its --scheduler ADDRESS\n",
        ),
        (
            ("--scheduler", "tcp://here:1"),
            "--scheduler: only a cluster has a scheduler.\n  next: give --backend dask with it\n",
        ),
        (
            ("--json", "--dagster"),
            (
                "--dagster --json: what Dagster ran is told in its pages, and not by this command.\n"
                "  next: leave one of the two out\n"
            ),
        ),
    ],
)
def test_words_that_do_not_go_together(
    words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "small", "--store", "store", *words]) == 1
    assert capsys.readouterr().err == f"invalid input (build): {message}"
