"""The last key document for each stage and label: what a rebuild is explained against.

A label is the name under which somebody runs a stage, usually a model's. Labels are local, enter no key and
are never shared. A damaged file here is as good as none; one that cannot be read is an error.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.store import files
from compiler.store.canonical import JsonObject, from_text, to_text
from compiler.store.digest import Digest, digest_of, parse_digest
from compiler.store.key import key_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Last:
    """What a stage was last asked for under a label."""

    label: str
    key: Digest
    document: JsonObject


class LastDocuments:
    """The files below ``last`` of a store."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, stage: str, label: str) -> Last | None:
        """The last document of a stage under a label."""
        return self._load(self._path(stage, label))

    def of_stage(self, stage: str) -> Iterator[Last]:
        """The last documents of a stage under all labels, the newest first."""
        yield from self._newest_first([self._root / "last" / stage])

    def walk(self) -> Iterator[Last]:
        """The last documents of all stages, the newest first."""
        yield from self._newest_first(files.entries(self._root / "last"))

    def write(self, stage: str, label: str, document: JsonObject) -> None:
        """Remember a document; nothing is written when it is the one remembered already.

        Raises:
            StoreError: it cannot be written.
        """
        known = self.read(stage, label)
        if known is not None and known.key == key_of(document):  # True equals 1 in Python, not in a key
            return
        text = to_text({"label": label, "document": document})
        files.publish(self._root, self._path(stage, label), text, durable=False)

    def _path(self, stage: str, label: str) -> Path:
        return self._root / "last" / stage / digest_of(label.encode("utf-8", "surrogatepass"))[:32]

    def _newest_first(self, folders: Iterable[Path]) -> Iterator[Last]:
        found = [(files.modified(path), path) for folder in folders for path in files.entries(folder)]
        for _, path in sorted(found, reverse=True):
            last = self._load(path)
            if last is not None:
                yield last

    def _load(self, path: Path) -> Last | None:
        try:
            text = files.read(path)
            if text is None:
                return None
            match from_text(text):
                case {"label": str(label), "document": {"stage": str(stage)} as document, **rest} if (
                    not rest and path == self._path(stage, label)
                ):
                    return Last(label=label, key=parse_digest(key_of(document)), document=document)
                case _:
                    return None
        except ValueError:
            return None
