.byte_branches
.globl copy.fill_halves
.type copy.fill_halves, @function
.section .text.copy.fill_halves, "ax", @progbits
    .align 8
copy.fill_halves:
.supervisor
    add $m11, $m11, -32
    st32 $m4, $m11, $m15, 2
    and $m0, $m5, 255
    st32 $m0, $m11, $m15, 3
    shr $m0, $m5, 8
    and $m0, $m0, 255
    st32 $m0, $m11, $m15, 4
    shr $m0, $m5, 24
    add $m2, $m2, $m0
    shr $m9, $m5, 16
    and $m9, $m9, 1
    shl $m0, $m6, $m9
    st32 $m0, $m11, $m15, 1
    add $m0, $m3, $m9
    shr $m0, $m0, $m9
    ld32 $m1, $m11, $m15, 3
    mul $m1, $m1, $m0
    setzi $m5, 0xaaab
    mul $m1, $m1, $m5
    shr $m1, $m1, 18
    st32 $m1, $m11, $m15, 5
    ld32 $m5, $m11, $m15, 4
    mul $m1, $m1, $m5
    sub $m0, $m0, $m1
    st32 $m0, $m11, $m15, 6
    st32 $m2, $m11, $m15, 0
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    brz $m9, return
    add $m2, $m2, $m6
    shr $m0, $m3, 1
    ld32 $m1, $m11, $m15, 3
    mul $m1, $m1, $m0
    setzi $m5, 0xaaab
    mul $m1, $m1, $m5
    shr $m1, $m1, 18
    st32 $m1, $m11, $m15, 5
    ld32 $m5, $m11, $m15, 4
    mul $m1, $m1, $m5
    sub $m0, $m0, $m1
    st32 $m0, $m11, $m15, 6
    st32 $m2, $m11, $m15, 0
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
return:
    add $m11, $m11, 32
    br $m10
    .align 8
worker:
.worker
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 3
    ld32 $m3, $m13, $m15, 4
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    mov $m8, $m4
    add $m9, $m4, $m4
    ld32 $m6, $m13, $m15, 5
    ld32 $m7, $m13, $m15, 6
    cmpult $m7, $m0, $m7
    add $m6, $m6, $m7
    add $m6, $m6, -1
    brneg $m6, done
    ld32 $m2, $m13, $m15, 1
    mul $m2, $m2, $m0
    ld32 $m3, $m13, $m15, 0
    add $m3, $m3, $m2
row:
    ld32 $m2, $m13, $m15, 2
    and $m0, $m3, 2
    mov $m5, $m3
    brz $m0, aligned
    add $m2, $m2, -1
    add $m5, $m5, -2
    brnz $m11, headless
    ldb16 $a0, $m5, $m15, 0
    sort4x16lo $a0, $a0, $a15
    st32 $a0, $m5, $m15, 0
headless:
    add $m5, $m5, 4
aligned:
    shr $m0, $m2, 1
    sub $m0, $m0, $m11
    add $m0, $m0, $m8
    add $m0, $m0, -1
    ld32 $m7, $m13, $m15, 4
    mul $m0, $m0, $m7
    setzi $m7, 0xaaab
    mul $m0, $m0, $m7
    shr $m0, $m0, 18
    brz $m0, end
    shl $m7, $m11, 2
    add $m10, $m5, $m7
    { rpt $m0, 0 ; fnop }
    { st32step $a15, $m15, $m10+=, $m8 ; fnop }
end:
    and $m0, $m2, 1
    brz $m0, next
    add $m0, $m11, 1
    cmpeq $m0, $m0, $m8
    brz $m0, next
    shr $m2, $m2, 1
    shl $m2, $m2, 2
    add $m5, $m5, $m2
    ldb16 $a1, $m5, $m15, 1
    sort4x16lo $a0, $a15, $a1
    st32 $a0, $m5, $m15, 0
next:
    ld32 $m2, $m13, $m15, 4
    ld32 $m0, $m13, $m15, 1
    mul $m0, $m0, $m2
    add $m3, $m3, $m0
    brnzdec $m6, row
done:
    exitz $m15
