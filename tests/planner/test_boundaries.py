"""Boundaries, homes, preparation and mappings of tiles: each does what it says, and changes no number."""

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from compiler.errors import InvalidInput, Unsupported
from compiler.estimate.mid import estimate
from compiler.geometry.order import AmpRight
from compiler.geometry.owners import OwnerMap, TileId
from compiler.geometry.precision import F16
from compiler.geometry.tiling import LinearTiling
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph
from compiler.kernels.gemm.binding import Orientation
from compiler.mid.build import BlockBuilder, program
from compiler.mid.codec import program_digest
from compiler.mid.ir import Block, Compute, Copy, MidProgram, Repeat, Value
from compiler.mid.parser import parse_program
from compiler.mid.rewrites.map_tiles import map_tiles
from compiler.mid.text import text_of_program
from compiler.mid.verify import verify
from compiler.mid.work import Cast, Product, Sum
from compiler.models.registry import model_named
from compiler.planner.boundaries import boundaries_of
from compiler.planner.candidate import Candidate, build_candidate
from compiler.planner.choices import Setting
from compiler.planner.gemm_choice import Algorithm, GemmChoice
from compiler.planner.layouts import row_format
from compiler.planner.mappings import STRIDE, permutation_of
from compiler.planner.propose import alternatives_of, only_moves_tiles, propose
from compiler.planner.recipe import (
    PACKING_ROWS,
    PREPARATIONS,
    TILE_MAPPINGS,
    Boundary,
    Cut,
    GroupSize,
    InputHome,
    Options,
    PackingRows,
    Recipe,
    StoredOnce,
    TileMapping,
)
from compiler.planner.rewriting import improve
from compiler.target.tiles import TILE_COUNT
from tests.mid.products import cut, grid_format
from tests.planner.graphs import CODES, GRAPHS, assert_right, mlp, prepared, projections, residual

SETTING = Setting(tile_count=16)
ONE_TILE = GemmChoice(algorithm=Algorithm.OUTPUT_STATIONARY)


def built(graph: Graph, recipe: Recipe, **changed: object) -> Candidate:
    """A candidate; ``changed`` are fields of its recipe."""
    return build_candidate(graph, SETTING, recipe.model_copy(update=changed))


def with_boundary(graph: Graph, path: str, form: Boundary) -> MidProgram:
    """A program in which one value waits in a form, and nothing else is chosen otherwise."""
    plain = built(graph, Recipe()).recipe
    return built(graph, plain, boundaries={**plain.boundaries, path: form}).program


def made_for(made: MidProgram, node: str) -> list[Value]:
    """What computations and copies make for a node, in order."""
    return [
        made.block.value(operation.result if isinstance(operation, Copy) else operation.results[0])
        for operation in made.block.operations
        if not isinstance(operation, Repeat) and operation.node == node
    ]


# Boundaries


def test_values_wait_in_forms_that_the_graph_permits() -> None:
    """PR-01: which value has which forms depends on the graph alone; outputs that nothing reads have none."""
    assert boundaries_of(residual()) == {
        "first": ("as made", "rows"),
        "curved": ("as made", "first product", "rows"),
        "second": ("as made", "rows"),
        "both": ("as made", "other operand", "first product", "rows"),
    }
    assert set(boundaries_of(mlp(F16(), blocks=2))) == {"blocks/hidden", "blocks/gelu"}


def test_rows_are_an_explicit_copy_behind_what_makes_a_value() -> None:
    """PR-20: the walk adds the boundary copy, once, and readers begin from there."""
    made = with_boundary(residual(), "first", "rows")
    assert made_for(made, "first")[-1].format == row_format((12, 64), F16(), 16)
    assert made_for(made, "curved")[-1].format == row_format((12, 64), F16(), 16)


def test_a_sum_is_held_where_its_other_operand_is() -> None:
    """The residual connection: either of two computed operands can stay, and the sum with it."""
    graph = residual()
    forms: tuple[tuple[Boundary, str], ...] = (("as made", "first"), ("other operand", "second"))
    for form, stays in forms:
        made = with_boundary(graph, "both", form)
        sums = made_for(made, "both")[-1]
        operand = made_for(made, stays)[-1]
        assert (sums.format, sums.owners) == (operand.format, operand.owners)


def fan() -> Graph:
    """A product that two products read."""
    build = GraphBuilder("fan")
    x = build.input("x", (64, 64), F16())
    first = build.gemm(x, build.parameter("v", (64, 64), F16()), name="first")
    for number, columns in enumerate((64, 256)):
        weight = build.parameter(f"w{number}", (64, columns), F16())
        build.output(build.gemm(first, weight, name=f"product{number}"))
    return build.finish()


def test_what_comes_transposed_is_turned_once_for_all_its_products() -> None:
    """PR-13, PR-20: one explicit copy in place of one for each reader, which pays; and it is proposed."""
    graph = fan()
    plain = built(graph, Recipe())
    (swapped, *_) = [
        choice
        for choice in alternatives_of(plain.recipe.gemms["first"], plain.alternatives["first"])
        if choice.orientation is Orientation.SWAPPED
    ]
    gemms = {**plain.recipe.gemms, "first": swapped}
    costs: dict[Boundary, int] = {}
    for form in boundaries_of(graph)["first"]:
        candidate = built(graph, plain.recipe, gemms=gemms, boundaries={"first": form})
        made, costs[form] = candidate.program, candidate.cost.cycles
        copies = [operation for operation in made.block.operations if isinstance(operation, Copy)]
        results = {one.results[0] for one in works(made, Sum) + works(made, Product) if one.node == "first"}
        turned = [one for one in copies if any(part.source in results for part in one.parts)]
        assert len(turned) == (2 if form == "as made" else 1)
        if form != "as made":
            assert candidate.recipe in propose(graph, plain)
    assert costs["first product"] < costs["rows"] < costs["as made"]


@st.composite
def recipes_near(draw: st.DrawFn, graph: Graph, plain: Recipe) -> Recipe:
    """The recipe of a candidate with any boundaries, homes and options."""
    inputs: dict[str, InputHome] = {}
    for argument in graph.inputs:
        value = graph.block.values[argument]
        rows, columns = value.type.shape
        homes: list[InputHome] = [
            "first reader",
            StoredOnce(shape=(rows, columns), cuts=(Cut(axis=0, parts=min(rows, 3), block=1),)),
            StoredOnce(shape=(rows * columns,), runs=5),
            StoredOnce(
                shape=(rows, columns),
                order="left",
                cuts=(Cut(axis=1, parts=-(-columns // 32), block=32), Cut(axis=0, parts=2, block=1)),
            ),
        ]
        kept = plain.inputs[value.name]
        inputs[value.name] = draw(st.sampled_from([*homes, kept]))
    return Recipe(
        gemms=plain.gemms,
        boundaries={path: draw(st.sampled_from(forms)) for path, forms in boundaries_of(graph).items()},
        inputs=inputs,
        options=Options(
            cast_before_copies=draw(st.booleans()),
            packing_rows=draw(st.sampled_from(PACKING_ROWS)),
            preparation=draw(st.sampled_from(PREPARATIONS)),
            tile_mapping=draw(st.sampled_from(TILE_MAPPINGS)),
        ),
    )


@settings(max_examples=40)
@given(
    data=st.data(),
    name=st.sampled_from(sorted(GRAPHS)),
    tiles=st.sampled_from([8, 16, 33]),
    replicates=st.booleans(),
    seed=st.integers(0, 1 << 32),
)
def test_any_boundaries_and_homes_compute_the_same(
    data: st.DataObject, name: str, tiles: int, replicates: bool, seed: int
) -> None:
    """PR-12, ML-26: well formed, normalized, built again alike, right; or refused by name."""
    graph, setting = GRAPHS[name](), Setting(tile_count=tiles, replicate_inputs=replicates)
    plain = build_candidate(graph, setting, Recipe()).recipe
    recipe = data.draw(recipes_near(graph, plain))
    try:
        candidate = build_candidate(graph, setting, recipe)
    except Unsupported as refusal:
        event(f"refused for {len(refusal.nodes)} nodes")
        return
    assert verify(candidate.program) == ()
    assert candidate.recipe.boundaries == recipe.boundaries
    assert_right(graph, candidate.program, seed)
    again = build_candidate(graph, setting, candidate.recipe)
    assert (again.recipe, again.program) == (candidate.recipe, candidate.program)


# Homes


def test_homes_stay_for_all_candidates_unless_a_recipe_says_otherwise() -> None:
    """DS-06: a candidate writes down where its inputs lie, and what is proposed around it keeps that."""
    for name in ("mlp", "mlp in F8"):
        graph = GRAPHS[name]()
        own = built(graph, Recipe())
        fixed = {key for key, home in own.recipe.inputs.items() if home != "first reader"}
        homes = {
            own.program.block.value(number).name: own.program.block.value(number)
            for number in own.program.inputs
        }
        kept = 0
        for recipe in propose(graph, own):
            if not fixed or any(recipe.inputs.get(key) != own.recipe.inputs[key] for key in fixed):
                continue
            if recipe.options.tile_mapping != own.recipe.options.tile_mapping:
                continue
            try:
                other = built(graph, recipe).program
            except Unsupported:
                continue
            kept += 1
            for number in other.inputs:
                value = other.block.value(number)
                if value.name in fixed:
                    assert value == homes[value.name]
        assert kept > 1 or not fixed


def test_a_home_is_written_down_where_the_device_has_one_copy() -> None:
    """DS-06: otherwise the recipe says that the first reader decides: what a Repeat carries, and replicas."""
    plain = built(mlp(F16()), Recipe()).recipe
    assert isinstance(plain.inputs["x"], StoredOnce)
    assert built(mlp(F16(), blocks=2), Recipe()).recipe.inputs == {"x": "first reader"}
    replicated = build_candidate(mlp(F16()), Setting(tile_count=16, replicate_inputs=True), Recipe())
    assert replicated.recipe.inputs == {"x": "first reader"}
    value = replicated.program.block.value(replicated.program.inputs[0])
    assert value.distribution.owner_count > value.distribution.shard_count


def test_an_input_lies_as_the_recipe_says() -> None:
    home = StoredOnce(shape=(20 * 64,), runs=7)
    candidate = built(mlp(F16()), Recipe(), inputs={"x": home})
    value = candidate.program.block.value(candidate.program.inputs[0])
    assert value.format.layout.tiling == LinearTiling(partitions=7, grain=4)
    assert candidate.recipe.inputs == {"x": home}


@pytest.mark.parametrize(
    ("home", "reason"),
    [
        (StoredOnce(shape=(20, 63), runs=4), "elements"),
        (StoredOnce(shape=(20, 64), cuts=(Cut(axis=0, parts=17, block=1),)), "17 shards need as many tiles"),
        (StoredOnce(shape=(20, 64), cuts=(Cut(axis=2, parts=2, block=1),)), "axis 2"),
        (StoredOnce(shape=(1280,), runs=1 << 40), "shards need as many tiles"),
        (StoredOnce(shape=(20, 64), cuts=(Cut(axis=0, parts=2, block=1 << 40),)), "more than the .* a tile"),
        (StoredOnce(shape=(32, 40), runs=4), "axis"),
    ],
)
def test_homes_that_do_not_suit_an_input_are_refused(home: StoredOnce, reason: str) -> None:
    """The message names the input and says why."""
    with pytest.raises(Unsupported, match=reason) as refusal:
        built(mlp(F16()), Recipe(), inputs={"x": home})
    assert refusal.value.nodes == ("x",)


def test_what_the_graph_does_not_have_is_refused() -> None:
    """PR-02: values, inputs and forms of other graphs are no choices."""
    for changed, nodes in (
        ({"boundaries": {"hidden": "as made", "y": "rows"}}, ("y",)),
        ({"boundaries": {"hidden": "other operand"}}, ("hidden",)),
        ({"boundaries": {"hidden": "first product"}}, ("hidden",)),
        ({"inputs": {"up": "first reader"}}, ("up",)),
    ):
        with pytest.raises(InvalidInput) as refusal:
            built(mlp(F16()), Recipe(), **changed)
        assert refusal.value.nodes == nodes


# Preparation


@pytest.mark.slow
def test_replicated_inputs_are_no_slower_than_inputs_stored_once() -> None:
    """PR-04: what has to be cast is stored once all the same, cast by one tile for each element, and sent."""
    graph = model_named("siglip-mlp-f8").build()
    once, replicated = (
        build_candidate(graph, Setting(tile_count=TILE_COUNT, replicate_inputs=replicates), Recipe())
        for replicates in (False, True)
    )
    assert replicated.cost.cycles <= once.cost.cycles
    each = build_candidate(
        graph, Setting(tile_count=TILE_COUNT, replicate_inputs=True), Recipe(inputs={"x": "first reader"})
    )
    assert each.cost.cycles >= replicated.cost.cycles


# Mappings of tiles


@given(mapping=st.sampled_from(TILE_MAPPINGS), tile_count=st.integers(1, 200))
def test_mappings_are_permutations(mapping: TileMapping, tile_count: int) -> None:
    """PR-30: of all tiles, whether they divide or not."""
    permutation = permutation_of(mapping, tile_count)
    if permutation is None:
        assert mapping == "identity"
    else:
        assert sorted(permutation) == list(range(tile_count))
        if tile_count > 2 * STRIDE:
            assert abs(permutation[1] - permutation[0]) == STRIDE


def owner_maps(block: Block) -> set[object]:
    """Of all values, those of bodies included."""
    found: set[object] = {value.owners for value in block.values}
    for operation in block.operations:
        if isinstance(operation, Repeat):
            found |= owner_maps(operation.body)
    return found


@pytest.mark.parametrize("name", ["two mlps", "projections", "residual"])
@pytest.mark.parametrize("mapping", ["strided", "blocks transposed"])
def test_a_mapping_is_for_the_whole_program(name: str, mapping: str) -> None:
    """PR-30: every owner map has it, estimates see no difference, and the program is another one."""
    graph = GRAPHS[name]()
    plain = built(graph, Recipe())
    options = plain.recipe.options.model_copy(update={"tile_mapping": mapping})
    mapped = built(graph, plain.recipe, options=options)
    wanted = permutation_of(options.tile_mapping, 16)
    assert {getattr(owners, "permutation", None) for owners in owner_maps(mapped.program.block)} == {wanted}
    assert mapped.cost == plain.cost == estimate(mapped.program)
    assert program_digest(mapped.program) != program_digest(plain.program)
    assert parse_program(text_of_program(mapped.program)) == mapped.program
    assert mapped.recipe in propose(graph, plain)
    assert only_moves_tiles(plain.recipe, mapped.recipe)
    assert_right(graph, mapped.program, 1)
    back = map_tiles(mapped.program, [TileId(int(tile)) for tile in np.argsort(wanted or ())])
    assert {getattr(owners, "permutation", None) for owners in owner_maps(back.block)} == {tuple(range(16))}


def test_what_is_no_permutation_is_refused() -> None:
    with pytest.raises(ValueError, match="no permutation of 16 tiles"):
        map_tiles(built(mlp(F16()), Recipe()).program, [TileId(0)] * 16)


# Options of the whole program


def works(made: MidProgram, kind: type) -> list[Compute]:
    """Computations of one kind."""
    return [
        operation
        for operation in made.block.operations
        if isinstance(operation, Compute) and isinstance(operation.work, kind)
    ]


def tiles_of(made: MidProgram, compute: Compute) -> frozenset[int]:
    """Where it works."""
    value = made.block.value(compute.results[0])
    return frozenset(value.owners.tiles(value.distribution.owner_count).tolist())


def test_the_order_of_casts_is_an_option() -> None:
    """PR-04: an input is cast where it is stored, or what was copied from it is."""
    for before in (True, False):
        made = built(mlp(CODES), Recipe(options=Options(cast_before_copies=before))).program
        reads_input = [cast.operands[0] in made.inputs for cast in works(made, Cast)]
        assert any(reads_input) is before


def test_reuse_of_cast_storage_is_an_option() -> None:
    """PR-04: where memory is short, codes take the storage of what they are made from."""
    build = GraphBuilder("large")
    x, bias = build.input("x", (240, 512), F16()), build.parameter("bias", (512,), F16())
    build.output(build.cast(build.add(x, bias, name="sum"), CODES, name="codes"))
    graph = build.finish()
    for reuses in (True, False):
        recipe = Recipe(options=Options(reuse_cast_inputs=reuses))
        made = build_candidate(graph, Setting(tile_count=1), recipe).program
        assert all(bool(cast.aliases) is reuses for cast in works(made, Cast))


def test_rows_that_a_tile_packs_are_an_option() -> None:
    """PR-04: rows that one tile holds are brought into panels by several, before they are sent."""
    builder = BlockBuilder()
    value = Value(
        name="x",
        shape=(64, 1024),
        format=row_format((64, 1024), F16(), 1),
        owners=OwnerMap(tile_count=64),
    )
    number = builder.argument(value)
    panels = grid_format(AmpRight(), (cut(1, 16, block=16),))
    brought = builder.copy(number, tensor_format=panels, owners=value.owners)
    block = builder.finish((brought,))
    made = program(block, name="rows", tile_count=64, input_count=1, outputs=("y",))
    asked: tuple[tuple[PackingRows, int], ...] = ((0, 1), (32, 2))
    for rows, copies in asked:
        packed = improve(made, Options(packing_rows=rows)).program
        assert len(packed.block.operations) == copies


def test_groups_of_sums_are_an_option() -> None:
    """PR-04: sums of independent products that would be on the same tiles are on different ones."""
    summed = GemmChoice(algorithm=Algorithm.PARALLEL_REDUCTION, inner_parts=6)
    gemms = {f"p{number}": summed for number in range(3)}
    asked: tuple[tuple[GroupSize, int], ...] = ((0, 1), (3, 3))
    for most, places in asked:
        recipe = Recipe(gemms=gemms, options=Options(parallel_reductions=most))
        made = built(projections(), recipe).program
        assert len({tiles_of(made, one) for one in works(made, Sum)}) == places


def test_who_prepares_operands_is_an_option() -> None:
    """PR-04: what one tile made is cast by that tile, or in pieces by many."""
    for who in PREPARATIONS:
        recipe = Recipe(gemms={"first": ONE_TILE}, options=Options(preparation=who))
        made = built(prepared(), recipe).program
        (cast,) = works(made, Cast)
        assert (len(tiles_of(made, cast)) > 1) is (who == "spread")
