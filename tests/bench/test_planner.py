"""How long choosing products takes. Figures, no assertions.

All ways of computing both products of the MLP of one image, on 1,472 tiles.
"""

from pytest_benchmark.fixture import BenchmarkFixture

from compiler.geometry.precision import F8, F16
from compiler.geometry.relation import Side
from compiler.planner.gemm_candidates import GemmCandidate, candidates
from compiler.planner.gemm_problem import GemmProblem

SHORTLIST = 64
"""Candidates of each class that are listed."""


def problems(precision: F16 | F8) -> tuple[GemmProblem, GemmProblem]:
    """Up and down of W-MLP, B1, on all tiles; activations arrive in F16."""
    up, down = (
        GemmProblem(
            left_shape=(729, inner),
            right_shape=(inner, columns),
            precision=precision,
            left_precision=F16(),
            right_precision=precision,
            parameter=Side.RIGHT,
            tile_count=1472,
        )
        for inner, columns in ((1152, 4304), (4304, 1152))
    )
    return up, down


def chosen(precision: F16 | F8) -> list[GemmCandidate]:
    """Enumerated, screened and ranked."""
    return [
        candidate
        for problem in problems(precision)
        for front in candidates(problem, cast_before_copies=True).fronts
        for candidate in front.shortlist(SHORTLIST)
    ]


def test_products_in_f16(benchmark: BenchmarkFixture) -> None:
    """Both products, halves."""
    benchmark(chosen, F16())


def test_products_in_f8(benchmark: BenchmarkFixture) -> None:
    """Both products, codes."""
    benchmark(chosen, F8())
