"""Messages of AMQP 1.0 as messages of JMS, and back: by Core's layout, as Artemis converts them.

What AMQP has beside JMS (annotations, user id, how a body was encoded) ends at the bridge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.core.conversion import GROUPS, body_kind, content_of_body, made_message
from broker.bridges.jms.message import JMSMessage
from broker.client.content import CORRELATION_ID, DUPLICATE_ID, REPLY_TO, unpacked
from broker.model.properties import PropertyType
from broker.records.amqp_to_core import core_content
from broker.records.core_to_amqp import body_of, sections_of

if TYPE_CHECKING:
    import uuid

    from broker.model.properties import Property
    from broker.model.routing_type import RoutingType

__all__ = ["Addressed", "encoded_message", "jms_message"]

_MESSAGE_ID: Final = "NATIVE_MESSAGE_ID"
_TYPE: Final = "JMSType"
# Fields of JMSMessage, or of AMQP alone.
_HEADERS: Final = frozenset(
    (
        *(CORRELATION_ID, REPLY_TO, _TYPE, _MESSAGE_ID, DUPLICATE_ID, "JMSXDeliveryCount"),
        *("_AMQ_VALIDATED_USER", "_AMQ_ROUTING_TYPE", "_AMQ_INGRESS_TIMESTAMP"),
        "_AMQ_SCHED_DELIVERY",
    )
)
_OF_AMQP: Final = "JMS_AMQP_"


def jms_message(encoded: bytes, now_ms: int) -> JMSMessage:
    """Give a received message.

    Args:
        encoded: all its sections.
        now_ms: when it came, for one that says how long it has to live.

    Raises:
        RecordFormatError: these bytes are not AMQP sections.
    """
    core = core_content(encoded, ())
    found = core.properties
    expiration_ms = core.expiration or (now_ms + core.ttl_ms if core.ttl_ms else 0)
    return JMSMessage(
        kind=body_kind(core.type),
        body=content_of_body(core.type, core.body),
        message_id=_text(found, _MESSAGE_ID),
        correlation_id=_correlation(found),
        reply_to=_text(found, REPLY_TO),
        type=_text(found, _TYPE),
        durable=bool(core.durable),
        priority=core.priority,
        expiration_ms=expiration_ms,
        timestamp_ms=core.timestamp,
        properties={
            (named := GROUPS.get(name, name)): one._replace(name=named)
            for name, one in found.items()
            if name not in _HEADERS and not name.startswith(_OF_AMQP)
        },
    )


def _text(properties: dict[str, Property], name: str) -> str | None:
    found = properties.get(name)
    return found.value if found is not None and isinstance(found.value, str) else None


def _correlation(properties: dict[str, Property]) -> str | bytes | None:
    found = properties.get(CORRELATION_ID)
    return found.value if found is not None and isinstance(found.value, str | bytes) else None


@dataclass(frozen=True, slots=True)
class Addressed:
    """Where messages of a sender go to.

    Attributes:
        address: as the broker writes it.
        routing: one consumer, or each.
    """

    address: str
    routing: RoutingType


def encoded_message(
    message: JMSMessage, to: Addressed, message_id: uuid.UUID, now_ms: int
) -> bytes:
    """Give all sections of the message to send.

    Args:
        message: of any provider.
        to: its new address.
        message_id: its new JMSMessageID.
        now_ms: ms since 1970, for what it has left to live.

    Raises:
        TypeError: a body or a property that no message can hold.
    """
    core = made_message(message)
    core.address = to.address
    core.routing_type = to.routing
    core.user_id = message_id.bytes
    core.expiration = message.expiration_ms
    core.remove(DUPLICATE_ID)
    if message.duplicate_id is not None:
        core.set(DUPLICATE_ID, PropertyType.STRING, message.duplicate_id.hex())
    return sections_of(core, now_ms, 0) + body_of(core, unpacked(core))
