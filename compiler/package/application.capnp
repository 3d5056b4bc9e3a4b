@0xd3bce605d3d25b4f;
# An application package: everything a loader needs to put a program on the device and to call it.
#
# Ordinals and types are those that loaders of the IPU21 read. They never change: a new field takes the next
# ordinal and a new schemaVersion.

using Profile = import "profile.capnp";

struct Segment {
  # Bytes of one tile's memory.

  address @0 :UInt32;
  memorySize @1 :UInt32;
  # Bytes of memory the segment occupies; those beyond data are zero.
  data @2 :Data;
  flags @3 :UInt32;
  # Union of 1 (readable), 2 (writable) and 4 (executable).
}

struct TileImage {
  physicalTile @0 :UInt32;
  entryPoint @1 :UInt32;
  segments @2 :List(Segment);
  commandAddress @3 :UInt32;
  diagnosticAddress @4 :UInt32;
}

struct RegionSlice {
  # A contiguous part of a binding's file and where it lives on the device.

  tile @0 :UInt32;
  # Physical.
  tileAddress @1 :UInt32;
  fileOffset @2 :UInt64;
  size @3 :UInt64;
}

struct Binding {
  # A named tensor of the application.

  name @0 :Text;
  dtype @1 :Text;
  shape @2 :List(UInt32);
  slices @3 :List(RegionSlice);
}

struct HostPage {
  # Host memory that the device can reach during a call.

  index @0 :UInt32;
  size @1 :UInt64;
}

struct HostSlice {
  # A contiguous part of a call's input or output file and where it lies in a host page.

  page @0 :UInt32;
  pageOffset @1 :UInt64;
  fileOffset @2 :UInt64;
  size @3 :UInt64;
}

struct HostCall {
  # A command the device understands, its phases and the host data of each.

  name @0 :Text;
  command @1 :UInt32;
  phases @2 :UInt32;
  inputs @3 :List(HostSlice);
  outputs @4 :List(HostSlice);
  invocations @5 :UInt32 = 1;
  inputBatchEnds @6 :List(UInt32);
  # For each batch, the number of input slices in it and all before it.
  outputBatchEnds @7 :List(UInt32);
}

struct HostExchange {
  startupMark @0 :UInt32;
  commandPage @1 :UInt32;
  commandOffset @2 :UInt64;
  pages @3 :List(HostPage);
  attachOrder @4 :List(UInt32);
  # Indices of pages, in the order in which the session attaches them.
  calls @5 :List(HostCall);
}

struct EntryPoint {
  name @0 :Text;
  command @1 :UInt32;
  externalSyncs @2 :UInt32;
}

struct DeviceConfigWrite {
  offset @0 :UInt32;
  value @1 :UInt32;
}

struct TileProfilePlan {
  physicalTile @0 :UInt32;
  steps @1 :List(Profile.ProfileStep);
}

struct DebugSymbol {
  name @0 :Text;
  address @1 :UInt32;
}

struct DebugRegion {
  physicalTile @0 :UInt32;
  # 0xffffffff: on every tile.
  address @1 :UInt32;
  size @2 :UInt32;
  name @3 :Text;
}

struct Application {
  schemaVersion @0 :UInt32;
  compilerVersion @1 :Text;
  target @2 :Text;
  tileMemoryBase @3 :UInt32;
  tileMemorySize @4 :UInt32;
  tiles @5 :List(TileImage);
  inputs @6 :List(Binding);
  outputs @7 :List(Binding);
  weights @8 :List(Binding);
  hostExchange @9 :HostExchange;
  entryPoints @10 :List(EntryPoint);
  deviceConfigWrites @11 :List(DeviceConfigWrite);
  profileTiles @12 :List(TileProfilePlan);
  debugSymbols @13 :List(DebugSymbol);
  debugRegions @14 :List(DebugRegion);
}
