"""What the code of each stage is: an edit re-keys the stages that run it and no other."""

import shutil
from pathlib import Path

import pytest

from compiler.chain import chain_of
from compiler.compile import stage_of
from compiler.fingerprint import REPOSITORY, Sources, defines_stage, fingerprint
from compiler.store.key import stage_code
from compiler.store.resolve import Resolver
from tests.stages.builds import STAGES, SUBJECTS


def test_every_stage_is_known_here() -> None:
    """By the name that its module gives it; modules of stages have names that say so."""
    root = REPOSITORY.root
    paths = sorted((root / "compiler").rglob("stage_*.py"))
    modules = [".".join(path.relative_to(root).with_suffix("").parts) for path in paths]
    assert modules == sorted(set(STAGES.values()))
    resolver = Resolver(REPOSITORY)
    for label, module in STAGES.items():
        assert defines_stage(module)
        name = label.removesuffix(" of a program")
        assert resolver.stage(module, name).name == name


@pytest.mark.parametrize("kind", SUBJECTS)
def test_chains_name_the_stages_that_run(kind: str) -> None:
    subject, _ = SUBJECTS[kind]
    chain = chain_of(subject)
    for number, stage in enumerate(chain):
        declared = stage_of(stage.name, subject)
        assert declared.module == stage.module
        assert set(stage.after) <= {earlier.name for earlier in chain[:number]}
        assert fingerprint(stage.module) == stage_code(declared, REPOSITORY)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A copy of the compiler that nobody edits meanwhile."""
    root = tmp_path_factory.mktemp("original")
    shutil.copytree(REPOSITORY.root / "compiler", root / "compiler")
    return Sources(root=root, packages=("compiler",))


@pytest.mark.parametrize(
    ("edited", "wanted"),
    [
        ("exchange/rows.py", {"exchange.rows"}),
        ("exchange/check.py", {"emission"}),
        ("kernels/gemm/code.py", {"kernel_objects"}),
        ("placement/firstfit.py", {"provisional_placement", "final_placement"}),
        ("simulator/core.py", {"simulation", "simulation of a program"}),
        ("graph/evaluate.py", {"simulation"}),
        (
            "planner/gemm_prices.py",
            {
                "planner.fronts",
                "baseline_candidate",
                "proposal_rounds",
                "candidate_evaluation",
                "build_report",
            },
        ),
        ("report/markup.py", {"build_report"}),
        ("low/expand/program.py", {"expansion"}),
        ("models/smoke.py", {"model_graph"}),
        ("models/skeleton.py", {"expansion of a program"}),
        ("version.py", {"emission"}),
        ("config.py", set[str]()),
        ("chain.py", set[str]()),
    ],
)
def test_stages_consist_of_what_they_use(edited: str, wanted: set[str]) -> None:
    """Order, timing and rows are stages of their own; generators belong to one stage, options to none."""
    path = f"compiler/{edited}"
    assert (REPOSITORY.root / path).is_file()
    assert {label for label, module in STAGES.items() if path in dict(fingerprint(module).files)} == wanted


def test_an_edit_rekeys_the_stages_that_use_it(original: Sources, tmp_path: Path) -> None:
    shutil.copytree(original.root / "compiler", tmp_path / "compiler")
    path = tmp_path / "compiler" / "exchange" / "rows.py"
    path.write_text(path.read_text() + "\n_ADDED = 1\n")
    assert _changed(original, tmp_path) == {"exchange.rows"}


def test_comments_and_docstrings_are_no_code(original: Sources, tmp_path: Path) -> None:
    shutil.copytree(original.root / "compiler", tmp_path / "compiler")
    for path in (tmp_path / "compiler" / "exchange").glob("*.py"):
        path.write_text(path.read_text().replace('"""', '"""Edited: ', 1) + "\n# edited\n")
    assert _changed(original, tmp_path) == set()


def _changed(original: Sources, edited: Path) -> set[str]:
    """The stages whose code differs."""
    copied = Sources(root=edited, packages=original.packages)
    return {
        name
        for name, module in STAGES.items()
        if fingerprint(module, sources=copied).digest != fingerprint(module, sources=original).digest
    }
