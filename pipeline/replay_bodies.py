"""The bodies of large messages that are sent again: files where they are still there, else pieces.

A database has the body in rows, and a history in pieces, events beside the records; they are put
together in a file on this machine's disk, which is sent and gone.
"""

from __future__ import annotations

import os
import tempfile
from itertools import chain
from typing import IO, TYPE_CHECKING

from broker.client.content import LARGE_COMPRESSED, LARGE_SIZE
from broker.model.encoding import RecordFormatError
from broker.records.amqp_large_message import LargeAmqpMessage
from broker.records.amqp_sections import BODY_START_MAX, body_start
from pipeline.large_bodies import body_pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from broker.model.large_body import ReadableBody
    from broker.model.message import Message
    from pipeline.replay import Part

__all__ = ["MissingBody", "ReplayBodies"]


class MissingBody(Exception):
    """A body is missing in whole or part; the text says which part is there."""


class ReplayBodies:
    """Finds them; asked by node and message id, in that order.

    Args:
        folders: by node, those of large messages.
        tables: by node, what finds a body in a database.
        parts: of all the messages that will be asked for, in the same order.
    """

    def __init__(
        self,
        folders: Mapping[str, Sequence[Path]],
        tables: Mapping[str, Sequence[Callable[[int], ReadableBody | None]]],
        parts: Iterable[Part],
    ) -> None:
        self._folders = folders
        self._tables = tables
        self._parts = iter(parts)

    def open(self, node: str, message_id: int, message: Message) -> IO[bytes]:
        """Give the whole body as it was stored, to be closed: of AMQP all sections.

        Raises:
            MissingBody: it is not there, or not whole.
            OSError: a disk fails, or is full.
            JournalIOError: a database cannot be read.
        """
        found = self._found(node, message_id, message)
        if isinstance(message, LargeAmqpMessage) and not _ends_behind(found, message.body_at):
            found.close()
            raise MissingBody("its body is not whole")
        return found

    def _found(self, node: str, message_id: int, message: Message) -> IO[bytes]:
        for folder in self._folders.get(node, ()):
            path = folder / f"{message_id}.msg"
            if path.is_file():
                return path.open("rb")
        for find in self._tables.get(node, ()):
            stored = find(message_id)
            if stored is not None:
                return _put_together(body_pieces(stored), stored.size)
        # What a client compressed is as long as it was before, by that property.
        size = message.get(LARGE_SIZE)
        if message.get(LARGE_COMPRESSED) is True or not isinstance(size, int):
            size = None
        return _put_together(self._parts_of(node, message_id), size)

    def _parts_of(self, node: str, message_id: int) -> Iterator[bytes]:
        """Give the pieces that a history has, and pass over those of messages before."""
        for part in self._parts:
            place = (part.node, part.message_id)
            if place > (node, message_id):
                self._parts = chain((part,), self._parts)
                return
            if place == (node, message_id):
                yield part.data


def _ends_behind(stored: IO[bytes], at: int) -> bool:
    """Whether the last section of an AMQP message's body is whole; no record has its size.

    Args:
        stored: all its sections.
        at: where its body begins.
    """
    size = stored.seek(0, os.SEEK_END)
    is_whole = at < size
    while at < size:
        stored.seek(at)
        try:
            section = body_start(stored.read(BODY_START_MAX))
        except RecordFormatError:
            is_whole = False
            break
        if section is None:
            break  # A footer.
        at += section.content_at + section.content_size
        is_whole = at <= size
    stored.seek(0)
    return is_whole


def _put_together(pieces: Iterable[bytes], expected: int | None) -> IO[bytes]:
    """Give a file with all of them.

    Args:
        pieces: of the body.
        expected: bytes that it has; None: not known, but there are some.

    Raises:
        MissingBody: it is not there, or not whole.
        OSError: the disk fails, or is full.
    """
    body = tempfile.TemporaryFile()  # noqa: SIM115 - the caller's
    try:
        size = sum(map(body.write, pieces))
        if size == 0 and expected != 0:
            raise MissingBody("its body is not there")
        if expected is not None and size != expected:
            raise MissingBody(f"{size} of {expected} bytes of its body are there")
        body.seek(0)
    except BaseException:
        body.close()
        raise
    return body
