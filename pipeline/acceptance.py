"""What full builds have to achieve, line by line: models, options, and what is required of them.

A *line* is one thing that somebody relies on: that a model builds, fits, computes the right numbers and takes
no more cycles than stated; that one that cannot fit is refused in time and in words; that caches and
interruptions change no byte. ``acceptance_runs`` carries lines out, and ``tilewright accept`` shows them.

Every line is judged by its *checks*: what is required and what was found, in numbers of one kind. *Figures*
come along for whoever reads them, and decide nothing.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

from compiler.errors import Measure
from compiler.target.tiles import TILE_COUNT


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A model in a variation, and how it is built.

    Args:
        model: its listed name.
        tiles: of the build.
        batch: images; None for the model's own.
        precision: of its products; None for the model's own.
        rounding: of sums of products.
        replicate_inputs: whether the host writes inputs to every tile that reads them.
    """

    model: str
    tiles: int = TILE_COUNT
    batch: int | None = None
    precision: Literal["f16", "f8"] | None = None
    rounding: Literal["nearest", "stochastic"] = "nearest"
    replicate_inputs: bool = False

    def words(self) -> list[str]:
        """The variant as words of ``tilewright build``."""
        found = [self.model, "--tiles", str(self.tiles), "--rounding", self.rounding]
        if self.batch is not None:
            found += ["--batch", str(self.batch)]
        if self.precision is not None:
            found += ["--precision", self.precision]
        return [*found, "--replicate-inputs"] if self.replicate_inputs else found


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """The package builds, runs in the simulator, and computes what the graph says.

    Args:
        variant: what is built.
        runs: after one upload; with rounding to nearest even all are equal to the bit.
        cycles_at_most: that a run may take, simulated; None where nothing is promised.
        functional: whether functional simulation has to give the same bits.
        again: whether a second device, started afresh, has to give the same bits.
    """

    variant: Variant
    runs: int = 1
    cycles_at_most: int | None = None
    functional: bool = False
    again: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """The model is too large: the build says so, and leaves nothing behind.

    Args:
        variant: what is built.
        seconds: that the refusal may take.
    """

    variant: Variant
    seconds: int = 60


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cached:
    """Builds without a store, with an empty one and with a full one give the same package.

    Each is a process of its own, so that seconds are those of a command whose machine code is there.
    """

    variant: Variant


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """A build that is killed and started again gives the package that it would have given.

    Args:
        variant: what is built.
        results: that are in the store when it is killed.
    """

    variant: Variant
    results: int = 4


Demand: TypeAlias = Runs | Refused | Cached | Killed
"""What a line demands."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line.

    Args:
        name: what it is asked for by.
        demand: what is required.
        quick: whether it is one of those that take seconds.
    """

    name: str
    demand: Demand
    quick: bool = False


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was required.

    Args:
        what: in words.
        required: in words, with its number.
        found: the same of what was found.
        kind: of the numbers, as ``NumberKind`` calls it; empty where there are none.
        passed: whether it is as required.
    """

    what: str
    required: str
    found: str
    kind: str = ""
    passed: bool


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a line.

    Args:
        name: of the line.
        demand: its kind: runs, refused, cached, killed.
        words: of ``tilewright build``, that build the same.
        checks: what was required.
        figures: what else was found.
        parts: cycles of a run by what happens in them, scheduled; nothing where no package was built.
        wall_seconds, processor_seconds: that the line took, measured; processes that it started count.
    """

    name: str
    demand: str
    words: tuple[str, ...]
    checks: tuple[Check, ...]
    figures: tuple[Measure, ...]
    parts: tuple[tuple[str, float], ...]
    wall_seconds: float
    processor_seconds: float

    @property
    def passed(self) -> bool:
        """Whether all is as required."""
        return all(check.passed for check in self.checks)


_F8: Final = "f8"

LINES: Final[tuple[Line, ...]] = (
    Line(
        name="mlp-smoke-16",
        demand=Runs(variant=Variant(model="mlp-smoke", tiles=16), runs=3, functional=True),
        quick=True,
    ),
    Line(
        name="mlp-smoke-16-stochastic",
        demand=Runs(variant=Variant(model="mlp-smoke", tiles=16, rounding="stochastic"), again=True),
        quick=True,
    ),
    Line(name="mlp-smoke-16-caches", demand=Cached(variant=Variant(model="mlp-smoke", tiles=16)), quick=True),
    Line(name="mlp-smoke-16-killed", demand=Killed(variant=Variant(model="mlp-smoke", tiles=16)), quick=True),
    Line(name="siglip-mlp-8", demand=Refused(variant=Variant(model="siglip-mlp", tiles=8)), quick=True),
    Line(name="siglip-mlp-b128", demand=Refused(variant=Variant(model="siglip-mlp", batch=128))),
    Line(
        name="mlp-block-small",
        demand=Runs(variant=Variant(model="mlp-block-small", tiles=64), runs=3, functional=True),
    ),
    Line(
        name="siglip-mlp",
        demand=Runs(variant=Variant(model="siglip-mlp"), runs=3, cycles_at_most=190_000, functional=True),
    ),
    Line(
        name="siglip-mlp-f8",
        demand=Runs(variant=Variant(model="siglip-mlp", precision=_F8), runs=2, cycles_at_most=140_000),
    ),
    Line(
        name="siglip-mlp-replicated",
        demand=Runs(variant=Variant(model="siglip-mlp", replicate_inputs=True), cycles_at_most=172_000),
    ),
    Line(
        name="siglip-mlp-f8-replicated",
        demand=Runs(
            variant=Variant(model="siglip-mlp", precision=_F8, replicate_inputs=True), cycles_at_most=128_000
        ),
    ),
    Line(
        name="siglip-mlp-f8-b4-replicated",
        demand=Runs(
            variant=Variant(model="siglip-mlp", batch=4, precision=_F8, replicate_inputs=True),
            cycles_at_most=400_000,
        ),
    ),
    Line(
        name="siglip-mlp-stochastic",
        demand=Runs(variant=Variant(model="siglip-mlp", rounding="stochastic"), again=True),
    ),
    Line(name="siglip-mlp-x3", demand=Runs(variant=Variant(model="siglip-mlp-x3"))),
    Line(name="siglip-mlp-256", demand=Runs(variant=Variant(model="siglip-mlp", tiles=256))),
    Line(name="mlp-block", demand=Runs(variant=Variant(model="mlp-block"))),
    Line(name="mlp-block-256", demand=Runs(variant=Variant(model="mlp-block", tiles=256))),
    Line(name="mlp-block-64", demand=Runs(variant=Variant(model="mlp-block", tiles=64))),
    Line(name="gemm-benchmark", demand=Runs(variant=Variant(model="gemm-benchmark"))),
    Line(name="siglip-mlp-b2-caches", demand=Cached(variant=Variant(model="siglip-mlp", batch=2))),
    Line(name="siglip-mlp-killed", demand=Killed(variant=Variant(model="siglip-mlp"), results=10)),
)
"""All lines, the quick ones first; names differ. The cycles at most are targets of the project: those of
packages with replicated inputs are the published figures of another compiler, measured on hardware."""
