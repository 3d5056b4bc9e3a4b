"""Stage ``final_placement``: where everything of a program is, tensors, code, rows and tables.

The sequence of EC-01, from a verified low program on: place provisionally, schedule provisionally, generate
and link the selected kernels, size what the program itself needs from what its emitters write, place finally
in what remains. Each line of ``placed`` is a stage of its own with a result of its own in the store, and the
record lists them all.
"""

from typing import Final

import numpy as np

from compiler.errors import InternalError, few_of
from compiler.evaluation.artifacts import FinalPlacementInputs, PlacedProgram
from compiler.evaluation.scheduling import scheduled
from compiler.exchange.codec import ROW_RESERVATIONS
from compiler.figures import FIGURES, Figures, counted
from compiler.kernels.artifacts import KernelObjectsInputs
from compiler.kernels.stage_objects import KERNEL_OBJECTS
from compiler.low.ir import LowProgram
from compiler.package.artifacts import (
    IMAGE,
    SUPPORT,
    HasPackageChoices,
    LinkingInputs,
    SupportSizingInputs,
)
from compiler.package.stage_linking import LINKING
from compiler.package.stage_support import SUPPORT_SIZING
from compiler.package.support import Support
from compiler.placement.artifacts import ProvisionalPlacementInputs
from compiler.placement.check import check
from compiler.placement.codec import PLACEMENT
from compiler.placement.place import Placed, place_counted
from compiler.placement.stage_provisional import PROVISIONAL_PLACEMENT
from compiler.store.codec import Fields
from compiler.store.stage import Stage, StageRunner
from compiler.target.memory import SRAM_SIZE


def placed(inputs: FinalPlacementInputs, options: HasPackageChoices, caller: StageRunner) -> PlacedProgram:
    """Place a program.

    Raises:
        DoesNotFit: tensors or code of a tile have no room.
        ScheduleInfeasible: a phase cannot be scheduled at the provisional addresses.
        InternalError: the independent checker refuses the placement.
    """
    program = inputs.program.value()
    symbols = tuple(sorted({str(binding.symbol) for binding in program.bindings}))

    provisional = caller.run(
        PROVISIONAL_PLACEMENT, ProvisionalPlacementInputs(program=inputs.program), options
    )
    exchange = scheduled(caller, inputs.program, provisional, None, options)
    objects = caller.run(KERNEL_OBJECTS, KernelObjectsInputs(symbols=symbols), options)
    code = caller.run(LINKING, LinkingInputs(objects=objects, symbols=symbols), options)
    sized = caller.run(
        SUPPORT_SIZING,
        SupportSizingInputs(
            program=inputs.program,
            placement=provisional,
            demands=exchange.demands,
            schedules=exchange.schedules,
            rows=exchange.rows,
            code=code,
        ),
        options,
    ).value()
    found = _placed_in_what_remains(program, sized.support)

    return PlacedProgram(
        placement=found.placement,
        code=code.value(),
        support=sized.support,
        row_reservations=sized.row_reservations,
        figures=_figures(program, found, sized.support),
    )


def _placed_in_what_remains(program: LowProgram, support: Support) -> Placed:
    reserved = support.reservations.for_placement(program.tile_count)
    found = place_counted(program, reserved)
    violations = check(program, found.placement, reserved)
    if violations:
        raise InternalError(
            f"the placement breaks its rules: {few_of(violations)}",
            stage="placement check",
            subject="final placement",
            nodes=program.nodes,
            next_step="report the model and the options",
        )
    return found


def _figures(program: LowProgram, found: Placed, support: Support) -> Figures:
    """How full the fullest tile is, what of it the program itself takes, and how alike tiles are."""
    placement = found.placement
    reservations = support.reservations
    own = np.bincount(reservations.tile, weights=reservations.byte_count).astype(np.int64)
    starts = np.concatenate([placement.address, reservations.start])
    stops = starts + np.concatenate([program.buffers.byte_count, reservations.byte_count])
    tiles = np.concatenate([program.buffers.tile, reservations.tile])
    used = _covered(tiles, starts, stops)
    return (
        counted("fullest tile", int(used.max()), "bytes", limit=int(SRAM_SIZE)),
        counted("number of the fullest tile", int(used.argmax()), "tile"),
        counted("code, rows, tables and runtime of a tile at most", int(own.max()), "bytes"),
        counted("code that a tile can still take, at least", int(support.headroom.min()), "bytes"),
        counted("distinct problems of placement", found.classes, "classes of tiles"),
        counted("placed like another tile, without a search", found.tiles - found.classes, "tiles"),
    )


def _covered(
    tiles: np.ndarray[tuple[int], np.dtype[np.int64]],
    starts: np.ndarray[tuple[int], np.dtype[np.int64]],
    stops: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """[tiles] bytes in any of the ranges; storage that several buffers share in turn counts once."""
    order = np.lexsort((stops, starts, tiles))
    covered = np.zeros(int(tiles.max()) + 1, dtype=np.int64)
    reach: dict[int, int] = {}
    for tile, start, stop in zip(
        tiles[order].tolist(), starts[order].tolist(), stops[order].tolist(), strict=True
    ):
        begin = max(start, reach.get(tile, start))
        covered[tile] += max(0, stop - begin)
        reach[tile] = max(stop, begin)
    return covered


FINAL_PLACEMENT: Final = Stage(
    name="final_placement",
    module=__name__,
    format=1,
    inputs=FinalPlacementInputs,
    outputs=Fields(
        of=PlacedProgram,
        codecs=(
            ("placement", PLACEMENT),
            ("code", IMAGE),
            ("support", SUPPORT),
            ("row_reservations", ROW_RESERVATIONS),
            ("figures", FIGURES),
        ),
    ),
    reads=("package.runs", "package.profile", "isa.overrides"),
    tables=("target", "instructions", "decisions"),
    calling=placed,
)
