"""The queues that a message names by their ids: one moved, imported or sent by a bridge.

Such a message goes to these queues, whatever its address, its routing type and their filters say.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError, ErrorCode
from broker.model.properties import PropertyType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message import Message

__all__ = ["ROUTE_TO", "queue_ids", "set_queue_ids"]

ROUTE_TO: Final = "_AMQ_ROUTE_TO"
_SIZE: Final = 8


def queue_ids(message: Message) -> list[int] | None:
    """Give the ids that a message names; None where it names none.

    Raises:
        BrokerError: the property is not a list of ids.
    """
    value = message.get(ROUTE_TO)
    if not isinstance(value, bytes):
        return None
    if len(value) % _SIZE:
        raise BrokerError(
            ErrorCode.ILLEGAL_STATE, f"{ROUTE_TO} of {len(value)} bytes is not a list of queue ids"
        )
    return [one for (one,) in struct.iter_unpack(">q", value)]


def set_queue_ids(message: Message, ids: Iterable[int]) -> None:
    """Let a message name these queues."""
    message.set(ROUTE_TO, PropertyType.BYTES, b"".join(struct.pack(">q", one) for one in ids))
