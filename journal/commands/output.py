"""Output of all commands: messages, lines of data, examples at the end of a help."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from journal.tools.stored import Figures

__all__ = ["example", "say", "write_figures", "write_lines"]

LINES_AT_ONCE = 256


def say(text: str) -> None:
    """Print a line for people: standard output is for data."""
    click.echo(text, err=True)


def example(command: str) -> str:
    """What a command's help ends with: one line that can be typed as it stands."""
    return f"\b\nExample:\n  {command}"  # \b keeps click from joining the lines.


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, many at once."""
    pending = []
    for line in lines:
        pending.append(line)
        if len(pending) == LINES_AT_ONCE:
            click.echo("\n".join(pending))
            pending.clear()
    if pending:
        click.echo("\n".join(pending))


def write_figures(figures: Figures) -> None:
    """Write the figures of a journal to standard output, one a line."""
    for name, value in figures.as_rows().items():
        click.echo(f"{name:<16} {value}")
