"""The low program: what every tile does, before addresses.

The whole language is on this page. A program is an order of **steps** and a few **tables**. A step is compute
(tiles run calls and local copies), exchange (bytes move between tiles) or a Repeat of steps. The tables hold
a row for each thing that lives on one tile:

============  =========================================================================================
``Buffers``   a span of SRAM of one tile: size, alignment, class, tail, and what it shares with others
``Sequences`` equally large buffers of one tile that a Repeat visits one after another, at one stride
``Views``     what a call sees of a buffer: origin in bytes, and interned strides and coordinates (``forms``)
``Calls``     a step runs one checked kernel binding (interned in ``bindings``) on a tile
``Copies``    a step moves bytes inside a tile, as rows with strides, through a binding of the copy family
``Transfers`` an exchange step sends bytes of a tile; their ``Recipients`` are rows of their own
============  =========================================================================================

This is the one authority on which work exists: passes that change work rewrite these tables, and per-tile
work lists are a projection of them that removes nothing (AL-01 .. AL-06). Tables are frozen records of NumPy
columns that cannot be written; ``compiler.low.build`` makes them. Byte counts and displacements are bytes;
words and items exist only in exchange timing.

**Order.** Steps run in order. In a compute step each tile runs its copies of that step, in row order, then
its calls, in row order; tiles do not wait for each other, and neither do compute steps that follow one
another, so a program that wants another order on a tile takes another compute step. In an exchange step all
transfers are one phase; where the bytes of two meet on a tile (one sends what the other delivers, or delivers
over what the other sends), row order says which comes first, and the exchange scheduler keeps it.

**Address operands.** Wherever a row names memory it gives a buffer, a displacement in bytes from the buffer's
start, and a sequence or none. With a sequence, the buffer is its first member, the innermost Repeat around
the step counts the iterations, and iteration i means member i (``compiler.low.address`` resolves all of
them). Members are allocated on their own: none shares the storage of another buffer.

**Sharing.** A buffer with ``root`` other than itself lies at a fixed distance, ``displacement`` bytes, from
the start of its root and shares at least one byte with it; the distance is negative where a result begins
before the operand whose storage it takes over. Only roots are placed freely, and a root is nobody's alias.
``separations`` lists pairs of buffers that must not share a memory element, access tails included, for as
long as both are live.

**Lifetimes** follow from use: a temporary lives from the first step that writes it to the last that reads it;
inputs, outputs and parameters live for the whole program, so that weights stay resident between runs.

**Scratch that must be finite** (AL-02). What a temporary holds before it is written is anything, NaN
included. A kernel that reads padding nobody writes needs more: the buffer is *cleared*. Its requirement is
met by three: the package has zeros for it, so that it is zero when the program is loaded; placement gives it
memory for the whole program, so that nothing else is ever written there; and the program, as its verifier
checks, uses such zeros only where no row of it writes, so that they are there in every run. Finite alone
would not do: a NaN of one run, left in memory that is shared, would be in the padding of the next.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.geometry.layout import TensorFormat
from compiler.geometry.operand import LocalOperand
from compiler.geometry.owners import OwnerMap
from compiler.kernels.contract import Binding
from compiler.low.ids import StepId

Column: TypeAlias = npt.NDArray[np.int64]
"""One integer per row."""


class Role(IntEnum):
    """What a buffer's bytes are to the world outside of the program."""

    TEMPORARY = 0
    """Nothing: written and read by the program."""
    PARAMETER = 1
    """Written by the host once; resident."""
    INPUT = 2
    """Written by the host before each run."""
    OUTPUT = 3
    """Read by the host after each run."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeStep:
    """Tiles run their copies of this step, then their calls, without talking to each other."""

    step: StepId


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeStep:
    """One exchange phase: all transfers of this step."""

    step: StepId


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatStep:
    """A body run ``count`` times. Bodies hold no further Repeat yet (AL-09)."""

    step: StepId
    count: int
    body: tuple["Step", ...]


Step: TypeAlias = ComputeStep | ExchangeStep | RepeatStep


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Buffers:
    """Spans of SRAM.

    Args:
        tile: logical tile.
        byte_count: bytes, padding included.
        alignment: the start is a multiple of so many bytes.
        interleaved: 1 if it must lie in the interleaved region, else 0 and either region will do.
        cleared: 1 if it is zero when the program is loaded and never lends its memory to another, else 0 and
            it begins with anything.
        tail: bytes after the end that kernels may read and that must be mapped, whatever they hold.
        root: the buffer whose storage this one shares; itself if it is placed on its own.
        displacement: bytes from the root's start, signed; 0 for a root.
        sequence: the sequence it is a member of, or NO_ROW.
        member: its place in the sequence; 0 without one.
        role: ``Role``.
        value: row of ``values`` that it is a shard of, or NO_ROW.
        shard: which shard of that value; 0 without one.
        node: graph node it exists for, row of ``nodes``.
    """

    tile: Column
    byte_count: Column
    alignment: Column
    interleaved: Column
    cleared: Column
    tail: Column
    root: Column
    displacement: Column
    sequence: Column
    member: Column
    role: Column
    value: Column
    shard: Column
    node: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sequences:
    """Buffers visited by a Repeat; placement gives each sequence one base and one stride.

    Args:
        first: its member 0; the others are the buffers that name the sequence.
        count: number of members.
    """

    first: Column
    count: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Separations:
    """Pairs of buffers of one tile that must not share a memory element."""

    first: Column
    second: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Views:
    """What calls see.

    Args:
        buffer: the buffer.
        origin: bytes from the buffer's start to the form's backing storage.
        sequence: sequence that the operand walks along, or NO_ROW.
        form: row of ``forms``: strides, coordinates, precision, order; NO_ROW where the call takes bytes
            without elements.
    """

    buffer: Column
    origin: Column
    sequence: Column
    form: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Calls:
    """Kernel calls.

    Args:
        step: compute step.
        tile: logical tile.
        binding: row of ``bindings``.
        first_view: where the call's operands begin in ``operand_views``; results first, then operands, in
            the binding's numbering. The end is ``first_view`` plus the binding's count of both.
        operand_views: [all operands of all calls] rows of ``Views``.
        node: graph node, row of ``nodes``.
    """

    step: Column
    tile: Column
    binding: Column
    first_view: Column
    operand_views: Column
    node: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Copies:
    """Byte copies inside a tile: ``rows`` runs of ``row_bytes``, with a stride on either side.

    The columns say what moves; the binding, one result and one operand of bytes, says by which kernel. They
    agree.

    Args:
        step: compute step.
        tile: logical tile.
        binding: row of ``bindings``, of the copy family.
        source: buffer; source_displacement, source_sequence: the rest of its address operand.
        destination: buffer; destination_displacement, destination_sequence: the rest.
        rows: number of runs.
        row_bytes: bytes of each.
        source_stride: bytes from run to run; row_bytes when contiguous.
        destination_stride: the same at the destination.
        node: graph node, row of ``nodes``.
    """

    step: Column
    tile: Column
    binding: Column
    source: Column
    source_displacement: Column
    source_sequence: Column
    destination: Column
    destination_displacement: Column
    destination_sequence: Column
    rows: Column
    row_bytes: Column
    source_stride: Column
    destination_stride: Column
    node: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Transfers:
    """Bytes that leave a tile in an exchange step.

    Args:
        step: exchange step.
        source: buffer; source_displacement, source_sequence: the rest of its address operand.
        byte_count: a multiple of 4, at a 4-byte boundary.
        first_recipient: where its recipients begin in ``Recipients``; they end where the next row's begin.
        node: graph node, row of ``nodes``.
    """

    step: Column
    source: Column
    source_displacement: Column
    source_sequence: Column
    byte_count: Column
    first_recipient: Column
    node: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipients:
    """Who takes a transfer: all bytes of it, each at an address of its own.

    The recipients of one transfer are on distinct tiles, in ascending order; the sender's may be among them.

    Args:
        transfer: row of ``Transfers``, ascending.
        destination: buffer; destination_displacement, destination_sequence: the rest of its address operand.
    """

    transfer: Column
    destination: Column
    destination_displacement: Column
    destination_sequence: Column


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HostValue:
    """A tensor that the host writes or reads; its shards are the buffers that name it.

    Args:
        name: as the user knows it.
        role: parameter, input or output.
        shape: logical extents.
        format: precision and layout.
        owners: owner number to logical tile.
    """

    name: str
    role: Role
    shape: tuple[int, ...]
    format: TensorFormat
    owners: OwnerMap


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LowProgram:
    """A complete program. ``compiler.low.verify`` says when one is well formed.

    Args:
        tile_count: tiles of the build.
        steps: the program, in order.
        forms: interned operand geometry.
        bindings: interned kernel bindings.
        values: tensors of the host.
        nodes: names of graph nodes, for provenance.
    """

    tile_count: int
    steps: tuple[Step, ...]
    buffers: Buffers
    sequences: Sequences
    separations: Separations
    forms: tuple[LocalOperand, ...]
    views: Views
    bindings: tuple[Binding, ...]
    calls: Calls
    copies: Copies
    transfers: Transfers
    recipients: Recipients
    values: tuple[HostValue, ...]
    nodes: tuple[str, ...]
