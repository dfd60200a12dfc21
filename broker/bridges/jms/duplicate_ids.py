"""The ids by which a target knows a message again. No I/O."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from broker.bridges.jms.errors import ProviderError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.message import JMSMessage

__all__ = ["duplicate_id", "give_ids"]


def give_ids(messages: Sequence[JMSMessage], node_id: str) -> None:
    """Give each message its duplicate id.

    Args:
        messages: received.
        node_id: of the source.

    Raises:
        ProviderError: a message has no position.
    """
    for message in messages:
        if message.position is None:
            raise ProviderError("the source gave a message without a position")
        message.duplicate_id = duplicate_id(node_id, message.position)


def duplicate_id(node_id: str, position: bytes) -> bytes:
    """Give the id by which a target knows a message again; 32 bytes.

    A function of the source's node, its queue and the message alone: a retry, a restarted bridge
    and a second bridge on the same queue make the same one. So does each version of the bridge, and
    `pipeline audit` makes it as well.

    Args:
        node_id: of the source.
        position: of the message there, with its queue.

    >>> duplicate_id("n", b"q 1").hex()[:16]
    '4708ed557b80b230'
    """
    return hashlib.sha256(node_id.encode() + b"\0" + position).digest()
