"""Every constant of the target says what it is worth; none is stated twice (TA-01, TA-05, TA-11, SL-02)."""

import ast
import functools
import importlib
import io
import re
import tokenize
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Annotated, get_args, get_origin, get_type_hints

import pytest

from compiler.target import memory, runtime_layout
from compiler.target.standing import STANDING_ATTRIBUTE, VERIFIED, Evidence, Kind, Standing

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "compiler" / "target"
# The markers themselves, and the two tables whose rows carry a standing each.
WITHOUT_MARKERS = {"__init__", "standing", "instructions", "isa_decisions"}
MODULES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in WITHOUT_MARKERS)


def _constants(name: str) -> Iterator[tuple[str, ast.stmt, str | None]]:
    """Public constants of a module in source order, each with the text that follows it."""
    body = ast.parse((FOLDER / f"{name}.py").read_text()).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        match statement:
            case ast.AnnAssign(target=ast.Name(id=identifier)):
                pass
            case ast.Assign(targets=[ast.Name(id=identifier)]):
                pass
            case _:
                continue
        if not identifier.isupper() or identifier.startswith("_"):
            continue
        match after:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield identifier, statement, text
            case _:
                yield identifier, statement, None


def _standing(module: ModuleType, identifier: str) -> Standing | None:
    hint = get_type_hints(module, include_extras=True).get(identifier)
    markers = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((marker for marker in markers if isinstance(marker, Standing)), None)


@pytest.mark.parametrize("name", MODULES)
def test_every_constant_has_a_standing_and_says_so(name: str) -> None:
    """The first word of its text's last clause is the kind of its marker: fact, figure or policy."""
    module = importlib.import_module(f"compiler.target.{name}")
    for identifier, _, text in _constants(name):
        standing = _standing(module, identifier)
        assert standing is not None, f"{name}.{identifier} has no marker"
        assert text is not None, f"{name}.{identifier} has no text"
        said = re.findall(r"\b(Fact|Figure|Policy)\b", text)
        assert said == [standing.kind.value.capitalize()], f"{name}.{identifier}"


@pytest.mark.parametrize("name", MODULES)
def test_every_enumeration_has_a_standing(name: str) -> None:
    module = importlib.import_module(f"compiler.target.{name}")
    for identifier, value in vars(module).items():
        if isinstance(value, type) and issubclass(value, Enum) and value.__module__ == module.__name__:
            if len(value) == 0:  # a base of enumerations
                continue
            assert isinstance(vars(value).get(STANDING_ATTRIBUTE), Standing), f"{name}.{identifier}"


def test_the_runtime_layout_is_policy_and_memory_is_not() -> None:
    """TA-06: what may be chosen is marked as chosen."""
    for identifier, _, _ in _constants("memory"):
        standing = _standing(memory, identifier)
        assert standing is not None, identifier
        assert standing.kind is Kind.FACT, identifier
    layout = vars(runtime_layout.RuntimeLayout)[STANDING_ATTRIBUTE]
    assert layout.kind is Kind.POLICY


def test_a_standing_reads_as_a_phrase() -> None:
    assert str(VERIFIED) == "fact (ran on hardware)"
    assert str(Standing(kind=Kind.POLICY, evidence=None)) == "policy"


@pytest.mark.parametrize(
    ("kind", "evidence"), [(Kind.POLICY, Evidence.VENDOR), (Kind.FACT, None), (Kind.FIGURE, None)]
)
def test_evidence_belongs_to_facts_and_figures(kind: Kind, evidence: Evidence | None) -> None:
    with pytest.raises(ValueError, match="facts and figures have evidence, policies have none"):
        Standing(kind=kind, evidence=evidence)


@functools.cache
def _literals() -> tuple[tuple[str, str], ...]:
    """Place and spelling of every number in the product."""
    return tuple(
        (f"{path.relative_to(ROOT)}:{token.start[0]}", token.string)
        for package in ("compiler", "assets", "pipeline")
        for path in sorted((ROOT / package).rglob("*.py"))
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
        if token.type == tokenize.NUMBER
    )


@pytest.mark.parametrize(
    "number",
    [
        r"0x4c000|311_?296",
        r"0x9c000|638_?976",
        r"0xe8000|950_?272",
        r"0x80000|524_?288",
        r"0x4c010|0x4c018",
        r"0xe7bb0|949_?168",
        r"0x50000|327_?680",
        r"0x58000|360_?448",
        r"0x640",
        r"0x600",
        r"1_?472",
        r"1_?500_?000_?000|1\.5e9",
        r"0x302c",
        r"0x3030",
        r"0x2842000",
        r"643",
    ],
)
def test_an_architectural_number_is_written_at_most_once(number: str) -> None:
    """TA-01, TA-05, TA-13: one definition per fact in the product, generators of device code included."""
    found = [place for place, literal in _literals() if re.fullmatch(number, literal, re.IGNORECASE)]
    assert len(found) <= 1, found
