.byte_branches
.globl "rearrange.panels.source=u64.result=u64.lanes=plain"
.type "rearrange.panels.source=u64.result=u64.lanes=plain", @function
.section ".text.rearrange.panels.source=u64.result=u64.lanes=plain", "ax", @progbits
    .align 8
"rearrange.panels.source=u64.result=u64.lanes=plain":
.supervisor
    add $m11, $m11, -88
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    st32 $m8, $m11, $m15, 6
    st32 $m9, $m11, $m15, 7
    shl $m0, $m4, 16
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 8
    shl $m0, $m4, 0
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 9
    shl $m0, $m5, 19
    shr $m0, $m0, 19
    st32 $m0, $m11, $m15, 10
    shl $m0, $m5, 16
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 11
    shl $m0, $m5, 9
    shr $m0, $m0, 25
    st32 $m0, $m11, $m15, 12
    shl $m0, $m5, 6
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 13
    shl $m0, $m5, 3
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 14
    shl $m0, $m5, 0
    shr $m0, $m0, 29
    st32 $m0, $m11, $m15, 15
    shl $m0, $m6, 16
    shr $m0, $m0, 16
    shl $m0, $m0, 3
    st32 $m0, $m11, $m15, 16
    shl $m0, $m6, 0
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 17
    shl $m0, $m8, 16
    shr $m0, $m0, 16
    shl $m0, $m0, 3
    st32 $m0, $m11, $m15, 18
    shl $m0, $m8, 0
    shr $m0, $m0, 16
    st32 $m0, $m11, $m15, 19
    shl $m0, $m7, 8
    shr $m0, $m0, 28
    st32 $m0, $m11, $m15, 20
    shl $m0, $m7, 0
    shr $m0, $m0, 24
    st32 $m0, $m11, $m15, 21
    shl $m0, $m7, 12
    shr $m0, $m0, 12
    st32 $m0, $m11, $m15, 5
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
    ld32 $m4, $m13, $m15, 13
    ld32 $m3, $m13, $m15, 14
    mul $m0, $m11, $m3
    mul $m0, $m0, 11
    shr $m0, $m0, 6
    mul $m1, $m0, $m4
    sub $m11, $m11, $m1
    mov $m2, $m0
    ld32 $m8, $m13, $m15, 10
    ld32 $m9, $m13, $m15, 15
    cmpult $m9, $m11, $m9
    add $m8, $m8, $m9
    ld32 $m9, $m13, $m15, 15
    cmpeq $m9, $m11, $m9
    ld32 $m10, $m13, $m15, 17
    mul $m6, $m10, $m4
    mul $m10, $m10, $m11
    shl $m10, $m10, 3
    ld32 $m3, $m13, $m15, 1
    add $m3, $m3, $m10
    ld32 $m10, $m13, $m15, 19
    mul $m7, $m10, $m4
    mul $m10, $m10, $m11
    shl $m10, $m10, 3
    ld32 $m11, $m13, $m15, 0
    add $m11, $m11, $m10
row:
    ld32 $m10, $m13, $m15, 8
    cmpult $m10, $m2, $m10
    brz $m10, done
    shr $m1, $m2, 4
    ld32 $m10, $m13, $m15, 7
    mul $m1, $m1, $m10
    and $m4, $m2, 15
    ld32 $m10, $m13, $m15, 18
    mul $m4, $m4, $m10
    add $m1, $m1, $m4
    add $m1, $m1, $m11
    ld32 $m10, $m13, $m15, 9
    cmpult $m10, $m2, $m10
    brz $m10, clear
    shr $m0, $m2, 4
    ld32 $m10, $m13, $m15, 5
    mul $m0, $m0, $m10
    and $m4, $m2, 15
    ld32 $m10, $m13, $m15, 16
    mul $m4, $m4, $m10
    add $m0, $m0, $m4
    add $m0, $m0, $m3
    { rpt $m8, 7 ; fnop }
    { ld64 $a2:3, $m15, $m0, 1 ; fnop }
    { ld64 $a4:5, $m15, $m0, 2 ; fnop }
    { ld64 $a6:7, $m15, $m0, 3 ; fnop }
    { ld64step $a0:1, $m15, $m0+=, $m6 ; fnop }
    { st64 $a2:3, $m15, $m1, 1 ; fnop }
    { st64 $a4:5, $m15, $m1, 2 ; fnop }
    { st64 $a6:7, $m15, $m1, 3 ; fnop }
    { st64step $a0:1, $m15, $m1+=, $m7 ; fnop }
rest:
    brz $m9, next
    ld32 $m10, $m13, $m15, 11
    { rpt $m10, 1 ; fnop }
    { ld64step $a0:1, $m15, $m0+=, 1 ; fnop }
    { st64step $a0:1, $m15, $m1+=, 1 ; fnop }
behind:
    ld32 $m10, $m13, $m15, 12
fill:
    rpt $m10, 0
    { st64step $a14:15, $m15, $m1+=, 1 ; fnop }
next:
    ld32 $m10, $m13, $m15, 14
    add $m2, $m2, $m10
    bri row
done:
    exitz $m15
clear:
    ld32 $m10, $m13, $m15, 20
    ld32 $m4, $m13, $m15, 21
    or $m4, $m4, $m10
    brnz $m4, narrow
    { rpt $m8, 3 ; fnop }
    { st64 $a14:15, $m15, $m1, 1 ; fnop }
    { st64 $a14:15, $m15, $m1, 2 ; fnop }
    { st64 $a14:15, $m15, $m1, 3 ; fnop }
    { st64step $a14:15, $m15, $m1+=, $m7 ; fnop }
    brz $m9, next
    ld32 $m10, $m13, $m15, 12
    ld32 $m4, $m13, $m15, 11
    add $m10, $m10, $m4
    bri fill
narrow:
    shr $m0, $m2, 4
    ld32 $m10, $m13, $m15, 5
    mul $m0, $m0, $m10
    and $m4, $m2, 15
    ld32 $m10, $m13, $m15, 16
    mul $m4, $m4, $m10
    add $m0, $m0, $m4
    add $m0, $m0, $m3
    ld32 $m2, $m13, $m15, 20
    ld32 $m5, $m13, $m15, 21
    brz $m8, narrow_done
    add $m8, $m8, -1
    shl $m6, $m6, 3
    mul $m10, $m2, -8
    add $m6, $m6, $m10
    shl $m7, $m7, 3
    mul $m4, $m2, -8
    add $m7, $m7, $m4
    mul $m10, $m5, -8
    add $m7, $m7, $m10
narrow_row:
    rpt $m2, 1
    { ld64step $a0:1, $m15, $m0+=, 1 ; fnop }
    { st64step $a0:1, $m15, $m1+=, 1 ; fnop }
    { rpt $m5, 0 ; fnop }
    { st64step $a14:15, $m15, $m1+=, 1 ; fnop }
    add $m0, $m0, $m6
    add $m1, $m1, $m7
    brnzdec $m8, narrow_row
narrow_done:
    setzi $m2, 0xffff
    bri rest
