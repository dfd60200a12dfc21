"""Batches on their way to a broker of the Core protocol, sent without waiting for their answers.

    send_batch() ─▶ Sending ─▶ each message confirmed, or the batch's commit ─▶ done(None)

Nothing here waits: what has no credit, or no room in the socket, is kept, which is as much as the
bridge lets be on its way. With the connection everything ends, although the client may make a new
one: a batch would be torn in two.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from broker.bridges.core.sending import CannotSend, Sending, Sent
from broker.bridges.jms.core.conversion import core_message
from broker.client.errors import CallTimeout, DuplicateId
from broker.protocols.core.packet_session import Commit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from broker.bridges.jms.core.message_ids import MessageIds
    from broker.bridges.jms.message import JMSMessage, StreamedBody
    from broker.bridges.jms.providers import Done
    from broker.client.aio.connection import AsyncConnection
    from broker.client.aio.session import AsyncSession
    from broker.client.replies import Reply
    from broker.model.message import Message
    from broker.model.routing_type import RoutingType
    from broker.protocols.core.packet import Packet

__all__ = ["CoreBatchSender", "Link", "StreamedPart"]


@dataclass(slots=True)
class Link:
    """What a `Sending` goes over."""

    connection: AsyncConnection
    session: AsyncSession


@dataclass(slots=True)
class _Batch:
    """One that has no outcome yet.

    Attributes:
        done: is told it.
        missing: messages that are not confirmed.
    """

    done: Done
    missing: int


class _OfBatch(Sent):
    """A message of a batch."""

    __slots__ = ("batch",)

    def __init__(self, message: Message, number: int, batch: _Batch) -> None:
        super().__init__(message, number)
        self.batch = batch


class StreamedPart:
    """A body that is read from a stream; see `broker.bridges.core.sending.Body`."""

    def __init__(self, stream: StreamedBody) -> None:
        self._stream = stream
        self.size = stream.seek(0, os.SEEK_END)
        stream.seek(0)

    async def read(self, offset: int, size: int) -> bytes:
        """Give the next part.

        Raises:
            CannotSend: the bridge has given the message up meanwhile.
        """
        try:
            return self._stream.read(size)
        except ValueError as error:
            raise CannotSend("the bridge has given its message up") from error

    def close(self) -> None:
        """Nothing: it is the message's."""


class CoreBatchSender:
    """See the module's text, and `BatchSender`.

    Args:
        connection: by which the session goes.
        session: transacted, or one whose sends are confirmed each.
        address: where to.
        routing: of that address.
        ids: for the messages.
        is_transacted: each batch is a transaction.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        session: AsyncSession,
        address: str,
        routing: RoutingType,
        ids: MessageIds,
        *,
        is_transacted: bool,
    ) -> None:
        self._state = session.state
        self._address = address
        self._routing = routing
        self._ids = ids
        self._is_transacted = is_transacted
        self._batches: deque[_Batch] = deque()
        self._sent_count = 0
        self._failure: Exception | None = None
        self._sending = Sending(
            Link(connection, session),
            on_answer=self._answered,
            on_failed=self.fail,
            on_room=_nothing,
            asks=not is_transacted,
        )

    def send_batch(self, messages: Sequence[JMSMessage], done: Done) -> None:
        """Send a batch behind the others; see `BatchSender`."""
        if self._failure is not None:
            done(self._failure)
            return
        batch = _Batch(done, len(messages))
        self._batches.append(batch)
        for message in messages:
            try:
                made = core_message(message, self._address, self._routing, self._ids.make())
            except Exception as error:  # noqa: BLE001 - its provider reads the body only now.
                self.fail(error)
                return
            body = None if message.stream is None else StreamedPart(message.stream)
            self._sent_count += 1
            self._sending.put(_OfBatch(made, self._sent_count, batch), made, body)
        if self._is_transacted:
            self._sending.call_behind(partial(self._commit, batch))

    def fail(self, error: Exception) -> None:
        """Send nothing any more; no batch has its outcome yet, and none will.

        Args:
            error: why.
        """
        if self._failure is not None:
            return
        self._failure = error
        self._sending.close()
        batches, self._batches = self._batches, deque()
        for batch in batches:
            batch.done(error)

    def _answered(self, sent: Sent, error: Exception | None) -> None:
        # A broker may refuse a known id instead of dropping the message: it is there.
        if error is not None and not isinstance(error, DuplicateId):
            self.fail(error)
            return
        assert isinstance(sent, _OfBatch), "it was put here"
        sent.batch.missing -= 1
        if not sent.batch.missing:
            self._succeeded(sent.batch)

    def _commit(self, batch: _Batch) -> None:
        timeout_s = self._state.options.call_timeout_s
        timer = None
        if timeout_s is not None:
            timer = asyncio.get_running_loop().call_later(timeout_s, self._expired)
        reply = self._state.channel.call_correlated(Commit())
        reply.when_done(partial(self._committed, batch, timer))

    def _committed(
        self, batch: _Batch, timer: asyncio.TimerHandle | None, reply: Reply[Packet]
    ) -> None:
        if timer is not None:
            timer.cancel()
        if reply.error is not None:
            self.fail(reply.error)
        elif self._failure is None:
            self._succeeded(batch)

    def _expired(self) -> None:
        self.fail(CallTimeout(f"commit: no answer in {self._state.options.call_timeout_s} s"))

    def _succeeded(self, batch: _Batch) -> None:
        """Tell it behind those before it, which are answered first but for a refused message."""
        if self._failure is None:
            batch.missing = 0
            while self._batches and not self._batches[0].missing:
                self._batches.popleft().done(None)


def _nothing() -> None:
    """More may be sent: the bridge does not ask."""
