"""Stage ``planner.fronts``: the fronts of one product, for every program that has it.

Its code is the enumeration and the prices of products, and no more of the planner: what is done with elements
between products, or how a program is walked and improved, re-keys nothing here.
"""

from typing import Final

from compiler.planner.fronts import FRONTS, FrontInputs, fronts_of
from compiler.planner.gemm_candidates import GemmCandidates
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage


def found_fronts(inputs: FrontInputs, _options: object) -> GemmCandidates:
    """The fronts."""
    return fronts_of(inputs)


PRODUCT_FRONTS: Final = Stage(
    name="planner.fronts",
    module=__name__,
    format=1,
    inputs=FrontInputs,
    outputs=Single(codec=FRONTS),
    tables=("target",),
    namespace=Namespace.FRAGMENT,
    function=found_fronts,
)
"""What a product can be, in every way that nothing else beats."""
