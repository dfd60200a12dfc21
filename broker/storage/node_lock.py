"""Which broker of a pair, or which single one, owns a data folder: locks and state, as Artemis.

    server.lock   byte 0       the state, see `node_state`
                  byte 1, 2    unused, "00"
                  byte 3 … 18  the node's id, a UUID
    serverlock.1  locked (fcntl) by the broker that serves, as long as it lives; never written to
    serverlock.2  locked by the one backup that waits for serverlock.1; others wait for this one
    server.owner  the present owner, not of Artemis: see `node_owner`

Artemis takes the same locks, so that neither starts on the other's folder
(FileLockNodeManager, FileBasedNodeManager). Closing any descriptor of a locked file gives an fcntl
lock up, therefore nothing else in this process may open a lock file while it is held.

An owner looks after its lock in a thread of its own, and again before it answers a client, or
changes a file of the store (`journal.files.guard`). It ends if another process has the lock, or if
a lock file or owner file was deleted or replaced.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import random
import threading
import time
import uuid
from typing import TYPE_CHECKING, Final

from broker.storage.node_owner import TOUCH_S, OwnerFile, check_locks_work, sync_folder
from broker.storage.node_state import BackupWatch, NodeState
from broker.storage.node_view import (
    BACKUP_FILE,
    PRIMARY_FILE,
    STATE_FILE,
    holder_of,
    known_state,
    state_of,
    stored_node_id,
)
from journal.errors import JournalIOError, JournalLocked
from journal.files.guard import WriteGuard

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["NodeLock", "NodeLockLost"]

log = logging.getLogger("broker")

_FIRST_TIME: Final = b"000"  # FIRST_TIME_START, thrice: the state, and two locks of old versions.
_ID_OFFSET: Final = 3
_ID_SIZE: Final = 16
_RETRY_S: Final = 0.1
# Another one has the state's file locked for a read or write of its own.
_STATE_TRIES: Final = 50
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class NodeLockLost(JournalIOError):
    """The broker does not own its folder any more, or cannot say that it does."""


class NodeLock:
    """The right to be the broker of a folder. One process has it at a time.

    Args:
        folder: node-manager-lock-directory.
        is_backup: of a pair on this folder.
        is_pair: it is the primary or the backup of one.
        on_lost: called once, from a thread of the lock's own, when the folder is owned no more;
            without it nothing looks after the lock.

    Attributes:
        node_id: UUID as text; "" before acquire().
        reason: why it waits, or why a backup has taken over.
        guard: what writes to the store asks before; None without the lock.

    Threads: any.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_backup: bool = False,
        is_pair: bool = False,
        on_lost: Callable[[Exception], object] | None = None,
    ) -> None:
        self.folder = folder
        self.node_id = ""
        self.reason = ""
        self._is_backup = is_backup
        self._asks_for_place = is_pair and not is_backup
        self._on_lost = on_lost
        self._lock_fd = -1
        self._backup_fd = -1
        self._state_fd = -1
        self._owner: OwnerFile | None = None
        self._lost: NodeLockLost | None = None
        self.guard: WriteGuard | None = None
        self._looked_s = 0.0
        self._looking = threading.Lock()
        self._released = threading.Event()
        self._looking_after: threading.Thread | None = None

    # --- waiting ------------------------------------------------------------------------------

    def await_free(
        self,
        timeout_ms: int = -1,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        on_wait: Callable[[str | None], object] | None = None,
    ) -> None:
        """Return once the lock may be taken, which it is not yet.

        The primary of a pair asks for its place meanwhile (F). A backup waits for the backup's
        lock first, and then as `node_state.BackupWatch` says.

        Args:
            timeout_ms: milliseconds to wait; -1 for ever, 0 not at all
                (journal-lock-acquisition-timeout).
            clock: monotonic seconds.
            sleep: waits for seconds; what it raises ends the wait.
            on_wait: called when there is something new to wait for, with the node's id; None
                where it has none yet.

        Raises:
            JournalLocked: another process has it when the time is over; the text says which.
            JournalIOError: the files cannot be made or looked at.
        """
        deadline = clock() + timeout_ms / 1000
        told = ""
        watch = BackupWatch()
        while True:
            try:
                is_free = self._is_free(watch, clock())
            except JournalIOError:
                raise
            except OSError as error:
                raise self._failure(error) from error
            if is_free:
                return
            problem = self.reason
            if timeout_ms >= 0 and clock() >= deadline:
                raise JournalLocked(problem)
            if problem != told:
                told = problem
                log.info("waiting for the lock: %s", problem)
                if on_wait is not None:
                    on_wait(stored_node_id(self.folder))
            sleep(_RETRY_S)

    def _is_free(self, watch: BackupWatch, now_s: float) -> bool:
        if self._is_backup and self._backup_fd < 0 and not self._take_backup_lock():
            return False
        if self._asks_for_place:
            self._ask_for_place()
        holder = self._holder()
        if self._is_backup:
            may_take_over = watch.may_take_over(self._read_state(), holder, now_s)
            self.reason = f"{self.folder} is the pair's: {watch.reason}"
            return may_take_over
        if holder is None:
            self.reason = ""
            return True
        self.reason = f"{self.folder} is in use by another broker ({holder})"
        return False

    def _holder(self) -> str | None:
        """Who has the primary's lock."""
        pid = holder_of(self.folder / PRIMARY_FILE)
        return None if pid is None else f"process {pid}"

    def _take_backup_lock(self) -> bool:
        self.folder.mkdir(parents=True, exist_ok=True)
        fd = os.open(self.folder / BACKUP_FILE, _FLAGS, 0o644)
        if not _try_lock(fd):
            os.close(fd)
            pid = holder_of(self.folder / BACKUP_FILE)
            self.reason = f"{self.folder} has another backup that waits (process {pid})"
            return False
        self._backup_fd = fd
        log.info("AMQ221033: ** got backup lock of %s", self.folder)
        return True

    def _ask_for_place(self) -> None:
        """Write F, unless it is there; a backup that activates meanwhile may write L over it."""
        try:
            fd = os.open(self.folder / STATE_FILE, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return  # No other broker served yet; acquire() makes it.
        try:
            found = os.pread(fd, _ID_OFFSET + _ID_SIZE, 0)
            is_whole = len(found) == _ID_OFFSET + _ID_SIZE
            if is_whole and found[:1] != NodeState.FAILING_BACK.value:
                os.pwrite(fd, NodeState.FAILING_BACK.value, 0)
                os.fsync(fd)
        finally:
            os.close(fd)

    def _read_state(self) -> NodeState:
        return state_of(self.folder)

    # --- taking it ----------------------------------------------------------------------------

    def acquire(self, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take the lock and read, or make, the node's id.

        After the journals were opened: they look at `serverlock.1` too, and would give it up.

        Args:
            sleep: waits for seconds, where another host was the owner before.

        Raises:
            JournalLocked: another process has it, or a backup may not take over any more.
            JournalIOError: the files cannot be made, locked or read; the file system has no locks.
        """
        try:
            self._acquire(sleep)
        except OSError as error:
            self.release()
            if isinstance(error, JournalIOError):
                raise
            raise self._failure(error) from error
        except BaseException:
            self.release()
            raise

    def _acquire(self, sleep: Callable[[float], None]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._released.clear()
        self._lost = None
        self._lock_fd = os.open(self.folder / PRIMARY_FILE, _FLAGS, 0o644)
        if not _try_lock(self._lock_fd):
            pid = holder_of(self.folder / PRIMARY_FILE)
            raise JournalLocked(f"{self.folder} is in use by another broker (process {pid})")
        check_locks_work(self.folder, sleep)
        self._state_fd = os.open(self.folder / STATE_FILE, _FLAGS, 0o644)
        self._lock_state(sleep)
        try:
            self.node_id = self._read_or_make_id()
        finally:
            fcntl.lockf(self._state_fd, fcntl.LOCK_UN)
        state = known_state(os.pread(self._state_fd, 1, 0), self.folder / STATE_FILE)
        if self._is_backup:
            if state not in (NodeState.ACTIVE, NodeState.FAILING_BACK):
                raise JournalLocked(f"{self.folder} is the primary's, which has stopped in order")
            # From here on an F is a new one.
            self._write_state(NodeState.ACTIVE)
        elif self._asks_for_place:
            self._write_state(NodeState.FAILING_BACK)
        self._owner = OwnerFile(self.folder, self.node_id)
        self.guard = WriteGuard(self._lock_fd, self._owner.fd, self._why_lost)
        self._looked_s = time.monotonic()
        if self._on_lost is not None:
            self._looking_after = threading.Thread(
                target=self._look_after, name="node-lock", daemon=True
            )
            self._looking_after.start()

    def _failure(self, error: OSError) -> JournalIOError:
        return JournalIOError(error.errno or 0, "cannot lock the broker's folder", str(self.folder))

    def _lock_state(self, sleep: Callable[[float], None]) -> None:
        """Lock the state's file for a moment, as Artemis does for its id: a pair has one.

        Raises:
            JournalLocked: another process keeps it locked.
        """
        for _ in range(_STATE_TRIES):
            if _try_lock(self._state_fd):
                return
            sleep(_RETRY_S)
        pid = holder_of(self.folder / STATE_FILE)
        raise JournalLocked(f"{self.folder / STATE_FILE} is locked by process {pid}")

    def _read_or_make_id(self) -> str:
        found = os.pread(self._state_fd, _ID_OFFSET + _ID_SIZE, 0)
        if len(found) == _ID_OFFSET + _ID_SIZE:
            return str(uuid.UUID(bytes=found[_ID_OFFSET:]))
        # Time based, as Artemis makes it, without this machine's address in it: the multicast
        # bit says that it is not a network card's (RFC 4122, 4.5).
        made = uuid.uuid1(node=random.SystemRandom().getrandbits(48) | 1 << 40)
        os.pwrite(self._state_fd, _FIRST_TIME + made.bytes, 0)
        os.fsync(self._state_fd)
        sync_folder(self.folder)
        return str(made)

    # --- the state ----------------------------------------------------------------------------

    def activated(self) -> None:
        """Say that the broker serves: a backup may take over when the lock becomes free.

        A primary that has asked a backup for its place meanwhile is not overheard.

        Raises:
            JournalIOError: the file cannot be written, or the folder is owned no more.
        """
        self.check()
        if not (self._is_backup and self.is_awaiting_failback()):
            self._write_state(NodeState.ACTIVE)
        backup_fd, self._backup_fd = self._backup_fd, -1
        if backup_fd >= 0:
            os.close(backup_fd)

    def paused(self) -> None:
        """Say that the broker stops in good order: no backup takes over.

        Raises:
            JournalIOError: the file cannot be written, or the folder is owned no more.
        """
        self.check()
        self._write_state(NodeState.PAUSED)

    def is_awaiting_failback(self) -> bool:
        """Whether a primary has asked for its place back: the state is F.

        Raises:
            JournalIOError: the file cannot be read.
        """
        return self._read_state() is NodeState.FAILING_BACK

    def is_other_waiting(self) -> bool:
        """Whether another broker would serve if this one stopped: a backup, or a primary.

        Raises:
            JournalIOError: the state cannot be read.
            OSError: the backup's lock file cannot be opened.
        """
        # This process does not hold it any more: see activated().
        return holder_of(self.folder / BACKUP_FILE) is not None or self.is_awaiting_failback()

    def _write_state(self, state: NodeState) -> None:
        try:
            os.pwrite(self._state_fd, state.value, 0)
            os.fsync(self._state_fd)
        except OSError as error:
            raise JournalIOError(
                error.errno or 0, "cannot write the broker's state", str(self.folder / STATE_FILE)
            ) from error

    # --- keeping it ---------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """Of the present ownership; 0 without one."""
        return 0 if self._owner is None else self._owner.owner.epoch

    @property
    def last_sign_ms(self) -> int | None:
        """Of the owner before, see Ownership."""
        return None if self._owner is None else self._owner.last_sign_ms

    def proof_age_s(self) -> float:
        """Give the seconds since the lock was last looked after."""
        return time.monotonic() - self._looked_s

    def check(self) -> bool:
        """See that the folder is owned: before answers to clients, and changes of files.

        Two or three system calls, see WriteGuard.

        Returns:
            False: it is never in doubt, see Ownership.

        Raises:
            NodeLockLost: it is not, for good.
        """
        if self.guard is not None:
            self.guard.check()
        elif self._lost is not None:
            raise self._lost
        return False

    def look_after(self) -> None:
        """See everything that check() sees, and what takes longer to see.

        Raises:
            NodeLockLost: the folder is not owned any more, for good.
        """
        with self._looking:
            try:
                self._look_once()
            except OSError as error:
                self._lose(f"its files cannot be looked at: {error}")
        if self._lost is not None:
            raise self._lost

    def _why_lost(self) -> NodeLockLost:
        """For the guard, which has found that it is lost, and not why; from any thread."""
        try:
            self.look_after()
        except NodeLockLost as lost:
            return lost
        return NodeLockLost(errno.ENOLCK, "the lock was given up", str(self.folder))

    def _look_after(self) -> None:
        """The thread; the owner is told by on_lost."""
        while True:
            with contextlib.suppress(NodeLockLost):
                self.look_after()
            if self._lost is not None or self._released.wait(TOUCH_S):
                return

    def _look_once(self) -> None:
        owner, guard = self._owner, self.guard
        if owner is None or guard is None or self._lost is not None or self._released.is_set():
            return
        if not _is_at(self.folder / PRIMARY_FILE, self._lock_fd):
            self._lose(f"{PRIMARY_FILE} was deleted or replaced")
        elif owner.is_replaced:
            self._lose("another owner took the folder, or this one was fenced")
        elif not _try_lock(self._lock_fd):
            # Such as of an NFS server that has been restarted, and forgot it.
            pid = holder_of(self.folder / PRIMARY_FILE)
            self._lose(f"the file system gave it to another process, {pid}")
        elif guard.is_lost:
            self._lose("its files could not be looked at for a moment")
        else:
            guard.locked()
            if not _is_at(self.folder / STATE_FILE, self._state_fd):
                self._restore_state()
            owner.touch()
            self._looked_s = time.monotonic()

    def _restore_state(self) -> None:
        """Write the state's file again, which somebody deleted: the pair would lose its id."""
        log.warning("%s was deleted, and is written again", self.folder / STATE_FILE)
        content = os.pread(self._state_fd, _ID_OFFSET + _ID_SIZE, 0)
        fd = os.open(self.folder / STATE_FILE, _FLAGS, 0o644)
        os.pwrite(fd, content, 0)
        os.fsync(fd)
        sync_folder(self.folder)
        old, self._state_fd = self._state_fd, fd
        os.close(old)

    def _lose(self, why: str) -> None:
        if self._lost is not None or self._released.is_set():
            return
        self._lost = NodeLockLost(errno.ENOLCK, f"the lock is lost, {why}", str(self.folder))
        if self.guard is not None:
            self.guard.refuse()
        # First: who reads the line finds that no client is served any more.
        if self._on_lost is not None:
            self._on_lost(self._lost)
        log.error("the lock on %s is lost: %s", self.folder, why)

    def release(self) -> None:
        """Give the locks up. Idempotent."""
        self._released.set()
        thread, self._looking_after = self._looking_after, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        owner, self._owner = self._owner, None
        guard, self.guard = self.guard, None
        if guard is not None:
            guard.end()
        if owner is not None:
            owner.close()
        for fd in (self._state_fd, self._lock_fd, self._backup_fd):
            if fd >= 0:
                os.close(fd)
        self._state_fd = self._lock_fd = self._backup_fd = -1


def _try_lock(fd: int) -> bool:
    """Whether this process has the file locked from now on."""
    try:
        fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            return False
        raise
    return True


def _is_at(path: Path, fd: int) -> bool:
    """Whether a name leads to the open file."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(fd))
    return False
