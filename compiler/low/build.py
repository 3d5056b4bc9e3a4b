"""The only way to make a low program: an arena to which rows are appended.

Appending records and does nothing else (LC-01, LC-02): no call is split, recognized or moved, no phase is
merged, nothing is checked beyond what makes a row meaningless. Whoever appends has decided. ``finish`` turns
the rows into read-only columns; ``compiler.low.verify`` then says whether they are a program.

Two things are interned, since thousands of tiles repeat them: the geometry of views (``forms``) and kernel
bindings. One thing is derived, because the binding already says it: for each pair of operands that a binding
wants in separate memory elements, the pair of buffers goes into ``separations``, once; for operands that walk
along sequences, one pair for each iteration.
"""

import dataclasses
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TypeVar, final

import numpy as np

from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.kernels.contract import Binding
from compiler.low.address import AddressOperand
from compiler.low.ids import (
    NO_ROW,
    NO_SEQUENCE,
    NO_VALUE,
    BufferId,
    CallId,
    CopyId,
    NodeId,
    SequenceId,
    StepId,
    TransferId,
    ValueId,
    ViewId,
)
from compiler.low.ir import (
    Buffers,
    Calls,
    Column,
    ComputeStep,
    Copies,
    ExchangeStep,
    HostValue,
    LowProgram,
    Recipients,
    RepeatStep,
    Role,
    Separations,
    Sequences,
    Step,
    Transfers,
    Views,
)

T = TypeVar("T")


@final
class LowBuilder:
    """A low program under construction.

    Args:
        tile_count: tiles of the build.
    """

    def __init__(self, tile_count: int) -> None:
        self._tile_count = tile_count
        self._nodes: dict[str, int] = {}
        self._values: list[HostValue] = []
        self._forms: dict[LocalOperand, int] = {}
        self._bindings: dict[Binding, int] = {}
        self._buffers = _Rows(Buffers)
        self._sequences = _Rows(Sequences)
        self._members: list[tuple[BufferId, ...]] = []
        self._separations = _Rows(Separations)
        self._separated: set[tuple[int, int]] = set()
        self._views = _Rows(Views)
        self._calls = _Rows(Calls, without="operand_views")
        self._operand_views: list[int] = []
        self._copies = _Rows(Copies)
        self._transfers = _Rows(Transfers)
        self._recipients = _Rows(Recipients)
        self._step_count = 0
        self._steps: list[Step] = []
        self._open = self._steps

    def node(self, name: str) -> NodeId:
        """The row of a graph node, added when it is new."""
        return NodeId(_intern(self._nodes, name))

    def value(self, value: HostValue) -> ValueId:
        """Adds a tensor of the host. Its shards are added as buffers that name it."""
        self._values.append(value)
        return ValueId(len(self._values) - 1)

    def buffer(
        self,
        *,
        tile: int,
        byte_count: int,
        alignment: int,
        node: NodeId,
        memory_class: MemoryClass = MemoryClass.STANDARD,
        tail: int = 0,
        role: Role = Role.TEMPORARY,
        value: ValueId = NO_VALUE,
        shard: int = 0,
    ) -> BufferId:
        """Adds a buffer that is placed on its own; the meaning of each number is that of ``Buffers``."""
        return BufferId(
            self._buffers.append(
                tile=tile,
                byte_count=byte_count,
                alignment=alignment,
                interleaved=int(memory_class is MemoryClass.INTERLEAVED),
                tail=tail,
                root=len(self._buffers),
                displacement=0,
                sequence=NO_ROW,
                member=0,
                role=int(role),
                value=value,
                shard=shard,
                node=node,
            )
        )

    def alias(
        self,
        root: BufferId,
        *,
        displacement: int,
        byte_count: int,
        alignment: int,
        node: NodeId,
        tail: int = 0,
    ) -> BufferId:
        """Adds a temporary that shares the storage of ``root``, ``displacement`` bytes from its start.

        Raises:
            ValueError: ``root`` shares the storage of another buffer itself.
        """
        root_of_root = self._buffers["root"][root]
        if root_of_root != root:
            raise ValueError(f"buffer {root} shares the storage of {root_of_root} and is no root")
        return BufferId(
            self._buffers.append(
                tile=self._buffers["tile"][root],
                byte_count=byte_count,
                alignment=alignment,
                interleaved=self._buffers["interleaved"][root],
                tail=tail,
                root=root,
                displacement=displacement,
                sequence=NO_ROW,
                member=0,
                role=int(Role.TEMPORARY),
                value=NO_ROW,
                shard=0,
                node=node,
            )
        )

    def sequence(self, members: Sequence[BufferId]) -> SequenceId:
        """Makes buffers the members of a new sequence, in this order.

        Raises:
            ValueError: there are none, or one of them is a member already.
        """
        if not members:
            raise ValueError("a sequence has at least one member")
        row = SequenceId(self._sequences.append(first=members[0], count=len(members)))
        for number, buffer in enumerate(members):
            if self._buffers["sequence"][buffer] != NO_ROW:
                raise ValueError(
                    f"buffer {buffer} is in sequence {self._buffers['sequence'][buffer]} already"
                )
            self._buffers["sequence"][buffer] = row
            self._buffers["member"][buffer] = number
        self._members.append(tuple(members))
        return row

    def view(
        self,
        buffer: BufferId,
        form: LocalOperand | None,
        *,
        origin: int = 0,
        sequence: SequenceId = NO_SEQUENCE,
    ) -> ViewId:
        """Adds what a call sees of a buffer; no form where it takes bytes without elements."""
        row = NO_ROW if form is None else _intern(self._forms, form)
        return ViewId(self._views.append(buffer=buffer, origin=origin, sequence=sequence, form=row))

    def compute_step(self) -> StepId:
        """Appends a compute step to the program, or to the Repeat that is open."""
        step = self._next_step()
        self._open.append(ComputeStep(step=step))
        return step

    def exchange_step(self) -> StepId:
        """Appends an exchange step to the program, or to the Repeat that is open."""
        step = self._next_step()
        self._open.append(ExchangeStep(step=step))
        return step

    @contextmanager
    def repeat(self, count: int) -> Generator[StepId]:
        """Appends a Repeat; steps appended while it is open are its body."""
        step = self._next_step()
        outer, body = self._open, list[Step]()
        self._open = body
        yield step
        self._open = outer
        outer.append(RepeatStep(step=step, count=count, body=tuple(body)))

    def call(self, step: StepId, binding: Binding, views: Sequence[ViewId], node: NodeId) -> CallId:
        """Appends a call, and the separations that its binding wants.

        Args:
            step: compute step.
            binding: what is called.
            views: one for each result, then one for each operand.
            node: graph node it works for.

        Raises:
            ValueError: not one view for each.
        """
        if len(views) != len(binding.accesses):
            raise ValueError(f"{binding.symbol} has {len(binding.accesses)} accesses, not {len(views)}")
        buffers = [BufferId(self._views["buffer"][view]) for view in views]
        sequences = [SequenceId(self._views["sequence"][view]) for view in views]
        row = self._calls.append(
            step=step,
            tile=self._buffers["tile"][buffers[0]],
            binding=_intern(self._bindings, binding),
            first_view=len(self._operand_views),
            node=node,
        )
        self._operand_views += views
        self._separate(binding, list(zip(buffers, sequences, strict=True)))
        return CallId(row)

    def copy(
        self,
        step: StepId,
        binding: Binding,
        *,
        source: AddressOperand,
        destination: AddressOperand,
        rows: int,
        row_bytes: int,
        source_stride: int,
        destination_stride: int,
        node: NodeId,
    ) -> CopyId:
        """Appends a local copy, and the separations that its binding wants; numbers as in ``Copies``."""
        row = self._copies.append(
            step=step,
            tile=self._buffers["tile"][destination.buffer],
            binding=_intern(self._bindings, binding),
            source=source.buffer,
            source_displacement=source.displacement,
            source_sequence=source.sequence,
            destination=destination.buffer,
            destination_displacement=destination.displacement,
            destination_sequence=destination.sequence,
            rows=rows,
            row_bytes=row_bytes,
            source_stride=source_stride,
            destination_stride=destination_stride,
            node=node,
        )
        self._separate(
            binding, [(destination.buffer, destination.sequence), (source.buffer, source.sequence)]
        )
        return CopyId(row)

    def transfer(
        self,
        step: StepId,
        *,
        source: AddressOperand,
        byte_count: int,
        recipients: Sequence[AddressOperand],
        node: NodeId,
    ) -> TransferId:
        """Appends a transfer to ``recipients``, which ascend by tile."""
        row = self._transfers.append(
            step=step,
            source=source.buffer,
            source_displacement=source.displacement,
            source_sequence=source.sequence,
            byte_count=byte_count,
            first_recipient=len(self._recipients),
            node=node,
        )
        for recipient in recipients:
            self._recipients.append(
                transfer=row,
                destination=recipient.buffer,
                destination_displacement=recipient.displacement,
                destination_sequence=recipient.sequence,
            )
        return TransferId(row)

    def finish(self) -> LowProgram:
        """The program. The builder can be used further; what it appends later is not part of it."""
        calls = self._calls.columns()
        calls["operand_views"] = _column(self._operand_views)
        return LowProgram(
            tile_count=self._tile_count,
            steps=tuple(self._steps),
            buffers=_table(Buffers, self._buffers.columns()),
            sequences=_table(Sequences, self._sequences.columns()),
            separations=_table(Separations, self._separations.columns()),
            forms=tuple(self._forms),
            views=_table(Views, self._views.columns()),
            bindings=tuple(self._bindings),
            calls=_table(Calls, calls),
            copies=_table(Copies, self._copies.columns()),
            transfers=_table(Transfers, self._transfers.columns()),
            recipients=_table(Recipients, self._recipients.columns()),
            values=tuple(self._values),
            nodes=tuple(self._nodes),
        )

    def _next_step(self) -> StepId:
        self._step_count += 1
        return StepId(self._step_count - 1)

    def _separate(self, binding: Binding, named: Sequence[tuple[BufferId, SequenceId]]) -> None:
        """Records the binding's separations for the buffers that its accesses name, in the same order."""
        for references in binding.separate:
            meant = [self._meant(*named[binding.position(reference)]) for reference in references]
            iterations = max(map(len, meant))
            for iteration in range(iterations):
                # What does not walk along a sequence is the same buffer in every iteration.
                first, second = sorted(buffers[min(iteration, len(buffers) - 1)] for buffers in meant)
                if (first, second) not in self._separated:
                    self._separated.add((first, second))
                    self._separations.append(first=first, second=second)

    def _meant(self, buffer: BufferId, sequence: SequenceId) -> tuple[BufferId, ...]:
        return (buffer,) if sequence == NO_ROW else self._members[sequence]


@final
class _Rows:
    """The columns of a table while it grows.

    Args:
        of: the frozen table.
        without: a column of it that does not have one number for each row.
    """

    def __init__(self, of: type, without: str | None = None) -> None:
        names = [field.name for field in dataclasses.fields(of) if field.name != without]
        self._columns: dict[str, list[int]] = {name: [] for name in names}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, name: str) -> list[int]:
        return self._columns[name]

    def append(self, **row: int) -> int:
        """Adds a row, which names every column; gives its number."""
        for name, values in self._columns.items():
            values.append(row[name])
        self._count += 1
        return self._count - 1

    def columns(self) -> dict[str, Column]:
        return {name: _column(values) for name, values in self._columns.items()}


def _table(of: Callable[..., T], columns: dict[str, Column]) -> T:
    return of(**columns)


def _column(values: Sequence[int]) -> Column:
    column = np.array(values, dtype=np.int64)
    column.flags.writeable = False
    return column


def _intern(rows: dict[T, int], value: T) -> int:
    return rows.setdefault(value, len(rows))
