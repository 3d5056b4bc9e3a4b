"""Changes of element order: what can be asked, what is refused, and which kernel does it.

==============  ===================================================================================
kernel          when
==============  ===================================================================================
``panels``      panel rows hold neighbours of a row on both sides, and rows are whole 32-bit words
``transpose``   one side is row-major in whole 32-bit words, the other's panel rows hold neighbours of
                a column
``halves``      any other change between row-major and panel rows, in units of 16 bits
==============  ===================================================================================

Rows and columns that the result has and the operand has not become zero; those that the operand alone has
are not used. Row counts, extents and strides are arguments: a kernel serves all shapes of its orders.
"""

from dataclasses import dataclass
from typing import ClassVar, Final, final

from compiler.geometry.relation import Identity
from compiler.kernels.contract import Binding, Family, Parameters, Refusal, Request, TileMemory
from compiler.kernels.rearrange.halves import bind_halves, cycles_of_halves, execute_halves
from compiler.kernels.rearrange.panels import bind_panels, cycles_of_panels, execute_panels
from compiler.kernels.rearrange.sides import ALIGNMENT, NAME
from compiler.kernels.rearrange.stripes import faces
from compiler.kernels.rearrange.transpose import bind_transpose, cycles_of_transpose, execute_transpose
from compiler.kernels.symbols import SymbolKey
from compiler.target.units import Cycles


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RearrangeParameters(Parameters):
    """A change of element order; the operands say which."""

    family: ClassVar[str] = NAME


def bind(request: Request) -> Binding | Refusal:
    """The call for one change of order."""
    if not isinstance(request.parameters, RearrangeParameters):
        raise ValueError(f"{type(request.parameters).__name__} are not parameters of {NAME}")
    if len(request.operands) != 2:
        return Refusal(reason=f"this takes one result and one operand, not {len(request.operands)} in all")
    result, operand = request.operands
    if result.precision != operand.precision:
        return Refusal(reason="result 0 and operand 0 differ in precision or scale")
    if not isinstance(request.relations[1], Identity):
        return Refusal(reason="operand 0 does not have the coordinates of the result")
    if request.aliases:
        return Refusal(reason=f"{request.aliases[0]}: elements that move cannot stay in one storage")
    for name, one in (("result 0", result), ("operand 0", operand)):
        if one.origin % ALIGNMENT:
            return Refusal(
                reason=f"{name} begins at {one.origin} modulo 32, not at a multiple of {ALIGNMENT} bytes"
            )
    if any(has < needs for has, needs in zip(operand.logical, result.logical, strict=True)):
        return Refusal(reason="operand 0 has fewer elements than the result needs")
    in_panels = bind_panels(request)
    if in_panels is not None:
        return in_panels
    faced = faces(request)
    if isinstance(faced, str):
        return Refusal(reason=faced)
    return bind_transpose(request, faced) or bind_halves(request, faced)


def cycles_of_call(key: SymbolKey, arguments: tuple[int, ...]) -> Cycles:
    """What a kernel takes, given its argument registers."""
    match key.variant:
        case "panels":
            return cycles_of_panels(key, arguments)
        case "transpose":
            return cycles_of_transpose(key, arguments)
        case "halves":
            return cycles_of_halves(key, arguments)
        case _:
            raise ValueError(f"family {NAME} has no kernel {key}")


def execute(key: SymbolKey, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """What a kernel does, given its argument registers."""
    match key.variant:
        case "panels":
            execute_panels(key, arguments, memory)
        case "transpose":
            execute_transpose(key, arguments, memory)
        case "halves":
            execute_halves(key, arguments, memory)
        case _:
            raise ValueError(f"family {NAME} has no kernel {key}")


FAMILY: Final = Family(name=NAME, bind=bind, execute=execute, cycles=cycles_of_call)
