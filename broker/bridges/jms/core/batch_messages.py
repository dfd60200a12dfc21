"""The messages of batches, made and sent over one session of the Core client.

Nothing here waits: what has no credit, or no room in the socket, is kept, which is as much as the
bridge lets be on its way. With the connection everything ends, although the client may make a new
one: a batch would be torn in two.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from broker.bridges.core.sending import CannotSend, Sending, Sent
from broker.bridges.jms.core.conversion import core_message
from broker.client.errors import CallTimeout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.bridges.jms.core.message_ids import MessageIds
    from broker.bridges.jms.message import JMSMessage, StreamedBody
    from broker.client.aio.connection import AsyncConnection
    from broker.client.aio.session import AsyncSession
    from broker.client.replies import Reply
    from broker.client.session_state import SessionState
    from broker.model.message import Message
    from broker.model.routing_type import RoutingType

__all__ = ["BatchMessages", "fail_without_reply"]

T = TypeVar("T")


@dataclass(slots=True)
class _Link:
    """What a `Sending` goes over."""

    connection: AsyncConnection
    session: AsyncSession


class _StreamedPart:
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


class BatchMessages:
    """See the module's text.

    Args:
        connection: by which the session goes.
        session: that sends.
        address: where to.
        routing: of that address.
        ids: for the messages.

    Attributes:
        state: of the session.
    """

    def __init__(
        self,
        connection: AsyncConnection,
        session: AsyncSession,
        address: str,
        routing: RoutingType,
        ids: MessageIds,
    ) -> None:
        self.state = session.state
        self._link = _Link(connection, session)
        self._address = address
        self._routing = routing
        self._ids = ids
        self._count = 0

    def open(
        self,
        *,
        on_failed: Callable[[Exception], object],
        on_answer: Callable[[Sent, Exception | None], object] | None = None,
    ) -> None:
        """Begin; before anything else, and once.

        Args:
            on_failed: called once, where the link is of no use any more, or a message cannot be
                sent.
            on_answer: called with what was sent, and an error of the client or None; without it
                no message is answered: an error shows at the end of its transaction.
        """
        self._on_failed = on_failed
        self._sending = Sending(
            self._link,
            on_answer=on_answer or _nothing,
            on_failed=on_failed,
            on_room=_nothing,
            asks=on_answer is not None,
        )
        self.call_behind = self._sending.call_behind
        self.close = self._sending.close

    def put(
        self, messages: Sequence[JMSMessage], sent: Callable[[Message, int], Sent] = Sent
    ) -> bool:
        """Send messages behind the others; False where one cannot be made, which is told.

        Args:
            messages: of a batch.
            sent: makes what stands for one, of it and its number.
        """
        for message in messages:
            try:
                made = core_message(message, self._address, self._routing, self._ids.make())
            except Exception as error:  # noqa: BLE001 - its provider reads the body only now.
                self._on_failed(error)
                return False
            body = None if message.stream is None else _StreamedPart(message.stream)
            self._count += 1
            self._sending.put(sent(made, self._count), made, body)
        return True


def fail_without_reply(
    reply: Reply[T], state: SessionState, request: str, on_expired: Callable[[Exception], object]
) -> None:
    """Call `on_expired` if a reply does not come within the connection's call timeout.

    Args:
        reply: to a request just made.
        state: of the session that made it.
        request: what it is called.
        on_expired: called with the error.
    """
    timeout_s = state.options.call_timeout_s
    if timeout_s is not None:
        error = CallTimeout(f"{request}: no answer in {timeout_s} s")
        timer = asyncio.get_running_loop().call_later(timeout_s, on_expired, error)
        reply.when_done(lambda _: timer.cancel())


def _nothing(*_: object) -> None:
    """No message is answered, and the bridge does not ask for room."""
