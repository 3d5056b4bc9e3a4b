"""Where everything a tile remembers lives: one vector of 64-bit integers, and the arrays beside it.

Compiled code works on a handful of flat arrays per tile; this module names every place in them.

``state`` holds registers as non-negative integers below 2**32 (the two 64-bit words of a random generator
are signed), one block of ``CONTEXT_STRIDE`` for each context, then a block for the tile. 64-bit signed
integers everywhere keep compiled code free of mixed signedness: a result is masked once, where it is
written.

``shadow`` has one byte for each word of SRAM: bit k says that byte k was written. ``touched`` has the same
shape, low nibble read and high nibble written, or length 0 when nobody asked. ``decoded`` caches one decoded
instruction for each word that can hold code; 0 means not decoded, and every store clears what it overwrites.

``accumulators`` has ``ACCUMULATOR_STRIDE`` binary32 numbers for each worker. Accumulator AACC[2n] is at n
and AACC[2n + 1] at 16 + n, so that the matrix units find theirs side by side.
"""

from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from compiler.target.memory import EXECUTABLE_LIMIT, SRAM_BASE, SRAM_SIZE
from compiler.target.registers import COMMON_WEIGHT_UNITS, COMMON_WEIGHTS_PER_UNIT
from compiler.target.tiles import WORKERS_PER_TILE

State: TypeAlias = npt.NDArray[np.int64]
Memory: TypeAlias = npt.NDArray[np.uint32]
Shadow: TypeAlias = npt.NDArray[np.uint8]
Decoded: TypeAlias = npt.NDArray[np.int64]
Accumulators: TypeAlias = npt.NDArray[np.float32]
Weights: TypeAlias = npt.NDArray[np.float64]
Table: TypeAlias = npt.NDArray[np.int64]

BASE: Final = int(SRAM_BASE)
SIZE: Final = int(SRAM_SIZE)
MEMORY_WORDS: Final = SIZE // 4
CODE_WORDS: Final = (int(EXECUTABLE_LIMIT) - BASE) // 4
REGION1_OFFSET: Final = int(EXECUTABLE_LIMIT) - BASE
"""Byte offset in SRAM of the interleaved region."""

WORKERS: Final = WORKERS_PER_TILE
SUPERVISOR: Final = WORKERS
"""Number of the supervisor among contexts: behind the workers."""
CONTEXTS: Final = WORKERS + 1
CONTEXT_STRIDE: Final = 64

# One context.
MRF: Final = 0
ARF: Final = 16
PC: Final = 32
STATUS: Final = 33
"""INACTIVE, ACTIVE or WAITING."""
READY: Final = 34
"""Cycle from which it may issue again."""
REPEAT_COUNT: Final = 35
REPEAT_FIRST: Final = 36
REPEAT_END: Final = 37
FP_STS: Final = 38
FP_CTL: Final = 39
FP_NFMT: Final = 40
FP_SCL: Final = 41
TAS: Final = 42
PRNG_0: Final = 43
PRNG_1: Final = 44
SYNC_ENDPOINT: Final = 45
DBG_DATA: Final = 46
RAISED: Final = 47
"""Floating-point flags of the running instruction, and above them a fault."""
FAULT_SHIFT: Final = 8
"""Where RAISED holds a fault."""
TAINT: Final = 48
"""Registers holding bytes of SRAM that nothing wrote: MRF in bits 0-15, ARF in 16-31; bit 32: the matrix
units hold such values."""
IN_COUNT: Final = 49
OUT_COUNT: Final = 50
OUT_NEXT: Final = 51
"""Values in the two queues of the matrix units, and the position of the next result to leave."""
ACCUMULATOR_TAINT: Final = 52
IN_TAINT: Final = 53
OUT_TAINT: Final = 54
"""Bit k: the value at queue position k came from bytes that nothing wrote."""
CURRENT_PC: Final = 55
"""Address of the running instruction (of the main half, in a bundle)."""
FAULT_ADDRESS: Final = 56
"""Data address of the last refused access, or another number that a refusal is about."""
WEIGHTS_SEEN: Final = 57
"""WEIGHT_VERSION at the first matrix instruction since the launch; NEVER before it."""

INACTIVE: Final = 0
ACTIVE: Final = 1
WAITING: Final = 2
"""The supervisor in a local sync."""

NEVER: Final = -1

# The tile.
TILE: Final = CONTEXTS * CONTEXT_STRIDE
CYCLE: Final = TILE + 0
ACTIVE_WORKERS: Final = TILE + 1
LAST_EXIT: Final = TILE + 2
WEIGHT_KIND: Final = TILE + 3
"""How ``weights`` was decoded last; 0 when the common weights changed since."""
PERTURB: Final = TILE + 4
"""What happens to results of the transcendental functions, one of the ``PERTURB_*`` modes."""
WEIGHT_FORMAT_BIT: Final = TILE + 5
OPERAND_FORMAT_BIT: Final = TILE + 6
SCALE_BIT: Final = TILE + 7
INSTRUCTIONS: Final = TILE + 8
"""Instructions that workers executed, both halves of a bundle counted."""
AMP_INSTRUCTIONS: Final = TILE + 9
SUPERVISOR_INSTRUCTIONS: Final = TILE + 10
QUEUE_PC: Final = TILE + 11
"""First matrix instruction whose result depends on the model of its queues; 0 when there is none."""
QUEUE_CYCLE: Final = TILE + 12
QUEUE_CONTEXT: Final = TILE + 13
WEIGHT_VERSION: Final = TILE + 14
"""How often the common weights changed."""
UNDEFINED: Final = TILE + 15
"""What a launch leaves in registers that it makes undefined: a word, or a negative number that no
instruction may read."""
FAULT_CODE: Final = TILE + 16
FAULT_CONTEXT: Final = TILE + 17
FAULT_PC: Final = TILE + 18
FAULT_DATA: Final = TILE + 19
"""Data address or other number that belongs to the fault."""
FAULT_CYCLE: Final = TILE + 20
SUPERVISOR_CSR: Final = TILE + 64
"""The 256 control registers of the supervisor."""
COMMON_WEIGHTS: Final = SUPERVISOR_CSR + 256
"""The 64 common weights as 64-bit patterns."""
STATE_SIZE: Final = COMMON_WEIGHTS + COMMON_WEIGHT_UNITS * COMMON_WEIGHTS_PER_UNIT

PERTURB_NONE: Final = 0
PERTURB_UP: Final = 1
PERTURB_DOWN: Final = 2
PERTURB_MIXED: Final = 3

# Floating-point accumulators of one worker.
EVEN: Final = 0
ODD: Final = 16
IN_QUEUE: Final = 32
OUT_QUEUE: Final = 48
IN_SLOTS: Final = 64
OUT_SLOTS: Final = 80
"""The queues as they would be if the phase of an instruction addressed them."""
PREVIOUS: Final = 96
"""Accumulators before the running instruction."""
ACCUMULATOR_STRIDE: Final = 128

ELEMENTS: Final = 8 * 8 * COMMON_WEIGHT_UNITS
"""In ``weights``, behind the decoded common weights [phase, element, unit]: the elements of the running
instruction."""
BYTE_VALUES: Final = ELEMENTS + 8
"""The numbers of the 256 patterns of F152, then of F143."""
WEIGHT_COUNT: Final = BYTE_VALUES + 512

# Stop reasons of the interpreter.
STOP_LIMIT: Final = 0
STOP_FAULT: Final = 1
STOP_RETURN: Final = 2
"""The supervisor branched to address 0, the agreed end."""
STOP_EXCHANGE: Final = 3
STOP_UNSUPPORTED: Final = 4
STOP_IDLE: Final = 5
"""No context is active."""

# Faults.
NO_FAULT: Final = 0
ILLEGAL_INSTRUCTION: Final = 1
ILLEGAL_BUNDLE: Final = 2
ILLEGAL_REPEAT: Final = 3
INVALID_PC: Final = 4
MISALIGNED: Final = 5
OUT_OF_RANGE: Final = 6
WIDE_OUTSIDE: Final = 7
CONFLICT: Final = 8
FLOAT_EXCEPTION: Final = 9
WORKERS_ACTIVE: Final = 10
INVALID_LAUNCH: Final = 12
UNINITIALISED: Final = 13
TRAPPED: Final = 14
NO_REGISTER: Final = 15
QUEUE_OVERFLOW: Final = 16
"""Not a fault of hardware: the state leaves what the decisions define."""
UNDEFINED_REGISTER: Final = 17
UNDEFINED_VALUE: Final = 18
WEIGHTS_CHANGED: Final = 19
SAME_DESTINATIONS: Final = 20
