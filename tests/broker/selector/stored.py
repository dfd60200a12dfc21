"""A message made of headers and typed properties, as a selector sees it."""

import struct
from dataclasses import dataclass, field

from broker.model.message_types import MessageType
from broker.model.properties import Property, PropertyType


@dataclass
class Stored:
    properties: dict[str, Property] = field(default_factory=dict)
    address: str | None = "FOO.BAR"
    type: int = MessageType.TEXT
    durable: bool = False
    priority: int = 4
    expiration: int = 0
    timestamp: int = 0
    user_id: bytes | None = None
    encoded_size: int = 100
    body: memoryview | bytes = b""

    def get(self, name):
        found = self.properties.get(name)
        return None if found is None else found.value

    def typed(self, name):
        found = self.properties.get(name)
        return None if found is None or found.value is None else (found.type, found.value)

    def put(self, **values):
        """Properties by the type that a value has in Python; pairs give type and value."""
        for name, given in values.items():
            kind, value = given if isinstance(given, tuple) else (KINDS[type(given)], given)
            self.properties[name] = Property(name, kind, value)
        return self

    def with_text(self, text):
        units = text.encode("utf-16-le")
        self.body = memoryview(b"\x01" + struct.pack(">i", len(units)) + units)
        return self


KINDS = {
    str: PropertyType.STRING,
    bool: PropertyType.BOOLEAN,
    int: PropertyType.INT,
    float: PropertyType.DOUBLE,
    bytes: PropertyType.BYTES,
    type(None): PropertyType.NULL,
}
