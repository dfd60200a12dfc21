"""Commands that other packages add to `journal`, found by an entry point group.

The journal knows files; a package that knows another kind of store registers its commands in the
group `quiver.journal.commands`. Nothing of it is imported before its command, or the list of all
commands, is asked for.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import TYPE_CHECKING, cast

import click

from journal.extras import extra_of_url, missing_package

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "PluggableGroup"]

GROUP = "quiver.journal.commands"


class PluggableGroup(click.Group):
    """A group of its own commands, and of those that are registered."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Its own in their order, then the others by name."""
        own = super().list_commands(ctx)
        return [*own, *sorted({entry.name for entry in _registered()} - set(own))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; its own come first.

        Raises:
            click.ClickException: what it needs is not installed.
        """
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        for entry in _registered():
            if entry.name == cmd_name:
                return _loaded(entry)
        return None


def _registered() -> list[EntryPoint]:
    return list(entry_points(group=GROUP))


def _loaded(entry: EntryPoint) -> click.Command:
    try:
        return cast("click.Command", entry.load())
    except ModuleNotFoundError as error:
        return _missing(entry.name, error)


def _missing(name: str, error: ModuleNotFoundError) -> click.Command:
    """A command in the place of one whose package lacks something; the list of all still works."""

    @click.command(name, context_settings={"ignore_unknown_options": True})
    @click.argument("words", nargs=-1, type=click.UNPROCESSED)
    def missing(words: tuple[str, ...]) -> None:
        urls = (word for word in words if "://" in word or word.startswith("jdbc:"))
        extra = next(map(extra_of_url, urls), None)
        raise click.ClickException(f"`{name}`: {missing_package(error, extra)}")

    missing.help = f"(needs the Python package {error.name})"
    return missing
