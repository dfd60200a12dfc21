"""Which broker owns a data folder, and its id: `server.lock` and `serverlock.1`, as Artemis.

    server.lock   byte 0       state of the primary: L active, P paused, F failing back, N new
                  byte 1, 2    unused, "00"
                  byte 3 … 18  the node's id, a UUID
    serverlock.1  locked (fcntl) by the primary as long as it lives; never written to

Artemis takes the same locks, so that neither starts on the other's folder
(FileLockNodeManager, FileBasedNodeManager). Closing any descriptor of a locked file gives an fcntl
lock up, therefore nothing else in this process may open `serverlock.1` while it is held.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import random
import struct
import time
import uuid
from typing import TYPE_CHECKING, Final

from journal.errors import JournalIOError, JournalLocked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["STATE_FILE", "NodeLock", "node_id_of_state", "stored_node_id"]

log = logging.getLogger("broker")

STATE_FILE: Final = "server.lock"
_PRIMARY_FILE: Final = "serverlock.1"
_ACTIVE: Final = b"L"
_PAUSED: Final = b"P"
_FIRST_TIME: Final = b"000"  # FIRST_TIME_START, thrice: the state, and two locks of old versions.
_ID_OFFSET: Final = 3
_ID_SIZE: Final = 16
_RETRY_S: Final = 0.1
_FLOCK: Final = "hhqqi4x"  # struct flock of 64-bit Linux: type, whence, start, length, pid.


def stored_node_id(folder: Path) -> str | None:
    """Give the node's id that a folder has, as text; None where it has none. Takes no lock.

    Raises:
        OSError: the file cannot be read.
    """
    path = folder / STATE_FILE
    if not path.is_file():
        return None
    return node_id_of_state(path.read_bytes())


def node_id_of_state(state: bytes) -> str | None:
    """Give the node's id in what STATE_FILE holds; None where it is cut short."""
    found = state[_ID_OFFSET : _ID_OFFSET + _ID_SIZE]
    return str(uuid.UUID(bytes=found)) if len(found) == _ID_SIZE else None


class NodeLock:
    """The right to be the broker of a folder. One process has it at a time.

    Args:
        folder: node-manager-lock-directory.

    Attributes:
        node_id: UUID as text; "" before acquire().
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.node_id = ""
        self._lock_fd = -1
        self._state_fd = -1

    def await_free(
        self,
        timeout_ms: int = -1,
        *,
        is_backup: bool = False,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Return once no other process has the lock, which is not taken yet.

        A backup also waits while the state is not L: a primary that stopped in good order (P)
        comes back by itself.

        Args:
            timeout_ms: milliseconds to wait; -1 for ever, 0 not at all
                (journal-lock-acquisition-timeout).
            is_backup: of a pair on this folder.
            clock: monotonic seconds.
            sleep: waits for seconds; what it raises ends the wait.

        Raises:
            JournalLocked: another process has it when the time is over; the text says which.
            JournalIOError: the file cannot be made or looked at.
        """
        deadline = clock() + timeout_ms / 1000
        told = ""
        while True:
            holder = self._look()
            if holder:
                problem = f"{self.folder} is in use by another broker (process {holder})"
            elif is_backup and not self.is_active():
                problem = f"{self.folder} is the primary's, which is not active, or was stopped"
            else:
                return
            if timeout_ms >= 0 and clock() >= deadline:
                raise JournalLocked(problem)
            if problem != told:
                told = problem
                log.info("waiting for the lock: %s", problem)
            sleep(_RETRY_S)

    def is_active(self) -> bool:
        """Whether the state is L: the last holder of the lock served, and did not stop cleanly.

        Raises:
            JournalIOError: the file cannot be read.
        """
        try:
            return (self.folder / STATE_FILE).read_bytes()[:1] == _ACTIVE
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._failure(error) from error

    def _look(self) -> int:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.folder / _PRIMARY_FILE, _FLAGS, 0o644)
            try:
                return _holder(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise self._failure(error) from error

    def acquire(self) -> None:
        """Take the lock and read, or make, the node's id.

        After the journals were opened: they look at `serverlock.1` too, and would give it up.

        Raises:
            JournalLocked: another process has it.
            JournalIOError: the files cannot be made, locked or read.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.folder / _PRIMARY_FILE, _FLAGS, 0o644)
            if not self._try_lock():
                holder = _holder(self._lock_fd)
                self.release()
                raise JournalLocked(f"{self.folder} is in use by another broker (process {holder})")
            self._state_fd = os.open(self.folder / STATE_FILE, _FLAGS, 0o644)
            self.node_id = self._read_or_make_id()
        except OSError as error:
            self.release()
            raise self._failure(error) from error

    def _failure(self, error: OSError) -> JournalIOError:
        return JournalIOError(error.errno or 0, "cannot lock the broker's folder", str(self.folder))

    def _try_lock(self) -> bool:
        try:
            fcntl.lockf(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        return True

    def _read_or_make_id(self) -> str:
        found = os.pread(self._state_fd, _ID_OFFSET + _ID_SIZE, 0)
        if len(found) == _ID_OFFSET + _ID_SIZE:
            return str(uuid.UUID(bytes=found[_ID_OFFSET:]))
        # Time based, as Artemis makes it, without this machine's address in it: the multicast
        # bit says that it is not a network card's (RFC 4122, 4.5).
        made = uuid.uuid1(node=random.SystemRandom().getrandbits(48) | 1 << 40)
        os.pwrite(self._state_fd, _FIRST_TIME + made.bytes, 0)
        os.fsync(self._state_fd)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return str(made)

    def check(self) -> None:
        """See that the lock is still held.

        A shared file system may have taken it away from a machine that it did not hear of, as
        NFS 4 does; the next broker has it then, and nothing else says so.

        Raises:
            JournalIOError: another process has it, or the folder does not answer.
        """
        try:
            holder = _holder(self._lock_fd)
            # A lock on a file system that is gone looks as if it were held (FileLockNodeManager).
            os.pread(self._state_fd, 1, 0)
        except OSError as error:
            raise self._failure(error) from error
        if holder:
            raise JournalIOError(
                errno.ENOLCK, f"the lock was lost to process {holder}", str(self.folder)
            )

    def activated(self) -> None:
        """Say that the broker serves: a backup may take over when the lock becomes free."""
        self._write_state(_ACTIVE)

    def paused(self) -> None:
        """Say that the broker stops in good order: no backup takes over."""
        self._write_state(_PAUSED)

    def _write_state(self, state: bytes) -> None:
        try:
            os.pwrite(self._state_fd, state, 0)
            os.fsync(self._state_fd)
        except OSError as error:
            raise JournalIOError(
                error.errno or 0, "cannot write the broker's state", str(self.folder / STATE_FILE)
            ) from error

    def release(self) -> None:
        """Give the lock up. Idempotent."""
        for fd in (self._state_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self._state_fd = self._lock_fd = -1


_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


def _holder(fd: int) -> int:
    """Give the process that has the file locked; 0 where none has."""
    asked = struct.pack(_FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    answer = struct.unpack(_FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    return 0 if answer[0] == fcntl.F_UNLCK else int(answer[4])
