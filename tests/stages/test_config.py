"""Options are strict, frozen and versioned."""

import tomllib
from typing import Any

import pytest
from pydantic import ValidationError

from compiler.config import BuildOptions, PackageOptions, SimulationOptions
from compiler.fingerprint import REPOSITORY
from compiler.version import VERSION


@pytest.mark.parametrize(
    "fields",
    [
        {"worker": 2},
        {"workers": "2"},
        {"workers": 0},
        {"workers": True},
        {"version": 2},
        {"package": {"runs": 0}},
        {"package": {"runs": 1.0}},
        {"simulation": {"seed": -1}},
        {"simulation": {"seeds": 1}},
    ],
    ids=str,
)
def test_what_is_not_an_option_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BuildOptions.model_validate(fields)


def test_options_survive_being_written_and_cannot_be_changed() -> None:
    options = BuildOptions(package=PackageOptions(runs=3), simulation=SimulationOptions(seed=7))
    assert BuildOptions.model_validate_json(options.model_dump_json()) == options
    with pytest.raises(ValidationError):
        options.workers = 2


def test_packages_state_the_version_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY.root / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
