"""The isa commands: what they print and write, and their exit statuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compiler.isa.objects import read_object
from pipeline.cli import main

FIXTURES = Path(__file__).parent.parent / "fixtures" / "isa"
MAIN = """
    .globl main
    .section .text.main, "ax", @progbits
main:
    ldconst $a0, TAMP_F16V4_E4_P3
    call $lr, helper
    exitz $mzero
"""
HELPER = """
    .globl helper, unused
    .section .text.helper, "ax"
helper:
    { nop ; fnop }
    br $lr
    .section .text.unused, "ax"
unused:
    br $lr
    .data
    .word helper
    .bss
    .space 8
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "main.s").write_text(MAIN)
    (tmp_path / "helper.s").write_text(HELPER)
    return tmp_path


def run(*words: object) -> int:
    return main(["isa", *map(str, words)])


def test_assemble_link_and_inspect(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("assemble", folder / "main.s", "--listing") == 0
    assert (
        "call $m10, helper                                   # 00000004: 18a00000" in capsys.readouterr().out
    )
    assert run("assemble", folder / "helper.s", "-o", folder / "help.o") == 0
    assert run("objdump", folder / "help.o") == 0
    shown = capsys.readouterr().out
    assert "# symbol helper: global, .text.helper, value 0, size 0" in shown
    assert "R_COLOSSUS_32 helper+0" in shown
    assert "{ nop ; fnop }" in shown
    output = folder / "image"
    words = [
        "link",
        folder / "main.o",
        folder / "help.o",
        "-o",
        output,
        "--entry",
        "main",
        "--map",
        "--listing",
    ]
    assert run(*words) == 0
    shown = capsys.readouterr().out
    assert "0x0004c010       12 code      .text.helper  help.o" in shown
    assert "call $m10, 0x4c010" in shown
    assert ".text.unused  help.o" in shown
    first = output.read_bytes()
    assert run(*words) == 0
    assert output.read_bytes() == first


def test_files_do_not_depend_on_their_place(folder: Path) -> None:
    other = folder / "deeper"
    other.mkdir()
    (other / "main.s").write_text(MAIN)
    assert run("assemble", folder / "main.s") == run("assemble", other / "main.s") == 0
    assert (folder / "main.o").read_bytes() == (other / "main.o").read_bytes()


def test_overrides_reach_the_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    overrides = folder / "overrides.txt"
    overrides.write_text("TAMP_F16V4_E4_P3 = 40\n")
    assert run("assemble", folder / "main.s", "--isa-overrides", overrides) == 0
    code = read_object((folder / "main.o").read_bytes(), "main.o").section(".text.main")
    assert code.content[0] == 40
    assert run("decisions", "--isa-overrides", overrides) == 0
    shown = capsys.readouterr().out
    assert "TAMP_F16V4_E4_P3 = 40  [overridden by file]" in shown
    assert "TAMP_F16V4_E4_P2 = 2  [decision, can be overridden]" in shown
    assert "TFPU_ROUND_UP = 2  [decision]" in shown


def test_disassemble_plain_words(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = folder / "words"
    words.write_bytes(bytes.fromhex("03008041000060f6005009030000e0990000d09affffffff"))
    assert run("disassemble", words, "--address", "0x4c004") == 0
    shown = [line.split("#")[0].strip() for line in capsys.readouterr().out.splitlines()]
    assert shown == [
        ".byte_branches",
        ".supervisor",
        "sync 3",
        "sendpicp 51, 0, 0, 0, 194, 0x15000",
        ".worker",
        "{ nop ; fnop }",
        ".word 0xffffffff",
    ]
    assert run("disassemble", words, "--mode", "worker") == 0
    assert "sync" not in capsys.readouterr().out


def test_known_vectors(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("check-vectors", FIXTURES / "vectors.jsonl") == 0
    assert capsys.readouterr().out == "160 of 160 vectors agree\n"


def test_a_disagreement_is_printed_and_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    vectors = folder / "v.jsonl"
    rows: list[dict[str, object]] = [
        {"asm": "nop", "mode": "worker", "bytes_hex_le": "0000e019", "source": "x", "also": []},
        {"asm": "fnop", "mode": "worker", "bytes_hex_le": "0000e019"},
        {"asm": "sync 1", "mode": "worker", "bytes_hex_le": "01008041"},
    ]
    vectors.write_text("\n".join(map(json.dumps, rows)))
    assert run("check-vectors", vectors) == 1
    assert capsys.readouterr().out == (
        "v.jsonl:2: fnop: assembles to 0000d01a, not 0000e019 (worker)\n"
        "v.jsonl:3: sync 1: does not assemble: sync is a supervisor instruction (sync u4), "
        "and this is worker code (worker)\n1 of 3 vectors agree\n"
    )


def test_broken_bundles_can_be_warnings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = folder / "w.s"
    source.write_text(".warn_on_invalid_bundles\n{ nop ; nop }\n")
    assert run("assemble", source) == 0
    assert capsys.readouterr().err == (
        "warning: w.s:2:3: setzi is an instruction of the main lane (setzi m, u20) "
        "and cannot be the aux half of a bundle\n"
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["assemble", "absent.s"], "absent.s: it cannot be read (No such file or directory)."),
        (["objdump", "main.s"], "main.s: it does not begin like an ELF file."),
        (["assemble", "main.s", "-o", "no/folder.o"], "it cannot be written (No such file or directory)."),
    ],
)
def test_refusals_exit_with_1(
    words: list[str],
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    assert run(*words) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["assemble", "main.s", "-o", "main.s"],
        ["assemble", "main.s", "-o", "./main.s"],
        ["assemble", "main.s", "-o", "link"],
        ["assemble", "same.o"],
        ["assemble", "main.s", "--isa-overrides", "overrides", "-o", "overrides"],
        ["link", "main.o", "helper.o", "-o", "helper.o"],
    ],
)
def test_no_result_replaces_what_it_is_made_from(
    words: list[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "same.o").write_text("nop\n")
    (folder / "overrides").write_text("TISTACC_P0 = 9\n")
    (folder / "link").symlink_to("main.s")
    assert run("assemble", "main.s") == run("assemble", "helper.s") == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run(*words) == 1
    assert capsys.readouterr().err == (
        f"invalid input (write file): {Path(words[-1]) if '-o' in words else 'same.o'}: "
        "it would replace a file that it is made from.\n  next: give another path with -o\n"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_failed_write_leaves_the_earlier_file_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("assemble", folder / "main.s") == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def full(path: Path, content: bytes) -> int:
        with path.open("wb") as file:
            file.write(content[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    assert run("assemble", folder / "main.s") == 1
    assert "main.o: it cannot be written (No space left on device)." in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_results_go_through_links_and_to_devices(folder: Path) -> None:
    (folder / "link").symlink_to("target")
    assert run("assemble", folder / "main.s", "-o", folder / "link") == 0
    assert (folder / "link").is_symlink()
    assert (folder / "target").read_bytes().startswith(b"\x7fELF")
    assert run("assemble", folder / "main.s", "-o", "/dev/null") == 0
    assert not Path("/dev/null").is_file()


def test_objects_of_one_name_from_two_folders(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = folder / "other"
    other.mkdir()
    assert run("assemble", folder / "main.s", "-o", folder / "x.o") == 0
    assert run("assemble", folder / "helper.s", "-o", other / "x.o") == 0
    words = ["link", folder / "x.o", other / "x.o", "-o", folder / "image", "--map"]
    assert run(*words, "--entry", "main") == 0
    assert f"helper  {other / 'x.o'} .text.helper" in capsys.readouterr().out
    assert run("link", folder / "x.o", folder / "x.o", "-o", folder / "image") == 1
    assert "two objects have one name" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["-4", "2", "0x100000000", "abc", "1" * 5000, ""])
def test_addresses_that_no_word_has(address: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        run("disassemble", folder / "main.s", f"--address={address}")
    assert refused.value.code == 2
    assert "argument --address: it must be a multiple of 4 in 0..0xfffffffc" in capsys.readouterr().err


def test_texts_of_other_systems(folder: Path) -> None:
    source = folder / "main.s"
    assert run("assemble", source) == 0
    expected = (folder / "main.o").read_bytes()
    for content in (
        "\ufeff" + MAIN,
        MAIN.replace("\n", "\r\n"),
        MAIN.replace("\n", "\r"),
    ):
        source.write_bytes(content.encode())
        assert run("assemble", source) == 0
        assert (folder / "main.o").read_bytes() == expected


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("latin", "latin: it is no text: byte 1 is not UTF-8."),
        ("", ".: it cannot be read (Is a directory)."),
        ("/", "/: it cannot be read (Is a directory)."),
        ("a\0b", "it cannot be read (embedded null byte)."),
        ("/dev/zero", "/dev/zero: it has more than 67,108,864 bytes."),
    ],
)
def test_paths_that_give_no_text(
    path: str,
    message: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(folder)
    (folder / "latin").write_bytes(b"#\xe9\n")
    assert run("assemble", path) == 1
    assert message in capsys.readouterr().err


def test_output_that_has_no_room(folder: Path) -> None:
    """Neither a full disk behind the output nor a terminal without the characters leads to a traceback."""
    (folder / "é.s").write_text("nop\n")
    command = [sys.executable, "-m", "pipeline.cli", "isa"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*command, "decisions"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (1, "the output cannot be written (No space left on device)\n")
    done = subprocess.run(
        [*command, "assemble", str(folder / "é.s"), "--listing"],
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "00000000: 19e00000  \\xe9.s:1:1" in done.stdout
