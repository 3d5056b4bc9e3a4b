"""The resource that assets share: how the store is used, and what the run has done so far.

The definitions give it with ``configure_at_launch``, so that every run can choose. What decides bytes is not
here but in the options of the build, which are part of the store's keys.
"""

import json
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import dagster as dg
from pydantic import PrivateAttr

from assets.options import OptionsConfig
from assets.processes import PROCESS_TAG, this_process

if TYPE_CHECKING:
    from compiler.config import BuildOptions
    from compiler.models.subjects import Subject
    from compiler.store.result import StageResult
    from compiler.store.store import LookedUp, Store

Upstream: TypeAlias = Callable[[str], str | None]
"""What was materialized before: from the name of a stage to the store's key of its last result."""


class Builds(dg.ConfigurableResource["Builds"]):
    """Runs stages of models.

    Args:
        cache: ``use`` what the store holds, ``refresh`` it, ``verify`` it by computing again and comparing,
            or leave it ``off``.
        store: folder of the store; empty for the usual one.
        options: of builds.
        recipe: of models, choices that are given, as JSON; empty for none.
        workers: processes that work on candidates, and threads of simulations; changes no result.
        backend: who works on candidates, as ``tilewright build`` takes it; changes no result.
        scheduler: address of the scheduler, with backend ``dask``.
    """

    cache: Literal["use", "refresh", "verify", "off"] = "use"
    store: str = ""
    options: OptionsConfig = OptionsConfig()
    recipe: str = ""
    workers: int = 1
    backend: Literal["loky", "threading", "sequential", "dask"] = "loky"
    scheduler: str = ""

    _open: "Store | None" = PrivateAttr(default=None)
    _done: "dict[tuple[str, str], StageResult[Any]]" = PrivateAttr(
        default_factory=dict[tuple[str, str], "StageResult[Any]"]
    )

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Generator["Builds"]:
        """The store is open while the run lasts. Nothing of the compiler is imported before.

        The run is tagged with its process, so that it can be told when it was killed.
        """
        from compiler.cache_home import cache_home
        from compiler.store.ahead import Backend, Workers
        from compiler.store.layout import Mode
        from compiler.store.store import Store
        from compiler.tables import table_digests

        if context.instance is not None and context.run is not None:
            context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: this_process()})
        root = Path(self.store).expanduser() if self.store else cache_home() / "store"
        mode = Mode[self.cache.upper()]
        # Whoever verifies wants a difference to be a failure; otherwise it is a warning.
        strict = mode is Mode.VERIFY
        workers = Workers(count=self.workers, backend=Backend(self.backend), scheduler=self.scheduler)
        with Store.open(root, mode=mode, strict=strict, tables=table_digests(), workers=workers) as opened:
            self._open = opened
            self._done.clear()
            try:
                yield self
            finally:
                self._open = None

    @property
    def opened(self) -> "Store":
        """The store.

        Raises:
            RuntimeError: no run is going on.
        """
        if self._open is None:
            raise RuntimeError("the store is open while a run lasts, and none does")
        return self._open

    def build_options(self) -> "BuildOptions":
        """The options of builds.

        Raises:
            InvalidInput: one of them is out of range.
        """
        from pydantic import ValidationError

        from compiler.config import BuildOptions
        from compiler.errors import InvalidInput

        given = cast(dg.Config, self.options)
        try:
            return BuildOptions.model_validate({**given.model_dump(), "workers": self.workers})
        except ValidationError as fault:
            first = fault.errors(include_url=False, include_input=False)[0]
            raise InvalidInput(
                f"{'.'.join(map(str, first['loc']))}: {first['msg']}",
                stage="build",
                subject="options of the resource builds",
                next_step="correct the configuration of the run",
            ) from fault

    def choices(self, model: "Subject") -> Mapping[str, Any]:
        """What this run chose otherwise than by default, apart from faults that are made on purpose."""
        from compiler.config import BuildOptions
        from compiler.models.subjects import GraphModel

        found = self.build_options().model_dump(exclude={"version", "workers", "inject"})
        usual = BuildOptions().model_dump()
        chosen: dict[str, Any] = {
            f"{group}.{name}": value
            for group, values in found.items()
            for name, value in values.items()
            if value != usual[group][name]
        }
        if self.recipe:
            chosen["recipe"] = json.loads(self.recipe)
        if isinstance(model, GraphModel):
            variation = {"batch": model.batch, "precision": model.precision}
            chosen |= {name: str(value) for name, value in variation.items() if value is not None}
        return chosen

    def run(self, model: "Subject", name: str, upstream: Upstream) -> "StageResult[Any]":
        """Run a stage of a model.

        Args:
            model: the model.
            name: the stage.
            upstream: gives for a stage that was materialized before the key of the run that gave it; None for
                any other. Asked only for stages that did not run in this run.

        Raises:
            TilewrightError: the stage failed, or one that it stands behind and that had to run again.
        """
        from compiler.compile import run_stage

        done = {earlier: self._upstream(model, earlier, upstream) for earlier in _before(model, name)}
        result = run_stage(name, self.opened, model, self.build_options(), done, recipe=self.recipe)
        self._done[model.name, name] = result
        return result

    def known(self, model: "Subject", name: str) -> "StageResult[Any]":
        """What a stage gave that ran in this run, or that one of this run stands behind.

        Raises:
            KeyError: it is none of them.
        """
        return self._done[model.name, name]

    def looked_up(self, model: "Subject", name: str) -> "StageResult[Any] | LookedUp":
        """What a stage would reuse with the options of this run; nothing is computed.

        Args:
            model: the model.
            name: a stage that takes nothing but what this run knows.

        Raises:
            KeyError: it takes something else.
        """
        from compiler.compile import request_of

        done = {stage: result for (owner, stage), result in self._done.items() if owner == model.name}
        request = request_of(name, model, self.build_options(), done, recipe=self.recipe)
        return self.opened.look_up(request.stage, request.inputs, self.build_options())

    def _upstream(self, model: "Subject", name: str, upstream: Upstream) -> "StageResult[Any]":
        """The result of an earlier stage: of this run, or as it was materialized, or computed now."""
        from assets.recall import recalled
        from compiler.compile import stage_of

        known = self._done.get((model.name, name))
        if known is None and self.cache != "off":
            key = upstream(name)
            known = None if key is None else recalled(self.opened, stage_of(name, model), key)
        if known is None:
            known = self.run(model, name, upstream)
        self._done[model.name, name] = known
        return known


def _before(model: "Subject", name: str) -> tuple[str, ...]:
    from compiler.chain import chain_of

    return next(stage.after for stage in chain_of(model) if stage.name == name)
