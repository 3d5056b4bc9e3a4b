"""``tilewright isa run`` and the step debugger: what people read."""

import argparse
import io
from pathlib import Path

import pytest

from compiler.errors import InvalidInput, Unsupported
from compiler.isa.assembler import assemble
from compiler.isa.objects import write_object
from compiler.isa.text import parse
from compiler.target.instructions import Mode
from pipeline.cli_isa_run import add_run_command

TEXT = """
.supervisor
.globl double
.type double, @function
double:
    or $m12, $m10, 0
    setzi $m0, doubling
    runall $m0, $m2, 0
    sync 2
    br $m12
.worker
.globl doubling
doubling:
    get $m0, $WSR
    and $m0, $m0, 7
    ld32 $m1, $m13, $m15, $m0
    add $m1, $m1, $m1
    stm32 $m1, $m13, $m0
    exitz $m15
.supervisor
.globl exchange
exchange:
    sync 3
.globl endless
endless:
    bri endless
.globl wrong
wrong:
    setzi $m2, 2
    ld32 $m0, $m2, $m15, 0
    setzi $m3, 5
    br $m10
"""


@pytest.fixture
def object_file(tmp_path: Path) -> Path:
    path = tmp_path / "double.o"
    path.write_bytes(write_object(assemble(parse(TEXT, "double.s", mode=Mode.SUPERVISOR), "double.o")))
    data = tmp_path / "data"
    data.write_bytes(b"".join(number.to_bytes(4, "little") for number in range(1, 7)))
    return path


def run(words: list[str]) -> int:
    parser = argparse.ArgumentParser()
    add_run_command(parser.add_subparsers())
    arguments = parser.parse_args(["run", *words])
    return int(arguments.run(arguments))


def double(path: Path, *more: str) -> list[str]:
    place = f"0x60000={path.parent / 'data'}"
    return [str(path), "--symbol", "double", "--register", "m2=0x60000", "--place", place, *more]


def test_a_call_prints_cycles_and_memory(object_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(double(object_file, "--dump", "0x60000:26")) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out == (
        "55 cycles (simulated), 36 worker instructions, 0 of them of the matrix units\n"
        "0x60000  02 00 00 00 04 00 00 00 06 00 00 00 08 00 00 00\n"
        "0x60010  0a 00 00 00 0c 00 00 00 .. ..\n"
    )


def test_a_fault_is_printed_and_fails(object_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(object_file), "--symbol", "double", "--register", "m2=0xe8000"]) == 1
    assert capsys.readouterr().err.startswith(
        "fault: worker 2, cycle 20, doubling+0x8 (0x4c01c): ld32 $m1, $m13, $m15, $m0: the access is outside"
        " SRAM: address 0xe8008"
    )


@pytest.mark.parametrize("trace", [True, False])
def test_a_traced_fault_is_a_fault(
    object_file: Path, capsys: pytest.CaptureFixture[str], *, trace: bool
) -> None:
    words = [str(object_file), "--symbol", "wrong", "--registers", *(["--trace"] if trace else [])]
    assert run(words) == 1
    captured = capsys.readouterr()
    assert captured.err == (
        "fault: supervisor, cycle 1, wrong+0x4 (0x4c038): ld32 $m0, $m2, $m15, 0: the address is not a"
        " multiple of the access size: address 0x2 [INVALID_ADDRESS]\n"
    )
    lines = captured.out.splitlines()
    steps = [line.split()[:4] for line in lines if " wrong" in line]
    expected = [["0", "supervisor", "0x4c034", "wrong:"], ["1", "supervisor", "0x4c038", "wrong+0x4:"]]
    assert steps == (expected if trace else [])
    assert "1 cycles (simulated), 0 worker instructions, 0 of them of the matrix units" in lines
    assert "$m0  00000000  $m1  00000000  $m2  00000002  $m3  00000000" in lines


def test_a_fault_ends_a_debugging_session(
    object_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("s 2\ns\nc\nr s\n"))
    assert run([str(object_file), "--symbol", "wrong", "--debug"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("fault: supervisor, cycle 1, wrong+0x4") == 2
    assert "setzi $m3" not in printed
    assert "$m3  00000000" in printed


def test_the_exchange_ends_a_debugging_session(
    object_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("c\nr s\n"))
    assert run([str(object_file), "--symbol", "exchange", "--debug"]) == 0
    printed = capsys.readouterr().out
    assert "supervisor cannot run sync 3" in printed
    assert "supervisor (active)" in printed


def test_standard_input_that_is_no_text(object_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"s\n\xff\xfe\n"), encoding="utf-8"))
    with pytest.raises(InvalidInput, match="it is no text"):
        run([str(object_file), "--symbol", "wrong", "--debug"])


def test_the_limit_is_reported(object_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(object_file), "--symbol", "endless", "--limit", "600"]) == 1
    assert capsys.readouterr().err == "not finished after 600 cycles\n"


def test_the_exchange_is_refused(object_file: Path) -> None:
    with pytest.raises(Unsupported, match="cannot run sync 3"):
        run([str(object_file), "--symbol", "exchange"])


def test_traces_and_registers(object_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(double(object_file, "--trace", "--registers")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["0", "supervisor", "0x4c000", "double:", "or", "$m12,", "$m10,", "0"]
    assert [line for line in lines if "worker 5" in line and "exitz" in line]
    assert "$m0  00000005  $m1  0000000c  $m2  00000000  $m3  00000000" in lines
    assert "worker 5 (inactive), pc 0x4c02c" in lines


def test_debugging(
    object_file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commands = "s 2\nb doubling\nc\ns 7\nr 0\nr s\nd 0x60000 4\nx\nd 1 4\nr 9\nc\nc\nq\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(commands))
    assert run(double(object_file, "--debug")) == 0
    printed = capsys.readouterr().out
    assert "setzi $m0, 311316" in printed
    assert "runall $m0, $m2, 0" in printed
    assert "worker 0 (active), pc 0x4c018" in printed
    assert "supervisor (active), pc 0x4c00c" in printed
    assert "0x60000  01 00 00 00" in printed
    assert "this is no command" in printed
    assert "bytes 0x1..0x5 are not in SRAM" in printed
    assert "there is no such context" in printed
    assert printed.rstrip().endswith("finished after 55 cycles")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--register", "m2"], "this is not N=VALUE"),
        (["--register", "m15=1"], "there is no register $m15 to set"),
        (["--register", "m2=nowhere"], "there is no symbol nowhere"),
        (["--place", "0x60000=/nonexistent/file"], "it cannot be read"),
        (["--place", "16=DATA"], "bytes 0x10..0x28 are not in SRAM"),
        (["--dump", "0x60000:big"], "this is no size"),
        (["--dump", "0x60000:-1"], "are not in SRAM"),
        (["--dump", "nowhere:4"], "there is no symbol nowhere"),
        (["--place", "0x60000=a\0b"], "it cannot be read"),
        (["--place", "0x60000=/dev/zero"], "it has more than 67,108,864 bytes"),
        (["--isa-overrides", "DATA.o"], "it cannot be read"),
        (["--workers", "0"], "workers alone have no supervisor"),
    ],
)
def test_bad_arguments_are_named(object_file: Path, words: list[str], message: str) -> None:
    words = [word.replace("DATA", str(object_file.parent / "data")) for word in words]
    with pytest.raises(InvalidInput) as caught:
        run(double(object_file, *words))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "words", [["--limit", "-1"], ["--limit", "many"], ["--workers", "3"], ["--workers", "0x100000000"]]
)
def test_numbers_that_cannot_be(
    object_file: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        run([str(object_file), "--symbol", "double", *words])
    assert caught.value.code == 2
    assert "it must be a " in capsys.readouterr().err


def test_objects_that_are_none(object_file: Path) -> None:
    """Neither an unknown symbol nor a file of another kind is more than a sentence."""
    with pytest.raises(InvalidInput, match="nowhere"):
        run([str(object_file), "--symbol", "nowhere"])
    with pytest.raises(InvalidInput):
        run([str(object_file.parent / "data"), "--symbol", "double"])
    overrides = object_file.parent / "overrides"
    overrides.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="it is no text"):
        run(double(object_file, "--isa-overrides", str(overrides)))


def test_sizes_in_a_file_are_not_believed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = ".supervisor\nnop\n.globl f\n.size f, 638976\nf:\nbr $m10\n"
    path = tmp_path / "f.o"
    path.write_bytes(write_object(assemble(parse(text, "f.s", mode=Mode.SUPERVISOR), "f.o")))
    assert run([str(path), "--symbol", "f"]) == 0
    assert capsys.readouterr().out.startswith("6 cycles")


def test_workers_alone(object_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(object_file), "--symbol", "doubling", "--workers", "0x60000"]
    assert run([*words, "--place", f"0x60000={object_file.parent / 'data'}", "--dump", "0x60004:4"]) == 0
    assert capsys.readouterr().out == (
        "36 cycles (simulated), 36 worker instructions, 0 of them of the matrix units\n0x60004  04 00 00 00\n"
    )
