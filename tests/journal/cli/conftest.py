"""Run the command line in this process and see what it says."""

import pytest

from journal.cli.guard import run
from journal.cli.main import journal


@pytest.fixture
def call(capsys):
    """`call("verify", folder)`: exit status, lines on standard output, lines on standard error."""

    def invoke(*arguments):
        capsys.readouterr()
        status = run(journal, "journal", [str(argument) for argument in arguments])
        said = capsys.readouterr()
        return status, said.out.splitlines(), said.err.splitlines()

    return invoke
