"""What the lock files of a data folder say; takes no lock.

`holder_of()` is not for a file that this process holds: closing any descriptor of it gives the lock
up.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import uuid
from typing import TYPE_CHECKING, Final, NamedTuple

from broker.storage.node_owner import FLOCK, read_owner
from broker.storage.node_state import NodeState
from journal.errors import JournalIOError

if TYPE_CHECKING:
    from pathlib import Path

    from broker.storage.node_owner import Owner

__all__ = [
    "BACKUP_FILE",
    "PRIMARY_FILE",
    "STATE_FILE",
    "FolderView",
    "holder_of",
    "known_state",
    "node_id_of_state",
    "state_of",
    "stored_node_id",
    "view_of",
]

STATE_FILE: Final = "server.lock"
PRIMARY_FILE: Final = "serverlock.1"
BACKUP_FILE: Final = "serverlock.2"
_ID_OFFSET: Final = 3
_ID_SIZE: Final = 16


class FolderView(NamedTuple):
    """A pair on a folder, as it is now.

    Attributes:
        node_id: of the pair; None before a broker served.
        state: see `node_state`.
        primary: process with the primary's lock, of whatever role; None if it is free.
        backup: process with the backup's lock.
        owner: the present or last owner; None where Artemis alone served.
    """

    node_id: str | None
    state: NodeState
    primary: int | None
    backup: int | None
    owner: Owner | None


def view_of(folder: Path) -> FolderView:
    """Look at a folder.

    Raises:
        JournalIOError: the state is unknown, or cannot be read.
        OSError: another file cannot be read.
    """
    return FolderView(
        node_id=stored_node_id(folder),
        state=state_of(folder),
        primary=holder_of(folder / PRIMARY_FILE),
        backup=holder_of(folder / BACKUP_FILE),
        owner=read_owner(folder),
    )


def state_of(folder: Path) -> NodeState:
    """Give the state; FIRST_TIME_START where no broker served yet.

    Raises:
        JournalIOError: it is unknown, or cannot be read.
    """
    path = folder / STATE_FILE
    try:
        letter = path.read_bytes()[:1]
    except FileNotFoundError:
        return NodeState.FIRST_TIME_START
    except OSError as error:
        raise JournalIOError(error.errno or 0, "cannot read the state", str(path)) from error
    return known_state(letter, path)


def known_state(letter: bytes, path: Path) -> NodeState:
    """Give the state that a file says.

    Args:
        letter: its first byte.
        path: of the file.

    Raises:
        JournalIOError: no state has such a letter.
    """
    try:
        return NodeState.of(letter)
    except ValueError:
        raise JournalIOError(errno.EBADMSG, f"unknown state {letter!r}", str(path)) from None


def holder_of(path: Path) -> int | None:
    """Give the process that has a file locked; None where none has, or there is no such file.

    Raises:
        OSError: it cannot be opened.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(FLOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        answer = struct.unpack(FLOCK, fcntl.fcntl(fd, fcntl.F_GETLK, asked))
    finally:
        os.close(fd)
    return None if answer[0] == fcntl.F_UNLCK else int(answer[4])


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
