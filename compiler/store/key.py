"""The key of a stage run: one structured document, hashed once.

The document names everything that can change the output. It is stored in the record exactly as it was hashed,
so that an explanation cannot leave out a part of the key. Its fields::

    v          version of this document's form
    namespace, stage, format
    code       {"fingerprint": ..., "modules": {file: digest}}     computed from source, never declared
    inputs     {field: {"artifact": digest} or {"value": encoding}}
    options    {dotted path: encoding}                              those that the stage declared
    tables     {name: digest}                                       those that the stage declared
    libraries  {name: version}                                      Python's minor version among them

Not in it: names of models, paths, host, user, time, number of workers, log level, how the cache is used. The
function that builds it is not given any of these.
"""

import importlib.metadata
import sys
from collections.abc import Mapping
from functools import cache

from compiler.errors import InternalError
from compiler.fingerprint import Fingerprint, Sources, fingerprint
from compiler.store.canonical import JsonObject, JsonValue, encode, to_text
from compiler.store.digest import ByteCount, Digest, digest_of
from compiler.store.options import keyed
from compiler.store.stage import AnyStage, Artifact, Consumed, input_fields

DOCUMENT_VERSION = 1
LARGEST_PLAIN_INPUTS = ByteCount(64 * 1024)
"""Of inputs and options that are copied into each record; larger values are put into the store and passed as
artifacts."""

_LIBRARIES = ("numba", "numpy", "zstandard")


def key_document(
    stage: AnyStage, inputs: object, options: object, *, tables: Mapping[str, Digest], sources: Sources
) -> JsonObject:
    """The document of one run.

    Raises:
        InternalError: an option or table that the stage declares is missing, or its code cannot be followed.
        TypeError: an input or option has no canonical encoding.
        ValueError: plain inputs and options are too large.
    """
    if type(inputs) is not stage.inputs:  # a subclass may behave in other ways, and its code is in no key
        raise TypeError(
            f"stage {stage.name} takes {stage.inputs.__qualname__}, not {type(inputs).__qualname__}"
        )
    encoded: JsonObject = {}
    for name, value in input_fields(inputs):
        encoded[name] = (
            {"artifact": value.digest} if isinstance(value, Artifact) else {"value": encode(value)}
        )
    options_read = keyed(stage, options)
    size = len(to_text([encoded, options_read]))
    if size > LARGEST_PLAIN_INPUTS:
        raise ValueError(
            f"plain inputs and options of stage {stage.name} take {size} bytes; "
            f"pass what is large as an artifact"
        )
    for name in stage.tables:
        if name not in tables:
            raise InternalError(
                f"the digest of table {name} is missing",
                stage="store",
                subject=f"stage {stage.name}",
                next_step="open the store with the digests of all tables",
            )
    return {
        "v": DOCUMENT_VERSION,
        "namespace": stage.namespace.value,
        "stage": stage.name,
        "format": stage.format,
        "code": code_component(stage_code(stage, sources)),
        "inputs": encoded,
        "options": options_read,
        "tables": {name: tables[name] for name in stage.tables},
        "libraries": dict(library_versions()),
    }


def key_of(document: JsonObject) -> Digest:
    """The key: the digest of the document's only text."""
    return digest_of(to_text(document))


def stage_code(stage: AnyStage, sources: Sources) -> Fingerprint:
    """The code of a stage. Its ``digest`` is what an orchestrator shows as the stage's code version.

    Raises:
        InternalError: the code cannot be followed, or the stage runs code that its module does not import.
    """
    try:
        code = fingerprint(stage.module, sources=sources)
    except ValueError as error:
        raise _code_fault(stage, str(error)) from error
    outside = sorted(stage.modules - set(code.modules))
    if outside:
        raise _code_fault(stage, f"runs code of {', '.join(outside)}, which {stage.module} does not import")
    return code


def code_component(code: Fingerprint) -> JsonValue:
    """The code as it stands in a key document."""
    return {"fingerprint": code.digest, "modules": dict(code.files)}


@cache
def library_versions() -> Mapping[str, str]:
    """Versions of what computes results besides our code; read from installed metadata without importing."""
    versions = {"python": f"{sys.version_info.major}.{sys.version_info.minor}"}
    for name in _LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = "absent"
    return versions


def without_code(document: JsonObject) -> JsonObject:
    """What a consumer keeps of the document of a stage that it ran: all that the caller decided."""
    request: JsonObject = {name: part for name, part in document.items() if name not in {"code", "libraries"}}
    request["tables"] = list[JsonValue](_table_names(document))
    return request


def current_key(consumed: Consumed, *, tables: Mapping[str, Digest], sources: Sources) -> Digest | None:
    """The key of a consumed run under today's code, tables and libraries; None when it can have none."""
    try:
        code = fingerprint(consumed.module, sources=sources)
    except ValueError:
        return None
    names = _table_names(consumed.request)
    if not set(names) <= set(tables):
        return None
    return key_of(
        {
            **consumed.request,
            "code": code_component(code),
            "tables": {name: tables[name] for name in names},
            "libraries": dict(library_versions()),
        }
    )


def _table_names(document: JsonObject) -> list[str]:
    names = document.get("tables")
    return [str(name) for name in names] if isinstance(names, dict | list) else []


def _code_fault(stage: AnyStage, fault: str) -> InternalError:
    return InternalError(
        fault, stage="store", subject=f"stage {stage.name}", next_step="report this message with the command"
    )
