"""Colours of reports: few, told apart by people who see colours differently and in grey print."""

from collections.abc import Mapping
from typing import Final

from compiler.evaluation.ledger import Fate

INK: Final = "#1F2933"
"""Of text and lines."""

CHOICE: Final = "#D55E00"
"""Of the frame around what is chosen."""

PART_COLOURS: Final[Mapping[str, str]] = {
    "compute": "#0072B2",
    "exchange": "#E69F00",
    "overhead": "#7F7F7F",
    "idle": "#D9DCE0",
}
"""Of what happens in a cycle."""

KIND_COLOURS: Final[Mapping[str, str]] = {
    "code": "#4D4D4D",
    "window": "#9A9A9A",
    "state": "#C4C4C4",
    "rows": "#E69F00",
    "tables": "#F0E442",
    "parameter": "#0072B2",
    "input": "#009E73",
    "output": "#CC79A7",
    "temporary": "#56B4E9",
}
"""Of what lies in memory."""

PHASE_COLOURS: Final[Mapping[str, str]] = {
    "horizon": "#E69F00",
    "bound": "#1F2933",
    "sending": "#0072B2",
    "receiving": "#D55E00",
}
"""Of an exchange phase."""

SIDE_COLOURS: Final[Mapping[str, str]] = {"before": "#9AA5B1", "after": "#0072B2"}
"""Of two builds."""

FATE_COLOURS: Final[Mapping[Fate, str]] = {
    Fate.BASELINE: "#1F2933",
    Fate.ACCEPTED: "#009E73",
    Fate.NO_BETTER: "#E69F00",
    Fate.FAILED: "#D55E00",
    Fate.SLOWER: "#9AA5B1",
    Fate.NOT_TRIED: "#56B4E9",
    Fate.REPEATED: "#CC79A7",
    Fate.REFUSED: "#D55E00",
}
"""Of candidates."""


def fate_colour(fate: str) -> str:
    """The colour of a candidate whose fate is told in words."""
    return FATE_COLOURS[Fate(fate)]
