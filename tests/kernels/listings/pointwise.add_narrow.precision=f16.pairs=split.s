.byte_branches
.globl "pointwise.add_narrow.precision=f16.pairs=split"
.type "pointwise.add_narrow.precision=f16.pairs=split", @function
.section ".text.pointwise.add_narrow.precision=f16.pairs=split", "ax", @progbits
    .align 8
"pointwise.add_narrow.precision=f16.pairs=split":
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
    ld32 $m3, $m13, $m15, 3
    ld32 $m4, $m13, $m15, 4
    ld32 $m7, $m13, $m15, 6
    ld32 $m8, $m13, $m15, 7
    cmpeq $m11, $m5, $m4
    cmpult $m4, $m5, $m4
    add $m3, $m3, $m4
    shl $m6, $m5, 2
    add $m0, $m0, $m6
    add $m1, $m1, $m6
reduce:
    cmpult $m10, $m6, $m7
    brnz $m10, reduced
    sub $m6, $m6, $m7
    bri reduce
reduced:
    brz $m3, tail
    add $m3, $m3, -1
    add $m9, $m7, -2
    cmpult $m10, $m6, $m9
    .align 8
word:
    brz $m10, outside
    ld32step $a0, $m15, $m1+=, 6
    ldb16 $a2, $m2, $m6, 0
    ldb16 $a3, $m2, $m6, 1
    { add $m6, $m6, $m8 ; sort4x16lo $a2, $a2, $a3 }
    { cmpult $m10, $m6, $m9 ; f16v2add $a4, $a0, $a2 }
    st32step $a4, $m15, $m0+=, 6
    brnzdec $m3, word
    bri tail
outside:
    cmpult $m10, $m6, $m7
    brnz $m10, ends
    sub $m6, $m6, $m7
    cmpult $m10, $m6, $m9
    bri word
    .align 8
    nop
ends:
    ld32step $a0, $m15, $m1+=, 6
    ldb16 $a2, $m2, $m6, 0
    ldb16 $a3, $m2, $m15, 0
    { add $m6, $m6, $m8 ; sort4x16lo $a2, $a2, $a3 }
    { cmpult $m10, $m6, $m9 ; f16v2add $a4, $a0, $a2 }
    st32step $a4, $m15, $m0+=, 6
    brnzdec $m3, word
tail:
    brz $m11, done
    ld32 $m3, $m13, $m15, 5
    brz $m3, done
    ldb16 $a0, $m1, $m15, 0
    add $m9, $m7, -2
    ldb16 $a2, $m2, $m9, 0
    f16v2add $a4, $a0, $a2
    ld32 $a5, $m0, $m15, 0
    sort4x16hi $a5, $a5, $a5
    sort4x16lo $a4, $a4, $a5
    st32 $a4, $m0, $m15, 0
done:
    exitz $m15
