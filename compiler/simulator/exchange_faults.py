"""What can be wrong with an exchange phase: one value for each fault, with its text.

A fault names the tile that hardware would stop, when on that tile's row clock, and what is needed to find the
cause. Of each kind a phase reports the first on each tile. Tiles are physical, addresses are bytes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import assert_never, final

from compiler.target.fabric import ROW_AFTER_LAST_WRITE
from compiler.target.units import Address, Events, PhysicalTile


@final
class ExchangeFaultKind(Enum):
    """The kinds, in the order in which a phase is checked; the value is the word of reports.

    Kinds up to ``PAYLOAD_CUT`` concern when things happen; a phase with one of them has no further meaning,
    and nothing else is looked for. The next five concern addresses. ``UNINITIALISED_SEND`` concerns data.
    """

    WORKERS_ACTIVE = "workers active"
    CONTROL_PAIR = "control pair"
    OVERLAPPING_SENDS = "overlapping sends"
    BORROWED_LANE = "borrowed lane"
    PAIR_MUX_CONFLICT = "pair mux conflict"
    LATE_PAIR_MUX = "late pair mux"
    INCOMPLETE_PAIR = "incomplete pair"
    ISOLATED_LOOPBACK = "isolated loopback"
    FORMAT_MISMATCH = "format mismatch"
    FORMAT_CHANGE = "format change"
    OVERLAPPING_RECEIVES = "overlapping receives"
    POINTER_UNSET = "pointer unset"
    PAYLOAD_CUT = "payload cut"
    SEND_ADDRESS = "send address"
    RECEIVE_ADDRESS = "receive address"
    SEND_RECEIVE_ELEMENT = "send and receive in one element"
    SEND_ROW_ELEMENT = "send and row in one element"
    RECEIVE_ROW_ELEMENT = "receive and row in one element"
    UNINITIALISED_SEND = "uninitialised send"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeFault:
    """One fault.

    Args:
        kind: what is wrong.
        tile: on which tile.
        event: when, on the tile's row clock. Sends are timed by their slot, everything else by its event.
        word: index in the row of the instruction that is to blame; None when there is no single one, or when
            the row has no words.
        other: the other tile: the partner, or the source of an item.
        address: where in memory.
        other_address: what collides with it there.
        horizon: the end of the row, where it matters.
    """

    kind: ExchangeFaultKind
    tile: PhysicalTile
    event: Events
    word: int | None = None
    other: PhysicalTile | None = None
    address: Address | None = None
    other_address: Address | None = None
    horizon: Events | None = None

    def __str__(self) -> str:
        """One sentence without a full stop."""
        at = f"tile {self.tile}, event {self.event}"
        if self.word is not None:
            at += f", row word {self.word}"
        return f"{at}: {self._text()}"

    def _text(self) -> str:
        match self.kind:
            case ExchangeFaultKind.WORKERS_ACTIVE:
                return "workers run while the tile exchanges"
            case ExchangeFaultKind.CONTROL_PAIR:
                return "two controls share an event, which only a pointer and the tile's own multiplexer may"
            case ExchangeFaultKind.OVERLAPPING_SENDS:
                return f"paired items are sent while the partner {self.other} sends paired items"
            case ExchangeFaultKind.BORROWED_LANE:
                return f"an item is sent while paired items of the partner {self.other} use the transmit lane"
            case ExchangeFaultKind.PAIR_MUX_CONFLICT:
                return f"the multiplexer of the pair is in use by the partner {self.other} too"
            case ExchangeFaultKind.LATE_PAIR_MUX:
                return (
                    f"the multiplexer of the pair selects tile {self.other},"
                    " whose items pass the partner first: the partner must select it"
                )
            case ExchangeFaultKind.INCOMPLETE_PAIR:
                return (
                    f"a paired item of tile {self.other} arrives, but the partner takes no part in the phase"
                )
            case ExchangeFaultKind.ISOLATED_LOOPBACK:
                return "a stream reaches nobody but its own sender, which hardware does not deliver"
            case ExchangeFaultKind.FORMAT_MISMATCH:
                return f"an item of tile {self.other} arrives in another format than the one that is set"
            case ExchangeFaultKind.FORMAT_CHANGE:
                return f"the format changes before a word of tile {self.other} has been written"
            case ExchangeFaultKind.OVERLAPPING_RECEIVES:
                return "two items are to be written at once"
            case ExchangeFaultKind.POINTER_UNSET:
                return f"a word of tile {self.other} arrives while no pointer is set"
            case ExchangeFaultKind.PAYLOAD_CUT:
                return (
                    f"an item of tile {self.other} is written, which {ROW_AFTER_LAST_WRITE} more events must"
                    f" follow, but the row ends at event {self.horizon}"
                )
            case ExchangeFaultKind.SEND_ADDRESS:
                return f"an item is read at {self.address:#x}, outside SRAM or misaligned"
            case ExchangeFaultKind.RECEIVE_ADDRESS:
                return (
                    f"an item of tile {self.other} is written at {self.address:#x},"
                    " outside SRAM or misaligned"
                )
            case ExchangeFaultKind.SEND_RECEIVE_ELEMENT:
                return (
                    f"a stream is read from {self.address:#x} while a payload is written"
                    f" to {self.other_address:#x} in the same memory element"
                )
            case ExchangeFaultKind.SEND_ROW_ELEMENT:
                return (
                    f"a stream is read from {self.address:#x}, in a memory element"
                    f" of the row at {self.other_address:#x}"
                )
            case ExchangeFaultKind.RECEIVE_ROW_ELEMENT:
                return (
                    f"a payload is written to {self.address:#x}, in a memory element"
                    f" of the row at {self.other_address:#x}"
                )
            case ExchangeFaultKind.UNINITIALISED_SEND:
                return f"the word at {self.address:#x} is sent, but nothing was ever written there"
        assert_never(self.kind)
