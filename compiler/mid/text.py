"""The whole-device program as text, a line for each operation; ``parser`` reads it back.

::

    program mlp on 4 tiles
    format f0 = TensorFormat(precision=F16(), layout=TensorLayout(order=RowMajor(), tiling=GridTiling()))
    owners o0 = OwnerMap(tile_count=4)
    input x: [64,256] f0 o0
    parameter w: [256,64] f0 o0
    up.copy: [64,256] f1 o0 = copy x policy MovementPolicy.DIRECT for up
    up.product: [64,64] f2 o0 = Product(axes=ProductAxes("ac,cb->ab")) of up.copy, w for up
    both: [64,128] f0 o0 = copy [0:64,0:64] of up.product, [0:64,64:128] of up.product
    z: [64,64] f2 o0 = repeat 3 for blocks {
      carried y: [64,64] f2 o0 = up.product
      y.gelu: [64,64] f2 o0 = Elementwise(operation=Operation.GELU) of y alias 0 at 0
      yield y.gelu
    }
    output out = z

Distinct formats and owner maps are listed first and numbered as they occur. A copy's part tells its box where
it is not the whole result, and ``through`` which mapping where that is not the identity. Behind an operand
``as`` tells its relation, unless it is the one that the work implies: the two sides of a product, equal
coordinates of partial sums, NumPy's rule for the others. ``for`` names the graph node; behind a value where
it differs from that of its operation.

Stable: it depends on the program alone, and a program with other names has other names in its text alone.
"""

from collections.abc import Iterator, Sequence
from typing import Final, assert_never

from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import Shape, identity, text_of_shape
from compiler.geometry.owners import OwnerMap
from compiler.geometry.region import Region
from compiler.geometry.relation import Identity, ProductOperand, Relation, Side, broadcast_relation
from compiler.graph.text import PLAIN_NAME
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    CopyPart,
    MidProgram,
    MidValueId,
    MovementPolicy,
    Repeat,
    Value,
    results_of,
)
from compiler.mid.notation import text_of
from compiler.mid.work import Cast, Elementwise, Product, Sum, Work

KEYWORDS: Final = frozenset(
    ("alias", "as", "at", "copy", "for", "of", "policy", "repeat", "through", "none", "true", "false")
)
"""Names that need quotes though they are plain."""

_INDENT: Final = "  "


def text_of_program(program: MidProgram) -> str:
    """The text of a program whose references are right."""
    formats, owners = _tables(program.block)
    writer = _Writer(formats, owners)
    lines = [f"program {text_of_name(program.name)} on {program.tile_count} tiles"]
    lines += [f"format f{number} = {text_of(each)}" for each, number in formats.items()]
    lines += [f"owners o{number} = {text_of(each)}" for each, number in owners.items()]
    for number, argument in enumerate(program.block.arguments):
        kind = "input" if number < program.input_count else "parameter"
        lines.append(f"{kind} {writer.declared(program.block.value(argument), '')}")
    lines += writer.operations(program.block, "")
    lines += [
        f"output {text_of_name(name)} = {text_of_name(program.block.value(result).name)}"
        for name, result in zip(program.outputs, program.block.results, strict=True)
    ]
    return "\n".join(lines) + "\n"


def text_of_name(name: str) -> str:
    """The name, in quotes if it is not plain."""
    return name if PLAIN_NAME.fullmatch(name) and name not in KEYWORDS else text_of(name)


def implied_relation(work: Work, number: int, operand: Shape, result: Shape) -> Relation | None:
    """How a result of such work reads an operand unless it says otherwise; None where nothing is implied.

    Args:
        work: the work.
        number: of the operand.
        operand: its shape.
        result: shape of the result, a partials axis included.
    """
    match work:
        case Product(axes=axes):
            if number < 2:
                return ProductOperand(axes=axes, side=(Side.LEFT, Side.RIGHT)[number])
            return Identity(rank=axes.result_rank)
        case Sum():
            return Identity(rank=len(result))
        case Elementwise() | Cast():
            try:
                return broadcast_relation(operand, result)
            except ValueError:
                return None
        case _:
            assert_never(work)


def _tables(block: Block) -> tuple[dict[TensorFormat, int], dict[OwnerMap, int]]:
    """Formats and owner maps by number, in the order of the text."""
    formats: dict[TensorFormat, int] = {}
    owners: dict[OwnerMap, int] = {}

    def visit(block: Block) -> None:
        def note(values: Sequence[MidValueId]) -> None:
            for value in values:
                formats.setdefault(block.value(value).format, len(formats))
                owners.setdefault(block.value(value).owners, len(owners))

        note(block.arguments)
        for operation in block.operations:
            note(results_of(operation))
            if isinstance(operation, Repeat):
                visit(operation.body)

    visit(block)
    return formats, owners


class _Writer:
    """Writes lines of blocks, given the numbers of formats and owner maps."""

    def __init__(self, formats: dict[TensorFormat, int], owners: dict[OwnerMap, int]) -> None:
        self._formats = formats
        self._owners = owners

    def declared(self, value: Value, node: str) -> str:
        """``x: [64,256] f0 o0``, in an operation for ``node``."""
        own = f" for {text_of_name(value.node)}" if value.node != node else ""
        numbers = f"f{self._formats[value.format]} o{self._owners[value.owners]}"
        return f"{text_of_name(value.name)}: {text_of_shape(value.shape)} {numbers}{own}"

    def operations(self, block: Block, indent: str) -> Iterator[str]:
        for operation in block.operations:
            results = [block.value(result) for result in results_of(operation)]
            declared = ", ".join(self.declared(result, operation.node) for result in results)
            node = f" for {text_of_name(operation.node)}" if operation.node else ""
            if isinstance(operation, Repeat):
                yield f"{indent}{declared} = repeat {operation.count}{node} {{"
                yield from self._body(block, operation, indent + _INDENT)
                yield f"{indent}}}"
            else:
                yield f"{indent}{declared} = {_operation(block, operation)}{node}"

    def _body(self, block: Block, repeat: Repeat, indent: str) -> Iterator[str]:
        body = repeat.body
        bound: list[tuple[str, Sequence[MidValueId]]] = [
            *(("carried", (value,)) for value in repeat.carried),
            *(("invariant", (value,)) for value in repeat.invariants),
            *(("sequence", members) for members in repeat.sequences),
        ]
        for argument, (kind, values) in zip(body.arguments, bound, strict=True):
            yield f"{indent}{kind} {self.declared(body.value(argument), '')} = {_names(block, values)}"
        yield from self.operations(body, indent)
        yield f"{indent}yield {_names(body, body.results)}"


def _names(block: Block, values: Sequence[MidValueId]) -> str:
    return ", ".join(text_of_name(block.value(value).name) for value in values)


def _operation(block: Block, operation: Copy | Compute) -> str:
    match operation:
        case Copy(parts=parts, result=result, policy=policy):
            shape = block.value(result).shape
            text = f"copy {', '.join(_part(block, part, shape) for part in parts)}"
            return text if policy is MovementPolicy.AUTOMATIC else f"{text} policy {text_of(policy)}"
        case Compute(work=work, operands=operands, relations=relations, aliases=aliases):
            shape = block.value(operation.results[0]).shape
            read: list[str] = []
            for number, (operand, relation) in enumerate(zip(operands, relations, strict=True)):
                value = block.value(operand)
                implied = implied_relation(work, number, value.shape, shape)
                told = "" if relation == implied else f" as {text_of(relation)}"
                read.append(f"{text_of_name(value.name)}{told}")
            text = f"{text_of(work)} of {', '.join(read)}"
            for alias in aliases:
                displacement = f"+{alias.displacement}" if alias.displacement else ""
                text += f" alias {alias.result} at {alias.operand}{displacement}"
            return text
        case _:
            assert_never(operation)


def _part(block: Block, part: CopyPart, shape: Shape) -> str:
    source = block.value(part.source)
    box = "" if part.region == Region.of_extents(shape) else f"{text_of(part.region)} of "
    mapping = "" if part.mapping == identity(source.shape) else f" through {text_of(part.mapping)}"
    return f"{box}{text_of_name(source.name)}{mapping}"
