"""One owner of a journal's folder: an advisory lock held for as long as the journal is open.

The lock is flock on the directory itself, so that no file is added to what Artemis writes.
A broker of Artemis shows itself by an fcntl lock on `serverlock.1` (FileLockNodeManager):
that one is looked for too, and never taken.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import time
from typing import TYPE_CHECKING, Final

from journal.errors import JournalIOError, JournalLocked
from journal.files.base import Folder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["acquire_folder_lock", "foreign_owner", "is_locked"]

RETRY_S: Final = 0.1
# Errors of a file system without locks, such as that of a cloud's volumes: no folder has an owner.
NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP)
FOREIGN_LOCKS: Final = ("serverlock.1", "server.lock")
# struct flock of Linux on 64-bit machines: type, whence, start, length, pid.
FLOCK: Final = "hhqqi4x"


def acquire_folder_lock(
    folder: Folder,
    timeout_ms: int,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Take the folder's lock; it goes with the folder's file descriptor.

    Args:
        folder: the open folder.
        timeout_ms: milliseconds to wait; -1 for ever, 0 not at all.
        clock: monotonic seconds.
        sleep: waits for seconds.

    Raises:
        JournalLocked: another process or journal has it when the time is over.
        JournalIOError: the file system cannot lock.
    """
    deadline = clock() + timeout_ms / 1000
    while True:
        holder = foreign_owner(folder)
        if holder is None and _try_lock(folder):
            return
        if timeout_ms >= 0 and clock() >= deadline:
            who = f" (process {holder})" if holder else ""
            raise JournalLocked(f"{folder.path} is in use by another process{who}")
        sleep(RETRY_S if timeout_ms < 0 else max(0.0, min(RETRY_S, deadline - clock())))


def _try_lock(folder: Folder) -> bool:
    try:
        fcntl.flock(folder.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise JournalIOError(error.errno or 0, "cannot lock", str(folder.path)) from error
    return True


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether somebody, a broker of Artemis too, has the journal in this folder right now.

    The lock is tried shared and given back at once, so two such checks never see each other. An
    owner that does not wait at all (timeout 0) may, for some microseconds, be refused by a check.

    Raises:
        JournalIOError: the folder cannot be opened.
    """
    with Folder(path) as folder:
        if foreign_owner(folder) is not None:
            return True
        try:
            fcntl.flock(folder.fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError as error:
            if error.errno in NO_LOCKS:
                return False
            raise JournalIOError(error.errno or 0, "cannot lock", str(path)) from error
    return False


def foreign_owner(folder: Folder) -> int | None:
    """Process id of the Artemis broker that holds the folder (0: unknown), or None."""
    for name in FOREIGN_LOCKS:
        try:
            fd = folder.open(name)
        except JournalIOError as error:
            if error.errno == errno.ENOENT:
                continue
            raise
        try:
            asked = struct.pack(FLOCK, fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
            kind, _, _, _, pid = struct.unpack(FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
        finally:
            os.close(fd)
        if kind != fcntl.F_UNLCK:
            return int(pid)
    return None
