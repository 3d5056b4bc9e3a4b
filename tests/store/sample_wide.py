"""A stage that wants several runs of another and takes them in order, as a search does with its shortlist."""

import os
import signal
import time

from compiler.errors import DoesNotFit
from compiler.store.codec import Single
from compiler.store.stage import Stage, StageCaller
from tests.store.sample_types import INT, NumberInputs, Options

ENOUGH = 3
"""The wide stage stops at the first square that is at least its square."""


def slow(inputs: NumberInputs, _options: object) -> int:
    """The square of a number; some numbers are special.

    Raises:
        DoesNotFit: it is 1.
    """
    number = inputs.number
    if number == 1:
        raise DoesNotFit("one is too large", stage="slow", subject="1", next_step="take another")
    if number >= 1000:  # the number of a process, whose children die of it and which survives it itself
        if os.getpid() != number:
            os.kill(os.getpid(), signal.SIGKILL)
        return number
    time.sleep(0.01 * number)
    return number**2


def wide(inputs: NumberInputs, options: Options, caller: StageCaller) -> int:
    """The sum of what came before the first square that is large enough, failures as 100."""
    total = 0
    numbers = [NumberInputs(number=number) for number in range(inputs.number)]
    for outcome in caller.each(SLOW, numbers, options):
        if outcome.failure is not None:
            total += 100
            continue
        square = outcome.value()
        total += square
        if square >= ENOUGH**2:
            break
    return total


def deadly(inputs: NumberInputs, options: Options, caller: StageCaller) -> int:
    """The sum of squares, among runs that no worker survives."""
    numbers = [NumberInputs(number=number) for number in (0, inputs.number, 2)]
    return sum(outcome.value() for outcome in caller.each(SLOW, numbers, options))


SLOW = Stage(
    name="slow",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    tables=("target",),
    function=slow,
)
WIDE = Stage(
    name="wide",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    reads=("seed",),
    unkeyed=(("workers", 1), ("log_level", "info"), ("trace", None)),
    calling=wide,
)
DEADLY = Stage(
    name="deadly",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    reads=("seed",),
    unkeyed=(("workers", 1), ("log_level", "info"), ("trace", None)),
    calling=deadly,
)
