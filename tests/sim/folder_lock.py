"""The locks of a shared folder as a node of a pair has them: NodeLock, without the system's calls.

What waits, asks for its place, looks after the lock and loses it is the real code. The folder, and
what its server knows of locks, is `folder_pair.FolderPair`.
"""

from __future__ import annotations

import contextlib
import errno
import time
from pathlib import Path
from typing import TYPE_CHECKING

from broker.storage.node_lock import NodeLock
from broker.storage.node_owner import Owner
from broker.storage.node_state import NodeState
from broker.storage.node_view import BACKUP_FILE, PRIMARY_FILE
from journal.errors import JournalIOError, JournalLocked

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.sim.folder_pair import FolderPair, FolderStorage


class _OwnerFile:
    """See node_owner.OwnerFile; each owner is another activation of the pair."""

    def __init__(self, storage: FolderStorage) -> None:
        self._pair = storage.pair
        self._pair.activations += 1
        name = storage.host.name
        # Their files have no times here.
        self.last_sign_ms = None
        self.owner = Owner(self._pair.activations, self._pair.node_id, name, name, 1, 0)

    @property
    def is_replaced(self) -> bool:
        return self._pair.activations != self.owner.epoch

    def touch(self) -> None:
        """Nothing: locks of this server reach from host to host."""

    def close(self) -> None:
        """Nothing is held."""


class FolderLock(NodeLock):
    """The locks of the folder, as one process has them; see NodeLock."""

    def __init__(
        self, storage: FolderStorage, *, is_backup: bool, on_lost: Callable[[Exception], object]
    ) -> None:
        super().__init__(Path("/shared"), is_backup=is_backup, is_pair=True, on_lost=on_lost)
        # Threads take turns here: with a real lock the one that has the turn would wait for ever.
        self._looking = contextlib.nullcontext()
        self._storage = storage
        # Its open files are lost with it.
        self._mount = storage.disk
        self._released = storage.pair.threads.event()  # type: ignore[assignment]

    @property
    def _pair(self) -> FolderPair:
        self._storage.disk.check("cannot lock the broker's folder")
        return self._storage.pair

    def _read_state(self) -> NodeState:
        return NodeState.of(self._pair.state)

    def _holder(self) -> str | None:
        holder = self._pair.holders.get(PRIMARY_FILE)
        return None if holder in (None, self._storage) else "the other node"

    def _take_backup_lock(self) -> bool:
        if not self._pair.take(BACKUP_FILE, self._storage):
            self.reason = "the folder has another backup that waits"
            return False
        return True

    def _ask_for_place(self) -> None:
        if self._pair.activations:
            self._pair.state = NodeState.FAILING_BACK.value

    def acquire(self, *, sleep: Callable[[float], None] = time.sleep) -> None:
        del sleep
        try:
            self._take()
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        pair, storage = self._pair, self._storage
        if not pair.take(PRIMARY_FILE, storage):
            raise JournalLocked("the folder is in use by another broker")
        self._released.clear()
        self._lost = None
        self._mount = storage.disk
        self.node_id = pair.node_id
        if self._is_backup:
            if self._read_state() not in (NodeState.ACTIVE, NodeState.FAILING_BACK):
                raise JournalLocked("the folder is the primary's, which has stopped in order")
            self._write_state(NodeState.ACTIVE)
        else:
            self._write_state(NodeState.FAILING_BACK)
        self._owner = _OwnerFile(storage)  # type: ignore[assignment] # by its methods.
        self._looking_after = pair.threads.start_thread(  # type: ignore[assignment]
            self._look_after, "node-lock"
        )

    def activated(self) -> None:
        super().activated()
        self._storage.pair.give(BACKUP_FILE, self._storage)

    def check(self) -> None:
        self._storage.pair.await_server(self._storage.host)
        if self._lost is None and self._owner is not None:
            if self._mount.is_revoked:
                self._lose("its files cannot be looked at")
            elif self._owner.is_replaced:
                self._lose("another owner took the folder")
        if self._lost is not None:
            raise self._lost

    def _look_once(self) -> None:
        pair = self._storage.pair
        pair.await_server(self._storage.host)
        owner = self._owner
        if owner is None or self._released.is_set():
            return
        if self._mount.is_revoked:
            raise OSError(errno.EIO, "the open files are lost")
        if owner.is_replaced:
            self._lose("another owner took the folder")
        elif not pair.take(PRIMARY_FILE, self._storage):
            self._lose("the file system gave it to another process")

    def _write_state(self, state: NodeState) -> None:
        pair = self._pair
        if self._mount.is_revoked:
            raise JournalIOError(errno.ESTALE, "cannot write the broker's state", "server.lock")
        pair.state = state.value

    def release(self) -> None:
        super().release()
        # Else the server learns it when it hears the machine again.
        if self._storage.pair.hears(self._storage.host):
            self._storage.give_locks()
