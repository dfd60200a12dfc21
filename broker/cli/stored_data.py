"""Where an instance, or a bare data folder, keeps what it has stored; and how to look at it.

DIR ─▶ Layout: two journals, pages, bodies; folders, or tables ─▶ StoredData, open for reading
"""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.instance import BROKER_XML, INSTANCE
from broker.config import load
from broker.options.from_config import broker_options
from broker.storage.large_files import LargeFile
from broker.storage.open import FileStoreOptions
from broker.storage.page_folders import FileFolders
from journal.cli.sources import open_records
from journal.errors import JournalLocked, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.model.large_body import ReadableBody
    from broker.storage.page_folders import PageFolder
    from jdbcstore.options import DatabaseStoreOptions
    from journal.tools.stored import StoredRecords

__all__ = ["TITLES", "Layout", "StoredData", "data_options", "layout_of", "open_stored"]

# Where Artemis and we keep them when nothing else is configured.
BINDINGS: Final = "bindings"
MESSAGES: Final = "journal"
PAGING: Final = "paging"
# Of the sections of a print.
TITLES: Final = (
    "B I N D I N G S  J O U R N A L",
    "M E S S A G E S   J O U R N A L",
    "P A G I N G",
)
# Of Artemis's `create`, of its default without a word in broker.xml, and of our samples.
LARGE_MESSAGES: Final = ("large-messages", "largemessages", "large")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where everything is: four folders, or a database.

    Attributes:
        bindings: folder of the bindings journal.
        messages: of the message journal.
        paging: of the pages; there may be none.
        large_messages: of the bodies of large messages; there may be none.
        database: all of it, in place of folders.
    """

    bindings: Path
    messages: Path
    paging: Path
    large_messages: Path
    database: DatabaseStoreOptions | None = None


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command DIR, and the options that name single folders in its place."""
    for name, what in (
        ("large-messages", "bodies of large messages"),
        ("paging", "pages"),
        ("journal", "messages"),
        ("bindings", "bindings"),
    ):
        command = click.option(
            f"--{name}",
            f"{name.replace('-', '_')}_folder",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help=f"Folder of the {what}. [default: DIR's]",
        )(command)
    return click.argument("folder", metavar="DIR", type=INSTANCE)(command)


def layout_of(
    folder: Path, given: Mapping[str, Path | None] | None = None, *, needs_all: bool = True
) -> Layout:
    """Find what an instance or a data folder has.

    Args:
        folder: of either.
        given: what `data_options` gave, by parameter.
        needs_all: refuse a folder without both journals.

    Raises:
        ConfigError: its broker.xml cannot be read.
        click.ClickException: there is nothing.
    """
    found = (
        _layout_of_instance(folder) if (folder / BROKER_XML).is_file() else _layout_of_data(folder)
    )
    named = {
        "bindings": "bindings_folder",
        "messages": "journal_folder",
        "paging": "paging_folder",
        "large_messages": "large_messages_folder",
    }
    changes: dict[str, Any] = {}
    for field, name in named.items():
        path = (given or {}).get(name)
        if path is not None:
            changes[field] = path
    if changes and found.database is not None:
        raise click.UsageError(f"{folder} keeps its data in a database: no folder can be named")
    found = replace(found, **changes)
    if needs_all and found.database is None:
        for place in (found.bindings, found.messages):
            if not place.is_dir():
                raise click.ClickException(
                    f"{folder}: neither an instance ({BROKER_XML}) nor a data folder "
                    f"({BINDINGS}/ and {MESSAGES}/)"
                )
    return found


def _layout_of_instance(folder: Path) -> Layout:
    store = broker_options(load(folder / BROKER_XML, lenient=True)).store
    if store is None:
        raise click.ClickException(f"{folder}: it keeps nothing (persistence-enabled)")
    if not isinstance(store, FileStoreOptions):
        none = Path()
        return Layout(none, none, none, none, store)
    messages = store.messages.directory
    return Layout(
        bindings=store.bindings.directory,
        messages=messages,
        paging=store.paging or messages.parent / PAGING,
        large_messages=store.large_messages or _first(messages.parent, LARGE_MESSAGES),
    )


def _layout_of_data(folder: Path) -> Layout:
    return Layout(
        folder / BINDINGS, folder / MESSAGES, folder / PAGING, _first(folder, LARGE_MESSAGES)
    )


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    """Give the first folder of some names that is there; the first name where none is."""
    found = (folder / name for name in names)
    return next((path for path in found if path.is_dir()), folder / names[0])


@dataclass(frozen=True, slots=True)
class StoredData:
    """What is stored, open for reading; nothing is written.

    Attributes:
        bindings: the bindings journal.
        messages: the message journal.
        pages: gives the pages of each address.
        find_large: gives the body of a large message; None where there is none.
    """

    bindings: StoredRecords
    messages: StoredRecords
    pages: Callable[[], Mapping[str, PageFolder]]
    find_large: Callable[[int], ReadableBody | None]


@contextmanager
def open_stored(layout: Layout, *, is_live: bool = False) -> Iterator[StoredData]:
    """Open it.

    Args:
        layout: where it is.
        is_live: also while a broker runs on it; the parts are then of different moments.

    Raises:
        JournalLocked: a broker runs on it, and `is_live` is not given.
        JournalError: it cannot be read.
    """
    with ExitStack() as stack:
        if layout.database is not None:
            yield stack.enter_context(_open_tables(layout.database, is_live=is_live))
            return
        bindings, messages = (
            stack.enter_context(open_records(str(place), {}, is_live=is_live))
            for place in (layout.bindings, layout.messages)
        )
        folder = layout.large_messages
        yield StoredData(
            bindings,
            messages,
            FileFolders(layout.paging).view,
            lambda message_id: _large_file(folder, message_id),
        )


def _large_file(folder: Path, message_id: int) -> LargeFile | None:
    path = folder / f"{message_id}.msg"
    try:
        return LargeFile(path, is_durable=True, size=path.stat().st_size)
    except FileNotFoundError:
        return None


@contextmanager
def _open_tables(options: DatabaseStoreOptions, *, is_live: bool) -> Iterator[StoredData]:
    # Here, for a broker on files runs without SQLAlchemy.
    from broker.cli.stored_tables import StoredTables
    from jdbcstore import Database
    from jdbcstore.cli.records import TableRecords
    from jdbcstore.locks import read_locks
    from jdbcstore.schema import PRIMARY_LOCK_ROW
    from jdbcstore.snapshot import TableSnapshot

    with closing(Database(options)) as database, ExitStack() as stack:
        if not is_live:
            try:
                lease = read_locks(database).leases[PRIMARY_LOCK_ROW]
            except OptionError:
                lease = None  # No lease was ever taken there.
            if lease is not None and lease.is_held:
                raise JournalLocked(
                    f"a broker runs on {options.message_table_name}: {lease.holder} has the lease;"
                    " --live reads it"
                )
        tables = StoredTables(database)
        bindings, messages = (
            TableRecords(stack.enter_context(TableSnapshot(database, name)))
            for name in (options.bindings_table_name, options.message_table_name)
        )
        yield StoredData(bindings, messages, tables.pages, tables.find_large)
