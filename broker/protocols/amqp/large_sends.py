"""Large messages of one session: sent once their body is written.

    of amqpMinLargeMessageSize and more    written while they come: large_arrival.py
    too large for a record of the journal  stored as large ones of Core, as Artemis does

While a body is being written to its end, what comes behind it on the session waits, or the order
would be lost.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.model.message import Message
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.amqp.large_arrival import LargeArrival
    from broker.sessions.session import Session
    from broker.sessions.uploads import Uploads

__all__ = ["LargeSends"]

_CHUNK_SIZE: Final = 128 * 1024


class LargeSends:
    """Of one session.

    Args:
        session: that sends them.

    Attributes:
        is_busy: a body is being written: others wait, by after().
    """

    __slots__ = (
        "_is_closed",
        "_session",
        "_waiting",
        "is_busy",
    )

    def __init__(self, session: Session) -> None:
        self._session = session
        self._waiting: deque[Callable[[], object]] = deque()
        self.is_busy = False
        self._is_closed = False

    def after(self, callback: Callable[[], object]) -> None:
        """Call it once nothing is being written any more, in the order of the calls."""
        self._waiting.append(callback)

    def complete(
        self,
        arrival: LargeArrival,
        end: Callable[[], object],
        refused: Callable[[Exception], object],
    ) -> None:
        """Write what has come of a message to its end.

        Args:
            arrival: all of it has come.
            end: sends it, by `uploads.end()`.
            refused: called with what went wrong.
        """
        self.is_busy = True
        error = arrival.error
        if error is not None:
            self._end(lambda: refused(error))
        else:
            self._finish(arrival.uploads, end, refused)

    def send(
        self,
        message: Message,
        end: Callable[[], object],
        refused: Callable[[Exception], object],
    ) -> None:
        """Write the body of a message to a place of its own.

        Args:
            message: whose body is in memory.
            end: sends it, by `end()` of the session's uploads.
            refused: called with what went wrong.
        """
        body = bytes(message.body)
        made = Message.decode_headers(memoryview(message.encode_headers()))
        uploads = self._session.uploads
        self.is_busy = True
        try:
            uploads.begin(made)
            for start in range(0, len(body), _CHUNK_SIZE):
                uploads.append(body[start : start + _CHUNK_SIZE])
        except (BrokerError, JournalError) as error:
            failure = error
            self._end(lambda: refused(failure))
            return
        self._finish(uploads, end, refused)

    def _finish(
        self,
        uploads: Uploads,
        end: Callable[[], object],
        refused: Callable[[Exception], object],
    ) -> None:
        if self._is_closed:
            return
        try:
            if not uploads.finish(lambda: self._finish(uploads, end, refused)):
                return
        except (BrokerError, JournalError) as error:
            failure = error
            self._end(lambda: refused(failure))
            return
        self._end(end)

    def _end(self, then: Callable[[], object]) -> None:
        self.is_busy = False
        then()
        while self._waiting and not (self.is_busy or self._is_closed):
            self._waiting.popleft()()

    def close(self) -> None:
        """The session ends."""
        self._is_closed = True
        self._waiting.clear()
