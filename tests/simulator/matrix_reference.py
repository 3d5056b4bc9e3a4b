"""The matrix units as a plain model, written from their description: lists, one step at a time.

Both models of the queues are here: first in, first out, and addressed by phase.
"""

from collections import deque
from dataclasses import dataclass, field

import numpy as np

WIDE_ORDER = (0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15)
"""Units in the order in which the phases of 16-unit instructions name them."""


@dataclass(slots=True, kw_only=True)
class MatrixUnits:
    """State of the units of one worker.

    Args:
        units: 8 or 16.
        channels: of each set of eight that take part: 8, 4 or 2.
        weights: [phase][unit] lists of the elements of a common weight.
        count: partials and results of an instruction.
        scale: exponent of the sums of products.
    """

    units: int
    weights: list[list[list[float]]]
    count: int
    channels: int = 8
    scale: int = 0
    sums: list[float] = field(default_factory=lambda: [0.0] * 16)
    partials: deque[float] = field(default_factory=lambda: deque[float]())
    results: deque[float] = field(default_factory=lambda: deque[float]())
    partial_slots: list[float] = field(default_factory=lambda: [0.0] * 16)
    result_slots: list[float] = field(default_factory=lambda: [0.0] * 16)
    is_ambiguous: bool = False

    @property
    def order(self) -> tuple[int, ...]:
        """Units that take part, in queue order."""
        order = WIDE_ORDER if self.units == 16 else tuple(range(8))
        return tuple(unit for unit in order if unit % 8 < self.channels)

    def step(self, x: list[float], partials: list[float] | None, phase: int, *, position: int) -> list[float]:
        """One instruction.

        Args:
            x: its elements.
            partials: what it injects, or None when it has no partial operand.
            phase: which weights; 0 starts a group.
            position: the queue position that its phase names.

        Returns:
            Its results before rounding; empty without a partial operand.
        """
        if phase == 0:
            fifo = [self.partials.popleft() if self.partials else 0.0 for _ in self.order]
            if fifo != self.partial_slots[: len(fifo)]:
                self.is_ambiguous = True
            self.results.extend(self.sums[unit] for unit in self.order)
            self.result_slots = [self.sums[unit] for unit in self.order]
            for place, unit in enumerate(self.order):
                self.sums[unit] = fifo[place]
            self.partial_slots = [0.0] * 16
        popped: list[float] = []
        if partials is not None:
            self.partials.extend(partials)
            self.partial_slots[position : position + self.count] = partials
            popped = [self.results.popleft() if self.results else 0.0 for _ in range(self.count)]
            if popped != self.result_slots[position : position + self.count]:
                self.is_ambiguous = True
        for unit in self.order:
            total = x[0] * self.weights[phase][unit][0]
            for element in range(1, len(x)):
                total += x[element] * self.weights[phase][unit][element]
            self.sums[unit] = float(np.float32(self.sums[unit] + total * 2.0**self.scale))
        return popped
