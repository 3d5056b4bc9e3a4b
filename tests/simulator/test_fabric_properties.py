"""The engine against the slot-by-slot reference on random programs, most of them illegal (TE-07)."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.isa.rows import ControlKind, Row
from compiler.simulator.fabric import MEMORY_WORDS, Phase, ReceivingSide, run_phase
from compiler.target.memory import SRAM_BASE
from compiler.target.units import PhysicalTile
from tests.simulator.exchange_plans import Plan
from tests.simulator.exchange_reference import Reference

TILES = (0, 2, 53, 55, 64, 66, 290, 1409, 1411)
ADDRESSES = (0x60000, 0x60020, 0x60040, 0x64000, 0x68008, 0x90000, 0x90030, 0x98000, 0xE7FE0, 0x4C000)


@st.composite
def plans(draw: st.DrawFn, gap: int) -> Plan:
    """A few transfers by the formulas, in order; with a small gap some collide."""
    plan = Plan()
    slot = 90
    free: dict[int, int] = {}
    for _ in range(draw(st.integers(1, 4))):
        source = draw(st.sampled_from(TILES))
        others = [tile for tile in TILES if tile != source]
        count = draw(st.integers(1, 12))
        slot = max(slot + gap + draw(st.integers(-4, 40)), free.get(source, 0))
        address = draw(st.sampled_from(ADDRESSES))
        receivers = [draw(st.sampled_from(others)), *draw(st.lists(st.sampled_from(TILES), max_size=1))]
        receivers = sorted(set(receivers))
        to = [draw(st.sampled_from(ADDRESSES)) for _ in range(4)]
        if draw(st.booleans()):
            members = sorted({tile & ~2 for tile in receivers})
            pairs = [(member, to[k], to[k + 2]) for k, member in enumerate(members)]
            free[source] = plan.paired(source, pairs, count, slot, address)
        else:
            free[source] = plan.ordinary(source, list(zip(receivers, to, strict=False)), count, slot, address)
        slot = free[source]
    return plan


def spoil(draw: st.DrawFn, plan: Plan) -> None:
    """Change one control."""
    tile = draw(st.sampled_from(plan.tiles()))
    controls = plan.controls[tile]
    if not controls:
        return
    event, kind, value = controls.pop(draw(st.integers(0, len(controls) - 1)))
    match draw(st.sampled_from(("drop", "move", "value", "kind", "member"))):
        case "move":
            controls.append((max(event + draw(st.integers(-3, 3)), 1), kind, value))
        case "value":
            values = (0, 1, 2, 0x640, 0x18000, 64, 66, 1409)
            controls.append((event, kind, draw(st.sampled_from(values))))
        case "kind":
            controls.append((event, draw(st.sampled_from(tuple(ControlKind)[:4])), value))
        case "member":
            plan.controls[tile ^ 2].append((event, kind, value ^ 2))
        case _:
            pass


@st.composite
def phases(draw: st.DrawFn) -> Phase:
    """A plan, perhaps spoiled."""
    plan = draw(plans(draw(st.sampled_from((0, 150)))))
    for _ in range(draw(st.integers(0, 2))):
        spoil(draw, plan)
    rows: dict[PhysicalTile, Row] = {}
    for tile in plan.tiles():
        last = max((event for event, _, _ in plan.controls[tile]), default=0)
        sent = max((slot + count for slot, count, _, _ in plan.sends[tile]), default=0)
        spare = draw(st.sampled_from((0, 0, 0, 0, 0, 0, 0, 0, 0, 3, -1)))
        rows[PhysicalTile(tile)] = plan.row(tile, max(spare, max(last, sent) - plan.ends[tile]))
    dropped = draw(st.sampled_from((None, None, None, None, *rows)))
    if dropped is not None and len(rows) > 1:
        del rows[dropped]
    phase = Phase.of(rows)
    count = len(rows)
    if draw(st.integers(0, 3)):
        return phase
    entry = ReceivingSide.neutral(count)
    sources = draw(st.lists(st.sampled_from((0x640, 0x640, 0, 64)), min_size=count, max_size=count))
    pointers = draw(st.lists(st.sampled_from((-1, 0x70000)), min_size=count, max_size=count))
    return replace(
        phase,
        entry=replace(entry, mux=np.array(sources), pointer=np.array(pointers)),
        workers_active=np.array([draw(st.integers(0, 9)) == 0 for _ in range(count)]),
    )


@st.composite
def spaced_phases(draw: st.DrawFn) -> Phase:
    """Transfers far enough apart that times collide rarely: what remains is addresses and data."""
    rows = draw(plans(150)).rows()
    phase = Phase.of(rows)
    places = st.sampled_from((-1, -1, -1, 0x4C000, 0x5FFC0))
    addresses = draw(st.lists(places, min_size=len(rows), max_size=len(rows)))
    return replace(phase, row_address=np.array(addresses))


@st.composite
def duplex_phases(draw: st.DrawFn) -> Phase:
    """Two tiles that send to each other, and forward or overwrite what arrived, at about the same time."""
    plan = Plan()
    near = st.sampled_from((0x60000, 0x60010, 0x60040, 0x64000, 0x90000, 0x90010))
    for source, receiver in ((0, 64), (64, 0)):
        slot = 60
        for _ in range(draw(st.integers(1, 3))):
            slot += draw(st.integers(0, 90))
            to = draw(near)
            slot = plan.ordinary(source, [(receiver, to)], draw(st.integers(1, 50)), slot, draw(near))
    return Phase.of(plan.rows())


HOLES = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(ADDRESSES)), max_size=2)


@given(phases(), HOLES)
def test_engine_and_reference_agree(phase: Phase, holes: list[tuple[int, int]]) -> None:
    check_agreement(phase, holes)


@given(spaced_phases(), HOLES)
def test_engine_and_reference_agree_on_addresses_and_data(phase: Phase, holes: list[tuple[int, int]]) -> None:
    check_agreement(phase, holes)


@given(duplex_phases(), HOLES)
def test_engine_and_reference_agree_on_forwarding(phase: Phase, holes: list[tuple[int, int]]) -> None:
    check_agreement(phase, holes)


def check_agreement(phase: Phase, holes: list[tuple[int, int]]) -> None:
    """Same faults, same memory."""
    count = len(phase.tiles)
    words = np.arange(count * MEMORY_WORDS, dtype=np.uint32).reshape(count, MEMORY_WORDS)
    shadow = np.full(words.shape, 15, dtype=np.uint8)
    for place, address in holes:
        shadow[place % count, (address - SRAM_BASE) // 4 + 2] = 7
    expected_words, expected_shadow = words.copy(), shadow.copy()
    reference = Reference(phase, expected_words, expected_shadow)
    result = run_phase(phase, words, shadow)
    assert result.faults == reference.faults
    np.testing.assert_array_equal(words, expected_words)
    np.testing.assert_array_equal(shadow, expected_shadow)
