"""A message that came by AMQP: kept as it was sent, and seen as the Core message it becomes.

    encoded sections ── never changed ──▶ records: persister 5, as Artemis writes it today
           └─ converted once, when it is read ─▶ headers, properties, body of Core

What a broker notes in it, where it came from say, stands in properties beside the sections. A
change that has no place there (its priority, its body) makes it a Core message for good.
"""

from __future__ import annotations

import time
import zlib
from typing import TYPE_CHECKING, Self

from broker.model.encoding import Body, BodyReader, BodyWriter
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.records.amqp_to_core import ADDRESS_PROPERTY, core_content
from broker.records.stored_messages import (
    AmqpLargeMessage,
    AmqpMessageV1,
    AmqpMessageV3,
    CoreMessage,
    read_message,
    write_message,
)

if TYPE_CHECKING:
    from broker.model.properties import PropertyValue

__all__ = ["AmqpMessage"]


class AmqpMessage(Message):
    """See the module's text; `from_record()` makes one. Belongs to the event loop.

    Attributes:
        encoded: all its sections, as they were sent.
        message_format: 0 is that of the standard.
    """

    __slots__ = ("_address_read", "_carried", "_extra", "encoded", "message_format")

    encoded: bytes
    message_format: int
    # Properties beside the sections.
    _extra: dict[str, Property]
    # The address of its record; another one is noted among these.
    _address_read: str | None
    # What the sections say and nothing beside them can; None makes it a Core message.
    _carried: tuple[object, ...] | None

    @classmethod
    def from_record(cls, body: Body) -> Self:
        """Read the body of record 45 by one of the persisters AMQP_V1, AMQP_V2, AMQP_V3.

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
        made = cls(
            content.address if stored.address is None else stored.address,
            content.body,
            type=content.type,
            # What says nothing is durable: else it would not have been recorded.
            durable=content.durable is not False,
            priority=content.priority,
            expiration=expiration,
            timestamp=content.timestamp,
            user_id=content.user_id,
            message_id=stored.message_id,
            properties=content.properties.values(),
        )
        # Its bytes, and what they say of the broker's own properties.
        made._read_form(made.encode())
        made.encoded = stored.encoded
        made.message_format = stored.message_format
        made._extra = {item.name: item for item in extra}
        made._address_read = stored.address
        made._carried = made._of_sections()
        return made

    def _of_sections(self) -> tuple[object, ...]:
        body = zlib.crc32(self.body)
        return self.type, self.durable, self.priority, self.timestamp, self.user_id, body

    def record(self) -> bytes:
        """Give the body of record 45, by the persister that fits."""
        if self._carried is not None and self._of_sections() != self._carried:
            # For good: a later change must not bring back what was replaced.
            self._carried = None
        if self._carried is None:
            return Message.record(self)
        extra = dict(self._extra)
        address = self.address
        if address is not None and address != self._address_read:
            extra[ADDRESS_PROPERTY] = Property(ADDRESS_PROPERTY, PropertyType.STRING, address)
        writer = BodyWriter()
        write_message(
            writer,
            AmqpMessageV3(
                self.message_id,
                self.message_format,
                address,
                self.encoded,
                tuple(extra.values()) or None,
                self.expiration,
            ),
        )
        return writer.getvalue()

    def copy(self) -> Self:
        """Give a message of its own with the same sections, in no queue."""
        other = super().copy()
        other.encoded = self.encoded
        other.message_format = self.message_format
        other._extra = dict(self._extra)
        other._address_read = self._address_read
        other._carried = self._carried
        return other

    def set(self, name: str, kind: PropertyType, value: PropertyValue) -> None:
        """Set a property beside the sections, instead of any of that name."""
        super().set(name, kind, value)
        self._extra[name] = Property(name, kind, value)

    def set_bytes(self, name: str, value: bytes) -> None:
        """Set a property of bytes beside the sections."""
        self.set(name, PropertyType.BYTES, value)

    def remove(self, name: str) -> None:
        """Remove a property; it comes again after a restart if it stands in the sections."""
        super().remove(name)
        self._extra.pop(name, None)
