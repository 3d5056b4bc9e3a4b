"""The schema files say what loaders read: ids, ordinals, types, enumerants, defaults."""

import importlib
import importlib.resources
from typing import Any, cast

import pytest

# The format as loaders know it, in ordinal order. L(...) is a list.
STRUCTS = {
    "application.capnp": {
        "Application": (
            "schemaVersion uint32, compilerVersion text, target text, tileMemoryBase uint32,"
            " tileMemorySize uint32, tiles L(TileImage), inputs L(Binding), outputs L(Binding),"
            " weights L(Binding), hostExchange HostExchange, entryPoints L(EntryPoint),"
            " deviceConfigWrites L(DeviceConfigWrite), profileTiles L(TileProfilePlan),"
            " debugSymbols L(DebugSymbol), debugRegions L(DebugRegion)"
        ),
        "TileImage": (
            "physicalTile uint32, entryPoint uint32, segments L(Segment), commandAddress uint32,"
            " diagnosticAddress uint32"
        ),
        "Segment": "address uint32, memorySize uint32, data data, flags uint32",
        "Binding": "name text, dtype text, shape L(uint32), slices L(RegionSlice)",
        "RegionSlice": "tile uint32, tileAddress uint32, fileOffset uint64, size uint64",
        "HostExchange": (
            "startupMark uint32, commandPage uint32, commandOffset uint64, pages L(HostPage),"
            " attachOrder L(uint32), calls L(HostCall)"
        ),
        "HostPage": "index uint32, size uint64",
        "HostCall": (
            "name text, command uint32, phases uint32, inputs L(HostSlice), outputs L(HostSlice),"
            " invocations uint32 = 1, inputBatchEnds L(uint32), outputBatchEnds L(uint32)"
        ),
        "HostSlice": "page uint32, pageOffset uint64, fileOffset uint64, size uint64",
        "EntryPoint": "name text, command uint32, externalSyncs uint32",
        "DeviceConfigWrite": "offset uint32, value uint32",
        "TileProfilePlan": "physicalTile uint32, steps L(ProfileStep)",
        "DebugSymbol": "name text, address uint32",
        "DebugRegion": "physicalTile uint32, address uint32, size uint32, name text",
    },
    "profile.capnp": {
        "ExchangeActivity": (
            "kind ExchangeActivityKind, startCycle uint32, endCycle uint32, fanout uint16, paired bool"
        ),
        "ProfileStep": (
            "localIndex uint32, phase uint32, epoch uint32, operation text, kind StepKind, kernel text,"
            " metadata L(MetadataEntry), exchangeActivities L(ExchangeActivity), exchangeEventCycles uint32"
        ),
        "MetadataEntry": "name text, value text",
        "CycleSample": "step uint32, startCycle uint32, endCycle uint32",
        "TileProfile": "physicalTile uint32, samples L(CycleSample)",
        "Profile": "schemaVersion uint32, clockHz uint64, tiles L(TileProfile)",
    },
}
ENUMS = {
    "StepKind": ["exchange", "compute", "synchronization", "idle"],
    "ExchangeActivityKind": ["send", "receive", "partnerBusy"],
}
IDS = {"application.capnp": 0xD3BCE605D3D25B4F, "profile.capnp": 0xBADB9C24F7721FA3}


# The library has no types: what comes from it is Any, and passes between functions as object.


def _module(file_name: str) -> object:
    library: Any = importlib.import_module("capnp")
    with importlib.resources.as_file(importlib.resources.files("compiler.package") / file_name) as path:
        return library.load(str(path))


def _type_of(type_node: object, type_schema: object) -> str:
    node: Any = type_node
    schema: Any = type_schema
    which = str(node.which())
    if which in ("struct", "enum"):
        return cast("str", schema.node.displayName.split(":")[1])
    if which == "list":
        element = node.list.elementType
        return f"L({_type_of(element, schema.elementType if element.which() == 'struct' else None)})"
    return which


def _described(field_node: object, struct_schema: object) -> str:
    field: Any = field_node
    schema: Any = struct_schema
    slot = field.slot
    kind = str(slot.type.which())
    holds = schema.fields[field.name].schema if kind in ("struct", "enum", "list") else None
    default = f" = {getattr(slot.defaultValue, kind)}" if slot.hadExplicitDefault else ""
    return f"{field.name} {_type_of(slot.type, holds)}{default}"


@pytest.mark.parametrize("file_name", STRUCTS)
def test_structs_have_the_fields_and_types_that_loaders_read(file_name: str) -> None:
    module: Any = _module(file_name)
    assert module.schema.node.id == IDS[file_name]
    for name, expected in STRUCTS[file_name].items():
        schema = getattr(module, name).schema
        declared = list(schema.node.struct.fields)
        assert ", ".join(_described(field, schema) for field in declared) == expected, name
        assert [field.ordinal.explicit for field in declared] == list(range(len(declared))), name
    nested = {node.name for node in module.schema.node.nestedNodes}
    assert nested == STRUCTS[file_name].keys() | (ENUMS.keys() if file_name == "profile.capnp" else set())


@pytest.mark.parametrize("name", ENUMS)
def test_enumerants_have_the_numbers_that_loaders_read(name: str) -> None:
    module: Any = _module("profile.capnp")
    enumerants = getattr(module, name).schema.enumerants
    assert sorted(enumerants, key=enumerants.get) == ENUMS[name]
    assert sorted(enumerants.values()) == list(range(len(ENUMS[name])))
