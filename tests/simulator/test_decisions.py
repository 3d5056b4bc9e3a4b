"""Decisions that the machine implements are listed, and where they are numbers taken from the list."""

import re
from pathlib import Path

import compiler.simulator
from compiler.simulator import rounding
from compiler.target.costs import DIVIDE_TURNS
from compiler.target.isa_decisions import our_decisions

OF_THE_EXCHANGE = {"control-pair", "sendpicp-start", "sendoff-delta", "phase-cost"}
CITATION = re.compile(r"``([a-z]+(?:-[a-z]+)*)``")


def cited() -> set[str]:
    """Names in double backquotes, in the sentences of the simulator that speak of decisions."""
    names: set[str] = set()
    for path in Path(compiler.simulator.__path__[0]).glob("*.py"):
        for sentence in re.split(r"\.\s", path.read_text(encoding="utf-8")):
            _, found, rest = sentence.partition("decision")
            if found:
                names.update(CITATION.findall(rest))
    return names


def test_every_behaviour_of_the_machine_is_cited_where_it_is_implemented() -> None:
    behaviours = {row.name for row in our_decisions().rows if row.value is None}
    assert behaviours - OF_THE_EXCHANGE <= cited()


def test_dashed_citations_are_decisions() -> None:
    names = {row.name for row in our_decisions().rows}
    assert {name for name in cited() if "-" in name} <= names


def test_rounding_codes_are_those_of_the_list() -> None:
    constants = our_decisions().constants
    codes = [constants[f"TFPU_ROUND_{name}"] for name in ("NEAREST", "DOWN", "UP", "ZERO")]
    assert codes == [rounding.NEAREST, rounding.DOWN, rounding.UP, rounding.TOWARD_ZERO]
    assert max(codes) == rounding.HIGHEST_ROUNDING


def test_turns_of_a_division_are_those_of_the_list() -> None:
    (statement,) = (row.statement for row in our_decisions().rows if row.name == "divide-turns")
    assert DIVIDE_TURNS == 3
    assert "f32div takes three issue turns" in statement
