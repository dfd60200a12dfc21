"""What stored messages are called by number: their persisters, and the types of Core bodies."""

from __future__ import annotations

from enum import IntEnum

__all__ = ["MessageType", "Persister"]


class Persister(IntEnum):
    """The first byte of a type 45 body."""

    CORE = 1
    AMQP_V1 = 2
    AMQP_V2 = 3
    AMQP_LARGE = 4
    AMQP_V3 = 5


class MessageType(IntEnum):
    """What the body of a Core message holds."""

    DEFAULT = 0
    OBJECT = 2
    TEXT = 3
    BYTES = 4
    MAP = 5
    STREAM = 6
    # Between brokers: a message of another protocol is inside.
    EMBEDDED = 7
    LARGE_EMBEDDED = 8
