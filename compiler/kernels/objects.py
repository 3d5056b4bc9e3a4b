"""From symbols to object files: the only importer of code generators.

Planning, lowering and simulation import bindings; editing a generator therefore changes the code of one stage
only. The objects of a set of symbols depend on nothing but the symbols and the decisions of the instruction
set (two calls that differ in scalars or addresses share a kernel).
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from compiler.isa.assembler import assemble
from compiler.isa.objects import ObjectFile
from compiler.isa.program import Program
from compiler.kernels.cast import code as cast
from compiler.kernels.copy import code as copy
from compiler.kernels.gemm import code as gemm
from compiler.kernels.pointwise import code as pointwise
from compiler.kernels.rearrange import code as rearrange
from compiler.kernels.reduce import code as reduce
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions

GENERATORS: Final[Mapping[str, Callable[[SymbolKey, Decisions], Program]]] = {
    "cast": cast.program,
    "copy": copy.program,
    "gemm": gemm.program,
    "pointwise": pointwise.program,
    "rearrange": rearrange.program,
    "reduce": reduce.program,
}


def program_of(key: SymbolKey, decisions: Decisions) -> Program:
    """The code of one kernel.

    Raises:
        ValueError: no family has a kernel of this symbol.
    """
    generator = GENERATORS.get(key.family)
    if generator is None:
        raise ValueError(f"there is no kernel family {key.family}; the families are {', '.join(GENERATORS)}")
    return generator(key, decisions)


def kernel_objects(keys: Iterable[SymbolKey], decisions: Decisions) -> tuple[ObjectFile, ...]:
    """One object for each distinct symbol, ascending by its text.

    Raises:
        ValueError: no family has a kernel of one of the symbols.
    """
    return tuple(assemble(program_of(key, decisions), str(key)) for key in sorted(frozenset(keys), key=str))
