"""One more lane: the chain of whatever model a run names, for users whose models are not listed.

The graph shows it once, as group ``user_model``; every run of it says which file it is about, in the
configuration of the resource ``user_model``::

    resources:
      user_model:
        config: {path: models/mine.py, function: model}
      builds:
        config: {options: {planning: {tiles: 64}}}

Stages take what the store holds for this very model, never what was materialized last: that may be another's.
What the graph shows as out of date here is about the last model that was built.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import dagster as dg
from pydantic import Field, PrivateAttr

from assets.builds import Builds
from assets.factory import Yielded, check_specs_of, run_stage_asset
from assets.failure import StageFailed
from compiler.chain import MODEL_CHAIN, ChainStage
from compiler.errors import TilewrightError
from compiler.fingerprint import fingerprint

if TYPE_CHECKING:
    from compiler.models.subjects import GraphModel

GROUP: Final = "user_model"
JOB: Final = "build_user_model"


class UserModel(dg.ConfigurableResource["UserModel"]):
    """The model of a run."""

    path: str = Field(
        description="Path of the file: ONNX, a graph as text, or Python with a function that gives a graph."
    )
    function: str = Field(default="", description="Of a Python file; model when empty.")

    _subject: "GraphModel | None" = PrivateAttr(default=None)

    def subject(self) -> "GraphModel":
        """What is built; the file is read once in a run.

        Raises:
            InvalidInput: the file cannot be read, or has no such function.
            InvalidModel: what it says is no well-formed graph.
        """
        if self._subject is None:
            from compiler.graph.text import text_of_graph
            from compiler.models.subjects import GraphModel
            from pipeline.model_files import load_model

            graph = load_model(f"{self.path}:{self.function}" if self.function else self.path)
            self._subject = GraphModel(name=graph.name, text=text_of_graph(graph, with_provenance=True))
        return self._subject


def user_model_definitions() -> dg.Definitions:
    """The lane, its job and its resource."""
    return dg.Definitions(
        assets=[_stage_asset(stage) for stage in MODEL_CHAIN],
        jobs=[
            dg.define_asset_job(  # pyright: ignore[reportUnknownMemberType]  # Dagster's own types
                JOB,
                selection=[_key_of(stage.name) for stage in MODEL_CHAIN],
                description="Build a model of your own: name its file in the configuration of user_model.",
            )
        ],
        resources={
            "user_model": UserModel.configure_at_launch()  # pyright: ignore[reportUnknownMemberType]  # Dagster's
        },
    )


def _key_of(stage: str) -> dg.AssetKey:
    return dg.AssetKey([GROUP, stage])


def _nothing(_: str) -> None:
    """Of what was materialized before."""


def _stage_asset(stage: ChainStage) -> dg.AssetsDefinition:
    key = _key_of(stage.name)

    @dg.asset(
        key=key,
        deps=[_key_of(name) for name in stage.after],
        group_name=GROUP,
        code_version=fingerprint(stage.module).digest,
        description=stage.summary,
        kinds={"python"},
        tags={"stage": stage.name},
        check_specs=check_specs_of(key, stage),
    )
    def run(context: dg.AssetExecutionContext, builds: Builds, user_model: UserModel) -> Iterator[Yielded]:
        try:
            model = user_model.subject()
        except TilewrightError as error:
            raise StageFailed(error) from None
        yield from run_stage_asset(context, builds, key, model, stage, _nothing)

    return run
