"""Files of examples: Markdown with ```json blocks, one JSON object, a list of objects, or JSON lines."""

import json
import re
from pathlib import Path
from typing import cast

from compiler.errors import InvalidInput

_STAGE = "exchange check-fixtures"
_TOO_LONG = "holds a number of too many digits"  # the only other thing that the reader of JSON refuses
_BLOCK = re.compile(r"^```json[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


def read_objects(path: Path) -> list[dict[str, object]]:
    """The objects of a file, in order.

    Raises:
        InvalidInput: it cannot be read, holds no JSON, or something other than objects.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise _invalid(path, f"cannot be read: {reason}") from error
    blocks: list[str] = _BLOCK.findall(text)
    if blocks:
        values = [_parsed(path, block, f"block {index + 1}") for index, block in enumerate(blocks)]
    else:
        values = _plain(path, text)
    objects: list[dict[str, object]] = []
    for index, value in enumerate(values):
        if not isinstance(value, dict):
            raise _invalid(path, f"value {index + 1} is not an object")
        objects.append(cast("dict[str, object]", value))
    if not objects:
        raise _invalid(path, "holds no example")
    return objects


def _plain(path: Path, text: str) -> list[object]:
    """One value, the values of a list, or one value a line."""
    try:
        value: object = json.loads(text)
    except json.JSONDecodeError as whole:
        lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
        if len(lines) < 2 or not all(line.lstrip().startswith("{") for _, line in lines):
            raise _invalid(path, f"is no JSON, line {whole.lineno}: {whole.msg}") from whole
        return [_parsed(path, line, f"line {number}") for number, line in lines]
    except RecursionError as error:
        raise _invalid(path, "is nested too deeply") from error
    except ValueError as error:
        raise _invalid(path, _TOO_LONG) from error
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _parsed(path: Path, text: str, place: str) -> object:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise _invalid(path, f"{place} is no JSON, line {error.lineno} of it: {error.msg}") from error
    except RecursionError as error:
        raise _invalid(path, f"{place} is nested too deeply") from error
    except ValueError as error:
        raise _invalid(path, f"{place} {_TOO_LONG}") from error


def _invalid(path: Path, message: str) -> InvalidInput:
    return InvalidInput(
        message,
        stage=_STAGE,
        subject=path.name,
        next_step="give Markdown with json blocks, a JSON object, a list of objects, or one object a line",
    )
