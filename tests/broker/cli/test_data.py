"""`broker data`: both journals of an instance, or of a folder that Artemis wrote."""

from pathlib import Path

import pytest

from broker.cli.exit_status import run
from broker.cli.main import broker as commands
from tests.unpack import unpack

GOLDEN = Path(__file__).resolve().parents[2] / "golden"
BINDINGS = "B I N D I N G S  J O U R N A L"
MESSAGES = "M E S S A G E S   J O U R N A L"


def call(capsys, *words):
    status = run(commands, "broker", ["data", *map(str, words)])
    said = capsys.readouterr()
    return status, said.out.splitlines(), said.err.splitlines()


@pytest.fixture
def folder(tmp_path):
    """Data of Artemis's broker."""
    return unpack(GOLDEN / "broker_basic" / "broker.tar.gz", tmp_path)


@pytest.fixture
def instance(folder, tmp_path):
    """An instance of ours over the same data."""
    made = tmp_path / "instance"
    assert (
        run(
            commands,
            "broker",
            ["create", str(made), "--password", "p", "--no-web", "--max-disk-usage", "-1"],
        )
        == 0
    )
    for name in ("bindings", "journal"):
        place = made / "data" / name
        if place.exists():
            place.rmdir()
        (folder / name).rename(place)
    return made


@pytest.mark.parametrize("kind", ["folder", "instance"])
def test_both_journals_are_printed_as_artemis_does(kind, request, capsys):
    place = request.getfixturevalue(kind)
    capsys.readouterr()

    status, lines, _ = call(capsys, "print", place)

    assert status == 0
    bindings, messages = lines.index(BINDINGS), lines.index(MESSAGES)
    assert bindings < messages
    expected = (GOLDEN / "broker_basic" / "data_print.txt").read_text().splitlines()
    queues = [line for line in expected if "PersistentQueueBindingEncoding" in line]
    shown = lines[bindings:messages]
    assert {line.split(";", 4)[-1] for line in queues if line.startswith("recordID")} <= {
        line.split(";", 4)[-1] for line in shown
    }
    assert any("AddRef;QueueEncoding [queueID=7]" in line for line in lines[messages:])


def test_raw_shows_every_record(folder, capsys):
    _, lines, _ = call(capsys, "print", folder, "--raw")

    assert sum(line.startswith("operation@") for line in lines) > 20


def test_both_are_counted_and_compacted(instance, capsys):
    capsys.readouterr()
    status, lines, _ = call(capsys, "stat", instance)
    assert (status, sum("J O U R N A L" in line for line in lines)) == (0, 2)
    _, before, _ = call(capsys, "print", instance)

    assert call(capsys, "compact", instance)[0] == 0

    _, after, _ = call(capsys, "print", instance)
    assert [line.split(";")[0] for line in after if line.startswith("recordID")] == [
        line.split(";")[0] for line in before if line.startswith("recordID")
    ]


def test_what_is_neither_is_one_line(tmp_path, capsys):
    status, lines, said = call(capsys, "print", tmp_path)

    assert (status, lines, len(said)) == (2, [], 1)
    assert "neither an instance" in said[0]
