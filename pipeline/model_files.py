"""Models of users, by path: a Python function, or the text of a graph.

``model.py`` is run, and its function ``model`` called; ``model.py:other`` calls another function. It takes
nothing and gives a ``Graph``, or a ``GraphBuilder`` that is not finished yet. Any other file is read as the
text of a graph. What goes wrong in a user's file is told with its line, never as a traceback.

The file is compiled and run here, past Python's own cache of compiled files, which takes two edits within one
second for one. It is code that nobody can fingerprint: stages are given the graph, never the file.
"""

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Final, cast

from compiler.errors import InvalidInput, InvalidModel, TilewrightError
from compiler.graph.build import GraphBuilder
from compiler.graph.ir import Graph
from compiler.graph.parser import parse_graph
from compiler.graph.verify import check

DEFAULT_FUNCTION: Final = "model"
_LARGEST_FILE: Final = 1 << 26
"""Bytes: thousands of times the text of the largest model that there is."""


def load_model(place: str) -> Graph:
    """The graph of a user's file.

    Args:
        place: path of a file; of a Python file perhaps with ``:function`` behind it.

    Raises:
        InvalidInput: the file cannot be read, or a Python file has no such function.
        InvalidModel: what it says is no well-formed graph, or running it fails.
    """
    path, _, function = place.rpartition(":")
    if path.endswith(".py") and function:
        return _from_python(Path(path), function)
    if place.endswith(".py"):
        return _from_python(Path(place), DEFAULT_FUNCTION)
    return parse_graph(_text(Path(place)), Path(place).name)


def _from_python(path: Path, function: str) -> Graph:
    source = _text(path)
    name = "_tilewright_model"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    if spec is None:
        raise AssertionError("a specification without a loader always exists")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module  # where dataclasses of the file look for their module
    try:
        made = _run(path, source, module, function)
    finally:
        del sys.modules[name]
    if isinstance(made, GraphBuilder):
        return made.finish()
    if isinstance(made, Graph):
        return check(made)
    raise InvalidModel(
        f"{function}() gives a {type(made).__name__}, not a Graph",
        stage="load model",
        subject=path.name,
        next_step="return the graph that GraphBuilder.finish() gives",
    )


def _run(path: Path, source: str, module: ModuleType, function: str) -> object:
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
        found: object = getattr(module, function, None)
        if callable(found):
            return cast(Callable[[], object], found)()
    except TilewrightError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001  # whatever a user's code does
        raise InvalidModel(
            f"{_place(error, path)}{type(error).__name__}: {' '.join(str(error).split())[:500]}",
            stage="load model",
            subject=path.name,
            next_step="correct the file; it must run by itself",
        ) from None
    raise InvalidInput(
        f"it has no function {function}",
        stage="load model",
        subject=path.name,
        next_step=f"define {function}(), or name another function behind the path: {path.name}:NAME",
    )


def _place(error: BaseException, path: Path) -> str:
    """The innermost line of the file that an exception went through."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"{path.name}:{error.lineno}: "
    lines = [
        frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
    ]
    return f"{path.name}:{lines[-1]}: " if lines else ""


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            reason = f"it has more than {_LARGEST_FILE:,} bytes"
        else:
            return content.decode("utf-8")
    except OSError as error:
        reason = f"it cannot be read ({error.strerror})"
    except UnicodeDecodeError as error:
        reason = f"it is no text: byte {error.start} is not UTF-8"
    except ValueError as error:  # a path that the operating system cannot even be asked for
        reason = f"it cannot be read ({error})"
    raise InvalidInput(
        reason, stage="read file", subject=str(path), next_step="give the path of a readable file"
    )
