"""Report data as JSON, and back.

Reports are frozen dataclasses of numbers, texts, enumerations, tuples and mappings. Their JSON has the names
of the fields and nothing else, so that other programs read it without knowing ours; equal reports have equal
texts. Reading back is strict: another type, a missing field and an unknown one are refused.
"""

from typing import TypeVar

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

T = TypeVar("T")

strict = with_config(ConfigDict(extra="forbid", allow_inf_nan=False))
"""Decorates the dataclass that a text holds: unknown fields are refused, and numbers are finite."""


def json_of(value: object) -> str:
    """The text of a report, in one line."""
    return TypeAdapter[object](type(value)).dump_json(value).decode()


def report_of_json(kind: type[T], text: str | bytes) -> T:
    """The report in a text.

    Raises:
        ValueError: it is none of this kind; the message names the first place that is wrong.
    """
    try:
        return TypeAdapter[T](kind).validate_json(text, strict=True)
    except ValidationError as fault:
        first = fault.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"])) or "the text"
        raise ValueError(f"no {kind.__name__}: {place}: {first['msg']}") from fault
