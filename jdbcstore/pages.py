"""The page stores of a broker: a directory of addresses, and a table of page files for each.

    PAGE_STORE           file directory.txt: the suffixes of all page tables, one after the other
    PAGE_STORE<suffix>   file address.txt: the address; files 000000001.page, …: its pages

Strings are Artemis's SimpleString: size in bytes (32 bits, big-endian), then UTF-16,
little-endian (PagingStoreFactoryDatabase).

Artemis appends to directory.txt even where it means to replace it, so that an old list is
followed by a new one: suffixes may come twice, and may name tables that were dropped. They are
skipped here; the directory is written anew in one statement.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from jdbcstore.blobs import SqlFiles
from jdbcstore.options import PAGE_STORE_NAME_MAX
from journal.errors import Damage, JournalDamaged, WrongUse

if TYPE_CHECKING:
    from jdbcstore.blobs import Lease
    from jdbcstore.database import Database

__all__ = ["ADDRESS_FILE", "DIRECTORY_FILE", "PAGE_EXTENSION", "PageStores"]

DIRECTORY_FILE: Final = "directory.txt"
ADDRESS_FILE: Final = "address.txt"
PAGE_EXTENSION: Final = "page"
SUFFIX_MAX: Final = 20  # Digits of a 64-bit id with its sign.

SIZE: Final = struct.Struct(">i")


class PageStores:
    """All page tables of one broker.

    Args:
        database: to connect to; its options name the tables.
        fence: the broker's lease, see SqlFiles.

    Threads: one at a time; the files that `create()` and `load()` give are as SqlFiles.
    """

    def __init__(self, database: Database, *, fence: Lease | None = None) -> None:
        self._database = database
        self._fence = fence
        self._prefix = database.options.page_store_table_name
        assert len(self._prefix) <= PAGE_STORE_NAME_MAX
        self._directory = SqlFiles(database, self._prefix, fence=fence)

    def start(self) -> None:
        """Create the directory's table if it is missing.

        Raises:
            JournalIOError: the database refused.
        """
        self._directory.start()

    def suffixes(self) -> list[str]:
        """Suffixes in the directory, each once, in their order.

        Raises:
            JournalDamaged: the directory is not a sequence of strings.
            JournalIOError: the database refused.
        """
        file = self._directory.open(DIRECTORY_FILE)
        return list(dict.fromkeys(_strings(file.read_at(0, file.size), DIRECTORY_FILE)))

    def create(self, address: str, store_id: int) -> SqlFiles:
        """A table for the pages of an address.

        Args:
            address: its name.
            store_id: an id of the broker's that was never used.

        Raises:
            WrongUse: the id was used.
            LeaseLost: somebody else may own the tables.
            JournalIOError: the database refused.
        """
        suffix = str(store_id)
        known = self.suffixes()
        if suffix in known:
            raise WrongUse(f"page table {suffix} exists")
        # The name first: a table that no directory names would never be found again.
        self._write_directory([*known, suffix])
        files = self._files(suffix)
        files.start()
        files.open(ADDRESS_FILE).replace(_encode(address))
        return files

    def load(self) -> dict[str, SqlFiles]:
        """The tables that were made, by address; what a crash left half made is forgotten.

        Raises:
            JournalDamaged: directory or address is not a string, or two tables hold pages of
                one address.
            LeaseLost: somebody else may own the tables.
            JournalIOError: the database refused.
        """
        known = self.suffixes()
        found: dict[str, tuple[str, SqlFiles]] = {}
        for suffix in known:
            address = self._address_of(suffix)
            if address is not None:
                files = self._files(suffix)
                files.start()
                one = (suffix, files)
                found[address] = self._one_of(address, found.get(address, one), one)
        kept = [suffix for suffix, _ in found.values()]
        if kept != known:
            self._write_directory(kept)
        return {address: files for address, (_, files) in found.items()}

    def _one_of(
        self, address: str, first: tuple[str, SqlFiles], second: tuple[str, SqlFiles]
    ) -> tuple[str, SqlFiles]:
        """Of two tables of one address, as a kill may leave them, the one that holds pages."""
        if first is second:
            return first
        for empty, other in ((first, second), (second, first)):
            if not empty[1].names(PAGE_EXTENSION):
                empty[1].destroy()
                return other
        reason = f"this and {second[1].rows.name} hold pages of address {address!r}: drop one"
        raise JournalDamaged([Damage(first[1].rows.name, 0, 0, reason)])

    def remove(self, store_id: int) -> None:
        """Drop the table of an address, with all its pages.

        Raises:
            LeaseLost: somebody else may own the tables.
            JournalIOError: the database refused.
        """
        suffix = str(store_id)
        if self._has_table(suffix):
            self._files(suffix).destroy()
        self._write_directory([one for one in self.suffixes() if one != suffix])

    def _files(self, suffix: str) -> SqlFiles:
        number = suffix.replace("-", "")  # As Artemis does with UUIDs.
        if not number.isascii() or not number.isalnum() or len(number) > SUFFIX_MAX:
            raise JournalDamaged(
                [Damage(DIRECTORY_FILE, 0, 0, f"{suffix!r} is not a table suffix")]
            )
        return SqlFiles(self._database, self._prefix + number, fence=self._fence)

    def _has_table(self, suffix: str) -> bool:
        return self._files(suffix).has_table()

    def _address_of(self, suffix: str) -> str | None:
        if not self._has_table(suffix):
            return None
        files = self._files(suffix)
        if not files.exists(ADDRESS_FILE):
            return None
        file = files.open(ADDRESS_FILE)
        strings = _strings(file.read_at(0, file.size), ADDRESS_FILE)
        return strings[0] if strings else None

    def _write_directory(self, suffixes: list[str]) -> None:
        content = b"".join(map(_encode, suffixes))
        self._directory.open(DIRECTORY_FILE).replace(content)


def _encode(text: str) -> bytes:
    """A SimpleString.

    >>> _encode("ab").hex()
    '0000000461006200'
    """
    data = text.encode("utf-16-le", "surrogatepass")
    return SIZE.pack(len(data)) + data


def _strings(data: bytes, name: str) -> list[str]:
    """All SimpleStrings of some bytes.

    Raises:
        JournalDamaged: the last one is cut short, or a size makes no sense.

    >>> _strings(_encode("a") + _encode("ä"), "x")
    ['a', 'ä']
    """
    found, at = [], 0
    while at < len(data):
        size = SIZE.unpack_from(data, at)[0] if len(data) - at >= SIZE.size else -1
        end = at + SIZE.size + size
        if size < 0 or size % 2 or end > len(data):
            raise JournalDamaged([Damage(name, at, len(data) - at, "no string")])
        found.append(data[at + SIZE.size : end].decode("utf-16-le", "surrogatepass"))
        at = end
    return found
