"""Where two outcomes of one key part, for the report of a conflict."""

from collections.abc import Mapping

from compiler.store.records import Record
from compiler.store.stage import AnyStage


def first_difference(
    stage: AnyStage, old: Record, present: Mapping[str, bytes | None], new: Record, data: Mapping[str, bytes]
) -> str:
    """Where two outcomes of one key part: output, byte and, for tables, column."""
    if old.failure is not None or new.failure is not None:
        return "one run failed, the other did not or differently"
    codecs = dict(stage.outputs.codecs)
    for output in old.outputs:
        before, after = present.get(output.name), data.get(output.name)
        if before is None or after is None:
            return f"output {output.name} is not there to compare"
        if before != after:
            shorter = min(len(before), len(after))
            offset = next((at for at in range(shorter) if before[at] != after[at]), shorter)
            place = codecs[output.name].locate(before, offset)
            where = f"output {output.name}, byte {offset}" + (f" ({place})" if place else "")
            if offset == shorter:
                return f"{where}: {len(before)} and {len(after)} bytes long"
            return f"{where}: {before[offset]:#04x} and {after[offset]:#04x}"
    return "the outputs have other names"
