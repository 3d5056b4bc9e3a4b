"""The ledger command: every candidate in a line, each number with its kind."""

from compiler.evaluation.ledger import Entry, Fate, ledger_of_plain, plain_ledger
from pipeline.cli_ledger import line_of

LEDGER = (
    Entry(
        round=0,
        change="as planned",
        fate=Fate.BASELINE,
        estimated_cycles=160_428,
        scheduled_cycles=166_145,
    ),
    Entry(round=1, change="y: 4x4x1", fate=Fate.REFUSED, reason="no kernel does it"),
    Entry(
        round=1, change="y: 46x2x16", fate=Fate.ACCEPTED, estimated_cycles=136_410, scheduled_cycles=140_685
    ),
)


def test_a_line_says_round_fate_and_cycles_by_kind() -> None:
    assert [line_of(entry) for entry in LEDGER] == [
        "round 0: baseline, 160,428 cycles (estimated), 166,145 cycles (scheduled): as planned",
        "round 1: cannot be built: y: 4x4x1; no kernel does it",
        "round 1: accepted, 136,410 cycles (estimated), 140,685 cycles (scheduled): y: 46x2x16",
    ]


def test_a_ledger_is_kept_as_plain_values() -> None:
    assert ledger_of_plain(plain_ledger(LEDGER)) == LEDGER
