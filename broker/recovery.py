"""Makes addresses, queues, messages and transactions of what the journals say.

    images ─▶ addresses ─▶ queues ─▶ diverts ─▶ pages ─▶ references ─▶ prepared transactions ─▶
    duplicate ids

In the order of the reference (ActiveMQServerImpl.loadJournals, PostOfficeJournalLoader). Nothing is
delivered meanwhile. What belongs to nothing any more is deleted from the journal: references to
queues that are gone, messages without references.
"""

from __future__ import annotations

import logging
import struct
from typing import TYPE_CHECKING, Final

from broker.divert import Divert
from broker.message import Message
from broker.paging.loading import PageLoader, large_ids
from broker.reference import Reference
from broker.storage.binding_records import Divert as DivertRecord
from broker.storage.message_records import DuplicateId
from broker.storage.records import RecordFormatError, decode_prepared, decode_record
from broker.storage.stored_messages import Persister
from broker.storage.wire import RecordType
from broker.transaction import Transaction, TransactionState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.core import Core
    from broker.queue import Queue
    from broker.storage.images import BindingsImage, MessagesImage, Prepared, Record
    from broker.storage.large_bodies import LargeBodies

__all__ = ["recover"]

log = logging.getLogger("broker")

_LONG: Final = struct.Struct(">q")
_LONG_LONG: Final = struct.Struct(">qq")


def recover(
    core: Core,
    bindings: BindingsImage,
    messages: MessagesImage,
    all_prepared: Sequence[Prepared],
) -> None:
    """Make everything, in `core`; see the module's text.

    Args:
        core: with an empty post office.
        bindings: of the bindings journal.
        messages: of the message journal; emptied, so that its memory goes as its messages come.
        all_prepared: transactions of the message journal that wait for a decision.

    Raises:
        BrokerError: a queue's or divert's filter cannot be read.
        RecordFormatError: a message is not what its record says.
    """
    if core.large is not None:
        core.large.sweep_temporary()
    _load_addresses(core, bindings)
    _load_queues(core, bindings)
    _load_diverts(core, bindings)
    pages = _load_pages(core, messages)
    loader = _MessageLoader(core, messages, pages)
    loader.load_references()
    for prepared in all_prepared:
        loader.load_prepared(prepared)
    _load_duplicate_ids(core, messages)
    for record_id, decision in messages.heuristic:
        core.transactions.load_heuristic(record_id, decision.xid, is_commit=decision.is_commit)
    loader.drop_unreferenced()
    if pages is not None:
        pages.finish()
    loader.sweep_bodies()
    addresses = core.postoffice.addresses
    log.info(
        "loaded %d addresses, %d queues, %d messages, %d prepared transactions",
        len(addresses.by_name),
        len(addresses.queues),
        addresses.memory.count,
        len(all_prepared),
    )


def _load_addresses(core: Core, bindings: BindingsImage) -> None:
    addresses = core.postoffice.addresses
    for address_id, binding in bindings.addresses.items():
        address = addresses.load(
            binding.name,
            address_id,
            binding.routing_types,
            is_auto_created=binding.auto_created,
            is_internal=binding.internal,
        )
        status = bindings.address_status.pop(address_id, None)
        if status is not None:
            address.is_paused = status.is_paused
            address.status_record_id = status.record_id
    for status in bindings.address_status.values():
        core.storage.delete_setting(status.record_id)


def _load_queues(core: Core, bindings: BindingsImage) -> None:
    addresses = core.postoffice.addresses
    for queue_id, binding in bindings.queues.items():
        if binding.address not in addresses.by_name:
            log.warning(
                "queue %s: its address %s has no record; made anew", binding.name, binding.address
            )
            addresses.create(binding.address, [binding.routing_type], is_auto_created=True)
        if binding.name in addresses.queues:
            log.warning("AMQ222135: two queues are called %s: one is left out", binding.name)
            continue
        queue = addresses.load_queue(binding, queue_id, is_durable=True)
        status = bindings.queue_status.pop(queue_id, None)
        if status is not None:
            queue.status_record_id = status.record_id
        if (status is not None and status.is_paused) or addresses.by_name[
            binding.address
        ].is_paused:
            queue.pause()
    for status in bindings.queue_status.values():
        core.storage.delete_setting(status.record_id)


def _load_diverts(core: Core, bindings: BindingsImage) -> None:
    addresses = core.postoffice.addresses
    for record_id, record in bindings.settings:
        if isinstance(record, DivertRecord) and record.address is not None:
            address = addresses.by_name.get(record.address)
            if address is None:
                log.warning(
                    "divert %s: its address %s is gone; left out", record.name, record.address
                )
                continue
            divert = Divert(core, record, record_id)
            address.diverts[divert.unique_name] = divert
            addresses.version += 1


def _load_pages(core: Core, messages: MessagesImage) -> PageLoader | None:
    if core.paging is None:
        return None
    pages = PageLoader(core.paging)
    pages.load_folders(core.paging.folders.load())
    pages.load_records(messages.others)
    messages.others.clear()
    return pages


def _load_duplicate_ids(core: Core, messages: MessagesImage) -> None:
    for address, stored in messages.duplicate_ids.items():
        if core.persist_id_cache:
            core.postoffice.duplicates.of(address).load(stored)
        else:
            for _, record_id in stored:
                core.storage.delete_duplicate_id(record_id)


class _MessageLoader:
    """Makes messages and references, and remembers which messages have any."""

    def __init__(self, core: Core, image: MessagesImage, pages: PageLoader | None) -> None:
        self._core = core
        self._pages = pages
        self._image = image
        self._addresses = core.postoffice.addresses
        # Messages that some queue has, and what stays as it is in the journal.
        self._made: dict[int, Message] = {}
        self._unreadable: set[int] = set()
        self._kept_bodies: set[int] = set()
        self._references: dict[tuple[int, int], Reference] = {}

    def load_references(self) -> None:
        """Put the messages into their queues."""
        for queue_id, entries in self._image.queues.items():
            queue = self._addresses.queues_by_id.get(queue_id)
            if queue is None:
                self._drop_references(queue_id, len(entries))
                continue
            for message_id, entry in entries.items():
                message = self._message(message_id)
                if message is None:
                    continue
                reference = Reference(message, queue, entry.scheduled_ms)
                reference.delivery_count = reference.persisted_count = entry.delivery_count
                self._count(reference)
                self._references[queue_id, message_id] = reference
                queue.load(reference)

    def _drop_references(self, queue_id: int, count: int) -> None:
        if count:
            log.warning("queue %d is gone: %d references to it are left out", queue_id, count)

    def _count(self, reference: Reference) -> None:
        message = reference.message
        message.durable_references += 1
        address = self._addresses.by_name.get((message.address or "").split("::")[0])
        if address is None:
            address = self._addresses.by_name[reference.queue.binding.address]
        address.memory.add(message)

    def _message(self, message_id: int) -> Message | None:
        found = self._made.get(message_id)
        if found is None and message_id not in self._unreadable:
            body = self._image.messages.pop(message_id, None)
            if body is not None:
                found = self._decode(message_id, body)
            elif message_id in self._image.large:
                found = self._large(message_id, self._image.large.pop(message_id))
            if found is None:
                self._unreadable.add(message_id)
                log.warning("message %d cannot be read here: it stays in the journal", message_id)
            else:
                self._made[message_id] = found
        return found

    def _large(self, message_id: int, headers: bytes) -> Message | None:
        large = self._core.large
        body = None if large is None else large.find(message_id)
        if body is None:
            log.error("AMQ222051: large message %d has no body", message_id)
            return None
        try:
            message = Message.decode_headers(headers)
        except RecordFormatError as error:
            raise RecordFormatError(f"large message {message_id}: {error}") from error
        message.message_id = message_id
        message.large = body
        self._kept_bodies.add(message_id)
        return message

    @staticmethod
    def _decode(message_id: int, body: bytes) -> Message | None:
        if not body or body[0] != Persister.CORE:
            return None
        try:
            return Message.from_record(body)
        except RecordFormatError as error:
            raise RecordFormatError(f"message {message_id}: {error}") from error

    def drop_unreferenced(self) -> None:
        """Delete messages that no queue has."""
        count = 0
        for message_id in (*self._image.messages, *self._image.large):
            if message_id not in self._unreadable:
                self._core.storage.delete_message(message_id)
                count += 1
        self._image.messages.clear()
        self._image.large.clear()
        if count:
            log.warning("AMQ222043: %d messages have no queue: deleted", count)

    def sweep_bodies(self) -> None:
        """Delete bodies of large messages that are gone, once it is known what pages have."""
        paging, large = self._core.paging, self._core.large
        if large is None or self._unreadable:
            if self._pages is not None:
                self._pages.count(lambda: None)
            return
        if self._pages is None or paging is None:
            _sweep(large, self._kept_bodies)
            return
        first_id = self._core.storage.new_id()
        kept = self._kept_bodies
        self._pages.count(lambda: _sweep(large, kept | large_ids(paging), first_id))

    # --- prepared transactions ----------------------------------------------------------------

    def load_prepared(self, prepared: Prepared) -> None:
        """Make a prepared transaction; one that cannot be read is rolled back."""
        core = self._core
        tx = None
        try:
            xid = decode_prepared(prepared.extra)
            tx = Transaction(core, xid, prepared.tx_id)
            tx.has_records = True
            tx.state = TransactionState.PREPARED
            self._fill(tx, prepared.records)
        except (RecordFormatError, struct.error) as error:
            log.error("AMQ224006: a prepared transaction cannot be read: rolled back: %s", error)
            if tx is None:
                core.storage.rollback(prepared.tx_id)
            else:
                # With what was made of it so far.
                tx.rollback(core.storage.new_context())
            return
        core.transactions.load(tx)

    def _fill(self, tx: Transaction, records: Sequence[Record]) -> None:
        sends: dict[tuple[int, int], Reference] = {}
        for item in records:
            kind, record_id, body = item.user_type, item.record_id, item.body
            if kind == RecordType.ADD_MESSAGE_PROTOCOL:
                found = self._decode(record_id, body)
                if found is None:
                    raise RecordFormatError(f"message {record_id} cannot be read here")
                self._made[record_id] = found
            elif kind == RecordType.ADD_LARGE_MESSAGE:
                found = self._large(record_id, body)
                if found is None:
                    raise RecordFormatError(f"large message {record_id} has no body")
                self._made[record_id] = found
            elif kind == RecordType.ADD_REF:
                queue_id = _LONG.unpack_from(body)[0]
                queue = self._addresses.queues_by_id.get(queue_id)
                message = self._made.get(record_id)
                if queue is not None and message is not None:
                    reference = Reference(message, queue)
                    self._count(reference)
                    sends[queue_id, record_id] = reference
                    tx.send(reference)
            elif kind == RecordType.ACKNOWLEDGE_REF:
                self._take_acknowledged(tx, _LONG.unpack_from(body)[0], record_id)
            elif kind == RecordType.SET_SCHEDULED_DELIVERY_TIME:
                queue_id, time_ms = _LONG_LONG.unpack_from(body)
                if (queue_id, record_id) in sends:
                    sends[queue_id, record_id].scheduled_ms = time_ms
            elif kind == RecordType.DUPLICATE_ID:
                found_id = decode_record(kind, body, is_update=False)
                assert isinstance(found_id, DuplicateId), "its type says so"
                cache = self._core.postoffice.duplicates.of(found_id.address)
                cache.add(found_id.duplicate_id, record_id)
                tx.add_duplicate_id(cache, found_id.duplicate_id, record_id)
            elif self._pages is None or not self._pages.load_prepared(
                tx, record_id, kind, item.is_update, body
            ):
                log.warning("a prepared transaction has a record of type %d: left out", kind)

    def _take_acknowledged(self, tx: Transaction, queue_id: int, message_id: int) -> None:
        reference = self._references.get((queue_id, message_id))
        if reference is None:
            log.warning(
                "a prepared transaction acknowledges message %d, which queue %d does not have",
                message_id,
                queue_id,
            )
            return
        queue: Queue = reference.queue
        queue.take(reference)
        tx.acknowledged.append(reference)


def _sweep(large: LargeBodies, kept: set[int], below: int = 2**63) -> None:
    orphans = large.sweep(kept, below)
    if orphans:
        log.info("deleted %d bodies of large messages that are gone", orphans)
