"""How each kind of stored message becomes a Message: a registry by persister.

    record 45, its first byte     CORE 1 ─▶ Message      AMQP_V1 2, _V2 3, _V3 5 ─▶ AmqpMessage
                                  AMQP_LARGE 4 ─▶ LargeAmqpMessage
    record 30                     headers of a large Core message

A message gives its record back itself (`Message.record()`). What has no reader here is not a
Message: callers leave its record where it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.encoding import RecordFormatError
from broker.model.message import Message
from broker.model.message_types import Persister
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_message import AmqpMessage

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["PERSISTERS", "UnsupportedMessage", "message_of_record"]

PERSISTERS: Final[dict[int, Callable[[bytes], Message]]] = {
    Persister.CORE: Message.from_record,
    Persister.AMQP_V1: AmqpMessage.from_record,
    Persister.AMQP_V2: AmqpMessage.from_record,
    Persister.AMQP_V3: AmqpMessage.from_record,
    Persister.AMQP_LARGE: LargeAmqpMessage.from_record,
}
"""By the first byte of record 45; each raises RecordFormatError."""


class UnsupportedMessage(Exception):
    """A stored message of a kind that cannot be read here; the text says which."""


def message_of_record(body: bytes) -> Message:
    """Give the message of a record 45; its id is the record's own word.

    Raises:
        RecordFormatError: a Core message is not what it says.
        UnsupportedMessage: it is of a kind that is not read here, or an AMQP message that cannot be
            converted.
    """
    decode = PERSISTERS.get(body[0]) if body else None
    if decode is None:
        raise UnsupportedMessage(_name_of(body))
    try:
        return decode(body)
    except RecordFormatError as error:
        if body[0] == Persister.CORE:
            raise
        raise UnsupportedMessage(f"{_name_of(body)}: {error}") from error


def _name_of(body: bytes) -> str:
    if not body:
        return "an empty record"
    try:
        return f"of persister {Persister(body[0]).name}"
    except ValueError:
        return f"of persister {body[0]}"
