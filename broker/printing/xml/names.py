"""Elements, attributes and words of the document (XmlDataConstants), for writer and reader."""

from __future__ import annotations

from typing import Final

from broker.model.message_types import MessageType
from broker.model.properties import PropertyType

DOCUMENT: Final = "activemq-journal"
BINDINGS: Final = "bindings"
ADDRESS_BINDING: Final = "address-binding"
QUEUE_BINDING: Final = "queue-binding"
# As versions 1.x wrote it.
OLD_BINDING: Final = "binding"
MESSAGES: Final = "messages"
MESSAGE: Final = "message"
PROPERTIES: Final = "properties"
PROPERTY: Final = "property"
QUEUES: Final = "queues"
QUEUE: Final = "queue"
BODY: Final = "body"
IS_LARGE: Final = "isLarge"

NULL: Final = "_AMQ_NULL"

MESSAGE_TYPES: Final[dict[int, str]] = {
    MessageType.BYTES: "bytes",
    MessageType.MAP: "map",
    MessageType.OBJECT: "object",
    MessageType.STREAM: "stream",
    MessageType.TEXT: "text",
}
MESSAGE_TYPE_DEFAULT: Final = "default"

# A character has no word there: it is written without one, and so told from all others.
PROPERTY_TYPES: Final = {
    PropertyType.NULL: "bytes",
    PropertyType.BOOLEAN: "boolean",
    PropertyType.BYTE: "byte",
    PropertyType.BYTES: "bytes",
    PropertyType.SHORT: "short",
    PropertyType.INT: "integer",
    PropertyType.LONG: "long",
    PropertyType.FLOAT: "float",
    PropertyType.DOUBLE: "double",
    PropertyType.STRING: "simple-string",
}
# What Artemis's clients hand over as their own class of string, and it never exports.
STRING: Final = "string"
