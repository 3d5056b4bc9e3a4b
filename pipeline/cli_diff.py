"""``tilewright diff``: what differs between two builds, by graph node.

A side is a package (with the recipe that a build writes beside it), a recipe alone, or the name of a model
whose last build is in the store; the last says most. Exit status 0, whether anything differs or not.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from compiler.report.difference import MeasureChange, Side
    from compiler.report.timeline import Share

STAGE: Final = "diff"
_RECIPE: Final = ".recipe.json"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command, which sets ``run`` to a function from them to an exit status."""
    for name, which in (("before", "first"), ("after", "second")):
        parser.add_argument(
            name, metavar=name.upper(), help=f"the {which} side: a .ipuexe file, a recipe, or a model"
        )
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=_diff)


def _diff(arguments: argparse.Namespace) -> int:
    from compiler.report.difference import difference_of
    from compiler.report.plain import json_of

    before = _side(arguments.before, arguments.store)
    after = _side(arguments.after, arguments.store)
    found = difference_of(before, after)
    if arguments.json:
        print(json_of(found))
        return 0
    print(f"{found.before} -> {found.after}; {_compared(before, after)}")
    if found.is_empty:
        print("nothing differs")
        return 0
    if found.choices:
        print("choices")
        for choice in found.choices:
            print(f"  {choice.node}, {choice.what}: {choice.before or 'none'} -> {choice.after or 'none'}")
    _print_measures("cycles", found.cycles)
    if found.nodes:
        print("cycles by graph node (compute, exchange, overhead, idle; scheduled)")
        for node in found.nodes:
            print(f"  {node.node}: {_parts(node.before)} -> {_parts(node.after)}")
    _print_measures("memory", found.memory)
    _print_measures("residency", found.tensors)
    _print_measures("exchanges", found.phases)
    _print_measures("code", found.code)
    return 0


def _side(place: str, root: Path | None) -> "Side":
    """What is known of a side.

    Raises:
        InvalidInput: there is no such file and no such build.
        PackageInvalid: the file is no package.
    """
    from compiler.package.format import load, read_package
    from compiler.planner.recipe import recipe_of_json
    from compiler.report.build import build_report
    from compiler.report.difference import Side, facts_of
    from pipeline.cli_explain import open_store
    from pipeline.last_results import built_of, last_build, planned_of
    from pipeline.user_files import read_text

    path = Path(place)
    if place.endswith(".json"):
        return Side(name=path.name, recipe=recipe_of_json(read_text(path, stage=STAGE), str(path)))
    if path.suffix == ".ipuexe" or path.is_file():
        beside = path.with_suffix(_RECIPE)
        recipe = None
        if beside.is_file():
            recipe = recipe_of_json(read_text(beside, stage=STAGE), str(beside))
        package = facts_of(load(path), path.stat().st_size)
        return Side(name=path.name, recipe=recipe, package=package)
    store = open_store(root)
    last = last_build(store, place)
    planned, report = planned_of(last), build_report(built_of(store, last))
    data: bytes = last.results()["emission"].value().package
    return Side(
        name=place,
        recipe=None if planned is None else planned.recipe,
        package=facts_of(read_package(data, name=place), len(data)),
        report=report,
    )


def _compared(before: "Side", after: "Side") -> str:
    """What both sides have."""
    both = [
        name
        for name, one, other in (
            ("recipes", before.recipe, after.recipe),
            ("packages", before.package, after.package),
            ("schedules and memory", before.report, after.report),
        )
        if one is not None and other is not None
    ]
    return f"compared: {', '.join(both) or 'nothing, since the sides have nothing in common'}"


def _print_measures(heading: str, changes: "tuple[MeasureChange, ...]") -> None:
    if not changes:
        return
    print(heading)
    for change in changes:
        known = change.before if change.before is not None else change.after
        assert known is not None
        one, other = ("none" if side is None else f"{side.value:,}" for side in (change.before, change.after))
        print(f"  {change.what}: {one} -> {other} {known.unit} ({known.kind.value}), {change.change:+,}")


def _parts(share: "Share") -> str:
    from compiler.report.timeline import PARTS

    return " ".join(f"{getattr(share, part):,.0f}" for part in PARTS)
