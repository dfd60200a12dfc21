"""Objects to records: everything the broker appends, in Artemis's sequences.

    durable send        add 45, update 32 of the queue, which asks for the sync
    acknowledge         update 33, synced; delete of the message, when no queue has it, not synced
    in a transaction    the same with its id; commit or prepare asks for the sync
    to several queues, or of several messages at once: as in a transaction, with one of its own

Nothing here waits: appends return at once, and `after` tells when they are durable. While the disk
is full what adds is refused with a BrokerError, and what makes room is accepted. What creates or
deletes a queue or an address takes two records, and so a transaction of its own.

A store that failed raises JournalClosed from every append: the owner is told once, by
`Completions`, and stops the broker.

Threads: the event loop's alone. Durability: by `sync_transactional` and `sync_non_transactional` of
the stores' options.
"""

from __future__ import annotations

import contextlib
import logging
import struct
from typing import TYPE_CHECKING, Final

import broker.model.packed as packed
from broker.model.wire import RecordType
from broker.records.message_records import HeuristicCompletion, encode_duplicate_id
from broker.records.records import encode_prepared, encode_record
from broker.storage.context import Completions, OperationContext
from broker.storage.loop_store import refused
from broker.storage.page_appends import PageAppends
from journal.errors import JournalFull

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from broker.model.message import Message
    from broker.model.wire import WireRecord
    from broker.model.xid import Xid
    from broker.storage.context import After
    from broker.storage.identifiers import IdGenerator
    from broker.storage.loop_store import LoopStore
    from broker.storage.page_writer import PageWriter

__all__ = ["StorageManager"]

log = logging.getLogger("broker")

_LONG_INT: Final = struct.Struct(">qi")
_LONG_LONG: Final = struct.Struct(">qq")

# As plain ints: an IntEnum's own int() is a call on every record.
_MESSAGE: Final = int(RecordType.ADD_MESSAGE_PROTOCOL)
_LARGE_MESSAGE: Final = int(RecordType.ADD_LARGE_MESSAGE)
_REFERENCE: Final = int(RecordType.ADD_REF)
_ACKNOWLEDGE: Final = int(RecordType.ACKNOWLEDGE_REF)
_DELIVERY_COUNT: Final = int(RecordType.UPDATE_DELIVERY_COUNT)
_SCHEDULED: Final = int(RecordType.SET_SCHEDULED_DELIVERY_TIME)
_DUPLICATE_ID: Final = int(RecordType.DUPLICATE_ID)


class StorageManager:
    """What a broker with persistence appends; see the module's text.

    Args:
        bindings: open and loaded: addresses, queues, settings, ids.
        messages: open and loaded: messages and all that is about them.
        ids: as loaded from the bindings.
        on_failure: called once with the error that ended a store.
        check: sees that the stores are still this broker's, see `Completions`; None is not asked.
        clock: monotonic seconds.
        max_redelivery_records: delivery counts above this one are not recorded; -1 all are
            (max-redelivery-records).
        sync_non_transactional: what counts alone is synced (journal-sync-non-transactional).
    """

    is_persistent = True

    def __init__(
        self,
        bindings: LoopStore,
        messages: LoopStore,
        ids: IdGenerator,
        *,
        on_failure: Callable[[Exception], object],
        check: Callable[[], object] | None = None,
        clock: Callable[[], float],
        max_redelivery_records: int = 10,
        sync_non_transactional: bool = True,
    ) -> None:
        self._bindings = bindings
        self._messages = messages
        self._ids = ids
        self._max_redelivery_records = max_redelivery_records
        self._sync_non_transactional = sync_non_transactional
        self.completions = Completions(on_failure, messages.flush_now, check, clock)
        # One bound method for all appends: making one for each would cost as much as the append.
        self._done = self.completions.messages.done
        self._counter = self.completions.messages
        self.pages = PageAppends(messages, ids.new_id, self.completions.messages)
        # Set when the broker is composed; a broker without it does not page.
        self.page_writer: PageWriter | None = None

    # --- lifecycle ----------------------------------------------------------------------------

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Have callbacks run by `loop`, whose thread everything else is called from."""
        self.completions.call_later = loop.call_later
        self._messages.attach_loop(loop, self.completions.after_reap)
        self._bindings.attach_loop(loop, self.completions.after_reap)

    def stop(self) -> None:
        """Make everything durable and record the id counter; the stores stay open.

        Raises:
            JournalError: a store has failed, or fails now.
        """
        self._messages.sync()
        self._messages.reap()
        self._ids.stop()
        self._bindings.reap()
        self._messages.detach_loop()
        self._bindings.detach_loop()

    def new_id(self) -> int:
        """Give an id for whatever is to be recorded."""
        return self._ids.new_id()

    def new_context(self) -> OperationContext:
        """Give what one session waits by."""
        return OperationContext(self.completions)

    def after(self, callback: After, *arguments: object) -> None:
        """Call `callback(error, *arguments)` once all that was appended so far is durable."""
        self.completions.after(callback, *arguments)

    def after_pages(self, callback: Callable[[], object]) -> None:
        """Call it once all that was put into pages so far is durable; not at all if that fails.

        Before anybody who waits for the same is told.
        """
        if self.page_writer is None:
            callback()
        else:
            self.page_writer.after(callback)

    def sync(self) -> None:
        """Block until all of it is durable: for the start and the stop, never for a session."""
        self._messages.sync()
        self._bindings.sync()
        self._messages.reap()
        self._bindings.reap()
        self.completions.run_due()

    # --- messages -----------------------------------------------------------------------------

    def prewarm(self) -> None:
        """Get the store ready for a message whose sender waits."""
        self._messages.prewarm()

    def store_message(self, message: Message, tx_id: int | None) -> None:
        """Record a message; it counts once a reference does.

        Raises:
            RecordTooLarge: it does not fit the journal's buffer or one file.
            BrokerError: the disk is full.
        """
        if message.is_large and message.is_large_core:
            kind, body = _LARGE_MESSAGE, message.encode_headers()
        else:
            kind, body = _MESSAGE, message.record()
        try:
            self._messages.add(message.message_id, kind, body, tx=tx_id, sync=False, wait=False)
        except JournalFull as error:
            raise refused(error) from error

    def store_reference(
        self, queue_id: int, message_id: int, tx_id: int | None, is_last: bool
    ) -> None:
        """Record that a queue has the message; the last of several asks for the sync.

        Raises:
            BrokerError: the disk is full.
        """
        try:
            self._note(message_id, _REFERENCE, packed.of_long(queue_id), tx_id, is_last, False)
        except JournalFull as error:
            raise refused(error) from error

    def acknowledge(self, queue_id: int, message_id: int, tx_id: int | None, is_last: bool) -> None:
        """Record that a queue has the message no more; the last of several asks for the sync.

        Without flush_now: if a client waits for an answer, OperationContext.then() has it flushed.
        On a full disk it is accepted as long as the store's reserve lasts.

        Raises:
            BrokerError: the disk is full, and the reserve used up.
        """
        try:
            self._note(message_id, _ACKNOWLEDGE, packed.of_long(queue_id), tx_id, is_last, True)
        except JournalFull as error:
            raise refused(error) from error

    def _note(
        self,
        record_id: int,
        kind: int,
        body: bytes,
        tx_id: int | None,
        is_last: bool,
        makes_room: bool,
    ) -> None:
        messages = self._messages
        if tx_id is not None:
            messages.update(
                record_id, kind, body, tx=tx_id, sync=False, wait=False, makes_room=makes_room
            )
        elif is_last:
            messages.update(
                record_id,
                kind,
                body,
                done=self._done,
                wait=False,
                flush_now=not makes_room,
                makes_room=makes_room,
            )
            counter = self._counter
            counter.appended += 1
            if makes_room:
                counter.unflushed = counter.appended
        else:
            messages.update(record_id, kind, body, sync=False, wait=False, makes_room=makes_room)

    def delete_message(self, message_id: int) -> None:
        """Record that no queue has the message; not synced, since a load finds out by itself."""
        try:
            self._messages.delete(message_id, sync=False, wait=False)
        except JournalFull as error:
            log.warning("message %d is deleted at the next start: %s", message_id, error)

    def update_delivery_count(self, queue_id: int, message_id: int, count: int) -> None:
        """Record how often a message was delivered; only the latest counts.

        Not while the disk is full: a restart then finds an older count.
        """
        if 0 <= self._max_redelivery_records < count:
            return
        try:
            self._update(message_id, _DELIVERY_COUNT, _LONG_INT.pack(queue_id, count))
        except JournalFull as error:
            log.info("the delivery count of message %d is not recorded: %s", message_id, error)

    def update_scheduled_time(
        self,
        queue_id: int,
        message_id: int,
        time_ms: int,
        tx_id: int | None = None,
        *,
        redelivery_count: int = 0,
    ) -> None:
        """Record when the queue delivers the message, in ms since 1970; only the latest counts.

        That of a redelivery not while the disk is full: a restart does not wait for it then.

        Raises:
            BrokerError: the disk is full.
        """
        if 0 <= self._max_redelivery_records < redelivery_count:
            return
        try:
            self._update(message_id, _SCHEDULED, _LONG_LONG.pack(queue_id, time_ms), tx_id)
        except JournalFull as error:
            if not redelivery_count:
                raise refused(error) from error
            log.info("the redelivery time of message %d is not recorded: %s", message_id, error)

    def _update(self, record_id: int, kind: int, body: bytes, tx_id: int | None = None) -> None:
        if tx_id is None:
            self._messages.update(record_id, kind, body, done=self._done, wait=False)
            self._counter.appended += 1
        else:
            self._messages.update(record_id, kind, body, tx=tx_id, wait=False)

    # --- duplicate ids ------------------------------------------------------------------------

    def store_duplicate_id(
        self,
        record_id: int,
        address: str,
        duplicate_id: bytes,
        message_id: int,
        tx_id: int | None = None,
    ) -> None:
        """Record an id that this address has seen.

        Args:
            record_id: of the record.
            address: as the record names it.
            duplicate_id: that was seen.
            message_id: of the message that had it; 0 where none is known.
            tx_id: of the transaction that it is part of.

        Raises:
            BrokerError: the disk is full.
        """
        body = encode_duplicate_id(address, duplicate_id, message_id)
        try:
            if tx_id is None:
                self._messages.add(record_id, _DUPLICATE_ID, body, done=self._done, wait=False)
                self._counter.appended += 1
            else:
                self._messages.add(record_id, _DUPLICATE_ID, body, tx=tx_id, wait=False)
        except JournalFull as error:
            raise refused(error) from error

    def delete_duplicate_id(self, record_id: int, tx_id: int | None = None) -> None:
        """Record that an id fell out of the cache."""
        self._messages.delete(record_id, tx=tx_id, sync=False, wait=False)

    # --- transactions -------------------------------------------------------------------------

    def prepare(self, tx_id: int, xid: Xid) -> None:
        """Let the transaction survive as prepared."""
        self._messages.prepare(tx_id, encode_prepared(xid), done=self._done, wait=False)
        self._counter.appended += 1

    def commit(self, tx_id: int) -> None:
        """Let all of the transaction count, at once."""
        self._messages.commit(tx_id, done=self._done, wait=False)
        self._counter.appended += 1

    def commit_alone(self, tx_id: int, flush_now: bool) -> None:
        """Let several records of one send, or of one acknowledgement, count at once.

        Args:
            tx_id: of the records.
            flush_now: off, where no caller may be waiting: see acknowledge().
        """
        self._messages.commit(
            tx_id,
            sync=self._sync_non_transactional,
            done=self._done,
            wait=False,
            flush_now=flush_now,
        )
        counter = self._counter
        counter.appended += 1
        if not flush_now:
            counter.unflushed = counter.appended

    def rollback(self, tx_id: int) -> None:
        """Let none of it count."""
        self._messages.rollback(tx_id, done=self._done, wait=False)
        self._counter.appended += 1

    def store_heuristic_completion(self, xid: Xid, *, is_commit: bool) -> int:
        """Record that an operator ended a prepared transaction; the record's id."""
        record_id = self.new_id()
        record = HeuristicCompletion(xid, is_commit)
        self._add_message_record(record_id, record)
        return record_id

    def delete_heuristic_completion(self, record_id: int) -> None:
        """Record that the transaction manager knows of it."""
        self._messages.delete(record_id, sync=True, done=self._done, wait=False)
        self._counter.appended += 1

    def _add_message_record(self, record_id: int, record: WireRecord) -> None:
        self._messages.add(
            record_id,
            record.record_type,
            encode_record(record),
            sync=True,
            done=self._done,
            wait=False,
            makes_room=True,
        )
        self._counter.appended += 1

    # --- bindings -----------------------------------------------------------------------------

    def add_binding(self, record_id: int, record: WireRecord) -> None:
        """Record an address or a queue under its own id, in a transaction as Artemis does."""
        tx_id = self.new_id()
        with self._binding(tx_id):
            self._bindings.add(
                record_id, record.record_type, encode_record(record), tx=tx_id, wait=False
            )

    def update_queue_binding(self, queue_id: int, record: WireRecord) -> None:
        """Record a queue's new attributes."""
        tx_id = self.new_id()
        with self._binding(tx_id):
            self._bindings.update(
                queue_id, record.record_type, encode_record(record), tx=tx_id, wait=False
            )

    def replace_binding(self, old_id: int, new_id: int, record: WireRecord) -> None:
        """Record an address's new attributes under a new id, and drop the old, at once."""
        tx_id = self.new_id()
        with self._binding(tx_id):
            self._bindings.delete(old_id, tx=tx_id, wait=False)
            self._bindings.add(
                new_id, record.record_type, encode_record(record), tx=tx_id, wait=False
            )

    def delete_binding(self, record_id: int) -> None:
        """Record that an address or a queue is gone."""
        tx_id = self.new_id()
        self._bindings.delete(record_id, tx=tx_id, wait=False)
        self._commit_bindings(tx_id)

    @contextlib.contextmanager
    def _binding(self, tx_id: int) -> Iterator[None]:
        """Commit what is done inside.

        Raises:
            BrokerError: the disk is full; nothing was recorded.
        """
        try:
            yield
        except JournalFull as error:
            self._bindings.rollback(tx_id, sync=False, wait=False)
            raise refused(error) from error
        self._commit_bindings(tx_id)

    def _commit_bindings(self, tx_id: int) -> None:
        counter = self.completions.bindings
        self._bindings.commit(tx_id, sync=True, done=counter.done, wait=False)
        counter.appended += 1

    def add_setting(self, record: WireRecord) -> int:
        """Record a status, a setting, a divert and so on; the record's id."""
        record_id = self.new_id()
        counter = self.completions.bindings
        try:
            self._bindings.add(
                record_id,
                record.record_type,
                encode_record(record),
                sync=True,
                done=counter.done,
                wait=False,
            )
        except JournalFull as error:
            raise refused(error) from error
        counter.appended += 1
        return record_id

    def replace_setting(self, old_id: int, record: WireRecord) -> int:
        """Record a setting in the place of an old one, at once; the record's id."""
        record_id = self.new_id()
        self.replace_binding(old_id, record_id, record)
        return record_id

    def delete_setting(self, record_id: int) -> None:
        """Record that it no longer holds."""
        counter = self.completions.bindings
        self._bindings.delete(record_id, sync=True, done=counter.done, wait=False)
        counter.appended += 1
