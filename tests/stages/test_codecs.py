"""What stages give survives the store: decoded and encoded again it has the same bytes; damage is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.compile import Results
from compiler.errors import InvalidInput
from compiler.fingerprint import REPOSITORY
from compiler.store.canonical import from_text, to_text
from compiler.store.codec import Codec
from compiler.store.container import read_columns, write_columns
from compiler.store.digest import Digest
from compiler.store.records import Record
from compiler.store.resolve import Resolver
from compiler.store.stage import Namespace
from compiler.store.store import Store
from tests.stages.builds import STAGES, opened, stage_modules


@pytest.fixture(scope="module")
def outputs(builds: tuple[Path, Mapping[str, Results]]) -> dict[str, tuple[Codec[Any], bytes]]:
    """Codec and bytes of every output of every stage, by ``module.output``."""
    root, built = builds
    resolver = Resolver(REPOSITORY)
    found: dict[str, tuple[Codec[Any], bytes]] = {}
    with opened(root) as store:
        for kind, results in built.items():
            modules = stage_modules(kind)
            for record in _records(store, results):
                module = modules[record.stage]
                codecs = dict(resolver.stage(module, record.stage).outputs.codecs)
                for output in record.outputs:
                    data = store.objects.get(output.ref)
                    assert data is not None
                    found[f"{module}.{output.name}"] = codecs[output.name], data
    return found


def _records(store: Store, results: Results) -> list[Record]:
    keys: dict[str, tuple[Namespace, Digest]] = {}
    for result in results.values():
        for run in result.record.consumed:
            keys[str(run.request["stage"])] = Namespace(run.request["namespace"]), run.key
        keys[result.record.stage] = result.record.namespace, result.key
    records = [store.records.read(namespace, key) for namespace, key in keys.values()]
    return [record for record in records if record is not None]


def test_decoding_and_encoding_again_gives_the_same_bytes(
    outputs: dict[str, tuple[Codec[Any], bytes]],
) -> None:
    assert {name.rpartition(".")[0] for name in outputs} == set(STAGES.values())
    for name, (codec, data) in outputs.items():
        assert codec.encode(codec.decode(data)) == data, name


def test_what_no_encoder_writes_is_refused(outputs: dict[str, tuple[Codec[Any], bytes]]) -> None:
    """Columns that are missing, one more, one of another type; another text."""
    for name, (codec, data) in outputs.items():
        if codec.reference == "bytes":
            continue
        for mangled in _mangled(data):
            try:
                codec.decode(mangled)
            except (ValueError, InvalidInput):
                continue
            pytest.fail(f"{name} takes {mangled[:80]!r}")


def _mangled(data: bytes) -> list[bytes]:
    if not data.startswith(b"TWCOLS"):
        return [to_text(7), to_text({"other": from_text(data)}), data[:-1]]
    table = read_columns(data)
    arrays = dict(table.arrays)
    name, column = list(arrays.items())[-1]
    other = np.float32 if column.dtype != np.float32 else np.int16
    variants = (
        {} if len(arrays) == 1 else {name: column},
        {**arrays, "more": np.zeros(1, np.int64)},
        {**arrays, name: np.zeros(column.shape, other)},
    )
    return [write_columns(type(table)(arrays=variant, meta=table.meta)) for variant in variants]
