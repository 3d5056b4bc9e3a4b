"""Expanded programs compute what their whole-device programs mean, bit for bit, and read nothing undefined.

Two executors that share only the families' semantics: ``mid.interpret`` works on logical elements and knows
no storage, ``low.execute`` works on poisoned bytes, and lets poison reach neither an output nor a call that
needs the byte.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.low.expand.program import construct, expand
from compiler.low.verify import verify
from compiler.mid.interpret import interpret
from compiler.mid.ir import MidProgram
from compiler.models.registry import model_named
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from tests.low.planned import assert_same_bits, executed, programs, tensors

ON_DEVICE = 1472


@settings(max_examples=25)
@given(program=programs(), seed=st.integers(0, 1000))
def test_planned_programs_compute_what_they_mean(program: MidProgram, seed: int) -> None:
    """MG-15, OI-07, RD-04, LC-14, RP-04: any layouts, any realizations, as constructed and as rewritten."""
    values = tensors(program, seed)
    expected = interpret(program, values)
    for low in (construct(program), expand(program)):
        assert verify(low) == ()
        assert_same_bits(executed(low, values), expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["gemm-smoke", "batched-gemm-smoke", "siglip-mlp", "mlp-block", "siglip-mlp-x3", "siglip-mlp-f8"]
)
def test_models_on_the_whole_device(name: str) -> None:
    """The same at full size, by the planner's first choice."""
    program = build_candidate(model_named(name).build(), Setting(tile_count=ON_DEVICE), Recipe()).program
    low = expand(program)
    assert verify(low) == ()
    values = tensors(program, seed=1)
    assert_same_bits(executed(low, values), interpret(program, values))
