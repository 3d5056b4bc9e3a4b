"""When the tiles of an application met: a record for each barrier of the chip and meeting with the host.

All clocks share one time base: every supervisor starts in cycle 0.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final, final

from compiler.target.units import Cycles, Events, PhysicalTile, Words

SPAN: Final = (
    "from the first tile that leaves the last input batch"
    " to the last tile that reaches the first output batch"
)
"""What the cycles of a run are where the package takes no samples. Without inputs the span starts where the
call does, without outputs it ends with the last tile."""

SAMPLED_SPAN: Final = (
    "from the last tile's sample behind the input batches to the last tile's sample before the output batches"
)
"""What they are where it does: the cropped span of published figures. Nothing of the host is in it."""

FIRST_SAMPLE: Final = "profile.start-cycle"
LAST_SAMPLE: Final = "profile.end-cycle"
"""Outputs of packages that hold each tile's clock, read from memory behind a run."""


@final
class MeetingKind(Enum):
    """What tiles met for; the value is the word of reports."""

    BARRIER = "barrier"
    """Of the chip, without an exchange."""
    EXCHANGE = "exchange"
    """Of the chip, with rows behind it."""
    ATTACH = "attach"
    """The host attaches its pages."""
    BATCH_BEGIN = "host batch"
    BATCH_END = "host batch end"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Meeting:
    """One barrier.

    Args:
        number: position in the life of the device, from 0.
        kind: what for.
        taking_part: tiles that did not stay away.
        first_entry: cycle at which the first tile arrived or stayed away.
        last_entry: cycle at which the last one did.
        limiting_tile: the last one; of several the first by number.
        release: cycle at which tiles went on; slot 0 of rows is one call later.
        horizon: events of the longest row; 0 without rows.
        end: cycle at which the last row had returned; the release without rows.
        delivered: words written by the exchange, counted at every receiver.
    """

    number: int
    kind: MeetingKind
    taking_part: int
    first_entry: Cycles
    last_entry: Cycles
    limiting_tile: PhysicalTile
    release: Cycles
    horizon: Events
    end: Cycles
    delivered: Words

    def __post_init__(self) -> None:
        """Times ascend."""
        if not 0 <= self.first_entry <= self.last_entry <= self.release <= self.end:
            raise ValueError(f"meeting {self.number} does not take place in order")
