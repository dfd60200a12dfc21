"""A Core message as a client of OpenWire gets it (OpenWireMessageConverter)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.message import GROUP_ID
from broker.model.properties import Property, PropertyType
from broker.protocols.openwire import property_names as names
from broker.protocols.openwire.body_content import content_of, packed
from broker.protocols.openwire.commands import ActiveMQQueue
from broker.protocols.openwire.destinations import destination_of
from broker.protocols.openwire.identifiers import BrokerId, MessageId, ProducerId
from broker.protocols.openwire.primitives import write_map
from broker.sessions.send_marks import INGRESS_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.model.message import Message
    from broker.protocols.openwire.commands import ActiveMQDestination, ActiveMQMessage

__all__ = ["delivered_message", "message_id_of"]

_INT_LIMIT: Final = 2**31
_LAST_VALUE: Final = "_AMQ_LVQ_NAME"
_NOTIFICATION: Final = "_AMQ_NotifType"
_KEPT: Final = frozenset({_LAST_VALUE, INGRESS_TIMESTAMP})
# Classic's client keeps these as fields of a message (ActiveMQMessage.PROPERTY_SETTERS).
_FIELDS: Final = frozenset(
    {
        *("JMSXDeliveryCount", "JMSXGroupID", "JMSXGroupSeq", "JMSCorrelationID", "JMSType"),
        *("JMSDeliveryMode", "JMSExpiration", "JMSPriority", "JMSRedelivered", "JMSReplyTo"),
        *("JMSTimestamp", ""),
    }
)
# Those of a broker begin with one of these.
_OWN: Final = ("_AMQ", names.OWN_PREFIX)
_OWN_DLQ_CAUSE: Final = names.DLQ_CAUSE
_CLIENT_ID: Final = names.CLIENT_ID
_DLQ_CAUSE: Final = "dlqDeliveryFailureCause"
_INT_MAX: Final = 2**31 - 1


def delivered_message(
    message: Message,
    body: bytes,
    destination: ActiveMQDestination,
    message_id: MessageId,
    *,
    redeliveries: int,
    now_ms: int,
    hides_client_id: bool,
) -> ActiveMQMessage:
    """Give the message of a dispatch.

    Args:
        message: of any protocol.
        body: of it, unpacked where Core's client compressed it.
        destination: that its consumer sees.
        message_id: from message_id_of().
        redeliveries: how often it was delivered before.
        now_ms: ms since 1970.
        hides_client_id: the property __AMQ_CID is left out.
    """
    properties = message.properties
    made_class, content = content_of(message.type, body)
    is_compressed = message.get(names.COMPRESSED) is True and content is not None
    if is_compressed and content is not None:
        content = packed(made_class, content)
    own = _application_properties(properties, hides_client_id=hides_client_id)
    producer = _text(properties, names.PRODUCER_ID)
    original = _text(properties, names.ORIGINAL_DESTINATION)
    reply_to = _text(properties, names.REPLY_TO)
    return made_class(
        command_id=_int(properties, names.COMMAND_ID, -1),
        producer_id=message_id.producer_id if producer is None else ProducerId.of(producer),
        destination=destination,
        original_destination=(
            None if original is None else destination_of(original, type(destination))
        ),
        message_id=message_id,
        group_id=_text(properties, GROUP_ID),
        group_sequence=_int(properties, names.GROUP_SEQUENCE, 0),
        correlation_id=_correlation_id(properties),
        persistent=message.durable,
        expiration=message.expiration,
        priority=message.priority,
        reply_to=None if reply_to is None else destination_of(reply_to, ActiveMQQueue),
        timestamp=message.timestamp,
        type=_text(properties, names.TYPE),
        content=content,
        marshalled_properties=write_map(own) if own else None,
        compressed=is_compressed,
        redelivery_counter=redeliveries,
        broker_path=_broker_ids(_text(properties, names.PATH)),
        arrival=_number(properties, names.ARRIVAL, 0),
        user_id=_text(properties, names.USER_ID),
        droppable=message.get(names.DROPPABLE) is True,
        cluster=_broker_ids(_text(properties, names.CLUSTER)),
        broker_in_time=_number(properties, names.BROKER_IN_TIME, 0),
        broker_out_time=now_ms,
    )


def _text(properties: Mapping[str, Property], name: str) -> str | None:
    found = properties.get(name)
    if found is None:
        return None
    value = found.value
    return value if isinstance(value, str) else None


def _number(properties: Mapping[str, Property], name: str, default: int) -> int:
    found = properties.get(name)
    value = None if found is None else found.value
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def _int(properties: Mapping[str, Property], name: str, default: int) -> int:
    """Give a number that the command has 32 bits for; clients of other protocols may set more."""
    found = _number(properties, name, default)
    return found if -_INT_LIMIT <= found < _INT_LIMIT else default


def message_id_of(message: Message, node_id: str, sequence: int) -> MessageId:
    """Give the id of a message: its sender's, or where that spoke another protocol one of ours.

    Args:
        message: of any protocol.
        node_id: of the broker.
        sequence: of the delivery to the consumer; acknowledgements name it.
    """
    text = message.get(names.MESSAGE_ID)
    if isinstance(text, str):
        made = MessageId.of(text)
        made.broker_sequence_id = sequence
        return made
    high, low = divmod(message.message_id, _INT_MAX)
    producer = ProducerId(f"ID:{node_id}:-1", high, -1)
    return MessageId(producer_id=producer, producer_sequence_id=low, broker_sequence_id=sequence)


def _correlation_id(properties: Mapping[str, Property]) -> str | None:
    found = properties.get(names.CORRELATION_ID)
    value = None if found is None else found.value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return None if value is None else str(value)


def _broker_ids(text: str | None) -> list[BrokerId | None] | None:
    return None if text is None else [BrokerId(one) for one in text.split(",")]


def _application_properties(
    properties: Mapping[str, Property], *, hides_client_id: bool
) -> list[Property]:
    is_notification = _NOTIFICATION in properties
    found = []
    for name, item in properties.items():
        if name in _FIELDS or (hides_client_id and name == _CLIENT_ID):
            continue
        if name.startswith(_OWN) and name not in _KEPT:
            if name == _OWN_DLQ_CAUSE:
                found.append(item._replace(name=_DLQ_CAUSE))
                continue
            if not is_notification:
                continue
        found.append(_value(item))
    return found


def _value(item: Property) -> Property:
    value = item.value
    if isinstance(value, bytes):
        return Property(item.name, PropertyType.STRING, value.hex())
    return item
