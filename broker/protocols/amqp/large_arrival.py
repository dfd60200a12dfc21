"""A large message while it comes: written to a place of its own, frame by frame.

transfers ─▶ the sections before the body are whole ─▶ begun ─▶ append … ─▶ LargeSends.complete
                                                         └─ drop(): aborted, or its link is gone
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.errors import BrokerError
from broker.records.amqp_large_body import AmqpLargeBody
from journal.errors import JournalError

if TYPE_CHECKING:
    from broker.protocols.peer import Peer
    from broker.records.amqp_large_message import LargeAmqpMessage
    from broker.sessions.session import Session

__all__ = ["LargeArrival"]

_CHUNK_SIZE: Final = 128 * 1024


class LargeArrival:
    """See the module's text.

    Args:
        peer: whose socket is not read while what has come waits to be written.
        session: that sends the message.
        message: without a body.

    Attributes:
        message: as given; it has its body.
        size: bytes that have come.
        error: why it cannot be taken: what comes is dropped; None where it can.
        uploads: what writes it.
    """

    def __init__(self, peer: Peer, session: Session, message: LargeAmqpMessage) -> None:
        self._peer = peer
        self.message = message
        self.size = 0
        self.error: Exception | None = None
        self.uploads = session.new_uploads()
        self._is_holding = False
        try:
            self.uploads.begin(message)
        except (BrokerError, JournalError) as error:
            self.error = error

    def append(self, data: bytes) -> None:
        """Take the next bytes."""
        is_first = not self.size
        self.size += len(data)
        if self.error is not None:
            return
        body = self.message.large
        assert isinstance(body, AmqpLargeBody), "it was begun"
        if is_first:
            body.begin(data)
        else:
            body.append(data)
        try:
            for start in range(0, len(data), _CHUNK_SIZE):
                self.uploads.append(data[start : start + _CHUNK_SIZE])
        except JournalError as error:
            self.error = error
            self._release()
            return
        if not self._is_holding and not self.uploads.has_room(self._release):
            self._is_holding = True
            self._peer.hold_reading()

    def _release(self) -> None:
        if self._is_holding:
            self._is_holding = False
            self._peer.release_reading()

    def drop(self) -> None:
        """Forget it, unless it was sent. Idempotent."""
        self.uploads.drop()
        self._release()
