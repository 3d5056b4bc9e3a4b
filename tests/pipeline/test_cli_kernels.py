"""``tilewright kernels``: what it prints, and everything it refuses."""

import pytest

from compiler.isa.text import parse
from compiler.kernels.objects import program_of
from compiler.kernels.registry import FAMILIES
from compiler.kernels.symbols import parse_symbol
from compiler.target.isa_decisions import our_decisions
from pipeline import kernel_samples
from pipeline.cli import main
from pipeline.kernel_samples import SAMPLES


def kernels(*words: str) -> int:
    return main(["kernels", *words])


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What is printed for words that are refused."""
    assert kernels(*words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_only_families_are_listed() -> None:
    assert set(SAMPLES) <= set(FAMILIES)


def test_the_list_names_shapes_and_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels("list") == 0
    out = capsys.readouterr().out
    assert (
        "gemm: products of F16 or F8 matrices on the AMP unit\n  --shape rows,k,columns (96,64,64)\n" in out
    )
    assert "  --set weights=wide|narrow (wide)\n" in out
    assert "  --set scale=-32..31 (0)\n" in out


def test_a_family_whose_calls_are_not_described_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kernel_samples, "SAMPLES", {"copy": SAMPLES["copy"]})
    assert kernels("list") == 0
    assert "gemm: its calls cannot be described here\n" in capsys.readouterr().out


def test_show_prints_a_contract_and_a_listing_that_reads_back(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--shape", "7,64,16", "--set", "precision=f8", "--set", "mode=accumulate", "--set", "scale=-3")
    assert kernels("show", "gemm", *words) == 0
    contract, listing = capsys.readouterr().out.split("\n\n", 1)
    symbol = "gemm.accumulate.precision=f8.weights=wide.rounding=nearest"
    assert contract.splitlines()[:4] == [
        symbol,
        "  result 0: F16 AmpLeft 7 x 16",
        "    reads 224 bytes in 0..224, writes 224 bytes in 0..224; tail 0 bytes",
        "    aligned to 8 bytes, interleaved memory",
    ]
    assert "  result 0 and operand 0 share no memory element" in contract
    assert "  $m9: scale = -3" in contract
    assert parse(listing, symbol) == program_of(parse_symbol(symbol), our_decisions())


def test_padding_and_aliases_are_part_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels("show", "reduce", "--no-listing") == 0
    out = capsys.readouterr().out
    assert "  permitted aliases: result 0 at operand 0 +0\n" in out
    assert "byte_branches" not in out


@pytest.mark.parametrize("family", list(SAMPLES))
def test_run_sets_the_formula_beside_the_simulation(family: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert kernels("run", family) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("cycles (estimated, formula of the family)")
    assert "cycles (simulated, machine code), the formula is " in lines[2]
    assert lines[-1] == "  memory equals the semantics bit for bit"


def test_several_shapes_and_random_rounding(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--shape", "1,16,16", "--shape", "13,32,32", "--set", "rounding=stochastic")
    assert kernels("run", "gemm", *words) == 0
    out = capsys.readouterr().out
    assert out.count("results are rounded at random") == 2


@pytest.mark.parametrize(
    ("source", "result", "kernel"),
    [
        ("output", "rows", "panels.source=u64.result=u64.lanes=drained"),
        ("transposed_output", "rows", "transpose.direction=unpack.lanes=drained"),
        ("rows", "blocks", "transpose.direction=pack.lanes=plain"),
        ("transposed_blocks", "left", "panels.source=u64.result=u64.lanes=plain"),
    ],
)
def test_every_element_order_can_be_asked_for(
    source: str, result: str, kernel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--shape", "32,64", "--set", f"source={source}", "--set", f"result={result}")
    assert kernels("run", "rearrange", *words) == 0
    told = capsys.readouterr().out
    assert told.startswith(f"rearrange.{kernel} 32,64")
    assert "memory equals the semantics bit for bit" in told


def test_rows_of_halves_that_begin_inside_words(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--shape", "5,14", "--set", "destination_origin=2", "--set", "source_gap=4")
    assert kernels("run", "copy", *words) == 0
    assert capsys.readouterr().out.startswith("copy.move_halves 5,14\n")


def test_seeds_are_numbers_from_zero_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        kernels("run", "reduce", "--seed", "-1")
    assert "invalid number from 0 on value: '-1'" in capsys.readouterr().err
    assert kernels("run", "reduce", "--seed", "5") == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "fft"],
            "(kernel call): fft: there is no such kernel family.\n  next: name one of cast, copy, ",
        ),
        (
            ["run", "gemm", "--shape", "3"],
            "gemm: 3 is not rows,k,columns, each 1 to 1,048,576.\n  next: give a shape like 96,64,64\n",
        ),
        (
            ["run", "gemm", "--shape", "3,x,5"],
            "gemm: '3,x,5' is no shape.\n  next: give numbers joined by commas, like 184,288,48\n",
        ),
        (
            ["show", "gemm", "--shape", "4,20,16"],
            "gemm: AmpLeft in F16 needs a multiple of 16 on axis 1; the extents are (4, 20).\n",
        ),
        (
            ["run", "gemm", "--set", "wide"],
            "gemm: 'wide' is not OPTION=VALUE.\n  next: give options like rounding=nearest\n",
        ),
        (
            ["run", "gemm", "--set", "rows=3"],
            "gemm: it has no option rows.\n  next: its options: mode, precision, weights, rounding, result, ",
        ),
        (
            ["run", "gemm", "--set", "mode=fast"],
            "gemm: option mode cannot be 'fast'.\n  next: give initialize or accumulate\n",
        ),
        (
            ["run", "gemm", "--set", "scale=32"],
            "gemm: option scale cannot be '32'.\n  next: give -32 to 31\n",
        ),
        (
            ["run", "reduce", "--shape", "18,2"],
            "reduce: partials of 18 elements are no multiple of 4.\n  next: give another shape or other ",
        ),
        (
            ["run", "gemm", "--shape", "1000,1024,1024"],
            "needed: 2,048,064 bytes (estimated), limit 425,984, 1,622,080 too many\n  next: give a smaller",
        ),
    ],
)
def test_what_cannot_be_called_is_refused(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, *words)


@pytest.mark.parametrize(
    "words",
    [
        ("cast",),
        ("cast", "--set", "source_order=panels", "--set", "result_order=panels"),
        ("copy",),
        ("copy", "--set", "kind=fill"),
        ("copy", "--set", "destination_gap=1048575"),
        ("gemm",),
        ("pointwise",),
        ("pointwise", "--set", "operation=gelu"),
        ("pointwise", "--set", "operation=bias_gelu"),
        ("pointwise", "--set", "second=row"),
        ("rearrange",),
        ("reduce",),
    ],
)
def test_calls_of_the_largest_shape_are_refused(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    shape = ",".join(["1048576"] * (3 if words[0] == "gemm" else 2))
    assert refused(capsys, "show", *words, "--shape", shape).startswith(
        f"invalid input (kernel call): {words[0]}: "
    )
