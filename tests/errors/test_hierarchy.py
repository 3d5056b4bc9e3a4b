"""The form of every message, and that the hierarchy is closed."""

import pytest

from compiler.errors import (
    ALL_ERRORS,
    DoesNotFit,
    InvalidInput,
    Measure,
    NumberKind,
    TilewrightError,
    Unsupported,
)


def test_message_with_numbers_and_nodes() -> None:
    error = DoesNotFit(
        "the live tensors of step 12 exceed the standard region",
        stage="final placement",
        subject="tile 803",
        numbers=[
            Measure(name="live bytes", value=515_200, limit=498_872, unit="bytes", kind=NumberKind.BOUND),
            Measure(name="step", value=12, unit="of 40", kind=NumberKind.SCHEDULED),
        ],
        nodes=["mlp.up", "mlp.gelu"],
        next_step="lower the batch, or let the planner split mlp.up over more tiles",
    )
    assert str(error) == (
        "does not fit (final placement): tile 803: the live tensors of step 12 exceed the standard region.\n"
        "  live bytes: 515,200 bytes (bound), limit 498,872, 16,328 too many\n"
        "  step: 12 of 40 (scheduled)\n"
        "  graph nodes: mlp.up, mlp.gelu\n"
        "  next: lower the batch, or let the planner split mlp.up over more tiles"
    )


def test_message_without_numbers() -> None:
    error = Unsupported("F64 has no kernels", stage="import", subject="node 3", next_step="cast to F32")
    assert str(error) == "unsupported (import): node 3: F64 has no kernels.\n  next: cast to F32"


def test_number_within_its_limit_states_no_excess() -> None:
    number = Measure(name="row", value=8, limit=9, unit="bytes", kind=NumberKind.MEASURED)
    assert str(number) == "row: 8 bytes (measured), limit 9"


def test_titles_differ_and_every_error_has_a_docstring() -> None:
    assert len({error.title for error in ALL_ERRORS}) == len(ALL_ERRORS)
    assert all(error.__doc__ for error in ALL_ERRORS)


def test_the_hierarchy_is_closed() -> None:
    class Novelty(TilewrightError):
        title = "novelty"

    with pytest.raises(TypeError, match=r"Novelty is not one of the errors of compiler/errors\.py"):
        Novelty("x", stage="s", subject="t", next_step="n")
    with pytest.raises(TypeError, match="TilewrightError is not one of the errors"):
        TilewrightError("x", stage="s", subject="t", next_step="n")


def test_errors_are_caught_as_one() -> None:
    with pytest.raises(TilewrightError):
        raise InvalidInput("x", stage="s", subject="t", next_step="n")


def test_a_message_names_a_hundred_nodes_and_counts_the_others() -> None:
    names = [f"node {number}" for number in range(3_000)]
    refusal = Unsupported(
        "nothing builds it", stage="planner", subject="large", next_step="shrink it", nodes=names
    )
    assert refusal.nodes == tuple(names)
    line = str(refusal).splitlines()[1]
    assert line.startswith("  graph nodes: node 0, node 1, ")
    assert line.endswith(", node 98, node 99 and 2900 more")
