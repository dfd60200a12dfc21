"""What a message knows of the place where its bytes lie, and of who counts its memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from broker.model.message import Message
    from broker.model.message_form import MessageForm

__all__ = ["MessageOwner", "SpillFile"]


class SpillFile(Protocol):
    """A file with the bytes of messages that wait; see storage/spill_file.py."""

    def read(self, place: int, size: int) -> bytes:
        """Give the bytes that were put there.

        Raises:
            JournalIOError: the disk fails.
        """

    def was_read(self, message: MessageForm, place: int, size: int) -> None:
        """A message has its bytes in memory again: it is told when to forget them."""


class MessageOwner(Protocol):
    """Who counts the memory of a message while queues have it."""

    def add(self, message: Message) -> None:
        """One more queue has it."""

    def remove(self, message: Message) -> None:
        """One queue less has it."""
