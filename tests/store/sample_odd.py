"""Stages that misbehave: they raise what no stage should, depend on an order, or ask for themselves."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass

from compiler.store.codec import BYTES, Single
from compiler.store.stage import Stage, StageCaller
from tests.store.sample_stages import SQUARE
from tests.store.sample_types import INT, NumberInputs, Options

RAISES: list[BaseException] = []
"""What the raising stage raises next; nothing when it is empty."""

ORDER: list[int] = []
"""The order in which the gathering stage asks for results, and what it adds to them: no key knows either."""


ENTERED: list[int] = []
"""What the stage that asks for itself was asked for, so that it ends even when nobody stops it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableInputs:
    """A mapping, alone and inside others."""

    table: Mapping[str, int]
    nested: tuple[Mapping[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MoreInputs(NumberInputs):
    """Inputs of another class that the stage does not know."""

    more: int = 0


def raising(inputs: NumberInputs, options: Options) -> int:
    """Raise, or square."""
    del options
    if RAISES:
        raise RAISES.pop()
    return inputs.number**2


def listing(inputs: TableInputs, options: Options) -> bytes:
    """Depends on the order of what it is given."""
    del options
    return repr((list(inputs.table.items()), [list(item.items()) for item in inputs.nested])).encode()


def itself(inputs: NumberInputs, options: Options, caller: StageCaller) -> int:
    """Ask for one's own result, from a thread as wide stages do."""
    failures: list[BaseException] = []
    ENTERED.append(inputs.number)
    if len(ENTERED) > 2:
        raise AssertionError("nobody stopped this stage")

    def ask() -> None:
        try:
            caller.run(ITSELF, inputs, options)
        except BaseException as error:  # noqa: BLE001  # raised below
            failures.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    raise failures[0]


def gathering(inputs: NumberInputs, options: Options, caller: StageCaller) -> int:
    """Sum squares, asked for in the order that comes."""
    total = sum(caller.run(SQUARE, NumberInputs(number=number), options).value() for number in ORDER)
    return total + inputs.number + (ORDER[0] if inputs.number else 0)


RAISING = Stage(
    name="raising",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    function=raising,
)
LISTING = Stage(
    name="listing",
    module=__name__,
    format=1,
    inputs=TableInputs,
    outputs=Single(codec=BYTES),
    function=listing,
)
ITSELF = Stage(
    name="itself", module=__name__, format=1, inputs=NumberInputs, outputs=Single(codec=INT), calling=itself
)
GATHERING = Stage(
    name="gathering",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    reads=("seed",),
    unkeyed=(("workers", 1), ("log_level", "info"), ("trace", None)),
    calling=gathering,
)
