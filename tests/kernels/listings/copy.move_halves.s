.byte_branches
.globl copy.move_halves
.type copy.move_halves, @function
.section .text.copy.move_halves, "ax", @progbits
    .align 8
copy.move_halves:
.supervisor
    add $m11, $m11, -40
    st32 $m5, $m11, $m15, 4
    and $m0, $m6, 255
    st32 $m0, $m11, $m15, 5
    shr $m0, $m6, 8
    and $m0, $m0, 255
    st32 $m0, $m11, $m15, 6
    shr $m0, $m6, 24
    add $m2, $m2, $m0
    shr $m9, $m6, 16
    and $m9, $m9, 1
    shl $m0, $m7, $m9
    st32 $m0, $m11, $m15, 2
    shl $m0, $m8, $m9
    st32 $m0, $m11, $m15, 3
    add $m0, $m4, $m9
    shr $m0, $m0, $m9
    ld32 $m1, $m11, $m15, 5
    mul $m1, $m1, $m0
    setzi $m6, 0xaaab
    mul $m1, $m1, $m6
    shr $m1, $m1, 18
    st32 $m1, $m11, $m15, 7
    ld32 $m6, $m11, $m15, 6
    mul $m1, $m1, $m6
    sub $m0, $m0, $m1
    st32 $m0, $m11, $m15, 8
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    brz $m9, return
    add $m2, $m2, $m7
    add $m3, $m3, $m8
    shr $m0, $m4, 1
    ld32 $m1, $m11, $m15, 5
    mul $m1, $m1, $m0
    setzi $m6, 0xaaab
    mul $m1, $m1, $m6
    shr $m1, $m1, 18
    st32 $m1, $m11, $m15, 7
    ld32 $m6, $m11, $m15, 6
    mul $m1, $m1, $m6
    sub $m0, $m0, $m1
    st32 $m0, $m11, $m15, 8
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
return:
    add $m11, $m11, 40
    br $m10
    .align 8
worker:
.worker
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 5
    ld32 $m3, $m13, $m15, 6
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    mov $m8, $m4
    add $m9, $m4, $m4
    ld32 $m6, $m13, $m15, 7
    ld32 $m7, $m13, $m15, 8
    cmpult $m7, $m0, $m7
    add $m6, $m6, $m7
    add $m6, $m6, -1
    brneg $m6, done
    ld32 $m2, $m13, $m15, 2
    mul $m2, $m2, $m0
    ld32 $m3, $m13, $m15, 0
    add $m3, $m3, $m2
    ld32 $m2, $m13, $m15, 3
    mul $m2, $m2, $m0
    ld32 $m1, $m13, $m15, 1
    add $m1, $m1, $m2
row:
    ld32 $m2, $m13, $m15, 4
    and $m0, $m3, 2
    mov $m5, $m3
    mov $m4, $m1
    brz $m0, aligned
    add $m2, $m2, -1
    add $m5, $m5, -2
    brnz $m11, headless
    ldb16 $a0, $m5, $m15, 0
    ldb16 $a1, $m4, $m15, 0
    sort4x16lo $a0, $a0, $a1
    st32 $a0, $m5, $m15, 0
headless:
    add $m5, $m5, 4
    add $m4, $m4, 2
aligned:
    shr $m0, $m2, 1
    sub $m0, $m0, $m11
    add $m0, $m0, $m8
    add $m0, $m0, -1
    ld32 $m7, $m13, $m15, 6
    mul $m0, $m0, $m7
    setzi $m7, 0xaaab
    mul $m0, $m0, $m7
    shr $m0, $m0, 18
    brz $m0, end
    shl $m7, $m11, 2
    add $m10, $m5, $m7
    add $m7, $m4, $m7
    ldb16 $a1, $m7, $m15, 1
    ldb16step $a0, $m15, $m7+=, $m9
    add $m0, $m0, -1
    rpt $m0, 2
    { ldb16 $a1, $m7, $m15, 1 ; sort4x16lo $a2, $a0, $a1 }
    { ldb16step $a0, $m15, $m7+=, $m9 ; fnop }
    { st32step $a2, $m15, $m10+=, $m8 ; fnop }
    sort4x16lo $a2, $a0, $a1
    st32 $a2, $m10, $m15, 0
end:
    and $m0, $m2, 1
    brz $m0, next
    add $m0, $m11, 1
    cmpeq $m0, $m0, $m8
    brz $m0, next
    shr $m2, $m2, 1
    shl $m2, $m2, 2
    add $m5, $m5, $m2
    add $m4, $m4, $m2
    ldb16 $a1, $m5, $m15, 1
    ldb16 $a0, $m4, $m15, 0
    sort4x16lo $a0, $a0, $a1
    st32 $a0, $m5, $m15, 0
next:
    ld32 $m2, $m13, $m15, 6
    ld32 $m0, $m13, $m15, 2
    mul $m0, $m0, $m2
    add $m3, $m3, $m0
    ld32 $m0, $m13, $m15, 3
    mul $m0, $m0, $m2
    add $m1, $m1, $m0
    brnzdec $m6, row
done:
    exitz $m15
