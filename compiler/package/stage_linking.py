"""Stage ``linking``: the runtime and the kernels of a program as one image, the same on every tile."""

from typing import Final

from compiler.isa.linker import Image
from compiler.package.artifacts import IMAGE, LinkingInputs
from compiler.package.runtime import link_tile_code
from compiler.store.codec import Single
from compiler.store.stage import Stage


def linked(inputs: LinkingInputs, _options: object) -> Image:
    """The image.

    Raises:
        DoesNotFit: the code ranges of a tile are too small.
    """
    return link_tile_code(inputs.objects.value(), inputs.symbols)


LINKING: Final = Stage(
    name="linking",
    module=__name__,
    format=1,
    inputs=LinkingInputs,
    outputs=Single(codec=IMAGE),
    tables=("target", "instructions", "decisions"),
    function=linked,
)
