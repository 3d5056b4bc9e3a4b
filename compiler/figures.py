"""Figures of a stage: numbers that a person wants to see, kept beside the result they are about.

Each says what kind it is (``errors.NumberKind``). They are outputs of their own, so that looking at them
decodes nothing else and a stage that takes the result does not depend on them.
"""

from typing import Any, Final

from compiler.errors import Measure, NumberKind
from compiler.store.codec import JsonCodec

Figures = tuple[Measure, ...]


def plain_figures(figures: Figures) -> object:
    """Figures as plain values."""
    return tuple(
        (figure.name, figure.value, figure.unit, figure.kind.value, figure.limit) for figure in figures
    )


def figures_of_plain(plain: Any) -> Figures:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: the values are not those of figures.
    """
    try:
        return tuple(
            Measure(name=name, value=value, unit=unit, kind=NumberKind(kind), limit=limit)
            for name, value, unit, kind, limit in plain
        )
    except TypeError as fault:
        raise ValueError(f"no figures: {fault}") from fault


def counted(name: str, value: int, unit: str, *, limit: int | None = None) -> Measure:
    """A figure that was counted."""
    return Measure(name=name, value=int(value), unit=unit, kind=NumberKind.MEASURED, limit=limit)


FIGURES: Final = JsonCodec(plain=plain_figures, value=figures_of_plain)
"""What stages that give figures declare."""
