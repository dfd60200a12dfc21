"""A journal as a load sees it, to be read more than once: of files, or of a table."""

from __future__ import annotations

from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from journal.index import RecordIndex
from journal.loader import Loader
from journal.recovery import plan_recovery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jdbcstore.snapshot import TableSnapshot
    from journal.delivery import LiveRecord
    from journal.errors import Damage
    from journal.loaded import FailedTransaction, LoadResult, PreparedTransaction
    from pipeline.places import Place

__all__ = [
    "FolderJournal",
    "LiveJournal",
    "TableJournal",
    "open_journal",
    "open_table",
    "place_of",
    "table_parts",
]


def place_of(record: LiveRecord) -> dict[str, Any]:
    """The columns `file` and `offset` of a record.

    Of a table, an operation of an open transaction says its seq alone, not its table.
    """
    return {"file": getattr(record, "file", None), "offset": record.offset}


class LiveJournal(Protocol):
    """The live records of a journal. The attributes are complete once records() has ended."""

    @property
    def prepared(self) -> list[PreparedTransaction]:
        """Transactions that wait for their end."""
        ...

    @property
    def failed(self) -> list[FailedTransaction]:
        """Transactions that will not apply."""
        ...

    @property
    def damages(self) -> list[Damage]:
        """What could not be read."""
        ...

    def records(self) -> Iterator[LiveRecord]:
        """The live records in load order; as often as wanted."""
        ...


class FolderJournal:
    """Of files: read once, bodies again for each records().

    Args:
        place: of the journal.
        user_version: of every file's header.

    Raises:
        UnsupportedFormat: something else wrote a file.
        JournalIOError: a file cannot be read.
    """

    def __init__(self, place: Place, user_version: int) -> None:
        assert place.folder is not None
        plan = plan_recovery(place.folder, place.name)
        self.loader = Loader(
            plan.files, RecordIndex(), user_version=user_version, damage="quarantine"
        )
        self._result: LoadResult = self.loader.load()

    @property
    def prepared(self) -> list[PreparedTransaction]:
        """Transactions that wait for their end."""
        return self._result.prepared

    @property
    def failed(self) -> list[FailedTransaction]:
        """Transactions that will not apply."""
        return self._result.failed

    @property
    def damages(self) -> list[Damage]:
        """What could not be read."""
        return self._result.damages

    def records(self) -> Iterator[LiveRecord]:
        """The live records in load order."""
        return self.loader.records()


class TableJournal:
    """Of a table: its rows are read again for each records(), all in one transaction.

    Args:
        snapshot: of the table, begun.
    """

    def __init__(self, snapshot: TableSnapshot) -> None:
        self._snapshot = snapshot
        self.prepared: list[PreparedTransaction] = []
        self.failed: list[FailedTransaction] = []
        self.damages: list[Damage] = []

    def records(self) -> Iterator[LiveRecord]:
        """The live records in load order."""
        from jdbcstore.cli.records import TableRecords

        records = TableRecords(self._snapshot)
        yield from records.records(lambda *_: None)
        self.prepared, self.failed = records.prepared, records.failed
        self.damages = records.damages


@contextmanager
def open_journal(place: Place, user_version: int) -> Iterator[LiveJournal]:
    """The journal at a place.

    Raises:
        JournalError: it cannot be read.
    """
    if place.database is None:
        yield FolderJournal(place, user_version)
        return
    with open_table(place) as snapshot:
        yield TableJournal(snapshot)


@contextmanager
def open_table(place: Place) -> Iterator[TableSnapshot]:
    """The table at a place, or the part of it that is meant.

    Raises:
        OptionError: there is no such table.
        JournalIOError: the database cannot be reached, or refuses.
    """
    from jdbcstore.database import Database  # Here: files need no SQLAlchemy.
    from jdbcstore.id_ranges import WHOLE_TABLE
    from jdbcstore.snapshot import TableSnapshot

    assert place.database is not None
    with (
        closing(Database(place.database)) as database,
        TableSnapshot(database, place.table, place.ids or WHOLE_TABLE) as snapshot,
    ):
        yield snapshot


def table_parts(place: Place, rows_max: int) -> Iterator[Place]:
    """A table in parts of about so many rows, by ranges of record ids.

    Raises:
        OptionError: there is no such table.
        JournalIOError: the database cannot be reached, or refuses.
    """
    with open_table(place) as snapshot:
        ranges = snapshot.id_ranges(rows_max)
    for one in ranges:
        yield replace(place, ids=one)
