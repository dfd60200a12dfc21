"""Who owns a data folder, in a file: `server.owner`, one JSON object, replaced by each new owner.

    {"epoch": 7, "node": "c0ffee…", "host": "a1", "boot": "…", "pid": 4711, "since_ms": 1700…}

A lock of the file system says that no other process has it; this file says whether any other had it
since. The epoch rises with every owner. An owner keeps the file open: if it was replaced, or
deleted, its name leads elsewhere, and the owner is none any more. An owner that lives also touches
it twice a second, which shows whether two hosts share a folder on which locks do not work. Who
takes the folder from an owner of another host watches its file for 1.5 s before.

Artemis does not know the file, and leaves it alone.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import logging
import os
import socket
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from journal.errors import JournalIOError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["FLOCK", "OWNER_FILE", "TOUCH_S", "Owner", "OwnerFile", "check_locks_work", "read_owner"]

log = logging.getLogger("broker")

OWNER_FILE: Final = "server.owner"
TOUCH_S: Final = 0.5
# Of another host's file: as long as it would take to see it touched twice.
_WATCH_S: Final = 3 * TOUCH_S
# struct flock of Linux on 64-bit machines: type, whence, start, length, pid.
FLOCK: Final = "hhqqi4x"
# As on a disk without room, or behind a quota.
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class Owner(NamedTuple):
    """What the file says.

    Attributes:
        epoch: rises by one with each owner; 0 is none yet.
        node: id of the node, UUID as text.
        host: name of the machine.
        boot: id of the machine's boot: of all processes of one kernel.
        pid: of the process; 0 after `broker ha fence`.
        since_ms: ms since 1970.
    """

    epoch: int
    node: str
    host: str
    boot: str
    pid: int
    since_ms: int

    @property
    def is_this_process(self) -> bool:
        """Whether the owner is a broker of this process."""
        return self.pid == os.getpid() and self.boot == boot_id()


def read_owner(folder: Path) -> Owner | None:
    """Give the present, or last, owner; None where there was none yet, or the file is damaged.

    Raises:
        OSError: it cannot be read.
    """
    try:
        found: Any = json.loads((folder / OWNER_FILE).read_bytes())
        return Owner(
            epoch=int(found["epoch"]),
            node=str(found["node"]),
            host=str(found["host"]),
            boot=str(found["boot"]),
            pid=int(found["pid"]),
            since_ms=int(found["since_ms"]),
        )
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        log.warning("%s is damaged, and made anew: %s", folder / OWNER_FILE, error)
        return None


class OwnerFile:
    """The file of one owner, open from its making to its close.

    Args:
        folder: node-manager-lock-directory.
        node: id of the node.
        pid: of the process; 0 has the owner before be none any more.

    Attributes:
        owner: what was written.
        last_sign_ms: when the owner before touched its file last, ms since 1970; None where there
            was none.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, folder: Path, node: str, pid: int | None = None) -> None:
        last = read_owner(folder)
        touched_ns = _touched_ns(folder)
        self.last_sign_ms = None if touched_ns is None else touched_ns // 1_000_000
        self.owner = Owner(
            epoch=1 if last is None else last.epoch + 1,
            node=node,
            host=socket.gethostname(),
            boot=boot_id(),
            pid=os.getpid() if pid is None else pid,
            since_ms=time.time_ns() // 1_000_000,
        )
        self._path = folder / OWNER_FILE
        self._fd = -1
        try:
            self._make(folder)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            self._make_on_full_disk(folder)

    def _make(self, folder: Path) -> None:
        made = folder / f"{OWNER_FILE}.{os.getpid()}.new"
        self._fd = os.open(made, _FLAGS | os.O_TRUNC, 0o640)
        try:
            os.write(self._fd, json.dumps(self.owner._asdict()).encode() + b"\n")
            os.fsync(self._fd)
            # The name leads to the new one, or to the old one, never to half of either.
            os.rename(made, self._path)
            sync_folder(folder)
        except BaseException:
            self.close()
            with contextlib.suppress(OSError):
                made.unlink()
            raise

    def _make_on_full_disk(self, folder: Path) -> None:
        """Take the room of the last owner's file: a broker starts, and is drained, all the same."""
        self._path.unlink(missing_ok=True)
        try:
            self._make(folder)
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            log.warning(
                "%s is full: there is no %s, so only the lock shows who owns the folder",
                *(folder, OWNER_FILE),
            )

    @property
    def fd(self) -> int:
        """Of the open file; -1 where there is no room for one."""
        return self._fd

    @property
    def is_replaced(self) -> bool:
        """Whether another one was put in its place, or it was deleted. One system call."""
        return self._fd >= 0 and os.fstat(self._fd).st_nlink == 0

    def touch(self) -> None:
        """Show that the owner lives.

        Raises:
            OSError: the file system fails.
        """
        if self._fd >= 0:
            os.utime(self._fd)

    def close(self) -> None:
        """Idempotent."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def boot_id() -> str:
    """Give an id of the running kernel; empty where it tells none."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return ""


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        OSError: the file system fails.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def check_locks_work(folder: Path, sleep: Callable[[float], None]) -> None:
    """See that locks in a folder keep others out: within this host, and from another one.

    Args:
        folder: whose lock the caller has.
        sleep: waits for seconds; called only where the last owner was of another host.

    Raises:
        JournalIOError: the file system does not lock; or the last owner, on another host, lives:
            locks do not reach from host to host. Waiting does not help, so it is not JournalLocked.
        OSError: the folder cannot be written to.
    """
    try:
        _check_on_this_host(folder)
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        log.warning("%s is full: whether its file system locks is not tested", folder)
    last = read_owner(folder)
    if last is None or not last.pid or last.boot == boot_id():
        return
    before = _touched_ns(folder)
    sleep(_WATCH_S)
    if _touched_ns(folder) != before:
        raise JournalIOError(
            errno.ENOLCK,
            f"another broker (process {last.pid} of host {last.host}) serves on it, and its lock "
            "is free here: locks of this file system do not reach from host to host; use one with "
            "POSIX locks (NFS 4), or a database",
            str(folder),
        )


def _touched_ns(folder: Path) -> int | None:
    """When the owner's file was touched, ns; None where there is none any more.

    It is opened each time: NFS asks the server then, and may answer a stat() from a cache.
    """
    try:
        fd = os.open(folder / OWNER_FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        return os.fstat(fd).st_mtime_ns
    finally:
        os.close(fd)


def _check_on_this_host(folder: Path) -> None:
    """A lock of a process must be seen through another open file, as other processes see it."""
    path = folder / f"{OWNER_FILE}.{os.getpid()}.probe"
    first = os.open(path, _FLAGS, 0o600)
    try:
        second = os.open(path, _FLAGS, 0o600)
        try:
            fcntl.lockf(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
            asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            # A lock of an open file conflicts with one of the same process.
            answer = fcntl.fcntl(second, fcntl.F_OFD_GETLK, asked)
            is_seen = struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK
        finally:
            os.close(second)
    finally:
        os.close(first)
        with contextlib.suppress(OSError):
            path.unlink()
    if not is_seen:
        raise JournalIOError(errno.ENOLCK, "its file system does not lock", str(folder))
