"""Opens a database for the commands of `journal`, which find this class by entry point."""

from __future__ import annotations

from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from jdbcstore.database import Database
from jdbcstore.options import DatabaseStoreOptions
from jdbcstore.snapshot import TableSnapshot
from jdbcstore.store import SqlStore
from jdbcstore.tools.records import TableRecords

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jdbcstore.options import DatabaseStoreChanges
    from journal.api import Progress
    from journal.tools.stored import Access

__all__ = ["DatabaseOpener", "options_of"]


class DatabaseOpener:
    """See journal.tools.stored.StoreOpener. URLs are JDBC's, of every vendor, and SQLAlchemy's."""

    @contextmanager
    def read(self, access: Access) -> Iterator[TableRecords]:
        """The rows of one moment. No lease is taken, nothing is made or changed."""
        options = options_of(access)
        with (
            closing(Database(options)) as database,
            TableSnapshot(database, options.message_table_name) as snapshot,
        ):
            yield TableRecords(snapshot)

    @contextmanager
    def store(self, access: Access, *, must_exist: bool = False) -> Iterator[SqlStore]:
        """The store, open and behind its lease."""
        options = options_of(access)
        if must_exist:
            with (
                closing(Database(options)) as database,
                TableSnapshot(database, options.message_table_name),
            ):
                pass
        with SqlStore(
            options,
            sync_transactional=access.sync_transactional,
            sync_non_transactional=access.sync_non_transactional,
        ) as store:
            yield store

    def compact(self, access: Access, progress: Progress) -> tuple[int, int]:
        """Load, which settles what was left; rows before and after."""
        with self.store(access, must_exist=True) as store:
            found = store.load(progress=progress)
            store.compact()
            return found.record_count, store.row_count()


def options_of(access: Access) -> DatabaseStoreOptions:
    """The options of a database from what a command line says.

    Raises:
        OptionError: no such setting, or a value out of range.
    """
    given: DatabaseStoreChanges = {
        "connection_url": access.url,
        "user": access.user,
        "password": access.password,
        "lock_acquisition_timeout_ms": access.lock_timeout_ms,
    }
    if access.table is not None:
        given["message_table_name"] = access.table
    if access.node_table is not None:
        given["node_manager_store_table_name"] = access.node_table
    return DatabaseStoreOptions.from_elements(access.settings, **given)
