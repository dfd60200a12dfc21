"""A message recorded for its queues, and given to them once that is durable.

    put() ─▶ pages, where its address has no room ─▶ records ─▶ references

Where queues lead to other brokers, they get a copy: it names the queues there.

The references of a message sent alone get into their queues once its records are durable, those of
a transaction with its commit.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.model.address import split_fqqn
from broker.model.scheduled_time import SCHEDULED, time_ms
from broker.queues.reference import reference_to
from broker.routing.remote_bindings import STORE_AND_FORWARD, forget_routes
from journal.errors import JournalError

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.paging.paging import Paging
    from broker.queues.memory import AddressMemory
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.routing.addresses import Addresses
    from broker.routing.duplicates import DuplicateCache
    from broker.routing.message_copies import MessageCopies
    from broker.storage.context import OperationContext
    from broker.storage.manager import StorageManager
    from broker.transactions.transaction import Transaction
    from broker.transactions.xa import XaTransactions

__all__ = ["Enqueuer", "committed"]


class Enqueuer:
    """See the module's text.

    Args:
        addresses: whose memory counts what is routed.
        paging: addresses whose messages wait in pages; None where nothing is kept.
        storage: where records go.
        transactions: where those begin that record a message and its copy together.
        copies: makes those for other brokers.
    """

    __slots__ = ("_addresses", "_copies", "_paging", "_storage", "_transactions")

    def __init__(
        self,
        addresses: Addresses,
        paging: Paging | None,
        storage: StorageManager,
        transactions: XaTransactions,
        copies: MessageCopies,
    ) -> None:
        self._addresses = addresses
        self._paging = paging
        self._storage = storage
        self._transactions = transactions
        self._copies = copies

    def put(
        self,
        message: Message,
        queues: list[Queue],
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        """Record a message for these queues, and give it to them once that is durable."""
        scheduled = message.get(SCHEDULED)
        scheduled_ms = 0 if scheduled is None else time_ms(scheduled)
        memory = self._memory_of(message, queues[0])
        paging = self._paging
        if paging is not None:
            queues, paged = paging.split(message, queues, memory)
            if paged:
                # What may be refused comes first: there is room in the pages.
                if queues:
                    self.put_in_memory(message, queues, scheduled_ms, memory, context, tx)
                paging.append(paged, context, tx)
                return
        self.put_in_memory(message, queues, scheduled_ms, memory, context, tx)

    def put_in_memory(
        self,
        message: Message,
        queues: list[Queue],
        scheduled_ms: int,
        memory: AddressMemory,
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        """Do so without pages, where it is known that none are needed."""
        if message.durable:
            self._record(message, queues, scheduled_ms, context, tx)
        if tx is None:
            self._put_alone(message, queues, scheduled_ms, memory, context)
            return
        tx.take_room(memory, message.memory_size)
        for queue in queues:
            reference = reference_to(message, queue, scheduled_ms)
            memory.add(message)
            tx.send(reference)

    def put_with_id(
        self,
        message: Message,
        queues: list[Queue],
        memory: AddressMemory,
        context: OperationContext,
        ids: DuplicateCache,
        duplicate_id: bytes,
    ) -> None:
        """Do so for a message that is sent alone, and record its duplicate id with it.

        After a crash both are there, or neither.

        Raises:
            BrokerError: the disk is full; nothing happened.
            JournalError: it does not fit the storage, or that has failed.
        """
        storage = self._storage
        durable = _durable(queues) if message.durable else []
        tx_id = storage.new_id()
        try:
            record_id = ids.record(duplicate_id, tx_id, message.message_id)
            if durable:
                storage.store_message(message, tx_id)
                self._refer(message.message_id, durable, 0, tx_id)
        except (BrokerError, JournalError):
            storage.rollback(tx_id)
            raise
        if durable or record_id:
            message.durable_references = len(durable)
            storage.commit(tx_id)
            context.note()
        # At once: who sends the same id now comes behind this commit.
        ids.add(duplicate_id, record_id)
        self._put_alone(message, queues, 0, memory, context)

    def _put_alone(
        self,
        message: Message,
        queues: list[Queue],
        scheduled_ms: int,
        memory: AddressMemory,
        context: OperationContext,
    ) -> None:
        for queue in queues:
            reference = reference_to(message, queue, scheduled_ms)
            memory.add(message)
            queue.undecided_count += 1
            context.then(_add, (reference,))

    def put_and_forward(
        self,
        message: Message,
        queues: list[Queue],
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        """Put a message into queues here, and a copy of it into those that lead to other brokers.

        The copy names queues there, which consumers here do not see.
        """
        forwarding = [one for one in queues if one.name.startswith(STORE_AND_FORWARD)]
        if not forwarding or len(forwarding) == len(queues):
            self.put(message, queues, context, tx)
            return
        copy = self._copies.copy_of(message)
        forget_routes(message)
        own = [one for one in queues if one not in forwarding]
        used = self._transactions.begin() if tx is None else tx
        try:
            self.put(copy, forwarding, context, used)
            self.put(message, own, context, used)
        except (BrokerError, JournalError):
            if tx is None:
                used.rollback(context)
            raise
        if tx is None:
            used.commit(context, committed)

    def put_acknowledged(
        self,
        message: Message,
        queues: list[Queue],
        acknowledged: list[int],
        context: OperationContext,
        tx: Transaction,
    ) -> None:
        """Take a message of a node that scales down, which its transaction acknowledges there.

        It waits in no queue, and is recorded by itself: a rollback of the prepared transaction has
        to leave it to its queue.
        """
        others = [one for one in queues if one.queue_id not in acknowledged]
        if others:
            self.put(self._copies.copy_of(message), others, context, tx)
        taken = [one for one in queues if one.queue_id in acknowledged]
        if not taken:
            return
        for reference in self._put_taken(message, taken, context):
            tx.acknowledge(reference)
            tx.arrived.append(reference)

    def _put_taken(
        self, message: Message, queues: list[Queue], context: OperationContext
    ) -> list[Reference]:
        """Record a message for these queues, which have it as if it were delivered."""
        memory = self._memory_of(message, queues[0])
        if message.durable:
            self._record(message, queues, 0, context, None)
        found = []
        for queue in queues:
            reference = reference_to(message, queue, 0)
            memory.add(message)
            queue.load(reference)
            queue.take(reference)
            found.append(reference)
        return found

    def _record(
        self,
        message: Message,
        queues: list[Queue],
        scheduled_ms: int,
        context: OperationContext,
        tx: Transaction | None,
    ) -> None:
        durable = _durable(queues)
        if not durable:
            return
        storage, message_id = self._storage, message.message_id
        if tx is None and len(durable) > 1:
            self._record_together(message, durable, scheduled_ms)
        else:
            tx_id = None if tx is None else tx.tx_id
            storage.store_message(message, tx_id)
            try:
                self._refer(message_id, durable, scheduled_ms, tx_id)
            except BrokerError:
                # The disk is full: no queue has it, though the message was recorded.
                if tx_id is None:
                    storage.delete_message(message_id)
                raise
        message.durable_references = len(durable)
        if tx is not None:
            tx.has_records = True
        else:
            context.note()

    def _record_together(self, message: Message, durable: list[Queue], scheduled_ms: int) -> None:
        """In a transaction of its own: after a crash all of its queues have it, or none."""
        storage = self._storage
        tx_id = storage.new_id()
        try:
            storage.store_message(message, tx_id)
            self._refer(message.message_id, durable, scheduled_ms, tx_id)
        except (BrokerError, JournalError):
            storage.rollback(tx_id)
            raise
        storage.commit_alone(tx_id, True)

    def _refer(
        self, message_id: int, durable: list[Queue], scheduled_ms: int, tx_id: int | None
    ) -> None:
        storage = self._storage
        last = durable[-1]
        for queue in durable:
            is_last = queue is last and not scheduled_ms
            storage.store_reference(queue.queue_id, message_id, tx_id, is_last)
            if scheduled_ms:
                storage.update_scheduled_time(queue.queue_id, message_id, scheduled_ms, tx_id)

    def _memory_of(self, message: Message, queue: Queue) -> AddressMemory:
        address, _ = split_fqqn(message.address or "")
        known = self._addresses.by_name.get(address)
        if known is None:
            # Sent to a name that only patterns match: it counts where it is kept.
            known = self._addresses.by_name[queue.binding.address]
        return known.memory


def _durable(queues: list[Queue]) -> list[Queue]:
    durable = []
    for queue in queues:
        if queue.is_durable:
            durable.append(queue)  # noqa: PERF401 - a comprehension's variable has no type.
    return durable


def committed(error: Exception | None) -> None:
    """Who sent it is told by his own context, behind this one."""


def _add(error: Exception | None, reference: Reference) -> None:
    if error is None:
        queue = reference.queue
        queue.undecided_count -= 1
        queue.add(reference)
