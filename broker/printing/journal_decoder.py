"""Record bodies for people, as the commands of the journal print them.

The journal's command line finds `JournalDecoder` by the entry point group
`quiver.journal.decoders`, without ever importing the broker. It never raises on damaged bodies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.encoding import Body, RecordFormatError
from broker.model.wire import RecordType
from broker.printing import print_data
from broker.printing.describe import NULL_TEXT, describe, xid_text
from broker.printing.json_view import JSON, json_view
from broker.printing.print_counts import MessageCounts
from broker.records.records import decode_prepared, decode_record
from broker.storage.layout import LARGE_MESSAGES, MESSAGES_FILES, PAGING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from journal.data_print import LiveRecord, RecordFile, Transaction

__all__ = ["JSON", "JournalDecoder"]


class JournalDecoder:
    """Reads record bodies for people; stateless, so one instance serves any number of threads.

    The journal's side of this seam is a Protocol of its own with these methods:

        decode(user_type, body, *, record_id, is_update) -> dict[str, JSON] | None
        describe(user_type, body, *, record_id, is_update) -> str
        describe_prepared(extra) -> str
        print_files(path, files) -> Iterator[str]
        print_surviving(committed, prepared, failed) -> Iterator[str]
        message_counts() -> MessageCounts
        beside(folder) -> list[Path]

    None of them raises on damaged bytes, whatever they are.
    """

    def decode(
        self, user_type: int, body: Body, *, record_id: int, is_update: bool
    ) -> dict[str, JSON] | None:
        """Give a body as JSON, `{"error": …}` when it is damaged, None when the type is unknown.

        Args:
            user_type: 0 … 255.
            body: the whole body.
            record_id: of the journal record; kept for decoders of other products.
            is_update: an update record.
        """
        try:
            record = decode_record(user_type, body, is_update=is_update)
            return None if record is None else json_view(record)
        except RecordFormatError as error:
            return {"recordType": RecordType(user_type).name, "error": str(error)}

    def describe(
        self, user_type: int, body: Body, *, record_id: int, is_update: bool, safe: bool = False
    ) -> str:
        """Give the text that Artemis's `data print` has for this record.

        `** null **` for what it does not look into, `** damaged: … **` where it would stop; 0 in
        place of identity hashes; dates in UTC. `safe` leaves out users' data.
        """
        try:
            record = decode_record(user_type, body, is_update=is_update)
            return NULL_TEXT if record is None else describe(record, record_id, safe=safe)
        except RecordFormatError as error:
            return f"** damaged: {error} **"

    def describe_prepared(self, extra: Body) -> str:
        """Give the text of a prepare record's Xid, `null` when there is none in it."""
        try:
            return xid_text(decode_prepared(extra))
        except RecordFormatError:
            return "null"

    def message_counts(self) -> MessageCounts:
        """Give an empty tally of messages and references, to be fed record by record."""
        return MessageCounts()

    def print_files(
        self, path: str, files: Iterable[RecordFile], *, safe: bool = False
    ) -> Iterator[str]:
        """Give the lines of `data print` for every record in file order.

        `files` are like `journal.reader.FileView`; see `print_data.file_lines`.
        """
        return print_data.file_lines(path, files, self, safe=safe)

    def print_surviving(
        self,
        committed: Iterable[LiveRecord],
        prepared: Iterable[Transaction],
        failed: Iterable[Transaction],
        *,
        safe: bool = False,
    ) -> Iterator[str]:
        """Give the lines of `data print` for what a load gives.

        Records and transactions are like those of `journal.loaded`; see
        `print_data.surviving_lines`.
        """
        return print_data.surviving_lines(committed, prepared, failed, self, safe=safe)

    def beside(self, folder: Path) -> list[Path]:
        """Give the folders of pages and large messages beside a message journal, if not empty."""
        if next(folder.glob(f"{MESSAGES_FILES}-*"), None) is None:
            return []
        found = [folder.resolve().parent / name for name in (PAGING, *LARGE_MESSAGES)]
        return [one for one in found if one.is_dir() and any(one.iterdir())]
