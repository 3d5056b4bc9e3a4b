.byte_branches
.globl "cast.panels.source=f8.result=f16.ports=two"
.type "cast.panels.source=f8.result=f16.ports=two", @function
.section ".text.cast.panels.source=f8.result=f16.ports=two", "ax", @progbits
    .align 8
"cast.panels.source=f8.result=f16.ports=two":
.supervisor
    add $m11, $m11, -88
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    shr $m0, $m5, 17
    and $m0, $m0, 7
    st32 $m0, $m11, $m15, 8
    shr $m1, $m5, 20
    st32 $m1, $m11, $m15, 9
    shl $m0, $m7, 16
    shr $m0, $m0, 16
    mul $m0, $m0, $m1
    shl $m9, $m1, 2
    add $m9, $m9, -1
    add $m0, $m0, -3
    shl $m0, $m0, 10
    or $m0, $m9, $m0
    st32 $m0, $m11, $m15, 20
    shl $m0, $m6, 16
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 10
    mul $m0, $m0, $m1
    shl $m8, $m4, 16
    shr $m8, $m8, 16
    sub $m0, $m8, $m0
    st32 $m0, $m11, $m15, 11
    shl $m8, $m8, 5
    st32 $m8, $m11, $m15, 19
    shr $m0, $m6, 16
    st32 $m0, $m11, $m15, 12
    mul $m0, $m0, $m1
    shr $m4, $m4, 16
    sub $m0, $m4, $m0
    st32 $m0, $m11, $m15, 13
    shl $m0, $m7, 16
    shr $m0, $m0, 16
    shl $m0, $m0, 3
    st32 $m0, $m11, $m15, 18
    shr $m0, $m7, 16
    shl $m0, $m0, 5
    st32 $m0, $m11, $m15, 17
    shr $m0, $m5, 15
    and $m0, $m0, 3
    st32 $m0, $m11, $m15, 15
    shl $m5, $m5, 17
    shr $m5, $m5, 17
    st32 $m5, $m11, $m15, 14
    min $m0, $m0, 1
    add $m0, $m0, $m5
    st32 $m0, $m11, $m15, 16
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
    ld32 $m4, $m13, $m15, 8
    ld32 $m3, $m13, $m15, 9
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    ld32 $m7, $m13, $m15, 12
    ld32 $m10, $m13, $m15, 13
    cmpult $m10, $m0, $m10
    add $m7, $m7, $m10
    brz $m7, done
    ld32 $m10, $m13, $m15, 16
    cmpult $m10, $m11, $m10
    brz $m10, done
    ld32 $m1, $m13, $m15, 0
    ld32 $m2, $m13, $m15, 1
    ld32 $m5, $m13, $m15, 18
    mul $m10, $m0, $m5
    add $m1, $m1, $m10
    shl $m10, $m0, 5
    add $m2, $m2, $m10
    mul $m5, $m5, $m3
    shr $m5, $m5, 3
    shl $m3, $m3, 2
    ld32 $a0, $m13, $m15, 6
    uput $FP_SCL, $a0
    setzi $a0, 2
    uput $FP_NFMT, $a0
    uget $a0, $FP_CTL
    andc $a0, $a0, 4
    uput $FP_CTL, $a0
half_panel:
    shr $m0, $m11, 1
    ld32 $m10, $m13, $m15, 19
    mul $m0, $m0, $m10
    add $m0, $m0, $m2
    and $m10, $m11, 1
    shl $m10, $m10, 4
    add $m0, $m0, $m10
    ld32 $m10, $m13, $m15, 17
    mul $m8, $m11, $m10
    add $m8, $m8, $m1
    ld32 $m10, $m13, $m15, 14
    cmpult $m9, $m11, $m10
    brz $m9, not_whole
    ld64 $a0:1, $m15, $m0, 0
    ld64 $a2:3, $m15, $m0, 1
    mov $m10, $m8
    shl $m9, $m3, 3
    add $m0, $m0, $m9
    tapack $m8:9, $m0, $m15, $m10
    ld32 $m4, $m13, $m15, 20
    add $m10, $m7, -1
    f8v4tof16 $a4:5, $a0
    .align 8
    { st64pace $a4:5, $m8:9+=, $m4, 0 ; f8v4tof16 $a6:7, $a1 }
    { st64pace $a6:7, $m8:9+=, $m4, 0 ; f8v4tof16 $a4:5, $a2 }
    { rpt $m10, 3 ; fnop }
    { ldst64pace $a0:1, $a4:5, $m8:9+=, $m4, 0 ; f8v4tof16 $a6:7, $a3 }
    { ldst64pace $a2:3, $a6:7, $m8:9+=, $m4, 9 ; f8v4tof16 $a4:5, $a0 }
    { st64pace $a4:5, $m8:9+=, $m4, 0 ; f8v4tof16 $a6:7, $a1 }
    { st64pace $a6:7, $m8:9+=, $m4, 0 ; f8v4tof16 $a4:5, $a2 }
    .align 8
    { st64pace $a4:5, $m8:9+=, $m4, 0 ; f8v4tof16 $a6:7, $a3 }
    st64pace $a6:7, $m8:9+=, $m4, 0
next:
    ld32 $m10, $m13, $m15, 8
    add $m11, $m11, $m10
    ld32 $m10, $m13, $m15, 16
    cmpult $m10, $m11, $m10
    brnz $m10, half_panel
done:
    exitz $m15
not_whole:
    ld32 $m10, $m13, $m15, 15
    add $m10, $m10, -1
    brz $m10, rest_1
    add $m10, $m10, -1
    brz $m10, rest_2
rest_3:
    { rpt $m7, 4 ; fnop }
    { ld32 $a2, $m15, $m0, 2 ; fnop }
    { ld64step $a0:1, $m15, $m0+=, $m3 ; f8v4tof16 $a6:7, $a2 }
    { st64 $a6:7, $m15, $m8, 2 ; f8v4tof16 $a4:5, $a1 }
    { st64 $a4:5, $m15, $m8, 1 ; f8v4tof16 $a4:5, $a0 }
    { st64step $a4:5, $m15, $m8+=, $m5 ; fnop }
    bri next
rest_2:
    rpt $m7, 3
    { ld64step $a0:1, $m15, $m0+=, $m3 ; fnop }
    { nop ; f8v4tof16 $a6:7, $a1 }
    { st64 $a6:7, $m15, $m8, 1 ; f8v4tof16 $a4:5, $a0 }
    { st64step $a4:5, $m15, $m8+=, $m5 ; fnop }
    bri next
rest_1:
    shl $m9, $m3, 1
    { rpt $m7, 2 ; fnop }
    { ld32step $a0, $m15, $m0+=, $m9 ; fnop }
    { nop ; f8v4tof16 $a4:5, $a0 }
    { st64step $a4:5, $m15, $m8+=, $m5 ; fnop }
    bri next
