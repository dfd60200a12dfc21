"""Reads the document, ours or Artemis's, whatever its size.

    document ─▶ expat, some KiB at a time ─▶ addresses, queues, messages, in its order

A body waits in memory until it has BODY_MEMORY_MAX bytes, then in a temporary file; the caller that
gets the message reads it there. Unknown elements and attributes are skipped, as in Artemis. A
document type is refused, since entities could expand a small document to a very large one.
"""

from __future__ import annotations

import base64
import binascii
import io
import struct
import tempfile
import uuid
from array import array
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Final, cast
from xml.parsers import expat

from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.model.routing_type import RoutingType
from broker.printing.xml import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.model.properties import PropertyValue

__all__ = [
    "AddressElement",
    "DocumentError",
    "Element",
    "MessageElement",
    "OldBindingElement",
    "QueueElement",
    "read_document",
    "read_sorted",
]

READ_SIZE: Final = 64 * 1024
BODY_MEMORY_MAX: Final = 1024 * 1024
PRIORITY_MAX: Final = 9
# Of one CDATA section, decoded in parts: a multiple of four characters.
_DECODED_AT_ONCE: Final = 64 * 1024

_TYPES: Final = {word: kind for kind, word in names.MESSAGE_TYPES.items()}
_INTEGERS: Final = {
    "byte": (PropertyType.BYTE, 8),
    "short": (PropertyType.SHORT, 16),
    "integer": (PropertyType.INT, 32),
    "long": (PropertyType.LONG, 64),
}
_FLOATS: Final = {"float": PropertyType.FLOAT, "double": PropertyType.DOUBLE}
_FLOAT_WORDS: Final = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}


class DocumentError(ValueError):
    """The document is not what it should be; the text says where."""


@dataclass(frozen=True, slots=True)
class AddressElement:
    """An address that is to be there."""

    name: str
    routing_types: tuple[RoutingType, ...]


@dataclass(frozen=True, slots=True)
class QueueElement:
    """A queue that is to be there; `filter` is empty where it has none."""

    name: str
    address: str
    filter: str
    routing_type: RoutingType


@dataclass(frozen=True, slots=True)
class OldBindingElement:
    """A queue as versions 1.x exported it, with `jms.queue.` or `jms.topic.` before its names."""

    name: str
    address: str
    filter: str


@dataclass(slots=True)
class MessageElement:
    """A message.

    Attributes:
        message_id: as the document has it; the broker gives another.
        message: durable, without its body, and with a new user id where it had one.
        queues: names of those that are to have it.
        body: its bytes, to be read from the beginning; closed by the caller that took the message.
        body_size: of them.
    """

    message_id: int
    message: Message
    queues: list[str] = field(default_factory=list)
    body: BinaryIO = field(default_factory=io.BytesIO)
    body_size: int = 0


Element = AddressElement | QueueElement | OldBindingElement | MessageElement


def read_document(source: BinaryIO) -> Iterator[Element]:
    """Give what a document says, in its order.

    Raises:
        DocumentError: it is no such document; the text says in which line.
        OSError: it cannot be read.
    """
    with closing(_Reader()) as reader:
        while data := source.read(READ_SIZE):
            yield from reader.feed(data)
        yield from reader.feed(b"", is_last=True)


def read_sorted(source: BinaryIO) -> Iterator[Element]:
    """Give the same with the messages behind all else, by their ids.

    The document is read twice, which needs a file; memory: 24 bytes a message.

    Raises:
        DocumentError: as above.
        OSError: as above, or it is no file.
    """
    reader = _Reader(is_finding=True)
    while data := source.read(READ_SIZE):
        yield from reader.feed(data)
    yield from reader.feed(b"", is_last=True)
    places = reader.places
    for number in sorted(range(len(places.ids)), key=places.ids.__getitem__):
        source.seek(places.starts[number])
        found = source.read(places.ends[number] - places.starts[number])
        with closing(_Reader(encoding=reader.encoding, is_fragment=True)) as one:
            yield from one.feed(found)
            yield from one.feed(f"</{names.MESSAGE}>".encode(), is_last=True)


@dataclass(slots=True)
class _Places:
    """Where messages stand in a document: their ids, and the bytes up to the closing tag."""

    ids: array[int] = field(default_factory=lambda: array("q"))
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))


class _Reader:
    """One pass over one document.

    Args:
        encoding: of a fragment; a document says its own.
        is_finding: note where the messages are, and do not read them.
        is_fragment: a message alone.
    """

    def __init__(
        self, *, encoding: str | None = None, is_finding: bool = False, is_fragment: bool = False
    ) -> None:
        self.encoding = encoding
        self.places = _Places()
        self._is_finding = is_finding
        self._is_root_expected = not is_fragment
        self._found: list[Element] = []
        self._message: MessageElement | None = None
        self._body: _Body | None = None
        parser = self._parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declare
        parser.StartDoctypeDeclHandler = self._refuse_doctype
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        self._readers: dict[str, Callable[[dict[str, str]], None]] = {
            names.ADDRESS_BINDING: self._read_address,
            names.QUEUE_BINDING: self._read_queue,
            names.OLD_BINDING: self._read_old_binding,
            names.MESSAGE: self._read_message,
            names.PROPERTY: self._read_property,
            names.QUEUE: self._read_queue_name,
            names.BODY: self._begin_body,
        }

    def feed(self, data: bytes, *, is_last: bool = False) -> list[Element]:
        """Take the next bytes; give what they complete."""
        try:
            self._parser.Parse(data, is_last)
        except expat.ExpatError as error:
            raise DocumentError(f"line {error.lineno}: {expat.ErrorString(error.code)}") from error
        except (ValueError, KeyError) as error:
            what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
            raise DocumentError(f"line {self._parser.CurrentLineNumber}: {what}") from error
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        """Close the bodies that no caller took."""
        if self._body is not None:
            self._body.close()
        for element in (self._message, *self._found):
            if isinstance(element, MessageElement):
                element.body.close()

    # What the parser tells.

    def _declare(self, version: str, encoding: str | None, standalone: int) -> None:
        del version, standalone
        self.encoding = encoding

    def _refuse_doctype(self, name: str, *rest: object) -> None:
        raise ValueError("a document type is not allowed")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if self._is_root_expected:
            if name != names.DOCUMENT:
                raise ValueError(f"<{name}> where <{names.DOCUMENT}> should be")
            self._is_root_expected = False
            return
        reader = self._readers.get(name)
        if reader is not None:
            reader(attributes)

    def _end(self, name: str) -> None:
        if name == names.BODY and self._body is not None:
            self._end_body()
        elif name == names.MESSAGE:
            if self._is_finding:
                self.places.ends.append(self._parser.CurrentByteIndex)
            elif self._message is not None:
                self._found.append(self._message)
                self._message = None

    def _text(self, text: str) -> None:
        if self._body is not None:
            self._body.take(text)

    # Elements.

    def _read_address(self, given: dict[str, str]) -> None:
        words = [word.strip() for word in given.get("routing-types", "").split(",")]
        kinds = tuple(_routing_type(word) for word in words if word)
        self._found.append(AddressElement(given["name"], kinds))

    def _read_queue(self, given: dict[str, str]) -> None:
        kind = _routing_type(given["routing-type"])
        self._found.append(
            QueueElement(given["name"], given["address"], given.get("filter-string", ""), kind)
        )

    def _read_old_binding(self, given: dict[str, str]) -> None:
        self._found.append(
            OldBindingElement(given["queue-name"], given["address"], given.get("filter-string", ""))
        )

    def _read_message(self, given: dict[str, str]) -> None:
        message_id = _integer("id", given.get("id", "0"), 64)
        if self._is_finding:
            self.places.ids.append(message_id)
            self.places.starts.append(self._parser.CurrentByteIndex)
            return
        message = Message(
            durable=True,
            type=_TYPES.get(given.get("type", ""), 0),
            priority=_priority(given.get("priority", "0")),
            expiration=_integer("expiration", given.get("expiration", "0"), 64),
            timestamp=_integer("timestamp", given.get("timestamp", "0"), 64),
            user_id=uuid.uuid1().bytes if "user-id" in given else None,
        )
        self._message = MessageElement(message_id, message)

    def _read_property(self, given: dict[str, str]) -> None:
        if self._message is not None:
            item = _property(given["name"], given["value"], given.get("type"))
            self._message.message.set(*item)

    def _read_queue_name(self, given: dict[str, str]) -> None:
        if self._message is not None:
            self._message.queues.append(given["name"])

    def _begin_body(self, given: dict[str, str]) -> None:
        del given  # Whether it is large its size says.
        if self._message is not None:
            self._body = _Body()

    def _end_body(self) -> None:
        assert self._message is not None, "a body belongs to one"
        assert self._body is not None, "the caller looked"
        self._message.body, self._message.body_size = self._body.finish()
        self._body = None


class _Body:
    """The bytes of a body as they come, each run of characters without a space for itself."""

    def __init__(self) -> None:
        self._target: BinaryIO = io.BytesIO()
        self._parts: list[str] = []
        self._pending_size = 0

    def take(self, text: str) -> None:
        """Take the next characters."""
        # A run ends where white space is, and not where a piece of text ends.
        runs = text.split()
        if not runs:
            self._flush(is_end=True)
            return
        if text[0].isspace():
            self._flush(is_end=True)
        for run in runs[:-1]:
            self._add(run)
            self._flush(is_end=True)
        self._add(runs[-1])
        if text[-1].isspace():
            self._flush(is_end=True)
        elif self._pending_size >= _DECODED_AT_ONCE:
            self._flush(is_end=False)

    def _add(self, run: str) -> None:
        self._parts.append(run)
        self._pending_size += len(run)

    def _flush(self, *, is_end: bool) -> None:
        if not self._parts:
            return
        pending = "".join(self._parts)
        whole = len(pending) if is_end else len(pending) // 4 * 4
        self._write(_decoded(pending[:whole]))
        self._parts = [pending[whole:]] if whole < len(pending) else []
        self._pending_size = len(pending) - whole

    def _write(self, data: bytes) -> None:
        held = self._target
        if isinstance(held, io.BytesIO) and held.tell() + len(data) > BODY_MEMORY_MAX:
            self._target = cast("BinaryIO", tempfile.TemporaryFile())  # noqa: SIM115 - see close().
            self._target.write(held.getbuffer())
        self._target.write(data)

    def close(self) -> None:
        """Give the bytes up."""
        self._target.close()

    def finish(self) -> tuple[BinaryIO, int]:
        """Give the bytes, from the beginning, and how many they are."""
        self._flush(is_end=True)
        size = self._target.tell()
        self._target.seek(0)
        return self._target, size


def _decoded(text: str) -> bytes:
    try:
        # Either alphabet of base64, since people make such documents too.
        data = text.translate(_URL_SAFE).encode("ascii")
        return base64.b64decode(data, validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"{text[:20]!r} is not valid base64") from error


_URL_SAFE: Final = str.maketrans("-_", "+/")


def _routing_type(word: str) -> RoutingType:
    if word not in (RoutingType.MULTICAST.name, RoutingType.ANYCAST.name):
        raise ValueError(f"{word!r} is not a routing type")
    return RoutingType[word]


def _integer(name: str, text: str, bits: int) -> int:
    try:
        value = int(text)
    except ValueError:
        raise ValueError(f"{name} {text!r} is not a number") from None
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise ValueError(f"{name} {text} does not fit {bits} bits")
    return value


def _priority(text: str) -> int:
    value = _integer("priority", text, 8)
    if not 0 <= value <= PRIORITY_MAX:
        raise ValueError(f"priority {value} is not 0 … {PRIORITY_MAX}")
    return value


def _float(name: str, text: str, kind: PropertyType) -> float:
    try:
        layout = ">f" if kind is PropertyType.FLOAT else ">d"
        # Through its bytes, which round it to what it was.
        packed = struct.pack(layout, float(_FLOAT_WORDS.get(text, text)))
        return float(struct.unpack(layout, packed)[0])
    except (ValueError, OverflowError):
        raise ValueError(f"{name} {text!r} is not a valid {kind.name.lower()}") from None


def _property(name: str, text: str, word: str | None) -> Property:
    if text == names.NULL and word in ("bytes", names.STRING, "simple-string"):
        return Property(name, PropertyType.NULL, None)
    if word in _INTEGERS:
        kind, bits = _INTEGERS[word]
        return Property(name, kind, _integer(f"property {name}", text, bits))
    if word in _FLOATS:
        kind = _FLOATS[word]
        return Property(name, kind, _float(f"property {name}", text, kind))
    found: dict[str | None, tuple[PropertyType, Callable[[], PropertyValue]]] = {
        "boolean": (PropertyType.BOOLEAN, lambda: text.lower() == "true"),
        "bytes": (PropertyType.BYTES, lambda: _decoded(text)),
        names.STRING: (PropertyType.STRING, lambda: text),
        "simple-string": (PropertyType.STRING, lambda: text),
    }
    if word is None and len(text.encode("utf-16-le", "surrogatepass")) == 2:
        return Property(name, PropertyType.CHAR, text)
    if word not in found:
        raise ValueError(f"property {name} is of the unknown type {word!r}")
    kind, value = found[word]
    return Property(name, kind, value())
