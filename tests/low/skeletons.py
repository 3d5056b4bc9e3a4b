"""The hand-written program: random options, random data, and what it computes according to NumPy alone.

The oracle follows the pinned numerics in its own words: a product sums four products at a time in binary64,
adds the running sum, rounds to binary32, and rounds to F16 after each panel of 16; sums are left folds in F16
with the owner's partial first.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from compiler.geometry.owners import TileId
from compiler.models.skeleton import BUFFERS, TEMPORARIES, SkeletonOptions

Halves = npt.NDArray[np.float16]


@st.composite
def skeleton_options(draw: st.DrawFn, most_tiles: int = 7, fewest_tiles: int = 4) -> SkeletonOptions:
    """Sizes, tiles, displacements and an order of buffers."""
    tile_count = draw(st.integers(fewest_tiles, most_tiles))
    tiles = draw(st.lists(st.integers(0, tile_count - 1), min_size=4, max_size=4, unique=True))
    displacements = draw(
        st.dictionaries(st.sampled_from(TEMPORARIES), st.integers(0, 9).map(lambda n: 8 * n), max_size=8)
    )
    return SkeletonOptions(
        rows=draw(st.integers(1, 9)),
        panels=draw(st.integers(1, 2)),
        tile_count=tile_count,
        tiles=(TileId(tiles[0]), TileId(tiles[1]), TileId(tiles[2]), TileId(tiles[3])),
        displacements=tuple(sorted(displacements.items())),
        buffer_order=tuple(draw(st.permutations(range(len(BUFFERS))))) if draw(st.booleans()) else None,
    )


def random_parameters(options: SkeletonOptions, seed: int) -> dict[str, Halves]:
    """Weights and bias that keep results small."""
    return {
        "w0": _normal((options.width, options.width), seed, 0.2),
        "w1": _normal((options.width, options.width), seed + 1, 0.2),
        "bias0": _normal((options.width,), seed + 2, 1.0),
        "bias1": _normal((options.width,), seed + 3, 1.0),
    }


def random_input(options: SkeletonOptions, seed: int) -> Halves:
    """An x."""
    return _normal((options.rows, options.width), seed, 1.0)


def expected(options: SkeletonOptions, parameters: Mapping[str, Halves], x: Halves) -> Halves:
    """The y of an x."""
    h, half = x, options.half
    for weights, bias in (("w0", "bias0"), ("w1", "bias1")):
        partials = [
            product(h[:, number * half : (number + 1) * half], parameters[weights][number * half :][:half])
            for number in range(2)
        ]
        columns = (slice(0, half), slice(half, 2 * half))
        h = np.concatenate(
            [add(partials[own][:, columns[own]], partials[1 - own][:, columns[own]]) for own in range(2)],
            axis=1,
        )
        h = add(h, parameters[bias])
    return h


def product(left: Halves, right: Halves) -> Halves:
    """Left @ right as the AMP unit computes it, from zero."""
    sums = np.zeros((left.shape[0], right.shape[1]), dtype=np.float16)
    for panel in range(0, left.shape[1], 16):
        running = sums.astype(np.float32)
        for four in range(panel, panel + 16, 4):
            total = np.zeros(sums.shape, dtype=np.float64)
            for k in range(four, four + 4):
                total = total + np.outer(left[:, k].astype(np.float64), right[k].astype(np.float64))
            running = (running + total).astype(np.float32)
        sums = running.astype(np.float16)
    return sums


def add(left: Halves, right: Halves) -> Halves:
    """F16 addition, broadcast."""
    return (left.astype(np.float32) + right.astype(np.float32)).astype(np.float16)


def _normal(shape: tuple[int, ...], seed: int, scale: float) -> Halves:
    return (scale * np.random.default_rng(seed).standard_normal(shape)).astype(np.float16)
