"""Every form of the matrix instructions against the plain model, and what the machine says about queues."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.errors import Unsupported
from compiler.simulator.faults import FaultKind
from compiler.simulator.harness import Run, call, load
from compiler.simulator.tile import Stop, Tile, default_options
from tests.simulator.matrix_reference import MatrixUnits
from tests.simulator.numerics import byte_values, saturated_half
from tests.simulator.programs import INTERLEAVED, program_of, run_worker

WEIGHTS = 0x58000
INPUT = 0x60000
OUTPUT = 0x90000


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What distinguishes a matrix instruction.

    Args:
        mnemonic: its name.
        flags: prefix of its phase names.
        element: type of elements and weights: "half", "byte" or "word".
        partial: type of partials: "half" or "word".
        result: type of results: "half" or "word".
        units: 8 or 16.
        phases: of a group.
        channels: of each set of units that take part.
    """

    mnemonic: str
    flags: str
    element: str
    partial: str
    result: str
    units: int
    phases: int
    channels: int = 8

    @property
    def count(self) -> int:
        """Partials and results of an instruction."""
        return 4 if self.units == 16 and self.partial == "half" else 2


_HALF = "TAMP_F16V4_E4_P"
_WORD = "TAMP_F32_E4_P"


def _form(
    mnemonic: str, flags: str, element: str, partial: str, result: str, units: int, engines: int = 4
) -> Form:
    return Form(
        mnemonic=mnemonic,
        flags=flags.replace("E4", f"E{engines}"),
        element=element,
        partial=partial,
        result=result,
        units=units,
        phases=(8 if element == "word" else 4) * engines // 4,
        channels=2 * engines,
    )


FORMS = [
    _form("f16v4sisoamp", _HALF, "half", "word", "word", 8),
    _form("f16v4hihoamp", _HALF, "half", "half", "half", 8),
    _form("f16v4sihoamp", _HALF, "half", "word", "half", 8),
    _form("f16v4hihov4amp", _HALF, "half", "half", "half", 16),
    _form("f8v8hihov4amp", "TAMP_F8V8_E4_P", "byte", "half", "half", 16),
    _form("f32sisoamp", _WORD, "word", "word", "word", 8),
    _form("f32sisov2amp", _WORD, "word", "word", "word", 16),
    _form("f16v4sisoamp", _HALF, "half", "word", "word", 8, 2),
    _form("f16v4sihoamp", _HALF, "half", "word", "half", 8, 1),
    _form("f16v4hihov4amp", _HALF, "half", "half", "half", 16, 2),
    _form("f16v4hihov4amp", _HALF, "half", "half", "half", 16, 1),
    _form("f32sisoamp", _WORD, "word", "word", "word", 8, 2),
    _form("f32sisov2amp", _WORD, "word", "word", "word", 16, 2),
]

WORKER = """
.worker
.align 8
worker:
    get $m0, $WSR
    and $m0, $m0, 7
    brz $m0, .Lfirst
    exitz $m15
.Lfirst:
    setzi $m2, {input:#x}
    setzi $m3, {output:#x}
    setzi $a7, 8
    uput $FP_CLR, $a7
{body}
    exitz $m15
"""


def supervisor(info: int, scale: int) -> str:
    loads = "\n".join(f"    ld64putcs {index}" for index in range(64))
    return f"""
.supervisor
.align 8
main:
    or $m12, $m10, 0
    setzi $m0, {info}
    put $FP_INFMT, $m0
    setzi $m0, {scale & 63}
    put $FP_ISCL, $m0
    setzi $m0, {WEIGHTS:#x}
    put $CCCSLOAD, $m0
{loads}
    setzi $m0, worker
    runall $m0, $m15, 0
    sync 2
    br $m12
"""


def instruction(form: Form, phase: int, *, elements: str = "", partials: str = "", target: str = "") -> str:
    x = elements or ("$a0" if form.element == "word" else "$a0:1")
    p = partials or ("$a2" if form.mnemonic == "f16v4hihoamp" else "$a2:3")
    narrow = form.result == "half" and form.units == 8
    d = target or ("$a4" if narrow else "$a4:5")
    return f"    {form.mnemonic} {d}, {x}, {p}, {form.flags}{phase}\n"


def text_of(form: Form, phases: list[int], scale: int, info: int) -> str:
    body = ""
    for phase in phases:
        body += "    ld64step $a0:1, $m15, $m2+=, 1\n    ld64step $a2:3, $m15, $m2+=, 1\n"
        body += "    or64 $a4:5, $azeros, $azeros\n"
        body += instruction(form, phase) + "    st64step $a4:5, $m15, $m3+=, 1\n"
    return supervisor(info, scale) + WORKER.format(input=INPUT, output=OUTPUT, body=body)


def execute(
    form: Form,
    phases: list[int],
    weights: npt.NDArray[np.uint8],
    data: npt.NDArray[np.uint8],
    scale: int,
    info: int,
) -> tuple[Tile, Run]:
    tile = Tile(default_options())
    program = program_of(text_of(form, phases, scale, info))
    load(tile, program)
    tile.place(WEIGHTS, weights)
    tile.place(INPUT, data)
    run = call(tile, program.address_of("main"), {})
    return tile, run


def numbers(raw: npt.NDArray[np.uint8], kind: str, *, is_143: bool = True) -> list[float]:
    if kind == "byte":
        return byte_values(is_143=is_143)[raw].tolist()
    typed = raw.view(np.float16 if kind == "half" else np.float32)
    return typed.astype(np.float64).tolist()


def random_bytes(random: np.random.Generator, count: int, kind: str) -> npt.NDArray[np.uint8]:
    if kind == "byte":
        values = random.integers(0, 256, count, dtype=np.uint8)
        return np.where(values == 0x80, 0, values).astype(np.uint8)
    normal = random.normal(size=count // (2 if kind == "half" else 4))
    return normal.astype(np.float16 if kind == "half" else np.float32).view(np.uint8)


def model_of(form: Form, weights: npt.NDArray[np.uint8], scale: int, info: int) -> MatrixUnits:
    """The model with common weight 4 * unit + column; binary32 phases take its halves in turn."""
    is_143 = bool(info & 1)
    table: list[list[list[float]]] = []
    for phase in range(form.phases):
        column = phase // 2 if form.element == "word" else phase
        row: list[list[float]] = []
        for unit in range(form.units):
            raw = weights[8 * (4 * unit + column) : 8 * (4 * unit + column) + 8]
            if form.element == "word":
                raw = raw[4 * (phase % 2) : 4 * (phase % 2) + 4]
            row.append(numbers(raw, form.element, is_143=is_143))
        table.append(row)
    return MatrixUnits(units=form.units, weights=table, count=form.count, channels=form.channels, scale=scale)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: f"{form.mnemonic}-{form.flags}")
@given(
    seed=st.integers(0, 2**32 - 1), groups=st.integers(1, 4), scale=st.integers(-8, 2), info=st.integers(0, 3)
)
def test_every_form_equals_the_model(form: Form, seed: int, groups: int, scale: int, info: int) -> None:
    random = np.random.default_rng(seed)
    used_scale = 0 if form.element == "word" else scale
    phases = list(range(form.phases)) * groups
    weights = random_bytes(random, 512, form.element)
    data = np.concatenate(
        [
            part
            for _ in phases
            for part in (random_bytes(random, 8, form.element), random_bytes(random, 8, form.partial))
        ]
    )
    # Scale and format are set for every form: words look at neither, halves only at the scale.
    tile, run = execute(form, phases, weights, data, scale, info)
    assert run.stop is Stop.RETURNED, run.fault
    assert run.matrix_instructions == len(phases)
    assert run.queue_report is None
    model = model_of(form, weights, used_scale, info)
    for index, phase in enumerate(phases):
        x = numbers(data[16 * index : 16 * index + 8], form.element, is_143=bool(info & 2))
        p = numbers(data[16 * index + 8 : 16 * index + 16], form.partial)[: form.count]
        takes = not (form.mnemonic == "f32sisoamp" and phase % 2)
        position = phase if form.mnemonic == "f32sisoamp" else phase * form.count
        x = x[:1] if form.element == "word" else x
        expected = model.step(x, p if takes else None, phase, position=position)
        raw = np.frombuffer(tile.read(OUTPUT + 8 * index, 8), np.uint8)
        if form.result == "half":
            got = raw.view(np.float16)[: len(expected)]
            assert np.array_equal(got, saturated_half(np.array(expected))), (index, phase)
        else:
            assert raw.view(np.float32)[: len(expected)].tolist() == expected, (index, phase)
    assert not model.is_ambiguous


V4 = FORMS[3]


def warm_up(phases: list[int], partial: float) -> tuple[Run, MatrixUnits]:
    """A group after a warm-up that pushes partials in the given phases; the results of the group are used."""
    random = np.random.default_rng(5)
    weights = random_bytes(random, 512, "half")
    data = np.zeros((len(phases) + 8, 16), np.uint8)
    data[: len(phases), 8:] = np.full(4, partial, np.float16).view(np.uint8)
    data[: len(phases), 8] = np.arange(len(phases)) * (1 if partial else 0)
    order = [*phases, 0, 1, 2, 3, 0, 1, 2, 3]
    _, run = execute(V4, order, weights, data.reshape(-1), 0, 0)
    model = model_of(V4, weights, 0, 0)
    for index, phase in enumerate(order):
        x = numbers(data[index, :8].copy(), "half")
        model.step(x, numbers(data[index, 8:].copy(), "half"), phase, position=4 * phase)
    return run, model


def test_warm_up_in_one_phase_is_reported_when_partials_matter() -> None:
    run, model = warm_up([1, 1, 1, 1], partial=1.0)
    assert model.is_ambiguous
    assert run.queue_report is not None
    assert str(run.queue_report).startswith("worker 0, cycle ")
    assert "whether the queues of the matrix units are first in, first out or addressed by phase" in str(
        run.queue_report
    )


def test_warm_up_in_one_phase_with_zeros_is_the_same_in_both_models() -> None:
    run, model = warm_up([1, 1, 1, 1], partial=0.0)
    assert not model.is_ambiguous
    assert run.queue_report is None


def test_warm_up_in_all_phases_is_the_same_in_both_models() -> None:
    run, model = warm_up([0, 1, 2, 3], partial=1.0)
    assert not model.is_ambiguous
    assert run.queue_report is None


def test_pushing_past_a_group_stops() -> None:
    body = "".join(instruction(V4, 1, elements="$azeros", partials="$azeros") for _ in range(5))
    _, run = run_worker(body)
    assert run.fault is not None
    assert run.fault.kind is FaultKind.QUEUE_OVERFLOW


def test_flags_without_a_meaning_are_refused_by_name() -> None:
    """A phase outside the group of its engines has a name only; other numbers have none."""
    for text in (
        "f32sisov2amp $a4:5, $a0, $azeros, TAMP_F32_E1_P2",
        "f16v4hihov4amp $a4:5, $a0:1, $azeros, 63",
    ):
        with pytest.raises(
            Unsupported, match=r"worker 0 cannot run f.*amp .*no source states what its flags"
        ):
            run_worker(text)


def test_idle_engines_keep_their_sums() -> None:
    body = "setzi $a7, 8\nuput $FP_CLR, $a7\nldconst $a0, 0x3c003c00\nor $a1, $a0, $azero\n"
    body += "or64 $a2:3, $a0:1, $azeros\nf16v8acc $a0:3\n"
    body += "f16v4hihov4amp $a4:5, $azeros, $azeros, TAMP_F16V4_E1_P0\n"
    tile, run = run_worker(body)
    assert run.fault is None
    assert [float(tile.accumulator(0, 2 * unit)) for unit in range(8)] == [0.0, 0.0] + [1.0] * 6
    assert [tile.arithmetic_register(0, k) for k in (4, 5)] == [0x3C003C00, 0]


def test_mixed_groups_do_not_fit() -> None:
    """Partials of a group of four engines are too many for one of two."""
    body = "".join(instruction(V4, phase, elements="$azeros", partials="$azeros") for phase in range(4))
    _, run = run_worker(body + "f16v4hihov4amp $a4:5, $azeros, $azeros, TAMP_F16V4_E2_P0\n")
    assert run.fault is not None
    assert run.fault.kind is FaultKind.QUEUE_OVERFLOW


def test_word_products_use_the_scale_register() -> None:
    """The register of scales is temporary storage of binary32 products."""
    body = "setzi $a0, 1\nuput $TAS, $a0\n{}uget $a1, $TAS\n"
    _, run = run_worker(body.format(""))
    assert run.fault is None
    for text in ("f32sisoamp $a4:5, $a0, $azeros, TAMP_F32_E4_P0\n", "f32sisov2amp $a4:5, $a0, $azeros, 1\n"):
        _, run = run_worker(body.format(text))
        assert run.fault is not None
        assert run.fault.kind is FaultKind.UNDEFINED_REGISTER


CHANGING = """
.supervisor
main:
    setzi $m0, worker
    ldconst $m1, 0x90000
    put $CCCSLOAD, $m1
    ld128putcs 0
    run $m0, $m15, 0
{wait}
    {change}
    sync 2
    br $m10
.worker
.align 8
worker:
    f16v4hihov4amp $azeros, $azeros, $azeros, TAMP_F16V4_E4_P0
    nop
    nop
    nop
    nop
    f16v4hihov4amp $azeros, $azeros, $azeros, TAMP_F16V4_E4_P1
    exitz $m15
"""


@pytest.mark.parametrize("change", ["ld64putcs 2", "ld128putcs 2", "setzi $m2, 4\n    put 2, $m2"])
def test_weights_that_change_while_workers_use_them(change: str) -> None:
    """What a worker would compute depends on when the supervisor comes by; between launches it may."""
    for wait, is_fault in (("    nop\n" * 12, True), ("    sync 2", False)):
        program = program_of(CHANGING.format(wait=wait, change=change))
        tile = Tile(default_options())
        load(tile, program)
        tile.place(INTERLEAVED, bytes(64))
        run = call(tile, program.address_of("main"), {})
        assert (run.stop is Stop.FAULT) == is_fault, run.fault
        if run.fault is not None:
            assert run.fault.kind is FaultKind.WEIGHTS_CHANGED
            assert run.fault.symbol == "worker+0x14"
            assert str(run.fault).endswith(": the common weights changed while this worker used them")


def test_infinite_products_raise_flags() -> None:
    body = """
    setzi $a0, 0x7c00
    setzi $a1, 0
    f16v4hihov4amp $azeros, $a0:1, $azeros, TAMP_F16V4_E4_P0
    uget $a4, $FP_STS
    """
    tile, run = run_worker(body)
    assert run.fault is None
    assert tile.arithmetic_register(0, 4) == 1  # infinity times a zero weight is invalid


def test_weights_are_cleared_by_command() -> None:
    random = np.random.default_rng(1)
    program = program_of(
        supervisor(0, 0).replace("setzi $m0, worker", "setzi $m0, 4\n    put 2, $m0\n    setzi $m0, worker")
        + WORKER.format(input=INPUT, output=OUTPUT, body=_ones())
    )
    tile = Tile(default_options())
    load(tile, program)
    tile.place(WEIGHTS, random_bytes(random, 512, "half"))
    run = call(tile, program.address_of("main"), {})
    assert run.stop is Stop.RETURNED, run.fault
    assert tile.read(OUTPUT, 8) == bytes(8)


def _ones() -> str:
    body = "    ldconst $a0, 0x3c003c00\n    or $a1, $a0, $azero\n"
    body += "".join(instruction(V4, phase, partials="$azeros") for phase in (0, 1, 2, 3, 0))
    return body + "    st64 $a4:5, $m3, 0\n"
