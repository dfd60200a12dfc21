"""What the message journal says of pages: acknowledgements, complete pages, transactions.

    35   a transaction put so many durable references into pages; updates count them down
    39   a queue has acknowledged one message of a page
    42   a queue has acknowledged all messages of a page; its records 39 go

Records of other kinds about pages, 40, 41 and 43, are counters: the pages themselves are counted at
every start, here as in Artemis, and so they are read, deleted, and never written.

All of it makes room, and is accepted on a full disk as long as the journal's reserve lasts.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import contextlib
import logging
import struct
from typing import TYPE_CHECKING, Final

import broker.model.packed as packed
from broker.errors import BrokerError
from broker.model.wire import RecordType
from broker.storage.loop_store import refused
from journal.errors import JournalFull, UnknownTransaction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.storage.context import Counter
    from broker.storage.loop_store import LoopStore

__all__ = ["PageAppends"]

log = logging.getLogger("broker")

_TRANSACTION: Final = int(RecordType.PAGE_TRANSACTION)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_CURSOR)
_COMPLETE: Final = int(RecordType.PAGE_CURSOR_COMPLETE)

# An acknowledgement, and its delete once the page is gone.
_RECORDS_EACH: Final = 2

_LONG_INT: Final = struct.Struct(">qi")


class PageAppends:
    """See the module's text.

    Args:
        messages: the message journal.
        new_id: of records.
        counter: of its appends.
    """

    def __init__(self, messages: LoopStore, new_id: Callable[[], int], counter: Counter) -> None:
        self._messages = messages
        self._new_id = new_id
        self._counter = counter
        self._done = counter.done

    def acknowledge(
        self, queue_id: int, page: int, number: int, tx_id: int | None, is_last: bool
    ) -> int:
        """Record that a queue has a message of a page no more; the record's id.

        Args:
            queue_id: of the queue.
            page: number of the page.
            number: of the message in it.
            tx_id: of a transaction; None records it at once.
            is_last: no other follows that asks for the sync of all.

        Raises:
            BrokerError: the disk is full, and the reserve used up.
        """
        record_id = self._new_id()
        body = packed.of_position(queue_id, page, number)
        try:
            self._acknowledge(record_id, body, tx_id, is_last)
        except JournalFull as error:
            raise refused(error) from error
        return record_id

    def _acknowledge(self, record_id: int, body: bytes, tx_id: int | None, is_last: bool) -> None:
        if tx_id is not None:
            self._messages.add(record_id, _ACKNOWLEDGE, body, tx=tx_id, wait=False, makes_room=True)
        elif is_last:
            # As the acknowledgement of any other message: without flush_now.
            self._messages.add(
                record_id,
                _ACKNOWLEDGE,
                body,
                done=self._done,
                wait=False,
                flush_now=False,
                makes_room=True,
            )
            counter = self._counter
            counter.appended += 1
            counter.unflushed = counter.appended
        else:
            self._messages.add(
                record_id, _ACKNOWLEDGE, body, sync=False, wait=False, makes_room=True
            )

    def reserve_ends(self, count: int) -> bool:
        """Have the journal keep room to acknowledge so many messages of pages in all.

        Returns:
            False while a full disk has none.
        """
        return self._messages.reserve_ends(_RECORDS_EACH * count)

    def complete(
        self, queue_id: int, page: int, count: int, record_ids: Iterable[int]
    ) -> int | None:
        """Record that a queue is done with a page of so many messages, in place of other records.

        Returns:
            The record's id; None where a full disk has no room for it: the others stay.
        """
        record_id, tx_id = self._new_id(), self._new_id()
        body = packed.of_position(queue_id, page, count)
        try:
            with self.all_or_nothing(tx_id):
                self._messages.add(
                    record_id, _COMPLETE, body, tx=tx_id, wait=False, makes_room=True
                )
                for one in record_ids:
                    self._messages.delete(one, tx=tx_id, sync=False, wait=False)
        except JournalFull as error:
            log.info("page %d is not recorded as done for queue %d: %s", page, queue_id, error)
            return None
        return record_id

    @contextlib.contextmanager
    def all_or_nothing(self, tx_id: int) -> Iterator[None]:
        """Commit what is done inside, synced; roll it back where the disk is full, and raise."""
        try:
            yield
            self._messages.commit(tx_id, done=self._done, wait=False)
        except (JournalFull, BrokerError):
            # Without room for that either, the next start finds it open and drops it; and where the
            # first of it was refused there is none.
            with contextlib.suppress(JournalFull, UnknownTransaction):
                self._messages.rollback(tx_id, sync=False, wait=False)
            raise
        self._counter.appended += 1

    def delete(self, record_id: int) -> bool:
        """Record that a record 35, 39 or 42 counts no more; not synced.

        Returns:
            Whether it is recorded: where a full disk has no room for that, a start finds out by
            itself.
        """
        try:
            self._messages.delete(record_id, sync=False, wait=False)
        except JournalFull as error:
            log.info("record %d of a page is deleted at a later start: %s", record_id, error)
            return False
        return True

    def add_transaction(self, page_tx_id: int, count: int, tx_id: int) -> int:
        """Record how many durable references a transaction put into pages; the record's id.

        Raises:
            BrokerError: the disk is full, and the reserve used up.
        """
        record_id = self._new_id()
        body = _LONG_INT.pack(page_tx_id, count)
        try:
            self._messages.add(record_id, _TRANSACTION, body, tx=tx_id, wait=False, makes_room=True)
        except JournalFull as error:
            raise refused(error) from error
        return record_id

    def update_transaction(self, record_id: int, page_tx_id: int, count: int, tx_id: int) -> None:
        """Record that so many of them are acknowledged.

        Raises:
            BrokerError: the disk is full, and the reserve used up.
        """
        body = _LONG_INT.pack(page_tx_id, count)
        try:
            self._messages.update(
                record_id, _TRANSACTION, body, tx=tx_id, wait=False, makes_room=True
            )
        except JournalFull as error:
            raise refused(error) from error
