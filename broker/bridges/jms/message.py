"""A message between two providers: JMS's headers and properties, and its body as Python has it.

A target of the same kind as the source may take `native` as it is, so that nothing is lost on the
way. Any other target builds its own message of the fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from broker.model.message import PRIORITY_DEFAULT
from broker.model.properties import Property, PropertyType, PropertyValue

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["ID_LISTS", "Body", "BodyKind", "JMSMessage", "StreamedBody", "extended_ids", "first_id"]

# What the documentation calls the list, and what Artemis's code does: both are read and written.
ID_LISTS: Final = ("ACTIVEMQ_BRIDGE_MSG_ID_LIST", "AMQ_BRIDGE_MSG_ID_LIST")

Body = str | bytes | dict[str, PropertyValue] | list[PropertyValue] | None


class BodyKind(Enum):
    """JMS's five kinds of messages, and the one without a body."""

    EMPTY = "empty"
    TEXT = "text"
    BYTES = "bytes"
    MAP = "map"
    STREAM = "stream"
    OBJECT = "object"
    """Java's serialization, kept as bytes."""


class StreamedBody(Protocol):
    """A large body, kept outside of memory; read from its beginning as often as needed."""

    def read(self, size: int, /) -> bytes:
        """Give at most `size` bytes, -1 all that are left; b"" at the end."""

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a byte, from the beginning or (os.SEEK_END) the end; give which it is."""

    def close(self) -> None:
        """Give its storage up."""


@dataclass(slots=True)
class JMSMessage:
    """See the module's text. Belongs to the bridge from `receive()` until its batch has ended.

    Attributes:
        kind: what the body is.
        body: str of a TEXT, bytes of BYTES and OBJECT, dict of a MAP, list of a STREAM.
        message_id: JMSMessageID, such as `ID:…`; None where the sender gave none.
        correlation_id: JMSCorrelationID.
        reply_to: JMSReplyTo, such as `queue://name`.
        type: JMSType.
        durable: JMSDeliveryMode PERSISTENT.
        priority: 0 … 9.
        expiration_ms: ms since 1970; 0 is never.
        timestamp_ms: ms since 1970; 0 is none.
        properties: by name, with their types; without what the fields above hold.
        position: what the source calls this message for good: the same after a redelivery, and
            another for every other message of that queue. None if it has no such name.
        size: bytes, body included; 0 where the source does not tell.
        duplicate_id: what the target keeps to drop a second one; the bridge sets it.
        read_body: gives the body if a target asks for it; None if it is in `body`.
        stream: the bytes of a large message's body, as its source encodes them.
        native: the source's own object.
        added: properties that the bridge has set; the native object is without them.
    """

    kind: BodyKind
    body: Body = None
    message_id: str | None = None
    correlation_id: str | bytes | None = None
    reply_to: str | None = None
    type: str | None = None
    durable: bool = True
    priority: int = PRIORITY_DEFAULT
    expiration_ms: int = 0
    timestamp_ms: int = 0
    properties: dict[str, Property] = field(default_factory=dict)
    position: bytes | None = None
    size: int = 0
    duplicate_id: bytes | None = None
    read_body: Callable[[], Body] | None = None
    stream: StreamedBody | None = None
    native: object | None = None
    added: list[Property] | None = None

    def content(self) -> Body:
        """Give the body, of a large message too; in memory.

        Raises:
            ValueError: it is not what the message's kind says.
        """
        if self.read_body is None:
            return self.body
        return self.read_body()

    def set_text(self, name: str, value: str) -> None:
        """Set a property of type String."""
        made = self.properties[name] = Property(name, PropertyType.STRING, value)
        self.added = [*(self.added or ()), made]

    def close(self) -> None:
        """Give up what is kept of it outside of memory."""
        if self.stream is not None:
            self.stream.close()


def extended_ids(properties: Mapping[str, Property], message_id: str | None) -> str | None:
    """Give the list of ids with this message's appended; None without any id.

    Both headers are read. A bridge that knows one name alone has extended that one, so where one
    list continues the other, the longer one counts.

    Args:
        properties: of the received message.
        message_id: its JMSMessageID; None appends nothing.

    >>> extended_ids({}, "ID:a")
    'ID:a'
    >>> old = Property(ID_LISTS[1], PropertyType.STRING, "ID:a,ID:b")
    >>> extended_ids({ID_LISTS[1]: old}, "ID:c")
    'ID:a,ID:b,ID:c'
    """
    known = _known_ids(properties)
    ids = [one for one in (known, message_id) if one]
    return ",".join(ids) or None


def first_id(properties: Mapping[str, Property]) -> str | None:
    """Give the id of the message that was sent first: what a reply correlates with.

    >>> first_id({ID_LISTS[0]: Property(ID_LISTS[0], PropertyType.STRING, "ID:a,ID:b")})
    'ID:a'
    """
    known = _known_ids(properties)
    return None if known is None else known.partition(",")[0]


def _known_ids(properties: Mapping[str, Property]) -> str | None:
    lists = [_text(properties, name) for name in ID_LISTS]
    found = [one for one in lists if one]
    return max(found, key=len) if found else None


def _text(properties: Mapping[str, Property], name: str) -> str | None:
    found = properties.get(name)
    return found.value if found is not None and isinstance(found.value, str) else None
