"""Packets of a session: its lifecycle, its consumers and producers, credits, local transactions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from broker.model.encoding import BOOLEAN, INT, LONG, NSS, SS, STR
from broker.protocols.core import versions
from broker.protocols.core.packet import Packet, field
from broker.protocols.core.packet_connection import NO_CORRELATION


@dataclass(slots=True)
class CreateConsumer(Packet):
    """Begins to consume; the answer, where required, is a QueueQueryResponse.

    Attributes:
        consumer_id: the client counts them, per session, from 0.
        priority: consumers of a higher one are served first, while they have credits.
    """

    types: ClassVar = ((0, 40),)

    consumer_id: int = field(LONG)
    queue: str = field(SS)
    filter: str | None = field(NSS, default=None)
    browse_only: bool = field(BOOLEAN, default=False)
    requires_response: bool = field(BOOLEAN, default=True)
    priority: int = field(INT, since=versions.ASYNC_RESPONSE, default=0, optional=True)


@dataclass(slots=True)
class CloseConsumer(Packet):
    """Ends a consumer; answered by a NullResponse."""

    types: ClassVar = ((0, 74),)

    consumer_id: int = field(LONG)


@dataclass(slots=True)
class ConsumerCredits(Packet):
    """Allows the broker to send so many bytes more: -1 without limit, 0 takes back what is left."""

    types: ClassVar = ((0, 70),)

    consumer_id: int = field(LONG)
    credits: int = field(INT)


@dataclass(slots=True)
class ForceDelivery(Packet):
    """Asks for a message with this `sequence` behind everything that can be delivered now."""

    types: ClassVar = ((0, 78),)

    consumer_id: int = field(LONG)
    sequence: int = field(LONG)


@dataclass(slots=True)
class Expired(Packet):
    """The client found the message expired; no answer."""

    types: ClassVar = ((0, 42),)

    consumer_id: int = field(LONG)
    message_id: int = field(LONG)


@dataclass(slots=True)
class Commit(Packet):
    """Commits the session's transaction; answered by a NullResponse."""

    types: ClassVar = ((0, 43),)

    correlation_id: int = field(
        LONG, since=versions.COMMIT_CORRELATION, default=NO_CORRELATION, optional=True
    )


@dataclass(slots=True)
class Rollback(Packet):
    """Rolls the session's transaction back; answered by a NullResponse.

    Attributes:
        consider_last_message_as_delivered: leave the delivery count of the last one raised.
    """

    types: ClassVar = ((0, 44),)

    consider_last_message_as_delivered: bool = field(BOOLEAN)


@dataclass(slots=True)
class Start(Packet):
    """Deliveries may begin; no answer."""

    types: ClassVar = ((0, 67),)


@dataclass(slots=True)
class Stop(Packet):
    """No delivery behind the NullResponse that answers it."""

    types: ClassVar = ((0, 68),)


@dataclass(slots=True)
class Close(Packet):
    """Ends the session and its channel; answered by a NullResponse."""

    types: ClassVar = ((0, 69),)


@dataclass(slots=True)
class RequestProducerCredits(Packet):
    """Asks for bytes to send to an address; answered when there is room."""

    types: ClassVar = ((0, 79),)

    credits: int = field(INT)
    address: str = field(SS)


@dataclass(slots=True)
class ProducerCredits(Packet):
    """So many bytes may be sent to the address; both are as they were asked for."""

    types: ClassVar = ((0, 80),)

    credits: int = field(INT)
    address: str = field(SS)


@dataclass(slots=True)
class ProducerFailCredits(Packet):
    """As `ProducerCredits`, but the address is full and the next send must fail."""

    types: ClassVar = ((0, 82),)

    credits: int = field(INT)
    address: str = field(SS)


BRIDGE: Final = "quiver-bridge"
"""Key by which a session says that it is a bridge's, such as `jms`: it looks at no message. What it
has not acknowledged when its connection is lost was tried by no application."""


@dataclass(slots=True)
class AddMetadata(Packet):
    """Names a session, for operators; answered by a NullResponse."""

    types: ClassVar = ((0, 104),)
    always_confirmed: ClassVar = False

    key: str = field(STR)
    data: str = field(STR)


@dataclass(slots=True)
class AddMetadata2(Packet):
    """As `AddMetadata`; the flag says whether there is an answer and whether it is confirmed."""

    types: ClassVar = ((0, 105),)

    key: str = field(STR)
    data: str = field(STR)
    requires_confirmation: bool = field(BOOLEAN, default=True)

    @property
    def is_confirmed(self) -> bool:
        """As its flag says."""
        return self.requires_confirmation


@dataclass(slots=True)
class UniqueAddMetadata(Packet):
    """As `AddMetadata2`; refused with DUPLICATE_METADATA where another session has the same."""

    types: ClassVar = ((0, 106),)

    key: str = field(STR)
    data: str = field(STR)
    requires_confirmation: bool = field(BOOLEAN, default=True)

    @property
    def is_confirmed(self) -> bool:
        """As its flag says."""
        return self.requires_confirmation


@dataclass(slots=True)
class CreateProducer(Packet):
    """Tells the broker of a producer, for its counters; no answer."""

    types: ClassVar = ((0, -20),)

    producer_id: int = field(INT)
    address: str | None = field(NSS, default=None)


@dataclass(slots=True)
class RemoveProducer(Packet):
    """The producer is closed; no answer."""

    types: ClassVar = ((0, -21),)

    producer_id: int = field(INT)
