"""How a copy is realized: the single owner of the way from a mapping to transfers, copies and calls (MG-10).

A copy has a destination and, for each box of it, a source and a coordinate mapping: one box for most copies,
several for a concatenation. What is done is a chain of elementary movements, over buffers that exist before
costs and placement (MG-08):

*exchange*
    Runs that are contiguous on both sides are sent as they are. Where nobody needs bytes of another tile,
    they are copied inside of tiles instead.
*rearrange*
    A kernel brings a tile's shard into another element order; it is the same coordinates before and after.
    Kernels go between row-major and panels: from panels to other panels it takes two, through rows.
*padding included*
    Runs that are none only because padding is left out are sent with it: it is zero on both sides.
*cut out*
    The words around runs that are none are sent, and the runs are copied out of them (``covers``).

A realization is an order in which the elements travel, and the chain follows from it: rearrange into that
order where the source is, exchange, rearrange out of it where the destination is.

=====================  ===========================  ======================================================
realization            travels in the order of      and so rearranges
=====================  ===========================  ======================================================
direct                 both                         never
rearranged             nothing                      once or twice: the same shards are on the same tiles
packed at source       the destination              before the exchange
packed at destination  the source                   after it
through rows           neither: row-major           before and after, from panels to other panels
with padding           both                         never; both are padded to the same extents
cut out of words       both                         never
=====================  ===========================  ======================================================

``realize`` reads: inspect, select, append. The facts come from geometry, which prices nothing; the selection
is ``_select``, which builds nothing: the cheapest realization that exists and that the copy's policy allows,
the first in the order of the table where two cost the same. An exchange moves whole words; an order in which
runs are none is no order to travel in. Where none of these exists, values travel with their padding. Where
they cannot, runs are cut out of the words around them: that moves whatever local copies can move, and takes
memory that no other realization takes.

Padding of the destination is zero (the meaning of a copy): it is cleared before anything arrives. So are
shards into which local copies write parts of words (``low.padding``).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, TypeAlias, assert_never, final

import numpy as np

from compiler.errors import Unsupported
from compiler.geometry.boxes import distinct_rows
from compiler.geometry.distribution import Distribution, distribute
from compiler.geometry.layout import MemoryClass, TensorFormat
from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.match import DESTINATION, SOURCE, Match
from compiler.geometry.operand import ORIGIN_MODULUS, LocalOperand, shard_operands
from compiler.geometry.order import ElementOrder, RowMajor, axis_multiples
from compiler.geometry.redistribution import Redistribution, redistribute
from compiler.geometry.relation import Identity
from compiler.geometry.tiling import AxisTiling, GridTiling, LinearTiling, Padding, round_up
from compiler.geometry.traversal import Loops
from compiler.kernels.contract import Binding, Refusal
from compiler.kernels.copy.binding import CopyParameters, Kind
from compiler.kernels.rearrange.binding import RearrangeParameters
from compiler.kernels.registry import bind
from compiler.low.accesses import spans_of
from compiler.low.build import AddressColumns, LowBuilder
from compiler.low.covers import Covers, covers_of
from compiler.low.deliveries import Part, append_transfers, part_of, phase_loads
from compiler.low.ids import NO_ROW, NodeId, StepId
from compiler.low.ir import Column
from compiler.low.limits import STAGE, refuse_phase
from compiler.low.padding import Mask, clear_before, has_padding
from compiler.low.storage import Stored, allocate, scratch, stored_in
from compiler.mid.ir import MovementPolicy
from compiler.target.costs import KERNEL_LAUNCH
from compiler.target.units import Bytes, Cycles


class Realization(Enum):
    """The chains of the table above, in its order."""

    DIRECT = "direct"
    REARRANGED = "rearranged"
    PACKED_AT_SOURCE = "packed at source"
    PACKED_AT_DESTINATION = "packed at destination"
    THROUGH_ROWS = "through rows"
    WITH_PADDING = "with padding"
    CUT_OUT = "cut out of words"


ALLOWED: Final = {
    MovementPolicy.AUTOMATIC: tuple(Realization),
    MovementPolicy.DIRECT: (Realization.DIRECT, Realization.WITH_PADDING),
    MovementPolicy.PACK_AT_SOURCE: (Realization.REARRANGED, Realization.PACKED_AT_SOURCE),
    MovementPolicy.PACK_AT_DESTINATION: (Realization.REARRANGED, Realization.PACKED_AT_DESTINATION),
}
"""What each policy of a copy leaves to choose from."""

_LAST: Final = (Realization.WITH_PADDING, Realization.CUT_OUT)
"""What is looked at where nothing else exists, in this order."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """A realization that does not exist, and why."""

    reason: str


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Source:
    """What fills a box of a copy's destination.

    Args:
        stored: the value that is read.
        mapping: from coordinates of the box, counted from its start, to those of the value.
        start: where the box begins in the destination; None for a box that is all of it.
    """

    stored: Stored
    mapping: CoordinateMapping
    start: tuple[int, ...] | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Exchange:
    """Bytes to a value as they are stored: of each source, what is sent and what is copied on its tile."""

    parts: tuple[Part, ...]
    destination: Stored

    @property
    def is_local(self) -> bool:
        """Whether nothing is sent."""
        return not any(part.sent.any() for part in self.parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Rearrange:
    """Shards from one order to another on their tiles.

    Args:
        source: what is read.
        destination: what is written; the same coordinates on every tile.
        bindings: distinct calls.
        owners: [bindings] owners (of the destination, of the source) that make each.
    """

    source: Stored
    destination: Stored
    bindings: tuple[Binding, ...]
    owners: tuple[tuple[Column, Column], ...]

    @property
    def cycles(self) -> Cycles:
        """Of the slowest tile, estimated."""
        return Cycles(max((binding.cycles for binding in self.bindings), default=0))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _CutOut:
    """Runs of a value that are cut out of the words around them.

    Args:
        sources: the values that are read.
        parts: the covers of what each contributes.
        destination: the value that is filled.
    """

    sources: tuple[Stored, ...]
    parts: tuple[Covers, ...]
    destination: Stored

    @property
    def stack_bytes(self) -> Column:
        """[owners of the destination] bytes of the words that each receives."""
        return self.parts[-1].stack_bytes[self.destination.distribution.shard_of_owner]


_Movement: TypeAlias = _Exchange | _Rearrange | _CutOut


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Option:
    """A realization that exists.

    Args:
        realization: which.
        cycles: of the slowest tile, estimated.
        chain: what is done, in order. Each movement reads what the one before it fills, which has no buffers
            before the option is selected.
    """

    realization: Realization
    cycles: Cycles
    chain: tuple[_Movement, ...]


def realize(
    build: LowBuilder,
    sources: Sequence[Source],
    destination: Stored,
    *,
    policy: MovementPolicy,
    tile_count: int,
    node: NodeId,
    node_name: str,
) -> Realization:
    """Appends what fills a value from others; says how.

    Args:
        build: the program.
        sources: what is read, for boxes that together are all of the destination.
        destination: what is filled, padding included.
        policy: which realizations are allowed.
        tile_count: tiles of the build.
        node: graph node that it works for.
        node_name: its name.

    Raises:
        Unsupported: no allowed realization exists.
        DoesNotFit: the cheapest has too many transfers for a tile.
    """
    chosen = _choose(sources, destination, policy, tile_count)
    if isinstance(chosen, Impossible):
        read = " and ".join(_text(source.stored.distribution) for source in sources)
        raise Unsupported(
            f"no movement takes {read} to {_text(destination.distribution)}: {chosen.reason}",
            stage=STAGE,
            subject=node_name,
            next_step="make the extents multiples of 4, or choose another layout for one of the two",
            nodes=(node_name,),
        )
    _append(build, chosen, node, tile_count)
    return chosen.realization


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What a copy costs, estimated.

    Args:
        realization: how it would be done.
        cycles: of the slowest tile.
        phases: exchange phases among them.
        staging_bytes: the most that a tile needs for the values between movements.
    """

    realization: Realization
    cycles: Cycles
    phases: int
    staging_bytes: Bytes


def price(
    sources: Sequence[Source],
    destination: Stored,
    policy: MovementPolicy,
    tile_count: int,
) -> Price | Impossible:
    """What :func:`realize` would do and what that costs; nothing is built, and no buffers are needed."""
    chosen = _choose(sources, destination, policy, tile_count)
    if isinstance(chosen, Impossible):
        return chosen
    staging = sum(
        int(movement.destination.distribution.storage_bytes.max(initial=0)) for movement in chosen.chain[:-1]
    ) + sum(
        int(movement.stack_bytes.max(initial=0)) for movement in chosen.chain if isinstance(movement, _CutOut)
    )
    return Price(
        realization=chosen.realization,
        cycles=chosen.cycles,
        phases=sum(
            isinstance(part, _CutOut) or (isinstance(part, _Exchange) and not part.is_local)
            for part in chosen.chain
        ),
        staging_bytes=Bytes(staging),
    )


def _choose(
    sources: Sequence[Source],
    destination: Stored,
    policy: MovementPolicy,
    tile_count: int,
) -> "_Option | Impossible":
    """The selected realization, or why none exists."""
    found = [
        (realization, _inspect(realization, sources, destination, tile_count))
        for realization in ALLOWED[policy]
        if realization not in _LAST
    ]
    chosen = _select([option for _, option in found if isinstance(option, _Option)])
    if chosen is not None:
        return chosen
    for realization in (each for each in _LAST if each in ALLOWED[policy]):
        last = _inspect(realization, sources, destination, tile_count)
        if isinstance(last, _Option):
            return last
        found.append((realization, last))
    return Impossible(
        reason="; ".join(
            f"{realization.value}: {option.reason}"
            for realization, option in found
            if isinstance(option, Impossible)
        )
    )


def _inspect(
    realization: Realization, sources: Sequence[Source], destination: Stored, tile_count: int
) -> "_Option | Impossible":
    """The chain of a realization and what it costs, or why there is none."""
    if realization is Realization.DIRECT:
        chain = (_exchange(sources, destination, tile_count),)
    elif realization is Realization.CUT_OUT:
        chain = (_cut_out(sources, destination, tile_count),)
    elif len(sources) > 1:
        return Impossible(reason="there are several sources")
    elif realization is Realization.WITH_PADDING:
        chain = _with_padding(sources[0], destination, tile_count)
    elif realization is Realization.REARRANGED:
        if not sources[0].mapping.is_identity:
            return Impossible(reason="the coordinates change")
        chain = _rearrangements(sources[0].stored, destination, tile_count)
    else:
        chain = _travel(realization, sources[0], destination, tile_count)
    if isinstance(chain, Impossible):
        return chain
    cycles = 0
    for movement in chain:
        match movement:
            case _Rearrange():
                added: Cycles | Impossible = movement.cycles
            case _Exchange():
                added = _exchange_cycles(movement, tile_count)
            case _CutOut():
                added = _cut_out_cycles(movement, tile_count)
            case _:
                assert_never(movement)
        if isinstance(added, Impossible):
            return added
        cycles += added
    return _Option(realization=realization, cycles=Cycles(cycles), chain=chain)


def _travel(
    realization: Realization, source: Source, destination: Stored, tile_count: int
) -> tuple[_Movement, ...] | Impossible:
    """Into the order of travel, across, and out of it."""
    stored = source.stored
    orders = [value.distribution.format.layout.order for value in (stored, destination)]
    if orders[0] == orders[1]:
        return Impossible(reason="the order does not change")
    match realization:
        case Realization.PACKED_AT_SOURCE:
            order = orders[1]
        case Realization.PACKED_AT_DESTINATION:
            order = orders[0]
        case _:
            order = RowMajor()
            if order in orders:
                return Impossible(reason="one of the two is row-major")
    before: tuple[_Rearrange, ...] | Impossible = ()
    after: tuple[_Rearrange, ...] | Impossible = ()
    sent, filled = stored, destination
    if order != orders[0]:
        staged = _reordered(stored.distribution, order)
        if isinstance(staged, Impossible):
            return staged
        sent = unallocated(staged, stored.tile)
        before = _rearrangements(stored, sent, tile_count)
        if isinstance(before, Impossible):
            return before
    if order != orders[1]:
        staged = _reordered(destination.distribution, order)
        if isinstance(staged, Impossible):
            return staged
        filled = unallocated(staged, destination.tile)
        after = _rearrangements(filled, destination, tile_count)
        if isinstance(after, Impossible):
            return after
    return (*before, _exchange([Source(stored=sent, mapping=source.mapping)], filled, tile_count), *after)


def _select(options: Sequence[_Option]) -> _Option | None:
    """The cheapest, the first of equals."""
    return min(options, key=lambda option: option.cycles, default=None)


def _append(build: LowBuilder, option: _Option, node: NodeId, tile_count: int) -> None:
    """Appends the chain of an option, and the values between its movements."""
    between: Stored | None = None
    for number, link in enumerate(option.chain):
        movement = link if between is None else _out_of(link, between)
        if number + 1 < len(option.chain):
            filled = movement.destination
            between = allocate(build, filled.distribution, filled.tile, node)
            movement = dataclasses.replace(movement, destination=between)
        match movement:
            case _Exchange():
                _append_exchange(build, movement, node, tile_count)
            case _Rearrange():
                _append_rearrange(build, movement, node)
            case _CutOut():
                _append_cut_out(build, movement, node, tile_count)
            case _:
                assert_never(movement)


def _out_of(movement: _Movement, source: Stored) -> _Movement:
    """A movement from a value that has buffers now."""
    match movement:
        case _Exchange(parts=(part,)):
            return dataclasses.replace(movement, parts=(dataclasses.replace(part, source=source),))
        case _Exchange():
            raise AssertionError("what is between two movements is all that the second one reads")
        case _Rearrange():
            return dataclasses.replace(movement, source=source)
        case _CutOut():
            raise AssertionError("runs that are cut out of words are the whole of a chain")
        case _:
            assert_never(movement)


# Exchange: bytes as they are stored


def _exchange(sources: Sequence[Source], destination: Stored, tile_count: int) -> _Exchange:
    return _Exchange(
        parts=tuple(
            part_of(
                redistribute(
                    source.stored.distribution, destination.distribution, source.mapping, source.start
                ),
                source.stored,
                destination,
                tile_count,
            )
            for source in sources
        ),
        destination=destination,
    )


def _with_padding(source: Source, destination: Stored, tile_count: int) -> tuple[_Exchange] | Impossible:
    """The copy of a value as one whose elements its padding is, too."""
    if not source.mapping.is_identity:
        return Impossible(reason="the coordinates change")
    read, filled = (_padded(stored) for stored in (source.stored, destination))
    if read is None or filled is None or read.distribution.shape != filled.distribution.shape:
        return Impossible(reason="source and destination are not padded to the same extents")
    mapping = identity(filled.distribution.shape)
    return (_exchange([Source(stored=read, mapping=mapping)], filled, tile_count),)


def _padded(stored: Stored) -> Stored | None:
    """A value seen with its padding as elements; None where padding is more than extents rounded up."""
    distribution = stored.distribution
    tiling = distribution.format.layout.tiling
    if not isinstance(tiling, GridTiling):
        return None
    shape = list(distribution.shape)
    for cut in tiling.axes:
        if cut.padding_groups == 1:
            shape[cut.axis] = round_up(shape[cut.axis], cut.padding_multiple)
    padded = distribute(tuple(shape), distribution.format)
    is_all = np.array_equal(padded.storage_elements, distribution.storage_elements)
    return dataclasses.replace(stored, distribution=padded) if is_all and not has_padding(padded) else None


def _exchange_cycles(exchange: _Exchange, tile_count: int) -> Cycles | Impossible:
    destination = exchange.destination
    copied = np.zeros(tile_count, dtype=np.int64)
    for part in exchange.parts:
        refusal = add_copies(copied, part.facts, part.kept, destination)
        if refusal is not None:
            return refusal
    if exchange.is_local:
        return Cycles(int(copied.max(initial=0)))
    if not all(part.is_in_words for part in exchange.parts):
        return Impossible(reason="runs are not whole words")
    return Cycles(phase_loads(exchange.parts, destination, tile_count).cycles + int(copied.max(initial=0)))


def add_copies(
    copied: Column, facts: Redistribution, pairs: Column, destination: Stored
) -> Impossible | None:
    """Adds the cycles of local copies of some pairs.

    Args:
        copied: [tiles] cycles, which are added to.
        facts: which bytes go from which shard to which.
        pairs: those that are copied.
        destination: the value that is written.

    Returns:
        Why no copy of the family moves such bytes, or None.
    """
    for (number, destination_origin, source_origin), alike in _local_classes(facts, pairs):
        bindings = _copies_of(facts.matches[number], destination_origin, source_origin)
        if isinstance(bindings, Impossible):
            return bindings
        cycles = sum(binding.cycles + KERNEL_LAUNCH for binding, _, _ in bindings)
        for owners in destination.distribution.owners[facts.destination_shard[alike]].T:
            np.add.at(copied, destination.tile[owners], cycles)
    return None


def _append_exchange(build: LowBuilder, exchange: _Exchange, node: NodeId, tile_count: int) -> None:
    destination = exchange.destination
    copied = [(part.facts, part.kept) for part in exchange.parts]
    _clear(build, destination, copied, node)
    if not exchange.is_local:
        refuse_phase(phase_loads(exchange.parts, destination, tile_count), build.name_of(node))
        step = build.exchange_step()
        for part in exchange.parts:
            append_transfers(build, step, part, destination, node)
    append_kept(build, exchange.parts, destination, tile_count, node)


def _clear(
    build: LowBuilder, destination: Stored, copied: Sequence[tuple[Redistribution, Column]], node: NodeId
) -> None:
    """Appends the fills that a destination needs before elements arrive, in a step; no step without any."""
    parted = written_in_parts(copied, destination)
    if has_padding(destination.distribution) or parted.any():
        clear_before(build, build.compute_step(), destination, node, whole=parted)


def written_in_parts(copied: Sequence[tuple[Redistribution, Column]], destination: Stored) -> Mask:
    """[owners] into whose shards local copies write parts of words, which keep what the rest of a word holds.

    Args:
        copied: which bytes go from which shard to which, and the pairs that are copied.
        destination: the value that is written.
    """
    found = np.zeros(len(destination.tile), dtype=np.bool_)
    for facts, pairs in copied:
        for (number, destination_origin, source_origin), alike in _local_classes(facts, pairs):
            bindings = _copies_of(facts.matches[number], destination_origin, source_origin)
            if isinstance(bindings, Impossible):
                raise ValueError(f"a movement that does not exist was selected: {bindings.reason}")
            if any(spans_of(binding)[0].keeps for binding, _, _ in bindings):
                found[destination.distribution.owners[facts.destination_shard[alike]]] = True
    return found


def append_kept(
    build: LowBuilder, parts: Sequence[Part], destination: Stored, tile_count: int, node: NodeId
) -> None:
    """Appends a compute step of local copies for what is kept on its tile; none where nothing is."""
    if not any(len(part.kept) for part in parts):
        return
    step = build.compute_step()
    for part in parts:
        copy_pairs(build, step, part.facts, part.source, destination, tile_count, node, part.kept)


def copy_pairs(
    build: LowBuilder,
    step: StepId,
    facts: Redistribution,
    source: Stored,
    destination: Stored,
    tile_count: int,
    node: NodeId,
    chosen: Column,
) -> None:
    """Appends local copies of pairs whose receiving tiles hold the source shard.

    Args:
        build: the program.
        step: compute step.
        facts: which bytes go from which shard to which.
        source: the value that is read.
        destination: the value that is written.
        tile_count: tiles of the build.
        node: graph node that it works for.
        chosen: the pairs.

    Raises:
        ValueError: no copy of the family moves such bytes.
    """
    owner_at = source.owner_on_tile(tile_count)
    for (number, destination_origin, source_origin), pairs in _local_classes(facts, chosen):
        bindings = _copies_of(facts.matches[number], destination_origin, source_origin)
        if isinstance(bindings, Impossible):
            raise ValueError(f"a movement that does not exist was selected: {bindings.reason}")
        for owners in destination.distribution.owners[facts.destination_shard[pairs]].T:
            senders = owner_at[destination.tile[owners]]
            for binding, to, of in bindings:
                append_copies(
                    build,
                    step,
                    binding,
                    source=source.at(senders, facts.source_base[pairs] + of),
                    destination=destination.at(owners, facts.destination_base[pairs] + to),
                    node=node,
                )


def append_copies(
    build: LowBuilder,
    step: StepId,
    binding: Binding,
    *,
    source: AddressColumns,
    destination: AddressColumns,
    node: NodeId,
) -> None:
    """Appends local copies that a binding of the copy family describes."""
    parameters = binding.parameters
    if not isinstance(parameters, CopyParameters):
        raise ValueError(f"{binding.symbol} copies no bytes")
    build.copies(
        step,
        binding,
        source=source,
        destination=destination,
        rows=parameters.rows,
        row_bytes=parameters.row_bytes,
        source_stride=parameters.source_stride,
        destination_stride=parameters.destination_stride,
        node=node,
    )


def _local_classes(facts: Redistribution, pairs: Column) -> list[tuple[tuple[int, int, int], Column]]:
    """Pairs that are copied alike: (match, where the destination begins modulo 32, the source) and pairs."""
    key = np.stack(
        [
            facts.match_of_pair[pairs],
            facts.destination_base[pairs] % ORIGIN_MODULUS,
            facts.source_base[pairs] % ORIGIN_MODULUS,
        ],
        axis=1,
    )
    first, number_of_pair = distinct_rows(key)
    return [
        ((int(key[row, 0]), int(key[row, 1]), int(key[row, 2])), pairs[number_of_pair == number])
        for number, row in enumerate(first.tolist())
    ]


def _copies_of(
    match: Match, destination_origin: int, source_origin: int
) -> list[tuple[Binding, int, int]] | Impossible:
    """Local copies that move a match: binding, byte at the destination, byte at the source."""
    found: list[tuple[Binding, int, int]] = []
    for piece in match.pieces:
        rows, strides, starts = _rows_of(piece)
        for to, of in starts:
            binding = bind(
                "copy",
                CopyParameters(
                    kind=Kind.MOVE,
                    rows=rows,
                    row_bytes=piece.run_bytes,
                    destination_stride=strides[DESTINATION],
                    destination_origin=(destination_origin + to) % ORIGIN_MODULUS,
                    source_stride=strides[SOURCE],
                    source_origin=(source_origin + of) % ORIGIN_MODULUS,
                ),
            )
            if isinstance(binding, Refusal):
                return Impossible(reason=binding.reason)
            found.append((binding, to, of))
    return found


def _rows_of(piece: Loops) -> tuple[int, tuple[int, int], list[tuple[int, int]]]:
    """The longest loop that one copy can walk: its count and strides, and where each such copy begins."""
    walkable = [
        loop
        for loop, steps in enumerate(piece.strides)
        if steps[DESTINATION] >= piece.run_bytes and steps[SOURCE] >= piece.run_bytes
    ]
    if not walkable:
        return (
            1,
            (piece.run_bytes, piece.run_bytes),
            list(zip(piece.offsets(DESTINATION).tolist(), piece.offsets(SOURCE).tolist(), strict=True)),
        )
    longest = max(walkable, key=lambda loop: piece.counts[loop])
    others = [loop for loop in range(len(piece.counts)) if loop != longest]
    outer = Loops(
        run_bytes=piece.run_bytes,
        bases=piece.bases,
        counts=tuple(piece.counts[loop] for loop in others),
        strides=tuple(piece.strides[loop] for loop in others),
    )
    steps = piece.strides[longest]
    return (
        piece.counts[longest],
        (steps[DESTINATION], steps[SOURCE]),
        list(zip(outer.offsets(DESTINATION).tolist(), outer.offsets(SOURCE).tolist(), strict=True)),
    )


# Cut out: the words around runs, and the runs out of them


def _cut_out(sources: Sequence[Source], destination: Stored, tile_count: int) -> _CutOut:
    stack_bytes = np.zeros(destination.distribution.shard_count, dtype=np.int64)
    parts: list[Covers] = []
    for source in sources:
        facts = redistribute(
            source.stored.distribution, destination.distribution, source.mapping, source.start
        )
        parts.append(covers_of(facts, source.stored, destination, tile_count, stack_bytes))
        stack_bytes = parts[-1].stack_bytes
    return _CutOut(
        sources=tuple(source.stored for source in sources), parts=tuple(parts), destination=destination
    )


def _cut_out_cycles(cut_out: _CutOut, tile_count: int) -> Cycles | Impossible:
    destination = cut_out.destination
    copied = np.zeros(tile_count, dtype=np.int64)
    for part in cut_out.parts:
        for facts, pairs in ((part.direct, part.kept), (part.stacked, part.unstacked)):
            refusal = add_copies(copied, facts, pairs, destination)
            if refusal is not None:
                return refusal
    loads = phase_loads([part.sent for part in cut_out.parts], destination, tile_count)
    return Cycles(loads.cycles + int(copied.max(initial=0)))


def _append_cut_out(build: LowBuilder, cut_out: _CutOut, node: NodeId, tile_count: int) -> None:
    destination = cut_out.destination
    copied = [
        pairs
        for part in cut_out.parts
        for pairs in ((part.direct, part.kept), (part.stacked, part.unstacked))
    ]
    _clear(build, destination, copied, node)
    stacks = dataclasses.replace(
        destination,
        buffer=scratch(build, destination.tile, cut_out.stack_bytes, node, MemoryClass.STANDARD),
        displacement=np.zeros_like(destination.displacement),
        sequence=np.full_like(destination.sequence, NO_ROW),
    )
    covers = [part.sent for part in cut_out.parts]
    refuse_phase(phase_loads(covers, destination, tile_count), build.name_of(node))
    step = build.exchange_step()
    for part in covers:
        append_transfers(build, step, part, stacks, node)
    step = build.compute_step()
    for source, part in zip(cut_out.sources, cut_out.parts, strict=True):
        copy_pairs(build, step, part.direct, source, destination, tile_count, node, part.kept)
        copy_pairs(build, step, part.stacked, stacks, destination, tile_count, node, part.unstacked)


# Rearrange: another order on the same tiles


def _append_rearrange(build: LowBuilder, rearrange: _Rearrange, node: NodeId) -> None:
    step = build.compute_step()
    for binding, (results, operands) in zip(rearrange.bindings, rearrange.owners, strict=True):
        views = [rearrange.destination.at(results), rearrange.source.at(operands)]
        build.calls(step, binding, views, node)


def _rearrangements(
    source: Stored, destination: Stored, tile_count: int
) -> tuple[_Rearrange, ...] | Impossible:
    """The change of order: one rearrangement, or two where neither side is row-major."""
    once = _rearrange(source, destination, tile_count)
    if not isinstance(once, Impossible):
        return (once,)
    rows = RowMajor()
    if rows in (value.distribution.format.layout.order for value in (source, destination)):
        return once
    between = _reordered(source.distribution, rows)
    if isinstance(between, Impossible):
        return between
    staged = unallocated(between, source.tile)
    first, second = _rearrange(source, staged, tile_count), _rearrange(staged, destination, tile_count)
    if isinstance(first, Impossible):
        return first
    return second if isinstance(second, Impossible) else (first, second)


def _rearrange(source: Stored, destination: Stored, tile_count: int) -> _Rearrange | Impossible:
    """The calls that bring each shard of the destination into its order, if its tile has the same shard."""
    if any(
        isinstance(stored.distribution.format.layout.tiling, LinearTiling) for stored in (destination, source)
    ):
        return Impossible(reason="shards that are runs of storage are no matrices")
    try:
        forms = [shard_operands(stored.distribution) for stored in (destination, source)]
    except ValueError as refusal:
        return Impossible(reason=str(refusal))
    owners = np.flatnonzero(
        destination.distribution.storage_elements[destination.distribution.shard_of_owner]
    )
    senders = source.owner_on_tile(tile_count)[destination.tile[owners]]
    if (senders < 0).any():
        return Impossible(reason="the source is on other tiles")
    shards = (
        destination.distribution.shard_of_owner[owners],
        source.distribution.shard_of_owner[senders],
    )
    bounds = [_bounds(stored.distribution) for stored in (destination, source)]
    if bounds[0] is None or bounds[1] is None or (bounds[0][shards[0]] != bounds[1][shards[1]]).any():
        return Impossible(reason="the shards of source and destination differ")
    key = np.stack([forms[0][1][shards[0]], forms[1][1][shards[1]]], axis=1)
    first, number_of_owner = distinct_rows(key)
    bindings: list[Binding] = []
    for row in first.tolist():
        result, operand = forms[0][0][int(key[row, 0])], forms[1][0][int(key[row, 1])]
        binding = _bound_rearrangement(result, operand)
        if isinstance(binding, Refusal):
            return Impossible(reason=binding.reason)
        bindings.append(binding)
    return _Rearrange(
        source=source,
        destination=destination,
        bindings=tuple(bindings),
        owners=tuple(
            (owners[number_of_owner == number], senders[number_of_owner == number])
            for number in range(len(first))
        ),
    )


def _bound_rearrangement(result: LocalOperand, operand: LocalOperand) -> Binding | Refusal:
    relation = Identity(rank=len(result.backing))
    return bind("rearrange", RearrangeParameters(), (result, operand), (None, relation))


def _bounds(distribution: Distribution) -> Column | None:
    """[shards, 2 x rank] which coordinates each shard holds; None where that is no box."""
    if len(np.unique(distribution.cover_shard)) != len(distribution.cover_shard):
        return None
    bounds = np.zeros((distribution.shard_count, 2 * len(distribution.shape)), dtype=np.int64)
    bounds[distribution.cover_shard] = np.concatenate(
        [distribution.cover.starts, distribution.cover.stops], axis=1
    )
    return bounds


def _reordered(distribution: Distribution, order: ElementOrder) -> Distribution | Impossible:
    """The same shards in another element order, each padded to whole panels."""
    own = distribution.format
    tiling = own.layout.tiling
    rank = len(distribution.shape)
    if isinstance(tiling, LinearTiling):
        return Impossible(reason="its shards are runs of storage, not boxes")
    try:
        multiples = axis_multiples(order, own.precision, rank)
    except ValueError as refusal:
        return Impossible(reason=str(refusal))
    cuts = {cut.axis % rank: cut for cut in tiling.axes}
    axes = [
        dataclasses.replace(cut, shard_padding_multiple=multiples[axis], padding=Padding.ZERO)
        for axis, cut in cuts.items()
    ]
    axes += [
        AxisTiling(axis=axis, partitions=1, shard_padding_multiple=multiple, padding=Padding.ZERO)
        for axis, multiple in enumerate(multiples)
        if axis not in cuts and multiple > 1
    ]
    layout = dataclasses.replace(
        own.layout,
        order=order,
        tiling=GridTiling(replicas=tiling.replicas, axes=tuple(axes)),
        memory_class=MemoryClass.STANDARD,
    )
    try:
        return distribute(distribution.shape, TensorFormat(precision=own.precision, layout=layout))
    except ValueError as refusal:
        return Impossible(reason=str(refusal))


def unallocated(distribution: Distribution, tiles: Column) -> Stored:
    """A value that has no buffers yet: enough to inspect, not to append."""
    return stored_in(distribution, tiles, np.full(len(tiles), NO_ROW, dtype=np.int64))


def _text(distribution: Distribution) -> str:
    layout = distribution.format.layout
    return f"{list(distribution.shape)} in {type(layout.order).__name__} on {distribution.owner_count} owners"
