"""The lists of a broker: queues, addresses, consumers, connections, sessions."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.management.address_control import limit_percent
from broker.management.json_texts import json_text
from broker.management.transactions import uncommitted_count
from broker.management.views import View, java_date

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.management.access import ManagedBroker
    from broker.notifications import Origin
    from broker.paging.store import PagingStore
    from broker.queues.consumer import Consumer
    from broker.queues.queue import Queue
    from broker.routing.address import Address
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session
    from broker.settings.settings import AddressSettings

__all__ = [
    "ADDRESSES",
    "CONNECTIONS",
    "CONSUMERS",
    "PRODUCERS",
    "QUEUES",
    "SESSIONS",
    "Rows",
    "producer_row",
]


class ConsumerRow(NamedTuple):
    """A consumer and whose it is."""

    consumer: Consumer
    session: Session


class ProducerRow(NamedTuple):
    """A producer and whose it is."""

    producer: Producer
    session: Session


class ConnectionRow(NamedTuple):
    """A connection and what is on it."""

    origin: Origin
    sessions: list[Session]


class AddressRow(NamedTuple):
    """An address, and the broker for its limits."""

    address: Address
    broker: ManagedBroker

    @property
    def settings(self) -> AddressSettings:
        """What holds for it."""
        return self.broker.settings.match(self.address.name)

    @property
    def pages(self) -> PagingStore | None:
        """Its pages; None where it never had any."""
        paging = self.broker.parts.paging
        return None if paging is None else paging.stores.get(self.address.name)


class Rows:
    """What there is to list.

    Args:
        broker: whose.
    """

    def __init__(self, broker: ManagedBroker) -> None:
        self._broker = broker

    def queues(self) -> list[Queue]:
        """All."""
        return list(self._broker.parts.postoffice.addresses.queues.values())

    def addresses(self) -> list[AddressRow]:
        """All."""
        known = self._broker.parts.postoffice.addresses.by_name.values()
        return [AddressRow(one, self._broker) for one in known]

    def consumers(self) -> Iterator[ConsumerRow]:
        """All, of all sessions."""
        for session in self._broker.clients.sessions.values():
            for consumer in session.consumers.values():
                yield ConsumerRow(consumer, session)

    def producers(self) -> Iterator[ProducerRow]:
        """All, of all sessions."""
        for session in self._broker.clients.sessions.values():
            for producer in list(session.producers.values()):
                yield ProducerRow(producer, session)

    def connections(self) -> Iterator[ConnectionRow]:
        """All that are open."""
        by_id: dict[str, list[Session]] = {}
        for session in self._broker.clients.sessions.values():
            by_id.setdefault(session.origin.connection_id, []).append(session)
        for connection in self._broker.clients.connections.values():
            origin = connection.origin
            yield ConnectionRow(origin, by_id.get(origin.connection_id, []))

    def sessions(self) -> list[Session]:
        """All."""
        return list(self._broker.clients.sessions.values())


QUEUES: Final = View["Queue"](
    sort_field="name",
    fields={
        "id": lambda queue: queue.queue_id,
        "name": lambda queue: queue.name,
        "address": lambda queue: queue.binding.address,
        "filter": lambda queue: queue.binding.filter,
        "durable": lambda queue: queue.is_durable,
        "paused": lambda queue: queue.is_paused,
        "persistedPause": lambda queue: queue.status_record_id != 0,
        "temporary": lambda queue: queue.is_temporary,
        "purgeOnNoConsumers": lambda queue: queue.binding.purge_on_no_consumers,
        "consumerCount": lambda queue: queue.consumer_count,
        "maxConsumers": lambda queue: queue.binding.max_consumers,
        "autoCreated": lambda queue: queue.binding.auto_created,
        "user": lambda queue: queue.binding.user,
        "routingType": lambda queue: queue.binding.routing_type.name,
        "messagesAdded": lambda queue: queue.added_count,
        "messageCount": lambda queue: queue.message_count,
        "messagesAcked": lambda queue: queue.acknowledged_count,
        "messagesExpired": lambda queue: queue.expired_count,
        "deliveringCount": lambda queue: queue.delivering_count,
        "messagesKilled": lambda queue: queue.killed_count,
        "directDeliver": lambda queue: False,
        "exclusive": lambda queue: queue.binding.exclusive,
        "lastValue": lambda queue: queue.binding.last_value,
        "lastValueKey": lambda queue: queue.binding.last_value_key,
        "scheduledCount": lambda queue: queue.scheduled_count,
        "groupRebalance": lambda queue: queue.binding.group_rebalance,
        "groupRebalancePauseDispatch": lambda queue: queue.binding.group_rebalance_pause_dispatch,
        "groupBuckets": lambda queue: queue.binding.group_buckets,
        "groupFirstKey": lambda queue: queue.binding.group_first_key,
        "enabled": lambda queue: queue.binding.enabled,
        "ringSize": lambda queue: queue.binding.ring_size,
        "consumersBeforeDispatch": lambda queue: queue.binding.consumers_before_dispatch,
        "delayBeforeDispatch": lambda queue: queue.binding.delay_before_dispatch,
        "autoDelete": lambda queue: queue.binding.auto_delete,
        "internalQueue": lambda queue: queue.binding.internal,
    },
    hidden={
        "consumerID": lambda queue: [one.consumer_id for one in queue.consumers.all()],
    },
)

ADDRESSES: Final = View["AddressRow"](
    sort_field="name",
    fields={
        "id": lambda row: row.address.address_id,
        "name": lambda row: row.address.name,
        "routingTypes": lambda row: json_text(
            [one.name for one in sorted(row.address.routing_types)]
        ),
        "queueCount": lambda row: len(row.address.queues),
        "internal": lambda row: row.address.is_internal,
        "temporary": lambda row: row.address.is_temporary,
        "autoCreated": lambda row: row.address.is_auto_created,
        "paused": lambda row: row.address.is_paused,
        "currentDuplicateIdCacheSize": lambda row: len(
            row.broker.parts.postoffice.duplicates.find(row.address.name) or ()
        ),
        "retroactiveResource": lambda row: False,
        "unroutedMessageCount": lambda row: row.address.unrouted_count,
        "routedMessageCount": lambda row: row.address.routed_count,
        "messageCount": lambda row: sum(
            queue.message_count for queue in row.address.queues.values()
        ),
        "addressLimitPercent": lambda row: limit_percent(row.broker, row.address),
        "numberOfPages": lambda row: 0 if row.pages is None else len(row.pages.pages),
        "addressSize": lambda row: row.address.memory.size,
        "maxPageReadBytes": lambda row: row.settings.max_read_page_bytes,
        "maxPageReadMessages": lambda row: row.settings.max_read_page_messages,
        "prefetchPageBytes": lambda row: row.settings.prefetch_page_bytes,
        "prefetchPageMessages": lambda row: row.settings.prefetch_page_messages,
        "numberOfBytesPerPage": lambda row: row.settings.page_size_bytes,
        "paging": lambda row: row.pages is not None and row.pages.is_paging,
    },
)

CONSUMERS: Final = View["ConsumerRow"](
    sort_field="id",
    numbers=frozenset({"lastDeliveredTime", "lastAcknowledgedTime"}),
    aliases={"consumerid": "id", "sessionid": "session", "queuename": "queue"},
    fields={
        "id": lambda row: row.consumer.number,
        "session": lambda row: row.session.name,
        "clientID": lambda row: row.session.origin.client_id,
        "user": lambda row: row.session.user,
        "validatedUser": lambda row: row.session.user,
        "protocol": lambda row: row.session.origin.protocol,
        "queue": lambda row: row.consumer.queue.name,
        "queueType": lambda row: row.consumer.queue.binding.routing_type.name.lower(),
        "filter": lambda row: row.consumer.filter.text if row.consumer.filter else None,
        "address": lambda row: row.consumer.queue.binding.address,
        "localAddress": lambda row: row.session.origin.local,
        "remoteAddress": lambda row: row.session.origin.remote,
        "creationTime": lambda row: java_date(row.consumer.created_ms),
        "messagesInTransit": lambda row: len(row.consumer.delivering),
        "messagesInTransitSize": lambda row: sum(
            one.message.encoded_size for one in row.consumer.delivering
        ),
        "messagesDelivered": lambda row: row.consumer.delivered_count,
        "messagesDeliveredSize": lambda row: row.consumer.delivered_bytes,
        "messagesAcknowledged": lambda row: row.consumer.acknowledged_count,
        "messagesAcknowledgedAwaitingCommit": lambda row: uncommitted_count(
            row.consumer, row.session
        ),
        "lastDeliveredTime": lambda row: int(row.consumer.last_delivered_s * 1000),
        "lastAcknowledgedTime": lambda row: int(row.consumer.last_acknowledged_s * 1000),
        "status": lambda row: "OK",
    },
)

PRODUCERS: Final = View["ProducerRow"](
    sort_field="id",
    numbers=frozenset({"msgSent", "msgSizeSent"}),
    aliases={"sessionid": "session", "destination": "address"},
    fields={
        "id": lambda row: row.producer.number,
        "name": lambda row: row.producer.name,
        "session": lambda row: row.session.name,
        "clientID": lambda row: row.session.origin.client_id,
        "user": lambda row: row.session.user,
        "validatedUser": lambda row: row.session.user,
        "protocol": lambda row: row.session.origin.protocol,
        "address": lambda row: row.producer.address or "ANONYMOUS",
        "localAddress": lambda row: row.session.origin.local,
        "remoteAddress": lambda row: row.session.origin.remote,
        "creationTime": lambda row: row.producer.created_ms,
        "msgSent": lambda row: row.producer.sent_count,
        "msgSizeSent": lambda row: row.producer.sent_bytes,
        "lastProducedMessageID": lambda row: _message_id(row.producer),
    },
)


def _message_id(producer: Producer) -> str | None:
    found = producer.last_user_id
    return None if found is None else str(uuid.UUID(bytes=found))


def producer_row(row: ProducerRow) -> dict[str, object]:
    """Give what the list as JSON, which has no pages, says of a producer."""
    producer, session = row
    return {
        "id": str(producer.number),
        "name": producer.name,
        "connectionID": session.origin.connection_id,
        "sessionID": session.name,
        "creationTime": str(producer.created_ms),
        "destination": producer.address or "ANONYMOUS",
        "lastProducedMessageID": _message_id(producer),
        "msgSent": producer.sent_count,
        "msgSizeSent": producer.sent_bytes,
    }


CONNECTIONS: Final = View["ConnectionRow"](
    sort_field="connectionID",
    numbers=frozenset({"sessionCount"}),
    fields={
        "connectionID": lambda row: row.origin.connection_id,
        "remoteAddress": lambda row: row.origin.remote,
        "users": lambda row: ",".join(sorted({one.user or "" for one in row.sessions})),
        "creationTime": lambda row: java_date(row.origin.created_ms),
        "implementation": lambda row: "RemotingConnectionImpl",
        "protocol": lambda row: row.origin.protocol,
        "clientID": lambda row: row.origin.client_id,
        "localAddress": lambda row: row.origin.local,
        "sessionCount": lambda row: len(row.sessions),
        # No proxy speaks for a client here: the proxy protocol is not spoken.
        "proxyAddress": lambda row: None,
        "proxyProtocolVersion": lambda row: None,
    },
)

SESSIONS: Final = View["Session"](
    sort_field="id",
    numbers=frozenset({"consumerCount", "producerCount"}),
    fields={
        "id": lambda session: session.name,
        "user": lambda session: session.user,
        "validatedUser": lambda session: session.user,
        "creationTime": lambda session: java_date(session.created_ms),
        "consumerCount": lambda session: len(session.consumers),
        "producerCount": lambda session: len(session.producers),
        "connectionID": lambda session: session.origin.connection_id,
        "clientID": lambda session: session.origin.client_id,
    },
    hidden={
        "protocol": lambda session: session.origin.protocol,
        "localAddress": lambda session: session.origin.local,
        "remoteAddress": lambda session: session.origin.remote,
    },
)
