"""Emitted toy programs for tests, and running them."""

from dataclasses import dataclass
from typing import final

import numpy as np

from compiler.exchange.phase import schedule_program
from compiler.isa.linker import Image
from compiler.low.project import project
from compiler.package.emit import Emission, emit
from compiler.package.format import read_package, write_package
from compiler.package.hostplan import plan_host
from compiler.package.programs import ProgramInputs
from compiler.package.records import Application
from compiler.package.runtime import link_tile_code
from compiler.package.support import Support, size_support
from compiler.placement.ir import Placement
from compiler.target.host import requester
from compiler.target.tiles import TILE_COUNT, logical_to_physical, physical_tiles
from compiler.target.units import LogicalTile, PhysicalTile
from tests.package.device import Device
from tests.package.toy import SYMBOLS, Data, Toy, build, kernel_objects, place

VERSION = "test"
IDLE = PhysicalTile(500)
"""A tile without work in the toys of the tests."""


def program_inputs(
    toy: Toy, *, runs: int | None = 1, placement: Placement | None = None
) -> tuple[Image, ProgramInputs]:
    """Linked code and what programs are emitted from."""
    program = build(toy)
    placed = place(program) if placement is None else placement
    image = link_tile_code(kernel_objects(), SYMBOLS)
    inputs = ProgramInputs(
        program=program,
        work=project(program),
        placement=placed,
        exchange=schedule_program(program, placed, physical_tiles(np.arange(TILE_COUNT))),
        host=plan_host(program, placed),
        symbols={symbol.name: symbol.address for symbol in image.symbols if symbol.is_global},
        runs=runs,
    )
    return image, inputs


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """A toy, emitted and read back."""

    toy: Toy
    image: Image
    inputs: ProgramInputs
    placement: Placement
    support: Support
    emission: Emission
    content: bytes
    application: Application


def emitted(toy: Toy, *, runs: int | None = 1) -> Emitted:
    """Size, emit, write and read a toy."""
    placement = place(build(toy))
    image, inputs = program_inputs(toy, runs=runs, placement=placement)
    support = size_support(image, inputs)
    emission = emit(inputs, image, support, compiler_version=VERSION)
    content = write_package(emission.application)
    return Emitted(
        toy=toy,
        image=image,
        inputs=inputs,
        placement=placement,
        support=support,
        emission=emission,
        content=content,
        application=read_package(content, name="toy"),
    )


def device_of(toy: Toy, application: Application) -> Device:
    """The tiles with work, those that request for them, and one that has none."""
    working = [logical_to_physical(LogicalTile(tile)) for tile in toy.tiles]
    return Device(application, sorted({*working, *(requester(tile) for tile in working), IDLE}))


def parameter_file(toy: Toy, data: Data) -> bytes:
    """The file of call ``initialize``."""
    return data.weights.astype("<u4").tobytes() + bytes(4 * toy.more)
