"""The text of Artemis's `data print` over pages, line by line (PrintData.printPages)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.model.encoding import BodyReader, RecordFormatError
from broker.model.java_text import hash_order, simple_string_hash
from broker.printing.describe import describe
from broker.printing.describe_messages import message_parts
from broker.records.page_records import entries
from broker.records.stored_messages import LargeCoreMessage, read_message

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from broker.printing.live_messages import LiveMessages
    from broker.records.page_records import PageEntry
    from broker.storage.page_folders import PageFolder

__all__ = ["PagePrinter"]

_RULE: Final = "#" * 100


@dataclass(frozen=True, slots=True)
class PagePrinter:
    """Gives the lines of all pages.

    Attributes:
        journal: what the message journal says of pages, taken in.
        queue_ids: of the queues that have a binding.
        safe: leave out users' data.
        max_pages: of an address, as Artemis counts them: one more is shown; -1 all.
    """

    journal: LiveMessages
    queue_ids: Collection[int]
    safe: bool = False
    max_pages: int = -1

    def lines(self, pages: Mapping[str, PageFolder]) -> Iterator[str]:
        """Give them for the pages of each address.

        Raises:
            JournalIOError: pages cannot be read.
        """
        hashes = {address: simple_string_hash(address) for address in pages}
        for address in hash_order(hashes):
            yield _RULE
            yield from self._store_lines(address, pages[address])

    def _store_lines(self, address: str, folder: PageFolder) -> Iterator[str]:
        sizes = folder.sizes()
        yield f"Exploring store {address} folder = {folder.place or 'null'}"
        yield f"Number of pages ::{len(sizes)}, Current writing page ::{max(sizes, default=0)}"
        for index, (page, size) in enumerate(sizes.items()):
            if 0 <= self.max_pages < index:
                yield (
                    f"******* Giving up at Page {page}, System has a total of {len(sizes)} pages"
                )
                return
            yield f"*******   Page {page}"
            yield from self._page_lines(page, folder.read(page, 0, size))

    def _page_lines(self, page: int, data: bytes) -> Iterator[str]:
        acknowledged = self.journal.page_acknowledgements(page)
        complete = self.journal.complete_queues(page)
        for entry in entries(data, 0, 0):
            gone_count = 0
            marks = []
            for queue_id in entry.queue_ids:
                found = [
                    text
                    for text, is_so in (
                        (" (ACK)", (queue_id, entry.number) in acknowledged),
                        (" (PG-COMPLETE)", queue_id in complete),
                        (" (N/A) ", queue_id not in self.queue_ids),
                    )
                    if is_so
                ]
                gone_count += bool(found)
                marks.append(f"{queue_id}{''.join(found) or ' (OK) '}")
            lost = entry.tx_id >= 0 and entry.tx_id not in self.journal.page_transactions
            yield (
                f"pg={page}, msg={entry.number},pgTX={entry.tx_id},{self._text(entry, data)}"
                f",Queues = {','.join(marks)}{', **PG_TX_NOT_FOUND**' if lost else ''}"
            )
            count = len(entry.queue_ids)
            if gone_count != count:
                yield (
                    f"^^^ Previous record has {gone_count} acked queues and {count} queues routed"
                )
                yield ""

    def _text(self, entry: PageEntry, data: bytes) -> str:
        end = entry.message_at + entry.message_size
        reader = BodyReader(memoryview(data)[entry.message_at : end])
        try:
            message = LargeCoreMessage.read(reader) if entry.is_large_core else read_message(reader)
            if self.safe:
                return f" msg={describe(message, entry.message_id(data), safe=True)}"
            user_id, text = message_parts(message)
        except RecordFormatError as error:
            return f"userMessageID=, msg=** damaged: {error} **"
        return f"userMessageID={user_id or ''}, msg={text}"
