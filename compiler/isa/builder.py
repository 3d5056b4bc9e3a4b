"""Writing machine code in Python: what kernels, runtime and supervisor programs are made with.

    code = Builder("gelu")
    code.section(".text.gelu", SectionKind.CODE, Mode.WORKER)
    code.label("gelu", is_global=True)
    code.emit("ld64step", a2(0), m(12), m(2), 1)
    with code.repeat(m(4)):
        code.bundle(("ld64step", a2(2), m(12), m(2), 1), ("f16v4add", a2(4), a2(2), a2(0)))
    code.emit("exitz", m(15))
    program = code.finish()

What it does not accept it refuses at once, by ``ValueError`` with the place in the code that drives it
(``module:line``) and the reason. A refusal is a bug of that code, so it is no error of the closed hierarchy;
text files of users are refused by ``text.py`` with ``InvalidInput``, by the same rules in the same words.
"""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Final, TypeAlias, TypeVar, final

from compiler.isa import rules
from compiler.isa.expressions import Expression, Symbol, Value, symbols_of
from compiler.isa.program import (
    BUNDLE,
    Align,
    Bundle,
    Data,
    Declaration,
    Instruction,
    Item,
    Label,
    Program,
    Section,
    SectionKind,
    Space,
)
from compiler.isa.registers import Main
from compiler.isa.select import FNOP, Argument, Choice, select
from compiler.target.instructions import Mode

_THIS_PACKAGE: Final = "compiler.isa."
_INFRASTRUCTURE: Final = frozenset({"contextlib"})

_Padding = TypeVar("_Padding", Data, Space, Align)

Half: TypeAlias = tuple[str | Argument, ...]
"""Half of a bundle: mnemonic and arguments."""


def _caller() -> str:
    """``module:line`` of the code that drives the builder."""
    # The only way to a caller that needs no traceback.
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if not module.startswith(_THIS_PACKAGE) and module not in _INFRASTRUCTURE:
            break
        frame = frame.f_back
    return f"{frame.f_globals.get('__name__', '?')}:{frame.f_lineno}"


@final
class _OpenSection:
    """A section that is being written."""

    def __init__(self, name: str, kind: SectionKind) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.items: list[Item] = []
        self.offset = 0


@final
class Builder:
    """Collects the items of one translation unit.

    Args:
        name: what is built, for messages.
    """

    def __init__(self, name: str) -> None:
        self.name: Final = name
        self._sections: dict[str, _OpenSection] = {}
        self._current: _OpenSection | None = None
        self._mode = Mode.WORKER
        self._declarations: dict[str, Declaration] = {}
        self._labels: set[str] = set()
        self._external: set[str] = set()
        self._used: dict[str, str] = {}
        # Inside a repeat: bundles seen so far, and how many are announced (None: by the end of the block).
        self._repeat: tuple[int, int | None] | None = None

    def section(self, name: str, kind: SectionKind, mode: Mode = Mode.WORKER) -> None:
        """Continue, or begin, a section; code that follows is for contexts of this mode."""
        self._refuse_inside_repeat("a section cannot change inside a repeat body")
        known = self._sections.setdefault(name, _OpenSection(name, kind))
        if known.kind is not kind:
            raise self._refusal(f"section {name} is {known.kind.name}, not {kind.name}")
        self._current = known
        self._mode = mode

    @property
    def offset(self) -> int:
        """Bytes written to the current section."""
        return self._open().offset

    def label(self, name: str, *, is_global: bool = False, is_function: bool = False) -> Symbol:
        """Name the address of what follows."""
        if name in self._labels or name in self._sections:
            raise self._refusal(f"label {name} is defined twice")
        self._labels.add(name)
        if is_global or is_function:
            self._declarations[name] = Declaration(name=name, is_global=is_global, is_function=is_function)
        self._append(Label(name=name, place=_caller()), 0)
        return Symbol(name)

    def external(self, name: str) -> Symbol:
        """A symbol that another object defines."""
        self._external.add(name)
        return Symbol(name)

    def emit(self, mnemonic: str, *arguments: Argument, note: str = "") -> None:
        """Append an instruction, or the instructions of a macro, that issues alone."""
        place = _caller()
        for choice in self._select(mnemonic, arguments, place):
            self._append_checked(self._instruction(choice, place, note), place)

    def bundle(self, main: Half, aux: Half, note: str = "") -> None:
        """Append a main and an aux instruction that issue together."""
        place = _caller()
        halves = [self._half(half, place, note) for half in (main, aux)]
        self._bundle(halves[0], halves[1], place)

    def _half(self, half: Half, place: str, note: str) -> Instruction:
        mnemonic, *rest = half
        if not isinstance(mnemonic, str):
            raise ValueError(f"{place}: half of a bundle begins with a mnemonic")
        arguments: list[Argument] = []
        for argument in rest:
            if isinstance(argument, str):
                raise ValueError(f"{place}: {argument!r} is no operand")
            arguments.append(argument)
        choices = self._select(mnemonic, arguments, place)
        if len(choices) != 1:
            raise ValueError(
                f"{place}: {mnemonic} is {len(choices)} instructions here and cannot be in a bundle"
            )
        return self._instruction(choices[0], place, note)

    def _bundle(self, main: Instruction, aux: Instruction, place: str) -> None:
        reason = rules.bundle_refusal(main, aux)
        if reason is not None:
            raise ValueError(f"{place}: {reason}")
        self._append_checked(Bundle(main=main, aux=aux), place)

    def data(self, width: int, *values: Value) -> None:
        """Append numbers of ``width`` bytes each."""
        item = self._made(lambda place: Data(width=width, values=values, place=place))
        for value in values:
            self._use(value, item.place)
        self._append(item, item.size)

    def space(self, size: int) -> None:
        """Append ``size`` zero bytes."""
        item = self._made(lambda place: Space(size=size, place=place))
        self._append(item, size)

    def align(self, boundary: int) -> None:
        """Pad to a multiple of ``boundary`` bytes."""
        item = self._made(lambda place: Align(boundary=boundary, place=place))
        self._append(item, -self._open().offset % boundary)

    @contextmanager
    def repeat(self, count: Main | int) -> Generator[None]:
        """A repeat whose body is what is written inside the ``with`` block.

        The repeat instruction is put where the body gets its alignment: alone in the second word of a
        slot, else in a bundle with ``fnop``.

        Args:
            count: register with the number of rounds, or the number (at most 4095).
        """
        place = _caller()
        section = self._open()
        self._refuse_inside_repeat("repeats cannot nest")
        index = len(section.items)
        choice = self._select("rpt", (count, 0), place)[0]
        start = self._instruction(choice, place, "")
        alone = section.offset % BUNDLE != 0
        if alone:
            self._append_checked(start, place)
        else:
            self._bundle(start, self._instruction(FNOP, place, ""), place)
        self._repeat = (0, None)
        yield
        bundles = self._repeat[0]
        self._repeat = None
        reason = rules.repeat_length_refusal(bundles)
        if reason is not None:
            raise ValueError(f"{place}: {reason}")
        form, operands = choice
        sized = self._instruction((form, (operands[0], bundles - 1)), place, "")
        written = section.items[index]
        section.items[index] = Bundle(main=sized, aux=written.aux) if isinstance(written, Bundle) else sized

    def finish(self) -> Program:
        """The program.

        Raises:
            ValueError: a symbol is used that is neither defined nor external, or a repeat body has no end.
        """
        self._refuse_inside_repeat("the last repeat body is not complete")
        for name, place in self._used.items():
            if name not in self._labels and name not in self._external:
                raise ValueError(f"{place}: symbol {name} is neither a label of {self.name} nor external")
        program = Program(
            sections=tuple(
                Section(name=section.name, kind=section.kind, items=tuple(section.items))
                for section in self._sections.values()
            ),
            declarations=tuple(self._declarations.values()),
        )
        for fault in rules.program_faults(program):
            raise ValueError(f"{fault.place}: {fault.reason}")
        return program

    def _open(self) -> _OpenSection:
        if self._current is None:
            raise self._refusal("nothing can be written before the first section begins")
        return self._current

    def _select(self, mnemonic: str, arguments: Sequence[Argument], place: str) -> tuple[Choice, ...]:
        try:
            return select(mnemonic, arguments, _never_known)
        except ValueError as refusal:
            raise ValueError(f"{place}: {refusal}") from None

    def _instruction(self, choice: Choice, place: str, note: str) -> Instruction:
        form, operands = choice
        instruction = Instruction(form=form, operands=operands, mode=self._mode, place=place, note=note)
        reason = rules.instruction_refusal(instruction)
        if reason is not None:
            raise ValueError(f"{place}: {reason}")
        for value in operands:
            self._use(value, place)
        return instruction

    def _use(self, value: Value, place: str) -> None:
        if not isinstance(value, int):
            for name in symbols_of(value):
                self._used.setdefault(name, place)

    def _append_checked(self, item: Instruction | Bundle, place: str) -> None:
        section = self._open()
        reason = None
        if section.kind is not SectionKind.CODE:
            reason = f"section {section.name} holds no code"
        reason = reason or rules.place_refusal(section.offset, item)
        repeat = rules.repeat_of(item)
        if reason is None and repeat is not None and self._repeat is None:
            reason = rules.repeat_start_refusal(section.offset + item.size)
        if reason is not None:
            raise ValueError(f"{place}: {reason}")
        self._append(item, item.size)
        if repeat is not None and isinstance(length := rules.body_operand(repeat), int):
            self._repeat = (0, length + 1)

    def _append(self, item: Item, size: int) -> None:
        section = self._open()
        if self._repeat is not None:
            reason = rules.repeat_item_refusal(item, size)
            if reason is not None:
                raise self._refusal(reason)
            seen, announced = self._repeat
            seen += isinstance(item, Bundle)
            self._repeat = None if seen == announced else (seen, announced)
        section.items.append(item)
        section.offset += size

    def _refuse_inside_repeat(self, reason: str) -> None:
        if self._repeat is not None:
            raise self._refusal(reason)

    def _made(self, make: Callable[[str], _Padding]) -> _Padding:
        """An item whose own constructor checks it; its refusals get a place."""
        place = _caller()
        try:
            return make(place)
        except ValueError as refusal:
            raise ValueError(f"{place}: {refusal}") from None

    def _refusal(self, reason: str) -> ValueError:
        return ValueError(f"{_caller()}: {reason}")


def _never_known(_: Expression) -> int | None:
    return None
