"""The only way to make a low program: an arena to which rows are appended.

Appending records and does nothing else (LC-01, LC-02): no call is split, recognized or moved, no phase is
merged, nothing is checked beyond what makes a row meaningless. Whoever appends has decided. ``finish`` turns
the rows into read-only columns; ``compiler.low.verify`` then says whether they are a program.

Rows can be appended singly or, by the methods with plural names, many at a time as columns: a program has
few kinds of work, each on a thousand tiles. Both make the same rows.

Two things are interned, since thousands of tiles repeat them: the geometry of views (``forms``) and kernel
bindings. One thing is derived, because the rows already say it: the pairs of buffers in ``separations``, each
once, and one for each iteration where operands walk along sequences. They are those that a binding wants in
separate memory elements, and what a tile sends and receives itself in one transfer.
"""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import ranges
from compiler.geometry.layout import MemoryClass
from compiler.geometry.operand import LocalOperand
from compiler.kernels.contract import Binding
from compiler.low.address import AddressOperand, AddressOperands
from compiler.low.growing import GrowingTable
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
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AddressColumns:
    """Memory that many rows name: as ``AddressOperand``, with columns or one number for all.

    Args:
        buffer: [rows].
        displacement: bytes from the buffer's start.
        sequence: sequence to walk along, or NO_ROW.
    """

    buffer: Column
    displacement: Column | int = 0
    sequence: Column | int = NO_ROW


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
        self._buffers = GrowingTable(Buffers)
        self._sequences = GrowingTable(Sequences)
        self._members: list[tuple[BufferId, ...]] = []
        self._separations = GrowingTable(Separations)
        self._views = GrowingTable(Views)
        self._calls = GrowingTable(Calls, without="operand_views")
        self._operand_views: list[npt.NDArray[np.int64]] = []
        self._operand_view_count = 0
        self._copies = GrowingTable(Copies)
        self._transfers = GrowingTable(Transfers)
        self._recipients = GrowingTable(Recipients)
        self._step_count = 0
        self._steps: list[Step] = []
        self._open = self._steps

    def node(self, name: str) -> NodeId:
        """The row of a graph node, added when it is new."""
        return NodeId(_intern(self._nodes, name))

    def name_of(self, node: NodeId) -> str:
        """The graph node of a row."""
        return next(name for name, row in self._nodes.items() if row == node)

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
                cleared=0,
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
                tile=int(self._buffers["tile"][root]),
                byte_count=byte_count,
                alignment=alignment,
                interleaved=int(self._buffers["interleaved"][root]),
                cleared=0,
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

    def roots(self, buffers: Column) -> tuple[Column, Column]:
        """The buffers whose storage these share, and how many bytes from their starts these begin."""
        return self._buffers["root"][buffers], self._buffers["displacement"][buffers]

    def is_in_sequence(self, buffers: Column) -> bool:
        """Whether one of these buffers is a member of a sequence."""
        return bool((self._buffers["sequence"][buffers] != NO_ROW).any())

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
        buffers = [BufferId(int(self._views["buffer"][view])) for view in views]
        sequences = [SequenceId(int(self._views["sequence"][view])) for view in views]
        row = self._calls.append(
            step=step,
            tile=int(self._buffers["tile"][buffers[0]]),
            binding=_intern(self._bindings, binding),
            first_view=self._operand_view_count,
            node=node,
        )
        self._append_operand_views(np.array(views, dtype=np.int64))
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
            tile=int(self._buffers["tile"][destination.buffer]),
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
        for recipient in recipients:
            if self._buffers["tile"][recipient.buffer] == self._buffers["tile"][source.buffer]:
                self._separate_pair((recipient.buffer, recipient.sequence), (source.buffer, source.sequence))
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

    def buffers(
        self,
        *,
        tile: Column,
        byte_count: Column | int,
        alignment: Column | int,
        node: NodeId,
        memory_class: MemoryClass = MemoryClass.STANDARD,
        tail: Column | int = 0,
        role: Role = Role.TEMPORARY,
        value: ValueId = NO_VALUE,
        shard: Column | int = 0,
    ) -> Column:
        """Adds many buffers, one for each of ``tile``, as :meth:`buffer` does; gives their numbers."""
        first = len(self._buffers)
        return self._buffers.extend(
            len(tile),
            {
                "tile": tile,
                "byte_count": byte_count,
                "alignment": alignment,
                "interleaved": int(memory_class is MemoryClass.INTERLEAVED),
                "cleared": 0,
                "tail": tail,
                "root": np.arange(first, first + len(tile), dtype=np.int64),
                "displacement": 0,
                "sequence": NO_ROW,
                "member": 0,
                "role": int(role),
                "value": value,
                "shard": shard,
                "node": node,
            },
        )

    def aliases(
        self,
        root: Column,
        *,
        displacement: Column | int,
        byte_count: Column | int,
        alignment: Column | int,
        node: NodeId,
        tail: Column | int = 0,
    ) -> Column:
        """Adds many temporaries that share storage, as :meth:`alias` does; gives their numbers.

        Raises:
            ValueError: something in ``root`` shares the storage of another buffer itself.
        """
        roots = self._buffers["root"][root]
        if (roots != root).any():
            at = int(np.flatnonzero(roots != root)[0])
            raise ValueError(f"buffer {root[at]} shares the storage of {roots[at]} and is no root")
        return self._buffers.extend(
            len(root),
            {
                "tile": self._buffers["tile"][root],
                "byte_count": byte_count,
                "alignment": alignment,
                "interleaved": self._buffers["interleaved"][root],
                "cleared": 0,
                "tail": tail,
                "root": root,
                "displacement": displacement,
                "sequence": NO_ROW,
                "member": 0,
                "role": int(Role.TEMPORARY),
                "value": NO_ROW,
                "shard": 0,
                "node": node,
            },
        )

    def sequences(self, members: Column) -> Column:
        """Makes each row of ``members`` [sequences, count] a new sequence, in order; gives their numbers.

        Raises:
            ValueError: as :meth:`sequence`.
        """
        return np.array(
            [self.sequence([BufferId(b) for b in row]) for row in members.tolist()], dtype=np.int64
        )

    def calls(self, step: StepId, binding: Binding, views: Sequence[AddressColumns], node: NodeId) -> Column:
        """Appends many calls of one binding, as :meth:`view` and :meth:`call` do; gives their numbers.

        Args:
            step: compute step.
            binding: what is called, on every tile.
            views: what is seen, for each result, then for each operand: the storage of each call.
            node: graph node they work for.

        Raises:
            ValueError: not one view for each.
        """
        if len(views) != len(binding.accesses):
            raise ValueError(f"{binding.symbol} has {len(binding.accesses)} accesses, not {len(views)}")
        count = len(views[0].buffer)
        rows: list[npt.NDArray[np.int64]] = []
        for view, access in zip(views, binding.accesses, strict=True):
            form = NO_ROW if access.operand is None else _intern(self._forms, access.operand)
            rows.append(
                self._views.extend(
                    count,
                    {
                        "buffer": view.buffer,
                        "origin": view.displacement,
                        "sequence": view.sequence,
                        "form": form,
                    },
                )
            )
        operand_views = np.stack(rows, axis=1).reshape(-1)
        calls = self._calls.extend(
            count,
            {
                "step": step,
                "tile": self._buffers["tile"][views[0].buffer],
                "binding": _intern(self._bindings, binding),
                "first_view": self._operand_view_count + np.arange(count, dtype=np.int64) * len(views),
                "node": node,
            },
        )
        self._append_operand_views(operand_views)
        self._separate_all(
            binding,
            AddressOperands(
                buffer=self._views["buffer"][operand_views],
                displacement=self._views["origin"][operand_views],
                sequence=self._views["sequence"][operand_views],
            ),
        )
        return calls

    def copies(
        self,
        step: StepId,
        binding: Binding,
        *,
        source: AddressColumns,
        destination: AddressColumns,
        rows: int,
        row_bytes: int,
        source_stride: int,
        destination_stride: int,
        node: NodeId,
    ) -> Column:
        """Appends many local copies of one binding, as :meth:`copy` does; gives their numbers."""
        count = len(source.buffer)
        added = self._copies.extend(
            count,
            {
                "step": step,
                "tile": self._buffers["tile"][destination.buffer],
                "binding": _intern(self._bindings, binding),
                "source": source.buffer,
                "source_displacement": source.displacement,
                "source_sequence": source.sequence,
                "destination": destination.buffer,
                "destination_displacement": destination.displacement,
                "destination_sequence": destination.sequence,
                "rows": rows,
                "row_bytes": row_bytes,
                "source_stride": source_stride,
                "destination_stride": destination_stride,
                "node": node,
            },
        )
        both = [
            np.stack([np.broadcast_to(np.asarray(side), count) for side in sides], axis=1).reshape(-1)
            for sides in (
                (destination.buffer, source.buffer),
                (destination.displacement, source.displacement),
                (destination.sequence, source.sequence),
            )
        ]
        self._separate_all(binding, AddressOperands(buffer=both[0], displacement=both[1], sequence=both[2]))
        return added

    def transfers(
        self,
        step: StepId,
        *,
        source: AddressColumns,
        byte_count: Column,
        recipient_count: Column,
        recipients: AddressColumns,
        node: NodeId,
    ) -> Column:
        """Appends many transfers; gives their numbers.

        Args:
            step: exchange step.
            source: what each sends.
            byte_count: how much.
            recipient_count: how many recipients each has.
            recipients: those of all transfers, one after another; those of one ascend by tile.
            node: graph node they work for.
        """
        self._separate_loopback(source, recipient_count, recipients)
        first = len(self._recipients)
        rows = self._transfers.extend(
            len(byte_count),
            {
                "step": step,
                "source": source.buffer,
                "source_displacement": source.displacement,
                "source_sequence": source.sequence,
                "byte_count": byte_count,
                "first_recipient": first + np.cumsum(recipient_count) - recipient_count,
                "node": node,
            },
        )
        self._recipients.extend(
            len(recipients.buffer),
            {
                "transfer": np.repeat(rows, recipient_count),
                "destination": recipients.buffer,
                "destination_displacement": recipients.displacement,
                "destination_sequence": recipients.sequence,
            },
        )
        return rows

    def require_tails(self) -> None:
        """Gives each buffer the tail that its calls may read, as their bindings say (RP-01).

        Members of a sequence get the longest of theirs.
        """
        facts = [[(access.extent[1] + access.tail) for access in b.accesses] for b in self._bindings]
        reach = np.array([end for ends in facts for end in ends], dtype=np.int64)
        counts = np.array([len(ends) for ends in facts], dtype=np.int64)
        binding = self._calls["binding"]
        position = ranges(counts[binding])
        access = np.repeat((np.cumsum(counts) - counts)[binding], counts[binding]) + position
        view = _column(self._operand_views)
        buffer, tail = self._views["buffer"][view], self._buffers["tail"]
        past = self._views["origin"][view] + reach[access] - self._buffers["byte_count"][buffer]
        np.maximum.at(tail, buffer, past)
        sequence = self._buffers["sequence"]
        members = np.flatnonzero(sequence != NO_ROW)
        longest = np.zeros(len(self._sequences), dtype=np.int64)
        np.maximum.at(longest, sequence[members], tail[members])
        tail[members] = longest[sequence[members]]

    def finish(self) -> LowProgram:
        """The program. The builder can be used further; what it appends later is not part of it."""
        calls = self._calls.columns()
        calls["operand_views"] = _column(self._operand_views)
        separations = self._separations.columns()
        pairs = np.stack([separations["first"], separations["second"]], axis=1)
        distinct = np.sort(np.unique(pairs, axis=0, return_index=True)[1])
        return LowProgram(
            tile_count=self._tile_count,
            steps=tuple(self._steps),
            buffers=_table(Buffers, self._buffers.columns()),
            sequences=_table(Sequences, self._sequences.columns()),
            separations=_table(
                Separations, {name: _column([column[distinct]]) for name, column in separations.items()}
            ),
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

    def _append_operand_views(self, views: npt.NDArray[np.int64]) -> None:
        self._operand_views.append(views)
        self._operand_view_count += len(views)

    def _separate(self, binding: Binding, named: Sequence[tuple[BufferId, SequenceId]]) -> None:
        """Records the binding's separations for the buffers that its accesses name, in the same order."""
        for references in binding.separate:
            self._separate_pair(*(named[binding.position(reference)] for reference in references))

    def _separate_pair(self, one: tuple[BufferId, SequenceId], other: tuple[BufferId, SequenceId]) -> None:
        """Records that two operands may share no memory element in any iteration."""
        meant = [self._meant(*one), self._meant(*other)]
        for iteration in range(max(map(len, meant))):
            # What does not walk along a sequence is the same buffer in every iteration.
            first, second = sorted(buffers[min(iteration, len(buffers) - 1)] for buffers in meant)
            self._separations.append(first=first, second=second)

    def _separate_loopback(
        self, source: AddressColumns, recipient_count: Column, recipients: AddressColumns
    ) -> None:
        """A tile that receives what it sends reads and writes at the same time: in different elements."""
        tile, count = self._buffers["tile"], len(recipients.buffer)
        sender = np.repeat(source.buffer, recipient_count)
        walked = (
            np.repeat(np.broadcast_to(source.sequence, len(source.buffer)), recipient_count),
            np.broadcast_to(recipients.sequence, count),
        )
        loops = np.flatnonzero(tile[sender] == tile[recipients.buffer])
        pairs = np.stack(
            [sender[loops], recipients.buffer[loops], *(column[loops] for column in walked)], axis=1
        )
        for first, second, one, other in np.unique(pairs, axis=0).tolist():
            self._separate_pair((first, one), (second, other))

    def _separate_all(self, binding: Binding, named: AddressOperands) -> None:
        """The same for calls of one binding, whose operands [calls x accesses] follow one another."""
        if not binding.separate:
            return
        accesses = len(binding.accesses)
        if (named.sequence == NO_ROW).all():
            buffers = named.buffer.reshape(-1, accesses)
            for references in binding.separate:
                pair = buffers[:, [binding.position(reference) for reference in references]]
                self._separations.extend(len(pair), {"first": pair.min(axis=1), "second": pair.max(axis=1)})
            return
        for first in range(0, len(named), accesses):
            operands = [named.row(row) for row in range(first, first + accesses)]
            self._separate(binding, [(operand.buffer, operand.sequence) for operand in operands])

    def _meant(self, buffer: BufferId, sequence: SequenceId) -> tuple[BufferId, ...]:
        return (buffer,) if sequence == NO_ROW else self._members[sequence]


def _table(of: Callable[..., T], columns: dict[str, Column]) -> T:
    return of(**columns)


def _column(parts: Sequence[Column]) -> Column:
    column = np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)
    column.flags.writeable = False
    return column


def _intern(rows: dict[T, int], value: T) -> int:
    return rows.setdefault(value, len(rows))
