"""Compilation of hot loops to machine code, with a cache that no edit can make stale.

The only module that imports Numba. ``@compiled`` turns a function over NumPy arrays and numbers into machine
code on its first call with each combination of argument types, and keeps the result on disk for later
processes.

**Why not Numba's own cache.** It watches the file of the function and nothing else. A function keeps the
constants and the code of what it calls, so after an edit of a callee's module the old machine code is served.
Here the cache of a function lies in a folder named after the code fingerprint of its module, which covers
every module that it imports (``compiler.fingerprint``), the version of Numba and the processor::

    <cache home>/numba/<fingerprint>/<Numba version>/<processor>/

An edit that matters leads to another folder. A comment does not, and neither does another checkout with equal
code, so Numba's own stamp and path of the source are left out. ``NUMBA_CACHE_DIR``, if set, replaces
``<cache home>/numba``.
The entries are pickles: the folder is local to the machine, is never part of a store and is never shared.

**What still reaches machine code unseen.** A compiled function that is passed as an argument belongs to no
import. Do not pass functions; pass constants as arguments.

Losing the cache costs time only. It is not used for a function outside this repository's packages, for one
inside another function (what it captures is in no fingerprint), for one whose code was edited after the
process began (the code that runs is then not the code on disk), or when the folder cannot be written; an
entry that cannot be read or saved is compiled again. None of this raises or warns.
"""

import hashlib
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, ParamSpec, Protocol, TypeVar, cast, overload

import llvmlite.binding
import numba
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaWarning
from numba.core.sigutils import (
    normalize_signature,  # pyright: ignore[reportUnknownVariableType]  # Numba declares no types
)

from compiler.cache_home import cache_home
from compiler.errors import StoreError
from compiler.fingerprint import LOADED_AT_NANOSECONDS, REPOSITORY, fingerprint

P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Protocol[P, R]):
    """A function in machine code. Other compiled functions may call it."""

    py_func: Callable[P, R]
    """The same function, interpreted: the reference that tests compare with."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the machine code, compiling it first if these types are new."""
        ...


@overload
def compiled(function: Callable[P, R], /) -> Compiled[P, R]: ...


@overload
def compiled(
    *, nogil: bool = False, boundscheck: bool = False
) -> Callable[[Callable[P, R]], Compiled[P, R]]: ...


def compiled(
    function: Callable[P, R] | None = None, /, *, nogil: bool = False, boundscheck: bool = False
) -> Compiled[P, R] | Callable[[Callable[P, R]], Compiled[P, R]]:
    """Compile ``function`` to machine code; usable with and without arguments.

    Never parallel and never with relaxed floating-point rules: a result depends on its arguments alone.

    Args:
        function: a module-level function that Numba can compile without Python objects.
        nogil: let other threads run meanwhile.
        boundscheck: raise ``IndexError`` on an index out of range; otherwise such an index is undefined
            behaviour.
    """

    def decorate(target: Callable[P, R]) -> Compiled[P, R]:
        return _dispatcher(target, nogil=nogil, boundscheck=boundscheck)

    return decorate if function is None else decorate(function)


class _Settings(Protocol):
    """The part of Numba's configuration used here; Numba declares no types."""

    CACHE_DIR: str


class _Dispatcher(Protocol):
    """The parts of Numba's dispatcher used here."""

    py_func: Callable[..., object]
    compile: Callable[[object], object]
    _cache: FunctionCache


_settings = cast("_Settings", config)


class _Signature(Protocol):
    """The part of Numba's signatures used here."""

    args: Sequence[object]


class _Loaded(Protocol):
    """The part of Numba's compiled code used here."""

    signature: _Signature


def _arguments(signature: object) -> tuple[object, ...]:
    """The types of the arguments, of whatever the dispatcher was asked to compile."""
    normalize = cast("Callable[[object], tuple[Sequence[object], object]]", normalize_signature)
    return tuple(normalize(signature)[0])


class _Locator(UserProvidedCacheLocator):
    """Where Numba keeps one function: the folder around it already says which code it is of."""

    def get_source_stamp(self) -> bytes:
        return b""

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        return Path(py_file).parent.name


class _Placed(CompileResultCacheImpl):
    """Numba's way to find an entry, with our place only."""

    _locator_classes: ClassVar = [_Locator]


class _PlacedCache(FunctionCache):
    """Numba's cache of one function, where an entry that cannot be read or saved is no error."""

    _impl_class = _Placed

    def load_overload(self, sig: object, target_context: object) -> object:
        load = cast("Callable[[object, object], _Loaded | None]", super().load_overload)
        try:
            found = load(sig, target_context)
            # Numba numbers the entries of a function. Two processes that compile it for different types at
            # the same time may choose one number, and the index then leads to the other one's machine code.
            return found if found is not None and tuple(found.signature.args) == _arguments(sig) else None
        except Exception:  # noqa: BLE001  # reading a damaged pickle can raise anything
            return None

    def save_overload(self, sig: object, data: object) -> None:
        save = cast("Callable[[object, object], None]", super().save_overload)
        try:
            try:
                save(sig, data)
            except Exception:  # noqa: BLE001  # a damaged index, perhaps: begin a new one
                self.flush()
                save(sig, data)
        except Exception:  # noqa: BLE001  # a full disk, perhaps; the code is in memory
            self.disable()


def _dispatcher(function: Callable[P, R], *, nogil: bool, boundscheck: bool) -> Compiled[P, R]:
    jit = cast("Callable[..., Callable[[Callable[P, R]], Callable[P, R]]]", numba.jit)
    result = jit(nopython=True, nogil=nogil, boundscheck=boundscheck, fastmath=False, parallel=False)(
        function
    )
    dispatcher = cast("_Dispatcher", result)
    if result is function:  # NUMBA_DISABLE_JIT: interpreted on purpose
        dispatcher.py_func = function
        return cast("Compiled[P, R]", dispatcher)

    folder = _cache_folder(function)
    if folder is not None:
        _place_cache(dispatcher, function, folder)

    compile_types = dispatcher.compile

    def compile_quietly(signature: object) -> object:
        # The compiler's lock also keeps two threads from restoring each other's warning filters.
        with global_compiler_lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaWarning)
            return compile_types(signature)

    dispatcher.compile = compile_quietly
    return cast("Compiled[P, R]", dispatcher)


def _place_cache(dispatcher: _Dispatcher, function: Callable[..., object], folder: Path) -> None:
    """Give ``dispatcher`` a cache in ``folder``; Numba reads its setting while the cache is created only."""
    with global_compiler_lock:
        configured = _settings.CACHE_DIR
        _settings.CACHE_DIR = str(folder)
        try:
            placed = _PlacedCache(function)
        except RuntimeError:  # no place that Numba accepts
            return
        finally:
            _settings.CACHE_DIR = configured
    if Path(cast("str", placed.cache_path)).is_relative_to(folder):
        dispatcher._cache = placed  # pyright: ignore[reportPrivateUsage]  # as Dispatcher.enable_caching


def _cache_folder(function: Callable[..., object]) -> Path | None:
    """The folder for the functions of a module, or None when ``function`` is not to be cached."""
    module = function.__module__
    if not REPOSITORY.owns(module) or "<" in function.__qualname__:
        return None
    code = fingerprint(module)
    if code.edited_since(LOADED_AT_NANOSECONDS):
        return None
    try:
        root = Path(_settings.CACHE_DIR) if _settings.CACHE_DIR else cache_home() / "numba"
        folder = root / code.digest / str(numba.__version__) / _processor()
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, StoreError):
        return None


def _processor() -> str:
    """Name and features of this processor, as a file name."""
    name = str(llvmlite.binding.get_host_cpu_name())
    features = str(llvmlite.binding.get_host_cpu_features().flatten())
    return f"{name}-{hashlib.sha256(features.encode()).hexdigest()[:12]}"
