.byte_branches
.globl "gemm.accumulate.precision=f16.weights=wide.rounding=stochastic.result=blocks"
.type "gemm.accumulate.precision=f16.weights=wide.rounding=stochastic.result=blocks", @function
.section ".text.gemm.accumulate.precision=f16.weights=wide.rounding=stochastic.result=blocks", "ax", @progbits
    .align 8
"gemm.accumulate.precision=f16.weights=wide.rounding=stochastic.result=blocks":
.supervisor
    add $m11, $m11, -32
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    mul $m0, $m5, 0x2aab
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 2
    mul $m0, $m0, 6
    sub $m0, $m5, $m0
    st32 $m0, $m11, $m15, 3
    shl $m0, $m7, 16
    shr $m0, $m0, 11
    st32 $m0, $m11, $m15, 4
    shr $m0, $m7, 16
    shl $m0, $m0, 5
    st32 $m0, $m11, $m15, 5
    shl $m7, $m6, 16
    shr $m7, $m7, 16
    add $m7, $m7, -1
    shr $m6, $m6, 16
    add $m6, $m6, -1
    add $m0, $m9, -512
    st32 $m0, $m11, $m15, 7
    put $FP_INFMT, $m15
    put $FP_ISCL, $m15
    get $m0, $FP_ICTL
    st32 $m0, $m11, $m15, 6
    setzi $m1, 0x80000
    or $m0, $m0, $m1
    put $FP_ICTL, $m0
    setzi $m5, first
column:
    put $CCCSLOAD, $m4
    add $m4, $m4, $m8
    mov $m1, $m7
panel:
    sync 2
    ld128putcs 0
    ld128putcs 2
    ld128putcs 4
    ld128putcs 6
    ld128putcs 32
    ld128putcs 34
    ld128putcs 36
    ld128putcs 38
    ld128putcs 8
    ld128putcs 10
    ld128putcs 12
    ld128putcs 14
    ld128putcs 40
    ld128putcs 42
    ld128putcs 44
    ld128putcs 46
    ld128putcs 16
    ld128putcs 18
    ld128putcs 20
    ld128putcs 22
    ld128putcs 48
    ld128putcs 50
    ld128putcs 52
    ld128putcs 54
    ld128putcs 24
    ld128putcs 26
    ld128putcs 28
    ld128putcs 30
    ld128putcs 56
    ld128putcs 58
    ld128putcs 60
    ld128putcs 62
    runall $m5, $m11, 0
    setzi $m5, next_panel
    brnzdec $m1, panel
    setzi $m5, next_column
    brnzdec $m6, column
    sync 2
    ld32 $m0, $m11, $m15, 6
    put $FP_ICTL, $m0
    add $m11, $m11, 32
    br $m10
    .align 8
first:
.worker
    { get $m10, $WSR ; setzi $a0, 8 }
    { and $m10, $m10, 7 ; uput $FP_CLR, $a0 }
    ld32 $m0, $m13, $m15, 2
    ld32 $m1, $m13, $m15, 3
    mul $m8, $m10, $m0
    min $m5, $m10, $m1
    add $m8, $m8, $m5
    cmpult $m5, $m10, $m1
    add $m5, $m5, $m0
    shl $m10, $m8, 5
    ld32 $m2, $m13, $m15, 1
    add $m2, $m2, $m10
    mov $m3, $m2
    ld32 $m4, $m13, $m15, 0
    add $m4, $m4, $m10
    shr $m7, $m8, 4
    ld32 $m9, $m13, $m15, 7
    mul $m7, $m7, $m9
    add $m4, $m4, $m7
    and $m6, $m8, 15
    setzi $m9, 16
    sub $m6, $m9, $m6
    bri accumulate_blocks
next_panel:
    ld32 $m9, $m13, $m15, 4
    add $m3, $m3, $m9
    bri accumulate_blocks
next_column:
    ld32 $m9, $m13, $m15, 5
    add $m4, $m4, $m9
    mov $m3, $m2
accumulate_blocks:
    mov $m7, $m3
    mov $m8, $m4
    mov $m9, $m5
    brz $m9, accumulate_done
    min $m11, $m6, $m9
accumulate_block:
    sub $m9, $m9, $m11
    add $m11, $m11, -3
    brpos $m11, accumulate_3
    add $m10, $m11, 1
    brz $m10, accumulate_2
    bri accumulate_1
accumulate_following:
    brz $m9, accumulate_done
    add $m11, $m11, 3
    shl $m11, $m11, 5
    add $m7, $m7, $m11
    add $m8, $m8, $m11
    ld32 $m11, $m13, $m15, 7
    add $m8, $m8, $m11
    setzi $m11, 16
    min $m11, $m11, $m9
    bri accumulate_block
accumulate_done:
    exitz $m15
    .align 8
accumulate_1:
    tapack $m0:1, $m7, $m8, $m8
    ld64 $a2:3, $m8, $m15, 0
    { ld64 $a2:3, $m8, $m15, 1 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 0 }
    { ld64 $a2:3, $m8, $m15, 2 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 1 }
    { ld64 $a2:3, $m8, $m15, 3 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 2 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 3 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 0 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 1 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 2 }
    { nop ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 3 }
    { nop ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 0 }
    { nop ; f16v4hihov4amp $a6:7, $a14:15, $a14:15, 1 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 2 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a14:15, $a14:15, 3 }
    st64pace $a4:5, $m0:1+=, $m15, 0
    st64pace $a6:7, $m0:1+=, $m15, 0
    bri accumulate_following
    .align 8
    nop
accumulate_2:
    add $m10, $m8, 32
    tapack $m0:1, $m7, $m10, $m8
    ld64 $a2:3, $m8, $m15, 0
    { ld64 $a2:3, $m8, $m15, 1 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 0 }
    { ld64 $a2:3, $m8, $m15, 2 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 1 }
    { ld64 $a2:3, $m8, $m15, 3 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 2 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 3 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 0 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 1 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 2 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 3 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 0 }
    { ld2x64pace $a0:1, $a14:15, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a6:7, $a0:1, $a14:15, 1 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 2 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a14:15, 3 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 0 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a14:15, $a14:15, 1 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 2 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a14:15, $a14:15, 3 }
    st64pace $a4:5, $m0:1+=, $m15, 0
    st64pace $a6:7, $m0:1+=, $m15, 0
    bri accumulate_following
    .align 8
    nop
accumulate_3:
    add $m10, $m8, 32
    tapack $m0:1, $m7, $m10, $m8
    ld64 $a2:3, $m8, $m15, 0
    { ld64 $a2:3, $m8, $m15, 1 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 0 }
    { ld64 $a2:3, $m8, $m15, 2 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 1 }
    { ld64 $a2:3, $m8, $m15, 3 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 2 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a14:15, $a2:3, 3 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 0 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 1 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 2 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a14:15, $a0:1, $a2:3, 3 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a2:3, 0 }
    { ld2x64pace $a0:1, $a2:3, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a2:3, 1 }
    { rpt $m11, 3 ; fnop }
    { ld2xst64pace $a0:3, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a2:3, 2 }
    { ld2xst64pace $a0:3, $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a2:3, 3 }
    { ld2xst64pace $a0:3, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a2:3, 0 }
    { ld2xst64pace $a0:3, $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a2:3, 1 }
    { ld2xst64pace $a0:3, $a4:5, $m0:1+=, $m15, 4 ; f16v4hihov4amp $a4:5, $a0:1, $a2:3, 2 }
    { ldst64pace $a0:1, $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a2:3, 3 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 0 }
    { ldst64pace $a0:1, $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a14:15, 1 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 2 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a0:1, $a14:15, 3 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 0 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a14:15, $a14:15, 1 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 2 }
    { st64pace $a6:7, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a6:7, $a14:15, $a14:15, 3 }
    st64pace $a4:5, $m0:1+=, $m15, 0
    st64pace $a6:7, $m0:1+=, $m15, 0
    bri accumulate_following
