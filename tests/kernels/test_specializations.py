"""What is compiled in, and what is an argument, over calls of all families."""

from collections import defaultdict

from compiler.isa.linker import link
from compiler.kernels import objects, registry
from compiler.kernels.contract import Argument, arguments_at
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import our_decisions
from tests.kernels.catalogue import every_call
from tests.kernels.kernels import EVERY_KERNEL


def test_a_build_that_uses_every_kernel_at_several_specializations_links() -> None:
    """KB-04: calls that differ in extents, scales or strides share a kernel, and no two kernels a symbol."""
    calls: dict[SymbolKey, set[tuple[Argument, ...]]] = defaultdict(set)
    for binding in every_call():
        calls[binding.symbol].add(binding.arguments)
    assert sorted(map(str, calls)) == sorted(EVERY_KERNEL)
    assert all(len(arguments) > 1 for arguments in calls.values())
    # As a build asks: one symbol for each call.
    asked = [symbol for symbol, arguments in calls.items() for _ in arguments]
    made = objects.kernel_objects(asked, our_decisions())
    assert [item.name for item in made] == sorted(EVERY_KERNEL)
    image = link(made)
    kernels = set(EVERY_KERNEL)
    assert sorted(entry.name for entry in image.symbols if entry.name in kernels) == sorted(kernels)
    entries = [image.address_of(symbol) for symbol in EVERY_KERNEL]
    assert len(set(entries)) == len(entries)


def test_addresses_are_arguments_and_change_no_estimate() -> None:
    """KB-06: the formula asks for scalars alone."""
    for binding in every_call():
        for base in (0x60000, 0x84000):
            addresses = [base + 0x800 * place for place in range(len(binding.accesses))]
            arguments = arguments_at(binding, addresses)
            assert registry.cycles_of_call(str(binding.symbol), arguments) == binding.cycles
