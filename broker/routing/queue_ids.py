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

__all__ = [
    "ACK_ROUTE_TO",
    "ID_SIZE",
    "ROUTE_TO",
    "SCALEDOWN_NODE",
    "SCALEDOWN_TO",
    "ids_in",
    "names_queues",
    "queue_ids",
    "set_queue_ids",
]

ROUTE_TO: Final = "_AMQ_ROUTE_TO"
ACK_ROUTE_TO: Final = "_AMQ_ACK_ROUTE_TO"
"""Of these, the queues whose message the transaction acknowledges: of one that scaled down."""
SCALEDOWN_TO: Final = "_AMQ_SCALEDOWN_TO"
"""Queues of a third node, from the store-and-forward queue of one that scaled down."""
SCALEDOWN_NODE: Final = "_QUIVER_SCALEDOWN_NODE"
"""That third node: ids are those of any node else, as Artemis has them."""
ID_SIZE: Final = 8
"""Bytes of an id in these."""


def names_queues(message: Message) -> bool:
    """Whether a message names queues, here or of a third node."""
    return bool(message.has_own_properties) and (
        message.get(ROUTE_TO) is not None or message.get(SCALEDOWN_TO) is not None
    )


def queue_ids(message: Message) -> list[int] | None:
    """Give the ids that a message names; None where it names none.

    Raises:
        BrokerError: the property is not a list of ids.
    """
    return ids_in(message, ROUTE_TO)


def ids_in(message: Message, name: str) -> list[int] | None:
    """Give the ids in a property of a message; None where it has none.

    Raises:
        BrokerError: the property is not a list of ids.
    """
    value = message.get(name)
    if not isinstance(value, bytes):
        return None
    if len(value) % ID_SIZE:
        raise BrokerError(
            ErrorCode.ILLEGAL_STATE, f"{name} of {len(value)} bytes is not a list of queue ids"
        )
    return [one for (one,) in struct.iter_unpack(">q", value)]


def set_queue_ids(message: Message, ids: Iterable[int]) -> None:
    """Let a message name these queues."""
    message.set(ROUTE_TO, PropertyType.BYTES, b"".join(struct.pack(">q", one) for one in ids))
