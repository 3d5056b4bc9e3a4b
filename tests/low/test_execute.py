"""The executor against NumPy, and what it refuses to compute."""

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from compiler.geometry.precision import F16, F32, decode_f143
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.execute import POISON, Execution, private_addresses
from compiler.low.ir import LowProgram, Role
from compiler.low.verify import verify
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.placement.check import check
from compiler.placement.place import place
from compiler.placement.problem import runtime_ranges
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from tests.low.skeletons import expected, random_input, random_parameters, skeleton_options
from tests.low.tables import changed, without_rows
from tests.placement.programs import host_value


@hypothesis.settings(max_examples=25)
@hypothesis.given(skeleton_options(), st.integers(0, 1000))
def test_any_skeleton_computes_what_numpy_computes_wherever_it_is_placed(
    options: SkeletonOptions, seed: int
) -> None:
    """Private addresses and placed ones, with short-lived buffers on top of each other; RP-03."""
    program = skeleton(options)
    assert verify(program) == ()
    reserved = runtime_ranges(DEFAULT_LAYOUT, options.tile_count)
    placement = place(program, reserved)
    assert check(program, placement, reserved) == ()
    parameters, x = random_parameters(options, seed), random_input(options, seed + 3)
    wanted = expected(options, parameters, x)
    for addresses in (None, placement):
        execution = Execution(program, addresses)
        execution.upload(parameters)
        np.testing.assert_array_equal(execution.run({"x": x})["y"], wanted, strict=True)


@pytest.mark.parametrize("placed", [False, True])
def test_parameters_are_uploaded_once_and_stay_for_every_run(placed: bool) -> None:  # a test's parameter
    """Weights resident between runs; distinct weights in each iteration of the Repeat."""
    options = SkeletonOptions()
    program = skeleton(options)
    execution = Execution(program, place(program, runtime_ranges(DEFAULT_LAYOUT, 4)) if placed else None)
    parameters = random_parameters(options, 0)
    execution.upload(parameters)
    for seed in (10, 11, 10):
        x = random_input(options, seed)
        found = execution.run({"x": x})["y"]
        np.testing.assert_array_equal(found, expected(options, parameters, x), strict=True)
    swapped = {**parameters, "w0": parameters["w1"], "w1": parameters["w0"]}
    assert (expected(options, swapped, random_input(options, 10)) != found).any()


def test_poison_is_nan_in_every_precision_at_some_byte_and_in_the_wide_ones_at_all() -> None:
    poison = np.array(POISON * 2, dtype=np.uint8)
    assert np.isnan(poison.view(F32.dtype)).all()
    assert np.isnan(poison.view(F16.dtype)).all()
    assert np.isnan(decode_f143(poison))[0::2].all()


def _run(program: LowProgram) -> None:
    options = SkeletonOptions()
    execution = Execution(program)
    execution.upload(random_parameters(options, 0))
    execution.run({"x": random_input(options, 1)})


def test_a_call_that_needs_what_nobody_wrote_is_refused() -> None:
    program = without_rows(skeleton(SkeletonOptions()), "copies", [1])
    with pytest.raises(ValueError, match=r"step 2, iteration 0, tile 1, call 1 of gemm\S+ operand 0: byte 0"):
        _run(program)


def test_an_output_that_nobody_wrote_is_refused() -> None:
    program = skeleton(SkeletonOptions())
    last = len(program.transfers.step) - 1
    short = changed(program, "transfers", "byte_count", last, 380)
    with pytest.raises(ValueError, match="output y, shard 0 on tile 3: byte 764 was never written"):
        _run(short)


def test_moving_undefined_bytes_is_no_mistake_but_they_stay_undefined() -> None:
    """Padding may travel; whoever uses it is refused. Here half of y is sent without ever being written."""
    builder = LowBuilder(2)
    node = builder.node("move")
    values = {
        role: builder.value(host_value(role.name, 16, tile, 2, role))
        for role, tile in ((Role.INPUT, 0), (Role.OUTPUT, 1))
    }
    x, y = (
        builder.buffer(tile=tile, byte_count=16, alignment=8, node=node, role=role, value=values[role])
        for role, tile in ((Role.INPUT, 0), (Role.OUTPUT, 1))
    )
    never = builder.buffer(tile=0, byte_count=16, alignment=8, node=node)
    step = builder.exchange_step()
    for source, at in ((x, 0), (never, 8)):
        builder.transfer(
            step,
            source=AddressOperand(buffer=source),
            byte_count=8,
            recipients=[AddressOperand(buffer=y, displacement=at)],
            node=node,
        )
    program = builder.finish()
    execution = Execution(program)
    execution.upload({})
    with pytest.raises(ValueError, match="output OUTPUT, shard 0 on tile 1: byte 8 was never written"):
        execution.run({"INPUT": np.ones(4, dtype=np.float32)})
    assert execution.contents(y)[1].tolist() == [True] * 8 + [False] * 8


def test_temporaries_are_forgotten_between_runs() -> None:
    options = SkeletonOptions()
    program = skeleton(options)
    execution = Execution(program)
    execution.upload(random_parameters(options, 0))
    execution.run({"x": random_input(options, 1)})
    h = int(np.flatnonzero(program.buffers.role == Role.TEMPORARY)[0])
    before, defined = execution.contents(h)
    assert defined.all()
    execution.run({"x": random_input(options, 2)})
    assert (execution.contents(h)[0] != before).any()


def test_arrays_must_be_those_of_the_program() -> None:
    options = SkeletonOptions()
    execution = Execution(skeleton(options))
    with pytest.raises(ValueError, match="parameters"):
        execution.upload({})
    execution.upload(random_parameters(options, 0))
    with pytest.raises(ValueError, match="cannot be packed"):
        execution.run({"x": random_input(options, 0).astype(np.float32)})


def test_private_addresses_keep_what_is_not_shared_apart() -> None:
    program = skeleton(SkeletonOptions())
    buffers, private = program.buffers, private_addresses(program)
    for tile in range(4):
        rows = np.flatnonzero(buffers.tile == tile)
        rows = rows[np.argsort(private.address[rows])]
        ends = private.address[rows] + buffers.byte_count[rows] + buffers.tail[rows]
        assert (ends[:-1] < private.address[rows][1:]).all()
    assert (private.address % buffers.alignment == 0).all()
