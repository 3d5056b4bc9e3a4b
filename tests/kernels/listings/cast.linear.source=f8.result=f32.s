.byte_branches
.globl "cast.linear.source=f8.result=f32"
.type "cast.linear.source=f8.result=f32", @function
.section ".text.cast.linear.source=f8.result=f32", "ax", @progbits
    .align 8
"cast.linear.source=f8.result=f32":
.supervisor
    add $m11, $m11, -40
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    mul $m0, $m4, 6
    add $m0, $m0, $m5
    mul $m1, $m0, 32
    add $m1, $m1, $m2
    st32 $m1, $m11, $m15, 7
    mul $m1, $m0, 8
    add $m1, $m1, $m3
    st32 $m1, $m11, $m15, 8
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 40
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
    cmpeq $m6, $m5, $m3
    cmpult $m3, $m5, $m3
    add $m2, $m2, $m3
    setzi $a0, 0
    uput $FP_SCL, $a0
    setzi $a0, 2
    uput $FP_NFMT, $a0
    uget $a0, $FP_CTL
    andc $a0, $a0, 4
    uput $FP_CTL, $a0
    mul $m3, $m5, 32
    add $m0, $m0, $m3
    mul $m3, $m5, 8
    add $m1, $m1, $m3
    brz $m2, tail
    add $m2, $m2, -1
    ld32 $a6, $m13, $m15, 5
    setzi $m4, 24
    ld64step $a0:1, $m15, $m1+=, 6
    f8v4tof16 $a2:3, $a0
    { rpt $m2, 9 ; fnop }
    { nop ; f16v2tof32 $a4:5, $a2 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64 $a4:5, $m15, $m0, 0 ; f16v2tof32 $a4:5, $a3 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64 $a4:5, $m15, $m0, 1 ; f8v4tof16 $a2:3, $a1 }
    { ld64step $a0:1, $m15, $m1+=, 6 ; f16v2tof32 $a4:5, $a2 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64 $a4:5, $m15, $m0, 2 ; f16v2tof32 $a4:5, $a3 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64step $a4:5, $m4, $m0+=, 24 ; f8v4tof16 $a2:3, $a0 }
    { nop ; f16v2tof32 $a4:5, $a2 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64 $a4:5, $m15, $m0, 0 ; f16v2tof32 $a4:5, $a3 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64 $a4:5, $m15, $m0, 1 ; f8v4tof16 $a2:3, $a1 }
    { nop ; f16v2tof32 $a4:5, $a2 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    { st64 $a4:5, $m15, $m0, 2 ; f16v2tof32 $a4:5, $a3 }
    { nop ; f32v2mul $a4:5, $a6:B, $a4:5 }
    st64step $a4:5, $m4, $m0+=, 24
tail:
    brz $m6, done
    ld32 $m2, $m13, $m15, 4
    brz $m2, done
    ld32 $m0, $m13, $m15, 7
    ld32 $m1, $m13, $m15, 8
element:
    ldb8step $a0, $m15, $m1+=, 1
    f8v2tof16 $a0, $a0
    ld32 $a1, $m13, $m15, 5
    f16tof32 $a0, $a0
    f32mul $a0, $a1, $a0
    st32step $a0, $m15, $m0+=, 1
    add $m2, $m2, -1
    brnz $m2, element
done:
    exitz $m15
