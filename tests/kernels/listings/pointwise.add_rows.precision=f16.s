.byte_branches
.globl "pointwise.add_rows.precision=f16"
.type "pointwise.add_rows.precision=f16", @function
.section ".text.pointwise.add_rows.precision=f16", "ax", @progbits
    .align 8
"pointwise.add_rows.precision=f16":
.supervisor
    add $m11, $m11, -56
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    and $m0, $m8, 255
    st32 $m0, $m11, $m15, 8
    shr $m1, $m9, 16
    st32 $m1, $m11, $m15, 6
    mul $m0, $m0, $m1
    sub $m0, $m7, $m0
    st32 $m0, $m11, $m15, 7
    shr $m0, $m8, 8
    and $m0, $m0, 255
    st32 $m0, $m11, $m15, 9
    shl $m1, $m9, 16
    shr $m1, $m1, 16
    st32 $m1, $m11, $m15, 4
    mul $m0, $m0, $m1
    sub $m0, $m6, $m0
    st32 $m0, $m11, $m15, 5
    shl $m0, $m7, 3
    st32 $m0, $m11, $m15, 10
    mul $m0, $m0, $m6
    st32 $m0, $m11, $m15, 11
    shr $m0, $m8, 16
    st32 $m0, $m11, $m15, 12
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 56
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
    ld32 $m8, $m13, $m15, 6
    ld32 $m10, $m13, $m15, 7
    cmpult $m10, $m11, $m10
    add $m8, $m8, $m10
    add $m8, $m8, -1
    brneg $m8, done
    ld32 $m7, $m13, $m15, 10
    shl $m11, $m11, 3
    mul $m5, $m7, $m3
    mul $m10, $m0, $m7
    ld32 $m0, $m13, $m15, 0
    add $m0, $m0, $m10
    ld32 $m1, $m13, $m15, 1
    add $m1, $m1, $m10
    ld32 $m2, $m13, $m15, 2
    ld32 $m9, $m13, $m15, 3
    add $m9, $m9, -1
    ld32 $m10, $m13, $m15, 12
    brnz $m10, by_rows
    shr $m5, $m5, 3
outer:
    mov $m8, $m11
column:
    mov $m3, $m8
    mov $m10, $m8
    ld64step $a2:3, $m2, $m8+=, $m4
    ld64step $a0:1, $m1, $m3+=, $m5
    { rpt $m6, 1 ; fnop }
    { ld64step $a0:1, $m1, $m3+=, $m5 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { st64step $a4:5, $m0, $m10+=, $m5 ; fnop }
    f16v4add $a4:5, $a0:1, $a2:3
    st64 $a4:5, $m0, $m10, 0
    cmpult $m10, $m8, $m7
    brnz $m10, column
    ld32 $m3, $m13, $m15, 11
    add $m0, $m0, $m3
    add $m1, $m1, $m3
    add $m2, $m2, $m7
    brnzdec $m9, outer
done:
    exitz $m15
by_rows:
    mov $m7, $m6
row:
    mov $m3, $m11
    mov $m10, $m11
    ld64 $a0:1, $m1, $m3, 0
    ld64step $a2:3, $m2, $m3+=, $m4
    rpt $m8, 2
    { ld64 $a0:1, $m1, $m3, 0 ; f16v4add $a4:5, $a0:1, $a2:3 }
    { ld64step $a2:3, $m2, $m3+=, $m4 ; fnop }
    { st64step $a4:5, $m0, $m10+=, $m4 ; fnop }
    f16v4add $a4:5, $a0:1, $a2:3
    st64 $a4:5, $m0, $m10, 0
    add $m0, $m0, $m5
    add $m1, $m1, $m5
    brnzdec $m7, row
    add $m10, $m6, 1
    mul $m10, $m10, $m5
    ld32 $m3, $m13, $m15, 11
    sub $m3, $m3, $m10
    add $m0, $m0, $m3
    add $m1, $m1, $m3
    ld32 $m3, $m13, $m15, 10
    add $m2, $m2, $m3
    brnzdec $m9, by_rows
    exitz $m15
