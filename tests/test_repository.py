"""Habits of the repository that no linter of others checks."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("compiler", "assets", "pipeline")


def _tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [path for name in listed.stdout.splitlines() if (path := ROOT / name).is_file()]


@pytest.mark.parametrize("package", PACKAGES)
def test_init_files_hold_a_docstring_and_nothing_else(package: str) -> None:
    """docs/decisions/0002: re-exports would tie every stage to a whole package."""
    for path in sorted((ROOT / package).rglob("__init__.py")):
        body = ast.parse(path.read_text()).body
        assert len(body) == 1, path
        assert isinstance(body[0], ast.Expr), path
        assert isinstance(body[0].value, ast.Constant), path


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_opens_with_a_docstring(package: str) -> None:
    for path in sorted((ROOT / package).rglob("*.py")):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def _documented(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Name and lines of each docstring of a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield ("module" if isinstance(node, ast.Module) else node.name), text.splitlines()


@pytest.mark.parametrize("package", [*PACKAGES, "tests"])
def test_lists_in_docstrings_have_one_entry_a_line(package: str) -> None:
    """What a docstring formatter breaks: arguments and list items that flow into each other."""
    broken: list[str] = []
    for path in sorted((ROOT / package).rglob("*.py")):
        for name, lines in _documented(path):
            inside = ""
            for line in lines:
                if line in {"Args:", "Raises:", "Attributes:"}:
                    inside = line
                elif line and not line.startswith(" "):
                    inside = ""
                entry = re.match(r" {4}\S", line) is not None
                if inside and entry and not re.match(r" {4}[*\w][\w.*, ]*:( |$)", line):
                    broken.append(f"{path.relative_to(ROOT)}: {name}: {line.strip()}")
                if inside == "Args:" and re.search(r"[.;] [a-z_]+: \S", line):
                    broken.append(f"{path.relative_to(ROOT)}: {name}: {line.strip()}")
                if re.search(r"\S - ``|\. - [A-Z`]", line):
                    broken.append(f"{path.relative_to(ROOT)}: {name}: {line.strip()}")
    assert not broken


def test_no_file_names_a_registry_or_a_path_of_a_machine() -> None:
    forbidden = re.compile(
        r"py"
        r"pi\.org|files\.python"
        r"hosted|registry\.npm"
        r"js|deb\.deb"
        r"ian|/wo"
        r"rk/|/ho"
        r"me/\w|--(extra-)?index"
        r"-url[ =]http"
    )
    for path in _tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = forbidden.search(text)
        assert found is None, f"{path.relative_to(ROOT)}: {found.group() if found else ''}"


def test_every_requirement_is_pinned_with_hashes() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    pins = [line for line in lines if re.match(r"^[a-z0-9]", line)]
    assert len(pins) > 10
    for line in pins:
        assert re.fullmatch(r"[a-z0-9._-]+==[0-9][0-9A-Za-z.]* \\", line), line
    assert not [line for line in lines if line.startswith("-")]


def test_every_direct_dependency_is_pinned_and_explained() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    explained = (ROOT / "docs" / "dependencies.md").read_text()
    pinned = (ROOT / "requirements.txt").read_text()
    for requirement in project["dependencies"] + project["optional-dependencies"]["test"]:
        name = re.split(r"[<>=!~ ]", requirement)[0]
        assert re.search(rf"^{name}==", pinned, re.MULTILINE), name
        assert re.search(rf"\b{name}\b", explained), name


def test_links_in_documents_lead_somewhere() -> None:
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.relative_to(ROOT)}: {target}"
