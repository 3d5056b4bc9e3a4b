"""A product kernel written as the public description of the reference kernel has it, for calibration.

``out[R, C] (+)= left[R, K] . right[K, C]``, halves or 8-bit floats, on one tile. Left is in panels of 16 (32)
columns, each R rows of 32 bytes; right in 512-byte panels, column after column; out in groups of 16 columns,
each R rows of 32 bytes. For each group of columns and each panel of K the supervisor loads 64 weights and
runs six workers, each of which has a share of the rows. The first panel initializes or accumulates, the
others accumulate in place.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from compiler.simulator.harness import Program
from tests.simulator.programs import program_of

GROUP_BASES = (0, 32, 8, 40, 16, 48, 24, 56)
"""First weight of each pair of columns."""

PANEL_ROW = 32
"""Bytes of a row in a panel of any operand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Product:
    """A product.

    Args:
        rows: R.
        inner: K, a multiple of the panel's columns.
        columns: C, a multiple of 16.
        is_byte: 8-bit floats instead of halves.
        interleaved: 128-bit weight loads.
        accumulate: the first panel adds to what ``out`` holds.
        stochastic: results are rounded stochastically.
        scale: FP_ISCL.
    """

    rows: int
    inner: int
    columns: int
    is_byte: bool = False
    interleaved: bool = True
    accumulate: bool = False
    stochastic: bool = False
    scale: int = 0

    @property
    def micro(self) -> int:
        """Columns of a panel of left."""
        return 32 if self.is_byte else 16

    @property
    def panels(self) -> int:
        """Panels of K."""
        return self.inner // self.micro

    @property
    def groups(self) -> int:
        """Groups of 16 columns."""
        return self.columns // 16


def product_program(product: Product) -> Program:
    """Entry ``gemm``: $m2 out, $m3 left, $m4 right."""
    amp = "f8v8hihov4amp" if product.is_byte else "f16v4hihov4amp"
    phases = [f"TAMP_{'F8V8' if product.is_byte else 'F16V4'}_E4_P{phase}" for phase in range(4)]
    if product.interleaved:
        loads = [f"ld128putcs {base + k}" for base in GROUP_BASES for k in range(0, 8, 2)]
    else:
        loads = [f"ld64putcs {base + k}" for base in GROUP_BASES for k in range(8)]
    weights = "\n    ".join(loads)
    first = "first_accumulate" if product.accumulate else "first_initialize"
    again = "again_accumulate" if product.accumulate else "again_initialize"
    text = f"""
.supervisor
.align 8
gemm:
    add $m11, $m11, -48
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m10, $m11, $m15, 2
    get $m0, $FP_ICTL
    st32 $m0, $m11, $m15, 6
    setzi $m1, {0x80000 if product.stochastic else 0:#x}
    or $m0, $m0, $m1
    put $FP_ICTL, $m0
    setzi $m0, {product.rows // 6}
    st32 $m0, $m11, $m15, 9
    setzi $m0, {product.rows % 6}
    st32 $m0, $m11, $m15, 10
    setzi $m0, {PANEL_ROW * product.rows}
    st32 $m0, $m11, $m15, 11
    setzi $m0, 4
    put 2, $m0
    setzi $m0, {3 if product.is_byte else 0}
    put $FP_INFMT, $m0
    setzi $m0, {product.scale & 63}
    put $FP_ISCL, $m0
    put $CCCSLOAD, $m4
    setzi $m5, {product.groups - 1}
    setzi $m6, {first}
    setzi $m8, again_inner
    setzi $m9, {again}
.Lgroup:
    setzi $m7, {product.panels - 1}
.Lpanel:
    sync 2
    {weights}
    runall $m6, $m11, 0
    or $m6, $m8, 0
    brnzdec $m7, .Lpanel
    or $m6, $m9, 0
    brnzdec $m5, .Lgroup
    sync 2
    ld32 $m0, $m11, $m15, 6
    put $FP_ICTL, $m0
    ld32 $m10, $m11, $m15, 2
    add $m11, $m11, 48
    br $m10

.worker
# $m1 rows of this worker, $m2 left of the column group, $m3 left, $m4 bytes of a panel, $m6 out,
# $m7 rows minus one.
.align 8
first_initialize:
    setzi $m10, initialize
    bri split
first_accumulate:
    setzi $m10, accumulate
split:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $m13, $m15, 9
    ld32 $m5, $m13, $m15, 10
    mul $m3, $m0, $m1
    min $m6, $m0, $m5
    add $m3, $m3, $m6
    cmpult $m6, $m0, $m5
    add $m1, $m1, $m6
    add $m7, $m1, -1
    shl $m3, $m3, 5
    ld32 $m6, $m13, $m15, 0
    add $m6, $m6, $m3
    ld32 $m2, $m13, $m15, 1
    add $m2, $m2, $m3
    or $m3, $m2, 0
    ld32 $m4, $m13, $m15, 11
    brz $m1, none
    br $m10
none:
    exitz $m15

again_initialize:
    add $m6, $m6, $m4
    or $m3, $m2, 0
    brz $m1, none
    bri initialize
again_accumulate:
    add $m6, $m6, $m4
    or $m3, $m2, 0
    brz $m1, none
    bri accumulate
again_inner:
    add $m3, $m3, $m4
    brz $m1, none
    bri accumulate

.align 8
initialize:
    {{ or $m0, $m3, 0 ; setzi $a7, 8 }}
    {{ nop ; uput $FP_CLR, $a7 }}
    nop
    ld64step $a0:1, $m15, $m0+=, 1
    {{ ld64step $a0:1, $m15, $m0+=, 1 ; {amp} $a2:3, $a0:1, $azeros, {phases[0]} }}
    {{ ld64step $a0:1, $m15, $m0+=, 1 ; {amp} $a2:3, $a0:1, $azeros, {phases[1]} }}
    {{ ld64step $a0:1, $m15, $m0+=, 1 ; {amp} $a2:3, $a0:1, $azeros, {phases[2]} }}
    {{ ld64step $a0:1, $m15, $m0+=, 1 ; {amp} $a2:3, $a0:1, $azeros, {phases[3]} }}
    {{ ld64step $a0:1, $m15, $m0+=, 1 ; {amp} $a2:3, $a0:1, $azeros, {phases[0]} }}
    tapack $m8:9, $m0, $m15, $m6
    rpt $m7, 3
    {{ ldst64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $a0:1, $azeros, {phases[1]} }}
    {{ ldst64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $a0:1, $azeros, {phases[2]} }}
    {{ ldst64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $a0:1, $azeros, {phases[3]} }}
    {{ ldst64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $a0:1, $azeros, {phases[0]} }}
    {{ st64pace $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $azeros, $azeros, {phases[1]} }}
    {{ st64pace $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $azeros, $azeros, {phases[2]} }}
    {{ st64pace $a2:3, $m8:9+=, $m15, 0 ; {amp} $a2:3, $azeros, $azeros, {phases[3]} }}
    st64pace $a2:3, $m8:9+=, $m15, 0
    exitz $m15

.align 8
accumulate:
    {{ or $m0, $m6, 0 ; setzi $a7, 8 }}
    {{ add $m5, $m6, 32 ; uput $FP_CLR, $a7 }}
    ld128 $a0:3, $m6, $m15, 0
    nop
    {{ ld128 $a4:7, $m6, $m15, 1 ; {amp} $azeros, $azeros, $a0:1, {phases[0]} }}
    {{ tapack $m8:9, $m3, $m5, $m6 ; {amp} $azeros, $azeros, $a2:3, {phases[1]} }}
    {{ nop ; {amp} $azeros, $azeros, $a4:5, {phases[2]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $azeros, $azeros, $a6:7, {phases[3]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $azeros, $a0:1, $a2:3, {phases[0]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $azeros, $a0:1, $a2:3, {phases[1]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $azeros, $a0:1, $a2:3, {phases[2]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $azeros, $a0:1, $a2:3, {phases[3]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $a4:5, $a0:1, $a2:3, {phases[0]} }}
    {{ ld2x64pace $a0:1, $a2:3, $m8:9+=, $m15, 0 ; {amp} $a6:7, $a0:1, $a2:3, {phases[1]} }}
    nop
    rpt $m7, 3
    {{ ld2xst64pace $a0:3, $a4:5, $m8:9+=, $m15, 0 ; {amp} $a4:5, $a0:1, $a2:3, {phases[2]} }}
    {{ ld2xst64pace $a0:3, $a6:7, $m8:9+=, $m15, 0 ; {amp} $a6:7, $a0:1, $a2:3, {phases[3]} }}
    {{ ld2xst64pace $a0:3, $a4:5, $m8:9+=, $m15, 0 ; {amp} $a4:5, $a0:1, $a2:3, {phases[0]} }}
    {{ ld2xst64pace $a0:3, $a6:7, $m8:9+=, $m15, 0 ; {amp} $a6:7, $a0:1, $a2:3, {phases[1]} }}
    {{ st64pace $a4:5, $m8:9+=, $m15, 0 ; {amp} $a4:5, $azeros, $azeros, {phases[2]} }}
    {{ st64pace $a6:7, $m8:9+=, $m15, 0 ; {amp} $a6:7, $azeros, $azeros, {phases[3]} }}
    st64pace $a4:5, $m8:9+=, $m15, 0
    st64pace $a6:7, $m8:9+=, $m15, 0
    exitz $m15
"""
    return program_of(text)


def panels_of(matrix: npt.NDArray[np.generic], micro: int) -> bytes:
    """A [R, C] matrix in panels of ``micro`` columns."""
    rows, columns = matrix.shape
    return matrix.reshape(rows, columns // micro, micro).transpose(1, 0, 2).tobytes()


def right_of(matrix: npt.NDArray[np.generic], micro: int) -> bytes:
    """A [K, C] matrix in panels of ``micro`` by 16, each column after column, K fastest."""
    inner, columns = matrix.shape
    return matrix.reshape(inner // micro, micro, columns // 16, 16).transpose(2, 0, 3, 1).tobytes()
