"""Advisories: what happens in the broker, told to clients that consume ActiveMQ.Advisory topics.

They are kept in no queue: a consumer that has not acknowledged what its window holds misses the
next ones. Other protocols and other brokers do not get them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from broker.model.address import Matcher
from broker.model.properties import Property, PropertyType
from broker.protocols.openwire import commands as c
from broker.protocols.openwire.destinations import ADVISORY_PREFIX, is_advisory, is_queue, parts_of
from broker.protocols.openwire.identifiers import MessageId, ProducerId
from broker.protocols.openwire.primitives import write_map
from broker.protocols.openwire.property_names import CLIENT_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.environment import Clock
    from broker.protocols.openwire.fields import DataType

__all__ = ["Advisories", "AdvisoryConsumer", "AdvisorySource", "wants_advisories"]

_TYPE: Final = "Advisory"
_TEMPORARY: Final = f"{ADVISORY_PREFIX}Temp"
_CONSUMER_ID: Final = "consumerId"


class AdvisedConnection(Protocol):
    """What advisories need of a connection."""

    def send(self, command: c.MessageDispatch) -> None:
        """Write a command."""


class AdvisorySource(NamedTuple):
    """On whose connection something happened.

    Attributes:
        connection_id: as the client named it.
        broker_id: node id of the broker.
        broker_name: as its acceptor is told to say.
        broker_url: where the client has connected.
    """

    connection_id: str
    broker_id: str
    broker_name: str
    broker_url: str


def wants_advisories(info: c.ConsumerInfo) -> bool:
    """Whether a consumer is one of advisories."""
    destination = info.destination
    return destination is not None and any(map(is_advisory, parts_of(destination)))


class AdvisoryConsumer:
    """One consumer of them.

    Attributes:
        info: of the client.
        connection: that it is of.
        credits: messages that it may have.
    """

    __slots__ = ("connection", "credits", "info", "patterns")

    def __init__(self, info: c.ConsumerInfo, connection: AdvisedConnection) -> None:
        assert info.destination is not None, "it has one"
        self.info = info
        self.connection = connection
        self.credits = info.prefetch_size
        self.patterns = [
            (one.physical_name or "").replace(">", "#") for one in parts_of(info.destination)
        ]

    def acknowledged(self, ack: c.MessageAck) -> None:
        """The client has looked at some."""
        self.credits = min(self.info.prefetch_size, self.credits + max(0, ack.message_count))


class Advisories:
    """All that one broker tells.

    Args:
        clock: gives messages their time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._sequence = 0
        self._matches = Matcher().matches
        self._consumers: list[AdvisoryConsumer] = []
        self._temporary: dict[c.ActiveMQDestination, tuple[c.DestinationInfo, AdvisorySource]] = {}

    def add(self, consumer: AdvisoryConsumer) -> None:
        """Tell a consumer from now on, and at once of temporary destinations that there are."""
        self._consumers.append(consumer)
        for info, source in list(self._temporary.values()):
            self._tell(_topic_of(info.destination), info, source, [consumer])

    def remove(self, consumers: Iterable[AdvisoryConsumer]) -> None:
        """Tell them no more."""
        for one in consumers:
            self._consumers.remove(one)

    def connection(self, info: c.ConnectionInfo, source: AdvisorySource) -> None:
        """Tell of a new connection."""
        shown = c.ConnectionInfo(
            connection_id=info.connection_id,
            client_id=info.client_id,
            password="",
            user_name=info.user_name,
            manageable=info.manageable,
            client_master=info.client_master,
            fault_tolerant=info.fault_tolerant,
            client_ip=info.client_ip,
        )
        self._tell(f"{ADVISORY_PREFIX}Connection", shown, source, self._consumers)

    def destination(self, info: c.DestinationInfo, source: AdvisorySource) -> None:
        """Tell of a destination that was made or removed."""
        destination = info.destination
        topic = _topic_of(destination)
        if destination is not None and topic.startswith(_TEMPORARY):
            if info.operation_type == 0:
                self._temporary[destination] = info, source
            else:
                self._temporary.pop(destination, None)
        self._tell(topic, info, source, self._consumers)

    def slow(
        self, info: c.ConsumerInfo, destination: c.ActiveMQDestination, source: AdvisorySource
    ) -> None:
        """Tell of a consumer that is slow.

        Args:
            info: of the consumer.
            destination: that it consumes, or a part of that.
            source: its connection.
        """
        kind = _topic_of(destination).removeprefix(ADVISORY_PREFIX)
        topic = f"{ADVISORY_PREFIX}SlowConsumer.{kind}.{destination.physical_name}"
        more = [Property(_CONSUMER_ID, PropertyType.STRING, str(info.consumer_id))]
        self._tell(topic, info, source, self._consumers, more)

    def _tell(
        self,
        topic: str,
        data: DataType,
        source: AdvisorySource,
        consumers: Iterable[AdvisoryConsumer],
        more: Iterable[Property] = (),
    ) -> None:
        wanting = [
            one
            for one in consumers
            if one.credits > 0 and any(self._matches(name, topic) for name in one.patterns)
        ]
        if not wanting:
            return
        producer_id = ProducerId(f"ID:{source.broker_id}-advisory", 0, 0)
        texts = {
            CLIENT_ID: source.connection_id,
            "originBrokerId": source.broker_id,
            "originBrokerName": source.broker_name,
            "originBrokerURL": source.broker_url,
        }
        properties = [Property(name, PropertyType.STRING, text) for name, text in texts.items()]
        marshalled = write_map([*properties, *more])
        for one in wanting:
            one.credits -= 1
            self._sequence += 1
            destination = c.ActiveMQTopic(topic)
            message = c.ActiveMQMessage(
                producer_id=producer_id,
                destination=destination,
                message_id=MessageId(producer_id=producer_id, producer_sequence_id=self._sequence),
                priority=4,
                timestamp=self._clock.now_ms(),
                type=_TYPE,
                marshalled_properties=marshalled,
                data_structure=data,
                target_consumer_id=one.info.consumer_id,
            )
            one.connection.send(
                c.MessageDispatch(
                    consumer_id=one.info.consumer_id, destination=destination, message=message
                )
            )


def _topic_of(destination: c.ActiveMQDestination | None) -> str:
    if destination is None:
        return ADVISORY_PREFIX
    kind = "Queue" if is_queue(destination) else "Topic"
    if isinstance(destination, c.ActiveMQTempQueue | c.ActiveMQTempTopic):
        return f"{_TEMPORARY}{kind}"
    return f"{ADVISORY_PREFIX}{kind}"
