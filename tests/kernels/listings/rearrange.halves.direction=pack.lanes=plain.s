.byte_branches
.globl "rearrange.halves.direction=pack.lanes=plain"
.type "rearrange.halves.direction=pack.lanes=plain", @function
.section ".text.rearrange.halves.direction=pack.lanes=plain", "ax", @progbits
    .align 8
"rearrange.halves.direction=pack.lanes=plain":
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
    st32 $m8, $m11, $m15, 19
    shr $m0, $m7, 1
    st32 $m0, $m11, $m15, 14
    shl $m0, $m6, 4
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 16
    shl $m0, $m6, 7
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 15
    shl $m8, $m0, 4
    add $m8, $m8, -15
    mul $m8, $m8, $m7
    shr $m8, $m8, 1
    st32 $m8, $m11, $m15, 17
    mul $m0, $m0, $m9
    shr $m0, $m0, 3
    add $m0, $m0, -3
    st32 $m0, $m11, $m15, 18
    shr $m0, $m4, 16
    st32 $m0, $m11, $m15, 21
    shr $m0, $m5, 16
    st32 $m0, $m11, $m15, 20
    shl $m4, $m6, 16
    shr $m4, $m4, 16
    shl $m6, $m5, 16
    shr $m6, $m6, 16
    shr $m0, $m5, 16
    mul $m8, $m6, $m0
    shl $m8, $m8, 1
    shr $m0, $m6, 4
    st32 $m0, $m11, $m15, 22
    mul $m5, $m0, $m9
    st32 $m5, $m11, $m15, 10
    mov $m0, $m3
    mov $m3, $m2
    mov $m2, $m0
matrix:
    ld32 $m5, $m11, $m15, 8
    st32 $m2, $m11, $m15, 9
stripe:
    min $m9, $m5, $m6
    st32 $m2, $m11, $m15, 12
    st32 $m3, $m11, $m15, 13
    st32 $m9, $m11, $m15, 23
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
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 15
    ld32 $m3, $m13, $m15, 16
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    ld32 $m5, $m13, $m15, 14
    ld32 $m6, $m13, $m15, 17
    ld32 $m7, $m13, $m15, 18
line:
    ld32 $m10, $m13, $m15, 20
    cmpult $m10, $m0, $m10
    brz $m10, done
    ld32 $m10, $m13, $m15, 11
    shr $m2, $m0, $m10
    shl $m4, $m2, $m10
    sub $m4, $m0, $m4
    ld32 $m10, $m13, $m15, 10
    mul $m2, $m2, $m10
    shl $m4, $m4, 5
    add $m2, $m2, $m4
    ld32 $m10, $m13, $m15, 13
    add $m2, $m2, $m10
    ld32 $m10, $m13, $m15, 7
    mul $m10, $m10, $m11
    add $m2, $m2, $m10
    ld32 $m10, $m13, $m15, 19
    mul $m1, $m0, $m10
    ld32 $m10, $m13, $m15, 12
    add $m1, $m1, $m10
    mul $m10, $m11, $m5
    shl $m10, $m10, 5
    add $m1, $m1, $m10
    ld32 $m9, $m13, $m15, 23
    ld32 $m10, $m13, $m15, 21
    cmpult $m10, $m0, $m10
    mul $m9, $m9, $m10
    shr $m3, $m9, 4
    ld32 $m10, $m13, $m15, 15
    sub $m8, $m3, $m11
    add $m8, $m8, $m10
    add $m8, $m8, -1
    ld32 $m10, $m13, $m15, 16
    mul $m8, $m8, $m10
    setzi $m10, 0xaaab
    mul $m8, $m8, $m10
    shr $m8, $m8, 18
    rpt $m8, 19
    { ldb16step $a6, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a0, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a1, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { st64step $a0:1, $m15, $m2+=, 1 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a2, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a3, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { st64step $a2:3, $m15, $m2+=, 1 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a0, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a1, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a6, $m15, $m1+=, $m5 ; sort4x16lo $a2, $a6, $a7 }
    { ldb16step $a7, $m15, $m1+=, $m6 ; fnop }
    { st64step $a0:1, $m15, $m2+=, 1 ; sort4x16lo $a3, $a6, $a7 }
    { st64step $a2:3, $m15, $m2+=, $m7 ; fnop }
    ld32 $m10, $m13, $m15, 15
    mul $m10, $m10, $m8
    add $m10, $m10, $m11
    cmpeq $m10, $m10, $m3
    brz $m10, next
    and $m9, $m9, 15
    ld32 $m10, $m13, $m15, 22
    sub $m3, $m10, $m3
    brz $m3, next
    ld32 $m4, $m13, $m15, 7
    brz $m9, clear
    sub $m10, 16, $m9
    shr $m10, $m10, 1
    shr $m8, $m9, 1
    and $m9, $m9, 1
    rpt $m8, 3
    { ldb16step $a0, $m15, $m1+=, $m5 ; fnop }
    { ldb16step $a1, $m15, $m1+=, $m5 ; fnop }
    { nop ; sort4x16lo $a2, $a0, $a1 }
    { st32step $a2, $m15, $m2+=, 1 ; fnop }
    brz $m9, fill
    ldb16 $a0, $m1, $m15, 0
    sort4x16lo $a0, $a0, $a15
    st32step $a0, $m15, $m2+=, 1
fill:
    { rpt $m10, 0 ; fnop }
    { st32step $a15, $m15, $m2+=, 1 ; fnop }
    add $m2, $m2, $m4
    add $m2, $m2, -32
    add $m3, $m3, -1
clear:
    shr $m4, $m4, 3
    add $m4, $m4, -3
    rpt $m3, 3
    { st64step $a14:15, $m15, $m2+=, 1 ; fnop }
    { st64step $a14:15, $m15, $m2+=, 1 ; fnop }
    { st64step $a14:15, $m15, $m2+=, 1 ; fnop }
    { st64step $a14:15, $m15, $m2+=, $m4 ; fnop }
next:
    ld32 $m10, $m13, $m15, 16
    add $m0, $m0, $m10
    bri line
done:
    exitz $m15
