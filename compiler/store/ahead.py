"""Workers that compute ahead what a caller is about to ask for, in its order.

A caller that wants the results of several runs hands out one task for each and then takes the results one
after the other. A task leaves its result in the store, so that what comes back through here is only that it
is done: the caller asks the store itself, finds the result there, or computes it when a worker failed. So
nothing that a worker does or fails to do decides anything, and results are the same for any number of them.

====================  ========================================================================================
backend               workers are
====================  ========================================================================================
``sequential``        nobody: the caller computes one after the other
``loky``              processes of this machine. Those that are not needed any more are killed, and they end
                      by themselves when who began them is gone
``threading``         threads of this process; code that holds Python's lock does not get faster. What was
                      begun is finished before anything else happens
``dask``              processes of a Dask cluster that run the same code and reach the store under the same
                      path; what was begun there is finished, and nobody waits for it
====================  ========================================================================================

All of them are backends of joblib. A worker that dies costs its time: ``finished`` starts workers again, and
in the end does without. At any time as many tasks are given out as there are workers, so that little is lost
when the caller stops asking.
"""

import contextlib
import json
import os
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol, cast, final

from compiler.errors import StoreError
from compiler.store.canonical import JsonValue
from compiler.store.stage import AnyStage
from compiler.store.statistics import Counts, EventKind, Statistics

Task = Callable[[], str]
"""Leaves a result in the store, and says as JSON what its process did, or why nothing was done; "" for a
thread of this one. It raises nothing."""

RESTARTS: Final = 2
"""How often workers are started again for one list of tasks."""

_WATCH_SECONDS: Final = 0.2
"""How long a worker may outlive who began it."""
_TIMEOUT_SECONDS: Final = 10
"""How long a scheduler may take to answer."""


class Backend(Enum):
    """Who the workers are."""

    SEQUENTIAL = "sequential"
    LOKY = "loky"
    THREADING = "threading"
    DASK = "dask"

    @property
    def has_processes(self) -> bool:
        """Whether workers have a memory of their own."""
        return self in {Backend.LOKY, Backend.DASK}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    """Workers of a store. They change the bytes of nothing.

    Args:
        count: how many; of a cluster, it decides itself.
        backend: who they are.
        scheduler: address of the scheduler of a cluster; empty for other backends.
    """

    count: int = 1
    backend: Backend = Backend.LOKY
    scheduler: str = ""

    def __post_init__(self) -> None:
        """A cluster has a scheduler, and nobody else has one."""
        if self.count < 1:
            raise ValueError(f"{self.count} workers are none")
        if (self.backend is Backend.DASK) != bool(self.scheduler):
            raise ValueError("a scheduler belongs to backend dask, and to no other")

    @property
    def is_alone(self) -> bool:
        """Whether nobody works beside the caller."""
        return self.backend is not Backend.DASK and (self.count == 1 or self.backend is Backend.SEQUENTIAL)


class WorkerLost(Exception):
    """A worker died; the message says how. What it was given is not done."""


class _Parallel(Protocol):
    """What is used of joblib, which declares no types."""

    n_dispatched_tasks: int

    def __call__(self, calls: Iterable[object]) -> Generator[str, None, None]: ...


def finished(
    tasks: Sequence[Task], stage: AnyStage, workers: Workers, statistics: Statistics
) -> Generator[None, None, None]:
    """For each task once, in order, when it is done. Ends early when workers die again and again.

    Args:
        tasks: runs of a stage.
        stage: the stage.
        workers: who does them.
        statistics: told what workers did, and of those that were lost.

    Raises:
        StoreError: the backend cannot work at all.
    """
    left = list(tasks)

    def lost(count: int) -> None:
        if count:
            statistics.count(stage.namespace.value, stage.name, Counts(lost=count))

    for start in range(RESTARTS + 1):
        if not left:
            return
        try:
            with contextlib.closing(done_in_order(left[:], workers, lost)) as answers:
                for answer in answers:
                    del left[0]
                    _told(answer, stage, statistics)
                    yield
        except WorkerLost as fault:
            rest = "others take its place" if start < RESTARTS else "the rest is computed without"
            statistics.report(EventKind.WORKER, stage.name, f"a worker was lost; {rest}: {fault}")


def _told(answer: str, stage: AnyStage, statistics: Statistics) -> None:
    match cast("JsonValue", json.loads(answer or "{}")):
        case {"did": dict(did)}:
            statistics.merge(did)
        case {"refused": str(reason)}:
            statistics.report(EventKind.WORKER, stage.name, f"a worker did not compute it: {reason}")
        case _:
            pass


def done_in_order(
    tasks: Sequence[Task], workers: Workers, lost: Callable[[int], None]
) -> Generator[str, None, None]:
    """What each task says, in order, as soon as it and those before it are done.

    Args:
        tasks: what is to be done. With processes, they and what they hold can be pickled.
        workers: who does it.
        lost: told at the end how many tasks were given out and their answer not taken.

    Raises:
        WorkerLost: a worker died, or the cluster cannot be reached any more.
        StoreError: the backend cannot work at all.
    """
    import joblib

    taken = 0
    with contextlib.ExitStack() as stack:
        backend: dict[str, object] = {"backend": workers.backend.value}
        if workers.backend is Backend.LOKY:
            backend |= {"initializer": _end_with, "initargs": (os.getpid(),)}
        if workers.backend is Backend.DASK:
            backend["client"] = stack.enter_context(_client(workers.scheduler))
        stack.enter_context(cast("Any", joblib).parallel_config(**backend))
        parallel = cast(
            "_Parallel",
            cast("Any", joblib).Parallel(
                n_jobs=-1 if workers.backend is Backend.DASK else workers.count,
                return_as="generator",
                pre_dispatch="n_jobs",
                batch_size=1,
            ),
        )
        stack.callback(lambda: lost(parallel.n_dispatched_tasks - taken))
        try:
            answers = parallel(cast("Any", joblib).delayed(task)() for task in tasks)
            stack.callback(_close, answers)
            for answer in answers:
                taken += 1
                yield answer
        except Exception as error:  # tasks raise nothing, so that this is a backend's
            raise WorkerLost(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from error


def _end_with(parent: int) -> None:
    """In a worker: end when the process that began it is gone.

    It would wait minutes for a next task, and hold open whatever its parent printed to.
    """
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH_SECONDS)
    os._exit(1)


def _close(answers: Generator[str, None, None]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that tasks are given up is what the caller wants
        answers.close()


def _client(address: str) -> contextlib.AbstractContextManager[object]:
    """A connection to the scheduler of a cluster.

    Raises:
        StoreError: there is no client, or no scheduler that answers.
    """
    try:
        import distributed
    except ImportError as error:
        raise StoreError(
            "package distributed is not installed",
            stage="workers",
            subject="backend dask",
            next_step="install it: pip install distributed; or take backend loky",
        ) from error
    try:
        client = cast("Any", distributed).Client(address, timeout=_TIMEOUT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise StoreError(
            f"no scheduler answers: {' '.join(str(error).split())[:200]}",
            stage="workers",
            subject=address,
            next_step="start one (dask scheduler), its workers (dask worker), and give its address",
        ) from error
    return cast("contextlib.AbstractContextManager[object]", client)
