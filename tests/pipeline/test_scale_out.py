"""What the document about several machines says is what the tool and Dagster take."""

import re
import shlex
from pathlib import Path

import dagster as dg
import yaml

from assets.builds import Builds
from compiler.fingerprint import REPOSITORY
from compiler.store.ahead import Backend, Workers
from pipeline.build_arguments import options_of
from pipeline.cli import GROUPS
from pipeline.cli_build import add_commands, workers_of

TEXT = (REPOSITORY.root / "docs" / "scale-out.md").read_text(encoding="utf-8")
NEEDS_OTHER_PACKAGES = {"storage": "postgres", "run_launcher": "dagster_docker"}


def blocks(language: str) -> list[str]:
    """The blocks of the document in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_the_command_for_a_cluster_is_understood() -> None:
    import argparse

    lines = blocks("sh")[0].replace("\\\n", " ").splitlines()
    words = shlex.split(next(line for line in lines if line.startswith("tilewright")))
    assert words[1] in GROUPS
    parser = argparse.ArgumentParser()
    add_commands(parser)
    arguments = parser.parse_args(words[2:])
    assert workers_of(arguments, options_of(arguments)) == Workers(
        backend=Backend.DASK, scheduler="tcp://scheduler:8786"
    )


def test_the_settings_of_the_resource_are_some() -> None:
    settings = yaml.safe_load(blocks("yaml")[0])["resources"]["builds"]["config"]
    assert Builds(**settings).backend == "dask"


def test_dagster_takes_the_file_as_far_as_its_packages_are_here(tmp_path: Path) -> None:
    file = yaml.safe_load(blocks("yaml")[1])
    for section, names in NEEDS_OTHER_PACKAGES.items():
        assert names in str(file.pop(section))
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(file))
    with dg.DagsterInstance.from_config(str(tmp_path)) as instance:
        assert instance.run_monitoring_enabled
        assert not instance.telemetry_enabled
        assert instance.get_settings("nux") == {"enabled": False}
