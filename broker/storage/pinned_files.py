"""Files of the message journal that stay open after a start, since messages in them still wait.

    PinnedFiles.open(file) ─▶ PinnedFile.read() ─▶ was_read() ─▶ … forgotten again (spill_file.py)

A message that a start found is not copied: its bytes are read from the journal's file when they are
wanted. The journal may move records meanwhile: a compaction copies those that are live and deletes
a pinned file instead of using it again, and the open descriptor keeps what was in it. A file whose
records are all deleted is used again; no message wants its bytes then, and a file id that has
changed would be an error here.

Threads: the event loop's.
"""

from __future__ import annotations

import errno
import logging
import os
import resource
from typing import TYPE_CHECKING, Final, Protocol

from journal.errors import JournalIOError

if TYPE_CHECKING:
    from broker.model.message_owners import SpilledMessage
    from broker.storage.spill_file import SpillFile

__all__ = ["LoadedFile", "PinnedFile", "PinnedFiles", "PinningStore"]

log = logging.getLogger("broker")

# Where the header of a journal file has its id (docs/format/journal.md).
_FILE_ID_AT: Final = 8
_FILE_ID_SIZE: Final = 8
# Of the descriptors that the process may have: the rest is for connections.
_SHARE: Final = 4


class LoadedFile(Protocol):
    """A file of a load; see journal/loaded.py."""

    @property
    def name(self) -> str:
        """Its name in the folder."""

    @property
    def path(self) -> os.PathLike[str]:
        """Where it is."""

    @property
    def file_id(self) -> int:
        """The id in its header."""


class PinningStore(Protocol):
    """A journal of files that leaves some of them as they are; see Journal.pin_file."""

    def pin_file(self, name: str) -> None:
        """Never write over it as long as it has live records."""

    def unpin_file(self, name: str) -> None:
        """Use it as any other."""


class PinnedFile:
    """One file, open for reading as long as a message leads here.

    Args:
        owner: of all of them.
        file: of the load.
        fd: of it; closed with this object.
    """

    def __init__(self, owner: PinnedFiles, file: LoadedFile, fd: int) -> None:
        self._owner = owner
        self._name = file.name
        self._file_id = file.file_id.to_bytes(_FILE_ID_SIZE, "big", signed=True)
        self._fd = fd

    def __del__(self) -> None:
        os.close(self._fd)
        self._owner.closed(self._name)

    def read(self, place: int, size: int) -> bytes:
        """Give bytes of one message, or of several.

        Raises:
            JournalIOError: the disk fails, or the file was used again.
        """
        try:
            data = os.pread(self._fd, size, place)
            # Behind the bytes: a file gets another id before anything is written into it.
            file_id = os.pread(self._fd, _FILE_ID_SIZE, _FILE_ID_AT)
        except OSError as error:
            raise JournalIOError(
                error.errno or errno.EIO, "cannot read waiting messages", self._name
            ) from error
        if len(data) != size or file_id != self._file_id:
            raise JournalIOError(errno.ESTALE, "changed while messages in it wait", self._name)
        return data

    def was_read(self, message: SpilledMessage, place: int, size: int) -> None:
        """A message has its bytes in memory: they are forgotten when there are too many."""
        self._owner.aside.was_read(message, self, place, size)


class PinnedFiles:
    """Opens files of a load, and pins them in their journal.

    Args:
        store: the journal.
        aside: who has bytes that were read back forgotten.
    """

    def __init__(self, store: PinningStore, aside: SpillFile) -> None:
        self.aside = aside
        self._store: PinningStore | None = store
        self._left = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // _SHARE
        self._was_told = False

    def open(self, file: LoadedFile) -> PinnedFile | None:
        """Open a file and pin it; None where the process has too many files open."""
        if self._left <= 0:
            self._refuse("too many files are open")
            return None
        try:
            fd = os.open(file.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            self._refuse(str(error))
            return None
        self._left -= 1
        if self._store is not None:
            self._store.pin_file(file.name)
        return PinnedFile(self, file, fd)

    def _refuse(self, why: str) -> None:
        if not self._was_told:
            self._was_told = True
            log.warning("waiting messages are copied out of the journal's files: %s", why)

    def closed(self, name: str) -> None:
        """No message leads to a file any more."""
        self._left += 1
        if self._store is not None:
            self._store.unpin_file(name)

    def close(self) -> None:
        """Know the journal no more, which is closed: messages lead here, and are not collected."""
        self._store = None
