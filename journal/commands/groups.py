"""Command groups that import a command only when it is called.

A LazyGroup has a table of its commands. A PluggableGroup has its own, and those that other packages
add by an entry point group: the journal knows files; a package that knows another kind of store
registers its commands in `quiver.journal.commands`.
"""

from __future__ import annotations

import importlib
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, cast

import click

from journal.extras import extra_of_url, missing_package

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.metadata import EntryPoint

__all__ = ["GROUP", "LazyGroup", "PluggableGroup"]

GROUP = "quiver.journal.commands"


class LazyGroup(click.Group):
    """A group whose commands are imported one by one, when they are called or listed.

    Args:
        table: by a command's name: its module, and the name of the click command there.
        given: as of click.Group.
    """

    def __init__(
        self,
        *,
        table: Mapping[str, tuple[str, str]],
        **given: Any,  # noqa: ANN401 - click's.
    ) -> None:
        super().__init__(**given)
        self._table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import it; None where there is none of that name."""
        found = self._table.get(cmd_name)
        if found is None:
            return None
        module, name = found
        return cast("click.Command", getattr(importlib.import_module(module), name))


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
