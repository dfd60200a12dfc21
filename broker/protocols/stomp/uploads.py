"""Large messages that a client sends: written to their place as the body comes.

    SEND ─▶ begin ─▶ append … ─▶ finish ─▶ the session sends it

While a body waits to be written the connection is held: nothing is read, and no frame is looked at.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.properties import PropertyType
from broker.protocols.stomp.errors import StompError

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.model.message import Message
    from broker.sessions.session import Session
    from broker.storage.context import After

__all__ = ["MESSAGE_ID", "Upload"]

# Of stompEnableMessageId.
MESSAGE_ID: Final = "amqMessageId"
# What is handed over at a time of a body that is in memory.
_CHUNK_SIZE: Final = 128 * 1024


class Upload:
    """One of them; it is begun when it is made.

    Args:
        session: that sends it.
        message: without its body.
        large_size: bytes of a body that is large; headers of as many are refused.
        sets_id: stompEnableMessageId.

    Attributes:
        size: bytes of the body so far.
        message: as given.
        session: as given.

    Raises:
        StompError: its headers are too large.
        BrokerError: the broker has no place for large messages.
        JournalIOError: its file cannot be made.
    """

    def __init__(
        self, session: Session, message: Message, large_size: int, *, sets_id: bool
    ) -> None:
        if len(message.encode_headers()) >= large_size:
            raise StompError(
                "AMQ339028: Message header too big, increase minLargeMessageSize please."
            )
        self.session = session
        self.message = message
        self.size = 0
        session.uploads.begin(message)
        if sets_id:
            message.set(MESSAGE_ID, PropertyType.STRING, f"STOMP{message.message_id}")

    def append(self, data: bytes) -> None:
        """Add some bytes of the body.

        Raises:
            JournalIOError: the disk is full, or fails: the message is dropped.
        """
        uploads = self.session.uploads
        for start in range(0, len(data), _CHUNK_SIZE):
            uploads.append(data[start : start + _CHUNK_SIZE])
        self.size += len(data)

    def has_room(self, callback: Callable[[], object]) -> bool:
        """Whether more may come now; else `callback()` then."""
        return self.session.uploads.has_room(callback)

    def finish(self, callback: Callable[[], object]) -> bool:
        """The body is complete: whether it is written; else `callback()` when to ask again.

        Raises:
            JournalIOError: the disk or database fails: the message is dropped.
        """
        return self.session.uploads.finish(callback)

    def send(self, done: After, *arguments: object) -> None:
        """Send it, its body being written.

        Raises:
            BrokerError: it is refused.
            JournalError: the storage has failed.
        """
        self.session.uploads.end(self.size, done, *arguments)

    def drop(self) -> None:
        """Forget it: it does not come whole."""
        self.session.uploads.drop()
