"""`broker data`: what is stored, of an instance or a bare data folder; `journal` does the work."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from broker.cli.instance import BROKER_XML, INSTANCE
from broker.config import load
from broker.config.options import broker_options
from broker.storage.open import FileStoreOptions
from broker.storage.print_data import section_lines
from journal.cli.folder import example
from journal.cli.guard import run
from journal.cli.main import journal

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["data"]

# Where the reference and we keep them when nothing else is configured.
BINDINGS: Final = "bindings"
MESSAGES: Final = "journal"
PASSWORD_VARIABLE: Final = "QUIVER_DATABASE_PASSWORD"
TITLES: Final = {
    BINDINGS: "B I N D I N G S  J O U R N A L",
    MESSAGES: "M E S S A G E S   J O U R N A L",
}


class Place(NamedTuple):
    """One of the two journals.

    Attributes:
        name: BINDINGS or MESSAGES.
        source: a folder, or a database's URL.
        options: for a command of `journal`, such as the table.
    """

    name: str
    source: str
    options: tuple[str, ...] = ()


def places(folder: Path) -> list[Place]:
    """Find the journals of an instance, or of a data folder.

    Raises:
        ConfigError: its broker.xml cannot be read.
        click.ClickException: there are none.
    """
    if not (folder / BROKER_XML).is_file():
        found = [Place(name, str(folder / name)) for name in (BINDINGS, MESSAGES)]
        if not all(Path(place.source).is_dir() for place in found):
            raise click.ClickException(
                f"{folder}: neither an instance ({BROKER_XML}) nor a data folder "
                f"({BINDINGS}/ and {MESSAGES}/)"
            )
        return found
    store = broker_options(load(folder / BROKER_XML, lenient=True)).store
    if store is None:
        raise click.ClickException(f"{folder}: it keeps nothing (persistence-enabled)")
    if isinstance(store, FileStoreOptions):
        return [
            Place(BINDINGS, str(store.bindings.directory)),
            Place(MESSAGES, str(store.messages.directory)),
        ]
    user = () if store.user is None else ("--user", store.user)
    if store.password is not None:
        os.environ[PASSWORD_VARIABLE] = store.password
    return [
        Place(BINDINGS, store.connection_url, ("--table", store.bindings_table_name, *user)),
        Place(MESSAGES, store.connection_url, ("--table", store.message_table_name, *user)),
    ]


def each(
    folder: Path, command: str, options: Sequence[str] = (), *, has_titles: bool = True
) -> int:
    """Have `journal` do something with both; the higher of the two exit statuses."""
    status = 0
    for place in places(folder):
        if has_titles:
            for line in section_lines(TITLES[place.name]):
                click.echo(line)
        words = [command, place.source, *place.options, *options]
        status = max(status, run(journal, "journal", words))
    return status


@click.group(no_args_is_help=False, epilog=example("broker data print my-broker"))
def data() -> None:
    """Look at and care for what a broker has stored; files, or tables of a database."""


@data.command("print", epilog=example("broker data print my-broker"))
@click.argument("folder", metavar="DIR", type=INSTANCE)
@click.option("--raw", is_flag=True, help="Every record in file order, not only what counts.")
@click.option("--live", is_flag=True, help="Also while a broker runs on it.")
def print_command(folder: Path, *, raw: bool, live: bool) -> int:
    """Print queues, addresses, messages and transactions, in the reference's wording.

    DIR is an instance, or a data folder of ours or the reference's.
    """
    options = ("--decode", *(("--raw",) if raw else ()), *(("--live",) if live else ()))
    return each(folder, "print-data", options)


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
