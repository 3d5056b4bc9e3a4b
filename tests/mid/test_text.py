"""Text and parser of whole-device programs: inverse of each other; one example as it is written."""

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry.mapping import CoordinateMapping
from compiler.geometry.product import ProductAxes, matrix_product
from compiler.mid.ir import Block, MidProgram, Repeat
from compiler.mid.notation import axes_of, mapping_of
from compiler.mid.order import in_definition_order
from compiler.mid.parser import parse_program
from compiler.mid.text import text_of_program
from tests.geometry.coordinates import Array
from tests.geometry.view_sequences import mappings
from tests.mid.strategies import programs

EXAMPLE = """\
program "an mlp" on 4 tiles
format f0 = TensorFormat(precision=F16(), layout=TensorLayout(order=AmpLeft(), tiling=GridTiling(axes=(\
AxisTiling(axis=0, partitions=2),))))
format f1 = TensorFormat(precision=F16(), layout=TensorLayout(order=AmpRight(), \
tiling=GridTiling(replicas=2), memory_class=MemoryClass.INTERLEAVED))
format f2 = TensorFormat(precision=F8(scale_exponent=-3), layout=TensorLayout(order=RowMajor(), \
tiling=GridTiling(axes=(AxisTiling(axis=0, partitions=2),))))
owners o0 = OwnerMap(tile_count=4, rotation=1, embedding=(3, 1))
owners o1 = OwnerMap(tile_count=4, permutation=(0..3))
input x: [8,32] f0 o0
parameter "w 1": [32,16] f1 o0 for up
up.product: [8,16] f0 o0 = Product(axes=ProductAxes("ac,cb->ab")) of x, "w 1" for up
turned: [16,8] f0 o1 = copy up.product through CoordinateMapping("[16,8]->[8,16] (d1, d0)") \
policy MovementPolicy.DIRECT
both: [16,16] f0 o0 for join = copy [0:16,0:8] of turned, [0:16,8:16] of turned
z: [8,16] f0 o0 = repeat 3 for blocks {
  carried h: [8,16] f0 o0 = up.product
  sequence m: [8,16] f0 o0 = up.product, up.product, up.product
  "copy": [8,16] f0 o0 for "" = Elementwise(operation=Operation.ADD) of h, m alias 0 at 0 for blocks
  yield "copy"
}
window: [2,16] f0 o0 = Elementwise(operation=Operation.GELU) of z as SelectedWindow(result_rank=2, axes=(\
Follow(axis=0, start=4), Follow(axis=1))) alias 0 at 0+16
small: [2,16] f2 o0 = Cast(is_separate=true) of window
output y = both
output "out 2" = small
"""


@given(programs())
def test_text_is_a_fixed_point_and_the_program_comes_back(made: MidProgram) -> None:
    ordered = dataclasses.replace(made, block=in_definition_order(made.block))
    text = text_of_program(ordered)
    assert parse_program(text) == ordered
    assert text_of_program(parse_program(text)) == text
    assert text_of_program(made) == text


def test_example_reads_as_it_is_written() -> None:
    made = parse_program(EXAMPLE)
    assert text_of_program(made) == EXAMPLE
    assert [value.node for value in made.block.values] == ["", "up", "up", "", "join", "blocks", "", ""]


@given(mappings())
def test_mappings_come_back(pair: tuple[CoordinateMapping, Array]) -> None:
    mapping, _ = pair
    assert mapping_of(str(mapping)) == mapping


@given(
    st.sampled_from([(), (2,), (1,), (2, 3), (1, 3), (2, 1)]),
    st.sampled_from([(), (2,), (1,), (2, 3), (1, 3), (2, 1)]),
    st.booleans(),
    st.booleans(),
)
def test_axes_of_products_come_back(
    left: tuple[int, ...], right: tuple[int, ...], transpose_left: bool, transpose_right: bool
) -> None:
    one = (*left, 5, 4) if transpose_left else (*left, 4, 5)
    other = (*right, 7, 5) if transpose_right else (*right, 5, 7)
    try:
        axes = matrix_product(one, other, transpose_left=transpose_left, transpose_right=transpose_right)
    except ValueError:
        return
    assert axes_of(str(axes)) == axes
    assert isinstance(axes, ProductAxes)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 0: the text ends too early"),
        ("program p on 4", "line 1: tiles is missing before the end"),
        ("program p on 4 tiles\ninput x: [2] f0 o0", "line 2: f0 or o0 is not defined"),
        ("program p on 4 tiles\nowners o0 = OwnerMap()", "line 2: OwnerMap needs tile_count"),
        (
            "program p on 4 tiles\nowners o0 = OwnerMap(tile_count=4, tiles=4)",
            "line 2: OwnerMap has no tiles",
        ),
        ("program p on 4 tiles\nowners o0 = F16()", "line 2: F16() is no OwnerMap"),
        ("program p on 4 tiles\nowners o0 = System(tile_count=4)", "line 2: System is unknown"),
        ("program p on 4 tiles\noutput y = x", "line 2: there is no value x yet"),
        ("program p on 4 tiles $", "line 1: '$' cannot be read"),
        ("program p on 4 tiles tiles", "line 1: tiles follows what was complete"),
    ],
)
def test_what_is_no_program_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(ValueError, match="line") as caught:
        parse_program(text)
    assert str(caught.value) == message


def test_a_body_is_read_as_a_block() -> None:
    (repeat,) = (each for each in parse_program(EXAMPLE).block.operations if isinstance(each, Repeat))
    assert isinstance(repeat.body, Block)
    assert [value.name for value in repeat.body.values] == ["h", "m", "copy"]
    assert repeat.sequences == ((2, 2, 2),)
