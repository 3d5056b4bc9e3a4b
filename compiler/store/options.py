"""The part of the options that a stage declared, and nothing else.

``keyed`` gives the declared options for the key document; ``view`` gives the stage an object that has exactly
the declared options as attributes (or items, when the options are a mapping). Reading anything else raises
``InternalError``: an option which a stage reads without saying so would be missing from its key.
"""

from collections.abc import Mapping
from typing import TypeVar, cast

from compiler.errors import InternalError
from compiler.store.canonical import JsonObject, encode, in_order, model_fields
from compiler.store.stage import AnyStage

O = TypeVar("O")  # noqa: E741  # options


def keyed(stage: AnyStage, options: object) -> JsonObject:
    """Dotted path and encoding of each option that enters the key.

    Raises:
        InternalError: a declared option does not exist.
        TypeError: an option has no canonical encoding.
    """
    return {path: encode(_find(stage, options, path)) for path in stage.reads}


def view(stage: AnyStage, options: O) -> O:
    """``options`` reduced to what ``stage`` declared. It reads like the options and is of another class.

    Mappings in it have one order, that of their encoding: a stage which iterates over one cannot tell apart
    options that have one key.
    """
    if options is None:
        return options
    return cast("O", _View(stage, options, ""))


def recorded(stage: AnyStage, values: Mapping[str, object]) -> object:
    """A view made of recorded values by dotted path, completed by the declared values of unkeyed options."""
    tree: dict[str, object] = {}
    for path, value in {**dict(stage.unkeyed), **values}.items():
        *parents, name = path.split(".")
        branch = tree
        for parent in parents:
            branch = cast("dict[str, object]", branch.setdefault(parent, {}))
        branch[name] = value
    return _View(stage, tree, "")


class _View:
    """Options below one path."""

    __slots__ = ("_options", "_path", "_stage")

    def __init__(self, stage: AnyStage, options: object, path: str) -> None:
        self._stage = stage
        self._options = options
        self._path = path

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):  # protocols of the language ask for these: not an option, so no declaration
            raise AttributeError(name)
        path = f"{self._path}{name}"
        declared = (*self._stage.reads, *(unkeyed for unkeyed, _ in self._stage.unkeyed))
        if path in declared:
            return in_order(_member(self._stage, self._options, name, path))
        if any(other.startswith(path + ".") for other in declared):
            return _View(self._stage, _member(self._stage, self._options, name, path), path + ".")
        raise _fault(
            self._stage, path, "is read and not declared", "declare it in reads or unkeyed of the stage"
        )

    def __getitem__(self, name: str) -> object:
        return self.__getattr__(name)


def _find(stage: AnyStage, options: object, path: str) -> object:
    """The option at a dotted path. Through a view only what that view's stage declared can be found."""
    found, walked = options, ""
    for name in path.split("."):
        walked = f"{walked}.{name}" if walked else name
        found = _member(stage, found, name, walked)
    return found


def _member(stage: AnyStage, options: object, name: str, path: str) -> object:
    if isinstance(options, _View):
        return getattr(options, name)
    if isinstance(options, Mapping):
        members = cast("Mapping[str, object]", options)
        if name in members:
            return members[name]
    elif name in (model_fields(options) or ()):
        return getattr(options, name)
    raise _fault(stage, path, "is declared and does not exist", "give the stage the options that it declares")


def _fault(stage: AnyStage, path: str, fault: str, next_step: str) -> InternalError:
    return InternalError(
        f"option {path} {fault}", stage="store", subject=f"stage {stage.name}", next_step=next_step
    )
