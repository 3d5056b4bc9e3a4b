"""What callers of the stages of this package need, and how their results are kept in the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, cast, final

import numpy as np

from compiler.exchange.artifacts import EncodedRows, exchange_of
from compiler.exchange.ir import Demand, Schedule
from compiler.isa.linker import Image, ImageSymbol, PlacedSection
from compiler.isa.objects import ObjectFile
from compiler.isa.program import SectionKind
from compiler.low.ir import LowProgram
from compiler.low.project import project
from compiler.package.hostplan import plan_host
from compiler.package.programs import ProgramInputs
from compiler.package.support import Reservations, Support
from compiler.placement.ir import Placement
from compiler.store.codec import ColumnsCodec, JsonCodec
from compiler.store.container import Columns
from compiler.store.stage import Artifact
from compiler.target.isa_decisions import HasIsaChoices


class PackageChoices(Protocol):
    """What is read of the options of packages."""

    @property
    def runs(self) -> int | None:
        """How often the program serves a run; None for as long as it is powered."""
        ...

    @property
    def profile(self) -> bool:
        """Whether tiles sample their clocks at every step."""
        ...


class HasPackageChoices(HasIsaChoices, Protocol):
    """What is read of the options of a build."""

    @property
    def package(self) -> PackageChoices:
        """What kind of package is built."""
        ...


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinkingInputs:
    """Of stage ``linking``: objects, and the symbols of them that the program calls, ascending."""

    objects: Artifact[tuple[ObjectFile, ...]]
    symbols: tuple[str, ...]


def program_inputs(
    program: LowProgram,
    placement: Placement,
    exchange: tuple[tuple[Demand, ...], tuple[Schedule, ...], tuple[EncodedRows, ...]],
    code: Image,
    choices: PackageChoices,
) -> ProgramInputs:
    """What programs are emitted from, at provisional or final addresses alike."""
    return ProgramInputs(
        program=program,
        work=project(program),
        placement=placement,
        exchange=exchange_of(*exchange),
        host=plan_host(program, placement),
        symbols={symbol.name: symbol.address for symbol in code.symbols if symbol.is_global},
        runs=choices.runs,
        profile=choices.profile,
    )


def plain_image(image: Image) -> Mapping[str, object]:
    """Linked code as plain values."""
    return {
        "entry": image.entry,
        "sections": tuple(
            (part.name, part.origin, part.kind.name, part.address, part.size, part.content, part.region)
            for part in image.sections
        ),
        "symbols": tuple(
            (part.name, part.address, part.size, part.origin, part.section, part.is_global, part.is_function)
            for part in image.symbols
        ),
        "removed": image.removed,
    }


def image_of_plain(plain: Any) -> Image:  # noqa: ANN401  # what a decoder gets is checked here
    """The inverse.

    Raises:
        ValueError: the values are not those of linked code.
    """
    try:
        return Image(
            entry=plain["entry"],
            sections=tuple(_section(*part) for part in plain["sections"]),
            symbols=tuple(_symbol(*part) for part in plain["symbols"]),
            removed=plain["removed"],
        )
    except (KeyError, TypeError) as fault:
        raise ValueError(f"no linked code: {fault}") from fault


def _section(
    name: str, origin: str, kind: str, address: int, size: int, content: bytes, region: str
) -> PlacedSection:
    return PlacedSection(
        name=name,
        origin=origin,
        kind=SectionKind[kind],
        address=address,
        size=size,
        content=content,
        region=region,
    )


def _symbol(
    name: str, address: int, size: int, origin: str, section: str | None, is_global: bool, is_function: bool
) -> ImageSymbol:
    return ImageSymbol(
        name=name,
        address=address,
        size=size,
        origin=origin,
        section=section,
        is_global=is_global,
        is_function=is_function,
    )


_SUPPORT: Final = ("start", "capacity", "headroom")
_RESERVATIONS: Final = ("tile", "start", "byte_count", "purpose")


def columns_of_support(support: Support) -> Columns:
    """Places and reservations as columns."""
    return Columns(
        arrays={name: getattr(support, name) for name in _SUPPORT}
        | {f"reservations.{name}": getattr(support.reservations, name) for name in _RESERVATIONS}
    )


def support_of_columns(columns: Columns) -> Support:
    """The inverse; columns cannot be written.

    Raises:
        ValueError: the columns are not those of a support.
    """
    names = {*_SUPPORT, *(f"reservations.{name}" for name in _RESERVATIONS)}
    if set(columns.arrays) != names or any(array.dtype != np.int64 for array in columns.arrays.values()):
        raise ValueError(f"a support has 64-bit columns {', '.join(sorted(names))}")
    arrays = cast("Mapping[str, Any]", columns.arrays)
    reservations = Reservations(**{name: arrays[f"reservations.{name}"] for name in _RESERVATIONS})
    return Support(reservations=reservations, **{name: arrays[name] for name in _SUPPORT})


IMAGE: Final = JsonCodec(plain=plain_image, value=image_of_plain)
"""Linked code."""
SUPPORT: Final = ColumnsCodec(columns=columns_of_support, value=support_of_columns)
"""Places of everything but tensors."""
