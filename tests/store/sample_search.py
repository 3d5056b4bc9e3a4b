"""A stage that runs other stages, as a search evaluates candidates."""

from compiler.errors import DoesNotFit
from compiler.store.codec import Single
from compiler.store.stage import Stage, StageCaller
from tests.store.sample_stages import REFUSE, SQUARE
from tests.store.sample_types import INT, NumberInputs, Options


def search(inputs: NumberInputs, options: Options, caller: StageCaller) -> int:
    """The sum of squares below a number, one stage run each, until a candidate does not fit."""
    total = 0
    for number in range(inputs.number):
        total += caller.run(SQUARE, NumberInputs(number=number), options).value()
        try:
            caller.run(REFUSE, NumberInputs(number=number + 8), options)
        except DoesNotFit:
            break
    return total


SEARCH = Stage(
    name="search",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    reads=("seed",),
    unkeyed=(("workers", 1), ("log_level", "info"), ("trace", None)),
    calling=search,
)
