"""`broker data`: what is stored, of an instance or a bare data folder; files, or tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from broker.cli.data_export import export
from broker.cli.data_import import imp
from broker.cli.data_print import print_command
from broker.cli.data_recover import recover
from broker.cli.instance import INSTANCE
from broker.cli.stored_data import TITLES, layout_of
from broker.printing.print_data import section_lines
from journal.cli.folder import example
from journal.cli.guard import run
from journal.cli.main import journal

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

__all__ = ["data"]

PASSWORD_VARIABLE: Final = "QUIVER_DATABASE_PASSWORD"


class Place(NamedTuple):
    """One of the two journals.

    Attributes:
        title: of its section.
        source: a folder, or a database's URL.
        options: for a command of `journal`, such as the table.
    """

    title: str
    source: str
    options: tuple[str, ...] = ()


def places(folder: Path) -> list[Place]:
    """Find the journals of an instance, or of a data folder.

    Raises:
        ConfigError: its broker.xml cannot be read.
        click.ClickException: there are none.
    """
    layout = layout_of(folder)
    store = layout.database
    if store is None:
        sources: list[tuple[str, tuple[str, ...]]] = [
            (str(layout.bindings), ()),
            (str(layout.messages), ()),
        ]
    else:
        user = () if store.user is None else ("--user", store.user)
        if store.password is not None:
            os.environ[PASSWORD_VARIABLE] = store.password
        sources = [
            (store.connection_url, ("--table", table, *user))
            for table in (store.bindings_table_name, store.message_table_name)
        ]
    return [Place(title, *source) for title, source in zip(TITLES, sources, strict=False)]


def each(folder: Path, command: str, options: Sequence[str] = ()) -> int:
    """Have `journal` do something with both; the higher of the two exit statuses."""
    status = 0
    for place in places(folder):
        for line in section_lines(place.title):
            click.echo(line)
        words = [command, place.source, *place.options, *options]
        status = max(status, run(journal, "journal", words))
    return status


@click.group(no_args_is_help=False, epilog=example("broker data print my-broker"))
def data() -> None:
    """Look at and care for what a broker has stored; files, or tables of a database."""


for one in (print_command, export, imp, recover):
    data.add_command(one)


@data.command("stat", epilog=example("broker data stat my-broker"))
@click.argument("folder", metavar="DIR", type=INSTANCE)
@click.option("--live", is_flag=True, help="Also while a broker runs on it.")
def stat_command(folder: Path, *, live: bool) -> int:
    """Show how many records and bytes there are, and how many of them count."""
    return each(folder, "stat", ("--live",) if live else ())


@data.command("compact", epilog=example("broker data compact my-broker"))
@click.argument("folder", metavar="DIR", type=INSTANCE)
def compact_command(folder: Path) -> int:
    """Compact both journals in place, while no broker runs on them."""
    return each(folder, "compact")
