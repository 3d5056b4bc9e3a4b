"""The errors that tell a user why a tile could not be placed.

Each names the tiles, the bounds against what is free with the shortfall, the fullest step and what lives at
it, the requests that cannot coexist where that is proven, the graph nodes they belong to, and what to do.
"""

from collections.abc import Iterable, Sequence
from typing import Final, assert_never

import numpy as np

from compiler.errors import DoesNotFit, Measure, NumberKind
from compiler.geometry.owners import TileId
from compiler.low.ids import NO_ROW
from compiler.low.ir import Column, LowProgram
from compiler.placement.bound import Bound, Space
from compiler.placement.problem import NEVER, TileProblem
from compiler.placement.solve import Open, Refuted

STAGE: Final = "placement"

_SHOWN: Final = 6
"""Requests that are told one by one; of longer lists the largest are."""


def refusal_of_refuted(
    program: LowProgram, problem: TileProblem, proof: Refuted, tiles: Sequence[TileId]
) -> DoesNotFit:
    """Nothing can fit."""
    fullest = proof.bound if proof.bound is not None else _fullest(proof.bounds)
    concerned = np.isin(problem.request, proof.conflict)
    conflict = _told(program, problem, proof.conflict)
    if len(proof.conflict) == 1:
        cannot = f"alone it cannot be placed: {conflict}"
    else:
        cannot = f"these cannot coexist, and the proof needs each of them: {conflict}"
    live = _requests(problem, fullest)
    also = ""
    if live != proof.conflict:
        also = f"; live at step {problem.steps[fullest.rank]}, the fullest: {_told(program, problem, live)}"
    if proof.bound is not None:
        message = (
            f"what lives at step {problem.steps[proof.bound.rank]} needs more than is free in "
            f"{proof.bound.space.value}, however it is placed; {cannot}{also}"
        )
        remedy = _remedy(proof.bound)
        numbers = (_measure(problem, proof.bound),)
    else:
        message = (
            "no placement exists, though the bytes would suffice at every step: a search of all placements "
            f"ended after {proof.nodes:,} decisions; {cannot}{also}"
        )
        remedy = (
            "shorten a life, drop a separation or an alignment, or split an operation among those named "
            "above; or reserve other ranges"
        )
        numbers = tuple(_measure(problem, bound) for bound in proof.bounds)
    return DoesNotFit(
        message,
        stage=STAGE,
        subject=_subject(tiles),
        next_step=remedy,
        numbers=numbers,
        nodes=_nodes(program, problem.buffer[concerned]),
    )


def refusal_of_open(
    program: LowProgram, problem: TileProblem, tried: Open, tiles: Sequence[TileId]
) -> DoesNotFit:
    """Nothing was found, and nothing is proven."""
    fullest = _fullest(tried.bounds)
    requests = sorted({stuck.request for stuck in tried.stuck})
    concerned = np.isin(problem.request, requests)
    searched = f" and a search of {tried.nodes:,} decisions was given up" if tried.nodes else ""
    return DoesNotFit(
        f"none of {len(tried.stuck)} orders of placing {len(problem.alignment)} requests fits{searched}; "
        f"that none can is not proven; live at the fullest step, {problem.steps[fullest.rank]}: "
        f"{_told(program, problem, _requests(problem, fullest))}",
        stage=STAGE,
        subject=_subject(tiles),
        next_step="leave more room: split the operations named above, or reserve less",
        numbers=[_measure(problem, bound) for bound in tried.bounds],
        nodes=_nodes(program, problem.buffer[concerned]),
    )


def _subject(tiles: Sequence[TileId]) -> str:
    return f"tile {tiles[0]}" + (f" (and {len(tiles) - 1} more tiles alike)" if len(tiles) > 1 else "")


def _fullest(bounds: Iterable[Bound]) -> Bound:
    """The bound with the least to spare, of those about what lives at a step."""
    return min((bound for bound in bounds if len(bound.spans) > 1 or bound.space in _WHOLE), key=_spare)


_WHOLE: Final = (Space.ALL, Space.INTERLEAVED, Space.KEPT)


def _spare(bound: Bound) -> int:
    return -bound.shortfall


def _requests(problem: TileProblem, bound: Bound) -> tuple[int, ...]:
    return tuple(sorted({int(request) for request in problem.request[list(bound.spans)]}))


def _told(program: LowProgram, problem: TileProblem, requests: Sequence[int]) -> str:
    """Requests by size: what they are, how large, when they live and for which node."""
    told: list[tuple[int, int, str]] = []
    for request in requests:
        spans = problem.spans_of(request)
        rows = problem.buffer[spans]
        size = int((problem.offset[spans] + problem.size[spans]).max() - problem.offset[spans].min())
        if problem.sequence[request] != NO_ROW:
            what = f"{len(rows)} members of a sequence from buffer {rows[0]} on"
        else:
            shared = len(rows) - 1
            root = int(program.buffers.root[rows[0]])
            what = f"buffer {root}" + (f" and {shared} in its storage" if shared else "")
        lives = problem.last[spans] != NEVER[1]
        when = "never live"
        if lives.any():
            first = int(problem.steps[problem.first[spans][lives].min()])
            last = int(problem.steps[problem.last[spans][lives].max()])
            when = f"step {first}" if first == last else f"steps {first} to {last}"
        node = program.nodes[int(program.buffers.node[rows[0]])]
        told.append((-size, request, f"{what} ({size:,} bytes, {when}, {node})"))
    texts = [text for _, _, text in sorted(told)]
    more = len(texts) - _SHOWN
    return ", ".join(texts[:_SHOWN]) + (f", and {more} smaller" if more > 0 else "")


def _remedy(bound: Bound) -> str:
    missing = f"{bound.shortfall:,} bytes"
    match bound.space:
        case Space.ALL:
            return (
                f"make what lives at that step {missing} smaller: split the operations named above over more "
                "tiles, or lower their precision"
            )
        case Space.INTERLEAVED:
            return (
                f"keep {missing} out of interleaved memory: split the operations named above over more "
                "tiles, lower their precision, or choose kernels that take standard memory"
            )
        case Space.KEPT:
            return (
                f"keep {missing} less between runs: split the parameters, inputs and outputs named above "
                "over more tiles, or lower their precision"
            )
        case Space.GAP | Space.INTERLEAVED_GAP:
            return (
                f"make the longest range {missing} shorter: split the operation named above over more tiles, "
                "or reserve other ranges"
            )
        case _:
            assert_never(bound.space)


def _nodes(program: LowProgram, buffers: Column) -> list[str]:
    rows = sorted({int(node) for node in program.buffers.node[buffers]})
    return [program.nodes[row] for row in rows]


def _measure(problem: TileProblem, bound: Bound) -> Measure:
    return Measure(
        name=f"{bound.space.value} at step {problem.steps[bound.rank]}",
        value=bound.needed,
        unit="bytes",
        kind=NumberKind.BOUND,
        limit=bound.free,
    )
