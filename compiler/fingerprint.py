"""Which code a module consists of, computed from source and never declared.

Input: the name of a module of this repository. Output: a ``Fingerprint``, one digest for each file that the
module consists of. Equal fingerprints mean equal code.

**What is followed.** Every static import inside the repository's packages, wherever it stands: at module
level, in a function, under a condition, for type checkers only. A module's parents' ``__init__`` count, since
importing it runs them; ``from package import submodule`` reaches the submodule, and so does an attribute of
an imported package (``package.submodule.function``), which works as soon as anybody has imported the
submodule. Nothing of an external library is read: libraries enter a stage's key by version.

**What is hashed.** The abstract syntax of each file without positions and without bare string statements, so
that a comment, a docstring or formatting changes nothing while a constant does. Data files count too:
whatever lies in the package folder of a module that is reached, in folders below it that are not packages
themselves, apart from Python sources, byte code and hidden files. That is coarser than "the files which the
module opens" and, unlike it, can be decided from source: editing a table misses too often and never too
rarely. The abstract syntax differs between Python versions, so the minor version is part of the digest.

**Where it stops.** At modules that define other stages: a stage reaches another stage's results through the
store, which checks them by content, so its code is no part of the caller's. A module defines a stage when a
statement of its body assigns a call of ``Stage``, imported from ``compiler.store.stage``, to a name. For the
cut to be sound nothing but those names may be imported across it: a helper function or class imported from a
stage's module would run in the caller without being part of the caller's code. Such an import is refused,
with the advice to move the helper to a module of its own; so is an attribute of an imported stage other than
its name, since its function is code, too.

**What is refused.** Whatever makes the reach undecidable: ``import_module``, ``__import__``, ``exec``,
``eval``, also by ``getattr`` or from ``builtins``, star and relative imports, ``sys.modules``, reading source
or ``__doc__``, resource folders named by an expression, data files that are links to folders or no files;
and what cannot be read or parsed. Each refusal is a ``ValueError`` with file and line; it is a mistake in our
code that a test of the stage meets at once.

**Edited files.** A process that began before an edit runs the old code while the file shows the new.
``edited_since`` tells, and the store then neither reads nor writes results of that stage. A file that was
moved into place keeps the time of its last edit, so the time when its entry changed counts as well.

**What is kept.** What a file says (its digest, imports, uses and stages) is a function of its bytes, of this
module and of Python's version, and is kept in the user's cache folder under exactly these: a file is then
read and hashed, and parsed only when its bytes are new. Neither paths nor times are believed. Without the
cache a closure of 300 modules takes more than a second, with it a tenth. It holds a checksum of itself; a
cache that is damaged or cannot be read or written is as good as none.
"""

import ast
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias, cast, final

from compiler.cache_home import cache_home
from compiler.errors import StoreError

LOADED_AT_NANOSECONDS = time.time_ns()
"""When this process loaded this module, in nanoseconds of the clock that file times use."""

_READER = hashlib.sha256(Path(__file__).read_bytes() + sys.version.encode()).hexdigest()[:16]
"""What decides, with the bytes of a file, what is known of it: this module as it was loaded, and Python."""
_MOST_KEPT = 5000
"""Files of which something is kept: some versions of all of ours."""
_STAGE_MODULE = "compiler.store.stage"
_STAGE_CLASS = "Stage"
_REFUSED_NAMES = frozenset({"__import__", "eval", "exec", "__builtins__"})
_READERS_OF_SOURCE = frozenset({"getcomments", "getdoc", "getmodule", "getsource", "getsourcelines"})
_REFUSED_ATTRIBUTES = _READERS_OF_SOURCE | {
    "__import__",
    "exec_module",
    "import_module",
    "load_module",
    "__doc__",
}
_REFUSED_IMPORTS = frozenset(
    {
        "builtins",
        "imp",
        "importlib",
        "importlib.machinery",
        "importlib.util",
        "linecache",
        "pkgutil",
        "pydoc",
        "runpy",
    }
)
_BY_ATTRIBUTE_ONLY = frozenset({"sys", "importlib"})
"""Modules that lead to all others: only ``sys.something`` shows what is used of them."""
_READERS_OF_ATTRIBUTES = frozenset({"getattr", "attrgetter", "methodcaller"})
_OF_A_STAGE = frozenset({"name"})
"""What another stage may read of a stage."""
_TELLING = (ast.Import, ast.ImportFrom, ast.Name, ast.Attribute, ast.Call)
"""Kinds of nodes that say what a module reaches, or make that undecidable."""
_CODE_SUFFIXES = frozenset({".py", ".pyc", ".pyi"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Where source is looked for.

    Args:
        root: the folder that holds the packages.
        packages: names of the top-level packages whose imports are followed.
    """

    root: Path
    packages: tuple[str, ...]

    def __post_init__(self) -> None:
        """Packages are top-level names."""
        for package in self.packages:
            if not package.isidentifier():
                raise ValueError(f"{package!r} is not the name of a top-level package")

    def owns(self, module: str) -> bool:
        """Whether ``module`` belongs to one of the packages, whether or not it exists."""
        return module.partition(".")[0] in self.packages

    @cache  # noqa: B019  # sources are few and live as long as the process
    def locate(self, module: str) -> Path | None:
        """The source file of ``module``, or None without one. A package wins over a module, as in Python."""
        base = self.root.joinpath(*module.split("."))
        for candidate in (base / "__init__.py", base.with_name(base.name + ".py")):
            if candidate.is_file():
                return candidate
        return None


REPOSITORY = Sources(root=Path(__file__).resolve().parent.parent, packages=("compiler", "assets", "pipeline"))
"""The packages that Tilewright ships, where this process found them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """The code of one module.

    Args:
        module: the module it was taken of.
        modules: every module reached, sorted; ``module`` is among them.
        files: (path relative to the root, SHA-256) of each file, sorted by path; paths use "/".
        root: the folder that ``files`` are relative to; no part of the digest.
    """

    module: str
    modules: tuple[str, ...]
    files: tuple[tuple[str, str], ...]
    root: Path = field(compare=False)

    @property
    def digest(self) -> str:
        """SHA-256 over the files' digests and Python's minor version, as 64 hexadecimal digits."""
        document = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "files": self.files}
        return hashlib.sha256(json.dumps(document, separators=(",", ":")).encode()).hexdigest()

    def edited_since(self, nanoseconds: int) -> tuple[str, ...]:
        """The files that were changed or removed after that time, in order."""
        return tuple(path for path, _ in self.files if _modified(self.root / path) > nanoseconds)


@cache
def fingerprint(module: str, *, sources: Sources = REPOSITORY) -> Fingerprint:
    """The code of ``module``; computed once in a process.

    Raises:
        ValueError: the module or an import of it does not exist, an import crosses the cut at another stage
            for something other than the stage itself, or the reach cannot be decided.
    """
    reached: dict[str, _Source] = {}
    pending = [module]
    while pending:
        name = pending.pop()
        if name in reached:
            continue
        path = sources.locate(name)
        if path is None or not sources.owns(name):
            raise ValueError(f"{name} is not a module of {', '.join(sources.packages)}")
        source = reached[name] = _read(path)
        package, _, _ = name.rpartition(".")
        if package:
            pending.append(package)
        for entry in source.imports:
            pending += _targets(entry, module, path, sources)
        for use in source.uses:
            pending += _used(use, module, path, sources)

    files = {
        str(source.path.relative_to(sources.root).as_posix()): source.digest for source in reached.values()
    }
    for folder in {source.path.parent for source in reached.values()}:
        for path in _data_files(folder):
            files[path.relative_to(sources.root).as_posix()] = _file_digest(path)
    if sources == REPOSITORY:  # others are few and small
        _kept().save()
    return Fingerprint(
        module=module, modules=tuple(sorted(reached)), files=tuple(sorted(files.items())), root=sources.root
    )


def defines_stage(module: str, *, sources: Sources = REPOSITORY) -> bool:
    """Whether ``module`` defines a stage, as this file's head says it."""
    path = sources.locate(module)
    return path is not None and bool(_read(path).stages)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Import:
    """One import statement: ``import module`` when ``names`` is None, else ``from module import names``."""

    module: str
    names: tuple[str, ...] | None
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Use:
    """``imported.attributes[0].attributes[1]...``, where ``imported`` is a module or a name of one."""

    imported: str
    attributes: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Source:
    """What a closure needs to know of one file."""

    path: Path
    digest: str
    imports: tuple[_Import, ...]
    uses: tuple[_Use, ...]
    stages: frozenset[str]


_Kept: TypeAlias = "tuple[str, list[list[object]], list[list[object]], list[str]]"
"""What is kept of one file: its digest, imports, uses and stages."""


@final
class _KeptSources:
    """What is known of files by their bytes, from earlier processes and this one."""

    def __init__(self) -> None:
        self._known: dict[str, _Kept] = {}
        self._used: set[str] = set()
        self._is_new = False
        try:
            self._file: Path | None = cache_home() / "sources" / f"{_READER}.json"
            checksum, _, text = self._file.read_bytes().partition(b"\n")
            if hashlib.sha256(text).hexdigest().encode() == checksum:
                self._known = json.loads(text)
        except StoreError:
            self._file = None
        except OSError:
            pass  # none was kept

    def of(self, path: Path, data: bytes) -> _Source:
        """What a file says."""
        name = hashlib.sha256(data).hexdigest()
        self._used.add(name)
        known = self._known.get(name)
        if known is not None:
            digest, imports, uses, stages = known
            return _Source(
                path=path,
                digest=digest,
                imports=tuple(_import_of(*entry) for entry in imports),
                uses=tuple(_use_of(*entry) for entry in uses),
                stages=frozenset(stages),
            )
        source = _parsed(path, data)
        self._known[name] = (
            source.digest,
            [[entry.module, entry.names, entry.line] for entry in source.imports],
            [[use.imported, use.attributes, use.line] for use in source.uses],
            sorted(source.stages),
        )
        self._is_new = True
        return source

    def save(self) -> None:
        """Keep what is new for later processes. Of two that save at once, one wins."""
        if not self._is_new or self._file is None:
            return
        self._is_new = False
        if len(self._known) > _MOST_KEPT:
            self._known = {name: known for name, known in self._known.items() if name in self._used}
        text = json.dumps(self._known, separators=(",", ":")).encode()
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=self._file.parent, delete=False) as part:
                part.write(hashlib.sha256(text).hexdigest().encode() + b"\n" + text)
            Path(part.name).replace(self._file)
        except OSError:
            self._file = None  # a full disk or a folder that is not ours: it costs time only


@cache
def _kept() -> _KeptSources:
    return _KeptSources()


def _import_of(module: object, names: object, line: object) -> _Import:
    listed = None if names is None else tuple(cast("list[str]", names))
    return _Import(module=cast(str, module), names=listed, line=cast(int, line))


def _use_of(imported: object, attributes: object, line: object) -> _Use:
    return _Use(
        imported=cast(str, imported),
        attributes=tuple(cast("list[str]", attributes)),
        line=cast(int, line),
    )


def _targets(entry: _Import, root_module: str, path: Path, sources: Sources) -> Iterator[str]:
    """The modules that an import statement adds to the closure of ``root_module``."""
    if not sources.owns(entry.module):
        return
    where = f"{path}:{entry.line}"
    base = sources.locate(entry.module)
    if base is None:
        raise ValueError(f"{where}: imports {entry.module}, which does not exist")

    def whole(module: str, located: Path) -> str:
        if module != root_module and _read(located).stages:
            raise ValueError(
                f"{where}: imports the module {module}, which defines a stage; "
                f"import the stage by name, and nothing else of its module"
            )
        return module

    if entry.names is None:
        yield whole(entry.module, base)
        return
    attributes: list[str] = []
    for name in entry.names:
        submodule = f"{entry.module}.{name}"
        located = sources.locate(submodule) if base.name == "__init__.py" else None
        if located is None:
            attributes.append(name)
        else:
            yield whole(submodule, located)
    stages = _read(base).stages
    if entry.module == root_module or not stages:
        yield entry.module
        return
    others = [name for name in attributes if name not in stages]
    if others:
        raise ValueError(
            f"{where}: imports {', '.join(others)} from {entry.module}, which defines a stage; the code of "
            f"{root_module} would not cover it: move it to a module that defines no stage"
        )


def _used(use: _Use, root_module: str, path: Path, sources: Sources) -> Iterator[str]:
    """The modules that a use of something imported adds to the closure: submodules that somebody loaded."""
    if not sources.owns(use.imported):
        return
    where = f"{path}:{use.line}"
    holder, _, name = use.imported.rpartition(".")
    if sources.locate(use.imported) is None:
        base = sources.locate(holder)
        is_stage = base is not None and holder != root_module and name in _read(base).stages
        if is_stage and use.attributes[0] not in _OF_A_STAGE:
            raise ValueError(
                f"{where}: reads {name}.{use.attributes[0]} of a stage that {holder} defines; "
                f"the code of {root_module} would not cover it: run the stage instead"
            )
        return
    module = use.imported
    for attribute in use.attributes:
        module = f"{module}.{attribute}"
        located = sources.locate(module)
        if located is None:
            return
        if module != root_module and _read(located).stages:
            raise ValueError(
                f"{where}: uses the module {module}, which defines a stage; import the stage by name"
            )
        yield module


@cache
def _read(path: Path) -> _Source:
    """What one file says. Cached for the process: the code that was loaded is what counts."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    return _kept().of(path, data)


def _parsed(path: Path, data: bytes) -> _Source:
    """Parse one file."""
    try:
        tree = ast.parse(data, filename=str(path))
    except SyntaxError as error:  # bytes that are no text, too
        raise ValueError(f"{path}:{error.lineno or 0}: cannot be parsed: {error.msg}") from error
    nodes: list[ast.AST] = []
    text = _abstract(tree, nodes)
    imports = tuple(_imports(nodes, path))
    uses = tuple(dict.fromkeys(_uses(nodes)))
    stages = _stage_names(tree)
    through_attributes = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        _refuse_dynamic(node, path)
        if (
            isinstance(node, ast.Name)
            and node.id in _BY_ATTRIBUTE_ONLY
            and id(node) not in through_attributes
        ):
            raise _undecidable(path, node, f"{node.id} as a value")
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return _Source(path=path, digest=digest, imports=imports, uses=uses, stages=stages)


def _abstract(value: object, telling: list[ast.AST]) -> str:
    """Abstract syntax as text, without positions and bare string statements.

    One pass instead of those of ``ast``: most of the time in which definitions load is spent here.

    Args:
        value: a node, a list of them, or what a field of a node holds.
        telling: gets the nodes of ``_TELLING``, in the order of the source.
    """
    if isinstance(value, ast.AST):
        if isinstance(value, _TELLING):
            telling.append(value)
        fields = [_abstract(getattr(value, name, None), telling) for name in value._fields]
        return f"{type(value).__name__}({','.join(fields)})"
    if isinstance(value, list):
        items = [
            _abstract(item, telling) for item in cast("list[object]", value) if not _is_bare_string(item)
        ]
        return f"[{','.join(items)}]"
    return repr(value)


def _is_bare_string(statement: object) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _imports(nodes: Sequence[ast.AST], path: Path) -> Iterator[_Import]:
    """Import statements, and folders of packages opened through ``importlib.resources``."""
    entries: list[_Import] = []
    for node in nodes:
        if isinstance(node, ast.Import):
            entries += [_Import(module=alias.name, names=None, line=node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = tuple(alias.name for alias in node.names)
            if node.level or node.module is None:
                raise ValueError(f"{path}:{node.lineno}: relative imports cannot be followed")
            if "*" in names:
                raise ValueError(f"{path}:{node.lineno}: star imports cannot be followed")
            entries.append(_Import(module=node.module, names=names, line=node.lineno))
    yield from entries
    if not any(_is_resources(entry) for entry in entries):
        return
    for node in nodes:
        if isinstance(node, ast.Call) and _called_name(node) == "files":
            match node.args:
                case [ast.Constant(value=str(package))]:
                    yield _Import(module=package, names=None, line=node.lineno)
                case [ast.Name(id="__package__" | "__name__")]:
                    pass  # its own folder is part of the closure anyway
                case _:
                    raise ValueError(
                        f"{path}:{node.lineno}: the package of a resource must be written as a string"
                    )


def _uses(nodes: Sequence[ast.AST]) -> Iterator[_Use]:
    """Attributes that are read of imported names. Where a local name hides one, too much counts as read."""
    bound: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                name, module = (top, top) if alias.asname is None else (alias.asname, alias.name)
                bound.setdefault(name, set()).add(module)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.name if alias.asname is None else alias.asname
                bound.setdefault(name, set()).add(f"{node.module}.{alias.name}")
    for node in nodes:
        if not isinstance(node, ast.Attribute):
            continue
        attributes: list[str] = []
        place: ast.AST = node
        while isinstance(place, ast.Attribute):
            attributes.insert(0, place.attr)
            place = place.value
        if attributes and isinstance(place, ast.Name):
            for imported in sorted(bound.get(place.id, ())):
                yield _Use(imported=imported, attributes=tuple(attributes), line=place.lineno)


def _is_resources(entry: _Import) -> bool:
    names = entry.names if entry.names is not None else ()
    return entry.module == "importlib.resources" or (entry.module == "importlib" and "resources" in names)


def _called_name(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _stage_names(tree: ast.Module) -> frozenset[str]:
    """The names that statements of the module's body bind to ``Stage(...)``."""
    classes = {
        alias.asname if alias.asname is not None else alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module == _STAGE_MODULE
        for alias in node.names
        if alias.name == _STAGE_CLASS
    }
    names: set[str] = set()
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=targets, value=ast.Call(func=function)):
                pass
            case ast.AnnAssign(target=target, value=ast.Call(func=function)):
                targets = [target]
            case _:
                continue
        if isinstance(function, ast.Subscript):  # Stage[Inputs, Options, Output](...)
            function = function.value
        if isinstance(function, ast.Name) and function.id in classes:
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(names)


def _refuse_dynamic(node: ast.AST, path: Path) -> None:
    match node:
        case ast.Name(id=name) if name in _REFUSED_NAMES or name == "__doc__":
            construct = name
        case ast.Attribute(attr=name) if name in _REFUSED_ATTRIBUTES:
            construct = name
        case ast.Attribute(value=ast.Name(id="sys"), attr="modules" | "__dict__" as name):
            construct = f"sys.{name}"
        case ast.ImportFrom(module="inspect", names=names) if any(
            alias.name in _READERS_OF_SOURCE for alias in names
        ):
            construct = ast.unparse(node)
        case ast.ImportFrom(module="sys", names=names) if any(alias.name == "modules" for alias in names):
            construct = "sys.modules"
        case ast.Import(names=names) if any(
            alias.name in _BY_ATTRIBUTE_ONLY and alias.asname is not None for alias in names
        ):
            construct = ast.unparse(node)
        case ast.Call(args=arguments) if _called_name(node) in _READERS_OF_ATTRIBUTES and any(
            isinstance(argument, ast.Constant) and argument.value in _REFUSED_NAMES | _REFUSED_ATTRIBUTES
            for argument in arguments
        ):
            construct = ast.unparse(node)
        case ast.Import(names=names) if any(alias.name in _REFUSED_IMPORTS for alias in names):
            construct = ast.unparse(node)
        case ast.ImportFrom(module="importlib", names=names) if any(
            alias.name not in {"metadata", "resources"} for alias in names
        ):
            construct = ast.unparse(node)
        case ast.ImportFrom(module=str(module)) if module in _REFUSED_IMPORTS - {"importlib"}:
            construct = ast.unparse(node)
        case _:
            return
    raise _undecidable(path, node, construct)


def _undecidable(path: Path, node: ast.AST, construct: str) -> ValueError:
    return ValueError(
        f"{path}:{getattr(node, 'lineno', 0)}: {construct} makes the code of a stage undecidable"
    )


def _data_files(folder: Path) -> Iterator[Path]:
    """The data files of the package in ``folder``, in no particular order."""
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir():
            if path.is_symlink():
                raise ValueError(f"{path}: a link to a folder among the data files of a package")
            if not (path / "__init__.py").is_file():
                yield from _data_files(path)
        elif path.suffix not in _CODE_SUFFIXES:
            yield path


@cache
def _file_digest(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"{path}: no regular file, among the data files of a package")
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error


def _modified(path: Path) -> int:
    """When a file was last changed or moved, in nanoseconds; for a missing file, later than everything."""
    try:
        status = path.stat()
        return max(status.st_mtime_ns, status.st_ctime_ns)
    except OSError:
        return sys.maxsize
