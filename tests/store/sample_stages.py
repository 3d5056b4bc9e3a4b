"""Stages that run no other stage."""

import os
import time

import numpy as np

from compiler.errors import DoesNotFit, InternalError, Measure, NumberKind
from compiler.store.codec import Fields, Single
from compiler.store.stage import Namespace, Stage
from tests.store.sample_types import (
    INT,
    INTS,
    Ints,
    NumberInputs,
    Options,
    Rounding,
    ScaleInputs,
    Summary,
)

CALLS: list[str] = []
"""The names of the stages that ran in this process, in order."""

UNSTABLE: list[int] = []
"""What the unstable stage gives next: state that no key knows, as a bug would have it."""


def scale(inputs: ScaleInputs, options: Options) -> Ints:
    """Multiply, as the options say."""
    _note("scale", options)
    scaled = inputs.values.value() * options.scale.factor
    if options.scale.rounding is Rounding.UP:
        scaled = scaled + 1
    return np.minimum(scaled, inputs.limit)


def summarize(inputs: ScaleInputs, options: Options) -> Summary:
    """Two outputs."""
    _note("summarize", options)
    values = inputs.values.value()
    return Summary(total=int(values.sum()), parts=np.sort(values))


def refuse(inputs: NumberInputs, options: Options) -> int:
    """Fail as a stage fails whose input does not fit; numbers below 10 fit."""
    _note("refuse", options)
    if inputs.number < 10:
        return inputs.number
    raise DoesNotFit(
        "the number is too large",
        stage="refuse",
        subject=f"number {inputs.number}",
        next_step="give a smaller number",
        numbers=[
            Measure(name="size", value=inputs.number, unit="bytes", kind=NumberKind.BOUND, limit=9),
            Measure(name="time", value=3, unit="cycles", kind=NumberKind.ESTIMATED),
        ],
        nodes=["first", "second"],
    )


def crash(inputs: NumberInputs, options: Options) -> int:
    """Fail as a bug fails."""
    _note("crash", options)
    raise InternalError("broken", stage="crash", subject=str(inputs.number), next_step="report it")


def unstable(inputs: NumberInputs, options: Options) -> Ints:
    """Give something else each time."""
    _note("unstable", options)
    return np.full(inputs.number, UNSTABLE.pop(0), np.int64)


def careless(inputs: NumberInputs, options: Options) -> int:
    """Read an option that the declaration does not name."""
    return inputs.number + options.scale.factor


def square(inputs: NumberInputs, options: Options) -> int:
    """A stage that every process can run quickly."""
    _note("square", options)
    return inputs.number**2


def _note(name: str, options: Options) -> None:
    """Leave a trace of a run: in this process, and in a file for others if asked; that takes its time."""
    CALLS.append(name)
    if options.trace is not None:
        time.sleep(0.1)
        with options.trace.open("a") as file:
            file.write(f"{name} {os.getpid()}\n")


UNKEYED = (("workers", 1), ("log_level", "info"), ("trace", None))

SCALE = Stage(
    name="scale",
    module=__name__,
    format=1,
    inputs=ScaleInputs,
    outputs=Single(codec=INTS),
    reads=("scale.factor", "scale.rounding", "scale.tolerance"),
    unkeyed=UNKEYED,
    tables=("target",),
    function=scale,
)
SUMMARIZE = Stage(
    name="summarize",
    module=__name__,
    format=1,
    inputs=ScaleInputs,
    outputs=Fields(of=Summary, codecs=(("total", INT), ("parts", INTS))),
    unkeyed=UNKEYED,
    function=summarize,
)
REFUSE = Stage(
    name="refuse",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    unkeyed=UNKEYED,
    function=refuse,
)
CRASH = Stage(
    name="crash",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    unkeyed=UNKEYED,
    function=crash,
)
UNSTABLE_STAGE = Stage(
    name="unstable",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INTS),
    unkeyed=UNKEYED,
    function=unstable,
)
CARELESS = Stage(
    name="careless",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    reads=("seed",),
    function=careless,
)
SQUARE = Stage(
    name="square",
    module=__name__,
    format=1,
    inputs=NumberInputs,
    outputs=Single(codec=INT),
    reads=("seed",),
    unkeyed=UNKEYED,
    namespace=Namespace.KERNEL,
    function=square,
)
