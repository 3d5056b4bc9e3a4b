"""Bars that show how far a build is: only on a terminal, and never in what is printed.

One bar counts the stages of the chain and names those that are computed right now, the outermost first.
Another appears while a stage wants one thing several times, as the search does with its candidates. Rich is
imported on a terminal only.
"""

import contextlib
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from compiler.store.watch import Watch

if TYPE_CHECKING:
    from rich.progress import Progress


class Shown(Watch):
    """What a person sees of a build while it runs.

    Args:
        bars: where bars are drawn; None without a terminal.
        stages: of the chain.
        is_quiet: whether lines are left out.
    """

    def __init__(self, bars: "Progress | None", stages: int, *, is_quiet: bool) -> None:
        self._bars = bars
        self._is_quiet = is_quiet
        self._running: list[tuple[str, ...]] = []
        self._several: dict[tuple[str, ...], Any] = {}
        self._chain = None if bars is None else bars.add_task("", total=stages)

    def say(self, line: str) -> None:
        """Print a line, above the bars."""
        if self._is_quiet:
            return
        if self._bars is not None and sys.stdout.isatty():
            self._bars.console.print(line, markup=False, highlight=False, soft_wrap=True)
        else:
            print(line, flush=True)  # somebody waits for it

    def passed(self) -> None:
        """A stage of the chain is done."""
        if self._bars is not None and self._chain is not None:
            self._bars.update(self._chain, advance=1, description="")

    def began(self, stages: tuple[str, ...]) -> None:
        """Name what is computed now."""
        self._running.append(stages)
        self._name()

    def ended(self, stages: tuple[str, ...]) -> None:
        """And what is computed still."""
        if stages in self._running:
            self._running.remove(stages)
        self._name()

    def counted(self, stages: tuple[str, ...], done: int, of: int) -> None:
        """Move the bar of what a stage wants several times; it goes when all is done."""
        if self._bars is None:
            return
        for others in [each for each in self._several if each != stages or done == of]:
            self._bars.remove_task(self._several.pop(others))
        if done == of:
            return
        if stages not in self._several:
            self._several[stages] = self._bars.add_task(stages[-1], total=of)
        self._bars.update(self._several[stages], completed=done)

    def _name(self) -> None:
        if self._bars is not None and self._chain is not None:
            longest = max(self._running, key=len, default=())
            self._bars.update(self._chain, description=" > ".join(longest))


@contextlib.contextmanager
def shown(stages: int, *, is_quiet: bool) -> Generator[Shown]:
    """Bars for a chain of so many stages, while the context lasts.

    Args:
        stages: of the chain.
        is_quiet: neither bars nor lines: something else is printed, for a program to read.
    """
    if is_quiet or not sys.stderr.isatty():
        yield Shown(None, stages, is_quiet=is_quiet)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bars = Progress(
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    with bars:
        yield Shown(bars, stages, is_quiet=False)
