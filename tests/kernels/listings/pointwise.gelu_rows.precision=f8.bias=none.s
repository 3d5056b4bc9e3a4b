.byte_branches
.globl "pointwise.gelu_rows.precision=f8.bias=none"
.type "pointwise.gelu_rows.precision=f8.bias=none", @function
.section ".text.pointwise.gelu_rows.precision=f8.bias=none", "ax", @progbits
    .align 8
"pointwise.gelu_rows.precision=f8.bias=none":
.supervisor
    add $m11, $m11, -88
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m8, $m11, $m15, 15
    and $m0, $m6, 255
    st32 $m0, $m11, $m15, 7
    shr $m1, $m7, 16
    st32 $m1, $m11, $m15, 5
    mul $m0, $m0, $m1
    sub $m0, $m5, $m0
    st32 $m0, $m11, $m15, 6
    shr $m2, $m6, 8
    and $m2, $m2, 255
    st32 $m2, $m11, $m15, 8
    shl $m1, $m7, 16
    shr $m1, $m1, 16
    st32 $m1, $m11, $m15, 3
    mul $m1, $m1, $m2
    sub $m1, $m4, $m1
    st32 $m1, $m11, $m15, 4
    setzi $m0, 0x3800
    or $m0, $m0, 0x3c000000
    st32 $m0, $m11, $m15, 18
    setzi $m0, 0
    or $m0, $m0, 0x44000000
    st32 $m0, $m11, $m15, 19
    setzi $m0, 0x13e62
    or $m0, $m0, 0x34900000
    st32 $m0, $m11, $m15, 20
    add $m4, $m4, -1
    mul $m4, $m4, 32
    shl $m0, $m5, 3
    shr $m1, $m6, 16
    and $m1, $m1, 1
    mul $m3, $m4, $m1
    st32 $m3, $m11, $m15, 9
    sub $m7, 32, $m0
    mul $m7, $m7, $m1
    add $m0, $m0, $m7
    st32 $m0, $m11, $m15, 11
    mul $m0, $m0, $m2
    st32 $m0, $m11, $m15, 13
    shr $m1, $m6, 18
    st32 $m1, $m11, $m15, 16
    add $m0, $m5, $m1
    shl $m0, $m0, 2
    shr $m1, $m6, 17
    and $m1, $m1, 1
    mul $m3, $m4, $m1
    st32 $m3, $m11, $m15, 10
    sub $m7, 32, $m0
    mul $m7, $m7, $m1
    add $m0, $m0, $m7
    st32 $m0, $m11, $m15, 12
    mul $m0, $m0, $m2
    st32 $m0, $m11, $m15, 14
    shr $m0, $m5, 3
    mul $m0, $m0, $m3
    shl $m1, $m5, 2
    add $m0, $m0, $m1
    st32 $m0, $m11, $m15, 17
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 88
    br $m10
    .align 8
worker:
.worker
    get $m11, $WSR
    and $m11, $m11, 7
    ld32 $m4, $m13, $m15, 7
    ld32 $m3, $m13, $m15, 8
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    ld32 $m6, $m13, $m15, 3
    ld32 $m8, $m13, $m15, 4
    cmpult $m8, $m0, $m8
    add $m6, $m6, $m8
    add $m6, $m6, -1
    brneg $m6, done
    ld32 $m8, $m13, $m15, 5
    ld32 $m9, $m13, $m15, 6
    cmpult $m9, $m11, $m9
    add $m8, $m8, $m9
    add $m8, $m8, -1
    brneg $m8, done
    ld32 $m7, $m13, $m15, 11
    mul $m7, $m0, $m7
    ld32 $m9, $m13, $m15, 12
    mul $m9, $m0, $m9
    ld32 $m0, $m13, $m15, 1
    add $m0, $m0, $m7
    ld32 $m1, $m13, $m15, 0
    add $m1, $m1, $m9
    ld32 $m3, $m13, $m15, 9
    ld32 $m5, $m13, $m15, 10
    shl $m4, $m4, 3
    shl $m11, $m11, 3
    ld32 $a0, $m13, $m15, 15
    uput $FP_SCL, $a0
    setzi $a0, 2
    uput $FP_NFMT, $a0
    uget $a0, $FP_CTL
    andc $a0, $a0, 4
    uput $FP_CTL, $a0
    ld32 $a6, $m13, $m15, 18
    ld32 $a7, $m13, $m15, 19
row:
    mov $m7, $m11
    shr $m9, $m7, 5
    mul $m9, $m9, $m3
    add $m9, $m9, $m7
    ld64 $a2:3, $m0, $m9, 0
    f16v4mul $a0:1, $a6:BL, $a2:3
    { rpt $m8, 14 ; fnop }
    { shr $m10, $m7, 6 ; f16v4absadd $a2:3, $a0:1, $a14:15 }
    { mul $m10, $m10, $m5 ; f16v4add $a0:1, $a0:1, $a2:3 }
    { ld32 $a7, $m13, $m15, 20 ; f16v4clamp $a2:3, $a2:3, $a7 }
    { shr $m9, $m7, 1 ; f16v4mul $a4:5, $a2:3, $a2:3 }
    { add $m10, $m10, $m9 ; f16v4mul $a4:5, $a7:BU, $a4:5 }
    { add $m7, $m7, $m4 ; f16v4add $a4:5, $a7:BL, $a4:5 }
    { ld32 $a7, $m13, $m15, 19 ; f16v4mul $a4:5, $a4:5, $a2:3 }
    { shr $m9, $m7, 5 ; f16v2tanh $a4, $a4 }
    { mul $m9, $m9, $m3 ; f16v2tanh $a5, $a5 }
    { add $m9, $m9, $m7 ; f16v4sub $a4:5, $a6:BU, $a4:5 }
    { nop ; f16v4max $a4:5, $a4:5, $a14:15 }
    { ld64 $a2:3, $m0, $m9, 0 ; f16v4mul $a4:5, $a2:3, $a4:5 }
    { nop ; f16v4sub $a4:5, $a0:1, $a4:5 }
    { nop ; f16v8tof8 $a4:5, $a4:7 }
    { st32 $a4, $m1, $m10, 0 ; f16v4mul $a0:1, $a6:BL, $a2:3 }
    { shr $m10, $m7, 6 ; f16v4absadd $a2:3, $a0:1, $a14:15 }
    { mul $m10, $m10, $m5 ; f16v4add $a0:1, $a0:1, $a2:3 }
    { ld32 $a7, $m13, $m15, 20 ; f16v4clamp $a2:3, $a2:3, $a7 }
    { shr $m9, $m7, 1 ; f16v4mul $a4:5, $a2:3, $a2:3 }
    { add $m10, $m10, $m9 ; f16v4mul $a4:5, $a7:BU, $a4:5 }
    { nop ; f16v4add $a4:5, $a7:BL, $a4:5 }
    { ld32 $a7, $m13, $m15, 19 ; f16v4mul $a4:5, $a4:5, $a2:3 }
    { nop ; f16v2tanh $a4, $a4 }
    { nop ; f16v2tanh $a5, $a5 }
    { nop ; f16v4sub $a4:5, $a6:BU, $a4:5 }
    { nop ; f16v4max $a4:5, $a4:5, $a14:15 }
    { nop ; f16v4mul $a4:5, $a2:3, $a4:5 }
    { nop ; f16v4sub $a4:5, $a0:1, $a4:5 }
    { nop ; f16v8tof8 $a4:5, $a4:7 }
    st32 $a4, $m1, $m10, 0
    brnz $m11, next
    ld32 $m9, $m13, $m15, 16
    ld32 $m10, $m13, $m15, 17
    add $m10, $m10, $m1
    rpt $m9, 0
    { st32step $a15, $m15, $m10+=, 1 ; fnop }
next:
    ld32 $m9, $m13, $m15, 13
    add $m0, $m0, $m9
    ld32 $m9, $m13, $m15, 14
    add $m1, $m1, $m9
    brnzdec $m6, row
done:
    exitz $m15
