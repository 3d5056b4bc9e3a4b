"""Making a family known that only tests have."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

import pytest

from compiler.isa.program import Program
from compiler.kernels import objects, registry
from compiler.kernels.contract import Family
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions


@contextmanager
def registered(family: Family, program: Callable[[SymbolKey, Decisions], Program]) -> Generator[None]:
    """What one line in ``registry.py`` and one in ``objects.py`` do, for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "FAMILIES", {**registry.FAMILIES, family.name: family})
        patch.setattr(objects, "GENERATORS", {**objects.GENERATORS, family.name: program})
        yield
