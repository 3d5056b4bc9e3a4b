"""Register identities (TA-03): names, numbers, fields, codes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.target import registers
from compiler.target.control_registers import (
    UPPER_REGISTERS,
    BitField,
    ControlRegister,
    SupervisorRegister,
    WorkerRegister,
)
from compiler.target.registers import (
    COMMON_WEIGHT_NAMES,
    REGISTER_NAMES,
    MainRegister,
    RegisterFile,
    RegisterGroup,
    SyncZone,
    common_weight,
)

ALL_CONTROL: list[ControlRegister] = [*WorkerRegister, *SupervisorRegister]


def test_canonical_names_read_back() -> None:
    for group in REGISTER_NAMES.values():
        assert REGISTER_NAMES[str(group)] == group


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("$bp", "$m8"),
        ("$fp", "$m9"),
        ("$lr", "$m10"),
        ("$sp", "$m11"),
        ("$mworker_base", "$m12"),
        ("$mvertex_base", "$m13"),
        ("$mzero", "$m15"),
        ("$azero", "$a15"),
        ("$azeros", "$a14:15"),
        ("$ap0", "$a0:1"),
        ("$ap6", "$a12:13"),
        ("$ap7", "$a14:15"),
        ("$ap15", "$a14:15"),
        ("$aq1", "$a4:7"),
        ("$aq3", "$a12:15"),
        ("$aq15", "$a12:15"),
    ],
)
def test_aliases(alias: str, name: str) -> None:
    assert str(REGISTER_NAMES[alias]) == name


def test_there_are_sixteen_registers_eight_pairs_and_four_quads() -> None:
    groups = set(REGISTER_NAMES.values())
    count = {
        (file, size): sum(group.file is file and group.count == size for group in groups)
        for file in RegisterFile
        for size in (1, 2, 4)
    }
    main, arithmetic = RegisterFile.MAIN, RegisterFile.ARITHMETIC
    assert [count[main, size] for size in (1, 2, 4)] == [16, 8, 0]
    assert [count[arithmetic, size] for size in (1, 2, 4)] == [16, 8, 4]


@pytest.mark.parametrize(
    ("file", "number", "count", "message"),
    [
        (RegisterFile.MAIN, 16, 1, r"^there is no register \$m16$"),
        (RegisterFile.ARITHMETIC, -2, 2, r"^there is no register \$a-2$"),
        (RegisterFile.MAIN, 3, 2, r"^2 registers from \$m3 are no group$"),
        (RegisterFile.MAIN, 4, 4, r"^4 registers from \$m4 are no group$"),
        (RegisterFile.ARITHMETIC, 2, 4, r"^4 registers from \$a2 are no group$"),
    ],
)
def test_groups_that_do_not_exist_are_refused(
    file: RegisterFile, number: int, count: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        RegisterGroup(file=file, number=number, count=count)


def test_main_registers_are_their_numbers() -> None:
    assert [register.value for register in MainRegister] == list(range(16))
    assert MainRegister.ZERO is MainRegister.M15


def test_common_weights() -> None:
    assert (common_weight(0, 0), common_weight(15, 3)) == (0, 63)
    assert sorted(COMMON_WEIGHT_NAMES.values()) == list(range(64))
    assert COMMON_WEIGHT_NAMES["$CWEI_8_1"] == 33
    for unit, phase in ((16, 0), (0, 4), (-1, 0)):
        with pytest.raises(ValueError, match=f"there is no common weight of unit {unit}, phase {phase}"):
            common_weight(unit, phase)


@pytest.mark.parametrize("kind", [WorkerRegister, SupervisorRegister])
def test_numbers_are_unique_and_in_their_space(kind: type[ControlRegister]) -> None:
    numbers = [int(register) for register in kind]
    assert len(set(numbers)) == len(kind.__members__) == len(numbers)
    top = 2 * UPPER_REGISTERS if kind is WorkerRegister else UPPER_REGISTERS
    assert all(0 <= number < top for number in numbers)


@pytest.mark.parametrize(
    ("register", "number"),
    [
        (SupervisorRegister.INCOMING_MUX, 0xA0),
        (SupervisorRegister.INCOMING_DCOUNT, 0xA6),
        (SupervisorRegister.OUTGOING_BASE, 0xA7),
        (SupervisorRegister.EXCHANGE_ADJ, 0xAB),
        (SupervisorRegister.WORKER5_BASE, 0x26),
        (SupervisorRegister.FP_ICTL, 0x20),
        (SupervisorRegister.CTXT_STS, 0x72),
        (WorkerRegister.COUNT_L, 0x60),
        (WorkerRegister.FP_CTL, 0x102),
        (WorkerRegister.FP_SCL, 0x10A),
        (WorkerRegister.SYNC_ENDPOINT, 7),
    ],
)
def test_known_numbers(register: ControlRegister, number: int) -> None:
    assert register == number


@pytest.mark.parametrize(
    ("register", "field", "mask"),
    [
        (SupervisorRegister.CR, "ZCWEI", 1 << 2),
        (SupervisorRegister.FP_ICTL, "OFLO", 1 << 2),
        (SupervisorRegister.FP_ICTL, "ESR", 1 << 19),
        (SupervisorRegister.CTXT_STS, "W5", 3 << 12),
        (SupervisorRegister.CTXT_STS, "ERERR", 7 << 27),
        (SupervisorRegister.SSR, "ETYPE", 0xF0),
        (SupervisorRegister.INCOMING_MUX, "TILE_ID", 0x7FF),
        (SupervisorRegister.INCOMING_BASE, "ADDR", 0xFFFFC),
        (WorkerRegister.WSR, "CTXTID_M1", 7),
        (WorkerRegister.FP_CLR, "ZAACC", 8),
        (WorkerRegister.REPEAT_COUNT, "VALUE", 0xFFFF),
    ],
)
def test_known_fields(register: ControlRegister, field: str, mask: int) -> None:
    assert register.field(field).mask == mask


def test_fields_of_a_register_do_not_overlap() -> None:
    for register in ALL_CONTROL:
        masks = [field.mask for field in register.fields.values()]
        total = 0
        for mask in masks:
            assert not total & mask, register.name
            total |= mask


def test_the_two_float_controls_agree() -> None:
    assert WorkerRegister.FP_CTL.fields == SupervisorRegister.FP_ICTL.fields


@given(st.integers(0, 2**32 - 1), st.integers(0, 31), st.integers(0, 31), st.data())
def test_fields_insert_and_extract(word: int, one: int, other: int, data: st.DataObject) -> None:
    field = BitField(high=max(one, other), low=min(one, other))
    value = data.draw(st.integers(0, 2 ** (field.high - field.low + 1) - 1))
    changed = field.insert(word, value)
    assert field.extract(changed) == value
    assert changed & ~field.mask == word & ~field.mask


def test_refusals_of_fields() -> None:
    with pytest.raises(ValueError, match=r"^value 4 does not fit bits 1\.\.0$"):
        SupervisorRegister.INCOMING_FORMAT.field("VALUE").insert(0, 4)
    with pytest.raises(ValueError, match=r"^bits 3\.\.5 are no field of a 32-bit register$"):
        BitField(high=3, low=5)
    with pytest.raises(ValueError, match=r"^register CR has no field OFLO: it has LC_CLR, LC_SET, ZCWEI$"):
        SupervisorRegister.CR.field("OFLO")


def test_codes() -> None:
    assert (SyncZone.INTERNAL, SyncZone.LOCAL, SyncZone.EXTERNAL_2_HOST_MASTER) == (3, 2, 15)
    assert registers.ExceptionType.INVALID_PROGRAM_COUNTER == 10
    assert sorted(registers.ExceptionType) == list(range(16))
    assert sorted(registers.ReceiveError) == list(range(8))
    assert (registers.NEUTRAL_MUX, registers.HOST_MUX) == (0x640, 0x600)
