"""Which classes a tree of frozen dataclasses can hold by its declarations.

Values are read back only into classes that are found here: nothing that a stored text names is constructed
unless the type that is read declares that it can be there.
"""

import dataclasses
import enum
from collections.abc import Iterable, Mapping
from typing import cast, get_args, get_type_hints

from compiler.store.canonical import reference_of


def reachable_classes(
    hints: Iterable[object], subclasses: Mapping[type, tuple[type, ...]] | None = None
) -> Mapping[str, type]:
    """Every dataclass and enumeration that values of some types can hold, by reference.

    Args:
        hints: the types.
        subclasses: for a class that is declared where one of its subclasses is meant, which these can be.
    """
    allowed: Mapping[type, tuple[type, ...]] = {} if subclasses is None else subclasses
    found: dict[str, type] = {}
    waiting = list(hints)
    while waiting:
        hint = waiting.pop()
        waiting += get_args(hint)
        named = cast("type[object] | None", hint if isinstance(hint, type) else None)
        if named is None or reference_of(named) in found:
            continue
        if issubclass(named, enum.Enum):
            found[reference_of(named)] = named
        elif dataclasses.is_dataclass(named):
            found[reference_of(named)] = named
            waiting += get_type_hints(named).values()
        waiting += allowed.get(named, ())
    return found
