"""Who needs what a row leaves in memory: the uses of each storage, in the order of execution.

What a row leaves is followed byte by byte: to the end of the block that it is in, then, in a Repeat, from the
start of the body again, and on behind it, until it is written again or the program ends. A call that lets
padding be anything does not need it; a call that wants zero or finite elements does, and so does whoever
moves the bytes elsewhere. So does a copy that writes bytes back beside those that it writes: were these bytes
that nothing wrote, the word that holds both would be one. The host reads the elements of outputs.
"""

from collections.abc import Container
from dataclasses import dataclass
from typing import Final, final

import numpy as np

from compiler.low.accesses import AccessSpans, Spans, merged, spans_of, subtract, traversal_spans
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram, Role
from compiler.low.project import WorkKind
from compiler.low.rewrites.hazards import Touches, line_of, touches_of
from compiler.low.steps import StepTable, table_of
from compiler.low.values import distribution_of

_ORDER_IN_STEP: Final = {WorkKind.COPY: 0, WorkKind.CALL: 1, WorkKind.SEND: 0, WorkKind.RECEIVE: 1}
"""Copies run before calls; what a transfer delivers does not change what it sends."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Use:
    """What a row does to a storage, in bytes from where it touches it first.

    Args:
        needs: bytes that it minds.
        writes: bytes that have other values afterwards.
        stores: those, and bytes that it writes back as they were.
    """

    needs: Spans
    writes: Spans
    stores: Spans


@final
class Uses:
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

    def of_calls(self, calls: Column) -> list[tuple[int, int]]:
        """Places in the order of touches of some calls, and which call each is of."""
        touches = self._touches
        is_asked = np.zeros(len(self._program.calls.step), dtype=np.bool_)
        is_asked[calls] = True
        of_call = np.flatnonzero(touches.kind == WorkKind.CALL)
        places = of_call[is_asked[touches.row[of_call]]]
        return list(zip(places.tolist(), touches.row[places].tolist(), strict=True))

    def storage(self, place: int) -> int:
        """The storage that a touch is of."""
        return int(self._touches.storage[place])

    def written(self, place: int) -> Spans:
        """Bytes on the line that a touch gives other values."""
        return moved(self._use(place).writes, int(self._touches.start[place]))

    def stored(self, storage: int, without: Container[int]) -> Spans:
        """Bytes of a storage on the line that any row but some calls stores to, values written back too."""
        touches = self._touches
        rows = range(int(self._first[storage]), int(self._first[storage + 1]))
        return merged(
            span
            for place in rows
            if touches.writes[place]
            and not (touches.kind[place] == WorkKind.CALL and int(touches.row[place]) in without)
            for span in moved(self._use(place).stores, int(touches.start[place]))
        )

    def is_idle(self, place: int, left: Spans) -> bool:
        """Whether nothing needs bytes that the touch at ``place`` leaves.

        Args:
            place: of a touch.
            left: bytes on the line, of those that it writes.
        """
        touches = self._touches
        storage, step = int(touches.storage[place]), int(touches.step[place])
        first, last = int(self._first[storage]), int(self._first[storage + 1])
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
            if subtract(left, moved(use.needs, start)) != left:
                return None
            left = subtract(left, moved(use.writes, start))
            if not left:
                break
        return left

    def _use(self, place: int) -> Use:
        touches, program = self._touches, self._program
        size = int(touches.stop[place] - touches.start[place])
        row, kind = int(touches.row[place]), WorkKind(int(touches.kind[place]))
        if kind is WorkKind.SEND:
            return Use(needs=((0, size),), writes=(), stores=())
        if kind is WorkKind.RECEIVE:
            return Use(needs=(), writes=((0, size),), stores=((0, size),))
        table = program.calls if kind is WorkKind.CALL else program.copies
        number, access = int(table.binding[row]), int(touches.access[place])
        spans = self._spans[number][access]
        low = program.bindings[number].accesses[access].extent[0]
        return Use(
            needs=moved(merged((*spans.needs, *(spans.keeps if kind is WorkKind.COPY else ()))), -low),
            writes=moved(spans.defines, -low),
            stores=moved(spans.writes, -low),
        )

    def _is_read_by_host(self, storage: int, left: Spans) -> bool:
        """Whether elements of an output are among some bytes at the end of the program."""
        program = self._program
        for buffer in self._outputs.get(storage, ()):
            distribution = distribution_of(program.values[int(program.buffers.value[buffer])])
            held = traversal_spans(distribution.held_bytes(int(program.buffers.shard[buffer])))
            start = int(line_of(program.buffers.root[[buffer]])[0] + program.buffers.displacement[buffer])
            if subtract(left, moved(held, start)) != left:
                return True
        return False


def moved(spans: Spans, distance: int) -> Spans:
    """Spans elsewhere."""
    return tuple((start + distance, stop + distance) for start, stop in spans)
