"""All runs that take a value from one distribution to another, through a coordinate mapping.

The covers of both distributions are carried into the mapping's iteration space and joined there: each joint
box belongs to one source shard and one destination shard, a *pair*. Pairs whose boxes have the same extents,
the same storages and the same phases against panels and blocks have the same runs up to their base addresses,
so matching happens once for each such class, and the pairs are columns. A gather of [2,729,1152] onto 1,458
tiles is 2,187 pairs of one class; its 52,488 runs exist only when someone asks for columns of runs.

Facts only: nothing is chosen, priced or emitted. A pair names shards; replicas of the destination all receive
it, and which replica of the source sends is open.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
import numpy.typing as npt

from compiler.geometry.boxes import Boxes, distinct_rows, intersect, join, ranges
from compiler.geometry.distribution import Distribution
from compiler.geometry.iteration import (
    IterationSpace,
    LinearForm,
    boxes_within,
    space_of_mapping,
)
from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.match import Match, Runs, match
from compiler.geometry.order import axis_multiples


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Redistribution:
    """What moves between which shards.

    Args:
        source: where the value is.
        destination: where it goes.
        destination_shard: [pairs]; pairs ascend by it.
        source_shard: [pairs].
        destination_base: [pairs] byte offset in the destination shard's storage to which the match is
            relative.
        source_base: [pairs] the same at the source.
        match_of_pair: [pairs] which match.
        matches: runs relative to the bases; few, shared by many pairs.
    """

    source: Distribution
    destination: Distribution
    destination_shard: npt.NDArray[np.int64]
    source_shard: npt.NDArray[np.int64]
    destination_base: npt.NDArray[np.int64]
    source_base: npt.NDArray[np.int64]
    match_of_pair: npt.NDArray[np.int64]
    matches: tuple[Match, ...]

    @property
    def run_counts(self) -> npt.NDArray[np.int64]:
        """Runs of each pair [pairs]."""
        return self._per_pair([found.run_count for found in self.matches])

    @property
    def byte_counts(self) -> npt.NDArray[np.int64]:
        """Bytes of each pair [pairs]."""
        return self._per_pair([found.byte_count for found in self.matches])

    @property
    def alignments(self) -> npt.NDArray[np.int64]:
        """Largest number of bytes that divides every offset and run length of a pair [pairs]."""
        found = self._per_pair([found.alignment for found in self.matches])
        return np.gcd(np.gcd(found, self.destination_base), self.source_base)

    @property
    def run_count(self) -> int:
        """Runs sent, each once, whatever the number of replicas that receive it."""
        return int(self.run_counts.sum())

    @property
    def received_bytes(self) -> int:
        """Bytes written at all replicas of all destination shards."""
        return int(self.byte_counts.sum()) * self.destination.replicas

    def destination_run_counts(self) -> npt.NDArray[np.int64]:
        """Runs that each destination shard receives [destination shards]: its owners' fragments."""
        return _sum_by(self.destination_shard, self.run_counts, self.destination.shard_count)

    def source_run_counts(self) -> npt.NDArray[np.int64]:
        """Runs that leave each source shard [source shards]."""
        return _sum_by(self.source_shard, self.run_counts, self.source.shard_count)

    def run_sizes(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """(bytes, number of runs of that length), ascending: whether panels travel whole or in crumbs."""
        pairs = np.bincount(self.match_of_pair, minlength=len(self.matches))
        lengths = np.array(
            [piece.run_bytes for found in self.matches for piece in found.pieces], dtype=np.int64
        )
        runs = np.array(
            [
                piece.run_count * int(pairs[number])
                for number, found in enumerate(self.matches)
                for piece in found.pieces
            ],
            dtype=np.int64,
        )
        sizes, size_of_piece = np.unique(lengths, return_inverse=True)
        return sizes, _sum_by(size_of_piece, runs, len(sizes))

    def pair_match(self, pair: int) -> Match:
        """The match of one pair, in byte offsets of its two shards."""
        return self.matches[int(self.match_of_pair[pair])].rebased(
            destination=int(self.destination_base[pair]), source=int(self.source_base[pair])
        )

    def runs(self) -> tuple[npt.NDArray[np.int64], Runs]:
        """Every run as columns: its pair, ascending, and its offsets in the two shards' storages."""
        counts = self.run_counts
        pair = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
        if not self.matches:
            empty = np.empty(0, dtype=np.int64)
            return pair, Runs(destination=empty, source=empty, byte_counts=empty)
        tables = [found.runs() for found in self.matches]
        lengths = np.array([len(table.byte_counts) for table in tables], dtype=np.int64)
        row = (np.cumsum(lengths) - lengths)[self.match_of_pair[pair]] + ranges(counts)
        return pair, Runs(
            destination=np.concatenate([table.destination for table in tables])[row]
            + self.destination_base[pair],
            source=np.concatenate([table.source for table in tables])[row] + self.source_base[pair],
            byte_counts=np.concatenate([table.byte_counts for table in tables])[row],
        )

    def _per_pair(self, values: Sequence[int]) -> npt.NDArray[np.int64]:
        return np.array(values, dtype=np.int64)[self.match_of_pair]


def redistribute(
    source: Distribution,
    destination: Distribution,
    mapping: CoordinateMapping | None = None,
    start: Sequence[int] | None = None,
) -> Redistribution:
    """The runs that fill every element of ``destination`` which ``mapping`` reads from ``source``.

    Args:
        source: distribution of the value read.
        destination: distribution of the value written.
        mapping: from destination to source coordinates; None is the identity.
        start: where in the destination the box begins whose coordinates the mapping has; None for all of it.

    Raises:
        ValueError: the shapes are not those of the mapping, the box leaves the destination, or the precisions
            differ: a cast computes.
    """
    if source.format.precision != destination.format.precision:
        raise ValueError(
            f"a redistribution copies bytes: it cannot turn {source.format.precision} into "
            f"{destination.format.precision}"
        )
    relation = identity(destination.shape) if mapping is None else mapping
    if start is None:
        reads = relation.destination_shape == destination.shape
        start = (0,) * len(destination.shape)
    else:
        reads = len(start) == len(destination.shape) == len(relation.destination_shape) and all(
            first >= 0 and first + extent <= whole
            for first, extent, whole in zip(start, relation.destination_shape, destination.shape, strict=True)
        )
    if relation.source_shape != source.shape or not reads:
        raise ValueError(
            f"the mapping {relation} does not read {list(source.shape)} into {list(destination.shape)}"
        )
    space = space_of_mapping(relation)
    space = IterationSpace(
        extents=space.extents,
        destination=tuple(
            LinearForm(base=form.base + first, steps=form.steps)
            for form, first in zip(space.destination, start, strict=True)
        ),
        source=space.source,
    )
    destination_boxes, destination_row = _preimage(destination.cover, space.destination, space.extents)
    source_boxes, source_row = _preimage(source.cover, space.source, space.extents)
    left, right = join(destination_boxes, source_boxes)
    boxes = intersect(
        Boxes(starts=destination_boxes.starts[left], stops=destination_boxes.stops[left]),
        Boxes(starts=source_boxes.starts[right], stops=source_boxes.stops[right]),
    )
    ends = (
        _End.of(destination, destination.cover_shard[destination_row[left]], space.destination, boxes),
        _End.of(source, source.cover_shard[source_row[right]], space.source, boxes),
    )
    extents = boxes.stops - boxes.starts
    first, match_of_pair = distinct_rows(
        np.concatenate([extents, *(end.signature() for end in ends)], axis=1)
    )
    bases = [end.bases() for end in ends]
    matches: list[Match] = []
    for pair in map(int, first):
        forms = [end.local_forms(pair) for end in ends]
        found = match(
            space=IterationSpace(
                extents=tuple(map(int, extents[pair])), destination=forms[0], source=forms[1]
            ),
            destination=destination.index_maps[destination.shard_map[ends[0].shards[pair]]],
            source=source.index_maps[source.shard_map[ends[1].shards[pair]]],
            element_bytes=source.element_bytes,
        )
        at = [end.whole_storage_base(pair) for end in ends]
        matches.append(found.rebased(destination=-at[0], source=-at[1]))
    return Redistribution(
        source=source,
        destination=destination,
        destination_shard=ends[0].shards,
        source_shard=ends[1].shards,
        destination_base=bases[0],
        source_base=bases[1],
        match_of_pair=match_of_pair,
        matches=tuple(matches),
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class _End:
    """One side of all pairs: its shards, and the tensor coordinates at which the joint boxes begin."""

    distribution: Distribution
    shards: npt.NDArray[np.int64]
    coordinates: npt.NDArray[np.int64]
    forms: tuple[LinearForm, ...]

    @staticmethod
    def of(
        distribution: Distribution,
        shards: npt.NDArray[np.int64],
        forms: tuple[LinearForm, ...],
        boxes: Boxes,
    ) -> "_End":
        loops = boxes.starts.shape[1]
        steps = np.array([form.steps for form in forms], dtype=np.int64).reshape(len(forms), loops)
        bases = np.array([form.base for form in forms], dtype=np.int64)
        return _End(distribution, shards, boxes.starts @ steps.T + bases, forms)

    def signature(self) -> npt.NDArray[np.int64]:
        """What runs depend on besides extents: the storage, and the phase against its largest blocks."""
        own = self.distribution
        multiples = axis_multiples(own.format.layout.order, own.format.precision, len(own.shape))
        phases = (self.coordinates - own.origins[self.shards]) % np.array(multiples, dtype=np.int64)
        return np.concatenate([own.shard_map[self.shards][:, None], phases], axis=1)

    def bases(self) -> npt.NDArray[np.int64]:
        """Byte offset of each box's first coordinate in its shard."""
        own = self.distribution
        return own.storage_index(self.shards, self.coordinates) * own.element_bytes

    def local_forms(self, pair: int) -> tuple[LinearForm, ...]:
        """The coordinates of one pair over the loops of its box, in those of the shard's index map."""
        own = self.distribution
        local = self.coordinates[pair] - own.origins[self.shards[pair]]
        return tuple(
            LinearForm(base=int(base), steps=form.steps) for base, form in zip(local, self.forms, strict=True)
        )

    def whole_storage_base(self, pair: int) -> int:
        """Byte offset of a box's first coordinate from the start of its index map."""
        own = self.distribution
        shard = self.shards[pair]
        local = own.storage_index(self.shards[[pair]], self.coordinates[[pair]])
        return (int(local[0]) + int(own.displacements[shard])) * own.element_bytes


def _sum_by(rows: npt.NDArray[np.int64], values: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, rows, values)
    return sums


def _preimage(
    cover: Boxes, forms: Sequence[LinearForm], extents: Sequence[int]
) -> tuple[Boxes, npt.NDArray[np.int64]]:
    """The points of the space whose coordinates lie in each box: boxes of loops, and the row they came from.

    Axes are independent, and along one axis boxes share few intervals: each is taken apart once.
    """
    rows = np.arange(len(cover), dtype=np.int64)
    starts = np.zeros((len(cover), len(extents)), dtype=np.int64)
    stops = np.broadcast_to(np.array(extents, dtype=np.int64), starts.shape).copy()
    for axis, form in enumerate(forms):
        intervals = np.stack([cover.starts[rows, axis], cover.stops[rows, axis]], axis=1)
        first, interval_of_row = distinct_rows(intervals)
        parts = [
            boxes_within(low=int(low), high=int(high), form=form, extents=extents)
            for low, high in intervals[first]
        ]
        part_counts = np.array([len(found) for found in parts], dtype=np.int64)
        table = np.array([bounds for found in parts for bounds in found], dtype=np.int64)
        table = table.reshape(int(part_counts.sum()), len(extents), 2)
        counts = part_counts[interval_of_row]
        part = np.repeat((np.cumsum(part_counts) - part_counts)[interval_of_row], counts) + ranges(counts)
        source = np.repeat(np.arange(len(rows), dtype=np.int64), counts)
        rows = rows[source]
        starts = np.maximum(starts[source], table[part, :, 0])
        stops = np.minimum(stops[source], table[part, :, 1])
    return Boxes(starts=starts, stops=stops), rows
