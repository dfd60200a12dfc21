"""Which messages of a store-and-forward queue its peer may have: sent, and never answered.

    link ─▶ recorded ─▶ first message is sent ─▶ … ─▶ link lost ─▶ ids without an answer recorded

Two records for each link, and none for a message. This broker may end while a link is up. Its next
start knows that the oldest messages of each priority may have been sent: as many as a link has on
their way and holds back at most. All others were not sent: they may go elsewhere.

The records are duplicate ids of `KEPT.` and the queue's name, which Artemis reads and does not use.

Threads: the event loop's alone.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Final

from broker.bridges.core import held_back
from broker.bridges.core.window import MESSAGES_MAX
from broker.routing.duplicates import KEPT_PREFIX
from broker.routing.remote_bindings import SENT_TO

if TYPE_CHECKING:
    from collections.abc import Iterable

    from broker.model.message import Message
    from broker.queues.queue import Queue
    from broker.routing.duplicates import DuplicateCache, DuplicateCaches

__all__ = ["Unanswered"]

_LINKED: Final = b"linked"
_ID: Final = struct.Struct(">q")
# That may have been sent: those on their way are behind what is held back.
_OLDEST: Final = MESSAGES_MAX + held_back.MESSAGES_MAX


class Unanswered:
    """See the module's text.

    Args:
        queue: store-and-forward queue, loaded.
        node_id: of its peer.
        own_node: the 16 bytes of this broker's node id.
        duplicates: where the ids are kept.

    Attributes:
        property: names the peer in a message that it may have.
    """

    def __init__(
        self, queue: Queue, node_id: str, own_node: bytes, duplicates: DuplicateCaches
    ) -> None:
        self._queue = queue
        self.property = SENT_TO + node_id
        self._own_node = own_node
        self._kept: DuplicateCache = duplicates.of(KEPT_PREFIX + queue.name)
        stored = self._kept.ids()
        self._ids = {_ID.unpack(one)[0] for one in stored if one != _LINKED}
        # All below were there when a start found that a link had been up.
        self._below = 0
        if _LINKED in stored:
            self._suspect()

    def _suspect(self) -> None:
        """An earlier run ended while a link was up: it had sent the oldest of each priority."""
        queue = self._queue
        if queue.pages is not None and queue.pages.unread_count:
            self._below = queue.storage.new_id()
            return
        counts: Counter[int] = Counter()
        for reference in queue.references():
            priority = reference.message.priority
            counts[priority] += 1
            if counts[priority] <= _OLDEST and not reference.scheduled_ms:
                self._ids.add(reference.message.message_id)

    @property
    def is_linked(self) -> bool:
        """Whether it is recorded that a link is up."""
        return _LINKED in self._kept

    def linked(self) -> None:
        """Messages may be sent as soon as this is durable.

        Raises:
            BrokerError: the disk is full: no message may be sent.
        """
        self._keep(_LINKED)

    def unlinked(self, ids: Iterable[int]) -> None:
        """The link is lost, or was closed.

        Args:
            ids: of messages that were sent on it and not answered.

        Raises:
            BrokerError: the disk is full. They are known until this broker ends; its next start
                takes the oldest of each priority for sent.
            JournalError: the storage has failed.
        """
        left = self._ids
        if left:
            there = {one.message.message_id for one in self._queue.references()}
            left = {one for one in left if one in there}
        self._ids = left | set(ids)
        kept = {_ID.pack(one) for one in self._ids}
        for one in kept:
            self._keep(one)
        # Last: until then all of the oldest count as sent.
        self._kept.retain(kept)

    def _keep(self, one: bytes) -> None:
        if one not in self._kept:
            self._kept.add(one, self._kept.record(one, None))

    def may_be_there(self, message: Message) -> bool:
        """Whether the peer may have a message of the queue already."""
        return (
            message.message_id in self._ids
            or message.message_id < self._below
            or isinstance(message.get(self.property), bytes)
        )

    def id_of(self, message: Message) -> bytes:
        """Give the duplicate id by which the peer knows a message of the queue."""
        known = message.get(self.property)
        return known if isinstance(known, bytes) else self._own_node + _ID.pack(message.message_id)
