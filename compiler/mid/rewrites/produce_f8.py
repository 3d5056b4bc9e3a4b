"""Producers that write F8: a GELU, with or without bias, makes what a cast would make of its result.

Changes an element-wise operation and the cast to F8 that alone reads its result into one computation that
stands where the first stood and makes the result of the cast: same type, same owners. The F16 value between
goes, and with it the place in the operand's storage that it may have had: F8 rows are shorter.

Safe because the kernel rounds to F16 first and quantizes that as the cast does. Where no kernel writes F8 in
the cast's layout on every tile, nothing is changed.
"""

import dataclasses

from compiler.geometry.precision import F8, F16
from compiler.geometry.relation import Identity
from compiler.kernels.pointwise.binding import Operation as Pointwise
from compiler.mid.ir import Block, Compute, MidProgram, Operation, Value
from compiler.mid.rewrites.blocks import BlockEdit, Uses, bindings_of, everywhere, uses_of
from compiler.mid.work import Cast, Elementwise


def produce_f8(program: MidProgram) -> MidProgram:
    """A well-formed program whose GELUs write F8 where only F8 is read."""
    return everywhere(program, _produce)


def _produce(block: Block) -> Block:
    uses = uses_of(block)
    edit = BlockEdit(block)
    for position, operation in enumerate(block.operations):
        maker = _producer(block, uses, operation)
        if maker is None or not isinstance(operation, Compute):
            continue
        producer = block.operations[maker]
        if not isinstance(producer, Compute):
            continue
        direct = dataclasses.replace(producer, results=operation.results, aliases=())
        operands = [block.value(operand) for operand in producer.operands]
        if bindings_of(direct, operands, block.value(operation.results[0])) is not None:
            edit.put(maker, direct)
            edit.put(position)
    return edit.finish()


def _producer(block: Block, uses: Uses, operation: Operation) -> int | None:
    """Where the GELU is whose result an operation, a cast to F8, is the only reader of."""
    match operation:
        case Compute(
            work=Cast(), operands=(operand,), relations=(Identity(),), results=(result,), aliases=()
        ) if _quantizes(block.value(operand), block.value(result)):
            maker = uses.makers.get(operand)
        case _:
            return None
    if maker is None or uses.only_reader(operand) is None:
        return None
    match block.operations[maker]:
        case Compute(work=Elementwise(operation=Pointwise.GELU | Pointwise.BIAS_GELU)):
            return maker
        case _:
            return None


def _quantizes(operand: Value, result: Value) -> bool:
    """Codes of other codes would be rounded twice, and not as one kernel rounds."""
    return isinstance(operand.format.precision, F16) and isinstance(result.format.precision, F8)
