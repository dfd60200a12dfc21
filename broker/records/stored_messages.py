"""Messages as the journal stores them: Core (types 45 and 30) and AMQP (type 45).

A type 45 body starts with the number of its persister, which says how the rest is laid out. The
message itself stays the bytes that its protocol made: a Core body is not looked into here, of an
AMQP message only the sections before its body, and only when asked (`amqp_sections.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from broker.model.encoding import (
    BIT,
    BOOLEAN,
    BYTE,
    BYTES,
    INT,
    LONG,
    NSS,
    UUID_BYTES,
    BodyReader,
    BodyWriter,
    Codec,
    nullable,
)
from broker.model.message_types import Persister
from broker.model.properties import TYPED_PROPERTIES, TypedProperties
from broker.model.wire import RecordType, WireRecord, nested, wire
from broker.records.amqp_values import value_size

# `endOfBody` counts from the start of a Core packet: 4 bytes size, 1 type, 8 channel.
_PACKET_HEADER_SIZE: Final = 13
# The property in which an AMQP message keeps the address it was sent to.
AMQP_ADDRESS_PROPERTY: Final = "_AMQ_AD"


@dataclass(frozen=True, slots=True)
class MessageHeaders(WireRecord):
    """Headers and properties of a Core message.

    Attributes:
        message_id: as it was when the message was encoded; see `CoreMessage.message_id`.
        address: likewise.
        user_id: 16 bytes, or None.
        type: a `MessageType`; others occur.
        durable: survives a restart, where its queues do.
        expiration: ms since 1970, 0 is never.
        timestamp: ms since 1970, 0 is none.
        priority: 0 … 9.
        properties: in the order of the bytes.
    """

    message_id: int = wire(LONG)
    address: str | None = wire(NSS)
    user_id: bytes | None = wire(nullable(UUID_BYTES))
    type: int = wire(BYTE)
    durable: bool = wire(BIT)
    expiration: int = wire(LONG)
    timestamp: int = wire(LONG)
    priority: int = wire(BYTE)
    properties: TypedProperties = wire(TYPED_PROPERTIES)


@dataclass(frozen=True, slots=True)
class CoreMessage(WireRecord):
    """A Core message; also one that came by MQTT, STOMP or OpenWire.

    Attributes:
        message_id: counts, where the headers say otherwise.
        address: likewise, unless it is None.
        body: as the client wrote it, by `headers.type`.
        headers: the rest.
        trailing: bytes inside the stored buffer behind the properties; writers should leave none.
    """

    record_type = RecordType.ADD_MESSAGE_PROTOCOL
    persister = Persister.CORE

    message_id: int
    address: str | None
    body: bytes
    headers: MessageHeaders
    trailing: bytes = b""

    @classmethod
    def read(cls, reader: BodyReader) -> CoreMessage:
        """Read what follows the persister byte."""
        message_id = reader.read_long()
        address = NSS.read(reader)
        buffer = BodyReader(reader.read_sized_bytes())
        body = buffer.read_bytes(buffer.read_int() - _PACKET_HEADER_SIZE)
        headers = MessageHeaders.read(buffer)
        return cls(message_id, address, body, headers, buffer.read_rest())

    def write(self, writer: BodyWriter) -> None:
        """Append what follows the persister byte."""
        writer.write_long(self.message_id)
        NSS.write(writer, self.address)
        writer.write_sized_bytes(self._encode_buffer())

    def _encode_buffer(self) -> bytes:
        buffer = BodyWriter()
        buffer.write_int(len(self.body) + _PACKET_HEADER_SIZE)
        buffer.write_bytes(self.body)
        self.headers.write(buffer)
        buffer.write_bytes(self.trailing)
        return buffer.getvalue()

    @property
    def persistent_size(self) -> int:
        """Bytes of the stored buffer, which the broker counts as the message's size."""
        return len(self._encode_buffer())

    @property
    def current_headers(self) -> MessageHeaders:
        """The headers with the message id and address that count."""
        address = self.headers.address if self.address is None else self.address
        return replace(self.headers, message_id=self.message_id, address=address)


@dataclass(frozen=True, slots=True)
class LargeCoreMessage(WireRecord):
    """A Core message whose body is a file of its own."""

    record_type = RecordType.ADD_LARGE_MESSAGE

    headers: MessageHeaders = wire(nested(MessageHeaders))


def _read_extra(reader: BodyReader) -> TypedProperties | None:
    size = reader.read_int()
    if size == 0:
        return None
    # As Artemis does: the size only says whether they are there.
    return TYPED_PROPERTIES.read(reader)


def _write_extra(writer: BodyWriter, properties: TypedProperties | None) -> None:
    if properties is None:
        writer.write_int(0)
        return
    encoded = BodyWriter()
    TYPED_PROPERTIES.write(encoded, properties)
    writer.write_sized_bytes(encoded.getvalue())


EXTRA_PROPERTIES: Final = Codec(_read_extra, _write_extra)
"""What a broker adds beside the sections of an AMQP message; None is nothing."""


@dataclass(frozen=True, slots=True)
class AmqpMessageV1(WireRecord):
    """An AMQP message as the first versions stored it."""

    record_type = RecordType.ADD_MESSAGE_PROTOCOL
    persister = Persister.AMQP_V1

    message_id: int = wire(LONG)
    message_format: int = wire(LONG)
    address: str | None = wire(NSS)
    encoded: bytes = wire(BYTES)


@dataclass(frozen=True, slots=True)
class AmqpMessageV2(WireRecord):
    """An AMQP message with properties that the broker added."""

    record_type = RecordType.ADD_MESSAGE_PROTOCOL
    persister = Persister.AMQP_V2

    message_id: int = wire(LONG)
    message_format: int = wire(LONG)
    address: str | None = wire(NSS)
    encoded: bytes = wire(BYTES)
    extra_properties: TypedProperties | None = wire(EXTRA_PROPERTIES)


@dataclass(frozen=True, slots=True)
class AmqpMessageV3(WireRecord):
    """An AMQP message as it is written today; `expiration` in ms since 1970, 0 is never."""

    record_type = RecordType.ADD_MESSAGE_PROTOCOL
    persister = Persister.AMQP_V3

    message_id: int = wire(LONG)
    message_format: int = wire(LONG)
    address: str | None = wire(NSS)
    encoded: bytes = wire(BYTES)
    extra_properties: TypedProperties | None = wire(EXTRA_PROPERTIES)
    expiration: int = wire(LONG)


def _read_amqp_value(reader: BodyReader) -> bytes:
    return reader.read_bytes(value_size(reader))


_AMQP_VALUE: Final = Codec(_read_amqp_value, BodyWriter.write_bytes)


@dataclass(frozen=True, slots=True)
class AmqpLargeMessage(WireRecord):
    """An AMQP message whose bytes are a file of their own.

    Attributes:
        message_id: also the file's name.
        durable: whether the file is kept over a restart.
        message_format: 0 for AMQP's own.
        address: where it was sent to.
        extra_properties: what the broker added.
        header_position: where the header section's value starts in the file, in bytes; -1 if none.
        encoded_header_size: of that section, in bytes.
        header: that section as one AMQP value, `40` when absent.
        delivery_annotations_position: as above.
        encoded_delivery_annotations_size: as above.
        message_annotations_position: as above.
        message_annotations: as above.
        properties_position: as above.
        properties: as above.
        application_properties_position: as above.
        remaining_body_position: where the body starts.
        application_properties: as above.
        expiration: ms since 1970, 0 is never or not told by an older record.
        reencoded: the sections above replace those of the file.
    """

    record_type = RecordType.ADD_MESSAGE_PROTOCOL
    persister = Persister.AMQP_LARGE

    message_id: int = wire(LONG)
    durable: bool = wire(BOOLEAN)
    message_format: int = wire(LONG)
    address: str | None = wire(NSS)
    extra_properties: TypedProperties | None = wire(EXTRA_PROPERTIES)
    header_position: int = wire(INT)
    encoded_header_size: int = wire(INT)
    header: bytes = wire(_AMQP_VALUE)
    delivery_annotations_position: int = wire(INT)
    encoded_delivery_annotations_size: int = wire(INT)
    message_annotations_position: int = wire(INT)
    message_annotations: bytes = wire(_AMQP_VALUE)
    properties_position: int = wire(INT)
    properties: bytes = wire(_AMQP_VALUE)
    application_properties_position: int = wire(INT)
    remaining_body_position: int = wire(INT)
    application_properties: bytes = wire(_AMQP_VALUE)
    expiration: int = wire(LONG, default=0)
    reencoded: bool = wire(BOOLEAN, default=False)


AmqpMessage: TypeAlias = AmqpMessageV1 | AmqpMessageV2 | AmqpMessageV3
StoredMessage: TypeAlias = CoreMessage | AmqpMessage | AmqpLargeMessage

_BY_PERSISTER: Final[dict[int, type[StoredMessage]]] = {
    Persister.CORE: CoreMessage,
    Persister.AMQP_V1: AmqpMessageV1,
    Persister.AMQP_V2: AmqpMessageV2,
    Persister.AMQP_V3: AmqpMessageV3,
    Persister.AMQP_LARGE: AmqpLargeMessage,
}


def read_message(reader: BodyReader) -> StoredMessage:
    """Read a type 45 body.

    Raises:
        RecordFormatError: unknown persister, or bytes that do not fit its layout.
    """
    persister = reader.read_byte()
    kind = _BY_PERSISTER.get(persister)
    if kind is None:
        raise reader.fail(f"unknown message persister {persister}")
    return kind.read(reader)


def write_message(writer: BodyWriter, message: StoredMessage) -> None:
    """Append a type 45 body."""
    writer.write_byte(message.persister)
    message.write(writer)
