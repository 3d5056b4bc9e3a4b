"""What the kernels of a package mean: the table that functional simulation is given."""

from collections.abc import Mapping
from functools import partial

from compiler.kernels.registry import cycles_of_call, execute, family_of
from compiler.kernels.symbols import parse_symbol
from compiler.package.records import Application
from compiler.simulator.functional import Meaning


def meanings_of(application: Application) -> Mapping[str, Meaning]:
    """By symbol, as far as families are known; routines of the runtime are executed."""
    meanings: dict[str, Meaning] = {}
    for symbol in application.debug_symbols:
        try:
            family_of(parse_symbol(symbol.name).family)
        except ValueError:
            continue  # a routine of the runtime
        meanings[symbol.name] = Meaning(
            apply=partial(execute, symbol.name), cycles=partial(cycles_of_call, symbol.name)
        )
    return meanings
