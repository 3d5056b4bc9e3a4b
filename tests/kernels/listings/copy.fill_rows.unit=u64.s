.byte_branches
.globl "copy.fill_rows.unit=u64"
.type "copy.fill_rows.unit=u64", @function
.section ".text.copy.fill_rows.unit=u64", "ax", @progbits
    .align 8
"copy.fill_rows.unit=u64":
.supervisor
    add $m11, $m11, -32
    st32 $m2, $m11, $m15, 0
    st32 $m7, $m11, $m15, 1
    and $m0, $m5, 255
    shr $m1, $m6, 16
    st32 $m0, $m11, $m15, 6
    st32 $m1, $m11, $m15, 4
    mul $m0, $m0, $m1
    sub $m0, $m4, $m0
    st32 $m0, $m11, $m15, 5
    shr $m0, $m5, 8
    shl $m1, $m6, 16
    shr $m1, $m1, 16
    st32 $m0, $m11, $m15, 7
    st32 $m1, $m11, $m15, 2
    mul $m0, $m0, $m1
    sub $m0, $m3, $m0
    st32 $m0, $m11, $m15, 3
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 32
    br $m10
    .align 8
worker:
.worker
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 6
    ld32 $m3, $m13, $m15, 7
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    ld32 $m6, $m13, $m15, 2
    ld32 $m8, $m13, $m15, 3
    cmpult $m8, $m0, $m8
    add $m6, $m6, $m8
    add $m6, $m6, -1
    brneg $m6, done
    ld32 $m7, $m13, $m15, 4
    ld32 $m8, $m13, $m15, 5
    cmpult $m8, $m11, $m8
    add $m7, $m7, $m8
    brz $m7, done
    shl $m11, $m11, 3
    ld32 $m2, $m13, $m15, 1
    mul $m9, $m2, $m0
    ld32 $m1, $m13, $m15, 0
    add $m1, $m1, $m9
    add $m1, $m1, $m11
    mul $m2, $m2, $m3
row:
    mov $m9, $m1
    { rpt $m7, 0 ; fnop }
    { st64step $a14:15, $m15, $m9+=, $m4 ; fnop }
    add $m1, $m1, $m2
    brnzdec $m6, row
done:
    exitz $m15
