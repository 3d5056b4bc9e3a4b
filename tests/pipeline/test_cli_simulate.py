"""``tilewright simulate``: tensors in and out, both modes, watching, and everything it refuses."""

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.package.emit import write_emission
from compiler.package.format import save
from compiler.package.records import Application
from pipeline.cli import main
from tests.low.skeletons import expected, random_input, random_parameters
from tests.package.test_emission_skeleton import OPTIONS, emit_skeleton
from tests.simulator.packages import echo

SKELETON = OPTIONS[1]


@pytest.fixture(scope="module")
def skeleton(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four-tile program as a package with its descriptions."""
    path = tmp_path_factory.mktemp("package") / "skeleton.ipuexe"
    write_emission(emit_skeleton(SKELETON, runs=2), path)
    parameters, x = random_parameters(SKELETON, 11), random_input(SKELETON, 1)
    tensors: dict[str, Any] = {"x": x, **parameters}
    np.savez(path.with_name("inputs.npz"), **tensors)
    return path


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A package of three tiles, without descriptions."""
    path = tmp_path / "echo.ipuexe"
    save(echo(), path)
    np.savez(tmp_path / "inputs.npz", x=np.arange(64, dtype=np.uint8))
    return path


def simulate(*words: "str | Path") -> int:
    return main(["simulate", *map(str, words)])


def refused(words: Sequence["str | Path"], capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed for words that are refused."""
    capsys.readouterr()
    assert simulate(*words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return captured.err


@pytest.mark.parametrize("mode", ["instruction", "functional"])
def test_logical_tensors_go_in_and_come_out(
    skeleton: Path, mode: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = tmp_path / "outputs.npz"
    inputs = skeleton.with_name("inputs.npz")
    status = simulate(
        skeleton, "--inputs", inputs, "--outputs", outputs, "--mode", mode, "--runs", "2", "--threads", "2"
    )
    printed = capsys.readouterr().out.splitlines()
    assert status == 0
    kind = "simulated" if mode == "instruction" else "estimated"
    assert [line for line in printed if line.startswith("run ")] == [
        line for line in printed if line.endswith(f"cycles ({kind})")
    ]
    assert len([line for line in printed if line.startswith("run ")]) == 2
    assert any(line.startswith("note: cycles of a run: from the last tile's sample") for line in printed)
    assert ("note: functional: cycles are estimated" in printed) == (mode == "functional")
    assert not any("the sum is too small" in line for line in printed)
    with np.load(outputs) as found:
        parameters, x = random_parameters(SKELETON, 11), random_input(SKELETON, 1)
        assert np.array_equal(found["y"].astype(np.float16), expected(SKELETON, parameters, x))
        assert found["completion"].tolist() == [1] * 1472
    first = outputs.read_bytes()
    simulate(skeleton, "--inputs", inputs, "--outputs", outputs, "--mode", mode, "--runs", "2")
    assert outputs.read_bytes() == first


def test_packed_bytes_go_in_where_nothing_describes_a_tensor(small: Path) -> None:
    outputs = small.with_name("outputs.npz")
    assert simulate(small, "--inputs", small.with_name("inputs.npz"), "--outputs", outputs) == 0
    with np.load(outputs) as found:
        assert found["y"].tolist() == list(range(64))


def test_the_timeline_is_a_table(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(small, "--inputs", small.with_name("inputs.npz"), "--timeline") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1:3] for line in lines[1:5]] == 2 * [["host", "batch"], ["host", "batch"]]
    assert lines[2].startswith("    2  host batch end        2")


def test_a_trace_of_chosen_tiles(small: Path) -> None:
    trace = small.with_name("trace.json")
    inputs = small.with_name("inputs.npz")
    assert simulate(small, "--inputs", inputs, "--trace", trace, "--trace-tiles", "260,0x1f4") == 0
    events = json.loads(trace.read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {260, 500}
    assert simulate(small, "--inputs", inputs, "--trace", trace) == 0
    assert {event["pid"] for event in json.loads(trace.read_text())["traceEvents"]} == {4}


def test_a_breakpoint_prints_registers_and_saves_memory(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sram = small.with_name("sram.bin")
    words = ["--inputs", small.with_name("inputs.npz"), "--break", "0x4c014@260", "--sram", sram]
    assert simulate(small, *words, "--dump", "260:0x4c010:8") == 0
    printed = capsys.readouterr().out
    assert "tile 260 is at the breakpoint, cycle 1\nworker 0 (inactive), pc 0x0" in printed
    assert "supervisor (active), pc 0x4c014" in printed
    content = sram.read_bytes()
    assert len(content) == 638_976
    assert content[16:20].hex(" ") in printed.splitlines()[-1]


def test_a_function_can_be_a_breakpoint(skeleton: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = skeleton.with_name("inputs.npz")
    assert simulate(skeleton, "--inputs", inputs, "--break", "runtime.host_run") == 0
    assert "is at the breakpoint" in capsys.readouterr().out


def test_a_breakpoint_that_nobody_reaches_is_told(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(small, "--inputs", small.with_name("inputs.npz"), "--break", "0xe7ffc") == 0
    assert "note: the breakpoint 0xe7ffc was not reached\n" in capsys.readouterr().out


def test_faults_are_printed_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, outputs = tmp_path / "bad.ipuexe", tmp_path / "outputs.npz"
    save(spoilt(), path)
    np.savez(tmp_path / "inputs.npz", x=np.zeros(64, np.uint8))
    assert simulate(path, "--inputs", tmp_path / "inputs.npz", "--outputs", outputs) == 1
    captured = capsys.readouterr()
    assert captured.err.splitlines()[0].startswith("fault: tile 260, cycle ")
    assert "sync 4: nothing is known of how this zone is used" in captured.err
    assert not outputs.exists()


def spoilt() -> Application:
    return echo(middle="sync 4\n")


def header_of(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The beginning of an array in NumPy's format."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()


def test_what_is_refused(small: Path, skeleton: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = small.with_name("inputs.npz")
    assert refused([small.with_name("none.ipuexe")], capsys).startswith("invalid input (read package)")
    assert refused([inputs], capsys).startswith("invalid package (read package): inputs.npz")
    assert refused([small], capsys) == (
        "invalid input (simulate): x: this input is missing.\n"
        "  next: put an array of shape [16] under its name into the file of --inputs\n"
    )
    assert refused([small, "--inputs", small], capsys) == (
        f"invalid input (simulate): {small}: it is no .npz file of plain arrays.\n"
        "  next: write it with numpy.savez\n"
    )
    plain = small.with_name("plain.npy")
    np.save(plain, np.zeros(3))
    assert "it is no .npz file of plain arrays" in refused([small, "--inputs", plain], capsys)
    for damaged in (
        b"\x93NUMPY\x01\x00\x10\x00{'a':((((((((((",
        header_of("<f8", (10**11, 64)) + bytes(10),
        header_of("<f8", (-1, 64)),
        header_of("|O", (1,)),
        b"hello",
    ):
        with zipfile.ZipFile(plain, "w") as archive:
            archive.writestr("x.npy", damaged)
        assert "it is no .npz file of plain arrays" in refused([small, "--inputs", plain], capsys)
    other = small.with_name("other.npz")
    np.savez(other, x=np.zeros(64, np.uint8), z=np.zeros(1))
    assert refused([small, "--inputs", other], capsys) == (
        "invalid input (simulate): z: the package has no input or weight of this name.\n  next: give x\n"
    )
    np.savez(other, x=np.zeros(16, np.float32))
    assert refused([small, "--inputs", other], capsys) == (
        "invalid input (simulate): x: its description is not beside the package, and float32[16] is no list"
        " of"
        " bytes.\n  next: put the .host.json files beside the package, or give its packed bytes as uint8\n"
    )
    np.savez(other, x=np.zeros(63, np.uint8))
    assert "input 'x' has 63 bytes, its file has 64" in refused([small, "--inputs", other], capsys)
    tensors = dict(np.load(skeleton.with_name("inputs.npz")))
    np.savez(other, **tensors | {"x": tensors["x"].astype(np.int32)})
    assert refused([skeleton, "--inputs", other], capsys) == (
        "invalid input (simulate): x: its elements are int32, not floating-point.\n  next: convert it"
        " before\n"
    )
    np.savez(other, **tensors | {"x": tensors["x"][:3]})
    assert "the given values [3, " in refused([skeleton, "--inputs", other], capsys)
    for option, text in (
        (["--break", "nowhere"], "the package has no function of this name"),
        (["--break", "0x4c010@x"], "this is no tile"),
        (["--break", "0x4c010@7"], "the package does not hold tile 7"),
        (["--trace", "t", "--trace-tiles", "1"], "the package does not hold tile 1"),
        (["--dump", "1:2"], "this is not TILE:PLACE:SIZE"),
        (["--dump", "260:0x4c010:many"], "this is no size"),
        (["--dump", "7:0x4c010:4"], "the package does not hold tile 7"),
        (["--dump", "260:0x4bff0:32"], "32 bytes from 0x4bff0 are not in SRAM"),
        (["--dump", "260:0xe7ffe:4"], "4 bytes from 0xe7ffe are not in SRAM"),
        (["--dump", "260:0x4c010:0"], "0 bytes from 0x4c010 are not in SRAM"),
        (["--break", "0xe8000"], "no instruction is at 0xe8000"),
        (["--break", "-4"], "no instruction is at -0x4"),
        (["--break", "0x4c012@260"], "no instruction is at 0x4c012"),
        (["--sram", "sram.bin"], "it has no effect without --break"),
        (["--trace-tiles", "260"], "it has no effect without --trace"),
        (["--isa-overrides", small.with_name("none")], "it cannot be read"),
        (["--isa-overrides", inputs], "it is no text"),
    ):
        assert text in refused([small, "--inputs", inputs, *option], capsys)


def test_files_that_cannot_be_written(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inputs = small.with_name("inputs.npz")
    missing = small.with_name("no") / "outputs.npz"
    assert simulate(small, "--inputs", inputs, "--outputs", missing) == 1
    told = capsys.readouterr()
    assert "it cannot be written: its folder does not exist" in told.err
    assert "run 0" not in told.out


@pytest.mark.parametrize("words", [[], ["--runs", "0"], ["--mode", "fast"], ["--threads", "many"]])
def test_wrong_words(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        simulate(*words)
    assert stop.value.code == 2


def test_descriptions_of_another_package_are_refused(
    skeleton: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """They lie beside it, as where a package was copied over another."""
    other = tmp_path / "other.ipuexe"
    write_emission(emit_skeleton(SKELETON, runs=3), other)
    other.write_bytes(skeleton.read_bytes())
    message = refused([other, "--inputs", skeleton.with_name("inputs.npz")], capsys)
    assert "it describes a tensor of another package than other.ipuexe" in message


def test_outputs_without_description_are_said_to_be_bytes(
    small: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = small.with_name("outputs.npz")
    assert simulate(small, "--inputs", small.with_name("inputs.npz"), "--outputs", outputs) == 0
    with np.load(outputs) as found:
        raw = [name for name in found.files if found[name].dtype == np.uint8]
    assert raw
    printed = capsys.readouterr().out
    for name in raw:
        assert f"note: {name} has no description beside the package: written as packed bytes" in printed


def test_a_timeline_says_what_its_cycles_are(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(small, "--inputs", small.with_name("inputs.npz"), "--timeline") == 0
    (heading,) = [line for line in capsys.readouterr().out.splitlines() if "release" in line]
    assert heading.endswith("(cycles: simulated)")


def test_numbers_of_runs_are_refused_in_words(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as wrong:
        simulate(small, "--runs", "0")
    assert wrong.value.code == 2
    assert "argument --runs: '0' is not a positive whole number" in capsys.readouterr().err
