"""A session's work for messages whose body comes in parts, and is written as it comes.

    begin ─▶ append … has_room? ─▶ finish ─▶ the session sends it

One at a time. What was begun and not ended is dropped with the next one, or with the session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.errors import BrokerError, ErrorCode, broker_error
from broker.sessions.session_xa import XaWork
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.routing.dead_letters import DeadLetters
    from broker.routing.large_copies import BodyCopies
    from broker.sessions.prefixes import Prefixes
    from broker.storage.history import MessageHistory
    from broker.storage.large_bodies import LargeBodies, LargeUpload
    from broker.storage.manager import StorageManager

__all__ = ["LargeWork"]


class LargeWork(XaWork):
    """The part of a Session that is about large messages."""

    _storage: StorageManager
    _dead_letters: DeadLetters
    # None without storage for large messages.
    _large: LargeBodies | None
    # None where none is kept.
    _history: MessageHistory | None
    # Of its client's names.
    _prefixes: Prefixes
    # Where a message without an address goes.
    _default_address: str | None
    # A large message whose body is not complete.
    _upload: Message | None
    _body: LargeUpload | None
    # Those of the copies that diverts will make of it.
    _copies: BodyCopies | None

    def begin_large(self, message: Message) -> None:
        """Begin a message whose body follows in parts; one that was not ended is dropped.

        Raises:
            BrokerError: the broker has no place for large messages.
            JournalIOError: its file cannot be made.
        """
        self.drop_upload()
        if self._large is None:
            raise BrokerError(
                ErrorCode.NOT_IMPLEMENTED, "a broker that persists nothing keeps no large messages"
            )
        self._prefixes.remove_from(message)
        message.message_id = self._storage.new_id()
        self._body = self._large.create(message.message_id, is_durable=message.durable)
        message.large = self._body
        self._upload = message

    def append_large(self, chunk: bytes) -> None:
        """Add the next part of its body.

        Raises:
            BrokerError: none was begun.
            JournalIOError: the disk is full, or fails: the message is dropped.
        """
        body = self._large_body()
        assert self._upload is not None, "it has the body"
        history = self._history
        try:
            body.append(chunk)
            if history is not None and self._upload.durable:
                history.note_body(self._upload.message_id, chunk)
        except JournalIOError:
            self.drop_upload()
            raise

    def _large_body(self) -> LargeUpload:
        if self._body is None:
            raise broker_error(
                "large_message_not_initialised", "large-message not initialized on server"
            )
        return self._body

    def has_room(self, callback: Callable[[], object]) -> bool:
        """Whether the next part may come now; else `callback()` once what came is written."""
        return self._body is None or self._body.has_room(callback)

    def finish_large(self, callback: Callable[[], object]) -> bool:
        """Its body is complete: whether it is written too; else `callback()` when to ask again.

        Raises:
            BrokerError: none was begun.
            JournalIOError: the disk or database fails: the message is dropped.
        """
        body = self._large_body()
        message = self._upload
        assert message is not None, "it has the body"
        try:
            if self._copies is None:
                if not body.finish(sync=message.durable, callback=callback):
                    return False
                if message.address is None:
                    message.address = self._default_address
                self._copies = self._dead_letters.copies_for(body, message, 0)
            return self._copies is None or self._copies.is_complete(callback)
        except JournalIOError:
            self.drop_upload()
            raise

    def settle_large(self) -> None:
        """Block until what came of it is written, and the waiting callbacks were called."""
        if self._copies is not None:
            self._copies.settle()
        elif self._body is not None:
            self._body.settle()

    def take_upload(self) -> tuple[Message, BodyCopies | None]:
        """Give the message whose body is written (finish_large); it is this session's no more.

        And bodies for copies of it, if any are going to be made.
        """
        message, self._upload = self._upload, None
        assert message is not None, "finish_large() says so"
        self._body = None
        copies, self._copies = self._copies, None
        return message, copies

    def drop_upload(self) -> None:
        """Forget what was begun and not ended."""
        body, self._body = self._body, None
        copies, self._copies = self._copies, None
        self._upload = None
        if copies is not None:
            copies.drop()
        if body is not None:
            body.close()
            body.delete()
