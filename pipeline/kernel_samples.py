"""Calls of kernels from a few numbers, for the command line and for tables of figures.

A family is described here by what a shape of it is and by its options, and by a function that turns both into
what ``registry.bind`` is asked. The operands are whole tensors in the orders that the family likes best; the
contract can do more than can be said here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, assert_never, final

from compiler.errors import InvalidInput
from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.geometry.order import (
    AmpLeft,
    AmpOutput,
    AmpRight,
    AmpTransposedLeft,
    AmpTransposedOutput,
    AmpTransposedRight,
    BlockMajor,
    BlockMajorTransposed,
    ElementOrder,
    RowMajor,
)
from compiler.geometry.precision import F8, F16, F32, SCALE_EXPONENTS, Precision
from compiler.geometry.product import matrix_product
from compiler.geometry.region import Region
from compiler.geometry.relation import Broadcast, Identity, ProductOperand, Relation, Side
from compiler.kernels import registry
from compiler.kernels.cast.binding import CastParameters
from compiler.kernels.contract import Binding, Parameters, Refusal
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.gemm.binding import GemmParameters, Mode, Rounding
from compiler.kernels.pointwise.binding import Operation, PointwiseParameters
from compiler.kernels.rearrange.binding import RearrangeParameters
from compiler.kernels.reduce.binding import ReduceParameters

STAGE: Final = "kernel call"
LARGEST_EXTENT: Final = 1 << 20
"""More elements along an axis fit no tile."""
BLOCK: Final = 16
"""Rows and columns of the blocks that can be asked for here; both extents are then multiples of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What ``registry.bind`` takes, behind the family."""

    parameters: Parameters
    operands: tuple[LocalOperand, ...] = ()
    relations: tuple[Relation | None, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """How calls of a family are described.

    Args:
        purpose: what the family does, a phrase.
        extents: what the numbers of a shape are.
        default: a shape.
        ask: from shape and the value of every option to the request.
        choices: values of each option that is a word; the first is the default.
        numbers: default and range of each option that is a number.
    """

    purpose: str
    extents: tuple[str, ...]
    default: tuple[int, ...]
    ask: Callable[[tuple[int, ...], Mapping[str, str], Mapping[str, int]], Asked]
    choices: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    numbers: Mapping[str, tuple[int, range]] = field(default_factory=dict[str, tuple[int, range]])


def _tensor(
    order: ElementOrder,
    extents: tuple[int, ...],
    precision: Precision,
    memory_class: MemoryClass = MemoryClass.STANDARD,
) -> LocalOperand:
    return LocalOperand(
        precision=precision,
        order=order,
        backing=extents,
        region=Region.of_extents(extents),
        logical=extents,
        memory_class=memory_class,
    )


def _cast(shape: tuple[int, ...], words: Mapping[str, str], numbers: Mapping[str, int]) -> Asked:
    precisions: dict[str, Precision] = {}
    for side, scale in (("source", "source_scale"), ("result", "result_scale")):
        match words[side]:
            case "f32":
                precisions[side] = F32()
            case "f16":
                precisions[side] = F16()
            case _:
                precisions[side] = F8(scale_exponent=numbers[scale])
    orders: dict[str, ElementOrder] = {
        side: RowMajor() if words[f"{side}_order"] == "rows" else AmpLeft() for side in ("result", "source")
    }
    return Asked(
        parameters=CastParameters(is_separate=words["memory"] == "separate"),
        operands=tuple(_tensor(orders[side], shape, precisions[side]) for side in ("result", "source")),
        relations=(None, Identity(rank=2)),
    )


def _copy(shape: tuple[int, ...], words: Mapping[str, str], numbers: Mapping[str, int]) -> Asked:
    rows, row_bytes = shape
    kind = Kind(words["kind"])
    is_move = kind is Kind.MOVE
    gap, source_gap = numbers["destination_gap"], numbers["source_gap"]
    return Asked(
        parameters=CopyParameters(
            kind=kind,
            rows=rows,
            row_bytes=row_bytes,
            destination_stride=row_bytes + gap,
            destination_origin=numbers["destination_origin"],
            source_stride=row_bytes + source_gap if is_move else 0,
            source_origin=numbers["source_origin"] if is_move else 0,
        )
    )


def _gemm(shape: tuple[int, ...], words: Mapping[str, str], numbers: Mapping[str, int]) -> Asked:
    rows, k, columns = shape
    halves = words["precision"] == "f16"
    left, right = (F16(), F16()) if halves else (F8(scale_exponent=numbers["scale"]), F8())
    weights = MemoryClass.INTERLEAVED if words["weights"] == "wide" else MemoryClass.STANDARD
    is_plain = words["result"] == "rows"
    order = AmpLeft() if is_plain else BlockMajorTransposed(row_block=columns, column_block=16)
    axes = matrix_product((rows, k), (k, columns))
    return Asked(
        parameters=GemmParameters(mode=Mode(words["mode"]), rounding=Rounding(words["rounding"])),
        operands=(
            _tensor(order, (rows, columns), F16(), MemoryClass.INTERLEAVED),
            _tensor(AmpLeft(), (rows, k), left),
            _tensor(AmpRight(), (k, columns), right, weights),
        ),
        relations=(
            None,
            ProductOperand(axes=axes, side=Side.LEFT),
            ProductOperand(axes=axes, side=Side.RIGHT),
        ),
    )


def _pointwise(shape: tuple[int, ...], words: Mapping[str, str], numbers: Mapping[str, int]) -> Asked:
    operation = Operation(words["operation"])
    whole = _tensor(RowMajor(), shape, F16())
    row = _tensor(RowMajor(), shape[1:], F16())
    along_rows = Broadcast(result_rank=2, operand_rank=1, single_axes=())
    second: tuple[tuple[LocalOperand, Relation], ...]
    match operation:
        case Operation.ADD:
            second = ((whole, Identity(rank=2)) if words["second"] == "whole" else (row, along_rows),)
        case Operation.GELU:
            second = ()
        case Operation.BIAS_GELU:
            second = ((row, along_rows),)
        case _:
            assert_never(operation)
    precision = F16() if words["result"] == "f16" else F8(scale_exponent=numbers["scale"])
    return Asked(
        parameters=PointwiseParameters(operation=operation),
        operands=(_tensor(RowMajor(), shape, precision), whole, *(operand for operand, _ in second)),
        relations=(None, Identity(rank=2), *(relation for _, relation in second)),
    )


_ORDERS: Final[Mapping[str, ElementOrder]] = {
    "rows": RowMajor(),
    "left": AmpLeft(),
    "transposed_left": AmpTransposedLeft(),
    "right": AmpRight(),
    "transposed_right": AmpTransposedRight(),
    "output": AmpOutput(),
    "transposed_output": AmpTransposedOutput(),
    "blocks": BlockMajor(row_block=BLOCK, column_block=BLOCK),
    "transposed_blocks": BlockMajorTransposed(row_block=BLOCK, column_block=BLOCK),
}


def _rearrange(shape: tuple[int, ...], words: Mapping[str, str], _numbers: Mapping[str, int]) -> Asked:
    precision = F16() if words["precision"] == "f16" else F8()
    return Asked(
        parameters=RearrangeParameters(),
        operands=tuple(_tensor(_ORDERS[words[side]], shape, precision) for side in ("result", "source")),
        relations=(None, Identity(rank=2)),
    )


def _reduce(shape: tuple[int, ...], _words: Mapping[str, str], _numbers: Mapping[str, int]) -> Asked:
    elements, partials = shape
    vector = _tensor(RowMajor(), (elements,), F16())
    return Asked(
        parameters=ReduceParameters(partials=partials - 1),
        operands=(vector, vector, _tensor(RowMajor(), (partials - 1, elements), F16())),
        relations=(None, Identity(rank=1), None),
    )


_ORIGIN: Final = (0, range(32))
_GAP: Final = (0, range(LARGEST_EXTENT))

SAMPLES: Final[Mapping[str, Sample]] = {
    "cast": Sample(
        purpose="from one of F32, F16 and F8 to another, in any order or from rows or panels to panels",
        extents=("rows", "columns"),
        default=(1, 8320),
        ask=_cast,
        choices={
            "source": ("f16", "f32", "f8"),
            "result": ("f8", "f16", "f32"),
            "memory": ("any", "separate"),
            "source_order": ("rows", "panels"),
            "result_order": ("rows", "panels"),
        },
        numbers={"source_scale": (-5, SCALE_EXPONENTS), "result_scale": (-5, SCALE_EXPONENTS)},
    ),
    "copy": Sample(
        purpose="copies and fills of rows of bytes",
        extents=("rows", "row_bytes"),
        default=(1, 4096),
        ask=_copy,
        choices={"kind": ("move", "fill")},
        numbers={
            "destination_gap": _GAP,
            "destination_origin": _ORIGIN,
            "source_gap": _GAP,
            "source_origin": _ORIGIN,
        },
    ),
    "gemm": Sample(
        purpose="products of F16 or F8 matrices on the AMP unit",
        extents=("rows", "k", "columns"),
        default=(96, 64, 64),
        ask=_gemm,
        choices={
            "mode": ("initialize", "accumulate"),
            "precision": ("f16", "f8"),
            "weights": ("wide", "narrow"),
            "rounding": ("nearest", "stochastic"),
            "result": ("rows", "blocks"),
        },
        numbers={"scale": (0, SCALE_EXPONENTS)},
    ),
    "pointwise": Sample(
        purpose="sums, GELU and GELU of sums with a bias row, of F16 tensors",
        extents=("rows", "columns"),
        default=(1, 1152),
        ask=_pointwise,
        choices={
            "operation": ("add", "gelu", "bias_gelu"),
            "second": ("whole", "row"),
            "result": ("f16", "f8"),
        },
        numbers={"scale": (-5, SCALE_EXPONENTS)},
    ),
    "rearrange": Sample(
        purpose="from one element order to another",
        extents=("rows", "columns"),
        default=(64, 64),
        ask=_rearrange,
        choices={
            "source": tuple(_ORDERS),
            "result": ("left", *(name for name in _ORDERS if name != "left")),
            "precision": ("f16", "f8"),
        },
    ),
    "reduce": Sample(
        purpose="sums of F16 partials, the seed counted as one",
        extents=("elements", "partials"),
        default=(1472, 4),
        ask=_reduce,
    ),
}
"""Each family that calls can be described of."""


def bind_sample(family: str, shape: tuple[int, ...], options: Mapping[str, str]) -> Binding:
    """The call that a shape and some options describe.

    Args:
        family: name of the family.
        shape: one number for each extent.
        options: values of options as texts; the others have their defaults.

    Raises:
        InvalidInput: there is no such family, shape or option, or the family refuses the call.
    """
    sample = sample_of(family)
    if len(shape) != len(sample.extents) or not all(0 < extent <= LARGEST_EXTENT for extent in shape):
        raise _refusal(
            family,
            f"{','.join(map(str, shape))} is not {','.join(sample.extents)}, each 1 to {LARGEST_EXTENT:,}",
            f"give a shape like {','.join(map(str, sample.default))}",
        )
    words = {name: values[0] for name, values in sample.choices.items()}
    numbers = {name: default for name, (default, _) in sample.numbers.items()}
    for name, text in options.items():
        if name in words:
            if text not in sample.choices[name]:
                raise _option_refusal(family, name, text, " or ".join(sample.choices[name]))
            words[name] = text
        elif name in numbers:
            values = sample.numbers[name][1]
            if not _is_number(text) or int(text) not in values:
                raise _option_refusal(family, name, text, f"{values.start} to {values.stop - 1}")
            numbers[name] = int(text)
        else:
            known = ", ".join((*sample.choices, *sample.numbers)) or "none"
            raise _refusal(family, f"it has no option {name}", f"its options: {known}")
    try:
        asked = sample.ask(shape, words, numbers)
    except ValueError as refusal:  # an order that does not fit the extents
        raise _refusal(family, str(refusal), "give another shape") from None
    answer = registry.bind(family, asked.parameters, asked.operands, asked.relations)
    if isinstance(answer, Refusal):
        raise _refusal(family, answer.reason, "give another shape or other options")
    return answer


def sample_of(family: str) -> Sample:
    """How calls of a family are described.

    Raises:
        InvalidInput: there is no such family.
    """
    sample = SAMPLES.get(family)
    if sample is None:
        raise _refusal(family, "there is no such kernel family", f"name one of {', '.join(SAMPLES)}")
    return sample


def _is_number(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and len(digits) <= len(str(LARGEST_EXTENT))


def _option_refusal(family: str, name: str, text: str, values: str) -> InvalidInput:
    return _refusal(family, f"option {name} cannot be {text!r}", f"give {values}")


def _refusal(family: str, reason: str, next_step: str) -> InvalidInput:
    return InvalidInput(reason, stage=STAGE, subject=family, next_step=next_step)
