"""How long it takes to expand, verify, execute and store low programs. Figures, no assertions.

The MLP of SigLIP So400m, batch 1, on 1,472 tiles; and a movement without a model: rows of 6,528 columns from
where they lie into panels elsewhere, in 1.2 million transfers.
"""

import resource
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from compiler.errors import NumberKind
from compiler.estimate.low import phase_estimates, timeline
from compiler.geometry.distribution import distribute
from compiler.geometry.layout import TensorFormat, TensorLayout
from compiler.geometry.mapping import identity
from compiler.geometry.order import AmpLeft, ElementOrder, RowMajor
from compiler.geometry.owners import OwnerMap
from compiler.geometry.precision import F16
from compiler.geometry.tiling import AxisTiling, GridTiling
from compiler.low.build import LowBuilder
from compiler.low.codec import LOW_PROGRAM
from compiler.low.execute import Execution
from compiler.low.expand.program import construct, expand
from compiler.low.ir import LowProgram, Role
from compiler.low.limits import refuse_program
from compiler.low.movement import Source, realize
from compiler.low.project import project
from compiler.low.rewrites.cleared import with_cleared_scratch
from compiler.low.rewrites.clears import without_idle_clears
from compiler.low.rewrites.computes import with_joined_computes
from compiler.low.rewrites.phases import with_merged_phases
from compiler.low.rewrites.relays import with_relays
from compiler.low.storage import Stored, allocate
from compiler.low.verify import verify
from compiler.mid.ir import MidProgram, MovementPolicy
from compiler.models.registry import model_named
from compiler.planner.candidate import build_candidate
from compiler.planner.choices import Setting
from compiler.planner.recipe import Recipe
from compiler.store.store import Store
from compiler.tables import table_digests
from tests.low.planned import tensors

TILES = 1472


class Benchmark(Protocol):
    """The part of pytest-benchmark used here; it declares no types for it."""

    extra_info: dict[str, object]

    def pedantic(self, target: Callable[[], object], *, warmup_rounds: int = 0, rounds: int = 1) -> object:
        """Run ``target``."""
        ...


@cache
def _planned(name: str) -> MidProgram:
    return build_candidate(model_named(name).build(), Setting(tile_count=TILES), Recipe()).program


@cache
def _expanded(name: str) -> LowProgram:
    return expand(_planned(name))


@cache
def _scattered() -> LowProgram:
    """2,944 rows, two on a tile, into panels of four rows on every second tile."""
    build, shape = LowBuilder(TILES), (2 * TILES, 6528)
    node = build.node("scatter")

    def stored(order: ElementOrder, owners: int, rotation: int) -> Stored:
        tiling = GridTiling(axes=(AxisTiling(axis=0, partitions=owners),))
        layout = TensorLayout(order=order, tiling=tiling)
        distribution = distribute(shape, TensorFormat(precision=F16(), layout=layout))
        tiles = OwnerMap(tile_count=TILES, rotation=rotation).tiles(owners).astype(np.int64)
        return allocate(build, distribution, tiles, node)

    source, destination = stored(RowMajor(), TILES, 0), stored(AmpLeft(), TILES // 2, TILES // 2)
    realize(
        build,
        [Source(stored=source, mapping=identity(shape))],
        destination,
        policy=MovementPolicy.DIRECT,
        tile_count=TILES,
        node=node,
        node_name="scatter",
    )
    program = build.finish()
    refuse_program(program)
    return program


def test_expand_mlp(benchmark: Benchmark) -> None:
    """Budget: 4 s and 2 GB on one core."""
    program = _planned("siglip-mlp")
    benchmark.pedantic(lambda: expand(program), warmup_rounds=1, rounds=3)
    benchmark.extra_info["peak megabytes of the process"] = (
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    )


def test_rewrite_mlp(benchmark: Benchmark) -> None:
    """The part of it that rewrites take."""
    program = construct(_planned("siglip-mlp"))
    benchmark.pedantic(
        lambda: with_joined_computes(
            with_merged_phases(with_relays(with_cleared_scratch(without_idle_clears(program))))
        ),
        rounds=3,
    )


def test_verify_mlp(benchmark: Benchmark) -> None:
    program = _expanded("siglip-mlp")
    benchmark.pedantic(lambda: verify(program))


def test_project_and_estimate_mlp(benchmark: Benchmark) -> None:
    """What is asked of every candidate."""
    program = _expanded("siglip-mlp")
    benchmark.pedantic(
        lambda: (project(program), timeline(program, phase_estimates(program), NumberKind.ESTIMATED)),
        rounds=3,
    )


def test_execute_mlp(benchmark: Benchmark) -> None:
    """A run on the byte executor."""
    planned, program = _planned("siglip-mlp"), _expanded("siglip-mlp")
    execution, values = Execution(program), tensors(planned, seed=0)
    roles = {value.name: value.role for value in program.values}
    execution.upload({name: array for name, array in values.items() if roles[name] is Role.PARAMETER})
    inputs = {name: array for name, array in values.items() if roles[name] is Role.INPUT}
    benchmark.pedantic(lambda: execution.run(inputs))


def test_move_in_a_million_transfers(benchmark: Benchmark) -> None:
    """Budget: 10 s."""
    benchmark.pedantic(lambda: (_scattered.cache_clear(), _scattered()))
    benchmark.extra_info["transfers"] = len(_scattered().transfers.step)


def test_store_a_million_transfers(benchmark: Benchmark, tmp_path: Path) -> None:
    """Encoded, compressed, synchronised. Budget of this and of reading: 200 MB/s of columns."""
    program, objects = _scattered(), Store.open(tmp_path / "store", tables=table_digests()).objects
    benchmark.extra_info["megabytes"] = len(LOW_PROGRAM.encode(program)) / 1e6
    benchmark.pedantic(lambda: objects.put(LOW_PROGRAM.encode(program)))


def test_read_a_million_transfers(benchmark: Benchmark, tmp_path: Path) -> None:
    """Digest checked, decompressed, decoded."""
    program, objects = _scattered(), Store.open(tmp_path / "store", tables=table_digests()).objects
    ref = objects.put(LOW_PROGRAM.encode(program))

    def read() -> LowProgram:
        data = objects.get(ref)
        assert data is not None
        return LOW_PROGRAM.decode(data)

    benchmark.pedantic(read, rounds=3)
