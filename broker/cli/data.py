"""`broker data`: the stored data of an instance or of a bare data folder, in files or tables."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from broker.cli.data_export import export
from broker.cli.data_import import imp
from broker.cli.data_print import print_command
from broker.cli.data_recover import recover
from broker.cli.instance import INSTANCE
from broker.cli.stored_data import TITLES
from broker.options.layout import layout_of
from broker.printing.print_data import section_lines
from journal.commands.exit_status import attempt
from journal.commands.output import example, write_figures, write_lines
from journal.commands.progress import Progress
from journal.commands.session import compact_store
from journal.commands.sources import PASSWORD_VARIABLE, USER_VARIABLE, open_records

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

__all__ = ["data"]


class Place(NamedTuple):
    """One of the two journals.

    Attributes:
        title: of its section.
        source: a folder, or a database's URL.
        given: how to get at it, as the options of `journal` say it.
    """

    title: str
    source: str
    given: Mapping[str, Any]


def places(folder: Path) -> list[Place]:
    """Find the journals of an instance, or of a data folder.

    Raises:
        ConfigError: its broker.xml cannot be read.
        WrongUse: there are none.
    """
    layout = layout_of(folder)
    store = layout.database
    sources: list[tuple[str, dict[str, Any]]]
    if store is None:
        # A folder in use is refused at once.
        given = {"lock_acquisition_timeout_ms": 0}
        sources = [(str(layout.bindings), given), (str(layout.messages), given)]
    else:
        # What broker.xml leaves out, the environment may say.
        login = {
            "user": store.user or os.environ.get(USER_VARIABLE),
            "password": store.password or os.environ.get(PASSWORD_VARIABLE),
        }
        sources = [
            (store.connection_url, {"table": table, **login})
            for table in (store.bindings_table_name, store.message_table_name)
        ]
    return [Place(title, *source) for title, source in zip(TITLES, sources, strict=False)]


def each(folder: Path, action: Callable[[Place], None]) -> int:
    """Do something with both, also if one fails; the higher of the two exit statuses."""
    status = 0
    for place in places(folder):
        write_lines(section_lines(place.title))
        status = max(status, attempt(partial(action, place), "journal"))
    return status


@click.group(no_args_is_help=False, epilog=example("broker data print my-broker"))
def data() -> None:
    """Inspect and maintain the stored data of a broker.

    That is in files, or in tables of a database.
    """


for one in (print_command, export, imp, recover):
    data.add_command(one)


@data.command("stat", epilog=example("broker data stat my-broker"))
@click.argument("folder", metavar="DIR", type=INSTANCE)
@click.option("--live", is_flag=True, help="Read even while a broker runs on it.")
def stat_command(folder: Path, *, live: bool) -> int:
    """Show how many records and bytes there are.

    Also how many of them count.
    """

    def stat(place: Place) -> None:
        with (
            open_records(place.source, place.given, is_live=live) as records,
            Progress("stat") as progress,
        ):
            figures = records.stat(progress)
        write_figures(figures)

    return each(folder, stat)


@data.command("compact", epilog=example("broker data compact my-broker"))
@click.argument("folder", metavar="DIR", type=INSTANCE)
def compact_command(folder: Path) -> int:
    """Compact both journals in place, while no broker runs on them."""

    def compact(place: Place) -> None:
        what, before, after = compact_store(place.source, place.given)
        click.echo(f"{before} {what} before, {after} after")

    return each(folder, compact)
