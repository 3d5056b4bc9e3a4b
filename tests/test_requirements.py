"""Where each requirement is enforced: ``docs/requirements.md`` is made from citations and is up to date.

A requirement has an id such as ML-08. Whoever enforces it cites the id: a test, a clause of a verifier, an
import contract, a module. ``python -m tests.test_requirements`` writes the document.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "requirements.md"

GROUPS = (
    ("AR", 11, "architecture: program levels, and what may know what"),
    ("ML", 41, "the whole-device language: copies, computations, Repeats, nothing deferred"),
    ("PR", 32, "planner and recipes: one construction for costing and for building"),
    ("DS", 23, "driver and search: one visible loop, ordered acceptance"),
    ("EC", 20, "evaluation of one candidate, placement feedback included"),
    ("MG", 15, "movement: one path from mapping to work, facts apart from prices"),
    ("OI", 7, "operand indexing: one recorded relation"),
    ("KB", 15, "binding of kernel calls by their families"),
    ("RD", 12, "sums of partials as computations"),
    ("LC", 15, "construction of low programs, storage and views"),
    ("AL", 10, "one authority for the work of tiles"),
    ("RP", 6, "Repeat: sequences, strides, relocation"),
    ("MO", 3, "several results of one call"),
    ("MS", 6, "storage with parts of different types"),
    ("CP", 4, "local copies as a kernel family"),
    ("XR", 8, "relocation of exchange rows"),
    ("TA", 13, "ownership of hardware facts and shared constants"),
    ("CA", 8, "caches: lifetimes, keys, measurement"),
    ("TE", 13, "tests: independent oracles, contracts instead of internals"),
    ("CD", 15, "what the source must show, and documents"),
    ("AM", 6, "accounting of growth and of speed"),
    ("SL", 12, "endpoints of the structure as a whole"),
)

OPEN = {
    "AR-09": "a permission, with nothing to enforce",
    "AR-11": "a practice of changes, with no property of the source to test",
    "ML-11": "normalization and attention have no constructor yet",
    "DS-03": "runtime and caches are the store's, and made when something asks for them",
    "DS-21": "a practice of changes, with no property of the source to test",
    "EC-10": "addresses are those of one deterministic placement; no alternatives to it are scored",
    "EC-19": "a statement of what comes first",
    "CA-07": "a practice of changes, with no property of the source to test",
    "PR-19": "a practice of changes, with no property of the source to test",
    "ML-35": "attention has no constructor yet",
    "ML-36": "attention has no constructor yet",
    "ML-37": "attention has no constructor yet",
    "ML-41": "attention has no constructor yet",
    "AM-03": "a practice of changes, with no property of the source to test",
    "AM-04": "a practice of changes, with no property of the source to test",
    "AM-05": "a practice of changes, with no property of the source to test",
    "AM-06": "a practice of changes, with no property of the source to test",
    "TE-12": "no hardware run is part of the project",
    "XR-08": "a claim that is not made",
}
"""What is not enforced, and why."""

_ID = re.compile(
    r"\b(" + "|".join(prefix for prefix, _, _ in GROUPS) + r")-(\d\d)\b(?:\s*\.\.\s*(?:\1-)?(\d\d)\b)?"
)


def citations() -> dict[str, list[str]]:
    """For each id the files that cite it, tests first."""
    found: dict[str, list[str]] = {}
    paths = [
        path
        for folder in ("tests", "compiler", "assets", "pipeline")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if path != Path(__file__)
    ]
    for path in [*paths, ROOT / "pyproject.toml"]:
        for match in _ID.finditer(path.read_text(encoding="utf-8")):
            prefix, first, last = match.groups()
            for number in range(int(first), int(last or first) + 1):
                files = found.setdefault(f"{prefix}-{number:02}", [])
                name = path.relative_to(ROOT).as_posix()
                if name not in files:
                    files.append(name)
    return found


def document() -> str:
    """The text of the document."""
    cited = citations()
    lines = [
        "# Requirements and where they are enforced",
        "",
        "Made from citations by `python -m tests.test_requirements`: in tests, verifiers, import contracts",
        "and modules. Do not edit.",
        "",
    ]
    total = missing = 0
    for prefix, count, subject in GROUPS:
        lines += [f"## {prefix}: {subject}", "", "| id | enforced in |", "|---|---|"]
        for number in range(1, count + 1):
            name = f"{prefix}-{number:02}"
            files = cited.get(name, [])
            shown = ", ".join(f"`{file}`" for file in files[:6]) + (
                f" and {len(files) - 6} more" if len(files) > 6 else ""
            )
            if not files:
                missing += 1
                shown = f"open: {OPEN.get(name, 'cited nowhere')}"
            total += 1
            lines.append(f"| {name} | {shown} |")
        lines.append("")
    lines.insert(5, f"{total - missing} of {total} are cited; the others say what is open.\n")
    return "\n".join(lines)


def test_the_document_is_what_citations_make_of_it() -> None:
    """A citation that is added or lost shows in the document."""
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_only_requirements_that_exist_are_cited() -> None:
    """An id beyond its group is a mistake."""
    counts = {prefix: count for prefix, count, _ in GROUPS}
    wrong = {name: files for name, files in citations().items() if not 1 <= int(name[3:]) <= counts[name[:2]]}
    assert not wrong


def test_what_is_said_to_be_open_is_not_cited() -> None:
    """Who enforces it takes it off the list."""
    assert not set(OPEN) & set(citations())


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
