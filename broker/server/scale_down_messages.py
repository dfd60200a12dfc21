"""The messages of one queue after another, sent to the node that gets them all.

    look ─▶ copy: _AMQ_ROUTE_TO, _AMQ_BRIDGE_DUP ─▶ Sending ─▶ confirmed ─▶ removed here ─▶ durable

A message leaves its queue once the target has it on its disk. Its duplicate id is made of this
node's id, the message's and the queue's, which a restart does not change. What was sent before a
crash, and not removed, is refused as a duplicate by the target, and removed then.

A queue's messages are looked at where they are: paused, exclusive, non-destructive queues and
messages that are not due yet are like all others.

Threads: the event loop's alone.
"""

from __future__ import annotations

import asyncio
import struct
from typing import TYPE_CHECKING, Final

from broker.bridges.core.outgoing import BRIDGE_ID
from broker.bridges.core.sending import Sending, Sent
from broker.client.errors import ClientError
from broker.errors import BrokerError
from broker.management.contents import InPages, look
from broker.model.address import split_fqqn
from broker.model.properties import PropertyType
from broker.routing.queue_ids import ROUTE_TO, SCALEDOWN_NODE, SCALEDOWN_TO, set_queue_ids
from broker.routing.remote_bindings import SENT_TO, STORE_AND_FORWARD, forget_routes
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.cluster.unanswered import Unanswered
    from broker.model.message import Message
    from broker.queues.queue import Queue
    from broker.queues.reference import Reference
    from broker.server.scale_down_target import ScaleDownTarget
    from broker.storage.manager import StorageManager

__all__ = ["ScaleDownMessages", "ScaleDownStopped", "make_copy"]

_IDS: Final = struct.Struct(">qq")


class ScaleDownStopped(Exception):
    """It was told to end, or cannot go on; what has not gone stays."""


def make_copy(message: Message, queue: Queue, queue_id: int, own_node: bytes) -> Message:
    """Give the copy of a queue's message that goes to the queue of an id in the target.

    Args:
        message: of the queue.
        queue: of this broker.
        queue_id: in the target.
        own_node: the 16 bytes of this broker's node id.
    """
    copy = message.copy()
    forget_routes(copy)
    copy.address = split_fqqn(copy.address or queue.binding.address)[0]
    set_queue_ids(copy, [queue_id])
    copy.set_bytes(BRIDGE_ID, own_node + _IDS.pack(message.message_id, queue.queue_id))
    return copy


class ScaleDownMessages:
    """See the module's text.

    Args:
        target: connected.
        own_node: the 16 bytes of this broker's node id.
        storage: where removals are recorded.
        unanswered: gives what a peer may have of its store-and-forward queue, with the peer's id.
        told_to_end: ends it between two messages.

    Attributes:
        moved_count: messages that have left for good.
    """

    def __init__(
        self,
        target: ScaleDownTarget,
        *,
        own_node: bytes,
        storage: StorageManager,
        unanswered: Callable[[Queue], tuple[Unanswered, str] | None],
        told_to_end: asyncio.Event,
    ) -> None:
        self._target = target
        self._own_node = own_node
        self._context = storage.new_context()
        self._unanswered = unanswered
        self._told_to_end = told_to_end
        self._pending: dict[int, Reference] = {}
        self._in_flight: dict[str, int] = {}
        self._changed = asyncio.Event()
        self._error: Exception | None = None
        self._number = 0
        self.moved_count = 0

    async def move(self, queue: Queue) -> None:
        """Move all of a queue, in its order.

        Raises:
            ClientError: the link is lost, or the target refuses a message.
            BrokerError: a removal cannot be recorded.
            ScaleDownStopped: it was told to end.
        """
        link = self._target.link
        sending = Sending(
            link, on_answer=self._answered, on_failed=self._failed, on_room=self._changed.set
        )
        link.lost.add_done_callback(self._lost)
        self._error = None
        try:
            while _has_listed(queue) and not queue.is_deleted:
                before = self.moved_count
                await self._pass(queue, sending)
                if self.moved_count == before:
                    # Such as one whose body is read, or what is being moved by the broker itself.
                    await self._wait(0.05)
        finally:
            link.lost.remove_done_callback(self._lost)
            sending.close()
            self._pending.clear()
            self._in_flight.clear()

    def _lost(self, lost: asyncio.Future[Exception]) -> None:
        self._failed(lost.result())

    def _failed(self, error: Exception) -> None:
        self._error = self._error or error
        self._changed.set()

    async def _pass(self, queue: Queue, sending: Sending) -> None:
        """Send what is there, and wait until all of it was removed."""
        unanswered = None
        if queue.name.startswith(STORE_AND_FORWARD):
            unanswered = self._unanswered(queue)
        for reference in look(queue, lambda one: True, InPages.TAKEN):
            if reference is None:
                await asyncio.sleep(0)
                self._check()
                continue
            message = reference.message
            address = split_fqqn(message.address or queue.binding.address)[0]
            window = await self._target.window(address)
            while self._in_flight.get(address, 0) >= window or sending.is_waiting:
                await self._wait()
            self._check()
            if queue.is_deleted or not _is_there(reference):
                continue
            if unanswered is None:
                copy = make_copy(
                    message,
                    queue,
                    await self._target.queue_id(queue, queue.binding.address),
                    self._own_node,
                )
                self._as_known(copy, message)
            else:
                copy = self._forwarded(message, queue, *unanswered)
            self._number += 1
            sent = Sent(message, self._number)
            self._pending[sent.number] = reference
            self._in_flight[address] = self._in_flight.get(address, 0) + 1
            sending.put(sent, copy)
        while self._pending:
            await self._wait()
            if self._error is not None:
                self._check()

    def _as_known(self, copy: Message, message: Message) -> None:
        """Where the target may have a message already, it is sent by the id that it has it by."""
        name = SENT_TO + self._target.node_id
        known = message.get(name)
        if isinstance(known, bytes) and message.references <= 1:
            copy.remove(name)
            copy.set_bytes(BRIDGE_ID, known)

    def _forwarded(
        self, message: Message, queue: Queue, unanswered: Unanswered, node_id: str
    ) -> Message:
        """Give what the target gets of a message that waits for it, or for another node."""
        ids = message.get(ROUTE_TO + queue.name)
        copy = message.copy()
        forget_routes(copy)
        if node_id == self._target.node_id:
            copy.remove(unanswered.property)
            copy.set_bytes(BRIDGE_ID, unanswered.id_of(message))
            if isinstance(ids, bytes):
                copy.set(ROUTE_TO, PropertyType.BYTES, ids)
            return copy
        copy.set_bytes(BRIDGE_ID, self._own_node + _IDS.pack(message.message_id, queue.queue_id))
        if unanswered.may_be_there(message):
            copy.set_bytes(unanswered.property, unanswered.id_of(message))
        if isinstance(ids, bytes):
            copy.set(SCALEDOWN_TO, PropertyType.BYTES, ids)
            copy.set(SCALEDOWN_NODE, PropertyType.STRING, node_id)
        return copy

    # --- the target answers -------------------------------------------------------------------

    def _answered(self, sent: Sent, error: Exception | None) -> None:
        reference = self._pending.get(sent.number)
        if reference is None:
            return
        if error is not None:
            self._failed(error)
            return
        try:
            if not reference.queue.is_deleted and _is_there(reference):
                reference.queue.remove(reference)
                self._context.note()
        except (BrokerError, JournalError) as failure:
            self._failed(failure)
            return
        self._context.after(self._removed, sent)

    def _removed(self, error: Exception | None, sent: Sent) -> None:
        if error is not None:
            self._failed(error)
            return
        reference = self._pending.pop(sent.number, None)
        if reference is None:
            return
        address = split_fqqn(sent.message.address or reference.queue.binding.address)[0]
        self._in_flight[address] -= 1
        self.moved_count += 1
        self._changed.set()

    async def _wait(self, timeout_s: float | None = None) -> None:
        """Wait until something has changed.

        Raises:
            ClientError: the link is lost, or the target has refused.
            ScaleDownStopped: it was told to end.
        """
        waits = [
            asyncio.ensure_future(self._changed.wait()),
            asyncio.ensure_future(self._told_to_end.wait()),
        ]
        try:
            await asyncio.wait(waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
        self._changed.clear()
        self._check()

    def _check(self) -> None:
        if self._error is not None:
            if isinstance(self._error, ClientError | BrokerError):
                raise self._error
            raise ScaleDownStopped(str(self._error))
        if self._told_to_end.is_set():
            raise ScaleDownStopped("it was told to end at once")


def _has_listed(queue: Queue) -> bool:
    """Whether anything waits, or is not due yet; not what a prepared transaction acknowledges."""
    pages = queue.pages
    return bool(
        queue.waiting.count
        or queue.scheduled_count
        or (pages is not None and (pages.unread_count or pages.is_reading))
    )


def _is_there(reference: Reference) -> bool:
    """Whether it waits, or is not due yet."""
    return reference.level >= 0 or reference.scheduled_ms > 0
