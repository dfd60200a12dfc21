"""One owner of a journal's folder: an advisory lock held for as long as the journal is open.

The lock is flock on the directory itself, so that no file is added to what Artemis writes.
A broker of Artemis shows itself by an fcntl lock on `serverlock.1` (FileLockNodeManager):
that one is looked for too, and never taken.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import struct
import time
import weakref
from typing import TYPE_CHECKING, Final, Protocol

from journal.errors import JournalIOError, JournalLocked
from journal.files.base import Folder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["acquire_folder_lock", "foreign_owner", "is_locked"]

log = logging.getLogger("journal")

RETRY_S: Final = 0.1
# Who waits longer says so, once: a lock that is never given up looks like a program that hangs.
TOLD_AFTER_S: Final = 1.0
# Errors of a file system without locks, such as that of a cloud's volumes: no folder has an owner.
NO_LOCKS: Final = (errno.ENOSYS, errno.ENOTSUP)
FOREIGN_LOCKS: Final = ("serverlock.1", "server.lock")
# struct flock of Linux on 64-bit machines: type, whence, start, length, pid.
FLOCK: Final = "hhqqi4x"


class _Owner(Protocol):
    @property
    def folder(self) -> Folder: ...


# Journals of this process that took a lock, by id(); those with a closed folder have given it up.
# A second descriptor cannot tell whose lock refuses it, so that is known from here.
_owners: Final[weakref.WeakValueDictionary[int, _Owner]] = weakref.WeakValueDictionary()


def acquire_folder_lock(
    folder: Folder,
    timeout_ms: int,
    *,
    owner: _Owner | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Take the folder's lock; it goes with the folder's file descriptor.

    After a second of waiting a warning in the log `journal` says what is waited for, once.

    Args:
        folder: the open folder.
        timeout_ms: milliseconds to wait; -1 for ever, 0 not at all.
        owner: the journal that the folder is of, by which others of this process know who has it.
        clock: monotonic seconds.
        sleep: waits for seconds.

    Raises:
        JournalLocked: another process, or a journal of this one, has it when the time is over.
        JournalIOError: the file system cannot lock.
    """
    start = clock()
    deadline = start + timeout_ms / 1000
    is_told = False
    while True:
        holder = foreign_owner(folder)
        if holder is None and _try_lock(folder):
            if owner is not None:
                _owners[id(owner)] = owner
            return
        now = clock()
        if timeout_ms >= 0 and now >= deadline:
            raise JournalLocked(_in_use(folder, holder))
        if not is_told and now - start >= TOLD_AFTER_S:
            is_told = True
            how_long = "for ever" if timeout_ms < 0 else f"{timeout_ms} ms at most"
            log.warning(
                "%s: its lock is waited for, %s (lock_acquisition_timeout_ms %d)",
                _in_use(folder, holder),
                how_long,
                timeout_ms,
            )
        sleep(RETRY_S if timeout_ms < 0 else max(0.0, min(RETRY_S, deadline - clock())))


def _in_use(folder: Folder, holder: int | None) -> str:
    """Who has the folder, as far as that is known."""
    if holder is None and _is_of_this_process(folder):
        return f"{folder.path} is in use by another journal of this process"
    who = f" (process {holder})" if holder else ""
    return f"{folder.path} is in use by another process{who}"


def _is_of_this_process(folder: Folder) -> bool:
    wanted = os.fstat(folder.fd)
    for reference in _owners.valuerefs():
        owner = reference()
        if owner is None or owner.folder.fd < 0:
            continue
        try:
            if os.path.samestat(os.fstat(owner.folder.fd), wanted):
                return True
        except OSError:  # It was closed meanwhile.
            continue
    return False


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
