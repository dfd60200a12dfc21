"""What a broker on a database asks of its tables of files, of pages and of large messages alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["TableFile", "TableFiles"]


class TableFile(Protocol):
    """A file in a table: jdbcstore.blobs.SqlFile."""

    @property
    def size(self) -> int:
        """Bytes."""

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Put bytes at the end; durable when it returns."""

    def read_at(self, offset: int, size: int) -> bytes:
        """Bytes from an offset on."""

    def rename(self, name: str) -> None:
        """Give it another name."""

    def delete(self) -> None:
        """Remove it."""


class TableFiles(Protocol):
    """A table of files: jdbcstore.blobs.SqlFiles."""

    def open(self, name: str) -> TableFile:
        """The file of this name, made if there is none."""

    def find(self, name: str) -> TableFile | None:
        """The file of this name; None if there is none."""

    def copy_rows(self, source: str, target: str) -> Iterator[int]:
        """Make a file with the content of another, a part of it with each step."""

    def names(self, extension: str) -> list[str]:
        """Names of the files with an extension."""

    def destroy(self) -> None:
        """Drop the table."""
