"""Index relations of computations against NumPy's own semantics (OI-01 to OI-07, ML-20)."""

import itertools
from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.geometry import views
from compiler.geometry.mapping import CoordinateMapping, NotRepresentable, identity
from compiler.geometry.product import BatchAxis, ContractionAxis, OuterAxis, ProductAxes, matrix_product
from compiler.geometry.region import Region
from compiler.geometry.relation import (
    Broadcast,
    Follow,
    Identity,
    ProductOperand,
    Relation,
    SelectedWindow,
    Side,
    Span,
    broadcast_relation,
    localize,
    mapping_of,
    operand_axes,
    project,
    validate,
)
from tests.geometry.coordinates import destination_coordinates, source, source_coordinates
from tests.geometry.view_sequences import regions, shapes


def slices(region: Region) -> tuple[slice, ...]:
    return tuple(slice(start, stop) for start, stop in region.bounds)


def cells(region: Region) -> set[tuple[int, ...]]:
    return set(itertools.product(*(range(start, stop) for start, stop in region.bounds)))


def rows(coordinates: npt.NDArray[np.int64]) -> set[tuple[int, ...]]:
    return {tuple(map(int, coordinates[index])) for index in np.ndindex(coordinates.shape[:-1])}


@st.composite
def broadcast_operands(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """An operand shape and the result shape that it is broadcast to."""
    result = draw(shapes(1, 4))
    operand = tuple(1 if draw(st.booleans()) else extent for extent in result)
    return operand[draw(st.integers(0, len(result))) :], result


@given(broadcast_operands(), st.data())
def test_broadcasting_is_numpys(
    operand_and_result: tuple[tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    """OI-01: the same relation validates, projects ownership and converts to coordinates."""
    operand, result = operand_and_result
    relation = broadcast_relation(operand, result)
    validate(relation, operand, result)
    view = np.broadcast_to(source(operand), result)
    read = source_coordinates(view, operand)
    region = data.draw(regions(result))
    projected = project(relation, operand, region)
    assert cells(projected) == rows(read[slices(region)])
    mapping = mapping_of(relation, operand, result)
    assert isinstance(mapping, CoordinateMapping)
    assert np.array_equal(mapping.sources_of(destination_coordinates(result)), read)
    assert mapping == views.broadcast(operand, result)
    # OI-02: on a shard the relation holds between the parts, counted from their starts.
    local = localize(relation)
    validate(local, projected.extents, region.extents)
    assert isinstance(relation, Identity) == (operand == result)


def test_a_bias_reads_coordinate_zero_and_a_shard_of_one_row_stays_an_identity() -> None:
    bias = broadcast_relation((1, 64, 768), (4, 64, 768))
    assert str(bias) == "(0,d1,d2)"
    shard = Region(bounds=((3, 4), (8, 16), (0, 256)))
    assert project(bias, (1, 64, 768), shard) == Region(bounds=((0, 1), (8, 16), (0, 256)))
    same = broadcast_relation((4, 64, 768), (4, 64, 768))
    assert same == Identity(rank=3)
    assert str(same) == "(d0,d1,d2)"
    assert project(same, (4, 64, 768), shard) == shard


@st.composite
def windows(draw: st.DrawFn) -> tuple[SelectedWindow, tuple[int, ...], tuple[int, ...]]:
    """A selected window with permuted, offset and fixed axes, an operand and a result that it fits."""
    result = draw(shapes(1, 4))
    followed = draw(st.permutations(range(len(result))))[: draw(st.integers(0, len(result)))]
    axes: list[Follow | Span] = []
    operand: list[int] = []
    for axis in followed:
        start = draw(st.integers(0, 3))
        axes.append(Follow(axis=axis, start=start))
        operand.append(start + result[axis] + draw(st.integers(0, 2)))
    for _ in range(draw(st.integers(0, 2))):
        start = draw(st.integers(0, 3))
        span = Span(start=start, stop=start + draw(st.integers(1, 3)))
        at = draw(st.integers(0, len(axes)))
        axes.insert(at, span)
        operand.insert(at, span.stop + draw(st.integers(0, 2)))
    return SelectedWindow(result_rank=len(result), axes=tuple(axes)), tuple(operand), result


@given(windows(), st.data())
def test_a_selected_window_reads_its_axes(
    window: tuple[SelectedWindow, tuple[int, ...], tuple[int, ...]], data: st.DataObject
) -> None:
    relation, operand, result = window
    validate(relation, operand, result)
    region = data.draw(regions(result))

    def read(coordinate: tuple[int, ...]) -> Iterable[tuple[int, ...]]:
        return itertools.product(
            *(
                range(axis.start, axis.stop)
                if isinstance(axis, Span)
                else [coordinate[axis.axis] + axis.start]
                for axis in relation.axes
            )
        )

    projected = project(relation, operand, region)
    assert cells(projected) == {cell for coordinate in cells(region) for cell in read(coordinate)}
    mapping = mapping_of(relation, operand, result)
    if any(isinstance(axis, Span) and axis.stop - axis.start > 1 for axis in relation.axes):
        assert isinstance(mapping, NotRepresentable)
    else:
        assert isinstance(mapping, CoordinateMapping)
        for coordinate in cells(region):
            assert [mapping.source_of(coordinate)] == list(read(coordinate))
    local = localize(relation)
    validate(local, projected.extents, region.extents)
    whole = Region.of_extents(region.extents)
    assert project(local, projected.extents, whole) == Region.of_extents(projected.extents)


def test_a_normalized_axis_is_read_whole() -> None:
    relation = SelectedWindow(result_rank=3, axes=(Follow(axis=0), Follow(axis=1), Span(start=0, stop=768)))
    assert str(relation) == "(d0,d1,0:768)"
    assert project(relation, (2, 64, 768), Region(bounds=((0, 1), (8, 9), (5, 6)))) == Region(
        bounds=((0, 1), (8, 9), (0, 768))
    )
    assert mapping_of(relation, (2, 64, 768), (2, 64, 768)) == NotRepresentable(
        reason="operand axis 2 (extent 768) is read in 0:768 by every result coordinate"
    )


@st.composite
def products(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[int, ...], bool, bool]:
    """Shapes of two operands of a matrix product, with batch broadcast and transposed storage."""
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    m, k, n = (draw(st.integers(1, 3)) for _ in range(3))
    transpose_left, transpose_right = draw(st.booleans()), draw(st.booleans())
    leading: list[tuple[int, ...]] = []
    for _ in range(2):
        own = [1 if draw(st.integers(0, 3)) == 0 else extent for extent in batch]
        leading.append(tuple(own[draw(st.integers(0, len(own))) :]))
    left = (*leading[0], *((k, m) if transpose_left else (m, k)))
    right = (*leading[1], *((n, k) if transpose_right else (k, n)))
    return left, right, transpose_left, transpose_right


@given(products(), st.data())
def test_products_need_what_changes_numpys_result(
    product: tuple[tuple[int, ...], tuple[int, ...], bool, bool], data: st.DataObject
) -> None:
    """Each operand element in turn is the only non-zero one: it is needed where the result is not zero."""
    left, right, transpose_left, transpose_right = product
    axes = matrix_product(left, right, transpose_left=transpose_left, transpose_right=transpose_right)

    def multiply(a: npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return np.matmul(
            np.swapaxes(a, -1, -2) if transpose_left else a, np.swapaxes(b, -1, -2) if transpose_right else b
        )

    ones = np.ones(left, dtype=np.int64), np.ones(right, dtype=np.int64)
    result = multiply(*ones).shape
    assert axes.result_shape(left, right) == result
    region = data.draw(regions(result))
    for side, shape in ((Side.LEFT, left), (Side.RIGHT, right)):
        relation = ProductOperand(axes=axes, side=side)
        validate(relation, shape, result)
        needed: set[tuple[int, ...]] = set()
        for element in cells(Region.of_extents(shape)):
            single = np.zeros(shape, dtype=np.int64)
            single[element] = 1
            outcome = multiply(single, ones[1]) if side is Side.LEFT else multiply(ones[0], single)
            if outcome[slices(region)].any():
                needed.add(element)
        projected = project(relation, shape, region)
        assert cells(projected) == needed
        assert project(
            localize(relation), projected.extents, Region.of_extents(region.extents)
        ) == Region.of_extents(projected.extents)
        mapping = mapping_of(relation, shape, result)
        contracted = shape[axes.contraction[0].left if side is Side.LEFT else axes.contraction[0].right]
        assert isinstance(mapping, CoordinateMapping) == (contracted == 1)


@pytest.mark.parametrize(
    ("left", "right", "transpose_right", "text", "rows_of", "columns_of", "batch"),
    [
        ((64, 768), (768, 3072), False, "ac,cb->ab", 1, 1, 0),
        ((4, 64, 768), (768, 3072), False, "abd,dc->abc", 2, 1, 0),
        ((4, 64, 768), (1, 3072, 768), True, "abd,1cd->abc", 2, 1, 0),
        ((2, 12, 64, 48), (2, 12, 64, 48), True, "abce,abde->abcd", 1, 1, 2),
        ((64, 768), (4, 768, 32), False, "bd,adc->abc", 1, 2, 0),
    ],
)
def test_axis_sets_of_the_usual_products(
    left: tuple[int, ...],
    right: tuple[int, ...],
    transpose_right: bool,
    text: str,
    rows_of: int,
    columns_of: int,
    batch: int,
) -> None:
    axes = matrix_product(left, right, transpose_right=transpose_right)
    assert str(axes) == text
    assert (len(axes.rows), len(axes.columns), len(axes.batch), len(axes.contraction)) == (
        rows_of,
        columns_of,
        batch,
        1,
    )
    assert str(ProductOperand(axes=axes, side=Side.LEFT)) == f"left of {text}"


def test_a_part_of_the_contraction_narrows_both_operands() -> None:
    axes = matrix_product((64, 729), (1152, 729), transpose_right=True)
    part = Region(bounds=((146, 292),))
    result = Region(bounds=((0, 8), (16, 32)))
    left, right = ProductOperand(axes=axes, side=Side.LEFT), ProductOperand(axes=axes, side=Side.RIGHT)
    assert project(left, (64, 729), result, contraction=part) == Region(bounds=((0, 8), (146, 292)))
    assert project(right, (1152, 729), result, contraction=part) == Region(bounds=((16, 32), (146, 292)))


def test_relations_are_keys() -> None:
    first = matrix_product((4, 64, 768), (768, 3072))
    again = ProductAxes(
        batch=(),
        rows=(OuterAxis(operand=0, result=0), OuterAxis(operand=1, result=1)),
        columns=(OuterAxis(operand=1, result=2),),
        contraction=(ContractionAxis(left=2, right=0),),
    )
    relations: dict[Relation, str] = {
        Identity(rank=2): "identity",
        Broadcast(operand_rank=1, result_rank=2, single_axes=()): "broadcast",
        SelectedWindow(result_rank=2, axes=(Follow(axis=0), Follow(axis=1))): "window",
        ProductOperand(axes=first, side=Side.LEFT): "left",
        ProductOperand(axes=first, side=Side.RIGHT): "right",
    }
    assert len(relations) == 5
    assert relations[ProductOperand(axes=again, side=Side.LEFT)] == "left"
    assert operand_axes(Identity(rank=2), (3, 4)) == (Follow(axis=0), Follow(axis=1))
    assert mapping_of(Identity(rank=2), (3, 4), (3, 4)) == identity((3, 4))


LEFT = ProductOperand(axes=matrix_product((4, 64, 768), (768, 32)), side=Side.LEFT)
SINGLE = ProductOperand(axes=matrix_product((4, 2, 3), (1, 3, 5)), side=Side.RIGHT)
BIAS = Broadcast(operand_rank=3, result_rank=3, single_axes=(0,))
CROP = SelectedWindow(result_rank=2, axes=(Follow(axis=0, start=2), Span(start=0, stop=4)))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Follow(axis=-1), "result axis -1 from 0 onwards: neither can be negative"),
        (lambda: Span(start=3, stop=3), "3:3 is not a range of operand coordinates"),
        (
            lambda: Broadcast(operand_rank=3, result_rank=2, single_axes=(0,)),
            "an operand of rank 3 in a result of rank 2",
        ),
        (
            lambda: Broadcast(operand_rank=2, result_rank=2, single_axes=()),
            "a broadcast that repeats nothing is an identity",
        ),
        (
            lambda: Broadcast(operand_rank=2, result_rank=2, single_axes=(1, 0)),
            "single axes (1, 0) are not distinct ascending axes below 2",
        ),
        (
            lambda: SelectedWindow(result_rank=2, axes=(Follow(axis=1), Follow(axis=1))),
            "result axes (1, 1) are not distinct ascending axes below 2",
        ),
        (
            lambda: SelectedWindow(result_rank=2, axes=(Follow(axis=2),)),
            "result axes (2,) are not distinct ascending axes below 2",
        ),
        (
            lambda: broadcast_relation((2, 3), (3,)),
            "operand [2,3] has more axes than result [3]",
        ),
        (
            lambda: broadcast_relation((3,), (2, 4)),
            "operand [3], result [2,4]: operand axis 0 has extent 3, neither 1 nor the 4 of result axis 1",
        ),
        (
            lambda: validate(BIAS, (1, 4, 6), (4, 6)),
            "the relation describes a result of rank 3, not [4,6]",
        ),
        (
            lambda: validate(BIAS, (1, 4), (2, 4, 6)),
            "the relation describes an operand of rank 3, not [1,4]",
        ),
        (
            lambda: validate(BIAS, (1, 4, 6), (2, 5, 6)),
            "operand axis 1 has extent 4, result axis 1 of extent 5 reads 0:5",
        ),
        (
            lambda: validate(BIAS, (2, 4, 6), (2, 4, 6)),
            "operand axis 0 has extent 2 and is read in 0:1",
        ),
        (
            lambda: validate(SINGLE, (2, 3, 5), (4, 2, 5)),
            "operand axis 0 has extent 2 and is read in 0:1",
        ),
        (
            lambda: validate(Identity(rank=1), (5,), (4,)),
            "operand axis 0 has extent 5, result axis 0 of extent 4 reads 0:4",
        ),
        (
            lambda: validate(CROP, (5, 4), (4, 9)),
            "operand axis 0 has extent 5, result axis 0 of extent 4 reads 2:6",
        ),
        (
            lambda: validate(CROP, (8, 3), (4, 9)),
            "operand axis 1 has extent 3 and is read in 0:4",
        ),
        (
            lambda: project(BIAS, (1, 4, 6), Region(bounds=((0, 1), (0, 4)))),
            "the relation describes a result of rank 3, not a region of rank 2",
        ),
        (
            lambda: project(BIAS, (1, 4, 6), Region(bounds=((0, 1), (2, 2), (0, 6)))),
            "an empty region needs nothing of an operand",
        ),
        (
            lambda: project(BIAS, (1, 4, 6), Region(bounds=((0, 1), (2, 5), (0, 6)))),
            "axis 1: 2:5 is empty or leaves its extent of 4",
        ),
        (
            lambda: project(
                BIAS, (1, 4, 6), Region.of_extents((1, 4, 6)), contraction=Region(bounds=((0, 1),))
            ),
            "only a product has a contraction",
        ),
        (
            lambda: project(
                LEFT, (4, 64, 768), Region.of_extents((4, 64, 32)), contraction=Region(bounds=((700, 800),))
            ),
            "axis 0: 700:800 is empty or leaves its extent of 768",
        ),
        (
            lambda: operand_axes(LEFT, (64, 768)),
            "the left operand has shape [64,768], not rank 3",
        ),
        (
            lambda: matrix_product((4,), (4, 5)),
            "a matrix product needs two axes of each operand, not [4] and [4,5]",
        ),
        (
            lambda: matrix_product((3, 4), (5, 6)),
            "contraction: left axis 1 has extent 4, right axis 0 has extent 5",
        ),
        (
            lambda: matrix_product((2, 3, 4), (3, 4, 6)),
            "batch: left axis 0 has extent 2, right axis 0 has extent 3",
        ),
        (
            lambda: LEFT.axes.result_shape((4, 768), (768, 32)),
            "the left operand has shape [4,768], the product needs rank 3",
        ),
        (
            lambda: matrix_product((4, 2, 3), (1, 3, 5)).result_shape((4, 2, 3), (2, 3, 5)),
            "right axis 0 is read at coordinate 0 but has extent 2",
        ),
        (
            lambda: ProductAxes(batch=(), rows=(), columns=(), contraction=()),
            "a product has at least one contraction axis",
        ),
        (
            lambda: ProductAxes(
                batch=(BatchAxis(left=0, right=0, result=0),),
                rows=(OuterAxis(operand=0, result=1),),
                columns=(),
                contraction=(ContractionAxis(left=1, right=1),),
            ),
            "left axes [0, 0, 1] are not 0 to 2, each with one role",
        ),
        (
            lambda: ProductAxes(
                batch=(),
                rows=(OuterAxis(operand=1, result=1), OuterAxis(operand=0, result=0)),
                columns=(),
                contraction=(ContractionAxis(left=2, right=0),),
            ),
            "row axes (1, 0) are not ascending",
        ),
    ],
)
def test_what_does_not_hold_is_refused_precisely(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        build()
    assert str(caught.value) == message
