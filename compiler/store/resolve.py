"""Finding the code that a record names: stages, codecs and classes of this repository, and nothing else.

A record is data that somebody else may have written. A name in it is followed only to a module below the
packages of ``Sources`` whose file lies there, and only to a stage, to the decoder of a codec that the module
holds, or to a class that the module defines. Nothing found this way is called before these checks.
"""

import importlib
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

from compiler.fingerprint import Sources
from compiler.store.canonical import JsonValue
from compiler.store.codec import BYTES, Codec, ColumnsCodec, Fields, JsonCodec, Outputs, Single
from compiler.store.stage import AnyStage, Stage

T = TypeVar("T")


class Resolver:
    """Follows names of records into the modules of ``sources``. Every refusal is a ``ValueError``."""

    def __init__(self, sources: Sources) -> None:
        self._sources = sources

    def stage(self, module: str, name: str) -> AnyStage:
        """The stage of that name that a module declares."""
        for value in vars(self._module(module)).values():
            if isinstance(value, Stage):
                stage = cast("AnyStage", value)
                if stage.name == name and stage.module == module:
                    return stage
        raise ValueError(f"{module} declares no stage {name}")

    def codec(self, reference: str) -> Codec[Any]:
        """The codec with that reference."""
        if reference == BYTES.reference:
            return BYTES
        module, _, _ = reference.partition(":")
        for value in vars(self._module(module)).values():
            if isinstance(value, JsonCodec | ColumnsCodec):
                codec = cast("Codec[Any]", value)
                if codec.reference == reference:
                    return codec
        raise ValueError(f"{module} holds no codec whose decoder is {reference}")

    def named_class(self, reference: str) -> type:
        """The dataclass, model or enumeration with that reference."""
        module, _, path = reference.partition(":")
        found: object = self._module(module)
        for name in path.split("."):
            found = vars(found).get(name) if isinstance(found, ModuleType | type) else None
        if not isinstance(found, type) or found.__module__ != module or not _is_value_class(found):
            raise ValueError(f"{reference} is no class of values")
        return found

    def outputs(self, decoder: JsonValue) -> Outputs[Any]:
        """The arrangement of codecs that ``Outputs.describe`` described."""
        match decoder:
            case {"single": [str(name), str(reference)]}:
                return Single(codec=self.codec(reference), name=name)
            case {"type": str(reference), "fields": list(entries)}:
                codecs: list[tuple[str, Codec[Any]]] = []
                for entry in entries:
                    match entry:
                        case [str(name), str(codec)]:
                            codecs.append((name, self.codec(codec)))
                        case _:
                            raise ValueError("a field is described by name and codec")
                return Fields(of=self.named_class(reference), codecs=tuple(codecs))
            case _:
                raise ValueError("not a description of outputs")

    def _module(self, name: str) -> ModuleType:
        path = self._sources.locate(name) if self._sources.owns(name) and _is_dotted(name) else None
        if path is None:
            raise ValueError(f"{name} is not a module of {', '.join(self._sources.packages)}")
        try:
            module = importlib.import_module(name)
        except Exception as error:  # a module that somebody is just editing may raise anything
            raise ValueError(f"{name} cannot be imported: {type(error).__name__}: {error}") from error
        if module.__file__ is None or not Path(module.__file__).samefile(path):
            raise ValueError(f"{name} is loaded from elsewhere")
        return module


def _is_dotted(name: str) -> bool:
    return all(part.isidentifier() for part in name.split("."))


def _is_value_class(found: type[object]) -> bool:
    return issubclass(found, Enum) or hasattr(found, "__dataclass_fields__") or hasattr(found, "model_fields")
