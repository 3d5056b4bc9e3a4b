"""The symbols of all kernels."""

EVERY_KERNEL = (
    *(
        f"cast.linear.source={source}.result={result}.ports={ports}"
        for source, result in (("f16", "f32"), ("f16", "f8"), ("f32", "f16"), ("f8", "f16"))
        for ports in ("one", "two")
    ),
    *(f"cast.linear.source={source}.result=f8" for source in ("f8", "f32")),
    "cast.linear.source=f8.result=f32",
    *(
        f"cast.linear.source={source}.result={result}.ports={ports}.storage=shared"
        for source, result in (("f16", "f8"), ("f32", "f16"))
        for ports in ("one", "two")
    ),
    "cast.linear.source=f32.result=f8.storage=shared",
    *(
        f"cast.panels.source={source}.result={result}.ports={ports}"
        for source, result in (("f16", "f8"), ("f8", "f16"))
        for ports in ("one", "two")
    ),
    "cast.panels.source=f16.result=f8.ports=one.storage=shared",
    *(
        f"copy.{kind}_{shape}.unit=u{bits}"
        for kind in ("fill", "move")
        for shape in ("rows", "span")
        for bits in (32, 64)
    ),
    "copy.fill_halves",
    "copy.move_halves",
    *(
        f"gemm.{mode}.precision={precision}.weights={weights}.rounding={rounding}"
        for mode in ("accumulate", "initialize")
        for precision in ("f16", "f8")
        for weights in ("narrow", "wide")
        for rounding in ("nearest", "stochastic")
    ),
    *(
        f"gemm.{mode}.precision=f16.weights={weights}.rounding={rounding}.result=blocks"
        for mode in ("accumulate", "initialize")
        for weights in ("narrow", "wide")
        for rounding in ("nearest", "stochastic")
    ),
    "pointwise.add_flat.precision=f16",
    "pointwise.add_narrow.precision=f16.pairs=split",
    "pointwise.add_narrow.precision=f16.pairs=whole",
    "pointwise.add_rows.precision=f16",
    "pointwise.gelu_flat.precision=f16",
    "pointwise.gelu_narrow.precision=f16.bias=row",
    *(
        f"pointwise.gelu_rows.precision={precision}.bias={bias}"
        for precision in ("f16", "f8")
        for bias in ("none", "row")
    ),
    "rearrange.halves.direction=pack.lanes=plain",
    *(
        f"rearrange.halves.direction=unpack.lanes={lanes}"
        for lanes in ("drained_columns", "drained_rows", "plain")
    ),
    *(
        f"rearrange.panels.source={source}.result={result}.lanes=plain"
        for source in ("u32", "u64")
        for result in ("u32", "u64")
    ),
    "rearrange.panels.source=u64.result=u64.lanes=drained",
    "rearrange.transpose.direction=pack.lanes=plain",
    *(f"rearrange.transpose.direction=unpack.lanes={lanes}" for lanes in ("drained", "plain")),
    "reduce.sum.precision=f16",
)
