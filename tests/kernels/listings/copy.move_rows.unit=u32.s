.byte_branches
.globl "copy.move_rows.unit=u32"
.type "copy.move_rows.unit=u32", @function
.section ".text.copy.move_rows.unit=u32", "ax", @progbits
    .align 8
"copy.move_rows.unit=u32":
.supervisor
    add $m11, $m11, -40
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m8, $m11, $m15, 2
    st32 $m9, $m11, $m15, 3
    and $m0, $m6, 255
    shr $m1, $m7, 16
    st32 $m0, $m11, $m15, 8
    st32 $m1, $m11, $m15, 6
    mul $m0, $m0, $m1
    sub $m0, $m5, $m0
    st32 $m0, $m11, $m15, 7
    shr $m0, $m6, 8
    shl $m1, $m7, 16
    shr $m1, $m1, 16
    st32 $m0, $m11, $m15, 9
    st32 $m1, $m11, $m15, 4
    mul $m0, $m0, $m1
    sub $m0, $m4, $m0
    st32 $m0, $m11, $m15, 5
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 40
    br $m10
    .align 8
worker:
.worker
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 8
    ld32 $m3, $m13, $m15, 9
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    ld32 $m6, $m13, $m15, 4
    ld32 $m8, $m13, $m15, 5
    cmpult $m8, $m0, $m8
    add $m6, $m6, $m8
    add $m6, $m6, -1
    brneg $m6, done
    ld32 $m7, $m13, $m15, 6
    ld32 $m8, $m13, $m15, 7
    cmpult $m8, $m11, $m8
    add $m7, $m7, $m8
    brz $m7, done
    shl $m11, $m11, 2
    ld32 $m2, $m13, $m15, 2
    mul $m9, $m2, $m0
    ld32 $m1, $m13, $m15, 0
    add $m1, $m1, $m9
    add $m1, $m1, $m11
    mul $m2, $m2, $m3
    ld32 $m8, $m13, $m15, 3
    mul $m9, $m8, $m0
    ld32 $m5, $m13, $m15, 1
    add $m5, $m5, $m9
    add $m5, $m5, $m11
    mul $m8, $m8, $m3
row:
    mov $m9, $m1
    mov $m10, $m5
    rpt $m7, 1
    { ld32step $a0, $m15, $m10+=, $m4 ; fnop }
    { st32step $a0, $m15, $m9+=, $m4 ; fnop }
    add $m1, $m1, $m2
    add $m5, $m5, $m8
    brnzdec $m6, row
done:
    exitz $m15
