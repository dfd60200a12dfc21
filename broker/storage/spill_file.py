"""Bytes of messages that a start found and that are not needed yet, in files without a name.

    put(message) ─▶ gathered ─▶ a thread writes ─▶ segment of 64 MiB
    message ─▶ segment.read() ─▶ was_read() ─▶ … the longest read ones are forgotten again

The journal has them as well, but moves them when it compacts, without notice; a database would have
to be asked for each. So they are written once more, beside the start and on another core, to a file
that is deleted as soon as it is open. A crash leaves nothing, and a segment's room on the disk is
free again when the last of its messages has gone. Not synced: it holds copies.

Where the disk has no room the bytes stay in memory.

Threads: the event loop's; one thread of its own writes.
"""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from journal.errors import JournalIOError

if TYPE_CHECKING:
    from concurrent.futures import Future
    from pathlib import Path

    from broker.model.message import Message
    from broker.model.message_owners import SpilledMessage
    from broker.model.message_owners import SpillFile as WaitingFile

__all__ = ["Segment", "SpillFile"]

log = logging.getLogger("broker")

SEGMENT_SIZE: Final = 64 << 20
# Handed to the thread at once; os.pwritev takes so many buffers (IOV_MAX of Linux).
WRITE_SIZE: Final = 1 << 20
WRITE_COUNT: Final = 1024
# Pieces that wait for the thread at most.
BACKLOG_MAX: Final = 8
# Bytes of messages that stay in memory from the start on: the first to be wanted.
KEPT_SIZE: Final = 32 << 20
# Bytes that were read back and are not forgotten yet: more than consumers ask for ahead.
READ_BACK_SIZE: Final = 32 << 20


class Segment:
    """A file with the bytes of some messages; it goes with the last message that knows it.

    Args:
        owner: of all segments.
        fd: of a file without a name; closed with the segment.
    """

    def __init__(self, owner: SpillFile, fd: int) -> None:
        self._owner = owner
        self._fd = fd
        # What could not be written, by its place.
        self._unwritten: dict[int, bytes] = {}

    def __del__(self) -> None:
        os.close(self._fd)

    def write(self, place: int, data: list[bytes]) -> None:
        """Write bytes at a place, or keep them if there is no room; in the thread."""
        try:
            written = os.pwritev(self._fd, data, place)
            if written < sum(map(len, data)):
                whole = b"".join(data)
                while written < len(whole):
                    written += os.pwrite(self._fd, whole[written:], place + written)
        except OSError as error:
            if not self._unwritten:
                log.warning("bytes of waiting messages stay in memory: %s", error)
            for one in data:
                self._unwritten[place] = one
                place += len(one)

    def read(self, place: int, size: int) -> bytes:
        """Give bytes of one message.

        Raises:
            JournalIOError: the disk fails.
        """
        if self._unwritten and place in self._unwritten:
            return self._unwritten[place]
        try:
            data = os.pread(self._fd, size, place)
        except OSError as error:
            raise JournalIOError(
                error.errno or errno.EIO, "cannot read the bytes of waiting messages"
            ) from error
        if len(data) != size:
            raise JournalIOError(errno.EIO, "the bytes of waiting messages are truncated")
        return data

    def was_read(self, message: SpilledMessage, place: int, size: int) -> None:
        """Tell the owner that a message has its bytes in memory again."""
        self._owner.was_read(message, self, place, size)


class SpillFile:
    """All segments of one start.

    Args:
        folder: on a disk with room for them.
        kept_size: bytes that are left in memory; None is KEPT_SIZE.

    Attributes:
        size: bytes that were spilled.
    """

    def __init__(self, folder: Path, kept_size: int | None = None) -> None:
        self.size = 0
        self._folder = folder
        self._kept_size = KEPT_SIZE if kept_size is None else kept_size
        self._segment: Segment | None = None
        self._batch: list[bytes] = []
        # In the segment: of the batch, and behind it.
        self._batch_place = self._place = 0
        self._writer: ThreadPoolExecutor | None = None
        self._writing: deque[Future[None]] = deque()
        # Messages that have their bytes in memory again, and from where: file, place, size.
        self._read: deque[tuple[SpilledMessage, WaitingFile, int, int]] = deque()
        self._read_size = 0

    def take(self, message: Message) -> None:
        """Spill the bytes of a message, unless there is still room for them in memory."""
        data = message.encode()
        size = len(data)
        if self._kept_size > 0:
            self._kept_size -= size
            return
        segment = self._segment
        if segment is None or self._place + size > SEGMENT_SIZE:
            segment = self._next_segment()
            if segment is None:
                return
        message.spill(segment, self._place)
        batch = self._batch
        batch.append(data)
        self._place += size
        self.size += size
        if self._place - self._batch_place >= WRITE_SIZE or len(batch) == WRITE_COUNT:
            self._hand_over()

    def _next_segment(self) -> Segment | None:
        self._hand_over()
        try:
            # It has no name where the file system can do without, and loses it at once elsewhere.
            with tempfile.TemporaryFile(dir=self._folder) as file:
                fd = os.dup(file.fileno())
        except OSError as error:
            log.warning("bytes of waiting messages stay in memory: %s", error)
            self._kept_size = 1 << 62
            return None
        self._segment = Segment(self, fd)
        self._batch_place = self._place = 0
        return self._segment

    def _hand_over(self) -> None:
        if not self._batch:
            return
        assert self._segment is not None, "it has the batch"
        if self._writer is None:
            self._writer = ThreadPoolExecutor(1, thread_name_prefix="spill-file")
        batch, self._batch = self._batch, []
        self._writing.append(self._writer.submit(self._segment.write, self._batch_place, batch))
        self._batch_place = self._place
        if len(self._writing) > BACKLOG_MAX:
            self._writing.popleft().result()

    def finish(self) -> None:
        """Wait until all is written: before it nothing may be read back."""
        self._hand_over()
        while self._writing:
            self._writing.popleft().result()
        if self._writer is not None:
            self._writer.shutdown()
            self._writer = None
        self._segment = None

    def close(self) -> None:
        """Know no message any more that was read back: their bytes stay in memory."""
        self._read.clear()
        self._read_size = 0

    def was_read(self, message: SpilledMessage, file: WaitingFile, place: int, size: int) -> None:
        """A message has its bytes in memory again; the longest read ones forget theirs."""
        self._read.append((message, file, place, size))
        self._read_size += size
        while len(self._read) > 1 and (self._read_size > READ_BACK_SIZE or self._is_oldest_gone()):
            self._forget_oldest()

    def _is_oldest_gone(self) -> bool:
        """Whether no queue has the message that was read longest ago: its file may be closed."""
        message = self._read[0][0]
        return message.references == 0

    def _forget_oldest(self) -> None:
        message, file, place, size = self._read.popleft()
        self._read_size -= size
        # What no queue has goes as soon as it is unused; its file may be used again by then.
        if message.references:
            message.forget_bytes(file, place)
