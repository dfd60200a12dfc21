"""Large messages that a client sends: the headers, then the body part by part.

While a body waits to be written nothing is read from the socket, and what was read already is kept:
it comes behind the message, in its order.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from broker.errors import BrokerError
from broker.protocols.core.answers import refusal_of
from broker.protocols.core.errors import PacketFormatError
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.embedded_messages import extracted
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.protocols.core.answers import Answers
    from broker.protocols.core.channel import Channel
    from broker.protocols.core.packet_message import SendContinuation, SendLarge
    from broker.protocols.peer import Peer
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session

__all__ = ["UploadRequests"]

log = logging.getLogger("broker")


class UploadRequests:
    """See the module's text.

    Args:
        session: that sends what is complete.
        channel: of the session.
        answers: to the requests.
        receive: takes a frame that was kept: its type, and the bytes that chunk[start:end] are.
        producer_of: gives the producer by the client's number, or by its address.

    Attributes:
        kept: frames that came while a body is being written; None while none is.
    """

    def __init__(
        self,
        session: Session,
        channel: Channel,
        answers: Answers,
        receive: Callable[[int, bytes, int, int], None],
        producer_of: Callable[[int, str | None], Producer],
    ) -> None:
        self._session = session
        self._channel = channel
        self._answers = answers
        self._receive = receive
        self._producer_of = producer_of
        self.kept: list[tuple[int, bytes]] | None = None
        self._kept_connection: Peer | None = None
        # The part that ended the body that is being written.
        self._to_end: tuple[SendContinuation, int] | None = None
        # Where the message goes.
        self._address: str | None = None
        # The message, if it is one of AMQP.
        self._amqp: LargeAmqpMessage | None = None

    def begin(self, packet: SendLarge, size: int) -> None:
        """Begin a message.

        Raises:
            BrokerError: the broker has no place for it.
            JournalIOError: its file cannot be made.
        """
        message = extracted(packet.message)
        self._session.uploads.begin(message)
        self._address = message.address
        self._amqp = message if isinstance(message, LargeAmqpMessage) else None
        self._answers.silently(size)

    def append(self, packet: SendContinuation, size: int) -> None:
        """Take a part of its body, and send it with the last one.

        Raises:
            BrokerError: none was begun, or it is refused.
            JournalError: the storage has failed.
        """
        self._session.uploads.append(packet.chunk)
        if not packet.continues:
            self._finish(packet, size)
            return
        if packet.requires_response:
            self._session.context.after(self._answers.answered, size, packet.correlation_id)
        else:
            self._answers.silently(size)
        if not self._session.uploads.has_room(self._release):
            self._hold()

    def _finish(self, packet: SendContinuation, size: int) -> None:
        uploads = self._session.uploads
        if not uploads.finish(self._release):
            self._to_end = (packet, size)
            self._hold()
            return
        body_size = packet.message_body_size
        if self._amqp is not None:
            self._amqp.look()
            # Core's consumers are told the size of what they get.
            body_size = -1
        if packet.requires_response:
            uploads.end(body_size, self._answers.answered, size, packet.correlation_id)
        else:
            uploads.end(body_size, self._answers.unanswered, size)
        producer = self._producer_of(packet.sender_id, self._address)
        producer.sent_count += 1
        producer.sent_bytes += max(0, packet.message_body_size)

    def _hold(self) -> None:
        """Take nothing more until _release()."""
        self.kept = []
        self._kept_connection = self._channel.connection
        if self._kept_connection is not None:
            self._kept_connection.hold_reading()

    def _release(self) -> None:
        """What was to be written is: go on with what came meanwhile."""
        kept, self.kept = self.kept, None
        to_end, self._to_end = self._to_end, None
        connection, self._kept_connection = self._kept_connection, None
        assert kept is not None, "it was held"
        if not self._session.is_closed:
            if to_end is not None:
                self._end(*to_end)
            try:
                for kind, body in kept:
                    self._receive(kind, body, 0, len(body))
            except PacketFormatError as error:
                log.warning("%s: closed: %s", self._session.name, error)
                if connection is not None:
                    connection.abort()
        if connection is not None:
            connection.release_reading()

    def _end(self, packet: SendContinuation, size: int) -> None:
        try:
            self._finish(packet, size)
        except (BrokerError, JournalError) as error:
            self._answers.refuse(refusal_of(error), packet)

    def settle(self) -> None:
        """Block until nothing is kept: the session is taken up, and says how far it has come."""
        while self.kept is not None and not self._session.is_closed:
            self._session.uploads.settle()
