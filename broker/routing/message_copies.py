"""Copies of messages: what is diverted, moved or sent on is a message of its own.

    copy_of() ─▶ an id, and a body where it is large ─▶ mark_original() ─▶ the copy is routed

Threads: the event loop's alone.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

from broker.model.properties import PropertyType
from broker.routing.large_copies import copy_now

if TYPE_CHECKING:
    from collections.abc import Iterator

    from broker.model.message import Message
    from broker.routing.large_copies import BodyCopies
    from broker.storage.manager import StorageManager

__all__ = [
    "ORIGINAL_ADDRESS",
    "ORIGINAL_QUEUE",
    "ORIGINAL_ROUTING_TYPE",
    "MessageCopies",
    "mark_original",
]

ORIGINAL_ADDRESS: Final = "_AMQ_ORIG_ADDRESS"
ORIGINAL_QUEUE: Final = "_AMQ_ORIG_QUEUE"
ORIGINAL_ID: Final = "_AMQ_ORIG_MESSAGE_ID"
ORIGINAL_ROUTING_TYPE: Final = "_AMQ_ORIG_ROUTING_TYPE"


class MessageCopies:
    """See the module's text.

    Args:
        storage: gives ids.
    """

    def __init__(self, storage: StorageManager) -> None:
        self._storage = storage
        # Bodies for the copies of the message that is being routed.
        self._bodies: BodyCopies | None = None

    @contextlib.contextmanager
    def using(self, bodies: BodyCopies | None) -> Iterator[None]:
        """Let copy_of() take these bodies within; those left are dropped at the end."""
        before, self._bodies = self._bodies, bodies
        try:
            yield
        finally:
            self._bodies = before
            if bodies is not None:
                bodies.drop()

    def copy_of(self, message: Message) -> Message:
        """Give a copy with an id of its own; a large one has the bytes of its body.

        Blocks where that was not foreseen: see using().
        """
        copy, body = message.copy(), message.large
        made = None if body is None or self._bodies is None else self._bodies.take(body)
        if made is not None:
            copy.message_id, copy.large = made
            return copy
        copy.message_id = self._storage.new_id()
        if body is not None:
            copy.large = copy_now(body, copy.message_id, is_durable=message.durable)
        return copy


def mark_original(copy: Message, original: Message, queue_name: str | None) -> None:
    """Note in a copy where it came from; it expires no more."""
    kind = original.routing_type
    # The copy may be the original: read before it is changed.
    address, message_id = original.address, original.message_id
    if queue_name is None:
        copy.set(ORIGINAL_QUEUE, PropertyType.NULL, None)
    else:
        copy.set(ORIGINAL_QUEUE, PropertyType.STRING, queue_name)
    copy.set(ORIGINAL_ADDRESS, PropertyType.STRING, address)
    copy.set(ORIGINAL_ID, PropertyType.LONG, message_id)
    if kind is not None:
        copy.set(ORIGINAL_ROUTING_TYPE, PropertyType.BYTE, int(kind))
    copy.expiration = 0
