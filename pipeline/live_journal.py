"""The live records of a journal, in files or a table, readable more than once."""

from __future__ import annotations

import errno
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from journal.compaction_recovery import plan_recovery
from journal.errors import JournalIOError
from journal.index import RecordIndex
from journal.loader import Loader
from journal.remote import RemotePath

if TYPE_CHECKING:
    from collections.abc import Iterator

    from jdbcstore.snapshot import TableSnapshot
    from journal.compaction_recovery import RecoveryPlan
    from journal.delivery import LiveRecord
    from journal.errors import Damage
    from journal.folder import JournalName
    from journal.loaded import FailedTransaction, LoadResult, PreparedTransaction
    from journal.remote import AnyPath
    from pipeline.place import Place

__all__ = [
    "ATTEMPTS_MAX",
    "FolderJournal",
    "LiveJournal",
    "TableJournal",
    "open_journal",
    "open_table",
    "place_of",
    "stable_plan",
    "table_parts",
]

# A journal is looked at again where somebody uses its files again, or compacts them, meanwhile.
ATTEMPTS_MAX: Final = 10


def place_of(record: LiveRecord) -> dict[str, Any]:
    """The columns `file` and `offset` of a record.

    Of a table, an operation of an open transaction says its seq alone, not its table.
    """
    return {"file": getattr(record, "file", None), "offset": record.offset}


def stable_plan(folder: AnyPath, name: JournalName) -> RecoveryPlan:
    """What a load would take, seen at one moment: a compaction replaces many files, one by one.

    No broker compacts a journal in an object store: one look is enough.

    Raises:
        JournalError: as plan_recovery(); JournalIOError EBUSY: the files change all the time.
    """
    if isinstance(folder, RemotePath):
        return plan_recovery(folder, name)
    seen = None
    for attempt in range(ATTEMPTS_MAX):
        try:
            plan = plan_recovery(folder, name)
        except JournalIOError as error:
            if error.errno != errno.ENOENT or attempt + 1 == ATTEMPTS_MAX:
                raise
            seen = None
            continue
        if seen == _ids(plan):
            return plan
        seen = _ids(plan)
    raise JournalIOError(errno.EBUSY, f"{folder}: its files change faster than they are listed")


def _ids(plan: RecoveryPlan) -> list[tuple[str, int]]:
    return [(file.name, file.file_id) for file in plan.files]


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
        JournalIOError: a file cannot be read; EBUSY: they are used again too fast. ESTALE, also of
            what it gives: one was used again since it was loaded.
    """

    def __init__(self, place: Place, user_version: int) -> None:
        self._place = place
        for attempt in range(ATTEMPTS_MAX):
            plan = self._plan()
            self.loader = Loader(
                plan.files, RecordIndex(), user_version=user_version, damage="quarantine"
            )
            try:
                self._result: LoadResult = self.loader.load()
            except JournalIOError as error:
                is_last = attempt + 1 == ATTEMPTS_MAX
                if error.errno not in (errno.ENOENT, errno.ESTALE) or is_last:
                    raise
                continue
            if self._is_as_planned(plan):
                return
        what = f"{place.journal}: its files change faster than they are read"
        raise JournalIOError(errno.EBUSY, what)

    def _plan(self) -> RecoveryPlan:
        assert self._place.folder is not None
        return stable_plan(self._place.folder, self._place.name)

    def _is_as_planned(self, plan: RecoveryPlan) -> bool:
        """Whether the loaded files were there at one moment, apart from later appends.

        Else the deletes of records that were read may have gone with a file that was used again.
        """
        planned = {file.name: file.file_id for file in plan.files}
        if any(planned[file.name] != file.file_id for file in self._result.files):
            return False
        # One that was used again while it was read looks damaged.
        return not self._result.damages or _ids(plan) == _ids(self._plan())

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
        from jdbcstore.tools.records import TableRecords

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
