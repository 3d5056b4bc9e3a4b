"""Machine code of rearrangements: which generator writes which kernel."""

from compiler.isa.program import Program
from compiler.kernels import emit
from compiler.kernels.rearrange.halves_code import write_halves
from compiler.kernels.rearrange.panels import units_of
from compiler.kernels.rearrange.panels_code import write_panels
from compiler.kernels.rearrange.transpose_code import write_transpose
from compiler.kernels.symbols import SymbolKey
from compiler.target.isa_decisions import Decisions


def program(key: SymbolKey, decisions: Decisions) -> Program:
    """The kernel of a symbol; no decision changes it."""
    del decisions
    code = emit.begin(key)
    match key.variant:
        case "panels":
            write_panels(code, units_of(key), is_drained=key.choice("lanes") == "drained")
        case "transpose":
            write_transpose(
                code,
                is_packing=key.choice("direction") == "pack",
                is_drained=key.choice("lanes") == "drained",
            )
        case "halves":
            is_packing = key.choice("direction") == "pack"
            write_halves(code, is_packing=is_packing, lanes=key.choice("lanes"))
        case _:
            raise ValueError(f"there is no code of {key}")
    return code.finish()
