"""The options of a build: one frozen object, in which every default has a reason.

Strict: a value of another type and an unknown field are refused. Stages do not see this module. Each names
the options that it reads and states their types in a protocol of its own, so that a new option here re-keys
nothing.

``version`` counts the forms of this object: whoever removes an option or changes what one means raises it,
and options that were written down before are refused instead of being read as something else.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from compiler.errors import InvalidInput
from compiler.target.isa_decisions import overrides_text, read_overrides
from compiler.target.tiles import TILE_COUNT

_STRICT = ConfigDict(strict=True, frozen=True, extra="forbid")

Positive = Annotated[int, Field(ge=1)]
Seed = Annotated[int, Field(ge=0)]


class PackageOptions(BaseModel):
    """What kind of package is built.

    Args:
        runs: how often it serves a run before it ends; None for as long as the device is powered, which is
            what its users do.
        profile: whether tiles sample their clocks at every step, and the package says what the steps are. Not
            by default: samples take cycles and memory.
    """

    model_config = _STRICT

    runs: Positive | None = None
    profile: bool = False


class PlanningOptions(BaseModel):
    """How a model is planned.

    Args:
        tiles: of the build. All of the card, which is what its owner has.
        rounding: how sums of products become F16. Nearest even, since runs then repeat to the bit.
        attempts: candidates of the search that are placed and scheduled, beside the baseline. A few, since
            each takes as long as a build without search.
        replicate_inputs: the host writes inputs to every tile that reads them, which takes host bytes for
            cycles; those that have to be cast first stay stored once, since each tile would cast all it has.
            Not by default: published figures name it, and a host link is slow.
    """

    model_config = _STRICT

    tiles: Annotated[int, Field(ge=1, le=TILE_COUNT)] = TILE_COUNT
    rounding: Literal["nearest", "stochastic"] = "nearest"
    replicate_inputs: bool = False
    attempts: Annotated[int, Field(ge=0)] = 4


class SimulationOptions(BaseModel):
    """What the simulation of a package does.

    Args:
        seed: of weights and inputs. Any number does.
        runs: runs after one upload of the weights. The second is the first to find what a run leaves behind.
    """

    model_config = _STRICT

    seed: Seed = 1
    runs: Positive = 2


class InjectOptions(BaseModel):
    """What is made wrong on purpose, to see that an alarm rings. Never for a package that somebody uses.

    Args:
        fault: none; or ``wrong_output``: the simulation turns signs of outputs over before they are
            compared; ``more_cycles``: it counts a quarter too many; ``unrepeatable``: it counts something
            that no two runs have alike; ``worse_program``: the search counts a tenth too many of the program
            that it accepts. Nothing is wrong by default.
    """

    model_config = _STRICT

    fault: Literal["none", "wrong_output", "more_cycles", "unrepeatable", "worse_program"] = "none"


class IsaOptions(BaseModel):
    """How open questions of the instruction set are answered.

    Args:
        overrides: numbers that replace ours, a line ``NAME = VALUE`` for each, ascending by name. None by
            default: whoever knows the vendor's headers gives them.
    """

    model_config = _STRICT

    overrides: str = ""

    @field_validator("overrides")
    @classmethod
    def _has_one_form(cls, text: str) -> str:
        """Equal overrides are one text, whatever the file looked like."""
        try:
            return overrides_text(read_overrides(text, "isa.overrides"))
        except InvalidInput as error:
            raise ValueError(error.message) from error


class BuildOptions(BaseModel):
    """All options of a build.

    Args:
        version: form of the options.
        planning: how a model is planned.
        package: what kind of package.
        simulation: how it is tried.
        inject: what is made wrong to test alarms.
        isa: how open questions of the instruction set are answered.
        workers: threads of a simulation; changes no byte of any result. One, since builds of several models
            can run side by side.
    """

    model_config = _STRICT

    version: Literal[1] = 1
    planning: PlanningOptions = PlanningOptions()
    package: PackageOptions = PackageOptions()
    simulation: SimulationOptions = SimulationOptions()
    inject: InjectOptions = InjectOptions()
    isa: IsaOptions = IsaOptions()
    workers: Positive = 1
