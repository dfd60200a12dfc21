"""What every command that reads a folder shares: its options, its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from journal.cli.engine_options import USER_VERSION
from journal.cli.guard import say
from journal.errors import JournalLocked
from journal.folder import guess_name
from journal.lock import is_locked
from journal.recovery import plan_recovery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from journal.recovery import RecoveryPlan

__all__ = ["example", "folder_options", "open_folder", "refuse_locked", "write_lines"]

LINES_AT_ONCE = 256


def example(command: str) -> str:
    """What a command's help ends with: one line that can be typed as it stands."""
    return f"\b\nExample:\n  {command}"  # \b keeps click from joining the lines.


def folder_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command DIR and the options that say which journal in it is meant."""
    for option in (
        click.option(
            "--live",
            "is_live",
            is_flag=True,
            help="Read DIR even while somebody writes to it; the newest records may be cut short.",
        ),
        click.option(
            "--user-version",
            type=USER_VERSION,
            default=0,
            show_default=True,
            help="Of every file's header.",
        ),
        click.option("--extension", help="Of the files' names. [default: guessed from DIR]"),
        click.option("--prefix", help="Of the files' names. [default: guessed from DIR]"),
        click.argument("folder", metavar="SOURCE"),
    ):
        command = option(command)
    return command


def open_folder(
    folder: str,
    prefix: str | None,
    extension: str | None,
    *,
    is_live: bool = False,
    is_on_disk: bool = False,
) -> RecoveryPlan:
    """Look at a folder as recovery would leave it, without touching it, and say so.

    Args:
        folder: of the journal.
        prefix: of its files; None is guessed.
        extension: of its files; None is guessed.
        is_live: read it even while somebody writes to it.
        is_on_disk: the caller shows what is there before recovery.

    Raises:
        JournalLocked: somebody has the journal open, and `is_live` is not given.
    """
    name = guess_name(folder, prefix, extension)
    refuse_locked(folder, is_live=is_live)
    plan = plan_recovery(folder, name)
    if plan.is_needed:
        shown = "shown as it is before" if is_on_disk else "shown as it will be after"
        say(f"{folder}: {shown} recovery: {plan.describe()}")
    return plan


def refuse_locked(folder: str, *, is_live: bool) -> None:
    """Raise JournalLocked for a journal that somebody has open, unless that is known."""
    if not is_live and is_locked(folder):
        raise JournalLocked(f"{folder} is in use, and changes while it is read; --live reads it")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines to standard output, many at once."""
    held = []
    for line in lines:
        held.append(line)
        if len(held) == LINES_AT_ONCE:
            click.echo("\n".join(held))
            held.clear()
    if held:
        click.echo("\n".join(held))
