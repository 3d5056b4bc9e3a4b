"""``tilewright ui``: the pages of Dagster over our assets, and the daemon that runs schedules and sensors.

Both are Dagster's own (``dagster dev``); what is added is a home that is prepared before they start, so that
they never race for its databases.
"""

import argparse

from pipeline.arguments import positive


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Make the parser that of the command; ``run`` is set to a function from arguments to an exit status."""
    parser.add_argument("--host", default="127.0.0.1", metavar="ADDRESS", help="default: this machine alone")
    parser.add_argument("--port", type=positive, default=3000, metavar="N", help="default: 3000")
    parser.set_defaults(run=_ui)


def _ui(arguments: argparse.Namespace) -> int:
    import os
    import sys

    from compiler.fingerprint import REPOSITORY
    from pipeline.home import VARIABLE, home, instance_of, prepare, usable

    _check_free(arguments.host, arguments.port)
    folder = home()
    prepare(folder)
    with usable(folder), instance_of(folder):
        pass  # Dagster's own processes would tell it with tracebacks
    print(f"http://{arguments.host}:{arguments.port}", flush=True)
    words = ["-m", "dagster", "dev", "-w", str(REPOSITORY.root / "workspace.yaml")]
    words += ["-h", arguments.host, "-p", str(arguments.port), "--log-level", "warning"]
    os.chdir(REPOSITORY.root)
    # Takes the place of this process, so that signals reach it.
    os.execve(sys.executable, [sys.executable, "-W", "ignore", *words], {**os.environ, VARIABLE: str(folder)})


def _check_free(host: str, port: int) -> None:
    """Dagster would take another port without a word.

    Raises:
        InvalidInput: nothing can be served there.
    """
    import socket

    from compiler.errors import InvalidInput

    try:
        family, kind, protocol, _, found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what has just ended is no obstacle
            probe.bind((found[0], port, *found[2:]))
    except (OSError, OverflowError) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InvalidInput(
            f"the pages cannot be served there ({reason})",
            stage="ui",
            subject=f"{host}:{port}",
            next_step="name another address with --port or --host",
        ) from error
