"""Packages of builds as others see them: read by the schema file alone, and checked by rules written here.

The reader is the public library with our schema; nothing of ``compiler.package`` but that file takes part.
"""

import dataclasses
import importlib
import importlib.resources
import re
from collections.abc import Mapping
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions, PlanningOptions, SimulationOptions
from compiler.graph.build import BlockBuilder, GraphBuilder, Tensor
from compiler.graph.ir import Normal
from compiler.graph.text import text_of_graph
from compiler.low.ir import Role
from compiler.low.rewrites.uses import Uses
from compiler.models.subjects import GraphModel
from compiler.package.format import read_package
from tests.stages.builds import SUBJECTS, opened

SRAM: Final = (0x4C000, 0xE8000)
EVERY_TILE: Final = 0xFFFF_FFFF

Json = dict[str, Any]


def listed(package: bytes) -> Json:
    """All that a package says, by names of the schema."""
    library: Any = importlib.import_module("capnp")
    with importlib.resources.as_file(
        importlib.resources.files("compiler.package") / "application.capnp"
    ) as path:
        module = library.load(str(path))
    with module.Application.from_bytes(package, traversal_limit_in_words=1 << 40) as reader:
        return cast("Json", with_lists(reader.to_dict()))


def without_empty(value: object) -> object:
    """Without empty texts, data and lists, for which a message has no more than a null pointer."""
    match value:
        case dict():
            kept = {name: without_empty(item) for name, item in cast("Json", value).items()}
            return {name: item for name, item in kept.items() if item not in ("", b"", [])}
        case list():
            return [without_empty(item) for item in cast("list[object]", value)]
        case _:
            return value


class _Told(dict[str, Any]):
    """A struct of a message, in which a pointer that is null reads as an empty list."""

    def __missing__(self, _name: str) -> list[object]:
        """A pointer that is null."""
        return []


def with_lists(value: object) -> object:
    """What a message says, with structs whose null pointers read as empty lists."""
    if isinstance(value, dict):
        return _Told({name: with_lists(item) for name, item in cast("Json", value).items()})
    return [with_lists(item) for item in cast("list[object]", value)] if isinstance(value, list) else value


def plain(value: object) -> object:
    """A record of ours with the names and types of the schema."""
    if isinstance(value, tuple):
        return [plain(item) for item in cast("tuple[object, ...]", value)]
    if dataclasses.is_dataclass(value):
        return {
            re.sub(r"_(\w)", lambda letter: letter[1].upper(), field.name): plain(getattr(value, field.name))
            for field in dataclasses.fields(value)
        }
    return value.value if isinstance(value, Enum) else value


@pytest.mark.parametrize("kind", SUBJECTS)
def test_another_reader_lists_the_same_content(kind: str, builds: tuple[Path, Mapping[str, Results]]) -> None:
    package = builds[1][kind]["emission"].value().package
    assert without_empty(listed(package)) == without_empty(plain(read_package(package, name=kind)))


@pytest.mark.parametrize("kind", SUBJECTS)
def test_packages_obey_the_rules_of_loaders(kind: str, builds: tuple[Path, Mapping[str, Results]]) -> None:
    """Every rule on which loaders insist, of every tile, tensor and call."""
    found = listed(builds[1][kind]["emission"].value().package)
    assert (found["schemaVersion"], found["target"]) == (5, "ipu21")
    assert (found["tileMemoryBase"], found["tileMemorySize"]) == (SRAM[0], SRAM[1] - SRAM[0])
    tiles = [tile["physicalTile"] for tile in found["tiles"]]
    assert sorted(tiles) == list(range(1472))
    for tile in found["tiles"]:
        spans = sorted((part["address"], part["address"] + part["memorySize"]) for part in tile["segments"])
        assert all(SRAM[0] <= start < stop <= SRAM[1] for start, stop in spans)
        assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))
        assert all(len(part["data"]) <= part["memorySize"] for part in tile["segments"])
        assert any(start <= tile["entryPoint"] < stop for start, stop in spans)
    bindings = [*found["inputs"], *found["outputs"], *found["weights"]]
    names = [binding["name"] for binding in bindings]
    assert all(names)
    assert len(set(names)) == len(names)
    for binding in bindings:
        for part in binding["slices"]:
            assert 0 <= part["tile"] < 1472
            assert SRAM[0] <= part["tileAddress"] <= part["tileAddress"] + part["size"] <= SRAM[1]
            assert part["fileOffset"] + part["size"] < 1 << 64
    host = found["hostExchange"]
    pages = {page["index"]: page["size"] for page in host["pages"]}
    assert len(pages) == len(host["pages"])
    assert set(host["attachOrder"]) <= set(pages)
    assert host["commandOffset"] + 4 <= pages[host["commandPage"]]
    for call in host["calls"]:
        assert call["invocations"] >= 1
        for slices, ends in (
            (call["inputs"], call["inputBatchEnds"]),
            (call["outputs"], call["outputBatchEnds"]),
        ):
            assert all(part["pageOffset"] + part["size"] <= pages[part["page"]] for part in slices)
            assert ends == sorted(set(ends))
            assert (ends[-1] if ends else 0) == len(slices)
    for write in found["deviceConfigWrites"]:
        assert write["offset"] % 4 == 0
    assert all(symbol["name"] for symbol in found["debugSymbols"])
    for region in found["debugRegions"]:
        assert region["name"]
        assert region["size"] > 0
        assert region["physicalTile"] in (*range(1472), EVERY_TILE)


def test_tensors_have_the_names_shapes_and_types_of_the_model(
    builds: tuple[Path, Mapping[str, Results]],
) -> None:
    found = listed(builds[1]["model"]["emission"].value().package)
    known = {
        binding["name"]: (binding["shape"], binding["dtype"])
        for binding in (*found["inputs"], *found["weights"], found["outputs"][0])
    }
    assert known == {
        "x": ([16, 64], "f16"),
        "first.weight": ([64, 64], "f16"),
        "second.weight": ([64, 64], "f16"),
        "second": ([16, 64], "f16"),
    }


def test_padding_of_outputs_that_nobody_writes_can_be_read(tmp_path: Path) -> None:
    """What a Repeat carries is copied into the output element by element; the host reads shards whole."""
    graph = GraphBuilder("carried")
    x = graph.input("x", (45, 128), fill=Normal(sigma=0.5))
    sequences = {
        name: [graph.parameter(f"{name}{turn}", shape, fill=Normal(sigma=0.1)) for turn in range(2)]
        for name, shape in (("up", (128, 256)), ("down", (256, 128)))
    }

    def body(block: BlockBuilder, tensors: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        hidden = block.gelu(block.gemm(tensors["x"], tensors["up"], name="hidden"), name="gelu")
        return {"x": block.gemm(hidden, tensors["down"], name="y")}

    graph.output(graph.repeat(2, body, carried={"x": x}, sequences=sequences, name="blocks")["x"])
    text = text_of_graph(graph.finish(), with_provenance=True)
    options = BuildOptions(
        planning=PlanningOptions(tiles=32, attempts=0), simulation=SimulationOptions(runs=1)
    )
    with opened(tmp_path / "store") as store:
        results = build(store, GraphModel(name="carried", text=text), options)
        program = results["expansion"].value().program
        simulated = results["simulation"].value()
    outputs = np.flatnonzero(program.buffers.role == Role.OUTPUT)
    stored = [
        sum(stop - start for start, stop in Uses(program).stored(int(program.buffers.root[row]), ()))
        for row in outputs.tolist()
    ]
    assert (np.array(stored) < program.buffers.byte_count[outputs]).any()
    assert simulated.differences == ()
