"""What a message knows of the file where its bytes lie, and of who counts its memory.

Files of messages use this one, and it uses none of them.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

__all__ = ["MessageOwner", "SpillFile", "SpilledMessage"]

M_contra = TypeVar("M_contra", contravariant=True)


class SpilledMessage(Protocol):
    """What a file needs of a message whose bytes it has."""

    references: int
    """How many queues have it."""

    def forget_bytes(self, aside: SpillFile, place: int) -> None:
        """Forget again what was read back from there, unless it was changed since."""


class SpillFile(Protocol):
    """A file with the bytes of messages that wait; see storage/spill_file.py."""

    def read(self, place: int, size: int) -> bytes:
        """Give the bytes that were put there.

        Raises:
            JournalIOError: the disk fails.
        """

    def was_read(self, message: SpilledMessage, place: int, size: int) -> None:
        """A message has its bytes in memory again: it is told when to forget them."""


class MessageOwner(Protocol[M_contra]):
    """Who counts the memory of a message while queues have it."""

    def add(self, message: M_contra) -> None:
        """One more queue has it."""

    def remove(self, message: M_contra) -> None:
        """One queue less has it."""
