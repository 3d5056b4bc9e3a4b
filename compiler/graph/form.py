"""Whether the fields of a graph hold what they are declared to hold.

Python does not check annotations, and models are written in Python: ``F16`` for ``F16()``, a number for a
fill, a flag of NumPy's, a list for a tuple. Whatever looks into such a graph stumbles in a place of its own,
or takes it for another graph. So the builder asks here about what it is given, and the verifier about whole
graphs before it looks at anything else.

The rules are the annotations of ``ir``. Further: integers have at most 18 digits, so that each has a text
that can be read back, and bodies below the deepest permitted ones are not looked at, so that the question has
an answer for any nesting.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, NewType, Union, cast, get_args, get_origin, get_type_hints

from compiler.geometry.mapping import Shape
from compiler.geometry.precision import Precision
from compiler.graph.ir import Block, Fill, Operation, Provenance

MOST_DIGITS: Final = 18
"""Of an integer: the longest whose every value fits 64 bits."""
MOST_NESTED: Final = 50
"""Repeats inside one another: models have one or two, and what reads graphs calls itself for each."""

KINDS: Final[Mapping[object, str]] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a text",
    Shape: "a list of integers",
    Precision: "a precision",
    Precision | None: "a precision or none",
    Fill | None: "a fill or none",
    Provenance | None: "a provenance or none",
    Operation: "an operation",
}
"""What belongs into a field, by its annotation, as messages say it."""


class _OneOf:
    """Stands for the class of a value that can have several."""


def fits(value: object, annotation: object, depth: int = 0) -> bool:
    """Whether ``value`` is, to its last part, what ``annotation`` says; ``depth`` is that of its block."""
    return _check(annotation)(value, depth)


def misfits(value: object, annotation: object, where: str = "it", depth: int = 0) -> Iterator[str]:
    """A clause for each part of ``value`` that is not what ``annotation`` says; ``where`` names the value."""
    if fits(value, annotation, depth):
        return
    plain, parts = _meaning(annotation)
    kind = type(value)
    if plain is int and kind is int:
        yield f"{where} is an integer of more than {MOST_DIGITS} digits"
    elif plain is tuple and kind is tuple:
        for number, item in enumerate(cast("tuple[object, ...]", value)):
            yield from misfits(item, parts[0], f"{where}[{number}]", depth)
    elif plain is _OneOf and any(kind is _meaning(part)[0] for part in parts):
        yield from misfits(value, kind, where, depth)
    elif kind is plain:
        outer = "" if where == "it" else f"{where}."
        for name, field in _fields(kind):
            yield from misfits(getattr(value, name), field, outer + name, depth + (kind is Block))
    else:
        yield f"{where} is {described(value)}, not {_kind(annotation)}"


@cache
def _check(annotation: object) -> Callable[[object, int], bool]:
    """The function that answers :func:`fits` for an annotation: what can be is looked up once."""
    plain, parts = _meaning(annotation)
    if plain is int:
        return _is_integer
    if plain is tuple:
        check_item = _check(parts[0])
        return lambda value, depth: (
            type(value) is tuple
            and all(check_item(item, depth) for item in cast("tuple[object, ...]", value))
        )
    if plain is _OneOf:
        checks = {_meaning(part)[0]: _check(part) for part in parts}
        return lambda value, depth: (check := checks.get(type(value))) is not None and check(value, depth)
    if plain in {bool, float, str, NoneType}:
        return lambda value, _: type(value) is plain

    def check_fields(value: object, depth: int) -> bool:
        if type(value) is not plain:
            return False
        if plain is Block:
            depth += 1
            if depth > MOST_NESTED + 1:
                return True
        return all(check(getattr(value, name), depth) for name, check in field_checks(plain))

    @cache  # when it is first needed: a Block's fields lead to a Block
    def field_checks(kind: type) -> tuple[tuple[str, Callable[[object, int], bool]], ...]:
        return tuple((name, _check(field)) for name, field in _fields(kind))

    return check_fields


def _is_integer(value: object, _: int) -> bool:
    return type(value) is int and -(10**MOST_DIGITS) < value < 10**MOST_DIGITS


@cache
def _meaning(annotation: object) -> tuple[type[Any], tuple[object, ...]]:
    """What a value's class must be, or ``_OneOf``, and the annotations of its parts."""
    if isinstance(annotation, NewType):
        return _meaning(annotation.__supertype__)
    if get_origin(annotation) in {Union, UnionType}:
        return _OneOf, get_args(annotation)
    if get_origin(annotation) is tuple:
        item, rest = get_args(annotation)
        if rest is not Ellipsis:
            raise TypeError(f"{annotation}: tuples of a graph have any number of items of one kind")
        return tuple, (item,)
    return (NoneType if annotation is None else cast("type[Any]", annotation)), ()


@cache
def _fields(kind: type) -> tuple[tuple[str, object], ...]:
    """Names and annotations of the fields of a dataclass; nothing for other classes."""
    if not dataclasses.is_dataclass(kind):
        return ()
    hints = get_type_hints(kind)
    return tuple((field.name, hints[field.name]) for field in dataclasses.fields(kind))


def _kind(annotation: object) -> str:
    known = KINDS.get(annotation)
    if known is not None:
        return known
    plain, _ = _meaning(annotation)
    return _with_article(plain.__name__)


def described(value: object) -> str:
    """What a value is: a class by its name, anything else by that of its class."""
    if value is None:
        return "none"
    if isinstance(value, type):
        return f"the class {value.__qualname__}"
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return _with_article(module + kind.__qualname__)


def _with_article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"
