"""What is built and how, on the command line: the same words for every command that is about a build.

Words that stand for one option each come first; ``--option`` reaches every option of ``compiler.config`` by
its dotted path, and wins. Nothing of the compiler is imported before a command runs.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from pipeline.arguments import positive, whole

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from compiler.config import BuildOptions
    from compiler.errors import InvalidInput
    from compiler.models.subjects import Subject

_WORDS: Final = {
    "tiles": "planning.tiles",
    "rounding": "planning.rounding",
    "replicate_inputs": "planning.replicate_inputs",
    "attempts": "planning.attempts",
    "runs": "simulation.runs",
    "seed": "simulation.seed",
    "profile": "package.profile",
    "inject": "inject.fault",
    "workers": "workers",
}
"""Arguments that stand for one option, and its path."""
_OTHERS: Final = ("batch", "precision", "recipe", "isa_overrides", "option")
"""Arguments beside them that say what is built."""
_NOT_SETTABLE: Final = frozenset({"version"})
_OF_LISTED_MODELS: Final = ("batch", "precision")
"""Arguments that vary a model of ours; a user's graph says itself what it is."""
_OF_MODELS: Final = ("tiles", "rounding", "replicate_inputs", "attempts", "recipe", *_OF_LISTED_MODELS)
"""Arguments that are about planning, which a program written by hand never sees."""


def add_build_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what decides a build."""
    parser.add_argument("--tiles", type=positive, metavar="N", help="tiles to use (default: all of the card)")
    parser.add_argument("--batch", type=positive, metavar="B", help="images (default: the model's own)")
    parser.add_argument(
        "--precision",
        choices=("f16", "f8"),
        help="of products, F8 with the exponent of bring-up (default: the model's own)",
    )
    parser.add_argument(
        "--rounding",
        choices=("nearest", "stochastic"),
        help="how sums of products become F16 (default: nearest, ties to even)",
    )
    parser.add_argument(
        "--replicate-inputs",
        action="store_true",
        default=None,
        help="let the host write inputs to every tile that reads them",
    )
    parser.add_argument(
        "--attempts",
        type=whole,
        metavar="N",
        help="programs that the search evaluates beside the first (default: 4)",
    )
    parser.add_argument(
        "--recipe", type=Path, metavar="FILE", help="take the choices that it makes, and search no others"
    )
    parser.add_argument(
        "--isa-overrides",
        type=Path,
        metavar="FILE",
        help="lines NAME = VALUE that replace our answers about the instruction set (tilewright isa "
        "decisions); the package says so",
    )
    parser.add_argument(
        "--runs", type=positive, metavar="N", help="simulated runs of the package (default: 2)"
    )
    parser.add_argument(
        "--profile",
        action="store_true",
        default=None,
        help="let tiles sample their clocks at every step, which takes cycles and memory",
    )
    parser.add_argument("--seed", type=whole, metavar="N", help="of weights and inputs (default: 1)")
    parser.add_argument(
        "--inject",
        choices=("none", "wrong_output", "more_cycles", "unrepeatable", "worse_program"),
        help="make something wrong on purpose, to see that a check of --dagster fails (default: none)",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="any option of a build, such as package.runs=8; can be repeated",
    )


def says_anything(arguments: argparse.Namespace) -> bool:
    """Whether any of the words was given."""
    named = (*_WORDS, *_OTHERS)
    return any(getattr(arguments, name, None) not in (None, []) for name in named)


def subject_of(arguments: argparse.Namespace) -> "Subject":
    """What is built, by name or from a user's file.

    Raises:
        InvalidInput: there is no such model or file, or what is given beside it has no effect on it.
        InvalidModel: the file holds no well-formed graph.
    """
    from compiler.graph.text import text_of_graph
    from compiler.models.layers import BRING_UP, HALF
    from compiler.models.programs import PROGRAMS
    from compiler.models.registry import MODELS
    from compiler.models.subjects import GraphModel
    from pipeline.model_files import model_of

    place: str = arguments.model
    if place in PROGRAMS:
        _check_has_effect(arguments, _OF_MODELS, "a program written by hand is not planned")
        return PROGRAMS[place]
    if place in [model.name for model in MODELS]:
        precision = None
        if arguments.precision is not None:
            precision = HALF if arguments.precision == "f16" else BRING_UP
        return GraphModel(name=place, batch=arguments.batch, precision=precision)
    graph = model_of(place)
    _check_has_effect(arguments, _OF_LISTED_MODELS, "a model of yours is built as its graph says")
    return GraphModel(name=graph.name, text=text_of_graph(graph, with_provenance=True))


def _check_has_effect(arguments: argparse.Namespace, names: tuple[str, ...], reason: str) -> None:
    """Nothing that somebody asks for is passed over in silence.

    Raises:
        InvalidInput: one of the arguments is given, by its own word or as the option that it stands for.
    """
    options = cast("list[str]", getattr(arguments, "option", []))
    for name in names:
        word = f"--{name.replace('_', '-')}"
        given = [word] if getattr(arguments, name, None) is not None else []
        given += [text for text in options if name in _WORDS and text.partition("=")[0] == _WORDS[name]]
        if given:
            raise _refused(
                f"{arguments.model} {given[0]}", f"{reason}, so this has no effect", "leave it out"
            )


def options_of(arguments: argparse.Namespace) -> "BuildOptions":
    """The options of the build.

    Raises:
        InvalidInput: an option does not exist or has a value that it cannot have, or a file of overrides
            cannot be read.
    """
    from compiler.config import BuildOptions
    from compiler.target.isa_decisions import overrides_text, read_overrides
    from pipeline.user_files import read_text

    values: dict[str, object] = {}
    for name, path in _WORDS.items():
        given: object = getattr(arguments, name, None)
        if given is not None:
            _set(values, path, given)
    overrides: Path | None = arguments.isa_overrides
    if overrides is not None:
        decisions = read_overrides(read_text(overrides, stage="build"), overrides.name)
        _set(values, "isa.overrides", overrides_text(decisions))
    options = _validated(values, "options")
    known = list(_paths(BuildOptions))
    for text in cast("list[str]", arguments.option):
        path, equals, value = text.partition("=")
        if not equals:
            raise _refused(text, "this is not PATH=VALUE", "write the path of an option, = and its value")
        if path not in known:
            raise _refused(text, f"there is no option {path[:80]!r}", _advice(path, known))
        options = _with(values, path, value)
    return options


def recipe_of(arguments: argparse.Namespace) -> str:
    """The text of the recipe; empty without one.

    Raises:
        InvalidInput: the file cannot be read, or holds no recipe of this version.
    """
    path: Path | None = arguments.recipe
    if path is None:
        return ""
    from compiler.planner.recipe import recipe_of_json
    from pipeline.user_files import read_text

    return recipe_of_json(read_text(path, stage="build"), str(path)).to_json()


def _paths(model: "type[BaseModel]", prefix: str = "") -> Iterator[str]:
    """Dotted paths of all options."""
    from pydantic import BaseModel

    for name, field in model.model_fields.items():
        kind: object = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _paths(kind, f"{prefix}{name}.")
        elif name not in _NOT_SETTABLE:
            yield prefix + name


def _advice(path: str, known: list[str]) -> str:
    """Which options may have been meant: those that read alike, or that end alike."""
    last = path.rpartition(".")[2]
    ends = {option.rpartition(".")[2]: option for option in known}
    near = [*get_close_matches(path, known, 3), *(ends[end] for end in get_close_matches(last, ends, 3))]
    return f"perhaps {' or '.join(dict.fromkeys(near))}" if near else f"give one of {', '.join(known)}"


def _with(values: dict[str, object], path: str, text: str) -> "BuildOptions":
    """The options with one more, which is JSON where that is possible, and else a text.

    Raises:
        InvalidInput: it cannot have this value.
    """
    from compiler.errors import InvalidInput

    try:
        parsed: object = json.loads(text)
    except ValueError:
        parsed = text
    _set(values, path, parsed)
    try:
        return _validated(values, f"{path}={text}")
    except InvalidInput:
        if parsed == text:
            raise
        _set(values, path, text)
        try:
            return _validated(values, f"{path}={text}")
        except InvalidInput:
            _set(values, path, parsed)  # of the two messages, the one about the number says more
            return _validated(values, f"{path}={text}")


def _set(values: dict[str, object], path: str, value: object) -> None:
    *groups, name = path.split(".")
    branch = values
    for group in groups:
        branch = cast("dict[str, object]", branch.setdefault(group, {}))
    branch[name] = value


def _validated(values: Mapping[str, object], subject: str) -> "BuildOptions":
    from pydantic import ValidationError

    from compiler.config import BuildOptions

    try:
        return BuildOptions.model_validate(values)
    except ValidationError as fault:
        raise _refused(subject, _first(fault), "give a value of its kind and range") from None


def _first(fault: "ValidationError") -> str:
    first = cast("dict[str, Any]", fault.errors(include_url=False, include_input=False)[0])
    message = str(first["msg"])
    return f"{'.'.join(map(str, first['loc']))}: {message[0].lower()}{message[1:]}"


def _refused(subject: str, message: str, next_step: str) -> "InvalidInput":
    from compiler.errors import InvalidInput

    return InvalidInput(message, stage="build", subject=subject[:200], next_step=next_step)
