"""`broker data recover`: messages out of journals that a start refuses, or that were emptied."""

from pathlib import Path

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from tests.unpack import unpack

GOLDEN = Path(__file__).resolve().parents[2] / "golden"


def call(capsys, *words):
    status = run(commands, "broker", ["data", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out, said.err.splitlines()


@pytest.fixture
def folder(tmp_path):
    """Data of Artemis's broker: two large messages, one of them acknowledged."""
    return unpack(GOLDEN / "broker_large" / "broker.tar.gz", tmp_path / "data")


def test_what_was_acknowledged_comes_back_and_is_exported(folder, tmp_path, capsys):
    target = tmp_path / "new"
    live = call(capsys, "exp", folder)[1].count("<message ")

    status, out, said = call(capsys, "recover", folder, "--target", target)
    assert (status, said) == (0, [])
    count = int(out.split()[1])
    assert count > live

    exported = call(capsys, "exp", folder, "--journal", target)[1]
    assert exported.count("<message ") == count - sum(
        "left out" in line for line in call(capsys, "exp", folder, "--journal", target)[2]
    )


@pytest.mark.parametrize("reclaimed", [False, True])
def test_a_damaged_file_is_told_and_the_others_are_read(folder, tmp_path, capsys, reclaimed):
    whole = call(capsys, "recover", folder, "--target", tmp_path / "whole")[1]
    file = min((folder / "journal").glob("*.amq"))
    data = bytearray(file.read_bytes())
    data[0:4] = b"\xff\xff\xff\xff"
    file.write_bytes(data)
    options = ("--reclaimed",) if reclaimed else ()

    status, out, said = call(capsys, "recover", folder, "--target", tmp_path / "new", *options)

    assert status == 1
    assert any(file.name in line for line in said)
    if reclaimed:
        assert out.split()[1] == whole.split()[1]
    assert [one.name for one in tmp_path.glob("recover.*")] == []


def test_a_bare_journal_is_enough(folder, tmp_path, capsys):
    words = ("recover", tmp_path, "--journal", folder / "journal", "--target", tmp_path / "new")

    assert call(capsys, *words)[0] == 0


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("data/journal/inside", "which must not change"),
        ("data/bindings", "is not empty"),
    ],
)
def test_a_target_that_cannot_be_is_one_line(target, said, folder, tmp_path, capsys):
    status, out, lines = call(capsys, "recover", folder, "--target", tmp_path / target)

    assert (status, out, len(lines)) == (2, "", 1)
    assert said in lines[0]


def test_no_journal_is_one_line(tmp_path, capsys):
    status, _, lines = call(capsys, "recover", tmp_path, "--target", tmp_path / "new")

    assert (status, len(lines)) == (2, 1)
