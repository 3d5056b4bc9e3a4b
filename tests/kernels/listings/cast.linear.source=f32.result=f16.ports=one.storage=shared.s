.byte_branches
.globl "cast.linear.source=f32.result=f16.ports=one.storage=shared"
.type "cast.linear.source=f32.result=f16.ports=one.storage=shared", @function
.section ".text.cast.linear.source=f32.result=f16.ports=one.storage=shared", "ax", @progbits
    .align 8
"cast.linear.source=f32.result=f16.ports=one.storage=shared":
.supervisor
    add $m11, $m11, -40
    st32 $m2, $m11, $m15, 0
    st32 $m3, $m11, $m15, 1
    st32 $m4, $m11, $m15, 2
    st32 $m5, $m11, $m15, 3
    st32 $m6, $m11, $m15, 4
    st32 $m7, $m11, $m15, 5
    mul $m4, $m4, 6
    add $m4, $m4, $m5
    min $m5, $m6, 1
    add $m5, $m5, $m4
    st32 $m15, $m11, $m15, 4
    setzi $m9, 0xaaab
chunk:
    min $m0, $m7, $m5
    sub $m5, $m5, $m0
    min $m0, $m0, $m4
    sub $m4, $m4, $m0
    brnz $m5, units
    st32 $m6, $m11, $m15, 4
units:
    mul $m1, $m0, $m9
    shr $m1, $m1, 18
    st32 $m1, $m11, $m15, 2
    mul $m1, $m1, 6
    sub $m1, $m0, $m1
    st32 $m1, $m11, $m15, 3
    st32 $m2, $m11, $m15, 0
    mul $m1, $m0, 8
    add $m2, $m2, $m1
    st32 $m2, $m11, $m15, 7
    st32 $m3, $m11, $m15, 1
    mul $m1, $m0, 16
    add $m3, $m3, $m1
    st32 $m3, $m11, $m15, 8
    setzi $m1, worker
    runall $m1, $m11, 0
    shl $m7, $m7, 1
    sync 2
    brnz $m5, chunk
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
    mul $m3, $m5, 8
    add $m0, $m0, $m3
    mul $m3, $m5, 16
    add $m1, $m1, $m3
    brz $m2, tail
    add $m2, $m2, -1
    setzi $m4, 8
    ld64 $a0:1, $m15, $m1, 0
    ld64step $a2:3, $m4, $m1+=, 12
    { rpt $m2, 2 ; fnop }
    { ld64 $a0:1, $m15, $m1, 0 ; f32v4tof16 $a4:5, $a0:3 }
    { ld64step $a2:3, $m4, $m1+=, 12 ; fnop }
    { st64step $a4:5, $m15, $m0+=, 6 ; fnop }
    f32v4tof16 $a4:5, $a0:3
    st64step $a4:5, $m15, $m0+=, 6
tail:
    brz $m6, done
    ld32 $m2, $m13, $m15, 4
    brz $m2, done
    ld32 $m0, $m13, $m15, 7
    ld32 $m1, $m13, $m15, 8
element:
    ld32step $a0, $m15, $m1+=, 1
    f32tof16 $a0, $a0
    atom $m3, $a0
    setzi $m8, 0xffff
    and $m3, $m3, $m8
    and $m4, $m0, 3
    sub $m5, $m0, $m4
    shl $m4, $m4, 3
    shl $m3, $m3, $m4
    shl $m8, $m8, $m4
    ld32 $m7, $m5, $m15, 0
    or $m7, $m7, $m8
    sub $m7, $m7, $m8
    or $m7, $m7, $m3
    st32 $m7, $m5, $m15, 0
    add $m0, $m0, 2
    add $m2, $m2, -1
    brnz $m2, element
done:
    exitz $m15
