.byte_branches
.globl "cast.panels.source=f16.result=f8"
.type "cast.panels.source=f16.result=f8", @function
.section ".text.cast.panels.source=f16.result=f8", "ax", @progbits
    .align 8
"cast.panels.source=f16.result=f8":
.supervisor
    add $m11, $m11, -48
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    and $m0, $m6, 255
    st32 $m0, $m11, $m15, 8
    shr $m1, $m6, 8
    st32 $m1, $m11, $m15, 9
    mul $m0, $m1, $m7
    sub $m0, $m4, $m0
    st32 $m0, $m11, $m15, 7
    shl $m0, $m4, 5
    st32 $m0, $m11, $m15, 10
    and $m0, $m5, 1
    add $m0, $m0, $m5
    st32 $m0, $m11, $m15, 11
    setzi $m0, worker
    runall $m0, $m11, 0
    sync 2
    add $m11, $m11, 48
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
    ld32 $m6, $m13, $m15, 5
    ld32 $m8, $m13, $m15, 7
    cmpult $m8, $m0, $m8
    add $m6, $m6, $m8
    brz $m6, done
    ld32 $m8, $m13, $m15, 11
    cmpult $m8, $m11, $m8
    brz $m8, done
    ld32 $m1, $m13, $m15, 1
    ld32 $m2, $m13, $m15, 0
    ld32 $m9, $m13, $m15, 10
    ld32 $m7, $m13, $m15, 3
    shl $m3, $m3, 2
    shl $m0, $m0, 5
    add $m1, $m1, $m0
    add $m2, $m2, $m0
    setzi $m5, 24
    ld32 $a0, $m13, $m15, 6
    uput $FP_SCL, $a0
    setzi $a0, 2
    uput $FP_NFMT, $a0
    uget $a0, $FP_CTL
    andc $a0, $a0, 4
    uput $FP_CTL, $a0
panel:
    shr $m0, $m11, 1
    mul $m0, $m0, $m9
    and $m10, $m11, 1
    shl $m10, $m10, 4
    add $m0, $m0, $m10
    add $m0, $m0, $m2
    setzi $m10, 8
    cmpult $m8, $m11, $m7
    brz $m8, clear
    mul $m8, $m11, $m9
    add $m8, $m8, $m1
    { rpt $m6, 5 ; fnop }
    { ld64 $a0:1, $m15, $m8, 0 ; fnop }
    { ld64 $a2:3, $m15, $m8, 1 ; fnop }
    { ld64 $a4:5, $m15, $m8, 2 ; f16v8tof8 $a0:1, $a0:3 }
    { ld64step $a6:7, $m5, $m8+=, $m3 ; fnop }
    { st64 $a0:1, $m15, $m0, 0 ; f16v8tof8 $a2:3, $a4:7 }
    { st64step $a2:3, $m10, $m0+=, $m3 ; fnop }
next:
    add $m11, $m11, $m4
    ld32 $m8, $m13, $m15, 11
    cmpult $m8, $m11, $m8
    brnz $m8, panel
done:
    exitz $m15
clear:
    rpt $m6, 1
    { st64 $a14:15, $m15, $m0, 0 ; fnop }
    { st64step $a14:15, $m10, $m0+=, $m3 ; fnop }
    bri next
