"""The location of one journal, with all that a task needs to open it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from journal.folder import JournalName

if TYPE_CHECKING:
    from jdbcstore.id_ranges import IdRange
    from jdbcstore.options import DatabaseStoreOptions
    from journal.remote import AnyPath

__all__ = ["Place"]


@dataclass(frozen=True, slots=True)
class Place:
    """One journal, or one history.

    Attributes:
        node: whose it is.
        journal: for people: its folder, or database and table without user and password.
        folder: of its files; None for a table.
        name: of its files.
        large_messages: folder of the bodies of its large messages; None: not known.
        paging: folder of its pages; None: not known.
        bindings: the journal of its queues; None: not known.
        database: of its table.
        table: its name.
        ids: which part of the table; None: all of it.
    """

    node: str
    journal: str
    folder: AnyPath | None = None
    name: JournalName = field(default_factory=JournalName)
    large_messages: AnyPath | None = None
    paging: AnyPath | None = None
    bindings: Place | None = None
    database: DatabaseStoreOptions | None = None
    table: str = ""
    ids: IdRange | None = None
