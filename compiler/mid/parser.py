"""Reads the text of a whole-device program: the inverse of ``text``.

Values are numbered in the order of the text. What is read need not be well formed; ``verify`` says so.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TypeVar, final

from compiler.geometry.layout import TensorFormat
from compiler.geometry.mapping import CoordinateMapping, identity
from compiler.geometry.owners import OwnerMap
from compiler.geometry.region import Region
from compiler.geometry.relation import Broadcast, Identity, ProductOperand, Relation, SelectedWindow
from compiler.mid.ir import (
    Block,
    Compute,
    Copy,
    CopyPart,
    MidProgram,
    MidValueId,
    MovementPolicy,
    Operation,
    Repeat,
    StorageAlias,
    Value,
)
from compiler.mid.notation import Tokens
from compiler.mid.text import implied_relation
from compiler.mid.work import Cast, Elementwise, Product, Sum
from compiler.store.classes import reachable_classes

T = TypeVar("T")


def parse_program(text: str) -> MidProgram:
    """The program that ``text`` is the text of.

    Raises:
        ValueError: it is no text of a program; the message begins with the line.
    """
    return _Reader(text).program()


@cache
def _classes() -> Mapping[str, type]:
    """What a program can hold, by plain name."""
    found = reachable_classes([MidProgram]).values()
    named = {each.__name__: each for each in found}
    if len(named) != len(found):
        raise ValueError("two classes that a program can hold have one name")
    return named


@final
class _Scope:
    """A block while it is read."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.operations: list[Operation] = []
        self._numbers: dict[str, MidValueId] = {}

    def add(self, value: Value) -> MidValueId:
        number = MidValueId(len(self.values))
        if value.name in self._numbers:
            raise ValueError(f"there are two values {value.name}")
        self._numbers[value.name] = number
        self.values.append(value)
        return number

    def number(self, name: str) -> MidValueId:
        if name not in self._numbers:
            raise ValueError(f"there is no value {name} yet")
        return self._numbers[name]

    def numbers(self, names: tuple[str, ...]) -> tuple[MidValueId, ...]:
        return tuple(map(self.number, names))

    def block(self, arguments: list[MidValueId], results: tuple[MidValueId, ...]) -> Block:
        return Block(
            values=tuple(self.values),
            arguments=tuple(arguments),
            operations=tuple(self.operations),
            results=results,
        )


@final
class _Reader:
    """Reads line after line."""

    def __init__(self, text: str) -> None:
        self._number = 0
        self._lines = self._read(text)
        self._formats: dict[str, TensorFormat] = {}
        self._owners: dict[str, OwnerMap] = {}

    def _read(self, text: str) -> Iterator[Tokens]:
        for number, line in enumerate(text.splitlines(), start=1):
            self._number = number
            if line.strip():
                yield Tokens(line, _classes())

    def program(self) -> MidProgram:
        try:
            return self._program()
        except ValueError as error:
            raise ValueError(f"line {self._number}: {error}") from error

    def _program(self) -> MidProgram:
        line = self._line()
        line.take("program")
        name = line.name()
        line.take("on")
        tile_count = line.integer()
        line.take("tiles")
        line.end()
        scope = _Scope()
        arguments: list[MidValueId] = []
        outputs: list[str] = []
        results: list[MidValueId] = []
        inputs = 0
        for line in self._lines:
            match line.peek():
                case "format":
                    self._define(line, self._formats, TensorFormat)
                case "owners":
                    self._define(line, self._owners, OwnerMap)
                case "input" | "parameter" as kind:
                    line.take()
                    inputs += kind == "input"
                    arguments.append(scope.add(self._declared(line)))
                case "output":
                    line.take()
                    outputs.append(line.name())
                    line.take("=")
                    results.append(scope.number(line.name()))
                case _:
                    self._operation(line, scope)
                    continue
            line.end()
        return MidProgram(
            name=name,
            tile_count=tile_count,
            block=scope.block(arguments, tuple(results)),
            input_count=inputs,
            outputs=tuple(outputs),
        )

    def _line(self) -> Tokens:
        line = next(self._lines, None)
        if line is None:
            raise ValueError("the text ends too early")
        return line

    def _define(self, line: Tokens, table: dict[str, T], kind: type[T]) -> None:
        line.take()
        name = line.name()
        line.take("=")
        table[name] = _of(kind, line.expression())

    def _declared(self, line: Tokens, node: str = "") -> Value:
        """A declared value; without a node of its own it has ``node``."""
        name = line.name()
        line.take(":")
        shape = line.shape()
        tensor_format, owners = line.name(), line.name()
        if tensor_format not in self._formats or owners not in self._owners:
            raise ValueError(f"{tensor_format} or {owners} is not defined")
        return Value(
            name=name,
            shape=shape,
            format=self._formats[tensor_format],
            owners=self._owners[owners],
            node=line.name() if line.takes("for") else node,
        )

    def _operation(self, line: Tokens, scope: _Scope) -> None:
        # The operation's node comes last, and values have it unless they say another.
        node = line.last_after("for")
        declared = [self._declared(line, node)]
        while line.takes(","):
            declared.append(self._declared(line, node))
        line.take("=")
        if line.takes("repeat"):
            count = line.integer()
            self._end(line, node, "{")
            self._repeat(scope, declared, count, node)
            return
        if line.takes("copy"):
            parts = self._parts(line, scope, declared[0])
            policy = MovementPolicy.AUTOMATIC
            if line.takes("policy"):
                policy = _of(MovementPolicy, line.expression())
            self._end(line, node)
            result = scope.add(declared[0])
            scope.operations.append(Copy(parts=parts, result=result, policy=policy, node=node))
            return
        work = line.expression()
        if not isinstance(work, Product | Sum | Elementwise | Cast):
            raise ValueError(f"{work!r} is no work")
        line.take("of")
        operands: list[MidValueId] = []
        relations: list[Relation] = []
        while not operands or line.takes(","):
            operands.append(scope.number(line.name()))
            relation = implied_relation(
                work, len(operands) - 1, scope.values[operands[-1]].shape, declared[0].shape
            )
            found = line.expression() if line.takes("as") else relation
            if not isinstance(found, Identity | Broadcast | SelectedWindow | ProductOperand):
                raise ValueError(f"operand {len(operands) - 1} has no relation")
            relations.append(found)
        aliases: list[StorageAlias] = []
        while line.takes("alias"):
            result = line.integer()
            line.take("at")
            operand = line.integer()
            displacement = line.integer() if line.takes("+") else 0
            aliases.append(StorageAlias(result=result, operand=operand, displacement=displacement))
        self._end(line, node)
        scope.operations.append(
            Compute(
                work=work,
                operands=tuple(operands),
                relations=tuple(relations),
                results=tuple(map(scope.add, declared)),
                aliases=tuple(aliases),
                node=node,
            )
        )

    def _end(self, line: Tokens, node: str, mark: str = "") -> None:
        """The end of an operation's line, which names its node."""
        if node:
            line.take("for")
            line.name()
        if mark:
            line.take(mark)
        line.end()

    def _parts(self, line: Tokens, scope: _Scope, result: Value) -> tuple[CopyPart, ...]:
        parts: list[CopyPart] = []
        while not parts or line.takes(","):
            region = Region.of_extents(result.shape)
            if line.peek() == "[":
                region = line.region()
                line.take("of")
            source = scope.number(line.name())
            mapping = identity(scope.values[source].shape)
            if line.takes("through"):
                mapping = _of(CoordinateMapping, line.expression())
            parts.append(CopyPart(source=source, region=region, mapping=mapping))
        return tuple(parts)

    def _repeat(self, scope: _Scope, declared: list[Value], count: int, node: str) -> None:
        body = _Scope()
        arguments: list[MidValueId] = []
        bound: dict[str, list[tuple[MidValueId, ...]]] = {"carried": [], "invariant": [], "sequence": []}
        results: tuple[MidValueId, ...] | None = None
        while True:
            line = self._line()
            kind = line.peek()
            if kind == "}":
                line.take()
                line.end()
                break
            if kind in bound:
                line.take()
                arguments.append(body.add(self._declared(line)))
                line.take("=")
                bound[kind].append(scope.numbers(line.names()))
                line.end()
            elif kind == "yield":
                line.take()
                results = body.numbers(line.names())
                line.end()
            else:
                self._operation(line, body)
        if results is None:
            raise ValueError("a body yields nothing")
        scope.operations.append(
            Repeat(
                count=count,
                carried=tuple(value for values in bound["carried"] for value in values),
                invariants=tuple(value for values in bound["invariant"] for value in values),
                sequences=tuple(bound["sequence"]),
                body=body.block(arguments, results),
                results=tuple(map(scope.add, declared)),
                node=node,
            )
        )


def _of(kind: type[T], found: object) -> T:
    if not isinstance(found, kind):
        raise ValueError(f"{found!r} is no {kind.__name__}")
    return found
