"""Memory of tiles for the tests: what a phase should do to it, and what its rows do in the simulator."""

from collections.abc import Sequence

import numpy as np

from compiler.exchange.ir import Rows, ScheduledPhase, WordArray
from compiler.isa.rows import Row, decode_row
from compiler.simulator.fabric import Phase, run_phase
from compiler.target.memory import SRAM_BASE, SRAM_SIZE
from compiler.target.units import WORD_BYTES, Int64Array, PhysicalTile
from tests.exchange.phases import Transfer

SRAM_WORDS = SRAM_SIZE // WORD_BYTES


def word_of(address: int) -> int:
    """Number of the word at an address."""
    return (address - SRAM_BASE) // WORD_BYTES


def random_memory(tiles: Int64Array, seed: int = 0) -> WordArray:
    """Every word of every tile is something else."""
    random = np.random.default_rng(seed)
    return random.integers(0, 2**32, (len(tiles), SRAM_WORDS), dtype=np.uint32)


def carry_out(memory: WordArray, tiles: Int64Array, transfers: Sequence[Transfer], iteration: int) -> None:
    """The meaning of transfers: one after another, each at once."""
    place = {tile: index for index, tile in enumerate(tiles.tolist())}
    for transfer in transfers:
        first = word_of(transfer.address + iteration * transfer.stride)
        data = memory[place[transfer.source], first : first + transfer.words].copy()
        for tile, address, stride in transfer.recipients:
            at = word_of(address + iteration * stride)
            memory[place[tile], at : at + transfer.words] = data


def row_of(rows: Rows, tile: int) -> WordArray:
    """The words of a tile that takes part."""
    words = rows.row(PhysicalTile(tile))
    assert words is not None
    return words


def decoded(rows: Rows, words: WordArray) -> dict[PhysicalTile, Row]:
    """Every row decoded, with ``words`` in place of those of ``rows``."""
    result: dict[PhysicalTile, Row] = {}
    for index, tile in enumerate(rows.tiles.tolist()):
        row = decode_row(words[rows.first_word[index] : rows.first_word[index + 1]])
        assert isinstance(row, Row), str(row)
        result[PhysicalTile(tile)] = row
    return result


def run(phase: ScheduledPhase, memory: WordArray, iteration: int) -> None:
    """Run the rows of one iteration in the simulator; any fault fails the test."""
    words = phase.rows.words.copy()
    words[phase.patches.word] = phase.patches.values[:, iteration]
    shadow = np.full(memory.shape, 15, dtype=np.uint8)
    result = run_phase(Phase.of(decoded(phase.rows, words)), memory, shadow)
    assert not result.faults, [str(fault) for fault in result.faults]
