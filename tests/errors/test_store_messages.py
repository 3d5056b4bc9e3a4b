"""The exact text of every message of the store, each from the smallest case that leads to it."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from compiler.errors import StoreError, TilewrightError
from compiler.store.collect import Limits, collect, pin
from compiler.store.history import find_record, last_document
from compiler.store.store import Access, Mode, RemoteSettings, Store
from tests.store.helpers import in_child, reachable_folder
from tests.store.sample_odd import ENTERED, ITSELF
from tests.store.sample_stages import CARELESS, SQUARE, UNSTABLE, UNSTABLE_STAGE
from tests.store.sample_types import SOURCES, NumberInputs, Options


def store_at(root: Path, *, mode: Mode = Mode.USE, access: Access = Access.READ_WRITE) -> Store:
    """A strict store for the sample stages."""
    return Store.open(root, sources=SOURCES, strict=True, mode=mode, access=access)


def file_in_the_way(root: Path) -> None:
    """A file where the store should be."""
    root.write_text("x")
    store_at(root)


def file_above(root: Path) -> None:
    """A file where a folder above the store should be."""
    root.write_text("x")
    store_at(root / "store")


def unknown_version(root: Path) -> None:
    """A store of the future."""
    root.mkdir()
    (root / "VERSION").write_text("tilewright store 2\n")
    store_at(root)


def not_a_store(root: Path) -> None:
    """A folder with somebody's files."""
    root.mkdir()
    (root / "thesis.tex").touch()
    store_at(root)


def nothing_to_read(root: Path) -> None:
    """Reading where nothing is."""
    store_at(root, access=Access.READ_ONLY)


def file_inside(root: Path) -> None:
    """A file where one of the store's own folders should be."""
    store_at(root)
    (root / "cas").write_text("x")
    store_at(root).run(SQUARE, NumberInputs(number=1), Options())


def collect_read_only(root: Path) -> None:
    """Collecting while reading."""
    store_at(root)
    collect(store_at(root, access=Access.READ_ONLY), Limits(), now=0)


def broken_pin(root: Path) -> None:
    """A pin that is no list of keys."""
    store = store_at(root)
    pin(store, "release", [])
    (root / "pins/release").write_text("[")
    collect(store, Limits(), now=0)


def unknown_key(root: Path) -> None:
    """A key that nothing has."""
    find_record(store_at(root), "abcdef")


def unknown_label(root: Path) -> None:
    """A label that nothing was run under."""
    store = store_at(root)
    store.run(SQUARE, NumberInputs(number=1), Options(), label="mlp")
    last_document(store, "square", "vit")


def unknown_label_in_an_empty_store(root: Path) -> None:
    """The same before anything was built."""
    last_document(store_at(root), "square", "vit")


def undeclared_option(root: Path) -> None:
    """A stage with a mistake."""
    store_at(root).run(CARELESS, NumberInputs(number=1), Options())


def conflict(root: Path) -> None:
    """A stage that is not deterministic."""
    UNSTABLE[:] = [1, 2]
    for mode in (Mode.USE, Mode.VERIFY):
        store_at(root, mode=mode).run(UNSTABLE_STAGE, NumberInputs(number=1), Options())


def remote(root: Path) -> None:
    """A remote that does not exist."""
    Store.open(root, strict=True, remote=RemoteSettings(url="nonsense://x"))


def version_is_a_pipe(root: Path) -> None:
    """Something else than a file where the version should be."""
    store_at(root)
    (root / "VERSION").unlink()
    os.mkfifo(root / "VERSION")
    store_at(root)


def pin_is_no_list(root: Path) -> None:
    """A pin that could be taken for one without keys."""
    store = store_at(root)
    pin(store, "release", [])
    (root / "pins/release").write_text("{}")
    collect(store, Limits(), now=0)


def asks_for_itself(root: Path) -> None:
    """A stage with a circle."""
    ENTERED.clear()
    store_at(root).run(ITSELF, NumberInputs(number=1), Options())


CASES: dict[Callable[[Path], None], str] = {
    file_in_the_way: """
store (store): {root}: a file is where the store needs a folder.
  next: move that file away or use another store""",
    file_above: """
store (store): {root}/store: a file is where the store needs a folder.
  next: move that file away or use another store""",
    unknown_version: """
store (store): {root}: its version is 'tilewright store 2', and this Tilewright reads 'tilewright store 1'.
  next: use another folder; the old one holds nothing that cannot be built again""",
    not_a_store: """
store (store): {root}: the folder holds other things, such as 'thesis.tex', and no store.
  next: give an empty or new folder""",
    nothing_to_read: """
store (store): {root}: there is no store here.
  next: give the folder of a store""",
    file_inside: """
store (store): {root}/cas/{any}: a file is where the store needs a folder.
  next: move that file away or use another store""",
    collect_read_only: """
store (store): {root}: nothing can be removed from a store that is open for reading.
  next: open the store for writing""",
    broken_pin: """
store (store): {root}/pins/release: the pin cannot be understood: Expecting value: line 1 column 2 (char 1).
  next: remove the file and pin the keys again""",
    version_is_a_pipe: """
store (store): {root}/VERSION: the file is a pipe.
  next: use another folder; this one holds nothing that cannot be built again""",
    pin_is_no_list: """
store (store): {root}/pins/release: the pin cannot be understood: it is not a list of keys.
  next: remove the file and pin the keys again""",
    asks_for_itself: """
internal error, please report it (store): stage itself: the stage asks for its own result, under key {any}.
  next: report this message with the command""",
    unknown_key: """
invalid input (store explain): abcdef: no result in the store has this key.
  next: give a key as a build or `tilewright store explain LABEL STAGE` prints it""",
    unknown_label: """
invalid input (store explain): vit: stage square was never run under this label.
  next: give one of `mlp square`""",
    unknown_label_in_an_empty_store: """
invalid input (store explain): vit: stage square was never run under this label.
  next: build something first""",
    undeclared_option: """
internal error, please report it (store): stage careless: option scale is read and not declared.
  next: declare it in reads or unkeyed of the stage""",
    conflict: """
internal error, please report it (store): stage unstable: two runs under key {any} gave different bytes: """
    """output value, byte 64 (column 'values', element 0): 0x01 and 0x02.
  next: report this message; until it is repaired, build with the cache off""",
    remote: """
store (store): nonsense://x: the remote store does not work: Protocol not known: nonsense.
  next: check address and permissions, or build without a remote store""",
}


@pytest.mark.parametrize("case", list(CASES), ids=lambda case: str(getattr(case, "__name__", "")))
def test_message(case: Callable[[Path], None], tmp_path: Path) -> None:
    root = tmp_path / "store"
    with pytest.raises(TilewrightError) as raised:
        case(root)
    expected = CASES[case].lstrip("\n").replace("{root}", str(root)).split("{any}")
    text = str(raised.value)
    assert text.startswith(expected[0])
    assert text.endswith(expected[-1])
    if len(expected) == 1:
        assert text == expected[0]


REFUSALS = {
    errno.ENOSPC: """no space is left to write it.
  next: free some space, or shrink the store with `tilewright store gc --budget BYTES`""",
    errno.EDQUOT: """no space is left to write it.
  next: free some space, or shrink the store with `tilewright store gc --budget BYTES`""",
    errno.EROFS: """the file system is read-only.
  next: use a store on a writable file system, or open this one for reading only""",
    errno.EACCES: """permission is denied.
  next: give this user read and write permission, use another store, or open it for reading only""",
    errno.EPERM: """permission is denied.
  next: give this user read and write permission, use another store, or open it for reading only""",
    errno.EIO: """the operating system reports: Input/output error.
  next: check the disk that holds the store, or use another store""",
}


@pytest.mark.parametrize("code", list(REFUSALS), ids=[errno.errorcode[code] for code in REFUSALS])
def test_what_the_operating_system_refuses_is_said_with_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    root = tmp_path / "store"
    store = store_at(root)
    monkeypatch.setattr(os, "write", _refuse(code))
    with pytest.raises(StoreError) as raised:
        store.objects.put(b"content")
    path = next(iter((root / "cas").iterdir()))
    text = str(raised.value)
    assert text.startswith(f"store (store): {path}/")
    assert text.endswith(f": {REFUSALS[code]}")
    assert list((root / "tmp").iterdir()) == []


def _refuse(code: int) -> Callable[..., int]:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    return refuse


@pytest.mark.parametrize("mode", [0o500, 0o000], ids=["read-only folder", "unreadable folder"])
def test_a_folder_without_permission_is_refused_when_it_is_opened(mode: int) -> None:
    def build(root: Path) -> str:
        store_at(root)
        (root / "tmp").chmod(mode)
        root.chmod(mode)
        try:
            store_at(root)
        except StoreError as error:
            return str(error)
        finally:
            root.chmod(0o700)
            (root / "tmp").chmod(0o700)
        return "opened"

    with reachable_folder() as folder:
        text = in_child(lambda: build(folder / "store"), unprivileged=True)
    assert text.startswith(f"store (store): {folder}/store")
    assert text.endswith(f": {REFUSALS[errno.EACCES]}")
