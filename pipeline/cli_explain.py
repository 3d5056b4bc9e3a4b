"""``tilewright explain``: what each stage of the last build of a model decided, and why it ran.

Everything is found in the store (``last_results``); nothing is built. Without a stage, all that the last
build came to; with options of a build, the build with these options, whenever it was, and else what it would
begin with. For each: whether it succeeded, what its result differs in from the nearest other one, whether
code has changed since, its figures, and what it decided.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from pipeline.build_arguments import (
    add_build_arguments,
    options_of,
    recipe_of,
    says_anything,
    subject_of,
)
from pipeline.user_files import write_whole

if TYPE_CHECKING:
    from compiler.report.build import NodeChoice
    from compiler.report.timeline import CycleShares, Share
    from compiler.store.store import Store
    from pipeline.last_results import LastBuild, LastStage

T = TypeVar("T")

_SHOWN: Final = 4
"""Lines of a kind that are shown; --all shows more."""
_STAGE: Final = "explain"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, which sets ``run`` to a function from them to an exit status."""
    parser.add_argument(
        "model", metavar="MODEL", help="name of a model or program that was built, or a user's model file"
    )
    parser.add_argument("stage", nargs="?", metavar="STAGE", help="a stage of its build (default: all)")
    parser.add_argument("--all", action="store_true", help="every alternative, not only the best")
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="write all data of the build into a JSON file, too"
    )
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON: the data of the whole build")
    add_build_arguments(parser)
    parser.set_defaults(run=_explain)


def open_store(path: Path | None) -> "Store":
    """A store to look into.

    Raises:
        StoreError: there is none.
    """
    from compiler.cache_home import cache_home
    from compiler.store.layout import Access
    from compiler.store.store import Store
    from compiler.tables import table_digests

    root = (cache_home() / "store" if path is None else path).absolute()
    return Store.open(root, access=Access.READ_ONLY, tables=table_digests())


def _explain(arguments: argparse.Namespace) -> int:
    from compiler.errors import InvalidInput
    from compiler.report.build import build_report, report_json
    from pipeline.last_results import built_of

    store = open_store(arguments.store)
    last = _wanted(store, arguments)
    report: Path | None = arguments.report
    if arguments.json or report is not None:
        text = report_json(build_report(built_of(store, last))) + "\n"
        if report is not None:
            write_whole(report, text.encode())
        if arguments.json:
            print(text, end="")
            return 0
    stages = [stage for stage in last.stages if arguments.stage in (None, stage.name)]
    if not stages:
        raise InvalidInput(
            "this build came to no stage of this name",
            stage=_STAGE,
            subject=f"{arguments.model} {arguments.stage}",
            next_step=f"give one of {', '.join(stage.name for stage in last.stages)}",
        )
    for stage in stages:
        for line in _stage_lines(store, last, stage, shown=None if arguments.all else _SHOWN):
            print(line)
    if last.missing and arguments.stage is None:
        print(f"not reached by this build: {', '.join(last.missing)}")
    return 0


def _wanted(store: "Store", arguments: argparse.Namespace) -> "LastBuild":
    """The last build, or the one with the options that are given.

    Raises:
        InvalidInput: there is none, or what is given is wrong.
    """
    from pipeline.last_results import build_with, last_build
    from pipeline.model_files import is_path

    if says_anything(arguments):
        return build_with(store, subject_of(arguments), options_of(arguments), recipe_of(arguments))
    place: str = arguments.model
    return last_build(store, subject_of(arguments).name if is_path(place) else place)


def _stage_lines(
    store: "Store", last: "LastBuild", stage: "LastStage", *, shown: int | None
) -> Iterator[str]:
    from compiler.compile import figures_of
    from pipeline.last_results import changes_below, changes_of

    changes = changes_of(store, stage)
    state = "failed" if stage.failure is not None else "done" if stage.result is not None else "not kept"
    if not stage.is_built:
        yield f"{stage.name}: not built"
        yield f"  {stage.summary}"
        yield "  would run, since there is no result for these inputs and options"
        if changes is not None:
            yield "  differs from the nearest other result in:"
            yield from (f"    {line}" for line in _some(list(changes), shown))
        return
    took = "" if stage.seconds is None else f", computed in {stage.seconds:.1f} s (measured)"
    yield f"{stage.name}: {state}{took}"
    yield f"  {stage.summary}"
    if changes is None:
        yield "  ran because: no other result of this stage is known"
    else:
        yield "  differs from the nearest other result in:"
        for line in _some(list(changes), shown):
            yield f"    {line}"
    below = changes_below(store, stage)
    if below:
        yield "  rests on stages whose code has changed:"
        yield from (f"    {line}" for line in _some(list(below), shown))
    if stage.stale:
        yield f"  would run again, since code has changed: {'; '.join(_some(list(stage.stale), shown))}"
    else:
        yield "  would be reused for the same inputs and options"
    if stage.failure is not None:
        yield from (f"  {line}" for line in str(stage.failure).splitlines())
    if stage.result is None:
        return
    for figure in figures_of(stage.name, stage.result):
        yield f"  {figure}"
    match stage.name:
        case "baseline_candidate" | "proposal_rounds":
            if stage.name == "proposal_rounds":
                yield from _search_lines(last)
            yield from _plan_lines(last, stage.name, shown)
        case "expansion":
            from compiler.low.text import text_of_program

            yield from (f"  {line}" for line in text_of_program(stage.result.value().program).splitlines())
        case "final_placement":
            yield from _placement_lines(last, shown)
        case "emission":
            yield from _exchange_lines(store, last)
        case _:
            pass


def _search_lines(last: "LastBuild") -> Iterator[str]:
    from compiler.report.build import considered_of
    from pipeline.last_results import ledger_of

    yield "  candidates of the search"
    for candidate in considered_of(ledger_of(last)):
        numbers = [
            f"{cycles.value:,} cycles ({cycles.kind.value})"
            for cycles in (candidate.estimated, candidate.scheduled)
            if cycles is not None
        ]
        told = "; ".join([candidate.fate, *([candidate.reason] if candidate.reason else []), *numbers])
        yield f"    round {candidate.round}, {candidate.change}: {told}"


def _plan_lines(last: "LastBuild", stage: str, shown: int | None) -> Iterator[str]:
    from compiler.report.build import choices_of, estimates_of
    from pipeline.last_results import planned_of

    planned = planned_of(last, stage)
    if planned is None:
        return
    yield "  operations, estimated (cycles of the slowest tile, exchange phases)"
    for cost in estimates_of(planned.program):
        yield f"    {cost.cycles:>10,} {cost.phases:>4}  {cost.what} of {cost.node}"
    options = planned.recipe.options.model_dump()
    yield f"  options of the recipe: {', '.join(f'{name} {value}' for name, value in options.items())}"
    for choice in choices_of(planned):
        yield from _choice_lines(choice, shown)


def _choice_lines(choice: "NodeChoice", shown: int | None) -> Iterator[str]:
    yield f"  {choice.node}: {choice.choice}"
    yield f"    kept {len(choice.kept)} (cycles, bytes standard and interleaved, row words; estimated)"
    chosen = [other for other in choice.kept if other.is_chosen]
    best = _some(list(choice.kept), shown)
    for other in best + [other for other in chosen if other not in best]:
        mark = "*" if other.is_chosen else " "
        yield (
            f"    {mark} {other.cycles:>9,} {other.standard_bytes:>9,} {other.interleaved_bytes:>9,} "
            f"{other.row_words:>6,}  {other.choice}"
        )
    reasons = ", ".join(f"{item.count:,} {item.reason}" for item in choice.dropped)
    yield f"    dropped: {reasons or 'none'}"


def _placement_lines(last: "LastBuild", shown: int | None) -> Iterator[str]:
    from compiler.report.memory import memory_use

    results = last.results()
    placement = results["final_placement"].value().placement
    memory = memory_use(
        results["expansion"].value().program, placement, results["support_sizing"].value().support
    )
    fullest = sorted(range(len(memory.used)), key=lambda tile: (-memory.used[tile], tile))
    yield f"  fullest tiles, by physical number (bytes of {memory.size:,}; measured)"
    for tile in fullest[: shown or 32]:
        yield (
            f"    {tile:>5} {memory.used[tile]:>9,} used: {memory.own[tile]:,} code, rows and tables, "
            f"{memory.resident[tile]:,} resident, {max(memory.live[memory.series[tile]], default=0):,} live "
            f"at the fullest step"
        )
    live = memory.live[memory.series[memory.fullest]]
    yield f"  bytes of tensors that live on physical tile {memory.fullest} in each step (measured)"
    for step in memory.steps:
        yield f"    step {step}: {live[step]:,}"
    yield f"  {len(memory.classes)} classes of tiles, the largest first"
    for kind in _some(list(memory.classes), shown):
        yield (
            f"    {kind.tiles:>5} tiles as {kind.tile}: {kind.own:,} own, {kind.resident:,} resident, "
            f"{kind.peak:,} at the fullest step"
        )


def _exchange_lines(store: "Store", last: "LastBuild") -> Iterator[str]:
    from compiler.errors import NumberKind
    from compiler.report.timeline import cycle_shares, phase_table, times_of
    from pipeline.last_results import exchange_of_emission

    exchange = exchange_of_emission(store, last)
    for phase in phase_table(exchange):
        yield (
            f"  phase of step {phase.step} for {', '.join(phase.nodes)}: {phase.horizon}; {phase.bound}; "
            f"ratio {phase.ratio:.3f}; {phase.row_bytes}; {phase.limit}; {phase.transfers:,} transfers to "
            f"{phase.recipients:,} recipients; {phase.iterations} times"
        )
    program = last.results()["expansion"].value().program
    yield from share_lines(cycle_shares(program, times_of(exchange, program), NumberKind.SCHEDULED))


def share_lines(shares: "CycleShares") -> Iterator[str]:
    """Where cycles go: in all, by node, by step."""
    from compiler.report.timeline import PARTS

    yield f"  {shares.cycles}; where they go ({', '.join(PARTS)}; scheduled)"
    yield f"    {_parts(shares.total)}  in all"
    for node in shares.nodes:
        yield f"    {_parts(node.share)}  {node.node}"
    for step in shares.steps:
        times = f", {step.iterations} times" if step.iterations != 1 else ""
        yield (
            f"    {_parts(step.share)}  step {step.step} {step.kind} on {step.tiles:,} tiles"
            f"{times}: {', '.join(step.nodes)}"
        )


def _parts(share: "Share") -> str:
    from compiler.report.timeline import PARTS

    return " ".join(f"{getattr(share, part):>11,.0f}" for part in PARTS)


def _some(items: list[T], shown: int | None) -> list[T]:
    return items if shown is None else items[:shown]
