.byte_branches
.globl "pointwise.gelu_narrow.precision=f16.bias=row"
.type "pointwise.gelu_narrow.precision=f16.bias=row", @function
.section ".text.pointwise.gelu_narrow.precision=f16.bias=row", "ax", @progbits
    .align 8
"pointwise.gelu_narrow.precision=f16.bias=row":
.supervisor
    add $m11, $m11, -48
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    st32 $m9, $m11, $m15, 7
    setzi $m0, 0x3800
    or $m0, $m0, 0x3c000000
    st32 $m0, $m11, $m15, 8
    setzi $m0, 0
    or $m0, $m0, 0x44000000
    st32 $m0, $m11, $m15, 9
    setzi $m0, 0x13e62
    or $m0, $m0, 0x34900000
    st32 $m0, $m11, $m15, 10
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 48
    br $m10
    .align 8
worker:
.worker
    get $m5, $WSR
    and $m5, $m5, 7
    ld32 $m0, $m13, $m15, 0
    ld32 $m1, $m13, $m15, 1
    ld32 $m2, $m13, $m15, 2
    ld32 $m3, $m13, $m15, 3
    ld32 $m4, $m13, $m15, 4
    ld32 $m7, $m13, $m15, 6
    ld32 $m8, $m13, $m15, 7
    cmpeq $m10, $m5, $m4
    cmpult $m4, $m5, $m4
    add $m3, $m3, $m4
    mov $m4, $m10
    shl $m6, $m5, 3
    add $m0, $m0, $m6
    add $m1, $m1, $m6
    zero $m5
    ld32 $a6, $m13, $m15, 8
    ld32 $a7, $m13, $m15, 9
reduce:
    cmpult $m9, $m6, $m7
    brnz $m9, reduced
    sub $m6, $m6, $m7
    bri reduce
reduced:
    mov $m10, $m6
    brz $m3, tail
begin:
    cmpult $m9, $m10, $m7
    sub $m6, $m10, $m7
    movnz $m6, $m9, $m10
    add $m10, $m6, 2
    cmpult $m9, $m10, $m7
    mul $m10, $m10, $m9
    add $m11, $m10, 2
    cmpult $m9, $m11, $m7
    mul $m11, $m11, $m9
    ldb16 $a2, $m2, $m6, 0
    ldb16 $a3, $m2, $m10, 0
    sort4x16lo $a2, $a2, $a3
    ldb16 $a3, $m2, $m11, 0
    add $m11, $m11, 2
    cmpult $m9, $m11, $m7
    mul $m11, $m11, $m9
    ldb16 $a0, $m2, $m11, 0
    sort4x16lo $a3, $a3, $a0
    brnz $m5, load_tail
    ld64step $a0:1, $m15, $m1+=, 6
    add $m3, $m3, -1
start:
    f16v4add $a2:3, $a0:1, $a2:3
    f16v4mul $a0:1, $a6:BL, $a2:3
    add $m10, $m6, $m8
    rpt $m3, 20
    { cmpult $m9, $m10, $m7 ; f16v4absadd $a2:3, $a0:1, $a14:15 }
    { sub $m6, $m10, $m7 ; f16v4add $a0:1, $a0:1, $a2:3 }
    { ld32 $a7, $m13, $m15, 10 ; f16v4clamp $a2:3, $a2:3, $a7 }
    { movnz $m6, $m9, $m10 ; f16v4mul $a4:5, $a2:3, $a2:3 }
    { add $m10, $m6, 2 ; f16v4mul $a4:5, $a7:BU, $a4:5 }
    { cmpult $m9, $m10, $m7 ; f16v4add $a4:5, $a7:BL, $a4:5 }
    { ld32 $a7, $m13, $m15, 9 ; f16v4mul $a4:5, $a4:5, $a2:3 }
    { mul $m10, $m10, $m9 ; f16v2tanh $a4, $a4 }
    { add $m11, $m10, 2 ; f16v2tanh $a5, $a5 }
    { cmpult $m9, $m11, $m7 ; f16v4sub $a4:5, $a6:BU, $a4:5 }
    { mul $m11, $m11, $m9 ; f16v4max $a4:5, $a4:5, $a14:15 }
    { ldb16 $a2, $m2, $m6, 0 ; f16v4mul $a4:5, $a2:3, $a4:5 }
    { ldb16 $a3, $m2, $m10, 0 ; f16v4sub $a4:5, $a0:1, $a4:5 }
    { ldb16 $a3, $m2, $m11, 0 ; sort4x16lo $a2, $a2, $a3 }
    { add $m11, $m11, 2 ; fnop }
    { cmpult $m9, $m11, $m7 ; fnop }
    { mul $m11, $m11, $m9 ; fnop }
    { ldb16 $a0, $m2, $m11, 0 ; fnop }
    { ld64step $a0:1, $m15, $m1+=, 6 ; sort4x16lo $a3, $a3, $a0 }
    { st64step $a4:5, $m15, $m0+=, 6 ; f16v4add $a2:3, $a0:1, $a2:3 }
    { add $m10, $m6, $m8 ; f16v4mul $a0:1, $a6:BL, $a2:3 }
    { nop ; f16v4absadd $a2:3, $a0:1, $a14:15 }
    { nop ; f16v4add $a0:1, $a0:1, $a2:3 }
    { ld32 $a7, $m13, $m15, 10 ; f16v4clamp $a2:3, $a2:3, $a7 }
    { nop ; f16v4mul $a4:5, $a2:3, $a2:3 }
    { nop ; f16v4mul $a4:5, $a7:BU, $a4:5 }
    { nop ; f16v4add $a4:5, $a7:BL, $a4:5 }
    { ld32 $a7, $m13, $m15, 9 ; f16v4mul $a4:5, $a4:5, $a2:3 }
    { nop ; f16v2tanh $a4, $a4 }
    { nop ; f16v2tanh $a5, $a5 }
    { nop ; f16v4sub $a4:5, $a6:BU, $a4:5 }
    { nop ; f16v4max $a4:5, $a4:5, $a14:15 }
    { nop ; f16v4mul $a4:5, $a2:3, $a4:5 }
    { nop ; f16v4sub $a4:5, $a0:1, $a4:5 }
    brnz $m5, store_tail
    st64step $a4:5, $m15, $m0+=, 6
tail:
    brz $m4, done
    ld32 $m5, $m13, $m15, 5
    zero $m3
    brnz $m5, begin
done:
    exitz $m15
load_tail:
    or64 $a0:1, $a14:15, $a14:15
    and $m10, $m5, 2
    brz $m10, load_one
    ld32 $a0, $m15, $m1, 0
    and $m10, $m5, 1
    brz $m10, start
    ldb16 $a1, $m15, $m1, 2
    sort4x16lo $a1, $a1, $a15
    bri start
load_one:
    ldb16 $a0, $m15, $m1, 0
    sort4x16lo $a0, $a0, $a15
    bri start
store_tail:
    and $m10, $m5, 2
    brz $m10, store_one
    st32step $a4, $m15, $m0+=, 1
    and $m10, $m5, 1
    brz $m10, done
    mov $a4, $a5
store_one:
    ld32 $a0, $m0, $m15, 0
    sort4x16hi $a0, $a0, $a0
    sort4x16lo $a4, $a4, $a0
    st32 $a4, $m0, $m15, 0
    exitz $m15
