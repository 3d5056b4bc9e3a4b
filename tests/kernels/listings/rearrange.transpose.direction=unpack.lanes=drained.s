.byte_branches
.globl "rearrange.transpose.direction=unpack.lanes=drained"
.type "rearrange.transpose.direction=unpack.lanes=drained", @function
.section ".text.rearrange.transpose.direction=unpack.lanes=drained", "ax", @progbits
    .align 8
"rearrange.transpose.direction=unpack.lanes=drained":
.supervisor
    add $m11, $m11, -112
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    st32 $m9, $m11, $m15, 7
    shr $m1, $m7, 16
    st32 $m1, $m11, $m15, 11
    shl $m0, $m6, 10
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 18
    shl $m0, $m6, 13
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 17
    mul $m8, $m8, $m0
    mul $m0, $m0, $m1
    st32 $m0, $m11, $m15, 21
    sub $m0, $m0, $m1
    shl $m0, $m0, 2
    st32 $m0, $m11, $m15, 19
    mul $m0, $m1, -64
    add $m0, $m0, $m8
    st32 $m0, $m11, $m15, 20
    shl $m7, $m7, 16
    shr $m7, $m7, 16
    st32 $m7, $m11, $m15, 12
    mul $m0, $m7, 7
    st32 $m0, $m11, $m15, 16
    mul $m0, $m7, -9
    add $m0, $m0, 1
    st32 $m0, $m11, $m15, 15
    shl $m7, $m7, 2
    st32 $m7, $m11, $m15, 13
    shl $m0, $m4, 16
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 8
    mul $m0, $m0, $m7
    st32 $m0, $m11, $m15, 14
    shr $m0, $m5, 16
    shr $m1, $m4, 16
    st32 $m1, $m11, $m15, 9
    shl $m4, $m6, 16
    shr $m4, $m4, 16
    shl $m6, $m5, 16
    shr $m6, $m6, 16
    mul $m8, $m6, $m0
    shl $m8, $m8, 2
matrix:
    ld32 $m5, $m11, $m15, 8
    st32 $m2, $m11, $m15, 22
stripe:
    min $m9, $m5, $m6
    add $m1, $m9, 15
    shr $m1, $m1, 4
    shl $m1, $m1, 2
    st32 $m1, $m11, $m15, 23
    st32 $m2, $m11, $m15, 24
    st32 $m3, $m11, $m15, 25
    st32 $m9, $m11, $m15, 26
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    mul $m0, $m9, $m7
    add $m2, $m2, $m0
    add $m3, $m3, $m8
    sub $m5, $m5, $m9
    brnz $m5, stripe
    ld32 $m0, $m11, $m15, 14
    ld32 $m2, $m11, $m15, 22
    add $m2, $m2, $m0
    add $m4, $m4, -1
    brnz $m4, matrix
    add $m11, $m11, 112
    br $m10
    .align 8
worker:
.worker
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 17
    ld32 $m3, $m13, $m15, 18
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    ld32 $m5, $m13, $m15, 11
    mul $m3, $m11, $m5
    shl $m6, $m3, 2
    ld32 $m1, $m13, $m15, 24
    add $m1, $m1, $m6
    ld32 $m5, $m13, $m15, 6
    mul $m7, $m11, $m5
    ld32 $m2, $m13, $m15, 25
    add $m2, $m2, $m7
    ld32 $m5, $m13, $m15, 9
    sub $m3, $m5, $m3
    ld32 $m8, $m13, $m15, 12
    ld32 $m9, $m13, $m15, 15
    cmpslt $m4, $m15, $m3
    brz $m4, done
quad:
    ld32 $m4, $m13, $m15, 23
    cmpult $m4, $m0, $m4
    brz $m4, done
    shr $m6, $m0, 2
    shl $m6, $m6, 4
    and $m4, $m0, 3
    shl $m4, $m4, 1
    add $m6, $m6, $m4
    ld32 $m5, $m13, $m15, 26
    sub $m5, $m5, $m6
    add $m4, $m5, -8
    max $m5, $m5, 0
    min $m5, $m5, 2
    max $m4, $m4, 0
    min $m4, $m4, 2
    add $m5, $m5, $m4
    brz $m5, next
    mul $m6, $m6, $m8
    shl $m6, $m6, 2
    add $m6, $m6, $m1
    shr $m7, $m0, 2
    ld32 $m4, $m13, $m15, 7
    mul $m7, $m7, $m4
    and $m4, $m0, 3
    shl $m4, $m4, 3
    add $m7, $m7, $m4
    add $m7, $m7, $m2
    mov $m11, $m3
block:
    ld32 $m4, $m13, $m15, 11
    min $m10, $m4, $m11
    cmpeq $m4, $m5, 4
    brz $m4, edge
    add $m10, $m10, -1
    ld32 $m4, $m13, $m15, 16
    ld64step $a0:1, $m15, $m7+=, 4
    ld64step $a2:3, $m15, $m7+=, 4
    sort4x16lo $a4, $a0, $a2
    sort4x16hi $a5, $a0, $a2
    st32step $a4, $m15, $m6+=, $m8
    sort4x16lo $a6, $a1, $a3
    st32step $a5, $m15, $m6+=, $m4
    rpt $m10, 5
    { st32step $a6, $m15, $m6+=, $m8 ; sort4x16hi $a7, $a1, $a3 }
    { ld64step $a0:1, $m15, $m7+=, 4 ; fnop }
    { ld64step $a2:3, $m15, $m7+=, 4 ; fnop }
    { st32step $a7, $m15, $m6+=, $m9 ; sort4x16lo $a4, $a0, $a2 }
    { st32step $a4, $m15, $m6+=, $m8 ; sort4x16hi $a5, $a0, $a2 }
    { st32step $a5, $m15, $m6+=, $m4 ; sort4x16lo $a6, $a1, $a3 }
    sort4x16hi $a7, $a1, $a3
    st32step $a6, $m15, $m6+=, $m8
    st32step $a7, $m15, $m6+=, $m9
behind:
step:
    ld32 $m4, $m13, $m15, 21
    sub $m11, $m11, $m4
    cmpslt $m4, $m15, $m11
    brz $m4, next
    ld32 $m4, $m13, $m15, 19
    add $m6, $m6, $m4
    ld32 $m4, $m13, $m15, 20
    add $m7, $m7, $m4
    bri block
next:
    ld32 $m4, $m13, $m15, 18
    add $m0, $m0, $m4
    bri quad
done:
    exitz $m15
edge:
    add $m4, $m5, -1
    brz $m4, rows1
    add $m4, $m4, -1
    brz $m4, rows2
rows3:
    ld32 $m4, $m13, $m15, 13
    ld32 $m9, $m13, $m15, 16
    add $m10, $m10, -1
pairs3:
    ld64step $a0:1, $m15, $m7+=, 4
    ld64step $a2:3, $m15, $m7+=, 4
    sort4x16lo $a4, $a0, $a2
    st32 $a4, $m6, $m15, 0
    sort4x16hi $a4, $a0, $a2
    st32 $a4, $m6, $m15, $m8
    sort4x16lo $a4, $a1, $a3
    st32 $a4, $m6, $m4, $m9
    add $m6, $m6, 4
    brnzdec $m10, pairs3
    bri behind
rows2:
    add $m10, $m10, -1
pairs2:
    ld64step $a0:1, $m15, $m7+=, 4
    ld64step $a2:3, $m15, $m7+=, 4
    sort4x16lo $a4, $a0, $a2
    st32 $a4, $m6, $m15, 0
    sort4x16hi $a4, $a0, $a2
    st32 $a4, $m6, $m15, $m8
    add $m6, $m6, 4
    brnzdec $m10, pairs2
    bri behind
rows1:
    add $m10, $m10, -1
pairs1:
    ld64step $a0:1, $m15, $m7+=, 4
    ld64step $a2:3, $m15, $m7+=, 4
    sort4x16lo $a4, $a0, $a2
    st32 $a4, $m6, $m15, 0
    add $m6, $m6, 4
    brnzdec $m10, pairs1
    bri behind
