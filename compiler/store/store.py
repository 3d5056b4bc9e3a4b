"""The store: runs stages, keeps what they give and gives it back.

Two tables on disk. ``cas`` holds bytes under their digest; anyone can check them. ``ac`` holds, for the
digest of a *description* of a computation, the digests of what it gave; this is the only place where a wrong
answer can enter. Both are plain files::

    VERSION            the format; another one is refused, never guessed
    cas/ab/<digest>    objects                 tmp/    files in flight
    ac/<namespace>/ab/<key>  records           bad/    damaged files, set aside
    last/<stage>/<label>     last documents    locks/  one file for each key in work
    pins/<name>        keys that stay          counts  hits and misses of all processes

How such caches fail, and what answers each failure here:

====================================  ====================================================================
code missing from the key             fingerprint of the import closure, computed (``fingerprint``)
environment or target missing         declared tables by digest, library versions; no environment variable
                                      is read below the command line
a volatile thing in the key           canonical text of plain values; the rest is refused by type
the unhashable became a constant      raises ``TypeError``
ambiguous concatenation               one structured document, hashed once (``key``)
an entry of several files, torn       one record names all outputs and is published last
torn or flipped bytes accepted        every read checks every digest; damage is set aside
records outlive objects               a hit needs all objects; gc removes records first; what is lost is
                                      computed again and written back
inputs changed while running          stages get artifacts by digest; a stage whose source files changed
                                      since the process began bypasses the store
races of writers and gc               publication holds a shared lock against gc; unique temporary names;
                                      "already gone" is no error; grace periods
trouble kills, or stays silent        compute, warn once, count; ``strict`` raises instead
no explanation, or one with gaps      the explained document is the hashed document (``explain``)
nondeterminism unseen                 other bytes under one key are an event; ``VERIFY`` looks for it
equal mappings in another order       the stage sees every mapping in the order of its encoding
an undeclared option was read         the stage sees the declared options only (``options``)
====================================  ====================================================================

**Writing** goes objects, record, last document; each is on disk before the next. **Reading** goes record,
presence of all objects, bytes, digest, value. The value is decoded when somebody asks: a hit whose value
nobody needs reads no object. When the bytes turn out to be damaged then, the stage runs again and its bytes
are written back; they must be the same.

**One computes, others wait**: a lock for each key, freed by the operating system. Locks are taken from caller
to callee; stages call without cycles, so waiting cannot be circular.

**Stages that run stages** list what they consumed. A hit derives the key of each consumed run again, under
today's code, and looks it up; the first whose outcome is not the recorded one makes the outer stage run
again. An inner run whose key is unchanged and whose record was collected counts as unchanged: equal keys give
equal outcomes. What they ask for in one go (``each``) workers may compute ahead (``ahead``); what counts is
what the caller then finds here, so that a worker which dies costs time and nothing else.

**What is kept of a failure**: see ``records``. A failure is raised by ``run`` whether it is new or old.

**Strictness.** ``open`` always raises ``StoreError`` for a folder that cannot serve as a store. Afterwards,
trouble with reading or writing costs speed only: by default the result is computed and an event reported;
with ``strict`` the ``StoreError`` is raised, and a conflict raises ``InternalError``. Strict is for
continuous integration.
"""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from compiler.errors import InternalError, StoreError, TilewrightError
from compiler.fingerprint import LOADED_AT_NANOSECONDS, REPOSITORY, Sources
from compiler.store.ahead import Backend, Task, Workers, finished
from compiler.store.canonical import JsonObject, in_order
from compiler.store.codec import Codec, Single
from compiler.store.difference import first_difference
from compiler.store.digest import ByteCount, Digest, ObjectRef, digest_of
from compiler.store.explain import explain, nearest
from compiler.store.files import store_error
from compiler.store.key import current_key, key_document, key_of, stage_code, without_code
from compiler.store.last import LastDocuments
from compiler.store.layout import Access, Mode, prepare
from compiler.store.lock import exclusive, held
from compiler.store.objects import Objects, unpack
from compiler.store.options import view
from compiler.store.records import Output, Record, Records, error_to_json, record_to_file
from compiler.store.remote import Remote
from compiler.store.result import StageResult, Status, Stored
from compiler.store.stage import AnyStage, Artifact, Consumed, Namespace, Stage, input_fields
from compiler.store.statistics import Counts, EventKind, Statistics
from compiler.store.watch import Watch

I = TypeVar("I")  # noqa: E741  # inputs
O = TypeVar("O")  # noqa: E741  # options
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSettings:
    """A remote store: where it is, and whether this process may write there."""

    url: str
    upload: bool = False


class Store:
    """An open store. Safe to use from several threads; closing it saves its counts."""

    def __init__(
        self,
        root: Path,
        *,
        access: Access,
        mode: Mode,
        strict: bool,
        tables: Mapping[str, Digest],
        sources: Sources,
        lock_timeout_seconds: float,
        remote: RemoteSettings | None,
        workers: Workers,
        watch: Watch,
    ) -> None:
        self.root = root
        self.statistics = Statistics()
        self.sources = sources
        self.tables = dict(tables)
        self.writable = access is Access.READ_WRITE and mode is not Mode.OFF
        self._mode = mode
        self._strict = strict
        self._lock_timeout_seconds = lock_timeout_seconds
        self._workers = workers
        self._watch = watch
        self._remote_settings = remote
        self.objects = Objects(root, on_damage=self._damaged, writable=self.writable)
        self.records = Records(root, on_damage=self._damaged, writable=self.writable)
        self.last = LastDocuments(root)
        self._remote = None
        if remote is not None and mode is not Mode.OFF:
            self._remote = Remote(remote.url, upload=remote.upload, strict=strict, statistics=self.statistics)

    @classmethod
    def open(
        cls,
        root: Path,
        *,
        access: Access = Access.READ_WRITE,
        mode: Mode = Mode.USE,
        strict: bool = False,
        tables: Mapping[str, Digest] | None = None,
        sources: Sources = REPOSITORY,
        lock_timeout_seconds: float = 600.0,
        remote: RemoteSettings | None = None,
        workers: Workers | None = None,
        watch: Watch | None = None,
    ) -> Self:
        """Open the store in a folder, which is made if it may be written and does not exist.

        Args:
            root: the folder.
            access: whether anything may be written; without it the folder has to be a store already.
            mode: how results are used; with ``Mode.OFF`` the folder is not looked at.
            strict: raise on trouble instead of computing.
            tables: digests of target and instruction tables by name, for the stages that declare them.
            sources: where the code of stages is found.
            lock_timeout_seconds: how long to wait for another process that computes the same key.
            remote: a shared store.
            workers: who may compute ahead where a stage wants several runs; nobody when None. They work with
                a store that may be written and reused, and not at all otherwise.
            watch: is told what is computed.

        Raises:
            StoreError: the folder cannot serve as a store; the message says why and what to do.
        """
        try:
            root = root.absolute()  # the process may go to another folder while the store is open
        except OSError as error:
            raise store_error(error, root) from error
        if mode is not Mode.OFF:
            prepare(root, writable=access is Access.READ_WRITE)
        return cls(
            root,
            access=access,
            mode=mode,
            strict=strict,
            tables={} if tables is None else tables,
            sources=sources,
            lock_timeout_seconds=lock_timeout_seconds,
            remote=remote,
            workers=Workers(backend=Backend.SEQUENTIAL) if workers is None else workers,
            watch=Watch() if watch is None else watch,
        )

    def close(self) -> None:
        """Save the counts. Trouble with that is reported and does no harm."""
        if self.writable:
            self._tolerate("counts", lambda: self.statistics.save(self.root))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, stage: Stage[I, O, T], inputs: I, options: O, *, label: str = "") -> StageResult[T]:
        """The result of ``stage``, reused or computed.

        Args:
            stage: the stage.
            inputs: artifacts and small plain values.
            options: the build's options; the stage sees those that it declared.
            label: what the caller calls this line of work, for explanations; enters no key.

        Raises:
            TilewrightError: the stage failed, now or when the reused result was computed; or, with
                ``strict``, the store does not work.
            TypeError: an input or option has no canonical encoding.
        """
        result = self.attempt(stage, inputs, options, label=label)
        failure = result.failure
        if failure is not None:
            raise failure
        return result

    def attempt(self, stage: Stage[I, O, T], inputs: I, options: O, *, label: str = "") -> StageResult[T]:
        """As ``run``, with a failure of the stage as a result instead of an exception."""
        return self.attempt_within((), stage, inputs, options, label=label)

    def attempt_within(
        self,
        callers: tuple[Digest, ...],
        stage: Stage[I, O, T],
        inputs: I,
        options: O,
        *,
        label: str,
        path: tuple[str, ...] = (),
    ) -> StageResult[T]:
        """As ``attempt``, for stages that run with the keys ``callers``, the outermost first.

        Args:
            callers: their keys.
            stage: as for ``attempt``.
            inputs: as for ``attempt``.
            options: as for ``attempt``.
            label: as for ``attempt``.
            path: their names.

        Raises:
            InternalError: also when the run is one of its own callers, which would wait for itself.
        """
        job = self._job(stage, inputs, options, label=label, callers=callers, path=path)
        if job.key in callers:
            raise InternalError(
                f"the stage asks for its own result, under key {job.key}",
                stage="store",
                subject=f"stage {stage.name}",
                next_step="report this message with the command",
            )
        if self._mode is Mode.OFF or self._edited(stage):
            return self._bypass(job)
        found, reasons = self._find(stage.namespace, job.key)
        if found is not None and self._mode is Mode.USE:
            return self._reuse(job, found)
        if found is not None:
            reasons = (f"computed again, since the store is opened to {self._mode.value}",)
        with self._one_at_a_time(job):
            if self._mode is Mode.USE:  # whoever held the lock may have left it here
                found, _ = self._find(stage.namespace, job.key, ask_remote=False)
                if found is not None:
                    return self._reuse(job, found)
            return self._compute(job, reasons)

    def look_up(self, stage: Stage[I, O, T], inputs: I, options: O) -> "StageResult[T] | LookedUp":
        """What ``run`` would reuse, without computing, writing or counting anything.

        Args:
            stage: the stage.
            inputs: its inputs.
            options: of the build.

        Returns:
            The result, a failure among them; or the key document that nothing is known for, and why.

        Raises:
            TypeError: an input or option has no canonical encoding.
        """
        job = self._job(stage, inputs, options, label="", callers=(), path=())
        found, reasons = self._find(stage.namespace, job.key, ask_remote=False)
        if found is None:
            return LookedUp(document=job.document, reasons=reasons)
        return self._result(job, found, Status.HIT)

    def each_within(
        self,
        callers: tuple[Digest, ...],
        stage: Stage[I, O, T],
        inputs: Sequence[I],
        options: O,
        *,
        label: str,
        path: tuple[str, ...],
    ) -> Generator[StageResult[T], None, None]:
        """As ``attempt_within`` for each of several inputs, which workers may compute ahead."""
        jobs = [self._job(stage, item, options, label=label, callers=callers, path=path) for item in inputs]
        named = (*path, stage.name)
        with contextlib.closing(self._ahead(jobs)) as done:
            for number, item in enumerate(inputs):
                self._watch.counted(named, number, len(jobs))
                next(done)
                yield self.attempt_within(callers, stage, item, options, label=label, path=path)
            self._watch.counted(named, len(jobs), len(jobs))

    def put(self, value: T, codec: Codec[T]) -> Artifact[T]:
        """Keep a value that no stage made (a model file, weights), so that stages can work from its digest.

        Raises:
            StoreError: with ``strict``, the value cannot be written.
        """
        data = codec.encode(value)
        ref = ObjectRef(digest=digest_of(data), size=ByteCount(len(data)))
        written = self.writable and self._tolerate("put", lambda: self.objects.put(data))
        held_here = None if written else data

        def load(wanted: ObjectRef) -> bytes:
            found = held_here if held_here is not None else self.objects.get(wanted)
            if found is None:
                raise StoreError(
                    f"object {wanted.digest} is gone",
                    stage="store",
                    subject=str(self.root),
                    next_step="put the value into the store again, by building from the start",
                )
            return found

        single = Single(codec=codec)
        return Stored(Output(name=single.name, ref=ref), single, load)

    def why(self, stage: str, document: JsonObject, label: str) -> tuple[str, ...]:
        """What changed against the last run under a label, or else the nearest run under any label.

        Raises:
            StoreError: the earlier runs cannot be read.
        """
        known = self.last.read(stage, label)
        earlier = None if known is None else known.document
        if earlier is None:
            earlier = nearest(document, (last.document for last in self.last.of_stage(stage)))
        if earlier is None:
            return ("no earlier run of this stage is known",)
        lines = explain(earlier, document)
        return lines or ("nothing changed, and the earlier result is not there any more",)

    def _job(
        self,
        stage: Stage[I, O, T],
        inputs: I,
        options: O,
        *,
        label: str,
        callers: tuple[Digest, ...],
        path: tuple[str, ...],
    ) -> "_Job[I, O, T]":
        document = key_document(stage, inputs, options, tables=self.tables, sources=self.sources)
        return _Job(
            stage=stage,
            inputs=inputs,
            options=view(stage, options),
            document=document,
            key=key_of(document),
            label=label,
            callers=callers,
            path=path,
        )

    # Looking up ------------------------------------------------------------------------------------------

    def _find(
        self, namespace: Namespace, key: Digest, *, ask_remote: bool = True
    ) -> tuple[Record | None, tuple[str, ...]]:
        """A record that can be reused, or why none can."""
        try:
            record = self.records.read(namespace, key)
            if record is None and ask_remote:
                record = self._fetch_record(namespace, key)
            if record is None:
                return None, ()
            missing = [output.name for output in record.outputs if not self._present(output.ref)]
            if missing:
                return None, (f"output {', '.join(missing)} is not there any more",)
            stale = self._stale(record)
            return (record, ()) if stale is None else (None, (stale,))
        except StoreError as error:
            self._trouble("records", error)
            return None, ("the store could not be read",)

    def _present(self, ref: ObjectRef) -> bool:
        return self.objects.has(ref) or self._fetch_object(ref) is not None

    def _stale(self, record: Record) -> str | None:
        """Which consumed run would not give the recorded outcome today; None when all would."""
        for run in record.consumed:
            name = f"consumed stage {run.request['stage']}"
            key = current_key(run, tables=self.tables, sources=self.sources)
            if key is None:
                return f"{name} cannot be run as before"
            namespace = Namespace(run.request["namespace"])
            found = self.records.read(namespace, key)
            if found is None:
                found = self._fetch_record(namespace, key)
            if found is None and key == run.key:
                continue
            if found is None:
                return f"{name} has not been run under its present code"
            if found.digest != run.output:
                return f"{name} gives another result"
            if key != run.key:  # otherwise what it rests on stands before it in this list
                inner = self._stale(found)
                if inner is not None:
                    return inner
        return None

    def _fetch_record(self, namespace: Namespace, key: Digest) -> Record | None:
        """A record of the remote store, with all that it names brought here first."""
        record = None if self._remote is None else self._remote.record(namespace, key)
        if record is None:
            return None
        for output in record.outputs:
            if not self.objects.has(output.ref) and self._fetch_object(output.ref) is None:
                return None
        if self.writable:
            with self._publishing():
                self.records.publish(record)
        return record

    def _fetch_object(self, ref: ObjectRef) -> bytes | None:
        """The file of a remote object, kept here if anything may be."""
        file = None if self._remote is None else self._remote.object_file(ref)
        if file is not None and self.writable:
            self.objects.put_file(ref, file)
        return file

    def _reuse(self, job: "_Job[I, O, T]", record: Record) -> StageResult[T]:
        self._count(job, Counts(hits=1, saved_microseconds=record.microseconds))
        self.records.mark_used(record)
        self._remember(job)
        return self._result(job, record, Status.HIT)

    # Computing -------------------------------------------------------------------------------------------

    def _compute(self, job: "_Job[I, O, T]", reasons: tuple[str, ...]) -> StageResult[T]:
        explanation = reasons or self._explanation(job)
        outcome = self._execute(job)
        if outcome.tainted or self._edited(job.stage):
            self._count(job, Counts(bypassed=1, spent_microseconds=outcome.record.microseconds))
            return self._result(job, outcome.record, Status.BYPASSED, explanation, outcome)
        self._count(job, Counts(misses=1, spent_microseconds=outcome.record.microseconds))
        kept = self._keep(job, outcome)
        if kept is not outcome.record:  # a conflict: what was there first stays
            return self._result(job, kept, Status.COMPUTED, explanation)
        return self._result(job, kept, Status.COMPUTED, explanation, outcome)

    def _explanation(self, job: "_Job[Any, Any, Any]") -> tuple[str, ...]:
        """Why there is no result yet; that nobody can say it keeps nobody from computing."""
        try:
            return self.why(job.stage.name, job.document, job.label)
        except StoreError as error:
            self._trouble("last", error)
            return ("the earlier runs could not be read",)

    def _bypass(self, job: "_Job[I, O, T]") -> StageResult[T]:
        outcome = self._execute(job)
        self._count(job, Counts(bypassed=1, spent_microseconds=outcome.record.microseconds))
        return self._result(job, outcome.record, Status.BYPASSED, ("the store is not used",), outcome)

    def _execute(self, job: "_Job[I, O, T]") -> "Outcome":
        return self.execute(
            job.stage,
            job.inputs,
            job.options,
            job.document,
            label=job.label,
            callers=job.callers,
            path=job.path,
        )

    def execute(
        self,
        stage: Stage[I, O, T],
        inputs: I,
        options: O,
        document: JsonObject,
        *,
        label: str = "",
        callers: tuple[Digest, ...] = (),
        path: tuple[str, ...] = (),
    ) -> "Outcome":
        """Run a stage whatever is known, and keep nothing of it; stages that it runs go through the store.

        Args:
            stage: the stage.
            inputs: its inputs.
            options: the view of the options that the stage may see.
            document: the key document of the run.
            label: as for ``run``.
            callers: keys of the runs that this one is part of.
            path: the names of their stages.

        Raises:
            StoreError: an input is gone, or, with ``strict``, the store does not work.
            InternalError: the stage broke an invariant.
        """
        named = (*path, stage.name)
        caller = _Caller(self, label, (*callers, key_of(document)), named)
        self._watch.began(named)
        started = time.perf_counter()
        failure: JsonObject | None = None
        error: TilewrightError | None = None
        data: dict[str, bytes] = {}
        try:
            data = dict(stage.outputs.split(stage.compute(in_order(inputs), options, caller)))
        except TilewrightError as raised:
            failure, error = error_to_json(raised), raised
            if failure is None:
                raise
        finally:
            self._watch.ended(named)
        microseconds = round((time.perf_counter() - started) * 1e6)
        outputs = tuple(
            Output(name=name, ref=ObjectRef(digest=digest_of(content), size=ByteCount(len(content))))
            for name, content in data.items()
        )
        record = Record(
            document=document,
            outputs=outputs,
            failure=failure,
            consumed=tuple(caller.consumed),
            microseconds=microseconds,
            module=stage.module,
            decoder=stage.outputs.describe(),
            sources=_sources(inputs),
        )
        return Outcome(record=record, data=data, error=error, tainted=caller.tainted)

    def _keep(self, job: "_Job[Any, Any, Any]", outcome: "Outcome") -> Record:
        """Publish an outcome. Gives the record that counts: another one if that was there first."""
        record = outcome.record
        try:
            with self._publishing():
                known = self.records.read(record.namespace, record.key)
                if known is not None and self._contradicts(job, known, outcome):
                    return known
                if not self.writable:
                    return record
                for name, content in outcome.data.items():
                    self.objects.put(content, durable=job.stage.namespace.durable)
                    outcome.written.add(name)
                self.records.publish(record)
        except StoreError as error:
            self._trouble(job.stage.name, error)
            return record
        self._remember(job)
        remote = self._remote
        if remote is not None:
            self._tolerate("objects", lambda: remote.publish(record, self.objects.file))
        return record

    def _contradicts(self, job: "_Job[Any, Any, Any]", known: Record, outcome: "Outcome") -> bool:
        """Report when two outcomes of a key differ. True when ``known`` is whole and is to stay."""
        new = outcome.record
        if known.digest == new.digest or known.basis != new.basis:
            return False  # equal, or the stages below gave other results since
        present = {output.name: self.objects.get(output.ref) for output in known.outputs}
        difference = first_difference(job.stage, known, present, new, outcome.data)
        message = f"two runs under key {job.key} gave different bytes: {difference}"
        self.statistics.report(EventKind.CONFLICT, job.stage.name, message)
        if self._strict:
            raise _conflict(job, message)
        return self._mode is not Mode.REFRESH and all(content is not None for content in present.values())

    def _restore(self, job: "_Job[Any, Any, Any]", record: Record, wanted: Output) -> bytes:
        """The bytes of an output: read, fetched, or computed again and written back."""
        found = self._load(wanted.ref)
        if found is not None:
            return found
        with self._one_at_a_time(job):
            found = self._load(wanted.ref)
            if found is not None:
                return found
            outcome = self._execute(job)
            self._count(job, Counts(repairs=1, spent_microseconds=outcome.record.microseconds))
            if not outcome.tainted and not self._edited(job.stage):
                self._keep(job, outcome)
        if outcome.record.digest != record.digest:
            message = (
                f"the lost output {wanted.name} of key {job.key} came out differently when computed again"
            )
            self.statistics.report(EventKind.CONFLICT, job.stage.name, message)
            raise _conflict(job, message)
        return outcome.data[wanted.name]

    def _load(self, ref: ObjectRef) -> bytes | None:
        try:
            found = self.objects.get(ref)
            if found is None:
                file = self._fetch_object(ref)
                found = None if file is None else unpack(file, ref)
        except StoreError as error:
            self._trouble("objects", error)
            return None
        return found

    # Working ahead ---------------------------------------------------------------------------------------

    def _ahead(self, jobs: "Sequence[_Job[Any, Any, Any]]") -> Generator[None, None, None]:
        """For each job once: when a worker has done with it, or nobody works on it."""
        if not jobs:
            return
        idle = self._workers.is_alone or self._mode is not Mode.USE or not self.writable
        wanted: list[int] = []
        if not idle and not self._edited(jobs[0].stage):
            wanted = [
                number
                for number, job in enumerate(jobs)
                if self._find(job.stage.namespace, job.key, ask_remote=False)[0] is None
            ]
        if len(wanted) < 2:
            wanted = []  # the caller is as fast
        done = finished(
            [self._task(jobs[number]) for number in wanted], jobs[0].stage, self._workers, self.statistics
        )
        with contextlib.closing(done):
            waiting = set(wanted)
            for number in range(len(jobs)):
                if number in waiting:
                    next(done, None)
                yield

    def _task(self, job: "_Job[Any, Any, Any]") -> Task:
        """What a worker is given."""
        if not self._workers.backend.has_processes:
            return lambda: self._attempt_quietly(job)
        from compiler.store.errand import Errand  # it opens stores

        record = Record(
            document=job.document,
            outputs=(),
            failure=None,
            consumed=(),
            microseconds=0,
            module=job.stage.module,
            decoder=job.stage.outputs.describe(),
            sources=_sources(job.inputs),
        )
        remote = self._remote_settings
        return Errand(
            root=str(self.root),
            strict=self._strict,
            tables=tuple(sorted(self.tables.items())),
            source=(str(self.sources.root), self.sources.packages),
            remote=None if remote is None else (remote.url, remote.upload),
            lock_timeout_seconds=self._lock_timeout_seconds,
            record=record_to_file(record),
            callers=job.callers,
            sender=os.getpid(),
        )

    def _attempt_quietly(self, job: "_Job[Any, Any, Any]") -> str:
        """For a thread: leave the result here. Whoever asks for it meets what goes wrong."""
        with contextlib.suppress(Exception):
            self.attempt_within(
                job.callers, job.stage, job.inputs, job.options, label=job.label, path=job.path
            )
        return ""

    # Around results --------------------------------------------------------------------------------------

    def _result(
        self,
        job: "_Job[I, O, T]",
        record: Record,
        status: Status,
        explanation: tuple[str, ...] = (),
        outcome: "Outcome | None" = None,
    ) -> StageResult[T]:
        return StageResult(
            record=record,
            status=status,
            explanation=explanation,
            outputs=job.stage.outputs,
            load=lambda output: self._restore(job, record, output),
            fresh={} if outcome is None else outcome.data,
            written=frozenset() if outcome is None else frozenset(outcome.written),
            error=None if outcome is None else outcome.error,
        )

    def _edited(self, stage: AnyStage) -> bool:
        """Whether the stage's source is newer than the code that runs; reported once."""
        edited = stage_code(stage, self.sources).edited_since(LOADED_AT_NANOSECONDS)
        if edited:
            self.statistics.report(
                EventKind.EDITED,
                stage.name,
                f"{', '.join(edited)} changed after this process began; results of the stage are not stored "
                f"until the next start",
            )
        return bool(edited)

    @contextlib.contextmanager
    def _one_at_a_time(self, job: "_Job[Any, Any, Any]") -> Generator[None]:
        if not self.writable:
            yield
            return
        path = self.root / "locks" / job.key
        with exclusive(path, timeout_seconds=self._lock_timeout_seconds) as alone:
            if not alone:
                self.statistics.report(
                    EventKind.UNLOCKED, job.stage.name, f"key {job.key} is computed without its lock"
                )
            yield

    @contextlib.contextmanager
    def _publishing(self) -> Generator[None]:
        """Keep the garbage collector out while objects are there and their record is not yet."""
        if not self.writable:
            yield
            return
        with contextlib.ExitStack() as stack:
            # A file system without locks has to do with the collector's grace period.
            with contextlib.suppress(OSError):
                stack.enter_context(held(self.root / "locks" / "gc", shared=True))
            yield

    def _remember(self, job: "_Job[Any, Any, Any]") -> None:
        if self.writable:
            self._tolerate("last", lambda: self.last.write(job.stage.name, job.label, job.document))

    def _tolerate(self, subject: str, action: Callable[[], object]) -> bool:
        try:
            action()
        except StoreError as error:
            self._trouble(subject, error)
            return False
        return True

    def _trouble(self, subject: str, error: StoreError) -> None:
        if self._strict:
            raise error
        self.statistics.report(EventKind.UNUSABLE, subject, str(error))

    def _count(self, job: "_Job[Any, Any, Any]", counts: Counts) -> None:
        self.statistics.count(job.stage.namespace.value, job.stage.name, counts)

    def _damaged(self, path: Path, fault: str) -> None:
        self.statistics.report(EventKind.DAMAGED, str(path), f"the file {fault}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job(Generic[I, O, T]):
    """One run to be reused or computed."""

    stage: Stage[I, O, T]
    inputs: I
    options: O
    document: JsonObject
    key: Digest
    label: str
    callers: tuple[Digest, ...]
    path: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """A run that the store knows nothing of.

    Args:
        document: its key document.
        reasons: why what is there of it cannot be reused; nothing when nothing is there.
    """

    document: JsonObject
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a stage gave just now."""

    record: Record
    data: dict[str, bytes]
    error: TilewrightError | None
    tainted: bool
    written: set[str] = field(default_factory=set[str])


class _Caller:
    """Runs stages for a stage and notes what it gets."""

    def __init__(self, store: Store, label: str, callers: tuple[Digest, ...], path: tuple[str, ...]) -> None:
        self._store = store
        # What a stage runs has nothing to do with what is run beside it under the same label.
        self._label = f"{label}/{path[-1]}" if label else ""
        self._callers = callers
        self._path = path
        self._lock = threading.Lock()
        self.consumed: list[Consumed] = []
        self._known: set[tuple[Digest, Digest]] = set()
        self.tainted = False

    def run(self, stage: Stage[I, O, T], inputs: I, options: O) -> StageResult[T]:
        """As ``Store.run``; a failure is noted as well."""
        result = self._store.attempt_within(
            self._callers, stage, inputs, options, label=self._label, path=self._path
        )
        self._note(stage, result)
        failure = result.failure
        if failure is not None:
            raise failure
        return result

    def each(
        self, stage: Stage[I, O, T], inputs: Sequence[I], options: O
    ) -> Generator[StageResult[T], None, None]:
        """As ``run`` for each of several inputs; a failure is given, not raised."""
        results = self._store.each_within(
            self._callers, stage, inputs, options, label=self._label, path=self._path
        )
        with contextlib.closing(results):
            for result in results:
                self._note(stage, result)
                yield result

    def _note(self, stage: AnyStage, result: StageResult[Any]) -> None:
        run = Consumed(
            module=stage.module,
            request=without_code(result.record.document),
            key=result.key,
            output=result.digest,
        )
        with self._lock:
            for entry in (*result.record.consumed, run):
                if (entry.key, entry.output) not in self._known:
                    self._known.add((entry.key, entry.output))
                    self.consumed.append(entry)
            self.tainted |= result.status is Status.BYPASSED


def _sources(inputs: object) -> JsonObject:
    """How each artifact among the inputs is found again, by field."""
    return {name: value.source() for name, value in input_fields(inputs) if isinstance(value, Artifact)}


def _conflict(job: "_Job[Any, Any, Any]", message: str) -> InternalError:
    return InternalError(
        message,
        stage="store",
        subject=f"stage {job.stage.name}",
        next_step="report this message; until it is repaired, build with the cache off",
    )
