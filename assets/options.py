"""The options of a build as configuration of runs, made from ``BuildOptions`` so that both are always alike.

A field of another name or type is refused before a run begins, with its path and what is expected there;
``BuildOptions`` itself then judges the numbers.
"""

from typing import TYPE_CHECKING, Any, Final, cast

import dagster as dg
from pydantic import BaseModel, create_model

from compiler.config import BuildOptions

_ELSEWHERE: Final = frozenset({"version", "workers"})
"""Fields that are no choice of a run, or a setting of the resource itself."""


def _config_of(model: type[BaseModel]) -> type[dg.Config]:
    """A configuration with the fields and defaults of a model."""
    fields: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name in _ELSEWHERE:
            continue
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            nested = _config_of(kind)
            fields[name] = (nested, nested())
        else:
            fields[name] = (kind, field.default)
    made: Any = create_model(model.__name__, __base__=dg.Config, **fields)
    return cast("type[dg.Config]", made)


if TYPE_CHECKING:
    OptionsConfig = dg.Config
else:
    OptionsConfig = _config_of(BuildOptions)
