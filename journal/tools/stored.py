"""The interfaces that commands use to read and write records, in folders and databases.

A folder's records are read by `journal.tools.folder_records` and written through
`journal.journal.Journal`. What a URL leads to is the business of another package: it registers a
`StoreOpener` in the entry point group `quiver.journal.stores`, and nothing here knows its name.

    SOURCE ─┬─ folder ─ FolderRecords ─┐
            └─ URL ──── opener.read() ─┴─ StoredRecords: print-data, stat, verify, export, copy
    TARGET ─┬─ folder ─ Journal ───────┐
            └─ URL ──── opener.store() ┴─ Store: exec, append, import, compact, copy
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from journal.api import RecordStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from journal.api import Progress, RecordId
    from journal.delivery import LiveRecord
    from journal.errors import Damage
    from journal.loaded import FailedTransaction, PreparedTransaction
    from journal.reader import FileView
    from journal.tools.verify import VerifyReport

__all__ = ["Access", "Figures", "Store", "StoreOpener", "StoredRecords", "is_url"]

# scheme:// of RFC 3986, or JDBC's form. A folder of such a name is given as ./NAME.
URL: Final = re.compile(r"jdbc:|[A-Za-z][A-Za-z0-9+.-]*://")


def is_url(source: str) -> bool:
    """Whether a SOURCE is a URL and no folder.

    >>> is_url("jdbc:postgresql://db/a"), is_url("sqlite:///a.db"), is_url("data/journal")
    (True, True, False)
    """
    return URL.match(source) is not None


@dataclass(frozen=True, slots=True)
class Access:
    """How to get at a store by its URL.

    Attributes:
        url: as the opener understands it.
        table: of the records; None is the opener's default.
        node_table: of the leases; None is the opener's default.
        user: None is the URL's.
        password: None is the URL's; never shown.
        lock_timeout_ms: how long to wait for a store that somebody has; -1 for ever.
        settings: of the opener's own, text by name; one that he does not know is his OptionError.
        sync_transactional: as of journal.options.JournalOptions.
        sync_non_transactional: likewise.
    """

    url: str = field(repr=False)  # It may hold a password.
    table: str | None = None
    node_table: str | None = None
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    lock_timeout_ms: int = 0
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    sync_transactional: bool = True
    sync_non_transactional: bool = True


class Figures(Protocol):
    """What `journal stat` prints."""

    def as_object(self) -> dict[str, Any]:
        """For machines: JSON values by name."""
        ...

    def as_rows(self) -> dict[str, str]:
        """For people: texts by name, in order."""
        ...


class StoredRecords(Protocol):
    """Everything in one journal at one moment; reading it writes nothing.

    The attributes are complete once records() has ended, and before that may still grow: a reader
    that streams meets transactions and damage as it goes. Threads: one.
    """

    @property
    def name(self) -> str:
        """Of the folder or the table, for people; no password is in it."""
        ...

    @property
    def delivered_count(self) -> int:
        """Live records, updates included."""
        ...

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

    def records(self, progress: Progress) -> Iterator[LiveRecord]:
        """The live records in load order; call it once.

        Raises:
            UnsupportedFormat: something else wrote them.
            JournalIOError: they cannot be read.
        """
        ...

    def add_ids(self, progress: Progress) -> Iterable[int]:
        """Ids of all records that a live add has made, ascending; in place of records()."""
        ...

    def views(self, progress: Progress) -> Iterator[FileView]:
        """Every record of every file, live or not; in place of records()."""
        ...

    def stat(self, progress: Progress) -> Figures:
        """The figures; in place of records()."""
        ...

    def verify(self, progress: Progress) -> VerifyReport:
        """Check everything; in place of records()."""
        ...


class Store(RecordStore, Protocol):
    """What the commands use beside the door itself."""

    @property
    def record_size_max(self) -> int:
        """Bytes of the largest record, its fields included."""
        ...

    def __contains__(self, record_id: RecordId) -> bool:
        """Whether the record is live."""
        ...

    def fileno(self) -> int:
        """A descriptor that becomes readable when there is something to reap."""
        ...

    def on_event(self) -> None:
        """Reap, and have the next completion make fileno() readable again."""
        ...

    def compact(self, progress: Progress | None = None) -> bool:
        """Remove dead records now; whether anything was replaced."""
        ...

    def reclaim(self) -> int:
        """Free what nothing needs any more; how many files."""
        ...


class StoreOpener(Protocol):
    """Opens what a URL leads to: found by entry point, never imported.

    Raises, from both: journal.errors.OptionError for a URL or name that cannot be right,
    JournalIOError where the store cannot be reached.
    """

    def read(self, access: Access) -> AbstractContextManager[StoredRecords]:
        """The records as they stand. Takes no lock, makes nothing."""
        ...

    def store(self, access: Access, *, must_exist: bool = False) -> AbstractContextManager[Store]:
        """The store, open, taken and not yet loaded; closed at the end.

        Args:
            access: to it.
            must_exist: raise WrongUse where there is none, in place of making one.

        Raises:
            JournalLocked: somebody else has it.
        """
        ...

    def compact(self, access: Access, progress: Progress) -> tuple[int, int]:
        """Tidy up a store that must exist; rows before and after.

        Raises:
            JournalLocked: somebody else has it.
        """
        ...
