"""The machine code of every kernel as text, so that a change of it is seen.

``python -m tests.kernels.test_listings`` writes the files anew.
"""

from pathlib import Path

import pytest

from compiler.isa.printing import print_program
from compiler.isa.text import parse
from compiler.kernels.objects import program_of
from compiler.kernels.symbols import parse_symbol
from compiler.target.isa_decisions import our_decisions
from tests.kernels.kernels import EVERY_KERNEL

FOLDER = Path(__file__).parent / "listings"


def listing(symbol: str) -> str:
    """Assembly text of a kernel."""
    return print_program(program_of(parse_symbol(symbol), our_decisions()))


@pytest.mark.parametrize("symbol", EVERY_KERNEL)
def test_listings(symbol: str) -> None:
    text = listing(symbol)
    assert (FOLDER / f"{symbol}.s").read_text() == text, (
        f"the code of {symbol} changed: run python -m tests.kernels.test_listings if that is wanted"
    )
    assert parse(text, symbol) == program_of(parse_symbol(symbol), our_decisions())


def test_there_are_no_listings_of_other_kernels() -> None:
    assert sorted(path.stem for path in FOLDER.iterdir()) == sorted(EVERY_KERNEL)


if __name__ == "__main__":
    for path in FOLDER.iterdir():
        path.unlink()
    for name in EVERY_KERNEL:
        (FOLDER / f"{name}.s").write_text(listing(name))
