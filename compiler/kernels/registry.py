"""The closed set of kernel families, and the three things that are asked of any of them.

Adding a family adds one line to ``FAMILIES`` (and one to ``objects.GENERATORS``); nothing else is generic.
"""

import functools
from collections.abc import Mapping
from math import prod
from typing import Final

from compiler.geometry.operand import LocalOperand
from compiler.geometry.relation import Relation
from compiler.kernels.cast import binding as cast
from compiler.kernels.contract import (
    ADDRESSABLE,
    Alias,
    Binding,
    Family,
    Parameters,
    Refusal,
    Request,
    TileMemory,
)
from compiler.kernels.copy import binding as copy
from compiler.kernels.gemm import binding as gemm
from compiler.kernels.pointwise import binding as pointwise
from compiler.kernels.rearrange import binding as rearrange
from compiler.kernels.reduce import binding as reduce
from compiler.kernels.symbols import parse_symbol
from compiler.target.units import Cycles

_ALL: Final[tuple[Family, ...]] = (
    cast.FAMILY,
    copy.FAMILY,
    gemm.FAMILY,
    pointwise.FAMILY,
    rearrange.FAMILY,
    reduce.FAMILY,
)

FAMILIES: Final[Mapping[str, Family]] = {family.name: family for family in _ALL}


@functools.lru_cache(maxsize=1 << 16)
def bind(
    family: str,
    parameters: Parameters,
    operands: tuple[LocalOperand, ...] = (),
    relations: tuple[Relation | None, ...] = (),
    aliases: tuple[Alias, ...] = (),
) -> Binding | Refusal:
    """The checked call, or why there is none. Equal requests give the same object.

    Args:
        family: name of the family.
        parameters: its parameters.
        operands: geometry of results, then operands.
        relations: index relation of each; None for results.
        aliases: results that are to take the storage of operands.

    Raises:
        ValueError: there is no such family, or the parameters are those of another.
    """
    if parameters.family != family:
        raise ValueError(f"{type(parameters).__name__} belongs to family {parameters.family}, not {family}")
    request = Request(parameters=parameters, operands=operands, relations=relations, aliases=aliases)
    for place, operand in enumerate(operands):
        size = prod(operand.backing) * operand.precision.element_bytes
        if size > ADDRESSABLE:
            return Refusal(reason=f"storage {place} of the call has {size} bytes, beyond every address")
    return family_of(family).bind(request)


def execute(symbol: str, arguments: tuple[int, ...], memory: TileMemory) -> None:
    """Do to memory what the kernel of this symbol does.

    Args:
        symbol: text of its symbol.
        arguments: registers from $m2 on; more than the kernel has are ignored.
        memory: the tile's memory.

    Raises:
        ValueError: no family has a kernel of this symbol.
    """
    key = parse_symbol(symbol)
    family_of(key.family).execute(key, arguments, memory)


def cycles_of_call(symbol: str, arguments: tuple[int, ...]) -> Cycles:
    """Estimated cycles of a call, from the kernel's first instruction to its return.

    For the arguments of a binding this is the estimate of the binding, wherever its operands lie.

    Args:
        symbol: text of the kernel's symbol.
        arguments: registers from $m2 on; more than the kernel has are ignored.

    Raises:
        ValueError: no family has a kernel of this symbol.
    """
    key = parse_symbol(symbol)
    return family_of(key.family).cycles(key, arguments)


def family_of(name: str) -> Family:
    """The family of a name.

    Raises:
        ValueError: there is none.
    """
    family = FAMILIES.get(name)
    if family is None:
        raise ValueError(f"there is no kernel family {name}; the families are {', '.join(FAMILIES)}")
    return family
