"""A message that came by AMQP: kept as it was sent, and seen as the Core message it becomes.

    encoded sections ── never changed ──▶ records: persister 5, as Artemis writes it today
           ├─ looked at, when it comes ─▶ what its way through the broker depends on
           └─ converted once, when it is asked for ─▶ headers, properties, body of Core

What a broker notes in it, where it came from say, stands in properties beside the sections. A
change that has no place there (its priority, its body) makes it a Core message for good.
"""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING, Any, Final, Self

import broker.model.message_bytes as walk
from broker.model.core_layout import fitting_byte
from broker.model.encoding import Body, BodyReader
from broker.model.message import MEMORY_OVERHEAD, ROUTING_TYPE_PROPERTY, Message
from broker.model.message_types import Persister
from broker.model.properties import Property, PropertyType
from broker.model.scheduled_time import SCHEDULED
from broker.records.amqp_outline import Outline, outline_of
from broker.records.amqp_rewriting import rewritten, sent_again, to_deliver
from broker.records.amqp_to_core import core_content
from broker.records.noted_properties import NotedProperties
from broker.records.stored_messages import (
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV3,
    CoreMessage,
    read_message,
)

if TYPE_CHECKING:
    from broker.model.message_owners import SpillFile
    from broker.model.routing_type import RoutingType
    from broker.records.amqp_to_core import CoreContent

__all__ = ["AmqpMessage", "arrived"]

_LONG_MAX: Final = 2**63 - 1
# Of a record: persister, message id, format, whether there is an address.
_RECORD_HEAD: Final = struct.Struct(">bqqB")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_PERSISTER: Final = int(Persister.AMQP_V3)


def arrived(content: CoreContent, now_ms: int, routing_type: RoutingType | None) -> int:
    """Note in what a message says what its arrival adds; when it expires, 0 is never.

    Args:
        content: gets the properties.
        now_ms: ms since 1970.
        routing_type: of the link; None leaves it to the message.
    """
    properties = content.properties
    if routing_type is not None:
        properties[ROUTING_TYPE_PROPERTY] = Property(
            ROUTING_TYPE_PROPERTY, PropertyType.BYTE, int(routing_type)
        )
    if content.delay_ms and SCHEDULED not in properties:
        due_ms = min(now_ms + content.delay_ms, _LONG_MAX)
        properties[SCHEDULED] = Property(SCHEDULED, PropertyType.LONG, due_ms)
    if not content.expiration and content.ttl_ms:
        return now_ms + content.ttl_ms
    return content.expiration


def _said(name: str) -> Any:  # noqa: ANN401 - the type is that of the header.
    """Give a header that the sections say: another value makes it a Core message, for good."""
    inherited = getattr(Message, name)

    def change(message: AmqpMessage, value: object) -> None:
        if value != inherited.__get__(message):
            # A later change must not bring back what was replaced.
            message.is_as_sent = False
        inherited.__set__(message, value)

    return property(inherited.__get__, change)


class AmqpMessage(NotedProperties):
    """See the module's text; `from_record()`, `received()` make one. Belongs to the event loop.

    Attributes:
        encoded: all its sections, as they were sent.
        message_format: 0 is that of the standard.
        has_delivery_annotations: among the sections; they are for the broker alone.
        is_as_sent: the sections still say what it is; else it is a Core message.
    """

    __slots__ = ("encoded", "has_delivery_annotations", "is_as_sent", "message_format")

    encoded: bytes
    message_format: int
    has_delivery_annotations: bool
    is_as_sent: bool

    @classmethod
    def from_record(cls, body: Body, *, is_recorded: bool = True) -> Self:
        """Read the body of record 45 by one of the persisters AMQP_V1, AMQP_V2, AMQP_V3.

        Args:
            body: of the record.
            is_recorded: what does not say whether it is durable is so: else it had no record.

        Raises:
            RecordFormatError: another persister, or bytes that are not AMQP sections.
        """
        reader = BodyReader(body)
        stored = read_message(reader)
        if isinstance(stored, CoreMessage | AmqpLargeMessage):
            raise reader.fail(f"message persister {stored.persister.name}")
        extra = () if isinstance(stored, AmqpMessageV1) else stored.extra_properties or ()
        content = core_content(stored.encoded, extra)
        expiration = content.expiration
        if isinstance(stored, AmqpMessageV3):
            expiration = stored.expiration
        elif not expiration and content.ttl_ms:
            # As Artemis: counted anew from each start.
            expiration = time.time_ns() // 1_000_000 + content.ttl_ms
        made = cls._made(content, expiration)
        if is_recorded and content.durable is not False:
            made.durable = True
        made.message_id = stored.message_id
        if stored.address is not None:
            made.address = stored.address
        # Its bytes, and what they say of the broker's own properties.
        made._read_form(made.encode())
        made._keep(stored.encoded, stored.message_format, content.has_delivery_annotations)
        made._extra = {item.name: item for item in extra}
        made._address_read = stored.address
        return made

    @classmethod
    def received(
        cls,
        encoded: bytes | bytearray,
        address: str | None,
        now_ms: int,
        routing_type: RoutingType | None = None,
        message_format: int = 0,
    ) -> Self:
        """Take a message that a client sends; the broker gives its id.

        Args:
            encoded: all its sections.
            address: that the link sends to; None takes what the message says.
            now_ms: ms since 1970.
            routing_type: that the link sends with; None takes what the message says.
            message_format: of the transfer.

        Raises:
            RecordFormatError: bytes that are not AMQP sections.
        """
        encoded = bytes(encoded)
        outline = outline_of(encoded)
        if outline is not None:
            made = cls.__new__(cls)
            made._look_like(outline, address, now_ms, routing_type)
            made._keep(encoded, message_format, outline.has_delivery_annotations)
            return made
        content = core_content(encoded, ())
        made = cls._made(content, arrived(content, now_ms, routing_type))
        if address is not None:
            made.address = address
        made._read_form(made.encode())
        made._keep(encoded, message_format, content.has_delivery_annotations)
        return made

    def _look_like(
        self, outline: Outline, address: str | None, now_ms: int, routing_type: RoutingType | None
    ) -> None:
        """Take what its way depends on; the rest is converted when it is asked for."""
        self._address = outline.address if address is None else address
        self._durable = outline.durable
        self._priority = outline.priority
        self._expiration = outline.expiration
        if not outline.expiration and outline.ttl_ms:
            self._expiration = now_ms + outline.ttl_ms
        self._routing = outline.routing if routing_type is None else int(routing_type)

    def _read_back(self, aside: SpillFile | None) -> bytes:
        if aside is not None:
            return Message._read_back(self, aside)
        content = core_content(self.encoded, ())
        if self._routing >= 0:
            routing = Property(ROUTING_TYPE_PROPERTY, PropertyType.BYTE, self._routing)
            content.properties[ROUTING_TYPE_PROPERTY] = routing
        core = Message(
            self._address,
            content.body,
            type=content.type,
            durable=self._durable != 0,
            priority=self._priority,
            expiration=self._expiration,
            timestamp=content.timestamp,
            user_id=content.user_id,
            message_id=self._message_id,
            properties=content.properties.values(),
        )
        data = core.encode()
        self._type = content.type
        self._data = data
        self._headers_at = core._headers_at
        self._properties_at = core._properties_at
        return data

    @classmethod
    def _made(cls, content: CoreContent, expiration: int) -> Self:
        return cls(
            content.address,
            content.body,
            type=content.type,
            durable=content.durable is True,
            priority=content.priority,
            expiration=expiration,
            timestamp=content.timestamp,
            user_id=content.user_id,
            properties=content.properties.values(),
        )

    def _keep(self, encoded: bytes, message_format: int, has_delivery_annotations: bool) -> None:
        self.encoded = encoded
        self.message_format = message_format
        self.has_delivery_annotations = has_delivery_annotations
        self.is_as_sent = True
        self._is_marked = False
        self._extra = {}
        self._address_read = None

    @property
    def type(self) -> int:
        """A `MessageType`, of what the body becomes."""
        if self._data is None:
            self._bytes()
        return self._type

    @type.setter
    def type(self, value: int) -> None:
        self._bytes()
        if value != self._type:
            self.is_as_sent = False
        self._type = fitting_byte(value)
        self._change()

    durable = _said("durable")
    priority = _said("priority")
    timestamp = _said("timestamp")
    user_id = _said("user_id")
    body = _said("body")

    @property
    def encoded_size(self) -> int:
        """Bytes of its sections, which credits and counters count."""
        self._rewrite()
        return len(self.encoded)

    @property
    def memory_size(self) -> int:
        """Bytes that the limits of addresses and of the broker count for this message."""
        return self.encoded_size + MEMORY_OVERHEAD

    def to_deliver(self, delivery_count: int) -> bytes:
        """Give the sections for an AMQP consumer: as they were sent, but for what it is told.

        Args:
            delivery_count: how often it was delivered before.
        """
        self._rewrite()
        if delivery_count <= 0 and not self.has_delivery_annotations:
            return self.encoded
        return to_deliver(self.encoded, delivery_count)

    def _rewrite(self) -> None:
        """Let the sections say where it came from, as those of Artemis's copies do."""
        if self._is_marked:
            self._is_marked = False
            self.encoded = rewritten(
                self.encoded, self._extra, self.address, expires=self.expiration != 0
            )
            self.has_delivery_annotations = False

    def send_again(self, duplicate_id: str, routing_type: RoutingType | None) -> None:
        """Let its sections say that this is another sending; what it is to Core is not looked at.

        Args:
            duplicate_id: of this sending.
            routing_type: None leaves what the message says.
        """
        self._rewrite()
        self.encoded = sent_again(self.encoded, duplicate_id, routing_type)
        self.has_delivery_annotations = False

    def record(self) -> bytes:
        """Give the body of record 45, by the persister that fits."""
        if not self.is_as_sent:
            return Message.record(self)
        self._rewrite()
        address = self._address
        units = b"" if address is None else walk.encoded_name(address)
        return b"".join(
            (
                _RECORD_HEAD.pack(
                    _PERSISTER, self._message_id, self.message_format, address is not None
                ),
                b"" if address is None else _INT.pack(len(units)),
                units,
                _INT.pack(len(self.encoded)),
                self.encoded,
                self._encoded_notes(),
                _LONG.pack(self._expiration),
            )
        )

    def copy(self) -> Self:
        """Give a message of its own with the same sections, in no queue."""
        other = super().copy()
        other.encoded = self.encoded
        other.message_format = self.message_format
        other._note_as(self)
        other.is_as_sent = self.is_as_sent
        other.has_delivery_annotations = self.has_delivery_annotations
        return other
