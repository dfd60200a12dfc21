"""A message that grew, kept as a large one.

The broker notes in what it moves where it came from; what just fitted the storage before may not
fit it with that (LargeServerMessageImpl.checkLargeMessage).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from broker.storage.properties import PropertyType

if TYPE_CHECKING:
    from broker.message import Message
    from broker.storage.large_bodies import LargeBodies

__all__ = ["LARGE_SIZE", "keep_as_large"]

LARGE_SIZE: Final = "_AMQ_LARGE_SIZE"


def keep_as_large(message: Message, files: LargeBodies) -> None:
    """Put the body of a message, which nobody has yet, into a file or table.

    Blocks until it is there, on the disk where the message is durable.

    Raises:
        JournalIOError: the disk is full, or fails; the message is as it was.
    """
    body = bytes(message.body)
    large = files.create(message.message_id, is_durable=message.durable)
    try:
        large.append(body)
        while not large.finish(sync=message.durable, callback=lambda: None):
            large.settle()
    except BaseException:
        large.close()
        large.delete()
        raise
    message.body = b""
    message.is_large = True
    message.large = large
    if message.get(LARGE_SIZE) is None:
        message.set(LARGE_SIZE, PropertyType.LONG, len(body))
