"""What is compiled in, and what is an argument, over calls of all families."""

from collections import defaultdict

import numpy as np
import pytest

from compiler.geometry.precision import F8
from compiler.isa.linker import link
from compiler.kernels import objects, registry
from compiler.kernels.contract import Argument, Binding, Reference, arguments_at
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import our_decisions
from tests.kernels.catalogue import every_call
from tests.kernels.kernels import EVERY_KERNEL
from tests.kernels.machine import Bytes, run
from tests.kernels.typed import dtype_of


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


def test_every_kernel_at_every_specialization_takes_what_its_formula_says() -> None:
    """A grid over all families: contents, accesses and padding as bindings say, cycles within 2 %."""
    ran = 0
    for binding in dict.fromkeys(every_call()):
        is_random = any(value == "stochastic" for _, value in binding.symbol.choices)
        outcome = run(binding, _places(binding), _contents(binding), check_numbers=not is_random)
        assert outcome.cycles == pytest.approx(binding.cycles, rel=0.02), binding.symbol
        ran += 1
    assert ran > 300


def _places(binding: Binding) -> list[int]:
    """Addresses, each in a memory element of its own where none is shared."""
    places = [0x80000 + 0x8000 * (2 * place + 1) for place in range(len(binding.accesses))]
    places = [
        place + (0 if access.operand is None else access.operand.origin)
        for place, access in zip(places, binding.accesses, strict=True)
    ]
    for alias in binding.aliases:
        operand = places[binding.position(alias.operand)]
        places[binding.position(alias.result)] = operand + alias.displacement
    return places


def _contents(binding: Binding) -> dict[Reference, Bytes]:
    """Numbers about 1 in size."""
    random = np.random.default_rng(0)
    contents: dict[Reference, Bytes] = {}
    for position, access in enumerate(binding.accesses):
        stop = access.extent[1]
        if access.operand is None:
            elements = random.integers(0, 256, stop, dtype=np.uint8)
        elif isinstance(access.operand.precision, F8):
            elements = random.integers(0, 0x40, stop, dtype=np.uint8)
        else:
            element = access.operand.precision.element_bytes
            values = random.standard_normal(-(-stop // element)) / 4
            elements = values.astype(dtype_of(access.operand)).view(np.uint8)
        contents[binding.reference(position)] = elements
    return contents
