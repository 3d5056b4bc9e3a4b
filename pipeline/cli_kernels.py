"""``tilewright kernels``: what kernel families there are, what a call promises, its code, and its cycles."""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.geometry.traversal import Traversal
    from compiler.kernels.contract import Access, Binding


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of the group; each sets ``run`` to a function from arguments to an exit status."""
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    listing = commands.add_parser("list", help="the families, their shapes and options")
    listing.set_defaults(run=_list)
    show = commands.add_parser(
        "show",
        help="the contract of a call and the machine code of its kernel",
        description=(
            "Print what a call of a family promises (accesses, padding, aliases, arguments, work, cycles) and"
            " the listing of its kernel."
        ),
    )
    _add_call(show)
    show.add_argument("--no-listing", action="store_true", help="leave out the machine code")
    show.set_defaults(run=_show)
    run = commands.add_parser(
        "run",
        help="run calls in the simulator: cycles beside the formula, results beside the semantics",
        description=(
            "Run calls on random operands on one simulated tile. Prints the cycles of the formula (estimated)"
            " and of the machine code (simulated). Exit status 1 when a result differs from the semantics,"
            " except where rounding is stochastic."
        ),
    )
    _add_call(run)
    run.add_argument("--seed", type=_seed, default=0, help="of the operands (0)")
    run.set_defaults(run=_run)


def _seed(text: str) -> int:
    value = int(text)
    if value < 0:
        raise ValueError
    return value


_seed.__name__ = "number from 0 on"  # what argparse calls it in its message


def _add_call(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", metavar="FAMILY", help="a family of the list")
    parser.add_argument(
        "--shape",
        action="append",
        metavar="N,N,...",
        help="the numbers that the list names for the family; can be repeated",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="OPTION=VALUE",
        help="an option of the list; can be repeated",
    )


def _list(_arguments: argparse.Namespace) -> int:
    from compiler.kernels.registry import FAMILIES
    from pipeline.kernel_samples import SAMPLES

    for name, sample in SAMPLES.items():
        print(f"{name}: {sample.purpose}")
        print(f"  --shape {','.join(sample.extents)} ({','.join(map(str, sample.default))})")
        for option, values in sample.choices.items():
            print(f"  --set {option}={'|'.join(values)} ({values[0]})")
        for option, (default, values) in sample.numbers.items():
            print(f"  --set {option}={values.start}..{values.stop - 1} ({default})")
    for name in FAMILIES:
        if name not in SAMPLES:
            print(f"{name}: its calls cannot be described here")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from compiler.isa.listing import list_program
    from compiler.kernels.stage_objects import program_of_symbol

    shown: set[str] = set()
    for _, binding in _calls(arguments):
        for line in _contract_lines(binding):
            print(line)
        symbol = str(binding.symbol)
        if not arguments.no_listing and symbol not in shown:
            shown.add(symbol)
            print()
            print(list_program(program_of_symbol(symbol), symbol), end="")
        print()
    return 0


def _run(arguments: argparse.Namespace) -> int:
    from compiler.errors import NumberKind
    from pipeline.kernel_runs import run_call

    seed: int = arguments.seed
    is_wrong = False
    for shape, binding in _calls(arguments):
        figures = run_call(binding, seed)
        print(f"{binding.symbol} {','.join(map(str, shape))}")
        print(f"  {figures.estimated:,} cycles ({NumberKind.ESTIMATED.value}, formula of the family)")
        print(
            f"  {figures.simulated:,} cycles ({NumberKind.SIMULATED.value}, machine code), "
            f"the formula is {100 * figures.deviation:+.2f} % off"
        )
        for amount, unit in ((binding.work.flops, "FLOP"), (binding.work.moved_bytes, "bytes")):
            if amount:
                print(f"  {amount:,} {unit}, {amount / figures.simulated:.1f} for each simulated cycle")
        is_random = "stochastic" in (value for _, value in binding.symbol.choices)
        if figures.fault is not None:
            is_wrong = True
            print(f"  stopped: {figures.fault}")
        elif is_random:
            print("  results are rounded at random and not compared with the semantics")
        elif figures.is_equal:
            print("  memory equals the semantics bit for bit")
        else:
            is_wrong = True
            print("  memory differs from the semantics")
    return 1 if is_wrong else 0


def _calls(arguments: argparse.Namespace) -> Iterator[tuple[tuple[int, ...], "Binding"]]:
    """Shapes and bindings that the command line describes; all are checked before the first is given."""
    from pipeline.kernel_samples import bind_sample, sample_of

    family: str = arguments.family
    texts: Sequence[str] | None = arguments.shape
    options: dict[str, str] = {}
    for text in arguments.set:
        name, equals, value = text.partition("=")
        if not equals:
            raise _wrong_word(family, f"{text!r} is not OPTION=VALUE", "give options like rounding=nearest")
        options[name] = value
    sample = sample_of(family)
    shapes = [sample.default] if texts is None else [_shape(family, text) for text in texts]
    yield from [(shape, bind_sample(family, shape, options)) for shape in shapes]


def _shape(family: str, text: str) -> tuple[int, ...]:
    parts = text.split(",")
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise _wrong_word(family, f"{text!r} is no shape", "give numbers joined by commas, like 184,288,48")
    return tuple(int(part) for part in parts)


def _wrong_word(family: str, reason: str, next_step: str) -> Exception:
    from compiler.errors import InvalidInput
    from pipeline.kernel_samples import STAGE

    return InvalidInput(reason, stage=STAGE, subject=family, next_step=next_step)


def _contract_lines(binding: "Binding") -> Iterator[str]:
    from compiler.errors import NumberKind
    from compiler.kernels.contract import Pointer

    yield f"{binding.symbol}"
    for position, access in enumerate(binding.accesses):
        yield f"  {binding.reference(position)}: {_geometry(access)}"
        yield from (f"    {line}" for line in _access_lines(access))
    for one, other in binding.separate:
        yield f"  {one} and {other} share no memory element"
    permitted = ", ".join(map(str, binding.permitted)) or "none"
    yield f"  permitted aliases: {permitted}"
    for number, argument in enumerate(binding.arguments, start=2):
        meaning = (
            f"address of {argument.reference}"
            if isinstance(argument, Pointer)
            else f"{argument.name} = {_number(argument.value)}"
        )
        yield f"  $m{number}: {meaning}"
    yield f"  work: {binding.work.flops:,} FLOP, {binding.work.moved_bytes:,} bytes moved"
    yield f"  {binding.cycles:,} cycles ({NumberKind.ESTIMATED.value})"


def _number(value: int) -> str:
    """Large numbers are packed from two, which hexadecimal shows."""
    return str(value) if value < 1 << 16 else hex(value)


def _geometry(access: "Access") -> str:
    operand = access.operand
    if operand is None:
        return "bytes"
    precision = type(operand.precision).__name__
    extents = " x ".join(map(str, operand.physical))
    logical = f", {' x '.join(map(str, operand.logical))} of them elements" if operand.is_padded else ""
    return f"{precision} {type(operand.order).__name__} {extents}{logical}"


def _access_lines(access: "Access") -> Iterator[str]:
    parts: Mapping[str, Traversal] = {"reads": access.reads, "writes": access.writes}
    touched = [f"{name} {_bytes(part)}" for name, part in parts.items() if part.pieces]
    yield f"{', '.join(touched)}; tail {access.tail} bytes"
    yield f"aligned to {access.alignment} bytes, {access.memory_class.value} memory"
    for padding in access.padding:
        after = "left as it was" if padding.after is None else f"{padding.after.value} after"
        yield f"padding of {_bytes(padding.part)}: {padding.before.value} before, {after}"


def _bytes(part: "Traversal") -> str:
    _, lengths = part.runs()
    low, high = part.extent
    return f"{int(lengths.sum()):,} bytes in {low}..{high}"
