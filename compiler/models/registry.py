"""The models that come with the compiler, by name; what is built without a graph is in ``programs``.

Representative models are those that stand for what users build: the nightly build and the published figures
are about them. The others are variants of them, or show that one thing works.
"""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, final

from compiler.errors import InvalidInput
from compiler.geometry.precision import Precision
from compiler.graph.ir import Graph
from compiler.models.blocks import HIDDEN, TOKENS, WIDTH, mlp_block, siglip_attention, siglip_mlp
from compiler.models.layers import BRING_UP, HALF
from compiler.models.programs import PROGRAMS
from compiler.models.smoke import attention_smoke, gemm_benchmark, gemm_smoke, mlp_smoke
from compiler.models.towers import pe_core_l14, siglip, uniform, vit_small

SMOKE_TILES: Final = 64
"""Tiles that the smoke models are cut for."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variation:
    """What can be asked of a model that takes it; None for the model's own.

    Args:
        tiles: that it is cut for.
        batch: images, or matrices.
        precision: of its products.
    """

    tiles: int | None = None
    batch: int | None = None
    precision: Precision | None = None

    @property
    def asked(self) -> frozenset[str]:
        """Names of what is asked."""
        return frozenset(
            name
            for name, value in (("tiles", self.tiles), ("batch", self.batch), ("precision", self.precision))
            if value is not None
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model.

    Args:
        name: what it is asked for by.
        summary: what it is, in a line.
        build: makes its graph.
        representative: one of those that stand for what users build.
        takes: what of a variation it takes.
        vary: makes its graph in a variation; None where it takes nothing.
    """

    name: str
    summary: str
    build: Callable[[], Graph]
    representative: bool = False
    takes: frozenset[str] = frozenset()
    vary: Callable[[Variation], Graph] | None = None

    def graph(self, variation: Variation) -> Graph:
        """Its graph in a variation.

        Raises:
            InvalidInput: something is asked that it does not take.
        """
        asked = variation.asked - ({"tiles"} - self.takes)
        if not asked:
            return self.build()
        if self.vary is None or not asked <= self.takes:
            refused = sorted(asked - self.takes)
            raise InvalidInput(
                f"the model has no other {' and no other '.join(refused)}",
                stage="models",
                subject=self.name,
                next_step="list the variants with: tilewright models",
            )
        return self.vary(variation)


MODELS: Final[tuple[Model, ...]] = (
    Model(
        name="gemm-smoke",
        summary="one product, wide enough for every tile",
        build=lambda: gemm_smoke(SMOKE_TILES),
        takes=frozenset({"tiles", "batch"}),
        vary=lambda asked: gemm_smoke(asked.tiles or SMOKE_TILES, asked.batch or 1),
    ),
    Model(
        name="batched-gemm-smoke",
        summary="three such products in a batch",
        build=lambda: gemm_smoke(SMOKE_TILES, batch=3),
        takes=frozenset({"tiles", "batch"}),
        vary=lambda asked: gemm_smoke(asked.tiles or SMOKE_TILES, asked.batch or 3),
    ),
    Model(
        name="gemm-benchmark",
        summary="131,072 rows of ones times quarters: every element is 16",
        build=gemm_benchmark,
    ),
    Model(
        name="mlp-smoke",
        summary="two products with GELU behind each",
        build=lambda: mlp_smoke(SMOKE_TILES),
        takes=frozenset({"tiles"}),
        vary=lambda asked: mlp_smoke(asked.tiles or SMOKE_TILES),
    ),
    Model(
        name="attention-smoke",
        summary="attention of 4 heads, 17 queries, 19 keys, depth 72",
        build=attention_smoke,
    ),
    Model(
        name="mlp-block-small",
        summary="MLP with biases and residual for 64 tiles",
        build=lambda: mlp_block(128, 256, 1024),
    ),
    Model(
        name="mlp-block",
        summary="MLP with biases and residual at the size of SigLIP",
        build=lambda: mlp_block(TOKENS, WIDTH, HIDDEN),
        representative=True,
    ),
    Model(
        name="siglip-mlp",
        summary="MLP of SigLIP So400m, batch 1",
        build=siglip_mlp,
        representative=True,
        takes=frozenset({"batch", "precision"}),
        vary=lambda asked: siglip_mlp(batch=asked.batch or 1, precision=asked.precision or HALF),
    ),
    Model(name="siglip-mlp-b2", summary="the same, batch 2", build=lambda: siglip_mlp(batch=2)),
    Model(name="siglip-mlp-b4", summary="the same, batch 4", build=lambda: siglip_mlp(batch=4)),
    Model(
        name="siglip-mlp-f8",
        summary="MLP of SigLIP So400m in F8, batch 1",
        build=lambda: siglip_mlp(precision=BRING_UP),
        representative=True,
    ),
    Model(
        name="siglip-mlp-f8-b2",
        summary="the same, batch 2",
        build=lambda: siglip_mlp(batch=2, precision=BRING_UP),
    ),
    Model(
        name="siglip-mlp-x3",
        summary="three MLPs of SigLIP So400m in a repeat",
        build=lambda: siglip_mlp(blocks=3),
        representative=True,
    ),
    Model(
        name="siglip-attention",
        summary="attention of SigLIP So400m, three projections",
        build=siglip_attention,
        representative=True,
    ),
    Model(
        name="siglip-attention-fused",
        summary="the same with one projection and slices",
        build=lambda: siglip_attention(fused=True),
    ),
    Model(
        name="siglip-attention-f8",
        summary="the same with three projections in F8",
        build=lambda: siglip_attention(precision=BRING_UP),
    ),
    Model(
        name="siglip-attention-x3",
        summary="three attentions in a repeat",
        build=lambda: siglip_attention(blocks=3),
    ),
    Model(
        name="siglip-vit-1",
        summary="SigLIP So400m tower with one layer, F8, batch 1",
        build=lambda: siglip(1),
        representative=True,
    ),
    Model(name="siglip-vit-1-b2", summary="the same, batch 2", build=lambda: siglip(1, batch=2)),
    Model(
        name="siglip-vit-1-f16",
        summary="the same in F16, batch 1",
        build=lambda: siglip(1, precisions=uniform(HALF)),
    ),
    Model(
        name="siglip-vit-27",
        summary="SigLIP So400m tower, F8, batch 1",
        build=lambda: siglip(27),
        representative=True,
    ),
    Model(name="siglip-vit-27-b2", summary="the same, batch 2", build=lambda: siglip(27, batch=2)),
    Model(
        name="siglip-vit-27-fused",
        summary="the same with fused projections, batch 1",
        build=lambda: siglip(27, fused=True),
    ),
    Model(
        name="vit-small",
        summary="tower of one layer and 4 tokens for 64 tiles",
        build=vit_small,
        representative=True,
    ),
    Model(name="vit-small-f8", summary="the same in F8", build=lambda: vit_small(BRING_UP)),
    Model(
        name="pe-core-l14",
        summary="Perception Encoder L/14 tower, F8, batch 1",
        build=pe_core_l14,
        representative=True,
    ),
    Model(name="pe-core-l14-b2", summary="the same, batch 2", build=lambda: pe_core_l14(batch=2)),
)
"""All models; names differ."""


def model_named(name: str) -> Model:
    """The model of that name.

    Raises:
        InvalidInput: there is none.
    """
    for model in MODELS:
        if model.name == name:
            return model
    close = difflib.get_close_matches(name, [*(model.name for model in MODELS), *PROGRAMS], n=3)
    raise InvalidInput(
        "there is no model of this name",
        stage="models",
        subject=name,
        next_step=f"perhaps {' or '.join(close)}" if close else "list the names with: tilewright models",
    )
