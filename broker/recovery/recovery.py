"""Makes addresses, queues, messages and transactions of what the journals say.

    images ─▶ addresses ─▶ queues ─▶ diverts ─▶ pages ─▶ references ─▶ prepared transactions ─▶
    duplicate ids

In the order of Artemis (ActiveMQServerImpl.loadJournals, PostOfficeJournalLoader). Nothing is
delivered meanwhile. What belongs to nothing any more is deleted from the journal: references to
queues that are gone, messages without references.
"""

from __future__ import annotations

import logging
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.wire import RecordType
from broker.paging.loading import PageLoader, large_ids
from broker.queues.reference import Reference, ReferenceQueue
from broker.records.binding_records import Divert
from broker.records.message_records import DuplicateId
from broker.records.records import decode_prepared, decode_record
from broker.recovery.loaded_messages import decode_message
from broker.routing.divert import DivertBinding
from broker.routing.duplicates import KEPT_PREFIX
from broker.transactions.transaction import TransactionState

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from broker.paging.paging import Paging
    from broker.queues.filter import Filter
    from broker.queues.memory import AddressMemory
    from broker.recovery.images import BindingsImage, Prepared, Record
    from broker.recovery.loaded_messages import LoadedMessages, LoadedQueue
    from broker.routing.addresses import Addresses
    from broker.routing.duplicates import DuplicateCaches
    from broker.routing.postoffice import PostOffice
    from broker.storage.large_bodies import LargeBodies
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["recover"]

log = logging.getLogger("broker")

# Ids that a warning names.
_SHOWN_MAX: Final = 20
_KNOWN_TYPES: Final = frozenset(RecordType)
_LONG: Final = struct.Struct(">q")
_LONG_LONG: Final = struct.Struct(">qq")


def recover(
    bindings: BindingsImage,
    messages: LoadedMessages,
    all_prepared: Sequence[Prepared],
    *,
    postoffice: PostOffice,
    transactions: XaTransactions,
    storage: StorageManager,
    large: LargeBodies | None,
    parse_filter: Callable[[str], Filter | None],
) -> None:
    """Make everything; see the module's text.

    Args:
        bindings: of the bindings journal.
        messages: of the message journal; emptied.
        all_prepared: transactions of the message journal that wait for a decision.
        postoffice: empty; its paging, if it has one, is empty too.
        transactions: get those that are prepared.
        storage: where records go.
        large: bodies of large messages; None without storage for them.
        parse_filter: a selector's text to a Filter.

    Raises:
        BrokerError: a queue's or divert's filter cannot be read.
    """
    if large is not None:
        large.sweep_temporary()
    addresses, paging = postoffice.addresses, postoffice.paging
    _load_addresses(addresses, storage, bindings)
    _load_queues(addresses, storage, bindings)
    _load_diverts(addresses, parse_filter, bindings)
    _tell_unknown(messages)
    pages = None if paging is None else _load_pages(paging, messages)
    loader = _MessageLoader(
        messages,
        pages,
        postoffice=postoffice,
        transactions=transactions,
        storage=storage,
        large=large,
    )
    for prepared in all_prepared:
        for record in prepared.records:
            # What a transaction has taken, or sends elsewhere too, is found by its id.
            messages.make(record.record_id)
    loader.load_references()
    for prepared in all_prepared:
        loader.load_prepared(prepared)
    lost = loader.unreferenced_of_gone_queues()
    _load_duplicate_ids(postoffice.duplicates, addresses.by_name, storage, messages, lost)
    for record_id, decision in messages.heuristic:
        transactions.load_heuristic(record_id, decision.xid, is_commit=decision.is_commit)
    loader.drop_unreferenced()
    if pages is not None:
        pages.finish()
    loader.sweep_bodies()
    log.info(
        "loaded %d addresses, %d queues, %d messages, %d prepared transactions",
        len(addresses.by_name),
        len(addresses.queues),
        addresses.memory.count,
        len(all_prepared),
    )


def _load_addresses(addresses: Addresses, storage: StorageManager, bindings: BindingsImage) -> None:
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
        storage.delete_setting(status.record_id)


def _load_queues(addresses: Addresses, storage: StorageManager, bindings: BindingsImage) -> None:
    for queue_id, binding in bindings.queues.items():
        if binding.address not in addresses.by_name:
            log.warning(
                "queue %s: its address %s has no record; created", binding.name, binding.address
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
        storage.delete_setting(status.record_id)


def _load_diverts(
    addresses: Addresses,
    parse_filter: Callable[[str], Filter | None],
    bindings: BindingsImage,
) -> None:
    for record_id, record in bindings.settings:
        if isinstance(record, Divert) and record.address is not None:
            if record.address not in addresses.by_name:
                log.warning(
                    "divert %s: its address %s is gone; left out", record.name, record.address
                )
                continue
            addresses.bind(_divert(record, record_id, parse_filter))


def _divert(
    record: Divert, record_id: int, parse_filter: Callable[[str], Filter | None]
) -> DivertBinding:
    """Make a recorded divert; one of a JVM's transformer hands messages on as they are."""
    try:
        return DivertBinding(record, record_id, parse_filter=parse_filter)
    except BrokerError as error:
        if record.transformer is None:
            raise
        log.error("%s; its messages go on unchanged", error)
        without = replace(record, transformer=None)
        divert = DivertBinding(without, record_id, parse_filter=parse_filter)
        divert.record = record
        return divert


def _tell_unknown(messages: LoadedMessages) -> None:
    """Log records that a newer version may have written; they stay as they are."""
    found: dict[int, list[int]] = {}
    for record_id, kind, _, _ in messages.others:
        if kind not in _KNOWN_TYPES:
            found.setdefault(kind, []).append(record_id)
    for kind, record_ids in found.items():
        log.warning(
            "message record %d has the unknown type %d%s: it stays in the journal",
            record_ids[0],
            kind,
            f", and so have {len(record_ids) - 1:,} others" if len(record_ids) > 1 else "",
        )


def _load_pages(paging: Paging, messages: LoadedMessages) -> PageLoader:
    pages = PageLoader(paging)
    pages.load_folders()
    pages.load_records(messages.others)
    messages.others.clear()
    return pages


def _load_duplicate_ids(
    duplicates: DuplicateCaches,
    addresses: Collection[str],
    storage: StorageManager,
    messages: LoadedMessages,
    lost: Collection[int],
) -> None:
    """Give the caches what they had.

    Lost messages may be sent again. A queue has its record in another journal: a crash may have
    left messages of a new queue, and not the queue. Neither was confirmed, so senders that repeat
    them are not to be refused. The records of the ids go before those of the messages: a crash in
    between leaves what finds them again.

    Args:
        duplicates: the caches, empty.
        addresses: names of those that are there.
        storage: where records go.
        messages: of the journal.
        lost: ids of messages whose queues are gone.
    """
    for address, stored in messages.duplicate_ids.items():
        is_kept = duplicates.is_persistent or address.startswith(KEPT_PREFIX)
        kept = []
        for duplicate_id, record_id, message_id in stored:
            if is_kept and message_id not in lost:
                kept.append((duplicate_id, record_id))
            else:
                storage.delete_duplicate_id(record_id)
        if kept:
            duplicates.of(address).load(kept)
    duplicates.leave_missing(addresses)


class _MessageLoader:
    """Gives queues their references, and knows what stays as it is in the journal."""

    def __init__(
        self,
        image: LoadedMessages,
        pages: PageLoader | None,
        *,
        postoffice: PostOffice,
        transactions: XaTransactions,
        storage: StorageManager,
        large: LargeBodies | None,
    ) -> None:
        self._pages = pages
        self._image = image
        self._transactions = transactions
        self._storage = storage
        self._large = large
        self._paging = postoffice.paging
        self._duplicates = postoffice.duplicates
        self._addresses = postoffice.addresses
        # Messages that a queue had which is gone.
        self._dropped: set[int] = set()
        # Of large messages, whose files stay.
        self._kept_bodies: set[int] = set()
        # Of prepared transactions.
        self._made: dict[int, Message] = {}

    def load_references(self) -> None:
        """Put the messages into their queues."""
        image = self._image
        for loaded in image.all_queues():
            queue = self._addresses.queues_by_id.get(loaded.queue_id)
            if queue is None:
                self._drop_references(loaded)
                continue
            image.fill(queue, loaded, self._memory_of, self._find_body)

    def _drop_references(self, loaded: LoadedQueue) -> None:
        gone = list(self._image.in_order(loaded))
        for reference in gone:
            message_id = reference.message.message_id
            self._dropped.add(message_id)
            self._image.drop(reference, message_id)
        if gone:
            log.warning(
                "queue %d is gone: %d references to it are left out", loaded.queue_id, len(gone)
            )

    def _count(self, reference: Reference) -> None:
        message = reference.message
        message.durable_references += 1
        self._memory_of(message.address, reference.queue).add(message)

    def _memory_of(self, name: str | None, queue: ReferenceQueue) -> AddressMemory:
        address = self._addresses.by_name.get((name or "").split("::")[0])
        if address is None:
            address = self._addresses.by_name[queue.binding.address]
        return address.memory

    def _find_body(self, message: Message) -> bool:
        message_id = message.message_id
        large = self._large
        body = None if large is None else large.find(message_id)
        if body is None:
            if message_id not in self._image.unreadable:
                self._image.unreadable.add(message_id)
                log.error("AMQ222051: large message %d has no body", message_id)
            return False
        message.large = body
        self._kept_bodies.add(message_id)
        return True

    def _find_prepared_body(self, message: Message) -> None:
        """Give a message of a prepared transaction its body, where it is a large one.

        Raises:
            RecordFormatError: there is none.
        """
        if message.is_large and not self._find_body(message):
            raise RecordFormatError(f"large message {message.message_id} has no body")

    def unreferenced_of_gone_queues(self) -> set[int]:
        """Give the ids of messages that only queues had which are gone."""
        return self._dropped.intersection(self._image.unreferenced()) if self._dropped else set()

    def drop_unreferenced(self) -> None:
        """Delete messages that no queue has."""
        unreferenced = list(self._image.unreferenced())
        for message_id in unreferenced:
            self._storage.delete_message(message_id)
        self._image.known.clear()
        if unreferenced:
            shown = ", ".join(map(str, unreferenced[:_SHOWN_MAX]))
            more = ", ..." if len(unreferenced) > _SHOWN_MAX else ""
            log.warning(
                "AMQ222043: %d messages have no queue: deleted: %s%s",
                len(unreferenced),
                shown,
                more,
            )

    def sweep_bodies(self) -> None:
        """Delete bodies of large messages that are gone, once it is known what pages have."""
        paging, large = self._paging, self._large
        if large is None or self._image.unreadable:
            if self._pages is not None:
                self._pages.count(lambda: None)
            return
        if self._pages is None or paging is None:
            _sweep(large, self._kept_bodies)
            return
        first_id = self._storage.new_id()
        kept = self._kept_bodies
        self._pages.count(lambda: _sweep(large, kept | large_ids(paging), first_id))

    # --- prepared transactions ----------------------------------------------------------------

    def load_prepared(self, prepared: Prepared) -> None:
        """Make a prepared transaction; one that cannot be read is rolled back."""
        tx = None
        try:
            xid = decode_prepared(prepared.extra)
            tx = self._transactions.begin(xid, prepared.tx_id)
            tx.has_records = True
            tx.state = TransactionState.PREPARED
            self._fill(tx, prepared.records)
        except (RecordFormatError, struct.error) as error:
            log.error("AMQ224006: a prepared transaction cannot be read: rolled back: %s", error)
            if tx is None:
                self._storage.rollback(prepared.tx_id)
            else:
                # With what was made of it so far.
                tx.rollback(self._storage.new_context())
            return
        self._transactions.load(tx)

    def _fill(self, tx: Transaction, records: Sequence[Record]) -> None:
        sends: dict[tuple[int, int], Reference] = {}
        for item in records:
            kind, record_id, body = item.user_type, item.record_id, item.body
            if kind == RecordType.ADD_MESSAGE_PROTOCOL:
                found = decode_message(record_id, body)
                if found is None:
                    # The manager's decision is about the whole: its record counts or goes with it.
                    self._image.unreadable.add(record_id)
                else:
                    self._find_prepared_body(found)
                    self._made[record_id] = found
            elif kind == RecordType.ADD_LARGE_MESSAGE:
                found = Message.decode_headers(body)
                found.message_id = record_id
                self._find_prepared_body(found)
                self._made[record_id] = found
            elif kind == RecordType.ADD_REF:
                queue_id = _LONG.unpack_from(body)[0]
                queue = self._addresses.queues_by_id.get(queue_id)
                message = self._made.get(record_id) or self._image.referenced(record_id)
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
                cache = self._duplicates.of(found_id.address)
                cache.add(found_id.duplicate_id, record_id)
                tx.load_duplicate_id(cache, found_id.duplicate_id, record_id)
            elif self._pages is None or not self._pages.load_prepared(
                tx, record_id, kind, item.is_update, body
            ):
                log.warning("a prepared transaction has a record of type %d: left out", kind)

    def _take_acknowledged(self, tx: Transaction, queue_id: int, message_id: int) -> None:
        queue = self._addresses.queues_by_id.get(queue_id)
        reference = None if queue is None else self._image.loaded_reference(message_id, queue)
        if queue is None or reference is None:
            log.warning(
                "a prepared transaction acknowledges message %d, which queue %d does not have",
                message_id,
                queue_id,
            )
            return
        queue.take(reference)
        tx.acknowledged.append(reference)


def _sweep(large: LargeBodies, kept: set[int], below: int = 2**63) -> None:
    orphans = large.sweep(kept, below)
    if orphans:
        log.info("deleted %d bodies of large messages that are gone", orphans)
