"""``tilewright place``: place the buffers of a plain instance in one memory."""

import argparse
import time
from pathlib import Path


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command; ``run`` is a function from arguments to an exit status."""
    parser.description = (
        "Place buffers with lives and sizes in one memory. The file is a table with the columns id, lower,"
        " upper (the moment after the last) and size. The outcome is placed, infeasible (which is proven) or"
        " unknown; exit status 1 unless it is placed."
    )
    parser.add_argument("file", type=Path, help="table of buffers: id,lower,upper,size")
    parser.add_argument("--capacity", type=_bytes, required=True, metavar="N", help="bytes of the memory")
    parser.add_argument(
        "--nodes",
        type=_count,
        metavar="N",
        help="decisions that the search may make before the outcome is unknown",
    )
    parser.add_argument(
        "--orders-only", action="store_true", help="only try the orders of the portfolio, without a search"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.set_defaults(run=_place)


def _count(word: str) -> int:
    if not word.isascii() or not word.isdecimal() or not 0 < len(word) <= 15:
        raise argparse.ArgumentTypeError(f"{word!r} is no number")
    return int(word)


def _bytes(word: str) -> int:
    if _count(word) == 0:
        raise argparse.ArgumentTypeError("a memory has a byte at least")
    return int(word)


def _place(arguments: argparse.Namespace) -> int:
    begin = time.perf_counter()
    import json

    from compiler.placement.plain import PlainOutcome, parse_plain, place_plain
    from pipeline.user_files import read_text

    path: Path = arguments.file
    capacity: int = arguments.capacity
    given: int | None = arguments.nodes
    nodes = 0 if arguments.orders_only else given
    problem = parse_plain(read_text(path, stage="placement"), subject=str(path))
    answer = place_plain(problem, capacity, nodes)
    seconds = time.perf_counter() - begin
    is_placed = answer.outcome is PlainOutcome.PLACED
    height = int((answer.offsets + problem.size).max()) if is_placed else None
    bound, crowd = problem.bound()
    moment = int(problem.lower[crowd].max())
    conflict = [problem.names[row] for row in answer.conflict]
    told = ", ".join(conflict)
    if arguments.json:
        offsets = dict(zip(problem.names, answer.offsets.tolist(), strict=True)) if is_placed else {}
        record: dict[str, object] = {
            "outcome": answer.outcome.value,
            "capacity": capacity,
            "height": height,
            "bound": bound,
            "fullest_moment": moment,
            "seconds": round(seconds, 3),
            "nodes": answer.nodes,
            "conflict": conflict,
            "offsets": offsets,
        }
        print(json.dumps(record))
        return 0 if is_placed else 1
    print(f"{answer.outcome.value}: {len(problem.names)} buffers in {capacity:,} bytes")
    print(f"  most bytes live at once: {bound:,} (bound), at {moment}")
    if height is not None:
        print(f"  height: {height:,} bytes")
    match answer.outcome:
        case PlainOutcome.PLACED:
            pass
        case PlainOutcome.INFEASIBLE if bound > capacity:
            print(f"  these cannot coexist, {bound - capacity:,} bytes too many live at once: {told}")
            print(f"  next: give {bound:,} bytes or more, or let one of these be smaller or live less long")
        case PlainOutcome.INFEASIBLE:
            print(f"  these cannot coexist, though never too many bytes live at once: {told}")
            print("  next: give more bytes, or let one of these be smaller or live less long")
        case PlainOutcome.UNKNOWN:
            print("  neither placed nor proven impossible")
            print("  next: give more bytes, or more decisions with --nodes")
    print(f"  {answer.nodes:,} decisions, {seconds:.2f} s")
    if is_placed:
        for name, offset in zip(problem.names, answer.offsets.tolist(), strict=True):
            print(f"{name},{offset}")
    return 0 if is_placed else 1
