"""Reads the text of a graph: the inverse of ``text``.

Two passes. The first turns lines into statements; a line that is none is a fault, and with such lines nothing
further is said. The second makes values and nodes of the statements; what it cannot (an unknown operation, an
attribute that does not exist, a name that nothing defines) is a fault, and the verifier's are told with it.
Names may be used before they are defined, so that it is the verifier that speaks about order.

Lines that say no provenance get their own: file and line.
"""

import dataclasses
import difflib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast, final

from compiler.geometry.mapping import Shape
from compiler.geometry.precision import F8, F16, F32, Precision
from compiler.graph.faults import Fault, refusal
from compiler.graph.form import KINDS, MOST_DIGITS, MOST_NESTED, fits
from compiler.graph.ir import (
    Block,
    Constant,
    Fill,
    Graph,
    Node,
    Normal,
    Operation,
    Provenance,
    Repeat,
    TensorType,
    Value,
    ValueId,
)
from compiler.graph.rules import NAMES
from compiler.graph.verify import verify

_TOKEN: Final = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\]|\\.)*+")
  | (?P<number>-?(?:[0-9]+(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|inf)(?![A-Za-z0-9_./-]))
  | (?P<name>[A-Za-z_][A-Za-z0-9_./-]*)
  | (?P<mark>[][(){}:,=;])
  )""",
    re.VERBOSE | re.ASCII,
)
_REST: Final = re.compile(r"\s*(?:#.*)?\Z")
"""Nothing, or a comment, up to the end of the line."""
_SHOWN: Final = 40
"""Characters of a token that a message shows."""

Literal: TypeAlias = bool | int | float | Shape | Precision | None
"""What an attribute can be."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Argument:
    kind: str
    """input, parameter, carried, invariant or sequence."""
    value: Value
    fill: Fill | None = None
    bound: tuple[str, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """One node as written."""

    results: tuple[Value, ...]
    operation: str
    operands: tuple[str, ...] = ()
    attributes: tuple[tuple[str, Literal], ...] = ()
    count: int = 0
    body: "_Lines | None" = None


@final
@dataclass(slots=True, kw_only=True)
class _Lines:
    """One block as written."""

    arguments: list[_Argument] = dataclasses.field(default_factory=list[_Argument])
    statements: list[_Statement] = dataclasses.field(default_factory=list[_Statement])
    results: tuple[str, ...] = ()
    results_provenance: Provenance | None = None
    ended: bool = False


class _SyntaxFault(Exception):
    """A line that is no statement; the message says why."""


def parse_graph(text: str, file: str) -> Graph:
    """The graph that ``text`` is the text of.

    Args:
        text: what ``text_of_graph`` writes, or somebody by hand.
        file: what the text is called in provenance and messages.

    Raises:
        InvalidModel: it is not the text of a well-formed graph; the message lists faults with their lines.
    """
    reader = _Reader(text, file)
    name, lines = reader.read()
    if reader.faults:
        raise refusal(name, reader.faults)
    resolver = _Resolver()
    block = resolver.block(lines, "")
    inputs = sum(argument.kind == "input" for argument in lines.arguments)
    graph = Graph(
        name=name,
        block=block,
        input_count=inputs,
        fills=tuple(argument.fill for argument in lines.arguments),
    )
    # Outputs that nothing defines are missing from the graph, which then has no fault of its own.
    about_graph = bool(graph.outputs) or not lines.results
    found = verify(graph, reported=resolver.reported)
    faults = [
        *resolver.faults,
        *(fault for fault in found if about_graph or fault.provenance is not None),
    ]
    if faults:
        raise refusal(name, faults)
    return graph


@final
class _Line:
    """The tokens of one line, read from the left."""

    def __init__(self, text: str, file: str, number: int) -> None:
        self.provenance = Provenance(file=file, line=number)
        self._tokens = list(_tokens(text))
        self._next = 0

    @property
    def is_empty(self) -> bool:
        return not self._tokens

    def peek(self, ahead: int = 0) -> str:
        """A token that is still to come; empty behind the last."""
        at = self._next + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if not token or (wanted is not None and token != wanted):
            missing = "something" if wanted is None else f"'{wanted}'"
            raise _SyntaxFault(f"{missing} is missing before {_shown(token)}")
        self._next += 1
        return token

    def takes(self, wanted: str) -> bool:
        """Whether the next token is ``wanted``; then it is taken."""
        if self.peek() != wanted:
            return False
        self._next += 1
        return True

    def name(self) -> str:
        token = self.take()
        if token.startswith('"'):
            return _unquoted(token)
        if not re.match(r"[A-Za-z_]", token):
            raise _SyntaxFault(f"{_shown(token)} is no name")
        return token

    def names(self) -> tuple[str, ...]:
        found = [self.name()]
        while self.takes(","):
            found.append(self.name())
        return tuple(found)

    def integer(self) -> int:
        token = self.take()
        if not re.fullmatch(r"-?[0-9]+", token):
            raise _SyntaxFault(f"{_shown(token)} is no integer")
        digits = len(token.removeprefix("-"))
        if digits > MOST_DIGITS:
            raise _SyntaxFault(f"an integer of {digits} digits is more than {MOST_DIGITS}")
        return int(token)

    def number(self) -> float:
        token = self.take()
        try:
            return float(token)
        except ValueError:
            raise _SyntaxFault(f"{_shown(token)} is no number") from None

    def shape(self) -> Shape:
        self.take("[")
        extents: list[int] = []
        while not self.takes("]"):
            if extents:
                self.take(",")
            extents.append(self.integer())
        return tuple(extents)

    def precision(self) -> Precision:
        token = self.take()
        match token:
            case "F32":
                return F32()
            case "F16":
                return F16()
            case "F8":
                self.take("(")
                scale = self.integer()
                self.take(")")
                try:
                    return F8(scale_exponent=scale)
                except ValueError as error:
                    raise _SyntaxFault(str(error)) from None
            case _:
                raise _SyntaxFault(f"{_shown(token)} is no precision: F32, F16 or F8(scale exponent)")

    def declared(self) -> tuple[str, TensorType]:
        name = self.name()
        self.take(":")
        return name, TensorType(precision=self.precision(), shape=self.shape())

    def fill(self) -> Fill:
        kind = self.take()
        self.take("(")
        number = self.number()
        self.take(")")
        match kind:
            case "normal":
                return Normal(sigma=number)
            case "constant":
                return Constant(value=number)
            case _:
                raise _SyntaxFault(f"{_shown(kind)} is no fill: normal(deviation) or constant(number)")

    def literal(self) -> Literal:
        token = self.peek()
        match token:
            case "true" | "false":
                self.take()
                return token == "true"
            case "none":
                self.take()
                return None
            case "F32" | "F16" | "F8":
                return self.precision()
            case "[":
                return self.shape()
            case _:
                return self.integer() if re.fullmatch(r"-?[0-9]+", token) else self.number()

    def end(self) -> Provenance:
        """The rest: a provenance or nothing."""
        if self.takes(";"):
            file = self.name()
            self.take(":")
            line = self.integer()
            note = _unquoted(self.take()) if self.peek() else ""
            self.provenance = Provenance(file=file, line=line, note=note)
        if self.peek():
            raise _SyntaxFault(f"{_shown(self.peek())} is too much")
        return self.provenance


@final
class _Reader:
    """The first pass: lines to statements."""

    def __init__(self, text: str, file: str) -> None:
        self.faults: list[Fault] = []
        self._text = text.removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
        self._file = file

    def read(self) -> tuple[str, _Lines]:
        """Name and statements of the graph."""
        name: str | None = None
        blocks = [_Lines()]
        rows = self._text.replace("\r\n", "\n").split("\n")
        for number, row in enumerate(rows, start=1):
            if not row:
                continue
            subject = "the text"
            try:
                line = _Line(row, self._file, number)
                if line.is_empty:
                    continue
                subject = line.peek().strip('"')
                if name is None:
                    line.take("graph")
                    name = line.name()
                    line.end()
                else:
                    self._statement(line, blocks)
            except _SyntaxFault as error:
                provenance = Provenance(file=self._file, line=number)
                self._fault(subject, provenance, str(error))
                if name is None:
                    return self._file, blocks[0]
        if name is None:
            self._fault("the text", None, "it is empty")
            return self._file, blocks[0]
        if len(blocks) > 1:
            self._fault("the text", None, "a '}' is missing at the end")
        return name, blocks[0]

    def _fault(self, subject: str, provenance: Provenance | None, reason: str) -> None:
        self.faults.append(Fault(subject=subject, provenance=provenance, reason=reason, is_node=False))

    def _statement(self, line: _Line, blocks: list[_Lines]) -> None:
        """Reads one line into the innermost block."""
        block, inside = blocks[-1], len(blocks) > 1
        word = line.peek()
        if word == "}":
            line.take()
            line.end()
            if not inside:
                raise _SyntaxFault("no repeat is open")
            blocks.pop()
            return
        if block.ended:
            raise _SyntaxFault(f"nothing follows {'yield' if inside else 'output'} in its block")
        is_keyword = line.peek(1) not in {":", ",", ""}
        if is_keyword and word in (
            {"carried", "invariant", "sequence"} if inside else {"input", "parameter"}
        ):
            self._argument(line, block, word)
        elif is_keyword and word == ("yield" if inside else "output"):
            line.take()
            block.results = line.names()
            block.results_provenance = line.end()
            block.ended = True
        else:
            self._node(line, blocks)

    def _argument(self, line: _Line, block: _Lines, kind: str) -> None:
        order = ("input", "parameter", "carried", "invariant", "sequence")
        line.take()
        if block.arguments and order.index(block.arguments[-1].kind) > order.index(kind):
            raise _SyntaxFault(f"it stands behind a {block.arguments[-1].kind}")
        if block.statements:
            raise _SyntaxFault("it stands behind a node")
        name, type_ = line.declared()
        fill: Fill | None = None
        bound: tuple[str, ...] = ()
        if kind in {"input", "parameter"}:
            fill = line.fill() if line.takes("=") else None
        else:
            line.take("=")
            bound = line.names()
            if kind != "sequence" and len(bound) != 1:
                raise _SyntaxFault(f"a value that is {kind} is bound to one value, not {len(bound)}")
        value = Value(name=name, type=type_, provenance=line.end())
        block.arguments.append(_Argument(kind=kind, value=value, fill=fill, bound=bound))

    def _node(self, line: _Line, blocks: list[_Lines]) -> None:
        declared = [line.declared()]
        while line.takes(","):
            declared.append(line.declared())
        line.take("=")
        operation = line.name()
        if operation == "repeat":
            count = line.integer()
            line.take("{")
            statement = _Statement(results=_values(declared, line), operation=operation, count=count)
            if len(blocks) > MOST_NESTED:
                raise _SyntaxFault(f"more than {MOST_NESTED} repeats inside one another")
            body = _Lines()
            blocks[-1].statements.append(dataclasses.replace(statement, body=body))
            blocks.append(body)
            return
        operands: list[str] = []
        attributes: list[tuple[str, Literal]] = []
        line.take("(")
        while not line.takes(")"):
            if operands or attributes:
                line.take(",")
            if line.peek(1) == "=":
                key = line.name()
                line.take("=")
                attributes.append((key, line.literal()))
            elif attributes:
                raise _SyntaxFault("an operand stands behind an attribute")
            else:
                operands.append(line.name())
        blocks[-1].statements.append(
            _Statement(
                results=_values(declared, line),
                operation=operation,
                operands=tuple(operands),
                attributes=tuple(attributes),
            )
        )


@final
class _Resolver:
    """The second pass: statements to blocks."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []
        self.reported: set[str] = set()

    def block(self, lines: _Lines, path: str) -> Block:
        """The block; what cannot be made is left out, and its results are in ``reported``."""
        values = [
            *(argument.value for argument in lines.arguments),
            *(result for statement in lines.statements for result in statement.results),
        ]
        rows: dict[str, ValueId] = {}
        for number, value in enumerate(values):
            rows.setdefault(value.name, ValueId(number))
        first = len(lines.arguments)
        nodes: list[Node] = []
        for statement in lines.statements:
            results = tuple(ValueId(first + number) for number in range(len(statement.results)))
            first += len(results)
            faults = len(self.faults)
            operands = self._operands(statement, rows, path)
            operation = self._operation(statement, path)
            if operation is None or len(self.faults) > faults:
                self.reported.update(path + result.name for result in statement.results)
            else:
                nodes.append(Node(operation=operation, operands=operands, results=results))
        given = [rows[name] for name in lines.results if name in rows]
        for name in lines.results:
            if name not in rows:
                place = lines.results_provenance
                self.faults.append(Fault(subject=path + name, provenance=place, reason="nothing defines it"))
        return Block(
            values=tuple(values),
            arguments=tuple(ValueId(number) for number in range(len(lines.arguments))),
            nodes=tuple(nodes),
            results=tuple(given),
        )

    def _fault(self, statement: _Statement, path: str, reason: str) -> None:
        first = statement.results[0]
        self.faults.append(Fault(subject=path + first.name, provenance=first.provenance, reason=reason))

    def _operands(self, statement: _Statement, rows: Mapping[str, ValueId], path: str) -> tuple[ValueId, ...]:
        names = statement.operands
        if statement.body is not None:
            names = tuple(name for argument in statement.body.arguments for name in argument.bound)
        for name in dict.fromkeys(names):
            if name not in rows:
                self._fault(statement, path, f"{statement.operation}: nothing defines {name}")
        return tuple(rows[name] for name in names if name in rows)

    def _operation(self, statement: _Statement, path: str) -> Operation | None:
        if statement.body is not None:
            return self._repeat(statement, statement.body, path)
        made = _CLASSES.get(statement.operation)
        if made is None:
            close = difflib.get_close_matches(statement.operation, _CLASSES, n=1)
            hint = f", perhaps {close[0]}" if close else f"; there are {', '.join(sorted(_CLASSES))}"
            self._fault(statement, path, f"{statement.operation} is no operation{hint}")
            return None
        fields = {field.name: field for field in dataclasses.fields(made)}
        given = dict(statement.attributes)
        reasons = [f"it has no attribute {name}" for name in given if name not in fields]
        if len(given) < len(statement.attributes):
            reasons.append("an attribute is given twice")
        for name, field in fields.items():
            if name not in given:
                if field.default is dataclasses.MISSING:
                    reasons.append(f"attribute {name} is missing")
                continue
            value = given[name]
            if field.type is float and type(value) is int:  # an integer is a number, too
                value = given[name] = float(value)
            if not fits(value, field.type):
                reasons.append(f"attribute {name} is not {KINDS[field.type]}")
        for reason in reasons:
            self._fault(statement, path, f"{statement.operation}: {reason}")
        return None if reasons else cast(Callable[..., Operation], made)(**given)

    def _repeat(self, statement: _Statement, body: _Lines, path: str) -> Repeat | None:
        faults = len(self.faults)
        for argument in body.arguments:
            if argument.kind == "sequence" and len(argument.bound) != statement.count:
                reason = f"{len(argument.bound)} members for {statement.count} iterations"
                self._fault(statement, path, f"repeat: {argument.value.name} has {reason}")
        block = self.block(body, f"{path}{statement.results[0].name}/")
        if len(self.faults) > faults:
            return None
        kinds = [argument.kind for argument in body.arguments]
        return Repeat(
            count=statement.count,
            carried=kinds.count("carried"),
            invariants=kinds.count("invariant"),
            body=block,
        )


_CLASSES: Final[dict[str, type[Operation]]] = {
    name: operation for operation, name in NAMES.items() if operation is not Repeat
}


def _values(declared: Sequence[tuple[str, TensorType]], line: _Line) -> tuple[Value, ...]:
    provenance = line.end()
    return tuple(Value(name=name, type=type_, provenance=provenance) for name, type_ in declared)


def _tokens(text: str) -> Iterator[str]:
    at = 0
    while _REST.match(text, at) is None:
        found = _TOKEN.match(text, at)
        if found is None:
            raise _SyntaxFault(f"{_shown(text[at : at + 20].strip())} cannot be read")
        yield found.group().strip()
        at = found.end()


def _unquoted(token: str) -> str:
    try:
        text: object = json.loads(token)
    except ValueError:
        text = None
    if not isinstance(text, str):
        raise _SyntaxFault(f"{_shown(token)} is no text in quotes")
    return text


def _shown(token: str) -> str:
    if not token:
        return "the end of the line"
    return f"'{token}'" if len(token) <= _SHOWN else f"'{token[:_SHOWN]}...'"
