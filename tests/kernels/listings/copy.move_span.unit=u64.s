.byte_branches
.globl "copy.move_span.unit=u64"
.type "copy.move_span.unit=u64", @function
.section ".text.copy.move_span.unit=u64", "ax", @progbits
    .align 8
"copy.move_span.unit=u64":
.supervisor
    add $m11, $m11, -16
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 16
    br $m10
    .align 8
worker:
.worker
    get $m4, $WSR
    and $m4, $m4, 7
    ld32 $m0, $m13, $m15, 0
    ld32 $m1, $m13, $m15, 1
    ld32 $m2, $m13, $m15, 2
    ld32 $m3, $m13, $m15, 3
    cmpult $m3, $m4, $m3
    add $m2, $m2, $m3
    shl $m5, $m4, 3
    add $m0, $m0, $m5
    add $m1, $m1, $m5
    rpt $m2, 1
    { ld64step $a0:1, $m15, $m1+=, 6 ; fnop }
    { st64step $a0:1, $m15, $m0+=, 6 ; fnop }
    exitz $m15
