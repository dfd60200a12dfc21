"""Large messages of one session: the body comes in parts, and is written as it comes.

    begin ─▶ append … has_room? ─▶ finish ─▶ end: the session sends it

One at a time. What was begun and not ended is dropped with the next one, or with the session.

Threads: the event loop's alone; nothing here waits but settle().
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.model.large_body import LARGE_SIZE
from broker.model.properties import PropertyType
from broker.sessions.sender import SendingSession
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.routing.dead_letters import DeadLetters
    from broker.routing.large_copies import BodyCopies
    from broker.routing.postoffice import Routing
    from broker.sessions.session_options import SessionOptions
    from broker.storage.context import After
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies, LargeUpload
    from broker.storage.manager import StorageManager
    from journal.errors import JournalError

__all__ = ["Uploads"]


class UploadingSession(SendingSession, Protocol):
    """What uploads need of their session."""

    options: SessionOptions

    @property
    def default_address(self) -> str | None:
        """Where a message without an address goes."""

    def fail_send(self, error: BrokerError | JournalError) -> None:
        """Let a transaction that a message was for only be rolled back: it did not come whole."""


class Uploads:
    """See the module's text.

    Args:
        session: that sends what is complete.
        storage: gives ids.
        large: where bodies go; None without storage for them.
        history: of the message journal; None where none is kept.
        dead_letters: makes bodies for the copies that diverts will make.
    """

    __slots__ = (
        "_body",
        "_copies",
        "_dead_letters",
        "_history",
        "_large",
        "_message",
        "_session",
        "_storage",
    )

    def __init__(
        self,
        session: UploadingSession,
        storage: StorageManager,
        large: LargeBodies | None,
        history: MessageHistory | None,
        dead_letters: DeadLetters,
    ) -> None:
        self._session = session
        self._storage = storage
        self._large = large
        self._history = history
        self._dead_letters = dead_letters
        # A large message whose body is not complete.
        self._message: Message | None = None
        self._body: LargeUpload | None = None
        # Those of the copies that diverts will make of it.
        self._copies: BodyCopies | None = None

    def begin(self, message: Message) -> None:
        """Begin a message whose body follows in parts; one that was not ended is dropped.

        Raises:
            BrokerError: the broker has no place for large messages.
            JournalIOError: its file cannot be made.
        """
        self.drop()
        if self._large is None:
            error = BrokerError(
                ErrorCode.NOT_IMPLEMENTED, "a broker that persists nothing keeps no large messages"
            )
            self._session.fail_send(error)
            raise error
        self._session.options.prefixes.remove_from(message)
        message.message_id = self._storage.new_id()
        try:
            self._body = self._large.create(message.message_id, is_durable=message.durable)
        except JournalIOError as error:
            self._session.fail_send(error)
            raise
        message.large = self._body
        self._message = message

    def append(self, chunk: bytes) -> None:
        """Add the next part of its body.

        Raises:
            BrokerError: none was begun.
            JournalIOError: the disk is full, or fails: the message is dropped.
        """
        body = self._begun()
        assert self._message is not None, "it has the body"
        history = self._history
        try:
            body.append(chunk)
            if history is not None and self._message.durable:
                history.note_body(self._message.message_id, chunk)
        except JournalIOError as error:
            self.drop()
            self._session.fail_send(error)
            raise

    def _begun(self) -> LargeUpload:
        if self._body is None:
            raise broker_error(
                "large_message_not_initialised", "large-message not initialized on server"
            )
        return self._body

    def has_room(self, callback: Callable[[], object]) -> bool:
        """Whether the next part may come now; else `callback()` once what came is written."""
        return self._body is None or self._body.has_room(callback)

    def finish(self, callback: Callable[[], object]) -> bool:
        """Its body is complete: whether it is written too; else `callback()` when to ask again.

        Raises:
            BrokerError: none was begun.
            JournalIOError: the disk or database fails: the message is dropped.
        """
        body = self._begun()
        message = self._message
        assert message is not None, "it has the body"
        try:
            if self._copies is None:
                if not body.finish(sync=message.durable, callback=callback):
                    return False
                if message.address is None:
                    message.address = self._session.default_address
                large = message.large
                assert large is not None, "it was given the body"
                self._copies = self._dead_letters.copies_for(large, message, 0)
            return self._copies is None or self._copies.is_complete(callback)
        except JournalIOError as error:
            self.drop()
            self._session.fail_send(error)
            raise

    def settle(self) -> None:
        """Block until what came of it is written, and the waiting callbacks were called."""
        if self._copies is not None:
            self._copies.settle()
        elif self._body is not None:
            self._body.settle()

    def end(self, body_size: int, done: After, *arguments: object) -> Routing:
        """Send it, its body being written (finish); as `Session.send()`.

        Args:
            body_size: bytes of the body before it was compressed; -1 if unknown.
            done: called once it is durable.
            *arguments: for `done`.

        Raises:
            BrokerError: it is refused.
            JournalError: the storage has failed.
        """
        message, self._message = self._message, None
        assert message is not None, "finish() says so"
        self._body = None
        copies, self._copies = self._copies, None
        if body_size >= 0:
            message.set(LARGE_SIZE, PropertyType.LONG, body_size)
        with self._dead_letters.using(copies):
            return self._session.send(message, done, *arguments)

    def drop(self) -> None:
        """Forget what was begun and not ended."""
        body, self._body = self._body, None
        copies, self._copies = self._copies, None
        self._message = None
        if copies is not None:
            copies.drop()
        if body is not None:
            body.close()
            body.delete()
