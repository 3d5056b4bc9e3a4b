.byte_branches
.globl "rearrange.halves.direction=unpack.lanes=drained_columns"
.type "rearrange.halves.direction=unpack.lanes=drained_columns", @function
.section ".text.rearrange.halves.direction=unpack.lanes=drained_columns", "ax", @progbits
    .align 8
"rearrange.halves.direction=unpack.lanes=drained_columns":
.supervisor
    add $m11, $m11, -96
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    st32 $m9, $m11, $m15, 7
    shl $m0, $m4, 16
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 8
    shl $m0, $m6, 11
    shr $m0, $m0, 27
    st32 $m0, $m11, $m15, 11
    shl $m1, $m6, 10
    shr $m1, $m1, 31
    add $m0, $m7, -2
    mul $m0, $m0, $m1
    sub $m8, $m7, $m0
    add $m7, $m0, 2
    shr $m0, $m4, 16
    st32 $m0, $m11, $m15, 19
    st32 $m0, $m11, $m15, 20
    shl $m4, $m6, 16
    shr $m4, $m4, 16
    shl $m6, $m5, 16
    shr $m6, $m6, 16
    shr $m0, $m5, 16
    mul $m8, $m6, $m0
    shl $m8, $m8, 1
    shr $m0, $m6, 4
    mul $m5, $m0, $m9
    st32 $m5, $m11, $m15, 10
    brz $m1, columns
    setzi $m0, 4
    st32 $m0, $m11, $m15, 11
    st32 $m9, $m11, $m15, 15
    setzi $m0, 2
    st32 $m0, $m11, $m15, 16
    st32 $m5, $m11, $m15, 18
    setzi $m0, 16
    st32 $m0, $m11, $m15, 14
    shr $m0, $m9, 5
    st32 $m0, $m11, $m15, 17
    bri both
columns:
    st32 $m5, $m11, $m15, 15
    setzi $m0, 32
    st32 $m0, $m11, $m15, 16
    st32 $m9, $m11, $m15, 18
    setzi $m0, 1
    st32 $m0, $m11, $m15, 14
    setzi $m0, 8
    st32 $m0, $m11, $m15, 17
both:
    shl $m1, $m1, 2
matrix:
    ld32 $m5, $m11, $m15, 8
    st32 $m2, $m11, $m15, 9
stripe:
    min $m9, $m5, $m6
    st32 $m2, $m11, $m15, 12
    st32 $m3, $m11, $m15, 13
    st32 $m9, $m11, $m1, 19
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    mul $m0, $m9, $m7
    add $m2, $m2, $m0
    add $m3, $m3, $m8
    sub $m5, $m5, $m9
    brnz $m5, stripe
    ld32 $m0, $m11, $m15, 6
    ld32 $m2, $m11, $m15, 9
    add $m2, $m2, $m0
    add $m4, $m4, -1
    brnz $m4, matrix
    add $m11, $m11, 96
    br $m10
    .align 8
worker:
.worker
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $m13, $m15, 12
    and $m1, $m1, 2
    shr $m1, $m1, 1
    shl $m0, $m0, 1
    sub $m0, $m0, $m1
    max $m0, $m0, 0
    ld32 $m9, $m13, $m15, 14
    ld32 $m10, $m13, $m15, 18
row:
    ld32 $m8, $m13, $m15, 20
    cmpult $m8, $m0, $m8
    brz $m8, done
    ld32 $m8, $m13, $m15, 11
    shr $m2, $m0, $m8
    shl $m4, $m2, $m8
    sub $m4, $m0, $m4
    ld32 $m8, $m13, $m15, 15
    mul $m2, $m2, $m8
    ld32 $m8, $m13, $m15, 16
    mul $m4, $m4, $m8
    add $m2, $m2, $m4
    ld32 $m8, $m13, $m15, 13
    add $m2, $m2, $m8
    ld32 $m8, $m13, $m15, 5
    mul $m3, $m0, $m8
    ld32 $m8, $m13, $m15, 12
    add $m3, $m3, $m8
    ld32 $m5, $m13, $m15, 19
    setzi $m10, 4
run:
    ld32 $m6, $m13, $m15, 17
    min $m6, $m6, $m5
    sub $m5, $m5, $m6
    mov $m4, $m2
    setzi $m9, 1
    setzi $m11, 3
    and $m8, $m3, 2
    brz $m8, words
    add $m3, $m3, -2
    ldb16 $a0, $m3, $m15, 0
    ldb16step $a1, $m15, $m4+=, $m9
    sort4x16lo $a0, $a0, $a1
    st32step $a0, $m15, $m3+=, 1
    add $m6, $m6, -1
    setzi $m9, 3
    setzi $m11, 1
words:
    shr $m7, $m6, 1
    brz $m7, last
    ldb16step $a0, $m15, $m4+=, $m9
    ldb16step $a1, $m15, $m4+=, $m11
    add $m7, $m7, -1
    rpt $m7, 2
    { ldb16step $a0, $m15, $m4+=, $m9 ; sort4x16lo $a2, $a0, $a1 }
    { ldb16step $a1, $m15, $m4+=, $m11 ; fnop }
    { st32step $a2, $m15, $m3+=, 1 ; fnop }
    sort4x16lo $a2, $a0, $a1
    st32step $a2, $m15, $m3+=, 1
last:
    and $m8, $m6, 1
    brz $m8, next
    ldb16 $a0, $m4, $m15, 0
    ldb16 $a1, $m3, $m15, 1
    sort4x16lo $a0, $a0, $a1
    st32 $a0, $m3, $m15, 0
    add $m3, $m3, 2
next:
    add $m2, $m2, $m10
    ld32 $m8, $m13, $m15, 7
    sub $m10, $m8, $m10
    brnz $m5, run
    add $m8, $m0, $m1
    and $m8, $m8, 1
    mul $m8, $m8, 10
    add $m0, $m0, $m8
    add $m0, $m0, 1
    bri row
done:
    exitz $m15
