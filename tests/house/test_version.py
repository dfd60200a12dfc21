"""One version, in every package and every command, and a distribution's name that is ours."""

import importlib
import re
import subprocess
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

import broker.cli.main
import journal.cli.bench
import journal.cli.main
import pipeline.cli.main

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = {
    "broker": broker.cli.main.broker,
    "journal": journal.cli.main.journal,
    "journal-bench": journal.cli.bench.journal_bench,
    "pipeline": pipeline.cli.main.pipeline,
}


@pytest.mark.parametrize("package", ["journal", "jdbcstore", "broker", "pipeline"])
def test_every_package_has_it(package):
    module = importlib.import_module(package)

    assert module.__version__ == version("quiver-mq")
    assert "__version__" in module.__all__


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_it(name):
    shown = CliRunner().invoke(COMMANDS[name], ["--version"])

    assert (shown.exit_code, shown.output) == (0, f"{name}, version {journal.__version__}\n")


def test_the_distribution_installs_only_packages_of_its_own():
    """`masking`, say, would be anybody's."""
    found = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]

    assert found["find"]["include"] == ["journal*", "jdbcstore*", "broker*", "pipeline*"]


def test_no_text_names_the_distribution_of_somebody_else():
    """`quiver` on PyPI is another project's."""
    listed = subprocess.run(
        ["grep", "-rnIE", "--exclude-dir=build", "--exclude-dir=.*", r"\bquiver\[", "."],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.splitlines()

    assert [line for line in listed if not re.search("test_version.py", line)] == []
