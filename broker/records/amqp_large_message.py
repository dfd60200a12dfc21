"""A large AMQP message: all its sections are stored beside the journal, as they came.

    peer ─▶ head │ body …                       stored, byte for byte
              └─ decoded once ─▶ headers and properties of Core; the body is read when asked for

Its record is that of Artemis's AMQPLargeMessagePersister: the sections before the body, with where
they stand in the file. What the broker notes in it is said to AMQP's consumers in sections that
take the place of those of the file (`reencoded`).
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, Self

from broker.model.encoding import Body, BodyReader, BodyWriter
from broker.model.large_body import LARGE_SIZE
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.model.properties import PropertyType
from broker.records.amqp_large_body import AmqpLargeBody, StoredPart
from broker.records.amqp_message import arrived
from broker.records.amqp_rewriting import rewritten, sent_again, to_deliver, with_priority
from broker.records.amqp_sections import (
    body_start,
    read_head,
    read_sections,
    sections_of_values,
)
from broker.records.amqp_to_core import (
    ORIGINAL_ENCODING,
    body_type,
    content_of,
    content_type_of,
)
from broker.records.noted_properties import NotedProperties
from broker.records.stored_messages import AmqpLargeMessage, read_message, write_message
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from broker.model.large_body import LargeBody
    from broker.model.routing_type import RoutingType
    from broker.records.amqp_to_core import CoreContent

__all__ = ["LargeAmqpMessage"]

log = logging.getLogger("broker")

_NULL: Final = b"\x40"
_NAMES: Final = ("header", "message_annotations", "properties", "application_properties")


class LargeAmqpMessage(NotedProperties):
    """See the module's text; `from_record()`, `received()` make one. Belongs to the event loop.

    Attributes:
        message_format: 0 is that of the standard.
        body_at: where the body begins in what is stored.
    """

    __slots__ = (
        "_content_type",
        "_head",
        "_is_reencoded",
        "_positions",
        "_priority_said",
        "_sizes",
        "body_at",
        "message_format",
    )

    message_format: int
    body_at: int
    # The sections before the body, without delivery annotations.
    _head: bytes
    # In what is stored; -1 where there is none.
    _positions: dict[str, int]
    # Of the header and the delivery annotations there.
    _sizes: tuple[int, int]
    # The head is not that of what is stored.
    _is_reencoded: bool
    _content_type: str | None
    # By the head.
    _priority_said: int

    @classmethod
    def received(
        cls,
        start: bytes,
        address: str | None,
        now_ms: int,
        routing_type: RoutingType | None = None,
        message_format: int = 0,
    ) -> Self | None:
        """Make the message of which the first bytes have come; its body is to be given to it.

        Args:
            start: as many as have come.
            address: of the link; None leaves it to the message.
            now_ms: when it came, ms since 1970.
            routing_type: of the link; None leaves it to the message.
            message_format: of the transfer.

        Returns:
            None where it has no body.

        Raises:
            RecordFormatError: these bytes are not AMQP sections, or too few to tell.
        """
        head = read_head(start)
        found = body_start(start[head.size :])
        if found is None:
            return None
        sections = read_sections(start[: head.size])
        content_type = content_type_of(sections)
        kind, encoding = body_type(found, content_type)
        content = content_of(sections, (), kind, b"", encoding)
        made = cls._made(content, arrived(content, now_ms, routing_type))
        made.durable = content.durable is True
        if address is not None:
            made.address = address
        made._pack()
        made.message_format = message_format
        made.body_at = head.size
        made._head = b"".join(head.sections[name] for name in _NAMES if name in head.sections)
        made._positions = head.positions
        made._sizes = (
            len(head.sections.get("header", b"")),
            len(head.sections.get("delivery_annotations", b"")),
        )
        made._is_reencoded = False
        made._content_type = content_type
        made._extra = {}
        made._address_read = None
        return made

    @classmethod
    def from_record(cls, body: Body) -> Self:
        """Read the body of record 45 by persister AMQP_LARGE; its body is to be given to it.

        Raises:
            RecordFormatError: another persister, or values that are not AMQP sections.
        """
        reader = BodyReader(body)
        stored = read_message(reader)
        if not isinstance(stored, AmqpLargeMessage):
            raise reader.fail(f"message persister {stored.persister.name}")
        values = {name: getattr(stored, name) for name in _NAMES}
        sections = sections_of_values(*values.values())
        head = b"".join(value for value in values.values() if value != _NULL)
        found = read_head(head).sections if head else {}
        if any(found.get(name, _NULL) != value for name, value in values.items()):
            raise reader.fail("a saved section is another one than its name says")
        extra = stored.extra_properties or ()
        # What it is, its body says: see `large`.
        content = content_of(sections, extra, MessageType.BYTES, b"", 0)
        made = cls._made(content, stored.expiration)
        made.durable = stored.durable
        made.message_id = stored.message_id
        if stored.address is not None:
            made.address = stored.address
        made._pack()
        made.message_format = stored.message_format
        made.body_at = max(0, stored.remaining_body_position)
        made._head = head
        made._positions = {
            "header": stored.header_position,
            "delivery_annotations": stored.delivery_annotations_position,
            "message_annotations": stored.message_annotations_position,
            "properties": stored.properties_position,
            "application_properties": stored.application_properties_position,
        }
        made._sizes = stored.encoded_header_size, stored.encoded_delivery_annotations_size
        made._is_reencoded = stored.reencoded
        made._content_type = content_type_of(sections)
        made._extra = {item.name: item for item in extra}
        made._address_read = stored.address
        return made

    @classmethod
    def _made(cls, content: CoreContent, expiration: int) -> Self:
        return cls(
            content.address,
            b"",
            type=content.type,
            priority=content.priority,
            expiration=expiration,
            timestamp=content.timestamp,
            user_id=content.user_id,
            properties=content.properties.values(),
        )

    def _pack(self) -> None:
        """Keep what was decoded as bytes."""
        self._read_form(self.encode())
        self.is_large = True
        self._is_marked = False
        self._priority_said = self.priority

    @property
    def is_large_core(self) -> bool:
        """Its record is not that of a large Core message."""
        return False

    @property
    def large(self) -> LargeBody | None:
        """Its body as Core's consumers read it; None until it was given what is stored."""
        found: LargeBody | None = Message.large.__get__(self)
        return found

    @large.setter
    def large(self, value: LargeBody | None) -> None:
        if value is not None and not isinstance(value, AmqpLargeBody):
            value = AmqpLargeBody(value, self.body_at, self._content_type)
            if value.stored.size > self.body_at:
                # One that was there before says what it is.
                self._take_type(*self._look_at(value))
        Message.large.__set__(self, value)  # type: ignore[attr-defined] # It is a property.

    @property
    def large_size(self) -> int:
        """See Message; of all sections."""
        large = self.large
        return large.stored.size if isinstance(large, AmqpLargeBody) else 0

    def look(self) -> None:
        """Find out what its body is for Core's consumers; all of it is stored now."""
        large = self.large
        assert isinstance(large, AmqpLargeBody), "it was given what is stored"
        self._take_type(*self._look_at(large))

    def _look_at(self, body: AmqpLargeBody) -> tuple[int, int]:
        try:
            return body.look()
        except JournalIOError as error:
            # No reason not to start; who reads it is told again.
            log.error("AMQ222051: large message %d cannot be read: %s", self.message_id, error)
            return MessageType.BYTES, 0

    def _take_type(self, kind: int, encoding: int) -> None:
        if self.type != kind:
            self.type = kind
        if encoding and self.get(ORIGINAL_ENCODING) != encoding:
            self.note(ORIGINAL_ENCODING, PropertyType.SHORT, encoding)

    # --- what an AMQP consumer gets -----------------------------------------------------------

    def head_to_deliver(self, delivery_count: int) -> bytes:
        """Give the sections before the body.

        Args:
            delivery_count: how often it was delivered before.
        """
        self._rewrite()
        return self._head if delivery_count <= 0 else to_deliver(self._head, delivery_count)

    def body_to_deliver(self) -> StoredPart:
        """Give what follows them, as it came."""
        large = self.large
        assert isinstance(large, AmqpLargeBody), "it was given what is stored"
        return StoredPart(large.stored, min(self.body_at, large.stored.size))

    def _rewrite(self) -> None:
        """Let the sections say where it came from, as those of Artemis's copies do."""
        if self._is_marked:
            self._is_marked = False
            self._is_reencoded = True
            self._head = rewritten(
                self._head, self._extra, self.address, expires=self.expiration != 0
            )
        if self.priority != self._priority_said:
            self._priority_said = self.priority
            self._is_reencoded = True
            self._head = with_priority(self._head, self.priority)

    def send_again(self, duplicate_id: str, routing_type: RoutingType | None) -> None:
        """Let its head say that this is another sending; what it is to Core is not looked at.

        Args:
            duplicate_id: of this sending.
            routing_type: None leaves what the message says.
        """
        self._rewrite()
        self._head = sent_again(self._head, duplicate_id, routing_type)
        self._is_reencoded = True

    # --- what a Core consumer gets ------------------------------------------------------------

    def encode_headers(self) -> bytes:
        """Give headers and properties of Core, with the body's size: its JMS client asks for it."""
        large = self.large
        if large is not None and self.get(LARGE_SIZE) is None:
            self.note(LARGE_SIZE, PropertyType.LONG, large.size)
        return super().encode_headers()

    # --- records ------------------------------------------------------------------------------

    def record(self) -> bytes:
        """Give the body of record 45, by the persister of large AMQP messages."""
        self._rewrite()
        sections = read_head(self._head).sections if self._head else {}
        positions = self._positions
        writer = BodyWriter()
        write_message(
            writer,
            AmqpLargeMessage(
                message_id=self.message_id,
                durable=self.durable,
                message_format=self.message_format,
                address=self.address,
                extra_properties=self._noted(),
                header_position=positions.get("header", -1),
                encoded_header_size=self._sizes[0],
                header=sections.get("header", _NULL),
                delivery_annotations_position=positions.get("delivery_annotations", -1),
                encoded_delivery_annotations_size=self._sizes[1],
                message_annotations_position=positions.get("message_annotations", -1),
                message_annotations=sections.get("message_annotations", _NULL),
                properties_position=positions.get("properties", -1),
                properties=sections.get("properties", _NULL),
                application_properties_position=positions.get("application_properties", -1),
                remaining_body_position=self.body_at,
                application_properties=sections.get("application_properties", _NULL),
                expiration=self.expiration,
                reencoded=self._is_reencoded,
            ),
        )
        return writer.getvalue()

    def copy(self) -> Self:
        """Give a message of its own with the same sections, in no queue."""
        other = super().copy()
        other._note_as(self)
        for name in LargeAmqpMessage.__slots__:
            setattr(other, name, getattr(self, name))
        return other
