"""A client's message as a Core message, in Artemis's names (OpenWireMessageConverter)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import RecordFormatError
from broker.model.message import GROUP_ID, ROUTING_TYPE_PROPERTY, Message
from broker.model.properties import Property, PropertyType
from broker.model.scheduled_time import SCHEDULED
from broker.protocols.openwire import property_names as names
from broker.protocols.openwire.body_content import TYPES
from broker.protocols.openwire.decoding import broken
from broker.protocols.openwire.destinations import qualified
from broker.protocols.openwire.primitives import read_map

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.protocols.openwire.commands import ActiveMQMessage
    from broker.protocols.openwire.destinations import Target
    from broker.protocols.openwire.identifiers import BrokerId

__all__ = ["core_message", "properties_of"]

_PRIORITY_MAX: Final = 9
_LONG_MAX: Final = 2**63 - 1
_NUMBERS: Final = (PropertyType.BYTE, PropertyType.SHORT, PropertyType.INT, PropertyType.LONG)


def _text(name: str, value: str) -> Property:
    return Property(name, PropertyType.STRING, value)


def properties_of(
    sent: ActiveMQMessage, *, client_id: str | None, sets_duplicate_id: bool, now_ms: int
) -> list[Property]:
    """Give the properties that a message of a client has in the store.

    Args:
        sent: by the client.
        client_id: of its connection.
        sets_duplicate_id: where it has none, its message id is one.
        now_ms: ms since 1970.

    Raises:
        OpenWireError: its properties cannot be read.
    """
    found = [
        Property(names.GROUP_SEQUENCE, PropertyType.INT, sent.group_sequence),
        Property(names.ARRIVAL, PropertyType.LONG, sent.arrival),
        Property(names.BROKER_IN_TIME, PropertyType.LONG, sent.broker_in_time),
        Property(names.COMMAND_ID, PropertyType.INT, sent.command_id),
        Property(names.DROPPABLE, PropertyType.BOOLEAN, sent.droppable),
        _text(names.MESSAGE_ID, str(sent.message_id)),
    ]
    texts = (
        (names.TYPE, sent.type),
        (names.CORRELATION_ID, sent.correlation_id),
        (names.REPLY_TO, None if sent.reply_to is None else qualified(sent.reply_to)),
        (GROUP_ID, sent.group_id),
        (names.PRODUCER_ID, None if sent.producer_id is None else str(sent.producer_id)),
        (names.USER_ID, sent.user_id),
        (
            names.ORIGINAL_DESTINATION,
            None if sent.original_destination is None else qualified(sent.original_destination),
        ),
        (names.PATH, _joined(sent.broker_path)),
        (names.CLUSTER, _joined(sent.cluster)),
        (names.CLIENT_ID, client_id),
    )
    found += [_text(name, value) for name, value in texts if value is not None]
    if sent.compressed and sent.content is not None:
        found.append(Property(names.COMPRESSED, PropertyType.BOOLEAN, True))
    has_duplicate_id = False
    if sent.marshalled_properties is not None:
        try:
            own = read_map(sent.marshalled_properties)
        except RecordFormatError as error:
            raise broken(f"properties that cannot be read: {error}") from None
        for item in own:
            has_duplicate_id = has_duplicate_id or item.name == names.DUPLICATE_ID
            found.append(_scheduled(item, now_ms))
    if sets_duplicate_id and not has_duplicate_id:
        found.append(_text(names.DUPLICATE_ID, str(sent.message_id)))
    return found


def _joined(ids: Iterable[BrokerId | None] | None) -> str | None:
    if ids is None:
        return None
    return ",".join(one.value or "" for one in ids if one is not None)


def _scheduled(item: Property, now_ms: int) -> Property:
    """Give a property, that of a delay as the time that it ends."""
    value = item.value
    if item.name != names.SCHEDULED_DELAY or item.type not in _NUMBERS:
        return item
    assert isinstance(value, int), "as its type says"
    return Property(SCHEDULED, PropertyType.LONG, min(now_ms + max(value, 0), _LONG_MAX))


def core_message(
    sent: ActiveMQMessage, target: Target, body: bytes, properties: Iterable[Property]
) -> Message:
    """Give the Core message for one destination; its id is to come.

    Args:
        sent: by the client.
        target: where it goes.
        body: from body_of().
        properties: from properties_of().
    """
    routing = Property(ROUTING_TYPE_PROPERTY, PropertyType.BYTE, int(target.routing_type))
    return Message(
        target.name,
        body,
        type=TYPES[type(sent)],
        durable=sent.persistent,
        priority=max(0, min(sent.priority, _PRIORITY_MAX)),
        expiration=max(0, sent.expiration),
        timestamp=sent.timestamp,
        properties=(routing, *properties),
    )
