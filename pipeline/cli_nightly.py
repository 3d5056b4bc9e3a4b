"""``tilewright nightly``: what the schedule of that name runs, here and now.

Each representative model that can be built is built as assets, with the store's results computed again and
compared. A model that fails does not keep the others from their turn; the exit status then is 1.
"""

import argparse
import sys
from pathlib import Path

from pipeline.arguments import positive


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Make the parser that of the command; ``run`` is set to a function from arguments to an exit status."""
    parser.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="models (default: the representative ones that can be built)",
    )
    parser.add_argument(
        "--store", type=Path, metavar="PATH", help="the store (default: store in the user's cache folder)"
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=1,
        metavar="N",
        help="processes that work on candidates, and threads of simulations (default: 1)",
    )
    parser.set_defaults(run=_nightly)


def _nightly(arguments: argparse.Namespace) -> int:
    import datetime as dt

    from compiler.models.registry import model_named
    from pipeline.nightly import CACHE, DAY_TAG, REPRESENTATIVE, buildable

    # Before Dagster loads: names may be wrong.
    names: list[str] = [model_named(name).name for name in arguments.models]
    if not names:
        names = list(buildable(REPRESENTATIVE))

    from compiler.models.subjects import GraphModel
    from pipeline.launch import launch

    store: Path | None = arguments.store
    settings = {
        "cache": CACHE,
        "store": "" if store is None else str(store.absolute()),
        "workers": arguments.workers,
    }
    tags = {DAY_TAG: dt.datetime.now(tz=dt.UTC).strftime("%Y-%m-%d")}
    failed: list[str] = []
    for name in names:
        print(name, flush=True)
        launched = launch(
            GraphModel(name=name), settings, tags=tags, say=lambda line: print(f"  {line}", flush=True)
        )
        for message in launched.failures:
            print(message, file=sys.stderr)
        if launched.failures:
            failed.append(name)
    print(f"{len(names) - len(failed)} of {len(names)} models built and as before{_list(failed)}")
    return 1 if failed else 0


def _list(failed: list[str]) -> str:
    return f"; failed: {', '.join(failed)}" if failed else ""
