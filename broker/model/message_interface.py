"""A message as all protocols see it, whatever its layout is.

    Message        the Core layout: what is sent by Core, MQTT, STOMP, OpenWire
    AmqpMessage    AMQP's sections, kept as they were sent (broker/records/amqp_message.py)

How a stored message becomes one: broker/records/persisters.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.model.large_body import LargeBody
    from broker.model.message import Message
    from broker.model.properties import Property, PropertyType, PropertyValue
    from broker.model.routing_type import RoutingType

__all__ = ["MessageInterface"]


class MessageInterface(Protocol):
    """See the module's text. A change shows in what the message is sent and stored as."""

    message_id: int
    """The broker's number; 0 until it gave one."""
    address: str | None
    """Where it was sent."""
    durable: bool
    """It survives a restart, where its queues do."""
    priority: int
    """0 … 9."""
    expiration: int
    """In ms since 1970, 0 is never."""
    timestamp: int
    """When it was sent, ms since 1970, 0 is none."""
    user_id: bytes | None
    """What its sender's clients know it by, 16 bytes."""
    routing_type: RoutingType | None
    """What its sender asked for."""
    is_large: bool
    """Whether its body is kept outside of it, in `large`."""
    large: LargeBody | None
    """The body as a stream."""

    @property
    def properties(self) -> Mapping[str, Property]:
        """By name; change them by set() and remove() alone."""

    def get(self, name: str) -> PropertyValue:
        """Give the value of a property; None where it is null or missing."""

    def set(self, name: str, kind: PropertyType, value: PropertyValue) -> None:
        """Set a property, instead of any of that name."""

    def remove(self, name: str) -> None:
        """Remove a property; no error when there is none."""

    @property
    def body(self) -> memoryview:
        """The body's bytes, as a Core message of its type has them; empty where it is large."""

    @property
    def group_id(self) -> str | None:
        """The group whose messages go to one consumer."""

    @property
    def group_sequence(self) -> int:
        """Its number in the group; -1 ends the group behind it, 0 is none."""

    @property
    def scheduled_ms(self) -> int:
        """When it is to be delivered, ms since 1970; 0 is at once."""

    @property
    def duplicate_id(self) -> str | bytes | None:
        """What its address does not accept twice."""

    @property
    def reply_to(self) -> str | None:
        """Where an answer is to go, as JMS writes it: `queue://…`."""

    @property
    def correlation_id(self) -> str | bytes | None:
        """What it answers to."""

    @property
    def encoded_size(self) -> int:
        """Bytes that credits and counters count."""

    @property
    def memory_size(self) -> int:
        """Bytes that the limits of addresses and of the broker count."""

    def record(self) -> bytes:
        """Give the body of record 45, by its own persister."""


if TYPE_CHECKING:

    def _core_layout_is_one(message: Message) -> MessageInterface:
        return message
