"""Queues that a protocol keeps for itself: retained messages, what it has to know after a restart.

No permission is asked for, and no name has a prefix: it is the protocol that works here, not its
client. What clients may name is theirs to be checked, by the rest of the session.

Messages are put here without being routed, and never into pages: there are few in each queue, and
they have to be found at once. What is done counts with the session's transaction, if it has one.

Threads: the event loop's alone; nothing here waits.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.model.message import Message
    from broker.routing.administration import Administration
    from broker.routing.postoffice import PostOffice
    from broker.settings.queue_defaults import QueueRequest
    from broker.storage.context import OperationContext
    from broker.transactions.transaction import Transaction

__all__ = ["OwnQueues"]


class OwningSession(Protocol):
    """What this needs of a session."""

    context: OperationContext
    """What it waits by."""

    @property
    def tx(self) -> Transaction | None:
        """What it works for; None is nothing."""


class OwnQueues:
    """See the module's text.

    Args:
        session: of the protocol.
        postoffice: where messages go.
        administration: makes queues and addresses.
    """

    __slots__ = ("_addresses", "_administration", "_postoffice", "_session")

    def __init__(
        self, session: OwningSession, postoffice: PostOffice, administration: Administration
    ) -> None:
        self._session = session
        self._postoffice = postoffice
        self._addresses = postoffice.addresses
        self._administration = administration

    def __contains__(self, name: str) -> bool:
        return name in self._addresses.queues

    def names(self, prefix: str) -> list[str]:
        """Give the names of all queues that begin so."""
        return [name for name in self._addresses.queues if name.startswith(prefix)]

    def consumer_count(self, name: str) -> int:
        """How many consumers a queue has; 0 where there is none of that name."""
        queue = self._addresses.queues.get(name)
        return 0 if queue is None else queue.consumer_count

    def make(self, request: QueueRequest) -> None:
        """Make a queue, and its address, if it is not there.

        Raises:
            BrokerError: it cannot be made.
        """
        if request.name in self._addresses.queues:
            return
        if request.address not in self._addresses.by_name and request.routing_type is not None:
            self._addresses.create(
                request.address,
                [request.routing_type],
                is_auto_created=True,
                is_internal=request.is_internal,
            )
        self._administration.create_queue(request)
        self._session.context.note()

    def delete(self, name: str) -> None:
        """Remove a queue, if it is there; its consumers are closed."""
        if name in self._addresses.queues:
            self._addresses.delete_queue(name, delete_address=True)
            self._session.context.note()

    def messages(self, name: str) -> Iterator[Message]:
        """Give the messages that wait in a queue, in order; none where it is not there.

        What was put there and is not durable yet is not among them.
        """
        queue = self._addresses.queues.get(name)
        if queue is not None:
            for reference in queue.references():
                yield reference.message

    def copy_of(self, message: Message) -> Message:
        """Give a copy with an id of its own; a large one has the bytes of its body."""
        return self._postoffice.copy_of(message)

    def put(self, message: Message, name: str) -> None:
        """Put a message that has its id into a queue.

        Raises:
            BrokerError: there is no such queue, or the disk is full.
            JournalError: the storage has failed.
        """
        session = self._session
        queue = self._addresses.queue(name)
        memory = self._addresses.by_name[queue.binding.address].memory
        enqueuer = self._postoffice.enqueuer
        enqueuer.put_in_memory(message, [queue], 0, memory, session.context, session.tx)
        session.context.note()

    def remove(
        self, name: str, is_meant: Callable[[Message], bool], most: int | None = None
    ) -> int:
        """Take out of a queue what waits there and is meant; how many.

        Args:
            name: of the queue; nothing is meant where it is not there.
            is_meant: says so of each message.
            most: the first ones; None takes all.

        Raises:
            BrokerError: the disk is full.
            JournalError: the storage has failed.
        """
        queue = self._addresses.queues.get(name)
        if queue is None:
            return 0
        tx = self._session.tx
        meant = (one for one in queue.references() if is_meant(one.message))
        found = list(itertools.islice(meant, most))
        for reference in found:
            if tx is None:
                queue.remove(reference)
            else:
                queue.take(reference)
                tx.acknowledge(reference)
        self._session.context.note()
        return len(found)

    def remove_last(self, name: str, key: str, up_to_id: int) -> None:
        """Take the last value of a key out of a queue, unless it has a greater message id.

        Raises:
            BrokerError: the disk is full.
            JournalError: the storage has failed.
        """
        queue = self._addresses.queues.get(name)
        if queue is None or queue.last_values is None:
            return
        found = queue.last_values.last(key)
        if found is not None and found.message.message_id <= up_to_id:
            queue.remove(found)
            self._session.context.note()
