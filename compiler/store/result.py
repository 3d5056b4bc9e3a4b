"""What running a stage through the store gives: a value by its digest, and how it came about."""

from collections.abc import Callable
from enum import Enum
from typing import Generic, TypeVar

from compiler.errors import TilewrightError
from compiler.store.canonical import JsonValue
from compiler.store.codec import Codec, Outputs, Single
from compiler.store.digest import Digest, ObjectRef
from compiler.store.records import Output, Record, error_from_json, outputs_to_json
from compiler.store.stage import Artifact, Outcome

T = TypeVar("T")
U = TypeVar("U")


class Status(Enum):
    """How a result came about."""

    HIT = "reused"
    """An earlier run's result, from this store or the remote one."""
    COMPUTED = "computed"
    """The stage ran."""
    BYPASSED = "computed without the store"
    """The stage ran, and the store was neither asked nor told."""


class Stored(Artifact[T]):
    """One object of the store as a value.

    Args:
        output: the object and the name that its decoder knows it by.
        outputs: how it is decoded.
        load: reads the verified bytes; raises when they cannot be had.
    """

    def __init__(self, output: Output, outputs: Outputs[T], load: Callable[[ObjectRef], bytes]) -> None:
        self._output = output
        self._outputs = outputs
        self._load = load

    @property
    def digest(self) -> Digest:
        """The object's digest."""
        return self._output.ref.digest

    def value(self) -> T:
        """The decoded object."""
        return self._outputs.join(lambda _: self._load(self._output.ref))

    def source(self) -> JsonValue:
        """The object and its codec."""
        return {"outputs": outputs_to_json((self._output,)), "decoder": self._outputs.describe()}


class StageResult(Outcome[T], Generic[T]):
    """The outcome of one run of a stage, computed or reused.

    The value is decoded from the stored bytes on the first ``value()``, in both cases, so that a warm build
    and a cold one see the same. The bytes of a computed result are held until then; the decoded value is held
    as long as this object lives.

    Args:
        record: key document, outputs and the rest.
        status: how the result came about.
        explanation: why the stage ran, a line for each changed part; empty for a reused result.
        outputs: how the outputs are decoded.
        load: reads the verified bytes of an output, computing the stage again if they are lost.
        fresh: the outputs' bytes, when the stage has just run.
        written: the outputs of ``fresh`` that the store holds, too.
        error: the error that the stage raised just now.
    """

    def __init__(
        self,
        *,
        record: Record,
        status: Status,
        explanation: tuple[str, ...],
        outputs: Outputs[T],
        load: Callable[[Output], bytes],
        fresh: dict[str, bytes],
        written: frozenset[str] = frozenset(),
        error: TilewrightError | None = None,
    ) -> None:
        self.record = record
        self.status = status
        self.explanation = explanation
        self._outputs = outputs
        self._load = load
        self._fresh = fresh
        self._written = written
        self._error = error
        self._decoded: tuple[T] | None = None

    @property
    def digest(self) -> Digest:
        """The digest of the ordered outputs, or of the failure: an orchestrator's data version."""
        return self.record.digest

    @property
    def key(self) -> Digest:
        """The key of the run."""
        return self.record.key

    @property
    def hit(self) -> bool:
        """Whether an earlier run was reused."""
        return self.status is Status.HIT

    @property
    def seconds(self) -> float:
        """How long the stage ran just now; 0 for a reused result."""
        return 0.0 if self.hit else self.record.microseconds / 1e6

    @property
    def saved_seconds(self) -> float:
        """How long the stage had run when a reused result was computed; 0 for a computed one."""
        return self.record.microseconds / 1e6 if self.hit else 0.0

    @property
    def failure(self) -> TilewrightError | None:
        """The stage's error, if it failed."""
        if self._error is not None or self.record.failure is None:
            return self._error
        return error_from_json(self.record.failure)

    def value(self) -> T:
        """The decoded outputs. Raises the stage's error if it failed."""
        failure = self.failure
        if failure is not None:
            raise failure
        if self._decoded is None:
            self._decoded = (self._outputs.join(self.read),)
            self._fresh = {name: data for name, data in self._fresh.items() if name not in self._written}
        return self._decoded[0]

    def read(self, name: str) -> bytes:
        """The bytes of one output.

        Raises:
            KeyError: the stage has no output of that name.
            InternalError: the bytes were lost and computing them again gave others.
        """
        if name in self._fresh:
            return self._fresh[name]
        return self._load(self._output(name))

    def part(self, name: str, codec: Codec[U]) -> Artifact[U]:
        """One output as an artifact of its own, so that a consumer depends on it alone.

        Raises:
            KeyError: the stage has no output of that name.
        """
        output = self._output(name)
        return Stored(output, Single(codec=codec, name=name), lambda _: self.read(name))

    def source(self) -> JsonValue:
        """The objects and their codecs."""
        return {"outputs": outputs_to_json(self.record.outputs), "decoder": self._outputs.describe()}

    def _output(self, name: str) -> Output:
        for output in self.record.outputs:
            if output.name == name:
                return output
        raise KeyError(f"stage {self.record.stage} has no output {name!r}")
