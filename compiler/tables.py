"""Digests of the tables that decide results besides code and inputs: what a store is opened with.

Stages name the tables that they depend on (``Stage.tables``). The files of our own tables lie in packages
that stages import, so that their fingerprints see every edit; these digests are what is left: what kind of
device the tables describe, and answers that a user's file replaced.
"""

from collections.abc import Mapping

from compiler.store.canonical import digest_value
from compiler.store.digest import Digest, parse_digest
from compiler.target import memory, tiles
from compiler.target.instructions import instruction_table
from compiler.target.isa_decisions import our_decisions


def table_digests() -> Mapping[str, Digest]:
    """Digest of each table by name: ``target``, ``instructions`` and ``decisions``."""
    target = {
        "chip": "IPU21",
        "tiles": tiles.TILE_COUNT,
        "workers": tiles.WORKERS_PER_TILE,
        "sram": (int(memory.SRAM_BASE), int(memory.SRAM_END)),
        "executable": int(memory.EXECUTABLE_LIMIT),
    }
    return {
        "target": digest_value(target),
        "instructions": parse_digest(instruction_table().digest),
        "decisions": parse_digest(our_decisions().digest),
    }
