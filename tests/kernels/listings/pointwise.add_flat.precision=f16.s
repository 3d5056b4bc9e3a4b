.byte_branches
.globl "pointwise.add_flat.precision=f16"
.type "pointwise.add_flat.precision=f16", @function
.section ".text.pointwise.add_flat.precision=f16", "ax", @progbits
    .align 8
"pointwise.add_flat.precision=f16":
.supervisor
    add $m11, $m11, -24
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 24
    br $m10
    .align 8
worker:
.worker
    get $m5, $WSR
    and $m5, $m5, 7
    ld32 $m0, $m13, $m15, 0
    ld32 $m1, $m13, $m15, 1
    ld32 $m2, $m13, $m15, 2
    ld32 $m3, $m13, $m15, 3
    ld32 $m4, $m13, $m15, 4
    cmpeq $m8, $m5, $m4
    cmpult $m4, $m5, $m4
    add $m3, $m3, $m4
    shl $m6, $m5, 3
    mov $m7, $m6
    brz $m3, tail
    ld64 $a0:1, $m1, $m6, 0
    ld64step $a2:3, $m2, $m6+=, 6
    add $m3, $m3, -1
    { rpt $m3, 2 ; fnop }
    { ld64 $a0:1, $m1, $m6, 0 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { ld64step $a2:3, $m2, $m6+=, 6 ; fnop }
    { st64step $a4:5, $m0, $m7+=, 6 ; fnop }
    f16v4add $a4:5, $a0:1, $a2:3
    st64step $a4:5, $m0, $m7+=, 6
tail:
    brz $m8, done
    ld32 $m4, $m13, $m15, 5
    brz $m4, done
    and $m3, $m4, 2
    brz $m3, half
    ld32 $a0, $m1, $m7, 0
    ld32 $a2, $m2, $m7, 0
    f16v2add $a4, $a0, $a2
    st32 $a4, $m0, $m7, 0
    add $m7, $m7, 4
half:
    and $m4, $m4, 1
    brz $m4, done
    ldb16 $a0, $m1, $m7, 0
    ldb16 $a2, $m2, $m7, 0
    f16v2add $a4, $a0, $a2
    ld32 $a5, $m0, $m7, 0
    sort4x16hi $a5, $a5, $a5
    sort4x16lo $a4, $a4, $a5
    st32 $a4, $m0, $m7, 0
done:
    exitz $m15
