"""The name of a queue or address on a command line: an argument, or Artemis's `--name`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["named", "named_or_all"]

Command = TypeVar("Command", bound="Callable[..., Any]")

_OPTION: Final = "broker.cli.names"


def named(command: Command) -> Command:
    """Give a command a `name`, which must be given."""
    return _named(command, _required, "NAME")


def named_or_all(command: Command) -> Command:
    """Give a command a `name`, or None."""
    return _named(command, _given, "[NAME]")


def _named(command: Command, check: Callable[..., str | None], shown: str) -> Command:
    option = click.option(
        *("--name", "given_name"),
        is_eager=True,
        expose_value=False,
        callback=_keep,
        help="The same as NAME.",
    )
    return option(click.argument("name", metavar=shown, required=False, callback=check)(command))


def _keep(context: click.Context, option: click.Parameter, value: str | None) -> None:
    context.meta[_OPTION] = value


def _given(context: click.Context, argument: click.Parameter, value: str | None) -> str | None:
    option: str | None = context.meta[_OPTION]
    if value is not None and option is not None:
        raise click.UsageError("give the name once, as NAME or by --name", context)
    return option if value is None else value


def _required(context: click.Context, argument: click.Parameter, value: str | None) -> str:
    found = _given(context, argument, value)
    if found is None:
        raise click.MissingParameter(ctx=context, param=argument)
    return found
