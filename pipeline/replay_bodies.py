"""The bodies of large messages that are sent again: files where they are still there, else pieces.

A history has the body in pieces, events beside the records; they are put together in a file on this
machine's disk, which is sent and gone.
"""

from __future__ import annotations

import tempfile
from itertools import chain
from typing import IO, TYPE_CHECKING

from broker.client.content import LARGE_COMPRESSED, LARGE_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from broker.message import Message
    from pipeline.replay import Part

__all__ = ["MissingBody", "ReplayBodies"]


class MissingBody(Exception):
    """A body is not there, or not all of it; the text says what is."""


class ReplayBodies:
    """Finds them; asked by node and message id, in that order.

    Args:
        folders: by node, those of large messages.
        parts: of all the messages that will be asked for, in the same order.
    """

    def __init__(self, folders: Mapping[str, Sequence[Path]], parts: Iterable[Part]) -> None:
        self._folders = folders
        self._parts = iter(parts)

    def open(self, node: str, message_id: int, message: Message) -> IO[bytes]:
        """Give the whole body, to be closed.

        Raises:
            MissingBody: it is not there, or not whole.
            OSError: a disk fails, or is full.
        """
        for folder in self._folders.get(node, ()):
            path = folder / f"{message_id}.msg"
            if path.is_file():
                return path.open("rb")
        return self._put_together(node, message_id, message)

    def _put_together(self, node: str, message_id: int, message: Message) -> IO[bytes]:
        body = tempfile.TemporaryFile()  # noqa: SIM115 - the caller's
        try:
            size = 0
            for part in self._parts:
                place = (part.node, part.message_id)
                if place > (node, message_id):
                    self._parts = chain((part,), self._parts)
                    break
                if place == (node, message_id):
                    size += body.write(part.data)
            expected = message.get(LARGE_SIZE)
            # What a client compressed is as long as it was before, by that property.
            if message.get(LARGE_COMPRESSED) is True or not isinstance(expected, int):
                expected = None
            if size == 0 and expected != 0:
                raise MissingBody("its body is not there")
            if expected is not None and size != expected:
                raise MissingBody(f"{size} of {expected} bytes of its body are there")
            body.seek(0)
        except BaseException:
            body.close()
            raise
        return body
