"""Stage ``exchange.rows``: the instructions of every tile for each phase, and what a Repeat changes there."""

from typing import Final

from compiler.exchange.artifacts import EncodedRows, RowInputs
from compiler.exchange.codec import ROWS
from compiler.exchange.relocation import iterations_of, patches_between
from compiler.exchange.rows import encode_rows
from compiler.store.codec import Single
from compiler.store.stage import Namespace, Stage


def encoded_rows(inputs: RowInputs, _options: object) -> tuple[EncodedRows, ...]:
    """Rows, their address fields, and the words that change between iterations, of each phase."""
    phases: list[EncodedRows] = []
    for demand, times in zip(inputs.demands.value(), inputs.schedules.value(), strict=True):
        rows, sites = encode_rows(demand, times)
        patches = patches_between(rows.words, sites, iterations_of(demand))
        phases.append(EncodedRows(rows=rows, sites=sites, patches=patches))
    return tuple(phases)


EXCHANGE_ROWS: Final = Stage(
    name="exchange.rows",
    module=__name__,
    format=1,
    inputs=RowInputs,
    outputs=Single(codec=ROWS),
    tables=("target", "instructions"),
    namespace=Namespace.SCHEDULE,
    function=encoded_rows,
)
