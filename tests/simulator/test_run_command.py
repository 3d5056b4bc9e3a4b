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
    ],
)
def test_bad_arguments_are_named(object_file: Path, words: list[str], message: str) -> None:
    words = [word.replace("DATA", str(object_file.parent / "data")) for word in words]
    with pytest.raises(InvalidInput) as caught:
        run(double(object_file, *words))
    assert message in str(caught.value)


def test_workers_alone(object_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [str(object_file), "--symbol", "doubling", "--workers", "0x60000"]
    assert run([*words, "--place", f"0x60000={object_file.parent / 'data'}", "--dump", "0x60004:4"]) == 0
    assert capsys.readouterr().out == (
        "36 cycles (simulated), 36 worker instructions, 0 of them of the matrix units\n0x60004  04 00 00 00\n"
    )
