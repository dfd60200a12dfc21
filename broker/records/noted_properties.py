"""What a broker notes in a message of AMQP: properties beside its sections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.model.encoding import BodyWriter
from broker.model.message import Message
from broker.model.properties import Property, PropertyType
from broker.records.amqp_rewriting import MARKS
from broker.records.amqp_to_core import ADDRESS_PROPERTY
from broker.records.stored_messages import EXTRA_PROPERTIES

if TYPE_CHECKING:
    from broker.model.properties import PropertyValue

__all__ = ["NotedProperties"]


class NotedProperties(Message):
    """A message whose sections stay as they are. Belongs to the event loop."""

    __slots__ = ("_address_read", "_extra", "_is_marked")

    # Something was noted beside the sections that they do not say yet.
    _is_marked: bool
    # Properties beside the sections.
    _extra: dict[str, Property]
    # The address of its record; another one is noted among these.
    _address_read: str | None

    def _noted(self) -> tuple[Property, ...] | None:
        """Give what a record has beside the sections."""
        extra = dict(self._extra)
        address = self.address
        if address is not None and address != self._address_read:
            extra[ADDRESS_PROPERTY] = Property(ADDRESS_PROPERTY, PropertyType.STRING, address)
        return tuple(extra.values()) or None

    def _encoded_notes(self) -> bytes:
        """Give the same as the record of a message has it."""
        writer = BodyWriter()
        EXTRA_PROPERTIES.write(writer, self._noted())
        return writer.getvalue()

    def _note_as(self, other: NotedProperties) -> None:
        """Have what another message has beside its sections."""
        self._extra = dict(other._extra)
        self._address_read = other._address_read
        self._is_marked = other._is_marked

    def set(self, name: str, kind: PropertyType, value: PropertyValue) -> None:
        """Set a property beside the sections, instead of any of that name."""
        super().set(name, kind, value)
        self._extra[name] = Property(name, kind, value)
        if name in MARKS:
            self._is_marked = True

    def note(self, name: str, kind: PropertyType, value: PropertyValue) -> None:
        """Set a property for as long as the broker runs: no record has it."""
        super().set(name, kind, value)

    def forget(self, name: str) -> None:
        """Remove a property for as long as the broker runs; the sections keep it."""
        super().remove(name)

    def set_bytes(self, name: str, value: bytes) -> None:
        """Set a property of bytes beside the sections."""
        self.set(name, PropertyType.BYTES, value)

    def remove(self, name: str) -> None:
        """Remove a property; it comes again after a restart if it stands in the sections."""
        Message.remove(self, name)
        self._extra.pop(name, None)
