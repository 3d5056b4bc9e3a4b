"""Stage ``kernel_objects``: from symbols of kernels to object files.

The only stage whose code covers the generators: editing one re-keys this and nothing that plans or places.
"""

from collections.abc import Sequence
from typing import Final

from compiler.isa.objects import ObjectFile
from compiler.isa.program import Program
from compiler.kernels.artifacts import OBJECTS, KernelObjectsInputs
from compiler.kernels.objects import kernel_objects, program_of
from compiler.kernels.symbols import parse_symbol
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage
from compiler.target.isa_decisions import Decisions, HasIsaChoices, decisions_of, our_decisions


def objects(inputs: KernelObjectsInputs, options: HasIsaChoices) -> tuple[ObjectFile, ...]:
    """One object for each symbol, in their order."""
    return objects_of_symbols(inputs.symbols, decisions_of(options.isa))


def objects_of_symbols(symbols: Sequence[str], decisions: Decisions) -> tuple[ObjectFile, ...]:
    """One object for each symbol, with some answers to open questions of the instruction set.

    Raises:
        ValueError: no family has a kernel of one of the symbols.
    """
    return kernel_objects([parse_symbol(symbol) for symbol in symbols], decisions)


def program_of_symbol(symbol: str) -> Program:
    """The code of one kernel before it is assembled, for listings.

    Raises:
        ValueError: no family has a kernel of this symbol.
    """
    return program_of(parse_symbol(symbol), our_decisions())


KERNEL_OBJECTS: Final = Stage(
    name="kernel_objects",
    module=__name__,
    format=1,
    inputs=KernelObjectsInputs,
    outputs=Single(codec=OBJECTS),
    reads=("isa.overrides",),
    tables=("target", "instructions", "decisions"),
    namespace=Namespace.KERNEL,
    function=objects,
)
