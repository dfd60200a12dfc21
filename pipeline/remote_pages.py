"""Pages in an object store, read-only; broker.storage.page_folders reads those in files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from broker.storage.page_folders import ADDRESS_FILE, page_number
from journal.errors import Damage, JournalDamaged

if TYPE_CHECKING:
    from journal.remote import RemotePath

__all__ = ["ReadablePages", "remote_pages"]


class ReadablePages(Protocol):
    """The pages of one address. Everything raises JournalIOError when they cannot be read."""

    @property
    def place(self) -> Any:  # noqa: ANN401 - a path of either kind
        """The folder; None where there is none, of tables."""

    def sizes(self) -> dict[int, int]:
        """Give the bytes of each page, by its number, in order."""

    def read(self, page: int, offset: int, size: int) -> bytes:
        """Give at most `size` bytes; fewer only at the end."""


class RemotePages:
    """The folder of one address.

    Args:
        place: of it.
    """

    def __init__(self, place: RemotePath) -> None:
        self.place = place
        self._names: dict[int, str] = {}

    def sizes(self) -> dict[int, int]:
        """See ReadablePages."""
        sizes = self.place.sizes()
        found = ((page_number(name), name) for name in sizes)
        self._names = {page: name for page, name in found if page is not None}
        return {page: sizes[name] for page, name in sorted(self._names.items())}

    def read(self, page: int, offset: int, size: int) -> bytes:
        """See ReadablePages; of a page that sizes() gave."""
        return (self.place / self._names[page]).read(offset, size)


def remote_pages(paging: RemotePath) -> dict[str, RemotePages]:
    """The folders that have an address.

    Raises:
        JournalIOError: they cannot be read.
        JournalDamaged: an address has two; the next start of its broker makes them one.
    """
    found: dict[str, RemotePages] = {}
    for name in sorted(paging.names()):
        folder = paging / name
        file = folder / ADDRESS_FILE
        if not file.is_file():
            continue
        address = file.read_bytes().decode("utf-8").split("\n", 1)[0].strip()
        if address in found:
            reason = f"address {address!r} has pages in {found[address].place} too"
            raise JournalDamaged([Damage(str(folder), 0, 0, f"{reason}: its broker joins them")])
        if address:
            found[address] = RemotePages(folder)
    return found
