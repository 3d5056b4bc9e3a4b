"""What is written reads back, is laid out as the encoding prescribes, and reaches the disk whole or not."""

import gc
import importlib
import importlib.resources
import os
import struct
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.errors import PackageInvalid
from compiler.package import records
from compiler.package.format import load, read_package, read_profile, save, write_package, write_profile
from compiler.package.records import (
    NO_ACTIVITIES,
    Application,
    ExchangeActivities,
    ExchangeActivity,
    ExchangeActivityKind,
    Profile,
    ProfileStep,
    Segment,
    StepKind,
    TileProfilePlan,
)
from compiler.package.wire import application_format, profile_format
from compiler.target.units import Address, Bytes, Cycles, PhysicalTile
from tests.package.oracle import Struct, StructList, message, text
from tests.package.samples import complete, minimal, profile, segment, tile, with_segments

WORD = st.integers(0, 0xFFFF_FFFF)
LONG = st.integers(0, (1 << 64) - 1)


def _records(record: type[Any], **strategies: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Records of a class whose fields are 32-bit integers unless stated."""
    return st.builds(record, **{field.name: strategies.get(field.name, WORD) for field in fields(record)})


def _lists(elements: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(elements, max_size=most).map(tuple)


def _applications() -> st.SearchStrategy[Application]:
    """Anything that the schema can express, valid or not."""
    name = st.text(max_size=9)
    slices = _lists(_records(records.RegionSlice, file_offset=LONG, size=LONG))
    bindings = _lists(_records(records.Binding, name=name, dtype=name, shape=_lists(WORD, 5), slices=slices))
    host_slices = _lists(_records(records.HostSlice, page_offset=LONG, file_offset=LONG, size=LONG))
    calls = _records(
        records.HostCall,
        name=name,
        inputs=host_slices,
        outputs=host_slices,
        input_batch_ends=_lists(WORD, 3),
        output_batch_ends=_lists(WORD, 3),
    )
    activity = _records(
        ExchangeActivity,
        kind=st.sampled_from(ExchangeActivityKind),
        fanout=st.integers(0, 0xFFFF),
        paired=st.booleans(),
    )
    steps = _records(
        ProfileStep,
        operation=name,
        kernel=name,
        kind=st.sampled_from(StepKind),
        metadata=_lists(_records(records.MetadataEntry, name=name, value=name)),
        exchange_activities=st.lists(activity, max_size=3).map(ExchangeActivities.of),
    )
    return _records(
        Application,
        compiler_version=name,
        target=name,
        schema_version=st.just(5),
        tiles=_lists(
            _records(records.TileImage, segments=_lists(_records(Segment, data=st.binary(max_size=20))))
        ),
        inputs=bindings,
        outputs=bindings,
        weights=bindings,
        host_exchange=_records(
            records.HostExchange,
            command_offset=LONG,
            pages=_lists(_records(records.HostPage, size=LONG)),
            attach_order=_lists(WORD, 4),
            calls=_lists(calls),
        ),
        entry_points=_lists(_records(records.EntryPoint, name=name)),
        device_config_writes=_lists(_records(records.DeviceConfigWrite)),
        profile_tiles=_lists(_records(TileProfilePlan, steps=_lists(steps))),
        debug_symbols=_lists(_records(records.DebugSymbol, name=name)),
        debug_regions=_lists(_records(records.DebugRegion, name=name)),
    )


def test_a_package_reads_back_equal_and_is_written_the_same_again() -> None:
    written = write_package(complete())
    read = read_package(written, name="a.ipuexe")
    assert read == complete()
    assert write_package(read) == written == write_package(complete())


@settings(max_examples=60)  # of some 50 ms each
@given(_applications())
def test_whatever_the_schema_can_express_reads_back_equal(application: Application) -> None:
    data = bytes(application_format().encode(application))
    assert application_format().open(data).record() == application
    assert bytes(application_format().encode(application)) == data


def test_a_profile_reads_back_equal() -> None:
    written = write_profile(profile())
    assert read_profile(written, name="run.profile") == profile()
    assert write_profile(profile()) == written


def test_bytes_do_not_depend_on_the_process() -> None:
    program = (
        "import hashlib; from compiler.package.format import write_package; from tests.package.samples import"
        " complete; print(hashlib.sha256(write_package(complete())).hexdigest())"
    )
    root = Path(__file__).parents[2]
    digests = {
        subprocess.run(
            [sys.executable, "-c", program],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(digests) == 1


def test_the_layout_is_that_of_the_encoding() -> None:
    activity = ExchangeActivity(
        kind=ExchangeActivityKind.PARTNER_BUSY,
        start_cycle=Cycles(9),
        end_cycle=Cycles(12),
        fanout=515,
        paired=True,
    )
    step = ProfileStep(
        local_index=0,
        phase=0x8000_0007,
        epoch=3,
        operation="up",
        kind=StepKind.IDLE,
        exchange_activities=ExchangeActivities.of([activity, activity]),
        exchange_event_cycles=Cycles(40),
    )
    application = replace(
        with_segments(segment(0x4C010, 16, b"123456789", flags=5), segment(0x4C020, 8)),
        compiler_version="0.1",
        profile_tiles=(TileProfilePlan(physical_tile=PhysicalTile(0), steps=(step,)),),
    )
    activities = struct.pack("<HHIIB3x", 2, 515, 9, 12, 1)
    steps = Struct(
        struct.pack("<IIIHxxIxxxx", 0, 0x8000_0007, 3, 3, 40),
        [text("up"), None, None, StructList([Struct(activities), Struct(activities)])],
    )
    segments = [
        Struct(struct.pack("<IIIxxxx", 0x4C010, 16, 5), [b"123456789"]),
        Struct(struct.pack("<IIIxxxx", 0x4C020, 8, 3), [None]),
    ]
    image = Struct(struct.pack("<IIII", 0, 0x4C010, 0, 0x58000), [StructList(segments)])
    exchange = Struct(struct.pack("<IIQ", 0, 0, 0), [None, None, None])
    plans = StructList([Struct(struct.pack("<II", 0, 0), [StructList([steps])])])
    root = Struct(
        struct.pack("<IIIxxxx", 5, 0x4C000, 638_976),
        [
            text("0.1"),
            text("ipu21"),
            StructList([image]),
            None,
            None,
            None,
            exchange,
            None,
            None,
            plans,
            None,
            None,
        ],
    )
    assert write_package(application) == message(root)


def test_the_default_of_invocations_is_one_on_the_wire() -> None:
    """A default is stored as difference, so that 1 and 0 must not be confused."""
    data = write_package(complete())
    # run: command, phases, invocations xor 1
    assert struct.pack("<III", 7, 5, 3 ^ 1) in data


def _library_module() -> object:
    library: Any = importlib.import_module("capnp")
    with importlib.resources.as_file(
        importlib.resources.files("compiler.package") / "application.capnp"
    ) as path:
        return library.load(str(path))


@pytest.mark.parametrize("first_segment_words", [1, 2, 7, 30, 1024])
def test_packages_of_other_writers_are_read(first_segment_words: int) -> None:
    """Messages in many segments, with pointers from one to another."""
    module: Any = _library_module()
    with module.Application.from_bytes(write_package(complete())) as reader:
        values = reader.to_dict()
    sizes: list[int] = []

    def allocate(least: int) -> bytearray:
        sizes.append(max(least, first_segment_words))
        return bytearray(8 * sizes[-1])

    builder = module.Application.new_message(
        num_first_segment_words=first_segment_words, allocate_seg_callable=allocate, **values
    )
    data = builder.to_bytes()
    assert (len(sizes) > 1) == (first_segment_words < 1024)
    assert read_package(data, name="a.ipuexe") == complete()


def test_reading_keeps_nothing_of_the_file() -> None:
    data = write_package(complete())
    before = sys.getrefcount(data)
    application = read_package(data, name="a.ipuexe")
    with pytest.raises(PackageInvalid):
        read_package(data[:-8], name="a.ipuexe")
    gc.collect()
    assert sys.getrefcount(data) == before
    assert application == complete()


def test_a_file_is_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "a.ipuexe"
    path.write_bytes(b"old")
    save(complete(), path)
    assert path.read_bytes() == write_package(complete())
    assert load(path) == complete()
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_partial_is_left_when_saving_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.ipuexe"
    path.write_bytes(b"old")
    with pytest.raises(ValueError, match="no tile image"):
        save(replace(minimal(), tiles=()), path)

    def interrupted(_descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save(minimal(), path)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (
            with_segments(Segment(address=Address(0x4C010), memory_size=Bytes(4), data=b"", flags=1 << 32)),
            "Segment.flags",
        ),
        (replace(minimal(), tiles=(replace(tile(0), entry_point=Address(-1)),)), "TileImage.entry_point"),
        (replace(minimal(), compiler_version="\ud800"), "surrogates not allowed"),
    ],
)
def test_values_that_do_not_fit_their_type_are_refused(bad: Application, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_package(bad)


def test_activities_are_columns_of_one_length_and_known_kinds() -> None:
    row = ExchangeActivity(
        kind=ExchangeActivityKind.SEND, start_cycle=Cycles(1), end_cycle=Cycles(2), fanout=3, paired=False
    )
    columns = ExchangeActivities.of([row, row])
    assert list(columns) == [row, row]
    assert columns == ExchangeActivities.of(columns)
    assert hash(columns) == hash(ExchangeActivities.of(columns))
    assert columns != NO_ACTIVITIES
    with pytest.raises(ValueError, match="read-only"):
        columns.fanout[0] = 1
    with pytest.raises(ValueError, match=r"a column of uint32 is uint32 with shape \(1,\), for 2 activities"):
        replace(columns, end_cycle=columns.end_cycle[:1])
    with pytest.raises(ValueError, match="activity kind 3 is unknown"):
        replace(columns, kind=np.array([0, 3], np.uint16))


def test_a_profile_is_no_package() -> None:
    with pytest.raises(PackageInvalid):
        read_package(write_profile(profile()), name="a.ipuexe")
    with pytest.raises(PackageInvalid):
        read_profile(
            bytes(profile_format().encode(Profile(schema_version=0, clock_hz=0, tiles=()))), name="p"
        )
