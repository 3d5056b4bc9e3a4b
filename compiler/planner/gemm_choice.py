"""What can be chosen about a product: the part of a recipe that one GEMM has.

A choice is data (PR-15): the constructor in ``gemm`` builds what it says and chooses nothing, the enumeration
in ``gemm_candidates`` lists those that are worth a price. Numbers of parts are those of the mathematical
axes, whatever the orientation.

The product is cut into a grid of *cells*, batch x rows x columns. *Output-stationary*: one tile for each
cell, which sums over all of K. *Parallel reduction*: ``inner_parts`` tiles for each cell, each with a part of
K, and the sum of their partials, which is scattered over ``scatter_rows`` x ``scatter_columns`` of them.
"""

from enum import Enum
from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from compiler.geometry.layout import MemoryClass
from compiler.kernels.gemm.binding import Orientation

Positive = Annotated[int, Field(ge=1)]


class Algorithm(Enum):
    """How the contraction is distributed."""

    OUTPUT_STATIONARY = "output stationary"
    """One tile sums over all of it."""
    PARALLEL_REDUCTION = "parallel reduction"
    """Several tiles sum over parts of it, and their partials are summed."""


class GridOrder(Enum):
    """Which coordinate of the grid of cells varies faster over tile numbers; parts of K are fastest."""

    COLUMNS_FAST = "columns fast"
    ROWS_FAST = "rows fast"


class Residency(Enum):
    """Where an operand that is a parameter stays between its uses."""

    RESIDENT = "resident"
    """Where it is multiplied, on every tile that needs it: nothing is moved in a run."""
    STREAMED = "streamed"
    """Stored once, wherever its home is, and brought to its consumers in each run."""


class GemmChoice(BaseModel):
    """One way of computing a product.

    Which fields go together, whatever the product, is checked where a choice is made; what suits a product is
    ``gemm_layout.fault``.

    Args:
        algorithm: how the contraction is distributed.
        batch_parts: parts of the batch.
        row_parts: parts of the rows.
        column_parts: parts of the columns.
        inner_parts: parts of the contraction.
        scatter_rows: parts of the rows of a cell in the sum.
        scatter_columns: parts of the columns of a cell in the sum.
        orientation: which operand is the left one of the matrix unit; the other is its weights.
        weight_memory: interleaved for weights that are loaded 128 bits at a time.
        parameter_residency: where the operand that is a parameter stays.
        reduction_batch: partials that are brought to an owner of the sum at a time; None for all.
        grid_order: how cells are numbered.
        inner_block: elements of K that are brought and multiplied at a time; None for all.
    """

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    algorithm: Algorithm
    batch_parts: Positive = 1
    row_parts: Positive = 1
    column_parts: Positive = 1
    inner_parts: Positive = 1
    scatter_rows: Positive = 1
    scatter_columns: Positive = 1
    orientation: Orientation = Orientation.NORMAL
    weight_memory: MemoryClass = MemoryClass.INTERLEAVED
    parameter_residency: Residency = Residency.STREAMED
    reduction_batch: Positive | None = None
    grid_order: GridOrder = GridOrder.COLUMNS_FAST
    inner_block: Positive | None = None

    @model_validator(mode="after")
    def _fields_agree(self) -> Self:
        """Refuse what means nothing, so that equal programs have equal choices."""
        match self.algorithm:
            case Algorithm.OUTPUT_STATIONARY:
                if (self.inner_parts, self.scatter_rows, self.scatter_columns) != (1, 1, 1):
                    raise ValueError("an output-stationary product has one part of the contraction")
                if self.reduction_batch is not None:
                    raise ValueError("an output-stationary product has no partials to bring in batches")
            case Algorithm.PARALLEL_REDUCTION:
                if self.inner_parts < 2:
                    raise ValueError("a parallel reduction has at least two parts of the contraction")
                if self.inner_parts % (self.scatter_rows * self.scatter_columns):
                    raise ValueError(
                        f"a sum scattered {self.scatter_rows} x {self.scatter_columns} does not divide "
                        f"{self.inner_parts} parts of the contraction"
                    )
                if self.inner_block is not None:
                    raise ValueError("a part of a parallel reduction is multiplied at once")
                if self.reduction_batch is not None and self.reduction_batch >= self.inner_parts - 1:
                    raise ValueError(
                        f"{self.reduction_batch} of {self.inner_parts - 1} partials at a time are all of them"
                    )
        if self.inner_block is not None and self.parameter_residency is Residency.RESIDENT:
            raise ValueError("a resident operand is multiplied at once")
        return self

    @property
    def cells(self) -> int:
        """Cells of the grid."""
        return self.batch_parts * self.row_parts * self.column_parts

    @property
    def tiles(self) -> int:
        """Tiles that multiply."""
        return self.cells * self.inner_parts

    @property
    def grid(self) -> str:
        """``2x92x8``: rows, columns, parts of the contraction."""
        return f"{self.row_parts}x{self.column_parts}x{self.inner_parts}"
