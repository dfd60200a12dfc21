"""Messages that a client sends: SEND frames, with bodies whole or in parts.

SEND ─▶ destination there? ─▶ room at its address? ─▶ message ─▶ session ─▶ receipt
└─ no: the connection is held until there is
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from broker.errors import BrokerError
from broker.model.core_layout import END_OF_BODY_SIZE
from broker.model.message import Message
from broker.model.message_types import MessageType
from broker.protocols.producers import HeldConnection, Producers, has_room
from broker.protocols.stomp.errors import StompError
from broker.protocols.stomp.parameters import min_large_size
from broker.protocols.stomp.sent_message import CONNECTION_ID, content_of, message_of
from broker.protocols.stomp.uploads import MESSAGE_ID, Upload
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from broker.environment import Clock
    from broker.protocols.stomp.destinations import Destination, Destinations
    from broker.protocols.stomp.frames import Frame, Part
    from broker.protocols.stomp.subscriptions import Subscriptions
    from broker.protocols.stomp.transactions import Transactions
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session

__all__ = ["Sends"]

_BYTES: Final = int(MessageType.BYTES)


class SendingConnection(HeldConnection, Protocol):
    """What sends need of their connection."""

    connection_id: str

    def answer(self, session: Session, receipt: str | None) -> None:
        """Send a receipt, if one is wanted, once what a session did is durable."""


class Sends:
    """See the module's text.

    Args:
        connection: of the client.
        session: of messages outside of transactions.
        transactions: sessions of the others.
        destinations: where they go.
        subscriptions: may want nothing of this connection.
        clock: gives messages their time.
        new_producer: counts messages of an address.
        parameters: of the acceptor.

    Attributes:
        large_size: bytes of a body from which it is kept outside of the journal; -1 never.
    """

    __slots__ = (
        "_clock",
        "_connection",
        "_destinations",
        "_frame",
        "_producers",
        "_session",
        "_sets_id",
        "_subscriptions",
        "_transactions",
        "_upload",
        "large_size",
    )

    def __init__(
        self,
        connection: SendingConnection,
        session: Session,
        transactions: Transactions,
        destinations: Destinations,
        subscriptions: Subscriptions,
        *,
        clock: Clock,
        new_producer: Callable[[str | None], Producer],
        parameters: Mapping[str, Any],
    ) -> None:
        self._connection = connection
        self._session = session
        self._transactions = transactions
        self._destinations = destinations
        self._subscriptions = subscriptions
        self._clock = clock
        self._producers = Producers(new_producer)
        self.large_size = min_large_size(parameters) if session.keeps_large_messages else -1
        self._sets_id: bool = (
            parameters["stompEnableMessageId"] or parameters["stomp-enable-message-id"]
        )
        # A body that comes in parts, and the frame it is of.
        self._upload: Upload | None = None
        self._frame: Frame | None = None

    def send(self, frame: Frame, go_on: Callable[[Frame], object]) -> None:
        """Take a SEND; the body of a streamed one is still to come.

        Args:
            frame: of the client.
            go_on: takes it again, where it has to wait for room.

        Raises:
            StompError: it is refused, or the storage has failed.
        """
        headers = frame.headers
        transaction = headers.get("transaction")
        session = self._session
        if transaction is not None:
            session = self._transactions.session(transaction)
        try:
            destination = self._destinations.for_sending(headers)
            if not has_room(session, destination.name, self._connection, partial(go_on, frame)):
                return
            if frame.is_streamed:
                self._begin(session, frame, self._message(frame, destination, _BYTES, b"", 0))
                return
            kind, body = content_of(frame.content_length, frame.body)
            if 0 <= self.large_size <= len(body):
                empty = self._message(frame, destination, kind, b"", 0)
                self._begin(session, frame, empty).append(body)
                self._finish()
                return
            message_id = session.new_id()
            data = self._message(frame, destination, kind, body, message_id)
            self._send(session, Message.decode(data), message_id, len(body), headers.get("receipt"))
        except (BrokerError, JournalError) as error:
            self._drop()
            raise _not_sent(headers["destination"], error) from error

    def _message(
        self, frame: Frame, destination: Destination, kind: int, body: bytes, message_id: int
    ) -> bytes:
        own: dict[str, str] = {}
        if self._subscriptions.no_local_count:
            own[CONNECTION_ID] = self._connection.connection_id
        if self._sets_id and message_id:
            own[MESSAGE_ID] = f"STOMP{message_id}"
        return message_of(frame.headers, destination, self._clock.now_ms(), kind, body, own)

    def _send(
        self, session: Session, message: Message, message_id: int, size: int, receipt: str | None
    ) -> None:
        message.message_id = message_id
        if receipt is not None:
            session.prewarm(message)
        session.accept(message)
        self._producers.count(session, message.address, size)
        self._connection.answer(session, receipt)

    # --- large messages -----------------------------------------------------------------------

    def _begin(self, session: Session, frame: Frame, data: bytes) -> Upload:
        message = Message.decode_headers(memoryview(data)[END_OF_BODY_SIZE:])
        self._upload = Upload(session, message, self.large_size, sets_id=self._sets_id)
        self._frame = frame
        return self._upload

    def append(self, part: Part) -> None:
        """Take the next bytes of a body that is streamed; none where its frame was refused.

        Raises:
            StompError: it is refused, or the storage has failed.
        """
        upload = self._upload
        if upload is None:
            return
        try:
            upload.append(part.data)
        except (BrokerError, JournalError) as error:
            self._refuse(upload, error)
        if part.is_last:
            self._finish()
        elif not upload.has_room(self._connection.resume):
            self._connection.hold(_nothing)

    def _finish(self) -> None:
        """Send what has come whole, once it is written."""
        upload, frame = self._upload, self._frame
        assert upload is not None, "it was begun"
        assert frame is not None, "it was begun"
        try:
            if not upload.finish(self._connection.resume):
                self._connection.hold(self._finish)
                return
            self._upload = self._frame = None
            upload.send(_durable)
            self._producers.count(upload.session, upload.message.address, upload.size)
        except (BrokerError, JournalError) as error:
            self._refuse(upload, error)
        self._connection.answer(upload.session, frame.headers.get("receipt"))

    def _drop(self) -> None:
        upload, self._upload, self._frame = self._upload, None, None
        if upload is not None:
            upload.drop()

    def _refuse(self, upload: Upload, error: BrokerError | JournalError) -> None:
        self._drop()
        raise _not_sent(upload.message.address or "", error) from error


def _nothing() -> None:
    """The next part is what the connection goes on with."""


def _durable(error: Exception | None) -> None:
    """Who waits asks the session's context."""


def _not_sent(name: str, error: BrokerError | JournalError) -> StompError:
    text = error.text if isinstance(error, BrokerError) else f"AMQ229133: {error}"
    return StompError(f"AMQ339011: Error sending message to {name}: {text}")
