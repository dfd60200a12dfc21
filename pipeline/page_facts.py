"""The state of messages in pages, from the message journal: acknowledged, committed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

from broker.model.encoding import RecordFormatError
from broker.model.wire import RecordType
from broker.printing.live_messages import LiveMessages
from broker.records.message_records import AcknowledgeCursor, PageTransaction, PageTransactionUpdate
from broker.records.page_records import NO_TX
from broker.records.records import decode_record
from pipeline.live_journal import open_journal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from broker.records.page_records import PageEntry
    from journal.delivery import LiveRecord
    from pipeline.live_journal import LiveJournal
    from pipeline.place import Place

__all__ = ["PageFacts", "queues_at"]

_TYPES: Final = (
    RecordType.PAGE_TRANSACTION,
    RecordType.ACKNOWLEDGE_CURSOR,
    RecordType.PAGE_CURSOR_COMPLETE,
)


@dataclass
class PageFacts:
    """What the records of a journal say of pages. Use it in a `with` block.

    Memory: ids of transactions; what was acknowledged is in a temporary database on disk
    (broker.printing.live_messages).

    Attributes:
        queue_ids: of the queues that there are; None: not known, all are taken to be there.
        broken: records that cannot be read, and why.
    """

    queue_ids: Collection[int] | None
    broken: list[tuple[LiveRecord, str]] = field(default_factory=list)
    _live: LiveMessages = field(default_factory=LiveMessages)
    _prepared: set[int] = field(default_factory=set)
    _acknowledging: set[tuple[int, int, int]] = field(default_factory=set)

    def take(self, journal: LiveJournal) -> None:
        """Take the records of a journal, and those of its prepared transactions.

        Raises:
            JournalError: it cannot be read.
            OSError: there is no room for the temporary database.
        """
        self._live.take((record for record, _ in self._sound(journal.records())), only_pages=True)
        records = (record for one in journal.prepared for record in one.records)
        for _, found in self._sound(records):
            if isinstance(found, PageTransaction | PageTransactionUpdate):
                self._prepared.add(found.tx_id)
            elif isinstance(found, AcknowledgeCursor):
                self._acknowledging.add((found.page_nr, found.queue_id, found.message_nr))

    def _sound(self, records: Iterable[LiveRecord]) -> Iterator[tuple[LiveRecord, object]]:
        for record in records:
            if record.user_type not in _TYPES:
                continue
            is_update = record.kind == "update"
            try:
                yield record, decode_record(record.user_type, record.body, is_update=is_update)
            except RecordFormatError as error:
                self.broken.append((record, str(error)))

    def states(self, page: int, entries: Iterable[PageEntry]) -> Iterator[list[tuple[int, str]]]:
        """Give, for each message of a page, the queues that have it and Artemis's state.

        Queues that are gone are left out.
        """
        acknowledged = self._live.page_acknowledgements(page)
        complete = self._live.complete_queues(page)
        for entry in entries:
            found = []
            for queue_id in entry.queue_ids:
                if self.queue_ids is not None and queue_id not in self.queue_ids:
                    continue
                if queue_id in complete or (queue_id, entry.number) in acknowledged:
                    state = "acknowledged"
                elif (page, queue_id, entry.number) in self._acknowledging:
                    state = "acknowledging"
                elif self.waits(entry):
                    state = "prepared"
                else:
                    state = "live"
                found.append((queue_id, state))
            yield found

    def counts(self, entry: PageEntry) -> bool:
        """Whether its transaction was committed, or is prepared: else no broker delivers it."""
        return entry.tx_id == NO_TX or self.waits(entry) or self._is_committed(entry)

    def waits(self, entry: PageEntry) -> bool:
        """Whether its transaction is prepared, and neither committed nor rolled back."""
        return entry.tx_id in self._prepared and not self._is_committed(entry)

    def _is_committed(self, entry: PageEntry) -> bool:
        return entry.tx_id in self._live.page_transactions

    def close(self) -> None:
        """Remove the temporary database."""
        self._live.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def queues_at(place: Place, user_version: int) -> set[int]:
    """The ids of the queues in a bindings journal.

    Raises:
        JournalError: it cannot be read.
    """
    with open_journal(place, user_version) as journal:
        return {
            record.record_id
            for record in journal.records()
            if record.user_type == RecordType.QUEUE_BINDING_RECORD
        }
