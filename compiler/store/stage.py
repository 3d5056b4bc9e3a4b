"""The declaration of a stage: everything that the store has to know to run it once and reuse it for ever.

A stage is a plain function ``stage(inputs, options) -> output`` in its own package. Beside it, at module
level, stands a ``Stage`` that names the function, its format number, its codecs and the options that it
reads::

    ORDER = Stage(
        name="exchange.order",
        module=__name__,
        format=1,
        inputs=OrderInputs,
        outputs=Single(codec=ORDER_CODEC),
        reads=("exchange.stream_words",),
        function=order,
    )

This assignment is what cuts code fingerprints (``compiler.fingerprint``): other modules may import ``ORDER``
from here and nothing else. Types that callers need live in the package's other modules.

**Inputs** are a frozen dataclass. A field is either an ``Artifact``, a value with a known digest that is
decoded only when the stage runs, or a small plain value that is part of the key itself. **Options** are the
build's one options object; the function receives a view of it in which nothing but ``reads`` and ``unkeyed``
exists, so that reading an undeclared option fails at the first run instead of leaving a stale result.
``unkeyed`` names what may influence speed or messages and never bytes: worker counts, log levels.

A stage that runs other stages declares ``calling`` instead of ``function`` and receives a ``StageCaller``. It
must call through it, so that the record lists what was consumed. Wide work goes through ``each``: workers,
each with the store open, run ahead, and the caller takes the results in its own order.

This module and the codecs are part of every stage's code; the rest of the store is not, so that repairing the
garbage collector rebuilds nothing.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from types import FunctionType
from typing import Any, Generic, Protocol, TypeVar

from compiler.errors import TilewrightError
from compiler.store.canonical import JsonObject, JsonValue, encode
from compiler.store.codec import Codec, Outputs
from compiler.store.digest import Digest

I = TypeVar("I")  # noqa: E741  # inputs
O = TypeVar("O")  # noqa: E741  # options
T = TypeVar("T")
U = TypeVar("U")

_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*")


class Namespace(Enum):
    """What a result is, for separate accounts of entries, bytes and hit rates (CA-01, CA-06)."""

    STAGE = "stage"
    """Output of a whole stage."""
    FRAGMENT = "fragment"
    """What is known of a piece of a mid program wherever it occurs."""
    KERNEL = "kernel"
    """A kernel object."""
    SCHEDULE = "schedule"
    """An exchange schedule."""

    @property
    def durable(self) -> bool:
        """Whether a result is worth waiting for the disk; what is soon found again may be lost in a crash."""
        return self is not Namespace.FRAGMENT


class Artifact(ABC, Generic[T]):
    """A value that is known by its digest and decoded only when asked for."""

    @property
    @abstractmethod
    def digest(self) -> Digest:
        """The digest of the content."""

    @abstractmethod
    def value(self) -> T:
        """The decoded value. Arrays in it cannot be written."""

    @abstractmethod
    def source(self) -> JsonValue:
        """What a record keeps so that the value can be found again: objects and codecs."""


class Outcome(Artifact[T], Generic[T]):
    """What a stage gave: an artifact of all its outputs."""

    @abstractmethod
    def part(self, name: str, codec: Codec[U]) -> Artifact[U]:
        """One output as an artifact of its own, so that a consumer depends on it alone.

        Raises:
            KeyError: the stage has no output of that name.
        """

    @property
    @abstractmethod
    def failure(self) -> TilewrightError | None:
        """The stage's error, if it failed: then there is no value, and there are no parts."""


class StageRunner(Protocol):
    """Runs stages one after the other."""

    def run(self, stage: "Stage[I, O, T]", inputs: I, options: O) -> Outcome[T]:
        """The output of ``stage``, computed or reused; raises the stage's error."""
        ...


class StageCaller(StageRunner, Protocol):
    """Runs stages for a stage."""

    def each(
        self, stage: "Stage[I, O, T]", inputs: Sequence[I], options: O
    ) -> Generator[Outcome[T], None, None]:
        """The outcomes of ``stage`` for several inputs, in their order, a failure among them as an outcome.

        Those that nobody has asked for yet may be computed meanwhile. Only what was asked for counts as
        consumed, so that the order and the bytes of everything are those of one run after the other. Closing
        the generator gives the others up.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage(Generic[I, O, T]):
    """One stage.

    Args:
        name: lower-case words, joined by "." and "_"; part of the key.
        module: ``__name__`` of the module that holds the declaration: where the fingerprint starts.
        format: number of the output's format; raise it to disown all earlier results.
        inputs: the frozen dataclass that the function takes.
        outputs: the codecs.
        reads: dotted paths of the options that decide the output; they enter the key.
        unkeyed: (dotted path, value for recomputation) of the options that may be read and decide no byte.
        tables: names of the tables (target, instructions, ...) that decide the output besides code; their
            digests are given to the store.
        namespace: the account that results are booked on.
        function: the stage, if it runs no other.
        calling: the stage, if it does.
    """

    name: str
    module: str
    format: int
    inputs: type[I]
    outputs: Outputs[T]
    reads: tuple[str, ...] = ()
    unkeyed: tuple[tuple[str, object], ...] = ()
    tables: tuple[str, ...] = ()
    namespace: Namespace = Namespace.STAGE
    function: Callable[[I, O], T] | None = None
    calling: Callable[[I, O, StageCaller], T] | None = None

    def __post_init__(self) -> None:
        """Names are well formed, options are distinct and the function can be covered by a fingerprint."""
        if _NAME.fullmatch(self.name) is None:
            raise ValueError(f"{self.name!r} is not a stage name: lower-case words joined by . and _")
        implementation = self.function if self.function is not None else self.calling
        if implementation is None or (self.function is not None and self.calling is not None):
            raise ValueError(f"stage {self.name} needs exactly one of function and calling")
        if not isinstance(implementation, FunctionType) or "<" in implementation.__qualname__:
            raise ValueError(
                f"stage {self.name}: {implementation!r} is not a module-level function; what it captures "
                f"would be in no key"
            )
        if not is_dataclass(self.inputs) or not _is_frozen(self.inputs):
            raise ValueError(
                f"stage {self.name}: inputs {self.inputs.__qualname__} is not a frozen dataclass"
            )
        paths = [*self.reads, *(path for path, _ in self.unkeyed)]
        for path in paths:
            if _NAME.fullmatch(path) is None:
                raise ValueError(f"stage {self.name}: {path!r} is not the path of an option")
        for path in paths:
            if any(other is not path and (other + ".").startswith(path + ".") for other in paths):
                raise ValueError(f"stage {self.name}: option {path} is named twice")
        encode(self.unkeyed)

    @property
    def modules(self) -> frozenset[str]:
        """The modules whose code the stage runs directly; its fingerprint has to cover them."""
        implementation = self.function if self.function is not None else self.calling
        assert implementation is not None
        found = {implementation.__module__, self.inputs.__module__}
        for _, codec in self.outputs.codecs:
            found |= codec.modules
        return frozenset(found)

    def compute(self, inputs: I, options: O, caller: StageCaller) -> T:
        """Run the function."""
        if self.calling is not None:
            return self.calling(inputs, options, caller)
        assert self.function is not None
        return self.function(inputs, options)


AnyStage = Stage[Any, Any, Any]
"""A stage whose types do not matter."""


def input_fields(inputs: object) -> tuple[tuple[str, object], ...]:
    """(name, value) of the fields of a stage's inputs.

    Raises:
        TypeError: it is not a dataclass.
    """
    if not is_dataclass(inputs) or isinstance(inputs, type):
        raise TypeError(f"inputs are a {type(inputs).__qualname__}, not a dataclass")
    return tuple((field.name, getattr(inputs, field.name)) for field in fields(inputs))


def _is_frozen(inputs: type) -> bool:
    parameters: object = getattr(inputs, "__dataclass_params__", None)
    return bool(getattr(parameters, "frozen", False))


@dataclass(frozen=True, slots=True, kw_only=True)
class Consumed:
    """One run of a stage inside another: what the outer result rests on.

    Args:
        module: the module of the inner stage's declaration.
        request: the inner key document without code and libraries, and with the names of its tables.
        key: the inner key at the time.
        output: digest of the inner outcome, a failure included.
    """

    module: str
    request: JsonObject
    key: Digest
    output: Digest
