"""Orders: against a reference that tries everything, and what each is for."""

import hypothesis
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compiler.exchange.bound import bounds_of_phase
from compiler.exchange.ir import Demand
from compiler.exchange.matchings import matching_order
from compiler.exchange.multicast import LOAD, multicast_order
from compiler.exchange.order import behind_data, chosen_order
from compiler.exchange.pairs import pairs_of
from compiler.exchange.pressure import pressure_order
from compiler.exchange.split import are_scattered
from compiler.exchange.timing import prepared_variants, schedule
from compiler.target.units import Int64Array
from tests.exchange.phases import RandomPhase, Transfer, demand, random_phases
from tests.exchange.slow import slow_pressure_order

TILES = [0, 5, 64, 130, 301, 777, 1030, 1471]


def lone(phase: RandomPhase) -> Demand:
    """The transfers of a phase, each to its first recipient that is not the sender."""
    transfers: list[Transfer] = []
    for transfer in phase.transfers:
        away = [recipient for recipient in transfer.recipients if recipient[0] != transfer.source]
        transfers.append(
            Transfer(
                source=transfer.source,
                address=transfer.address,
                words=transfer.words,
                recipients=(away[0],),
                stride=transfer.stride,
            )
        )
    return demand(transfers, phase.iterations)


def everyone(wanted: Demand) -> Int64Array:
    return np.arange(len(wanted.transfers.source))


@given(random_phases(largest=25) | random_phases(largest=12, moving=True))
def test_the_busiest_end_comes_first(phase: RandomPhase) -> None:
    wanted = lone(phase)
    order = pressure_order(pairs_of(wanted.transfers, everyone(wanted)))
    assert order.tolist() == slow_pressure_order(wanted)


@given(random_phases(largest=40))
def test_the_multicast_that_would_arrive_first_is_next(phase: RandomPhase) -> None:
    """Behind those before it no other one is earlier, large ones with their head start."""
    wanted = demand(phase.transfers)
    moves, distances = wanted.transfers, prepared_variants(wanted)[0].distances
    hypothesis.assume(not are_scattered(moves, everyone(wanted), np.zeros_like(moves.receiver)))
    to_select, to_write = distances.to_select.tolist(), distances.to_write.tolist()
    recipients: list[range] = [
        range(*moves.first_recipient[number : number + 2].tolist()) for number in range(len(moves.source))
    ]
    sends, receives = dict[int, int](), dict[int, int]()

    def start(number: int) -> int:
        ends = [receives.get(int(moves.receiver[each]), 1) - to_select[each] for each in recipients[number]]
        return max(int(distances.earliest[number]), sends.get(int(moves.source[number]), 0), *ends)

    def arrival(number: int) -> int:
        mean = sum(to_select[each] + to_write[each] for each in recipients[number]) // len(recipients[number])
        return start(number) + mean - int(moves.words[number]) * len(recipients[number]) // LOAD

    left = set(range(len(moves.source)))
    order: list[int] = multicast_order(moves, distances, everyone(wanted)).tolist()
    for number in order:
        assert arrival(number) == min(map(arrival, left))
        left.remove(number)
        begin = start(number)
        sends[int(moves.source[number])] = begin + int(moves.words[number])
        for each in recipients[number]:
            receives[int(moves.receiver[each])] = begin + to_select[each] + int(moves.words[number])


@given(random_phases(largest=25))
def test_every_order_has_each_transfer_once(phase: RandomPhase) -> None:
    wanted, single = demand(phase.transfers), lone(phase)
    orders = [
        (wanted, multicast_order(wanted.transfers, prepared_variants(wanted)[0].distances, everyone(wanted))),
        (wanted, chosen_order(wanted).order),
        (single, pressure_order(pairs_of(single.transfers, everyone(single)))),
        (single, matching_order(pairs_of(single.transfers, everyone(single)))),
    ]
    for meant, order in orders:
        assert np.sort(order).tolist() == everyone(meant).tolist()


@given(random_phases(largest=30), st.integers(0, 2**32 - 1))
def test_transfers_come_behind_those_they_depend_on(phase: RandomPhase, seed: int) -> None:
    """In any order asked for; one that is legal already is kept."""
    wanted = demand(phase.transfers)
    data = wanted.dependences
    order = np.random.default_rng(seed).permutation(len(wanted.transfers.source))
    legal = behind_data(wanted, order)
    place = np.argsort(legal)
    assert np.sort(legal).tolist() == everyone(wanted).tolist()
    assert (place[data.before] < place[data.after]).all()
    assert behind_data(wanted, legal).tolist() == legal.tolist()
    if not len(data.after):
        assert legal.tolist() == order.tolist()


@given(random_phases(largest=30))
def test_the_chosen_order_leads_to_its_schedule(phase: RandomPhase) -> None:
    wanted = demand(phase.transfers)
    chosen = chosen_order(wanted)
    assert schedule(wanted, chosen.order).slot.tolist() == chosen.schedule.slot.tolist()


def all_to_all(words: int) -> Demand:
    return demand(
        [
            Transfer(
                source=source,
                address=0x60000 + 0x400 * there,
                words=words,
                recipients=((receiver, 0xA0000 + 0x400 * here, 0),),
            )
            for here, source in enumerate(TILES)
            for there, receiver in enumerate(TILES)
            if source != receiver
        ]
    )


def test_rounds_of_equal_transfers_leave_no_end_out() -> None:
    """All to all among n tiles takes n - 1 rounds; in each, every tile sends once and receives once."""
    wanted = all_to_all(40)
    moves = wanted.transfers
    order = matching_order(pairs_of(moves, everyone(wanted))).reshape(len(TILES) - 1, len(TILES))
    for of_round in order:
        assert sorted(moves.source[of_round].tolist()) == TILES
        assert sorted(moves.receiver[of_round].tolist()) == TILES


def test_early_rounds_have_the_larger_times_to_mux() -> None:
    wanted = all_to_all(40)
    pairs = pairs_of(wanted.transfers, everyone(wanted))
    of_pair = dict(zip(pairs.transfer.tolist(), pairs.time_to_mux.tolist(), strict=True))
    totals = [
        sum(of_pair[number] for number in of_round)
        for of_round in matching_order(pairs).reshape(len(TILES) - 1, len(TILES)).tolist()
    ]
    assert totals[0] > totals[-1]
    assert sum(totals[:3]) > sum(totals[-3:])


def test_matchings_are_chosen_where_they_are_shorter() -> None:
    wanted = all_to_all(40)
    bound = int(bounds_of_phase(wanted).horizon)
    listed = schedule(wanted, pressure_order(pairs_of(wanted.transfers, everyone(wanted))))
    chosen = int(chosen_order(wanted).schedule.horizon.max())
    assert chosen <= int(listed.horizon.max())
    assert chosen <= 1.15 * bound
