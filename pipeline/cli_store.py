"""``tilewright store``: what the store holds, whether it is sound, what can go, why something was rebuilt.

Every command prints text for people, or with ``--json`` one JSON object on one line. Nothing of the compiler
is imported before a command runs. Errors are those of ``compiler.errors``; the caller prints them.

No command makes a store. That the usual one does not exist yet is no error, since nobody did anything wrong:
a sentence says so, and the JSON is that of an empty store. A store given by path has to be there.
"""

import argparse
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compiler.store.store import Store


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the commands of the group; each sets ``run`` to a function from arguments to an exit code."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    stats = commands.add_parser("stats", help="what the store holds and how often it helped")
    stats.set_defaults(run=_stats)

    verify = commands.add_parser("verify", help="read everything, and compute a sample of the results again")
    verify.add_argument(
        "--sample", type=_count, default=20, metavar="N", help="results to compute again (default: 20)"
    )
    verify.add_argument(
        "--seed", type=_integer, default=0, metavar="N", help="another seed picks other results (default: 0)"
    )
    verify.set_defaults(run=_verify)

    gc = commands.add_parser("gc", help="remove what is not needed")
    gc.add_argument("--age", type=_number, metavar="DAYS", help="remove results unused for longer")
    gc.add_argument(
        "--budget",
        type=_bytes,
        metavar="BYTES",
        help="remove the cheapest results until the rest fits; K, M, G",
    )
    gc.add_argument(
        "--grace", type=_number, default=1.0, metavar="HOURS", help="spare younger files (default: 1)"
    )
    gc.add_argument("--dry-run", action="store_true", help="only say what would go")
    gc.set_defaults(run=_gc)

    explain = commands.add_parser("explain", help="what changed between a result and the nearest other one")
    explain.add_argument("what", nargs="+", metavar="KEY | LABEL STAGE", help="a key, or a label and a stage")
    explain.set_defaults(run=_explain)

    for command in (stats, verify, gc, explain):
        command.add_argument(
            "--store",
            type=_path,
            metavar="PATH",
            help="the store (default: store in the user's cache folder)",
        )
        command.add_argument("--json", action="store_true", help="print JSON")


def _stats(arguments: argparse.Namespace) -> int:
    from compiler.store.collect import accounts

    if _said_that_nothing_is_stored(arguments):
        return 0
    store = _open(arguments)
    held = accounts(store)
    if arguments.json:
        _print_json(
            {
                namespace.value: {
                    "results": account.records,
                    "failures": account.failures,
                    "content_bytes": account.content_bytes,
                    "disk_bytes": account.disk_bytes,
                    "computed_seconds": round(account.seconds, 6),
                    "hits": account.counts.hits,
                    "misses": account.counts.misses,
                    "repairs": account.counts.repairs,
                    "bypassed": account.counts.bypassed,
                    "hit_rate": account.counts.hit_rate,
                    "saved_seconds": account.counts.saved_microseconds / 1e6,
                }
                for namespace, account in held.items()
            }
        )
        return 0
    print(f"store {store.root}")
    rows = [("namespace", "results", "failures", "content", "on disk", "computed in", "hit rate", "saved")]
    for namespace, account in held.items():
        rate = account.counts.hit_rate
        rows.append(
            (
                namespace.value,
                f"{account.records:,}",
                f"{account.failures:,}",
                _size(account.content_bytes),
                _size(account.disk_bytes),
                _time(account.seconds),
                "-" if rate is None else f"{rate:.0%}",
                _time(account.counts.saved_microseconds / 1e6),
            )
        )
    _print_table(rows)
    print("all figures are measured")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    from compiler.store.verify import recompute, sample, scrub

    if _said_that_nothing_is_stored(arguments):
        return 0
    store = _open(arguments, writing=os.access(_root(arguments), os.W_OK), recomputing=True)
    read = scrub(store)
    again = recompute(store, sample(store, arguments.sample, seed=arguments.seed))
    if arguments.json:
        _print_json(
            {
                "results": read.records,
                "objects": read.objects,
                "damaged": [str(path.relative_to(store.root)) for path in read.damaged],
                "incomplete": list(read.incomplete),
                "equal": again.equal,
                "different": [
                    {"key": key, "stage": stage, "difference": difference}
                    for key, stage, difference in again.different
                ],
                "skipped": dict(again.skipped),
            }
        )
    else:
        print(f"read {read.records:,} results and {read.objects:,} objects: {len(read.damaged)} damaged")
        for path in read.damaged:
            print(f"  {'set aside' if store.writable else 'damaged'}: {path.relative_to(store.root)}")
        if read.incomplete:
            print(f"  {len(read.incomplete)} results name objects that are gone; they will be computed again")
        print(f"computed again: {again.equal} equal, {len(again.different)} different")
        for key, stage, difference in again.different:
            print(f"  {stage} {key[:12]}: {difference}")
        for reason, count in again.skipped:
            print(f"  {count} not computed again: {reason}")
    return 0 if read.sound and not again.different else 1


def _gc(arguments: argparse.Namespace) -> int:
    import time

    from compiler.store.collect import Limits, collect
    from compiler.store.digest import ByteCount

    limits = Limits(
        age_seconds=None if arguments.age is None else arguments.age * 86400,
        budget_bytes=None if arguments.budget is None else ByteCount(arguments.budget),
        grace_seconds=arguments.grace * 3600,
    )
    if _said_that_nothing_is_stored(arguments):
        return 0
    store = _open(arguments, writing=not arguments.dry_run)
    pretend = arguments.dry_run or not store.writable
    done = collect(store, limits, now=time.time(), pretend=pretend)
    if arguments.json:
        _print_json(
            {
                "pretended": bool(arguments.dry_run),
                "results": done.records,
                "objects": done.objects,
                "other_files": done.others,
                "freed_bytes": done.freed_bytes,
                "kept_bytes": done.kept_bytes,
                "lost_seconds": done.lost_seconds,
            }
        )
        return 0
    removed, kept = ("would remove", "would keep") if arguments.dry_run else ("removed", "kept")
    print(f"{removed} {done.records:,} results, {done.objects:,} objects and {done.others:,} other files:")
    print(f"  {_size(done.freed_bytes)}, which took {_time(done.lost_seconds)} to compute")
    print(f"{kept} {_size(done.kept_bytes)}")
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from compiler.errors import InvalidInput
    from compiler.store.explain import explain
    from compiler.store.history import find_record, last_document, nearest_record
    from compiler.store.key import key_of

    words: list[str] = arguments.what
    if len(words) > 2:
        raise InvalidInput(
            f"{len(words)} words are given",
            stage="store explain",
            subject=" ".join(words),
            next_step="give a key, or a label and a stage",
        )
    if _said_that_nothing_is_stored(arguments):
        return 0
    if _is_nothing_stored(arguments):
        _print_json({"stage": None, "key": None, "nearest": None, "changes": [], "document": None})
        return 0
    store = _open(arguments)
    if len(words) == 1:
        document = find_record(store, words[0]).document
    else:
        document = last_document(store, words[1], words[0])
    other = nearest_record(store, document)
    lines = () if other is None else explain(other.document, document)
    if arguments.json:
        _print_json(
            {
                "stage": document["stage"],
                "key": key_of(document),
                "nearest": None if other is None else other.key,
                "changes": list(lines),
                "document": document,
            }
        )
        return 0
    print(f"{document['stage']} {key_of(document)}")
    if other is None:
        print("the store has no other result of this stage")
        return 0
    print(f"changed against {other.key}, the nearest other result:")
    for line in lines:
        print(f"  {line}")
    return 0


def _root(arguments: argparse.Namespace) -> Path:
    from compiler.cache_home import cache_home

    path: Path | None = arguments.store
    return cache_home() / "store" if path is None else path


def _is_nothing_stored(arguments: argparse.Namespace) -> bool:
    """Whether the usual store is meant and nothing was ever kept in it."""
    from compiler.store.layout import is_empty

    return arguments.store is None and is_empty(_root(arguments))


def _said_that_nothing_is_stored(arguments: argparse.Namespace) -> bool:
    """Whether that is so and was said to a person; programs get the JSON of an empty store."""
    if arguments.json or not _is_nothing_stored(arguments):
        return False
    print(f"Nothing is stored yet; builds will keep their results in {_root(arguments)}.")
    return True


def _open(arguments: argparse.Namespace, *, writing: bool = False, recomputing: bool = False) -> "Store":
    """The store. Unlike a build, these commands make none: the usual one may be missing and is empty then.

    Recomputing needs the tables that builds are made with.
    """
    from compiler.store.layout import Access, Mode, prepare
    from compiler.store.store import Store
    from compiler.tables import table_digests

    root = _root(arguments)
    if _is_nothing_stored(arguments):
        return Store.open(root, access=Access.READ_ONLY, mode=Mode.OFF)
    prepare(root, writable=False)
    access = Access.READ_WRITE if writing else Access.READ_ONLY
    return Store.open(root, access=access, tables=table_digests() if recomputing else None)


def _path(text: str) -> Path:
    if not text:
        raise argparse.ArgumentTypeError("it is empty, and no path")
    try:
        return Path(text).expanduser()  # shells leave the ~ of --store=~/folder alone
    except RuntimeError as error:
        raise argparse.ArgumentTypeError(f"{text!r} begins with the home of nobody") from error


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a whole number") from None


def _count(text: str) -> int:
    value = _integer(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]} is negative")
    return value


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a time")
    return value


def _bytes(text: str) -> int:
    """A number of bytes, with K, M, G or T for powers of 1,024."""
    factor = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}.get(text[-1:].upper())
    try:
        value = int(text) if factor is None else int(float(text[:-1]) * factor)
    except (ValueError, OverflowError):
        value = -1
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number of bytes such as 500M")
    return value


def _size(size: int) -> str:
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    return (
        f"{minutes // 60} h {minutes % 60:02} m"
        if minutes >= 60
        else f"{minutes} m {round(seconds) % 60:02} s"
    )


def _print_json(value: object) -> None:
    print(json.dumps(value, sort_keys=True))


def _print_table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())
