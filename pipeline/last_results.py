"""What the last build of a model gave, found in the store without building anything.

The store remembers for each stage and label what was last asked for. The stages of one build are those that
take each other's results: where one took something else, the last build did not come so far, and what the
store remembers of it is older. Stages inside of others are found by what the outer one consumed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast, final

from assets.recall import recalled
from compiler.chain import chain_of
from compiler.compile import looked_up, stage_of
from compiler.config import BuildOptions
from compiler.errors import InvalidInput, TilewrightError
from compiler.evaluation.artifacts import Simulated
from compiler.evaluation.ledger import LEDGER, Ledger
from compiler.exchange.artifacts import exchange_of
from compiler.exchange.ir import ScheduledExchange
from compiler.exchange.stage_demand import EXCHANGE_DEMAND
from compiler.exchange.stage_rows import EXCHANGE_ROWS
from compiler.exchange.stage_timing import EXCHANGE_TIMING
from compiler.graph.codec import LABELS, STRUCTURE, StoredGraph
from compiler.models.programs import PROGRAMS
from compiler.models.subjects import GraphModel, Subject
from compiler.planner.artifacts import RECIPE
from compiler.planner.recipe import Recipe, recipe_of_json
from compiler.report.build import Built, Planned, option_values
from compiler.store.canonical import JsonObject, JsonValue
from compiler.store.explain import explain
from compiler.store.history import changes_inside, nearest_record
from compiler.store.key import code_component, key_of, stage_code
from compiler.store.records import error_from_json
from compiler.store.result import StageResult
from compiler.store.stage import AnyStage
from compiler.store.store import LookedUp, Store

STAGE: Final = "last build"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastStage:
    """One stage of the last build.

    Args:
        name: of the stage.
        summary: what it decides.
        document: its key document.
        result: what it gave; None when it failed, or when the store holds it no more.
        failure: its error.
        seconds: that it took when it was computed.
        stale: what changed in its code since, a line each; nothing when it would be reused for equal inputs.
        is_built: whether it ever ran with these inputs and options, as far as the store knows.
    """

    name: str
    summary: str
    document: JsonObject
    result: StageResult[Any] | None
    failure: TilewrightError | None
    seconds: float | None
    stale: tuple[str, ...]
    is_built: bool = True


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LastBuild:
    """The last build of a model.

    Args:
        subject: what was built.
        options: of it, as far as its stages read them.
        stages: those that it came to, in order.
        missing: the names of those behind.
    """

    subject: Subject
    options: BuildOptions
    stages: tuple[LastStage, ...]
    missing: tuple[str, ...]

    def results(self) -> Mapping[str, StageResult[Any]]:
        """The results that exist, by stage."""
        return {stage.name: stage.result for stage in self.stages if stage.result is not None}


def last_build(store: Store, label: str) -> LastBuild:
    """The last build under a label.

    Args:
        store: where it was built.
        label: name of the model.

    Raises:
        InvalidInput: nothing was built under it.
    """
    subject: Subject = PROGRAMS[label] if label in PROGRAMS else GraphModel(name=label)
    chain = chain_of(subject)
    found: list[LastStage] = []
    outputs: set[str] = set()
    for stage in chain:
        last = store.last.read(stage.name, label)
        if last is None or not _artifacts(last.document) <= outputs:
            break
        declared = stage_of(stage.name, subject)
        record = store.records.read(declared.namespace, last.key)
        found.append(
            LastStage(
                name=stage.name,
                summary=stage.summary,
                document=last.document,
                result=recalled(store, declared, last.key),
                failure=None if record is None or record.failure is None else error_from_json(record.failure),
                seconds=None if record is None else record.microseconds / 1e6,
                stale=_stale(store, declared, last.document),
            )
        )
        if record is None or record.failure is not None:
            break
        outputs |= {record.digest, *(output.ref.digest for output in record.outputs)}
    if not found:
        raise InvalidInput(
            "the store knows no build of it",
            stage=STAGE,
            subject=label,
            next_step=f"build it first: tilewright build {label}",
        )
    return LastBuild(
        subject=subject,
        options=_options(found),
        stages=tuple(found),
        missing=tuple(stage.name for stage in chain[len(found) :]),
    )


def build_with(store: Store, subject: Subject, options: BuildOptions, recipe: str) -> LastBuild:
    """The build of a subject with some options, under the code of today.

    Args:
        store: where it was built.
        subject: what was built.
        options: how.
        recipe: choices that were given, as JSON.

    Returns:
        Its stages up to the first that failed, or that was never run.
    """
    chain = chain_of(subject)
    found: list[LastStage] = []
    for name, known in looked_up(store, subject, options, recipe=recipe).items():
        result = None if isinstance(known, LookedUp) else known
        failure = None if result is None else result.failure
        found.append(
            LastStage(
                name=name,
                summary=next(stage.summary for stage in chain if stage.name == name),
                document=known.document if isinstance(known, LookedUp) else known.record.document,
                result=None if failure is not None else result,
                failure=failure,
                seconds=None if result is None else result.record.microseconds / 1e6,
                stale=(),
                is_built=result is not None,
            )
        )
    return LastBuild(
        subject=subject,
        options=options,
        stages=tuple(found),
        missing=tuple(stage.name for stage in chain[len(found) :]),
    )


def changes_of(store: Store, stage: LastStage) -> tuple[str, ...] | None:
    """What a stage was given that the nearest other result of it was not, a line each; None without any.

    Reads all records of the store.
    """
    other = nearest_record(store, stage.document)
    return None if other is None else explain(other.document, stage.document)


def changes_below(store: Store, stage: LastStage) -> tuple[str, ...]:
    """Whose code changed of the stages that a result rests on, a line each.

    Reads all records of the store.
    """
    return () if stage.result is None else changes_inside(store, stage.result.record)


def built_of(store: Store, last: LastBuild) -> Built:
    """What the stages of a build gave, for its report.

    Raises:
        InvalidInput: it has no package, or its results are gone.
    """
    results = last.results()
    for needed in ("expansion", "support_sizing", "final_placement", "emission"):
        if needed not in results:
            raise InvalidInput(
                f"stage {needed} gave nothing that the store holds",
                stage=STAGE,
                subject=last.subject.name,
                next_step=f"build it again: tilewright build {last.subject.name}",
            )
    simulation = results.get("simulation")
    simulated: Simulated | None = None if simulation is None else simulation.value()
    return Built(
        model=last.subject.name,
        options=option_values(last.options),
        planned=planned_of(last),
        ledger=ledger_of(last),
        program=results["expansion"].value().program,
        placement=results["final_placement"].value().placement,
        support=results["support_sizing"].value().support,
        exchange=exchange_of_emission(store, last),
        package_bytes=len(results["emission"].value().package),
        simulated=simulated,
    )


def ledger_of(last: LastBuild) -> Ledger:
    """The candidates of its search; none where there was none."""
    search = last.results().get("proposal_rounds")
    return () if search is None else search.part("ledger", LEDGER).value()


def planned_of(last: LastBuild, stage: str | None = None) -> Planned | None:
    """Graph, whole-device program and recipe of a build; None where there is none.

    Args:
        last: the build.
        stage: that gave the program; the last one that gave one when None.
    """
    results = last.results()
    names = [name for name in ("baseline_candidate", "proposal_rounds") if name in results]
    if not names:
        return None
    graph = results["model_graph"]
    chosen: Any = results[names[-1] if stage is None else stage].value()
    given = recipe_given(last)
    return Planned(
        graph=StoredGraph(
            structure=graph.part("structure", STRUCTURE).value(), labels=graph.part("labels", LABELS).value()
        ).graph,
        program=chosen.program,
        recipe=chosen.recipe,
        baseline=results["baseline_candidate"].part("recipe", RECIPE).value(),
        given=recipe_of_json(given, "recipe of the build") if given else Recipe(),
        considered=chosen.considered,
    )


def recipe_given(last: LastBuild) -> str:
    """The text of the recipe that was given to a build; empty for none."""
    for stage in last.stages:
        match cast("dict[str, JsonValue]", stage.document["inputs"]).get("recipe"):
            case {"value": str(text)}:
                return text
            case _:
                pass
    return ""


def exchange_of_emission(store: Store, last: LastBuild) -> ScheduledExchange:
    """The schedules that a package was emitted with.

    Raises:
        InvalidInput: the store holds them no more.
    """
    record = last.results()["emission"].record
    consumed = {str(run.request["stage"]): run.key for run in record.consumed}
    values: list[Any] = []
    for stage in (EXCHANGE_DEMAND, EXCHANGE_TIMING, EXCHANGE_ROWS):
        key = consumed.get(stage.name)
        result = None if key is None else recalled(store, stage, key)
        if result is None:
            raise InvalidInput(
                f"the result of stage {stage.name} is not in the store any more",
                stage=STAGE,
                subject=last.subject.name,
                next_step=f"build it again: tilewright build {last.subject.name} --cache refresh",
            )
        values.append(result.value())
    return exchange_of(values[0], values[1], values[2])


def _artifacts(document: JsonObject) -> set[str]:
    """Digests of the results that a stage took."""
    found: set[str] = set()
    for given in cast("dict[str, JsonValue]", document["inputs"]).values():
        match given:
            case {"artifact": str(digest)}:
                found.add(digest)
            case _:
                pass
    return found


def _stale(store: Store, stage: AnyStage, document: JsonObject) -> tuple[str, ...]:
    today = document | {"code": code_component(stage_code(stage, store.sources))}
    return () if key_of(today) == key_of(document) else explain(document, today)


def _options(stages: list[LastStage]) -> BuildOptions:
    """The options that the stages read, put together; the others as they are by default."""
    nested: dict[str, dict[str, object]] = {}
    for stage in stages:
        for path, value in cast("dict[str, JsonValue]", stage.document["options"]).items():
            group, _, name = path.partition(".")
            if name:
                nested.setdefault(group, {})[name] = value
    return BuildOptions.model_validate(nested)
