"""Loop nests over which storage addresses are linear: the core under traversals and matching.

**Problem.** Coordinates are linear forms of loops. An element order takes them apart again, each term of an
axis being ``stride * (what is left of the coordinate // weight)``. The address is linear in the loops
wherever no such quotient carries from one loop into another. Given any loops, weights and bases, cut the
loops into few nests in which every quotient is linear, for one side (a traversal) or for two at once (source
and destination of a copy).

**Method.** One quotient at a time. Loops whose step is a multiple of the weight move the quotient and never
its remainder. While the remainders of the others can reach the weight, the loop of the largest such step is
cut:

* into head, whole periods and tail, where its steps divide the weight and the finer loops stay between its
  steps. A period becomes an inner loop, and the loop over periods steps by the weight. Three nests.
* otherwise into its residues: every q-th iteration, q = weight / gcd(step, weight), is a nest whose loop
  steps by a multiple of the weight. At most q nests, and q is at most the weight, a block of the order.

Either way one loop fewer has a remainder that moves, so the process ends after as many cuts as loops. The
number of nests depends on blocks and phases, never on the number of elements.

**Rejected.** A common refinement of the two sides' digits exists only where their blocks divide one another
and their phases agree; shifted windows and heads of 72 in panels of 16 do not. Enumerating elements or rows
is what this module exists to avoid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias, final

from compiler.geometry.iteration import LinearForm
from compiler.geometry.order import IndexMap

Form: TypeAlias = tuple[int, ...]
"""Base, then the step of each loop."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A tensor's storage and its coordinates over the loops."""

    storage: IndexMap
    coordinates: tuple[LinearForm, ...]


@final
@dataclass(frozen=True, slots=True)
class Nest:
    """Loops of more than one iteration, and linear forms over them."""

    counts: tuple[int, ...]
    forms: tuple[Form, ...]

    def part(self, loop: int, start: int, count: int, stride: int = 1) -> "Nest":
        """Iterations start, start + stride, ... of one loop; a single iteration leaves no loop."""
        keep = count > 1
        counts = (*self.counts[:loop], *((count,) if keep else ()), *self.counts[loop + 1 :])
        forms = tuple(
            (
                form[0] + start * form[loop + 1],
                *form[1 : loop + 1],
                *((stride * form[loop + 1],) if keep else ()),
                *form[loop + 2 :],
            )
            for form in self.forms
        )
        return Nest(counts, forms)

    def tiled(self, loop: int, period: int) -> "Nest":
        """The loop as one over periods and, last, one within them; the period (above 1) divides its count."""
        inner = Nest((*self.counts, period), tuple((*form, form[loop + 1]) for form in self.forms))
        return inner.part(loop, 0, self.counts[loop] // period, period)

    def with_form(self, position: int, form: Form) -> "Nest":
        """The nest with one form replaced."""
        return Nest(self.counts, (*self.forms[:position], form, *self.forms[position + 1 :]))


def address_nests(extents: Sequence[int], sides: Sequence[Side]) -> tuple[Nest, ...]:
    """Nests that together run over all points of ``extents``, with one form per side: its storage index.

    Nests come in the order of the first side's coordinates where that is a choice. The index is in elements.
    """
    if not all(extents):
        return ()
    widths = [len(side.coordinates) for side in sides]
    forms = [(form.base, *form.steps) for side in sides for form in side.coordinates]
    whole = Nest(tuple(extents), (*forms, *((0,) * (len(extents) + 1) for _ in sides)))
    for loop in reversed(range(len(extents))):
        if extents[loop] == 1:
            whole = whole.part(loop, 0, 1)
    nests: list[Nest] = [_fused(whole)]
    for number, side in enumerate(sides):
        address = len(forms) + number
        for axis in range(widths[number]):
            position = sum(widths[:number]) + axis
            for weight, stride in side.storage.axis_terms(axis):
                nests = [
                    _take_term(linear, position, address, weight, stride)
                    for nest in nests
                    for linear in _carry_free(nest, position, weight)
                ]
            # What remains belongs to digits with a single value: nothing.
            nests = [nest.with_form(position, (0,) * (len(nest.counts) + 1)) for nest in nests]
        nests = [_fused(nest) for nest in nests]
    return tuple(Nest(nest.counts, nest.forms[len(forms) :]) for nest in nests)


def _carry_free(nest: Nest, position: int, weight: int) -> Iterator[Nest]:
    """Parts of the nest over which ``form // weight`` is linear, in order of the loop that is cut."""
    if weight == 1:
        yield nest
        return
    base, *steps = nest.forms[position]
    phase = base % weight
    moving = [loop for loop, step in enumerate(steps) if step % weight]
    reach = sum(steps[loop] * (nest.counts[loop] - 1) for loop in moving)
    if phase + reach < weight:
        yield nest
        return
    loop = max(moving, key=lambda k: steps[k])
    step, count = steps[loop], nest.counts[loop]
    finer = reach - step * (count - 1)
    if weight % step == 0 and phase % step + finer < step:
        period = weight // step
        head = min(-(phase // step) % period, count)
        periods, tail = divmod(count - head, period)
        if head:
            yield nest.part(loop, 0, head)
        if periods:
            yield nest.part(loop, head, periods * period).tiled(loop, period)
        if tail:
            yield nest.part(loop, count - tail, tail)
        return
    period = min(weight // gcd(step, weight), count)
    for residue in range(period):
        yield from _carry_free(
            nest.part(loop, residue, -(-(count - residue) // period), period), position, weight
        )


def _take_term(nest: Nest, position: int, address: int, weight: int, stride: int) -> Nest:
    """Move the linear quotient ``form // weight`` of a coordinate, times ``stride``, into the address."""
    base, *steps = nest.forms[position]
    quotient = (base // weight, *(step // weight if step % weight == 0 else 0 for step in steps))
    remainder = (base % weight, *(0 if step % weight == 0 else step for step in steps))
    moved = tuple(old + stride * more for old, more in zip(nest.forms[address], quotient, strict=True))
    return nest.with_form(position, remainder).with_form(address, moved)


def _fused(nest: Nest) -> Nest:
    """The nest with loops joined where one continues the other in every form."""
    loops = [(count, tuple(form[loop + 1] for form in nest.forms)) for loop, count in enumerate(nest.counts)]
    joined = fuse(loops)
    counts = tuple(count for count, _ in joined)
    return Nest(
        counts,
        tuple((form[0], *(steps[number] for _, steps in joined)) for number, form in enumerate(nest.forms)),
    )


def fuse(loops: Sequence[tuple[int, tuple[int, ...]]]) -> list[tuple[int, tuple[int, ...]]]:
    """Loops as (count, step per form), joined while any loop's steps are another's steps times its count."""
    joined = list(loops)
    changed = True
    while changed:
        changed = False
        for outer in range(len(joined)):
            for inner in range(len(joined)):
                count, steps = joined[inner]
                if inner != outer and all(
                    far == count * near for far, near in zip(joined[outer][1], steps, strict=True)
                ):
                    joined[outer] = (joined[outer][0] * count, steps)
                    del joined[inner]
                    changed = True
                    break
            if changed:
                break
    return joined
