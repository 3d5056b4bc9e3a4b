.byte_branches
.globl "reduce.sum.precision=f16"
.type "reduce.sum.precision=f16", @function
.section ".text.reduce.sum.precision=f16", "ax", @progbits
    .align 8
"reduce.sum.precision=f16":
.supervisor
    add $m11, $m11, -32
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    st32 $m9, $m11, $m15, 7
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 32
    br $m10
    .align 8
worker:
.worker
    get $m5, $WSR
    and $m5, $m5, 7
    ld32 $m0, $m13, $m15, 0
    ld32 $m1, $m13, $m15, 1
    ld32 $m2, $m13, $m15, 2
    ld32 $m6, $m13, $m15, 3
    ld32 $m3, $m13, $m15, 4
    ld32 $m4, $m13, $m15, 5
    ld32 $m11, $m13, $m15, 7
    add $m6, $m6, -1
    add $m7, $m11, -1
    cmpeq $m10, $m5, $m4
    cmpult $m4, $m5, $m4
    add $m3, $m3, $m4
    shl $m8, $m5, 4
    brz $m3, tail
    add $m3, $m3, -1
    .align 8
group:
    ld64 $a4:5, $m1, $m8, 0
    ld64 $a6:7, $m1, $m8, 1
    add $m9, $m2, $m8
    ld64step $a0:1, $m15, $m9+=, 1
    { ld64step $a2:3, $m15, $m9+=, $m7 ; f16v4add $a4:5, $a4:5, $a0:1 }
    { rpt $m6, 1 ; fnop }
    { ld64step $a0:1, $m15, $m9+=, 1 ; f16v4add $a6:7, $a6:7, $a2:3 }
    { ld64step $a2:3, $m15, $m9+=, $m7 ; f16v4add $a4:5, $a4:5, $a0:1 }
    { st64step $a4:5, $m0, $m8+=, 1 ; f16v4add $a6:7, $a6:7, $a2:3 }
    st64step $a6:7, $m0, $m8+=, 11
    brnzdec $m3, group
tail:
    brz $m10, done
    ld32 $m4, $m13, $m15, 6
    brz $m4, done
    ld64 $a4:5, $m1, $m8, 0
    add $m9, $m2, $m8
    ld64step $a0:1, $m15, $m9+=, $m11
    { rpt $m6, 0 ; fnop }
    { ld64step $a0:1, $m15, $m9+=, $m11 ; f16v4add $a4:5, $a4:5, $a0:1 }
    f16v4add $a4:5, $a4:5, $a0:1
    st64 $a4:5, $m0, $m8, 0
done:
    exitz $m15
