"""What the kernels of this family share: sizes, and the padding of results.

All of them walk storage 64 bits of F16 at a time. Padding is computed like everything else; what it holds
afterwards follows from which operands have elements there.
"""

from typing import Final

from compiler.geometry.operand import LocalOperand
from compiler.geometry.region import Region
from compiler.geometry.relation import Broadcast, Identity, Relation
from compiler.geometry.traversal import Traversal, traverse
from compiler.kernels.contract import Padding, PaddingState, Request

NAME: Final = "pointwise"
ALIGNMENT: Final = 8
QUAD: Final = 4
"""Halves in 64 bits."""
WORKERS: Final = 6
MOST: Final = 0x8000
"""Columns and rows in lanes are fewer."""


def parts(*entries: tuple[Traversal, PaddingState, PaddingState | None]) -> tuple[Padding, ...]:
    """Those of (bytes, state before, state after) that have bytes."""
    return tuple(
        Padding(part=part, before=before, after=after) for part, before, after in entries if part.pieces
    )


def result_padding(request: Request) -> tuple[Padding, ...]:
    """Zero where all operands are padding, finite where one of them has elements."""
    result = request.operands[0]
    touched: list[Region] = []
    for operand, relation in zip(request.operands[1:], request.relations[1:], strict=True):
        touched.append(logical_in_result(result, operand, relation))
    holes = result.region.subtract(result.logical_region)
    finite: list[Region] = []
    rest = list(holes)
    for region in touched:
        finite += [hole.intersect(region) for hole in rest if not hole.intersect(region).is_empty]
        rest = [part for hole in rest for part in hole.subtract(region)]
    return parts(
        (_bytes_of(result, finite), PaddingState.ANY, PaddingState.FINITE),
        (_bytes_of(result, rest), PaddingState.ANY, PaddingState.ZERO),
    )


def logical_in_result(result: LocalOperand, operand: LocalOperand, relation: Relation | None) -> Region:
    """Coordinates of the result whose coordinate in the operand holds an element."""
    bounds = list(result.region.bounds)
    match relation:
        case Identity():
            shift, single = 0, frozenset[int]()
        case Broadcast(operand_rank=operand_rank, single_axes=single_axes):
            shift, single = len(bounds) - operand_rank, frozenset(single_axes)
        case _:
            raise ValueError(f"{relation} does not repeat")
    for axis, logical in enumerate(operand.logical):
        if axis not in single:
            start = bounds[axis + shift][0]
            bounds[axis + shift] = (start, start + logical)
    return Region(bounds=tuple(bounds))


def _bytes_of(operand: LocalOperand, regions: list[Region]) -> Traversal:
    element = operand.precision.element_bytes
    return Traversal(
        pieces=tuple(
            piece for region in regions for piece in traverse(operand.storage, region, element).pieces
        )
    )
