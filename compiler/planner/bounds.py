"""What no program can beat, per tile: models that exceed it are refused before anything is built.

``planner.floors`` proves what every program of a graph holds. Three limits are held against that:

* what planning has for data, which keeps free room for code, rows and descriptors: a policy, and named;
* the memory of a tile, against data, code, exchange rows, descriptors and what runtime and host reserve;
* its executable memory, against code and rows.

What a way of computing a product needs of rows is looked at when it is priced.
"""

from dataclasses import dataclass
from typing import Final, final

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.estimate.least import EXECUTABLE_ROOM
from compiler.estimate.prices import DATA_BUDGET
from compiler.graph.ir import Graph
from compiler.planner.floors import Floor, Floors, bytes_of, floors_of
from compiler.target.costs import SUPPORT_ELEMENTS
from compiler.target.memory import SRAM_BASE, SRAM_SIZE, STANDARD
from compiler.target.runtime_layout import DEFAULT_LAYOUT
from compiler.target.units import Bytes

STAGE: Final = "planner"

_NAMED: Final = 3
"""Nodes that a message names."""

_RUNTIME: Final = DEFAULT_LAYOUT.entry - SRAM_BASE + DEFAULT_LAYOUT.state.size
"""Bytes that nothing else ever has."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What a tile has.

    Args:
        data: bytes that planning has for values.
        memory: bytes of SRAM.
        executable: bytes of it for code and exchange rows.
    """

    data: Bytes = DATA_BUDGET
    memory: Bytes = SRAM_SIZE
    executable: Bytes = EXECUTABLE_ROOM


def check_bounds(graph: Graph, tile_count: int, limits: Limits | None = None) -> None:
    """Refuse what cannot fit whatever the layout.

    Args:
        graph: the model.
        tile_count: tiles of the build.
        limits: of a tile; None for those of the chip.

    Raises:
        DoesNotFit: a floor exceeds what tiles have.
    """
    limits = Limits() if limits is None else limits
    floors = floors_of(graph, limits.memory)
    for what, data, reserved, nodes, is_of_batch in (
        # What stays from run to run cannot lie where the host's packets arrive.
        (
            "parameters, each stored once",
            floors.parameters,
            _RUNTIME + DEFAULT_LAYOUT.window.size,
            _readers_of_parameters(graph),
            False,
        ),
        (
            "parameters and the values of one product",
            floors.parameters + floors.product,
            _RUNTIME,
            floors.product_nodes,
            True,
        ),
    ):
        _Sum(
            what=what,
            data=data,
            reserved=reserved,
            floors=floors,
            nodes=nodes,
            is_of_batch=is_of_batch,
            limits=limits,
        ).check(graph.name, tile_count)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Sum:
    """What some tile holds at one moment.

    Args:
        what: the data, for messages.
        data: their floor.
        reserved: bytes that none of the parts can have then.
        floors: the other parts.
        nodes: where the data come from.
        is_of_batch: whether some of the data are fewer in a smaller batch.
        limits: of a tile.
    """

    what: str
    data: Floor
    reserved: int
    floors: Floors
    nodes: tuple[str, ...]
    is_of_batch: bool
    limits: Limits

    def check(self, subject: str, tile_count: int) -> None:
        """Hold it against the limits, that of data first."""
        limits, floors = self.limits, self.floors
        tiles = "1 tile has" if tile_count == 1 else f"{tile_count:,} tiles have"
        executed = floors.code + floors.rows
        everything = self.data + executed + floors.descriptors + Floor(each=self.reserved)
        for reason, floor, limit in (
            (f"{self.what} need more than the {tiles}", self.data, limits.data),
            ("code and exchange rows need more than a tile can execute", executed, limits.executable),
            (
                f"{self.what}, with code, rows and descriptors need more than the {tiles}",
                everything,
                limits.memory,
            ),
        ):
            if floor.of_a_tile(tile_count) > limit:
                raise DoesNotFit(
                    reason,
                    stage=STAGE,
                    subject=subject,
                    next_step=_advice(floor, limit, is_of_batch=self.is_of_batch),
                    numbers=self._numbers(executed, everything, tile_count),
                    nodes=self.nodes,
                )

    def _numbers(self, executed: Floor, everything: Floor, tile_count: int) -> tuple[Measure, ...]:
        floors, limits = self.floors, self.limits
        parts: tuple[tuple[str, Floor, int | None], ...] = (
            ("data", self.data, limits.data),
            ("code", floors.code, None),
            ("exchange rows", floors.rows, None),
            ("descriptors", floors.descriptors, None),
            ("code and rows together", executed, limits.executable),
            ("memory, with what runtime and host reserve", everything, limits.memory),
        )
        return (
            *(
                _bound(f"floor of a tile's {name}", floor.of_a_tile(tile_count), limit)
                for name, floor, limit in parts
            ),
            _bound(
                "kept free of data for code, exchange rows and descriptors",
                SUPPORT_ELEMENTS * STANDARD.element_size,
                None,
            ),
        )


def _bound(name: str, value: int, limit: int | None) -> Measure:
    return Measure(name=name, value=value, unit="bytes", kind=NumberKind.BOUND, limit=limit)


def _advice(floor: Floor, limit: int, *, is_of_batch: bool) -> str:
    """What helps: tiles, unless each has too much already. Parameters are no fewer in a smaller batch."""
    if floor.each >= limit:
        return "build a part of the model"
    enough = -(-floor.shared // (limit - floor.each))
    others = ", a narrower precision or a smaller batch" if is_of_batch else " or a narrower precision"
    return f"use at least {enough:,} tiles{others}"


def _readers_of_parameters(graph: Graph) -> tuple[str, ...]:
    """The nodes that read most bytes of parameters, in graph order."""
    block, parameters = graph.block, {*graph.parameters}
    read = {
        block.values[node.results[0]].name: sum(
            bytes_of(block, value) for value in parameters & {*node.operands}
        )
        for node in block.nodes
    }
    most = sorted(read.values(), reverse=True)[:_NAMED]
    return tuple(name for name, size in read.items() if size and size >= most[-1])[:_NAMED]
