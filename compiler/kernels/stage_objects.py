"""Stage ``kernel_objects``: from symbols of kernels to object files.

The only stage whose code covers the generators: editing one re-keys this and nothing that plans or places.
"""

from collections.abc import Sequence
from typing import Final

from compiler.figures import FIGURES, Figures, counted
from compiler.isa.objects import ObjectFile
from compiler.isa.program import Program
from compiler.kernels.artifacts import OBJECTS, KernelObjects, KernelObjectsInputs
from compiler.kernels.objects import kernel_objects, program_of
from compiler.kernels.symbols import parse_symbol
from compiler.store.codec import Fields
from compiler.store.stage import Namespace, Stage
from compiler.target.isa_decisions import Decisions, HasIsaChoices, decisions_of, our_decisions


def objects(inputs: KernelObjectsInputs, options: HasIsaChoices) -> KernelObjects:
    """One object for each symbol, in their order."""
    made = objects_of_symbols(inputs.symbols.value(), decisions_of(options.isa))
    return KernelObjects(objects=made, figures=_figures(made))


def _figures(made: Sequence[ObjectFile]) -> Figures:
    sizes = [sum(section.size for section in item.sections) for item in made]
    return (
        counted("kernels", len(made), "kernels"),
        counted("code of all kernels", sum(sizes), "bytes"),
        counted("code of the largest kernel", max(sizes, default=0), "bytes"),
    )


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
    outputs=Fields(of=KernelObjects, codecs=(("objects", OBJECTS), ("figures", FIGURES))),
    reads=("isa.overrides",),
    tables=("target", "instructions", "decisions"),
    namespace=Namespace.KERNEL,
    function=objects,
)
