@0xbadb9c24f7721fa3;
# What is known about time on each tile: the plan of its steps, which a package carries, and the samples that
# a run measured, which a file of its own carries.
#
# Ordinals and types are those that loaders of the IPU21 read. They never change: a new field takes the next
# ordinal and a new schemaVersion.

enum StepKind {
  exchange @0;
  compute @1;
  synchronization @2;
  idle @3;
}

enum ExchangeActivityKind {
  send @0;
  receive @1;
  partnerBusy @2;
  # The transmit lane is lent to the other tile of the pair.
}

struct ExchangeActivity {
  kind @0 :ExchangeActivityKind;
  startCycle @1 :UInt32;
  # Relative to slot 0 of the exchange row.
  endCycle @2 :UInt32;
  # One past the last cycle.
  fanout @3 :UInt16;
  # Receivers of a send.
  paired @4 :Bool;
  # 64-bit items.
}

struct MetadataEntry {
  name @0 :Text;
  value @1 :Text;
}

struct ProfileStep {
  localIndex @0 :UInt32;
  # Position in the steps of its tile.
  phase @1 :UInt32;
  # Of an exchange: 0x80000000 | exchange number.
  epoch @2 :UInt32;
  operation @3 :Text;
  kind @4 :StepKind;
  kernel @5 :Text;
  metadata @6 :List(MetadataEntry);
  exchangeActivities @7 :List(ExchangeActivity);
  exchangeEventCycles @8 :UInt32;
  # Length of the exchange row.
}

struct CycleSample {
  step @0 :UInt32;
  startCycle @1 :UInt32;
  endCycle @2 :UInt32;
}

struct TileProfile {
  physicalTile @0 :UInt32;
  samples @1 :List(CycleSample);
}

struct Profile {
  schemaVersion @0 :UInt32;
  clockHz @1 :UInt64;
  tiles @2 :List(TileProfile);
}
