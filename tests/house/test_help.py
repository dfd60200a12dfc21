"""What a command is for fits its line in the list of commands, on a terminal of 80 columns."""

import click
import pytest

from broker.cli.main import broker
from journal.cli.bench import journal_bench
from journal.cli.main import journal
from pipeline.cli.main import pipeline

COLUMNS = 80
COMMANDS = (journal, journal_bench, broker, pipeline)


@pytest.fixture(autouse=True)
def _terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def helps(command, parent=None):
    """(path, help) of a command, and of all groups below it."""
    with click.Context(command, parent, command.name, **command.context_settings) as context:
        yield context.command_path, command.get_help(context)
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                if isinstance(below, click.Group):
                    yield from helps(below, context)


def summaries(text):
    """The lines of the list of commands; none of the help of a command without commands."""
    _, _, rest = text.partition("\nCommands:\n")
    return rest.partition("\n\n")[0].splitlines()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_no_summary_is_cut_off(command):
    for path, text in helps(command):
        usage, _, rest = text.partition("\n\n")
        assert "..." not in rest, f"{path}: shorten the first sentence of the docstring"
        assert max(map(len, text.splitlines())) <= COLUMNS, path
        assert usage.startswith(f"Usage: {path} ")


def test_every_command_of_every_group_has_its_line():
    found = {path: text for command in COMMANDS for path, text in helps(command)}

    listed = {path: len(summaries(text)) for path, text in found.items()}
    assert listed["journal-bench"] == 0
    assert listed["journal"] >= 10
    assert listed["broker"] == len(broker.list_commands(None))
    assert {"broker queue", "broker address", "broker data", "broker perf"} < listed.keys()
    assert all(count for path, count in listed.items() if path != "journal-bench")


def test_a_summary_that_is_too_long_is_found():
    group = click.Group("tools", commands=[click.Command("long", help="word " * 40)])

    ((_, text),) = helps(group)

    assert summaries(text)[0].endswith("...")
