"""What an operator orders a pair on a folder: a backup to serve, an owner to be none any more."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING, Final

from broker.storage.node_owner import OwnerFile
from broker.storage.node_state import NodeState
from broker.storage.node_view import PRIMARY_FILE, STATE_FILE, holder_of, stored_node_id
from journal.errors import JournalLocked

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["fence", "promote"]

_FLAGS: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


def promote(folder: Path) -> None:
    """Have the backup that waits take over, also from a primary that stopped in good order.

    Args:
        folder: node-manager-lock-directory.

    Raises:
        JournalLocked: a broker has the primary's lock, and serves or loads.
        OSError: the files cannot be written; no broker served on the folder yet.
    """
    fd = os.open(folder / PRIMARY_FILE, _FLAGS | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise JournalLocked(
                f"{folder} is in use by another broker (process {holder_of(folder / PRIMARY_FILE)})"
            ) from error
        state_fd = os.open(folder / STATE_FILE, _FLAGS)
        try:
            os.pwrite(state_fd, NodeState.ACTIVE.value, 0)
            os.fsync(state_fd)
        finally:
            os.close(state_fd)
    finally:
        os.close(fd)


def fence(folder: Path) -> int | None:
    """Let the present owner be none any more: it answers no client from now on, and stops.

    Args:
        folder: node-manager-lock-directory.

    Returns:
        The process that has the lock, and keeps it until it ends; None where none has.

    Raises:
        OSError: the file of the owner cannot be written.
    """
    OwnerFile(folder, stored_node_id(folder) or "", pid=0).close()
    return holder_of(folder / PRIMARY_FILE)
