"""Writes the document as Artemis does, character by character.

No XML declaration. A new line stands before each element, end of an element and CDATA section, and
three spaces for each element that it is in. Artemis's reader takes that white space for the
boundary between two pieces of a body.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from broker.model.java_text import (
    double_text,
    float_text,
    hash_order,
    simple_string_hash,
    table_size_for,
    text_of,
    uuid_text,
)
from broker.model.properties import Property, PropertyType
from broker.printing.xml import names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from broker.model.encoding import Body
    from broker.model.message import Message
    from broker.records.binding_records import AddressBinding, QueueBinding

__all__ = ["XmlWriter"]

INDENT: Final = "   "
DEPTH_MAX: Final = 5  # Document, its parts, message, its parts, theirs.
_LINES: Final = tuple("\n" + INDENT * depth for depth in range(DEPTH_MAX))
# What Artemis puts into one CDATA section of a large body; each is encoded by itself.
LARGE_CHUNK_SIZE: Final = 1000

_ESCAPES: Final = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    '"': "&quot;",
    # Any reader makes spaces of these where they stand for themselves in an attribute.
    "\t": "&#9;",
    "\n": "&#10;",
    "\r": "&#13;",
}
_ESCAPED: Final = re.compile(f"[{''.join(_ESCAPES)}]")
# Both kinds at once: most texts have neither.
_SPECIAL: Final = re.compile('[\x00-\x1f"&<>\ufffe\uffff\ud800-\udfff]')
# What no XML 1.0 document can hold, in whatever form (section 2.2 there), and half pairs.
_IMPOSSIBLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


class XmlWriter:
    """Writes one document. Threads: one.

    Args:
        write: takes the text, in pieces.
        on_loss: called with a line for people when something cannot be written as it is.
    """

    def __init__(self, write: Callable[[str], object], on_loss: Callable[[str], object]) -> None:
        self._write = write
        self._on_loss = on_loss
        self._open: list[str] = []

    # The document's parts, in order.

    def begin(self) -> None:
        """Open the document and its bindings."""
        self._start(names.DOCUMENT)
        self._start(names.BINDINGS)

    def address(self, address_id: int, binding: AddressBinding) -> None:
        """Write an address."""
        kinds = ",".join(kind.name for kind in sorted(binding.routing_types))
        self._empty(
            names.ADDRESS_BINDING,
            {"routing-types": kinds, "name": binding.name, "id": str(address_id)},
        )

    def queue(self, queue_id: int, binding: QueueBinding) -> None:
        """Write a queue."""
        self._empty(
            names.QUEUE_BINDING,
            {
                "address": binding.address,
                "filter-string": binding.filter or "",
                "name": binding.name,
                "id": str(queue_id),
                "routing-type": binding.routing_type.name,
            },
        )

    def begin_messages(self) -> None:
        """Close the bindings, open the messages."""
        self._end()
        self._start(names.MESSAGES)

    def message(
        self, message: Message, queues: Iterable[str], pieces: Iterator[bytes] | None = None
    ) -> None:
        """Write a message.

        Args:
            message: as a whole, or the headers of a large one.
            queues: names of those that have it.
            pieces: the body of a large one.
        """
        attributes = {
            "id": str(message.message_id),
            "priority": str(message.priority),
            "expiration": str(message.expiration),
            "timestamp": str(message.timestamp),
            "type": names.MESSAGE_TYPES.get(message.type, names.MESSAGE_TYPE_DEFAULT),
        }
        if message.user_id is not None:
            attributes["user-id"] = uuid_text(message.user_id)
        self._start(names.MESSAGE, attributes)
        self._start(names.PROPERTIES)
        for item in _in_walk_order(message.properties):
            self._property(item)
        self._end()
        self._start(names.QUEUES)
        for name in queues:
            self._empty(names.QUEUE, {"name": name})
        self._end()
        self._body(message.body, pieces)
        self._end()

    def end(self) -> None:
        """Close everything."""
        while self._open:
            self._end()

    # Pieces.

    def _property(self, item: Property) -> None:
        attributes = {"name": item.name, "value": _value_text(item)}
        word = names.PROPERTY_TYPES.get(item.type)
        if word is not None:
            attributes["type"] = word
        self._empty(names.PROPERTY, attributes)

    def _body(self, body: Body, pieces: Iterator[bytes] | None) -> None:
        if pieces is None:
            self._start(names.BODY)
            self._cdata(body)
        else:
            self._start(names.BODY, {names.IS_LARGE: "true"})
            for piece in pieces:
                for at in range(0, len(piece), LARGE_CHUNK_SIZE):
                    self._cdata(piece[at : at + LARGE_CHUNK_SIZE])
        self._end()

    def _line(self, text: str) -> None:
        self._write(f"{_LINES[len(self._open)]}{text}")

    def _start(self, name: str, attributes: Mapping[str, str] | None = None) -> None:
        self._line(f"<{name}{self._attributes(attributes or {})}>")
        self._open.append(name)

    def _empty(self, name: str, attributes: Mapping[str, str]) -> None:
        self._line(f"<{name}{self._attributes(attributes)}/>")

    def _end(self) -> None:
        name = self._open.pop()
        self._line(f"</{name}>")

    def _cdata(self, data: Body) -> None:
        self._line(f"<![CDATA[{base64.urlsafe_b64encode(data).decode('ascii')}]]>")

    def _attributes(self, attributes: Mapping[str, str]) -> str:
        return "".join(f' {name}="{self._text(text)}"' for name, text in attributes.items())

    def _text(self, text: str) -> str:
        if _SPECIAL.search(text) is None:
            return text
        possible = _IMPOSSIBLE.sub("\ufffd", text)
        if possible != text:
            self._on_loss(f"{text!r} has characters that XML cannot hold: replaced")
        return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], possible)


def _value_text(item: Property) -> str:
    value = item.value
    if value is None:
        return names.NULL
    if isinstance(value, bytes):
        return base64.urlsafe_b64encode(value).decode("ascii")
    if isinstance(value, float):
        return float_text(value) if item.type is PropertyType.FLOAT else double_text(value)
    return text_of(value)


def _in_walk_order(by_name: Mapping[str, Property]) -> list[Property]:
    """Give the properties as a set of Artemis walks over them, made of a map of them."""
    if len(by_name) < 2:
        return list(by_name.values())
    order = {name: simple_string_hash(name) for name in by_name}
    for size in (table_size_for(len(by_name)), _set_size(len(by_name))):
        order = {name: order[name] for name in hash_order(order, table_size=size)}
    return [by_name[name] for name in order]


def _set_size(count: int) -> int:
    """Buckets of a set that was made of so many members."""
    return table_size_for(max(int(count / 0.75) + 1, 16))
