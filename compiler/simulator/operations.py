"""What the machine can execute: one number for each operation, and the operation of each instruction form.

The instruction table has 368 forms; the interpreter distinguishes operations. Forms that differ only in how
they name their operands (register or immediate, with or without broadcast) share an operation: the decoder
fills a register operand that a form lacks with the zero register and an immediate that it lacks with zero, so
that ``second operand = register + immediate`` holds for all of them.

Numbers are grouped so that the interpreter dispatches by range:

============  =================================================================
1 .. 63       integer operations on the main register file
64 .. 95      loads and stores: ``kind`` in bits 0-3, post-increment in bit 4
96 .. 127     loads and stores with packed or shared addresses
128 .. 191    control and system instructions, barred from repeat bodies
192 .. 255    element-wise arithmetic: shape in bits 4-5, ``kind`` in bits 0-3
256 .. 319    integer operation ``n - 256`` on the arithmetic register file
320 .. 511    everything else of the auxiliary lane
============  =================================================================

They are plain integers because compiled code folds them in as constants. :func:`operation_of` is total over
the table: an instruction that the machine does not execute is mapped to ``UNSUPPORTED`` by name in
``UNSUPPORTED_MNEMONICS`` with the reason, and a mnemonic in neither list fails at import of the decoder.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from compiler.target.instructions import InstructionForm, Lane, OperandKind

ADD: Final = 1
SUB: Final = 2
MUL: Final = 3
AND: Final = 4
ANDC: Final = 5
OR: Final = 6
XOR: Final = 7
XNOR: Final = 8
SHL: Final = 9
SHR: Final = 10
SHRS: Final = 11
CMPEQ: Final = 12
CMPNE: Final = 13
CMPSLT: Final = 14
CMPULT: Final = 15
MAX: Final = 16
MIN: Final = 17
SETZI: Final = 18
MOVZ: Final = 19
ATOM: Final = 20
ROLL16: Final = 21
ROLL8L: Final = 22
ROLL8R: Final = 23
SORT4X16LO: Final = 24
SORT4X16HI: Final = 25
SORT8X8LO: Final = 26
SORT8X8HI: Final = 27
SHUF8X8LO: Final = 28
SHUF8X8HI: Final = 29
SORT8: Final = 30
SWAP8: Final = 31
ABS: Final = 32
BITREV8: Final = 33
CLZ: Final = 34
CMS: Final = 35
POPC: Final = 36
LAST_INTEGER: Final = 36

MEMORY: Final = 64
STEP: Final = 16
"""Added to a plain load or store: the address register advances afterwards."""
LDZ8: Final = 0
LDS8: Final = 1
LDB8: Final = 2
LDZ16: Final = 3
LDS16: Final = 4
LDB16: Final = 5
LD32: Final = 6
LD32A: Final = 7
LD64: Final = 8
LD128: Final = 9
ST32: Final = 10
ST32A: Final = 11
ST64: Final = 12

LD2X64PACE: Final = 96
LDST64PACE: Final = 97
LD2XST64PACE: Final = 98
ST64PACE: Final = 99
LD64A32PACE: Final = 100
LD64B16PACE: Final = 101
LD64A32: Final = 102
LDD16A32: Final = 103
LDD16A64: Final = 104
LDD16B16: Final = 105
LDD16V2A32: Final = 106
TAPACK: Final = 107
STM32STEP: Final = 108

CONTROL: Final = 128
BR: Final = 128
BRI: Final = 129
BRNEG: Final = 130
BRNZ: Final = 131
BRPOS: Final = 132
BRZ: Final = 133
BRNZDEC: Final = 134
CALL: Final = 135
RPT: Final = 136
EXITZ: Final = 137
EXITNZ: Final = 138
EXITPOS: Final = 139
EXITNEG: Final = 140
GET: Final = 144
PUT: Final = 145
TRAP: Final = 146
RUN: Final = 147
RUNALL: Final = 148
SYNC: Final = 149
LD64PUTCS: Final = 150
LD128PUTCS: Final = 151
EXCHANGE: Final = 152
"""Any instruction of the exchange: the tile stops before it, for the fabric to take over."""

AUX: Final = 192
F16V2: Final = 192
F16V4: Final = 208
F32: Final = 224
F32V2: Final = 240
F_ADD: Final = 0
F_SUB: Final = 1
F_MUL: Final = 2
F_ABSADD: Final = 3
F_MAX: Final = 4
F_MIN: Final = 5
F_ABSMAX: Final = 6
F_CMPEQ: Final = 7
F_CMPNE: Final = 8
F_CMPLT: Final = 9
F_CMPLE: Final = 10
F_CMPGT: Final = 11
F_CMPGE: Final = 12

INTEGER_A: Final = 256
AND64: Final = 320
ANDC64: Final = 321
OR64: Final = 322
NOT64: Final = 323
SORT4X32LO: Final = 324
SORT4X32HI: Final = 325
ROLL32: Final = 326
LAST_BITWISE: Final = 326
"""From ``INTEGER_A`` to here operations move bits and never interpret them."""
UGET: Final = 327
UPUT: Final = 328
URAND32: Final = 329
URAND64: Final = 330

F16TOF32: Final = 336
F16V2TOF32: Final = 337
F32TOF16: Final = 338
F32V2TOF16: Final = 339
F32V4TOF16: Final = 340
F16V2SUM: Final = 341
F16V4SUM: Final = 342
F16V2MAXC: Final = 343
F16V4MAXC: Final = 344
F32INT: Final = 345
F32TOI32: Final = 346
F32TOUI32: Final = 347
F32FROMI32: Final = 348
F32FROMUI32: Final = 349
F8V2TOF16: Final = 350
F8V4TOF16: Final = 351
F16V2TOF8: Final = 352
F16V8TOF8: Final = 353
F16V2SUFROMUI: Final = 354
F16V4SUFROMUI: Final = 355
F32SUFROMUI: Final = 356
F32V2SUFROMUI: Final = 357
F16V4RMASK: Final = 358
F32V2RMASK: Final = 359
F16V2CLAMP: Final = 360
F16V4CLAMP: Final = 361
F32CLAMP: Final = 362
F32V2CLAMP: Final = 363

FUNCTION_F32: Final = 368
FUNCTION_F16V2: Final = 384
F_EXP: Final = 0
F_EXP2: Final = 1
F_LN: Final = 2
F_LOG2: Final = 3
F_SIGM: Final = 4
F_TANH: Final = 5
F_OOX: Final = 6
F_OORX: Final = 7
F_SQRT: Final = 8
F_DIV: Final = 9

ACCUMULATE: Final = 400
F16V4ACC: Final = 400
F16V4ABSACC: Final = 401
F16V8ACC: Final = 402
F16V8ABSACC: Final = 403
F16V8SQACC: Final = 404
F32V4ACC: Final = 405
F32V4ABSACC: Final = 406
F32V4SQACC: Final = 407
F32MAC: Final = 408
F32V2MAC: Final = 409
F16V2CMAC: Final = 410
F16V4CMAC: Final = 411
F32V2GINA: Final = 412
F16V2GINA: Final = 413
F16V4GACC: Final = 414
F32V2AXPY: Final = 415
F16V4MIX: Final = 416

AMP: Final = 432
F16V4SISOAMP: Final = 432
F16V4HIHOAMP: Final = 433
F16V4SIHOAMP: Final = 434
F16V4HIHOV4AMP: Final = 435
F8V8HIHOV4AMP: Final = 436
F32SISOAMP: Final = 437
F32SISOV2AMP: Final = 438

UNSUPPORTED: Final = 509
SAME: Final = 510
"""A load of two values into one register: legal as a word, refused when it runs."""
ILLEGAL: Final = 511

UNSUPPORTED_MNEMONICS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "f16v2class": "no source states the result codes of the finite classes",
        "f16v4class": "no source states the result codes of the finite classes",
        "f32class": "no source states the result codes of the finite classes",
        "f32v2class": "no source states the result codes of the finite classes",
        "f8v4class": "no source states the result codes of the finite classes",
        "f16v2grand": "no source states how Gaussian numbers are made",
        "f32v2grand": "no source states how Gaussian numbers are made",
        "f16v4istacc": "no source states the permutation bit by bit",
        "f16v4stacc": "no source states the permutation bit by bit",
        "f32v2aop": "no source states what its flags mean",
        "f16v4hihoslic": "convolution units are not simulated",
        "f16v4hihov4slic": "convolution units are not simulated",
        "f16v4sihoslic": "convolution units are not simulated",
        "f16v4sisoslic": "convolution units are not simulated",
        "f32sisoslic": "convolution units are not simulated",
        "f32sisov2slic": "convolution units are not simulated",
        "f8v8hihov4slic": "convolution units are not simulated",
        "ldb16b16": "no source states which delta advances by which amount",
    }
)
"""Instructions that the machine refuses, with the reason it gives."""

_INTEGER = {
    "add": ADD, "sub": SUB, "mul": MUL, "and": AND, "andc": ANDC, "or": OR, "xor": XOR, "xnor": XNOR,
    "shl": SHL, "shr": SHR, "shrs": SHRS, "cmpeq": CMPEQ, "cmpne": CMPNE, "cmpslt": CMPSLT,
    "cmpult": CMPULT, "max": MAX, "min": MIN, "setzi": SETZI, "movz": MOVZ, "atom": ATOM,
    "roll16": ROLL16, "roll8l": ROLL8L, "roll8r": ROLL8R, "sort4x16lo": SORT4X16LO,
    "sort4x16hi": SORT4X16HI, "sort8x8lo": SORT8X8LO, "sort8x8hi": SORT8X8HI, "shuf8x8lo": SHUF8X8LO,
    "shuf8x8hi": SHUF8X8HI, "sort8": SORT8, "swap8": SWAP8, "abs": ABS, "bitrev8": BITREV8, "clz": CLZ,
    "cms": CMS, "popc": POPC,
}  # fmt: skip

_LOADS = {
    "ldz8": LDZ8, "lds8": LDS8, "ldb8": LDB8, "ldz16": LDZ16, "lds16": LDS16, "ldb16": LDB16,
    "ld32": LD32, "ld64": LD64, "ld128": LD128, "st32": ST32, "st64": ST64, "stm32": ST32,
}  # fmt: skip

_KINDS = {
    "add": F_ADD, "sub": F_SUB, "mul": F_MUL, "absadd": F_ABSADD, "max": F_MAX, "min": F_MIN,
    "absmax": F_ABSMAX, "cmpeq": F_CMPEQ, "cmpne": F_CMPNE, "cmplt": F_CMPLT, "cmple": F_CMPLE,
    "cmpgt": F_CMPGT, "cmpge": F_CMPGE,
}  # fmt: skip

_SHAPES = {"f16v2": F16V2, "f16v4": F16V4, "f32": F32, "f32v2": F32V2}

_FUNCTIONS = {
    "exp": F_EXP, "exp2": F_EXP2, "ln": F_LN, "log2": F_LOG2, "sigm": F_SIGM, "tanh": F_TANH,
    "oox": F_OOX, "oorx": F_OORX, "sqrt": F_SQRT, "div": F_DIV,
}  # fmt: skip

_OTHERS = {
    "ld2x64pace": LD2X64PACE, "ldst64pace": LDST64PACE, "ld2xst64pace": LD2XST64PACE,
    "st64pace": ST64PACE, "ld64a32pace": LD64A32PACE, "ld64b16pace": LD64B16PACE,
    "ld64a32": LD64A32, "ldd16a32": LDD16A32, "ldd16a64": LDD16A64,
    "ldd16b16": LDD16B16, "ldd16v2a32": LDD16V2A32, "tapack": TAPACK, "stm32step": STM32STEP,
    "br": BR, "bri": BRI, "brneg": BRNEG, "brnz": BRNZ, "brpos": BRPOS, "brz": BRZ, "brnzdec": BRNZDEC,
    "call": CALL, "rpt": RPT, "exitz": EXITZ, "exitnz": EXITNZ, "exitpos": EXITPOS, "exitneg": EXITNEG,
    "get": GET, "put": PUT, "trap": TRAP, "run": RUN, "runall": RUNALL, "sync": SYNC,
    "ld64putcs": LD64PUTCS, "ld128putcs": LD128PUTCS, "delay": EXCHANGE, "delaypic": EXCHANGE,
    "delayxpic": EXCHANGE, "sans": EXCHANGE, "send": EXCHANGE, "sendoff": EXCHANGE, "sendpic": EXCHANGE,
    "sendpicp": EXCHANGE,
    "and64": AND64, "andc64": ANDC64, "or64": OR64, "not": NOT64, "not64": NOT64,
    "sort4x32lo": SORT4X32LO, "sort4x32hi": SORT4X32HI, "roll32": ROLL32, "uget": UGET, "uput": UPUT,
    "urand32": URAND32, "urand64": URAND64, "f16tof32": F16TOF32, "f16v2tof32": F16V2TOF32,
    "f32tof16": F32TOF16, "f32v2tof16": F32V2TOF16, "f32v4tof16": F32V4TOF16, "f16v2sum": F16V2SUM,
    "f16v4sum": F16V4SUM, "f16v2maxc": F16V2MAXC, "f16v4maxc": F16V4MAXC, "f32int": F32INT,
    "f32toi32": F32TOI32, "f32toui32": F32TOUI32, "f32fromi32": F32FROMI32, "f32fromui32": F32FROMUI32,
    "f8v2tof16": F8V2TOF16, "f8v4tof16": F8V4TOF16, "f16v2tof8": F16V2TOF8, "f16v8tof8": F16V8TOF8,
    "f16v2sufromui": F16V2SUFROMUI, "f16v4sufromui": F16V4SUFROMUI, "f32sufromui": F32SUFROMUI,
    "f32v2sufromui": F32V2SUFROMUI, "f16v4rmask": F16V4RMASK, "f32v2rmask": F32V2RMASK,
    "f16v2clamp": F16V2CLAMP, "f16v4clamp": F16V4CLAMP, "f32clamp": F32CLAMP, "f32v2clamp": F32V2CLAMP,
    "f16v4acc": F16V4ACC, "f16v4absacc": F16V4ABSACC, "f16v8acc": F16V8ACC, "f16v8absacc": F16V8ABSACC,
    "f16v8sqacc": F16V8SQACC, "f32v4acc": F32V4ACC, "f32v4absacc": F32V4ABSACC,
    "f32v4sqacc": F32V4SQACC, "f32mac": F32MAC, "f32v2mac": F32V2MAC, "f16v2cmac": F16V2CMAC,
    "f16v4cmac": F16V4CMAC, "f32v2gina": F32V2GINA, "f16v2gina": F16V2GINA, "f16v4gacc": F16V4GACC,
    "f32v2axpy": F32V2AXPY, "f16v4mix": F16V4MIX, "f16v4sisoamp": F16V4SISOAMP,
    "f16v4hihoamp": F16V4HIHOAMP, "f16v4sihoamp": F16V4SIHOAMP, "f16v4hihov4amp": F16V4HIHOV4AMP,
    "f8v8hihov4amp": F8V8HIHOV4AMP, "f32sisoamp": F32SISOAMP, "f32sisov2amp": F32SISOV2AMP,
}  # fmt: skip


def operation_of(form: InstructionForm) -> int:
    """The operation of an instruction form.

    Raises:
        ValueError: the instruction is neither implemented nor listed as unsupported.
    """
    name = form.mnemonic
    if name in UNSUPPORTED_MNEMONICS:
        return UNSUPPORTED
    if name in _OTHERS:
        return _OTHERS[name]
    if name in _INTEGER:
        return _INTEGER[name] + (INTEGER_A if form.lane is Lane.AUX else 0)
    is_step = name.endswith("step")
    access = _LOADS.get(name.removesuffix("step"))
    if access is not None:
        is_arithmetic = form.operands[0].kind is OperandKind.ARF
        if access in (LD32, ST32) and is_arithmetic:
            access += 1
        return MEMORY + access + (STEP if is_step else 0)
    for prefix, shape in _SHAPES.items():
        kind = name.removeprefix(prefix)
        if name.startswith(prefix) and kind in _KINDS:
            return shape + _KINDS[kind]
    for prefix, first in (("f32", FUNCTION_F32), ("f16v2", FUNCTION_F16V2)):
        kind = name.removeprefix(prefix)
        if name.startswith(prefix) and kind in _FUNCTIONS:
            return first + _FUNCTIONS[kind]
    raise ValueError(f"the tile machine has no operation for {form}")
