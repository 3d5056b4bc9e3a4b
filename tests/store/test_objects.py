"""Objects and records: nothing damaged is ever taken for sound, and what was acknowledged can be read."""

import random
from collections.abc import Callable
from pathlib import Path

import hypothesis
import hypothesis.strategies as st
import pytest
import zstandard

from compiler.errors import (
    ALL_ERRORS,
    DoesNotFit,
    InternalError,
    Measure,
    NumberKind,
    StoreError,
    TilewrightError,
)
from compiler.store.digest import ByteCount, Digest, ObjectRef, digest_of, parse_digest
from compiler.store.key import key_of
from compiler.store.objects import Objects, pack, unpack
from compiler.store.records import (
    Output,
    Record,
    Records,
    error_from_json,
    error_to_json,
    record_from_file,
    record_to_file,
)
from compiler.store.stage import Consumed, Namespace

CONTENT = b"".join(index.to_bytes(3, "little") for index in range(3000)) + b"tail" * 500


@pytest.fixture
def damages() -> list[tuple[str, str]]:
    """Name and fault of each damaged file."""
    return []


@pytest.fixture
def objects(tmp_path: Path, damages: list[tuple[str, str]]) -> Objects:
    """Objects in an empty folder."""
    return Objects(tmp_path, on_damage=lambda path, fault: damages.append((path.name, fault)), writable=True)


@hypothesis.given(st.binary(max_size=2000))
def test_what_is_packed_is_unpacked_and_is_an_ordinary_zstd_file(data: bytes) -> None:
    file = pack(data)
    ref = ObjectRef(digest=digest_of(data), size=ByteCount(len(data)))
    assert unpack(file, ref) == data
    assert pack(data) == file
    reader = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
    assert reader.readall() == data
    assert zstandard.get_frame_parameters(file).has_checksum


def test_objects_are_found_under_the_digest_of_their_content(objects: Objects, tmp_path: Path) -> None:
    ref = objects.put(CONTENT)
    assert ref == ObjectRef(digest=digest_of(CONTENT), size=ByteCount(len(CONTENT)))
    assert objects.get(ref) == CONTENT
    assert objects.put(CONTENT) == ref
    assert [path.name for path in objects.walk()] == [ref.digest]
    assert list((tmp_path / "tmp").iterdir()) == []
    assert objects.get(objects.put(b"")) == b""


def test_sampled_single_bit_flips_of_an_object_are_all_caught_and_repaired(
    objects: Objects, damages: list[tuple[str, str]]
) -> None:
    ref = objects.put(CONTENT)
    path = objects.path(ref.digest)
    sound = path.read_bytes()
    bits = random.Random(1).sample(range(8 * len(sound)), 500)
    for count, bit in enumerate(bits, start=1):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert objects.get(ref) is None, f"bit {bit}"
        assert len(damages) == count
        assert not path.exists(), "the damaged file is set aside"
        path.write_bytes(sound)
    assert objects.get(ref) == CONTENT


def test_every_bit_of_a_small_object_counts() -> None:
    ref = ObjectRef(digest=digest_of(b"small"), size=ByteCount(5))
    sound = pack(b"small")
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match=r"."):
            unpack(bytes(damaged), ref)
    for length in range(len(sound)):
        with pytest.raises(ValueError, match=r"."):
            unpack(sound[:length], ref)
    with pytest.raises(ValueError, match=r"."):
        unpack(sound + b"\0", ref)


def test_a_sound_file_of_other_content_is_no_answer(objects: Objects, damages: list[tuple[str, str]]) -> None:
    ref = objects.put(CONTENT)
    other = bytes(reversed(CONTENT))
    objects.path(ref.digest).write_bytes(pack(other))
    assert objects.get(ref) is None
    assert damages[-1] == (ref.digest, "holds content with another digest")
    objects.path(ref.digest).write_bytes(pack(b"short"))
    assert objects.get(ref) is None
    assert damages[-1] == (ref.digest, f"holds 5 bytes of content instead of {len(CONTENT)}")


@pytest.mark.parametrize("damage", ["empty", "cut", "folder", "overwritten"])
def test_writing_again_repairs_whatever_happened_to_the_file(objects: Objects, damage: str) -> None:
    ref = objects.put(CONTENT)
    path = objects.path(ref.digest)
    match damage:
        case "empty":
            path.write_bytes(b"")
        case "cut":
            path.write_bytes(path.read_bytes()[:-1])
        case "overwritten":
            path.write_bytes(b"x" * 100)
        case _:
            path.unlink()
            path.mkdir()
    assert objects.put(CONTENT) == ref
    assert objects.get(ref) == CONTENT


def test_a_read_only_store_leaves_damaged_files_where_they_are(tmp_path: Path) -> None:
    ref = Objects(tmp_path, on_damage=lambda _path, _fault: None, writable=True).put(CONTENT)
    reader = Objects(tmp_path, on_damage=lambda _path, _fault: None, writable=False)
    reader.path(ref.digest).write_bytes(b"x")
    assert reader.get(ref) is None
    assert reader.path(ref.digest).read_bytes() == b"x"


@pytest.mark.parametrize("text", ["", "a", "g" * 64, "A" * 64, "a" * 65, "a" * 63 + "\n"])
def test_a_digest_is_64_lower_case_hexadecimal_digits(text: str) -> None:
    with pytest.raises(ValueError, match="is not a digest"):
        parse_digest(text)
    with pytest.raises(ValueError, match="is not a digest"):
        ObjectRef(digest=Digest(text), size=ByteCount(0))
    with pytest.raises(ValueError, match="cannot have -1 bytes"):
        ObjectRef(digest=digest_of(b""), size=ByteCount(-1))


def some_error(kind: type[TilewrightError]) -> TilewrightError:
    """An error with everything in it."""
    return kind(
        "words “quoted” — and more",
        stage="placement",
        subject="tile 3",
        next_step="do something",
        numbers=[
            Measure(name="memory", value=700, unit="bytes", kind=NumberKind.BOUND, limit=600),
            Measure(name="time", value=0, unit="cycles", kind=NumberKind.SCHEDULED),
        ],
        nodes=["a", "b/c"],
    )


@pytest.mark.parametrize("kind", sorted(ALL_ERRORS, key=str))
def test_errors_about_the_inputs_come_back_with_equal_text(kind: type[TilewrightError]) -> None:
    error = some_error(kind)
    kept = error_to_json(error)
    if kind in {StoreError, InternalError}:
        assert kept is None
    else:
        assert kept is not None
        again = error_from_json(kept)
        assert type(again) is kind
        assert str(again) == str(error)
        assert error_to_json(again) == kept


def record(*, failed: bool = False) -> Record:
    """A record with everything in it."""
    ref = ObjectRef(digest=digest_of(b"x"), size=ByteCount(1))
    return Record(
        document={"v": 1, "namespace": "stage", "stage": "placement", "inputs": {"a": {"value": 1}}},
        outputs=() if failed else (Output(name="value", ref=ref), Output(name="ü", ref=ref)),
        failure=error_to_json(some_error(DoesNotFit)) if failed else None,
        consumed=(
            Consumed(
                module="compiler.x",
                request={"namespace": "stage", "stage": "inner", "tables": []},
                key=digest_of(b"key"),
                output=digest_of(b"out"),
            ),
        ),
        microseconds=12,
        module="compiler.placement.stage",
        decoder={"single": ["value", "bytes"]},
        sources={"a": {"outputs": [["value", digest_of(b"in"), 2]], "decoder": None}},
    )


@pytest.mark.parametrize("failed", [False, True])
def test_a_record_comes_back_and_names_all_its_objects(*, failed: bool) -> None:
    written = record(failed=failed)
    read = record_from_file(record_to_file(written))
    assert read == written
    assert read.digest == written.digest
    assert {ref.digest for ref in read.named} == {digest_of(b"in")} | (set() if failed else {digest_of(b"x")})


def test_every_bit_and_every_length_of_a_record_counts() -> None:
    sound = record_to_file(record())
    for bit in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(ValueError, match=r"."):
            record_from_file(bytes(damaged))
    for length in range(len(sound)):
        with pytest.raises(ValueError, match=r"."):
            record_from_file(sound[:length])


@pytest.mark.parametrize("fault", ["another key", "another namespace", "folder", "not a record", "no stage"])
def test_a_record_answers_for_its_own_key_only(
    tmp_path: Path, damages: list[tuple[str, str]], fault: str
) -> None:
    records = Records(tmp_path, on_damage=lambda path, text: damages.append((path.name, text)), writable=True)
    written = record()
    records.publish(written)
    assert records.read(Namespace.STAGE, written.key) == written
    path = records.path(Namespace.STAGE, written.key)

    def closed(text: bytes) -> bytes:
        return text + b"\n" + digest_of(text).encode() + b"\n"

    replacements: dict[str, Callable[[], object]] = {
        "another key": lambda: path.rename(path.with_name("0" * 64)),
        "another namespace": lambda: path.rename(_parent(records.path(Namespace.KERNEL, written.key))),
        "not a record": lambda: path.write_bytes(closed(b"[]")),
        "no stage": lambda: path.write_bytes(
            record_to_file(record()).replace(b'"stage":"placement"', b'"stagy":"placement"')
        ),
        "folder": lambda: (path.unlink(), path.mkdir()),
    }
    replacements[fault]()
    namespace = Namespace.KERNEL if fault == "another namespace" else Namespace.STAGE
    key = Digest("0" * 64) if fault == "another key" else written.key
    if fault == "another key":
        _parent(records.path(namespace, key))
        path.with_name("0" * 64).rename(records.path(namespace, key))
    assert records.read(namespace, key) is None
    assert len(damages) == 1
    assert not records.path(namespace, key).exists()
    records.publish(written)
    assert records.read(Namespace.STAGE, written.key) == written


def _parent(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def test_the_key_of_a_record_is_that_of_its_document() -> None:
    assert record().key == key_of(record().document)
    assert record().key != record(failed=True).digest
