.byte_branches
.globl "gemm.initialize.precision=f16.weights=narrow.rounding=stochastic.result=blocks"
.type "gemm.initialize.precision=f16.weights=narrow.rounding=stochastic.result=blocks", @function
.section ".text.gemm.initialize.precision=f16.weights=narrow.rounding=stochastic.result=blocks", "ax", @progbits
    .align 8
"gemm.initialize.precision=f16.weights=narrow.rounding=stochastic.result=blocks":
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
    ld64putcs 0
    ld64putcs 1
    ld64putcs 2
    ld64putcs 3
    ld64putcs 4
    ld64putcs 5
    ld64putcs 6
    ld64putcs 7
    ld64putcs 32
    ld64putcs 33
    ld64putcs 34
    ld64putcs 35
    ld64putcs 36
    ld64putcs 37
    ld64putcs 38
    ld64putcs 39
    ld64putcs 8
    ld64putcs 9
    ld64putcs 10
    ld64putcs 11
    ld64putcs 12
    ld64putcs 13
    ld64putcs 14
    ld64putcs 15
    ld64putcs 40
    ld64putcs 41
    ld64putcs 42
    ld64putcs 43
    ld64putcs 44
    ld64putcs 45
    ld64putcs 46
    ld64putcs 47
    ld64putcs 16
    ld64putcs 17
    ld64putcs 18
    ld64putcs 19
    ld64putcs 20
    ld64putcs 21
    ld64putcs 22
    ld64putcs 23
    ld64putcs 48
    ld64putcs 49
    ld64putcs 50
    ld64putcs 51
    ld64putcs 52
    ld64putcs 53
    ld64putcs 54
    ld64putcs 55
    ld64putcs 24
    ld64putcs 25
    ld64putcs 26
    ld64putcs 27
    ld64putcs 28
    ld64putcs 29
    ld64putcs 30
    ld64putcs 31
    ld64putcs 56
    ld64putcs 57
    ld64putcs 58
    ld64putcs 59
    ld64putcs 60
    ld64putcs 61
    ld64putcs 62
    ld64putcs 63
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
    bri initialize_blocks
next_panel:
    ld32 $m9, $m13, $m15, 4
    add $m3, $m3, $m9
    bri accumulate_blocks
next_column:
    ld32 $m9, $m13, $m15, 5
    add $m4, $m4, $m9
    mov $m3, $m2
initialize_blocks:
    mov $m7, $m3
    mov $m8, $m4
    mov $m11, $m5
    brz $m11, initialize_done
    min $m9, $m6, $m11
initialize_block:
    sub $m11, $m11, $m9
    add $m9, $m9, -2
    brpos $m9, initialize_2
    bri initialize_1
initialize_following:
    brz $m11, initialize_done
    add $m9, $m9, 2
    shl $m9, $m9, 5
    add $m7, $m7, $m9
    add $m8, $m8, $m9
    ld32 $m9, $m13, $m15, 7
    add $m8, $m8, $m9
    setzi $m9, 16
    min $m9, $m9, $m11
    bri initialize_block
initialize_done:
    exitz $m15
    .align 8
initialize_1:
    tapack $m0:1, $m15, $m15, $m8
    ld64 $a0:1, $m7, $m15, 0
    { ld64 $a0:1, $m7, $m15, 1 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 0 }
    { ld64 $a0:1, $m7, $m15, 2 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 1 }
    { ld64 $a0:1, $m7, $m15, 3 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 2 }
    { nop ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 3 }
    { nop ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 0 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 1 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 2 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 3 }
    st64pace $a4:5, $m0:1+=, $m15, 0
    bri initialize_following
    .align 8
    nop
initialize_2:
    add $m10, $m7, 48
    tapack $m0:1, $m10, $m15, $m8
    ld64 $a0:1, $m7, $m15, 0
    { ld64 $a0:1, $m7, $m15, 1 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 0 }
    { ld64 $a0:1, $m7, $m15, 2 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 1 }
    { ld64 $a0:1, $m7, $m15, 3 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 2 }
    { ld64 $a0:1, $m7, $m15, 4 ; f16v4hihov4amp $a14:15, $a0:1, $a14:15, 3 }
    { ld64 $a0:1, $m7, $m15, 5 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 0 }
    { rpt $m9, 3 ; fnop }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 1 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 2 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 3 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 0 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 1 }
    { ldst64pace $a0:1, $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 2 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a0:1, $a14:15, 3 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 0 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 1 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 2 }
    { st64pace $a4:5, $m0:1+=, $m15, 0 ; f16v4hihov4amp $a4:5, $a14:15, $a14:15, 3 }
    st64pace $a4:5, $m0:1+=, $m15, 0
    bri initialize_following
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
