"""Every type that a record can hold, through all of its fields."""

import dataclasses
import typing

from pydantic import BaseModel

Reached = set[object]


def reachable(*roots: object) -> Reached:
    """Types and generic forms that some types are made of, themselves among them."""
    found: Reached = set()
    pending = list(roots)
    while pending:
        one = pending.pop()
        if one in found or isinstance(one, str | int | bool) or one is None:
            continue
        found.add(one)
        origin = typing.get_origin(one)
        if origin is not None:
            pending += [origin, *_arguments(one)]
        elif isinstance(one, type) and issubclass(one, BaseModel):
            pending += [field.annotation for field in one.model_fields.values()]
        elif isinstance(one, type) and dataclasses.is_dataclass(one):
            hints = typing.get_type_hints(one)
            pending += [hints[field.name] for field in dataclasses.fields(one)]
    return found


def _arguments(form: object) -> list[object]:
    """What a generic form is of; lists of parameters are taken apart."""
    taken: list[object] = []
    for argument in typing.get_args(form):
        taken += argument if isinstance(argument, list) else [argument]
    return taken


def modules_of(types: Reached) -> set[str]:
    """Modules of the compiler that types are from."""
    named = {str(getattr(one, "__module__", "")) for one in types}
    return {module for module in named if module.startswith("compiler.")}
