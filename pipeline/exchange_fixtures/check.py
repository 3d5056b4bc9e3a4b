"""Checks a whole file of examples, object by object."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.exchange_fixtures import facts, phases
from pipeline.exchange_fixtures.fields import Fields, Findings, Malformed

CHECKS: Final[Mapping[str, Callable[[Fields], None]]] = {
    "chunks": facts.chunks,
    "decode_row": phases.decoded_row,
    "encode": facts.encode,
    "encode_asm": facts.encode_asm,
    "event_table": phases.event_table,
    "f143": facts.f143,
    "host": facts.host_programs,
    "host_mux": facts.host_mux,
    "host_packets": facts.host_packets,
    "hw_probe": phases.hw_probe,
    "logical_to_physical": facts.logical_to_physical,
    "loopback": phases.loopback,
    "mixed_boundary": phases.mixed_boundary,
    "multicast": phases.multicast,
    "must_split": phases.must_split,
    "package_constants": facts.package_constants,
    "paired": phases.paired,
    "paired_plans": phases.paired_plans,
    "phase": phases.phase,
    "point_to_point": phases.point_to_point,
    "route_aggregates": facts.route_aggregates,
    "route_digest": facts.route_digest,
    "routes": facts.routes,
    "xreq": facts.xreq,
}
"""Kind of example -> its check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One object after its check.

    Args:
        number: its place in the file, from 1.
        kind: its kind.
        is_known: whether there is a check for it.
        findings: what came of it; nothing when the kind is unknown.
    """

    number: int
    kind: str
    is_known: bool
    findings: Findings


def check_objects(objects: Sequence[Mapping[str, object]]) -> list[Checked]:
    """Check every object; whatever one of them holds, the others are checked too."""
    return [_check(number, values) for number, values in enumerate(objects, 1)]


def _check(number: int, values: Mapping[str, object]) -> Checked:
    findings = Findings()
    kind = values.get("kind")
    check = CHECKS.get(kind) if isinstance(kind, str) else None
    if check is None:
        return Checked(number=number, kind=str(kind), is_known=False, findings=findings)
    fields = Fields(values, "", findings)
    try:
        check(fields)
    except Malformed as error:
        findings.wrong.append(str(error))
    except ValueError as error:  # a value type of the compiler refuses what the file states
        findings.wrong.append(f"impossible: {error}")
    else:
        fields.close()
    if not findings.agreed and not findings.wrong:
        findings.wrong.append("states nothing that can be checked")
    return Checked(number=number, kind=str(kind), is_known=True, findings=findings)
