"""What every program of a graph holds at least: data, code, exchange rows and descriptors, by proof.

Each floor is bytes of every tile plus bytes of all tiles together; some tile holds at least its share of
those. Only what the outputs depend on is counted, since no program needs the rest.

============  ============================================================================================
data          parameters, stored once; at every product the result and the larger other operand, stored once
code          the runtime and the frame of the tile program; of each family whose kernels the graph cannot do
              without, the smallest; loops, and a call of each product
exchange rows one on every tile that holds some of what a single number depends on, where that is more than a
              tile has; otherwise none: a tile could compute by itself
descriptors   those of the host's slices, of which each tensor has one for each page at least
============  ============================================================================================

Beside products no node has a floor of data: element-wise work and casts may take the storage of what they
read, views move nothing, and what they make may never exist as a whole. So may be one operand of a product
that is a view of the other. Equal products may be computed once. A cast is counted where it narrows what the
host has written, since whoever computes something may write it narrower. Pointers of Repeats and patches of
rows are on tiles that nobody knows yet.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod
from typing import Final, final

from compiler.estimate import least
from compiler.geometry.precision import Precision
from compiler.graph.ir import Add, Block, Cast, Gelu, Gemm, Graph, Node, Repeat, ValueId
from compiler.graph.rules import product_precision
from compiler.target.host import HOST_PAGE
from compiler.target.units import Bytes

_NONE: Final[frozenset[ValueId]] = frozenset()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Bytes that no program does without.

    Args:
        each: on every tile.
        shared: on all tiles together, beside those.
    """

    each: int = 0
    shared: int = 0

    def of_a_tile(self, tile_count: int) -> Bytes:
        """What some tile has at least."""
        return Bytes(self.each - (-self.shared // tile_count))

    def __add__(self, other: "Floor") -> "Floor":
        """Of both together, since averages add up."""
        return Floor(each=self.each + other.each, shared=self.shared + other.shared)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Floors:
    """Floors of a graph.

    Args:
        parameters: data that are there from the first run to the last.
        product: those of the product that has most beside them.
        product_nodes: path of that product; empty if there is none.
        code: linked code and tile programs.
        rows: exchange rows.
        descriptors: tables.
    """

    parameters: Floor
    product: Floor
    product_nodes: tuple[str, ...]
    code: Floor
    rows: Floor
    descriptors: Floor


def floors_of(graph: Graph, memory: Bytes) -> Floors:
    """The floors of a graph.

    Args:
        graph: the model.
        memory: bytes of a tile, which decide whether tiles have to exchange anything.
    """
    needed = tuple(_needed(graph.block, frozenset(graph.outputs), ""))
    size, nodes = _largest_product(needed, frozenset(graph.parameters))
    return Floors(
        parameters=Floor(shared=sum(bytes_of(graph.block, each) for each in graph.parameters)),
        product=Floor(shared=size),
        product_nodes=nodes,
        code=_code(graph, needed),
        rows=_rows(graph, memory),
        descriptors=_descriptors(graph),
    )


def bytes_of(block: Block, value: ValueId, element_bytes: int | None = None) -> int:
    """Of a value; of elements of at most so many bytes, if any are told."""
    type_ = block.values[value].type
    own = type_.precision.element_bytes
    return prod(type_.shape) * (own if element_bytes is None else min(own, element_bytes))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Needed:
    """A node that the outputs depend on, with the block that it is in and its path."""

    block: Block
    node: Node
    path: str
    is_inside: bool


def _needed(block: Block, wanted: frozenset[ValueId], prefix: str) -> Iterator[_Needed]:
    """The nodes that some values of a block depend on, from the last to the first, those of bodies too."""
    live = set(wanted)
    for node in reversed(block.nodes):
        if live.isdisjoint(node.results):
            continue
        path = prefix + block.values[node.results[0]].name
        if isinstance(node.operation, Repeat):
            kept = frozenset(place for place, result in enumerate(node.results) if result in live)
            inside, read = _needed_inside(node.operation, kept, f"{path}/")
            yield from inside
            bound = node.operation.bindings(node.operands)
            sources = (
                *((value,) for value in (*bound.carried, *bound.invariants)),
                *bound.sequences,
            )
            for argument, values in zip(node.operation.body.arguments, sources, strict=True):
                if argument in read:
                    live.update(values)
        else:
            live.update(node.operands)
        yield _Needed(block=block, node=node, path=path, is_inside=bool(prefix))


def _needed_inside(
    repeat: Repeat, kept: frozenset[int], prefix: str
) -> tuple[tuple[_Needed, ...], frozenset[ValueId]]:
    """Nodes of a body that some of its results depend on, over all iterations, and what they read."""
    body = repeat.body
    while True:
        results = frozenset(body.results[place] for place in kept)
        inside = tuple(_needed(body, results, prefix))
        read = results.union(*(each.node.operands for each in inside if each.block is body))
        more = kept | {place for place in range(repeat.carried) if body.arguments[place] in read}
        if more == kept:
            return inside, read
        kept = more


# Data.


def _largest_product(
    needed: Iterable[_Needed], parameters: frozenset[ValueId]
) -> tuple[int, tuple[str, ...]]:
    """The fewest bytes that the product with most has to hold beside parameters, and its path."""
    largest: tuple[int, tuple[str, ...]] = (0, ())
    for each in needed:
        if not isinstance(each.node.operation, Gemm):
            continue
        block, operands = each.block, each.node.operands
        # Arguments of a body may be parameters.
        counted = frozenset(block.arguments) if each.is_inside else parameters
        # An operand in a wider precision may be gone when what it was cast to is multiplied.
        narrow = _multiplied(each).element_bytes
        read = max((bytes_of(block, value, narrow) for value in operands if value not in counted), default=0)
        size = read + bytes_of(block, each.node.results[0])
        # Of equal ones the first: nodes come from the last to the first.
        if size >= largest[0]:
            largest = (size, (each.path,))
    return largest


def _multiplied(product: _Needed) -> Precision:
    """What a product multiplies in."""
    operation = product.node.operation
    if not isinstance(operation, Gemm):
        raise ValueError(f"{product.path} is no product")
    left, right = (product.block.values[operand].type for operand in product.node.operands)
    return product_precision(operation.precision, left, right)


# Code.


def _code(graph: Graph, needed: tuple[_Needed, ...]) -> Floor:
    """Linked code, which is the same on every tile, and the program of a tile."""
    # Parts of a graph may be one object: what is counted once then is a floor still.
    products = {
        (id(each.block), each.node.operation, each.node.operands)
        for each in needed
        if isinstance(each.node.operation, Gemm)
    }
    # Only arithmetic has to be gone through again and again.
    loops = {
        id(each.block)
        for each in needed
        if each.is_inside and isinstance(each.node.operation, Gemm | Add | Gelu)
    }
    meetings = sum(map(bool, (graph.inputs, graph.parameters, graph.outputs)))
    return Floor(
        each=least.RUNTIME
        + _kernels(graph, needed)
        + least.TILE_PROGRAM
        + meetings * least.HOST_MEETINGS
        + len(loops) * least.LOOP,
        shared=len(products) * least.CALL,
    )


def _kernels(graph: Graph, needed: tuple[_Needed, ...]) -> int:
    """Products, element-wise work and casts: of each the smallest that does for the node with most."""
    products, pointwise, casts = [0], [0], [0]
    written = frozenset(graph.block.arguments)
    for each in needed:
        match each.node.operation:
            case Gemm():
                products.append(least.PRODUCT)
                if not each.is_inside:
                    casts += _narrowings(each, written, _multiplied(each))
            case Gelu():
                pointwise.append(least.GELU)
            case Add():
                pointwise.append(least.ADDITION)
            case Cast(precision=result) if not each.is_inside:
                casts += _narrowings(each, written, result)
            case _:
                pass
    return max(products) + max(pointwise) + max(casts)


def _narrowings(each: _Needed, written: frozenset[ValueId], result: Precision) -> list[int]:
    """Least code for the operands of a node that the host has written and the node takes in a precision."""
    sources = (each.block.values[operand].type for operand in each.node.operands if operand in written)
    return [least.narrowing(source.precision, result) for source in sources]


# Descriptors.


def _descriptors(graph: Graph) -> Floor:
    """A slice is at most a page, and of one tensor."""
    tensors = (*graph.block.arguments, *dict.fromkeys(graph.outputs))
    slices = sum(-(-bytes_of(graph.block, each) // HOST_PAGE) for each in tensors)
    return Floor(shared=slices * least.HOST_DESCRIPTOR)


# Exchange rows.


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """Arguments of the graph of which numbers of a value depend on every element.

    Args:
        element: so does each element.
        row, column: so do the elements of each line along the last axis, or the last but one, together.
    """

    element: frozenset[ValueId] = _NONE
    row: frozenset[ValueId] = _NONE
    column: frozenset[ValueId] = _NONE


def _rows(graph: Graph, memory: Bytes) -> Floor:
    """A row for every tile that what one number depends on is spread over, where no tile has all of it.

    A tile without rows knows what the host wrote to it and nothing else. If each number of an output depends
    on more than that can be, such a tile has no part in the output: all that it depends on is elsewhere, on
    as many tiles as its bytes fill, and these have rows.
    """
    found: dict[ValueId, _Sources] = {}
    for node in graph.block.nodes:
        for result in node.results:
            found[result] = _sources_of(graph.block, node, found)
    largest = max(
        (
            sum(bytes_of(graph.block, argument) for argument in sources.element)
            for output in graph.outputs
            if (sources := found.get(output)) is not None
        ),
        default=0,
    )
    return Floor(shared=-(-largest // memory) * least.EXCHANGE_ROW if largest > memory else 0)


def _sources_of(block: Block, node: Node, found: dict[ValueId, _Sources]) -> _Sources:
    """Of the result of a node, from those of its operands; none where nothing is known."""
    known = [found.get(operand, _Sources()) for operand in node.operands]
    match node.operation:
        case Gemm(transpose_left=turned_left, transpose_right=turned_right):
            left, right = known
            along_inner = left.column if turned_left else left.row
            across_inner = right.row if turned_right else right.column
            element = along_inner | across_inner | left.element | right.element
            one, other = node.operands
            return _Sources(
                element=element,
                row=element | _whole(block, other),
                column=element | _whole(block, one),
            )
        case Gelu() | Cast() | Add():
            shape = block.values[node.results[0]].type.shape
            same = [
                sources
                for operand, sources in zip(node.operands, known, strict=True)
                if block.values[operand].type.shape == shape
            ]
            return _Sources(
                element=_NONE.union(*(each.element for each in same)),
                row=_NONE.union(*(each.row for each in same)),
                column=_NONE.union(*(each.column for each in same)),
            )
        case _:
            return _Sources()


def _whole(block: Block, operand: ValueId) -> frozenset[ValueId]:
    """A matrix that the host has written: a line of a product depends on all of it."""
    is_matrix = len(block.values[operand].type.shape) == 2
    return frozenset({operand}) if is_matrix and operand in block.arguments else _NONE
