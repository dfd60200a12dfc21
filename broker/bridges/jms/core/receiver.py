"""Receives from one queue by the Core client."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from broker.bridges.jms.core.conversion import ReceivedMessage, jms_message
from broker.bridges.jms.providers import SessionKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.core.branches import Branches
    from broker.bridges.jms.message import JMSMessage
    from broker.bridges.jms.providers import Done
    from broker.client.aio.consumer import AsyncConsumer
    from broker.client.aio.received import AsyncReceived
    from broker.model.xid import Xid

__all__ = ["CoreBranchReceiver", "CoreReceiver"]

# A receive of 0 asks the broker for what it has and waits for the answer, which costs more.
_RECEIVE_MIN_S: Final = 0.001


class CoreReceiver:
    """Receives from one queue."""

    def __init__(self, consumer: AsyncConsumer, queue: str, kind: SessionKind) -> None:
        self._kind = kind
        self._acknowledges_later = kind is SessionKind.CLIENT
        self._consumer = consumer
        self._queue = queue.rpartition("::")[2].encode()
        self._last: AsyncReceived | None = None
        # Received and not given yet.
        self._waiting: deque[AsyncReceived] = deque()

    async def receive(self, timeout_s: float) -> JMSMessage | None:
        """Give the next message; the body of a large one goes to a temporary file."""
        found = await self.receive_many(1, timeout_s)
        return found[0] if found else None

    async def receive_many(self, count_max: int, timeout_s: float) -> Sequence[JMSMessage]:
        """Give the next messages; see `BatchReceiver`."""
        if not self._waiting:
            wait_s = max(timeout_s, _RECEIVE_MIN_S)
            self._waiting.extend(await self._consumer.receive_many(count_max, wait_s))
        found: list[JMSMessage] = []
        while self._waiting and len(found) < count_max:
            self._last = received = self._waiting.popleft()
            found.append(await jms_message(received, self._queue))
            if received.is_large and self._acknowledges_later:
                # Its body is in a file now: the next ones wait until that is of use. Not in a
                # transaction, which has acknowledged them.
                break
        if self._kind is SessionKind.TWO_PHASE and self._last is not None:
            # In the branch that the session works for.
            self._consumer.acknowledge_ahead(self._last)
        return found

    async def acknowledge_until(self, message: JMSMessage) -> None:
        """Acknowledge it and all before it; see `BatchReceiver`."""
        assert isinstance(message, ReceivedMessage), "it was received here"
        await message.received.acknowledge()

    async def acknowledge(self) -> None:
        """Acknowledge all that was received."""
        last, self._last = self._last, None
        if last is not None:
            await last.acknowledge()


class CoreBranchReceiver(CoreReceiver):
    """Acknowledges in branches of their own what it has received outside of any.

    Args:
        consumer: of a session for distributed transactions.
        queue: its name.
        branches: of that session.
    """

    def __init__(self, consumer: AsyncConsumer, queue: str, branches: Branches) -> None:
        super().__init__(consumer, queue, SessionKind.CLIENT)
        self._branches = branches

    def take_branch(self, xid: Xid, message: JMSMessage, done: Done) -> None:
        """Acknowledge in a branch, and prepare it; see `BranchReceiver`."""
        assert isinstance(message, ReceivedMessage), "it was received here"
        made = self._branches.begin(xid, done)
        if made is not None:
            # What a lost session has received is not acknowledged; but that is told before.
            self._consumer.acknowledge_ahead(message.received)
            self._branches.prepare(made)

    def commit_branch(self, xid: Xid, done: Done) -> None:
        """Commit a branch; see `BranchReceiver`."""
        self._branches.commit(xid, done)
