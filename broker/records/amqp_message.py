"""A message that came by AMQP: kept as it was sent, and seen as the Core message it becomes.

    encoded sections ── never changed ──▶ records: persister 5, as Artemis writes it today
           └─ converted once, when it is read ─▶ headers, properties, body of Core

What a broker notes in it, where it came from say, stands in properties beside the sections. A
change that has no place there (its priority, its body) makes it a Core message for good.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Final, Self

from broker.model.encoding import Body, BodyReader, BodyWriter
from broker.model.message import ROUTING_TYPE_PROPERTY, Message
from broker.model.properties import Property, PropertyType
from broker.model.scheduled_time import SCHEDULED
from broker.records.amqp_rewriting import rewritten, to_deliver
from broker.records.amqp_to_core import core_content
from broker.records.noted_properties import NotedProperties
from broker.records.stored_messages import (
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV3,
    CoreMessage,
    read_message,
    write_message,
)

if TYPE_CHECKING:
    from broker.model.routing_type import RoutingType
    from broker.records.amqp_to_core import CoreContent

__all__ = ["AmqpMessage", "arrived"]

_LONG_MAX: Final = 2**63 - 1


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


class AmqpMessage(NotedProperties):
    """See the module's text; `from_record()`, `received()` make one. Belongs to the event loop.

    Attributes:
        encoded: all its sections, as they were sent.
        message_format: 0 is that of the standard.
        has_delivery_annotations: among the sections; they are for the broker alone.
    """

    __slots__ = ("_carried", "encoded", "has_delivery_annotations", "message_format")

    encoded: bytes
    message_format: int
    has_delivery_annotations: bool
    # What the sections say and nothing beside them can; None makes it a Core message.
    _carried: tuple[object, ...] | None

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
        made._keep(stored.encoded, stored.message_format, content)
        made._extra = {item.name: item for item in extra}
        made._address_read = stored.address
        return made

    @classmethod
    def received(
        cls,
        encoded: bytes,
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
        content = core_content(encoded, ())
        made = cls._made(content, arrived(content, now_ms, routing_type))
        if address is not None:
            made.address = address
        made._read_form(made.encode())
        made._keep(encoded, message_format, content)
        made._extra = {}
        made._address_read = None
        return made

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

    def _keep(self, encoded: bytes, message_format: int, content: CoreContent) -> None:
        self.encoded = encoded
        self.message_format = message_format
        self.has_delivery_annotations = content.has_delivery_annotations
        self._is_marked = False
        self._carried = self._of_sections()

    def _of_sections(self) -> tuple[object, ...]:
        body = zlib.crc32(self.body)
        return self.type, self.durable, self.priority, self.timestamp, self.user_id, body

    @property
    def is_as_sent(self) -> bool:
        """Whether the sections still say what it is; else it is a Core message, for good."""
        if self._carried is not None and self._of_sections() != self._carried:
            # A later change must not bring back what was replaced.
            self._carried = None
        return self._carried is not None

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

    def record(self) -> bytes:
        """Give the body of record 45, by the persister that fits."""
        if not self.is_as_sent:
            return Message.record(self)
        self._rewrite()
        writer = BodyWriter()
        write_message(
            writer,
            AmqpMessageV3(
                self.message_id,
                self.message_format,
                self.address,
                self.encoded,
                self._noted(),
                self.expiration,
            ),
        )
        return writer.getvalue()

    def copy(self) -> Self:
        """Give a message of its own with the same sections, in no queue."""
        other = super().copy()
        other.encoded = self.encoded
        other.message_format = self.message_format
        other._note_as(self)
        other._carried = self._carried
        other.has_delivery_annotations = self.has_delivery_annotations
        return other
