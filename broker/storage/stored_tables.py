"""Pages and bodies of large messages in the tables of a database, looked at and not touched.

What a broker opens for itself (jdbcstore.pages) makes what is missing and forgets what a crash left
half made; a command that only reads must do neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.encoding import BodyReader, RecordFormatError
from broker.storage.page_tables import TableFolder
from jdbcstore.blobs import SqlFiles
from jdbcstore.pages import ADDRESS_FILE, DIRECTORY_FILE
from journal.errors import Damage, JournalDamaged

if TYPE_CHECKING:
    from broker.storage.page_folders import PageFolder
    from jdbcstore.blobs import SqlFile
    from jdbcstore.database import Database

__all__ = ["StoredTables"]


class StoredTables:
    """The file tables of one broker.

    Args:
        database: open; nothing is written to it.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._prefix = database.options.page_store_table_name
        large = SqlFiles(database, database.options.large_message_table_name)
        self._large = large if large.has_table() else None

    def pages(self) -> dict[str, PageFolder]:
        """Give the page tables that are whole, by address.

        Raises:
            JournalDamaged: the directory of tables, or an address, cannot be read.
            JournalIOError: the database refused.
        """
        directory = SqlFiles(self._database, self._prefix)
        listed = directory.find(DIRECTORY_FILE) if directory.has_table() else None
        found: dict[str, PageFolder] = {}
        for suffix in dict.fromkeys(_strings(listed)):
            # As Artemis does with UUIDs.
            files = SqlFiles(self._database, self._prefix + suffix.replace("-", ""))
            names = _strings(files.find(ADDRESS_FILE)) if files.has_table() else []
            if names:
                found[names[0]] = TableFolder(files)
        return found

    def find_large(self, message_id: int) -> LargeRows | None:
        """Give the body of a large message; None where there is none."""
        file = None if self._large is None else self._large.find(f"{message_id}.msg")
        return None if file is None else LargeRows(file)


class LargeRows:
    """One body; what `broker.model.message.ReadableBody` says, for reading alone."""

    def __init__(self, file: SqlFile) -> None:
        self._file = file

    @property
    def size(self) -> int:
        """Bytes."""
        return self._file.size

    def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on; fewer only at the end."""
        return self._file.read_at(offset, size)

    def hold(self) -> None:
        """Do nothing: no broker runs, so it is not deleted meanwhile."""

    def release(self) -> None:
        """Nothing is held."""


def _strings(file: SqlFile | None) -> list[str]:
    """Give the SimpleStrings of a file, one after the other."""
    if file is None:
        return []
    reader = BodyReader(file.read_at(0, file.size))
    found = []
    while reader.remaining:
        try:
            found.append(reader.read_simple_string())
        except RecordFormatError as error:
            raise JournalDamaged(
                [Damage(file.name, reader.offset, reader.remaining, str(error))]
            ) from error
    return found
