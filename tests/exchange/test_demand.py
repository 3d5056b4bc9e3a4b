"""From transfers of a low program to the demand: joined, cut, ordered by data."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given

from compiler.errors import ScheduleInfeasible
from compiler.exchange.check import check_phase, check_program
from compiler.exchange.demand import demand_of_step, exchange_steps
from compiler.exchange.ir import SOURCE_SIDE, Demand
from compiler.exchange.phase import schedule_phase, schedule_program
from compiler.low.address import AddressOperand
from compiler.low.build import LowBuilder
from compiler.low.ids import StepId
from compiler.low.ir import LowProgram
from compiler.placement.ir import Placement
from compiler.target.fabric import LONGEST_TRANSFER
from compiler.target.tiles import physical_tiles
from tests.exchange.phases import NODES, RandomPhase, Transfer, demand, placed, random_phases

WORDS_OF_LINE = 16


def line(source: int, number: int, *recipients: int, words: int = WORDS_OF_LINE) -> Transfer:
    """Span ``number`` of a line of spans, at corresponding places everywhere."""
    offset = 4 * WORDS_OF_LINE * number
    return Transfer(
        source=source,
        address=0x60000 + offset,
        words=words,
        recipients=tuple((tile, 0xA0000 + offset, 0) for tile in recipients),
    )


def test_spans_that_follow_each_other_become_one() -> None:
    found = demand([line(0, 1, 5), line(0, 0, 5), line(3, 0, 6), line(0, 2, 5)]).transfers
    assert found.row.tolist() == [11, 12]
    assert found.words.tolist() == [3 * WORDS_OF_LINE, WORDS_OF_LINE]
    assert found.address.tolist() == [0x60000, 0x60000]
    assert found.receiver_address.tolist() == [0xA0000, 0xA0000]


def test_multicasts_to_the_same_tiles_become_one_whatever_the_order_of_recipients() -> None:
    found = demand([line(0, 0, 5, 9), line(0, 1, 9, 5)]).transfers
    assert found.words.tolist() == [2 * WORDS_OF_LINE]
    assert sorted(found.receiver.tolist()) == [5, 9]


@pytest.mark.parametrize(
    "second",
    [
        line(0, 1, 6),  # another receiver
        line(0, 1, 5, 6),  # one more receiver
        line(0, 2, 5),  # not next
        Transfer(source=0, address=0x60040, words=16, recipients=((5, 0xA0080, 0),)),  # not next there
        Transfer(source=0, address=0x60040, words=16, recipients=((5, 0xA0040, 64),)),  # moves there
        Transfer(source=0, address=0x60040, words=16, recipients=((5, 0xA0040, 0),), stride=64),  # moves
    ],
)
def test_spans_that_do_not_follow_each_other_stay_two(second: Transfer) -> None:
    assert len(demand([line(0, 0, 5), second], iterations=2).transfers.source) == 2


def test_a_span_that_waits_for_data_is_not_joined() -> None:
    """Joining the first and the third would make each wait for the other."""
    through = Transfer(source=5, address=0xA0000, words=4, recipients=((0, 0x60040, 0),))
    found = demand([line(0, 0, 5), through, line(0, 1, 5)])
    assert found.transfers.row.tolist() == [10, 11, 12]
    assert list(zip(found.dependences.before.tolist(), found.dependences.after.tolist(), strict=True)) == [
        (0, 1),
        (1, 2),
    ]


def test_what_a_sender_receives_too_is_not_joined_across_elements() -> None:
    """Each of two is legal; the whole would be read and written in the element that they meet in."""

    def spans(shift: int) -> list[Transfer]:
        return [
            Transfer(source=0, address=at, words=16, recipients=((0, at + 0x4000, 0), (5, at + 0x44000, 0)))
            for at in (0x53FC0 - shift, 0x54000 - shift)
        ]

    found = demand(spans(0))
    assert found.transfers.words.tolist() == [16, 16]
    phase = schedule_phase(found)
    assert not check_phase(placed(spans(0)), 1, phase.rows, phase.patches)
    assert demand(spans(0x100)).transfers.words.tolist() == [32]


def test_a_sender_that_receives_over_what_it_sends_is_refused_in_any_iteration() -> None:
    for stride in (0, 64):
        recipients = ((4, 0x600C0, 0), (5, 0xA0000, 0))
        far = Transfer(source=4, address=0x60000, words=16, recipients=recipients, stride=stride)
        demand([far], iterations=3)
        if stride:
            with pytest.raises(ScheduleInfeasible, match=r"over those that it sends from 0x600c0"):
                demand([far], iterations=4)


def test_long_spans_are_cut_into_equal_parts() -> None:
    found = demand([line(0, 0, 5, words=2 * LONGEST_TRANSFER + 1)]).transfers
    assert found.words.tolist() == [2765, 2766, 2766]
    assert found.address.tolist() == [0x60000, 0x60000 + 4 * 2765, 0x60000 + 4 * 5531]
    assert found.receiver_address.tolist() == [0xA0000, 0xA0000 + 4 * 2765, 0xA0000 + 4 * 5531]


def test_a_transfer_to_its_sender_alone_is_refused() -> None:
    with pytest.raises(ScheduleInfeasible):
        demand([line(0, 0, 5), line(4, 0, 4)])


def words_of(found: Demand) -> Iterator[tuple[int, int, int, int]]:
    """(sender, address, receiver, address) of every word of a demand, in iteration 0."""
    moves = found.transfers
    for recipient, transfer in enumerate(moves.transfer_of_recipient.tolist()):
        for word in range(int(moves.words[transfer])):
            yield (
                int(moves.source[transfer]),
                int(moves.address[transfer]) + 4 * word,
                int(moves.receiver[recipient]),
                int(moves.receiver_address[recipient]) + 4 * word,
            )


@given(random_phases(largest=8))
def test_joining_and_cutting_keep_every_word(phase: RandomPhase) -> None:
    wanted = [
        (transfer.source, transfer.address + 4 * word, tile, address + 4 * word)
        for transfer in phase.transfers
        for tile, address, _ in transfer.recipients
        for word in range(transfer.words)
    ]
    found = demand(phase.transfers)
    assert sorted(words_of(found)) == sorted(wanted)
    assert int(found.transfers.words.max(initial=0)) <= LONGEST_TRANSFER


@given(random_phases(largest=12) | random_phases(largest=12, moving=True))
def test_dependences_are_pairs_that_meet_in_a_byte_and_all_those_follow(phase: RandomPhase) -> None:
    found = demand(phase.transfers, phase.iterations)
    moves, data = found.transfers, found.dependences
    accesses: list[tuple[int, int, int, int, int, int]] = []
    for transfer in range(len(moves.source)):
        words = int(moves.words[transfer])
        accesses.append(
            (
                transfer,
                SOURCE_SIDE,
                int(moves.source[transfer]),
                int(moves.address[transfer]),
                int(moves.stride[transfer]),
                words,
            )
        )
        for recipient in range(
            int(moves.first_recipient[transfer]), int(moves.first_recipient[transfer + 1])
        ):
            tile, address = int(moves.receiver[recipient]), int(moves.receiver_address[recipient])
            accesses.append(
                (transfer, recipient, tile, address, int(moves.receiver_stride[recipient]), words)
            )
    expected: set[tuple[int, int, int, int]] = set()
    for first, side, tile, address, stride, words in accesses:
        for second, other_side, other_tile, other_address, other_stride, other_words in accesses:
            is_write = side != SOURCE_SIDE or other_side != SOURCE_SIDE
            if first >= second or tile != other_tile or not is_write:
                continue
            for iteration in range(phase.iterations):
                begin, other_begin = address + iteration * stride, other_address + iteration * other_stride
                if begin < other_begin + 4 * other_words and other_begin < begin + 4 * words:
                    expected.add((second, first, other_side, side))
    columns = (data.after, data.before, data.after_recipient, data.before_recipient)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert set(rows) <= expected
    assert [row[:2] for row in rows] == sorted(row[:2] for row in rows)
    assert len(set(rows)) == len(rows)
    waits_for: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for after, before, after_side, before_side in rows:  # in order of ``after``: all before are complete
        own = waits_for.setdefault((after, after_side), set())
        own |= {(before, before_side)} | waits_for.get((before, before_side), set())
    followed = {
        (after, before, after_side, before_side)
        for (after, after_side), others in waits_for.items()
        for before, before_side in others
    }
    assert expected <= followed


def test_dependences_of_many_accesses_to_one_byte_are_few() -> None:
    """Of n writes to one place n - 1 pairs; each of n reads between two writes is in two."""
    writes = [
        Transfer(source=4 * number, address=0x60000, words=8, recipients=((5, 0xA0000, 0),))
        for number in range(1, 40)
    ]
    reads = [
        Transfer(source=5, address=0xA0000, words=2, recipients=((9, 0xB0000 + 8 * number, 0),))
        for number in range(30)
    ]
    assert len(demand(writes).dependences.after) == len(writes) - 1
    assert len(demand([writes[0], *reads, writes[1]]).dependences.after) == 2 * len(reads)


def program_with_repeat() -> tuple[LowProgram, Placement, StepId, StepId]:
    """Tile 0 sends a buffer to tiles 1 and 2; in a Repeat of three, tile 3 sends a member each to tile 1."""
    builder = LowBuilder(4)
    node = builder.node("layer")
    source = builder.buffer(tile=0, byte_count=256, alignment=8, node=node)
    copies = [builder.buffer(tile=tile, byte_count=256, alignment=8, node=node) for tile in (1, 2)]
    members = [builder.buffer(tile=3, byte_count=64, alignment=8, node=node) for _ in range(3)]
    sequence = builder.sequence(members)
    landing = builder.buffer(tile=1, byte_count=128, alignment=8, node=node)
    outside = builder.exchange_step()
    builder.transfer(
        outside,
        source=AddressOperand(buffer=source, displacement=64),
        byte_count=128,
        recipients=[AddressOperand(buffer=copy, displacement=128) for copy in copies],
        node=node,
    )
    with builder.repeat(3):
        inside = builder.exchange_step()
        builder.transfer(
            inside,
            source=AddressOperand(buffer=members[0], sequence=sequence),
            byte_count=64,
            recipients=[AddressOperand(buffer=landing, displacement=64)],
            node=node,
        )
    addresses = [0x60000, 0x70000, 0x71000, 0x80000, 0x80040, 0x80080, 0xA0000]
    placement = Placement(address=np.array(addresses, dtype=np.int64), stride=np.array([64], dtype=np.int64))
    return builder.finish(), placement, outside, inside


def test_the_demand_of_a_step_has_physical_tiles_addresses_and_strides() -> None:
    program, placement, outside, inside = program_with_repeat()
    physical = physical_tiles(np.array([700, 1, 46, 0]))
    assert exchange_steps(program) == (outside, inside)
    first = demand_of_step(program, placement, outside, physical)
    assert first.iterations == 1
    assert first.transfers.source.tolist() == [1117]
    assert first.transfers.address.tolist() == [0x60040]
    assert first.transfers.words.tolist() == [32]
    assert first.transfers.receiver.tolist() == [2, 1409]
    assert first.transfers.receiver_address.tolist() == [0x70080, 0x71080]
    assert not first.transfers.stride.any()
    second = demand_of_step(program, placement, inside, physical)
    assert second.iterations == 3
    assert second.transfers.row.tolist() == [1]
    assert second.transfers.stride.tolist() == [64]
    assert second.transfers.receiver_stride.tolist() == [0]
    assert second.nodes == ("layer",)


def test_every_phase_of_a_program_is_scheduled_and_delivers() -> None:
    program, placement, outside, inside = program_with_repeat()
    physical = physical_tiles(np.array([700, 1, 46, 0]))
    exchange = schedule_program(program, placement, physical)
    assert list(exchange.phases) == [outside, inside]
    assert exchange.phases[inside].patches.values.shape == (1, 3)
    assert not exchange.phases[outside].patches.word.size
    assert not check_program(program, placement, physical, exchange)


def test_rows_of_another_placement_are_found_out() -> None:
    program, placement, outside, inside = program_with_repeat()
    physical = physical_tiles(np.array([700, 1, 46, 0]))
    exchange = schedule_program(program, placement, physical)
    moved = Placement(address=placement.address + 8, stride=placement.stride)
    assert list(check_program(program, moved, physical, exchange)) == [outside, inside]
    stretched = Placement(address=placement.address, stride=placement.stride * 2)
    assert list(check_program(program, stretched, physical, exchange)) == [inside]


def test_a_step_that_is_no_exchange_is_refused() -> None:
    program, placement, _, _ = program_with_repeat()
    with pytest.raises(ValueError, match="step 1 is no exchange step"):
        demand_of_step(program, placement, StepId(1), physical_tiles(np.arange(4)))


def test_transfers_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="reaches one tile twice"):
        demand([line(0, 0, 5, 5)])
    with pytest.raises(ValueError, match="needs a recipient"):
        demand([line(0, 0)])
    with pytest.raises(ValueError, match="needs a word"):
        demand([line(0, 0, 5, words=0)])
    outside = Transfer(source=0, address=0xE7FFC, words=1, recipients=((1, 0x60000, 0),), stride=4)
    with pytest.raises(ValueError, match="not words of SRAM in every iteration"):
        demand([outside], iterations=2)
    assert len(demand([outside]).nodes) == len(NODES)
