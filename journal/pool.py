"""The files of a journal before and after they hold data: made, named, kept free, recycled.

    .tmp ──filled, headed, synced, renamed──▶ free ──taken──▶ opened ahead ──▶ current ──▶ data
                                               ▲                                            │
                                               └────── new id in the header, synced ◀───────┘

Source: JournalFilesRepository of Artemis. Two things it leaves out are done here: the
directory is synced after every name that changes, and a header is on disk before its file is used.

Threads: any. One lock covers a new id and the place that its file takes among the free ones, or in
the hand of the files thread: files must be written in the order of their ids.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from journal.errors import JournalIOError
from journal.format import header_block

if TYPE_CHECKING:
    from collections.abc import Iterable

    from journal.files.base import BackEnd, Folder
    from journal.options import JournalOptions

__all__ = ["FilePool", "PooledFile"]

log = logging.getLogger("journal")

ATTIC: Final = "attic"
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class PooledFile:
    """A file that holds no data: its name, and the id in its header."""

    name: str
    number: int
    file_id: int


class FilePool:
    """Makes, keeps and gives out empty files of one journal.

    Attributes:
        next_file_id: the id given last; ids only grow, over restarts too.
        free: files with a header of their own, closed, oldest id first.
        pinned: names of files with data that a reader has open: compaction deletes them instead of
            using them again (`Journal.pin_file`).
    """

    def __init__(
        self, folder: Folder, options: JournalOptions, back_end: BackEnd, file_size: int
    ) -> None:
        self.folder = folder
        self.options = options
        self.file_size = file_size
        self.next_file_id = 0
        self.free: deque[PooledFile] = deque()
        self.pinned: set[str] = set()
        self._order_lock = threading.RLock()
        self._direct = back_end.direct
        self._alignment = back_end.alignment

    def name_of(self, number: int) -> str:
        """The name of the file with that number."""
        return f"{self.options.prefix}-{number}.{self.options.extension}"

    def new_id(self) -> int:
        """The next file id: one more than any before."""
        with self._order_lock:
            self.next_file_id += 1
            return self.next_file_id

    def create(self) -> PooledFile:
        """Make a file: really written, headed, on disk with its name.

        Raises:
            JournalIOError: no room or a failing disk; nothing is left behind.
        """
        file_id = self.new_id()
        name = self.name_of(file_id)
        temporary = f"{name}.tmp"
        fd = self.folder.open(temporary, create=True, direct=self._direct)
        try:
            try:
                self.folder.fill(fd, 0, self.file_size, self._direct, temporary)
                self._write_header(fd, file_id, temporary)
                self.folder.sync_file(fd, temporary, metadata=True)
            finally:
                self.folder.close_file(fd, temporary)
        except JournalIOError:
            self.folder.unlink(temporary)
            raise
        self.folder.rename(temporary, name)
        self.folder.sync()
        return PooledFile(name, file_id, file_id)

    def take(self) -> PooledFile:
        """The oldest free file, or a new one."""
        with self._order_lock:
            return self.free.popleft() if self.free else self.create()

    def add_free(self) -> None:
        """Make one more free file.

        Raises:
            JournalIOError: as of create().
        """
        with self._order_lock:
            self.free.append(self.create())

    def check_room(self) -> None:
        """See whether the disk has room for one more file, without writing anything.

        Raises:
            JournalIOError: ENOSPC; file systems that do not tell pass.
        """
        found = os.fstatvfs(self.folder.fd)
        if found.f_blocks and found.f_bavail * found.f_frsize < self.file_size:
            raise JournalIOError(errno.ENOSPC, "cannot make a file", str(self.folder.path))

    def take_free(self) -> PooledFile | None:
        """The oldest free file, or None where there is none."""
        with self._order_lock:
            return self.free.popleft() if self.free else None

    def put_back(self, name: str, number: int, file_id: int) -> None:
        """The file that take_free() gave last is free again, unwritten, before all others."""
        with self._order_lock:
            self.free.appendleft(PooledFile(name, number, file_id))

    def open(self, name: str) -> int:
        """A descriptor to write the file through its back end."""
        return self.folder.open(name, write=True, direct=self._direct)

    def recycle(self, name: str, number: int) -> PooledFile:
        """Give a file whose records are all dead a new id, on disk before this returns.

        The records stay: they carry the old id, which no reader takes any more.
        """
        fd = self.folder.open(name, write=True, direct=self._direct)
        try:
            return self._renew(fd, name, number, name)
        finally:
            self.folder.close_file(fd, name)

    def give_back(self, name: str, number: int, *, others: int, shrink: bool = True) -> None:
        """A file holds nothing any more: keep it as a free one, drop it, or move it to attic/.

        Args:
            name: of the file.
            number: in its name.
            others: files that the journal has besides this one and the free ones.
            shrink: drop it when there are journal-pool-files already.

        Raises:
            JournalIOError: the disk fails.
        """
        fd = self.folder.open(name)
        try:
            size = self.folder.size(fd, name)
        finally:
            self.folder.close_file(fd, name)
        if size != self.file_size:
            self.to_attic(name, f"its size is {size}, not {self.file_size}", dead=True)
            return
        pool = self.options.pool_files
        if shrink and pool >= 0 and len(self.free) + others >= pool:
            self.folder.unlink(name)
            self.folder.sync()
            return
        with self._order_lock:
            self.free.append(self.recycle(name, number))

    def take_back(self, files: Iterable[tuple[str, int]], *, others: int, reserve: int = 0) -> None:
        """Keep as free, or drop, files whose records a compaction has copied elsewhere.

        They are called <name>.tmp, so that no load takes their records any more; they get their
        names back only with new ids on disk.

        Args:
            files: the name that each had, and the number in it.
            others: files that the journal has besides these and the free ones.
            reserve: so many are kept whatever journal-pool-files is.

        Raises:
            JournalIOError: the disk fails.
        """
        pool = self.options.pool_files
        taken: list[PooledFile] = []
        with self._order_lock:
            for name, number in files:
                temporary = f"{name}.tmp"
                fd = self.folder.open(temporary, write=True, direct=self._direct)
                try:
                    size = self.folder.size(fd, temporary)
                    free = len(self.free) + len(taken)
                    unwanted = 0 <= pool <= free + others and free >= reserve
                    if size == self.file_size and not unwanted and name not in self.pinned:
                        taken.append(self._renew(fd, name, number, temporary))
                        continue
                finally:
                    self.folder.close_file(fd, temporary)
                self.folder.unlink(temporary)
            for file in taken:
                self.folder.rename(f"{file.name}.tmp", file.name)
            # Nothing may be appended to a file whose name a crash could take back.
            self.folder.sync()
            self.free.extend(taken)

    def to_attic(self, name: str, why: str, *, dead: bool = False) -> None:
        """Move a file that does not fit the journal out of the way, never over another.

        With journal-max-attic-files there already, a file that is known to hold nothing live is
        removed, and one that is not understood stays where it is.

        Args:
            name: of the file.
            why: a phrase for the log.
            dead: nothing in it is live.

        Raises:
            JournalIOError: the disk fails.
        """
        try:
            target = self._move_to_attic(name)
        except JournalIOError as error:
            if error.errno not in NO_SPACE:
                raise
            target = None
        if target is None:
            if dead:
                self.folder.unlink(name)
                self.folder.sync()
            log.warning(
                "%s %s: %s; attic/ or its disk is full (journal-max-attic-files %d), look what is "
                "there",
                "removed" if dead else "left alone",
                name,
                why,
                self.options.max_attic_files,
            )
            return
        self.folder.sync()
        log.warning("moved %s to %s/%s: %s", name, ATTIC, target, why)

    def _move_to_attic(self, name: str) -> str | None:
        """Move a file to attic/; its name there, None where attic/ has enough of them."""
        with self.folder.subfolder(ATTIC, create=True) as attic:
            kept = attic.names()
            if len(kept) >= self.options.max_attic_files:
                return None
            target = name
            copy = 1
            while target in kept:
                copy += 1
                target = f"{name}.{copy}"
            self.folder.move(name, attic, target)
            attic.sync()
        return target

    def keep_bytes(self, name: str, offset: int, data: bytes, why: str) -> None:
        """Save bytes that are about to be cut off a file, as attic/<name>.<offset>.torn.

        Raises:
            JournalIOError: the disk fails; the file is as it was. A full disk does not raise.
        """
        target = f"{name}.{offset}.torn"
        try:
            self._write_to_attic(target, data)
        except JournalIOError as error:
            if error.errno not in NO_SPACE:
                raise
            log.warning(
                "cut %d bytes off %s at %d without a copy, since the disk is full: %s",
                len(data),
                name,
                offset,
                why,
            )
            return
        log.warning(
            "cut %d bytes off %s at %d, kept as %s/%s: %s",
            len(data),
            name,
            offset,
            ATTIC,
            target,
            why,
        )

    def _write_to_attic(self, target: str, data: bytes) -> None:
        """Write a new file in attic/; nothing of it is left after an error."""
        with self.folder.subfolder(ATTIC, create=True) as attic:
            fd = attic.open(target, create=True)
            try:
                try:
                    attic.write(fd, data, 0, target)
                    attic.sync_file(fd, target, metadata=True)
                finally:
                    attic.close_file(fd, target)
            except JournalIOError:
                attic.unlink(target)
                raise
            attic.sync()

    def _renew(self, fd: int, name: str, number: int, called: str) -> PooledFile:
        """Put a new id on disk; the file is called `called` for now."""
        file_id = self.new_id()
        self._write_header(fd, file_id, called)
        self.folder.sync_file(fd, called)
        return PooledFile(name, number, file_id)

    def _write_header(self, fd: int, file_id: int, name: str) -> None:
        block = header_block(
            file_id,
            self.options.user_version,
            file_size=self.file_size,
            leader=self.options.checksums,
            alignment=self._alignment,
        )
        self.folder.write(fd, block, 0, name, alignment=self._alignment)
