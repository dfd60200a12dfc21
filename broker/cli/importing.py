"""Sends what a document says to a running broker, ours or Artemis's.

    addresses, queues ─▶ made where they are missing       messages ─▶ sent in transactions

A message goes to the address of its first queue. A property lists the ids of the queues that are to
have it, as in Artemis's XmlDataImporter: no filter is evaluated, and no other queue gets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.client.errors import BrokerRefused
from broker.model.routing_type import RoutingType
from broker.printing.xml.reader import (
    AddressElement,
    DocumentError,
    MessageElement,
    OldBindingElement,
    QueueElement,
)
from broker.routing.queue_ids import set_queue_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from broker.client import Session
    from broker.printing.xml.reader import Element

__all__ = ["Importer"]

# Bodies from here on go in parts, and never stand in memory whole.
STREAMED_FROM: Final = 100 * 1024
# Of 1.x: the topic's own binding, which was not a queue (Filter.GENERIC_IGNORED_FILTER).
IGNORED_FILTER: Final = "__AMQX=-1"
# Of 1.x: before names, and what they say.
OLD_PREFIXES: Final = {
    "jms.queue.": RoutingType.ANYCAST,
    "jms.topic.": RoutingType.MULTICAST,
}


class Importer:
    """One import. Threads: one.

    Args:
        session: transacted; messages are sent in it.
        management: not transacted; asks and makes.
        commit_interval: messages of a transaction; 0 makes one of all.
        keep_prefixes: keep `jms.queue.` and `jms.topic.` before names of 1.x.
        on_message: told how many messages were sent.

    Attributes:
        committed: messages that are on the broker for good.
    """

    def __init__(
        self,
        session: Session,
        management: Session,
        *,
        commit_interval: int,
        keep_prefixes: bool = False,
        on_message: Callable[[int], object] = lambda count: None,
    ) -> None:
        self._session = session
        self._management = management
        self._commit_interval = commit_interval
        self._keep_prefixes = keep_prefixes
        self._on_message = on_message
        self._producer = session.producer()
        self._addresses: dict[str, str] = {}
        self._queue_ids: dict[str, int] = {}
        self._new_names: dict[str, str] = {}
        self._sent = 0
        self.committed = 0

    def run(self, elements: Iterable[Element]) -> int:
        """Do it all; how many messages there were.

        Raises:
            ClientError: the broker refuses, or is lost.
            DocumentError: from `elements`; what was not committed by then is rolled back.
        """
        for element in elements:
            match element:
                case MessageElement():
                    with element.body:
                        self._send(element)
                case QueueElement():
                    self._make_queue(element)
                case AddressElement():
                    self._make_address(element.name, element.routing_types)
                case OldBindingElement():
                    self._make_old(element)
        self._commit()
        return self._sent

    def _commit(self) -> None:
        self._session.commit()
        self.committed = self._sent

    # Addresses and queues.

    def _make_address(self, name: str, routing_types: tuple[RoutingType, ...]) -> None:
        # One without a routing type comes with its first queue.
        if routing_types and not self._management.query_address(name).exists:
            self._management.create_address(name, *routing_types)

    def _make_queue(self, wanted: QueueElement) -> None:
        if not self._management.query_queue(wanted.name).exists:
            self._management.create_queue(
                wanted.name,
                wanted.address,
                routing_type=wanted.routing_type,
                selector=wanted.filter or None,
            )
        self._addresses[wanted.name] = wanted.address

    def _make_old(self, wanted: OldBindingElement) -> None:
        address, routing_type = self._without_prefix(wanted.address)
        name, _ = self._without_prefix(wanted.name)
        self._new_names[wanted.name] = name
        self._make_address(address, (routing_type,))
        if wanted.filter != IGNORED_FILTER:
            self._make_queue(QueueElement(name, address, wanted.filter, routing_type))
        self._addresses[name] = address

    def _without_prefix(self, name: str) -> tuple[str, RoutingType]:
        for prefix, routing_type in OLD_PREFIXES.items():
            if name.startswith(prefix):
                return name if self._keep_prefixes else name.removeprefix(prefix), routing_type
        return name, RoutingType.MULTICAST

    # Messages.

    def _send(self, element: MessageElement) -> None:
        queues = [self._new_names.get(name, name) for name in element.queues]
        if not queues:
            raise DocumentError(f"message {element.message_id} is for no queue")
        message = element.message
        address = self._address_of(queues[0], message.routing_type)
        ids = [self._queue_id(name, message.routing_type) for name in queues]
        set_queue_ids(message, ids)
        if element.body_size > STREAMED_FROM:
            self._producer.send_stream(element.body, message, address=address)
        else:
            message.body = element.body.read()
            self._producer.send(message, address=address)
        self._sent += 1
        self._on_message(self._sent)
        if self._commit_interval and self._sent % self._commit_interval == 0:
            self._commit()

    def _address_of(self, queue: str, routing_type: RoutingType | None) -> str:
        """Give the address of a queue; one that no binding of the document named is made."""
        address = self._addresses.get(queue)
        if address is None:
            found = self._management.query_queue(queue)
            if found.exists and found.address is not None:
                address = found.address
            else:
                kind = RoutingType.MULTICAST if routing_type is None else routing_type
                self._management.create_queue(queue, queue, routing_type=kind)
                address = queue
            self._addresses[queue] = address
        return address

    def _queue_id(self, queue: str, routing_type: RoutingType | None) -> int:
        queue_id = self._queue_ids.get(queue)
        if queue_id is None:
            # Also makes one that only a later queue of a message names.
            self._address_of(queue, routing_type)
            try:
                queue_id = int(self._management.attribute(f"queue.{queue}", "ID"))
            except BrokerRefused as error:
                raise BrokerRefused(error.code, f"queue {queue} has no id: {error}") from error
            self._queue_ids[queue] = queue_id
        return queue_id
