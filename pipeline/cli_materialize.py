"""``tilewright materialize``: run one stage of a model again, or it and all behind it, as Dagster's pages do.

The stage takes what the others materialized last and is materialized in the same history, so the pages show
afterwards what is out of date. Whether it was reused or computed is told, and why.
"""

import argparse
import sys

from pipeline.build_arguments import subject_of
from pipeline.cli_build import add_choices, say_line, settings_of


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Make the parser that of the command; ``run`` is set to a function from arguments to an exit status."""
    add_choices(parser)
    parser.add_argument("stage", metavar="STAGE", help="name of a stage, as tilewright explain lists them")
    parser.add_argument(
        "--from", action="store_true", dest="onwards", help="that stage and every stage behind it"
    )
    parser.set_defaults(run=_materialize)


def _materialize(arguments: argparse.Namespace) -> int:
    from compiler.chain import chain_of, onwards
    from compiler.errors import InvalidInput

    model = subject_of(arguments)
    chain = chain_of(model)
    stage: str = arguments.stage
    names = [link.name for link in chain]
    if stage not in names:
        raise InvalidInput(
            "there is no stage of this name",
            stage="materialize",
            subject=stage,
            next_step=f"name one of {', '.join(names)}",
        )
    from pipeline.launch import launch

    chosen = onwards(chain, stage) if arguments.onwards else (stage,)
    launched = launch(model, settings_of(arguments), stages=chosen, say=say_line)
    for message in launched.failures:
        print(message, file=sys.stderr)
    return 1 if launched.failures else 0
