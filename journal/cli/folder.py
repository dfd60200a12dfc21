"""Options of the commands that read a folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from journal.commands.parameters import USER_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["folder_options"]


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
