"""Pages in tables of a database: what page_folders.py says of folders, of tables.

    PAGE_STORE<id>    file address.txt, files 000000001.page …, as bytes of rows

A write is a transaction that proves the broker's lease, durable when it returns; nothing is left
for `sync` to do.

Threads: as for folders of files. A file object belongs to one thread at a time: each reader opens
one of its own.
"""

from __future__ import annotations

import errno
import re
import sys
from typing import TYPE_CHECKING, Final, Protocol

from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from broker.storage.page_folders import PageFolder
    from broker.storage.table_files import TableFile, TableFiles

__all__ = ["TableFolders"]

_NAME: Final = re.compile(r"(\d{9,19})\.page")
PAGE_EXTENSION: Final = "page"
# Artemis's `.invalidPage` is longer than the column of extensions.
INVALID_EXTENSION: Final = "invalid"


class TableStores(Protocol):
    """The page tables of a broker: jdbcstore.pages.PageStores."""

    def create(self, address: str, store_id: int) -> TableFiles:
        """A table for the pages of an address."""

    def load(self) -> Mapping[str, TableFiles]:
        """The tables that were made, by address."""


class TableFolders:
    """All page tables.

    Args:
        stores: started.
    """

    def __init__(self, stores: TableStores) -> None:
        self._stores = stores

    def load(self, drop_unused: Callable[[PageFolder, int], bool]) -> dict[str, PageFolder]:
        """Give what is there, by address: no address has two tables, which are made in order.

        Raises:
            JournalIOError: the database refused.
            JournalDamaged: an address has two tables with pages.
        """
        return {address: TableFolder(files) for address, files in self._stores.load().items()}

    def create(self, address: str, store_id: int) -> PageFolder:
        """Give an address a table, which is made with its first page."""
        return TableFolder(None, lambda: self._stores.create(address, store_id))


class TableFolder:
    """The table of one address.

    Args:
        files: of the table; None where it has to be made.
        make: makes it.
    """

    def __init__(
        self, files: TableFiles | None, make: Callable[[], TableFiles] | None = None
    ) -> None:
        self._files = files
        self._make = make
        self._page = 0
        self._file: TableFile | None = None

    @staticmethod
    def _name(page: int) -> str:
        return f"{page:09d}.{PAGE_EXTENSION}"

    @property
    def place(self) -> Path | None:
        """See PageFolder."""
        return None

    def sizes(self) -> dict[int, int]:
        """See PageFolder."""
        found: dict[int, int] = {}
        if self._files is not None:
            for name in self._files.names(PAGE_EXTENSION):
                match = _NAME.fullmatch(name)
                file = None if match is None else self._files.find(name)
                if match is not None and file is not None:
                    found[int(match[1])] = file.size
        return dict(sorted(found.items()))

    def keep_room(self, page: int, size: int, least: int) -> int:
        """See PageFolder: a database does not tell what it has room for."""
        return sys.maxsize

    def append(self, page: int, data: list[bytes]) -> None:
        """See PageFolder."""
        if self._files is None:
            assert self._make is not None, "one of the two is given"
            self._files = self._make()
        if self._file is None or page != self._page:
            self._file = self._files.open(self._name(page))
            self._page = page
        self._file.append(b"".join(data))

    def sync(self, page: int) -> None:
        """See PageFolder: it is durable already."""

    def read(self, page: int, offset: int, size: int) -> bytes:
        """See PageFolder."""
        file = None if self._files is None else self._files.find(self._name(page))
        if file is None:
            raise JournalIOError(errno.ENOENT, "no such page", self._name(page))
        return file.read_at(offset, size)

    def delete(self, page: int, *, is_invalid: bool) -> None:
        """See PageFolder."""
        if page == self._page:
            self.close()
        file = None if self._files is None else self._files.find(self._name(page))
        if file is None:
            return
        if is_invalid:
            file.rename(f"{page:09d}.{INVALID_EXTENSION}")
        else:
            file.delete()

    def destroy(self) -> None:
        """See PageFolder; the directory forgets the table with the next start."""
        self.close()
        if self._files is not None:
            self._files.destroy()

    def close(self) -> None:
        """See PageFolder."""
        self._file = None
        self._page = 0
