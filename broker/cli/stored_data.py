"""The stored data of an instance or a bare data folder, opened read-only."""

from __future__ import annotations

from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from broker.cli.instance import INSTANCE
from broker.storage.large_files import LargeFile
from broker.storage.page_folders import FileFolders
from journal.commands.sources import open_records
from journal.errors import JournalLocked, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from broker.model.large_body import ReadableBody
    from broker.storage.layout import Layout
    from broker.storage.page_folders import PageFolder
    from jdbcstore.options import DatabaseStoreOptions
    from journal.tools.stored import StoredRecords

__all__ = ["TITLES", "StoredData", "data_options", "open_stored"]

# Of the sections of a print.
TITLES: Final = (
    "B I N D I N G S  J O U R N A L",
    "M E S S A G E S   J O U R N A L",
    "P A G I N G",
)


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
    from broker.storage.stored_tables import StoredTables
    from jdbcstore import Database
    from jdbcstore.locks import read_locks
    from jdbcstore.schema import PRIMARY_LOCK_ROW
    from jdbcstore.snapshot import TableSnapshot
    from jdbcstore.tools.records import TableRecords

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
