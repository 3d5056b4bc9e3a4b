"""One run of a stage as something that another process can carry out, and what that process does.

What travels is a record without outcome, so that a worker makes stage, inputs and options again as
recomputation does: from objects of the store, with all its checks. A worker that runs other code, has other
tables or does not find the inputs refuses, and whoever sent it computes the run. Workers keep results under
no label; whoever asked for them does.
"""

import json
import logging
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import final

from compiler.errors import TilewrightError
from compiler.fingerprint import Sources
from compiler.store.digest import Digest
from compiler.store.records import record_from_file
from compiler.store.store import RemoteSettings, Store
from compiler.store.verify import NotRecomputableError, remade


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """One run, to be carried out elsewhere.

    Args:
        root: folder of the store, which the worker reaches under the same path.
        strict: whether it is opened to raise on trouble.
        tables: (name, digest) of the tables that it is opened with.
        source: root of the code, and the names of its packages.
        remote: address of a shared store and whether to write there, if there is one.
        lock_timeout_seconds: how long to wait for another process with the same key.
        record: what is run, as the file of a record without outcome.
        callers: keys of the runs that it is part of.
        sender: number of the process that wants it.
    """

    root: str
    strict: bool
    tables: tuple[tuple[str, Digest], ...]
    source: tuple[str, tuple[str, ...]]
    remote: tuple[str, bool] | None
    lock_timeout_seconds: float
    record: bytes
    callers: tuple[Digest, ...]
    sender: int

    def __call__(self) -> str:
        """Carry it out, and say as JSON what the store did, or why nothing was done."""
        if os.getpid() != self.sender:
            logging.getLogger("tilewright.store").disabled = True  # the sender tells its user
            if threading.current_thread() is threading.main_thread():
                # A terminal interrupts everybody; the sender decides what becomes of its workers.
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            store = self._opened()
            stage, inputs, options = remade(store, record_from_file(self.record))
            store.attempt_within(self.callers, stage, inputs, options, label="")
        except (TilewrightError, NotRecomputableError) as fault:
            return json.dumps({"refused": " ".join(str(fault).split())})
        except Exception as fault:  # noqa: BLE001  # whoever computes it again meets it
            return json.dumps({"refused": f"{type(fault).__name__}: {fault}"})
        return json.dumps({"did": store.statistics.to_json()})  # not closed: its counts go to the sender

    def _opened(self) -> Store:
        root, packages = self.source
        return Store.open(
            Path(self.root),
            strict=self.strict,
            tables=dict(self.tables),
            sources=Sources(root=Path(root), packages=packages),
            lock_timeout_seconds=self.lock_timeout_seconds,
            remote=None if self.remote is None else RemoteSettings(url=self.remote[0], upload=self.remote[1]),
        )
