"""Messages that a client sends.

    message ─▶ its transaction ─▶ for each destination: is it there? ─▶ room? ─▶ session ─▶ answer
                                                                        └─ no: it waits

A message that its client waits for, or whose producer has a window, waits by itself where an
address takes none. Any other holds its whole connection: nothing is read until there is room.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Protocol

from broker.errors import BrokerError
from broker.protocols.openwire.body_content import body_of
from broker.protocols.openwire.commands import ActiveMQBlobMessage
from broker.protocols.openwire.destinations import is_temporary, parts_of
from broker.protocols.openwire.errors import OpenWireError
from broker.protocols.openwire.sent_message import core_message, properties_of
from broker.protocols.producers import HeldConnection, Producers, has_room
from journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.environment import Clock
    from broker.model.message import Message
    from broker.protocols.openwire.commands import ActiveMQMessage
    from broker.protocols.openwire.destinations import Destinations, Target
    from broker.protocols.openwire.transactions import Transactions
    from broker.sessions.producer import Producer
    from broker.sessions.session import Session

__all__ = ["Sends"]

# Bytes of a body from which it is kept outside of the journal: what is less has room in the buffer
# of a journal of Artemis (490 KiB), with its properties.
_LARGE_SIZE: Final = 256 * 1024
_CHUNK_SIZE: Final = 128 * 1024


class SendingConnection(HeldConnection, Protocol):
    """What sends need of their connection."""

    client_id: str | None
    is_fault_tolerant: bool
    """Its client comes back, and sends again what was not answered."""

    def sent(self, message: ActiveMQMessage, session: Session, size: int) -> None:
        """Answer a message once it is durable."""

    def attempt(self, message: ActiveMQMessage, step: Callable[[], object]) -> None:
        """Go on with a message, and answer it by what goes wrong."""

    def waits(self, message: ActiveMQMessage, *, is_waiting: bool) -> None:
        """A message waits for room, or does no longer: silence does not count meanwhile."""


class Sends:
    """See the module's text.

    Args:
        connection: of the client.
        transactions: of the connection.
        destinations: where they go.
        clock: for delays.
        new_producer: counts messages of an address.
        sets_duplicate_id: openwireUseDuplicateDetectionOnFailover.
    """

    __slots__ = (
        "_behind_upload",
        "_clock",
        "_connection",
        "_destinations",
        "_is_uploading",
        "_producers",
        "_sets_duplicate_id",
        "_transactions",
    )

    def __init__(
        self,
        connection: SendingConnection,
        transactions: Transactions,
        destinations: Destinations,
        *,
        clock: Clock,
        new_producer: Callable[[str | None], Producer],
        sets_duplicate_id: bool,
    ) -> None:
        self._connection = connection
        self._transactions = transactions
        self._destinations = destinations
        self._clock = clock
        self._producers = Producers(new_producer)
        self._sets_duplicate_id = sets_duplicate_id
        # A large body is being written, and what goes on behind it: a session has one at a time.
        self._is_uploading = False
        self._behind_upload: list[Callable[[], object]] = []

    def send(self, sent: ActiveMQMessage, session: Session, *, has_window: bool) -> None:
        """Take a message.

        Args:
            sent: by the client.
            session: of its producer.
            has_window: its producer counts bytes that are not acknowledged.

        Raises:
            OpenWireError: it is refused.
            BrokerError: likewise.
            JournalError: the storage has failed.
        """
        if isinstance(sent, ActiveMQBlobMessage):
            raise OpenWireError(
                "We don't support BLOB type yet!", "java.lang.IllegalStateException"
            )
        if sent.destination is None or sent.message_id is None:
            raise OpenWireError("a message without a destination or an id")
        if sent.transaction_id is not None:
            self._transactions.find(sent.transaction_id)
        body = body_of(sent)
        parts = parts_of(sent.destination)
        if len(parts) > 1 and sent.original_destination is None:
            sent.original_destination = sent.destination
        connection = self._connection
        properties = properties_of(
            sent,
            client_id=connection.client_id,
            sets_duplicate_id=(
                self._sets_duplicate_id
                and connection.is_fault_tolerant
                and not is_temporary(sent.destination)
            ),
            now_ms=self._clock.now_ms(),
        )
        targets: list[tuple[Target, Message]] = []
        for one in parts:
            target = self._destinations.target(one)
            self._destinations.prepare(one, target)
            targets.append((target, core_message(sent, target, body, properties)))
        self._next(_Sending(sent, session, iter(targets), has_window), None)

    def _next(self, sending: _Sending, ready: tuple[Target, Message] | None) -> None:
        """Send to one destination after the other."""
        sent, session = sending.sent, sending.session
        while True:
            if ready is None:
                ready = next(sending.left, None)
                if ready is None:
                    self._connection.sent(sent, session, sending.size)
                    return
                if not self._has_room(sending, ready):
                    return
            message = ready[1]
            ready = None
            sending.size = len(message.body)
            with self._within(sending):
                if session.keeps_large_messages and sending.size >= _LARGE_SIZE:
                    if not self._begin_large(sending, message):
                        return
                else:
                    message.message_id = session.new_id()
                    if sent.response_required:
                        session.prewarm(message)
                    session.accept(message)
            self._producers.count(session, message.address, sending.size)

    def _within(self, sending: _Sending) -> contextlib.AbstractContextManager[None]:
        id = sending.sent.transaction_id
        if id is None:
            return _NO_TRANSACTION
        return sending.session.transactions.within(self._transactions.find(id).tx)

    def _has_room(self, sending: _Sending, ready: tuple[Target, Message]) -> bool:
        """Whether an address takes messages now; else it goes on by itself once it does."""
        connection, sent = self._connection, sending.sent
        session, address = sending.session, ready[0].name
        is_waiting = is_granted = False

        def go_on() -> None:
            connection.attempt(sent, lambda: self._next(sending, ready))

        if not (sent.response_required or sending.has_window):
            return has_room(session, address, connection, go_on)

        def grant(is_failing: bool) -> None:
            # Where it fails, sending says so.
            nonlocal is_granted
            is_granted = True
            if not is_waiting:
                return
            connection.waits(sent, is_waiting=False)
            if self._is_uploading:
                self._behind_upload.append(go_on)
            else:
                go_on()

        session.request_credits(address, grant)
        if is_granted:
            return True
        is_waiting = True
        connection.waits(sent, is_waiting=True)
        return False

    def _begin_large(self, sending: _Sending, message: Message) -> bool:
        """Keep a body outside of the journal, and send its message; whether that is done now."""
        uploads = sending.session.uploads
        body = bytes(message.body)
        message.body = b""
        self._is_uploading = True
        try:
            uploads.begin(message)
            for start in range(0, len(body), _CHUNK_SIZE):
                uploads.append(body[start : start + _CHUNK_SIZE])
        except (BrokerError, JournalError):
            self._is_uploading = False
            raise
        return self._finish_large(sending, message)

    def _finish_large(self, sending: _Sending, message: Message) -> bool:
        connection, uploads = self._connection, sending.session.uploads
        try:
            is_written = uploads.finish(connection.resume)
            if is_written:
                uploads.end(sending.size, _durable)
        except (BrokerError, JournalError):
            self._is_uploading = False
            raise
        if is_written:
            self._is_uploading = False
            return True

        def go_on() -> None:
            connection.attempt(sending.sent, lambda: self._go_on_large(sending, message))
            behind, self._behind_upload = self._behind_upload, []
            for one in behind:
                one()

        connection.hold(go_on)
        return False

    def _go_on_large(self, sending: _Sending, message: Message) -> None:
        with self._within(sending):
            if not self._finish_large(sending, message):
                return
        self._producers.count(sending.session, message.address, sending.size)
        self._next(sending, None)


class _Sending:
    """A message on its way to its destinations."""

    __slots__ = ("has_window", "left", "sent", "session", "size")

    def __init__(
        self,
        sent: ActiveMQMessage,
        session: Session,
        left: Iterator[tuple[Target, Message]],
        has_window: bool,
    ) -> None:
        self.sent = sent
        self.session = session
        self.left = left
        self.has_window = has_window
        self.size = 0


_NO_TRANSACTION: Final = contextlib.nullcontext()


def _durable(error: Exception | None) -> None:
    """Who waits asks the session's context."""
