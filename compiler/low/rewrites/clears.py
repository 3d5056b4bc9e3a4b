"""Leaves out fills whose zeros nobody needs (lesson of padding: one tile that clears holds up all others).

Construction clears padding wherever a value has any, because each operation knows only itself. Here the uses
of the bytes are known. A fill is left out when, until they are written again or the program ends, none of its
bytes is read by anything that minds: a call whose binding lets padding be anything does not mind, a call that
wants zero or finite elements does, and so does whoever moves the bytes elsewhere. The host reads the elements
of outputs.

What a fill leaves to later work is followed byte by byte: to the end of the block that it is in, then, in a
Repeat, from the start of the body again, and on behind it. Fills of members of sequences are kept.

Finite is not enough to do without a fill: memory that held an F8 or F32 value before may be NaN as F16, and
this level does not say what lies where before. So no requirement on scratch arises here (AL-02): the program
that comes out needs nothing that it does not do itself.
"""

from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.low.accesses import AccessSpans, Spans, spans_of, subtract, traversal_spans
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram, Role
from compiler.low.project import WorkKind
from compiler.low.rewrites.hazards import Touches, line_of, touches_of
from compiler.low.rewrites.tables import without_calls
from compiler.low.steps import StepTable, table_of
from compiler.low.values import distribution_of

Mask: TypeAlias = npt.NDArray[np.bool_]

_ORDER_IN_STEP: Final = {WorkKind.COPY: 0, WorkKind.CALL: 1, WorkKind.SEND: 0, WorkKind.RECEIVE: 1}
"""Copies run before calls; what a transfer delivers does not change what it sends."""


def without_idle_clears(program: LowProgram) -> LowProgram:
    """The program without fills that make no difference."""
    fills = _fills(program)
    if not len(fills):
        return program
    return without_calls(program, _Uses(program).are_idle(fills))


def _fills(program: LowProgram) -> Column:
    """Calls that fill, outside of sequences."""
    is_fill = np.array(
        [
            isinstance(binding.parameters, CopyParameters) and binding.parameters.kind is Kind.FILL
            for binding in program.bindings
        ],
        dtype=np.bool_,
    )
    calls, views = program.calls, program.views
    view = calls.operand_views[np.minimum(calls.first_view, max(len(calls.operand_views) - 1, 0))]
    buffer = views.buffer[view]
    is_single = (views.sequence[view] == NO_ROW) & (program.buffers.sequence[buffer] == NO_ROW)
    return np.flatnonzero(is_fill[calls.binding] & is_single).astype(np.int64)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Use:
    """What a row does to a storage, in bytes from where it touches it first.

    Args:
        needs: bytes that it minds.
        writes: bytes that have other values afterwards.
    """

    needs: Spans
    writes: Spans


@final
class _Uses:
    """The rows that touch each storage, in the order of execution."""

    def __init__(self, program: LowProgram) -> None:
        self._program = program
        self._spans: list[tuple[AccessSpans, ...]] = [spans_of(binding) for binding in program.bindings]
        self._steps: StepTable = table_of(program.steps)
        touches = touches_of(program)
        in_step = np.array([_ORDER_IN_STEP[kind] for kind in WorkKind], dtype=np.int64)[touches.kind]
        # In an exchange a row's send precedes its deliveries; in a compute step copies precede calls.
        is_moved = touches.kind >= WorkKind.SEND
        major = np.where(is_moved, touches.row, in_step)
        minor = np.where(is_moved, in_step, touches.row)
        # A call reads before it writes.
        order = np.lexsort((touches.writes, minor, major, touches.step, touches.storage))
        self._touches: Touches = touches.take(order)
        storages = len(program.buffers.root) + len(program.sequences.first)
        self._first = np.searchsorted(self._touches.storage, np.arange(storages + 1))
        buffers = program.buffers
        self._outputs: dict[int, list[int]] = {}
        for buffer in np.flatnonzero(buffers.role == Role.OUTPUT).tolist():
            self._outputs.setdefault(int(buffers.root[buffer]), []).append(buffer)

    def are_idle(self, fills: Column) -> Mask:
        """[calls] whether each is one of these fills and nobody needs it."""
        touches = self._touches
        idle = np.zeros(len(self._program.calls.step), dtype=np.bool_)
        is_asked = np.zeros(len(idle), dtype=np.bool_)
        is_asked[fills] = True
        of_call = np.flatnonzero(touches.kind == WorkKind.CALL)
        for place in of_call[is_asked[touches.row[of_call]]].tolist():
            idle[touches.row[place]] = self._is_idle(place)
        return idle

    def _is_idle(self, place: int) -> bool:
        """Whether nothing needs what the touch at ``place`` fills."""
        touches = self._touches
        storage, step = int(touches.storage[place]), int(touches.step[place])
        first, last = int(self._first[storage]), int(self._first[storage + 1])
        left = _moved(self._use(place).writes, int(touches.start[place]))
        repeat = int(self._steps.repeat[step])
        if repeat != NO_ROW:
            body = np.flatnonzero(self._steps.repeat[touches.step[first:last]] == repeat) + first
            behind = int(body[-1]) + 1
            left_of_body = self._follow(left, range(place + 1, behind))
            if left_of_body is None or self._follow(left_of_body, range(int(body[0]), place)) is None:
                return False
            left, place = left_of_body, behind - 1
        at_end = self._follow(left, range(place + 1, last))
        return at_end is not None and not self._is_read_by_host(storage, at_end)

    def _follow(self, left: Spans, places: range) -> Spans | None:
        """What is left of some bytes after some touches; None if one of these needs any."""
        if not left or not len(places):
            return left
        starts, stops = self._touches.start, self._touches.stop
        window = slice(places.start, places.stop)
        near = (stops[window] > left[0][0]) & (starts[window] < left[-1][1])
        for place in (np.flatnonzero(near) + places.start).tolist():
            use, start = self._use(place), int(starts[place])
            if subtract(left, _moved(use.needs, start)) != left:
                return None
            left = subtract(left, _moved(use.writes, start))
            if not left:
                break
        return left

    def _use(self, place: int) -> _Use:
        touches, program = self._touches, self._program
        size = int(touches.stop[place] - touches.start[place])
        row, kind = int(touches.row[place]), WorkKind(int(touches.kind[place]))
        if kind is WorkKind.SEND:
            return _Use(needs=((0, size),), writes=())
        if kind is WorkKind.RECEIVE:
            return _Use(needs=(), writes=((0, size),))
        table = program.calls if kind is WorkKind.CALL else program.copies
        number, access = int(table.binding[row]), int(touches.access[place])
        spans = self._spans[number][access]
        low = program.bindings[number].accesses[access].extent[0]
        return _Use(needs=_moved(spans.needs, -low), writes=_moved(spans.defines, -low))

    def _is_read_by_host(self, storage: int, left: Spans) -> bool:
        """Whether elements of an output are among some bytes at the end of the program."""
        program = self._program
        for buffer in self._outputs.get(storage, ()):
            distribution = distribution_of(program.values[int(program.buffers.value[buffer])])
            held = traversal_spans(distribution.held_bytes(int(program.buffers.shard[buffer])))
            start = int(line_of(program.buffers.root[[buffer]])[0] + program.buffers.displacement[buffer])
            if subtract(left, _moved(held, start)) != left:
                return True
        return False


def _moved(spans: Spans, distance: int) -> Spans:
    return tuple((start + distance, stop + distance) for start, stop in spans)
