"""What the message journal says of pages: acknowledgements, complete pages, transactions.

    35   a transaction put so many durable references into pages; updates count them down
    39   a queue has acknowledged one message of a page
    42   a queue has acknowledged all messages of a page; its records 39 go

Records of other kinds about pages, 40, 41 and 43, are counters: the pages themselves are counted at
every start, here as in the reference, and so they are read, deleted, and never written.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

import broker.packed as packed
from broker.storage.wire import RecordType

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.storage.context import Counter
    from broker.storage.manager import LoopStore

__all__ = ["PageAppends"]

_TRANSACTION: Final = int(RecordType.PAGE_TRANSACTION)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_CURSOR)
_COMPLETE: Final = int(RecordType.PAGE_CURSOR_COMPLETE)

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
        """
        record_id = self._new_id()
        body = packed.of_position(queue_id, page, number)
        if tx_id is not None:
            self._messages.add(record_id, _ACKNOWLEDGE, body, tx=tx_id, wait=False, makes_room=True)
        elif is_last:
            # As the acknowledgement of any other message: in no hurry.
            self._messages.add(
                record_id,
                _ACKNOWLEDGE,
                body,
                done=self._done,
                wait=False,
                hurry=False,
                makes_room=True,
            )
            counter = self._counter
            counter.appended += 1
            counter.unhurried = counter.appended
        else:
            self._messages.add(
                record_id, _ACKNOWLEDGE, body, sync=False, wait=False, makes_room=True
            )
        return record_id

    def complete(self, queue_id: int, page: int, count: int, tx_id: int) -> int:
        """Record that a queue is done with a page of so many messages; the record's id."""
        record_id = self._new_id()
        body = packed.of_position(queue_id, page, count)
        self._messages.add(record_id, _COMPLETE, body, tx=tx_id, wait=False, makes_room=True)
        return record_id

    def delete(self, record_id: int, tx_id: int | None = None) -> None:
        """Record that a record 35, 39 or 42 counts no more; not synced."""
        self._messages.delete(record_id, tx=tx_id, sync=False, wait=False)

    def add_transaction(self, page_tx_id: int, count: int, tx_id: int) -> int:
        """Record how many durable references a transaction put into pages; the record's id."""
        record_id = self._new_id()
        self._messages.add(
            record_id, _TRANSACTION, _LONG_INT.pack(page_tx_id, count), tx=tx_id, wait=False
        )
        return record_id

    def update_transaction(self, record_id: int, page_tx_id: int, count: int, tx_id: int) -> None:
        """Record that so many of them are acknowledged."""
        self._messages.update(
            record_id,
            _TRANSACTION,
            _LONG_INT.pack(page_tx_id, count),
            tx=tx_id,
            wait=False,
            makes_room=True,
        )
