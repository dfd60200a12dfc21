"""Bodies: OpenWire's content of a message and Core's body, for each type of message.

    text      int32 size, modified UTF-8      nullable text
    map       primitive map                   typed properties
    stream    primitive values                values behind Core's tags
    object    as it is                        int32 size, as it is: bytes, never deserialised
    bytes     as it is                        as it is
    plain     as it is                        as it is

Compressed content is stored uncompressed, and compressed again for who gets it, as in Artemis.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, Final

from broker.model.bodies import decode_text, encode_stream, encode_text, stream_items
from broker.model.encoding import BodyReader, BodyWriter, RecordFormatError
from broker.model.message_types import MessageType
from broker.model.properties import TYPED_PROPERTIES
from broker.protocols.openwire import commands as c
from broker.protocols.openwire.decoding import broken
from broker.protocols.openwire.modified_utf8 import decode, encode
from broker.protocols.openwire.primitives import read_map, read_values, write_map, write_values

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CLASSES", "TYPES", "body_of", "content_of", "packed"]

_INT: Final = struct.Struct(">i")
# What a compressed body may become: it is refused where it would be more.
_UNPACKED_MAX: Final = 128 * 1024 * 1024

TYPES: Final[dict[type[c.ActiveMQMessage], MessageType]] = {
    c.ActiveMQMessage: MessageType.DEFAULT,
    c.ActiveMQBytesMessage: MessageType.BYTES,
    c.ActiveMQMapMessage: MessageType.MAP,
    c.ActiveMQObjectMessage: MessageType.OBJECT,
    c.ActiveMQStreamMessage: MessageType.STREAM,
    c.ActiveMQTextMessage: MessageType.TEXT,
}
CLASSES: Final[dict[int, type[c.ActiveMQMessage]]] = {
    int(number): one for one, number in TYPES.items()
}


# --- of a client ------------------------------------------------------------------------------


def body_of(message: c.ActiveMQMessage) -> bytes:
    """Give the body that Core stores of a message.

    Raises:
        OpenWireError: its content is not what its type says.
    """
    content = message.content
    kind = TYPES[type(message)]
    if content is not None and message.compressed:
        content = _unpacked(content, has_size=kind is MessageType.BYTES)
    try:
        return _BODIES[kind](content)
    except RecordFormatError as error:
        raise broken(f"a {type(message).__name__} that cannot be read: {error}") from None


def _unpacked(content: bytes, *, has_size: bool) -> bytes:
    if has_size:
        # The size that it was told is not believed: what comes is counted.
        content = content[_INT.size :]
    unpacker = zlib.decompressobj()
    try:
        made = unpacker.decompress(content, _UNPACKED_MAX)
    except zlib.error as error:
        raise broken(f"a compressed body cannot be unpacked: {error}") from None
    if not unpacker.eof:
        raise broken(f"a compressed body ends too early, or has more than {_UNPACKED_MAX} bytes")
    return made


def _text_body(content: bytes | None) -> bytes:
    if content is None:
        return encode_text(None)
    reader = BodyReader(content)
    size = reader.read_int()
    if size == -1:
        return encode_text(None)
    try:
        text = decode(reader.read_bytes(size))
    except UnicodeDecodeError as error:
        raise reader.fail(f"a text is not UTF-8: {error.reason}") from None
    return encode_text(text)


def _map_body(content: bytes | None) -> bytes:
    writer = BodyWriter()
    TYPED_PROPERTIES.write(writer, () if content is None else tuple(read_map(content)))
    return writer.getvalue()


def _stream_body(content: bytes | None) -> bytes:
    return b"" if content is None else encode_stream(read_values(content))


def _object_body(content: bytes | None) -> bytes:
    return b"" if content is None else _INT.pack(len(content)) + content


def _plain_body(content: bytes | None) -> bytes:
    return content or b""


_BODIES: Final[dict[MessageType, Callable[[bytes | None], bytes]]] = {
    MessageType.DEFAULT: _plain_body,
    MessageType.BYTES: _plain_body,
    MessageType.MAP: _map_body,
    MessageType.OBJECT: _object_body,
    MessageType.STREAM: _stream_body,
    MessageType.TEXT: _text_body,
}


# --- for a client -----------------------------------------------------------------------------


def content_of(kind: int, body: bytes) -> tuple[type[c.ActiveMQMessage], bytes | None]:
    """Give a message's class and content for its Core type and body.

    A body that is not what its type says is sent as bytes: the consumer of a message that did not
    come at all would be stuck behind it.
    """
    made = CLASSES.get(kind, c.ActiveMQBytesMessage)
    try:
        return made, _CONTENTS[TYPES[made]](body)
    except (RecordFormatError, UnicodeError, struct.error, TypeError):
        return c.ActiveMQBytesMessage, body


def packed(kind: type[c.ActiveMQMessage], content: bytes) -> bytes:
    """Give content compressed, as a client that compresses sends it."""
    made = zlib.compress(content)
    return _INT.pack(len(content)) + made if kind is c.ActiveMQBytesMessage else made


def _text_content(body: bytes) -> bytes | None:
    text = decode_text(body)
    if text is None:
        return None
    data = encode(text)
    return _INT.pack(len(data)) + data


def _map_content(body: bytes) -> bytes | None:
    if not body:
        return None
    return write_map(TYPED_PROPERTIES.read(BodyReader(body)))


def _stream_content(body: bytes) -> bytes | None:
    return write_values(stream_items(body)) if body else None


def _object_content(body: bytes) -> bytes | None:
    if len(body) < _INT.size:
        return None
    size = _INT.unpack_from(body)[0]
    # Core's own clients store an object without its size.
    return body[_INT.size :] if size == len(body) - _INT.size else body


def _plain_content(body: bytes) -> bytes | None:
    return body or None


_CONTENTS: Final[dict[MessageType, Callable[[bytes], bytes | None]]] = {
    MessageType.DEFAULT: _plain_content,
    MessageType.BYTES: _plain_content,
    MessageType.MAP: _map_content,
    MessageType.OBJECT: _object_content,
    MessageType.STREAM: _stream_content,
    MessageType.TEXT: _text_content,
}
