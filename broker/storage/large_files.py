"""Bodies of large messages: one file each, beside the journal.

    <message id>.msg    of a durable message: written, synced, and only then recorded (type 30)
    <message id>.tmp    of any other; deleted at every start, before anybody looks for one

A body never changes once it is complete: a message that is copied, to the dead letter address say,
shares the bytes by a hard link. Names are made of numbers alone and read back by a full match.

Before anything is written, made or deleted the owner of the folder proves that it is one.

Threads: the event loop's alone. Writing goes to the page cache; `finish` waits for the disk.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from journal.errors import JournalIOError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from concurrent.futures import Executor
    from pathlib import Path

__all__ = ["LargeFile", "LargeFiles"]

_NAME: Final = re.compile(r"(\d{1,19})\.(msg|tmp)")
_READ: Final = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_WRITE: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW


def _always() -> None:
    """Of a folder that no other broker can want."""


class LargeFile:
    """One body; `Message.large` of a large message.

    Attributes:
        size: bytes so far.
        is_durable: it survives a restart.
    """

    __slots__ = ("_check", "_fd", "_holders", "_is_growing", "_path", "is_durable", "size")

    def __init__(
        self,
        path: Path,
        *,
        is_durable: bool,
        size: int,
        fd: int = -1,
        check: Callable[[], object] = _always,
    ) -> None:
        self._check = check
        self._path = path
        self._fd = fd
        self._holders = 0
        self._is_growing = fd >= 0
        self.is_durable = is_durable
        self.size = size

    def append(self, chunk: bytes) -> None:
        """Write the next bytes.

        Raises:
            JournalIOError: the disk is full, or fails; the folder is another owner's.
        """
        self._check()
        view = memoryview(chunk)
        try:
            while view:
                written = os.pwrite(self._fd, view, self.size)
                self.size += written
                view = view[written:]
        except OSError as error:
            raise _failure(error, "cannot write a large message", self._path) from error

    def has_room(self, callback: Callable[[], object]) -> bool:
        """Whether more may be appended now: always; see LargeUpload."""
        del callback
        return True

    def finish(self, *, sync: bool, callback: Callable[[], object] | None = None) -> bool:
        """It is complete; with `sync` it is on the disk, its name too, when this returns.

        Returns:
            True: nothing is left to wait for; see LargeUpload.

        Raises:
            JournalIOError: the disk fails.
        """
        try:
            # A copy is complete from the beginning.
            if sync and self._is_growing:
                os.fsync(self._fd)
                _sync_folder(self._path.parent)
        except OSError as error:
            raise _failure(error, "cannot sync a large message", self._path) from error
        finally:
            self._is_growing = False
            self.close()
        return True

    def settle(self) -> None:
        """Nothing is on its way."""

    def is_ready(self, offset: int, size: int, callback: Callable[[], object]) -> bool:
        """Whether read() gives these bytes without waiting: always; see LargeBody."""
        return True

    def read(self, offset: int, size: int) -> bytes:
        """Give at most `size` bytes from `offset` on; fewer only at the end.

        Raises:
            JournalIOError: the disk fails, or the file is gone.
        """
        try:
            self._open()
            return os.pread(self._fd, size, offset)
        except OSError as error:
            raise _failure(error, "cannot read a large message", self._path) from error

    def _open(self) -> None:
        if self._fd < 0:
            self._fd = os.open(self._path, _READ)

    def hold(self) -> None:
        """Keep the file open until release(): it may be deleted meanwhile.

        Raises:
            JournalIOError: it cannot be opened; it is not held then.
        """
        try:
            self._open()
        except OSError as error:
            raise _failure(error, "cannot read a large message", self._path) from error
        self._holders += 1

    def release(self) -> None:
        """Close it, unless another reader holds it."""
        self._holders -= 1
        if self._holders == 0:
            self.close()

    def __del__(self) -> None:
        """Who drops it without a close, such as a broker that failed, leaves no descriptor open."""
        self.close()

    def close(self) -> None:
        """Give the descriptor up; read() opens it again. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def copy(self, message_id: int) -> LargeFile:
        """Give the same body to another message; on the disk when this returns.

        Raises:
            JournalIOError: the disk fails; the folder is another owner's.
        """
        self._check()
        path = self._path.with_name(_file_name(message_id, is_durable=self.is_durable))
        try:
            os.link(self._path, path)
            if self.is_durable:
                _sync_folder(path.parent)
        except OSError as error:
            raise _failure(error, "cannot copy a large message", path) from error
        return LargeFile(path, is_durable=self.is_durable, size=self.size, check=self._check)

    def delete(self) -> None:
        """Remove the file; readers that hold it read on. Idempotent."""
        if self._holders == 0:
            self.close()
        self._check()
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise _failure(error, "cannot delete a large message", self._path) from error


class LargeFiles:
    """The folder of all bodies (large-messages-directory).

    Args:
        folder: made when it is missing.
        check: asked before each change; raises JournalIOError once the folder is another owner's.
    """

    def __init__(self, folder: Path, check: Callable[[], object] = _always) -> None:
        self._folder = folder
        self._check = check
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _failure(error, "cannot make the folder of large messages", folder) from error

    def start(
        self, loop: asyncio.AbstractEventLoop, executor: Callable[[int, str], Executor]
    ) -> None:
        """See LargeBodies: nothing to do without threads."""

    def close(self) -> None:
        """See LargeBodies: nothing is held."""

    def _path(self, message_id: int, *, is_durable: bool) -> Path:
        return self._folder / _file_name(message_id, is_durable=is_durable)

    def create(self, message_id: int, *, is_durable: bool) -> LargeFile:
        """Begin a body.

        Raises:
            JournalIOError: the file cannot be made, or is there; the folder is another owner's.
        """
        self._check()
        path = self._path(message_id, is_durable=is_durable)
        try:
            fd = os.open(path, _WRITE, 0o644)
        except OSError as error:
            raise _failure(error, "cannot make a large message", path) from error
        return LargeFile(path, is_durable=is_durable, size=0, fd=fd, check=self._check)

    def find(self, message_id: int) -> LargeFile | None:
        """Give the body of a message, durable or not; None where there is none."""
        for is_durable in (True, False):
            path = self._path(message_id, is_durable=is_durable)
            try:
                size = path.stat().st_size
            except FileNotFoundError:
                continue
            return LargeFile(path, is_durable=is_durable, size=size, check=self._check)
        return None

    def sweep_temporary(self) -> int:
        """Delete bodies of messages that are not durable, before anything is loaded; how many."""
        return self._sweep(lambda _, extension: extension == "tmp")

    def sweep(self, kept: set[int], below: int = 2**63) -> int:
        """Delete what belongs to no message, after a start; how many.

        Args:
            kept: ids of the durable large messages.
            below: ids from here on are of messages that came after the start.
        """
        return self._sweep(
            lambda message_id, extension: (
                message_id < below and (extension == "tmp" or message_id not in kept)
            )
        )

    def _sweep(self, is_doomed: Callable[[int, str], bool]) -> int:
        count = 0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                match = _NAME.fullmatch(entry.name)
                if match is None or not entry.is_file(follow_symlinks=False):
                    continue
                if is_doomed(int(match[1]), match[2]):
                    self._check()
                    os.unlink(entry.path)
                    count += 1
        return count


def _file_name(message_id: int, *, is_durable: bool) -> str:
    return f"{int(message_id)}.{'msg' if is_durable else 'tmp'}"


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _failure(error: OSError, what: str, path: Path) -> JournalIOError:
    return JournalIOError(error.errno or 0, what, str(path))
