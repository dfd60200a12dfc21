"""Bodies of large messages in a table of a database: what large_files.py says of files, of rows.

    LARGE_MESSAGES    file <message id>.msg of a durable message, <message id>.tmp of any other

A body comes in parts: they are gathered to pieces, and a thread appends piece after piece, each a
transaction that proves the broker's lease, while the event loop goes on. Senders are paused when
the thread does not keep pace (`has_room`), so that a body costs the same memory however large it
is. A body is read in pieces as well, by other threads, and the next one before it is wanted.

A record of a message (type 30) is appended behind the end of its body. Rows that a crash leaves
without a record belong to no message, and the next start deletes them.

Threads: the event loop's; work in the threads ends by a call there.
"""

from __future__ import annotations

import errno
import logging
import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from broker.storage.page_work import ThreadWork
from journal.errors import JournalError, JournalIOError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor

    from broker.storage.page_work import Job, PageWork
    from broker.storage.table_files import TableFile, TableFiles

__all__ = ["LargeTable", "TableBody"]

log = logging.getLogger("broker")

_NAME: Final = re.compile(r"(\d{1,19})\.(?:msg|tmp)")
# As much as one row of SQLite holds: a row is written once.
WRITE_SIZE: Final = 1 << 20
# Bytes of one body that wait for the thread before its sender is paused.
BACKLOG_MAX: Final = 2 << 20
# Larger than any part that a client asks for but the largest.
READ_SIZE: Final = 256 << 10
# For each reader, a part of 1 MiB, which may begin anywhere, and the piece behind it.
PIECES_KEPT: Final = (1 << 20) // READ_SIZE + 2
READERS: Final = 2


class TableBody:
    """One body; `Message.large` of a large message.

    Args:
        table: where it is.
        name: of its file.
        is_durable: it survives a restart.
        size: of one that is complete.

    Attributes:
        name: of its file.
        size: bytes so far.
        is_durable: it survives a restart.
    """

    __slots__ = (
        "_backlog",
        "_callback",
        "_failure",
        "_file",
        "_gathered",
        "_gathered_size",
        "_holders",
        "_is_deleted",
        "_jobs",
        "_pieces",
        "_reading",
        "_table",
        "is_durable",
        "name",
        "size",
    )

    def __init__(self, table: LargeTable, name: str, *, is_durable: bool, size: int) -> None:
        self._table = table
        self.name = name
        self.is_durable = is_durable
        self.size = size
        self._file: TableFile | None = None
        self._gathered: list[bytes] = []
        self._gathered_size = 0
        self._backlog = 0
        self._failure: Exception | None = None
        self._callback: Callable[[], object] | None = None
        self._jobs: dict[Job, int] = {}
        self._holders = 0
        self._is_deleted = False
        # Read pieces by number, the one used last at the end, and who waits for one on its way.
        self._pieces: OrderedDict[int, bytes | Exception] = OrderedDict()
        self._reading: dict[int, list[Callable[[], object]]] = {}

    # --- writing ------------------------------------------------------------------------------

    def append(self, chunk: bytes) -> None:
        """Take the next bytes; they are written soon.

        Raises:
            JournalIOError: the database failed at what came before.
        """
        self._check()
        self._gathered.append(bytes(chunk))
        self._gathered_size += len(chunk)
        self.size += len(chunk)
        if self._gathered_size >= WRITE_SIZE:
            self._hand_over()

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _hand_over(self) -> None:
        data, self._gathered = self._gathered, []
        size, self._gathered_size = self._gathered_size, 0
        self._backlog += size
        job: Job | None = None

        def done(_: object, error: Exception | None) -> None:
            assert job is not None, "it is told of in a later turn"
            self._written(job, error)

        job = self._table.writing.run(lambda: self._write(data), done)
        self._jobs[job] = size

    def _write(self, data: list[bytes]) -> None:
        """In the thread."""
        if self._is_deleted or self._failure is not None:
            return
        try:
            if self._file is None:
                self._file = self._table.files.open(self.name)
            self._file.append(b"".join(data))
        except JournalError as error:
            # Nothing is appended behind a piece that may be missing.
            self._failure = error
            raise

    def _written(self, job: Job, error: Exception | None) -> None:
        self._backlog -= self._jobs.pop(job)
        if error is not None:
            self._failure = error
        if self._callback is not None and (not self._jobs or self._failure is not None):
            callback, self._callback = self._callback, None
            callback()

    def has_room(self, callback: Callable[[], object]) -> bool:
        """Whether more may be appended now; else `callback()` once all so far is written."""
        if self._backlog < BACKLOG_MAX or self._failure is not None:
            return True
        self._callback = callback
        return False

    def finish(self, *, sync: bool, callback: Callable[[], object]) -> bool:
        """It is complete: whether it is in the table now; else `callback()` once it is.

        Every piece is durable when it is written; `sync` asks for nothing more.

        Raises:
            JournalIOError: the database failed.
        """
        self._check()
        if self._gathered or (self._file is None and not self._jobs):
            self._hand_over()
        if not self._jobs:
            return True
        self._callback = callback
        return False

    def settle(self) -> None:
        """Wait until what was handed over is written, and tell of it; blocks."""
        for job in list(self._jobs):
            job.finish()

    # --- reading ------------------------------------------------------------------------------

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        """Whether read() gives these bytes without waiting; else `callback()` when it may be so."""
        first, last = offset // READ_SIZE, max(offset, offset + size - 1) // READ_SIZE
        wanted = [number for number in range(first, last + 1) if number * READ_SIZE < self.size]
        missing = [number for number in wanted if number not in self._pieces]
        # One more, which comes while these are sent.
        for number in [*missing, last + 1]:
            self._fetch(number)
        if missing:
            self._reading[missing[-1]].append(callback)
        return not missing

    def _fetch(self, number: int) -> None:
        if number in self._pieces or number in self._reading or number * READ_SIZE >= self.size:
            return
        self._reading[number] = []
        self._table.reading.run(
            lambda: self._read_file(number * READ_SIZE, READ_SIZE),
            lambda data, error: self._fetched(number, error or data),
        )

    def _fetched(self, number: int, data: bytes | Exception) -> None:
        waiting = self._reading.pop(number)
        self._pieces[number] = data
        while len(self._pieces) > self._holders * PIECES_KEPT:
            self._pieces.popitem(last=False)
        for callback in waiting:
            callback()

    def _read_file(self, offset: int, size: int) -> bytes:
        file = self._table.files.find(self.name)
        if file is None:
            raise JournalIOError(errno.ENOENT, "the body of a large message is gone", self.name)
        return file.read_at(offset, size)

    def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on; blocks where is_ready() was not asked.

        Raises:
            JournalIOError: the database failed, or the body is gone.
        """
        found = []
        end = min(offset + size, self.size)
        while offset < end:
            number, start = divmod(offset, READ_SIZE)
            piece = self._pieces.get(number)
            if piece is None:
                data = self._read_file(offset, min(end - offset, READ_SIZE))
            elif isinstance(piece, Exception):
                del self._pieces[number]
                raise piece
            else:
                self._pieces.move_to_end(number)
                data = piece[start : start + end - offset]
                if self._holders == 1 and start + len(data) == READ_SIZE:
                    # No other reader wants it.
                    del self._pieces[number]
            if not data:
                break
            found.append(data)
            offset += len(data)
        return found[0] if len(found) == 1 else b"".join(found)

    def hold(self) -> None:
        """Keep the rows until release(): delete() takes nothing away meanwhile."""
        self._holders += 1

    def release(self) -> None:
        """One who held it reads no more."""
        self._holders -= 1
        if self._holders == 0:
            self._pieces.clear()
            # They are those who held it; of a broker that stops, the pieces never come.
            for waiting in self._reading.values():
                waiting.clear()
            if self._is_deleted:
                self._delete_rows()

    def copy(self, message_id: int) -> TableBody:
        """Give the same body to another message; in the table once finish() says so.

        Within the database: of PostgreSQL the row alone is copied, which names the same object;
        of others the bytes, row after row, and what others write comes in between.
        """
        name = _file_name(message_id, is_durable=self.is_durable)
        copied = TableBody(self._table, name, is_durable=self.is_durable, size=self.size)
        # Its rows stay until they are copied, even if it is deleted.
        self.hold()
        copied._copy_next(self._table.files.copy_rows(self.name, name), self)
        return copied

    def _copy_next(self, rows: Iterator[int], source: TableBody) -> None:
        """Have the next row of another body copied to this one."""
        job: Job | None = None

        def done(is_more: bool | None, error: Exception | None) -> None:
            assert job is not None, "it is told of in a later turn"
            if is_more and not self._is_deleted:
                self._copy_next(rows, source)
            else:
                source.release()
            self._written(job, error)

        job = self._table.writing.run(lambda: self._copy_row(rows), done)
        self._jobs[job] = 0

    def _copy_row(self, rows: Iterator[int]) -> bool:
        """In the thread; whether there may be more."""
        if self._is_deleted:
            return False
        if next(rows, None) is not None:
            return True
        self._file = self._table.files.find(self.name)
        return False

    # --- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Give it up: the callback that waits for it is called now. Idempotent."""
        self._pieces.clear()
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()

    def delete(self) -> None:
        """Remove it, soon; readers that hold it read on. Idempotent.

        A crash before that leaves rows that belong to no message: the next start removes them.
        """
        if not self._is_deleted:
            self._is_deleted = True
            self._gathered.clear()
            if self._holders == 0:
                self._delete_rows()

    def _delete_rows(self) -> None:
        if self._table.is_closed:
            return
        self._table.writing.run(lambda: self._table.delete(self.name), self._deleted)

    def _deleted(self, _: object, error: Exception | None) -> None:
        if error is not None:
            log.warning("the body %s stays until the next start: %s", self.name, error)


def _file_name(message_id: int, *, is_durable: bool) -> str:
    return f"{int(message_id)}.{'msg' if is_durable else 'tmp'}"


class LargeTable:
    """All bodies (large-message-table-name).

    Args:
        files: of the table, started.
    """

    writing: PageWork
    reading: PageWork

    def __init__(self, files: TableFiles) -> None:
        self.files = files
        self._works: list[PageWork] = []
        # Nothing is done any more: what is to be deleted goes at the next start.
        self.is_closed = False

    def start(
        self, loop: asyncio.AbstractEventLoop, executor: Callable[[int, str], Executor]
    ) -> None:
        """Begin: threads tell `loop`, whose thread everything else is called from."""
        # One writes: pieces come in their order, and a delete behind them.
        self.writing = ThreadWork(loop, executor(1, "large-write"))
        self.reading = ThreadWork(loop, executor(READERS, "large-read"))
        self._works = [self.writing, self.reading]

    def close(self) -> None:
        """Do what was begun, and end the threads. Idempotent."""
        self.is_closed = True
        works, self._works = self._works, []
        for work in works:
            work.close()

    def create(self, message_id: int, *, is_durable: bool) -> TableBody:
        """Begin a body; its row is made with its first piece."""
        name = _file_name(message_id, is_durable=is_durable)
        return TableBody(self, name, is_durable=is_durable, size=0)

    def find(self, message_id: int) -> TableBody | None:
        """Give the body of a message, durable or not; None where there is none.

        Raises:
            JournalIOError: the database failed.
        """
        for is_durable in (True, False):
            name = _file_name(message_id, is_durable=is_durable)
            file = self.files.find(name)
            if file is not None:
                return TableBody(self, name, is_durable=is_durable, size=file.size)
        return None

    def delete(self, name: str) -> None:
        """Remove a file, if it is there; from any thread."""
        file = self.files.find(name)
        if file is not None:
            file.delete()

    def sweep_temporary(self) -> int:
        """Delete bodies of messages that are not durable, before anything is loaded; how many.

        Raises:
            JournalIOError: the database failed.
        """
        return self._sweep("tmp", lambda _: True)

    def sweep(self, kept: set[int], below: int = 2**63) -> int:
        """Delete what belongs to no message, after a start; how many.

        Args:
            kept: ids of the durable large messages.
            below: ids from here on are of messages that came after the start.

        Raises:
            JournalIOError: the database failed.
        """
        return self._sweep("tmp", lambda message_id: message_id < below) + self._sweep(
            "msg", lambda message_id: message_id < below and message_id not in kept
        )

    def _sweep(self, extension: str, is_doomed: Callable[[int], bool]) -> int:
        count = 0
        for name in self.files.names(extension):
            match = _NAME.fullmatch(name)
            if match is not None and is_doomed(int(match[1])):
                self.delete(name)
                count += 1
        return count
