"""Bodies of large messages that are copied, or written, before the message goes on its way.

    needed? ─▶ begun ─▶ (store) ─▶ complete ─▶ the copy is routed, in one turn of the event loop

What is moved, diverted or sent on is a message of its own, with a body of its own: a hard link in a
folder, rows in a table. Copying rows takes time, and nothing else waits for it: all bodies that one
routing needs are made beforehand. The original is acknowledged in the transaction that records the
copy, as if there had been nothing to wait for. A crash before that leaves the original where it
was, and bodies that belong to no message, which the next start deletes.

The broker also notes in what it moves where it came from; what just fitted the storage before may
not fit it with that, and is kept as a large message (LargeServerMessageImpl.checkLargeMessage).

Threads: the event loop's alone. What waits is a generator, which yields seconds to wait, for those
that have no callback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.model.large_body import LARGE_SIZE
from broker.model.properties import PropertyType
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from broker.model.large_body import LargeBody, LargeCopy
    from broker.model.message import Message
    from broker.storage.large_bodies import LargeBodies

__all__ = [
    "DIVERT_DEPTH_MAX",
    "LOOK_AGAIN_S",
    "BodyCopies",
    "await_body",
    "copy_now",
    "keep_as_large",
]

LOOK_AGAIN_S: Final = 0.02
# Diverts may lead to diverts; a loop of them is the user's, but it must end.
DIVERT_DEPTH_MAX: Final = 16


def _nothing() -> None:
    """For those who look again."""


class BodyCopies:
    """Copies of one body, for messages to come. Those that were not taken are to be dropped.

    Args:
        body: complete.
        is_durable: they have to be on the disk before they are used.
        ids: of the messages.

    Raises:
        JournalIOError: the disk fails; nothing was begun.
    """

    def __init__(self, body: LargeBody, *, is_durable: bool, ids: list[int]) -> None:
        # Bodies of the same bytes: a copy is copied again where a divert leads to a divert.
        self._equal: list[LargeBody] = [body]
        self._is_durable = is_durable
        self._copies: list[tuple[int, LargeCopy]] = []
        try:
            for message_id in ids:
                self._copies.append((message_id, body.copy(message_id)))
        except JournalIOError:
            self.drop()
            raise

    def is_complete(self, callback: Callable[[], object]) -> bool:
        """Whether all may be taken; else `callback()` when to ask again.

        Raises:
            JournalIOError: the disk or database failed; they are dropped.
        """
        try:
            return all(
                copy.finish(sync=self._is_durable, callback=callback) for _, copy in self._copies
            )
        except JournalIOError:
            self.drop()
            raise

    def wait(self, callback: Callable[[], object]) -> Generator[float, None, None]:
        """Yield until all may be taken, each time with a call to come of `callback`.

        Raises:
            JournalIOError: the disk or database failed; they are dropped.
        """
        while not self.is_complete(callback):
            yield LOOK_AGAIN_S

    def take(self, body: LargeBody) -> tuple[int, LargeBody] | None:
        """Give the id of a message and its body; None for another one, or if none is left."""
        if not self._copies or not any(body is one for one in self._equal):
            return None
        message_id, copy = self._copies.pop(0)
        self._equal.append(copy)
        return message_id, copy

    def settle(self) -> None:
        """Block until what was begun is written and its callbacks were called."""
        for _, copy in self._copies:
            copy.settle()

    def drop(self) -> None:
        """Delete copies that were not taken. Idempotent."""
        copies, self._copies = self._copies, []
        for _, copy in copies:
            copy.close()
            copy.delete()


def copy_now(body: LargeBody, message_id: int, *, is_durable: bool) -> LargeBody:
    """Copy a body; blocks until that is complete: for the few that were not foreseeable.

    Raises:
        JournalIOError: the disk or database failed.
    """
    copies = BodyCopies(body, is_durable=is_durable, ids=[message_id])
    while not copies.is_complete(_nothing):
        copies.settle()
    found = copies.take(body)
    assert found is not None, "one was made"
    return found[1]


def await_body(
    body: LargeBody,
    message_id: int,
    *,
    is_durable: bool,
) -> Generator[float, None, LargeBody]:
    """Copy a body.

    Raises:
        JournalIOError: the disk or database failed.
    """
    copies = BodyCopies(body, is_durable=is_durable, ids=[message_id])
    yield from copies.wait(_nothing)
    found = copies.take(body)
    assert found is not None, "one was made"
    return found[1]


def keep_as_large(
    message: Message, files: LargeBodies, callback: Callable[[], object] = _nothing
) -> Generator[float, None, None]:
    """Put the body of a message that no queue has yet into a file or table.

    It is there at the end, on the disk where the message is durable.

    Args:
        message: with its id.
        files: where to.
        callback: called when to go on, each time it has yielded.

    Raises:
        JournalIOError: the disk is full, or fails; the message is as it was.
    """
    body = bytes(message.body)
    large = files.create(message.message_id, is_durable=message.durable)
    try:
        large.append(body)
        while not large.finish(sync=message.durable, callback=callback):
            yield LOOK_AGAIN_S
    except JournalIOError:
        large.close()
        large.delete()
        raise
    message.body = b""
    message.is_large = True
    message.large = large
    if message.get(LARGE_SIZE) is None:
        message.set(LARGE_SIZE, PropertyType.LONG, len(body))
