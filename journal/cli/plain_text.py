"""Records as lines in the wording of `data print`, bodies as hexadecimal bytes.

With a decoder the bodies are its business, and so are the lines around them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from journal.data_print import (
    PREPARED,
    SURVIVING,
    failed_lines,
    file_line,
    file_record_line,
    live_record_line,
    path_line,
    prepared_lines,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from journal.api import Progress
    from journal.reader import FileView
    from journal.tools.stored import StoredRecords

__all__ = ["file_lines", "live_lines"]


class HexBodies:
    """Describes a body by its bytes."""

    def describe(
        self,
        _user_type: int,
        body: bytes | bytearray | memoryview,
        *,
        record_id: int,
        is_update: bool,
    ) -> str:
        """The body of any record."""
        return f"body={body.hex()}"

    def describe_prepared(self, extra: bytes | bytearray | memoryview) -> str:
        """The extra data of a prepare."""
        return extra.hex()


BODIES = HexBodies()


def live_lines(records: StoredRecords, progress: Progress) -> Iterator[str]:
    """What a load gave: live records, then prepared and failed transactions."""
    yield SURVIVING
    for record in records.records(progress):
        yield live_record_line(record, BODIES)
    yield ""
    yield PREPARED
    for transaction in records.prepared:
        yield from prepared_lines(transaction, BODIES)
    yield from failed_lines(records.failed, BODIES)


def file_lines(path: str, views: Iterable[FileView]) -> Iterator[str]:
    """Every record in file order."""
    yield path_line(path)
    for view in views:
        yield file_line(view)
        for record in view:
            yield file_record_line(record, BODIES)
    yield ""
