"""Records: what a key stands for. The only part of the store where a wrong answer could enter.

A record is one file that names everything one run of a stage produced, published after all of it: a reader
sees a whole result or none. Its text is one line of canonical JSON and one line with the digest of the first.
While reading, the digest must match, the text must have its only form, and the key document in it must hash
to the key under which the file lies; anything else is damage, and the file is set aside.

Two kinds of information live here. What decides bytes: key document, outputs or failure, consumed runs. And
what serves people and tools, never hashed into anything: the time it took, where codecs and inputs are found
for recomputation.

A failure is a result like any other: an error of the closed hierarchy, kept as data and raised
again with equal text. ``StoreError`` and ``InternalError`` are never kept; they are not properties of the
inputs.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.errors import ALL_ERRORS, InternalError, Measure, NumberKind, StoreError, TilewrightError
from compiler.store import files
from compiler.store.canonical import JsonObject, JsonValue, from_text, to_text
from compiler.store.digest import ByteCount, Digest, ObjectRef, digest_of, parse_digest
from compiler.store.key import key_of
from compiler.store.stage import Consumed, Namespace

_KEPT_ERRORS = {kind.__name__: kind for kind in ALL_ERRORS - {StoreError, InternalError}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One output of a run."""

    name: str
    ref: ObjectRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One run of a stage.

    Args:
        document: the key document, as it was hashed.
        outputs: the outputs in the stage's order; none for a failure.
        failure: the error as data; None for a success.
        consumed: the runs of other stages that the result rests on, in the order of their completion; the
            runs which those consumed stand before them.
        microseconds: how long the stage ran, on the wall clock.
        module: the module of the stage's declaration.
        decoder: how the outputs are decoded.
        sources: how each artifact among the inputs is found again, by field.
    """

    document: JsonObject
    outputs: tuple[Output, ...]
    failure: JsonObject | None
    consumed: tuple[Consumed, ...]
    microseconds: int
    module: str
    decoder: JsonValue
    sources: JsonObject

    def __post_init__(self) -> None:
        """A run fails or has outputs."""
        if self.failure is not None and self.outputs:
            raise ValueError("a failure has no outputs")

    @property
    def key(self) -> Digest:
        """The key of the document."""
        return key_of(self.document)

    @property
    def stage(self) -> str:
        """The stage's name."""
        return str(self.document["stage"])

    @property
    def namespace(self) -> Namespace:
        """The account that the run is booked on."""
        return Namespace(self.document["namespace"])

    @property
    def named(self) -> frozenset[ObjectRef]:
        """Every object that the record names: outputs, and artifacts among the inputs."""
        refs = {output.ref for output in self.outputs}
        for source in self.sources.values():
            refs |= {output.ref for output in source_outputs(source)}
        return frozenset(refs)

    @property
    def basis(self) -> frozenset[tuple[Digest, Digest]]:
        """What the outcome rests on: key and outcome of each consumed run.

        The order does not count here, since a stage may run several at once.
        """
        return frozenset((run.key, run.output) for run in self.consumed)

    @property
    def digest(self) -> Digest:
        """The digest of the outcome: of the ordered outputs, or of the failure."""
        return digest_of(to_text({"outputs": outputs_to_json(self.outputs), "failure": self.failure}))


def error_to_json(error: TilewrightError) -> JsonObject | None:
    """An error as data; None for those that are never kept."""
    if type(error).__name__ not in _KEPT_ERRORS:
        return None
    numbers: list[JsonValue] = [
        [
            number.name,
            int(number.value),  # an integer of NumPy has no text
            number.unit,
            number.kind.value,
            None if number.limit is None else int(number.limit),
        ]
        for number in error.numbers
    ]
    return {
        "class": type(error).__name__,
        "message": error.message,
        "stage": error.stage,
        "subject": error.subject,
        "next_step": error.next_step,
        "numbers": numbers,
        "nodes": list[JsonValue](error.nodes),
    }


def error_from_json(data: JsonObject) -> TilewrightError:
    """The error that ``error_to_json`` turned into ``data``; its text is equal.

    Raises:
        ValueError: ``data`` is not an error.
    """
    match data:
        case {
            "class": str(name),
            "message": str(message),
            "stage": str(stage),
            "subject": str(subject),
            "next_step": str(next_step),
            "numbers": list(numbers),
            "nodes": list(nodes),
        } if name in _KEPT_ERRORS:
            return _KEPT_ERRORS[name](
                message,
                stage=stage,
                subject=subject,
                next_step=next_step,
                numbers=[_measure(number) for number in numbers],
                nodes=[str(node) for node in nodes],
            )
        case _:
            raise ValueError("not an error as records hold it")


def record_to_file(record: Record) -> bytes:
    """The file of a record."""
    text = to_text(
        {
            "document": record.document,
            "outputs": outputs_to_json(record.outputs),
            "failure": record.failure,
            "consumed": [
                {"module": run.module, "request": run.request, "key": run.key, "output": run.output}
                for run in record.consumed
            ],
            "microseconds": record.microseconds,
            "module": record.module,
            "decoder": record.decoder,
            "sources": record.sources,
        }
    )
    return text + b"\n" + digest_of(text).encode() + b"\n"


def record_from_file(file: bytes) -> Record:
    """The record in a file.

    Raises:
        ValueError: the file is not exactly what ``record_to_file`` writes.
    """
    text, closing = file[:-66], file[-66:]
    if closing != b"\n" + digest_of(text).encode() + b"\n":
        raise ValueError("differs from its closing digest")
    match from_text(text):
        case {
            "document": dict(document),
            "outputs": list(outputs),
            "failure": None | dict() as failure,
            "consumed": list(consumed),
            "microseconds": int(microseconds),
            "module": str(module),
            "decoder": decoder,
            "sources": dict(sources),
            **rest,
        } if not rest:
            record = Record(
                document=document,
                outputs=tuple(_output(output) for output in outputs),
                failure=failure,
                consumed=tuple(_consumed(run) for run in consumed),
                microseconds=microseconds,
                module=module,
                decoder=decoder,
                sources=sources,
            )
        case _:
            raise ValueError("does not have the fields of a record")
    _check_request(document)
    if type(microseconds) is not int or not 0 <= microseconds < 1 << 53:
        raise ValueError(f"has a time of {microseconds} microseconds")
    record.named  # noqa: B018  # reads the sources
    if failure is not None:
        error_from_json(failure)
    return record


def outputs_from_json(outputs: JsonValue) -> tuple[Output, ...]:
    """Outputs as records hold them.

    Raises:
        ValueError: ``outputs`` is not a list of outputs.
    """
    if not isinstance(outputs, list):
        raise ValueError("outputs are a list")
    return tuple(_output(output) for output in outputs)


def source_outputs(source: JsonValue) -> tuple[Output, ...]:
    """The objects of an artifact, from what ``Artifact.source`` says.

    Raises:
        ValueError: ``source`` is not that.
    """
    match source:
        case {"outputs": list(outputs)}:
            return outputs_from_json(outputs)
        case _:
            raise ValueError("the source of an artifact names its objects")


def outputs_to_json(outputs: tuple[Output, ...]) -> JsonValue:
    """The inverse of ``outputs_from_json``."""
    return [[output.name, output.ref.digest, output.ref.size] for output in outputs]


class Records:
    """The records below one folder.

    Args:
        root: the store.
        on_damage: told about each damaged file and what is wrong with it, once it is set aside.
        writable: whether damaged files may be moved and used ones marked as used.
    """

    def __init__(self, root: Path, *, on_damage: Callable[[Path, str], None], writable: bool) -> None:
        self._root = root
        self._on_damage = on_damage
        self._writable = writable

    def path(self, namespace: Namespace, key: Digest) -> Path:
        """Where a record lies or would lie."""
        return self._root / "ac" / namespace.value / key[:2] / key

    def read(self, namespace: Namespace, key: Digest) -> Record | None:
        """The record of a key; None when it is missing or damaged.

        Raises:
            StoreError: the store cannot be read.
        """
        return self.load(self.path(namespace, key))

    def load(self, path: Path) -> Record | None:
        """The record in one file, as ``walk`` gave it; None when it is missing or damaged.

        Raises:
            StoreError: the store cannot be read.
        """
        try:
            file = files.read(path)
            if file is None:
                return None
            record = record_from_file(file)
            if record.key != path.name or record.namespace.value != path.parent.parent.name:
                raise ValueError("lies under a key that is not its own")
        except ValueError as error:
            fault = str(error)
        else:
            return record
        if self._writable:
            files.set_aside(self._root, path)
        self._on_damage(path, fault)
        return None

    def publish(self, record: Record) -> None:
        """Make a record visible, in place of an earlier one. All that it names has to be stored before.

        Raises:
            StoreError: it cannot be written.
        """
        path = self.path(record.namespace, record.key)
        file = record_to_file(record)
        if len(file) > files.LARGEST:
            raise StoreError(
                f"the record takes {len(file)} bytes, and {files.LARGEST} are the most",
                stage="store",
                subject=str(path),
                next_step="report this message; the result was computed and is not kept",
            )
        files.publish(self._root, path, file, durable=record.namespace.durable)

    def mark_used(self, record: Record) -> None:
        """Note that a record was useful: garbage collection counts its age from now."""
        if self._writable:
            files.touch(self.path(record.namespace, record.key))

    def walk(self) -> Iterator[Path]:
        """Everything that lies where records lie, sorted."""
        for namespace in files.entries(self._root / "ac"):
            for folder in files.entries(namespace) if files.is_folder(namespace) else []:
                yield from files.entries(folder) if files.is_folder(folder) else [folder]


def _output(output: JsonValue) -> Output:
    match output:
        case [str(name), str(digest), int(size)]:
            return Output(name=name, ref=ObjectRef(digest=parse_digest(digest), size=ByteCount(size)))
        case _:
            raise ValueError("an output is a name, a digest and a size")


def _consumed(run: JsonValue) -> Consumed:
    match run:
        case {
            "module": str(module),
            "request": dict(request),
            "key": str(key),
            "output": str(output),
            **rest,
        } if not rest:
            _check_request(request)
            return Consumed(
                module=module, request=request, key=parse_digest(key), output=parse_digest(output)
            )
        case _:
            raise ValueError("a consumed run has a module, a request, a key and an output")


def _check_request(document: JsonObject) -> None:
    """Whether a key document, or what a consumer keeps of one, says what everybody asks of it."""
    match document:
        case {"namespace": str(namespace), "stage": str()}:
            Namespace(namespace)
        case _:
            raise ValueError("has a key document without namespace and stage")


def _measure(number: JsonValue) -> Measure:
    match number:
        case [str(name), int(value), str(unit), str(kind), None | int() as limit]:
            return Measure(name=name, value=value, unit=unit, kind=NumberKind(kind), limit=limit)
        case _:
            raise ValueError("a number of an error has a name, a value, a unit, a kind and a limit")
