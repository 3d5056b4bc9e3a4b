"""The assembler's reader: from text to a :class:`Program`.

The syntax is that of the vendor's assembler as far as it is public. A statement is a label, a directive, an
instruction or a bundle ``{ main ; aux }``; ``lexer.py`` describes words and comments, ``select.py`` the
spellings of instructions. Worth knowing:

* A branch target that is a number counts **words**, one that is a symbol is a byte address. After our own
  directive ``.byte_branches`` numbers count bytes, as listings show them.
* ``.worker`` and ``.supervisor`` say for which kind of context the code that follows is.
* A section begins with ``.section NAME, "FLAGS"`` where the flags are those of :class:`SectionKind`;
  ``.text``, ``.data``, ``.rodata`` and ``.bss`` are short forms.
* The name of a symbol or section can stand in quotation marks, and has to when it holds more than letters,
  digits, ``_``, ``.`` and ``$``. The marks are not part of it. GNU's assembler does the same.
* ``sym@abs18@s2`` and the like ask for a relocation type, ``?name`` is a slot of a template.

Refusals are ``InvalidInput`` with file, line and column as their subject.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, final

from compiler.isa import rules
from compiler.isa.expressions import (
    Binary,
    Expression,
    Place,
    Relocated,
    Slot,
    Symbol,
    Value,
    check_name,
    evaluate,
)
from compiler.isa.lexer import Source, Token, TokenKind, refusal_at
from compiler.isa.program import (
    MOST_SECTIONS,
    Align,
    Bundle,
    Data,
    Declaration,
    Equate,
    Instruction,
    Item,
    Label,
    Permission,
    Program,
    Section,
    SectionKind,
    Space,
)
from compiler.isa.registers import Arithmetic, read_register
from compiler.isa.relocations import BY_SPELLING
from compiler.isa.select import Argument, Suffixed, select
from compiler.target.control_registers import UPPER_REGISTERS, SupervisorRegister, WorkerRegister
from compiler.target.instructions import Mode, OperandKind, instruction_table
from compiler.target.isa_decisions import our_decisions
from compiler.target.registers import COMMON_WEIGHT_NAMES, REGISTER_NAMES

SHORT_SECTIONS: Final[Mapping[str, SectionKind]] = {
    ".text": SectionKind.CODE,
    ".data": SectionKind.DATA,
    ".rodata": SectionKind.CONSTANTS,
    ".bss": SectionKind.ZEROS,
}
_DATA_WIDTHS: Final[Mapping[str, int]] = {
    ".byte": 1,
    ".half": 2,
    ".short": 2,
    ".word": 4,
    ".long": 4,
    ".quad": 8,
}
_BINDING: Final[Mapping[str, int]] = {
    operator: level
    for level, operators in enumerate((("|",), ("^",), ("&",), ("<<", ">>"), ("+", "-"), ("*", "/")))
    for operator in operators
}
"""How tightly a binary operator binds, the loosest with 0."""
_SUFFIX_MARKS: Final = frozenset({"+=", "++", ">>", "@", ":BL", ":BU", ":B"})
_CONTROL_ACCESS: Final = frozenset({"get", "put", "uget", "uput"})
_BRANCHES: Final = frozenset(
    form.mnemonic
    for form in instruction_table().rows
    if any(operand.kind is OperandKind.TARGET for operand in form.operands)
)
_LONGEST_EXPRESSION: Final = 100
_LINE: Final = "correct this line"
_OPEN_SECTION = tuple[SectionKind, list[Item]]


@final
class _Parser:
    """One pass over the tokens of a text."""

    def __init__(
        self, source: Source, mode: Mode, constants: Mapping[str, int], *, byte_branches: bool
    ) -> None:
        self.source: Final = source
        self.tokens: Final = list(source.tokens())
        self.position = 0
        self.mode = mode
        self.byte_branches = byte_branches
        self.constants: Final = constants
        self.sections: Final[dict[str, _OPEN_SECTION]] = {}
        self.section: str | None = None
        self.declarations: Final[dict[str, Declaration]] = {}
        self.equates: Final[dict[str, int]] = {}
        self.labels: Final[set[str]] = set()
        self.permissions: Final[set[Permission]] = set()
        self.here: str | None = None
        self.here_count = 0
        self.names: Final = {token.text for token in self.tokens if token.text.startswith(".Lhere")}
        self.terms = 0

    # Tokens

    @property
    def token(self) -> Token:
        """The next token."""
        return self.tokens[self.position]

    def advance(self) -> Token:
        """Take the next token; the last one, an end, stays."""
        token = self.tokens[self.position]
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def accept(self, mark: str) -> bool:
        """Take the next token if it is this mark."""
        token = self.token
        if token.kind is TokenKind.MARK and token.text == mark:
            self.advance()
            return True
        return False

    def expect_name(self, what: str) -> Token:
        """Take a name."""
        if self.token.kind is not TokenKind.NAME:
            raise self.refusal(self.token, f"{what} is missing before {self.shown(self.token)}")
        return self.advance()

    def expect_symbol(self, what: str) -> Token:
        """Take a name that a symbol or section can have, in quotation marks or without."""
        token = self.advance() if self.token.kind is TokenKind.STRING else self.expect_name(what)
        self.check_name(token)
        return token

    def check_name(self, token: Token) -> None:
        """Refuse a name that means something else."""
        try:
            check_name(token.text)
        except ValueError as refusal:
            raise self.refusal(token, str(refusal), "use another name") from None

    def expect_comma(self) -> None:
        """Take a comma."""
        if not self.accept(","):
            raise self.refusal(self.token, f"a comma is missing before {self.shown(self.token)}")

    @staticmethod
    def shown(token: Token) -> str:
        """A token for messages."""
        return "the end of the statement" if token.kind is TokenKind.END else repr(token.text)

    def refusal(self, token: Token, message: str, next_step: str = _LINE) -> Exception:
        """An error about a token."""
        return self.source.refusal(token.offset, message, next_step)

    # Statements

    def run(self) -> Program:
        """Parse everything."""
        while self.position < len(self.tokens) - 1:
            if self.token.kind is TokenKind.END:
                self.advance()
            elif self.accept("{"):
                self.bundle()
            else:
                self.statement()
        return Program(
            sections=tuple(
                Section(name=name, kind=kind, items=tuple(items))
                for name, (kind, items) in self.sections.items()
            ),
            declarations=tuple(self.declarations.values()),
            equates=tuple(Equate(name=name, value=value) for name, value in self.equates.items()),
            permissions=tuple(permission for permission in Permission if permission in self.permissions),
        )

    def statement(self) -> None:
        """A label, directive or instruction."""
        first = self.token
        if first.kind is TokenKind.MARK and first.text == "}":
            raise self.refusal(first, "'}' ends no bundle", "put '{' before the first half")
        self.here = None
        if first.kind is TokenKind.STRING:
            name = self.expect_symbol("a label")
            if not (self.token.kind is TokenKind.MARK and self.token.text == ":"):
                raise self.refusal(first, f"':' is missing behind the label \"{first.text}\"")
        else:
            name = self.expect_name("a label, directive or instruction")
        if self.accept(":"):
            self.define(name)
            self.append(Label(name=name.text, place=self.source.place(name.offset)))
            return
        if name.text.startswith("."):
            self.directive(name)
        else:
            for instruction in self.instruction(name):
                self.append(instruction)
        self.end_of_statement()

    def end_of_statement(self) -> None:
        """Nothing may follow."""
        token = self.token
        if token.kind is TokenKind.MARK and token.text == "}":
            raise self.refusal(token, "'}' ends no bundle", "put '{' before the first half")
        if token.kind is not TokenKind.END:
            raise self.refusal(token, f"{self.shown(token)} follows a complete statement")

    def bundle(self) -> None:
        """``{ main ; aux }``, after the brace."""
        start = self.tokens[self.position - 1]
        halves: list[Instruction] = []
        self.here = None
        while not self.accept("}"):
            token = self.token
            if token.kind is TokenKind.END:
                if self.position == len(self.tokens) - 1:
                    raise self.refusal(start, "this bundle has no end", "put '}' after its second half")
                self.advance()
                continue
            if token.kind is TokenKind.MARK and token.text == "{":
                raise self.refusal(
                    token, "a bundle begins inside a bundle", "put '}' after the second half of the first"
                )
            name = self.expect_name("an instruction")
            found = self.instruction(name)
            if len(found) != 1:
                raise self.refusal(
                    name, f"{name.text} is {len(found)} instructions here and cannot be in a bundle"
                )
            halves += found
        if len(halves) != 2:
            raise self.refusal(
                start,
                f"a bundle has two instructions, not {len(halves)}",
                "use nop or fnop for the other half",
            )
        self.append(Bundle(main=halves[0], aux=halves[1]))
        self.end_of_statement()

    def define(self, name: Token) -> None:
        """Record a symbol that the text defines."""
        self.check_name(name)
        if name.text in self.constants or name.text in COMMON_WEIGHT_NAMES:
            raise self.refusal(name, f"{name.text} has a meaning already", "use another name")
        if name.text in self.labels or name.text in self.equates or name.text in self.sections:
            raise self.refusal(name, f"symbol {name.text} is defined twice", "rename one of the two")
        self.labels.add(name.text)

    def append(self, item: Item) -> None:
        """Add to the current section."""
        if self.section is None:
            self.open_section(".text", SectionKind.CODE)
        assert self.section is not None
        self.sections[self.section][1].append(item)

    def open_section(self, name: str, kind: SectionKind, token: Token | None = None) -> None:
        """Begin or continue a section."""
        if name in self.labels or name in self.equates:
            raise self.refusal(
                token or self.token,
                f"{name} is the name of a symbol already",
                "use another name for the section",
            )
        if name not in self.sections and len(self.sections) == MOST_SECTIONS:
            raise self.refusal(
                token or self.token, f"a program has at most {MOST_SECTIONS:,} sections", "use fewer sections"
            )
        known, _ = self.sections.setdefault(name, (kind, []))
        if known is not kind:
            raise self.refusal(
                token or self.token,
                f'section {name} has the flags "{known.value}" already, not "{kind.value}"',
                "use one set of flags, or another name",
            )
        self.section = name

    # Directives

    def directive(self, name: Token) -> None:
        """A statement that begins with a dot."""
        place = self.source.place(name.offset)
        text = name.text
        if text in _DATA_WIDTHS:
            self.data(name, _DATA_WIDTHS[text], place)
        elif text in SHORT_SECTIONS:
            self.open_section(text, SHORT_SECTIONS[text], name)
        elif text[1:] in {permission.value for permission in Permission}:
            self.permissions.add(Permission(text[1:]))
        else:
            self.other_directive(name, place)

    def other_directive(self, name: Token, place: str) -> None:
        """The directives that have a shape of their own."""
        match name.text:
            case ".worker":
                self.mode = Mode.WORKER
            case ".supervisor":
                self.mode = Mode.SUPERVISOR
            case ".byte_branches":
                self.byte_branches = True
            case ".error_on_invalid_bundles":
                self.permissions.discard(Permission.INVALID_BUNDLES)
            case ".section":
                self.section_directive(name)
            case ".globl" | ".global":
                self.declare(is_global=True)
            case ".hidden":
                self.declare(is_hidden=True)
            case ".type":
                self.type_directive()
            case ".size":
                symbol = self.expect_symbol("a symbol").text
                self.expect_comma()
                known = self.declarations.get(symbol, Declaration(name=symbol))
                self.declarations[symbol] = replace(known, size=self.value(), place=place)
            case ".set" | ".equ":
                symbol = self.expect_symbol("a symbol")
                self.expect_comma()
                value = self.number("the value of an absolute symbol")
                self.define(symbol)
                self.labels.discard(symbol.text)
                if not -(1 << 31) <= value < 1 << 32:
                    raise self.refusal(symbol, f"the value {value} does not fit 32 bits")
                self.equates[symbol.text] = value
            case ".space" | ".zero" | ".skip":
                self.append(self.made(name, Space, size=self.number("a number of bytes"), place=place))
            case ".align" | ".balign":
                boundary = self.number("an alignment in bytes")
                self.append(self.made(name, Align, boundary=boundary, place=place))
            case ".p2align":
                power = self.number("a power of two")
                if not 0 <= power < 32:
                    raise self.refusal(name, f"alignment 2**{power} does not exist")
                self.append(self.made(name, Align, boundary=1 << power, place=place))
            case _:
                raise self.refusal(name, f"there is no directive {name.text}", "correct the spelling")

    def made(self, token: Token, item: type[Space] | type[Align], **fields: int | str) -> Item:
        """An item whose own constructor checks it."""
        try:
            return item(**fields)  # pyright: ignore[reportArgumentType]  # one call for two constructors
        except ValueError as refusal:
            raise self.refusal(token, str(refusal)) from None

    def section_directive(self, start: Token) -> None:
        """``.section NAME, "FLAGS", @progbits``; flags may be left out for the conventional names."""
        name = self.expect_symbol("the name of a section").text
        kind = next(
            (
                kind
                for prefix, kind in SHORT_SECTIONS.items()
                if name == prefix or name.startswith(prefix + ".")
            ),
            SectionKind.DATA,
        )
        if name in self.sections:
            kind = self.sections[name][0]
        if self.accept(","):
            flags = self.token
            if flags.kind is not TokenKind.STRING:
                raise self.refusal(flags, "the flags of a section are a string")
            self.advance()
            zeros = False
            if self.accept(","):
                content = self.advance()
                if content.text not in ("@progbits", "@nobits"):
                    raise self.refusal(content, "a section is @progbits or @nobits")
                zeros = content.text == "@nobits"
            known = {kind.value: kind for kind in SectionKind}
            kind = known.get("".join(sorted(flags.text)) + ("z" if zeros else "")) or known.get(flags.text)
            if kind is None:
                raise self.refusal(flags, f'a section with the flags "{flags.text}" does not exist')
        self.open_section(name, kind, start)

    def declare(self, *, is_global: bool = False, is_hidden: bool = False) -> None:
        """One or more symbols that are global or hidden."""
        while True:
            name = self.expect_symbol("a symbol").text
            known = self.declarations.get(name, Declaration(name=name))
            self.declarations[name] = replace(
                known, is_global=known.is_global or is_global, is_hidden=known.is_hidden or is_hidden
            )
            if not self.accept(","):
                return

    def type_directive(self) -> None:
        """``.type NAME, @function``."""
        name = self.expect_symbol("a symbol").text
        self.expect_comma()
        kind = self.advance()
        if kind.text not in ("@function", "@object"):
            raise self.refusal(kind, "a symbol is of type @function or @object")
        known = self.declarations.get(name, Declaration(name=name))
        self.declarations[name] = replace(known, is_function=kind.text == "@function")

    def data(self, start: Token, width: int, place: str) -> None:
        """Numbers in memory."""
        values: list[Value] = []
        while True:
            values.append(self.value())
            if not self.accept(","):
                break
        try:
            self.append(Data(width=width, values=tuple(values), place=place))
        except ValueError as refusal:
            raise self.refusal(start, str(refusal)) from None

    def number(self, what: str) -> int:
        """An expression that is a number here."""
        token = self.token
        value = self.value()
        known = value if isinstance(value, int) else self.known(value)
        if known is None:
            raise self.refusal(token, f"{what} must be a number that is known here")
        return known

    # Instructions

    def instruction(self, name: Token) -> list[Instruction]:
        """The instruction, or those of a macro, that begins with this mnemonic."""
        arguments: list[Argument] = []
        names: list[Token] = [name]
        if not self.at_end_of_instruction():
            while True:
                names.append(self.token)
                arguments.append(self.argument(name.text))
                if not self.accept(","):
                    break
            if not self.at_end_of_instruction():
                raise self.refusal(self.token, f"a comma is missing before {self.shown(self.token)}")
        if name.text in _CONTROL_ACCESS:
            self.number_control_registers(name.text, arguments, names)
        if name.text in _BRANCHES and arguments and isinstance(arguments[-1], int) and not self.byte_branches:
            arguments[-1] *= 4
        try:
            choices = select(name.text, arguments, self.known)
        except ValueError as refusal:
            raise self.refusal(name, str(refusal)) from None
        place = self.source.place(name.offset)
        return [
            Instruction(form=form, operands=operands, mode=self.mode, place=place)
            for form, operands in choices
        ]

    def at_end_of_instruction(self) -> bool:
        """Whether no operand follows."""
        return self.token.kind is TokenKind.END or self.token.text == "}"

    def argument(self, mnemonic: str) -> Argument:
        """A register with its suffix, or an expression."""
        token = self.token
        if token.kind is TokenKind.NAME and token.text.startswith("$"):
            try:
                register = read_register(token.text)
            except ValueError as refusal:
                raise self.refusal(token, f"{mnemonic}: {refusal}") from None
            if register is not None:
                self.advance()
                suffix = self.token
                if suffix.kind is TokenKind.MARK and suffix.text in _SUFFIX_MARKS:
                    self.advance()
                    return Suffixed(register, suffix.text)
                return Suffixed(register, "")
        return self.value()

    def number_control_registers(
        self, mnemonic: str, arguments: list[Argument], names: Sequence[Token]
    ) -> None:
        """Replace the name of a control register by the number that the instruction takes."""
        arithmetic = any(
            isinstance(argument, Suffixed) and isinstance(argument.register, Arithmetic)
            for argument in arguments
        )
        registers = WorkerRegister if self.mode is Mode.WORKER else SupervisorRegister
        for index, argument in enumerate(arguments):
            if not isinstance(argument, Symbol) or not argument.name.startswith("$"):
                continue
            name = argument.name.removeprefix("$")
            if name not in registers.__members__:
                raise self.refusal(
                    names[index + 1],
                    f"{mnemonic}: a {self.mode.value} has no control register {argument.name}",
                    "check the name and the directive .worker or .supervisor above",
                )
            number = int(registers[name])
            arguments[index] = number - UPPER_REGISTERS if arithmetic else number

    def known(self, value: Expression) -> int | None:
        """The number that an expression is already."""
        try:
            term = evaluate(value, self.known_symbol)
        except ValueError:
            return None
        return term.addend if term.symbol is None and term.relocation is None else None

    def known_symbol(self, name: str) -> Place | int | None:
        """The value of an absolute symbol."""
        return self.equates.get(name)

    # Expressions

    def value(self) -> Value:
        """A number or expression of its own."""
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if self.token.kind is TokenKind.NUMBER and (following.kind is TokenKind.END or following.text == ","):
            return self.advance().value  # nearly every operand
        self.terms = 0
        return self.expression()

    def expression(self, loosest: int = 0) -> Value:
        """Terms joined by operators that bind at least this tightly; those of one level from the left."""
        left = self.unary()
        while self.token.kind is TokenKind.MARK and _BINDING.get(self.token.text, -1) >= loosest:
            operator = self.advance()
            right = self.expression(_BINDING[operator.text] + 1)
            joined = Binary(operator.text, left, right)
            if isinstance(left, int) and isinstance(right, int):
                try:
                    left = evaluate(joined, self.known_symbol).addend
                except ValueError as refusal:
                    raise self.refusal(operator, str(refusal)) from None
            else:
                left = joined
        return left

    def unary(self) -> Value:
        """A sign, or a primary with the relocations behind it."""
        self.terms += 1
        if self.terms > _LONGEST_EXPRESSION:
            raise self.refusal(self.token, f"an expression has at most {_LONGEST_EXPRESSION} terms")
        if self.accept("-"):
            token = self.token
            if token.kind is TokenKind.FLOAT:
                self.advance()
                return token.value ^ 1 << (token.width - 1)
            value = self.unary()
            return -value if isinstance(value, int) else Binary("-", 0, value)
        if self.accept("+"):
            return self.unary()
        if self.accept("~"):
            value = self.unary()
            return ~value if isinstance(value, int) else Binary("^", value, -1)
        value = self.primary()
        spelling = ""
        start = self.token
        while (
            self.token.kind is TokenKind.MARK and self.token.text.startswith("@") and self.token.text != "@"
        ):
            spelling += self.advance().text[1:]
        if spelling:
            kind = BY_SPELLING.get(spelling)
            if kind is None:
                raise self.refusal(
                    start, f"{start.text} begins no relocation", "use one of the documented spellings"
                )
            return Relocated(value, kind.name)
        return value

    def primary(self) -> Value:
        """A number, name, or parenthesis."""
        token = self.advance()
        match token.kind:
            case TokenKind.NUMBER | TokenKind.FLOAT:
                return token.value
            case TokenKind.NAME:
                return self.named(token)
            case TokenKind.STRING:
                self.check_name(token)
                return self.named(token)
            case TokenKind.MARK if token.text.startswith("?"):
                return Slot(token.text[1:])
            case TokenKind.MARK if token.text == "(":
                value = self.expression()
                if not self.accept(")"):
                    raise self.refusal(token, "this parenthesis is not closed", "add ')'")
                return value
            case _:
                raise self.refusal(token, f"an operand is missing before {self.shown(token)}")

    def named(self, token: Token) -> Value:
        """A constant, the current place, or a symbol."""
        if token.text in self.constants:
            return self.constants[token.text]
        if token.text in COMMON_WEIGHT_NAMES:
            return COMMON_WEIGHT_NAMES[token.text]
        if token.text in REGISTER_NAMES:
            raise self.refusal(token, f"the register {token.text} cannot be part of a number")
        if token.text != ".":
            self.check_name(token)
            return Symbol(token.text)
        if self.here is None:
            while (name := f".Lhere{self.here_count}") in self.names:
                self.here_count += 1
            self.here_count += 1
            self.here = name
            self.labels.add(self.here)
            self.append(Label(name=self.here, place=self.source.place(token.offset)))
        return Symbol(self.here)


def parse(
    text: str,
    source: str = "<text>",
    *,
    mode: Mode = Mode.WORKER,
    byte_branches: bool = False,
    constants: Mapping[str, int] | None = None,
    permissions: Sequence[Permission] = (),
) -> Program:
    """Read assembly text.

    Args:
        text: the text.
        source: its name, for messages.
        mode: the kind of context before the first ``.worker`` or ``.supervisor``.
        byte_branches: numeric branch targets are byte addresses from the start.
        constants: names with a value; by default those of our decisions (``TAMP_...``).
        permissions: checks that are off from the start.

    Raises:
        InvalidInput: the text is malformed or breaks a rule of ``rules.py``.
    """
    names = our_decisions().constants if constants is None else constants
    parser = _Parser(Source(text, source), mode, names, byte_branches=byte_branches)
    parser.permissions.update(permissions)
    program = parser.run()
    for fault in rules.program_faults(program):
        if not fault.warning:
            raise refusal_at(fault.place, fault.reason, _LINE)
    return program
