"""Run the command line in this process and see what it says."""

import subprocess
import sys

import pytest

from journal.cli.main import journal
from journal.commands.exit_status import run


@pytest.fixture
def call(capsys):
    """`call("verify", folder)`: exit status, lines on standard output, lines on standard error."""

    def invoke(*arguments):
        capsys.readouterr()
        status = run(journal, "journal", [str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return invoke


@pytest.fixture
def shell():
    """`shell("exec", folder, input=...)`: the finished process of a command of its own."""

    def run_command(*arguments, **options):
        return subprocess.run(
            [sys.executable, "-m", "journal.cli.main", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
            **({"stdin": subprocess.DEVNULL} if "input" not in options else {}),
            **options,
        )

    return run_command
