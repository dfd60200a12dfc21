"""What `make release` writes beside sdist and wheel. test_install.py has the installations."""

import doctest
import json
import re
from pathlib import Path

from journal.version import __version__
from tests import ci_files

release = ci_files.load("release")
ROOT = Path(__file__).resolve().parents[2]


def test_examples():
    assert doctest.testmod(release).failed == 0


def test_the_changes_of_this_version_are_found():
    text = release.changes((ROOT / "CHANGELOG.md").read_text(), __version__)

    assert text.startswith("## ")
    assert text.count("\n## ") == 0


def test_an_sbom_names_the_wheel_and_what_it_brings(tmp_path):
    wheel = tmp_path / "quiver_mq-1.0-py3-none-any.whl"
    wheel.write_bytes(b"wheel")
    installed = [
        ["click", "8.3", "BSD-3-Clause", []],
        ["quiver-mq", "1.0", "Apache-2.0", ["click"]],
        ["pip", "25", "MIT", []],
    ]

    document = json.loads(json.dumps(release.sbom(installed, "quiver-mq", wheel)))

    assert document["bomFormat"] == "CycloneDX"
    assert document["metadata"]["component"]["purl"] == "pkg:pypi/quiver-mq@1.0"
    assert len(document["metadata"]["component"]["hashes"][0]["content"]) == 64
    assert [one["purl"] for one in document["components"]] == ["pkg:pypi/click@8.3"]


def test_the_unit_runs_a_command_that_is_installed():
    unit = (ROOT / "packaging/quiver-broker@.service").read_text()

    (command,) = re.findall(r"^ExecStart=/opt/quiver/bin/(\S+) run ", unit, re.MULTILINE)
    assert command in release.COMMANDS


def test_the_container_s_options_are_the_command_s():
    from broker.cli.create import create

    line = re.search(r"^CMD (\[.*)$", (ROOT / "packaging/Containerfile").read_text(), re.M)[1]
    (made,) = re.findall(r"broker create (.*?) && exec", json.loads(line)[-1])
    options = {flag for one in create.params for flag in one.opts}
    assert set(re.findall(r"--[a-z-]+", made)) <= options
