"""Phases for tests: transfers timed by the formulas, as intentions that a test can spoil before use."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from compiler.isa.rows import ControlKind, Row, planned_row
from compiler.simulator.fabric import MEMORY_WORDS
from compiler.target import fabric
from compiler.target.units import Events, PhysicalTile

NEUTRAL = 0x640


@dataclass(slots=True, kw_only=True)
class Plan:
    """Sends, controls and horizon of each tile; a horizon of None means the least that will do."""

    sends: dict[int, list[tuple[int, int, int, int]]] = field(default_factory=lambda: defaultdict(list))
    controls: dict[int, list[tuple[int, ControlKind, int]]] = field(default_factory=lambda: defaultdict(list))
    ends: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def ordinary(
        self, source: int, receivers: Sequence[tuple[int, int]], words: int, slot: int, address: int
    ) -> int:
        """Send words to (tile, address) each; the slot behind the last."""
        ways = [int(fabric.direction(PhysicalTile(source), PhysicalTile(tile))) for tile, _ in receivers]
        self.sends[source].append((slot, words, address // 4, ways[0] if len(ways) == 1 else 3))
        self.ends[source] = max(self.ends[source], slot + words)
        for tile, to in receivers:
            select = slot + fabric.time_to_mux(PhysicalTile(source), PhysicalTile(tile)) + 1
            first = select + fabric.select_to_write(PhysicalTile(tile))
            self.controls[tile] += [
                (select, ControlKind.XPIC0, source),
                (select + words, ControlKind.XPIC0, NEUTRAL),
                (first, ControlKind.PIC0, to // 4),
            ]
            self.ends[tile] = max(self.ends[tile], first + words + 5)
        return slot + words

    def paired(
        self, source: int, pairs: Sequence[tuple[int, int, int]], items: int, slot: int, address: int
    ) -> int:
        """Send items to (member, its address, the partner's address) each; the slot behind the last."""
        way = int(fabric.direction(PhysicalTile(source), PhysicalTile(pairs[0][0])))
        alone = len(pairs) == 1 and source not in (pairs[0][0], pairs[0][0] ^ 2)
        self.sends[source].append((slot, items, address // 8, (way if alone else 3) | 4))
        self.ends[source] = max(self.ends[source], slot + items)
        for member, to, partner_to in pairs:
            other = member ^ 2
            times = {
                tile: int(fabric.time_to_mux(PhysicalTile(source), PhysicalTile(tile)))
                for tile in (member, other)
            }
            early = min(times, key=lambda tile: times[tile])
            select = slot + max(times.values())
            on = select + 51 + 2 * (member >> 6)
            way = int(fabric.direction(PhysicalTile(source), PhysicalTile(member)))
            self.controls[early] += [
                (select, ControlKind.XPIC1, source ^ (early & 2)),
                (select + items, ControlKind.XPIC1, NEUTRAL),
            ]
            for tile, at in ((member, to), (other, partner_to)):
                self.controls[tile] += [
                    (on, ControlKind.PIC1, way),
                    (on + 2, ControlKind.PIC0, at // 4),
                    (on + items, ControlKind.PIC1, 0),
                ]
                self.ends[tile] = max(self.ends[tile], on + items + 7)
        return slot + items

    def tiles(self) -> list[int]:
        """Those that do something."""
        return sorted(set(self.sends) | set(self.controls))

    def row(self, tile: int, spare: int = 0) -> Row:
        """The row of a tile, with more or fewer events at the end."""
        return planned_row(
            horizon=Events(max(self.ends[tile] + spare, 0)),
            sends=sorted(self.sends[tile]),
            controls=self.controls[tile],
        )

    def rows(self) -> dict[PhysicalTile, Row]:
        """The rows of all tiles that do something."""
        return {PhysicalTile(tile): self.row(tile) for tile in self.tiles()}


def random_memory(tiles: int, seed: int = 0) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """SRAM full of random words, all of them written."""
    generator = np.random.default_rng(seed)
    memory = generator.integers(0, 1 << 32, (tiles, MEMORY_WORDS), dtype=np.uint32)
    return memory, np.full((tiles, MEMORY_WORDS), 15, dtype=np.uint8)
