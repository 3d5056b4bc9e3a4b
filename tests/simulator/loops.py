"""Add, reduction, copy and patch loops written as the public descriptions of the reference's have them.

The loops, the split over workers and the calls are the described ones. What the descriptions leave open is
how many instructions the reference's workers need before their loop: its prologues are compiled code that is
not published. Each worker below computes its share in the plainest way and then idles for ``PROLOGUE``
instructions, a number that is stated with the loop and fixed by the constant term of its published formula.
So the constant term is fitted once for each kernel; the slopes and the waves of the six workers are what the
points verify. The cost of supervisor code around the workers is inside the fitted sum and is verified by the
patch loop and the matrix kernels, which have no free number.

For a worker of its own reduction, which is another loop, the vendor's library states about 33 instructions of
entry and 24 more for each reduction. The fitted reduction has 42 before its loop: between 33 and 57, but the
statement is too coarse to replace the fit.
"""

from compiler.simulator.harness import Program
from tests.simulator.programs import program_of

FRAME = 32


def _call(entry: str, worker: str, arguments: int) -> str:
    """A supervisor function that stores $m2 and following in a frame and runs all workers on it."""
    stores = "\n    ".join(f"st32 $m{2 + k}, $m11, $m15, {k}" for k in range(arguments))
    return f"""
.supervisor
.align 8
{entry}:
    add $m11, $m11, -{FRAME}
    {stores}
    setzi $m0, {worker}
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, {FRAME}
    br $m10
"""


def _idle(count: int) -> str:
    return "\n    ".join(["nop"] * count)


_SHARE = """
    # Units of work of this worker: ceil((units - worker) / 6), by the reciprocal of 6 in 18 fraction bits.
    sub $m1, $m1, $m0
    add $m1, $m1, 5
    setzi $m7, 43691
    mul $m1, $m1, $m7
    shr $m1, $m1, 18
"""
"""From units in $m1 and the worker in $m0: this worker's units in $m1."""

ADD_PROLOGUE = 58


def add_program() -> Program:
    """Entry ``add_f16``: $m2 out, $m3 left, $m4 right, $m5 elements, $m6 left count, $m7 right count.

    Quads go round-robin to the workers; three bundles a quad: load beside the sum of the quad before, load,
    store. The last quad is drained without reading further.
    """
    text = (
        _call("add_f16", "add_worker", 6)
        + f"""
.worker
.align 8
add_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $m13, $m15, 3
    shr $m1, $m1, 2
    {_SHARE}
    shl $m0, $m0, 3
    ld32 $m2, $m13, $m15, 0
    add $m2, $m2, $m0
    ld32 $m3, $m13, $m15, 1
    add $m3, $m3, $m0
    ld32 $m4, $m13, $m15, 2
    add $m4, $m4, $m0
    brnzdec $m1, .Lsome
    exitz $m15
.Lsome:
    {_idle(ADD_PROLOGUE)}
    ld64step $a0:1, $m15, $m3+=, 6
    ld64step $a2:3, $m15, $m4+=, 6
    .align 8
    nop
    rpt $m1, 2
    {{ ld64step $a0:1, $m15, $m3+=, 6 ; f16v4add $a4:5, $a0:1, $a2:3 }}
    {{ ld64step $a2:3, $m15, $m4+=, 6 ; fnop }}
    {{ st64step $a4:5, $m15, $m2+=, 6 ; fnop }}
    f16v4add $a4:5, $a0:1, $a2:3
    st64step $a4:5, $m15, $m2+=, 6
    exitz $m15
"""
    )
    return program_of(text)


REDUCE_PROLOGUE = 21


def reduce_program() -> Program:
    """Entry ``reduce_sum_f16``: $m2 out, $m3 seed, $m4 partials, $m5 remote partials, $m6 elements.

    Eight elements a step and worker, eleven instructions and two bundles for each remote partial, whose rows
    follow each other.
    """
    text = (
        _call("reduce_sum_f16", "reduce_worker", 5)
        + f"""
.worker
.align 8
reduce_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m5, $m13, $m15, 4
    shr $m1, $m5, 3
    {_SHARE}
    ld32 $m6, $m13, $m15, 3
    shr $m5, $m5, 2
    add $m5, $m5, -1
    shl $m0, $m0, 4
    ld32 $m2, $m13, $m15, 0
    add $m2, $m2, $m0
    ld32 $m3, $m13, $m15, 1
    add $m3, $m3, $m0
    ld32 $m4, $m13, $m15, 2
    add $m4, $m4, $m0
    {_idle(REDUCE_PROLOGUE)}
    bri .Lmore
    .align 8
.Lstep:
    or $m0, $m4, 0
    ld64step $a0:1, $m15, $m3+=, 1
    ld64step $a2:3, $m15, $m3+=, 11
    or64 $a6:7, $azeros, $azeros
    nop
    rpt $m6, 1
    {{ ld64step $a4:5, $m15, $m0+=, 1 ; f16v4add $a2:3, $a2:3, $a6:7 }}
    {{ ld64step $a6:7, $m15, $m0+=, $m5 ; f16v4add $a0:1, $a0:1, $a4:5 }}
    f16v4add $a2:3, $a2:3, $a6:7
    st64step $a0:1, $m15, $m2+=, 1
    st64step $a2:3, $m15, $m2+=, 11
    add $m4, $m4, 96
.Lmore:
    brnzdec $m1, .Lstep
    exitz $m15
"""
    )
    return program_of(text)


COPY_PROLOGUE = 25


def copy_program() -> Program:
    """Entry ``caller``: calls ``copy_u64`` as a tile program does, with the words of ``copy_program`` calls.

    $m4 words of 64 bits for each worker, $m5 workers with one more; $m2 to, $m3 from. Each worker copies a
    contiguous part.
    """
    text = (
        _call("copy_u64", "copy_worker", 4)
        + f"""
caller:
    or $m12, $m10, 0
    setzi $m2, 0x60000
    setzi $m3, 0x70000
    ld32 $m4, $m6, $m15, 0
    ld32 $m5, $m6, $m15, 1
start:
    call $m10, copy_u64
finish:
    br $m12

.worker
.align 8
copy_worker:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $m13, $m15, 2
    ld32 $m5, $m13, $m15, 3
    mul $m6, $m0, $m1
    min $m7, $m0, $m5
    add $m6, $m6, $m7
    cmpult $m7, $m0, $m5
    add $m1, $m1, $m7
    ld32 $m2, $m13, $m15, 0
    ld32 $m3, $m13, $m15, 1
    shl $m6, $m6, 3
    add $m2, $m2, $m6
    add $m3, $m3, $m6
    {_idle(COPY_PROLOGUE)}
    .align 8
    nop
    rpt $m1, 1
    {{ ld64step $a0:1, $m15, $m3+=, 1 ; fnop }}
    {{ st64step $a0:1, $m15, $m2+=, 1 ; fnop }}
    exitz $m15
"""
    )
    return program_of(text)


def patch_program() -> Program:
    """Entry ``patch``: $m2 descriptors {word address, initial, step}, $m3 words, $m1 iteration.

    Nine instructions a word: three loads, a product, a sum, a store, two counters, a taken branch.
    """
    return program_of("""
.supervisor
patch:
    ld32 $m4, $m2, $m15, 0
    ld32 $m5, $m2, $m15, 1
    ld32 $m6, $m2, $m15, 2
    mul $m6, $m6, $m1
    add $m5, $m5, $m6
    st32 $m5, $m4, $m15, 0
    add $m2, $m2, 12
    add $m3, $m3, -1
    brnz $m3, patch
    br $m10
""")
