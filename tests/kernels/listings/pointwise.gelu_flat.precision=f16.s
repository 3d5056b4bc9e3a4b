.byte_branches
.globl "pointwise.gelu_flat.precision=f16"
.type "pointwise.gelu_flat.precision=f16", @function
.section ".text.pointwise.gelu_flat.precision=f16", "ax", @progbits
    .align 8
"pointwise.gelu_flat.precision=f16":
.supervisor
    add $m11, $m11, -32
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    setzi $m0, 0x3800
    or $m0, $m0, 0x3c000000
    st32 $m0, $m11, $m15, 5
    setzi $m0, 0
    or $m0, $m0, 0x44000000
    st32 $m0, $m11, $m15, 6
    setzi $m0, 0x13e62
    or $m0, $m0, 0x34900000
    st32 $m0, $m11, $m15, 7
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 32
    br $m10
    .align 8
worker:
.worker
    get $m4, $WSR
    and $m4, $m4, 7
    ld32 $m0, $m13, $m15, 0
    ld32 $m1, $m13, $m15, 1
    ld32 $m2, $m13, $m15, 2
    ld32 $m3, $m13, $m15, 3
    cmpeq $m7, $m4, $m3
    cmpult $m3, $m4, $m3
    add $m2, $m2, $m3
    shl $m5, $m4, 3
    mov $m6, $m5
    zero $m8
    ld32 $a6, $m13, $m15, 5
    ld32 $a7, $m13, $m15, 6
    brz $m2, tail
    ld64step $a2:3, $m1, $m5+=, 6
    add $m2, $m2, -1
    f16v4mul $a0:1, $a6:BL, $a2:3
    { rpt $m2, 13 ; fnop }
    { nop ; f16v4absadd $a2:3, $a0:1, $a14:15 }
    { nop ; f16v4add $a0:1, $a0:1, $a2:3 }
    { ld32 $a7, $m13, $m15, 7 ; f16v4clamp $a2:3, $a2:3, $a7 }
    { nop ; f16v4mul $a4:5, $a2:3, $a2:3 }
    { nop ; f16v4mul $a4:5, $a7:BU, $a4:5 }
    { nop ; f16v4add $a4:5, $a7:BL, $a4:5 }
    { ld32 $a7, $m13, $m15, 6 ; f16v4mul $a4:5, $a4:5, $a2:3 }
    { nop ; f16v2tanh $a4, $a4 }
    { nop ; f16v2tanh $a5, $a5 }
    { nop ; f16v4sub $a4:5, $a6:BU, $a4:5 }
    { nop ; f16v4max $a4:5, $a4:5, $a14:15 }
    { ld64step $a2:3, $m1, $m5+=, 6 ; f16v4mul $a4:5, $a2:3, $a4:5 }
    { nop ; f16v4sub $a4:5, $a0:1, $a4:5 }
    { st64step $a4:5, $m0, $m6+=, 6 ; f16v4mul $a0:1, $a6:BL, $a2:3 }
last:
    { nop ; f16v4absadd $a2:3, $a0:1, $a14:15 }
    { nop ; f16v4add $a0:1, $a0:1, $a2:3 }
    { ld32 $a7, $m13, $m15, 7 ; f16v4clamp $a2:3, $a2:3, $a7 }
    { nop ; f16v4mul $a4:5, $a2:3, $a2:3 }
    { nop ; f16v4mul $a4:5, $a7:BU, $a4:5 }
    { nop ; f16v4add $a4:5, $a7:BL, $a4:5 }
    { ld32 $a7, $m13, $m15, 6 ; f16v4mul $a4:5, $a4:5, $a2:3 }
    { nop ; f16v2tanh $a4, $a4 }
    { nop ; f16v2tanh $a5, $a5 }
    { nop ; f16v4sub $a4:5, $a6:BU, $a4:5 }
    { nop ; f16v4max $a4:5, $a4:5, $a14:15 }
    { nop ; f16v4mul $a4:5, $a2:3, $a4:5 }
    { nop ; f16v4sub $a4:5, $a0:1, $a4:5 }
    brnz $m8, store_tail
    st64step $a4:5, $m0, $m6+=, 6
tail:
    brz $m7, done
    ld32 $m8, $m13, $m15, 4
    brz $m8, done
    or64 $a2:3, $a14:15, $a14:15
    and $m3, $m8, 2
    shl $m2, $m3, 1
    add $m2, $m2, $m6
    brz $m3, half
    ld32 $a2, $m1, $m6, 0
half:
    and $m7, $m8, 1
    brz $m7, loaded
    ldb16 $a3, $m1, $m2, 0
    sort4x16lo $a3, $a3, $a15
loaded:
    f16v4mul $a0:1, $a6:BL, $a2:3
    bri last
store_tail:
    brz $m3, store_half
    st32 $a4, $m0, $m6, 0
store_half:
    brz $m7, done
    ld32 $a0, $m0, $m2, 0
    sort4x16hi $a0, $a0, $a0
    sort4x16lo $a5, $a5, $a0
    st32 $a5, $m0, $m2, 0
done:
    exitz $m15
