"""A page for each command line: every command, argument and option, from click."""

from __future__ import annotations

import inspect
from collections import Counter
from typing import TYPE_CHECKING, Final

import click

from broker.cli.main import broker
from docs.site.tables import escaped, table
from journal.cli.bench import journal_bench
from journal.cli.main import journal
from pipeline.cli.main import pipeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["COMMAND_LINES", "command_line", "commands"]

COMMAND_LINES: Final = {
    "broker": broker,
    "journal": journal,
    "journal-bench": journal_bench,
    "pipeline": pipeline,
}
_HEAD: Final = ("option", "value", "default", "does")
# An option that so many commands have, with the same text, is described once.
_SHARED_FROM: Final = 5
_SHARED: Final = """## Shared options

Many commands have these; each names its own.
"""


def command_line(name: str) -> str:
    """The page of one command line."""
    parts = [f"# {name}\n"]
    count = Counter(
        row for context in commands(COMMAND_LINES[name]) for row in _rows(context, click.Option)
    )
    shared = {row: f"`{_first(row)}`" for row, times in count.items() if times >= _SHARED_FROM}
    for context in commands(COMMAND_LINES[name]):
        parts += _command(context, shared)
    if shared:
        parts += [_SHARED, table(_HEAD, shared)]
    return "\n".join(parts)


def commands(
    command: click.Command, parent: click.Context | None = None
) -> Iterator[click.Context]:
    """A command and all below it, each with its context."""
    with click.Context(command, parent, command.name, **command.context_settings) as context:
        yield context
        if isinstance(command, click.Group):
            for name in command.list_commands(context):
                below = command.get_command(context, name)
                assert below is not None
                if not below.hidden:
                    yield from commands(below, context)


def _rows(
    context: click.Context, kind: type[click.Parameter] = click.Parameter
) -> list[tuple[str, ...]]:
    cells = [_cells(one, context) for one in context.command.params if isinstance(one, kind)]
    return [row for row in cells if row is not None]


def _first(row: tuple[str, ...]) -> str:
    return row[0].partition(",")[0].strip("`")


def _command(context: click.Context, shared: Mapping[tuple[str, ...], str]) -> Iterator[str]:
    command = context.command
    if context.parent is not None:
        yield f"## {context.command_path}\n"
    yield f"```text\n{command.get_usage(context).removeprefix('Usage: ')}\n```\n"
    # A backspace of click's, on a line of its own, keeps the lines of its paragraph.
    text = inspect.cleandoc((command.help or "").partition("\f")[0].replace("\b", ""))
    yield escaped(text) + "\n"
    rows = _rows(context)
    own = [row for row in rows if row not in shared]
    if own:
        yield table(_HEAD, own)
    if len(own) < len(rows):
        names = ", ".join(shared[row] for row in rows if row in shared)
        yield f"[Shared options](#shared-options): {names}.\n"
    if command.epilog:
        yield f"```text\n{command.epilog.replace(chr(8), '').strip()}\n```\n"


def _cells(parameter: click.Parameter, context: click.Context) -> tuple[str, ...] | None:
    if isinstance(parameter, click.Option):
        if parameter.hidden:
            return None
        flags = [*parameter.opts, *parameter.secondary_opts]
        name = ", ".join(f"`{flag}`" for flag in flags)
        value = "" if parameter.is_flag else f"`{parameter.make_metavar(context)}`"
        shown = parameter.get_help_extra(context).get("default", "")
        if parameter.required:
            shown = "required"
        return name, value, f"`{shown}`" if shown else "", parameter.help or ""
    name = f"`{parameter.make_metavar(context)}`"
    return name, "argument", "required" if parameter.required else "", ""
