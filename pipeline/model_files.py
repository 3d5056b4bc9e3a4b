"""Models of users, by path: a Python function, an ONNX model, or the text of a graph.

``model.py`` is run, and its function ``model`` called; ``model.py:other`` calls another function. It takes
nothing and gives a ``Graph``, or a ``GraphBuilder`` that is not finished yet. ``model.onnx`` is imported
(``compiler.frontend``). Any other file is read as the text of a graph. What goes wrong in a user's file is
told with its line, never as a traceback, and what it prints goes to standard error, since standard output is
the command's.

The file is compiled and run here, past Python's own cache of compiled files, which takes two edits within one
second for one. It is code that nobody can fingerprint: stages are given the graph, never the file.
"""

import importlib.util
import io
import sys
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final, TextIO, cast, final

from compiler.errors import InvalidInput, InvalidModel, TilewrightError
from compiler.graph.build import GraphBuilder
from compiler.graph.faults import printable
from compiler.graph.form import described
from compiler.graph.ir import Graph
from compiler.graph.parser import parse_graph
from compiler.graph.verify import check
from compiler.models.registry import MODELS, model_named
from pipeline.user_files import read_bytes, read_text

if TYPE_CHECKING:
    from compiler.frontend.onnx_file import Imported

DEFAULT_FUNCTION: Final = "model"
ONNX: Final = ".onnx"
"""How files of that kind end."""
_STAGE: Final = "load model"


def model_of(place: str) -> Graph:
    """The graph that a user asks for: a name of the list, or what looks like a path or is one.

    Raises:
        InvalidInput, InvalidModel: as :func:`load_model`, or there is no such name.
    """
    return load_model(place) if is_path(place) else model_named(place).build()


def is_path(place: str) -> bool:
    """Whether a user means a file: it is no name of the list, and it looks like a path or is one."""
    names = [model.name for model in MODELS]
    return place not in names and ("/" in place or "." in place or _is_file(place))


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
    if place.endswith(ONNX):
        return load_onnx(Path(place)).graph
    return parse_graph(read_text(Path(place), stage=_STAGE), Path(place).name)


def load_onnx(path: Path) -> "Imported":
    """The graph and the values of an ONNX model.

    Raises:
        InvalidInput: the file cannot be read.
        InvalidModel, Unsupported: as ``import_onnx``.
    """
    from compiler.frontend.onnx_file import import_onnx

    return import_onnx(read_bytes(path, stage=_STAGE), path.name)


def _is_file(place: str) -> bool:
    try:
        return Path(place).is_file()
    except OSError:  # a name that is too long for one of a file
        return False


@final
class _Aside(io.TextIOBase):
    """What a user's code has for standard output and error: it can be written to and closed, to no harm."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """To the real stream, if there is one."""
        return len(text) if self._stream is None else self._stream.write(text)


def _from_python(path: Path, function: str) -> Graph:
    source = read_text(path, stage=_STAGE)
    name = "_tilewright_model"
    spec = importlib.util.spec_from_loader(name, loader=None, origin=str(path))
    if spec is None:
        raise AssertionError("a specification without a loader always exists")
    module = importlib.util.module_from_spec(spec)
    module.__file__ = str(path)
    sys.modules[name] = module  # where dataclasses of the file look for their module
    aside = _Aside(sys.stderr)
    try:
        with redirect_stdout(aside), redirect_stderr(aside):
            made = _run(path, source, module, function)
    finally:
        sys.modules.pop(name, None)
    if isinstance(made, Graph):
        return check(made)
    raise InvalidModel(
        f"{function}() gives {described(made)}, not a Graph",
        stage=_STAGE,
        subject=path.name,
        next_step="return the graph that GraphBuilder.finish() gives",
    )


def _run(path: Path, source: str, module: ModuleType, function: str) -> object:
    """What the function gives; of a builder its graph."""
    try:
        exec(compile(source, str(path), "exec"), module.__dict__)
        found: object = getattr(module, function, None)
        if callable(found):
            made = cast(Callable[[], object], found)()
            return made.finish() if isinstance(made, GraphBuilder) else made
    except (TilewrightError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001  # whatever a user's code does
        raise InvalidModel(
            f"{_place(error, path)}{_told(error)}",
            stage=_STAGE,
            subject=path.name,
            next_step="correct the file; it must run by itself",
        ) from None
    raise InvalidInput(
        f"it has no function {function}",
        stage=_STAGE,
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


def _told(error: BaseException) -> str:
    """Kind and text of an exception, in one line that can be printed."""
    try:
        text = printable(" ".join(str(error).split()))
    except Exception:  # noqa: BLE001  # the text of an exception is a user's code, too
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
