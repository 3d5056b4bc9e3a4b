"""Prepared words with slots: how programs that differ from tile to tile are encoded.

A program whose operands are :class:`Slot` values is assembled once; filling it for any number of tiles is
arithmetic on arrays. Each slot has the range of the operand it stands for, checked for all instances at once
before a word is made. Filling W words for N instances takes O(N * (W + slots)) array operations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from compiler.isa.assembler import assemble
from compiler.isa.expressions import Slot, Value
from compiler.isa.program import WORD, Bundle, Data, Instruction, Item, Program
from compiler.target.instructions import Access, Field, Operand, OperandKind

Words: TypeAlias = npt.NDArray[np.uint32]
Column: TypeAlias = int | npt.NDArray[np.integer[Any]]
"""One value for all instances, or an array with one for each."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateSlot:
    """A place that is filled.

    Args:
        name: of the values; several places can share one.
        word: index of the word.
        operand: what the values must be.
        fields: where their bits go.
    """

    name: str
    word: int
    operand: Operand
    fields: tuple[Field, ...]


_DATA_WORD: Final = Operand(
    name="word", kind=OperandKind.UNSIGNED, width=32, count=1, suffix="", access=Access.NONE
)
_WHOLE_WORD: Final = (Field(operand=0, low=0, width=32, operand_low=0),)


@final
class Template:
    """A word sequence with slots.

    Args:
        words: the words with zeros in the slots.
        slots: the places to fill.
    """

    def __init__(self, words: Words, slots: tuple[TemplateSlot, ...]) -> None:
        self.words: Final = words
        self.slots: Final = slots
        self.names: Final = tuple(dict.fromkeys(slot.name for slot in slots))

    def fill(self, columns: Mapping[str, Column], instances: int) -> Words:
        """The words of every instance.

        Args:
            columns: the values of each slot.
            instances: number of instances.

        Returns:
            Array of shape (instances, words).

        Raises:
            ValueError: a slot has no values, an unknown one has, or a value is out of range; names slot,
                operand and the first instance.
        """
        if wrong := sorted(columns.keys() ^ set(self.names)):
            raise ValueError(
                f"the template has the slots {', '.join(self.names)}; {', '.join(wrong)} does not match"
            )
        filled = np.repeat(self.words[np.newaxis, :], instances, axis=0)
        wide = {
            name: np.broadcast_to(np.asarray(columns[name], np.int64), (instances,)) for name in self.names
        }
        for slot in self.slots:
            values = wide[slot.name]
            _check(slot, values)
            stored = (values >> slot.operand.shift).astype(np.uint64)
            for field in slot.fields:
                bits = stored >> np.uint64(field.operand_low) << np.uint64(field.low) & np.uint64(field.mask)
                filled[:, slot.word] |= bits.astype(np.uint32)
        return filled


def _check(slot: TemplateSlot, values: npt.NDArray[np.int64]) -> None:
    operand = slot.operand
    wrong = (values < operand.lowest) | (values > operand.highest) | (values % operand.step != 0)
    if wrong.any():
        instance = int(wrong.argmax())
        raise ValueError(f"slot {slot.name}, instance {instance}: {operand.refusal(int(values[instance]))}")


def prepare(program: Program) -> Template:
    """The template of a program with one section and no symbols.

    Raises:
        ValueError: it has several sections, needs a linker, or has a slot where none can be.
    """
    if len(program.sections) != 1:
        raise ValueError(f"a template has one section, not {len(program.sections)}")
    section = assemble(program, "template").sections[0]
    if section.relocations:
        raise ValueError(f"a template has no symbols, and this one needs {section.relocations[0].symbol}")
    if section.size % WORD:
        raise ValueError(f"a template is a number of words, not {section.size} bytes")
    slots: list[TemplateSlot] = []
    for offset, item, _ in program.sections[0].placed():
        slots += _slots_of(item, offset)
    return Template(np.frombuffer(section.content, "<u4").astype(np.uint32), tuple(slots))


def _slots_of(item: Item, offset: int) -> list[TemplateSlot]:
    match item:
        case Instruction(form=form, operands=values):
            first = offset // WORD
            count = len(form.operands)
            return [
                *_operand_slots(values[:count], form.operands, form.fields, first),
                *_operand_slots(values[count:], form.payload, form.payload_fields, first + 1),
            ]
        case Bundle(main=main, aux=aux):
            return _slots_of(main, offset) + _slots_of(aux, offset + WORD)
        case Data(width=width, values=values):
            found = [(index, value) for index, value in enumerate(values) if isinstance(value, Slot)]
            if found and (width != WORD or offset % WORD):
                raise ValueError(f"slot {found[0][1].name} in data is no aligned word")
            return [
                TemplateSlot(
                    name=value.name, word=offset // WORD + index, operand=_DATA_WORD, fields=_WHOLE_WORD
                )
                for index, value in found
            ]
        case _:
            return []


def _operand_slots(
    values: tuple[Value, ...], operands: tuple[Operand, ...], fields: tuple[Field, ...], word: int
) -> list[TemplateSlot]:
    return [
        TemplateSlot(
            name=value.name,
            word=word,
            operand=operands[index],
            fields=tuple(field for field in fields if field.operand == index),
        )
        for index, value in enumerate(values)
        if isinstance(value, Slot)
    ]
